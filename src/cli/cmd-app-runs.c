// SPDX-License-Identifier: Apache-2.0
// Runs of apps: list, wait, what they print, stop, run again.
#include "cli/app-wait.h"
#include "cli/run-list.h"
#include "cli/run-wait.h"

#include "base/id.h"

#include <errno.h>

// FOLLOW_S: how long the server holds an answer while nothing is printed.
enum { FOLLOW_S = 30 };

static int run_list(cli *c, mt_err **err)
{
    return run_list_print(c, &cli_app_runs, err);
}

// --- show ---

static void print_run(const mt_json *v)
{
    _cleanup_free_ char *app =
        xprintf("%s, version %lld", cli_text(v, "app"), (long long)cli_int(v, "version"));

    cli_field("id", cli_text(v, "id"), false);
    cli_field("namespace", cli_text(v, "namespace"), false);
    cli_field("app", app, false);
    cli_field("status", cli_text(v, "status"), false);
    cli_field("waits for", cli_text(v, "waitingFor"), true);
    cli_field("reason", cli_text(v, "endReason"), false);
    cli_field("details", cli_text(v, "failureDetails"), false);
    cli_field("place", cli_text(v, "failurePlace"), false);
    cli_field("started by", cli_text(v, "startedBy"), false);
    cli_field("started", cli_time(v, "dateCreated"), false);
    cli_field("ended", cli_time(v, "dateEnded"), false);
    cli_field("longest", cli_text(v, "maxDuration"), false);
    cli_field("repeats", cli_text(v, "rerunOf"), false);
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_free_ char *id = NULL, *path = NULL, *url = NULL;
    _cleanup_buf_ mt_buf value = MT_BUF_INIT(SIZE_MAX / 2);
    _cleanup_json_ mt_json *run = NULL;

    if (api_id_of_run(c, &cli_app_runs, cli_arg(c, 0), &id, err) < 0)
        return -1;
    path = api_run_path(&cli_app_runs, id);
    url = xprintf("%s%s", path, c->json ? "?console=true" : "");
    if (api_get(c, url, &run, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(run, err);
    print_run(run);
    cli_field_values("input", mt_json_get(run, "inputs"));
    cli_field_values("output", mt_json_get(run, "outputs"));
    if (mt_json_given(mt_json_get(run, "returnValue"))) {
        (void)mt_json_write(mt_json_get(run, "returnValue"), &value, 0);
        cli_field("returned", mt_buf_str(&value), true);
    }
    return 0;
}

// --- wait ---

static int run_await(cli *c, mt_err **err)
{
    _cleanup_free_ char *id = NULL;
    int64_t ms;

    if (run_timeout(c, &ms, err) < 0 ||
        api_id_of_run(c, &cli_app_runs, cli_arg(c, 0), &id, err) < 0)
        return -1;
    return app_show_to_end(c, id, ms, err);
}

// --- what it prints ---

static cli_style style_of(const char *level)
{
    if (mt_streq(level, "error"))
        return CLI_RED;
    return mt_streq(level, "warning") ? CLI_YELLOW : CLI_PLAIN;
}

static void print_log_line(const cli *c, const mt_json *line, mt_str text)
{
    const char *when = cli_text(line, "date"), *level = cli_text(line, "level");
    cli_style style = style_of(level);

    (void)printf("%.10s %.12s  %s%-7s%s  ", when, when[0] ? when + 11 : "",
                 cli_on(c->out_colour, style), level, cli_off(c->out_colour && style != CLI_PLAIN));
    cli_print_clean(stdout, text.data, text.len);
    (void)fputc('\n', stdout);
}

static int print_json_line(const mt_json *line, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(SIZE_MAX / 2);

    if (mt_json_write(line, &text, 0) < 0)
        return mt_fail_oom(err);
    (void)printf("%s\n", mt_buf_str(&text));
    return 0;
}

static int print_lines(const cli *c, const mt_json *lines, mt_err **err)
{
    for (size_t i = 0; i < mt_json_count(lines); i++) {
        const mt_json *line = mt_json_at(lines, i);
        mt_str text = mt_json_str(mt_json_get(line, "text"));

        if (c->json && print_json_line(line, err) < 0)
            return -1;
        if (c->json)
            continue;
        if (cli_flag(c, "log"))
            print_log_line(c, line, text);
        else
            (void)fwrite(text.data, 1, text.len, stdout);
    }
    // Who follows is to see them now, and to end where nobody reads on.
    if (fflush(stdout) != 0)
        return mt_fail_errno(err, errno, "the output cannot be written");
    return 0;
}

static int show_lines(cli *c, const char *id, bool follow, mt_err **err)
{
    app_lines l = {.c = c, .id = id, .what = cli_flag(c, "log") ? "log" : "console"};

    for (;;) {
        _cleanup_json_ mt_json *lines = NULL;

        if (app_lines_next(&l, follow ? FOLLOW_S : 0, &lines, err) < 0 ||
            print_lines(c, lines, err) < 0)
            return -1;
        if (l.ended || (!follow && mt_json_count(lines) == 0))
            return 0;
    }
}

static int run_logs(cli *c, mt_err **err)
{
    bool follow = cli_flag(c, "follow");
    _cleanup_free_ char *id = NULL;

    if (api_id_of_run(c, &cli_app_runs, cli_arg(c, 0), &id, err) < 0)
        return -1;
    if (show_lines(c, id, follow, err) == 0)
        return 0;
    // Ctrl-C is how one stops following: nothing went wrong.
    if (!cli_interrupted || !follow)
        return -1;
    *err = mt_err_free(*err);
    return 128 + cli_interrupted;
}

// --- stop ---

static int run_cancel(cli *c, mt_err **err)
{
    return run_stop_each(c, &cli_app_runs, err);
}

// --- run again ---

static int run_rerun(cli *c, mt_err **err)
{
    _cleanup_free_ char *id = NULL, *path = NULL;
    _cleanup_json_ mt_json *run = NULL;
    char key[MT_ID_TEXT];

    if (api_id_of_run(c, &cli_app_runs, cli_arg(c, 0), &id, err) < 0)
        return -1;
    path = api_path("/v1/app-runs/%s/rerun", id);
    mt_id_new(key);
    if (api_post_patiently(c, path, key, NULL, &run, err) < 0)
        return -1;
    if (cli_flag(c, "wait"))
        return app_show_to_end(c, cli_text(run, "id"), 0, err);
    if (c->json)
        return cli_print_json(run, err);
    (void)printf("%s\n", cli_text(run, "id"));
    return 0;
}

static const cli_option list_options[] = {
    {"app", 0, "NAME", "of this app only", "@app"},
    {"status", 0, "STATUS", "Running, Finished or Error", "Running|Finished|Error"},
    {"mine", 0, NULL, "only those that you started"},
    {"all", 'a', NULL, "of all namespaces that you may see"},
    {"limit", 0, "N", "at most so many, the newest (50)"},
    {NULL},
};
static const cli_option await_options[] = {
    {"timeout", 0, "TIME", "wait no longer than that; then exit 124"},
    {NULL},
};
static const cli_option logs_options[] = {
    {"follow", 'f', NULL, "go on until the run has ended"},
    {"log", 0, NULL, "its log in place of its console"},
    {NULL},
};
static const cli_option rerun_options[] = {
    {"wait", 'w', NULL, "show it to its end, as app-run does"},
    {NULL},
};
#define RUN_DETAILS                                                                              \
    "RUN is the id of an app's run, the last 6 or more characters of one, or @last: the newest " \
    "that\nyou started."

const cli_command cli_app_runs_commands[] = {
    {"app-runs", "", 0, 0, "list runs of apps, the newest first", NULL,
     "  mt app-runs --app analyst --status Error", list_options, run_list},
    {"app-run-get", "RUN", 1, 1, "show a run of an app", RUN_DETAILS, "  mt app-run-get @last",
     NULL, run_get},
    {"app-await", "RUN", 1, 1, "show a run of an app to its end, as app-run does",
     "What it printed so far is shown, too.\n" RUN_DETAILS, "  mt app-await @last --timeout 5m",
     await_options, run_await},
    {"app-logs", "RUN", 1, 1, "what a run of an app printed, or wrote to its log",
     "The newest 10,000 lines are kept. --json: a line of JSON for each.\n" RUN_DETAILS,
     "  mt app-logs -f @last\n  mt app-logs --log @last", logs_options, run_logs},
    {"app-cancel", "RUN...", 1, -1, "stop runs of apps, and what they started", RUN_DETAILS,
     "  mt app-cancel @last", NULL, run_cancel},
    {"app-rerun", "RUN", 1, 1, "start an app once more, with the inputs that it had",
     "A new run of the same version; its id is printed.\n" RUN_DETAILS,
     "  mt app-rerun @last --wait", rerun_options, run_rerun},
    {NULL},
};
