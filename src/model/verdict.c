// SPDX-License-Identifier: Apache-2.0
#include "model/verdict.h"

#include <inttypes.h>
#include <stdarg.h>

#define NO_ROOM "answers under way take %d MiB of the server's memory, as much as they may"

static void MT_PRINTF(4, 5) judge(verdict *v, mt_model_end end, bool again, const char *fmt, ...)
{
    va_list ap;

    v->end = end;
    v->again = again;
    mt_buf_clear(&v->sentence);
    va_start(ap, fmt);
    (void)mt_buf_vaddf(&v->sentence, fmt, ap);
    va_end(ap);
}

static void add(verdict *v, const char *text)
{
    (void)mt_buf_adds(&v->sentence, text);
}

static void add_quote(verdict *v, const ask *a, const char *before, mt_str message)
{
    if (message.len == 0)
        return;
    add(v, before);
    (void)trouble_quote(message, a->key, &v->sentence);
}

// " (429: its message)"
static void add_said(verdict *v, const ask *a, int status, const trouble *t)
{
    (void)mt_buf_addf(&v->sentence, " (%d", status);
    if (t->message)
        add_quote(v, a, ": ", (mt_str){t->message, t->message_len});
    else if (t->code[0])
        add_quote(v, a, ": ", mt_str_of(t->code));
    add(v, ")");
}

static void add_remedy(verdict *v, const ask *a, const trouble *t)
{
    switch (v->end) {
    case MT_MODEL_BAD_KEY:
        (void)mt_buf_addf(&v->sentence, ": give a key that may use it: mt provider-set %s",
                          a->provider);
        break;
    case MT_MODEL_NO_MODEL:
        add(v, ": correct the model's name, or the base URL of the provider");
        break;
    case MT_MODEL_RATE_LIMIT:
        add(v, t->spent ? ": its quota is used up: raise it at the provider"
                        : ": try later, or let the provider have fewer requests at once");
        break;
    default:
        break;
    }
}

// status: of HTTP, or what an error within an answer means as such.
static void judge_trouble(const ask *a, int status, const trouble *t, verdict *v)
{
    trouble_kind kind = trouble_kind_of(status, t);

    switch (kind.end) {
    case MT_MODEL_BAD_KEY:
        judge(v, kind.end, false, "provider '%s' does not accept the key", a->provider);
        break;
    case MT_MODEL_NO_MODEL:
        judge(v, kind.end, false, "provider '%s' has no model '%s'", a->provider, a->model);
        break;
    case MT_MODEL_RATE_LIMIT:
        judge(v, kind.end, kind.again, "provider '%s' takes no more requests for now", a->provider);
        break;
    case MT_MODEL_REFUSED:
        judge(v, kind.end, false, "provider '%s' refused what was asked", a->provider);
        break;
    case MT_MODEL_BAD_REQUEST:
        judge(v, kind.end, false, "provider '%s' did not take the request", a->provider);
        break;
    default:
        judge(v, kind.end, kind.again, "provider '%s' failed", a->provider);
    }
    add_said(v, a, status, t);
    add_remedy(v, a, t);
}

static void judge_status(const ask *a, verdict *v)
{
    static const mt_json_limits limits = {
        .bytes = ASK_TROUBLE_MAX, .values = 5000, .depth = 30, .string = SIZE_MAX};
    _cleanup_json_ mt_json *body = NULL;
    mt_str raw = {mt_buf_str(&a->trouble_body), a->trouble_body.len};
    trouble t = {0};

    if (a->status < 400) {
        judge(v, MT_MODEL_FAILED, false,
              "provider '%s' answered %d: it lives at another address, give that as its base URL",
              a->provider, a->status);
        return;
    }
    if (mt_json_parse(raw.data, raw.len, &limits, &body, NULL) == 0)
        (void)trouble_read(&t, body);
    if (!t.message && !t.given && raw.len > 0) // a page of a proxy, or plain words
        (void)trouble_keep(&t, raw);
    judge_trouble(a, a->status, &t, v);
    trouble_done(&t);
}

static void judge_finish(const ask *a, verdict *v)
{
    const reading *r = &a->reading;
    bool refused = reading_refused(r) || r->finish == FINISH_REFUSAL;

    if (refused) {
        judge(v, MT_MODEL_REFUSED, false, "the model refused");
        add_quote(v, a, ": ", reading_text(r));
        return;
    }
    switch (r->finish) {
    case FINISH_STOP:
        judge(v, MT_MODEL_ANSWERED, false, "%s", "");
        break;
    case FINISH_LENGTH:
        judge(v, MT_MODEL_CUT, false,
              "the model's answer was cut short at its limit of tokens (%s): raise the limit, or "
              "ask for less",
              r->finish_word);
        break;
    case FINISH_FILTER:
        judge(v, MT_MODEL_REFUSED, false, "the content filter of provider '%s' stopped the answer",
              a->provider);
        break;
    case FINISH_BROKEN:
        judge(v, MT_MODEL_FAILED, true, "provider '%s' gave up in the middle of its answer (%s)",
              a->provider, r->finish_word);
        break;
    default:
        judge(v, MT_MODEL_FAILED, false,
              "provider '%s' ended its answer for an unknown reason (%s)", a->provider,
              r->finish_word);
    }
}

static void judge_no_protocol(const ask *a, verdict *v)
{
    judge(v, MT_MODEL_FAILED, false,
          "provider '%s' answered with something else than its protocol (%d", a->provider,
          a->status);
    add_quote(v, a, ": ", (mt_str){mt_buf_str(&a->reading.start), a->reading.start.len});
    add(v, "): see to its base URL");
}

static void judge_problem(const ask *a, verdict *v)
{
    switch (a->reading.problem) {
    case PROBLEM_SAID:
        judge_trouble(a, a->reading.said.status ? a->reading.said.status : 500, &a->reading.said,
                      v);
        break;
    case PROBLEM_TOO_LARGE:
        judge(v, MT_MODEL_FAILED, false, "the answer of provider '%s' is larger than %d MiB",
              a->provider, READING_TEXT_MAX >> 20);
        break;
    case PROBLEM_NO_ROOM:
        judge(v, MT_MODEL_FAILED, true, NO_ROOM, MT_MODEL_HELD_MAX >> 20);
        break;
    case PROBLEM_MEMORY:
        judge(v, MT_MODEL_FAILED, false, "out of memory while provider '%s' answered", a->provider);
        break;
    default:
        judge_no_protocol(a, v);
    }
}

// An answer began and has no end.
static void judge_unfinished(const ask *a, const try_end *e, verdict *v)
{
    const reading *r = &a->reading;

    if (e->result == TRANSFER_WHOLE && r->known == 0 && r->start.len > 0 &&
        !(a->says_stream && r->events == 0)) {
        judge_no_protocol(a, v);
        return;
    }
    judge(v, MT_MODEL_FAILED, true, "the answer of provider '%s' broke off", a->provider);
    if (e->reason[0])
        add_quote(v, a, ": ", mt_str_of(e->reason));
}

void verdict_of_try(const ask *a, const try_end *e, verdict *v)
{
    const reading *r = &a->reading;

    if (r->problem)
        judge_problem(a, v);
    else if (r->finish) // whole, though the connection may have broken behind it
        judge_finish(a, v);
    else if (a->status >= 300)
        judge_status(a, v);
    else if (e->silent)
        judge(v, MT_MODEL_FAILED, true, "provider '%s' sent nothing for too long", a->provider);
    else if (a->status >= 200)
        judge_unfinished(a, e, v);
    else {
        judge(v, MT_MODEL_UNREACHABLE, e->result != TRANSFER_HOPELESS,
              "provider '%s' cannot be reached at %s", a->provider, a->url);
        add_quote(v, a, ": ", mt_str_of(e->reason));
    }
}

void verdict_add_tries(const ask *a, verdict *v)
{
    if (a->tries > 1 && v->sentence.len > 0)
        (void)mt_buf_addf(&v->sentence, "; tried %u times", a->tries);
}

void verdict_no_time_to_wait(const ask *a, int64_t wait_ms, int64_t left_ms, verdict *v)
{
    bool asked = a->retry_after_ms >= 0 && wait_ms >= a->retry_after_ms;

    v->end = MT_MODEL_OUT_OF_TIME;
    v->again = false;
    (void)mt_buf_addf(&v->sentence,
                      "; %s %" PRId64 " s before another try, and %" PRId64 " s are left",
                      asked ? "it asks to wait" : "there would be",
                      ((asked ? a->retry_after_ms : wait_ms) + 999) / 1000, left_ms / 1000);
}

void verdict_deadline(const ask *a, verdict *v)
{
    if (a->state == ASK_SENT)
        judge(v, MT_MODEL_OUT_OF_TIME, false,
              "provider '%s' had not answered in full when the time was over", a->provider);
    else if (!room_for_more(a->models))
        judge(v, MT_MODEL_OUT_OF_TIME, false, "the time was over before there was room: " NO_ROOM,
              MT_MODEL_HELD_MAX >> 21);
    else if (a->state == ASK_RESTS)
        judge(v, MT_MODEL_OUT_OF_TIME, false,
              "the time was over before provider '%s' could be tried again", a->provider);
    else
        judge(v, MT_MODEL_OUT_OF_TIME, false,
              "the time was over before the request had its turn: provider '%s' gets %u at once",
              a->provider, lane_limit(a));
}

void verdict_no_key(const ask *a, verdict *v)
{
    const mt_model_provider_info *info = mt_model_provider_by_name(mt_str_of(a->provider));

    judge(v, MT_MODEL_NO_KEY, false, "no key for provider '%s': mt provider-set %s", a->provider,
          a->provider);
    if (info && info->key_env)
        (void)mt_buf_addf(&v->sentence, ", or %s at the server's start", info->key_env);
}
