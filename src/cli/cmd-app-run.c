// SPDX-License-Identifier: Apache-2.0
// Apps: list, show, start.
#include "cli/app-wait.h"
#include "cli/resource.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/utf8.h"

#include <errno.h>

enum { INPUTS_MAX = 48 << 20 };

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

// --- inputs ---

static int read_stdin(mt_buf *b, mt_err **err)
{
    int r = mt_read_all(STDIN_FILENO, b);

    if (r == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE, "standard input is longer than %d MiB",
                       INPUTS_MAX >> 20);
    return r < 0 ? mt_fail_errno(err, r, "cannot read standard input") : 0;
}

// --inputs as an object that may be added to; an empty one without it.
static int whole_inputs(cli *c, mt_json **ret, mt_err **err)
{
    const char *text = cli_opt(c, "inputs");
    _cleanup_buf_ mt_buf from_stdin = MT_BUF_INIT(INPUTS_MAX);
    _cleanup_json_ mt_json *v = NULL;
    mt_str s = mt_str_of(text);

    if (!text) {
        *ret = mt_json_new_object();
        return 0;
    }
    if (mt_streq(text, "-")) {
        if (read_stdin(&from_stdin, err) < 0)
            return -1;
        s = (mt_str){mt_buf_str(&from_stdin), from_stdin.len};
    }
    if (mt_json_parse(s.data, s.len, NULL, &v, err) < 0) {
        c->usage = true;
        return mt_wrap(err, "--inputs");
    }
    if (mt_json_kind_of(v) != MT_JSON_OBJECT)
        return cli_usage(c, err, "--inputs is a JSON object, {\"NAME\": VALUE}, not %s",
                         mt_json_kind_name(mt_json_kind_of(v)));
    *ret = mt_json_copy(v);
    return 0;
}

static bool has_input(const mt_json *inputs, mt_str name)
{
    for (size_t i = 0; i < mt_json_count(inputs); i++) {
        mt_str other = mt_json_name_at(inputs, i);

        if (other.len == name.len && strncasecmp(other.data, name.data, name.len) == 0)
            return true;
    }
    return false;
}

// Each value is a text, whatever is in it: the server knows the types.
static int add_inputs(cli *c, mt_json *inputs, mt_err **err)
{
    const char *value;
    mt_str name;

    for (int at = 0; (value = cli_opt_next_rest(c, "input-NAME", &at, &name)) != NULL;) {
        int len = (int)MT_MIN(name.len, (size_t)60);

        if (!mt_utf8_valid(name.data, name.len) || !mt_utf8_valid(value, strlen(value)))
            return cli_usage(c, err, "--input-%.*s is not UTF-8", len, name.data);
        if (has_input(inputs, name))
            return cli_usage(c, err, "the input '%.*s' is given twice", len, name.data);
        (void)mt_json_set_str(inputs, name, mt_json_new_text(value));
    }
    return mt_json_ok(inputs) ? 0 : mt_fail_oom(err);
}

// --- start ---

static int start_body(cli *c, mt_json **ret, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *inputs = NULL;
    uint64_t version;

    if (resource_version(c, &version, err) < 0 || whole_inputs(c, &inputs, err) < 0 ||
        add_inputs(c, inputs, err) < 0)
        return -1;
    if (version)
        (void)mt_json_set(body, "version", mt_json_new_int((int64_t)version));
    (void)mt_json_set(body, "inputs", MT_TAKE_PTR(inputs));
    *ret = MT_TAKE_PTR(body);
    return 0;
}

static int start(cli *c, mt_json **ret, mt_err **err)
{
    _cleanup_json_ mt_json *body = NULL;
    _cleanup_free_ char *path = NULL;
    char key[MT_ID_TEXT];
    const char *ns;

    if (start_body(c, &body, err) < 0 || cli_namespace(c, &ns, err) < 0)
        return -1;
    path = api_path("/v1/namespaces/%s/apps/%s/runs", ns, cli_arg(c, 0));
    mt_id_new(key);
    return api_post_patiently(c, path, key, body, ret, err);
}

static int run_start(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;

    if (start(c, &run, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(run, err);
    (void)printf("%s\n", cli_text(run, "id"));
    return 0;
}

static int run_run(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;

    if (start(c, &run, err) < 0)
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
     start_options, run_run},
    {"app-start", "APP", 1, 1, "start a run of an app and print its id", INPUTS,
     "  mt app-start analyst --input-question=\"How many units?\"", start_options, run_start},
    {NULL},
};
