// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include "base/clock.h"
#include "base/id.h"

// The server holds an answer for 60 s at most; with a terminal it comes more often, to show that
// something lives. Runs that are searched for a command's ending: the newest so many.
enum { WAIT_S = 30, WAIT_TERMINAL_S = 2, SEARCHED_RUNS = 100 };

void command_ref_done(command_ref *r)
{
    free(r->run);
    free(r->id);
    *r = (command_ref){0};
}

char *command_url(const command_ref *r, const char *more)
{
    _cleanup_free_ char *path = api_path("/v1/capsule-runs/%s/commands/%s", r->run, r->id);

    return xprintf("%s%s", path, more);
}

// --- finding ---

// The command of a run by the ending of its id, NULL for the newest: 0, 1 when there is none.
static int find_in_run(cli *c, const char *run, const char *ending, char **ret, mt_err **err)
{
    _cleanup_free_ char *path =
        ending ? api_path("/v1/capsule-runs/%s/commands?idEnding=%s", run, ending)
               : api_path("/v1/capsule-runs/%s/commands", run);
    _cleanup_json_ mt_json *items = NULL;
    const char *found = NULL;

    if (api_list(c, path, &items, err) < 0)
        return -1;
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const char *id = cli_text(mt_json_at(items, i), "id");
        size_t len = strlen(id), tail = ending ? strlen(ending) : 0;

        if (len < tail || (ending && strcmp(id + len - tail, ending) != 0))
            continue;
        if (ending && found)
            return mt_fail(err, MT_E_CONFLICT, "more than one command ends in '%s': %s and %s",
                           ending, found, id);
        found = id;
    }
    if (!found)
        return 1;
    *ret = xstrdup(found);
    return 0;
}

static int not_an_id(cli *c, const char *word, mt_err **err)
{
    return cli_usage(
        c, err,
        "'%.60s' is no command id: give the whole id, its last 6 characters or more, or @last",
        word);
}

static bool may_name_command(const char *word)
{
    return mt_streq(word, "@last") || api_is_ending(word) || mt_is_id(mt_str_of(word));
}

int command_find_in(cli *c, const char *run, const char *word, command_ref *ret, mt_err **err)
{
    bool last = mt_streq(word, "@last");
    int r;

    if (!may_name_command(word))
        return not_an_id(c, word, err);
    free(ret->run);
    ret->run = xstrdup(run);
    if (mt_is_id(mt_str_of(word))) {
        ret->id = xstrdup(word);
        return 0;
    }
    r = find_in_run(c, ret->run, last ? NULL : word, &ret->id, err);
    if (r > 0 && last)
        return mt_fail(err, MT_E_NOT_FOUND, "@last: run %s has no command yet", ret->run);
    if (r > 0)
        return mt_fail(err, MT_E_NOT_FOUND,
                       "no command of run %s has an id that ends in '%s': mt capsule-command-list "
                       "shows them",
                       ret->run, word);
    return r;
}

// By the whole id: the server knows its run.
static int find_by_id(cli *c, const char *id, command_ref *ret, mt_err **err)
{
    _cleanup_free_ char *url = api_path("/v1/commands/%s", id);
    _cleanup_json_ mt_json *v = NULL;

    if (api_get(c, url, &v, err) < 0)
        return -1;
    *ret = (command_ref){xstrdup(cli_text(v, "runId")), xstrdup(id)};
    return 0;
}

// By an ending, in the newest runs.
static int find_by_ending(cli *c, const char *word, command_ref *ret, mt_err **err)
{
    _cleanup_free_ char *url = xprintf("/v1/capsule-runs?limit=%d", SEARCHED_RUNS);
    _cleanup_json_ mt_json *answer = NULL;
    const mt_json *runs;

    if (api_get(c, url, &answer, err) < 0)
        return -1;
    runs = mt_json_get(answer, "items");
    for (size_t i = 0; i < mt_json_count(runs); i++) {
        const char *run = cli_text(mt_json_at(runs, i), "id");
        int r = find_in_run(c, run, word, &ret->id, err);

        if (r < 0)
            return -1;
        if (r == 0) {
            ret->run = xstrdup(run);
            return 0;
        }
    }
    return mt_fail(err, MT_E_NOT_FOUND,
                   "no command in your newest runs has an id that ends in '%s': give the run, too",
                   word);
}

int command_find(cli *c, command_ref *ret, mt_err **err)
{
    const char *run = c->arg_count > 1 ? cli_arg(c, 0) : NULL;
    const char *word = cli_arg(c, c->arg_count > 1 ? 1 : 0);
    _cleanup_free_ char *run_id = NULL;

    if (!may_name_command(word))
        return not_an_id(c, word, err);
    if (run || mt_streq(word, "@last")) {
        if (api_run_id(c, run ? run : "@last", &run_id, err) < 0)
            return -1;
        return command_find_in(c, run_id, word, ret, err);
    }
    return mt_is_id(mt_str_of(word)) ? find_by_id(c, word, ret, err)
                                     : find_by_ending(c, word, ret, err);
}

// --- waiting ---

bool command_has_ended(const mt_json *v)
{
    const char *status = cli_text(v, "status");

    return mt_streq(status, "Finished") || mt_streq(status, "Error") || mt_streq(status, "Aborted");
}

int command_wait(cli *c, const command_ref *r, int64_t timeout_ms, mt_json **ret, mt_err **err)
{
    int64_t start = mt_boottime_ns(), end = timeout_ms ? start + timeout_ms * 1000000 : INT64_MAX;
    int64_t longest = c->err_terminal && !c->quiet ? WAIT_TERMINAL_S : WAIT_S;

    for (int64_t seconds = 0;;) {
        _cleanup_free_ char *more = xprintf("?wait=%lld", (long long)seconds);
        _cleanup_free_ char *url = command_url(r, more);
        _cleanup_json_ mt_json *v = NULL;
        int64_t now, asked = mt_boottime_ns();

        if (api_get_patiently(c, url, true, &v, err) < 0)
            return -1;
        now = mt_boottime_ns();
        if (command_has_ended(v) || now >= end) {
            cli_status_line(c, "%s", "");
            *ret = MT_TAKE_PTR(v);
            return command_has_ended(*ret) ? 0 : 1;
        }
        if (cli_interrupted)
            return mt_fail(err, MT_E_UNREACHABLE, "interrupted");
        cli_status_line(c, "%s, %lld s", cli_text(v, "status"),
                        (long long)((now - start) / 1000000000));
        // Should an answer come at once though nothing happened, do not ask in a tight loop.
        if (seconds > 0 && now - asked < 200000000)
            (void)cli_sleep_ms(1000);
        seconds = MT_MIN(longest, (end - now + 999999999) / 1000000000);
    }
}

char *command_line_of(const mt_json *v)
{
    const mt_json *words = mt_json_get(v, "arguments");
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);

    (void)mt_buf_adds(&b, cli_text(v, "command"));
    for (size_t i = 0; i < mt_json_count(words); i++)
        (void)mt_buf_addf(&b, " %s", mt_json_text(mt_json_at(words, i), ""));
    return xstrdup(mt_buf_str(&b));
}

// --- the end ---

static void say(const cli *c, const char *sentence)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "%smt:%s ", cli_on(c->err_colour, CLI_RED), cli_off(c->err_colour));
    cli_print_clean(stderr, sentence, strlen(sentence));
    (void)fputc('\n', stderr);
}

static void say_out_of_time(const cli *c, const mt_json *v)
{
    double seconds = (double)cli_int(v, "limitMs") / 1000.0;
    _cleanup_free_ char *text = xprintf("out of time after %.10g s", seconds);

    say(c, text);
}

int command_report_end(const cli *c, const mt_json *v)
{
    const char *reason = cli_text(v, "endReason"), *details = cli_text(v, "failureDetails");
    int64_t code;
    bool has_code = mt_json_as_int64(mt_json_get(v, "exitCode"), &code);

    if (mt_streq(reason, "timeout") && !mt_streq(cli_text(v, "status"), "Aborted")) {
        say_out_of_time(c, v);
        return CLI_TIME_OUT;
    }
    if (mt_streq(cli_text(v, "status"), "Aborted")) {
        _cleanup_free_ char *text = xprintf("the command was aborted: %s", details);

        say(c, text);
        return CLI_OWN_FAILURE;
    }
    if (details[0])
        say(c, details);
    else if (!has_code)
        say(c, "the command was not started");
    return has_code ? (int)(code & 255) : CLI_OWN_FAILURE;
}
