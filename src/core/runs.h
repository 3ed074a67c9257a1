// SPDX-License-Identifier: Apache-2.0
// Live runs: hands plans to mt-runner, follows each run's supervisor and writes what happens to the
// store. It takes up again, at start, every run that had not ended. The journal is the truth: a run
// here is only what its journal has told so far.
//
// Threads: the links belong to the loop's thread. mt_runs_start(), mt_runs_terminate(),
// mt_runs_info(), mt_runs_may_tell(), the functions of commands and of admission may be called from
// any other thread.
#pragma once

#include "base/loop.h"
#include "capsule/command.h"
#include "capsule/plan.h"
#include "capsule/protocol.h"
#include "mtr/capsule-def.h"
#include "store/store.h"

typedef struct mt_runs mt_runs;

typedef struct mt_runs_options {
    mt_loop *loop;
    mt_store *store;
    const char *runner_socket;
    int runs_dirfd; // STATE/runs; stays the caller's
    int vfs_dirfd;  // STATE/vfs, likewise
    const mt_mtr_server *limits;
    int64_t max_live_runs;
    // The socket of a run's sign-in, which listens: fd is the callee's. May come more than once,
    // but not once the run's end has begun. That is told by close_door (also of runs that had
    // none), and once more when the end is stored. On the loop's thread; both may be NULL.
    void (*open_door)(const char *run_id, int fd, uint32_t uid_base, void *doors);
    void (*close_door)(const char *run_id, void *doors);
    void *doors;
    // Who waits for the run or command of this id is to look again. On the loop's thread; may be
    // NULL.
    void (*announce)(const char *id, void *data);
    void *announce_data;
} mt_runs_options;

int mt_runs_new(const mt_runs_options *options, mt_runs **ret, mt_err **err);
void mt_runs_free(mt_runs *runs); // accepts NULL; the runs go on living
mt_loop *mt_runs_loop(const mt_runs *runs);
// Takes up every run that the store says has not ended. Once, before requests are served.
int mt_runs_adopt(mt_runs *runs, mt_err **err);

// Cuts the defaults among limits (those that def does not name) to what this machine has: all the
// memory that runs may use together, half the scratch disk. What def names and is above it is
// refused (badField, with the ceiling).
int mt_runs_fit(mt_runs *runs, const mt_capsule_def *def, mt_plan_limits *limits, mt_err **err);

// diskFull when the state folder's disk is at its floor: then nothing new is started.
int mt_runs_check_disk(mt_runs *runs, mt_err **err);
// Room for one more run of that user, who has a share of it unless an administrator: 0, or
// capacityExceeded naming the ceiling or the share (live runs, memory, disk), or
// diskFull when the state folder's disk is at its floor (5 % or 2 GiB, the lesser). What is
// promised here is given back by mt_runs_release() (the start failed) or when the run ends.
int mt_runs_reserve(mt_runs *runs, const mt_user *user, const mt_plan_limits *limits, mt_err **err);
void mt_runs_release(mt_runs *runs, const char *user_id, const mt_plan_limits *limits);

// Refuses (diskFull) a file system that holds more than its limit after runs have filled it.
int mt_runs_check_vfs(mt_runs *runs, const mt_vfs_record *vfs, mt_err **err);

// Stores a run (room is reserved) and hands its plan to the runner as soon as it is committed; its
// sync goes on beside that and is waited for. Copies the plan. record's id is the plan's. Results
// as mt_store_run_create() has them; *ret_started: it lives, whatever the result, and its room with
// it.
int mt_runs_start(mt_runs *runs, const mt_plan *plan, const mt_run_new *record, mt_run *ret,
                  bool *ret_started, mt_err **err);
// Asks the runner to remove the folder of a run that has ended, or what its commands printed. It
// may not come to it: look, and ask again.
int mt_runs_forget(mt_runs *runs, const char *run_id, mt_forget what, mt_err **err);
// Asks for the end of a run, in any state. What comes of it is told by the run.
int mt_runs_terminate(mt_runs *runs, const char *run_id, const char *by, mt_err **err);

// Stores a command (checked here, all its texts valid) and sends it to its run, at once or when the
// run can be reached; commands of a run go out in the order in which they are stored. record brings
// run_id, by, idempotency_key and request_digest; the rest is filled in. Results as
// mt_store_command_create() has them.
int mt_runs_exec(mt_runs *runs, const mt_command *command, mt_command_new *record,
                 mt_command_record *ret, mt_err **err);
// Asks for the end of one command. What comes of it is told by the command.
int mt_runs_cancel(mt_runs *runs, const mt_command_record *command, const char *by, mt_err **err);
// Gives a run another longest life, counted from its start. 0, or 1 when it has ended.
int mt_runs_extend(mt_runs *runs, const mt_run *run, int64_t max_duration_ms, mt_err **err);

// False when an end of the run that the store has may not be on the disk yet: who waits for it is
// not told. `announce` comes for that id (of the run, or of a command of it) when it is.
bool mt_runs_may_tell(mt_runs *runs, const char *run_id, const char *id);
// True when that is so for the run or command itself: looking at it now is of no use. May miss one.
bool mt_runs_hold_news(mt_runs *runs, const char *id);

// What the runner says of itself and its images. Waits at most two seconds for a fresh answer;
// unavailable when the runner cannot be reached. Everything goes into arena.
int mt_runs_info(mt_runs *runs, mt_arena *arena, mt_info *ret, mt_err **err);
// Has the runner remove the package layers that nobody uses. Waits until that is done, at most a
// minute.
int mt_runs_prune_layers(mt_runs *runs, uint32_t *ret_layers, uint64_t *ret_bytes, mt_err **err);
// The digest of an image by name; notFound names the images that are there.
int mt_runs_image(mt_runs *runs, const char *name, char ret_digest[MT_DIGEST_LEN + 1],
                  mt_err **err);
