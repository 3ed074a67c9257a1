// SPDX-License-Identifier: Apache-2.0
// Groups of v1: limits in the memory, pids and cpu hierarchies, tracking and killing in the
// freezer's where no v2 hierarchy is mounted beside them.
#include "capsule/cgroup-internal.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

static int freeze(int fd, bool frozen)
{
    return cg_write(fd, "freezer.state", frozen ? "FROZEN" : "THAWED");
}

static int kill_one(pid_t pid, void *data)
{
    return kill(pid, SIGKILL) < 0 && errno != ESRCH ? -errno : 0;
}

// Frozen first, so that no process can fork away between reading the list and the signal. The
// freezer may need a moment to reach everybody; who is missed by then is met by the next round of
// mt_cgroup_wait_empty().
static int kill_all(int fd)
{
    char state[32];
    int r;

    (void)freeze(fd, true);
    for (int i = 0; i < 20; i++) {
        if (cg_read(fd, "freezer.state", state, sizeof(state)) < 0 ||
            strncmp(state, "FROZEN", 6) == 0)
            break;
        (void)poll(NULL, 0, 1);
        (void)freeze(fd, true);
    }
    r = cg_each_process(fd, kill_one, NULL);
    (void)freeze(fd, false);
    return r;
}

static int found(pid_t pid, void *data)
{
    return 1;
}

static int populated(int fd)
{
    int r = cg_each_process(fd, found, NULL);

    return r == -ENOENT || r == -ENODEV ? 0 : r;
}

const cg_track_ops cg_track_v1 = {
    .join_file = "tasks",
    .kill = kill_all,
    .populated = populated,
    .freeze = freeze,
    .events_file = NULL,
};

// A new limit below the old one of memory+swap and above it need opposite orders; a new group has
// none, the instance's parent may.
static int set_memory(int fd, uint64_t bytes)
{
    int r = cg_write_u64(fd, "memory.limit_in_bytes", bytes), swap;

    swap = cg_write_u64(fd, "memory.memsw.limit_in_bytes", bytes);
    // Buffers of TCP sockets are counted by themselves here, and only where they have a limit.
    (void)cg_write_u64(fd, "memory.kmem.tcp.limit_in_bytes", bytes / 4);
    if (r == -EINVAL || r == -EBUSY)
        r = cg_write_u64(fd, "memory.limit_in_bytes", bytes);
    return r == 0 && swap < 0 && swap != -ENOENT ? swap : r; // missing without swap accounting
}

static int set_pids(int fd, uint64_t count)
{
    return cg_write_u64(fd, "pids.max", count);
}

static int set_cpu(int fd, uint32_t milli)
{
    int r = cg_write_u64(fd, "cpu.cfs_period_us", 100000);

    return r < 0 ? r : cg_write_u64(fd, "cpu.cfs_quota_us", (uint64_t)milli * 100);
}

static void used(int fd, cg_controller which, mt_cgroup_counters *ret)
{
    uint64_t ns;

    if (which == CG_MEMORY)
        (void)cg_read_number(fd, "memory.max_usage_in_bytes", NULL, &ret->memory_peak);
    else if (which == CG_CPUACCT && cg_read_number(fd, "cpuacct.usage", NULL, &ns))
        ret->cpu_us = ns / 1000;
}

static void memory_now(int fd, mt_cgroup_memory *m)
{
    uint64_t writeback = 0;
    const cg_number wanted[] = {
        {"cache", &m->cache},
        {"shmem", &m->shmem},
        {"dirty", &m->dirty},
        {"writeback", &writeback},
        {"active_anon", &m->active_anon},
        {"inactive_anon", &m->inactive_anon},
        {"active_file", &m->active_file},
        {"inactive_file", &m->inactive_file},
    };

    (void)cg_read_number(fd, "memory.usage_in_bytes", NULL, &m->used);
    cg_read_numbers(fd, "memory.stat", wanted, MT_ARRAY_SIZE(wanted));
    m->dirty += writeback;
}

const cg_limit_ops cg_limit_v1 = {
    .memory = set_memory,
    .pids = set_pids,
    .cpu = set_cpu,
    .oom_kills = {"memory.oom_control", "oom_kill"},
    .pids_refused = {"pids.events", "max"},
    .used = used,
    .memory_now = memory_now,
};
