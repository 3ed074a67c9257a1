// SPDX-License-Identifier: Apache-2.0
#include "cli/interaction-wait.h"

#include "cli/copy.h"
#include "cli/run-wait.h"

#include "base/clock.h"

// --- attempts ---

// Under a name, its lines beneath each other.
static void print_text(FILE *to, const char *name, const char *text)
{
    enum { WIDTH = 11 }; // "reasoning" and two blanks

    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        (void)fprintf(to, "  %-*s", WIDTH, line == text ? name : "");
        cli_print_clean(to, line, len);
        (void)fputc('\n', to);
        line += len + (line[len] == '\n');
    }
}

static double seconds_of(const mt_json *v)
{
    int64_t from, until;

    if (!mt_time_parse(mt_str_of(cli_text(v, "dateStarted")), &from) ||
        !mt_time_parse(mt_str_of(cli_text(v, "dateEnded")), &until))
        return -1;
    return (double)(until - from) / 1e6;
}

static void print_heading(FILE *to, const mt_json *v)
{
    const char *outcome = cli_text(v, "outcome"), *model = cli_text(v, "model");
    double seconds = seconds_of(v);

    (void)fprintf(to, "attempt %lld: ", (long long)cli_int(v, "number"));
    cli_print_flat(to, outcome[0] ? outcome : "under way");
    if (seconds >= 0)
        (void)fprintf(to, ", %.2f s", seconds);
    if (model[0])
        (void)fputs(", ", to);
    cli_print_flat(to, model);
    if (cli_int(v, "requests") > 1)
        (void)fprintf(to, ", %lld requests", (long long)cli_int(v, "requests"));
    if (cli_int(v, "httpStatus") > 0 && cli_int(v, "httpStatus") != 200)
        (void)fprintf(to, ", HTTP %lld", (long long)cli_int(v, "httpStatus"));
    if (mt_json_given(mt_json_get(v, "tokensIn")) || mt_json_given(mt_json_get(v, "tokensOut")))
        (void)fprintf(to, ", tokens %lld in, %lld out", (long long)cli_int(v, "tokensIn"),
                      (long long)cli_int(v, "tokensOut"));
    (void)fputc('\n', to);
}

// Of a later attempt what is new: what the model said before stands above, as the answer.
static size_t first_new(const mt_json *messages)
{
    size_t i = mt_json_count(messages);

    while (i > 0 && !mt_streq(cli_text(mt_json_at(messages, i - 1), "role"), "assistant"))
        i--;
    return i;
}

static void print_attempt(FILE *to, const mt_json *v)
{
    const mt_json *messages = mt_json_get(v, "messages"), *faults = mt_json_get(v, "faults");

    print_heading(to, v);
    for (size_t i = first_new(messages); i < mt_json_count(messages); i++)
        print_text(to, cli_text(mt_json_at(messages, i), "role"),
                   cli_text(mt_json_at(messages, i), "content"));
    print_text(to, "reasoning", cli_text(v, "reasoning"));
    print_text(to, "answer", cli_text(v, "answer"));
    for (size_t i = 0; i < mt_json_count(faults); i++)
        print_text(to, "fault", mt_json_text(mt_json_at(faults, i), ""));
}

static int add_attempts(mt_json **run, const mt_json *items, mt_err **err)
{
    mt_json *whole = mt_json_copy(*run);

    (void)mt_json_unref(*run);
    *run = whole;
    return mt_json_set(whole, "attempts", mt_json_ref(items)) < 0 ? mt_fail_oom(err) : 0;
}

int interaction_show_attempts(cli *c, mt_json **run, FILE *to, mt_err **err)
{
    _cleanup_free_ char *path = api_run_path(&cli_interaction_runs, cli_text(*run, "id"));
    _cleanup_free_ char *url = xprintf("%s/attempts", path);
    _cleanup_json_ mt_json *answer = NULL;
    const mt_json *items;

    if (!cli_flag(c, "show-attempts"))
        return 0;
    if (api_get_patiently(c, url, true, &answer, err) < 0)
        return -1;
    items = mt_json_get(answer, "items");
    if (c->json)
        return add_attempts(run, items, err);
    for (size_t i = 0; i < mt_json_count(items); i++)
        print_attempt(to, mt_json_at(items, i));
    return 0;
}

// --- waiting ---

// How often it is asked at most, by its definition; 0 where that is not told.
static int64_t attempts_of(cli *c, const mt_json *run)
{
    _cleanup_free_ char *path = api_path("/v1/namespaces/%s/interactions/%s",
                                         cli_text(run, "namespace"), cli_text(run, "interaction"));
    _cleanup_free_ char *url = xprintf("%s?version=%lld", path, (long long)cli_int(run, "version"));
    _cleanup_json_ mt_json *v = NULL;

    return api_get(c, url, &v, NULL) == 0 ? cli_int(mt_json_get(v, "definition"), "attempts") : 0;
}

// data: how often it is asked at most, -1 as long as that was not looked up.
static char *says(cli *c, const mt_json *run, void *data)
{
    int64_t *most = data, attempt = MT_MAX(cli_int(run, "attemptCount"), (int64_t)1);

    if (*most < 0)
        *most = attempts_of(c, run);
    if (*most < attempt)
        return xprintf("asking %s, attempt %lld", cli_text(run, "model"), (long long)attempt);
    return xprintf("asking %s, attempt %lld of %lld", cli_text(run, "model"), (long long)attempt,
                   (long long)*most);
}

static int print_output(const mt_json *run, mt_err **err)
{
    mt_str output = mt_json_str(mt_json_get(run, "output"));

    if (cli_write_out(output.data, output.len, err) < 0)
        return -1;
    (void)fputc('\n', stdout);
    return 0;
}

static int report(cli *c, mt_json **run, mt_err **err)
{
    bool finished = mt_streq(cli_text(*run, "status"), "Finished");

    if (interaction_show_attempts(c, run, stderr, err) < 0 ||
        (c->json && cli_print_json(*run, err) < 0))
        return -1;
    if (!finished)
        run_print_details(c, *run);
    else if (!c->json && print_output(*run, err) < 0)
        return -1;
    return finished ? 0 : 1;
}

int interaction_wait(cli *c, const char *id, int64_t timeout_ms, mt_err **err)
{
    int64_t most = -1;
    const run_wait w = {.kind = &cli_interaction_runs,
                        .id = id,
                        .timeout_ms = timeout_ms,
                        .from_start = true,
                        .says = says,
                        .data = &most};
    _cleanup_json_ mt_json *run = NULL;
    int r = run_wait_for(c, &w, &run, err);

    if (r == 0)
        return report(c, &run, err);
    if (r > 0) {
        if (c->json && cli_print_json(run, err) < 0)
            return -1;
        return run_still_there(c, &w, run);
    }
    if (cli_interrupted || api_error_passes(*err))
        cli_note(c,
                 "interaction run %s goes on; mt interaction-await %s waits for it, mt "
                 "interaction-cancel %s stops it",
                 id, id, id);
    return -1;
}
