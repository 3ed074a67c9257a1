// SPDX-License-Identifier: Apache-2.0
// Queries by TCP: one at a time on a connection, each asked by TCP, too. Every message is behind
// its length in two bytes. A step that takes too long ends the connection.
#include "net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

enum { PREFIX = 2, IDLE_MS = 10000 };

typedef struct stream {
    struct stream *next, **link;
    capsule *c;
    int fd, up_fd; // the capsule's; to a resolver, or -1
    mt_io *io, *up_io;
    mt_timer *timer;
    mt_dns_query q;
    uint16_t id;
    unsigned tries;
    uint8_t in[PREFIX + MT_DNS_QUERY_MAX];
    size_t in_len;
    uint8_t ask[PREFIX + MT_DNS_ASK_MAX];
    size_t ask_len, ask_sent;
    uint8_t *answer; // of the resolver, while it comes
    size_t answer_len;
    uint8_t *out; // to the capsule
    size_t out_len, out_sent;
} stream;

static void close_up(stream *s)
{
    mt_io_remove(s->up_io);
    s->up_io = NULL;
    mt_close_fd(&s->up_fd);
    free(s->answer);
    s->answer = NULL;
    s->answer_len = 0;
}

static void stream_free(stream *s)
{
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    s->c->stream_count--;
    s->c->n->stream_count--;
    close_up(s);
    mt_io_remove(s->io);
    mt_close_fd(&s->fd);
    mt_timer_free(s->timer);
    free(s->out);
    free(s);
}

void stream_drop_all(capsule *c)
{
    while (c->streams)
        stream_free(c->streams);
}

// --- to the capsule ------------------------------------------------------------------------------

static void take_query(stream *s);

// While there is something to send nothing is read.
static void send_out(stream *s)
{
    while (s->out_sent < s->out_len) {
        ssize_t n = send(s->fd, s->out + s->out_sent, s->out_len - s->out_sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            (void)mt_io_set(s->io, EPOLLOUT);
            return;
        }
        if (n < 0) {
            stream_free(s);
            return;
        }
        s->out_sent += (size_t)n;
    }
    free(s->out);
    s->out = NULL;
    s->out_len = s->out_sent = 0;
    mt_timer_in_ms(s->timer, IDLE_MS);
    (void)mt_io_set(s->io, EPOLLIN);
    take_query(s);
}

// The reply has been written behind the prefix.
static void send_reply(stream *s, uint8_t *out, size_t len)
{
    close_up(s);
    out[0] = (uint8_t)(len >> 8);
    out[1] = (uint8_t)len;
    s->out = out;
    s->out_len = PREFIX + len;
    s->out_sent = 0;
    send_out(s);
}

static void reply_empty(stream *s, mt_dns_rcode rcode, bool shut)
{
    uint8_t *out = malloc(PREFIX + MT_DNS_UDP_MAX);

    if (out)
        send_reply(s, out, mt_dns_reply_empty(&s->q, rcode, shut, out + PREFIX));
    else
        stream_free(s);
}

static void reply(stream *s, const mt_dns_answer *a)
{
    uint8_t *out = malloc(PREFIX + MT_DNS_MESSAGE_MAX);

    if (out)
        send_reply(s, out, mt_dns_reply(&s->q, a, MT_DNS_MESSAGE_MAX, out + PREFIX));
    else
        stream_free(s);
}

// --- the resolver --------------------------------------------------------------------------------

static void on_up(mt_io *io, uint32_t events, void *data);

static bool ask(stream *s)
{
    struct sockaddr_storage to;
    socklen_t len = net_resolver(s->c->n, s->tries - 1, &to);

    close_up(s);
    if (!len)
        return false;
    s->id = net_random16();
    s->ask_len = mt_dns_ask(&s->q, s->id, s->ask + PREFIX);
    s->ask[0] = (uint8_t)(s->ask_len >> 8);
    s->ask[1] = (uint8_t)s->ask_len;
    s->ask_len += PREFIX;
    s->ask_sent = 0;
    s->answer = malloc(PREFIX + MT_DNS_MESSAGE_MAX);
    s->up_fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (!s->answer || s->up_fd < 0 ||
        (connect(s->up_fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS))
        return false;
    s->up_io = mt_io_add(s->c->n->loop, s->up_fd, EPOLLOUT, on_up, s);
    return s->up_io != NULL;
}

static void try_next(stream *s)
{
    while (s->tries++ < NET_TRIES) {
        if (ask(s)) {
            mt_timer_in_ms(s->timer, NET_TRY_MS);
            return;
        }
    }
    reply_empty(s, MT_DNS_SERVER_FAILED, false);
}

// 1 all is there, 0 not yet, -1 the end.
static int read_up(stream *s)
{
    for (;;) {
        size_t want =
            s->answer_len < PREFIX ? PREFIX : PREFIX + ((size_t)s->answer[0] << 8 | s->answer[1]);
        ssize_t n;

        if (s->answer_len >= PREFIX && s->answer_len == want)
            return 1;
        n = recv(s->up_fd, s->answer + s->answer_len, want - s->answer_len, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0)
            return -1;
        s->answer_len += (size_t)n;
    }
}

static int send_up(stream *s)
{
    while (s->ask_sent < s->ask_len) {
        ssize_t n = send(s->up_fd, s->ask + s->ask_sent, s->ask_len - s->ask_sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        s->ask_sent += (size_t)n;
    }
    return mt_io_set(s->up_io, EPOLLIN);
}

static void judge(stream *s)
{
    mt_dns_answer a;

    switch (mt_dns_read_answer(s->answer + PREFIX, s->answer_len - PREFIX, &s->q, s->id, &a)) {
    case MT_DNS_GOOD:
        reply(s, &a);
        return;
    case MT_DNS_SHUT:
        reply_empty(s, MT_DNS_OK, true);
        return;
    case MT_DNS_BROKEN:
    case MT_DNS_FOREIGN:
        try_next(s);
        return;
    }
}

static void on_up(mt_io *io, uint32_t events, void *data)
{
    stream *s = data;
    int r = s->ask_sent < s->ask_len ? send_up(s) : read_up(s);

    if (r < 0)
        try_next(s);
    if (r > 0)
        judge(s);
}

// --- from the capsule ----------------------------------------------------------------------------

static void take_query(stream *s)
{
    size_t len = s->in_len < PREFIX ? 0 : (size_t)s->in[0] << 8 | s->in[1];
    int r;

    if (s->in_len < PREFIX || (len <= MT_DNS_QUERY_MAX && s->in_len < PREFIX + len))
        return; // not all is there
    r = len > MT_DNS_QUERY_MAX || !capsule_may_ask(s->c)
            ? -1
            : mt_dns_read_query(s->in + PREFIX, len, &s->q);
    if (r < 0) {
        stream_free(s);
        return;
    }
    s->in_len -= PREFIX + len;
    memmove(s->in, s->in + PREFIX + len, s->in_len);
    (void)mt_io_set(s->io, 0); // the next one waits
    s->tries = 0;
    if (r > 0)
        reply_empty(s, (mt_dns_rcode)r, false);
    else
        try_next(s);
}

static void on_client(mt_io *io, uint32_t events, void *data)
{
    stream *s = data;
    ssize_t n;

    if (s->out) {
        send_out(s);
        return;
    }
    if (s->up_fd >= 0) { // it hung up while its answer was being asked for
        stream_free(s);
        return;
    }
    n = recv(s->fd, s->in + s->in_len, sizeof(s->in) - s->in_len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        stream_free(s);
        return;
    }
    s->in_len += (size_t)n;
    take_query(s);
}

static void on_time_over(mt_timer *t, void *data)
{
    stream *s = data;

    if (s->up_fd >= 0)
        try_next(s);
    else
        stream_free(s);
}

void stream_on_listen(mt_io *io, uint32_t events, void *data)
{
    capsule *c = data;
    int fd = accept4(c->tcp_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    stream *s;

    if (fd < 0)
        return;
    s = capsule_may_connect(c) ? calloc(1, sizeof(*s)) : NULL;
    if (!s) {
        (void)close(fd);
        return;
    }
    *s = (stream){.c = c, .fd = fd, .up_fd = -1, .link = &c->streams, .next = c->streams};
    if (s->next)
        s->next->link = &s->next;
    c->streams = s;
    c->stream_count++;
    c->n->stream_count++;
    s->timer = mt_timer_new(c->n->loop, on_time_over, s);
    s->io = mt_io_add(c->n->loop, fd, EPOLLIN, on_client, s);
    if (!s->timer || !s->io) {
        stream_free(s);
        return;
    }
    mt_timer_in_ms(s->timer, IDLE_MS);
}
