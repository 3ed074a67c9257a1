// SPDX-License-Identifier: Apache-2.0
// Capsules come over the control socket and go when their life ends.
#include "net/net.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/share.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

enum { FDS = 3 };

static void leave_if_idle(net *n)
{
    if (n->alone && !n->capsules)
        mt_loop_stop(n->loop);
}

static void capsule_free(capsule *c)
{
    query_drop_all(c);
    stream_drop_all(c);
    mt_io_remove(c->life_io);
    mt_io_remove(c->udp_io);
    mt_io_remove(c->tcp_io);
    mt_close_fd(&c->life_fd);
    mt_close_fd(&c->udp_fd);
    mt_close_fd(&c->tcp_fd);
    free(c);
}

static void on_life(mt_io *io, uint32_t events, void *data)
{
    capsule *c = data;
    net *n = c->n;
    capsule **at = &n->capsules;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    n->capsule_count--;
    capsule_free(c);
    leave_if_idle(n);
}

static void add(net *n, int fds[FDS])
{
    capsule *c = n->capsule_count < NET_SPACES_MAX ? calloc(1, sizeof(*c)) : NULL;

    if (!c)
        return;
    *c = (capsule){.n = n, .budget = NET_BURST * 1000, .budget_us = mt_monotonic_us()};
    c->life_fd = MT_TAKE_FD(fds[0]);
    c->udp_fd = MT_TAKE_FD(fds[1]);
    c->tcp_fd = MT_TAKE_FD(fds[2]);
    c->life_io = mt_io_add(n->loop, c->life_fd, 0, on_life, c);
    c->udp_io = mt_io_add(n->loop, c->udp_fd, EPOLLIN, query_on_udp, c);
    c->tcp_io = mt_io_add(n->loop, c->tcp_fd, EPOLLIN, stream_on_listen, c);
    if (!c->life_io || !c->udp_io || !c->tcp_io) {
        mt_log_plain(MT_LOG_ERROR, "a capsule will find no names: out of memory");
        capsule_free(c);
        return;
    }
    c->next = n->capsules;
    n->capsules = c;
    n->capsule_count++;
}

bool capsule_may_ask(capsule *c)
{
    int64_t now = mt_monotonic_us();

    c->budget =
        MT_MIN(c->budget + (now - c->budget_us) * NET_RATE / 1000, (int64_t)NET_BURST * 1000);
    c->budget_us = now;
    if (c->budget < 1000)
        return false;
    c->budget -= 1000;
    return true;
}

static bool may_have(unsigned has, unsigned each, unsigned used, unsigned all)
{
    return used < all && has < mt_share(each, all, used);
}

bool capsule_may_wait(const capsule *c)
{
    return may_have(c->query_count, NET_QUERIES_EACH, c->n->query_count, NET_QUERIES_MAX);
}

bool capsule_may_connect(const capsule *c)
{
    return may_have(c->stream_count, NET_STREAMS_EACH, c->n->stream_count, NET_STREAMS_MAX);
}

// 1, 0 when there is none now, -1 at the end.
static int receive(mt_net_message *m, int fds[FDS])
{
    ssize_t n = mt_receive_fds(MT_NET_CONTROL_FD, m, sizeof(*m), fds, FDS, MSG_DONTWAIT);

    return n == -EAGAIN ? 0 : n == (ssize_t)sizeof(*m) ? 1 : -1;
}

void net_on_control(mt_io *io, uint32_t events, void *data)
{
    net *n = data;
    mt_net_message m;
    int fds[FDS], r;

    while ((r = receive(&m, fds)) > 0) {
        if (m.kind == MT_NET_RESOLVERS && m.count <= MT_NET_RESOLVERS_MAX)
            n->resolvers = m;
        if (m.kind == MT_NET_SPACE && fds[2] >= 0)
            add(n, fds);
        for (int i = 0; i < FDS; i++)
            mt_close_fd(&fds[i]);
    }
    if (r == 0)
        return;
    mt_io_remove(io);
    n->control = NULL;
    (void)close(MT_NET_CONTROL_FD);
    n->alone = true;
    leave_if_idle(n);
}
