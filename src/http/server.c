// SPDX-License-Identifier: Apache-2.0
// The server as a whole: its beginning, its end, its limits.
#include "http/server-internal.h"

#include <signal.h>

static void on_stop_timer(mt_timer *timer, void *data);

static void fill_limits(mt_http_limits *l)
{
    static const mt_http_limits DEFAULTS = {
        .request_line_bytes = MT_HTTP_MAX_LINE,
        .header_bytes = MT_HTTP_MAX_HEADER_BYTES,
        .header_fields = MT_HTTP_MAX_FIELDS,
        .query_parameters = 64,
        .header_timeout_ms = 10 * 1000,
        .body_idle_timeout_ms = 30 * 1000,
        .keepalive_idle_ms = 75 * 1000,
        .send_idle_timeout_ms = 30 * 1000,
        .connections = 4096,
        .connections_per_peer = 2048,
        .queue_bytes = 1024 * 1024,
        .collect_max = 1024 * 1024,
        .collect_total = 256 * 1024 * 1024,
        .answers_total = 256 * 1024 * 1024,
    };

#define FILL(member) l->member = l->member ? l->member : DEFAULTS.member
    FILL(request_line_bytes);
    FILL(header_bytes);
    FILL(header_fields);
    FILL(query_parameters);
    FILL(header_timeout_ms);
    FILL(body_idle_timeout_ms);
    FILL(keepalive_idle_ms);
    FILL(send_idle_timeout_ms);
    FILL(connections);
    FILL(connections_per_peer);
    FILL(queue_bytes);
    FILL(collect_max);
    FILL(collect_total);
    FILL(answers_total);
#undef FILL
    l->header_fields = MT_MIN(l->header_fields, (size_t)MT_HTTP_MAX_FIELDS);
}

mt_http_server *mt_http_server_new(mt_loop *loop, const mt_http_limits *limits,
                                   const mt_http_handler *handler)
{
    mt_http_server *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->loop = loop;
    s->handler = *handler;
    if (limits)
        s->limits = *limits;
    fill_limits(&s->limits);
    s->slot_free = MT_HTTP_NO_SLOT;
    s->peers = calloc(MT_HTTP_PEER_BUCKETS, sizeof(struct mt_http_peer_count_ *));
    s->scratch = malloc(MT_HTTP_READ_BYTES);
    s->stop_timer = mt_timer_new(loop, on_stop_timer, s);
    if (!s->peers || !s->scratch || !s->stop_timer) {
        mt_http_server_free(s);
        return NULL;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    return s;
}

void mt_http_server_free(mt_http_server *s)
{
    if (!s)
        return;
    s->stopped = NULL;
    while (s->listeners)
        mt_http_listener_remove(s->listeners);
    while (s->connections)
        mt_http_conn_close_(s->connections);
    mt_timer_free(s->stop_timer);
    free(s->scratch);
    free(s->peers);
    free(s->slots);
    free(s);
}

void mt_http_check_stopped_(mt_http_server *s)
{
    if (s->stopping && s->stopped && !s->connection_count)
        mt_timer_at(s->stop_timer, 0);
}

static void on_stop_timer(mt_timer *timer, void *data)
{
    mt_http_server *s = data;
    void (*stopped)(void *data) = s->stopped;

    s->stopped = NULL;
    // Timers run outside all callbacks of connections: each can be closed at once.
    while (s->connections)
        mt_http_conn_close_(s->connections);
    mt_timer_stop(timer);
    if (stopped)
        stopped(s->stopped_data);
}

void mt_http_server_stop(mt_http_server *s, int64_t within_ms, void (*done)(void *data), void *data)
{
    int64_t at = mt_boottime_ns() + within_ms * 1000000;
    mt_http_x *next;

    if (!s->stopping) {
        s->stopping = true;
        s->stopped = done;
        s->stopped_data = data;
        s->stop_at_ns = at;
        for (mt_http_listener *l = s->listeners; l; l = mt_http_listener_next_(l))
            mt_http_listener_close_(l);
        for (mt_http_x *x = s->idle_first; x; x = next) {
            next = x->idle_next;
            (void)mt_http_conn_cut_(x);
        }
    }
    s->stop_at_ns = MT_MIN(s->stop_at_ns, at);
    mt_timer_at(s->stop_timer, s->connection_count ? s->stop_at_ns : 0);
}

size_t mt_http_connections(const mt_http_server *server)
{
    return server->connection_count;
}
