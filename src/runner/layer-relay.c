// SPDX-License-Identifier: Apache-2.0
// Mirrors and proxies that capsules may not reach: an operator's own sources often have private
// addresses, or are the host itself. The firewall knows no exception. Instead the builder's network
// namespace gets such an address on its own loopback, where a relay, an unprivileged process beside
// the builder's supervisor, takes connections and passes their bytes on to that one address and
// port. So the builder reaches what its sources name and nothing else, by its own name, with TLS
// and proxies as they are, and no rule is changed.
#include "runner/layer-relay.h"

#include "base/clock.h"
#include "base/fd.h"
#include "capsule/shut.h"
#include "runner/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { PAIRS_MAX = 32, CHUNK = 16 << 10, BACKLOG = 32, IDLE_MS = 120000, HTTP = 80, HTTPS = 443 };

// --- what the texts name -------------------------------------------------------------------------

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':';
}

static void add_target(relay_targets *list, const char *host, size_t len, unsigned port)
{
    relay_target *t = &list->targets[list->count];

    if (list->count == RELAY_TARGETS_MAX || len == 0 || len >= sizeof(t->host) || port == 0 ||
        port > 65535)
        return;
    *t = (relay_target){.port = (uint16_t)port, .listen_fd = -1};
    memcpy(t->host, host, len);
    for (size_t i = 0; i < list->count; i++)
        if (mt_streq(list->targets[i].host, t->host) && list->targets[i].port == t->port)
            return;
    list->count++;
}

// The authority of one URL: [USER@]HOST[:PORT], HOST maybe an IPv6 address in brackets.
static void add_authority(relay_targets *list, const char *p, size_t len, unsigned port)
{
    const char *at = memrchr(p, '@', len), *stop = p + len, *end, *colon;
    uint64_t number;

    if (at)
        p = at + 1;
    if (p < stop && *p == '[') {
        p++;
        end = memchr(p, ']', (size_t)(stop - p));
        if (!end)
            return;
        colon = end + 1 < stop && end[1] == ':' ? end + 1 : NULL;
    } else {
        colon = memchr(p, ':', (size_t)(stop - p));
        end = colon ? colon : stop;
    }
    if (colon) {
        size_t digits = (size_t)(stop - colon - 1);

        if (!mt_parse_u64((mt_str){colon + 1, digits}, 65535, &number))
            return;
        port = (unsigned)number;
    }
    for (const char *c = p; c < end; c++)
        if (!is_host_char(*c))
            return;
    add_target(list, p, (size_t)(end - p), port);
}

void relay_find(relay_targets *list, const char *text, unsigned proxy_port)
{
    for (const char *p = text; (p = strstr(p, "://")); p += 3) {
        bool tls = p - text >= 5 && memcmp(p - 5, "https", 5) == 0;
        unsigned port = proxy_port ? proxy_port : tls ? HTTPS : HTTP;

        if (tls || (p - text >= 4 && memcmp(p - 4, "http", 4) == 0))
            add_authority(list, p + 3, strcspn(p + 3, "/ \t\n\"'"), port);
    }
}

// --- which of them need it -----------------------------------------------------------------------

typedef struct search {
    const relay_target *t;
    bool found;
} search;

static void compare(int family, const void *address, void *data)
{
    search *s = data;

    s->found |=
        s->t->family == family && memcmp(s->t->address, address, family == AF_INET ? 4 : 16) == 0;
}

static bool is_shut(const relay_target *t, int host_nl)
{
    search s = {.t = t};

    if (t->family == AF_INET ? mt_shut4(t->address) : mt_shut6(t->address))
        return true;
    (void)nl_addresses(host_nl, compare, &s);
    return s.found;
}

bool relay_set_address(relay_target *t, const char *text)
{
    if (inet_pton(AF_INET, text, t->address) == 1)
        t->family = AF_INET;
    else if (inet_pton(AF_INET6, text, t->address) == 1)
        t->family = AF_INET6;
    return t->family != 0;
}

// --- the builder's side --------------------------------------------------------------------------

static socklen_t address_of(const relay_target *t, struct sockaddr_storage *ret)
{
    struct sockaddr_in *four = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;

    memset(ret, 0, sizeof(*ret));
    ret->ss_family = (sa_family_t)t->family;
    if (t->family == AF_INET) {
        four->sin_port = htons(t->port);
        memcpy(&four->sin_addr, t->address, 4);
        return sizeof(*four);
    }
    six->sin6_port = htons(t->port);
    memcpy(&six->sin6_addr, t->address, 16);
    return sizeof(*six);
}

// On the loopback of the namespace that the caller is in. What is there is fine.
static int own_address(int nl, const relay_target *t)
{
    size_t size = t->family == AF_INET ? 4 : 16;
    struct ifaddrmsg m = {.ifa_family = (unsigned char)t->family,
                          .ifa_prefixlen = (unsigned char)(size * 8),
                          .ifa_flags = t->family == AF_INET6 ? IFA_F_NODAD : 0,
                          .ifa_index = if_nametoindex("lo")};
    nl_batch b;
    int r;

    nl_init(&b);
    nl_begin(&b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &m, sizeof(m));
    nl_put(&b, IFA_LOCAL, t->address, size);
    nl_put(&b, IFA_ADDRESS, t->address, size);
    r = nl_send(nl, &b);
    return r == -EEXIST || (t->family == AF_INET && t->address[0] == 127) ? 0 : r;
}

static int listen_there(int nl, relay_target *t)
{
    struct sockaddr_storage address;
    socklen_t len = address_of(t, &address);
    _cleanup_close_ int fd =
        socket(t->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    int r = own_address(nl, t);

    if (r < 0)
        return r;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    t->listen_fd = MT_TAKE_FD(fd);
    return 0;
}

// The caller goes there and comes back.
static int listen_all(relay_targets *list, int netns_fd)
{
    _cleanup_close_ int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    _cleanup_close_ int nl = -1;
    int r = 0;

    if (home < 0 || setns(netns_fd, CLONE_NEWNET) < 0)
        return -errno;
    nl = nl_open(0);
    for (size_t i = 0; i < list->count && r == 0; i++)
        r = nl < 0 ? nl : listen_there(nl, &list->targets[i]);
    if (setns(home, CLONE_NEWNET) < 0)
        _exit(1); // never so: back to what it was
    return r;
}

// --- the relay -----------------------------------------------------------------------------------

typedef struct pair {
    int fd[2];           // the builder's, the mirror's; -1: free
    char data[2][CHUNK]; // read from fd[i], for the other
    size_t len[2], at[2];
    bool ended[2]; // fd[i] has no more
    int64_t moved_us;
} pair;

static pair pairs[PAIRS_MAX]; // of this process, which does nothing else

static void pair_close(pair *p)
{
    mt_close_fd(&p->fd[0]);
    mt_close_fd(&p->fd[1]);
    p->len[0] = p->len[1] = 0;
    p->ended[0] = p->ended[1] = false;
}

static void take_connection(const relay_target *t)
{
    _cleanup_close_ int in = accept4(t->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    _cleanup_close_ int out = -1;
    struct sockaddr_storage address;
    socklen_t len = address_of(t, &address);
    size_t free_one = 0;

    while (free_one < PAIRS_MAX && pairs[free_one].fd[0] >= 0)
        free_one++;
    if (in < 0 || free_one == PAIRS_MAX)
        return;
    out = socket(t->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (out < 0 || (connect(out, (struct sockaddr *)&address, len) < 0 && errno != EINPROGRESS))
        return;
    pairs[free_one].fd[0] = MT_TAKE_FD(in);
    pairs[free_one].fd[1] = MT_TAKE_FD(out);
    pairs[free_one].moved_us = mt_monotonic_us();
}

// From fd[i] to the other: 0, or -1 when the pair is of no more use.
static int move(pair *p, int i)
{
    ssize_t n = 0;

    if (p->len[i] == 0 && !p->ended[i]) {
        n = recv(p->fd[i], p->data[i], CHUNK, MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        p->ended[i] = n == 0;
        p->at[i] = 0;
        p->len[i] = (size_t)n;
        if (p->ended[i])
            (void)shutdown(p->fd[1 - i], SHUT_WR);
    }
    if (p->len[i] > 0) {
        n = send(p->fd[1 - i], p->data[i] + p->at[i], p->len[i], MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        p->at[i] += (size_t)n;
        p->len[i] -= (size_t)n;
    }
    p->moved_us = mt_monotonic_us();
    return 0;
}

// What is waited for: to read where nothing is held, to write where something is.
static void watch(const pair *p, struct pollfd polled[2])
{
    for (int i = 0; i < 2; i++) {
        polled[i] = (struct pollfd){.fd = p->fd[i]};
        if (p->len[i] == 0 && !p->ended[i])
            polled[i].events |= POLLIN;
        if (p->len[1 - i] > 0)
            polled[i].events |= POLLOUT;
        if (!polled[i].events)
            polled[i].fd = -1; // its end alone would be told for ever
    }
}

static void serve(pair *p, const struct pollfd polled[2])
{
    bool idle = mt_monotonic_us() - p->moved_us > IDLE_MS * 1000LL;
    int r = 0;

    for (int i = 0; i < 2 && r == 0; i++)
        if (polled[0].revents || polled[1].revents)
            r = move(p, i);
    if (r < 0 || idle || (p->ended[0] && p->ended[1] && !p->len[0] && !p->len[1]))
        pair_close(p);
}

MT_NORETURN static void relay(const relay_targets *list)
{
    struct pollfd polled[RELAY_TARGETS_MAX + 2 * PAIRS_MAX];

    for (size_t i = 0; i < PAIRS_MAX; i++)
        pairs[i].fd[0] = pairs[i].fd[1] = -1;
    for (;;) {
        for (size_t i = 0; i < list->count; i++)
            polled[i] = (struct pollfd){.fd = list->targets[i].listen_fd, .events = POLLIN};
        for (size_t i = 0; i < PAIRS_MAX; i++)
            watch(&pairs[i], polled + list->count + 2 * i);
        if (poll(polled, list->count + 2 * PAIRS_MAX, IDLE_MS) < 0)
            continue;
        for (size_t i = 0; i < PAIRS_MAX; i++)
            if (pairs[i].fd[0] >= 0)
                serve(&pairs[i], polled + list->count + 2 * i);
        for (size_t i = 0; i < list->count; i++)
            if (polled[i].revents)
                take_connection(&list->targets[i]);
    }
}

static int give_up_rights(uid_t uid)
{
    const struct rlimit files = {256, 256};

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || setgroups(0, NULL) < 0 ||
        setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 ||
        // The change of ids has cleared it.
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        setrlimit(RLIMIT_NOFILE, &files) < 0)
        return -errno;
    return 0;
}

static int start(relay_targets *list, uid_t uid)
{
    int keep[RELAY_TARGETS_MAX];
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid < 0 ? -errno : 0;
    (void)prctl(PR_SET_NAME, "mt-relay");
    for (size_t i = 0; i < list->count; i++)
        keep[i] = list->targets[i].listen_fd;
    launch_close_but(keep, list->count);
    if (give_up_rights(uid) < 0 || getppid() != parent)
        _exit(1);
    relay(list);
}

int relay_start(relay_targets *list, int netns_fd, uid_t uid)
{
    _cleanup_close_ int nl = nl_open(0);
    size_t kept = 0;
    int r = nl < 0 ? nl : 0;

    for (size_t i = 0; i < list->count && r == 0; i++)
        if (list->targets[i].family && is_shut(&list->targets[i], nl))
            list->targets[kept++] = list->targets[i];
    list->count = kept;
    if (r == 0 && kept > 0)
        r = listen_all(list, netns_fd);
    if (r == 0 && kept > 0)
        r = start(list, uid);
    for (size_t i = 0; i < kept; i++)
        mt_close_fd(&list->targets[i].listen_fd);
    return r;
}
