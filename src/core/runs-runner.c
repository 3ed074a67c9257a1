// SPDX-License-Identifier: Apache-2.0
// The runner's socket: what it is told and asked, and what it says of runs and of itself.
#include "core/runs-internal.h"

#include "base/clock.h"
#include "base/log.h"

enum {
    RUNNER_RETRY_MS = 200,
    QUIET_TRIES = 10,   // before the log says that the runner cannot be reached
    PATIENT_TRIES = 20, // of a sweep; then less often
    PATIENT_MS = 1000,
};

void runs_send_runner(mt_runs *runs, mt_buf *b)
{
    if (!runs->runner || mt_frame_conn_send(runs->runner, b) == 0)
        return;
    mt_frame_conn_close(MT_TAKE_PTR(runs->runner));
    mt_timer_in_ms(runs->runner_timer, RUNNER_RETRY_MS);
}

void runs_send_start(live *l)
{
    _cleanup_buf_ mt_buf b = MT_BUF_SECRET_INIT(MT_FRAME_RUNNER_MAX);

    l->state = SENT;
    l->starts++;
    l->tag = ++l->runs->next_tag;
    (void)mt_put_start(&b, l->tag, (mt_str){mt_buf_str(&l->plan), l->plan.len});
    runs_send_runner(l->runs, &b);
}

void runs_send_forget(mt_runs *runs, const char *run_id, mt_forget what)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    (void)mt_put_sweep(&b, 0, run_id, what); // nobody waits for the answer
    runs_send_runner(runs, &b);
}

void runs_ask_info(mt_runs *runs)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    (void)mt_put_hello(&b, 0);
    runs_send_runner(runs, &b);
}

void runs_ask_prune(mt_runs *runs)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    (void)mt_put_prune(&b, 0);
    runs_send_runner(runs, &b);
}

static void on_failed(mt_runs *runs, const mt_frame *frame)
{
    live *l = runs_find_tag(runs, frame->tag);
    mt_code code;
    mt_str sentence;
    _cleanup_free_ char *text = NULL;

    if (!l || mt_get_failed(frame, &code, &sentence) < 0)
        return;
    if (l->state == SWEEPING && code == MT_E_CONFLICT) {
        l->state = FOLLOWED; // somebody lives: he is asked again
        mt_timer_in_ms(l->timer, ++l->tries < PATIENT_TRIES ? RUNS_FOLLOW_RETRY_MS : PATIENT_MS);
    } else if (l->state == SWEEPING) {
        runs_swept(l);
    } else if (code == MT_E_ALREADY_EXISTS) {
        runs_follow(l); // the runner took it before a restart of this server
    } else {
        text = mt_str_dup(sentence);
        runs_end_here(l, MT_END_START_FAILED, text ? text : "the runner could not start it");
    }
}

static void store_info(mt_runs *runs, const mt_frame *frame)
{
    _cleanup_arena_ mt_arena *arena = mt_arena_new(MT_FRAME_REPLY_MAX);
    mt_info info = {0};

    if (!arena || mt_get_info(frame, &info, arena) < 0)
        return;
    (void)pthread_mutex_lock(&runs->lock);
    mt_buf_clear(&runs->info);
    (void)mt_buf_add(&runs->info, frame->payload, frame->payload_len);
    runs->info_us = mt_monotonic_us();
    runs->info_answered = runs->info_asked;
    runs->memory_cap = info.memory_cap_bytes;
    runs->disk_cap = info.scratch_bytes;
    runs->disk_free = info.scratch_free_bytes;
    (void)pthread_cond_broadcast(&runs->info_changed);
    (void)pthread_mutex_unlock(&runs->lock);
}

static void on_pruned(mt_runs *runs, const mt_frame *frame)
{
    (void)pthread_mutex_lock(&runs->lock);
    if (mt_get_pruned(frame, &runs->pruned_layers, &runs->pruned_bytes) == 0)
        runs->prune_answered = runs->prune_asked;
    (void)pthread_cond_broadcast(&runs->info_changed);
    (void)pthread_mutex_unlock(&runs->lock);
}

static void on_runner_frame(const mt_frame *frame, void *data)
{
    mt_runs *runs = data;
    char id[MT_ID_TEXT];
    live *l;

    switch (frame->type) {
    case MT_FRAME_INFO:
        store_info(runs, frame);
        break;
    case MT_FRAME_PRUNED:
        on_pruned(runs, frame);
        break;
    case MT_FRAME_FAILED:
        on_failed(runs, frame);
        break;
    case MT_FRAME_STARTED:
    case MT_FRAME_SWEPT:
    case MT_FRAME_GONE:
        if (mt_get_run_id(frame, id) < 0 || !(l = runs_find(runs, id)) || l->ending)
            break;
        if (frame->type == MT_FRAME_STARTED) {
            mt_timer_stop(l->timer);
            mt_buf_done(&l->plan);
            runs_follow(l);
        } else if (frame->type == MT_FRAME_SWEPT) {
            runs_swept(l);
        } else if (!l->conn && l->state >= FOLLOWED) { // else its START is still on its way
            runs_swept(l);
        }
        break;
    default:
        break;
    }
}

static void set_runner_there(mt_runs *runs, bool there)
{
    (void)pthread_mutex_lock(&runs->lock);
    runs->runner_there = there;
    (void)pthread_cond_broadcast(&runs->info_changed);
    (void)pthread_mutex_unlock(&runs->lock);
}

// What it was sent last it may have taken or not: the folder of a run is the first thing that it
// makes.
static void unsend(mt_runs *runs)
{
    for (size_t i = 0; i < RUNS_BUCKETS; i++) {
        live *next;

        for (live *l = runs->buckets[i]; l; l = next) {
            next = l->next;
            if (l->state != SENT || l->ending)
                continue;
            l->state = NEW;
            if (runs_has_folder(runs, l->id))
                runs_follow(l);
            else if (l->by[0])
                runs_end_stopped(l);
        }
    }
}

static void on_runner_closed(void *data)
{
    mt_runs *runs = data;

    runs->runner = NULL;
    unsend(runs);
    set_runner_there(runs, false);
    mt_log_plain(MT_LOG_WARNING, "the runner is gone; its runs go on, new ones wait for it");
    mt_timer_in_ms(runs->runner_timer, RUNNER_RETRY_MS);
}

void runs_connect_runner(mt_timer *timer, void *data)
{
    static const mt_frame_conn_events EVENTS = {on_runner_frame, on_runner_closed, NULL};
    mt_runs *runs = data;
    int r = mt_frame_conn_open(runs->options.loop, runs->runner_socket, MT_FRAME_REPLY_MAX, &EVENTS,
                               runs, &runs->runner);

    if (r < 0) {
        if (++runs->runner_tries == QUIET_TRIES) {
            mt_log(MT_LOG_WARNING, "cannot reach the runner yet", {"socket", runs->runner_socket},
                   {"error", strerror(-r)});
        }
        mt_timer_in_ms(runs->runner_timer, RUNNER_RETRY_MS);
        return;
    }
    runs->runner_tries = QUIET_TRIES; // a runner that goes is told of by other words
    set_runner_there(runs, true);
    runs_ask_info(runs);
    for (size_t i = 0; i < RUNS_BUCKETS; i++) {
        live *next;

        for (live *l = runs->buckets[i]; l; l = next) {
            next = l->next;
            if (l->ending)
                continue; // a start that was stopped before the runner had it
            if (l->state == NEW || l->state == SENT)
                runs_send_start(l);
            else if (l->state == SWEEPING)
                runs_sweep(l);
        }
    }
}
