// SPDX-License-Identifier: Apache-2.0
// What a model was asked and answered, attempt by attempt.
#include "cli/interaction-wait.h"

#include "base/clock.h"

void interaction_print_text(FILE *to, const char *name, const char *text)
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
        interaction_print_text(to, cli_text(mt_json_at(messages, i), "role"),
                               cli_text(mt_json_at(messages, i), "content"));
    interaction_print_text(to, "reasoning", cli_text(v, "reasoning"));
    interaction_print_text(to, "answer", cli_text(v, "answer"));
    for (size_t i = 0; i < mt_json_count(faults); i++)
        interaction_print_text(to, "fault", mt_json_text(mt_json_at(faults, i), ""));
}

// Page by page: a few attempts with long answers are a long list.
int interaction_attempts(cli *c, const char *id, int64_t after, mt_json **ret, mt_err **err)
{
    _cleanup_free_ char *path = api_run_path(&cli_interaction_runs, id);
    _cleanup_json_ mt_json *all = mt_json_new_array();

    while (after >= 0) {
        _cleanup_free_ char *url = xprintf("%s/attempts?after=%lld", path, (long long)after);
        _cleanup_json_ mt_json *page = NULL;
        const mt_json *items;

        if (api_get_patiently(c, url, true, &page, err) < 0)
            return -1;
        items = mt_json_get(page, "items");
        for (size_t i = 0; i < mt_json_count(items); i++) {
            after = cli_int(mt_json_at(items, i), "number");
            (void)mt_json_append(all, mt_json_ref(mt_json_at(items, i)));
        }
        if (mt_json_count(items) == 0 || !mt_json_given(mt_json_get(page, "next")))
            after = -1;
    }
    if (!mt_json_ok(all))
        return mt_fail_oom(err);
    *ret = MT_TAKE_PTR(all);
    return 0;
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
    _cleanup_json_ mt_json *items = NULL;

    if (!cli_flag(c, "show-attempts"))
        return 0;
    if (interaction_attempts(c, cli_text(*run, "id"), 0, &items, err) < 0)
        return -1;
    if (c->json)
        return add_attempts(run, items, err);
    for (size_t i = 0; i < mt_json_count(items); i++)
        print_attempt(to, mt_json_at(items, i));
    return 0;
}
