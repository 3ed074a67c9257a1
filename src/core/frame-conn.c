// SPDX-License-Identifier: Apache-2.0
#include "core/frame-conn.h"

#include <errno.h>
#include <stdalign.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { QUEUE_MAX = 64 << 20, READ_BYTES = 64 << 10, FDS_MAX = 64 };

struct mt_frame_conn {
    int fd;
    mt_io *io;
    size_t max_in;
    mt_frame_conn_events events;
    void *data;
    mt_buf in, out;
    int fds[FDS_MAX]; // that came and were not taken yet, in order
    unsigned fd_count;
    bool busy;   // a callback is running: free later
    bool closed; // by mt_frame_conn_close() within a callback
};

static void destroy(mt_frame_conn *c)
{
    mt_io_remove(c->io);
    mt_close_fd(&c->fd);
    for (unsigned i = 0; i < c->fd_count; i++)
        (void)close(c->fds[i]);
    mt_buf_done(&c->in);
    mt_buf_done(&c->out);
    free(c);
}

void mt_frame_conn_close(mt_frame_conn *c)
{
    if (!c)
        return;
    c->closed = true;
    if (!c->busy)
        destroy(c);
}

// The connection ends from the other side: the owner hears of it once, when it is already gone.
static void lost(mt_frame_conn *c)
{
    mt_frame_conn_events events = c->events;
    void *data = c->data;

    destroy(c);
    events.closed(data);
}

static int flush(mt_frame_conn *c)
{
    while (c->out.len > 0) {
        ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return -errno;
        mt_buf_consume(&c->out, (size_t)n);
    }
    return mt_io_set(c->io, EPOLLIN | (c->out.len ? (uint32_t)EPOLLOUT : 0));
}

// Hands out the whole frames that are in the buffer. False when the connection cannot go on.
static bool deliver(mt_frame_conn *c)
{
    size_t used = 0;
    ssize_t n = 0;

    c->busy = true;
    while (!c->closed) {
        mt_frame frame;

        n = mt_frame_parse(c->in.data + used, c->in.len - used, c->max_in, &frame);
        if (n <= 0)
            break;
        c->events.frame(&frame, c->data);
        used += (size_t)n;
    }
    c->busy = false;
    if (!c->closed)
        mt_buf_consume(&c->in, used);
    return n >= 0;
}

// Descriptors come with or before the first byte of the frame that they belong to, so their order
// is that of the frames. False when there are more than anybody takes.
static bool keep_fds(mt_frame_conn *c, struct msghdr *m)
{
    bool all = !(m->msg_flags & MSG_CTRUNC);

    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
            if (c->fd_count < FDS_MAX)
                c->fds[c->fd_count++] = fd;
            else {
                (void)close(fd);
                all = false;
            }
        }
    }
    return all;
}

static ssize_t receive_some(mt_frame_conn *c, void *to)
{
    alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * MT_FRAME_FDS_MAX)];
    struct iovec part = {.iov_base = to, .iov_len = READ_BYTES};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC);

    return n >= 0 && !keep_fds(c, &m) ? 0 : n;
}

int mt_frame_conn_take_fd(mt_frame_conn *c)
{
    int fd;

    if (c->fd_count == 0)
        return -1;
    fd = c->fds[0];
    memmove(c->fds, c->fds + 1, --c->fd_count * sizeof(int));
    return fd;
}

static bool receive(mt_frame_conn *c)
{
    for (;;) {
        void *to = mt_buf_reserve(&c->in, READ_BYTES);
        ssize_t n;

        if (!to)
            return false;
        n = receive_some(c, to);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        if (n == 0)
            return false;
        mt_buf_added(&c->in, (size_t)n);
        if (!deliver(c))
            return false;
        if (c->closed)
            return true;
    }
}

// False when the connection is broken.
static bool send_more(mt_frame_conn *c)
{
    if (flush(c) < 0)
        return false;
    if (c->out.len == 0 && c->events.drained) {
        c->busy = true;
        c->events.drained(c->data);
        c->busy = false;
    }
    return true;
}

static void on_io(mt_io *io, uint32_t events, void *data)
{
    mt_frame_conn *c = data;
    bool alive = true;

    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        alive = receive(c);
    if (alive && !c->closed && (events & EPOLLOUT))
        alive = send_more(c);
    if (c->closed)
        destroy(c);
    else if (!alive)
        lost(c);
}

int mt_frame_conn_open(mt_loop *loop, const char *path, size_t max_in,
                       const mt_frame_conn_events *events, void *data, mt_frame_conn **ret)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = -1;
    mt_frame_conn *c;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->max_in = max_in;
    c->in.max = max_in + READ_BYTES;
    c->out = (mt_buf)MT_BUF_SECRET_INIT(QUEUE_MAX); // plans with their secrets go through it
    c->events = *events;
    c->data = data;
    c->io = mt_io_add(loop, fd, EPOLLIN, on_io, c);
    if (!c->io) {
        free(c);
        return -ENOMEM;
    }
    c->fd = MT_TAKE_FD(fd);
    *ret = c;
    return 0;
}

size_t mt_frame_conn_queued(const mt_frame_conn *c)
{
    return c->out.len;
}

int mt_frame_conn_send(mt_frame_conn *c, mt_buf *b)
{
    int r = b->failed;

    if (r == 0)
        r = mt_buf_add(&c->out, mt_buf_str(b), b->len);
    mt_buf_clear(b);
    // A peer that is gone is told by the next read, with `closed`.
    if (r == 0 && flush(c) < 0)
        (void)mt_io_set(c->io, EPOLLIN);
    return r;
}
