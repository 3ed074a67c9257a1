// SPDX-License-Identifier: Apache-2.0
// Listeners, and accepting.
#include "http/server-internal.h"

#include "base/aside.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum {
    ACCEPT_AT_ONCE = 32,
    BACKLOG = 1024,
    RETRY_MS = 100, // after accept(2) failed for want of fds or memory
    // Of a listener with a limit of its own: so many at once, then others have their turn.
    PACE = 8,
    PACE_MS = 2,
};

struct mt_http_listener {
    mt_http_server *server;
    mt_http_listener *prev, *next;
    int fd;
    mt_io *io;
    mt_timer *retry;
    void *tag;
    size_t limit, count;
    bool refuses; // descriptors: else its connections are read and closed aside
    bool full;    // as many as its limit: not listening until one leaves
    uint16_t port;
    char *path; // of a Unix socket that it made
    dev_t dev;
    ino_t ino;
};

static void read_peer(int fd, mt_http_peer *p)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);
    struct ucred cred;

    *p = (mt_http_peer){.pid = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};
    if (getpeername(fd, (struct sockaddr *)&ss, &len) < 0)
        return;
    if (ss.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&ss;

        (void)inet_ntop(AF_INET, &in->sin_addr, p->address, sizeof(p->address));
        p->port = ntohs(in->sin_port);
    } else if (ss.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&ss;

        (void)inet_ntop(AF_INET6, &in6->sin6_addr, p->address, sizeof(p->address));
        p->port = ntohs(in6->sin6_port);
    } else if (ss.ss_family == AF_UNIX) {
        p->is_unix = true;
        len = sizeof(cred);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0) {
            p->pid = cred.pid;
            p->uid = cred.uid;
            p->gid = cred.gid;
        }
    }
}

// Says 503 without a connection of its own for it: there is no room.
static void refuse(int fd, const char *why)
{
    _cleanup_buf_ mt_buf body = MT_BUF_INIT(4096);
    _cleanup_buf_ mt_buf head = MT_BUF_INIT(8192);

    mt_http_problem_body_(&body, MT_E_UNAVAILABLE, why);
    (void)mt_buf_addf(&head,
                      "HTTP/1.1 503 %s\r\nContent-Type: application/problem+json\r\n"
                      "Content-Length: %zu\r\nConnection: close\r\nRetry-After: 1\r\n\r\n%s",
                      mt_http_reason(503), body.len, mt_buf_str(&body));
    if (!head.failed)
        (void)!send(fd, head.data, head.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(fd, SHUT_WR);
}

// Takes fd over.
static int admit(mt_http_server *s, int fd, mt_http_listener *l, void *tag)
{
    _cleanup_close_ int mine = fd;
    const char *why;
    int one = 1;
    mt_http_peer peer;
    mt_http_x *x;

    read_peer(fd, &peer);
    why = mt_http_pool_room_(s, &peer);
    if (why) {
        refuse(fd, why);
        return -EAGAIN;
    }
    // Answers leave as they are written; small ones are whole in one call.
    if (!peer.is_unix)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    x = mt_http_pool_add_(s, fd, &peer);
    if (!x)
        return -ENOMEM;
    x->fd = MT_TAKE_FD(mine);
    x->tag = tag;
    x->listener = l;
    x->aside = peer.is_unix && !(l && l->refuses);
    if (l)
        l->count++;
    mt_http_conn_settle_(x); // sets its first deadline
    return 0;
}

static void on_retry(mt_timer *timer, void *data)
{
    mt_http_listener *l = data;

    if (l->io && !l->full)
        (void)mt_io_set(l->io, EPOLLIN);
}

static void pause_for(mt_http_listener *l, int64_t ms)
{
    (void)mt_io_set(l->io, 0);
    mt_timer_in_ms(l->retry, ms);
}

static bool has_its_limit(mt_http_listener *l)
{
    if (!l->limit || l->count < l->limit)
        return false;
    l->full = true;
    (void)mt_io_set(l->io, 0);
    return true;
}

static void on_accept(mt_io *io, uint32_t events, void *data)
{
    mt_http_listener *l = data;

    for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
        int fd;

        if (has_its_limit(l))
            return;
        if (l->limit && i == PACE) {
            pause_for(l, PACE_MS);
            return;
        }
        fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            (void)admit(l->server, fd, l, l->tag);
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
            continue; // of that one connection: it was aborted meanwhile
        // The backlog stays readable: without a pause the loop would spin.
        if (mt_http_pool_evict_(l->server))
            continue;
        pause_for(l, RETRY_MS);
        return;
    }
}

static void unlink_own(mt_http_listener *l)
{
    struct stat st;

    // Another server may have put its own socket there meanwhile.
    if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
        (void)unlink(l->path);
}

// Stops listening, keeps the connections.
void mt_http_listener_close_(mt_http_listener *l)
{
    mt_io_remove(MT_TAKE_PTR(l->io));
    if (l->retry)
        mt_timer_stop(l->retry);
    if (l->fd >= 0)
        unlink_own(l);
    mt_close_fd(&l->fd);
}

static void listener_free(mt_http_listener *l)
{
    if (!l)
        return;
    mt_http_listener_close_(l);
    mt_timer_free(l->retry);
    free(l->path);
    free(l);
}

void mt_http_listener_left_(mt_http_listener *l)
{
    l->count--;
    if (!l->full)
        return;
    l->full = false;
    if (l->io)
        (void)mt_io_set(l->io, EPOLLIN);
}

mt_http_listener *mt_http_listener_next_(const mt_http_listener *l)
{
    return l->next;
}

void mt_http_listener_remove(mt_http_listener *l)
{
    mt_http_x *next;

    if (!l)
        return;
    mt_http_listener_close_(l);
    for (mt_http_x *x = l->server->connections; x; x = next) {
        next = x->next;
        if (x->listener == l && !mt_http_conn_cut_(x))
            x->listener = NULL;
    }
    if (l->prev)
        l->prev->next = l->next;
    else
        l->server->listeners = l->next;
    if (l->next)
        l->next->prev = l->prev;
    listener_free(l);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);

    if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
        return 0;
    if (ss.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)&ss)->sin_port);
    if (ss.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&ss)->sin6_port);
    return 0;
}

mt_http_listener *mt_http_listen_fd(mt_http_server *server, int fd, void *tag, mt_err **err)
{
    mt_http_listener *l = calloc(1, sizeof(*l));
    int flags = fcntl(fd, F_GETFL);

    if (!l || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        (void)mt_fail_errno(err, l ? errno : ENOMEM, "cannot listen on descriptor %d", fd);
        free(l);
        mt_close_fd(&fd);
        return NULL;
    }
    *l = (mt_http_listener){
        .server = server, .fd = fd, .tag = tag, .refuses = mt_refuse_fds(fd), .port = port_of(fd)};
    l->retry = mt_timer_new(server->loop, on_retry, l);
    l->io = l->retry ? mt_io_add(server->loop, fd, EPOLLIN, on_accept, l) : NULL;
    if (!l->io) {
        (void)mt_fail_errno(err, errno, "cannot listen on descriptor %d", fd);
        listener_free(l);
        return NULL;
    }
    l->next = server->listeners;
    if (l->next)
        l->next->prev = l;
    server->listeners = l;
    return l;
}

static int parse_address(const char *address, uint16_t port, struct sockaddr_storage *ss,
                         socklen_t *len)
{
    struct sockaddr_in *in = (struct sockaddr_in *)ss;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;

    memset(ss, 0, sizeof(*ss));
    if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        *len = sizeof(*in);
        return 0;
    }
    if (inet_pton(AF_INET6, address, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        *len = sizeof(*in6);
        return 0;
    }
    return -EINVAL;
}

mt_http_listener *mt_http_listen_tcp(mt_http_server *server, const char *address, uint16_t port,
                                     void *tag, mt_err **err)
{
    _cleanup_close_ int fd = -1;
    struct sockaddr_storage ss;
    socklen_t len;
    int one = 1;

    if (parse_address(address, port, &ss, &len) < 0) {
        (void)mt_fail(err, MT_E_BAD_REQUEST, "'%s' is not a numeric address such as 127.0.0.1",
                      address);
        return NULL;
    }
    fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (ss.ss_family == AF_INET6)
            (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    }
    if (fd < 0 || bind(fd, (struct sockaddr *)&ss, len) < 0 || listen(fd, BACKLOG) < 0) {
        (void)mt_fail_errno(err, errno, "cannot listen on %s port %u", address, port);
        return NULL;
    }
    return mt_http_listen_fd(server, MT_TAKE_FD(fd), tag, err);
}

static bool answers(const struct sockaddr_un *un)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    // EAGAIN: its backlog is full, so somebody listens.
    return fd >= 0 &&
           (connect(fd, (const struct sockaddr *)un, sizeof(*un)) == 0 || errno == EAGAIN);
}

// Binds beside the path and renames over it: clients see the socket only with its mode set and
// listening.
static int bind_unix(int fd, const char *path, mode_t mode, struct stat *st)
{
    struct sockaddr_un beside = {.sun_family = AF_UNIX};
    int n = snprintf(beside.sun_path, sizeof(beside.sun_path), "%s.%d", path, (int)getpid());
    int r = 0;

    if (n < 0 || (size_t)n >= sizeof(beside.sun_path))
        return -ENAMETOOLONG;
    (void)unlink(beside.sun_path);
    if (bind(fd, (struct sockaddr *)&beside, sizeof(beside)) < 0)
        return -errno;
    if (chmod(beside.sun_path, mode) < 0 || listen(fd, BACKLOG) < 0 ||
        lstat(beside.sun_path, st) < 0 || rename(beside.sun_path, path) < 0)
        r = -errno;
    if (r < 0)
        (void)unlink(beside.sun_path);
    return r;
}

static int check_place(const char *path, mt_err **err)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct stat st;

    if (strlen(path) >= sizeof(un.sun_path))
        return mt_fail(err, MT_E_BAD_REQUEST, "the socket path '%s' is too long: at most %zu bytes",
                       path, sizeof(un.sun_path) - 1);
    memcpy(un.sun_path, path, strlen(path));
    if (lstat(path, &st) < 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return mt_fail(err, MT_E_ALREADY_EXISTS, "'%s' is in the way: it is not a socket", path);
    if (answers(&un))
        return mt_fail(err, MT_E_ALREADY_EXISTS, "a server already listens on '%s'", path);
    return 0;
}

mt_http_listener *mt_http_listen_unix(mt_http_server *server, const char *path, mode_t mode,
                                      void *tag, mt_err **err)
{
    _cleanup_close_ int fd = -1;
    _cleanup_free_ char *copy = strdup(path);
    mt_http_listener *l;
    struct stat st = {0};
    int r;

    if (!copy) {
        (void)mt_fail_oom(err);
        return NULL;
    }
    if (check_place(path, err) < 0)
        return NULL;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r = fd < 0 ? -errno : bind_unix(fd, path, mode, &st);
    if (r < 0) {
        (void)mt_fail_errno(err, r, "cannot listen on '%s'", path);
        return NULL;
    }
    l = mt_http_listen_fd(server, MT_TAKE_FD(fd), tag, err);
    if (!l) {
        (void)unlink(path);
        return NULL;
    }
    l->path = MT_TAKE_PTR(copy);
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    return l;
}

int mt_http_serve_fd(mt_http_server *server, int fd, void *tag, mt_err **err)
{
    int flags = fcntl(fd, F_GETFL), r;

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        r = mt_fail_errno(err, errno, "cannot serve descriptor %d", fd);
        mt_close_fd(&fd);
        return r;
    }
    r = admit(server, fd, NULL, tag);
    return r < 0 ? mt_fail_errno(err, r, "cannot serve the connection") : 0;
}

void mt_http_listener_limit(mt_http_listener *listener, size_t connections)
{
    listener->limit = connections;
}

uint16_t mt_http_listener_port(const mt_http_listener *listener)
{
    return listener->port;
}

void *mt_http_listener_tag(const mt_http_listener *listener)
{
    return listener->tag;
}
