// SPDX-License-Identifier: Apache-2.0
// Programs that the gateway's holder keeps running.
#include "runner/gateway-internal.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

enum { FIRST_MS = 50, LONGEST_MS = 10000, LASTING_MS = 10000 };

int tool_init(tool *t, gateway_holder *g, mt_timer_fn *again)
{
    *t = (tool){.g = g, .pidfd = -1};
    t->again = mt_timer_new(g->loop, again, g);
    return t->again ? 0 : -ENOMEM;
}

static void forget(tool *t)
{
    mt_io_remove(t->io);
    t->io = NULL;
    mt_close_fd(&t->pidfd);
    t->pid = 0;
}

static void on_pidfd(mt_io *io, uint32_t events, void *data)
{
    tool *t = data;
    int status = 0;

    if (waitpid(t->pid, &status, WNOHANG) != t->pid)
        return;
    forget(t);
    t->failures = mt_boottime_ns() - t->began_ns < LASTING_MS * 1000000LL ? t->failures + 1 : 1;
    t->ended(t, status);
}

int tool_watch(tool *t, pid_t pid, void (*ended)(tool *t, int status))
{
    t->pid = pid;
    t->ended = ended;
    t->began_ns = mt_boottime_ns();
    t->pidfd = pidfd_open(pid, 0);
    t->io = t->pidfd < 0 ? NULL : mt_io_add(t->g->loop, t->pidfd, EPOLLIN, on_pidfd, t);
    if (t->io)
        return 0;
    tool_end(t);
    return -EMFILE;
}

void tool_again(tool *t)
{
    int64_t ms = FIRST_MS;

    for (unsigned i = 1; i < t->failures && ms < LONGEST_MS; i++)
        ms *= 2;
    mt_timer_in_ms(t->again, MT_MIN(ms, (int64_t)LONGEST_MS));
}

void tool_end(tool *t)
{
    if (t->pid <= 0)
        return;
    (void)kill(t->pid, SIGKILL);
    while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    forget(t);
}
