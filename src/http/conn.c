// SPDX-License-Identifier: Apache-2.0
// One connection: reading, the life of its exchanges, time-outs. See server-internal.h.
//
//   HEAD ──whole──> BODY ──whole──> QUIET ──answered──> HEAD …
//     │               ├─answered──> DRAIN ──whole──────> HEAD
//     └─wrong──> QUIET └─answered, too much left──> QUIET ──> LINGER
#include "http/server-internal.h"

#include "base/aside.h"

#include <stdio.h>
#include <sys/socket.h>

enum {
    LINGER_MS = 2000,
    PARKED_CHECK_MS = 5000,
    PARKED_AHEAD_BYTES = 64 * 1024,
    SETTLE_ROUNDS = 16, // of one connection in one turn: others wait meanwhile
    KEPT_BYTES = 16 * 1024,
};

static const int64_t NEVER = INT64_MAX;

static void on_io(mt_io *io, uint32_t events, void *data);
static void on_timer(mt_timer *timer, void *data);

mt_http_x *mt_http_conn_new_(mt_http_server *server, int fd, const mt_http_peer *peer,
                             struct mt_http_peer_count_ *count)
{
    mt_http_x *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    *x = (mt_http_x){.server = server,
                     .fd = fd,
                     .peer = *peer,
                     .peer_count = count,
                     .armed_ns = NEVER,
                     .first = true,
                     .file = -1,
                     .patience_ms = server->limits.send_idle_timeout_ms,
                     .in = MT_BUF_SECRET_INIT(SIZE_MAX / 4),
                     .out = MT_BUF_INIT(SIZE_MAX / 4)};
    x->interest = EPOLLIN | EPOLLRDHUP;
    x->read_ns = mt_boottime_ns();
    x->timer = mt_timer_new(server->loop, on_timer, x);
    x->io = x->timer ? mt_io_add(server->loop, fd, x->interest, on_io, x) : NULL;
    if (!x->io) {
        mt_timer_free(x->timer);
        free(x);
        return NULL;
    }
    return x;
}

// The exchange is over, whatever became of it.
static void end_exchange(mt_http_x *x, bool gone)
{
    const mt_http_handler *h = &x->server->handler;

    x->depth++;
    if (x->live && gone && h->on_gone)
        h->on_gone(x, h->data);
    if (x->live && h->on_end)
        h->on_end(x, h->data);
    x->depth--;
    x->live = false;
    x->server->collected -= x->collected;
    x->collected = 0;
    mt_http_request_unref(MT_TAKE_PTR(x->request));
    x->data = x->body_data = NULL;
    x->body_fn = NULL;
    x->paused = x->expects = x->starting = false;
    x->received = 0;
    mt_http_answer_reset_(x);
}

void mt_http_conn_close_(mt_http_x *x)
{
    x->broken = true;
    end_exchange(x, x->answering != MT_HTTP_A_ENDED || mt_http_pending_(x));
    mt_http_pool_remove_(x);
    mt_io_remove(x->io);
    mt_timer_free(x->timer);
    if (x->aside)
        mt_close_aside(&x->fd);
    mt_close_fd(&x->fd);
    mt_buf_done(&x->in);
    mt_buf_done(&x->out);
    free(x->head);
    free(x);
}

bool mt_http_conn_cut_(mt_http_x *x)
{
    x->broken = true;
    if (x->depth)
        return false;
    mt_http_conn_close_(x);
    return true;
}

void mt_http_conn_kick_(mt_http_x *x)
{
    if (x->depth || x->kicked)
        return;
    x->kicked = true;
    x->armed_ns = 0;
    mt_timer_at(x->timer, 0);
}

// Head.

static const char *limit_text(const mt_http_x *x, mt_code code, char *out, size_t size)
{
    const mt_http_limits *l = &x->server->limits;

    if (code == MT_E_URI_TOO_LONG)
        (void)snprintf(out, size, ": the limit is %zu bytes", l->request_line_bytes);
    else if (code == MT_E_HEADERS_TOO_LARGE)
        (void)snprintf(out, size, ": the limit is %zu fields and %zu bytes", l->header_fields,
                       l->header_bytes);
    else
        out[0] = '\0';
    return out;
}

static void bad_head(mt_http_x *x)
{
    char limit[80];

    mt_http_tell_(x, x->head->wrong, "%s%s", x->head->why,
                  limit_text(x, x->head->wrong, limit, sizeof(limit)));
}

static bool begin_head(mt_http_x *x)
{
    const mt_http_limits *l = &x->server->limits;

    x->head = malloc(sizeof(*x->head));
    if (!x->head) {
        x->broken = true;
        return false;
    }
    mt_http_head_init(x->head, l->request_line_bytes, l->header_bytes, l->header_fields);
    x->head_since_ns = mt_boottime_ns();
    x->first = false;
    mt_http_idle_remove_(x);
    return true;
}

static void begin_exchange(mt_http_x *x, const char *data)
{
    mt_http_server *s = x->server;
    int r = mt_http_request_make_(x->head, data, s->limits.query_parameters, &x->request);

    x->minor0 = x->head->minor == 0;
    x->head_only = x->head->method == MT_HTTP_HEAD;
    x->close_after = x->close_after || !x->head->keep_alive;
    x->expects = x->head->expect_continue;
    if (r == -E2BIG) {
        mt_http_tell_(x, MT_E_BAD_REQUEST, "too many query parameters: the limit is %zu",
                      s->limits.query_parameters);
        return;
    }
    if (r < 0) {
        x->broken = true;
        return;
    }
    mt_http_body_init(&x->body, x->head->framing, x->head->content_length);
    x->state = mt_http_request_has_body(x->request) ? MT_HTTP_S_BODY : MT_HTTP_S_QUIET;
    x->expects = x->expects && x->state == MT_HTTP_S_BODY;
    x->body_max = s->limits.collect_max;
    x->read_ns = mt_boottime_ns();
    x->generation = ++s->slots[x->slot].generation;
    x->live = true;
    x->starting = true;
    if (s->handler.on_head)
        s->handler.on_head(x, s->handler.data);
}

static void too_large(mt_http_x *x)
{
    mt_http_tell_(x, MT_E_TOO_LARGE, "the body is too large: the limit here is %llu bytes",
                  (unsigned long long)x->body_max);
}

static void whole_request(mt_http_x *x)
{
    x->state = MT_HTTP_S_QUIET;
    if (x->answering == MT_HTTP_A_NONE && !x->broken)
        x->server->handler.on_request(x, x->server->handler.data);
}

// After on_head, or once the handler that paused in it goes on: what it chose meets what the client
// announced.
static void start_body(mt_http_x *x, bool more_is_there)
{
    if (!x->starting || x->paused || x->broken)
        return;
    x->starting = false;
    if (x->state == MT_HTTP_S_QUIET) {
        whole_request(x);
        return;
    }
    if (x->body.framing == MT_HTTP_BODY_LENGTH && x->body.left > x->body_max) {
        too_large(x);
        return;
    }
    if (x->expects && !more_is_there)
        (void)mt_buf_adds(&x->out, "HTTP/1.1 100 Continue\r\n\r\n");
    x->expects = false;
}

// Returns the bytes used: all of the head, or none while it is incomplete (data must then be given
// again from its start, with more).
static size_t feed_head(mt_http_x *x, const char *data, size_t len)
{
    size_t used;

    if (!x->head && !begin_head(x))
        return 0;
    switch (mt_http_head_parse(x->head, data, len)) {
    case MT_HTTP_MORE:
        return 0;
    case MT_HTTP_WRONG:
        bad_head(x);
        used = 0;
        break;
    default:
        used = x->head->bytes;
        begin_exchange(x, data);
        break;
    }
    free(x->head);
    x->head = NULL;
    start_body(x, used < len);
    return used;
}

// Body.

static bool collect(mt_http_x *x, mt_str piece)
{
    mt_http_server *s = x->server;

    if (s->collected + piece.len > s->limits.collect_total) {
        mt_http_tell_(x, MT_E_UNAVAILABLE,
                      "too many request bodies are being received: the limit is %zu bytes together",
                      s->limits.collect_total);
        return false;
    }
    if (s->handler.on_collect && !s->handler.on_collect(x, piece.len, s->handler.data))
        return false;
    s->collected += piece.len;
    x->collected += piece.len;
    if (mt_buf_add(mt_http_request_buf_(x->request), piece.data, piece.len) < 0)
        x->broken = true;
    return !x->broken;
}

static void take_piece(mt_http_x *x, mt_str piece)
{
    x->received += piece.len;
    if (x->received > x->body_max)
        too_large(x);
    else if (x->body_fn)
        x->body_fn(x, piece.data, piece.len, x->body_data);
    else
        (void)collect(x, piece);
}

static size_t feed_body(mt_http_x *x, const char *data, size_t len)
{
    size_t used;
    mt_str piece;
    mt_http_progress p = mt_http_body_next(&x->body, data, len, &used, &piece);
    bool wanted = x->state == MT_HTTP_S_BODY;

    if (p == MT_HTTP_WRONG) {
        // Past an answer nothing can be told any more.
        if (wanted)
            mt_http_tell_(x, MT_E_BAD_REQUEST, "%s", x->body.why);
        else
            x->broken = true;
        return used;
    }
    if (piece.len && wanted)
        take_piece(x, piece);
    if (p == MT_HTTP_WHOLE && x->state == MT_HTTP_S_BODY)
        whole_request(x);
    else if (p == MT_HTTP_WHOLE && x->state == MT_HTTP_S_DRAIN)
        x->state = MT_HTTP_S_QUIET;
    return used;
}

// Reading.

static bool wants_input(const mt_http_x *x)
{
    if (x->broken || x->starting)
        return false;
    return x->state == MT_HTTP_S_HEAD || x->state == MT_HTTP_S_DRAIN ||
           (x->state == MT_HTTP_S_BODY && !x->paused);
}

static size_t feed(mt_http_x *x, const char *data, size_t len)
{
    size_t used = 0;

    while (used < len && wants_input(x)) {
        size_t n = x->state == MT_HTTP_S_HEAD ? feed_head(x, data + used, len - used)
                                              : feed_body(x, data + used, len - used);

        used += n;
        if (n == 0 && x->state == MT_HTTP_S_HEAD)
            break;
    }
    return used;
}

static void trim_input(mt_http_x *x)
{
    if (x->in_off < x->in.len)
        return;
    x->in_off = 0;
    if (x->in.len > KEPT_BYTES)
        mt_buf_done(&x->in);
    else
        mt_buf_clear(&x->in);
}

// True when something moved.
static bool feed_kept(mt_http_x *x)
{
    mt_http_state_ before = x->state;
    size_t used;

    if (x->in_off >= x->in.len || !wants_input(x))
        return false;
    // Heads are parsed in place from their first byte: what is kept never moves under the parser.
    used = feed(x, x->in.data + x->in_off, x->in.len - x->in_off);
    x->in_off += used;
    trim_input(x);
    return used > 0 || x->state != before;
}

static void keep(mt_http_x *x, const char *data, size_t len)
{
    if (x->broken || x->state == MT_HTTP_S_LINGER ||
        (x->state == MT_HTTP_S_QUIET && x->close_after))
        return;
    if (mt_buf_add(&x->in, data, len) < 0)
        x->broken = true;
}

static void received(mt_http_x *x, const char *data, size_t len)
{
    size_t used = 0;

    if (x->state == MT_HTTP_S_LINGER)
        return;
    x->read_ns = mt_boottime_ns();
    if (x->in_off >= x->in.len) {
        used = feed(x, data, len);
        if (used < len)
            keep(x, data + used, len - used);
        return;
    }
    if (x->in_off) {
        mt_buf_consume(&x->in, x->in_off);
        x->in_off = 0;
    }
    keep(x, data, len);
    (void)feed_kept(x);
}

// The client's sending side is closed and everything that it sent was read.
static void at_eof(mt_http_x *x)
{
    x->peer_shut = true;
    if (x->answering == MT_HTTP_A_NONE || x->state == MT_HTTP_S_LINGER)
        x->broken = true;
    else
        x->close_after = true; // its answer may still reach it
    if (x->state == MT_HTTP_S_DRAIN)
        x->state = MT_HTTP_S_QUIET;
}

static ssize_t receive(mt_http_x *x, void *to, size_t most)
{
    return x->aside ? mt_recv_aside(x->fd, to, most) : recv(x->fd, to, most, MSG_DONTWAIT);
}

static void read_once(mt_http_x *x)
{
    // What a client sends ahead is kept while its first request is answered: not much of it.
    size_t most = x->state == MT_HTTP_S_HEAD ? MT_HTTP_READ_HEAD_BYTES : MT_HTTP_READ_BYTES;
    bool streams = x->body_fn != NULL;
    char *scratch = x->server->scratch;
    ssize_t n = receive(x, scratch, most);

    if (n > 0) {
        received(x, scratch, (size_t)n);
        if (!streams) // a key or a secret does not stay here; files are no secrets
            explicit_bzero(scratch, (size_t)n);
    } else if (n == 0) {
        at_eof(x);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        x->broken = true;
    }
}

static void hung_up(mt_http_x *x, uint32_t events)
{
    // What is still being read finds the end by itself. EPOLLHUP cannot be masked, so a connection
    // that reads nothing now must go.
    if (wants_input(x) || x->state == MT_HTTP_S_LINGER)
        return;
    if (events & (EPOLLHUP | EPOLLERR))
        x->broken = true;
    x->peer_shut = true;
}

static void on_io(mt_io *io, uint32_t events, void *data)
{
    mt_http_x *x = data;

    x->depth++;
    if (events & EPOLLOUT)
        mt_http_flush_(x);
    if ((wants_input(x) || x->state == MT_HTTP_S_LINGER) &&
        (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
        read_once(x);
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        hung_up(x, events);
    x->depth--;
    mt_http_conn_settle_(x);
}

// Settling.

static void finish_exchange(mt_http_x *x)
{
    end_exchange(x, false);
    if (x->broken)
        return;
    if (x->close_after || x->server->stopping) {
        if (x->peer_shut || shutdown(x->fd, SHUT_WR) < 0) {
            x->broken = true;
            return;
        }
        // Closing at once with bytes unread would make the kernel send a reset, which can overtake
        // the answer.
        x->state = MT_HTTP_S_LINGER;
        x->read_ns = mt_boottime_ns();
        mt_buf_done(&x->in);
        x->in_off = 0;
        return;
    }
    x->read_ns = mt_boottime_ns();
    x->state = MT_HTTP_S_HEAD;
    if (x->in_off >= x->in.len)
        mt_http_idle_add_(x);
}

// The client cannot get, or does not want, the answer that is awaited.
static bool client_left(const mt_http_x *x)
{
    return x->peer_shut && x->live && x->state == MT_HTTP_S_QUIET &&
           x->answering != MT_HTTP_A_ENDED;
}

static bool step(mt_http_x *x)
{
    if (x->broken)
        return false;
    if (mt_http_pending_(x) && x->state != MT_HTTP_S_LINGER)
        mt_http_flush_(x);
    if (client_left(x))
        x->broken = true;
    if (x->broken)
        return false;
    if (x->drain_due && x->answering == MT_HTTP_A_STREAM && !mt_http_pending_(x)) {
        x->drain_due = false;
        if (x->drained)
            x->drained(x, x->drained_data);
        return true;
    }
    if (x->answering == MT_HTTP_A_ENDED && !mt_http_pending_(x) && x->state != MT_HTTP_S_DRAIN) {
        finish_exchange(x);
        return true;
    }
    if (x->starting && !x->paused) {
        start_body(x, x->in_off < x->in.len);
        return true;
    }
    return feed_kept(x);
}

static uint32_t interest(const mt_http_x *x)
{
    uint32_t events = 0;

    if (wants_input(x) || x->state == MT_HTTP_S_LINGER)
        events |= EPOLLIN;
    if (mt_http_pending_(x))
        events |= EPOLLOUT;
    // A client that leaves while nothing is read from it.
    if (!x->peer_shut)
        events |= EPOLLRDHUP;
    return events;
}

static int64_t deadline(const mt_http_x *x)
{
    const mt_http_limits *l = &x->server->limits;
    int64_t ms = 1000000, at = NEVER;

    switch (x->state) {
    case MT_HTTP_S_HEAD:
        at = x->head    ? x->head_since_ns + l->header_timeout_ms * ms
             : x->first ? x->read_ns + l->header_timeout_ms * ms
                        : x->read_ns + l->keepalive_idle_ms * ms;
        break;
    case MT_HTTP_S_BODY:
    case MT_HTTP_S_DRAIN:
        if (!x->paused || x->state == MT_HTTP_S_DRAIN)
            at = x->read_ns + l->body_idle_timeout_ms * ms;
        break;
    case MT_HTTP_S_LINGER:
        at = x->read_ns + LINGER_MS * ms;
        break;
    case MT_HTTP_S_QUIET:
        if (x->live && x->answering != MT_HTTP_A_ENDED)
            at = x->read_ns + PARKED_CHECK_MS * ms;
        break;
    }
    if (x->state != MT_HTTP_S_LINGER && x->answering != MT_HTTP_A_NONE && mt_http_pending_(x))
        at = MT_MIN(at, x->sent_ns + x->patience_ms * ms);
    return at;
}

static void wait_for_more(mt_http_x *x)
{
    uint32_t events = interest(x);
    int64_t at = x->kicked ? 0 : deadline(x);

    if (events != x->interest) {
        (void)mt_io_set(x->io, events);
        x->interest = events;
    }
    // Deadlines mostly move later: the timer is left to fire early and asks again then.
    if (at < x->armed_ns) {
        x->armed_ns = at;
        mt_timer_at(x->timer, at);
    }
}

void mt_http_conn_settle_(mt_http_x *x)
{
    int rounds = 0;

    x->depth++;
    while (rounds < SETTLE_ROUNDS && step(x))
        rounds++;
    x->depth--;
    if (x->broken) {
        mt_http_conn_close_(x);
        return;
    }
    if (rounds == SETTLE_ROUNDS)
        mt_http_conn_kick_(x);
    wait_for_more(x);
}

// The end of a parked connection is told by EPOLLRDHUP. But a client that sent more than the socket
// takes and then left cannot deliver its end while nobody reads: so now and then what it sent ahead
// is read and kept, and one that sends ahead without measure is cut.
static void check_parked(mt_http_x *x)
{
    ssize_t n = receive(x, x->server->scratch, MT_HTTP_READ_BYTES);

    x->read_ns = mt_boottime_ns();
    if (n > 0)
        keep(x, x->server->scratch, (size_t)n);
    else if (n == 0)
        x->peer_shut = true;
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        x->broken = true;
    if (x->in.len - x->in_off > PARKED_AHEAD_BYTES)
        x->broken = true;
}

static bool is_stuck(const mt_http_x *x)
{
    return x->answering != MT_HTTP_A_NONE && mt_http_pending_(x) &&
           mt_boottime_ns() >= x->sent_ns + x->patience_ms * 1000000;
}

static void time_is_up(mt_http_x *x)
{
    const mt_http_limits *l = &x->server->limits;

    if (x->state == MT_HTTP_S_QUIET && !is_stuck(x))
        check_parked(x);
    else if (x->answering == MT_HTTP_A_NONE && x->state == MT_HTTP_S_HEAD && x->head)
        mt_http_tell_(x, MT_E_REQUEST_TIMEOUT,
                      "the head of the request was not whole after %lld seconds",
                      (long long)(l->header_timeout_ms / 1000));
    else if (x->answering == MT_HTTP_A_NONE && x->state == MT_HTTP_S_BODY)
        mt_http_tell_(x, MT_E_REQUEST_TIMEOUT, "nothing came of the body for %lld seconds",
                      (long long)(l->body_idle_timeout_ms / 1000));
    else
        x->broken = true;
}

static void on_timer(mt_timer *timer, void *data)
{
    mt_http_x *x = data;

    x->armed_ns = NEVER;
    x->kicked = false;
    x->depth++;
    if (!x->broken && mt_boottime_ns() >= deadline(x))
        time_is_up(x);
    x->depth--;
    mt_http_conn_settle_(x);
}

// What handlers ask and choose.

uint64_t mt_http_id(const mt_http_x *x)
{
    return (uint64_t)x->generation << 32 | (x->slot + 1);
}

mt_http_x *mt_http_find(mt_http_server *server, uint64_t id)
{
    uint64_t slot = (id & UINT32_MAX) - 1;
    mt_http_x *x = slot < server->slot_count ? server->slots[slot].x : NULL;

    return x && x->live && x->generation == id >> 32 ? x : NULL;
}

const mt_http_request *mt_http_req(const mt_http_x *x)
{
    return x->request;
}

const mt_http_peer *mt_http_peer_of(const mt_http_x *x)
{
    return &x->peer;
}

void *mt_http_tag(const mt_http_x *x)
{
    return x->tag;
}

mt_http_server *mt_http_server_of(const mt_http_x *x)
{
    return x->server;
}

void mt_http_set_data(mt_http_x *x, void *data)
{
    x->data = data;
}

void *mt_http_data(const mt_http_x *x)
{
    return x->data;
}

bool mt_http_answered(const mt_http_x *x)
{
    return x->answering != MT_HTTP_A_NONE;
}

void mt_http_collect(mt_http_x *x, size_t max)
{
    x->body_max = max ? max : x->server->limits.collect_max;
    x->body_fn = NULL;
}

void mt_http_stream(mt_http_x *x, uint64_t max, mt_http_body_fn *fn, void *data)
{
    x->body_max = max;
    x->body_fn = fn;
    x->body_data = data;
}

void mt_http_pause(mt_http_x *x)
{
    x->paused = true;
}

void mt_http_resume(mt_http_x *x)
{
    if (!x->paused)
        return;
    x->paused = false;
    x->read_ns = mt_boottime_ns();
    mt_http_conn_kick_(x);
}

uint64_t mt_http_body_received(const mt_http_x *x)
{
    return x->received;
}
