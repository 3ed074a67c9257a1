// SPDX-License-Identifier: Apache-2.0
// Interactions: list, show, ask.
#include "cli/interaction-wait.h"
#include "cli/resource.h"
#include "cli/run-start.h"

static int run_list(cli *c, mt_err **err)
{
    return resource_list(c, "interactions", err);
}

static void print_inputs(const mt_json *definition)
{
    const mt_json *inputs = mt_json_get(mt_json_get(definition, "inputs"), "prompts");

    for (size_t i = 0; i < mt_json_count(inputs); i++) {
        const mt_json *v = mt_json_at(inputs, i);
        const char *description = cli_text(v, "description");

        (void)printf("input      %-8s  %s%s",
                     mt_json_is_true(mt_json_get(v, "required")) ? "required" : "optional",
                     cli_text(v, "name"), description[0] ? "  " : "");
        cli_print_flat(stdout, description);
        (void)fputc('\n', stdout);
    }
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;
    const char *ns;

    if (cli_namespace(c, &ns, err) < 0 ||
        resource_get(c, ns, "interactions", cli_arg(c, 0), &v, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(v, err);
    resource_print_head(v);
    print_inputs(mt_json_get(v, "definition"));
    (void)fputc('\n', stdout);
    return cli_print_json(mt_json_get(v, "definition"), err);
}

static int run_interaction_start(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;

    if (run_start(c, "interactions", &run, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(run, err);
    (void)printf("%s\n", cli_text(run, "id"));
    return 0;
}

static int run_interaction_run(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;

    if (run_start(c, "interactions", &run, err) < 0)
        return -1;
    return interaction_wait(c, cli_text(run, "id"), 0, err);
}

static const cli_option get_options[] = {
    {"version", 0, "N", "an older version"},
    {NULL},
};
// The first two are of interaction-run alone.
static const cli_option options[] = {
    {"stream", 0, NULL, "show what the model says while it says it"},
    {"show-attempts", 0, NULL, "what the model was asked and answered, on stderr"},
    {"input-NAME", 0, "VALUE", "an input by its name, without regard to case; may be repeated",
     NULL, "NAME"},
    {"inputs", 0, "JSON", "inputs as one object, or - for that on standard input"},
    {"version", 0, "N", "an older version of the interaction"},
    {NULL},
};
#define INPUTS                                                                                  \
    "VALUE is taken as it is, whatever is in it. mt interaction-get INTERACTION shows what it " \
    "takes."

#define STREAM                                                                                     \
    "--stream: what the model says, as it comes. Any text that is the answer is shown on stdout; " \
    "what has to fit a schema,\nand with --json, on stderr, attempt by attempt, and the answer "   \
    "alone "                                                                                       \
    "on stdout.\n"

const cli_command cli_interaction_commands[] = {
    {"interaction-list", "", 0, 0, "list the interactions of a namespace", NULL,
     "  mt interaction-list", NULL, run_list},
    {"interaction-get", "INTERACTION", 1, 1, "show an interaction and what it takes", NULL,
     "  mt interaction-get next-command", get_options, run_get},
    {"interaction-run", "INTERACTION", 1, 1, "ask a model, and print what it answers",
     "What it answered goes to stdout alone: JSON that fits the interaction's schema, else any "
     "text.\n--json: the whole record. Where there is no answer, why is on stderr, and the exit "
     "status is 1.\nCtrl-C ends mt, not the run.\n" STREAM INPUTS,
     "  mt interaction-run next-command --input-question \"Which region brought in the most "
     "revenue?\"\n"
     "  mt interaction-run next-command --inputs - --show-attempts <inputs.json\n"
     "  mt interaction-run write-letter --input-to Ada --stream",
     options, run_interaction_run},
    {"interaction-start", "INTERACTION", 1, 1, "start a run of an interaction and print its id",
     INPUTS, "  mt interaction-start next-command --input-question=\"How many units?\"",
     &options[2], run_interaction_start},
    {NULL},
};
