// SPDX-License-Identifier: Apache-2.0
// Runs of capsules: list, show, wait, stop.
#include "cli/run-list.h"
#include "cli/run-wait.h"
#include "cli/story.h"

#include "base/clock.h"

// --- list ---

static int run_list(cli *c, mt_err **err)
{
    return run_list_print(c, &cli_capsule_runs, err);
}

// --- show ---

static int get_run(cli *c, mt_json **ret, mt_err **err)
{
    _cleanup_free_ char *id = NULL, *path = NULL;

    if (api_run_id(c, cli_arg(c, 0), &id, err) < 0)
        return -1;
    if (cli_flag(c, "story"))
        return story_get(c, id, 0, ret, err);
    path = api_path("/v1/capsule-runs/%s", id);
    return api_get(c, path, ret, err);
}

static void print_limits(const mt_json *v)
{
    _cleanup_buf_ mt_buf cpus = MT_BUF_INIT(64);
    _cleanup_free_ char *text = NULL;
    int64_t pids;

    if (!v || !mt_json_as_int64(mt_json_get(v, "pids"), &pids))
        return;
    if (mt_json_given(mt_json_get(v, "cpus")))
        (void)mt_json_write(mt_json_get(v, "cpus"), &cpus, 0);
    else
        (void)mt_buf_adds(&cpus, "all");
    text = xprintf("memory %s, cpus %s, pids %lld, disk %s", cli_text(v, "memory"),
                   mt_buf_str(&cpus), (long long)pids, cli_text(v, "disk"));
    cli_field("limits", text, false);
}

static void print_run(const mt_json *v)
{
    const mt_json *limits = mt_json_get(v, "limitsReached"), *labels = mt_json_get(v, "labels");
    _cleanup_free_ char *capsule =
        xprintf("%s, version %lld", cli_text(v, "capsule"), (long long)cli_int(v, "version"));
    char peak[MT_SIZE_TEXT], memory[MT_SIZE_TEXT + 16];

    cli_field("id", cli_text(v, "id"), false);
    cli_field("namespace", cli_text(v, "namespace"), false);
    cli_field("capsule", capsule, false);
    cli_field("status", cli_text(v, "status"), false);
    cli_field("reason", cli_text(v, "endReason"), false);
    cli_field("details", cli_text(v, "failureDetails"), false);
    for (size_t i = 0; i < mt_json_count(limits); i++)
        cli_field("limit met", cli_limit_words(mt_json_text(mt_json_at(limits, i), "")), false);
    print_limits(mt_json_get(v, "limits"));
    for (size_t i = 0; i < mt_json_count(labels); i++) {
        _cleanup_free_ char *label = xprintf("%s=%s", mt_json_name_at(labels, i).data,
                                             mt_json_text(mt_json_value_at(labels, i), ""));

        cli_field("label", label, false);
    }
    cli_field("started by", cli_text(v, "startedBy"), false);
    cli_field("started", cli_time(v, "dateCreated"), false);
    cli_field("ready", cli_time(v, "dateReady"), false);
    cli_field("ended", cli_time(v, "dateEnded"), false);
    cli_field("longest", cli_text(v, "maxDuration"), false);
    cli_field("image", cli_text(v, "image"), false);
    if (cli_int(v, "memoryPeakBytes") > 0) {
        (void)snprintf(memory, sizeof(memory), "%s at its peak",
                       cli_size(cli_int(v, "memoryPeakBytes"), peak));
        cli_field("memory", memory, false);
    }
}

static void event(const mt_json *v, const char *member, const char *what)
{
    const char *when = cli_text(v, member);

    if (!when[0])
        return;
    (void)printf("%.10s %.12s  ", when, when + 11);
    cli_print_clean(stdout, what, strlen(what));
    (void)fputc('\n', stdout);
}

static void print_phases(const mt_json *phases)
{
    for (size_t i = 0; i < mt_json_count(phases); i++) {
        const mt_json *p = mt_json_at(phases, i);

        (void)printf("    %-24s %10.3f ms\n", cli_text(p, "name"),
                     (double)cli_int(p, "us") / 1000.0);
    }
}

// What happened, in its order: as the run's journal tells it, or where that is no longer kept, as
// the run's record does.
static void print_story(const mt_json *v)
{
    const mt_json *story = mt_json_get(v, "story");
    _cleanup_free_ char *started = story_begin(v), *ended = story_end(v);

    event(v, "dateCreated", started);
    for (size_t i = 0; i < mt_json_count(story); i++)
        event(mt_json_at(story, i), "time", cli_text(mt_json_at(story, i), "what"));
    if (mt_json_count(story) == 0) {
        print_phases(mt_json_get(v, "phases"));
        event(v, "dateReady", "ready");
        event(v, "dateEnded", ended);
    }
    if (!cli_text(v, "dateEnded")[0])
        (void)printf("now %s\n", cli_text(v, "status"));
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;

    if (get_run(c, &run, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(run, err);
    (cli_flag(c, "story") ? print_story : print_run)(run);
    return 0;
}

// --- wait ---

static int run_await(cli *c, mt_err **err)
{
    _cleanup_free_ char *id = NULL;
    _cleanup_json_ mt_json *run = NULL;
    run_wait w = {.kind = &cli_capsule_runs, .from_start = true};
    int r;

    if (run_timeout(c, &w.timeout_ms, err) < 0 || api_run_id(c, cli_arg(c, 0), &id, err) < 0)
        return -1;
    w.id = id;
    w.ready = mt_streq(cli_opt(c, "until"), "ready");
    r = run_wait_for(c, &w, &run, err);
    if (r < 0)
        return -1;
    if (c->json && cli_print_json(run, err) < 0)
        return -1;
    if (r > 0)
        return run_still_there(c, &w, run);
    if (!c->json)
        (void)printf("%s\n", cli_text(run, "status"));
    return run_has_ended(run) ? run_report_end(c, run) : 0;
}

// --- stop ---

static int run_terminate(cli *c, mt_err **err)
{
    return run_stop_each(c, &cli_capsule_runs, err);
}

// --- a longer life ---

static int run_extend(cli *c, mt_err **err)
{
    _cleanup_free_ char *id = NULL, *path = NULL,
                        *duration = cli_duration(c, NULL, cli_arg(c, 1), err);
    _cleanup_json_ mt_json *body = NULL, *run = NULL;

    if (!duration || api_run_id(c, cli_arg(c, 0), &id, err) < 0)
        return -1;
    path = api_path("/v1/capsule-runs/%s/extend", id);
    body = mt_json_new_object();
    (void)mt_json_set(body, "maxDuration", mt_json_new_text(duration));
    if (api_post_patiently(c, path, NULL, body, &run, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(run, err);
    cli_note(c, "run %s: at most %s, until %s", id, cli_text(run, "maxDuration"),
             cli_time(run, "deadline"));
    return 0;
}

static const cli_option list_options[] = {
    {"capsule", 0, "NAME", "of this capsule only", "@capsule"},
    {"status", 0, "STATUS", "Starting, Running, Finished or Error",
     "Starting|Running|Finished|Error"},
    {"all", 'a', NULL, "of all namespaces that you may see"},
    {"limit", 0, "N", "at most so many, the newest (50)"},
    {NULL},
};
static const cli_option get_options[] = {
    {"story", 0, NULL, "what happened, and when"},
    {NULL},
};
static const cli_option await_options[] = {
    {"until", 0, "STATE", "ready or ended (ended)", "ready|ended"},
    {"timeout", 0, "TIME", "wait no longer than that; then exit 124"},
    {NULL},
};
#define RUN_DETAILS                                                                           \
    "RUN is a run's id, the last 6 or more characters of one, or @last: the newest that you " \
    "started."

const cli_command cli_run_commands[] = {
    {"capsule-run-list", "", 0, 0, "list runs, the newest first", NULL,
     "  mt capsule-run-list --capsule sales-report --status Error", list_options, run_list},
    {"capsule-run-get", "RUN", 1, 1, "show a run", RUN_DETAILS,
     "  mt capsule-run-get @last --story", get_options, run_get},
    {"capsule-run-await", "RUN", 1, 1, "wait for a run to end; exit 0 when it Finished",
     RUN_DETAILS, "  mt capsule-run-await @last --timeout 5m", await_options, run_await},
    {"capsule-terminate", "RUN...", 1, -1, "stop runs, whatever they do", RUN_DETAILS,
     "  mt capsule-terminate @last", NULL, run_terminate},
    {"capsule-extend", "RUN TIME", 2, 2, "give a run a new longest life",
     "TIME is counted from the start of the run, as maxDuration is: \"hh:mm:ss\", 90s, 20m, "
     "2h.\n" RUN_DETAILS,
     "  mt capsule-extend @last 20m", NULL, run_extend},
    {NULL},
};
