// SPDX-License-Identifier: Apache-2.0
// help, version: all from the table.
#include "cli/cli.h"

const cli_command *cli_command_at(size_t i)
{
    for (const cli_group *g = cli_groups; g->title; g++) {
        for (const cli_command *k = g->commands; k->name && g->title[0] != '-'; k++, i--) {
            if (i == 0)
                return k;
        }
    }
    return NULL;
}

static const char *command_name_at(size_t i, void *data)
{
    const cli_command *k = cli_command_at(i);

    return k ? k->name : NULL;
}

const cli_command *cli_command_find(const char *name)
{
    for (const cli_group *g = cli_groups; g->title; g++) {
        for (const cli_command *k = g->commands; k->name; k++) {
            if (mt_streq(k->name, name))
                return k;
        }
    }
    return NULL;
}

static bool ends_in_word(const char *name, const char *word)
{
    size_t len = strlen(name), n = strlen(word);

    return n > 0 && n + 1 < len && name[len - n - 1] == '-' && mt_streq(name + len - n, word);
}

char *cli_command_hint(const char *name)
{
    const char *found[3] = {NULL}, *is;
    size_t count = 0;

    // "exec" is "capsule-exec", "logs" that of a capsule or an app, "start" one of three.
    for (size_t i = 0; (is = command_name_at(i, NULL)) != NULL; i++) {
        if (ends_in_word(is, name) && count++ < MT_ARRAY_SIZE(found))
            found[count - 1] = is;
    }
    if (count == 2)
        return xprintf("did you mean '%s' or '%s'?", found[0], found[1]);
    if (count == 3)
        return xprintf("did you mean '%s', '%s' or '%s'?", found[0], found[1], found[2]);
    if (count != 1)
        found[0] = mt_nearest(mt_str_of(name), command_name_at, NULL);
    return found[0] ? xprintf("did you mean '%s'?", found[0]) : xstrdup("mt help lists them");
}

static void print_options(const cli_option *options)
{
    for (const cli_option *o = options; o && o->name; o++) {
        _cleanup_free_ char *left = xprintf("%s--%s%s%s", o->letter ? "" : "    ", o->name,
                                            o->value ? " " : "", o->value ? o->value : "");
        char letter[5] = "";

        if (o->letter)
            (void)snprintf(letter, sizeof(letter), "-%c, ", o->letter);
        (void)printf("  %s%-*s  %s\n", letter, o->letter ? 24 : 28, left, o->help);
    }
}

static void print_command_help(const cli *c, const cli_command *k)
{
    const char *bold = cli_on(c->out_colour, CLI_BOLD), *off = cli_off(c->out_colour);

    (void)printf("%smt %s%s%s%s\n    %s\n", bold, k->name, k->arguments[0] ? " " : "", k->arguments,
                 off, k->summary);
    if (k->details)
        (void)printf("\n%s\n", k->details);
    (void)printf("\n%sOptions%s\n", bold, off);
    print_options(k->options);
    print_options(cli_common_options);
    if (k->example)
        (void)printf("\n%sExample%s\n%s\n", bold, off, k->example);
}

void cli_print_help(const cli *c, const cli_command *command)
{
    const char *bold = cli_on(c->out_colour, CLI_BOLD), *off = cli_off(c->out_colour);

    if (command) {
        print_command_help(c, command);
        return;
    }
    (void)printf("%smt%s: the command line of maitento\n\n    mt COMMAND [ARGUMENTS] [OPTIONS]\n",
                 bold, off);
    for (const cli_group *g = cli_groups; g->title && g->title[0] != '-'; g++) {
        if (g->title[0])
            (void)printf("\n%s%s%s\n", bold, g->title, off);
        for (const cli_command *k = g->commands; k->name; k++)
            (void)printf("  %-24s %s\n", k->name, k->summary);
    }
    (void)printf(
        "\nmt help COMMAND, or mt COMMAND --help, says more and gives an example.\n"
        "Files of a file system are named /vfs/NAME/PATH, or /vfs/NAME@NAMESPACE/PATH.\n"
        "Exit status: 0 done, 1 the thing failed, 2 wrong call, 3 not found, 4 no access,\n"
        "5 conflict, 6 server not reached or outcome unknown.\n");
}

static int run_help(cli *c, mt_err **err)
{
    const char *name = cli_arg(c, 0);
    const cli_command *k = name ? cli_command_find(name) : NULL;

    if (name && !k) {
        _cleanup_free_ char *hint = cli_command_hint(name);

        c->command = NULL; // "mt help" lists them
        return cli_usage(c, err, "there is no command '%.60s': %s", name, hint);
    }
    cli_print_help(c, k);
    return 0;
}

static int run_version(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;

    if (!c->json) {
        (void)puts("mt " MT_VERSION);
        return 0;
    }
    v = mt_json_new_object();
    (void)mt_json_set(v, "version", mt_json_new_text(MT_VERSION));
    return cli_print_json(v, err);
}

const cli_command cli_help_commands[] = {
    {"help", "[COMMAND]", 0, 1, "say how a command is used", NULL, "  mt help cp", NULL, run_help},
    {"version", "", 0, 0, "print the version", NULL, "  mt version", NULL, run_version},
    {NULL},
};
