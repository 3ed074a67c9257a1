// SPDX-License-Identifier: Apache-2.0
// Queries by UDP: each has a socket of its own to a resolver, with a port and an id that nobody can
// guess, until it is answered.
#include "net/net.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { AT_ONCE = 16 }; // datagrams of one capsule before others have their turn

typedef struct query {
    struct query *next, **link;
    capsule *c;
    struct sockaddr_in from;
    mt_dns_query q;
    uint16_t id;
    unsigned tries;
    int fd;
    mt_io *io;
    mt_timer *timer;
} query;

uint16_t net_random16(void)
{
    uint16_t v = 0;

    if (getrandom(&v, sizeof(v), 0) != sizeof(v))
        abort();
    return v;
}

socklen_t net_resolver(const net *n, unsigned i, struct sockaddr_storage *ret)
{
    const mt_net_resolver *r;

    memset(ret, 0, sizeof(*ret));
    if (!n->resolvers.count)
        return 0;
    r = &n->resolvers.resolvers[i % n->resolvers.count];
    if (r->family == AF_INET) {
        struct sockaddr_in *a = (void *)ret;

        a->sin_family = AF_INET;
        a->sin_port = htons(53);
        memcpy(&a->sin_addr, r->address, 4);
        return sizeof(*a);
    } else {
        struct sockaddr_in6 *a = (void *)ret;

        a->sin6_family = AF_INET6;
        a->sin6_port = htons(53);
        a->sin6_scope_id = r->scope;
        memcpy(&a->sin6_addr, r->address, 16);
        return sizeof(*a);
    }
}

static void query_free(query *q)
{
    capsule *c = q->c;

    *q->link = q->next;
    if (q->next)
        q->next->link = q->link;
    c->query_count--;
    c->n->query_count--;
    mt_io_remove(q->io);
    mt_close_fd(&q->fd);
    mt_timer_free(q->timer);
    free(q);
}

void query_drop_all(capsule *c)
{
    while (c->queries)
        query_free(c->queries);
}

static void send_to(const capsule *c, const struct sockaddr_in *to, const uint8_t *m, size_t len)
{
    (void)sendto(c->udp_fd, m, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)to,
                 sizeof(*to));
}

static void send_empty(const capsule *c, const struct sockaddr_in *to, const mt_dns_query *q,
                       mt_dns_rcode rcode, bool shut)
{
    uint8_t m[MT_DNS_UDP_MAX];

    send_to(c, to, m, mt_dns_reply_empty(q, rcode, shut, m));
}

static void end_empty(query *q, mt_dns_rcode rcode, bool shut)
{
    send_empty(q->c, &q->from, &q->q, rcode, shut);
    query_free(q);
}

// --- resolvers -----------------------------------------------------------------------------------

static void on_resolver(mt_io *io, uint32_t events, void *data);

static bool ask(query *q)
{
    struct sockaddr_storage to;
    socklen_t len = net_resolver(q->c->n, q->tries - 1, &to);
    uint8_t m[MT_DNS_ASK_MAX];

    mt_io_remove(q->io);
    q->io = NULL;
    mt_close_fd(&q->fd);
    if (!len)
        return false;
    q->id = net_random16();
    q->fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (q->fd < 0 || connect(q->fd, (struct sockaddr *)&to, len) < 0 ||
        send(q->fd, m, mt_dns_ask(&q->q, q->id, m), MSG_NOSIGNAL) < 0)
        return false;
    q->io = mt_io_add(q->c->n->loop, q->fd, EPOLLIN, on_resolver, q);
    return q->io != NULL;
}

// The next resolver, and again from the first; one that cannot be reached takes no time.
static void try_next(query *q)
{
    while (q->tries++ < NET_TRIES) {
        if (ask(q)) {
            mt_timer_in_ms(q->timer, NET_TRY_MS);
            return;
        }
    }
    end_empty(q, MT_DNS_SERVER_FAILED, false);
}

static void on_time_over(mt_timer *t, void *data)
{
    try_next(data);
}

static bool is_last(const query *q)
{
    return q->tries >= q->c->n->resolvers.count;
}

static void on_resolver(mt_io *io, uint32_t events, void *data)
{
    uint8_t m[MT_DNS_MESSAGE_MAX], out[MT_DNS_UDP_MAX];
    query *q = data;
    ssize_t n = recv(q->fd, m, sizeof(m), MSG_DONTWAIT);
    mt_dns_answer a;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) { // refused, or no way there
        try_next(q);
        return;
    }
    switch (mt_dns_read_answer(m, (size_t)n, &q->q, q->id, &a)) {
    case MT_DNS_FOREIGN:
        return;
    case MT_DNS_SHUT:
        end_empty(q, MT_DNS_OK, true);
        return;
    case MT_DNS_BROKEN:
        try_next(q);
        return;
    case MT_DNS_GOOD:
        break;
    }
    if ((a.rcode == MT_DNS_SERVER_FAILED || a.rcode == MT_DNS_REFUSED) && !is_last(q)) {
        try_next(q);
        return;
    }
    send_to(q->c, &q->from, out, mt_dns_reply(&q->q, &a, q->q.udp_max, out));
    query_free(q);
}

// --- the capsule ---------------------------------------------------------------------------------

static void begin(capsule *c, const struct sockaddr_in *from, const mt_dns_query *asked)
{
    query *q = capsule_may_wait(c) ? calloc(1, sizeof(*q)) : NULL;

    if (!q)
        return; // it asks again
    *q = (query){.c = c, .from = *from, .q = *asked, .fd = -1, .link = &c->queries};
    q->next = c->queries;
    if (q->next)
        q->next->link = &q->next;
    c->queries = q;
    c->query_count++;
    c->n->query_count++;
    q->timer = mt_timer_new(c->n->loop, on_time_over, q);
    if (q->timer)
        try_next(q);
    else
        query_free(q);
}

void query_on_udp(mt_io *io, uint32_t events, void *data)
{
    capsule *c = data;

    for (int i = 0; i < AT_ONCE; i++) {
        uint8_t m[MT_DNS_QUERY_MAX];
        struct sockaddr_in from = {0};
        socklen_t len = sizeof(from);
        ssize_t n = recvfrom(c->udp_fd, m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC,
                             (struct sockaddr *)&from, &len);
        mt_dns_query q;
        int r;

        if (n < 0)
            return;
        if ((size_t)n > sizeof(m) || len != sizeof(from) || !capsule_may_ask(c))
            continue;
        r = mt_dns_read_query(m, (size_t)n, &q);
        if (r > 0)
            send_empty(c, &from, &q, (mt_dns_rcode)r, false);
        if (r == 0)
            begin(c, &from, &q);
    }
}
