// SPDX-License-Identifier: Apache-2.0
// Servers on the run's socket. The journal file is the queue: each client has its own place in it,
// so that a slow one costs no memory and holds up no one.
#include "base/clock.h"
#include "base/log.h"
#include "capsule/protocol.h"
#include "runner/supervisor-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <sys/socket.h>

enum {
    CLIENTS_MAX = 16,
    READ_BYTES = 16 << 10,
    OUT_BYTES = 64 << 10, // encoded ahead of the socket
    STALL_NS_PER_S = 1000000000,
    STALL_S = 30, // without a byte taken: dropped
    PARCELS_MAX = 64,
};

// Descriptors that go with the frame whose first byte is number `at` of all bytes sent.
typedef struct parcel {
    uint64_t at;
    int fds[MT_FRAME_FDS_MAX];
    unsigned count;
} parcel;

struct sup_client {
    supervisor *s;
    int fd;
    mt_io *io;
    mt_buf in, out;
    uint64_t sent; // bytes
    parcel parcels[PARCELS_MAX];
    unsigned parcel_count;
    mt_journal_reader *reader; // NULL until ATTACH
    uint64_t after, synced;    // numbers: of the last record in `out`, of the last SYNCED
    int64_t progress_ns;
    bool busy; // its own callback is running: it is freed there, not here
    bool gone;
    bool has_api; // was given the sign-in's socket
    bool holds;   // the run's commands, as long as it is connected
    sup_client *next;
};

static void parcel_drop(sup_client *c)
{
    for (unsigned i = 0; i < c->parcels[0].count; i++)
        (void)close(c->parcels[0].fds[i]);
    memmove(c->parcels, c->parcels + 1, --c->parcel_count * sizeof(parcel));
}

static void client_free(sup_client *c)
{
    supervisor *s = c->s;

    for (sup_client **at = &s->clients; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    s->client_count--;
    sup_sessions_client_gone(s, c);
    if (c->holds)
        sup_hold(s, false);
    mt_io_remove(c->io);
    mt_close_fd(&c->fd);
    while (c->parcel_count > 0)
        parcel_drop(c);
    mt_buf_done(&c->in);
    mt_buf_done(&c->out);
    mt_journal_reader_free(c->reader);
    free(c);
    if (s->state == SUP_ENDED && s->client_count == 0)
        s->leaving = true;
}

static int fill(sup_client *c)
{
    mt_record r;
    mt_str frame;
    int n = 0;

    while (c->reader && c->out.len < OUT_BYTES) {
        n = mt_journal_next(c->reader, c->after, &r, &frame, NULL);
        if (n <= 0)
            break;
        if (mt_put_record(&c->out, frame) < 0)
            return -1;
        c->after = r.seq;
    }
    if (c->reader && c->synced < c->s->synced && c->after >= c->s->synced) {
        c->synced = c->s->synced;
        if (mt_put_synced(&c->out, c->synced) < 0)
            return -1;
    }
    return n < 0 ? -1 : 0;
}

// The client has closed its socket. What it sent before that, perhaps TERMINATE, still counts: it
// is read to its end.
static int stop_sending(sup_client *c)
{
    mt_journal_reader_free(c->reader);
    c->reader = NULL;
    mt_buf_clear(&c->out);
    while (c->parcel_count > 0)
        parcel_drop(c);
    return mt_io_set(c->io, EPOLLIN);
}

// Descriptors go with the first byte of their frame, and nothing before that goes with them.
static ssize_t send_some(sup_client *c)
{
    alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * MT_FRAME_FDS_MAX)] = {0};
    struct iovec part = {.iov_base = c->out.data, .iov_len = c->out.len};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    bool with = c->parcel_count > 0 && c->parcels[0].at == c->sent;
    unsigned next = with ? 1 : 0;
    ssize_t n;

    if (next < c->parcel_count && c->parcels[next].at - c->sent < part.iov_len)
        part.iov_len = c->parcels[next].at - c->sent;
    if (with) {
        size_t bytes = sizeof(int) * c->parcels[0].count;
        struct cmsghdr *h;

        m.msg_control = control;
        m.msg_controllen = CMSG_SPACE(bytes);
        h = CMSG_FIRSTHDR(&m);
        *h = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(bytes), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(h), c->parcels[0].fds, bytes);
    }
    n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
        c->sent += (uint64_t)n;
        if (with)
            parcel_drop(c);
    }
    return n;
}

// Sends what there is: 0, or -1 when the client is to go.
static int flush(sup_client *c)
{
    int64_t now = mt_boottime_ns();

    for (;;) {
        ssize_t n;

        if (fill(c) < 0)
            return -1;
        if (c->out.len == 0) {
            c->progress_ns = now;
            return mt_io_set(c->io, EPOLLIN);
        }
        n = send_some(c);
        if (n < 0 && errno == EINTR)
            continue;
        // More descriptors are on their way than root may have there: the server comes again.
        if (n < 0 && errno == ETOOMANYREFS)
            return -1;
        if (n < 0 && errno != EAGAIN)
            return stop_sending(c);
        if (n < 0) {
            if (now - c->progress_ns > (int64_t)STALL_S * STALL_NS_PER_S)
                return -1;
            return mt_io_set(c->io, EPOLLIN | EPOLLOUT);
        }
        c->progress_ns = now;
        mt_buf_consume(&c->out, (size_t)n);
    }
}

int sup_client_send(sup_client *c, mt_buf *frame, const int *fds, unsigned count)
{
    parcel p = {.at = c->sent + c->out.len, .count = count};

    if (frame->failed)
        return frame->failed;
    if (c->parcel_count == PARCELS_MAX || c->out.max - c->out.len < frame->len)
        return -EBUSY;
    for (unsigned i = 0; i < count; i++) {
        p.fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        if (p.fds[i] < 0) {
            while (i-- > 0)
                (void)close(p.fds[i]);
            return -EMFILE;
        }
    }
    if (count > 0)
        c->parcels[c->parcel_count++] = p;
    if (mt_buf_add(&c->out, mt_buf_str(frame), frame->len) < 0)
        c->gone = true; // no memory: seen at its next event
    return mt_io_set(c->io, EPOLLIN | EPOLLOUT);
}

void sup_clients_pump(supervisor *s)
{
    sup_client *next;

    for (sup_client *c = s->clients; c; c = next) {
        next = c->next;
        if (!c->reader || c->gone || flush(c) == 0)
            continue;
        if (c->busy)
            c->gone = true;
        else
            client_free(c);
    }
}

// Once to each server, which accepts on it from then on. Where that fails now, the server is to go:
// it comes again.
static void give_api(sup_client *c)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);
    const supervisor *s = c->s;

    if (c->has_api || s->machine.api_fd < 0 || s->state >= SUP_ENDING)
        return;
    c->has_api = true;
    (void)mt_put_api(&b, s->res->uid_base);
    if (sup_client_send(c, &b, &s->machine.api_fd, 1) < 0)
        (void)shutdown(c->fd, SHUT_RDWR); // its next event is its end
}

void sup_clients_give_api(supervisor *s)
{
    for (sup_client *c = s->clients; c; c = c->next)
        if (c->reader)
            give_api(c);
}

static int attach(sup_client *c, const mt_frame *f)
{
    if (mt_get_attach(f, &c->after) < 0)
        return -1;
    mt_journal_reader_free(c->reader);
    c->reader = NULL;
    c->synced = 0;
    give_api(c);
    return mt_journal_reader_new(c->s->res->journal_read_fd, &c->reader, NULL);
}

static int terminate(sup_client *c, const mt_frame *f)
{
    mt_ended what = {.status = MT_RUN_FINISHED};
    _cleanup_free_ char *by = NULL, *details = NULL;
    mt_str name;

    if (mt_get_terminate(f, &name) < 0)
        return -1;
    what.reason = mt_stop_reason(name);
    by = mt_str_dup(name);
    details = by ? mt_asprintf("stopped by %s", by) : NULL;
    sup_end(c->s, &what, by, details);
    return 0;
}

static int cancel(sup_client *c, const mt_frame *f)
{
    char id[37];
    mt_str by;

    if (mt_get_cancel(f, id, &by) < 0)
        return -1;
    commands_cancel(c->s->sent, id, by);
    return 0;
}

static int extend(sup_client *c, const mt_frame *f)
{
    int64_t ms, ns;

    if (mt_get_extend(f, &ms, &ns) < 0)
        return -1;
    sup_extend(c->s, ms, ns);
    return 0;
}

static int session(sup_client *c, const mt_frame *f)
{
    char user[33], term[65];

    if (mt_get_session(f, user, term) < 0)
        return -1;
    return sup_sessions_ask(c->s, c, f->tag, user, term);
}

static int usage(sup_client *c)
{
    mt_cgroup_memory m;

    (void)mt_cgroup_memory_get(c->s->res->cgroup, &m);
    return mt_put_usage(&c->out, &(mt_usage){.file_bytes = m.cache, .dirty_bytes = m.dirty});
}

static int hold(sup_client *c, const mt_frame *f)
{
    bool on;

    if (mt_get_hold(f, &on) < 0)
        return -1;
    c->holds = on;
    sup_hold(c->s, on);
    return on ? usage(c) : 0;
}

static int disk_full(sup_client *c, const mt_frame *f)
{
    _cleanup_free_ char *text = NULL;
    mt_str sentence;

    if (mt_get_disk_full(f, &sentence) < 0)
        return -1;
    text = mt_str_dup(sentence);
    sup_disk_full(c->s, text ? text : "the disk is full");
    return 0;
}

// One frame of the client: its bytes, 0 when more are needed, -1 when the client is to go.
static ssize_t take_frame(sup_client *c)
{
    mt_frame f;
    ssize_t n = mt_frame_parse(mt_buf_str(&c->in), c->in.len, MT_FRAME_EXEC_MAX, &f);
    int r;

    if (n <= 0)
        return n;
    if (f.type == MT_FRAME_ATTACH)
        r = attach(c, &f);
    else if (f.type == MT_FRAME_TERMINATE)
        r = terminate(c, &f);
    else if (f.type == MT_FRAME_EXEC)
        r = commands_take(c->s->sent, f.payload, f.payload_len);
    else if (f.type == MT_FRAME_CANCEL)
        r = cancel(c, &f);
    else if (f.type == MT_FRAME_EXTEND)
        r = extend(c, &f);
    else if (f.type == MT_FRAME_SESSION)
        r = session(c, &f);
    else if (f.type == MT_FRAME_SESSION_KILL)
        r = 0, sup_sessions_kill(c->s, c, f.tag);
    else if (f.type == MT_FRAME_USAGE)
        r = usage(c);
    else if (f.type == MT_FRAME_HOLD)
        r = hold(c, &f);
    else if (f.type == MT_FRAME_DISK_FULL)
        r = disk_full(c, &f);
    else
        r = -1;
    return r < 0 ? -1 : n;
}

static int receive(sup_client *c)
{
    void *room = mt_buf_reserve(&c->in, READ_BYTES);
    ssize_t n = room ? recv(c->fd, room, READ_BYTES, MSG_DONTWAIT) : 0;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0)
        return -1;
    mt_buf_added(&c->in, (size_t)n);
    while (c->in.len > 0) {
        n = take_frame(c);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        mt_buf_consume(&c->in, (size_t)n);
        if (n > READ_BYTES && c->in.len == 0) // a large command's room is not kept
            mt_buf_done(&c->in);
    }
    return 0;
}

static void on_client(mt_io *io, uint32_t events, void *data)
{
    sup_client *c = data;

    (void)io;
    c->busy = true;
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && receive(c) < 0)
        c->gone = true;
    if (!c->gone && flush(c) < 0)
        c->gone = true;
    c->busy = false;
    if (c->gone)
        client_free(c);
}

static bool may_connect(const supervisor *s, int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (s->client_count >= CLIENTS_MAX || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    return peer.uid == 0 || peer.uid == s->res->service_uid;
}

static sup_client *client_new(supervisor *s, int fd)
{
    sup_client *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    *c = (sup_client){.s = s,
                      .fd = fd,
                      .in = MT_BUF_INIT(MT_FRAME_EXEC_MAX + READ_BYTES),
                      .out = MT_BUF_INIT(OUT_BYTES + MT_FRAME_SUPERVISOR_MAX),
                      .progress_ns = mt_boottime_ns(),
                      .next = s->clients};
    c->io = mt_io_add(s->loop, fd, EPOLLIN, on_client, c);
    if (!c->io) {
        free(c);
        return NULL;
    }
    s->clients = c;
    s->client_count++;
    return c;
}

static bool accept_one(supervisor *s)
{
    int fd = accept4(s->res->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0 && (!may_connect(s, fd) || !client_new(s, fd)))
        (void)close(fd);
    return fd >= 0;
}

static void on_listen(mt_io *io, uint32_t events, void *data)
{
    (void)io;
    (void)events;
    (void)accept_one(data);
}

void sup_clients_last(supervisor *s)
{
    mt_io_remove(s->listen_io);
    s->listen_io = NULL;
    (void)shutdown(s->res->listen_fd, SHUT_RD);
    while (accept_one(s))
        ;
}

int sup_clients_init(supervisor *s)
{
    s->listen_io = mt_io_add(s->loop, s->res->listen_fd, EPOLLIN, on_listen, s);
    return s->listen_io ? 0 : -1;
}

void sup_clients_settle(supervisor *s)
{
    for (sup_client *c = s->clients; c; c = c->next) {
        mt_buf_settle(&c->in);
        mt_buf_settle(&c->out);
        if (c->reader)
            mt_journal_reader_settle(c->reader);
    }
}

void sup_clients_close(supervisor *s)
{
    mt_io_remove(s->listen_io);
    s->listen_io = NULL;
    for (sup_client *c = s->clients, *next; c; c = next) {
        next = c->next;
        client_free(c);
    }
}
