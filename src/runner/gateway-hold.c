// SPDX-License-Identifier: Apache-2.0
// The holder of the gateway: its process, its talk with the runner, and the lives of namespaces.
#include "runner/gateway-internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "capsule/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    RUN_MS = 15000,        // of a program that only does something and ends
    LOOK_MS = 200,         // after a change on the host: there are more to come
    RULES_AGAIN_MS = 1000, // between two attempts
    RESOLVERS_MS = 2000,
};

// --- messages ------------------------------------------------------------------------------------

int gateway_send(int fd, const gateway_message *m, const int *fds, size_t count)
{
    return mt_send_fds(fd, m, sizeof(*m), fds, count, MSG_DONTWAIT);
}

int gateway_receive(int fd, gateway_message *m, int fds[2])
{
    ssize_t n = mt_receive_fds(fd, m, sizeof(*m), fds, 2, MSG_DONTWAIT);

    if (n < 0)
        return n == -EAGAIN ? 0 : (int)n;
    m->sentence[sizeof(m->sentence) - 1] = m->notice[sizeof(m->notice) - 1] = '\0';
    if (n == (ssize_t)sizeof(*m) && m->protocol == GATEWAY_PROTOCOL)
        return 1;
    mt_close_fd(&fds[0]);
    mt_close_fd(&fds[1]);
    return n == 0 ? -EPIPE : -EPROTO;
}

// --- other programs ------------------------------------------------------------------------------

bool gateway_find_program(const char *name, char *out, size_t size)
{
    const char *at = getenv("PATH");

    if (!at || !*at)
        at = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    while (*at) {
        size_t len = strcspn(at, ":");

        if (*at == '/' && (size_t)snprintf(out, size, "%.*s/%s", (int)len, at, name) < size &&
            access(out, X_OK) == 0)
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

void gateway_begin_child(pid_t parent)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (!parent)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) // it died before the line above
        _exit(1);
}

MT_NORETURN static void run_child(gateway_holder *g, const char *const argv[], int in, int out)
{
    gateway_begin_child(g->pid);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
        setns(g->netns_fd, CLONE_NEWNET) < 0)
        _exit(126);
    (void)execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

// The rest of what it prints, until it ends or the time is over.
static void read_output(int fd, mt_buf *out, int64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (;;) {
        int64_t left_ms = (deadline_ns - mt_boottime_ns()) / 1000000;
        char chunk[8192];
        ssize_t n;

        if (left_ms <= 0 || (poll(&p, 1, (int)left_ms) < 0 && errno != EINTR))
            return;
        n = p.revents ? read(fd, chunk, sizeof(chunk)) : -1;
        if (n == 0 || (n < 0 && p.revents && errno != EINTR))
            return;
        if (n > 0)
            (void)mt_buf_add(out, chunk, (size_t)n);
    }
}

int gateway_run(gateway_holder *g, const char *const argv[], mt_str input, mt_buf *out)
{
    _cleanup_close_ int in = memfd_create("input", MFD_CLOEXEC), from = -1, to = -1;
    int64_t deadline_ns = mt_boottime_ns() + RUN_MS * 1000000LL;
    int ends[2], status, r;
    pid_t pid;

    if (in < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    from = ends[0];
    to = ends[1];
    r = mt_write_full(in, input.data, input.len);
    if (r < 0 || lseek(in, 0, SEEK_SET) < 0)
        return r < 0 ? r : -errno;
    pid = fork();
    if (pid == 0)
        run_child(g, argv, in, to);
    if (pid < 0)
        return -errno;
    mt_close_fd(&to);
    read_output(from, out, deadline_ns);
    if (mt_boottime_ns() >= deadline_ns)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return status;
}

// --- its namespace -------------------------------------------------------------------------------

static int enter_new(gateway_holder *g)
{
    int r;

    if (g->parts.namespace_fd >= 0) {
        if (setns(g->parts.namespace_fd, CLONE_NEWNET) < 0)
            return -errno;
        g->netns_fd = MT_TAKE_FD(g->parts.namespace_fd);
        return 0;
    }
    r = netns_make();
    if (r < 0)
        return r;
    g->netns_fd = r;
    // It is the only machine that forwards; the host does not.
    netns_set("/proc/sys/net/ipv4/ip_forward", "1");
    netns_set("/proc/sys/net/ipv6/conf/all/forwarding", "1");
    netns_set("/proc/sys/net/ipv4/conf/all/send_redirects", "0");
    netns_set("/proc/sys/net/ipv4/conf/default/send_redirects", "0");
    netns_set("/proc/sys/net/ipv4/conf/all/accept_redirects", "0");
    netns_set("/proc/sys/net/ipv4/conf/all/accept_source_route", "0");
    // The host may have told new namespaces to be without.
    netns_set("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0");
    netns_set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "0");
    // One who asks for shut addresses again and again is still answered each time.
    netns_set("/proc/sys/net/ipv4/icmp_ratelimit", "0");
    netns_set("/proc/sys/net/ipv6/icmp/ratelimit", "0");
    return 0;
}

static int make_namespace(gateway_holder *g)
{
    int r = enter_new(g);

    if (r == 0) {
        g->netns_nl = nl_open(0);
        r = MT_MIN(g->netns_nl, 0);
    }
    return setns(g->host_fd, CLONE_NEWNET) < 0 ? -errno : r;
}

// Connections that have ended count, too, as long as they are remembered.
static void set_memory(gateway_holder *g)
{
    if (setns(g->netns_fd, CLONE_NEWNET) < 0)
        return;
    netns_set("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait", "5");
    netns_set("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_fin_wait", "30");
    netns_set("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "7440");
    if (setns(g->host_fd, CLONE_NEWNET) < 0)
        _exit(1);
}

static void load_rules(gateway_holder *g)
{
    if (rules_load(g) == 0)
        set_memory(g);
}

// --- lives ---------------------------------------------------------------------------------------

static void leave_if_idle(gateway_holder *g)
{
    if (g->conn_fd < 0 && !g->spaces)
        mt_loop_stop(g->loop);
}

static void space_free(space *s)
{
    mt_io_remove(s->io);
    mt_close_fd(&s->life_fd);
    mt_close_fd(&s->udp_fd);
    mt_close_fd(&s->tcp_fd);
    free(s);
}

static void on_life(mt_io *io, uint32_t events, void *data)
{
    space *s = data;
    gateway_holder *g = s->g;
    space **at = &g->spaces;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    g->space_count--;
    space_free(s);
    leave_if_idle(g);
}

// The next slot that no veth has, not even one whose capsule has just ended, or one that has been
// there since before this holder.
static bool next_slot(gateway_holder *g)
{
    for (uint32_t i = GATEWAY_SLOT_FIRST; i <= GATEWAY_SLOT_LAST; i++) {
        g->slot = g->slot >= GATEWAY_SLOT_LAST ? GATEWAY_SLOT_FIRST : g->slot + 1;
        if (!nl_has_link(g->netns_nl, (int)(g->slot + GATEWAY_INDEX)))
            return true;
    }
    return false;
}

static int add_space(gateway_holder *g)
{
    bool room = g->space_count < GATEWAY_SPACES_MAX && next_slot(g);
    space *s = room ? calloc(1, sizeof(*s)) : NULL;
    gateway_message m = {.protocol = GATEWAY_PROTOCOL, .kind = GATEWAY_SPACE};
    int fds[2] = {-1, -1}, r;

    if (!s)
        return -ENOSPC;
    *s = (space){.g = g, .slot = g->slot, .life_fd = -1, .udp_fd = -1, .tcp_fd = -1};
    r = space_make(g, s, &fds[0], &fds[1]);
    if (r == 0) {
        s->io = mt_io_add(g->loop, s->life_fd, 0, on_life, s); // its end is told in any case
        r = s->io ? gateway_send(g->conn_fd, &m, fds, 2) : -ENOMEM;
    }
    mt_close_fd(&fds[0]);
    mt_close_fd(&fds[1]);
    if (r < 0) {
        space_free(s);
        return r;
    }
    s->next = g->spaces;
    g->spaces = s;
    g->space_count++;
    dns_add(g, s);
    return 0;
}

// --- the runner ----------------------------------------------------------------------------------

static void fill_state(gateway_holder *g, gateway_message *m)
{
    *m = (gateway_message){.protocol = GATEWAY_PROTOCOL, .kind = GATEWAY_TELLS, .pid = g->pid};
    if (!g->rules_loaded) {
        m->state = GATEWAY_SHUT;
        memcpy(m->sentence, g->rules_sentence, sizeof(m->sentence));
    } else if (g->uplink.sentence[0]) {
        m->state = GATEWAY_SHUT;
        memcpy(m->sentence, g->uplink.sentence, sizeof(m->sentence));
    } else if (g->dns.sentence[0]) {
        m->state = GATEWAY_SHUT;
        memcpy(m->sentence, g->dns.sentence, sizeof(m->sentence));
    } else if (g->uplink_up || g->uplink_waits || g->uplink_was_up) {
        m->state = GATEWAY_READY;
    }
    if (m->state == GATEWAY_READY && g->uplink_waits)
        (void)snprintf(m->notice, sizeof(m->notice),
                       "this host has no route to the internet: capsules with network \"internet\" "
                       "start, and reach nothing until it has one");
}

void gateway_tell(gateway_holder *g)
{
    gateway_message m;

    fill_state(g, &m);
    if (g->conn_fd < 0 || memcmp(&m, &g->told, sizeof(m)) == 0)
        return;
    g->told = m;
    (void)gateway_send(g->conn_fd, &m, NULL, 0);
}

static void close_conn(gateway_holder *g)
{
    mt_io_remove(g->conn_io);
    g->conn_io = NULL;
    mt_close_fd(&g->conn_fd);
}

// It may have been installed.
static void look_for_what_is_missing(gateway_holder *g)
{
    if (!g->rules_loaded && mt_boottime_ns() - g->rules_tried_ns > RULES_AGAIN_MS * 1000000LL)
        load_rules(g);
    if (g->uplink.pid <= 0)
        uplink_look(g);
}

static void make_spaces(gateway_holder *g, uint32_t count)
{
    gateway_message failed;
    int r = 0;

    look_for_what_is_missing(g);
    gateway_tell(g);
    fill_state(g, &failed);
    failed.kind = GATEWAY_NO_SPACE;
    if (failed.state != GATEWAY_SHUT) {
        for (uint32_t i = 0; i < MT_MIN(count, (uint32_t)RUNNER_NETNS_POOL) && r == 0; i++)
            r = add_space(g);
        if (r == 0)
            return;
        (void)snprintf(failed.sentence, sizeof(failed.sentence),
                       "the network of the capsule could not be made: %s", strerror(-r));
    }
    (void)gateway_send(g->conn_fd, &failed, NULL, 0);
}

static void on_conn(mt_io *io, uint32_t events, void *data)
{
    gateway_holder *g = data;
    gateway_message m;
    int fds[2], r;

    while ((r = gateway_receive(g->conn_fd, &m, fds)) > 0) {
        mt_close_fd(&fds[0]);
        mt_close_fd(&fds[1]);
        if (m.kind == GATEWAY_MAKE)
            make_spaces(g, m.count);
    }
    if (r == 0)
        return;
    close_conn(g);
    leave_if_idle(g);
}

static void on_listen(mt_io *io, uint32_t events, void *data)
{
    gateway_holder *g = data;
    int fd = accept4(g->parts.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    close_conn(g); // the one before is dead
    g->conn_fd = fd;
    g->conn_io = mt_io_add(g->loop, fd, EPOLLIN, on_conn, g);
    if (!g->conn_io)
        mt_close_fd(&g->conn_fd);
    fill_state(g, &g->told);
    if (g->conn_fd >= 0)
        (void)gateway_send(g->conn_fd, &g->told, &g->netns_fd, 1);
}

// --- the host ------------------------------------------------------------------------------------

static void on_look(mt_timer *t, void *data)
{
    gateway_holder *g = data;

    rules_set_host(g);
    uplink_look(g);
    gateway_tell(g);
}

static void on_host(mt_io *io, uint32_t events, void *data)
{
    gateway_holder *g = data;

    if (nl_drain(g->host_events_nl) && mt_timer_left_ms(g->look) == 0)
        mt_timer_in_ms(g->look, LOOK_MS);
}

static void on_resolvers(mt_timer *t, void *data)
{
    dns_look(data);
    mt_timer_in_ms(t, RESOLVERS_MS);
}

// --- the process ---------------------------------------------------------------------------------

static int watch_host(gateway_holder *g)
{
    g->host_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    g->host_nl = nl_open(0);
    g->host_events_nl =
        nl_open(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE);
    g->look = mt_timer_new(g->loop, on_look, g);
    g->resolver_timer = mt_timer_new(g->loop, on_resolvers, g);
    if (g->host_fd < 0 || g->host_nl < 0 || g->host_events_nl < 0 || !g->look ||
        !g->resolver_timer || !mt_io_add(g->loop, g->host_events_nl, EPOLLIN, on_host, g))
        return -EIO;
    mt_timer_in_ms(g->resolver_timer, RESOLVERS_MS);
    return 0;
}

static int begin(gateway_holder *g)
{
    int r;

    if (setns(g->parts.mounts_fd, CLONE_NEWNS) < 0)
        return -errno;
    mt_close_fd(&g->parts.mounts_fd);
    g->loop = mt_loop_new();
    g->listen_io = g->loop ? mt_io_add(g->loop, g->parts.listen_fd, EPOLLIN, on_listen, g) : NULL;
    if (!g->listen_io)
        return -ENOMEM;
    r = watch_host(g);
    if (r == 0)
        r = make_namespace(g);
    if (r == 0)
        r = uplink_init(g);
    return r == 0 ? dns_init(g) : r;
}

void gateway_hold(const gateway_parts *parts)
{
    static gateway_holder holder;
    gateway_holder *g = &holder;
    int r;

    *g = (gateway_holder){.parts = *parts,
                          .pid = getpid(),
                          .conn_fd = -1,
                          .host_fd = -1,
                          .netns_fd = -1,
                          .host_nl = -1,
                          .host_events_nl = -1,
                          .netns_nl = -1,
                          .uplink_log_fd = -1,
                          .dns_fd = -1};
    // Anywhere: a holder before this one may have given the first ones away just now.
    g->slot =
        GATEWAY_SLOT_FIRST + (uint32_t)(mt_now_us() % (GATEWAY_SLOT_LAST - GATEWAY_SLOT_FIRST));
    r = begin(g);
    if (r == 0) {
        load_rules(g);
        uplink_look(g);
        r = mt_loop_run(g->loop);
    }
    if (r < 0)
        mt_log(MT_LOG_ERROR, "the gateway cannot go on", {"reason", strerror(-r)});
    tool_end(&g->uplink);
    tool_end(&g->dns);
    _exit(r < 0);
}
