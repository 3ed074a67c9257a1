// SPDX-License-Identifier: Apache-2.0
// Shared by the files of live runs: runs.c has them, runs-runner.c and runs-follow.c are the links
// to the runner and to their supervisors, runs-records.c stores what their journals tell and
// runs-synced.c knows how much of it is on the disk, runs-doors.c is what other threads call,
// runs-room.c what the machine has and runs-promised.c what of it is promised. Included from
// nowhere else.
#pragma once

#include "core/runs.h"

#include "capsule/journal.h"
#include "core/frame-conn.h"
#include "core/run-commands.h"
#include "core/vfs-watch.h"

#include <pthread.h>

enum { RUNS_BUCKETS = 1024 };

typedef enum live_state { NEW, SENT, FOLLOWED, SWEEPING } live_state;

// Room that live runs have.
typedef struct promised {
    uint64_t runs, memory, disk;
} promised;

struct promised_to {
    struct promised_to *next;
    char user_id[MT_ID_TEXT]; // who started them
    promised of;
};

typedef struct live {
    struct live *next;
    mt_runs *runs;
    char id[MT_ID_TEXT];
    live_state state;
    uint32_t tag; // of the START or SWEEP under way
    mt_buf plan;  // the START frame, until the runner has it
    mt_plan_limits limits;
    char user_id[MT_ID_TEXT]; // who started it
    uint64_t stored;          // number of the last record that the store has (or is being given)
    mt_buf phases;            // JSON list without its brackets
    char by[MT_STORE_BY];     // who asked for its end; "" when nobody
    bool terminate_sent;
    bool ending;       // the `ended` record is on its way to the store
    bool end_stored;   // and has come there
    uint64_t unsynced; // number of the last end that may not be on the disk yet; 0: none
    bool shut;         // its end has begun: it is signed in no more
    mt_command_feed feed;
    int64_t extended_ms, extended_us; // a longer life to tell of: how long, until when. 0: none
    // A command's output is being read for its record: what the journal tells after it waits here,
    // as frames, so that the store gets everything in order.
    bool reading;
    uint64_t reading_seq;
    mt_buf held;
    int tries;
    int starts; // how often the runner was sent it
    mt_frame_conn *conn;
    struct mt_session *sessions; // core/run-sessions.h
    mt_timer *timer;             // next try, or the deadline of a start that the runner never took
} live;

struct mt_runs {
    mt_runs_options options;
    char *runner_socket;
    mt_tail_reader *tails;
    mt_vfs_watch *watch;
    live *buckets[RUNS_BUCKETS];
    mt_frame_conn *runner;
    mt_timer *runner_timer;
    uint32_t next_tag;
    int runner_tries; // since the start, without it

    pthread_mutex_t lock; // a leaf; guards what follows
    struct unsynced *unsynced;
    pthread_cond_t info_changed;
    mt_buf info; // payload of the last INFO frame
    int64_t info_us;
    uint64_t info_asked, info_answered;
    uint64_t prune_asked, prune_answered;
    uint32_t pruned_layers;
    uint64_t pruned_bytes;
    bool runner_there;
    promised promised;
    struct promised_to *promised_to;
    uint64_t memory_cap, disk_cap; // 0: not known yet
    uint64_t disk_free; // of the scratch disk; the runner tells when it crosses the floor
};

// The loop's thread alone.
// runs.c
live *runs_find(mt_runs *runs, const char *id);
live *runs_find_tag(mt_runs *runs, uint32_t tag); // of a START or SWEEP under way
live *runs_add(mt_runs *runs, const char *id, const char *user_id, const mt_plan_limits *limits);
void runs_forget(live *l);
void runs_close_connection(live *l);
bool runs_has_folder(mt_runs *runs, const char *id);
void runs_start_again(live *l);
// runs-promised.c; any thread.
// A run lives already: its room is its own, whatever the ceilings are now. 0 or -ENOMEM.
int runs_promised_before(mt_runs *runs, const char *user_id, const mt_plan_limits *limits);
void runs_forget_promised(mt_runs *runs);
// runs-records.c
void runs_on_record(live *l, const mt_record *r);
void runs_take_record(live *l, const mt_record *r, bool here); // here: its output is read at once
void runs_end_here(live *l, mt_end_reason reason, const char *sentence); // no journal tells its end
void runs_end_stopped(live *l); // before it began, by who asked for that
// runs-synced.c: an end came (of the run or command of that id) that is not on the disk yet; the
// journal is, up to seq (l may be gone after it); nobody else will say so. What waits is told.
void runs_told_early(live *l, uint64_t seq, mt_str id);
void runs_told_synced(live *l, uint64_t seq);
void runs_sync_here(live *l);
// runs-follow.c
enum { RUNS_FOLLOW_RETRY_MS = 100 };
void runs_follow(live *l);
void runs_follow_failed(live *l); // the journal file may have its end; else it is tried again
void runs_swept(live *l);         // nothing of it lives any more
void runs_sweep(live *l);
void runs_on_timer(mt_timer *timer, void *data);
void runs_send_terminate(live *l);
void runs_send_extend(live *l);
void runs_drop_connection(live *l);
// runs-runner.c
void runs_connect_runner(mt_timer *timer, void *data);
void runs_send_runner(mt_runs *runs, mt_buf *b); // without a runner: nothing
void runs_send_start(live *l);
void runs_send_forget(mt_runs *runs, const char *run_id, mt_forget what);
void runs_ask_info(mt_runs *runs);
void runs_ask_prune(mt_runs *runs);
// run-sessions.c: a frame of the supervisor's; the connection, or the run itself, is gone.
void runs_session_frame(live *l, const mt_frame *frame);
void runs_sessions_lost(live *l);
void runs_sessions_begin(live *l); // the run can be reached
// runs-disk.c: what runs write into file systems.
int runs_watch_disk(mt_runs *runs, mt_err **err);
void runs_told_usage(live *l, const mt_frame *frame);
// Of a run whose plan is not at hand.
void runs_watch_mounts(live *l, const mt_run *run, const mt_capsule_def *def);
