// SPDX-License-Identifier: Apache-2.0
// capsule-shell: this terminal becomes that of a shell in a run. One thread reads what the shell
// shows (an answer that goes on), the first sends what is typed and the terminal's size. The
// terminal is as it was before whenever mt says something, and at its end.
#include "cli/cli.h"

#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

enum {
    TYPED_BYTES = 4096,
    BACK_TRIES = 24, // to read on after the connection broke…
    BACK_MS = 500,   // …before the server gives the shell up
    END_MS = 5000,   // for the reader to hear of an end that the first thread was told of
};
#define DAYS_MS ((int64_t)7 * 24 * 3600 * 1000) // a shell may be silent for long

typedef struct session {
    cli *c;
    char *path;  // of the shell in the API
    cli reading; // the reader's own: connection and answers
    int over_fd; // readable when the reader has ended
    mt_err *why; // it has, other than by the shell's end
    struct termios before;
    bool raw;
    bool left; // to the reader, which could not be waited for
} session;

// --- the terminal --------------------------------------------------------------------------------

static void leave_raw(session *s)
{
    if (s->raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
    s->raw = false;
}

static int enter_raw(session *s, mt_err **err)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &s->before) < 0)
        return mt_fail_errno(err, errno, "cannot read the terminal's state");
    raw = s->before;
    cfmakeraw(&raw);
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        return mt_fail_errno(err, errno, "cannot set the terminal");
    s->raw = true;
    return 0;
}

static void add_size(mt_json *body)
{
    struct winsize size = {0};

    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row)
        size = (struct winsize){.ws_col = 80, .ws_row = 24};
    (void)mt_json_set(body, "columns", mt_json_new_int(MT_MIN(size.ws_col, 4096)));
    (void)mt_json_set(body, "rows", mt_json_new_int(MT_MIN(size.ws_row, 4096)));
}

// --- the reader ----------------------------------------------------------------------------------

static int show(const void *piece, size_t len, void *data, mt_err **err)
{
    int r = mt_write_full(STDOUT_FILENO, piece, len);

    (void)data;
    return r < 0 ? mt_fail_errno(err, r, "the terminal cannot be written") : 0;
}

static int read_once(session *s, mt_err **err)
{
    _cleanup_free_ char *url = xprintf("%s/output", s->path);
    _cleanup_answer_ transport_answer answer = TRANSPORT_ANSWER_INIT;
    transport_request request = {
        .method = "GET", .target = url, .on_data = show, .idle_timeout_ms = DAYS_MS};

    return api_send(&s->reading, &request, &answer, err);
}

// Until the shell ends. A connection that breaks is made again: the server waits a while.
static void *read_output(void *data)
{
    session *s = data;
    uint64_t one = 1;

    for (int tries = 0; tries < BACK_TRIES; tries++) {
        s->why = mt_err_free(s->why);
        if (read_once(s, &s->why) == 0 || cli_interrupted || !api_error_passes(s->why))
            break;
        (void)poll(NULL, 0, BACK_MS);
    }
    (void)mt_write_full(s->over_fd, &one, sizeof(one));
    return NULL;
}

// --- what is typed -------------------------------------------------------------------------------

// What cannot be told now is told by the reader, who notices the same.
static void send_input(session *s, const void *data, size_t len)
{
    static const char *const headers[][2] = {{"Content-Type", "application/octet-stream"}};
    _cleanup_free_ char *url = xprintf("%s/input", s->path);
    _cleanup_answer_ transport_answer answer = TRANSPORT_ANSWER_INIT;
    transport_request request = {.method = "POST",
                                 .target = url,
                                 .headers = headers,
                                 .header_count = 1,
                                 .body = data,
                                 .body_len = len,
                                 .has_body = true};

    (void)api_send(s->c, &request, &answer, NULL);
}

static void send_size(session *s)
{
    _cleanup_json_ mt_json *body = mt_json_new_object();
    _cleanup_free_ char *url = xprintf("%s/size", s->path);

    add_size(body);
    (void)api_call(s->c, "PUT", url, body, NULL, NULL);
}

// False: the terminal is gone.
static bool type_some(session *s)
{
    char typed[TYPED_BYTES];
    ssize_t n = read(STDIN_FILENO, typed, sizeof(typed));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    if (n > 0)
        send_input(s, typed, (size_t)n);
    return n > 0;
}

static void resized(session *s, int signal_fd)
{
    struct signalfd_siginfo info;

    if (read(signal_fd, &info, sizeof(info)) > 0)
        send_size(s);
}

// Until the reader is through, or this terminal or process is to end.
static void serve(session *s, int signal_fd)
{
    struct pollfd p[] = {{.fd = s->over_fd, .events = POLLIN},
                         {.fd = signal_fd, .events = POLLIN},
                         {.fd = STDIN_FILENO, .events = POLLIN}};

    while (!cli_interrupted) {
        if (poll(p, MT_ARRAY_SIZE(p), -1) < 0)
            continue;
        if (p[0].revents)
            return;
        if (p[1].revents)
            resized(s, signal_fd);
        if (p[2].revents && !type_some(s))
            return;
    }
}

// --- the whole -----------------------------------------------------------------------------------

static int start(session *s, const char *run, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *shell = NULL;
    _cleanup_free_ char *path = api_path("/v1/capsule-runs/%s/shells", run);
    const char *term = getenv("TERM"), *user = cli_opt(s->c, "user");

    add_size(body);
    if (term && term[0])
        (void)mt_json_set(body, "term", mt_json_new_text(term));
    if (user)
        (void)mt_json_set(body, "user", mt_json_new_text(user));
    if (api_call(s->c, "POST", path, body, &shell, err) < 0)
        return -1;
    s->path = xprintf("%s/%s", path, cli_text(shell, "id"));
    return 0;
}

// A connection of the reader's own, made here: libcurl is set up by one thread alone.
static int open_reader(session *s, mt_err **err)
{
    _cleanup_json_ mt_json *shell = NULL;

    s->reading = *s->c;
    s->reading.transport = NULL;
    s->reading.problem = NULL;
    return api_get(&s->reading, s->path, &shell, err);
}

// What ends mt ends its requests, but not this one; a second signal does.
static void hang_up(session *s)
{
    int by = cli_interrupted;

    cli_interrupted = 0;
    (void)api_call(s->c, "DELETE", s->path, NULL, NULL, NULL);
    if (!cli_interrupted)
        cli_interrupted = by;
}

static int run_terminal(session *s, mt_err **err)
{
    _cleanup_close_ int signal_fd = -1;
    pthread_t reader;
    struct pollfd over = {.fd = s->over_fd, .events = POLLIN};
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGWINCH);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0)
        return mt_fail_errno(err, errno, "cannot watch the terminal's size");
    if (enter_raw(s, err) < 0)
        return -1;
    if (pthread_create(&reader, NULL, read_output, s) != 0) {
        leave_raw(s);
        return mt_fail_oom(err);
    }
    serve(s, signal_fd);
    leave_raw(s);
    // One that was left, not ended, hangs up. The reader may have left for the same reason.
    if (cli_interrupted || poll(&over, 1, 0) == 0) {
        hang_up(s);
        s->left = poll(&over, 1, END_MS) == 0;
        if (s->left) // the process ends, and the thread with it
            return mt_fail(err, MT_E_BAD_REQUEST, "left the shell");
    }
    (void)pthread_join(reader, NULL);
    return 0;
}

// How it ended: the shell's exit status, or -1 with the reason.
static int report(session *s, mt_err **err)
{
    _cleanup_json_ mt_json *shell = NULL;
    const char *details;

    if (cli_interrupted)
        return mt_fail(err, MT_E_BAD_REQUEST, "left the shell");
    if (s->why) {
        mt_err_move(err, MT_TAKE_PTR(s->why));
        return -1;
    }
    if (api_get(s->c, s->path, &shell, err) < 0)
        return -1;
    if (mt_streq(cli_text(shell, "endReason"), "exited"))
        return (int)cli_int(shell, "exitCode");
    details = cli_text(shell, "details");
    if (mt_streq(cli_text(shell, "status"), "Running"))
        return mt_fail(err, MT_E_CONFLICT, "another client has taken over this shell");
    return mt_fail(err, MT_E_CONFLICT, "the shell has ended: %s",
                   details[0] ? details : cli_text(shell, "endReason"));
}

static void session_done(session *s)
{
    if (s->left)
        return;
    transport_free(s->reading.transport);
    (void)mt_json_unref(s->reading.problem);
    (void)mt_err_free(s->why);
    mt_close_fd(&s->over_fd);
    free(s->path);
    free(s);
}

static int shell_in(session *s, const char *run, mt_err **err)
{
    if (s->over_fd < 0)
        return mt_fail_errno(err, errno, "cannot watch the shell");
    if (start(s, run, err) < 0 || open_reader(s, err) < 0 || run_terminal(s, err) < 0)
        return -1;
    return report(s, err);
}

static int run_shell(cli *c, mt_err **err)
{
    _cleanup_free_ char *run = NULL;
    session *s;
    int r;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return cli_usage(c, err,
                         "capsule-shell needs a terminal: without one, send commands with mt "
                         "capsule-exec (--stdin gives them what is piped in)");
    if (api_run_id(c, cli_arg(c, 0), &run, err) < 0)
        return -1;
    s = xalloc(sizeof(*s)); // not of this function's stack: the reader may outlive it
    *s = (session){.c = c, .over_fd = eventfd(0, EFD_CLOEXEC)};
    r = shell_in(s, run, err);
    session_done(s);
    return r;
}

static const cli_option options[] = {
    {"user", 'u', "NAME", "the user whose login shell it is (maitento)", "@capsuleUser"},
    {NULL},
};

const cli_command cli_shell_commands[] = {
    {"capsule-shell", "RUN", 1, 1, "open a shell in a run, on this terminal",
     "A login shell in the user's home, on a terminal of the run that has this one's size and "
     "type.\n"
     "The exit status is the shell's; 125 when mt itself failed or the run ended first. A shell "
     "whose\n"
     "connection broke for 15 seconds is hung up.",
     "  mt capsule-shell @last\n  mt capsule-shell @last --user sandbox", options, run_shell, ""},
    {NULL},
};
