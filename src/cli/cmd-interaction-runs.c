// SPDX-License-Identifier: Apache-2.0
// Runs of interactions: list, show, wait, stop.
#include "cli/interaction-wait.h"
#include "cli/run-list.h"
#include "cli/run-wait.h"

static int run_list(cli *c, mt_err **err)
{
    return run_list_print(c, &cli_interaction_runs, err);
}

// --- show ---

static void print_tokens(const mt_json *v)
{
    _cleanup_free_ char *text = NULL;

    if (!mt_json_given(mt_json_get(v, "tokensIn")) && !mt_json_given(mt_json_get(v, "tokensOut")))
        return;
    text = xprintf("%lld in, %lld out", (long long)cli_int(v, "tokensIn"),
                   (long long)cli_int(v, "tokensOut"));
    cli_field("tokens", text, false);
}

static void print_run(const mt_json *v)
{
    _cleanup_free_ char *interaction =
        xprintf("%s, version %lld", cli_text(v, "interaction"), (long long)cli_int(v, "version"));
    _cleanup_free_ char *attempts = xprintf("%lld", (long long)cli_int(v, "attemptCount"));

    cli_field("id", cli_text(v, "id"), false);
    cli_field("namespace", cli_text(v, "namespace"), false);
    cli_field("asked", interaction, false);
    cli_field("model", cli_text(v, "model"), false);
    cli_field("status", cli_text(v, "status"), false);
    cli_field("reason", cli_text(v, "endReason"), false);
    cli_field("details", cli_text(v, "failureDetails"), false);
    cli_field("started by", cli_text(v, "startedBy"), false);
    cli_field("started", cli_time(v, "dateCreated"), false);
    cli_field("ended", cli_time(v, "dateEnded"), false);
    cli_field("longest", cli_text(v, "maxDuration"), false);
    cli_field("attempts", attempts, false);
    print_tokens(v);
    cli_field("cost", cli_text(v, "cost"), false);
    cli_field_values("input", mt_json_get(v, "inputs"));
    cli_field("output", cli_text(v, "output"), false);
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_free_ char *id = NULL, *path = NULL;
    _cleanup_json_ mt_json *run = NULL;

    if (api_id_of_run(c, &cli_interaction_runs, cli_arg(c, 0), &id, err) < 0)
        return -1;
    path = api_run_path(&cli_interaction_runs, id);
    if (api_get(c, path, &run, err) < 0)
        return -1;
    if (!c->json)
        print_run(run);
    if (interaction_show_attempts(c, &run, stdout, err) < 0)
        return -1;
    return c->json ? cli_print_json(run, err) : 0;
}

// --- wait, stop ---

static int run_await(cli *c, mt_err **err)
{
    _cleanup_free_ char *id = NULL;
    int64_t ms;

    if (run_timeout(c, &ms, err) < 0 ||
        api_id_of_run(c, &cli_interaction_runs, cli_arg(c, 0), &id, err) < 0)
        return -1;
    return interaction_wait(c, id, ms, err);
}

static int run_cancel(cli *c, mt_err **err)
{
    return run_stop_each(c, &cli_interaction_runs, err);
}

static const cli_option list_options[] = {
    {"interaction", 0, "NAME", "of this interaction only", "@interaction"},
    {"status", 0, "STATUS", "Running, Finished or Error", "Running|Finished|Error"},
    {"mine", 0, NULL, "only those that you started"},
    {"all", 'a', NULL, "of all namespaces that you may see"},
    {"limit", 0, "N", "at most so many, the newest (50)"},
    {NULL},
};
static const cli_option get_options[] = {
    {"show-attempts", 0, NULL, "what the model was asked and answered"},
    {NULL},
};
static const cli_option await_options[] = {
    {"timeout", 0, "TIME", "wait no longer than that; then exit 124"},
    {"stream", 0, NULL, "show what the model says while it says it"},
    {"show-attempts", 0, NULL, "what the model was asked and answered, on stderr"},
    {NULL},
};
#define RUN_DETAILS                                                                               \
    "RUN is the id of an interaction's run, the last 6 or more characters of one, or @last: the " \
    "newest\nthat you started."

const cli_command cli_interaction_runs_commands[] = {
    {"interaction-runs", "", 0, 0, "list runs of interactions, the newest first", NULL,
     "  mt interaction-runs --interaction next-command --status Error", list_options, run_list},
    {"interaction-run-get", "RUN", 1, 1, "show a run of an interaction",
     "With --show-attempts each attempt follows: what was asked, what came, and what was wrong "
     "with it.\n" RUN_DETAILS,
     "  mt interaction-run-get @last --show-attempts", get_options, run_get},
    {"interaction-await", "RUN", 1, 1, "wait for an answer and print it, as interaction-run does",
     RUN_DETAILS, "  mt interaction-await @last --timeout 5m", await_options, run_await},
    {"interaction-cancel", "RUN...", 1, -1, "stop runs of interactions", RUN_DETAILS,
     "  mt interaction-cancel @last", NULL, run_cancel},
    {NULL},
};
