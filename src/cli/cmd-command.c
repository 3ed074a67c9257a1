// SPDX-License-Identifier: Apache-2.0
// Commands in runs: send, wait, show, list, cancel.
#include "cli/command.h"
#include "cli/copy.h"

#include "base/clock.h"
#include "base/fd.h"

// --- wait ---

static void say_cut(const cli *c, const mt_json *v, const char *member, const char *name)
{
    if (cli_int(v, member) > 0)
        cli_note(c, "(of its %s output the last 65536 characters of %lld)", name,
                 (long long)cli_int(v, member));
}

static int print_outputs(const cli *c, const mt_json *v, mt_err **err)
{
    mt_str out = mt_json_str(mt_json_get(v, "outputStandard"));
    mt_str errors = mt_json_str(mt_json_get(v, "outputError"));

    if (cli_write_out(out.data, out.len, err) < 0)
        return -1;
    (void)mt_write_full(STDERR_FILENO, errors.data, errors.len);
    say_cut(c, v, "outputStandardFullLength", "standard");
    say_cut(c, v, "outputErrorFullLength", "error");
    return 0;
}

static int run_await(cli *c, mt_err **err)
{
    const char *timeout = cli_opt(c, "timeout");
    _cleanup_free_ char *duration = timeout ? cli_duration(c, "timeout", timeout, err) : NULL;
    _cleanup_command_ command_ref ref = {0};
    _cleanup_json_ mt_json *v = NULL;
    int64_t ms = 0, code;
    int r;

    if ((timeout && (!duration || !mt_duration_parse(mt_str_of(duration), &ms))) ||
        command_find(c, &ref, err) < 0 || (r = command_wait(c, &ref, ms, &v, err)) < 0)
        return -1;
    if (c->json && cli_print_json(v, err) < 0)
        return -1;
    if (r > 0) {
        cli_warn(c, "command %s is still %s after %s", ref.id, cli_text(v, "status"), duration);
        return CLI_TIME_OUT;
    }
    if (c->json)
        return 0;
    if (print_outputs(c, v, err) < 0)
        return -1;
    if (mt_json_as_int64(mt_json_get(v, "exitCode"), &code))
        cli_note(c, "exit code %lld", (long long)code);
    return command_report_end(c, v);
}

// --- show ---

static void print_command(const mt_json *v)
{
    const mt_json *limits = mt_json_get(v, "limitsReached");
    _cleanup_free_ char *text = command_line_of(v);
    int64_t code;

    cli_field("id", cli_text(v, "id"), true);
    cli_field("run", cli_text(v, "runId"), true);
    cli_field("command", text, true);
    cli_field("user", cli_text(v, "runAsUser"), true);
    cli_field("folder", cli_text(v, "workingDirectory"), true);
    cli_field("longest", cli_text(v, "maxDuration"), true);
    cli_field("status", cli_text(v, "status"), true);
    cli_field("reason", cli_text(v, "endReason"), true);
    if (mt_json_as_int64(mt_json_get(v, "exitCode"), &code))
        (void)printf("%-10s  %lld\n", "exit code", (long long)code);
    cli_field("details", cli_text(v, "failureDetails"), true);
    for (size_t i = 0; i < mt_json_count(limits); i++)
        cli_field("limit met", cli_limit_words(mt_json_text(mt_json_at(limits, i), "")), true);
    cli_field("sent", cli_time(v, "dateCreated"), true);
    cli_field("started", cli_time(v, "dateStarted"), true);
    cli_field("ended", cli_time(v, "dateEnded"), true);
}

static void print_text(const char *title, const mt_json *text)
{
    mt_str s = mt_json_str(text);

    if (s.len == 0)
        return;
    (void)printf("\n%s:\n", title);
    cli_print_clean(stdout, s.data, s.len);
    if (s.data[s.len - 1] != '\n')
        (void)fputc('\n', stdout);
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_command_ command_ref ref = {0};
    _cleanup_json_ mt_json *v = NULL;
    _cleanup_free_ char *url = NULL;

    if (command_find(c, &ref, err) < 0)
        return -1;
    url = command_url(&ref, "");
    if (api_get(c, url, &v, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(v, err);
    print_command(v);
    print_text("standard output", mt_json_get(v, "outputStandard"));
    print_text("error output", mt_json_get(v, "outputError"));
    return 0;
}

// --- list ---

enum { LINE_SHOWN = 60 };

static void print_list(const cli *c, const mt_json *items)
{
    cli_table *t = CLI_TABLE("ID", "STATUS", "CODE", "REASON", "SENT", "USER", "COMMAND");

    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *text = command_line_of(v);
        char number[24] = "";
        int64_t code;

        if (mt_json_as_int64(mt_json_get(v, "exitCode"), &code))
            (void)snprintf(number, sizeof(number), "%lld", (long long)code);
        if (c->out_terminal && strlen(text) > LINE_SHOWN)
            (void)memcpy(text + LINE_SHOWN - 3, "...", 4);
        CLI_ROW(t, cli_text(v, "id"), cli_text(v, "status"), number, cli_text(v, "endReason"),
                cli_time(v, "dateCreated"), cli_text(v, "runAsUser"), text);
    }
    cli_table_print(c, t);
}

static int run_list(cli *c, mt_err **err)
{
    const char *status = cli_opt(c, "status");
    _cleanup_free_ char *id = NULL, *path = NULL, *url = NULL;
    _cleanup_json_ mt_json *items = NULL;

    if (api_run_id(c, cli_arg(c, 0), &id, err) < 0)
        return -1;
    path = api_path("/v1/capsule-runs/%s/commands", id);
    url = xprintf("%s%s%s", path, status ? "?status=" : "", status ? status : "");
    if (api_list(c, url, &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    print_list(c, items);
    return 0;
}

// --- cancel ---

static int run_cancel(cli *c, mt_err **err)
{
    _cleanup_command_ command_ref ref = {0};
    _cleanup_json_ mt_json *v = NULL;
    _cleanup_free_ char *url = NULL;

    if (command_find(c, &ref, err) < 0)
        return -1;
    url = command_url(&ref, "/cancel");
    if (api_post_patiently(c, url, NULL, NULL, &v, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(v, err);
    cli_note(c, "command %s: %s%s%s", ref.id, cli_text(v, "status"),
             cli_text(v, "endReason")[0] ? ", " : "", cli_text(v, "endReason"));
    return 0;
}

static const cli_option await_options[] = {
    {"timeout", 't', "TIME", "wait no longer than that; then exit 124"},
    {NULL},
};
static const cli_option list_options[] = {
    {"status", 0, "STATUS", "Queued, Running, Finished, Error or Aborted",
     "Queued|Running|Finished|Error|Aborted"},
    {NULL},
};
#define WHICH                                                                                  \
    "RUN and COMMAND are ids, the last 6 or more characters of one, or @last: the newest run " \
    "that\nyou started, the newest command of the run. A whole command id needs no RUN."

const cli_command cli_command_commands[] = {
    {"capsule-exec", "RUN COMMAND [-- WORD...]", 2, -1, "send a command to a run and print its id",
     "COMMAND is shell text: a program, or a whole line with pipes and redirections. Arguments "
     "are\n"
     "words: each reaches the program unchanged. --args splits at commas; what holds a comma goes "
     "in\n"
     "--arg, or after --, where everything is passed as it is.\n"
     "Commands of a run are a queue: one at a time, in order. With --wait the exit status is the\n"
     "command's; 124 when it was out of its --timeout, 125 when mt itself failed or the run ended "
     "first.",
     "  mt capsule-exec @last ls --args \"-l,/tmp/data\" --user sandbox\n"
     "  mt capsule-exec @last --wait python3 -- -c 'print(1, 2)'\n"
     "  mt capsule-exec @last --wait 'sort | uniq -c' --stdin < words.txt",
     command_exec_options, command_exec, "wait"},
    {"capsule-command-await", "[RUN] COMMAND", 1, 2, "wait for a command; show its outputs",
     "Its outputs go to stdout and stderr, \"exit code N\" to stderr; the exit status is the "
     "command's,\n"
     "124 when it was out of its time, 125 when mt itself failed or the run ended first. --json "
     "prints\n"
     "the whole record and exits 0.\n" WHICH,
     "  mt capsule-command-await @last", await_options, run_await, ""},
    {"capsule-command-get", "[RUN] COMMAND", 1, 2, "show a command", WHICH,
     "  mt capsule-command-get @last --json", NULL, run_get, NULL},
    {"capsule-command-list", "RUN", 1, 1, "list the commands of a run, the oldest first", WHICH,
     "  mt capsule-command-list @last --status Running", list_options, run_list, NULL},
    {"capsule-command-cancel", "[RUN] COMMAND", 1, 2, "end a command, or take it from the queue",
     WHICH, "  mt capsule-command-cancel @last", NULL, run_cancel, NULL},
    {NULL},
};
