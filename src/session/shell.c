// SPDX-License-Identifier: Apache-2.0
// A terminal and a login shell on it. What the terminal shows goes to the server, what comes from
// there is typed. When the server's end is gone the terminal hangs up: the kernel sends SIGHUP to
// those on it. When the shell has ended, so has this, with its exit code; what the shell has left
// in the background lives on.
#include "session/program.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>

enum {
    TYPED_MAX = 256 << 10, // waits for the terminal
    SHOWN_MAX = 256 << 10, // waits for the server
    DRAIN_MS = 200,        // of silence: then a shell that has ended has shown all
    DRAIN_ALL_MS = 1000,   // whatever others go on to show
};

typedef struct terminal {
    int master;
    int child_fd; // signals of the shell's end
    pid_t pid;
    bool ended;         // the shell has
    bool silent;        // nobody has the terminal open any more
    int64_t drained_us; // no later than then
    int status;
    mt_buf typed, shown, heard;
} terminal;

extern char **environ;

static void set_size(int master, uint16_t columns, uint16_t rows)
{
    struct winsize size = {.ws_col = columns, .ws_row = rows};

    if (columns > 0 && rows > 0 && columns <= MT_SESSION_SIDE_MAX && rows <= MT_SESSION_SIDE_MAX)
        (void)ioctl(master, TIOCSWINSZ, &size);
}

MT_NORETURN static void become_shell(int slave)
{
    static char *const argv[] = {(char *)"-bash", NULL};
    sigset_t none;

    (void)signal(SIGPIPE, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
        _exit(126);
    for (int fd = 0; fd <= 2; fd++)
        if (dup2(slave, fd) < 0)
            _exit(126);
    (void)close_range(3, ~0u, 0);
    (void)execve("/bin/bash", argv, environ);
    (void)dprintf(2, "cannot execute /bin/bash: %s\r\n", strerror(errno));
    _exit(127);
}

static void open_terminal(terminal *t, const mt_session_request *r)
{
    sigset_t set;
    int slave, zero = 0;

    t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (t->master < 0 || ioctl(t->master, TIOCSPTLCK, &zero) < 0)
        fail_errno(errno);
    slave = ioctl(t->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        fail_errno(errno);
    set_size(t->master, r->columns, r->rows);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    t->child_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (t->child_fd < 0)
        fail_errno(errno);
    t->pid = fork();
    if (t->pid == 0)
        become_shell(slave);
    if (t->pid < 0)
        fail_errno(errno);
    (void)close(slave);
}

// Frames of the server. False: it is gone.
static bool take_frames(terminal *t)
{
    mt_session_frame f;
    uint16_t columns, rows;
    size_t used = 0;
    ssize_t n;

    while ((n = mt_session_parse(mt_buf_str(&t->heard) + used, t->heard.len - used, &f)) > 0) {
        if (f.type == MT_SESSION_DATA)
            (void)mt_buf_add(&t->typed, f.payload, f.len);
        else if (f.type == MT_SESSION_SIZE && mt_session_get_size(&f, &columns, &rows) == 0)
            set_size(t->master, columns, rows);
        else
            return false;
        used += (size_t)n;
    }
    mt_buf_consume(&t->heard, used);
    return n == 0 && !t->typed.failed;
}

static bool hear_some(terminal *t)
{
    void *room = mt_buf_reserve(&t->heard, MT_SESSION_FRAME_MAX);
    ssize_t n = room ? recv(PEER_FD, room, MT_SESSION_FRAME_MAX, MSG_DONTWAIT) : 0;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0)
        return false;
    mt_buf_added(&t->heard, (size_t)n);
    return take_frames(t);
}

static bool say_some(terminal *t)
{
    ssize_t n = send(PEER_FD, t->shown.data, t->shown.len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    mt_buf_consume(&t->shown, (size_t)n);
    return true;
}

static void read_terminal(terminal *t)
{
    char piece[16 << 10];
    ssize_t n = read(t->master, piece, sizeof(piece));

    if (n > 0)
        (void)mt_session_put_data(&t->shown, piece, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        t->silent = true; // EIO: the last one has closed it
}

static void type_some(terminal *t)
{
    ssize_t n = write(t->master, t->typed.data, t->typed.len);

    if (n > 0)
        mt_buf_consume(&t->typed, (size_t)n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        mt_buf_clear(&t->typed);
}

static void look_at_child(terminal *t)
{
    struct signalfd_siginfo info;

    while (read(t->child_fd, &info, sizeof(info)) > 0)
        ;
    if (!t->ended && waitpid(t->pid, &t->status, WNOHANG) == t->pid) {
        t->ended = true;
        t->drained_us = mt_monotonic_us() + DRAIN_ALL_MS * 1000;
    }
}

// One round. False: the server is gone.
static bool go_on(terminal *t)
{
    bool room = t->shown.len < SHOWN_MAX - MT_SESSION_FRAME_MAX && !t->silent;
    struct pollfd p[3] = {
        {.fd = PEER_FD},
        {.fd = t->child_fd, .events = POLLIN},
        {.fd = t->silent ? -1 : t->master},
    };
    int n;

    p[0].events = (short)((t->typed.len < TYPED_MAX - MT_SESSION_FRAME_MAX ? POLLIN : 0) |
                          (t->shown.len ? POLLOUT : 0));
    p[2].events = (short)((room ? POLLIN : 0) | (t->typed.len ? POLLOUT : 0));
    if (p[2].events == 0)
        p[2].fd = -1; // a terminal without anybody is told for ever
    n = poll(p, MT_ARRAY_SIZE(p), t->ended ? DRAIN_MS : -1);
    if (n < 0)
        return errno == EINTR;
    if (t->ended && (n == 0 || mt_monotonic_us() > t->drained_us))
        t->silent = true;
    if (p[1].revents)
        look_at_child(t);
    if (p[2].revents & (POLLIN | POLLHUP | POLLERR) && room)
        read_terminal(t);
    if (p[2].revents & POLLOUT)
        type_some(t);
    if ((p[0].revents & POLLOUT) && !say_some(t))
        return false;
    if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
        return hear_some(t);
    return true;
}

void hold_shell(const mt_session_request *r)
{
    terminal t = {.typed = MT_BUF_INIT(TYPED_MAX),
                  .shown = MT_BUF_INIT(SHOWN_MAX),
                  .heard = MT_BUF_INIT(2 * MT_SESSION_FRAME_MAX)};

    open_terminal(&t, r);
    while (!(t.ended && t.silent && t.shown.len == 0))
        if (!go_on(&t))
            _exit(1); // and the terminal hangs up
    _exit(WIFEXITED(t.status) ? WEXITSTATUS(t.status) : 128 + WTERMSIG(t.status));
}
