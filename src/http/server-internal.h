// SPDX-License-Identifier: Apache-2.0
// What the files of the server share. Internal to src/http.
//
// struct mt_http_x is a connection together with the exchange that it carries now (one at a time):
// the pointer stays the same from exchange to exchange, the id does not.
//
// Nothing here frees a connection in the middle of a callback: functions that handlers may call
// only change its state; mt_http_conn_settle_() draws the consequences, once at the end of each
// event, and is the one place that ends exchanges and connections.
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "http/server.h"

#include <errno.h>

enum {
    MT_HTTP_READ_BYTES = 64 * 1024,      // of a body read at one time
    MT_HTTP_READ_HEAD_BYTES = 16 * 1024, // of anything else
    MT_HTTP_DRAIN_BYTES = 64 * 1024, // rest of an unwanted body that is read to keep a connection
    MT_HTTP_PEER_BUCKETS = 1024,
};
#define MT_HTTP_NO_SLOT UINT32_MAX

typedef enum mt_http_state_ {
    MT_HTTP_S_HEAD,   // between requests, or reading a head
    MT_HTTP_S_BODY,   // reading a body for the handler
    MT_HTTP_S_DRAIN,  // reading the rest of a body that nobody wants
    MT_HTTP_S_QUIET,  // nothing to read: the request is whole, or will not be read on
    MT_HTTP_S_LINGER, // answered and shut down: waits for the client to close
} mt_http_state_;

typedef enum mt_http_answering_ {
    MT_HTTP_A_NONE,
    MT_HTTP_A_STREAM, // begun, more to come
    MT_HTTP_A_ENDED,  // whole; what is queued must still be sent
} mt_http_answering_;

// What one peer has.
struct mt_http_peer_count_ {
    struct mt_http_peer_count_ *next;
    size_t count;
    size_t held; // answers that it has not taken, when they were last counted
    bool is_unix;
    uid_t uid;
    char address[64];
};

struct mt_http_x {
    mt_http_server *server;
    mt_http_listener *listener; // NULL: given by mt_http_serve_fd(), or the listener is gone
    void *tag;
    mt_http_x *prev, *next;           // all connections
    mt_http_x *idle_prev, *idle_next; // those without a byte of a request
    bool idle;

    int fd;
    mt_io *io;
    uint32_t interest; // what io waits for
    mt_http_peer peer;
    struct mt_http_peer_count_ *peer_count;

    mt_timer *timer;
    int64_t armed_ns; // INT64_MAX: not armed. May fire early: the deadline is asked again then
    bool kicked;      // settle soon
    int depth;        // > 0: inside an event or callback, settling comes at its end
    bool broken;      // to be cut
    bool aside;       // base/aside.h
    bool peer_shut;   // the client has closed its sending side
    bool first;       // nothing was ever received
    bool close_after; // no further request on this connection

    // Reading.
    mt_http_state_ state;
    mt_buf in; // received and not used yet, from in_off on
    size_t in_off;
    mt_http_head *head; // while a head is being read
    mt_http_body body;
    int64_t head_since_ns, read_ns;
    bool paused;
    bool expects; // waits for 100 Continue

    // The exchange.
    bool live;     // between on_head and on_end
    bool starting; // on_head was called, the body not begun (the handler may have paused)
    uint32_t slot, generation;
    mt_http_request *request;
    void *data;
    mt_http_body_fn *body_fn; // NULL: collect
    void *body_data;
    uint64_t body_max, received;
    size_t collected; // charged to the server

    // The answer.
    mt_http_answering_ answering;
    bool minor0, head_only, chunked, sized;
    uint64_t stream_left; // of a sized streamed answer
    mt_buf out;           // from out_off on
    size_t out_off;
    int file; // after out; -1 none
    off_t file_off;
    uint64_t file_left;
    int64_t sent_ns;
    int64_t answered_ns; // the head was queued
    bool drain_due;
    int64_t patience_ms; // in which the client takes nothing of its answer
    void (*drained)(mt_http_x *x, void *data);
    void *drained_data;
};

struct mt_http_slot_ {
    mt_http_x *x;
    uint32_t generation;
    uint32_t next_free;
};

struct mt_http_server {
    mt_loop *loop;
    mt_http_limits limits;
    mt_http_handler handler;
    mt_http_listener *listeners;
    mt_http_x *connections;
    size_t connection_count;
    mt_http_x *idle_first, *idle_last; // the longest idle one first
    size_t idle_count;
    struct mt_http_slot_ *slots;
    uint32_t slot_count, slot_free;
    struct mt_http_peer_count_ **peers; // hash table
    size_t collected;
    int64_t date_sec;
    char date[32];
    char *scratch; // MT_HTTP_READ_BYTES: what one read brings, mostly used up at once
    bool stopping;
    mt_timer *stop_timer;
    int64_t stop_at_ns;
    void (*stopped)(void *data);
    void *stopped_data;
};

// request.c: -E2BIG (too many query parameters), -ENOMEM.
int mt_http_request_make_(const mt_http_head *h, const char *data, size_t max_parameters,
                          mt_http_request **ret);
mt_buf *mt_http_request_buf_(mt_http_request *r);

// conn.c
mt_http_x *mt_http_conn_new_(mt_http_server *server, int fd, const mt_http_peer *peer,
                             struct mt_http_peer_count_ *count);
void mt_http_conn_settle_(mt_http_x *x); // may free x
void mt_http_conn_kick_(mt_http_x *x);   // settles soon, unless a callback of x runs
void mt_http_conn_close_(mt_http_x *x);  // cuts now; x is freed
bool mt_http_conn_cut_(mt_http_x *x);    // cuts now, or at the end of its running callback (false)

// respond.c
size_t mt_http_pending_(const mt_http_x *x); // bytes still to send, those of a file included
void mt_http_tell_(mt_http_x *x, mt_code code, const char *fmt, ...) MT_PRINTF(3, 4);
void mt_http_problem_body_(mt_buf *b, mt_code code, const char *detail);
void mt_http_answer_reset_(mt_http_x *x);

// send.c
void mt_http_flush_(mt_http_x *x);

// pool.c
// NULL when there is room for one more connection of that peer (an idle one may be closed for it),
// else why not.
const char *mt_http_pool_room_(mt_http_server *s, const mt_http_peer *peer);
mt_http_x *mt_http_pool_add_(mt_http_server *s, int fd,
                             const mt_http_peer *peer); // NULL: no memory
void mt_http_pool_remove_(mt_http_x *x);
bool mt_http_pool_evict_(mt_http_server *s); // closes the longest idle connection, if any
void mt_http_idle_add_(mt_http_x *x);
void mt_http_idle_remove_(mt_http_x *x);

// listen.c
void mt_http_listener_close_(mt_http_listener *l);
void mt_http_listener_left_(mt_http_listener *l);
mt_http_listener *mt_http_listener_next_(const mt_http_listener *l);

// server.c
void mt_http_check_stopped_(mt_http_server *s);
