// SPDX-License-Identifier: Apache-2.0
#include "runner/netlink.h"

#include <errno.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { REPLY_BYTES = 32 << 10, WAIT_S = 5 };

int nl_open(unsigned groups)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
    struct timeval wait = {.tv_sec = WAIT_S}; // the kernel answers within the call
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0) {
        int e = -errno;

        (void)close(fd);
        return e;
    }
    return fd;
}

void nl_init(nl_batch *b)
{
    b->len_ = 0;
    b->last_ = NULL;
    b->count_ = 0;
    b->full_ = false;
}

// Room for size bytes and what rounds them up, cleared; NULL: none.
static void *take(nl_batch *b, size_t size)
{
    size_t all = NLMSG_ALIGN(size);
    void *at = b->data_ + b->len_;

    if (b->full_ || sizeof(b->data_) - b->len_ < all) {
        b->full_ = true;
        return NULL;
    }
    memset(at, 0, all);
    b->len_ += all;
    if (b->last_)
        b->last_->nlmsg_len = (uint32_t)((char *)at + all - (char *)b->last_);
    return at;
}

void nl_begin(nl_batch *b, uint16_t type, uint16_t flags, const void *head, size_t size)
{
    struct nlmsghdr *h;
    void *at;

    b->last_ = NULL;
    h = take(b, sizeof(*h));
    if (!h)
        return;
    *h = (struct nlmsghdr){.nlmsg_len = sizeof(*h),
                           .nlmsg_type = type,
                           .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags),
                           .nlmsg_seq = ++b->count_};
    b->last_ = h;
    at = take(b, size);
    if (at)
        memcpy(at, head, size);
}

void nl_put(nl_batch *b, uint16_t type, const void *data, size_t size)
{
    struct rtattr *a = take(b, RTA_LENGTH(size));

    if (!a)
        return;
    a->rta_type = type;
    a->rta_len = (uint16_t)RTA_LENGTH(size);
    memcpy(RTA_DATA(a), data, size);
}

void nl_put_u32(nl_batch *b, uint16_t type, uint32_t value)
{
    nl_put(b, type, &value, sizeof(value));
}

void nl_put_text(nl_batch *b, uint16_t type, const char *text)
{
    nl_put(b, type, text, strlen(text) + 1);
}

struct rtattr *nl_nest(nl_batch *b, uint16_t type)
{
    struct rtattr *a = take(b, RTA_LENGTH(0));

    if (a)
        a->rta_type = type;
    return a;
}

void nl_put_raw(nl_batch *b, const void *data, size_t size)
{
    void *at = take(b, size);

    if (at)
        memcpy(at, data, size);
}

void nl_end(nl_batch *b, struct rtattr *nest)
{
    if (nest && !b->full_)
        nest->rta_len = (uint16_t)(b->data_ + b->len_ - (char *)nest);
}

static ssize_t receive(int fd, void *data, size_t size)
{
    ssize_t n;

    do {
        n = recv(fd, data, size, MSG_TRUNC);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : (size_t)n > size ? -EMSGSIZE : n;
}

int nl_send(int fd, nl_batch *b)
{
    _Alignas(8) char reply[4096];
    int result = 0;
    ssize_t n;

    if (b->full_ || b->count_ > NL_BATCH_MAX)
        return -EMSGSIZE;
    if (send(fd, b->data_, b->len_, MSG_NOSIGNAL) < 0)
        return -errno;
    for (unsigned acks = 0; acks < b->count_;) {
        n = receive(fd, reply, sizeof(reply));
        if (n < 0)
            return (int)n;
        for (struct nlmsghdr *h = (void *)reply; NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
            const struct nlmsgerr *e = NLMSG_DATA(h);

            if (h->nlmsg_type != NLMSG_ERROR)
                continue;
            acks++;
            if (e->error < 0 && result == 0)
                result = e->error;
        }
    }
    return result;
}

// The attribute of that type; NULL: none.
static const struct rtattr *find(const struct rtattr *a, size_t len, unsigned short type)
{
    for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
        if (a->rta_type == type)
            return a;
    return NULL;
}

int nl_route_to(int fd, int family, const void *address)
{
    size_t size = family == AF_INET ? 4 : 16;
    struct rtmsg head = {.rtm_family = (unsigned char)family, .rtm_dst_len = (uint8_t)(size * 8)};
    _Alignas(8) char reply[4096];
    const struct nlmsghdr *h = (void *)reply;
    const struct rtmsg *route;
    const struct rtattr *a;
    nl_batch b;
    ssize_t n;
    int index = 0;

    nl_init(&b);
    nl_begin(&b, RTM_GETROUTE, 0, &head, sizeof(head));
    nl_put(&b, RTA_DST, address, size);
    b.last_->nlmsg_flags = NLM_F_REQUEST; // the route is the acknowledgement
    if (send(fd, b.data_, b.len_, MSG_NOSIGNAL) < 0)
        return 0;
    n = receive(fd, reply, sizeof(reply));
    if (n < (ssize_t)NLMSG_SPACE(sizeof(*route)) || !NLMSG_OK(h, (size_t)n) ||
        h->nlmsg_type != RTM_NEWROUTE)
        return 0;
    route = NLMSG_DATA(h);
    a = find(RTM_RTA(route), RTM_PAYLOAD(h), RTA_OIF);
    if (route->rtm_type == RTN_UNICAST && a && RTA_PAYLOAD(a) == sizeof(index))
        memcpy(&index, RTA_DATA(a), sizeof(index));
    return index;
}

bool nl_has_link(int fd, int index)
{
    struct ifinfomsg head = {.ifi_index = index};
    _Alignas(8) char reply[8192];
    const struct nlmsghdr *h = (void *)reply;
    nl_batch b;
    ssize_t n;

    nl_init(&b);
    nl_begin(&b, RTM_GETLINK, 0, &head, sizeof(head));
    b.last_->nlmsg_flags = NLM_F_REQUEST; // the link is the acknowledgement
    if (send(fd, b.data_, b.len_, MSG_NOSIGNAL) < 0)
        return true;
    n = receive(fd, reply, sizeof(reply));
    return n < 0 || !NLMSG_OK(h, (size_t)n) || h->nlmsg_type != NLMSG_ERROR;
}

static void take_address(const struct nlmsghdr *h, nl_address_fn *fn, void *data)
{
    const struct ifaddrmsg *m = NLMSG_DATA(h);
    const struct rtattr *a = find(IFA_RTA(m), IFA_PAYLOAD(h), IFA_LOCAL);
    size_t size = m->ifa_family == AF_INET ? 4 : 16;

    if (!a)
        a = find(IFA_RTA(m), IFA_PAYLOAD(h), IFA_ADDRESS);
    if ((m->ifa_family == AF_INET || m->ifa_family == AF_INET6) && a && RTA_PAYLOAD(a) == size)
        fn(m->ifa_family, RTA_DATA(a), data);
}

int nl_addresses(int fd, nl_address_fn *fn, void *data)
{
    struct ifaddrmsg head = {.ifa_family = AF_UNSPEC};
    _Alignas(8) char reply[REPLY_BYTES];
    nl_batch b;
    ssize_t n;

    nl_init(&b);
    nl_begin(&b, RTM_GETADDR, NLM_F_DUMP, &head, sizeof(head));
    b.last_->nlmsg_flags &= (uint16_t)~NLM_F_ACK;
    if (send(fd, b.data_, b.len_, MSG_NOSIGNAL) < 0)
        return -errno;
    for (;;) {
        n = receive(fd, reply, sizeof(reply));
        if (n < 0)
            return (int)n;
        for (struct nlmsghdr *h = (void *)reply; NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
            if (h->nlmsg_type == NLMSG_DONE)
                return 0;
            if (h->nlmsg_type == NLMSG_ERROR)
                return -EIO;
            if (h->nlmsg_type == RTM_NEWADDR)
                take_address(h, fn, data);
        }
    }
}

bool nl_drain(int fd)
{
    char reply[REPLY_BYTES];
    bool some = false;

    while (recv(fd, reply, sizeof(reply), MSG_DONTWAIT) >= 0 || errno == ENOBUFS)
        some = true;
    return some;
}
