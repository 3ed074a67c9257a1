// SPDX-License-Identifier: Apache-2.0
// How a command has ended, as its record tells it.
#include "runner/commands-internal.h"

#include "base/clock.h"
#include "capsule/scratch.h"

#include <signal.h>
#include <sys/wait.h>

void commands_add_size(mt_buf *b, uint64_t bytes)
{
    char text[MT_SIZE_TEXT];
    size_t digits;

    (void)mt_size_format((int64_t)bytes, text);
    digits = strspn(text, "0123456789");
    (void)mt_buf_addf(b, "%.*s %s", (int)digits, text, text + digits);
}

// A process that was killed for memory is the command's where its exit code says "killed", or where
// no other command runs that it may have belonged to.
static bool died_of_memory(const command *c, const mt_cgroup_counters *now, int code)
{
    return now->oom_kills > c->oom_before && code != 0 &&
           (code == 128 + SIGKILL || c->of->running == 1);
}

static uint32_t limits_met(const command *c, const mt_cgroup_counters *now, int code)
{
    const commands_host *h = &c->of->host;
    uint32_t met = 0;

    if (now->oom_kills > c->oom_before)
        met |= MT_LIMIT_MEMORY;
    if (now->pids_refused > c->pids_before)
        met |= MT_LIMIT_PIDS;
    // A full disk stays full: only one that failed has met it.
    if (code != 0 && mt_scratch_met(h->disk_usage_fd, h->limits->disk_bytes))
        met |= MT_LIMIT_DISK;
    return met;
}

// Of one that has failed by itself: a program that meets a limit often just leaves.
static void explain_limits(const command *c, uint32_t met, mt_buf *why)
{
    const mt_plan_limits *limits = c->of->host.limits;

    if (met & MT_LIMIT_MEMORY) {
        (void)mt_buf_adds(why, "the run met its limit of memory (");
        commands_add_size(why, limits->memory_bytes);
        (void)mt_buf_addc(why, ')');
    }
    if (met & MT_LIMIT_PIDS)
        (void)mt_buf_addf(why, "%sthe run met its limit of processes (%u)", why->len ? "; " : "",
                          limits->pids);
    if (met & MT_LIMIT_DISK) {
        (void)mt_buf_addf(why, "%sthe run met its limit of disk (", why->len ? "; " : "");
        commands_add_size(why, limits->disk_bytes);
        (void)mt_buf_addc(why, ')');
    }
}

static void explain_stop(const command *c, mt_command_ended *e, mt_buf *why)
{
    // What a process returns on SIGTERM is not believed: it may be 0.
    e->exit_code =
        WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL ? 128 + SIGKILL : 128 + SIGTERM;
    if (c->stop == STOP_TIMEOUT) {
        e->reason = MT_END_TIMEOUT;
        e->limit_ms = c->what->max_duration_ms;
        (void)mt_buf_addf(why, "out of time after %.10g s", (double)e->limit_ms / 1000);
    } else {
        e->reason = MT_END_TERMINATED;
        (void)mt_buf_addf(why, "cancelled by %s", c->by ? c->by : "?");
    }
}

void command_result(const command *c, const mt_cgroup_counters *now, mt_command_ended *ret,
                    mt_buf *why)
{
    int code = WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);

    *ret = (mt_command_ended){.status = code ? MT_COMMAND_ERROR : MT_COMMAND_FINISHED,
                              .reason = MT_END_EXITED,
                              .exit_code = code,
                              .limits_reached = limits_met(c, now, code)};
    if (c->stop != STOP_NONE) {
        ret->status = MT_COMMAND_ERROR;
        explain_stop(c, ret, why);
    } else if (died_of_memory(c, now, code)) {
        ret->reason = MT_END_OUT_OF_MEMORY;
        (void)mt_buf_adds(why, "out of memory (limit ");
        commands_add_size(why, c->of->host.limits->memory_bytes);
        (void)mt_buf_addc(why, ')');
    } else if (WIFSIGNALED(c->status)) {
        ret->reason = MT_END_SIGNALED;
        ret->signal = (uint32_t)WTERMSIG(c->status);
        (void)mt_buf_addf(why, "killed by signal %d", WTERMSIG(c->status));
    } else if (code != 0) {
        explain_limits(c, ret->limits_reached, why);
    }
}
