// SPDX-License-Identifier: Apache-2.0
// What programs inside read to find out how large their machine is: /proc/meminfo and the list of
// processors are files of ours with the run's own numbers. The first is written anew when a command
// begins, and now and then, as long as its numbers change.
#include "base/clock.h"
#include "base/fd.h"
#include "runner/supervisor-internal.h"

#include <errno.h>
#include <stdio.h>

enum {
    FIRST_MS = 1000,
    LAST_MS = 64000, // the pause is doubled up to this while nothing changes
    FRESH_MS = 100,
    TEXT_MAX = 2048,
};

static void add(mt_buf *b, const char *name, uint64_t bytes)
{
    (void)mt_buf_addf(b, "%-16s%12llu kB\n", name, (unsigned long long)(bytes >> 10));
}

// Always of the same length, so that a reader sees no half of it.
static void compose(const supervisor *s, const mt_cgroup_memory *m, mt_buf *b)
{
    uint64_t total = s->plan->limits.memory_bytes;
    uint64_t used = MT_MIN(m->used, total), files = m->active_file + m->inactive_file;
    uint64_t available = MT_MIN(total - used + files, total);

    add(b, "MemTotal:", total);
    add(b, "MemFree:", total - used);
    add(b, "MemAvailable:", available);
    add(b, "Buffers:", 0);
    add(b, "Cached:", m->cache);
    add(b, "SwapCached:", 0);
    add(b, "Active:", m->active_anon + m->active_file);
    add(b, "Inactive:", m->inactive_anon + m->inactive_file);
    add(b, "Active(anon):", m->active_anon);
    add(b, "Inactive(anon):", m->inactive_anon);
    add(b, "Active(file):", m->active_file);
    add(b, "Inactive(file):", m->inactive_file);
    add(b, "SwapTotal:", 0);
    add(b, "SwapFree:", 0);
    add(b, "Dirty:", m->dirty);
    add(b, "Shmem:", m->shmem);
    add(b, "SReclaimable:", 0);
}

static void write_memory(supervisor *s, const mt_cgroup_memory *now)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(TEXT_MAX);
    bool same = now->used == s->memory_told;

    s->memory_told = now->used;
    s->memory_pause_ms = same ? MT_MIN(2 * s->memory_pause_ms, LAST_MS) : FIRST_MS;
    if (!same) {
        compose(s, now, &text);
        (void)!pwrite(s->machine.meminfo_fd, mt_buf_str(&text), text.len, 0);
    }
    s->memory_told_ns = mt_boottime_ns();
    mt_timer_in_ms(s->memory_timer, s->memory_pause_ms);
}

static void on_memory(mt_timer *timer, void *data)
{
    mt_cgroup_memory now;
    supervisor *s = data;

    (void)timer;
    if (s->state < SUP_ENDING && s->machine.meminfo_fd >= 0 &&
        mt_cgroup_memory_get(s->res->cgroup, &now))
        write_memory(s, &now);
    sup_settle_again(s);
}

// How many there are is found out by way of files: only where it has to be.
static void look_at_cpus(supervisor *s)
{
    long count;

    if (mt_cgroup_cpus(s->res->cgroup, &s->cpus_first) > 0)
        return;
    count = sysconf(_SC_NPROCESSORS_CONF);
    for (long cpu = 0; cpu < count; cpu++)
        mt_cpus_add(&s->cpus_first, (unsigned)cpu);
}

static void write_cpus(supervisor *s)
{
    char list[MT_CPUS_TEXT];
    size_t len;

    (void)mt_cpus_format(&s->cpus_first, list);
    len = strlen(list);
    list[len] = '\n';
    if (s->machine.cpus_fd >= 0)
        (void)!pwrite(s->machine.cpus_fd, list, len + 1, 0);
}

int sup_views_init(supervisor *s)
{
    s->memory_timer = mt_timer_new(s->loop, on_memory, s);
    s->memory_told = UINT64_MAX;
    return s->memory_timer ? 0 : -1;
}

void sup_views_look(supervisor *s)
{
    look_at_cpus(s);
    s->memory_known = mt_cgroup_memory_get(s->res->cgroup, &s->memory_first);
}

void sup_views_begin(supervisor *s)
{
    write_cpus(s);
    if (s->memory_known && s->machine.meminfo_fd >= 0)
        write_memory(s, &s->memory_first);
}

// After the command was asked for: it takes longer to begin than this does.
void sup_views_touch(supervisor *s)
{
    s->memory_pause_ms = FIRST_MS;
    if (mt_boottime_ns() - s->memory_told_ns > FRESH_MS * 1000000ll)
        mt_timer_in_ms(s->memory_timer, 0);
}
