// SPDX-License-Identifier: Apache-2.0
// The socket for servers: frames in, frames out. The peer must be the service user or root.
#include "runner/runner.h"

#include "base/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum {
    READ_CHUNK = 256 << 10,
    INFO_ARENA = 24 << 20,
    OUT_MAX = 16 << 20, // a server that reads nothing is dropped
};

struct conn {
    conn *next;
    runner *r;
    int fd;
    mt_io *io;
    mt_buf in, out;
    bool broken;
    bool prunes; // waits for PRUNED
    uint32_t prune_tag;
};

static void conn_close(conn *c)
{
    conn **at = &c->r->conns;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->r->conn_count--;
    for (run *u = c->r->runs; u; u = u->next)
        if (u->sweeper == c)
            u->sweeper = NULL;
    mt_io_remove(c->io);
    mt_close_fd(&c->fd);
    mt_buf_done(&c->in);
    mt_buf_done(&c->out);
    free(c);
}

// Sends what it can; the rest follows when the server reads.
static void flush(conn *c)
{
    while (c->out.len && !c->broken) {
        ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            c->broken = true;
        else
            mt_buf_consume(&c->out, (size_t)n);
    }
    if (c->out.failed)
        c->broken = true;
    (void)mt_io_set(c->io, c->out.len && !c->broken ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void answer_failed(conn *c, uint32_t tag, mt_err *err)
{
    (void)mt_put_failed(&c->out, tag, mt_err_code(err), mt_err_sentence(err));
}

static void put_info(conn *c, uint32_t tag)
{
    _cleanup_arena_ mt_arena *a = mt_arena_new(INFO_ARENA);
    mt_info info;

    if (a && images_info(c->r, a, &info) == 0) {
        (void)mt_put_info(&c->out, tag, &info);
        scratch_told(c->r, info.scratch_bytes, info.scratch_free_bytes);
    } else {
        (void)mt_put_failed(&c->out, tag, MT_E_OOM, "out of memory");
    }
}

static void on_start(conn *c, const mt_frame *f)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[37];

    if (start_run(c->r, f->payload, f->payload_len, id, &err) < 0) {
        answer_failed(c, f->tag, err);
        return;
    }
    mt_log(MT_LOG_DEBUG, "run started", {"run", id});
    (void)mt_put_started(&c->out, f->tag, id);
}

static int on_sweep(conn *c, const mt_frame *f)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[37];
    mt_forget forget;

    if (mt_get_sweep(f, id, &forget) < 0)
        return -EBADMSG;
    if (runs_sweep(c->r, id, forget, c, f->tag, &err) < 0)
        answer_failed(c, f->tag, err);
    return 0;
}

static void on_prune(conn *c, const mt_frame *f)
{
    c->prunes = true;
    c->prune_tag = f->tag;
    layers_prune(c->r);
}

void server_pruned(runner *r, const mt_layers_pruned *what)
{
    for (conn *c = r->conns; c; c = c->next) {
        if (!c->prunes)
            continue;
        c->prunes = false;
        (void)mt_put_pruned(&c->out, c->prune_tag, what->layers, what->bytes);
        flush(c);
    }
}

static int on_frame(conn *c, const mt_frame *f)
{
    switch (f->type) {
    case MT_FRAME_HELLO:
        put_info(c, f->tag);
        return 0;
    case MT_FRAME_START:
        on_start(c, f);
        return 0;
    case MT_FRAME_SWEEP:
        return on_sweep(c, f);
    case MT_FRAME_PRUNE:
        on_prune(c, f);
        return 0;
    default:
        return -EBADMSG;
    }
}

static int take_frames(conn *c)
{
    size_t at = 0;

    while (at < c->in.len) {
        mt_frame f;
        ssize_t n = mt_frame_parse(c->in.data + at, c->in.len - at, MT_FRAME_RUNNER_MAX, &f);

        if (n < 0)
            return (int)n;
        if (n == 0)
            break;
        if (on_frame(c, &f) < 0)
            return -EBADMSG;
        at += (size_t)n;
    }
    mt_buf_consume(&c->in, at);
    return 0;
}

static int receive(conn *c)
{
    void *room = mt_buf_reserve(&c->in, READ_CHUNK);
    ssize_t n;

    if (!room)
        return -ENOMEM;
    n = recv(c->fd, room, READ_CHUNK, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -EPIPE;
    mt_buf_added(&c->in, (size_t)n);
    return take_frames(c);
}

static void on_conn(mt_io *io, uint32_t events, void *data)
{
    conn *c = data;
    int r = 0;

    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        r = receive(c);
    if (r == -EBADMSG || r == -EMSGSIZE)
        mt_log_plain(MT_LOG_WARNING, "a server sent what is no frame; its connection is closed");
    if (r == 0)
        flush(c);
    if (r < 0 || c->broken)
        conn_close(c);
}

static bool may_speak(runner *r, int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == 0 || peer.uid == r->o.service_uid);
}

static void on_accept(mt_io *io, uint32_t events, void *data)
{
    runner *r = data;
    int fd = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    conn *c;

    if (fd < 0)
        return;
    c = may_speak(r, fd) && r->conn_count < RUNNER_CONNS_MAX ? calloc(1, sizeof(*c)) : NULL;
    if (!c) {
        (void)close(fd);
        return;
    }
    c->r = r;
    c->fd = fd;
    // Room for one frame of any size and for what was read behind it.
    c->in = (mt_buf)MT_BUF_SECRET_INIT(MT_FRAME_RUNNER_MAX + READ_CHUNK);
    c->out = (mt_buf)MT_BUF_INIT(OUT_MAX);
    c->next = r->conns;
    r->conns = c;
    r->conn_count++;
    c->io = mt_io_add(r->loop, fd, EPOLLIN, on_conn, c);
    if (!c->io)
        conn_close(c);
}

// By way of its folder's fd: the path may be longer than a socket address.
static int bind_at(int fd, int folder_fd, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(name) > 64)
        return -ENAMETOOLONG;
    (void)unlinkat(folder_fd, name, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%.64s", folder_fd,
                   name);
    return bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

int server_bind(runner *r, mt_err **err)
{
    const char *slash = strrchr(r->o.socket, '/');
    const char *name = slash ? slash + 1 : r->o.socket;
    _cleanup_free_ char *folder =
        mt_str_dup(slash ? (mt_str){r->o.socket, (size_t)(name - r->o.socket)} : MT_STR("."));
    _cleanup_close_ int folder_fd = -1, fd = -1;
    int b;

    if (!folder)
        return mt_fail_oom(err);
    folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (folder_fd < 0 || fd < 0)
        return mt_fail_errno(err, errno, "cannot open the folder of the socket '%s'", r->o.socket);
    b = bind_at(fd, folder_fd, name);
    if (b < 0)
        return mt_fail_errno(err, b, "cannot make the socket '%s'", r->o.socket);
    if (fchownat(folder_fd, name, r->o.service_uid, r->o.service_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
        fchmodat(folder_fd, name, 0600, 0) < 0)
        return mt_fail_errno(err, errno, "cannot open the socket '%s' for the service user",
                             r->o.socket);
    r->listen_fd = MT_TAKE_FD(fd);
    return 0;
}

int server_listen(runner *r, mt_err **err)
{
    (void)mt_refuse_fds(r->listen_fd);
    if (listen(r->listen_fd, RUNNER_CONNS_MAX) < 0)
        return mt_fail_errno(err, errno, "cannot listen on the socket '%s'", r->o.socket);
    if (!mt_io_add(r->loop, r->listen_fd, EPOLLIN, on_accept, r))
        return mt_fail_oom(err);
    return 0;
}

void server_swept(conn *c, uint32_t tag, const char *run_id, int result)
{
    if (result < 0)
        (void)mt_put_failed(&c->out, tag, MT_E_IO,
                            "something of the run could not be removed; it is tried again");
    else
        (void)mt_put_swept(&c->out, tag, run_id);
    flush(c);
}

void server_gone(runner *r, const char *run_id)
{
    for (conn *c = r->conns; c; c = c->next) {
        (void)mt_put_gone(&c->out, run_id);
        flush(c);
    }
}

void server_tell_info(runner *r)
{
    for (conn *c = r->conns; c; c = c->next) {
        put_info(c, 0);
        flush(c);
    }
}

void server_close_fds(runner *r)
{
    for (conn *c = r->conns; c; c = c->next)
        mt_close_fd(&c->fd);
    server_wipe(r);
}

void server_wipe(runner *r)
{
    for (conn *c = r->conns; c; c = c->next) {
        mt_buf_clear(&c->in);
        mt_buf_settle(&c->in);
    }
}

void server_close_all(runner *r)
{
    for (conn *c = r->conns, *next; c; c = next) {
        next = c->next;
        conn_close(c);
    }
}
