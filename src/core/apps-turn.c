// SPDX-License-Identifier: Apache-2.0
// A run's turn on a worker: its machine goes on until it waits, ends, or has had its share.
#include "core/apps-internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>

enum {
    SLICE_STEPS = 100000,
    TURN_US = 5 * 1000,
    LATER_US = 1000 * 1000,
};

app_step app_later(app_live *l, const char *what, const mt_err *err)
{
    mt_log(MT_LOG_WARNING, what, {"appRun", l->id}, {"error", err ? mt_err_sentence(err) : ""});
    (void)pthread_mutex_lock(&l->apps->lock);
    l->wake_at = mt_now_us() + LATER_US;
    (void)pthread_mutex_unlock(&l->apps->lock);
    return APP_STEP_LATER;
}

// ---- loading ----

void app_unload(app_live *l)
{
    l->vm = mt_vm_free(l->vm);
    mt_app_call_list_done(&l->replay);
    app_notes_done(&l->notes);
    app_program_unref(l->apps, MT_TAKE_PTR(l->program));
    l->calls = 0;
    l->replay_at = 0;
    l->replayed = false;
}

static app_step cannot_load(app_live *l, const mt_err *err)
{
    mt_code code = mt_err_code(err);

    if (code == MT_E_OOM || code == MT_E_IO || code == MT_E_UNAVAILABLE)
        return app_later(l, "cannot take up an app run", err);
    return app_end_error(l, "replayDiverged", mt_err_sentence(err));
}

static app_step load(app_live *l)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    _cleanup_json_ mt_json *inputs = NULL;
    _cleanup_err_ mt_err *err = NULL;

    app_unload(l);
    if (mt_store_app_run_get(l->apps->options.store, NULL, l->id, &run, &err) < 0 ||
        app_program_get(l->apps, l->namespace_id, l->app, l->version, &l->program, &err) < 0)
        return cannot_load(l, err);
    if (mt_json_parse(run.inputs, strlen(run.inputs), NULL, &inputs, &err) < 0 ||
        app_machine(l, inputs, &l->vm, &err) < 0)
        return cannot_load(l, err);
    return APP_STEP_ON;
}

// The store did not take what was printed or set: a limit of the run, or a fault that may pass;
// then the run is done again, and notes the same.
app_step app_notes_lost(app_live *l, const mt_err *err)
{
    mt_code code = mt_err_code(err);
    const mt_app_end end = {
        .status = "Error", .end_reason = "callLimit", .failure_details = mt_err_sentence(err)};

    app_call_done(l);
    app_unload(l);
    if (code != MT_E_CAPACITY_EXCEEDED && code != MT_E_TOO_LARGE)
        return app_later(l, "cannot note what a run printed or set", err);
    return app_end(l, &end);
}

// ---- ends ----

// What it started and still lives is stopped, as nobody waits for it any more.
static int stop_children(app_live *l, mt_err **err)
{
    const mt_apps_options *o = &l->apps->options;
    _cleanup_(mt_app_children_done) mt_app_children children = {0};
    char by[MT_STORE_BY];

    if (mt_store_app_run_children(o->store, l->id, &children, err) < 0)
        return -1;
    for (size_t i = 0; i < children.capsule_run_count; i++)
        if (o->stop_capsule_run(children.capsule_runs[i], l->id, o->data, err) < 0)
            return -1;
    for (size_t i = 0; i < children.interaction_run_count; i++)
        if (o->stop_interaction_run(children.interaction_runs[i], l->id, o->data, err) < 0)
            return -1;
    (void)snprintf(by, sizeof(by), MT_BY_APP_RUN "%s", l->id);
    for (size_t i = 0; i < children.app_run_count; i++)
        if (app_cancel(l->apps, children.app_runs[i], by, true, err) < 0)
            return -1;
    return 0;
}

app_step app_end(app_live *l, const mt_app_end *end)
{
    _cleanup_err_ mt_err *err = NULL;

    if (app_notes_flush(l, &err) < 0 || app_notes_settle(l, &err) < 0)
        return app_notes_lost(l, err);
    if ((strcmp(end->status, "Finished") != 0 && stop_children(l, &err) < 0) ||
        mt_store_app_run_end(l->apps->options.store, l->id, end, &err) < 0)
        return app_later(l, "cannot write how an app run ended", err);
    mt_log(MT_LOG_INFO, "app run ended", {"appRun", l->id}, {"app", l->app},
           {"reason", end->end_reason});
    return APP_STEP_ENDED;
}

// With where the program was, when its machine is there.
static app_step end_where(app_live *l, mt_app_end *end)
{
    _cleanup_free_ char *stack = l->vm ? mt_vm_stack(l->vm) : NULL;

    end->failure_place = l->vm ? mt_vm_place(l->vm) : NULL;
    end->failure_stack = stack;
    return app_end(l, end);
}

app_step app_end_error(app_live *l, const char *reason, const char *sentence)
{
    mt_app_end end = {.status = "Error", .end_reason = reason, .failure_details = sentence};

    return end_where(l, &end);
}

static app_step end_timeout(app_live *l)
{
    char sentence[64], text[MT_DURATION_TEXT];
    mt_app_end end = {.status = "Error",
                      .end_reason = "timeout",
                      .failure_details = sentence,
                      .limit_ms = l->max_duration_ms};

    (void)snprintf(sentence, sizeof(sentence), "out of time: duration.max %s",
                   mt_duration_format(l->max_duration_ms, text));
    return end_where(l, &end);
}

static app_step end_cancelled(app_live *l, const char *by, bool by_parent)
{
    char sentence[MT_STORE_BY + 32];
    mt_app_end end = {.status = "Error",
                      .end_reason = by_parent ? "parentEnded" : "cancelled",
                      .failure_details = sentence,
                      .cancelled_by = by};

    (void)snprintf(sentence, sizeof(sentence),
                   by_parent ? "%s, which started it, has ended" : "cancelled by %s", by);
    return end_where(l, &end);
}

static app_step end_too_large(app_live *l)
{
    char sentence[96];
    const mt_app_end end = {.status = "Error",
                            .end_reason = "failed",
                            .failure_code = "TooLarge",
                            .failure_details = sentence};

    (void)snprintf(sentence, sizeof(sentence), "what main returned is over %d MiB as JSON",
                   APP_JSON_MAX >> 20);
    return app_end(l, &end);
}

static app_step end_returned(app_live *l)
{
    _cleanup_buf_ mt_buf value = MT_BUF_INIT(APP_JSON_MAX);
    mt_app_end end = {.status = "Finished", .end_reason = "returned"};
    int r = mt_vm_result(l->vm, &value);

    if (r == -EMSGSIZE)
        return end_too_large(l);
    if (r < 0)
        return app_later(l, "no memory for what a run returned", NULL);
    end.return_value = mt_buf_str(&value);
    return app_end(l, &end);
}

static app_step end_over_share(app_live *l)
{
    char sentence[128];
    uint64_t share;

    (void)pthread_mutex_lock(&l->apps->lock);
    share = app_memory_share(l->apps);
    (void)pthread_mutex_unlock(&l->apps->lock);
    (void)snprintf(sentence, sizeof(sentence),
                   "the app runs of this user need more than the %llu MiB of memory that one user "
                   "may have of the server's now",
                   (unsigned long long)(share >> 20));
    return app_end_error(l, "outOfMemory", sentence);
}

static app_step end_failed(app_live *l)
{
    static const char *const REASONS[] = {
        [MT_VM_END_ERROR] = "failed",
        [MT_VM_END_MEMORY] = "outOfMemory",
        [MT_VM_END_DEPTH] = "tooDeep",
    };
    const mt_vm_failure *f = mt_vm_failure_of(l->vm);
    mt_app_end end = {.status = "Error"};

    if (f->end == MT_VM_END_SYSTEM) {
        // Not the program's fault: from its journal, when there is memory again.
        app_unload(l);
        return app_later(l, "no memory for an app run", NULL);
    }
    end.end_reason = REASONS[f->end];
    end.failure_details = f->message;
    end.failure_code = f->code;
    end.failure_place = f->place;
    end.failure_stack = f->stack;
    return app_end(l, &end);
}

// What ends a run from outside, at any moment.
static app_step look_outside(app_live *l)
{
    char by[MT_STORE_BY];
    bool cancelled, by_parent;

    (void)pthread_mutex_lock(&l->apps->lock);
    cancelled = l->cancelled;
    by_parent = l->by_parent;
    memcpy(by, l->by, sizeof(by));
    (void)pthread_mutex_unlock(&l->apps->lock);
    if (cancelled)
        return end_cancelled(l, by, by_parent);
    return l->deadline && mt_now_us() >= l->deadline ? end_timeout(l) : APP_STEP_ON;
}

// ---- the turn ----

static app_step run_machine(app_live *l)
{
    switch (mt_vm_run(l->vm, SLICE_STEPS)) {
    case MT_VM_CALLS:
        return app_call_go_on(l);
    case MT_VM_FINISHED:
        return end_returned(l);
    case MT_VM_FAILED:
        return end_failed(l);
    case MT_VM_RUNS:
        break;
    }
    return APP_STEP_ON;
}

static app_step one_step(app_live *l)
{
    _cleanup_err_ mt_err *err = NULL;
    app_step step = look_outside(l);

    if (step != APP_STEP_ON)
        return step;
    if (app_notes_check(l, &err) < 0)
        return app_notes_lost(l, err);
    if (l->place != app_place_of(l))
        return APP_STEP_MOVE;
    if (l->calling)
        return app_call_go_on(l);
    if (!l->vm)
        return load(l);
    return run_machine(l);
}

// By steps of the machine, by calls, and by the clock: what the others wait for.
static app_step take_turn(app_live *l)
{
    int64_t until = mt_monotonic_us() + TURN_US;
    app_step step = APP_STEP_ON;

    do {
        step = one_step(l);
    } while (step == APP_STEP_ON && mt_monotonic_us() < until);
    return step;
}

static void leave(app_live *l)
{
    mt_apps *apps = l->apps;

    (void)pthread_mutex_lock(&apps->lock);
    app_forget(l);
    (void)pthread_mutex_unlock(&apps->lock);
    app_live_free(l);
}

static bool waits(app_step step)
{
    return step == APP_STEP_PARK || step == APP_STEP_LATER;
}

// What it takes, and what becomes of it for that. Both ways out leave it without its machine.
static app_step settle_memory(app_live *l, app_step step)
{
    size_t bytes = app_memory_of(l);
    app_verdict verdict;

    (void)pthread_mutex_lock(&l->apps->lock);
    verdict = app_memory_judge(l, bytes, waits(step));
    (void)pthread_mutex_unlock(&l->apps->lock);
    if (verdict == APP_MEMORY_FITS)
        return step;
    if (verdict == APP_MEMORY_OVER)
        step = end_over_share(l);
    app_call_done(l);
    app_unload(l);
    bytes = app_memory_of(l);
    (void)pthread_mutex_lock(&l->apps->lock);
    (void)app_memory_judge(l, bytes, true);
    (void)pthread_mutex_unlock(&l->apps->lock);
    return step;
}

// A turn, and what has to be done after it.
static app_step whole_turn(app_live *l)
{
    _cleanup_err_ mt_err *err = NULL;
    app_step step = take_turn(l);

    if (step == APP_STEP_ENDED)
        return step;
    // What it printed is seen at once, whatever it does next.
    if (app_notes_flush(l, &err) < 0)
        step = app_notes_lost(l, err);
    return step == APP_STEP_ENDED ? step : settle_memory(l, step);
}

void app_turn(void *live)
{
    app_live *l = live;
    mt_apps *apps = l->apps;
    app_step step;

    (void)pthread_mutex_lock(&apps->lock);
    l->state = APP_TURN;
    l->poked = false;
    l->wake_at = 0;
    (void)pthread_mutex_unlock(&apps->lock);
    step = whole_turn(l);
    if (step == APP_STEP_ENDED) {
        leave(l);
        return;
    }
    (void)pthread_mutex_lock(&apps->lock);
    l->state = APP_PARKED;
    l->place = app_place_of(l);
    if (!waits(step) || l->poked)
        app_queue(l);
    else
        app_clock_set(l, l->wake_at);
    (void)pthread_mutex_unlock(&apps->lock);
}
