// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"
#include "http/client-internal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/un.h>

enum {
    BACKLOG_RETRY_MS = 20, // a Unix listener whose queue is full says EAGAIN at once
    MAX_ADDRESSES = 8,
};

static int left_ms(int64_t until_ns)
{
    int64_t left = (until_ns - mt_boottime_ns() + 999999) / 1000000;

    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

static int wait_until(int fd, short events, int64_t until_ns, const volatile int *interrupt)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int ms = left_ms(until_ns);
        int n;

        if (interrupt && *interrupt)
            return -ECANCELED;
        n = poll(&p, fd < 0 ? 0 : 1, ms);
        if (n > 0)
            return p.revents;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0 && ms < 3600000)
            return -ETIMEDOUT;
    }
}

int mt_http_wire_wait_(const mt_http_wire_ *w, short events)
{
    int64_t idle_ns = mt_boottime_ns() + w->idle_ms * 1000000;

    return wait_until(w->fd, events, MT_MIN(idle_ns, w->total_ns), w->interrupt);
}

ssize_t mt_http_wire_recv_(const mt_http_wire_ *w, void *data, size_t len)
{
    for (;;) {
        ssize_t n = recv(w->fd, data, len, MSG_DONTWAIT);
        int r;

        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return -errno;
        r = mt_http_wire_wait_(w, POLLIN);
        if (r < 0)
            return r;
    }
}

// 0, or a negative errno.
static int finish_connect(mt_http_wire_ *w, int fd, int64_t until_ns)
{
    int r = wait_until(fd, POLLOUT, until_ns, w->interrupt), error = 0;
    socklen_t len = sizeof(error);

    if (r < 0)
        return r;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return -errno;
    return -error;
}

static int try_connect(mt_http_wire_ *w, const struct sockaddr *sa, socklen_t len, int64_t until_ns)
{
    _cleanup_close_ int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r, one = 1;

    if (fd < 0)
        return -errno;
    for (;;) {
        r = connect(fd, sa, len) < 0 ? -errno : 0;
        if (r != -EAGAIN)
            break;
        if (mt_boottime_ns() >= until_ns)
            return -ETIMEDOUT;
        r = wait_until(-1, 0, mt_boottime_ns() + BACKLOG_RETRY_MS * INT64_C(1000000), w->interrupt);
        if (r == -ECANCELED)
            return r;
    }
    if (r == -EINPROGRESS || r == -EINTR)
        r = finish_connect(w, fd, until_ns);
    if (r < 0)
        return r;
    if (sa->sa_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    w->fd = MT_TAKE_FD(fd);
    return 0;
}

static int unreachable(int r, const char *what, mt_err **err)
{
    if (r == -ETIMEDOUT)
        return mt_fail(err, MT_E_UNREACHABLE, "cannot reach %s: nothing answered in time", what);
    if (r == -ECANCELED)
        return mt_fail(err, MT_E_UNREACHABLE, "cannot reach %s: interrupted", what);
    return mt_fail(err, MT_E_UNREACHABLE, "cannot reach %s: %s", what, strerrordesc_np(-r));
}

static int connect_unix(mt_http_wire_ *w, const char *path, int64_t until_ns, mt_err **err)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int r;

    if (strlen(path) >= sizeof(un.sun_path))
        return mt_fail(err, MT_E_BAD_REQUEST, "the socket path '%s' is too long: at most %zu bytes",
                       path, sizeof(un.sun_path) - 1);
    memcpy(un.sun_path, path, strlen(path));
    r = try_connect(w, (const struct sockaddr *)&un, sizeof(un), until_ns);
    if (r == -EACCES)
        return mt_fail(err, MT_E_FORBIDDEN, "this user may not use the socket %s", path);
    return r < 0 ? unreachable(r, path, err) : 0;
}

static int connect_by_caller(mt_http_wire_ *w, const mt_http_client_options *o, mt_err **err)
{
    int fd = o->connect(o->connect_data, err);

    if (fd < 0)
        return -1;
    w->fd = fd;
    return mt_set_nonblock(fd, true) < 0
               ? mt_fail(err, MT_E_UNREACHABLE, "the socket cannot be used")
               : 0;
}

int mt_http_wire_connect_(mt_http_wire_ *w, const mt_http_client_options *o, mt_err **err)
{
    int64_t until = MT_MIN(mt_boottime_ns() + o->connect_timeout_ms * 1000000, w->total_ns);
    mt_http_address_ at[MAX_ADDRESSES];
    int count, r = -EADDRNOTAVAIL;
    char what[300];

    if (o->connect)
        return connect_by_caller(w, o, err);
    if (o->unix_path)
        return connect_unix(w, o->unix_path, until, err);
    count = mt_http_resolve_(o->host, o->port, at, MAX_ADDRESSES, err);
    if (count < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        r = try_connect(w, (const struct sockaddr *)&at[i].ss, at[i].len, until);
        if (r == 0)
            return 0;
    }
    (void)snprintf(what, sizeof(what), "%s port %u", o->host, o->port);
    return unreachable(r, what, err);
}
