// SPDX-License-Identifier: Apache-2.0
#include "cli/app-wait.h"

#include "cli/copy.h"
#include "cli/run-wait.h"

#include "base/clock.h"

// The server holds an answer for 60 s at most; with a terminal it comes more often, to show that
// something lives.
enum { WAIT_S = 30, WAIT_TERMINAL_S = 2 };

// Should an answer come at once though nothing happened, do not ask in a tight loop.
static void slow_down(int64_t asked_ns)
{
    if (mt_boottime_ns() - asked_ns < 200000000)
        (void)cli_sleep_ms(1000);
}

// --- lines ---

int app_lines_next(app_lines *l, int64_t seconds, mt_json **ret, mt_err **err)
{
    _cleanup_free_ char *path = api_run_path(&cli_app_runs, l->id);
    _cleanup_free_ char *url = xprintf("%s/%s?after=%lld&wait=%lld", path, l->what,
                                       (long long)l->after, (long long)seconds);
    _cleanup_json_ mt_json *v = NULL;
    int64_t asked = mt_boottime_ns();
    const mt_json *items;

    if (cli_interrupted)
        return mt_fail(err, MT_E_UNREACHABLE, "interrupted");
    if (api_get_patiently(l->c, url, true, &v, err) < 0)
        return -1;
    items = mt_json_get(v, "items");
    l->after = cli_int(v, "next");
    l->ended = mt_json_is_true(mt_json_get(v, "ended"));
    if (seconds > 0 && mt_json_count(items) == 0 && !l->ended)
        slow_down(asked);
    *ret = mt_json_ref(items);
    return 0;
}

// --- waiting ---

typedef struct waiting {
    cli *c;
    const char *id;
    run_wait w;
    bool shows; // the console
    app_lines lines;
    int64_t shown; // lines
    bool mid_line; // what was shown last did not end its line
    int64_t begun_ns, end_ns;
    bool ended;
} waiting;

static int64_t seconds_to_wait(const waiting *k)
{
    int64_t longest = k->c->err_terminal && !k->c->quiet ? WAIT_TERMINAL_S : WAIT_S;
    int64_t left = (k->end_ns - mt_boottime_ns() + 999999999) / 1000000000;

    return MT_MAX(MT_MIN(longest, left), (int64_t)0);
}

static void add_text(mt_buf *b, const mt_json *v)
{
    mt_str text = mt_json_str(v);

    (void)mt_buf_add(b, text.data, text.len);
}

static int show_lines(waiting *k, const mt_json *items, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(SIZE_MAX / 2);

    for (size_t i = 0; i < mt_json_count(items); i++)
        add_text(&text, mt_json_get(mt_json_at(items, i), "text"));
    if (text.failed)
        return mt_fail_oom(err);
    k->shown += (int64_t)mt_json_count(items);
    if (text.len == 0)
        return 0;
    cli_status_line(k->c, "%s", "");
    k->mid_line = text.data[text.len - 1] != '\n';
    return cli_write_out(text.data, text.len, err);
}

static int next_lines(waiting *k, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;

    if (app_lines_next(&k->lines, seconds_to_wait(k), &items, err) < 0 ||
        show_lines(k, items, err) < 0)
        return -1;
    k->ended = k->lines.ended;
    // Not where it would stand behind what the program printed last.
    if (!k->mid_line)
        cli_status_line(k->c, "Running, %lld s",
                        (long long)((mt_boottime_ns() - k->begun_ns) / 1000000000));
    return 0;
}

static int show_to_end(waiting *k, mt_err **err)
{
    int r;

    do
        r = next_lines(k, err);
    while (r == 0 && !k->ended && mt_boottime_ns() < k->end_ns);
    cli_status_line(k->c, "%s", "");
    return r;
}

static char *says(cli *c, const mt_json *run, void *data)
{
    const char *reason = cli_text(run, "waitingFor");

    (void)c;
    (void)data;
    return xprintf("%s%s%s", cli_text(run, "status"), reason[0] ? ", waits for " : "", reason);
}

static int wait_unseen(const waiting *k, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;

    return run_wait_for(k->c, &k->w, &run, err);
}

static int get_record(const waiting *k, mt_json **ret, mt_err **err)
{
    _cleanup_free_ char *path = api_run_path(&cli_app_runs, k->id);
    _cleanup_free_ char *url = xprintf("%s%s", path, k->c->json ? "?console=true" : "");

    return api_get_patiently(k->c, url, true, ret, err);
}

static void say_lost(const waiting *k, const mt_json *run)
{
    int64_t lost = cli_int(run, "consoleOutputsFullCount") - k->shown;

    if (k->shows && k->ended && lost > 0)
        cli_warn(k->c, "%lld lines that it printed are no longer kept", (long long)lost);
}

// 0 with the run as it ended, 1 when the time is over (*ret is the run), -1.
static int wait_for_end(waiting *k, mt_json **ret, mt_err **err)
{
    if ((k->shows ? show_to_end(k, err) : wait_unseen(k, err)) < 0 || get_record(k, ret, err) < 0)
        return -1;
    say_lost(k, *ret);
    return run_has_ended(*ret) ? 0 : 1;
}

// --- the end ---

// A string as it is, anything else as JSON; nothing for void.
static int print_value(const waiting *k, const mt_json *value, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(SIZE_MAX / 2);

    if (!mt_json_given(value))
        return 0;
    if (mt_json_kind_of(value) == MT_JSON_STRING)
        add_text(&text, value);
    else
        (void)mt_json_write(value, &text, 0);
    if (text.failed)
        return mt_fail_oom(err);
    if (k->shows)
        (void)fputs(k->mid_line ? "\n\n" : "\n", stdout);
    (void)fwrite(mt_buf_str(&text), 1, text.len, stdout);
    (void)fputc('\n', stdout);
    return 0;
}

static void print_failure(const cli *c, const mt_json *run)
{
    const mt_json *stack = mt_json_get(run, "failureStack");
    const char *place = cli_text(run, "failurePlace");

    run_print_details(c, run);
    for (size_t i = 0; i < mt_json_count(stack); i++) {
        const mt_json *at = mt_json_at(stack, i);
        _cleanup_free_ char *line =
            xprintf("  at %s (%s)", cli_text(at, "function"), cli_text(at, "place"));

        cli_note(c, "%s", line);
    }
    if (mt_json_count(stack) == 0 && place[0])
        cli_note(c, "  at %s", place);
}

static int report_end(const waiting *k, const mt_json *run, mt_err **err)
{
    bool finished = mt_streq(cli_text(run, "status"), "Finished");
    const mt_json *value = finished ? mt_json_get(run, "returnValue") : NULL;

    // On a terminal what comes next, or the prompt, begins on a line of its own.
    if (k->mid_line && k->c->out_terminal && !mt_json_given(value))
        (void)fputc('\n', stdout);
    if (!finished)
        print_failure(k->c, run);
    else if (!k->c->json && print_value(k, value, err) < 0)
        return -1;
    return finished ? 0 : 1;
}

int app_show_to_end(cli *c, const char *id, int64_t timeout_ms, mt_err **err)
{
    int64_t now = mt_boottime_ns();
    waiting k = {.c = c,
                 .id = id,
                 .w = {.kind = &cli_app_runs,
                       .id = id,
                       .timeout_ms = timeout_ms,
                       .from_start = true,
                       .says = says},
                 .shows = !c->json && !c->quiet,
                 .lines = {.c = c, .id = id, .what = "console"},
                 .begun_ns = now,
                 .end_ns = timeout_ms ? now + timeout_ms * 1000000 : INT64_MAX - 1000000000};
    _cleanup_json_ mt_json *run = NULL;
    int r = wait_for_end(&k, &run, err);

    if (r < 0) {
        if (cli_interrupted || api_error_passes(*err))
            cli_note(c,
                     "app run %s goes on; mt app-await %s waits for it, mt app-cancel %s stops it",
                     id, id, id);
        return -1;
    }
    if (c->json && cli_print_json(run, err) < 0)
        return -1;
    if (r == 0)
        return report_end(&k, run, err);
    return run_still_there(c, &k.w, run);
}
