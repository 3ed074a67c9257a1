// SPDX-License-Identifier: Apache-2.0
#include "cli/event-stream.h"

#include "base/clock.h"

#include <errno.h>

enum {
    SILENCE_MS = 45000, // three heartbeats
    PATIENCE_MS = 60000,
};

// ---- events ----

// Why the server ends the stream. One that has ended for good is an error.
static int take_end(event_stream *s, const mt_json *data, mt_err **err)
{
    const char *code = cli_text(data, "code");

    s->ended = true;
    if (mt_streq(code, "runEnded") || mt_streq(code, "accessLost"))
        return mt_fail(err, MT_E_UNAUTHENTICATED, "%s", cli_text(data, "sentence"));
    cli_note(s->c, "the stream was ended: %s", cli_text(data, "sentence"));
    return 0;
}

static void take_hello(event_stream *s, const mt_json *data)
{
    bool again = s->after >= 0;

    if (again)
        cli_note(s->c, "connected again, after event %lld", (long long)cli_int(data, "after"));
    s->after = cli_int(data, "after");
}

static int take_event(mt_str name, mt_str text, void *user)
{
    event_stream *s = user;
    _cleanup_json_ mt_json *data = NULL;

    if (mt_json_parse(text.data, text.len, NULL, &data, &s->fault) < 0)
        return mt_wrap(&s->fault, "an event of %s is no JSON", s->c->url.value);
    if (mt_str_eq(name, "end"))
        return take_end(s, data, &s->fault);
    if (mt_str_eq(name, "hello")) {
        take_hello(s, data);
        return 0;
    }
    if (s->take(name.data, data, s->data, &s->fault) < 0)
        return -1;
    if (mt_str_eq(name, "change"))
        s->after = cli_int(data, "number");
    return 0;
}

static int on_data(const void *piece, size_t len, void *data, mt_err **err)
{
    event_stream *s = data;
    int r;

    s->heard = s->c->reached = true;
    r = mt_sse_feed(&s->sse, piece, len);
    if (r == 0)
        return 0;
    if (r == -ENOMEM)
        return mt_fail_oom(err);
    if (r == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE, "an event of %s has more than %d MiB", s->c->url.value,
                       MT_SSE_EVENT_MAX >> 20);
    mt_err_move(err, s->fault);
    s->fault = NULL;
    return -1;
}

static int on_head(const transport_answer *a, void *data, mt_err **err)
{
    const event_stream *s = data;

    if (a->content_type && mt_starts_with(a->content_type, "text/event-stream"))
        return 0;
    return mt_fail(err, MT_E_INTERNAL,
                   "what answers at %s sends no events: is it a maitento server?", s->c->url.value);
}

// ---- connections ----

static int read_once(event_stream *s, mt_err **err)
{
    _cleanup_free_ char *target = xprintf("/v1/events%s", s->query);
    _cleanup_free_ char *last = s->after >= 0 ? xprintf("%lld", (long long)s->after) : NULL;
    const char *const headers[][2] = {{"Accept", "text/event-stream"}, {"Last-Event-ID", last}};
    _cleanup_answer_ transport_answer answer = TRANSPORT_ANSWER_INIT;
    transport_request request = {.method = "GET",
                                 .target = target,
                                 .headers = headers,
                                 .header_count = MT_ARRAY_SIZE(headers),
                                 .on_head = on_head,
                                 .on_data = on_data,
                                 .data = s,
                                 .idle_timeout_ms = SILENCE_MS};

    int r;

    s->heard = s->ended = false;
    mt_sse_init(&s->sse, take_event, s);
    r = api_send(s->c, &request, &answer, err);
    mt_sse_done(&s->sse);
    return r;
}

// What it has is too old: from here on. Once, as the next number is a new one.
static bool begin_anew(event_stream *s, const mt_err *cause)
{
    if (mt_err_code(cause) != MT_E_GONE || s->after < 0)
        return false;
    cli_warn(s->c, "events were missed, which are no longer kept: %s", mt_err_sentence(cause));
    s->after = -1;
    s->query = s->new_query;
    return true;
}

static bool may_pass(const event_stream *s, const mt_err *cause)
{
    return s->c->reached && (api_error_passes(cause) || mt_err_code(cause) == MT_E_RATE_LIMITED);
}

int event_stream_run(event_stream *s, mt_err **err)
{
    int64_t fails_since = 0;
    int tries = 0, r;

    s->after = -1;
    for (;;) {
        mt_err *cause = NULL;

        r = read_once(s, &cause);
        if (r == 0 && !s->ended && !s->for_ever)
            break;
        if (s->heard || !fails_since) {
            fails_since = mt_boottime_ns();
            tries = 0;
        }
        if (r == 0 || begin_anew(s, cause)) {
            cause = mt_err_free(cause);
        } else if (cli_interrupted || !may_pass(s, cause) ||
                   (!s->for_ever &&
                    mt_boottime_ns() - fails_since > (int64_t)PATIENCE_MS * 1000000)) {
            mt_err_move(err, cause);
            break;
        } else if (tries == 0) {
            cli_note(s->c, "no more events for now: %s; trying again", mt_err_sentence(cause));
        }
        (void)mt_err_free(cause);
        r = -1;
        if (!cli_back_off(tries++)) {
            (void)mt_fail(err, MT_E_UNREACHABLE, "interrupted");
            break;
        }
    }
    return r;
}
