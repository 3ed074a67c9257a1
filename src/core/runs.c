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

enum {
    RUNNER_RETRY_MS = 200,
    FOLLOW_RETRY_MS = 100,
    FOLLOW_TRIES = 3,   // then the runner is asked to sweep
    STARTS_MAX = 5,     // of a run that never begins
    PATIENT_TRIES = 20, // then less often
    APPLY_RETRY_MS = 1000,
    TAIL_AT_ONCE = 8192, // longer output is read on a thread of its own
    HELD_BYTES = 64 << 20,
};

// ---- table of live runs ----

static size_t bucket_of(const char *id)
{
    uint64_t h = 1469598103934665603u;

    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 1099511628211u;
    return h % RUNS_BUCKETS;
}

live *runs_find(mt_runs *runs, const char *id)
{
    for (live *l = runs->buckets[bucket_of(id)]; l; l = l->next)
        if (strcmp(l->id, id) == 0)
            return l;
    return NULL;
}

static live *find_tag(mt_runs *runs, uint32_t tag)
{
    for (size_t i = 0; i < RUNS_BUCKETS; i++)
        for (live *l = runs->buckets[i]; l; l = l->next)
            if (l->tag == tag && (l->state == SENT || l->state == SWEEPING))
                return l;
    return NULL;
}

static void on_live_timer(mt_timer *timer, void *data);

live *runs_add(mt_runs *runs, const char *id, const mt_plan_limits *limits)
{
    live *l = calloc(1, sizeof(*l));
    size_t b = bucket_of(id);

    if (!l)
        return NULL;
    l->timer = mt_timer_new(runs->options.loop, on_live_timer, l);
    if (!l->timer) {
        free(l);
        return NULL;
    }
    (void)snprintf(l->id, sizeof(l->id), "%s", id);
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

static void forget(live *l)
{
    live **at = &l->runs->buckets[bucket_of(l->id)];

    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->ending = true;
    runs_sessions_lost(l);
    mt_vfs_watch_leave(l->runs->watch, l->id);
    mt_frame_conn_close(l->conn);
    mt_timer_free(l->timer);
    mt_buf_done(&l->plan);
    mt_buf_done(&l->phases);
    mt_buf_done(&l->held);
    free(l);
}

static void close_connection(live *l)
{
    mt_frame_conn_close(MT_TAKE_PTR(l->conn));
    runs_sessions_lost(l);
}

// ---- what a run has told, to the store ----

struct applied {
    mt_runs *runs;
    char id[MT_ID_TEXT];
    bool ended;
    int result;
};

static void follow(live *l);

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
        close_connection(l);
        mt_timer_in_ms(l->timer, APPLY_RETRY_MS);
    } else if (l && a->ended) {
        mt_runs_release(a->runs, &l->limits);
        if (a->runs->options.close_door)
            a->runs->options.close_door(a->id, a->runs->options.doors);
        forget(l);
    }
    free(a);
}

// On the store's writer thread.
static void on_stored(int result, const mt_err *err, void *data)
{
    struct applied *a = data;

    a->result = result;
    if (result < 0)
        mt_log(MT_LOG_ERROR, "cannot store what happened to a run", {"run", a->id},
               {"error", mt_err_sentence(err)});
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

// The end of a run that no journal tells: it never became a machine, or its journal is lost.
void runs_end_here(live *l, mt_end_reason reason, const char *sentence)
{
    mt_run_change change = {
        .ended = true,
        .status = reason == MT_END_TERMINATED ? "Finished" : "Error",
        .end_reason = mt_end_reason_word(reason),
        .failure_details = sentence,
        .terminated_by = reason == MT_END_TERMINATED ? l->by : NULL,
    };

    if (!l->ending)
        apply(l, 0, &change);
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

static void follow_failed(live *l);
static void on_record(live *l, const mt_record *r);

// What was held back while an output was read, up to the next one that has to be read.
static void on_held(live *l)
{
    size_t used = 0;

    while (!l->reading && used < l->held.len) {
        mt_record r;
        ssize_t n = mt_record_decode(l->held.data + used, l->held.len - used, &r);

        if (n <= 0)
            break;
        on_record(l, &r);
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
            follow_failed(l);
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
static void take_record(live *l, const mt_record *r, bool here)
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

static void on_record(live *l, const mt_record *r)
{
    // At once, also while other records wait.
    if (r->type == MT_REC_ENDING || r->type == MT_REC_ENDED)
        shut_door(l);
    if (!l->reading)
        take_record(l, r, false);
    else if (mt_record_encode(r, &l->held) < 0)
        // Too much waits: the journal has it all, and is read again from there.
        close_connection(l);
}

// ---- the supervisor's socket, and the journal file behind it ----

// Reads the rest of the story from the file. False when there is no end in it.
static bool read_journal(live *l)
{
    char path[MT_ID_TEXT + 16];
    _cleanup_close_ int fd = -1;
    mt_journal_reader *reader = NULL;
    mt_record record;

    (void)snprintf(path, sizeof(path), "%s/journal", l->id);
    fd = openat(l->runs->options.runs_dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || mt_journal_reader_new(fd, &reader, NULL) < 0)
        return false;
    mt_buf_clear(&l->phases);
    mt_buf_clear(&l->held);
    while (!l->ending && mt_journal_next(reader, 0, &record, NULL, NULL) > 0)
        take_record(l, &record, true);
    mt_journal_reader_free(reader);
    return l->ending;
}

static void send_runner(mt_runs *runs, mt_buf *b)
{
    if (!runs->runner || mt_frame_conn_send(runs->runner, b) == 0)
        return;
    mt_frame_conn_close(MT_TAKE_PTR(runs->runner));
    mt_timer_in_ms(runs->runner_timer, RUNNER_RETRY_MS);
}

static void sweep(live *l)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    l->state = SWEEPING;
    l->tag = ++l->runs->next_tag;
    (void)mt_put_sweep(&b, l->tag, l->id, MT_FORGET_NOTHING);
    send_runner(l->runs, &b); // without a runner: sent when it is back
}

static bool has_folder(mt_runs *runs, const char *id);
static void start_again(live *l);

static void swept(live *l)
{
    // What is being read now comes first; then this is found out again.
    if (l->reading || l->ending || read_journal(l))
        return;
    // The runner was killed before anything of it had begun, and has removed what there was.
    if (l->stored == 0 && l->starts < STARTS_MAX && !has_folder(l->runs, l->id)) {
        start_again(l);
        return;
    }
    runs_end_here(l, MT_END_SUPERVISOR_LOST,
                  "the run's supervisor is gone and its journal does not say how the run ended");
}

static void follow_failed(live *l)
{
    if (l->reading || read_journal(l))
        return;
    if (++l->tries < FOLLOW_TRIES)
        mt_timer_in_ms(l->timer, FOLLOW_RETRY_MS);
    else
        sweep(l);
}

// The first such frame brings the very socket that all later ones bring.
static void on_api(live *l, const mt_frame *frame)
{
    const mt_runs_options *o = &l->runs->options;
    _cleanup_close_ int fd = mt_frame_conn_take_fd(l->conn);
    uint32_t base;

    if (fd >= 0 && !l->shut && o->open_door && mt_get_api(frame, &base) == 0)
        o->open_door(l->id, MT_TAKE_FD(fd), base, o->doors);
}

static void on_run_frame(const mt_frame *frame, void *data)
{
    live *l = data;
    mt_record record;

    if (frame->type == MT_FRAME_API)
        on_api(l, frame);
    else if (frame->type == MT_FRAME_USAGE)
        runs_told_usage(l, frame);
    else if (frame->type == MT_FRAME_RECORD &&
             mt_record_decode(frame->payload, frame->payload_len, &record) > 0)
        on_record(l, &record);
    else if (frame->type >= MT_FRAME_SESSION_STARTED && frame->type <= MT_FRAME_SESSION_ENDED)
        runs_session_frame(l, frame);
}

static void on_run_closed(void *data)
{
    live *l = data;

    l->conn = NULL;
    runs_sessions_lost(l);
    if (!l->ending)
        follow_failed(l);
}

void runs_send_terminate(live *l)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    if (!l->conn || !l->by[0] || l->terminate_sent)
        return;
    (void)mt_put_terminate(&b, l->by);
    l->terminate_sent = mt_frame_conn_send(l->conn, &b) == 0;
}

void runs_send_extend(live *l)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    if (!l->conn || !l->extended_ms)
        return;
    // The wall clock's moment, on the clock that nobody can set.
    (void)mt_put_extend(&b, l->extended_ms,
                        mt_boottime_ns() + (l->extended_us - mt_now_us()) * 1000);
    (void)mt_frame_conn_send(l->conn, &b);
}

void runs_drop_connection(live *l)
{
    close_connection(l);
    mt_timer_in_ms(l->timer, FOLLOW_RETRY_MS);
}

// Also when what was sent is taken, until nothing waits in the store.
static void send_commands(void *data)
{
    live *l = data;

    if (l->conn && l->feed.behind && !l->ending &&
        mt_command_feed_pump(&l->feed, l->runs->options.store, l->id, l->conn) < 0)
        runs_drop_connection(l);
}

static void follow(live *l)
{
    static const mt_frame_conn_events EVENTS = {on_run_frame, on_run_closed, send_commands};
    _cleanup_close_ int dir =
        openat(l->runs->options.runs_dirfd, l->id, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);
    char path[64];

    l->state = FOLLOWED;
    if (dir < 0) {
        follow_failed(l);
        return;
    }
    // By way of the folder's fd: the state folder's path may be too long for a socket address.
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/sock", dir);
    close_connection(l);
    if (mt_frame_conn_open(l->runs->options.loop, path, MT_FRAME_SUPERVISOR_MAX, &EVENTS, l,
                           &l->conn) < 0) {
        follow_failed(l);
        return;
    }
    l->tries = 0;
    l->terminate_sent = false;
    l->feed = (mt_command_feed){.behind = true};
    mt_buf_clear(&l->phases);
    mt_buf_clear(&l->held);
    (void)mt_put_attach(&b, 0);
    if (mt_frame_conn_send(l->conn, &b) == 0) {
        runs_send_terminate(l);
        runs_send_extend(l);
        runs_sessions_begin(l);
        send_commands(l);
    }
}

// ---- the runner's socket ----

void runs_send_start(live *l)
{
    _cleanup_buf_ mt_buf b = MT_BUF_SECRET_INIT(MT_FRAME_RUNNER_MAX);

    l->state = SENT;
    l->starts++;
    l->tag = ++l->runs->next_tag;
    (void)mt_put_start(&b, l->tag, (mt_str){mt_buf_str(&l->plan), l->plan.len});
    send_runner(l->runs, &b);
}

static void on_live_timer(mt_timer *timer, void *data)
{
    live *l = data;

    if (l->ending)
        return;
    if (l->state == FOLLOWED)
        follow(l);
    else if (l->state == SWEEPING)
        swept(l);
    else
        runs_end_here(
            l, MT_END_TIMEOUT,
            "out of time while starting: the runner did not take the run; mt doctor tells "
            "what is wrong with it");
}

void runs_send_forget(mt_runs *runs, const char *run_id, mt_forget what)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    (void)mt_put_sweep(&b, 0, run_id, what); // nobody waits for the answer
    send_runner(runs, &b);
}

void runs_ask_info(mt_runs *runs)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    (void)mt_put_hello(&b, 0);
    send_runner(runs, &b);
}

void runs_ask_prune(mt_runs *runs)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    (void)mt_put_prune(&b, 0);
    send_runner(runs, &b);
}

static void on_failed(mt_runs *runs, const mt_frame *frame)
{
    live *l = find_tag(runs, frame->tag);
    mt_code code;
    mt_str sentence;
    _cleanup_free_ char *text = NULL;

    if (!l || mt_get_failed(frame, &code, &sentence) < 0)
        return;
    if (l->state == SWEEPING && code == MT_E_CONFLICT) {
        l->state = FOLLOWED; // somebody lives: he is asked again
        mt_timer_in_ms(l->timer, ++l->tries < PATIENT_TRIES ? FOLLOW_RETRY_MS : APPLY_RETRY_MS);
    } else if (l->state == SWEEPING) {
        swept(l);
    } else if (code == MT_E_ALREADY_EXISTS) {
        follow(l); // the runner took it before a restart of this server
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
            follow(l);
        } else if (frame->type == MT_FRAME_SWEPT) {
            swept(l);
        } else if (!l->conn && l->state >= FOLLOWED) { // else its START is still on its way
            swept(l);
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

static void on_runner_closed(void *data)
{
    mt_runs *runs = data;

    runs->runner = NULL;
    set_runner_there(runs, false);
    mt_log_plain(MT_LOG_WARNING, "the runner is gone; its runs go on, new ones wait for it");
    mt_timer_in_ms(runs->runner_timer, RUNNER_RETRY_MS);
}

static void connect_runner(mt_timer *timer, void *data)
{
    static const mt_frame_conn_events EVENTS = {on_runner_frame, on_runner_closed, NULL};
    mt_runs *runs = data;
    int r = mt_frame_conn_open(runs->options.loop, runs->runner_socket, MT_FRAME_REPLY_MAX, &EVENTS,
                               runs, &runs->runner);

    if (r < 0) {
        if (!runs->was_connected) {
            runs->was_connected = true; // said once
            mt_log(MT_LOG_WARNING, "cannot reach the runner yet", {"socket", runs->runner_socket},
                   {"error", strerror(-r)});
        }
        mt_timer_in_ms(runs->runner_timer, RUNNER_RETRY_MS);
        return;
    }
    runs->was_connected = true;
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
                sweep(l);
        }
    }
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
    runs->runner_timer = mt_timer_new(options->loop, connect_runner, runs);
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
            forget(runs->buckets[i]);
    mt_vfs_watch_free(runs->watch);
    mt_frame_conn_close(runs->runner);
    mt_timer_free(runs->runner_timer);
    mt_buf_done(&runs->info);
    free(runs->runner_socket);
    (void)pthread_cond_destroy(&runs->info_changed);
    (void)pthread_mutex_destroy(&runs->lock);
    free(runs);
}

mt_loop *mt_runs_loop(const mt_runs *runs)
{
    return runs->options.loop;
}

static bool has_folder(mt_runs *runs, const char *id)
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
static void start_again(live *l)
{
    _cleanup_capsule_def_ mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *stopped = NULL;
    mt_run run = {0};

    mt_frame_conn_close(MT_TAKE_PTR(l->conn));
    l->state = NEW;
    l->tries = 0;
    if (l->by[0]) {
        stopped = mt_asprintf("stopped by %s", l->by);
        runs_end_here(l, MT_END_TERMINATED, stopped ? stopped : "stopped");
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
        l = runs_add(runs, run->id, &limits);
        if (!l) {
            mt_run_list_done(&list);
            return mt_fail_oom(err);
        }
        l->stored = (uint64_t)run->seq;
        memcpy(l->by, run->stop_requested_by, sizeof(l->by));
        l->extended_ms = run->extended_ms;
        l->extended_us = run->date_created + run->extended_ms * 1000;
        runs->promised_runs++;
        runs->promised_memory += limits.memory_bytes;
        runs->promised_disk += limits.disk_bytes;
        runs_watch_mounts(l, run, &def);
        if (has_folder(runs, run->id))
            follow(l);
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
