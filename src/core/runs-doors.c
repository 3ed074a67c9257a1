// SPDX-License-Identifier: Apache-2.0
// What other threads ask of live runs: start, terminate, exec, cancel, extend. Each is stored first
// where it must not be forgotten, then posted to the loop.
#include "core/runs-internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>

// What the commands that wait in one run may hold together.
#define WAITING_BYTES ((int64_t)256 << 20)

struct start {
    mt_runs *runs;
    bool *started;
    char id[MT_ID_TEXT], user_id[MT_ID_TEXT];
    mt_plan_limits limits;
    int64_t deadline_ns;
    mt_buf plan;
    uint32_t vfs_count;
    char vfs[MT_PLAN_MOUNTS_MAX][MT_ID_TEXT];
};

static void start_free(struct start *s)
{
    mt_buf_done(&s->plan);
    free(s);
}

static void start_posted(void *data)
{
    struct start *s = data;
    live *l = runs_add(s->runs, s->id, s->user_id, &s->limits);

    if (!l) {
        mt_log(MT_LOG_ERROR, "out of memory: a run is started at the next restart", {"run", s->id});
        start_free(s);
        return;
    }
    l->plan = s->plan;
    for (uint32_t i = 0; i < s->vfs_count; i++)
        mt_vfs_watch_join(s->runs->watch, s->id, s->vfs[i]);
    mt_timer_at(l->timer, s->deadline_ns);
    if (s->runs->runner)
        runs_send_start(l);
    free(s);
}

// On the thread that stored it, after the commit. The run outlives a kill of this server from here
// on; a power loss takes it and what it has done away together.
static void on_run_stored(int result, const mt_err *err, void *data)
{
    struct start *s = data;

    if (result == 0)
        *s->started = true;
    if (result != 0) {
        start_free(s);
    } else if (mt_loop_post(s->runs->options.loop, start_posted, s) < 0) {
        mt_log(MT_LOG_ERROR, "out of memory: a run is started at the next restart", {"run", s->id});
        start_free(s);
    }
}

int mt_runs_start(mt_runs *runs, const mt_plan *plan, const mt_run_new *record, mt_run *ret,
                  bool *ret_started, mt_err **err)
{
    struct start *s = calloc(1, sizeof(*s));

    *ret_started = false;
    if (!s)
        return mt_fail_oom(err);
    s->runs = runs;
    s->started = ret_started;
    s->limits = plan->limits;
    s->deadline_ns = plan->deadline_ns;
    s->plan = (mt_buf)MT_BUF_SECRET_INIT(MT_FRAME_RUNNER_MAX);
    (void)snprintf(s->id, sizeof(s->id), "%s", plan->run_id);
    (void)snprintf(s->user_id, sizeof(s->user_id), "%s", record->started_by->id);
    s->vfs_count = MT_MIN(plan->mount_count, (uint32_t)MT_PLAN_MOUNTS_MAX);
    for (uint32_t i = 0; i < s->vfs_count; i++)
        (void)snprintf(s->vfs[i], sizeof(s->vfs[i]), "%s", plan->mounts[i].vfs_id);
    if (mt_plan_encode(plan, &s->plan, err) < 0) {
        start_free(s);
        return -1;
    }
    return mt_store_run_create(runs->options.store, record, on_run_stored, s, ret, err);
}

struct stop {
    mt_runs *runs;
    char id[MT_ID_TEXT];
    char by[MT_STORE_BY];
};

static void terminate_posted(void *data)
{
    struct stop *s = data;
    live *l = runs_find(s->runs, s->id);

    if (l && !l->ending) {
        if (!l->by[0])
            memcpy(l->by, s->by, sizeof(l->by));
        if (l->state == NEW)
            runs_end_stopped(l);
        else
            runs_send_terminate(l);
    }
    free(s);
}

int mt_runs_terminate(mt_runs *runs, const char *run_id, const char *by, mt_err **err)
{
    struct stop *s = calloc(1, sizeof(*s));

    if (!s)
        return mt_fail_oom(err);
    s->runs = runs;
    (void)snprintf(s->id, sizeof(s->id), "%s", run_id);
    (void)snprintf(s->by, sizeof(s->by), "%s", by);
    if (mt_loop_post(runs->options.loop, terminate_posted, s) < 0) {
        free(s);
        return mt_fail_oom(err);
    }
    return 0;
}

struct forget {
    mt_runs *runs;
    char id[MT_ID_TEXT];
    mt_forget what;
};

static void forget_posted(void *data)
{
    struct forget *f = data;

    if (!runs_find(f->runs, f->id))
        runs_send_forget(f->runs, f->id, f->what);
    free(f);
}

int mt_runs_forget(mt_runs *runs, const char *run_id, mt_forget what, mt_err **err)
{
    struct forget *f = calloc(1, sizeof(*f));

    if (!f)
        return mt_fail_oom(err);
    f->runs = runs;
    f->what = what;
    (void)snprintf(f->id, sizeof(f->id), "%s", run_id);
    if (mt_loop_post(runs->options.loop, forget_posted, f) < 0) {
        free(f);
        return mt_fail_oom(err);
    }
    return 0;
}

// ---- commands, from other threads ----

struct exec {
    mt_runs *runs;
    char run_id[MT_ID_TEXT];
    int64_t number;
    mt_buf frame;
};

static void exec_free(struct exec *x)
{
    mt_buf_done(&x->frame);
    free(x);
}

static void exec_posted(void *data)
{
    struct exec *x = data;
    live *l = runs_find(x->runs, x->run_id);

    // A run that is not here (yet) finds its commands in the store when it is followed.
    if (l && !l->ending && mt_command_feed_add(&l->feed, l->conn, x->number, &x->frame) < 0)
        runs_drop_connection(l);
    exec_free(x);
}

// On the thread that stored it, one at a time, so that commands go out in the order of their
// numbers.
static void on_command_stored(int result, const mt_err *err, void *data)
{
    struct exec *x = data;

    if (result != 0 || mt_loop_post(x->runs->options.loop, exec_posted, x) < 0)
        exec_free(x);
}

int mt_runs_exec(mt_runs *runs, const mt_command *command, mt_command_new *record,
                 mt_command_record *ret, mt_err **err)
{
    _cleanup_buf_ mt_buf arguments = MT_BUF_INIT(64 << 20), environment = MT_BUF_INIT(16 << 20);
    _cleanup_buf_ mt_buf encoded = MT_BUF_INIT(MT_FRAME_EXEC_MAX);
    struct exec *x = calloc(1, sizeof(*x));
    int r;

    if (!x)
        return mt_fail_oom(err);
    x->runs = runs;
    x->frame.max = MT_FRAME_EXEC_MAX + 4096;
    (void)snprintf(x->run_id, sizeof(x->run_id), "%s", record->run_id);
    r = mt_command_encode(command, &encoded, err);
    if (r == 0 && (mt_command_texts(command, &arguments, &environment) < 0 ||
                   mt_put_exec(&x->frame, (mt_str){mt_buf_str(&encoded), encoded.len}) < 0))
        r = mt_fail_oom(err);
    if (r < 0) {
        exec_free(x);
        return -1;
    }
    record->id = command->id;
    record->command = command->command;
    record->arguments = mt_buf_str(&arguments);
    record->environment = mt_buf_str(&environment);
    record->run_as_user = command->user;
    record->async = command->async;
    record->max_duration_ms = command->max_duration_ms;
    record->working_directory = command->working_directory;
    record->input = command->input;
    record->most = MT_COMMAND_QUEUE_MAX;
    record->most_bytes = WAITING_BYTES;
    return mt_store_command_create(runs->options.store, record, on_command_stored, x, &x->number,
                                   ret, err);
}

struct cancel {
    mt_runs *runs;
    char run_id[MT_ID_TEXT], id[MT_ID_TEXT];
    char by[MT_STORE_BY];
    int64_t number;
};

static void cancel_posted(void *data)
{
    struct cancel *c = data;
    live *l = runs_find(c->runs, c->run_id);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    // One that was not sent yet is sent together with this.
    if (l && l->conn && !l->ending && c->number <= l->feed.sent) {
        (void)mt_put_cancel(&b, c->id, c->by);
        if (mt_frame_conn_send(l->conn, &b) < 0)
            runs_drop_connection(l);
    }
    free(c);
}

int mt_runs_cancel(mt_runs *runs, const mt_command_record *command, const char *by, mt_err **err)
{
    struct cancel *c;

    if (mt_store_command_request_cancel(runs->options.store, command->run_id, command->id, by,
                                        err) < 0)
        return -1;
    c = calloc(1, sizeof(*c));
    if (!c)
        return mt_fail_oom(err);
    c->runs = runs;
    c->number = command->number;
    memcpy(c->run_id, command->run_id, sizeof(c->run_id));
    memcpy(c->id, command->id, sizeof(c->id));
    (void)snprintf(c->by, sizeof(c->by), "%s", by);
    if (mt_loop_post(runs->options.loop, cancel_posted, c) < 0) {
        free(c);
        return mt_fail_oom(err);
    }
    return 0;
}

struct extend {
    mt_runs *runs;
    char id[MT_ID_TEXT];
    int64_t ms, until_us;
};

static void extend_posted(void *data)
{
    struct extend *x = data;
    live *l = runs_find(x->runs, x->id);

    if (l && !l->ending) {
        l->extended_ms = x->ms;
        l->extended_us = x->until_us;
        if (l->state == NEW || l->state == SENT)
            mt_timer_at(l->timer, mt_boottime_ns() + (x->until_us - mt_now_us()) * 1000);
        runs_send_extend(l);
    }
    free(x);
}

int mt_runs_extend(mt_runs *runs, const mt_run *run, int64_t max_duration_ms, mt_err **err)
{
    struct extend *x;
    int r = mt_store_run_extend(runs->options.store, run->id, max_duration_ms, err);

    if (r != 0)
        return r;
    x = calloc(1, sizeof(*x));
    if (!x)
        return mt_fail_oom(err);
    x->runs = runs;
    x->ms = max_duration_ms;
    x->until_us = run->date_created + max_duration_ms * 1000;
    memcpy(x->id, run->id, sizeof(x->id));
    if (mt_loop_post(runs->options.loop, extend_posted, x) < 0) {
        free(x);
        return mt_fail_oom(err);
    }
    return 0;
}
