// SPDX-License-Identifier: Apache-2.0
// capsule-exec: sends a command to a run, and with --wait is as if it had run here.
#include "cli/command.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/utf8.h"

#include <errno.h>

enum { STDIN_MAX = 8 << 20 };

// --- arguments ---

static int add_word(cli *c, mt_json *list, const char *word, size_t len, mt_err **err)
{
    if (!mt_utf8_valid(word, len))
        return cli_usage(c, err,
                         "argument %zu is not UTF-8: put such bytes in a file and give its name",
                         mt_json_count(list) + 1);
    (void)mt_json_append(list, mt_json_new_string((mt_str){word, len}));
    return 0;
}

// "a,b": at every comma, without quoting or escapes; "" is one empty argument.
static int add_split(cli *c, mt_json *list, const char *text, mt_err **err)
{
    for (;;) {
        size_t len = strcspn(text, ",");

        if (add_word(c, list, text, len, err) < 0)
            return -1;
        if (!text[len])
            return 0;
        text += len + 1;
    }
}

// --args and --arg in the order given, then the words after "--".
static int arguments(cli *c, mt_json *list, mt_err **err)
{
    if (c->words_from > 2)
        return cli_usage(c, err,
                         "'%.60s' is too much: arguments of the command go after -- (mt "
                         "capsule-exec RUN COMMAND -- WORD...), or in --args A,B or --arg WORD",
                         cli_arg(c, 2));
    for (int i = 0; i < c->given_count; i++) {
        const char *name = c->given[i].option->name, *value = c->given[i].value;
        int r = 0;

        if (mt_streq(name, "args"))
            r = add_split(c, list, value, err);
        else if (mt_streq(name, "arg"))
            r = add_word(c, list, value, strlen(value), err);
        if (r < 0)
            return r;
    }
    for (int i = 2; i < c->arg_count; i++) {
        if (add_word(c, list, cli_arg(c, i), strlen(cli_arg(c, i)), err) < 0)
            return -1;
    }
    return 0;
}

// --- the body ---

static int add_stdin(cli *c, mt_json *body, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(STDIN_MAX);
    int r = mt_read_all(STDIN_FILENO, &b);

    if (r == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "standard input is longer than %d MiB: copy it to a file system instead",
                       STDIN_MAX >> 20);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read standard input");
    if (!mt_utf8_valid(mt_buf_str(&b), b.len))
        return cli_usage(c, err,
                         "--stdin takes text, and this is not UTF-8: copy it to a file system");
    (void)mt_json_set(body, "stdin", mt_json_new_string((mt_str){mt_buf_str(&b), b.len}));
    return 0;
}

static void add_option(const cli *c, mt_json *body, const char *option, const char *member)
{
    if (cli_opt(c, option))
        (void)mt_json_set(body, member, mt_json_new_text(cli_opt(c, option)));
}

static int make_body(cli *c, mt_json **ret, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *words = mt_json_new_array(),
                           *environment = NULL;
    const char *timeout = cli_opt(c, "timeout"), *command = cli_arg(c, 1);
    _cleanup_free_ char *duration = timeout ? cli_duration(c, "timeout", timeout, err) : NULL;

    if ((timeout && !duration) || arguments(c, words, err) < 0 ||
        cli_pairs(c, "env", &environment, err) < 0)
        return -1;
    if (!mt_utf8_valid(command, strlen(command)))
        return cli_usage(c, err, "the command is not UTF-8");
    (void)mt_json_set(body, "command", mt_json_new_text(command));
    if (mt_json_count(words) > 0)
        (void)mt_json_set(body, "arguments", MT_TAKE_PTR(words));
    add_option(c, body, "user", "runAsUser");
    add_option(c, body, "dir", "workingDirectory");
    if (duration)
        (void)mt_json_set(body, "maxDuration", mt_json_new_text(duration));
    if (cli_flag(c, "async"))
        (void)mt_json_set(body, "async", mt_json_new_bool(true));
    if (environment)
        (void)mt_json_set(body, "environment", MT_TAKE_PTR(environment));
    if (cli_flag(c, "stdin") && add_stdin(c, body, err) < 0)
        return -1;
    *ret = MT_TAKE_PTR(body);
    return 0;
}

// --- sending ---

static int wait_for_end(cli *c, const command_ref *r, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;
    int status = c->json ? command_wait(c, r, 0, &v, err) : command_follow(c, r, &v, err);

    if (status < 0) {
        cli_note(c,
                 "command %s goes on; mt capsule-command-await %s waits for it, mt "
                 "capsule-command-cancel %s stops it",
                 r->id, r->id, r->id);
        return -1;
    }
    return c->json ? cli_print_json(v, err) : command_report_end(c, v);
}

int command_exec(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = NULL, *sent = NULL;
    _cleanup_command_ command_ref r = {0};
    _cleanup_free_ char *path = NULL;
    char key[MT_ID_TEXT];

    if (make_body(c, &body, err) < 0 || api_run_id(c, cli_arg(c, 0), &r.run, err) < 0)
        return -1;
    path = api_path("/v1/capsule-runs/%s/commands", r.run);
    mt_id_new(key);
    if (api_post_patiently(c, path, key, body, &sent, err) < 0)
        return -1;
    r.id = xstrdup(cli_text(sent, "id"));
    if (cli_flag(c, "wait"))
        return wait_for_end(c, &r, err);
    if (c->json)
        return cli_print_json(sent, err);
    (void)printf("%s\n", r.id);
    return 0;
}

const cli_option command_exec_options[] = {
    {"args", 0, "A,B", "arguments, split at every comma; \"\" is one empty argument"},
    {"arg", 0, "WORD", "one argument, whatever is in it; may be repeated"},
    {"user", 'u', "NAME", "the user that it runs as (maitento)", "@capsuleUser"},
    {"timeout", 't', "TIME", "its own longest time, from its start: \"hh:mm:ss\", 90s, 5m"},
    {"async", 0, NULL, "the next command does not wait for this one"},
    {"wait", 'w', NULL, "show its outputs as they come and exit with its exit code"},
    {"stdin", 'i', NULL, "its standard input is mt's (text, whole before it starts)"},
    {"dir", 0, "PATH", "the folder it starts in (the user's home)"},
    {"env", 'e', "NAME=VALUE", "an environment variable; may be repeated"},
    {NULL},
};
