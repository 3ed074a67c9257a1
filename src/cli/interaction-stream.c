// SPDX-License-Identifier: Apache-2.0
// What a model says, while it says it.
//
// The server has only the text under way, and none of an attempt that is over: what was not seen of
// one is taken from its record. So all of each attempt is shown, however the two fall together.
#include "cli/copy.h"
#include "cli/interaction-wait.h"
#include "cli/run-wait.h"

#include "base/clock.h"

enum { WAIT_S = 30, TEXT_MAX = 8 << 20 };

int interaction_text_next(cli *c, const char *id, interaction_text *t, int64_t seconds,
                          mt_json **ret, bool *ret_anew, mt_err **err)
{
    _cleanup_free_ char *path = api_run_path(&cli_interaction_runs, id);
    _cleanup_free_ char *url =
        xprintf("%s/text?stream=%lld&from=%lld&wait=%lld", path, (long long)t->stream,
                (long long)t->from, (long long)seconds);

    if (api_get_patiently(c, url, true, ret, err) < 0)
        return -1;
    *ret_anew = cli_int(*ret, "stream") != t->stream;
    t->stream = cli_int(*ret, "stream");
    t->from = cli_int(*ret, "next");
    return 0;
}

typedef struct showing {
    cli *c;
    const char *id, *model;
    bool out; // to stdout: it is the answer
    int64_t begun_ns, end_ns;
    interaction_text at;
    int64_t attempt; // that is shown, 0: none so far
    mt_buf text;     // of it
    interaction_shown *shown;
} showing;

// ---- showing ----

static int show(showing *s, mt_str text, mt_err **err)
{
    if (text.len == 0)
        return 0;
    if (mt_buf_add(&s->text, text.data, text.len) < 0)
        return mt_fail_oom(err);
    cli_status_line(s->c, "%s", "");
    s->shown->answer = s->out;
    if (s->out)
        return cli_write_out(text.data, text.len, err);
    cli_print_clean(stderr, text.data, text.len);
    (void)fflush(stderr);
    return 0;
}

// What comes next begins a line of its own; an answer has a line end after it whatever it ends in,
// as without --stream.
static int end_line(showing *s, mt_err **err)
{
    bool mid_line = s->text.len > 0 && (s->out || s->text.data[s->text.len - 1] != '\n');

    mt_buf_clear(&s->text);
    if (!mid_line)
        return 0;
    if (s->out)
        return cli_write_out("\n", 1, err);
    (void)fputc('\n', stderr);
    return 0;
}

static void begin_attempt(showing *s, int64_t number)
{
    s->attempt = number;
    if (!s->out) {
        cli_status_line(s->c, "%s", "");
        (void)fprintf(stderr, "attempt %lld\n", (long long)number);
    }
}

// What was shown does not count.
static int begin_anew(showing *s, mt_err **err)
{
    if (s->text.len == 0)
        return 0;
    s->shown->spoilt = s->out;
    s->shown->answer = false;
    return end_line(s, err);
}

static int begin_again(showing *s, mt_err **err)
{
    if (s->text.len == 0)
        return 0;
    if (begin_anew(s, err) < 0)
        return -1;
    cli_status_line(s->c, "%s", "");
    cli_warn(s->c, "the answer broke off: the model is asked again");
    return 0;
}

// ---- attempts that are over ----

// The rest of its text: of one that is told otherwise than it was said (a refusal), the whole. One
// that was stopped is not kept.
static int show_rest(showing *s, mt_str answer, mt_err **err)
{
    bool goes_on = answer.len >= s->text.len &&
                   (s->text.len == 0 || memcmp(answer.data, s->text.data, s->text.len) == 0);

    if (answer.len == 0)
        return 0;
    if (!goes_on && begin_anew(s, err) < 0)
        return -1;
    return show(s, (mt_str){answer.data + s->text.len, answer.len - s->text.len}, err);
}

static int show_over(showing *s, const mt_json *a, mt_err **err)
{
    const mt_json *faults = mt_json_get(a, "faults");

    if (cli_int(a, "number") != s->attempt)
        begin_attempt(s, cli_int(a, "number"));
    if (show_rest(s, mt_json_str(mt_json_get(a, "answer")), err) < 0 || end_line(s, err) < 0)
        return -1;
    for (size_t i = 0; i < mt_json_count(faults) && !s->out; i++)
        interaction_print_text(stderr, "fault", mt_json_text(mt_json_at(faults, i), ""));
    return 0;
}

// All that are over, from the one that is shown on.
static int catch_up(showing *s, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;

    if (interaction_attempts(s->c, s->id, MT_MAX(s->attempt - 1, (int64_t)0), &items, err) < 0)
        return -1;
    for (size_t i = 0; i < mt_json_count(items); i++)
        if (cli_text(mt_json_at(items, i), "outcome")[0] &&
            show_over(s, mt_json_at(items, i), err) < 0)
            return -1;
    return 0;
}

// ---- the text under way ----

static int take(showing *s, const mt_json *part, bool anew, mt_err **err)
{
    int64_t attempt = cli_int(part, "attempt");

    if (attempt == 0) // none is under way
        return 0;
    if (attempt == s->attempt && anew && begin_again(s, err) < 0)
        return -1;
    if (attempt != s->attempt) {
        if (attempt > 1 && catch_up(s, err) < 0)
            return -1;
        begin_attempt(s, attempt);
    }
    return show(s, mt_json_str(mt_json_get(part, "text")), err);
}

static int64_t seconds_left(const showing *s)
{
    int64_t left = (s->end_ns - mt_boottime_ns() + 999999999) / 1000000000;

    return MT_MAX(MT_MIN(left, (int64_t)WAIT_S), (int64_t)0);
}

// 0: there may be more; 1: the run has ended.
static int next(showing *s, mt_err **err)
{
    _cleanup_json_ mt_json *part = NULL;
    int64_t asked = mt_boottime_ns();
    bool anew;

    if (cli_interrupted)
        return mt_fail(err, MT_E_UNREACHABLE, "interrupted");
    if (s->text.len == 0)
        cli_status_line(s->c, "asking %s, %lld s", s->model,
                        (long long)((asked - s->begun_ns) / 1000000000));
    if (interaction_text_next(s->c, s->id, &s->at, seconds_left(s), &part, &anew, err) < 0 ||
        take(s, part, anew, err) < 0)
        return -1;
    if (mt_json_is_true(mt_json_get(part, "ended")))
        return 1;
    // Should an answer come at once though nothing happened, do not ask in a tight loop.
    if (cli_text(part, "text")[0] == '\0' && mt_boottime_ns() - asked < 200000000)
        (void)cli_sleep_ms(200);
    return 0;
}

static int get_run(const showing *s, mt_json **ret, mt_err **err)
{
    _cleanup_free_ char *path = api_run_path(&cli_interaction_runs, s->id);

    return api_get_patiently(s->c, path, true, ret, err);
}

static bool has_schema(cli *c, const mt_json *run)
{
    _cleanup_json_ mt_json *definition = interaction_definition(c, run);

    return !definition || mt_json_given(mt_json_get(mt_json_get(definition, "schema"), "solution"));
}

static int show_to_end(showing *s, mt_err **err)
{
    int r;

    do
        r = next(s, err);
    while (r == 0 && mt_boottime_ns() < s->end_ns);
    if (r > 0)
        r = catch_up(s, err);
    cli_status_line(s->c, "%s", "");
    return end_line(s, r < 0 ? NULL : err) < 0 ? -1 : r;
}

int interaction_stream(cli *c, const char *id, int64_t end_ns, interaction_shown *shown,
                       mt_json **ret, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;
    showing s = {.c = c,
                 .id = id,
                 .begun_ns = mt_boottime_ns(),
                 .end_ns = end_ns,
                 .text = MT_BUF_INIT(TEXT_MAX),
                 .shown = shown};
    int r;

    if (get_run(&s, &run, err) < 0)
        return -1;
    s.model = cli_text(run, "model");
    s.out = !c->json && !has_schema(c, run);
    r = show_to_end(&s, err);
    mt_buf_done(&s.text);
    return r < 0 ? -1 : get_run(&s, ret, err);
}
