// SPDX-License-Identifier: Apache-2.0
#include "model/ask.h"

#include "base/clock.h"
#include "model/retry.h"
#include "model/verdict.h"

#include <stdio.h>

#ifndef MODEL_SILENCE_MS
#define MODEL_SILENCE_MS 120000 // without a byte, then a try has failed
#endif

enum {
    DONE_SILENCE_MS = 2000, // after the answer's end, for the connection's
    RETRY_SPREAD_MS = 250,  // at random on top of a Retry-After, which many got together
    CROWDED_MS = 1000,      // between two looks whether there is room
    NS_PER_MS = 1000000,
};

// --- birth and end ------------------------------------------------------------------------------

static char *join_url(const char *base, const char *path)
{
    size_t len = strlen(base);

    while (len > 0 && base[len - 1] == '/')
        len--;
    return mt_asprintf("%.*s%s", (int)len, base, path);
}

// A key goes into a header: what could end that header is refused here.
static int check_key(const mt_model_request *r, mt_err **err)
{
    for (const char *c = r->key ? r->key : ""; *c; c++)
        if (*c <= ' ' || *c > '~')
            return mt_fail_field(err, MT_E_BAD_FIELD, "key",
                                 "the key of provider '%s' holds blanks or what is no ASCII",
                                 r->provider);
    return 0;
}

static int64_t deadline_ns(int64_t ms)
{
    return ms > INT64_MAX / NS_PER_MS ? INT64_MAX : ms * NS_PER_MS;
}

ask *ask_free(ask *a)
{
    if (!a)
        return NULL;
    if (a->transfer)
        transfer_stop(a->transfer);
    models_asked(a->models, a, -(int64_t)a->asked);
    mt_timer_free(a->timer);
    reading_done(&a->reading);
    mt_buf_done(&a->trouble_body);
    mt_buf_done(&a->body);
    if (a->key)
        explicit_bzero(a->key, strlen(a->key));
    free(a->key);
    free(a->provider);
    free(a->model);
    free(a->url);
    free(a);
    return NULL;
}

static int fill(ask *a, const mt_model_request *r, mt_err **err)
{
    a->wire = wire_of(r->wire);
    a->tool = r->schema.len > 0 && r->schema_mode == MT_SCHEMA_TOOL;
    a->concurrency = MT_MIN(r->concurrency ? r->concurrency : (unsigned)MT_MODEL_CONCURRENCY,
                            (unsigned)MT_MODEL_CONCURRENCY_MAX);
    a->deadline_ns = deadline_ns(r->deadline_ms);
    a->retry_after_ms = -1;
    a->body = (mt_buf)MT_BUF_INIT(WIRE_BODY_MAX);
    a->trouble_body = (mt_buf)MT_BUF_INIT(ASK_TROUBLE_MAX);
    if (check_key(r, err) < 0 || transfer_check_url(r->base_url, &a->local, err) < 0 ||
        wire_write(r, &a->body, err) < 0)
        return -1;
    a->provider = strdup(r->provider);
    a->model = strdup(r->model);
    a->key = strdup(r->key ? r->key : "");
    a->url = join_url(r->base_url, a->wire->path);
    return a->provider && a->model && a->key && a->url ? 0 : mt_fail_oom(err);
}

ask *ask_new(mt_models *m, const mt_model_request *request, const mt_model_events *events,
             void *data, mt_err **err)
{
    ask *a = calloc(1, sizeof(*a));

    if (!a) {
        (void)mt_fail_oom(err);
        return NULL;
    }
    a->models = m;
    a->events = *events;
    a->data = data;
    if (fill(a, request, err) < 0) {
        (void)mt_wrap(err, "asking provider '%s'", request->provider);
        return ask_free(a);
    }
    return a;
}

static void unlink_ask(ask *a)
{
    if (a->prev)
        a->prev->next = a->next;
    else
        a->models->asks = a->next;
    if (a->next)
        a->next->prev = a->prev;
}

static void stop_transfer(ask *a)
{
    if (a->transfer)
        transfer_stop(a->transfer);
    a->transfer = NULL;
}

// The one way out.
static void conclude(ask *a, mt_model_end end, const char *sentence)
{
    mt_models *m = a->models;
    mt_model_answer answer = {
        .end = end,
        .status = a->status,
        .sentence = sentence,
        .model = a->model,
        .tokens_in = -1,
        .tokens_out = -1,
        .tries = a->tries,
    };

    stop_transfer(a);
    reading_end(&a->reading);
    answer.text = answer.reasoning = (mt_str){"", 0};
    if (a->reading.wire) {
        answer.text = reading_text(&a->reading);
        answer.reasoning = reading_reasoning(&a->reading);
        answer.tokens_in = a->reading.tokens_in;
        answer.tokens_out = a->reading.tokens_out;
        if (a->reading.model[0])
            answer.model = a->reading.model;
    }
    lane_leave(a);
    room_leave(a);
    unlink_ask(a);
    a->events.answer(&answer, a->data);
    (void)ask_free(a);
    lane_pump(m);
}

static void conclude_with(ask *a, verdict *v)
{
    bool none = v->sentence.failed && v->sentence.len == 0;

    conclude(a, v->end, none ? "out of memory for saying why" : mt_buf_str(&v->sentence));
    mt_buf_done(&v->sentence);
}

static void conclude_no_memory(ask *a)
{
    conclude(a, MT_MODEL_FAILED, "out of memory");
}

void ask_cancel(ask *a)
{
    conclude(a, MT_MODEL_CANCELLED, "cancelled");
}

// --- time ---------------------------------------------------------------------------------------

static int64_t silence_ns(const ask *a)
{
    return (a->reading.done ? (int64_t)DONE_SILENCE_MS : (int64_t)MODEL_SILENCE_MS) * NS_PER_MS;
}

static void arm(ask *a)
{
    int64_t at = a->deadline_ns;

    if (a->state == ASK_SENT)
        at = MT_MIN(at, a->heard_ns + silence_ns(a));
    mt_timer_at(a->timer, at);
}

static void end_try(ask *a, const try_end *e);

// Armed for the first of several moments, some of which have moved since.
static void on_time(mt_timer *timer, void *data)
{
    ask *a = data;
    verdict v = VERDICT_INIT;
    int64_t now = mt_boottime_ns();

    if (now >= a->deadline_ns) {
        verdict_deadline(a, &v);
        conclude_with(a, &v);
    } else if (a->state == ASK_RESTS && a->crowded && !room_for_more(a->models)) {
        mt_timer_at(timer, MT_MIN(a->deadline_ns, now + (int64_t)CROWDED_MS * NS_PER_MS));
    } else if (a->state == ASK_RESTS) {
        ask_send(a);
    } else if (a->state == ASK_SENT && now >= a->heard_ns + silence_ns(a)) {
        end_try(a, &(try_end){TRANSFER_BROKEN, "", .silent = true});
    } else {
        arm(a);
    }
}

// Whether there is another try. -1: there was no time for it.
static int rest(ask *a, verdict *v)
{
    int64_t now = mt_boottime_ns(), left_ms = (a->deadline_ns - now) / NS_PER_MS;
    int64_t wait_ms = retry_backoff_ms(MT_MAX(a->tries - a->crowded, 1u));

    if (a->retry_after_ms >= 0) {
        int64_t asked = a->retry_after_ms + retry_backoff_ms(1) % RETRY_SPREAD_MS;

        wait_ms = MT_MAX(wait_ms, asked);
    }
    if (wait_ms >= left_ms) {
        verdict_add_tries(a, v);
        verdict_no_time_to_wait(a, wait_ms, left_ms, v);
        return -1;
    }
    if (a->reading.piece_came && a->events.again)
        a->events.again(a->data);
    reading_done(&a->reading); // none of its memory while it waits
    room_leave(a);
    mt_buf_done(&a->trouble_body);
    a->trouble_body = (mt_buf)MT_BUF_INIT(ASK_TROUBLE_MAX);
    a->state = ASK_RESTS;
    mt_timer_at(a->timer, now + wait_ms * NS_PER_MS);
    return 0;
}

// --- a try --------------------------------------------------------------------------------------

static void end_try(ask *a, const try_end *e)
{
    verdict v = VERDICT_INIT;

    stop_transfer(a);
    reading_end(&a->reading);
    verdict_of_try(a, e, &v);
    if (v.again && a->tries - a->crowded < RETRY_TRIES) {
        if (rest(a, &v) == 0) {
            mt_buf_done(&v.sentence);
            lane_pump(a->models); // there is more room, maybe
            return;
        }
    } else {
        verdict_add_tries(a, &v);
    }
    conclude_with(a, &v);
}

static void on_status(int status, void *user)
{
    ask *a = user;

    a->status = status;
    a->retry_after_ms = -1; // a status before was of an interim answer
    a->says_stream = false;
    a->heard_ns = mt_boottime_ns();
}

static void on_header(mt_str name, mt_str value, void *user)
{
    static const char stream[] = "text/event-stream";
    ask *a = user;

    if (mt_str_ieq(name, "Retry-After"))
        a->retry_after_ms = retry_after_ms(value, mt_now_us());
    else if (mt_str_ieq(name, "Content-Type") && value.len >= sizeof(stream) - 1)
        a->says_stream = mt_str_ieq((mt_str){value.data, sizeof(stream) - 1}, stream);
}

static bool on_bytes(const char *bytes, size_t len, void *user)
{
    ask *a = user;
    bool was_done = a->reading.done, more;

    a->heard_ns = mt_boottime_ns();
    if (a->status < 200 || a->status > 299) {
        size_t room = ASK_TROUBLE_MAX - a->trouble_body.len;

        return mt_buf_add(&a->trouble_body, bytes, MT_MIN(len, room)) == 0;
    }
    more = reading_feed(&a->reading, bytes, len) == 0;
    if (!room_grows(a) && more && !a->reading.finish) {
        a->reading.problem = PROBLEM_NO_ROOM;
        a->crowded++;
        more = false;
    }
    if (a->reading.done && !was_done)
        arm(a); // what comes now has less time
    return more;
}

static void on_ended(transfer_result result, const char *reason, void *user)
{
    ask *a = user;

    a->transfer = NULL;
    end_try(a, &(try_end){result, reason, .silent = false});
}

static void on_piece(mt_str piece, void *user)
{
    ask *a = user;

    if (a->events.text)
        a->events.text(piece, a->data);
}

static bool start_transfer(ask *a)
{
    static const transfer_events events = {on_status, on_header, on_bytes, on_ended};
    _cleanup_buf_ mt_buf key = MT_BUF_SECRET_INIT((size_t)1 << 16);
    const char *headers[2];
    transfer_request q = {.url = a->url,
                          .body = {mt_buf_str(&a->body), a->body.len},
                          .headers = headers,
                          .local = a->local};

    if (a->key[0]) {
        if (mt_buf_addf(&key, "%s%s", a->wire->key_header, a->key) < 0)
            return false;
        headers[q.header_count++] = mt_buf_str(&key);
    }
    if (a->wire->extra_header)
        headers[q.header_count++] = a->wire->extra_header;
    a->transfer = transfer_start(a->models->transfers, &q, &events, a);
    return a->transfer != NULL;
}

void ask_send(ask *a)
{
    a->state = ASK_SENT;
    a->tries++;
    a->status = 0;
    a->retry_after_ms = -1;
    a->says_stream = false;
    a->heard_ns = mt_boottime_ns();
    reading_init(&a->reading, a->wire, a->key, a->tool);
    a->reading.piece = on_piece;
    a->reading.user = a;
    if (start_transfer(a))
        arm(a);
    else
        conclude_no_memory(a);
}

static bool lacks_key(const ask *a)
{
    const mt_model_provider_info *info = mt_model_provider_by_name(mt_str_of(a->provider));

    return info && info->needs_key && !a->key[0];
}

void ask_enter(ask *a)
{
    mt_models *m = a->models;
    verdict v = VERDICT_INIT;

    a->next = m->asks;
    if (a->next)
        a->next->prev = a;
    m->asks = a;
    a->timer = mt_timer_new(m->loop, on_time, a);
    if (lacks_key(a)) {
        verdict_no_key(a, &v);
        conclude_with(a, &v);
    } else if (mt_boottime_ns() >= a->deadline_ns) {
        verdict_deadline(a, &v);
        conclude_with(a, &v);
    } else if (!a->timer || lane_enter(a) < 0) {
        conclude_no_memory(a);
    } else {
        arm(a);
        lane_pump(m);
    }
}
