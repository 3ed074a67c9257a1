// SPDX-License-Identifier: Apache-2.0
// Capsules: list, show, start.
#include "cli/resource.h"
#include "cli/run-wait.h"

#include "base/id.h"
#include "base/utf8.h"

static int run_list(cli *c, mt_err **err)
{
    return resource_list(c, "capsules", err);
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;
    const char *ns;

    if (cli_namespace(c, &ns, err) < 0 ||
        resource_get(c, ns, "capsules", cli_arg(c, 0), &v, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(v, err);
    resource_print_head(v);
    (void)fputc('\n', stdout);
    return cli_print_json(mt_json_get(v, "definition"), err);
}

// --- start ---

// The body of a start; NULL where all is as the capsule says.
static int start_body(cli *c, mt_json **ret, mt_err **err)
{
    const char *longest = cli_opt(c, "max-duration");
    _cleanup_json_ mt_json *body = mt_json_new_object(), *environment = NULL, *labels = NULL;
    _cleanup_free_ char *duration = longest ? cli_duration(c, "max-duration", longest, err) : NULL;
    uint64_t number;

    if ((longest && !duration) || resource_version(c, &number, err) < 0 ||
        cli_pairs(c, "env", &environment, err) < 0 || cli_pairs(c, "label", &labels, err) < 0)
        return -1;
    if (number)
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
    run_wait w = {.kind = &cli_capsule_runs, .id = id};

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
        if (resource_get(c, ns, "capsules", cli_arg(c, 0), &capsule, err) < 0)
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
