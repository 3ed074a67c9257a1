// SPDX-License-Identifier: Apache-2.0
// The runner's side of the gateway: finds a holder or forks one, and keeps namespaces that it has
// made in a pool.
#include "runner/gateway.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
    TAKE_MS = 6000, // a start waits for a namespace at most
    AGAIN_MS = 200, // after a holder that died
    REAP_MS = 1000,
    END_MS = 3000,
};

struct gateway {
    runner *r;
    int fd; // -1: there is no holder
    mt_io *io;
    pid_t pid;
    bool foreign; // who listens there is of no use: one of our own takes its place
    int netns_fd; // the gateway's: kept, so that a holder's death takes no connection of capsules
    gateway_state state;
    char sentence[GATEWAY_TEXT], notice[GATEWAY_TEXT];
    char failure[GATEWAY_TEXT]; // why one that was asked for did not come
    int netns[RUNNER_NETNS_POOL], life[RUNNER_NETNS_POOL];
    unsigned count, asked;
    mt_timer *again;
};

static void name_socket(const runner *r, char out[64])
{
    (void)snprintf(out, 64, "gateway-%.32s", r->o.instance);
}

static struct sockaddr_un address_of(const runner *r)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char name[64];

    name_socket(r, name);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", r->ids_fd, name);
    return a;
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool reach(gateway *g)
{
    struct sockaddr_un a = address_of(g->r);
    _cleanup_close_ int fd = new_socket();

    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        return false;
    g->fd = MT_TAKE_FD(fd);
    return true;
}

// --- a new holder --------------------------------------------------------------------------------

static int open_listener(const runner *r)
{
    struct sockaddr_un a = address_of(r);
    _cleanup_close_ int fd = new_socket();
    char name[64];

    name_socket(r, name);
    (void)unlinkat(r->ids_fd, name, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
        fchmodat(r->ids_fd, name, 0600, 0) < 0 || listen(fd, 4) < 0)
        return -errno;
    return MT_TAKE_FD(fd);
}

MT_NORETURN static void hold(gateway *g, int listen_fd)
{
    const runner *r = g->r;
    gateway_parts parts = {.listen_fd = listen_fd,
                           .mounts_fd = r->host_mounts_fd,
                           .namespace_fd = g->netns_fd,
                           .dns_fd = r->net_fd,
                           .dns_uid = r->o.net_uid,
                           .dns_gid = r->o.net_uid};
    int keep[] = {listen_fd, r->host_mounts_fd, g->netns_fd, r->net_fd};

    (void)prctl(PR_SET_NAME, "mt-gateway");
    launch_detach(g->r);
    launch_close_but(keep, MT_ARRAY_SIZE(keep));
    gateway_hold(&parts);
}

static int start_holder(gateway *g)
{
    _cleanup_close_ int listen_fd = open_listener(g->r);

    if (listen_fd < 0 || !reach(g))
        return listen_fd < 0 ? listen_fd : -errno;
    g->pid = launch_helper(g->r);
    if (g->pid == 0)
        hold(g, listen_fd);
    return g->pid < 0 ? -errno : 0;
}

// --- talk ----------------------------------------------------------------------------------------

static void empty_pool(gateway *g)
{
    for (unsigned i = 0; i < g->count; i++) {
        mt_close_fd(&g->netns[i]);
        mt_close_fd(&g->life[i]);
    }
    g->count = g->asked = 0;
}

// It was a child of this runner or of one before.
static void reap(pid_t pid, int wait_ms)
{
    _cleanup_close_ int pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    if (pidfd >= 0)
        (void)poll(&p, 1, wait_ms);
    if (pid > 0)
        (void)waitpid(pid, NULL, WNOHANG);
}

static void hang_up(gateway *g)
{
    mt_io_remove(g->io);
    g->io = NULL;
    mt_close_fd(&g->fd);
    empty_pool(g);
    g->state = GATEWAY_COMING;
}

static void take_space(gateway *g, int fds[2])
{
    if (g->asked)
        g->asked--;
    if (g->count == RUNNER_NETNS_POOL || fds[0] < 0 || fds[1] < 0)
        return;
    g->netns[g->count] = MT_TAKE_FD(fds[0]);
    g->life[g->count++] = MT_TAKE_FD(fds[1]);
}

static void take_state(gateway *g, const gateway_message *m, int *netns_fd)
{
    g->state = m->state;
    g->pid = m->pid;
    memcpy(g->sentence, m->sentence, sizeof(g->sentence));
    memcpy(g->notice, m->notice, sizeof(g->notice));
    if (*netns_fd < 0)
        return;
    mt_close_fd(&g->netns_fd);
    g->netns_fd = MT_TAKE_FD(*netns_fd);
}

// 0, or negative at the end.
static int take_messages(gateway *g)
{
    gateway_message m;
    int fds[2], r;

    while ((r = gateway_receive(g->fd, &m, fds)) > 0) {
        if (m.kind == GATEWAY_TELLS)
            take_state(g, &m, &fds[0]);
        if (m.kind == GATEWAY_SPACE)
            take_space(g, fds);
        if (m.kind == GATEWAY_NO_SPACE) {
            g->asked = 0;
            memcpy(g->failure, m.sentence, sizeof(g->failure));
        }
        mt_close_fd(&fds[0]);
        mt_close_fd(&fds[1]);
    }
    return r;
}

// One that is of no use lives on for the capsules that it has.
static void lose(gateway *g, int why)
{
    hang_up(g);
    g->foreign = why == -EPROTO;
    if (g->foreign) {
        mt_log_plain(MT_LOG_WARNING,
                     "another version holds the gateway; new capsules get a new one");
        mt_close_fd(&g->netns_fd);
    } else {
        mt_log_plain(MT_LOG_ERROR, "the gateway of capsules died; starting it again");
        reap(g->pid, REAP_MS);
    }
    mt_timer_in_ms(g->again, AGAIN_MS);
}

static void on_message(mt_io *io, uint32_t events, void *data)
{
    gateway *g = data;
    int r = take_messages(g);

    if (r < 0)
        lose(g, r);
}

static int meet(gateway *g)
{
    int r = !g->foreign && reach(g) ? 0 : start_holder(g);

    g->foreign = false;
    mt_timer_stop(g->again);
    if (r == 0) {
        g->io = mt_io_add(g->r->loop, g->fd, EPOLLIN, on_message, g);
        r = g->io ? 0 : -ENOMEM;
    }
    if (r == 0)
        return 0;
    hang_up(g);
    g->state = GATEWAY_SHUT;
    (void)snprintf(g->sentence, sizeof(g->sentence), "the gateway of capsules does not start: %s",
                   strerror(-r));
    mt_log(MT_LOG_ERROR, "no network for capsules", {"error", g->sentence});
    mt_timer_in_ms(g->again, AGAIN_MS * 10);
    return r;
}

static void on_again(mt_timer *t, void *data)
{
    gateway *g = data;

    if (g->fd < 0 && meet(g) == 0)
        gateway_fill(g->r);
}

int gateway_start(runner *r, mt_err **err)
{
    gateway *g = calloc(1, sizeof(*g));

    if (!g)
        return mt_fail_oom(err);
    g->r = r;
    g->fd = g->netns_fd = -1;
    r->gateway = g;
    g->again = mt_timer_new(r->loop, on_again, g);
    if (!g->again)
        return mt_fail_oom(err);
    (void)meet(g);
    return 0;
}

void gateway_fill(runner *r)
{
    gateway *g = r->gateway;
    gateway_message m = {.protocol = GATEWAY_PROTOCOL, .kind = GATEWAY_MAKE};
    unsigned have = g->count + g->asked;

    if (g->fd < 0 || have >= RUNNER_NETNS_POOL)
        return;
    m.count = RUNNER_NETNS_POOL - have;
    if (gateway_send(g->fd, &m, NULL, 0) == 0)
        g->asked += m.count;
}

bool gateway_is_low(const runner *r)
{
    return r->gateway->count < RUNNER_NETNS_POOL / 2;
}

bool gateway_ready(const runner *r)
{
    return r->gateway->state == GATEWAY_READY;
}

bool gateway_has(const runner *r)
{
    return gateway_ready(r) && r->gateway->count;
}

static int refuse(const char *sentence, mt_err **err)
{
    return mt_fail(err, MT_E_START_FAILED, "%s", sentence);
}

bool gateway_take(runner *r, int *ret_netns, int *ret_life)
{
    gateway *g = r->gateway;

    if (!gateway_has(r))
        return false;
    g->count--;
    *ret_netns = MT_TAKE_FD(g->netns[g->count]);
    *ret_life = MT_TAKE_FD(g->life[g->count]);
    return true;
}

// A few milliseconds at most where a gateway is at work: this is the runner's only thread.
int gateway_wait(runner *r, int *ret_netns, int *ret_life, mt_err **err)
{
    gateway *g = r->gateway;
    int64_t deadline_ns = mt_boottime_ns() + TAKE_MS * 1000000LL;
    int told;

    g->failure[0] = '\0';
    if (g->fd < 0)
        (void)meet(g);
    // Shut as it was: it looks again, as what was missing may have been installed.
    if (g->state == GATEWAY_SHUT)
        empty_pool(g);
    while (!gateway_take(r, ret_netns, ret_life)) {
        int64_t left_ms = (deadline_ns - mt_boottime_ns()) / 1000000;
        struct pollfd p = {.fd = g->fd, .events = POLLIN};

        if (g->failure[0])
            return refuse(g->failure, err);
        if (left_ms <= 0 && g->fd >= 0 && g->state == GATEWAY_COMING)
            lose(g, -EPROTO); // it says nothing
        if (left_ms <= 0 || g->fd < 0)
            return refuse("the network of capsules is not ready: try again", err);
        gateway_fill(r);
        (void)poll(&p, 1, (int)left_ms);
        told = take_messages(g);
        if (told < 0) {
            lose(g, told);
            (void)meet(g);
        }
    }
    return 0;
}

const char *gateway_notice(const runner *r)
{
    const gateway *g = r->gateway;

    return g->state == GATEWAY_SHUT ? g->sentence : g->notice;
}

void gateway_close_fds(runner *r)
{
    gateway *g = r->gateway;

    if (!g)
        return;
    mt_close_fd(&g->fd);
    mt_close_fd(&g->netns_fd);
    for (unsigned i = 0; i < g->count; i++) {
        mt_close_fd(&g->netns[i]);
        mt_close_fd(&g->life[i]);
    }
}

void gateway_remove(runner *r)
{
    char name[64];

    name_socket(r, name);
    (void)unlinkat(r->ids_fd, name, 0);
}

void gateway_free(runner *r, bool idle)
{
    gateway *g = r->gateway;

    if (!g)
        return;
    mt_timer_free(g->again);
    hang_up(g);
    if (idle) {
        reap(g->pid, END_MS);
        gateway_remove(r);
    }
    mt_close_fd(&g->netns_fd);
    free(g);
    r->gateway = NULL;
}
