// SPDX-License-Identifier: Apache-2.0
// The HTTP/1.1 server: connections, requests and answers on one mt_loop. It knows nothing of the
// product: a handler table decides what to do with each exchange.
//
// Threads: everything here runs on the loop's thread and may be called there alone, callbacks
// included. Other threads keep the exchange's id and post their answer with mt_loop_post(); the
// posted function asks mt_http_find(). One thing may travel: an mt_http_request (reference counted,
// immutable once on_request was called).
//
// An exchange (mt_http_x) is one request with its answer:
//
//   on_head ──> body: collected, streamed to a function, or refused by answering
//      └─ on_request ──> the handler answers now or later (parked: no thread, no time limit)
//            └─ on_end: the answer is sent whole, or (after on_gone) the client left or was cut
//
// on_end comes exactly once for each exchange that had on_head; afterwards the pointer is dead.
// Requests that a client pipelines are read one at a time, in order. Errors of framing, time-outs
// and limits are answered by the core itself (application/problem+json) and close the connection;
// where such an exchange had on_head, it ends with on_end, without on_gone when the error was told.
//
// A client that closes its sending side (shutdown, close) before it has its answer has left.
#pragma once

#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "http/parse.h"

#include <sys/types.h>

typedef struct mt_http_server mt_http_server;
typedef struct mt_http_listener mt_http_listener;
typedef struct mt_http_x mt_http_x;
typedef struct mt_http_request mt_http_request;

// Members left 0 take the default.
typedef struct mt_http_limits {
    size_t request_line_bytes;    // 8 KiB; past it 414
    size_t header_bytes;          // 32 KiB; past it 431
    size_t header_fields;         // 100 (the most); past it 431
    size_t query_parameters;      // 64; past it 400
    int64_t header_timeout_ms;    // 10 s for the whole head from its first byte; then 408
    int64_t body_idle_timeout_ms; // 30 s without a byte of the body; then 408
    int64_t keepalive_idle_ms;    // 75 s between requests; then closed
    int64_t send_idle_timeout_ms; // 30 s in which a client took nothing of its answer; then cut
    size_t connections;           // 4096; past it the longest idle one is closed, or 503
    size_t connections_per_peer;  // 2048, by address (TCP) or uid (Unix), and less the fewer are
                                  // left (base/share.h); past it 503
    size_t queue_bytes;           // 1 MiB of a streamed answer waiting for a slow client
    size_t collect_max;           // 1 MiB: the most that mt_http_collect() gets by default
    size_t collect_total;         // 256 MiB of bodies collected at one time; past it 503
    size_t answers_total;         // 256 MiB of whole answers that clients have not taken; past it
                                  // the one that has waited longest is cut, of the peer that has
                                  // most
} mt_http_limits;

typedef struct mt_http_handler {
    // The head is there. May call mt_http_collect(), mt_http_stream() or answer (refuse). Without
    // any of it the body is collected up to limits.collect_max. May be NULL.
    void (*on_head)(mt_http_x *x, void *data);
    // So much more of the body is to be collected. False when it may not: refused by answering. May
    // be NULL.
    bool (*on_collect)(mt_http_x *x, size_t len, void *data);
    // The whole request is there, its body collected or streamed. Answer, now or later.
    void (*on_request)(mt_http_x *x, void *data);
    // The client left or was cut before the answer was whole: do not answer any more. May be NULL.
    void (*on_gone)(mt_http_x *x, void *data);
    // The exchange is over: release what mt_http_data() holds. May be NULL.
    void (*on_end)(mt_http_x *x, void *data);
    void *data;
} mt_http_handler;

// limits may be NULL. The handler table is copied. Sets SIGPIPE to ignored for the process
// (sendfile(2) has no MSG_NOSIGNAL). NULL when out of memory.
mt_http_server *mt_http_server_new(mt_loop *loop, const mt_http_limits *limits,
                                   const mt_http_handler *handler);
// Cuts everything that is left (on_gone, on_end). Accepts NULL. Not from within a callback.
void mt_http_server_free(mt_http_server *server);
// Graceful end: no more accepting, idle connections are closed, exchanges under way may finish
// (their answers say Connection: close); what is left after within_ms is cut. Then done(data),
// once, from the loop. Calling it again only shortens the time.
void mt_http_server_stop(mt_http_server *server, int64_t within_ms, void (*done)(void *data),
                         void *data);
size_t mt_http_connections(const mt_http_server *server); // open now

// Listeners. Each has an opaque tag that exchanges show. NULL with *err set on failure.
// address is numeric ("127.0.0.1", "::1"); port 0 takes a free one.
mt_http_listener *mt_http_listen_tcp(mt_http_server *server, const char *address, uint16_t port,
                                     void *tag, mt_err **err);
// Takes the place of a socket file that nobody listens on; one that answers is an error
// (alreadyExists). The file appears with its mode already set. It is removed with the listener.
mt_http_listener *mt_http_listen_unix(mt_http_server *server, const char *path, mode_t mode,
                                      void *tag, mt_err **err);
// A socket that listens already (inherited, or passed by another program). Takes fd over, also on
// failure.
mt_http_listener *mt_http_listen_fd(mt_http_server *server, int fd, void *tag, mt_err **err);
// Bounds the open connections of this listener alone (0: only the server's bounds): further clients
// wait in its backlog until one leaves, and new ones are let in a few at a time, some thousand a
// second.
void mt_http_listener_limit(mt_http_listener *listener, size_t connections);
uint16_t mt_http_listener_port(const mt_http_listener *listener); // 0 when it is not TCP
void *mt_http_listener_tag(const mt_http_listener *listener);
// Stops listening and cuts its connections (on_gone and on_end come before it returns): afterwards
// nothing refers to the tag. Accepts NULL. May be called from callbacks, but not from those of an
// exchange of this same listener.
void mt_http_listener_remove(mt_http_listener *listener);
// Serves one connected socket as if a listener with this tag had accepted it. Takes fd over.
int mt_http_serve_fd(mt_http_server *server, int fd, void *tag, mt_err **err);

// Who is at the other end.
typedef struct mt_http_peer {
    bool is_unix;
    pid_t pid;        // Unix: SO_PEERCRED, of the moment of connect(2). -1 for TCP
    uid_t uid;        // (uid_t)-1 for TCP
    gid_t gid;        // (gid_t)-1 for TCP; supplementary groups are not looked up
    char address[64]; // TCP: numeric address, without port; Unix: ""
    uint16_t port;    // TCP
} mt_http_peer;

// The exchange.
uint64_t mt_http_id(const mt_http_x *x); // never 0, not used again within 2^32 exchanges
mt_http_x *mt_http_find(mt_http_server *server, uint64_t id); // NULL once it is over
const mt_http_request *mt_http_req(const mt_http_x *x);
const mt_http_peer *mt_http_peer_of(const mt_http_x *x);
void *mt_http_tag(const mt_http_x *x); // of its listener
mt_http_server *mt_http_server_of(const mt_http_x *x);
void mt_http_set_data(mt_http_x *x, void *data); // the handler's own
void *mt_http_data(const mt_http_x *x);
bool mt_http_answered(const mt_http_x *x); // an answer was begun

// The body, from on_head. Collects it up to max bytes (0: limits.collect_max): past that 413.
void mt_http_collect(mt_http_x *x, size_t max);
// Gives the body piece by piece to fn, up to max bytes (UINT64_MAX: no bound): past that 413.
// on_request follows the last piece. fn may pause, answer or abort.
typedef void mt_http_body_fn(mt_http_x *x, const void *piece, size_t len, void *data);
void mt_http_stream(mt_http_x *x, uint64_t max, mt_http_body_fn *fn, void *data);
// Back-pressure: while paused nothing is read from the client and no idle time-out runs. A handler
// that pauses in on_head (to ask another thread who this is) may call mt_http_collect() or
// mt_http_stream() up to mt_http_resume(): only then the body is begun (the limit is applied, 100
// Continue is said), or on_request called where there is none.
void mt_http_pause(mt_http_x *x);
void mt_http_resume(
    mt_http_x *x); // pieces may come from the loop only, never from within this call
uint64_t mt_http_body_received(const mt_http_x *x);

// The request: may be read on any thread that holds a reference. Slices end with a NUL that does
// not count.
mt_http_request *mt_http_request_ref(const mt_http_request *r);
void mt_http_request_unref(mt_http_request *r); // accepts NULL
MT_DEFINE_CLEANUP(mt_http_request_unref, mt_http_request *)
#define _cleanup_http_request_ _cleanup_(mt_http_request_unref_p)

mt_http_method mt_http_request_method(const mt_http_request *r);
mt_str mt_http_request_target(const mt_http_request *r); // as sent
// The path percent-decoded, "/" at its start; "*" for OPTIONS *. Dot segments and double slashes
// are left as they are (routes match exactly). Bytes may be anything but NUL: not necessarily
// UTF-8.
mt_str mt_http_request_path(const mt_http_request *r);
// As sent, still encoded: for routes whose parts may hold an encoded '/'. Split this at '/', then
// decode each part with mt_http_percent_decode().
mt_str mt_http_request_raw_path(const mt_http_request *r);
// The n-th (from 0) query parameter of that name, decoded ('+' is a space); false when there is no
// such one. A parameter without '=' has an empty value.
bool mt_http_query(const mt_http_request *r, const char *name, size_t n, mt_str *ret_value);
size_t mt_http_query_count(const mt_http_request *r); // of all names
mt_str mt_http_query_name(const mt_http_request *r, size_t i);
mt_str mt_http_query_value(const mt_http_request *r, size_t i);
// The first field of that name; false when there is none. Names without regard to case.
bool mt_http_header(const mt_http_request *r, const char *name, mt_str *ret_value);
size_t mt_http_header_count(const mt_http_request *r, const char *name); // 2 or more: sent twice
// The authority asked for: of an absolute target, else the one Host field. Empty in HTTP/1.0
// without. Its value is for the product to check.
mt_str mt_http_request_host(const mt_http_request *r);
bool mt_http_request_has_body(const mt_http_request *r); // Content-Length > 0 or chunked
// What Content-Length says; false when the body is chunked or there is none.
bool mt_http_request_length(const mt_http_request *r, uint64_t *ret);
mt_str mt_http_request_body(const mt_http_request *r); // what was collected

// Answers. One for each exchange. Date, Connection, Content-Length, Transfer-Encoding and
// X-Content-Type-Options are the core's: naming them, a bad name, or control bytes in a value
// (header injection) makes the call fail with -EINVAL, nothing sent, and another answer may be
// given. All return 0 or a negative errno (-EALREADY: answered before). HEAD gets the head alone.
typedef struct mt_http_header_line {
    const char *name;
    const char *value; // NULL: the line is left out
} mt_http_header_line;

int mt_http_respond(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count,
                    const void *body, size_t len);
// length bytes from offset of a regular file, by sendfile. Takes fd over, also on failure. A file
// that shrinks meanwhile cuts the connection (the client sees an incomplete answer).
int mt_http_respond_fd(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count,
                       int fd, off_t offset, uint64_t length);
// A problem answer: title and status follow from code; help from errors.def.
int mt_http_respond_problem(mt_http_x *x, mt_code code, const char *fmt, ...) MT_PRINTF(3, 4);

// A streamed answer: chunked in HTTP/1.1, ended by closing in HTTP/1.0.
int mt_http_begin(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count);
// One whose length is known: with Content-Length. More than that is not taken (-EMSGSIZE); ended
// with less, the connection is cut.
int mt_http_begin_sized(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count,
                        uint64_t length);
// 0, or -ENOBUFS when more than limits.queue_bytes would wait: nothing was taken; wait for
// on_drained or give up with mt_http_abort(). len 0 does nothing.
int mt_http_write(mt_http_x *x, const void *data, size_t len);
size_t mt_http_queued(const mt_http_x *x); // bytes that the client has not taken yet
// Called from the loop whenever the queue has become empty after a write.
void mt_http_on_drained(mt_http_x *x, void (*fn)(mt_http_x *x, void *data), void *data);
// For this answer, in the place of limits.send_idle_timeout_ms.
void mt_http_patience(mt_http_x *x, int64_t send_idle_timeout_ms);
int mt_http_end(mt_http_x *x);
// Cuts the connection without more words; on_gone and on_end come (at the latest when the callback
// that is running returns). For a streamed answer that cannot be finished.
void mt_http_abort(mt_http_x *x);

const char *mt_http_reason(int status); // "Not Found"; "Unknown" for one it does not know
