// SPDX-License-Identifier: Apache-2.0
// The life of a session here:
//
//   ASKED ──SESSION_STARTED──> OPEN ──end of the socket──> SILENT ──SESSION_ENDED──> OVER
//     └──SESSION_FAILED, end of the connection, of the run──────────────────────────^
#include "core/run-sessions.h"

#include "base/aside.h"
#include "core/runs-internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    READ_BYTES = MT_SESSION_FRAME_MAX,
    QUEUE_MAX = 1 << 20,
    START_MS = 60000, // for a run that is still being made, or whose supervisor is frozen
    END_MS = 10000,   // from the end of the socket to the word of how it ended
    TURN = 8,         // reads of one session before others are looked at
};

typedef enum session_state { ASKED, OPEN, SILENT, OVER } session_state;

struct mt_session {
    mt_session *next;
    live *l; // NULL: the run is gone from here
    mt_loop *loop;
    uint32_t tag; // 0: not asked for yet, as the run is not to be reached
    char user[33], term[MT_SESSION_TERM_MAX + 1];
    session_state state;
    int fd;
    mt_io *io;
    mt_timer *timer;
    mt_session_events events;
    void *data;
    mt_buf in, out;
    bool aside; // base/aside.h
    bool paused;
    bool busy;   // an event is being told: freed later
    bool closed; // by mt_session_close() within one
    bool told;   // how it ended is known
    mt_session_over end;
    char *sentence;
};

static void unlink_session(mt_session *s)
{
    for (mt_session **at = s->l ? &s->l->sessions : NULL; at && *at; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    s->l = NULL;
}

static void close_socket(mt_session *s)
{
    mt_io_remove(s->io);
    s->io = NULL;
    if (s->aside)
        mt_close_aside(&s->fd);
    mt_close_fd(&s->fd);
}

static void destroy(mt_session *s)
{
    unlink_session(s);
    close_socket(s);
    mt_timer_free(s->timer);
    mt_buf_done(&s->in);
    mt_buf_done(&s->out);
    free(s->sentence);
    free(s);
}

// Events end here: false when one of them has closed the session, which is then gone.
static bool told(mt_session *s)
{
    bool closed = s->closed;

    s->busy = false;
    if (closed)
        destroy(s);
    return !closed;
}

static void over(mt_session *s)
{
    if (s->state == OVER)
        return;
    s->state = OVER;
    mt_timer_stop(s->timer);
    close_socket(s);
    unlink_session(s);
    s->busy = true;
    s->events.over(&s->end, s->data);
    (void)told(s);
}

static void set_end(mt_session *s, mt_session_end how, int status, mt_code code, const char *why)
{
    if (s->told)
        return;
    s->told = true;
    s->sentence = strdup(why);
    s->end = (mt_session_over){
        .how = how, .status = status, .code = code, .sentence = s->sentence ? s->sentence : ""};
}

static void send_kill(mt_session *s)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);

    if (!s->l || !s->l->conn || !s->tag || s->told)
        return;
    (void)mt_put_session_kill(&b, s->tag);
    (void)mt_frame_conn_send(s->l->conn, &b);
}

static void broken(mt_session *s, mt_code code, const char *why)
{
    send_kill(s);
    set_end(s, MT_SESSION_BROKEN, 0, code, why);
    over(s);
}

static void on_timer(mt_timer *timer, void *data)
{
    mt_session *s = data;

    (void)timer;
    broken(s, MT_E_UNAVAILABLE,
           s->state == ASKED ? "the run did not answer in time: it is still starting, or has no "
                               "time to run"
                             : "the run did not say how the session ended");
}

// ---- the socket ----

static void watch(mt_session *s)
{
    uint32_t events = (s->paused ? 0 : (uint32_t)EPOLLIN) | (s->out.len ? (uint32_t)EPOLLOUT : 0);

    if (s->io)
        (void)mt_io_set(s->io, events);
}

// The end of what the process says. Its socket is left alone: it may be told for ever.
static void silent(mt_session *s)
{
    close_socket(s);
    s->state = SILENT;
    if (s->told)
        over(s);
    else
        mt_timer_in_ms(s->timer, END_MS);
}

// Whole frames. False: the session is gone, or at its end.
static bool deliver(mt_session *s)
{
    size_t used = 0;
    ssize_t n = 0;

    s->busy = true;
    while (!s->closed && !s->paused) {
        mt_session_frame f;

        n = mt_session_parse(mt_buf_str(&s->in) + used, s->in.len - used, &f);
        if (n <= 0)
            break;
        s->events.frame(&f, s->data);
        used += (size_t)n;
    }
    if (!told(s))
        return false;
    mt_buf_consume(&s->in, used);
    if (n < 0)
        broken(s, MT_E_UNAVAILABLE, "a process in the run answered what mt-session never says");
    return n >= 0;
}

// MSG_DONTWAIT, as what the socket itself is set to is not this process's alone to say.
static bool receive(mt_session *s)
{
    for (int turn = 0; turn < TURN && !s->paused; turn++) {
        void *room = mt_buf_reserve(&s->in, READ_BYTES);
        ssize_t n = !room      ? -1
                    : s->aside ? mt_recv_aside(s->fd, room, READ_BYTES)
                               : recv(s->fd, room, READ_BYTES, MSG_DONTWAIT);

        if (n < 0 && room && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n <= 0) {
            silent(s);
            return false;
        }
        mt_buf_added(&s->in, (size_t)n);
        if (!deliver(s))
            return false;
    }
    return true;
}

static bool send_some(mt_session *s)
{
    bool had = s->out.len > 0;

    while (s->out.len > 0) {
        ssize_t n = send(s->fd, s->out.data, s->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            mt_buf_clear(&s->out); // what it said before it left is read to its end
            break;
        }
        mt_buf_consume(&s->out, (size_t)n);
    }
    if (had && s->out.len == 0 && s->events.drained) {
        s->busy = true;
        s->events.drained(s->data);
        return told(s);
    }
    return true;
}

static void on_io(mt_io *io, uint32_t events, void *data)
{
    mt_session *s = data;

    (void)io;
    if ((events & EPOLLOUT) && !send_some(s))
        return;
    if (s->io && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
        // Gone while nobody may read: what it has said stays in the socket.
        if (s->paused) {
            mt_io_remove(s->io);
            s->io = NULL;
            return;
        }
        if (!receive(s))
            return;
    }
    watch(s);
}

static bool open_io(mt_session *s)
{
    if (!s->io && s->fd >= 0)
        s->io = mt_io_add(s->loop, s->fd, 0, on_io, s);
    return s->io != NULL;
}

// ---- the supervisor ----

static mt_session *find(live *l, uint32_t tag)
{
    mt_session *s = l->sessions;

    while (s && (!s->tag || s->tag != tag))
        s = s->next;
    return s;
}

static void on_started(mt_session *s, int fd)
{
    if (s->state != ASKED || fd < 0) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    s->fd = fd;
    s->aside = !mt_refuse_fds(fd);
    s->state = OPEN;
    mt_timer_stop(s->timer);
    if (!open_io(s)) {
        broken(s, MT_E_OOM, "the server is short of memory");
        return;
    }
    if (s->events.started) {
        s->busy = true;
        s->events.started(s->data);
        if (!told(s))
            return;
    }
    if (send_some(s))
        watch(s);
}

static void on_ended(mt_session *s, const mt_frame *frame)
{
    _cleanup_free_ char *text = NULL;
    mt_str sentence;
    bool run_ended;
    int status;

    if (mt_get_session_ended(frame, &run_ended, &status, &sentence) < 0)
        return;
    text = mt_str_dup(sentence);
    set_end(s, run_ended ? MT_SESSION_RUN_ENDED : MT_SESSION_EXITED, status,
            run_ended ? MT_E_RUN_ENDED : MT_E_NONE, text ? text : "");
    if (s->state != OPEN)
        over(s);
    // What is in the socket comes first; others of the capsule may hold its other end open.
    else if (!s->paused)
        mt_timer_in_ms(s->timer, END_MS);
}

static void on_failed(mt_session *s, const mt_frame *frame)
{
    _cleanup_free_ char *text = NULL;
    mt_str sentence;
    mt_code code;

    if (mt_get_failed(frame, &code, &sentence) < 0)
        return;
    text = mt_str_dup(sentence);
    broken(s, code, text ? text : "the session could not be started");
}

void runs_session_frame(live *l, const mt_frame *frame)
{
    int fd = frame->type == MT_FRAME_SESSION_STARTED ? mt_frame_conn_take_fd(l->conn) : -1;
    mt_session *s = find(l, frame->tag);

    if (s && frame->type == MT_FRAME_SESSION_STARTED)
        on_started(s, MT_TAKE_FD(fd));
    else if (s && frame->type == MT_FRAME_SESSION_FAILED)
        on_failed(s, frame);
    else if (s)
        on_ended(s, frame);
    mt_close_fd(&fd);
}

void runs_sessions_lost(live *l)
{
    mt_session *next;

    for (mt_session *s = l->sessions; s; s = next) {
        next = s->next; // one that is told may close itself alone
        if (!l->ending && !s->tag)
            continue;
        unlink_session(s);
        if (l->ending)
            set_end(s, MT_SESSION_RUN_ENDED, 0, MT_E_RUN_ENDED, "the run has ended");
        else
            set_end(s, MT_SESSION_BROKEN, 0, MT_E_UNAVAILABLE,
                    "the connection to the run was lost");
        over(s);
    }
}

// ---- the border ----

static int ask(mt_session *s)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    s->tag = ++s->l->runs->next_tag;
    (void)mt_put_session(&b, s->tag, s->user, s->term);
    return mt_frame_conn_send(s->l->conn, &b);
}

void runs_sessions_begin(live *l)
{
    for (mt_session *s = l->sessions; s; s = s->next)
        if (!s->tag)
            (void)ask(s); // a connection that takes nothing is lost soon
}

static mt_session *session_new(live *l, const mt_session_events *events, void *data)
{
    mt_session *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    *s = (mt_session){.fd = -1,
                      .loop = l->runs->options.loop,
                      .events = *events,
                      .data = data,
                      .in = MT_BUF_INIT(2 * MT_SESSION_FRAME_MAX),
                      .out = MT_BUF_INIT(QUEUE_MAX)};
    s->timer = mt_timer_new(l->runs->options.loop, on_timer, s);
    if (!s->timer) {
        free(s);
        return NULL;
    }
    return s;
}

int mt_session_open(mt_runs *runs, const char *run_id, const char *user, const char *term,
                    const mt_session_events *events, void *data, mt_session **ret, mt_err **err)
{
    live *l = runs_find(runs, run_id);
    mt_session *s;

    if (!l || l->ending)
        return mt_fail(err, MT_E_RUN_ENDED, "the run has ended");
    s = session_new(l, events, data);
    if (!s)
        return mt_fail_oom(err);
    (void)snprintf(s->user, sizeof(s->user), "%s", user);
    (void)snprintf(s->term, sizeof(s->term), "%s", term);
    s->l = l;
    s->next = l->sessions;
    l->sessions = s;
    if (l->conn && ask(s) < 0) {
        destroy(s);
        return mt_fail(err, MT_E_UNAVAILABLE, "the run's supervisor takes nothing more");
    }
    mt_timer_in_ms(s->timer, START_MS);
    *ret = s;
    return 0;
}

int mt_session_send(mt_session *s, mt_buf *b)
{
    int r = b->failed;

    if (r == 0 && s->state <= OPEN)
        r = mt_buf_add(&s->out, mt_buf_str(b), b->len);
    mt_buf_clear(b);
    watch(s);
    return r;
}

size_t mt_session_queued(const mt_session *s)
{
    return s->out.len;
}

// What came before the pause was taken from the socket, perhaps.
static void on_resumed(mt_session *s)
{
    if (!open_io(s))
        return;
    // The socket is readable at its end, too: the loop tells of it.
    if (s->in.len > 0 && !s->busy && !deliver(s))
        return;
    watch(s);
}

void mt_session_pause(mt_session *s, bool paused)
{
    if (s->paused == paused || s->state > OPEN)
        return;
    s->paused = paused;
    if (paused) {
        if (s->told) // how it ended waits for who reads
            mt_timer_stop(s->timer);
        watch(s);
        return;
    }
    if (s->told)
        mt_timer_in_ms(s->timer, END_MS);
    on_resumed(s);
}

void mt_session_close(mt_session *s)
{
    if (!s)
        return;
    send_kill(s);
    s->closed = true;
    if (!s->busy)
        destroy(s);
}
