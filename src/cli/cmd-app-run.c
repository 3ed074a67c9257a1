// SPDX-License-Identifier: Apache-2.0
// Apps: list, show, start.
#include "cli/app-wait.h"
#include "cli/resource.h"
#include "cli/run-start.h"

static int run_list(cli *c, mt_err **err)
{
    return resource_list(c, "apps", err);
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;
    const mt_json *inputs;
    const char *ns;

    if (cli_namespace(c, &ns, err) < 0 || resource_get(c, ns, "apps", cli_arg(c, 0), &v, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(v, err);
    resource_print_head(v);
    inputs = mt_json_get(v, "inputs");
    for (size_t i = 0; i < mt_json_count(inputs); i++)
        (void)printf("input      %-10s  %s\n", cli_text(mt_json_at(inputs, i), "type"),
                     cli_text(mt_json_at(inputs, i), "name"));
    if (cli_text(v, "returns")[0])
        (void)printf("returns    %s\n", cli_text(v, "returns"));
    (void)fputc('\n', stdout);
    return cli_print_json(mt_json_get(v, "definition"), err);
}

// --- start ---

static int run_app_start(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;

    if (run_start(c, "apps", &run, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(run, err);
    (void)printf("%s\n", cli_text(run, "id"));
    return 0;
}

static int run_app_run(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;

    if (run_start(c, "apps", &run, err) < 0)
        return -1;
    return app_show_to_end(c, cli_text(run, "id"), 0, err);
}

static const cli_option get_options[] = {
    {"version", 0, "N", "an older version"},
    {NULL},
};
static const cli_option start_options[] = {
    {"input-NAME", 0, "VALUE", "an input by its name, without regard to case; may be repeated",
     NULL, "NAME"},
    {"inputs", 0, "JSON", "inputs as one object, or - for that on standard input"},
    {"version", 0, "N", "an older version of the app"},
    {NULL},
};
#define INPUTS                                                                                    \
    "VALUE is taken as it is, whatever is in it, and made what the app's parameter is: an input " \
    "that is\na jsonObject or jsonArray is JSON. mt app-get APP shows what an app takes."

const cli_command cli_app_run_commands[] = {
    {"app-list", "", 0, 0, "list the apps of a namespace", NULL, "  mt app-list", NULL, run_list},
    {"app-get", "APP", 1, 1, "show an app and what it takes", NULL, "  mt app-get analyst",
     get_options, run_get},
    {"app-run", "APP", 1, 1, "run an app and show what it prints and returns",
     "What the program prints goes to stdout as it comes, then an empty line and what it returned: "
     "a string\nas it is, anything else as JSON, nothing for void. --quiet: what it returned "
     "alone. --json: the whole\nrecord, with what it printed in consoleOutputs. When it fails, "
     "why is on stderr, and the exit status\nis 1. Ctrl-C ends mt, not the run.\n" INPUTS,
     "  mt app-run analyst --input-question \"Which region brought in the most revenue?\"\n"
     "  mt app-run report --inputs '{\"month\": 11, \"regions\": [\"North\", \"West\"]}' --quiet",
     start_options, run_app_run},
    {"app-start", "APP", 1, 1, "start a run of an app and print its id", INPUTS,
     "  mt app-start analyst --input-question=\"How many units?\"", start_options, run_app_start},
    {NULL},
};
