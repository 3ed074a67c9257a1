// SPDX-License-Identifier: Apache-2.0
#include "cli/run-wait.h"

#include "base/clock.h"

// The server holds an answer for 60 s at most; with a terminal it comes more often, to show that
// something lives.
enum { WAIT_S = 30, WAIT_TERMINAL_S = 2 };

bool run_has_ended(const mt_json *run)
{
    return mt_streq(cli_text(run, "status"), "Finished") ||
           mt_streq(cli_text(run, "status"), "Error");
}

static bool reached(const run_wait *w, const mt_json *run)
{
    return run_has_ended(run) || (w->ready && mt_streq(cli_text(run, "status"), "Running"));
}

static void show(cli *c, const run_wait *w, const mt_json *run, int64_t seconds)
{
    _cleanup_free_ char *what = NULL;

    if (!c->err_terminal || c->quiet)
        return;
    what = w->says ? w->says(c, run, w->data)
                   : xprintf("%s %s", cli_text(run, w->kind->of), cli_text(run, "status"));
    cli_status_line(c, "%s, %lld s", what, (long long)seconds);
}

int run_wait_for(cli *c, const run_wait *w, mt_json **ret, mt_err **err)
{
    int64_t start = mt_boottime_ns(),
            end = w->timeout_ms ? start + w->timeout_ms * 1000000 : INT64_MAX;
    int64_t longest = c->err_terminal && !c->quiet ? WAIT_TERMINAL_S : WAIT_S;

    for (int64_t seconds = 0;;) {
        _cleanup_free_ char *path = api_run_path(w->kind, w->id);
        _cleanup_free_ char *url =
            xprintf("%s?wait=%lld%s", path, (long long)seconds, w->ready ? "&until=ready" : "");
        _cleanup_json_ mt_json *run = NULL;
        int64_t now, asked = mt_boottime_ns();

        if (api_get_patiently(c, url, w->from_start, &run, err) < 0)
            return -1;
        now = mt_boottime_ns();
        if (reached(w, run) || now >= end) {
            cli_status_line(c, "%s", "");
            *ret = MT_TAKE_PTR(run);
            return reached(w, *ret) ? 0 : 1;
        }
        if (cli_interrupted)
            return mt_fail(err, MT_E_UNREACHABLE, "interrupted");
        show(c, w, run, (now - start) / 1000000000);
        // Should an answer come at once though nothing happened, do not ask in a tight loop.
        if (seconds > 0 && now - asked < 200000000)
            (void)cli_sleep_ms(1000);
        seconds = MT_MIN(longest, (end - now + 999999999) / 1000000000);
    }
}

int run_timeout(cli *c, int64_t *ret_ms, mt_err **err)
{
    const char *timeout = cli_opt(c, "timeout");
    _cleanup_free_ char *duration = NULL;

    *ret_ms = 0;
    if (!timeout)
        return 0;
    duration = cli_duration(c, "timeout", timeout, err);
    return duration && mt_duration_parse(mt_str_of(duration), ret_ms) ? 0 : -1;
}

int run_still_there(const cli *c, const run_wait *w, const mt_json *run)
{
    cli_warn(c, "%s %s is still %s after %.10g s", w->kind->what, w->id, cli_text(run, "status"),
             (double)w->timeout_ms / 1000);
    return CLI_TIME_OUT;
}

int run_stop_each(cli *c, const cli_runs *kind, mt_err **err)
{
    _cleanup_json_ mt_json *all = mt_json_new_array();

    for (int i = 0; i < c->arg_count; i++) {
        _cleanup_free_ char *id = NULL, *path = NULL, *url = NULL;
        mt_json *run = NULL;

        if (api_id_of_run(c, kind, cli_arg(c, i), &id, err) < 0)
            return -1;
        path = api_run_path(kind, id);
        url = xprintf("%s/%s?wait=10", path, kind->stop); // it is a matter of moments
        if (api_post_patiently(c, url, NULL, NULL, &run, err) < 0)
            return -1;
        cli_note(c, "%s %s: %s%s%s", kind->what, id, cli_text(run, "status"),
                 cli_text(run, "endReason")[0] ? ", " : "", cli_text(run, "endReason"));
        (void)mt_json_append(all, run);
    }
    return c->json ? cli_print_json(c->arg_count == 1 ? mt_json_at(all, 0) : all, err) : 0;
}

void run_print_details(const cli *c, const mt_json *run)
{
    const char *details = cli_text(run, "failureDetails");

    (void)fflush(stdout);
    (void)fputs(cli_on(c->err_colour, CLI_RED), stderr);
    cli_print_clean(stderr, details, strlen(details));
    (void)fprintf(stderr, "%s\n", cli_off(c->err_colour));
}

int run_report_end(const cli *c, const mt_json *run)
{
    const char *status = cli_text(run, "status"), *reason = cli_text(run, "endReason");
    const char *details = cli_text(run, "failureDetails");
    bool finished = mt_streq(status, "Finished");
    int64_t from = 0, to = 0;

    if (finished && !details[0]) {
        if (mt_time_parse(mt_str_of(cli_text(run, "dateCreated")), &from) &&
            mt_time_parse(mt_str_of(cli_text(run, "dateEnded")), &to) && to >= from)
            cli_note(c, "Finished in %.2f s", (double)(to - from) / 1e6);
        else
            cli_note(c, "Finished");
    } else if (finished) {
        cli_note(c, "Finished (%s): %s", reason, details);
    } else {
        (void)fprintf(stderr, "%smt: %s%s%s%s%s: ", cli_on(c->err_colour, CLI_RED), status,
                      reason[0] ? " (" : "", reason, reason[0] ? ")" : "", cli_off(c->err_colour));
        cli_print_clean(stderr, details, strlen(details));
        (void)fputc('\n', stderr);
    }
    return finished ? 0 : 1;
}
