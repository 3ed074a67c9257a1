// SPDX-License-Identifier: Apache-2.0
// HTTP requests by libcurl's multi interface on an event loop: the only file that sees libcurl is
// transfer.c. All on the loop's thread. Used within src/model only.
#pragma once

#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"

typedef struct transfers transfers;
typedef struct transfer transfer;

typedef enum transfer_result {
    TRANSFER_WHOLE,    // an answer came, to its end
    TRANSFER_BROKEN,   // no connection, or it broke
    TRANSFER_HOPELESS, // neither would another time: an address, a certificate
} transfer_result;

// Not called any more once ended() was, or after transfer_stop().
typedef struct transfer_events {
    void (*status)(int status, void *user); // before the headers that belong to it
    void (*header)(mt_str name, mt_str value, void *user);
    bool (*bytes)(const char *bytes, size_t len, void *user); // false: enough, it ends BROKEN
    // reason: libcurl's, "" where WHOLE. The transfer is freed.
    void (*ended)(transfer_result result, const char *reason, void *user);
} transfer_events;

typedef struct transfer_request { // has to stay until the end: body alone
    const char *url;
    mt_str body; // JSON, sent by POST
    const char *const *headers;
    size_t header_count;
    bool local; // of transfer_check_url()
} transfer_request;

transfers *transfers_new(mt_loop *loop, mt_err **err);
transfers *transfers_free(transfers *t); // none may be under way; returns NULL

// NULL: out of memory.
transfer *transfer_start(transfers *t, const transfer_request *request,
                         const transfer_events *events, void *user);
void transfer_stop(transfer *x); // ended() does not come; not from within an event

// http or https, with a host, without user, query or fragment. *ret_local: it is this machine, so
// no proxy is asked. From any thread.
int transfer_check_url(const char *url, bool *ret_local, mt_err **err);
