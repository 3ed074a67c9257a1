// SPDX-License-Identifier: Apache-2.0
// The supervisor's socket of a run, and the journal file behind it.
#include "core/runs-internal.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>

enum {
    FOLLOW_TRIES = 3, // then the runner is asked to sweep
    STARTS_MAX = 5,   // of a run that never begins
};

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
        runs_take_record(l, &record, true);
    mt_journal_reader_free(reader);
    return l->ending;
}

void runs_sweep(live *l)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    l->state = SWEEPING;
    l->tag = ++l->runs->next_tag;
    (void)mt_put_sweep(&b, l->tag, l->id, MT_FORGET_NOTHING);
    runs_send_runner(l->runs, &b); // without a runner: sent when it is back
}

void runs_swept(live *l)
{
    // What is being read now comes first; then this is found out again.
    if (l->reading || l->ending || read_journal(l))
        return;
    // The runner was killed before anything of it had begun, and has removed what there was.
    if (l->stored == 0 && l->starts < STARTS_MAX && !runs_has_folder(l->runs, l->id)) {
        runs_start_again(l);
        return;
    }
    runs_end_here(l, MT_END_SUPERVISOR_LOST,
                  "the run's supervisor is gone and its journal does not say how the run ended");
}

void runs_follow_failed(live *l)
{
    if (l->reading || read_journal(l))
        return;
    if (++l->tries < FOLLOW_TRIES)
        mt_timer_in_ms(l->timer, RUNS_FOLLOW_RETRY_MS);
    else
        runs_sweep(l);
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

// Here alone, as it comes: what is held back (runs-records.c) may be taken after its SYNCED.
static void on_record(live *l, const mt_record *r)
{
    if (r->type == MT_REC_COMMAND_ENDED && r->seq > l->stored)
        runs_told_early(l, r->seq, r->command_ended.id);
    if (r->type == MT_REC_ENDED && r->seq > l->stored)
        runs_told_early(l, r->seq, mt_str_of(l->id));
    runs_on_record(l, r);
}

static void on_run_frame(const mt_frame *frame, void *data)
{
    live *l = data;
    mt_record record;
    uint64_t seq;

    if (frame->type == MT_FRAME_API)
        on_api(l, frame);
    else if (frame->type == MT_FRAME_USAGE)
        runs_told_usage(l, frame);
    else if (frame->type == MT_FRAME_RECORD &&
             mt_record_decode(frame->payload, frame->payload_len, &record) > 0)
        on_record(l, &record);
    else if (frame->type == MT_FRAME_SYNCED && mt_get_synced(frame, &seq) == 0)
        runs_told_synced(l, seq);
    else if (frame->type >= MT_FRAME_SESSION_STARTED && frame->type <= MT_FRAME_SESSION_ENDED)
        runs_session_frame(l, frame);
}

static void on_run_closed(void *data)
{
    live *l = data;

    l->conn = NULL;
    runs_sessions_lost(l);
    runs_sync_here(l);
    if (l->end_stored)
        runs_forget(l);
    else if (!l->ending)
        runs_follow_failed(l);
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
    runs_close_connection(l);
    mt_timer_in_ms(l->timer, RUNS_FOLLOW_RETRY_MS);
}

// Also when what was sent is taken, until nothing waits in the store.
static void send_commands(void *data)
{
    live *l = data;

    if (l->conn && l->feed.behind && !l->ending &&
        mt_command_feed_pump(&l->feed, l->runs->options.store, l->id, l->conn) < 0)
        runs_drop_connection(l);
}

void runs_follow(live *l)
{
    static const mt_frame_conn_events EVENTS = {on_run_frame, on_run_closed, send_commands};
    _cleanup_close_ int dir =
        openat(l->runs->options.runs_dirfd, l->id, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);
    char path[64];

    l->state = FOLLOWED;
    if (dir < 0) {
        runs_follow_failed(l);
        return;
    }
    // By way of the folder's fd: the state folder's path may be too long for a socket address.
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/sock", dir);
    runs_close_connection(l);
    if (mt_frame_conn_open(l->runs->options.loop, path, MT_FRAME_SUPERVISOR_MAX, &EVENTS, l,
                           &l->conn) < 0) {
        runs_follow_failed(l);
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

void runs_on_timer(mt_timer *timer, void *data)
{
    live *l = data;

    if (l->ending)
        return;
    if (l->state == FOLLOWED)
        runs_follow(l);
    else if (l->state == SWEEPING)
        runs_swept(l);
    else
        runs_end_here(
            l, MT_END_TIMEOUT,
            "out of time while starting: the runner did not take the run; mt doctor tells "
            "what is wrong with it");
}
