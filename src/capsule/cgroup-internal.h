// SPDX-License-Identifier: Apache-2.0
// What the two kinds of hierarchy do differently.
#pragma once

#include "capsule/cgroup.h"

typedef enum cg_controller {
    CG_MEMORY,
    CG_PIDS,
    CG_CPU,
    CG_CPUACCT,
    CG_CPUSET,
    CG_CONTROLLERS
} cg_controller;

// The tracking tree: who is in a run, and killing them. group_fd: the folder of the group.
typedef struct cg_track_ops {
    const char *join_file; // "0" written into it moves the caller, a process with one thread
    int (*kill)(int group_fd);
    int (*populated)(int group_fd); // 1, 0, negative errno
    int (*freeze)(int group_fd, bool frozen);
    const char *events_file; // polls with POLLPRI; NULL when there is none
} cg_track_ops;

typedef struct cg_number_at {
    const char *file, *key; // cg_number_in()
} cg_number_at;

typedef void cg_count_fn(int group_fd, cg_controller which, mt_cgroup_counters *ret);

// Limits and counters of one controller. group_fd: the folder that has the limits of a run.
typedef struct cg_limit_ops {
    int (*memory)(int group_fd, uint64_t bytes);
    int (*pids)(int group_fd, uint64_t count);
    int (*cpu)(int group_fd, uint32_t milli);
    cg_number_at oom_kills, pids_refused; // whether a limit was met
    cg_count_fn *used;
    void (*memory_now)(int group_fd, mt_cgroup_memory *ret);
} cg_limit_ops;

enum { CG_V1_MAX = 5 }; // hierarchies of v1 that matter

extern const cg_track_ops cg_track_v2, cg_track_v1;
extern const cg_limit_ops cg_limit_v2, cg_limit_v1;

// Small files of groups: 0 or negative errno.
int cg_write(int dirfd, const char *file, const char *text);
int cg_copy(int from_dirfd, int to_dirfd, const char *file);
int cg_write_u64(int dirfd, const char *file, uint64_t value);
int cg_read(int dirfd, const char *file, char *out, size_t size); // bytes, NUL behind
// Number behind "key " at the start of a line of the text; a NULL key: its only number.
bool cg_number_in(const char *text, const char *key, uint64_t *ret);
bool cg_read_number(int dirfd, const char *file, const char *key, uint64_t *ret);
// Several such numbers of one file at once; those that are missing are left as they are.
typedef struct cg_number {
    const char *key;
    uint64_t *value;
} cg_number;
void cg_read_numbers(int dirfd, const char *file, const cg_number *wanted, size_t count);
// Calls fn for each process in the group and all below it: 0, the first non-zero answer of fn, or
// negative errno.
int cg_each_process(int group_fd, int (*fn)(pid_t pid, void *data), void *data);
// A folder of a group: its fd or negative errno. cg_make_dir makes it where it is missing.
int cg_open_dir(int dirfd, const char *name);
int cg_make_dir(int dirfd, const char *name);
// On v2 a group passes controllers on to those in it only when told. Returns those that it did.
unsigned cg_pass_on(int group_fd, unsigned wanted);
int cg_join_by_file(int group_fd, const char *file, pid_t pid);

enum { NOTICE_MAX = 320 };

struct mt_cgroups {
    char parent[64]; // maitento-NAME
    const cg_track_ops *track_ops;
    bool track_v2;
    int root_fd;      // of the tracking hierarchy
    int track_fd;     // the instance's parent there
    int v2_root_fd;   // hybrid: the v2 hierarchy beside it, else -1
    int v2_fd;        // and the instance's parent there
    unsigned limited; // controllers that limit by the tracking hierarchy itself (v2)
    struct {
        int root_fd;
        int parent_fd;
        int init_fd;
        unsigned controllers;
    } v1[CG_V1_MAX];
    size_t v1_count;
    uint64_t memory_cap;
    char notices[MT_CGROUP_NOTICES_MAX][NOTICE_MAX];
    const char *notice_list[MT_CGROUP_NOTICES_MAX];
    size_t notice_count;
};

// All fds are the run's own, so that a supervisor can be left with these alone.
struct mt_cgroup {
    const cg_track_ops *track_ops;
    bool track_v2;
    unsigned limited;
    int run_fd, init_fd, cmds_fd; // tracking
    int all_fd;                   // hybrid: the run's v2 group
    int ahead_fd; // the file to join the group of command `ahead`; -1: none is ready
    uint32_t ahead;
    int oom_kills_fd, pids_refused_fd; // kept from the first look on
    struct {
        int cmds_fd; // has the limits
        int init_fd; // shared by the instance
        int join_fd; // the file by which cmds is joined, from the first join on
        unsigned controllers;
    } v1[CG_V1_MAX];
    size_t v1_count;
};
