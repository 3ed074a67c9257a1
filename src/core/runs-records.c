// SPDX-License-Identifier: Apache-2.0
// What the journal of a run tells, to the store: in its order, each record once.
#include "core/runs-internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>

enum {
    APPLY_RETRY_MS = 1000,
    TAIL_AT_ONCE = 8192, // longer output is read on a thread of its own
};

struct applied {
    mt_runs *runs;
    char id[MT_ID_TEXT];
    bool ended;
    int result;
};

// On the loop: the store has (or could not take) a change.
static void on_applied(void *data)
{
    struct applied *a = data;
    live *l = runs_find(a->runs, a->id);

    if (l && a->result < 0) {
        // The journal still has it: read it again when the store may be able to write.
        l->stored = 0;
        l->ending = false;
        l->reading = false;
        mt_buf_clear(&l->held);
        mt_buf_clear(&l->phases);
        runs_close_connection(l);
        mt_timer_in_ms(l->timer, APPLY_RETRY_MS);
    } else if (l && a->ended) {
        mt_runs_release(a->runs, l->user_id, &l->limits);
        if (a->runs->options.close_door)
            a->runs->options.close_door(a->id, a->runs->options.doors);
        l->end_stored = true;
        if (!l->unsynced)
            runs_forget(l);
    }
    free(a);
}

// On whatever thread the store was written by.
static void on_stored(int result, const mt_err *err, void *data)
{
    struct applied *a = data;

    a->result = result;
    if (result < 0)
        mt_log(MT_LOG_ERROR, "cannot store what happened to a run", {"run", a->id},
               {"error", mt_err_sentence(err)});
    else if (!a->ended) {
        free(a); // nothing to do about it
        return;
    }
    if (mt_loop_post(a->runs->options.loop, on_applied, a) < 0)
        free(a); // out of memory: the next restart reads the journal
}

// Before anybody can be told that the run has ended.
static void shut_door(live *l)
{
    const mt_runs_options *o = &l->runs->options;

    if (!l->shut && o->close_door)
        o->close_door(l->id, o->doors);
    l->shut = true;
}

static void apply(live *l, uint64_t seq, mt_run_change *change)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_buf_ mt_buf phases = MT_BUF_INIT(l->phases.max + 2);
    struct applied *a = calloc(1, sizeof(*a));

    if (change->ended)
        shut_door(l);
    if (a) {
        a->runs = l->runs;
        memcpy(a->id, l->id, sizeof(a->id));
        a->ended = change->ended;
        if (!change->command) {
            (void)mt_buf_addf(&phases, "[%s]", mt_buf_str(&l->phases));
            change->phases = phases.failed ? NULL : mt_buf_str(&phases);
        }
        if (mt_store_run_apply(l->runs->options.store, l->id, (int64_t)seq, change, on_stored, a,
                               &err) == 0) {
            l->ending = l->ending || change->ended;
            return;
        }
        free(a);
    }
    mt_log(MT_LOG_ERROR, "cannot queue what happened to a run", {"run", l->id},
           {"error", mt_err_sentence(err)});
    l->stored = 0;
    mt_timer_in_ms(l->timer, APPLY_RETRY_MS);
}

static bool is_stop(mt_end_reason reason)
{
    return reason == MT_END_TERMINATED || reason == MT_END_PARENT_ENDED;
}

// The end of a run that no journal tells: it never became a machine, or its journal is lost.
void runs_end_here(live *l, mt_end_reason reason, const char *sentence)
{
    mt_run_change change = {
        .ended = true,
        .status = is_stop(reason) ? "Finished" : "Error",
        .end_reason = mt_end_reason_word(reason),
        .failure_details = sentence,
        .terminated_by = is_stop(reason) ? l->by : NULL,
    };

    if (!l->ending)
        apply(l, 0, &change);
}

void runs_end_stopped(live *l)
{
    char sentence[MT_STORE_BY + 16];

    (void)snprintf(sentence, sizeof(sentence), "stopped by %s", l->by);
    runs_end_here(l, mt_stop_reason(mt_str_of(l->by)), sentence);
}

static char *dup_clean(mt_str s)
{
    return s.len ? mt_str_dup(s) : NULL;
}

static void apply_ended(live *l, const mt_record *r)
{
    const mt_ended *e = &r->ended;
    _cleanup_buf_ mt_buf limits = MT_BUF_INIT(256);
    _cleanup_free_ char *details = dup_clean(e->failure_details);
    _cleanup_free_ char *by = dup_clean(e->terminated_by);
    mt_run_change change = {
        .ended = true,
        .status = mt_run_status_word(e->status),
        .end_reason = mt_end_reason_word(e->reason),
        .failure_details = details ? details : "",
        .limits_reached = mt_limits_list(e->limits_reached, &limits),
        .terminated_by = by,
        .limit_ms = e->limit_ms,
        .signal = (int)e->signal,
        .memory_peak_bytes = (int64_t)e->memory_peak,
        .cpu_us = (int64_t)e->cpu_us,
        .ended_us = r->time_us,
    };

    mt_log(MT_LOG_INFO, "run ended", {"run", l->id}, {"status", change.status},
           {"reason", change.end_reason});
    apply(l, r->seq, &change);
}

// ---- commands ----

static void apply_command_end(live *l, const mt_record *r, const mt_run_tail *standard,
                              const mt_run_tail *error)
{
    mt_command_end end;
    mt_run_change change = {.command = &end.change};

    mt_command_end_fill(&end, r, standard, error);
    l->stored = r->seq;
    apply(l, r->seq, &change);
    mt_command_end_done(&end);
}

// What was held back while an output was read, up to the next one that has to be read.
static void on_held(live *l)
{
    size_t used = 0;

    while (!l->reading && used < l->held.len) {
        mt_record r;
        ssize_t n = mt_record_decode(l->held.data + used, l->held.len - used, &r);

        if (n <= 0)
            break;
        runs_on_record(l, &r);
        used += (size_t)n;
    }
    if (l->reading)
        mt_buf_consume(&l->held, used);
    else
        mt_buf_clear(&l->held);
}

struct tail_job {
    mt_runs *runs;
    char run_id[MT_ID_TEXT];
    uint64_t seq;
    mt_buf frame; // the record
};

static void tail_job_free(struct tail_job *job)
{
    mt_buf_done(&job->frame);
    free(job);
}

// On the loop: the output of a command was read.
static void on_tail(void *data, mt_run_tail *standard, mt_run_tail *error)
{
    struct tail_job *job = data;
    live *l = runs_find(job->runs, job->run_id);
    mt_record r;

    if (l && l->reading && l->reading_seq == job->seq) {
        l->reading = false;
        if (mt_record_decode(job->frame.data, job->frame.len, &r) > 0 && r.seq > l->stored)
            apply_command_end(l, &r, standard, error);
        on_held(l);
        if (!l->reading && !l->conn && !l->ending)
            runs_follow_failed(l);
    }
    mt_run_tail_done(standard);
    mt_run_tail_done(error);
    tail_job_free(job);
}

static bool read_on_thread(live *l, const mt_record *r)
{
    const mt_command_ended *c = &r->command_ended;
    mt_tail_request request = {.bytes = {c->out_bytes, c->err_bytes},
                               .chars = {c->out_chars, c->err_chars},
                               .done = on_tail};
    struct tail_job *job = calloc(1, sizeof(*job));

    if (!job)
        return false;
    job->runs = l->runs;
    job->seq = r->seq;
    job->frame.max = MT_RECORD_BYTES_MAX;
    memcpy(job->run_id, l->id, sizeof(job->run_id));
    memcpy(request.run_id, l->id, sizeof(request.run_id));
    (void)snprintf(request.command_id, sizeof(request.command_id), "%.*s",
                   (int)MT_MIN(c->id.len, (size_t)MT_ID_LEN), c->id.data);
    request.data = job;
    if (mt_record_encode(r, &job->frame) < 0 || mt_tail_reader_add(l->runs->tails, &request) < 0) {
        tail_job_free(job);
        return false;
    }
    l->reading = true;
    l->reading_seq = r->seq;
    return true;
}

static void on_command_ended(live *l, const mt_record *r, bool here)
{
    const mt_command_ended *c = &r->command_ended;
    char id[MT_ID_TEXT];
    mt_run_tail tails[2];

    if (!here && MT_MAX(c->out_bytes, c->err_bytes) > TAIL_AT_ONCE && read_on_thread(l, r))
        return;
    (void)snprintf(id, sizeof(id), "%.*s", (int)MT_MIN(c->id.len, (size_t)MT_ID_LEN), c->id.data);
    mt_run_tail_read(l->runs->options.runs_dirfd, l->id, id, MT_STREAM_STANDARD, c->out_bytes,
                     c->out_chars, &tails[0]);
    mt_run_tail_read(l->runs->options.runs_dirfd, l->id, id, MT_STREAM_ERROR, c->err_bytes,
                     c->err_chars, &tails[1]);
    apply_command_end(l, r, &tails[0], &tails[1]);
    mt_run_tail_done(&tails[0]);
    mt_run_tail_done(&tails[1]);
}

static void on_command_started(live *l, const mt_record *r)
{
    char id[MT_ID_TEXT];
    mt_command_change command = {.id = id, .started = true, .started_us = r->time_us};
    mt_run_change change = {.command = &command};

    (void)snprintf(id, sizeof(id), "%.*s",
                   (int)MT_MIN(r->command_started.id.len, (size_t)MT_ID_LEN),
                   r->command_started.id.data);
    l->stored = r->seq;
    apply(l, r->seq, &change);
}

static void on_extended(live *l, const mt_record *r)
{
    int64_t left_us = (r->extended.deadline_ns - mt_boottime_ns()) / 1000;
    mt_run_change change = {.max_duration_ms = r->extended.max_duration_ms,
                            .deadline = mt_now_us() + left_us};

    if (l->extended_ms == r->extended.max_duration_ms)
        l->extended_ms = 0;
    l->stored = r->seq;
    apply(l, r->seq, &change);
}

// ---- the records of a journal ----

static void add_phase(live *l, const mt_record *r)
{
    mt_jw w;

    mt_jw_init(&w, &l->phases, 0);
    if (l->phases.len)
        (void)mt_buf_addc(&l->phases, ',');
    mt_jw_begin_object(&w);
    mt_jw_member_str(&w, "name", r->phase.name);
    mt_jw_member_int(&w, "us", (int64_t)r->phase.us);
    mt_jw_end_object(&w);
}

static void on_ready(live *l, const mt_record *r)
{
    mt_run_change change = {.ready = true, .ready_us = r->time_us};

    l->stored = r->seq;
    apply(l, r->seq, &change);
}

// here: long outputs are read at once, too.
void runs_take_record(live *l, const mt_record *r, bool here)
{
    if (r->type == MT_REC_PHASE)
        add_phase(l, r);
    if (r->seq <= l->stored)
        return;
    if (r->type == MT_REC_READY) {
        on_ready(l, r);
    } else if (r->type == MT_REC_COMMAND_STARTED) {
        on_command_started(l, r);
    } else if (r->type == MT_REC_COMMAND_ENDED) {
        on_command_ended(l, r, here);
    } else if (r->type == MT_REC_EXTENDED) {
        on_extended(l, r);
    } else if (r->type == MT_REC_ENDED && !l->ending) {
        l->stored = r->seq;
        apply_ended(l, r);
    } else if (r->type == MT_REC_NOTE) {
        _cleanup_free_ char *text = mt_str_dup(r->note.text);

        mt_log(MT_LOG_INFO, "note of a run", {"run", l->id}, {"note", text});
    }
}

void runs_on_record(live *l, const mt_record *r)
{
    // At once, also while other records wait.
    if (r->type == MT_REC_ENDING || r->type == MT_REC_ENDED)
        shut_door(l);
    if (!l->reading)
        runs_take_record(l, r, false);
    else if (mt_record_encode(r, &l->held) < 0)
        // Too much waits: the journal has it all, and is read again from there.
        runs_close_connection(l);
}
