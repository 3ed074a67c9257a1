// SPDX-License-Identifier: Apache-2.0
#include "server/event-streams.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/share.h"
#include "core/runs.h"
#include "http/server.h"
#include "server/event-frames.h"

#include <stdatomic.h>
#include <stdio.h>

enum {
    BATCH = 64,         // events at a time
    SCAN = 5000,        // numbers looked through at a time, whether they are for this stream or not
    QUEUED = 64 << 10,  // bytes that wait for a client: nothing more is read for it
    TURN = 256 << 10,   // bytes of one stream before others have their turn
    SCANS = 20,         // of one stream before others have theirs
    FIRST_LOOK_MS = 5,  // after something was printed; then less and less often
    LAST_LOOK_MS = 200, // …
    PASS_GAP = 3,       // so many times as long as it took to wake all, others run in between
    PASS_GAP_MAX_MS = 100,
};

typedef struct stream stream;

struct mt_event_streams {
    mt_loop *loop;
    const mt_api *api;
    stream *list;
    size_t count;
    mt_timer *timer;       // of a wake that waits for others to run
    int64_t rest_until_us; // so long
    int64_t newest;        // while all are woken: the newest event, asked once; else 0
    bool stopping;
    atomic_bool woken; // on_woken() is on its way to the loop
};

struct stream {
    mt_taker head;
    const mt_api *api;
    stream *prev, *next;
    bool joined, ended;
    mt_http_x *x; // between begin and free
    mt_timer *timer;
    mt_user user;
    uint64_t identities; // of the store when it was last asked what he may see; 0: ask
    char namespace_id[MT_ID_TEXT], watched_id[MT_ID_TEXT], run_id[MT_ID_TEXT]; // "": none
    char *kinds, *asked_kinds; // to be told of; and what is read for it. NULL: all
    bool follow;
    int64_t cursor, until;
    mt_event_parts parts;
    int64_t look_ms; // till the next look at what is printed
    bool held;       // at an end that may not be on the disk yet
    // Whether the client takes anything.
    int64_t heard_ms; // when it was last told something
    uint64_t written, taken;
    int64_t taken_ms;
};

static int64_t now_ms(void)
{
    return mt_monotonic_us() / 1000;
}

// ---- telling ----

// The client is gone where this fails: what is left comes by on_free().
static int tell(stream *s, const mt_buf *b)
{
    size_t len = b->len;

    if (len == 0)
        return 0;
    if (b->failed || mt_http_write(s->x, b->data, len) < 0) {
        s->ended = true;
        mt_http_abort(s->x);
        return -1;
    }
    if (mt_http_queued(s->x) <= len && s->written == s->taken)
        s->taken_ms = now_ms(); // nothing waited
    s->written += len;
    s->heard_ms = now_ms();
    return 0;
}

static void finish(stream *s)
{
    s->ended = true;
    mt_timer_stop(s->timer);
    (void)mt_http_end(s->x);
}

static void end_with(stream *s, const char *code, const char *sentence)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);

    if (s->ended)
        return;
    mt_frame_end(&b, code, s->cursor, sentence);
    if (tell(s, &b) == 0)
        finish(s);
}

// It cannot be gone on with: the client comes again.
static void fail(stream *s, const mt_err *err)
{
    mt_log(MT_LOG_ERROR, "an event stream failed", {"error", mt_err_sentence(err)});
    s->ended = true;
    mt_http_abort(s->x);
}

// ---- numbered events ----

static bool is_wanted(const stream *s, const mt_event *e)
{
    char kind[MT_STORE_WORD + 2];

    if (!s->kinds)
        return true;
    (void)snprintf(kind, sizeof(kind), " %s ", e->kind);
    return strstr(s->kinds, kind) != NULL;
}

static bool is_end(const mt_event *e)
{
    return strcmp(e->change, "ended") == 0 &&
           (strcmp(e->kind, "command") == 0 || strcmp(e->kind, "capsuleRun") == 0);
}

// 1: taken; 0: not yet; < 0.
static int take(stream *s, const mt_event *e, mt_buf *b, mt_err **err)
{
    int r;

    if (is_end(e) && mt_runs_hold_news(s->api->runs, e->object_id)) {
        s->held = true;
        return 0;
    }
    r = mt_event_parts_meet(&s->parts, s->api, e, err);
    if (r <= 0)
        return r;
    if (is_wanted(s, e))
        mt_frame_change(b, e);
    s->cursor = e->number;
    return 1;
}

static int read_batch(stream *s, mt_event_list *ret, int64_t *ret_upto, mt_err **err)
{
    mt_event_filter filter = {.after = s->cursor,
                              .namespace_id = s->namespace_id[0] ? s->namespace_id : NULL,
                              .kinds = s->asked_kinds,
                              .run_id = s->run_id[0] ? s->run_id : NULL};
    int64_t newest = s->api->events->newest, oldest;

    // What is committed after this number was read is left for the next time.
    if (!newest && mt_store_event_ends(s->api->store, &newest, &oldest, err) < 0)
        return -1;
    if (!s->follow)
        newest = MT_MIN(newest, s->until);
    filter.until = MT_MIN(newest, s->cursor + SCAN);
    *ret_upto = filter.until;
    if (filter.until <= s->cursor)
        return 0;
    return mt_store_event_list(s->api->store, &s->user, &filter, BATCH, ret, err);
}

// 1: some numbers further; 0: that is all for now; < 0: over.
static int put_changes(stream *s, mt_err **err)
{
    _cleanup_(mt_event_list_done) mt_event_list events = {0};
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);
    int64_t upto, before = s->cursor;
    int r = 1;

    if (read_batch(s, &events, &upto, err) < 0)
        return -1;
    for (size_t i = 0; i < events.count && r > 0; i++)
        r = take(s, &events.items[i], &b, err);
    if (r < 0 || tell(s, &b) < 0)
        return -1;
    if (r > 0 && events.count < BATCH)
        s->cursor = MT_MAX(s->cursor, upto);
    return s->cursor > before;
}

// As put_changes().
static int put_parts(stream *s, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);
    int more = mt_event_parts_put(&s->parts, s->api, QUEUED / 2, &b, err);

    if (more < 0)
        return -1;
    if (b.len > 0)
        s->look_ms = 0;
    more = more || b.len > 0;
    return tell(s, &b) < 0 ? -1 : more;
}

// ---- a turn ----

// What this user may see is asked whenever it may have changed: rights that are taken away end with
// the commit.
static bool still_may(stream *s)
{
    _cleanup_err_ mt_err *err = NULL;
    uint64_t identities = mt_store_identities(s->api->store);
    int may;

    if (s->identities == identities)
        return true;
    s->identities = identities;
    may = mt_store_event_may(s->api->store, &s->user, s->watched_id, &err);
    if (may < 0)
        fail(s, err);
    else if (may == 0)
        end_with(s, "accessLost",
                 "the sign-in by which this stream was opened, or the right to see what it was "
                 "opened for, is gone");
    return may > 0;
}

// 1: all is told for now; 0: the client is slow, or others have their turn; < 0: over.
static int put_all(stream *s, bool *ret_slow, mt_err **err)
{
    uint64_t before = s->written;

    for (int scans = 0; scans < SCANS && s->written - before < TURN; scans++) {
        int changed, printed;

        *ret_slow = mt_http_queued(s->x) >= QUEUED;
        if (*ret_slow)
            return 0;
        changed = put_changes(s, err);
        if (changed < 0)
            return -1;
        printed = put_parts(s, err);
        if (printed < 0)
            return -1;
        if (!changed && !printed)
            return 1;
    }
    return 0;
}

static int64_t heartbeat_ms(const stream *s)
{
    return s->api->event_heartbeat_s * 1000;
}

// When to come by at the latest: to say that this lives, to see whether the client takes anything,
// to look at what is printed.
static void set_timer(stream *s, int64_t at_most)
{
    int64_t ms = mt_http_queued(s->x) > 0 ? s->api->event_patience_s * 1000 / 4
                                          : s->heard_ms + heartbeat_ms(s) - now_ms();

    ms = MT_MIN(ms, at_most);
    mt_timer_in_ms(s->timer, MT_MAX(ms, (int64_t)0));
}

static int64_t next_look(stream *s)
{
    if (!mt_event_parts_print(&s->parts))
        return heartbeat_ms(s);
    s->look_ms = s->look_ms ? MT_MIN(2 * s->look_ms, (int64_t)LAST_LOOK_MS) : FIRST_LOOK_MS;
    return s->look_ms;
}

// False: the client takes nothing, and was let go.
static bool check_client(stream *s)
{
    uint64_t waits = mt_http_queued(s->x), taken = s->written - MT_MIN(waits, s->written);

    if (waits == 0 || taken != s->taken) {
        s->taken = taken;
        s->taken_ms = now_ms();
        return true;
    }
    if (now_ms() - s->taken_ms < s->api->event_patience_s * 1000)
        return true;
    end_with(s, "tooSlow", "this client took nothing of the stream for too long: go on from here");
    return false;
}

static void go_on(stream *s)
{
    _cleanup_err_ mt_err *err = NULL;
    bool slow = false;
    int r;

    if (s->ended || !check_client(s) || !still_may(s))
        return;
    s->held = false;
    r = put_all(s, &slow, &err);
    if (s->ended)
        return;
    if (r < 0)
        fail(s, err);
    else if (r > 0 && !s->follow && s->cursor >= s->until)
        finish(s);
    else if (r > 0)
        set_timer(s, s->held ? LAST_LOOK_MS : next_look(s));
    else
        set_timer(s, slow ? heartbeat_ms(s) : 0); // on_drained() comes first
}

static void on_drained(mt_http_x *x, void *data)
{
    go_on(data);
}

static void on_timer(mt_timer *timer, void *data)
{
    stream *s = data;

    if (s->ended)
        return;
    s->identities = 0; // the time of a key may be over
    if (mt_http_queued(s->x) == 0 && now_ms() - s->heard_ms >= heartbeat_ms(s)) {
        _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);

        mt_frame_heartbeat(&b);
        if (tell(s, &b) < 0)
            return;
    }
    go_on(s);
}

// ---- all streams ----

mt_event_streams *mt_event_streams_new(mt_loop *loop, const mt_api *api)
{
    mt_event_streams *streams = calloc(1, sizeof(*streams));

    if (!streams)
        return NULL;
    streams->loop = loop;
    streams->api = api;
    return streams;
}

void mt_event_streams_free(mt_event_streams *streams)
{
    if (!streams)
        return;
    mt_timer_free(streams->timer);
    free(streams);
}

// Streams by the hundred, and changes by the thousand, leave the loop time for others: events then
// come some at a time.
static void wake_all(mt_event_streams *streams)
{
    int64_t begun = mt_monotonic_us(), took, oldest;

    if (mt_store_event_ends(streams->api->store, &streams->newest, &oldest, NULL) < 0)
        streams->newest = 0; // each finds out for itself
    for (stream *s = streams->list, *next; s; s = next) {
        next = s->next;
        go_on(s);
    }
    streams->newest = 0;
    took = mt_monotonic_us() - begun;
    streams->rest_until_us =
        begun + took + MT_MIN(took * PASS_GAP, (int64_t)PASS_GAP_MAX_MS * 1000);
}

static void on_rested(mt_timer *timer, void *data)
{
    wake_all(data);
}

static void on_woken(void *data)
{
    mt_event_streams *streams = data;
    int64_t left_ms = (streams->rest_until_us - mt_monotonic_us()) / 1000;

    atomic_store(&streams->woken, false);
    if (!streams->list)
        return;
    if (left_ms > 0 && !streams->timer)
        streams->timer = mt_timer_new(streams->loop, on_rested, streams);
    if (left_ms <= 0 || !streams->timer)
        wake_all(streams);
    else if (mt_timer_left_ms(streams->timer) == 0)
        mt_timer_in_ms(streams->timer, left_ms);
}

void mt_event_streams_wake(mt_event_streams *streams)
{
    if (atomic_exchange(&streams->woken, true))
        return;
    // Without memory it is told at the next change, or heartbeat.
    if (mt_loop_post(streams->loop, on_woken, streams) < 0)
        atomic_store(&streams->woken, false);
}

void mt_event_streams_news(mt_event_streams *streams, const char *topic)
{
    for (stream *s = streams->list, *next; s; s = next) {
        next = s->next;
        if (s->held || (s->parts.kind && strcmp(s->run_id, topic) == 0))
            go_on(s);
    }
}

static void end_stopping(stream *s)
{
    end_with(s, "stopping", "the server stops: go on with the next one from here");
}

void mt_event_streams_stop(mt_event_streams *streams)
{
    streams->stopping = true;
    for (stream *s = streams->list, *next; s; s = next) {
        next = s->next;
        end_stopping(s);
    }
}

static int find_room(const mt_event_streams *streams, const mt_user *user, mt_err **err)
{
    uint64_t his = 0;

    for (const stream *s = streams->list; s; s = s->next)
        his += strcmp(s->user.id, user->id) == 0;
    if (streams->count < MT_EVENT_STREAMS &&
        his < mt_share(MT_EVENT_STREAMS_EACH, MT_EVENT_STREAMS, streams->count))
        return 0;
    return mt_fail(err, MT_E_RATE_LIMITED,
                   "user '%s' has %llu event streams open, which is the share of one user now: one "
                   "stream tells of everything, close some",
                   user->name, (unsigned long long)his);
}

static void join(stream *s)
{
    mt_event_streams *streams = s->api->events;

    s->joined = true;
    s->next = streams->list;
    if (s->next)
        s->next->prev = s;
    streams->list = s;
    streams->count++;
}

static void leave(stream *s)
{
    mt_event_streams *streams = s->api->events;

    if (!s->joined)
        return;
    if (s->prev)
        s->prev->next = s->next;
    else
        streams->list = s->next;
    if (s->next)
        s->next->prev = s->prev;
    streams->count--;
}

// ---- one stream ----

static int begin_answer(stream *s, mt_err **err)
{
    static const mt_http_header_line headers[] = {
        {"Content-Type", "text/event-stream"},
        {"Cache-Control", "no-store"},
        {"X-Accel-Buffering", "no"}, // nginx holds answers back otherwise
    };
    const mt_api *api = s->api;
    int64_t oldest;

    if (find_room(api->events, &s->user, err) < 0 ||
        mt_event_parts_begin(&s->parts, api, err) < 0 ||
        mt_store_event_ends(api->store, &s->until, &oldest, err) < 0)
        return -1;
    s->timer = mt_timer_new(api->events->loop, on_timer, s);
    if (!s->timer || mt_http_begin(s->x, 200, headers, MT_ARRAY_SIZE(headers)) < 0)
        return mt_fail_oom(err);
    // One that takes nothing is told so, and has as long again to come and see it.
    mt_http_patience(s->x, 2 * api->event_patience_s * 1000);
    mt_http_on_drained(s->x, on_drained, s);
    return 0;
}

static void say_hello(stream *s)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);

    mt_frame_hello(&b, s->cursor, s->api->event_heartbeat_s);
    if (tell(s, &b) < 0)
        return;
    if (s->api->events->stopping)
        end_stopping(s);
    else
        go_on(s);
}

static void on_begin(mt_taker *t, mt_http_x *x)
{
    stream *s = MT_CONTAINER_OF(t, stream, head);
    _cleanup_err_ mt_err *err = NULL;

    s->x = x;
    s->heard_ms = s->taken_ms = now_ms();
    if (begin_answer(s, &err) < 0) {
        mt_answer_error(x, err);
        return;
    }
    join(s);
    if (mt_http_request_method(mt_http_req(x)) == MT_HTTP_HEAD)
        finish(s);
    else
        say_hello(s);
}

static void on_piece(mt_taker *t, mt_http_x *x, const void *data, size_t len)
{
}

static void on_whole(mt_taker *t, mt_http_x *x)
{
}

static void stream_free(stream *s)
{
    leave(s);
    mt_timer_free(s->timer);
    mt_event_parts_done(&s->parts);
    free(s->kinds);
    free(s->asked_kinds);
    free(s);
}

static void on_free(mt_taker *t)
{
    stream_free(MT_CONTAINER_OF(t, stream, head));
}

static const mt_taker_ops OPS = {on_begin, on_piece, on_whole, on_free};

// What is printed is told up to its end, so its end is read even where nobody wants to hear of it.
static const char *needed_kind(mt_event_run parts)
{
    static const char *const KINDS[] = {"", "command ", "appRun ", "interactionRun "};

    return KINDS[parts];
}

static bool copy_kinds(stream *s, const mt_event_stream_spec *spec)
{
    if (!spec->kinds)
        return true;
    s->kinds = strdup(spec->kinds);
    return s->kinds &&
           asprintf(&s->asked_kinds, "%s%s", spec->kinds, needed_kind(spec->parts)) >= 0;
}

static void copy_id(char out[MT_ID_TEXT], const char *id)
{
    (void)snprintf(out, MT_ID_TEXT, "%s", id ? id : "");
}

mt_taker *mt_event_stream_taker(const mt_api *api, const mt_event_stream_spec *spec)
{
    stream *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->head.ops = &OPS;
    s->api = api;
    s->user = spec->user;
    s->follow = spec->follow;
    s->cursor = spec->after;
    copy_id(s->namespace_id, spec->namespace_id);
    copy_id(s->run_id, spec->run_id);
    copy_id(s->watched_id, spec->watched_id);
    s->parts.kind = spec->parts;
    s->parts.run_id = s->run_id;
    if (!copy_kinds(s, spec)) {
        stream_free(s);
        return NULL;
    }
    return &s->head;
}

bool mt_event_stream_run_ended(mt_taker *taker)
{
    if (!taker || taker->ops != &OPS)
        return false;
    if (MT_CONTAINER_OF(taker, stream, head)->joined)
        end_with(MT_CONTAINER_OF(taker, stream, head), "runEnded",
                 "the run by whose sign-in this stream was opened has ended");
    return true;
}
