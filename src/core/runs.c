// SPDX-License-Identifier: Apache-2.0
// A live run here goes through these states; every arrow is caused by the runner, the run's journal
// or the clock, never guessed:
//
//   NEW ──sent to the runner──> SENT ──STARTED──> FOLLOWED ──`ended` record stored──> (forgotten)
//    │                           │ FAILED             │ connection lost
//    └──deadline─────────────────┴──> ended           └──> again, then SWEEP, then the journal file
#include "core/runs-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/run-plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { HELD_BYTES = 64 << 20 };

// ---- table of live runs ----

static size_t bucket_of(const char *id)
{
    return mt_str_hash(mt_str_of(id)) % RUNS_BUCKETS;
}

live *runs_find(mt_runs *runs, const char *id)
{
    for (live *l = runs->buckets[bucket_of(id)]; l; l = l->next)
        if (strcmp(l->id, id) == 0)
            return l;
    return NULL;
}

live *runs_find_tag(mt_runs *runs, uint32_t tag)
{
    for (size_t i = 0; i < RUNS_BUCKETS; i++)
        for (live *l = runs->buckets[i]; l; l = l->next)
            if (l->tag == tag && (l->state == SENT || l->state == SWEEPING))
                return l;
    return NULL;
}

live *runs_add(mt_runs *runs, const char *id, const char *user_id, const mt_plan_limits *limits)
{
    live *l = calloc(1, sizeof(*l));
    size_t b = bucket_of(id);

    if (!l)
        return NULL;
    l->timer = mt_timer_new(runs->options.loop, runs_on_timer, l);
    if (!l->timer) {
        free(l);
        return NULL;
    }
    (void)snprintf(l->id, sizeof(l->id), "%s", id);
    (void)snprintf(l->user_id, sizeof(l->user_id), "%s", user_id);
    l->runs = runs;
    l->limits = *limits;
    l->plan = (mt_buf)MT_BUF_SECRET_INIT(MT_FRAME_RUNNER_MAX);
    l->phases.max = 16384;
    l->held.max = HELD_BYTES;
    l->feed.behind = true;
    l->next = runs->buckets[b];
    runs->buckets[b] = l;
    return l;
}

void runs_forget(live *l)
{
    live **at = &l->runs->buckets[bucket_of(l->id)];

    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->ending = true;
    runs_sync_here(l);
    runs_sessions_lost(l);
    mt_vfs_watch_leave(l->runs->watch, l->id);
    mt_frame_conn_close(l->conn);
    mt_timer_free(l->timer);
    mt_buf_done(&l->plan);
    mt_buf_done(&l->phases);
    mt_buf_done(&l->held);
    free(l);
}

void runs_close_connection(live *l)
{
    mt_frame_conn_close(MT_TAKE_PTR(l->conn));
    runs_sessions_lost(l);
    runs_sync_here(l);
}

// ---- making and taking up ----

int mt_runs_new(const mt_runs_options *options, mt_runs **ret, mt_err **err)
{
    mt_runs *runs = calloc(1, sizeof(*runs));
    pthread_condattr_t attr;

    if (!runs)
        return mt_fail_oom(err);
    runs->options = *options;
    runs->info.max = MT_FRAME_REPLY_MAX;
    (void)pthread_mutex_init(&runs->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&runs->info_changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    runs->runner_socket = strdup(options->runner_socket);
    runs->runner_timer = mt_timer_new(options->loop, runs_connect_runner, runs);
    if (!runs->runner_socket || !runs->runner_timer) {
        mt_runs_free(runs);
        return mt_fail_oom(err);
    }
    if (runs_watch_disk(runs, err) < 0 ||
        mt_tail_reader_new(options->loop, options->runs_dirfd, &runs->tails, err) < 0) {
        mt_runs_free(runs);
        return -1;
    }
    mt_timer_in_ms(runs->runner_timer, 0);
    *ret = runs;
    return 0;
}

void mt_runs_free(mt_runs *runs)
{
    if (!runs)
        return;
    mt_tail_reader_free(runs->tails);
    for (size_t i = 0; i < RUNS_BUCKETS; i++)
        while (runs->buckets[i])
            runs_forget(runs->buckets[i]);
    mt_vfs_watch_free(runs->watch);
    mt_frame_conn_close(runs->runner);
    mt_timer_free(runs->runner_timer);
    mt_buf_done(&runs->info);
    runs_forget_promised(runs);
    free(runs->runner_socket);
    (void)pthread_cond_destroy(&runs->info_changed);
    (void)pthread_mutex_destroy(&runs->lock);
    free(runs);
}

mt_loop *mt_runs_loop(const mt_runs *runs)
{
    return runs->options.loop;
}

bool runs_has_folder(mt_runs *runs, const char *id)
{
    return faccessat(runs->options.runs_dirfd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// Puts the plan of a run that the runner may not have seen into its entry. A plan that cannot be
// made any more (its file system is gone) ends the run with that sentence.
static void replan(live *l, const mt_run *run, const mt_capsule_def *def)
{
    _cleanup_arena_ mt_arena *arena = mt_arena_new(64 << 20);
    _cleanup_err_ mt_err *err = NULL;
    const mt_runs_options *o = &l->runs->options;
    mt_plan plan = {0};

    if (!arena)
        (void)mt_fail_oom(&err);
    else if (mt_run_plan(o->store, run, o->limits, arena, &plan, &err) == 0 &&
             mt_runs_fit(l->runs, def, &plan.limits, &err) == 0)
        (void)mt_plan_encode(&plan, &l->plan, &err);
    mt_plan_forget(&plan);
    if (err)
        runs_end_here(l, MT_END_START_FAILED, mt_err_sentence(err));
    else
        mt_timer_at(l->timer, plan.deadline_ns);
}

// As if it had never been sent: with the time that it has left.
void runs_start_again(live *l)
{
    _cleanup_capsule_def_ mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    _cleanup_err_ mt_err *err = NULL;
    mt_run run = {0};

    mt_frame_conn_close(MT_TAKE_PTR(l->conn));
    l->state = NEW;
    l->tries = 0;
    if (l->by[0]) {
        runs_end_stopped(l);
        return;
    }
    mt_log(MT_LOG_WARNING, "a run had not begun when the runner died: it is sent again",
           {"run", l->id});
    mt_buf_clear(&l->plan);
    if (mt_store_run_get(l->runs->options.store, NULL, l->id, &run, &err) < 0 ||
        mt_run_definition(&run, l->runs->options.limits, &def, &err) < 0)
        runs_end_here(l, MT_END_START_FAILED, mt_err_sentence(err));
    else
        replan(l, &run, &def);
    mt_run_done(&run);
    if (!l->ending && l->runs->runner)
        runs_send_start(l);
}

int mt_runs_adopt(mt_runs *runs, mt_err **err)
{
    _cleanup_err_ mt_err *unsettled = NULL;
    mt_run_list list = {0};

    if (mt_store_run_live(runs->options.store, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        const mt_run *run = &list.items[i];
        _cleanup_capsule_def_ mt_capsule_def def = MT_CAPSULE_DEF_INIT;
        mt_plan_limits limits = {0};
        live *l;

        if (mt_run_definition(run, runs->options.limits, &def, NULL) == 0)
            limits = mt_run_limits(&def, runs->options.limits);
        l = runs_add(runs, run->id, run->started_by_id, &limits);
        if (!l || runs_promised_before(runs, l->user_id, &limits) < 0) {
            mt_run_list_done(&list);
            return mt_fail_oom(err);
        }
        l->stored = (uint64_t)run->seq;
        memcpy(l->by, run->stop_requested_by, sizeof(l->by));
        l->extended_ms = run->extended_ms;
        l->extended_us = run->date_created + run->extended_ms * 1000;
        runs_watch_mounts(l, run, &def);
        if (runs_has_folder(runs, run->id))
            runs_follow(l);
        else
            replan(l, run, &def);
    }
    if (list.count) {
        char count[24];

        (void)snprintf(count, sizeof(count), "%zu", list.count);
        mt_log(MT_LOG_INFO, "taking up live runs", {"runs", count});
    }
    mt_run_list_done(&list);
    // What a journal has told of a run's end holds before anybody is served: keys that were made
    // inside it, above all, are refused.
    if (mt_store_settle(runs->options.store, &unsettled) < 0)
        mt_log(MT_LOG_ERROR, "cannot store how runs ended", {"error", mt_err_sentence(unsettled)});
    return 0;
}
