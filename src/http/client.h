// SPDX-License-Identifier: Apache-2.0
// A small blocking HTTP/1.1 client over a Unix socket or plain TCP: what the command line needs. No
// TLS, proxies, redirects or cookies. Answers are parsed as strictly as requests are by the server.
// One call at a time for each client; a client belongs to one thread.
//
// Errors: unreachable (no connection, time-out, or cut where repeating is harmless), outcomeUnknown
// (the connection broke after a request that may change something was sent and before its answer
// was whole), badRequest (arguments), tooLarge (a collected answer over its limit), io (the
// caller's own callback failed; its error is kept), internal (the answer was not HTTP), forbidden
// (a Unix socket that is not open to this user).
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

typedef struct mt_http_client mt_http_client;

typedef struct mt_http_client_options {
    const char *unix_path; // either this
    const char *host;      // or these: a name or numeric address (IPv6 without brackets)
    uint16_t port;
    int (*connect)(void *data, mt_err **err); // or this: gives a connected stream socket, or -1
    void *connect_data;
    const char *host_header;    // NULL: "localhost" over a Unix socket, host[:port] over TCP
    int64_t connect_timeout_ms; // 0: 10 s
    int64_t idle_timeout_ms;    // 0: 90 s in which nothing moves in either direction
} mt_http_client_options;

// Copies what it needs; does not connect yet. NULL with *err set.
mt_http_client *mt_http_client_new(const mt_http_client_options *options, mt_err **err);
mt_http_client *mt_http_client_free(mt_http_client *client); // returns NULL; accepts NULL
MT_DEFINE_CLEANUP(mt_http_client_free, mt_http_client *)
#define _cleanup_http_client_ _cleanup_(mt_http_client_free_p)

typedef struct mt_http_answer {
    int status;
    mt_buf body;                       // what was collected (without an on_data)
    uint64_t body_bytes;               // of the whole body, streamed ones included
    struct mt_http_answer_head *head_; // private
} mt_http_answer;
#define MT_HTTP_ANSWER_INIT \
    {                       \
        0                   \
    }
void mt_http_answer_done(mt_http_answer *a);
#define _cleanup_http_answer_ _cleanup_(mt_http_answer_done)
// The first field of that name, NUL-terminated, valid until mt_http_answer_done(); NULL when
// absent.
const char *mt_http_answer_header(const mt_http_answer *a, const char *name);
// What Content-Length says; false when the answer came without.
bool mt_http_answer_length(const mt_http_answer *a, uint64_t *ret);

typedef struct mt_http_call {
    const char *method;
    const char *target;              // "/v1/health?x=1", encoded already (mt_http_escape())
    const char *const (*headers)[2]; // name, value; value NULL: left out. Not Host, Content-Length,
    size_t header_count;             // Transfer-Encoding, Connection, Expect: those are the core's
    // The body: none, memory…
    const void *body;
    size_t body_len;
    bool has_body; // sends Content-Length: 0 for an empty one
    // …or pieces: writes up to cap bytes to buf and returns how many, 0 at the end, -1 with *err
    // set. body_length bytes in all (then Content-Length is sent, and fewer or more is an error),
    // or -1 for chunked coding.
    ptrdiff_t (*read_body)(void *buf, size_t cap, void *data, mt_err **err);
    int64_t body_length;
    // Called once, when the answer's head is there (status and headers of a are set). Return < 0
    // with *err set to give up.
    int (*on_head)(mt_http_answer *a, void *data, mt_err **err);
    // The answer's body piece by piece; without it, it is collected in answer.body up to
    // max_collect (0: 16 MiB). With only_success, bodies of other answers than 2xx are collected.
    int (*on_data)(const void *piece, size_t len, void *data, mt_err **err);
    bool only_success;
    size_t max_collect;
    void *data;               // of the three callbacks
    int64_t total_timeout_ms; // 0: none
    int64_t idle_timeout_ms;  // 0: the client's (for a long ?wait=)
} mt_http_call;

// Sends and receives; any status is a success (0). The connection is kept for the next call where
// both sides allow; one that the server closed meanwhile is replaced, and the call repeated once,
// when nothing was received, the method is idempotent and the body is none or memory.
// a must be MT_HTTP_ANSWER_INIT or done. On failure (-1) a may hold what had come.
int mt_http_client_call(mt_http_client *client, const mt_http_call *call, mt_http_answer *a,
                        mt_err **err);
// A signal (EINTR) does not end a call; setting *flag from a signal handler does (error unreachable
// or outcomeUnknown with "interrupted"), at the next step.
void mt_http_client_interrupt_flag(mt_http_client *client, const volatile int *flag);

// Appends text percent-encoded for a query value or one path part: all but unreserved characters;
// with keep_slash '/' stays.
int mt_http_escape(mt_buf *b, mt_str text, bool keep_slash);
