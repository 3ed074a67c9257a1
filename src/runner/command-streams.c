// SPDX-License-Identifier: Apache-2.0
// What a command reads and prints. Pipes, never files: a process cannot cut or rewrite what it has
// printed, and its memory is bounded. A reader is always there, so no output blocks a process for
// longer than the writing of it takes.
#include "base/fd.h"
#include "base/pages.h"
#include "runner/commands-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum { READ_BYTES = 64 << 10 };

static _Alignas(4096) char read_buffer[READ_BYTES];

void commands_settle(commands *cs)
{
    (void)cs;
    mt_pages_drop(read_buffer, sizeof(read_buffer));
}

static void close_stream(command_stream *s)
{
    mt_io_remove(s->io);
    s->io = NULL;
    mt_close_fd(&s->fd);
}

static void keep(command_stream *s, size_t len)
{
    _cleanup_free_ char *text = NULL;
    const commands_host *h = &s->c->of->host;
    uint64_t before = spool_held(&s->spool);

    spool_add(&s->spool, read_buffer, len);
    room_grew(s->c->of, &s->spool, before);
    if (!s->spool.error || s->noted)
        return;
    s->noted = true;
    text = mt_asprintf("output of command %s is not kept any further: %s", s->c->id,
                       strerror(s->spool.error));
    if (text)
        h->note(h->data, text);
}

// One read of at most `most`: its bytes, 0 at the end of the stream, -1 when nothing is there now.
static ssize_t take(command_stream *s, size_t most)
{
    ssize_t n;

    if (s->fd < 0)
        return 0;
    do
        n = read(s->fd, read_buffer, MT_MIN(most, sizeof(read_buffer)));
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return -1;
    if (n <= 0)
        close_stream(s);
    else
        keep(s, (size_t)n);
    return n < 0 ? 0 : n;
}

// One read a turn: no stream holds up the others, or the run.
static void on_output(mt_io *io, uint32_t events, void *data)
{
    command_stream *s = data;
    command *c = s->c;

    (void)io;
    (void)events;
    if (take(s, READ_BYTES) == 0 && c->state == CMD_ENDED && c->streams[0].fd < 0 &&
        c->streams[1].fd < 0)
        command_streams_ended(c);
}

void command_streams_drain(command *c)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(c->streams); i++) {
        command_stream *s = &c->streams[i];
        int left = 0;

        if (s->fd < 0 || ioctl(s->fd, FIONREAD, &left) < 0)
            continue;
        while (left > 0) {
            ssize_t n = take(s, (size_t)left);

            if (n <= 0)
                break;
            left -= (int)n;
        }
    }
}

bool command_streams_finish(command *c)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(c->streams); i++)
        (void)take(&c->streams[i], READ_BYTES);
    return c->streams[0].fd < 0 && c->streams[1].fd < 0;
}

// A pipe may be opened again through /dev/stdin and its kin by whoever the command runs as: its
// mode, not its owner, is what counts there.
static int make_pipe(command_pipe *ret)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    (void)fchmod(ends[1], 0666);
    (void)mt_set_nonblock(ends[0], true);
    *ret = (command_pipe){ends[0], ends[1]};
    return 0;
}

static int open_output(command_stream *s, command_pipe *ahead, int *ret_write_end)
{
    int r = ahead->from < 0 ? make_pipe(ahead) : 0;

    if (r < 0)
        return r;
    *ret_write_end = ahead->to;
    s->fd = ahead->from;
    *ahead = COMMAND_NO_PIPE;
    s->io = mt_io_add(s->c->of->host.loop, s->fd, EPOLLIN, on_output, s);
    return s->io ? 0 : -ENOMEM;
}

// --- standard input ------------------------------------------------------------------------------

void command_input_close(command *c)
{
    mt_io_remove(c->in_io);
    c->in_io = NULL;
    mt_close_fd(&c->in_fd);
}

// False when there is more than the pipe takes now.
static bool feed(command *c)
{
    mt_str input = c->what->input;

    while (c->in_at < input.len) {
        ssize_t n = write(c->in_fd, input.data + c->in_at, input.len - c->in_at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno != EAGAIN; // nobody reads it any more
        c->in_at += (size_t)n;
    }
    return true;
}

static void on_input(mt_io *io, uint32_t events, void *data)
{
    command *c = data;

    (void)io;
    if ((events & EPOLLERR) || feed(c))
        command_input_close(c);
}

static int open_input(command *c, int *ret_read_end)
{
    int ends[2];

    if (c->what->input.len == 0)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    (void)fchmod(ends[0], 0666);
    (void)mt_set_nonblock(ends[1], true);
    *ret_read_end = ends[0];
    c->in_fd = ends[1];
    if (feed(c)) {
        mt_close_fd(&c->in_fd);
        return 0;
    }
    c->in_io = mt_io_add(c->of->host.loop, c->in_fd, EPOLLOUT, on_input, c);
    return c->in_io ? 0 : -ENOMEM;
}

// --- the border ----------------------------------------------------------------------------------

int command_streams_open(command *c, int ends[3], mt_err **err)
{
    int r = open_input(c, &ends[0]);

    for (size_t i = 0; i < MT_ARRAY_SIZE(c->streams) && r == 0; i++)
        r = open_output(&c->streams[i], &c->of->pipes[i], &ends[1 + i]);
    return r < 0 ? mt_fail_errno(err, r, "cannot make a pipe for the command") : 0;
}

void command_pipes_ahead(commands *cs)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(cs->pipes); i++)
        if (cs->pipes[i].from < 0)
            (void)make_pipe(&cs->pipes[i]);
}

void command_pipes_close(commands *cs)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(cs->pipes); i++) {
        mt_close_fd(&cs->pipes[i].from);
        mt_close_fd(&cs->pipes[i].to);
    }
}

void command_streams_close(command *c)
{
    command_input_close(c);
    for (size_t i = 0; i < MT_ARRAY_SIZE(c->streams); i++) {
        close_stream(&c->streams[i]);
        spool_done(&c->streams[i].spool);
    }
}
