// SPDX-License-Identifier: Apache-2.0
// What the two kinds of hierarchy do differently.
#pragma once

#include "capsule/cgroup.h"

typedef enum cg_controller { CG_MEMORY, CG_PIDS, CG_CPU, CG_CPUACCT, CG_CONTROLLERS } cg_controller;

// The tracking tree: who is in a run, and killing them. group_fd: the folder of the group.
typedef struct cg_track_ops {
    const char *join_file; // "0" written into it moves the caller, a process with one thread
    int (*kill)(int group_fd);
    int (*populated)(int group_fd); // 1, 0, negative errno
    int (*freeze)(int group_fd, bool frozen);
    const char *events_file; // polls with POLLPRI; NULL when there is none
} cg_track_ops;

// Limits and counters of one controller. group_fd: the folder that has the limits of a run.
typedef struct cg_limit_ops {
    int (*memory)(int group_fd, uint64_t bytes);
    int (*pids)(int group_fd, uint64_t count);
    int (*cpu)(int group_fd, uint32_t milli);
    void (*count)(int group_fd, cg_controller which, mt_cgroup_counters *ret);
} cg_limit_ops;

extern const cg_track_ops cg_track_v2, cg_track_v1;
extern const cg_limit_ops cg_limit_v2, cg_limit_v1;

// Small files of groups: 0 or negative errno.
int cg_write(int dirfd, const char *file, const char *text);
int cg_write_u64(int dirfd, const char *file, uint64_t value);
int cg_read(int dirfd, const char *file, char *out, size_t size); // bytes, NUL behind
// Number behind "key " at the start of a line of the file; a NULL key: the file's only number.
bool cg_read_number(int dirfd, const char *file, const char *key, uint64_t *ret);
// Calls fn for each process in the group and all below it: 0, the first non-zero answer of fn, or
// negative errno.
int cg_each_process(int group_fd, int (*fn)(pid_t pid, void *data), void *data);
