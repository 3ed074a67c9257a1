// SPDX-License-Identifier: Apache-2.0
// Capsules: list, show, start.
#include "cli/run-wait.h"

#include "base/id.h"
#include "base/utf8.h"

static int run_list(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    cli_table *t;

    if (api_list_in_namespace(c, "capsules", &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    t = CLI_TABLE("NAME", "VERSION", "CHANGED");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *version = xprintf("%lld", (long long)cli_int(v, "version"));

        CLI_ROW(t, cli_text(v, "name"), version, cli_time(v, "dateUpdated"));
    }
    cli_table_print(c, t);
    return 0;
}

static int check_version(cli *c, const char *text, uint64_t *ret, mt_err **err)
{
    if (mt_parse_u64(mt_str_of(text), INT32_MAX, ret) && *ret > 0)
        return 0;
    return cli_usage(c, err, "--version is a number from 1, not '%.40s'", text);
}

static int get_capsule(cli *c, const char *ns, mt_json **ret, mt_err **err)
{
    const char *version = cli_opt(c, "version");
    _cleanup_free_ char *path = api_path("/v1/namespaces/%s/capsules/%s", ns, cli_arg(c, 0)),
                        *url = NULL;
    uint64_t number = 0;

    if (version && check_version(c, version, &number, err) < 0)
        return -1;
    url = version ? xprintf("%s?version=%llu", path, (unsigned long long)number) : xstrdup(path);
    return api_get(c, url, ret, err);
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;
    const char *ns;

    if (cli_namespace(c, &ns, err) < 0 || get_capsule(c, ns, &v, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(v, err);
    (void)printf(
        "name       %s\nnamespace  %s\nversion    %lld of %zu\nmade       %s\nchanged    %s\n\n",
        cli_text(v, "name"), cli_text(v, "namespace"), (long long)cli_int(v, "version"),
        mt_json_count(mt_json_get(v, "versions")), cli_time(v, "dateCreated"),
        cli_time(v, "dateUpdated"));
    return cli_print_json(mt_json_get(v, "definition"), err);
}

// --- start ---

// The body of a start; NULL where all is as the capsule says.
static int start_body(cli *c, mt_json **ret, mt_err **err)
{
    const char *longest = cli_opt(c, "max-duration"), *version = cli_opt(c, "version");
    _cleanup_json_ mt_json *body = mt_json_new_object(), *environment = NULL, *labels = NULL;
    _cleanup_free_ char *duration = longest ? cli_duration(c, "max-duration", longest, err) : NULL;
    uint64_t number = 0;

    if ((longest && !duration) || (version && check_version(c, version, &number, err) < 0) ||
        cli_pairs(c, "env", &environment, err) < 0 || cli_pairs(c, "label", &labels, err) < 0)
        return -1;
    if (version)
        (void)mt_json_set(body, "version", mt_json_new_int((int64_t)number));
    if (environment)
        (void)mt_json_set(body, "environment", MT_TAKE_PTR(environment));
    if (duration)
        (void)mt_json_set(body, "maxDuration", mt_json_new_text(duration));
    if (labels)
        (void)mt_json_set(body, "labels", MT_TAKE_PTR(labels));
    *ret = mt_json_count(body) ? MT_TAKE_PTR(body) : NULL;
    return 0;
}

// Each try has a key of its own: a refused one was refused for good, one that was cut off is
// repeated inside with its key.
static int start(cli *c, const char *url, const mt_json *body, mt_json **ret, mt_err **err)
{
    for (;;) {
        char key[MT_ID_TEXT];
        mt_err *cause = NULL;
        int64_t wait;

        mt_id_new(key);
        if (api_post_patiently(c, url, key, body, ret, &cause) == 0)
            return 0;
        wait = c->retry_after_ms > 0 ? c->retry_after_ms : 2000;
        if (mt_err_code(cause) != MT_E_CAPACITY_EXCEEDED || !cli_flag(c, "wait-for-capacity")) {
            mt_err_move(err, cause);
            return -1;
        }
        cli_status_line(c, "waiting for capacity: %s", mt_err_sentence(cause));
        if (!cli_sleep_ms(wait)) {
            mt_err_move(err, cause);
            return -1;
        }
        (void)mt_err_free(cause);
    }
}

static int wait_for_end(cli *c, const char *id, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;
    run_wait w = {.id = id};

    if (run_wait_for(c, &w, &run, err) < 0) {
        cli_note(c,
                 "run %s goes on; mt capsule-run-await %s waits for it, mt capsule-terminate %s "
                 "stops it",
                 id, id, id);
        return -1;
    }
    if (c->json && cli_print_json(run, err) < 0)
        return -1;
    return run_report_end(c, run);
}

static int dry_run(cli *c, const char *path, const mt_json *body, mt_err **err)
{
    _cleanup_free_ char *url = xprintf("%s?dryRun=true", path);
    _cleanup_json_ mt_json *plan = NULL;

    if (api_call(c, "POST", url, body, &plan, err) < 0)
        return -1;
    return cli_print_json(plan, err);
}

static int run_start(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = NULL, *capsule = NULL, *run = NULL;
    _cleanup_free_ char *path = NULL;
    bool wait = cli_flag(c, "wait");
    const char *ns;

    if (wait && cli_flag(c, "no-wait"))
        return cli_usage(c, err, "--wait and --no-wait exclude each other");
    if (start_body(c, &body, err) < 0 || cli_namespace(c, &ns, err) < 0)
        return -1;
    path = api_path("/v1/namespaces/%s/capsules/%s/runs", ns, cli_arg(c, 0));
    if (cli_flag(c, "dry-run"))
        return dry_run(c, path, body, err);
    if (!wait && !cli_flag(c, "no-wait")) {
        if (get_capsule(c, ns, &capsule, err) < 0)
            return -1;
        wait = mt_json_is_true(mt_json_pointer(capsule, MT_STR("/definition/autoTerminate")));
    }
    if (start(c, path, body, &run, err) < 0)
        return -1;
    if (c->json && !wait)
        return cli_print_json(run, err);
    if (!c->json)
        (void)printf("%s\n", cli_text(run, "id"));
    (void)fflush(stdout); // whoever reads has the id while we wait
    return wait ? wait_for_end(c, cli_text(run, "id"), err) : 0;
}

static const cli_option get_options[] = {
    {"version", 0, "N", "an older version"},
    {NULL},
};
static const cli_option start_options[] = {
    {"wait", 0, NULL, "wait for the end of the run (as for capsules with autoTerminate)"},
    {"no-wait", 0, NULL, "return at once"},
    {"wait-for-capacity", 0, NULL, "where the server is full, wait and try again"},
    {"version", 0, "N", "start an older version"},
    {"env", 'e', "NAME=VALUE", "an environment variable for its commands; may be repeated"},
    {"label", 'l', "NAME=VALUE", "a label of the run; may be repeated"},
    {"max-duration", 0, "TIME", "longest life of this run: \"hh:mm:ss\", 90s, 5m, 2h"},
    {"dry-run", 0, NULL, "print what would be done"},
    {NULL},
};

const cli_command cli_capsule_commands[] = {
    {"capsule-list", "", 0, 0, "list the capsules of a namespace", NULL, "  mt capsule-list", NULL,
     run_list},
    {"capsule-get", "NAME", 1, 1, "show a capsule", NULL, "  mt capsule-get sales-report",
     get_options, run_get},
    {"capsule-start", "NAME", 1, 1, "start a run of a capsule and print its id",
     "For a capsule with autoTerminate it waits for the end and exits 0 only when the run "
     "Finished;\n"
     "for others it returns at once.",
     "  mt capsule-start sales-report\n  RUN=$(mt capsule-start workbench --env MODE=fast)",
     start_options, run_start},
    {NULL},
};
