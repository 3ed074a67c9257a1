// SPDX-License-Identifier: Apache-2.0
// Between the files of the supervisor. One process, one thread, one run.
//
//   MAKING -> STARTING -> READY ─┐
//     └──────────┴──────────────┴─> ENDING -> ENDED
//
//   MAKING    child and builder make the machine; before that its package layer may be waited for
//   STARTING  mt-init answers; the startup commands run in order
//   READY     recorded, unless the run ends by itself after its startup commands
//   ENDING    the first reason is recorded; everything is being killed
//   ENDED     recorded and synced; attached servers read it, then the process leaves
#pragma once

#include "base/loop.h"
#include "capsule/exec.h"
#include "capsule/initwire.h"
#include "capsule/output.h"
#include "runner/commands.h"
#include "runner/machine.h"
#include "runner/sessions.h"

typedef enum sup_state {
    SUP_MAKING,
    SUP_STARTING,
    SUP_READY,
    SUP_ENDING,
    SUP_ENDED,
} sup_state;

typedef struct supervisor supervisor;
typedef struct sup_client sup_client;

// One startup command.
typedef struct sup_command {
    supervisor *s;
    uint32_t index; // in the plan; also its group and its token
    bool running;
    int err_fd; // its error output; read to the end of the run
    mt_io *err_io;
    mt_tail tail;    // of what came before the command's end
    mt_timer *timer; // its own time, then from SIGTERM to SIGKILL
    bool timed_out;
    uint64_t oom_before;
} sup_command;

enum { SUP_ASKS_MAX = 8 }; // mt-init works one after another; a few keep it busy

typedef struct sup_waiting {
    uint64_t token;
    int group;
} sup_waiting;

// Requests that mt-init has not answered with STARTED or FAILED.
typedef struct sup_asks {
    sup_waiting waiting[SUP_ASKS_MAX]; // the oldest first
    unsigned count;
    unsigned looks; // at the oldest
    mt_timer *timer;
    bool holds; // the youngest could not be sent yet: this one, with fds of its own
    mt_init_request held;
    int fds[MT_INIT_FDS_MAX];
    size_t held_fds;
} sup_asks;

struct supervisor {
    char run_id[40]; // of one that was made ahead
    const mt_plan *plan;
    mt_run_resources *res;
    mt_loop *loop;
    sup_state state;
    mt_machine machine;
    mt_io *report_io, *control_io, *pid_io, *listen_io;
    mt_timer *deadline, *teardown, *linger, *hold_timer;
    bool held; // its commands stand still
    mt_timer *tidy_timer, *settle_timer;
    bool quiet; // nothing was recorded for a while
    mt_timer *memory_timer;
    uint64_t memory_told; // what /proc/meminfo was written for, and when
    int64_t memory_told_ns, memory_pause_ms;
    bool memory_known; // of the machine's first moment, with what follows
    mt_cgroup_memory memory_first;
    mt_cpus cpus_first;
    int64_t teardown_end_ns;
    bool init_ready; // mt-init has said so
    bool leaving;    // the loop ends after this round
    bool waits;      // for its package layer; the machine is not begun
    bool lists_told;
    unsigned lost_looks;
    mt_timer *layer_timer;
    int64_t began_us;
    int64_t ready_us;

    sup_command *commands;
    uint32_t next;    // of the plan's startup list
    uint32_t running; // commands that have not ended
    bool waiting;     // for the end of the one before `next`
    char path[MT_EXEC_PATH_MAX], root_path[MT_EXEC_PATH_MAX];

    sup_asks asks;
    commands *sent;          // to the run
    sessions *sessions;      // of servers in the run
    int64_t max_duration_ms; // the plan's, or what it was extended to

    bool sync_due;   // a record that was added must be on the disk before anybody is told of it
    uint64_t synced; // number of the last record that a sync has covered
    sup_client *clients;
    uint32_t client_count;

    mt_ended ended; // its texts point to the two below
    char *details;
    char *by;
};

// supervisor.c
extern supervisor sup_own; // of this process, which has one run; most of what it writes to is here
// From here to the end of the run, and of the process. The machine has begun, or a sentence says
// why not.
MT_NORETURN void sup_run(supervisor *s, mt_err *why_not);
// Records are written and served at the end of each round of the loop, all with one write.
void sup_record(supervisor *s, mt_record *r);
void sup_note(supervisor *s, const char *text);
void sup_record_phase(supervisor *s, const char *name, uint64_t us);
// Makes the machine of a run that had to wait with it.
void sup_begin_machine(supervisor *s);
// Begins the end of the run. The first call counts, later ones do nothing. what: status, reason and
// what belongs to them; by and details are copied and may be NULL.
void sup_end(supervisor *s, const mt_ended *what, const char *by, const char *details);
// The startup commands are through.
void sup_started(supervisor *s);
// A new longest life. Out of its range, or when the run is ending, it changes nothing.
void sup_extend(supervisor *s, int64_t max_duration_ms, int64_t deadline_ns);

// supervisor-layer.c
int sup_layer_wait(supervisor *s); // until the layer is there; then the machine
char *sup_layer_late(supervisor *s, const char *limit); // a sentence: out of time

// supervisor-seal.c
void sup_seal_calls(supervisor *s);  // the child is made: no other process will be
void sup_seal_rights(supervisor *s); // the machine stands: only its processes are to be ended

// supervisor-startup.c
int sup_startup_init(supervisor *s);
void sup_startup_begin(supervisor *s); // mt-init is ready
void sup_startup_reply(supervisor *s, const mt_init_reply *r);
void sup_startup_go_on(supervisor *s);   // mt-init may be asked again
void sup_startup_abandon(supervisor *s); // the run has ended: records for those that ran

// supervisor-commands.c
int sup_commands_init(supervisor *s);
void sup_commands_abort(supervisor *s);   // the run has ended: a record for each that has not
char *sup_why_ended(const supervisor *s); // the run; NULL when out of memory

// supervisor-disk.c
int sup_disk_init(supervisor *s);
void sup_hold(supervisor *s, bool on);
void sup_disk_full(supervisor *s, const char *sentence); // the run is the one that has to end

// supervisor-views.c
int sup_views_init(supervisor *s);
void sup_views_look(supervisor *s);  // ahead, at what they will say
void sup_views_begin(supervisor *s); // the machine stands
void sup_views_touch(supervisor *s); // a command begins

// supervisor-settle.c
int sup_settle_init(supervisor *s);
void sup_tidy_later(supervisor *s);   // it is ready, or a command has ended
void sup_settle_later(supervisor *s); // something was recorded
void sup_settle_again(supervisor *s); // after what is done now and then in a quiet run, too

// supervisor-clients.c
int sup_clients_init(supervisor *s);
void sup_clients_pump(supervisor *s); // the journal has grown
// The end is in the journal. Who has connected is still served; whoever comes from now on is
// refused, and finds it there.
void sup_clients_last(supervisor *s);
void sup_clients_close(supervisor *s);
void sup_clients_settle(supervisor *s);   // without the memory of buffers that hold nothing
void sup_clients_give_api(supervisor *s); // the sign-in's socket is there
// Queues a whole frame with descriptors (at most MT_FRAME_FDS_MAX, duplicated here; count may be 0)
// for one attached server, after what it was sent before. 0, or a negative errno: nothing was
// queued.
int sup_client_send(sup_client *c, mt_buf *frame, const int *fds, unsigned count);

// supervisor-asks.c
int sup_asks_init(supervisor *s);
// Whether mt-init may be asked for a process now. Where not, sup_startup_go_on() and
// commands_go_on() are called when it may.
bool sup_may_ask(const supervisor *s);
// fds stay the caller's. 0 or negative errno.
int sup_ask(supervisor *s, int group, const mt_init_request *req, const int *fds, size_t count);
void sup_reply(supervisor *s, const mt_init_reply *r); // any of mt-init's but READY

// exec.c
typedef struct sup_exec {
    const char *command;
    const char *const *arguments;
    uint32_t argument_count;
    const char *user;
    const char *working_directory;  // NULL: the user's home
    const mt_plan_env *environment; // besides the plan's, which it overrides
    uint32_t environment_count;
    uint64_t token;
    int program_fd;            // > 0: mt-session, and no command
    int in_fd, out_fd, err_fd; // -1: /dev/null; they stay the caller's
    int group;                 // MT_CGROUP_COMMAND(n)
} sup_exec;
void sup_exec_paths(supervisor *s); // reads the login's PATH from the capsule
int sup_exec_send(supervisor *s, const sup_exec *what, mt_err **err); // where sup_may_ask()
// A sentence for a FAILED reply. folder: NULL, the user's home.
void sup_exec_failure(const supervisor *s, const char *user, const char *folder,
                      const mt_init_reply *r, mt_buf *to);
