// SPDX-License-Identifier: Apache-2.0
// Groups of the v2 hierarchy, alone or beside v1.
#include "capsule/cgroup-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int kill_all(int fd)
{
    return cg_write(fd, "cgroup.kill", "1");
}

static int populated(int fd)
{
    uint64_t v;

    if (!cg_read_number(fd, "cgroup.events", "populated", &v))
        return errno == ENOENT || errno == ENODEV ? 0 : -errno;
    return v != 0;
}

static int freeze(int fd, bool frozen)
{
    return cg_write(fd, "cgroup.freeze", frozen ? "1" : "0");
}

const cg_track_ops cg_track_v2 = {
    .join_file = "cgroup.procs",
    .kill = kill_all,
    .populated = populated,
    .freeze = freeze,
    .events_file = "cgroup.events",
};

// The limit is of memory and swap together, so no swap at all: what would be swapped is still there
// to be charged.
static int set_memory(int fd, uint64_t bytes)
{
    int r = cg_write_u64(fd, "memory.max", bytes);

    if (r == 0)
        (void)cg_write(fd, "memory.swap.max", "0"); // missing without swap accounting
    return r;
}

static int set_pids(int fd, uint64_t count)
{
    return cg_write_u64(fd, "pids.max", count);
}

static int set_cpu(int fd, uint32_t milli)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%llu 100000", (unsigned long long)milli * 100);
    return cg_write(fd, "cpu.max", text);
}

static void used(int fd, cg_controller which, mt_cgroup_counters *ret)
{
    if (which == CG_MEMORY)
        (void)cg_read_number(fd, "memory.peak", NULL, &ret->memory_peak); // since Linux 5.19
    else if (which == CG_CPU || which == CG_CPUACCT) // also where no controller is enabled
        (void)cg_read_number(fd, "cpu.stat", "usage_usec", &ret->cpu_us);
}

static void memory_now(int fd, mt_cgroup_memory *m)
{
    uint64_t writeback = 0;
    const cg_number wanted[] = {
        {"file", &m->cache},
        {"shmem", &m->shmem},
        {"file_dirty", &m->dirty},
        {"file_writeback", &writeback},
        {"active_anon", &m->active_anon},
        {"inactive_anon", &m->inactive_anon},
        {"active_file", &m->active_file},
        {"inactive_file", &m->inactive_file},
    };

    (void)cg_read_number(fd, "memory.current", NULL, &m->used);
    cg_read_numbers(fd, "memory.stat", wanted, MT_ARRAY_SIZE(wanted));
    m->dirty += writeback;
}

const cg_limit_ops cg_limit_v2 = {
    .memory = set_memory,
    .pids = set_pids,
    .cpu = set_cpu,
    .oom_kills = {"memory.events", "oom_kill"},
    .pids_refused = {"pids.events", "max"},
    .used = used,
    .memory_now = memory_now,
};
