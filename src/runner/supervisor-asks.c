// SPDX-License-Identifier: Apache-2.0
// Requests to mt-init and its answers. It makes one process after another, so only a few requests
// are on their way at a time: more would fill its socket, and what a supervisor may have in flight.
// Whoever has more to ask keeps it where it is, and is told when there is room.
#include "base/fd.h"
#include "runner/supervisor-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

enum {
    LOOK_MS = 10,
    LOOKS = 500,
};

static int send_request(int socket, const mt_init_request *req, const int *fds, size_t count)
{
    return mt_send_fds(socket, req, sizeof(*req), fds, count, MSG_DONTWAIT);
}

// --- one that could not be sent ------------------------------------------------------------------

// Besides a full socket: fds that all supervisors together have on their way count as one user's.
static bool passes(int error)
{
    return error == -EAGAIN || error == -ETOOMANYREFS || error == -ENOBUFS;
}

static void held_close(sup_asks *a)
{
    for (size_t i = 0; i < a->held_fds; i++)
        mt_close_fd(&a->fds[i]);
    a->held_fds = 0;
    a->holds = false;
}

static int hold(sup_asks *a, const mt_init_request *req, const int *fds, size_t count)
{
    a->holds = true;
    a->held = *req;
    while (a->held_fds < count) {
        int fd = fcntl(fds[a->held_fds], F_DUPFD_CLOEXEC, 3);

        if (fd < 0) {
            int e = errno;

            held_close(a);
            return -e;
        }
        a->fds[a->held_fds++] = fd;
    }
    return 0;
}

// True when nothing is held any more.
static bool send_held(supervisor *s)
{
    sup_asks *a = &s->asks;
    int r = a->holds ? send_request(s->machine.control_fd, &a->held, a->fds, a->held_fds) : 0;

    if (passes(r))
        return false;
    held_close(a); // any other error is the end of mt-init, which is told by its pidfd
    return true;
}

// --- asking --------------------------------------------------------------------------------------

bool sup_may_ask(const supervisor *s)
{
    return s->asks.count < SUP_ASKS_MAX && !s->asks.holds;
}

int sup_ask(supervisor *s, int group, const mt_init_request *req, const int *fds, size_t count)
{
    sup_asks *a = &s->asks;
    int r = a->count < SUP_ASKS_MAX ? send_request(s->machine.control_fd, req, fds, count) : -EBUSY;

    if (passes(r))
        r = hold(a, req, fds, count);
    if (r < 0)
        return r;
    if (a->count == 0) {
        a->looks = 0;
        mt_timer_in_ms(a->timer, LOOK_MS);
    }
    a->waiting[a->count++] = (sup_waiting){req->token, group};
    return 0;
}

static void nudge(supervisor *s, int group)
{
    if (++s->asks.looks < LOOKS)
        (void)mt_cgroup_signal(s->res->cgroup, group, SIGCONT);
    else
        (void)mt_cgroup_kill(s->res->cgroup, group);
}

// mt-init waits for its child to execute. That child is its user's from a moment before, and may be
// stopped by others of that user's: then mt-init, and all who wait for it, would wait for ever.
static void on_look(mt_timer *timer, void *data)
{
    supervisor *s = data;
    sup_asks *a = &s->asks;

    if (s->state >= SUP_ENDING || a->count == 0)
        return;
    (void)send_held(s);
    if (!s->held) // else it stands still with the whole run, which is not its own time
        nudge(s, a->waiting[0].group);
    mt_timer_in_ms(timer, LOOK_MS);
}

static void answered(supervisor *s, uint64_t token)
{
    sup_asks *a = &s->asks;
    unsigned i = 0;

    while (i < a->count && a->waiting[i].token != token)
        i++;
    if (i == a->count)
        return;
    a->count--;
    memmove(&a->waiting[i], &a->waiting[i + 1], (a->count - i) * sizeof(a->waiting[0]));
    a->looks = 0;
    if (!send_held(s) || a->count > 0)
        mt_timer_in_ms(a->timer, LOOK_MS);
    else
        mt_timer_stop(a->timer);
}

void sup_reply(supervisor *s, const mt_init_reply *r)
{
    if (s->state >= SUP_ENDING)
        return;
    if (r->type != MT_INIT_EXITED)
        answered(s, r->token);
    if (r->token < s->plan->startup_count)
        sup_startup_reply(s, r);
    else if (r->token >= SESSIONS_FIRST)
        sup_sessions_reply(s, r);
    else
        commands_reply(s->sent, r);
    if (s->state >= SUP_ENDING)
        return;
    sup_startup_go_on(s);
    commands_go_on(s->sent);
    sup_sessions_go_on(s);
}

int sup_asks_init(supervisor *s)
{
    s->asks.timer = mt_timer_new(s->loop, on_look, s);
    return s->asks.timer ? 0 : -1;
}
