// SPDX-License-Identifier: Apache-2.0
// How mt reaches a server: one interface, and behind it our own client (Unix socket, plain TCP) or
// libcurl (https, proxies; not in the build for capsules). Any status is a success here; failures
// are unreachable and outcomeUnknown, with the server's name in the sentence.
#pragma once

#include "base/buf.h"
#include "base/err.h"

typedef struct transport transport;

typedef struct transport_answer {
    int status;
    mt_buf body; // what was not given to on_data
    char *content_type, *retry_after;
    bool has_length;
    uint64_t length; // what Content-Length said
    bool has_offset;
    uint64_t offset; // what X-Maitento-Offset said: where the body begins
} transport_answer;
#define TRANSPORT_ANSWER_INIT \
    {                         \
        0                     \
    }
void transport_answer_done(transport_answer *a);
#define _cleanup_answer_ _cleanup_(transport_answer_done)

typedef struct transport_request {
    const char *method;
    const char *target;              // encoded
    const char *const (*headers)[2]; // value NULL: left out
    size_t header_count;
    const void *body; // in memory, or…
    size_t body_len;
    bool has_body;
    // …in pieces: up to cap bytes, 0 at the end, -1 with *err set; body_length -1 is "unknown".
    ptrdiff_t (*read_body)(void *buf, size_t cap, void *data, mt_err **err);
    int64_t body_length;
    // The body of a 2xx answer; others are collected.
    int (*on_data)(const void *piece, size_t len, void *data, mt_err **err);
    // Before its first piece (also when there is none): status and headers are set.
    int (*on_head)(const transport_answer *a, void *data, mt_err **err);
    void *data;
    int64_t idle_timeout_ms; // 0: 90 s
} transport_request;

typedef struct transport_url {
    enum { TRANSPORT_UNIX, TRANSPORT_HTTP, TRANSPORT_HTTPS } scheme;
    char *path; // of a Unix socket
    char *host; // without brackets
    uint16_t port;
} transport_url;
// "http(s)://host[:port]" or "unix:/path"; anything else is badRequest.
int transport_url_parse(const char *text, transport_url *ret, mt_err **err);
void transport_url_done(transport_url *url);
bool transport_url_is_local(const transport_url *url); // this machine

typedef struct transport_ops {
    int (*call)(transport *t, const transport_request *request, transport_answer *a, mt_err **err);
    void (*free)(transport *t);
} transport_ops;
struct transport {
    const transport_ops *ops;
};

transport *transport_open(const char *url, mt_err **err);
void transport_free(transport *t); // accepts NULL
static inline int transport_call(transport *t, const transport_request *request,
                                 transport_answer *a, mt_err **err)
{
    return t->ops->call(t, request, a, err);
}

// The implementations.
enum { TRANSPORT_COLLECT_MAX = 256 << 20 };
transport *transport_plain_new(const transport_url *url, mt_err **err);
transport *transport_curl_new(const char *url,
                              mt_err **err);          // notSupported where it is not built in
bool transport_curl_wanted(const transport_url *url); // https, or a proxy is set for http
