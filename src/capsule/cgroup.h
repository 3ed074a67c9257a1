// SPDX-License-Identifier: Apache-2.0
// Control groups of runs: limits, killing, counting, removing, behind one table of functions for
// v2 and for v1 (with or without a v2 mount beside it). Nothing is ever mounted on the host: what
// is there is read from /proc/self/mountinfo once.
//
// <run> is the run's id, or the name of the spare that became it (capsule/place.h).
//
//   v2:          maitento-NAME/<run>/init           PID 1 of the capsule
//                maitento-NAME/<run>/cmds[/N]       commands; the limits sit on cmds
//                maitento-NAME/helpers              supervisors
//   v1 memory,   maitento-NAME/<run>                is `cmds`: has the limits
//   pids, cpu…   maitento-NAME/init                 is `init` of every run: no limits of its own
//   v1 freezer   has the whole v2 tree: `cmds/N` is one group only, and out-of-memory kills are
//                counted in one place
//   hybrid       v1 as above, and a v2 group maitento-NAME/<run> that PID 1 is born in: kills all
//
// A process that moves to another v2 group, or is moved in v1, waits for an RCU grace period (7 ms
// where nobody moved just before). So PID 1 and supervisors are born in their v2 groups, and in v1
// each process moves itself by the `tasks` file, which is free of it for a process of one thread.
//
// All functions are for one process at a time per run: the runner makes a run's groups, the
// supervisor (which has the handle by fork) uses them, the runner removes them after its death.
// A handle is a set of folder fds, usable after fork, chroot and dropping to CAP_KILL as root.
#pragma once

#include "base/err.h"
#include "capsule/cpus.h"
#include "capsule/plan.h"

typedef enum mt_cgroup_mode { MT_CGROUP_AUTO, MT_CGROUP_V1, MT_CGROUP_V2 } mt_cgroup_mode;
enum {
    MT_CGROUP_JOIN_MAX = 8, // hierarchies that a process may have to join
    MT_CGROUP_NOTICES_MAX = 12,
};

// Where in a run: one of these, or MT_CGROUP_COMMAND(n) for cmds/N.
enum { MT_CGROUP_BORN = -4, MT_CGROUP_ALL = -3, MT_CGROUP_INIT = -2, MT_CGROUP_CMDS = -1 };
#define MT_CGROUP_COMMAND(n) ((int)(n))

typedef struct mt_cgroups mt_cgroups; // of the instance
typedef struct mt_cgroup mt_cgroup;   // of one run

typedef struct mt_cgroups_options {
    const char *instance;    // name: the parent group is maitento-<instance>
    mt_cgroup_mode mode;     // V1 forces the pure v1 form, as if no v2 mount were there
    uint64_t memory_reserve; // kept for the machine: all runs together get the rest; 0: a tenth, at
                             // least 256 MiB, at most 4 GiB
} mt_cgroups_options;

// Finds the hierarchies and makes the instance's parent. Fails only where no usable hierarchy for
// tracking and killing is there; missing controllers are notices.
int mt_cgroups_open(const mt_cgroups_options *o, mt_cgroups **ret, mt_err **err);
void mt_cgroups_close(mt_cgroups *cgs); // fds only; accepts NULL
// Removes the parent where no run is left in it.
void mt_cgroups_remove_parent(mt_cgroups *cgs);
const char *mt_cgroups_mode_word(const mt_cgroups *cgs); // "v2", "hybrid", "v1"
uint64_t mt_cgroups_memory_cap(const mt_cgroups *cgs);
size_t mt_cgroups_notices(const mt_cgroups *cgs, const char *const **ret); // for the doctor
// Folder fd of the group of supervisors in the v2 hierarchy, for CLONE_INTO_CGROUP: whoever is born
// there is out of the service's unit at no cost, while moving there costs an RCU grace period (7
// ms). -1 on pure v1. The caller's.
int mt_cgroups_helpers_fd(mt_cgroups *cgs);
// Moves the caller there; it has one thread.
int mt_cgroups_join_helpers(mt_cgroups *cgs);
// Kills all supervisors and waits for their ends: 0, -ETIMEDOUT.
int mt_cgroups_kill_helpers(mt_cgroups *cgs, int64_t deadline_ns);
// Names (capsule/place.h) that have a group; calls fn for each.
int mt_cgroups_each(mt_cgroups *cgs, void (*fn)(const char *place, void *data), void *data);

// Whether any instance's run has (or had and not yet lost) a group: then processes may be in it.
bool mt_cgroups_exists(mt_cgroups *cgs, const char *instance, const char *place);

// Makes the groups of a run (place: capsule/place.h) and sets its limits; NULL: none as yet.
int mt_cgroup_make(mt_cgroups *cgs, const char *place, const mt_plan_limits *limits,
                   mt_cgroup **ret, mt_err **err);
int mt_cgroup_limit(mt_cgroup *cg, const mt_plan_limits *limits, mt_err **err);
// Processors, by the cpuset controller: those that all runs may use, those of a run (the same,
// unless it was bound to some of them). Their number, 0 where it cannot be known.
unsigned mt_cgroups_cpus(mt_cgroups *cgs, mt_cpus *ret);
unsigned mt_cgroup_cpus(mt_cgroup *cg, mt_cpus *ret);
int mt_cgroup_bind_cpus(mt_cgroup *cg, const mt_cpus *cpus, mt_err **err);

// Those of a run that has them already. 1 and *ret NULL where it has none.
int mt_cgroup_open(mt_cgroups *cgs, const char *place, mt_cgroup **ret, mt_err **err);
void mt_cgroup_close(mt_cgroup *cg); // fds only; accepts NULL
MT_DEFINE_CLEANUP(mt_cgroup_close, mt_cgroup *)

// The fds of the handle, for a process that closes all others. Returns their number.
enum { MT_CGROUP_FDS_MAX = 16 };
size_t mt_cgroup_fds(const mt_cgroup *cg, int fds[MT_CGROUP_FDS_MAX]);

// The group of one command (0 <= n); fine where it is there.
int mt_cgroup_make_command(mt_cgroup *cg, uint32_t n, mt_err **err);
// The same before anybody asks, with the file by which it is joined: one group at a time. What
// fails is tried again when it is asked for.
void mt_cgroup_make_ahead(mt_cgroup *cg, uint32_t n);
int mt_cgroup_remove_command(mt_cgroup *cg, uint32_t n); // 0, or negative errno (-EBUSY: not empty)

// Opens the files (for writing) into which a process writes "0" to move itself to that place, one
// for each hierarchy; any process that inherits the fds may do so. MT_CGROUP_CMDS: the limits and
// the tracking group cmds. MT_CGROUP_COMMAND(n): the limits and cmds/N. Returns their number (at
// most MT_CGROUP_JOIN_MAX) or -1 with *err; the fds are the caller's, CLOEXEC.
int mt_cgroup_join_fds(mt_cgroup *cg, int where, int fds[MT_CGROUP_JOIN_MAX], mt_err **err);
// MT_CGROUP_BORN: what a process that was born in the group of mt_cgroup_birth_fd() still has to
// join to stand in MT_CGROUP_CMDS; may be none. Moves a process there; pid 0 is the caller.
int mt_cgroup_join(mt_cgroup *cg, int where, pid_t pid, mt_err **err);
// Folder fd of the group that PID 1 should be born in (CLONE_INTO_CGROUP), or -1 on pure v1. The
// caller's.
int mt_cgroup_birth_fd(mt_cgroup *cg);

// SIGKILL for every process in the subtree, also those that are being forked. Returns at once.
int mt_cgroup_kill(mt_cgroup *cg, int where);
// Another signal for every process that is in the subtree now (time-outs: SIGTERM). CAP_KILL
// needed.
int mt_cgroup_signal(mt_cgroup *cg, int where, int sig);
// 1 when processes are there, 0 when none are (or the group is gone), negative errno.
int mt_cgroup_populated(mt_cgroup *cg, int where);
// Waits until none are: 0, or -ETIMEDOUT. Kills again while waiting when kill is set.
int mt_cgroup_wait_empty(mt_cgroup *cg, int where, bool kill, int64_t deadline_ns);
// The same, killing again, for all of a run whose processes were all born in the group of
// mt_cgroup_birth_fd(): where there is one, it alone is looked at.
int mt_cgroup_wait_gone(mt_cgroup *cg, int64_t deadline_ns);
// An fd that polls with POLLPRI when `populated` of that place changes (v2 beside or alone), or -1:
// then poll mt_cgroup_populated() by a timer. Read it from offset 0 to arm it. The caller's.
int mt_cgroup_events_fd(mt_cgroup *cg, int where);
int mt_cgroup_freeze(mt_cgroup *cg, bool frozen);

typedef struct mt_cgroup_counters {
    uint64_t oom_kills;    // processes killed at the run's memory limit (or the machine's)
    uint64_t memory_peak;  // bytes; 0 when unknown
    uint64_t pids_refused; // forks refused at the limit
    uint64_t cpu_us;
    bool oom_known; // false where no memory controller is there
} mt_cgroup_counters;
// Of the commands of a run (cmds). What cannot be read is 0.
void mt_cgroup_counters_get(mt_cgroup *cg, mt_cgroup_counters *ret);
// Of them only those that tell of a limit (not memory_peak, cpu_us): a file each.
void mt_cgroup_limits_met(mt_cgroup *cg, mt_cgroup_counters *ret);

typedef struct mt_cgroup_memory { // of the commands of a run, in bytes; what is not known is 0
    uint64_t used;
    uint64_t cache; // of files, those of tmpfs included
    uint64_t shmem; // these
    uint64_t dirty; // of files, not on their disk yet
    uint64_t active_anon, inactive_anon, active_file, inactive_file;
} mt_cgroup_memory;
// False where no memory controller is there.
bool mt_cgroup_memory_get(mt_cgroup *cg, mt_cgroup_memory *ret);

// Kills, waits and removes all groups of that name; nothing there is fine. -ETIMEDOUT.
int mt_cgroups_sweep(mt_cgroups *cgs, const char *place, int64_t deadline_ns);
