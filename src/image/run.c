// SPDX-License-Identifier: Apache-2.0
#include "image/run.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum {
    BEAT_US = 5 * 1000 * 1000,
    LINE_MAX_BYTES = 400,
    TAIL_LINES = 6,
    ERRORS_MAX_BYTES = 4096,
    DRAIN_MS = 500,
    EXIT_NO_EXEC = 127,
};

static int signal_fd_ = -1;
static int log_fd_ = -1;
static bool interrupted_, quiet_;
static sigset_t old_mask_;

// ---- interruption and progress ----

int mt_interrupt_init(mt_err **err)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGQUIT);
    if (sigprocmask(SIG_BLOCK, &set, &old_mask_) < 0)
        return mt_fail_errno(err, errno, "cannot block signals");
    signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0)
        return mt_fail_errno(err, errno, "cannot watch signals");
    return 0;
}

bool mt_interrupted(void)
{
    struct signalfd_siginfo info;

    if (!interrupted_ && signal_fd_ >= 0 &&
        read(signal_fd_, &info, sizeof(info)) == (ssize_t)sizeof(info))
        interrupted_ = true;
    return interrupted_;
}

int mt_fail_interrupted(mt_err **err)
{
    return mt_fail(err, MT_E_UNAVAILABLE, "interrupted: nothing was left behind");
}

void mt_program_log(int fd)
{
    log_fd_ = fd;
}

void mt_program_quiet(bool quiet)
{
    quiet_ = quiet;
}

void mt_progress(const char *fmt, ...)
{
    va_list ap;

    if (quiet_)
        return;
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    (void)fflush(stderr);
}

void mt_progress_beat(int64_t started_us, int64_t *last_us, const char *what, const char *detail)
{
    int64_t now = mt_monotonic_us();

    if (now - *last_us < BEAT_US)
        return;
    *last_us = now;
    mt_progress("      %s, %lld s%s%s", what, (long long)((now - started_us) / 1000000),
                detail && *detail ? ": " : "", detail ? detail : "");
}

// ---- what the program prints ----

typedef struct output {
    char line[LINE_MAX_BYTES + 1];
    size_t line_len;
    char tail[TAIL_LINES][LINE_MAX_BYTES + 1];
    unsigned lines;
    mt_buf errors; // lines that the program marked as errors
} output;

static bool is_error_line(const char *line)
{
    return mt_starts_with(line, "E: ") || mt_starts_with(line, "npm error") ||
           mt_starts_with(line, "npm ERR!") || strstr(line, ": error ") != NULL ||
           mt_starts_with(line, "dpkg: error");
}

static void output_line(output *o)
{
    while (o->line_len > 0 && (unsigned char)o->line[o->line_len - 1] <= ' ')
        o->line_len--;
    o->line[o->line_len] = '\0';
    if (o->line_len > 0) {
        memcpy(o->tail[o->lines++ % TAIL_LINES], o->line, o->line_len + 1);
        if (is_error_line(o->line)) {
            (void)mt_buf_adds(&o->errors, o->errors.len ? "\n" : "");
            (void)mt_buf_add(&o->errors, o->line, o->line_len);
        }
    }
    o->line_len = 0;
}

static void output_add(output *o, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\n' || data[i] == '\r')
            output_line(o);
        else if (o->line_len < LINE_MAX_BYTES)
            o->line[o->line_len++] = (char)((unsigned char)data[i] < ' ' ? ' ' : data[i]);
    }
}

static const char *output_last(const output *o)
{
    return o->lines ? o->tail[(o->lines - 1) % TAIL_LINES] : "";
}

// The program's own words on a failure: its error lines, else its last lines.
static void output_explain(output *o, mt_buf *to)
{
    unsigned first = o->lines > TAIL_LINES ? o->lines - TAIL_LINES : 0;

    output_line(o);
    if (o->errors.len) {
        (void)mt_buf_addf(to, "\n%s", mt_buf_str(&o->errors));
        return;
    }
    for (unsigned i = first; i < o->lines; i++)
        (void)mt_buf_addf(to, "\n%s", o->tail[i % TAIL_LINES]);
}

// ---- the environment ----

// What a build takes from its caller: proxies, the package clients' own settings and certificates.
static bool is_passed_through(const char *entry)
{
    static const char *const prefixes[] = {"npm_config_",
                                           "NPM_CONFIG_",
                                           "NUGET_",
                                           "HOME=",
                                           "TMPDIR=",
                                           "SSL_CERT_FILE=",
                                           "SSL_CERT_DIR=",
                                           "SOURCE_DATE_EPOCH=",
                                           "NODE_EXTRA_CA_CERTS="};
    const char *equals = strchr(entry, '=');

    for (size_t i = 0; i < MT_ARRAY_SIZE(prefixes); i++)
        if (mt_starts_with(entry, prefixes[i]))
            return true;
    return equals && equals - entry > 6 &&
           (strncmp(equals - 6, "_proxy", 6) == 0 || strncmp(equals - 6, "_PROXY", 6) == 0);
}

static void fill_env(const mt_program *p, const char *env[MT_PROGRAM_MAX_ENV])
{
    size_t n = 0;

    for (size_t i = 0; p->env && p->env[i] && i < MT_PROGRAM_MAX_ENV / 2; i++)
        env[n++] = p->env[i]; // first: getenv() takes the first of two
    env[n++] = "PATH=" DEFAULT_PATH;
    env[n++] = "LANG=C.UTF-8";
    env[n++] = "LC_ALL=C.UTF-8";
    env[n++] = "DEBIAN_FRONTEND=noninteractive";
    for (char **e = environ; *e && n < MT_PROGRAM_MAX_ENV - 1; e++)
        if (is_passed_through(*e))
            env[n++] = *e;
    env[n] = NULL;
}

// ---- the child ----

typedef struct child_plan {
    const mt_program *program;
    const char **env;
    int out_fd, err_fd;
} child_plan;

static MT_NORETURN void child_fail(const char *what, const char *name)
{
    (void)dprintf(STDERR_FILENO, "E: mt-image: cannot %s '%s': %s\n", what, name, strerror(errno));
    _exit(EXIT_NO_EXEC);
}

// With what programs expect there. The mounts live as long as the namespace.
static int enter_root(const char *root)
{
    if (chdir(root) < 0 ||
        mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
        mount("/dev", "dev", NULL, MS_BIND | MS_REC, NULL) < 0)
        return -1;
    return chroot(".");
}

static MT_NORETURN void child_exec(const child_plan *c)
{
    const mt_program *p = c->program;
    const char *cwd = p->cwd ? p->cwd : "/";

    if (p->root && enter_root(p->root) < 0)
        child_fail("change root to", p->root);
    if (chdir(cwd) < 0)
        child_fail("enter", cwd);
    (void)sigprocmask(SIG_SETMASK, &old_mask_, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    execve(p->argv[0], (char *const *)p->argv, (char *const *)c->env);
    child_fail("execute", p->argv[0]);
}

// PID 1 of the program's namespace: when it dies all of the program dies, so PDEATHSIG here is what
// makes a killed mt-image leave no apt behind.
static MT_NORETURN void child_init(const child_plan *c)
{
    int status = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct pollfd reader = {.fd = c->err_fd};
    pid_t pid, got;

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(c->out_fd, STDOUT_FILENO) < 0 ||
        dup2(c->err_fd, STDERR_FILENO) < 0)
        _exit(EXIT_NO_EXEC);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        child_fail("watch", "mt-image");
    if (poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR))
        _exit(EXIT_NO_EXEC); // it died before the line above
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        child_fail("mount", "/proc");
    pid = fork();
    if (pid < 0)
        child_fail("fork", c->program->argv[0]);
    if (pid == 0)
        child_exec(c);
    do {
        got = waitpid(-1, &status, 0);
    } while (got != pid && (got > 0 || errno == EINTR));
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static pid_t start(const child_plan *c, int *ret_pidfd, mt_err **err)
{
    int pidfd;
    pid_t pid =
        (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, 0);

    if (pid < 0)
        return mt_fail_errno(err, errno, "%s: cannot make namespaces (mt-image needs root)",
                             c->program->what);
    if (pid == 0)
        child_init(c);
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        int e = errno;

        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return mt_fail_errno(err, e, "%s: cannot watch the program", c->program->what);
    }
    *ret_pidfd = pidfd;
    return pid;
}

// ---- watching it ----

typedef struct watch {
    const mt_program *program;
    output out;
    int out_fd, err_fd, pidfd; // out_fd is -1 where both streams are one
    int64_t started_us, beat_us, deadline_us;
    bool timed_out;
} watch;

// False at the end of the stream.
static bool take(watch *w, int fd, bool is_output)
{
    char data[16384];
    ssize_t n = read(fd, data, sizeof(data));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    if (n == 0)
        return false;
    if (log_fd_ >= 0)
        (void)mt_write_full(log_fd_, data, (size_t)n);
    if (is_output)
        (void)mt_buf_add(w->program->output, data, (size_t)n);
    else
        output_add(&w->out, data, (size_t)n);
    return true;
}

// One round. False when the program has ended (its last output is then still in the pipes).
static bool watch_round(watch *w)
{
    struct pollfd fds[] = {{.fd = w->pidfd, .events = POLLIN},
                           {.fd = w->err_fd, .events = POLLIN},
                           {.fd = w->out_fd, .events = POLLIN},
                           {.fd = signal_fd_, .events = POLLIN}};

    if (poll(fds, MT_ARRAY_SIZE(fds), 1000) < 0 && errno != EINTR)
        return false;
    if (fds[1].revents && !take(w, w->err_fd, false))
        mt_close_fd(&w->err_fd);
    if (fds[2].revents && !take(w, w->out_fd, true))
        mt_close_fd(&w->out_fd);
    if (fds[0].revents)
        return false;
    w->timed_out = mt_monotonic_us() > w->deadline_us;
    if (w->timed_out || mt_interrupted())
        (void)syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
    mt_progress_beat(w->started_us, &w->beat_us, w->program->what, output_last(&w->out));
    return true;
}

static void drain(watch *w)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = w->err_fd, .events = POLLIN},
                               {.fd = w->out_fd, .events = POLLIN}};

        if ((w->err_fd < 0 && w->out_fd < 0) || poll(fds, 2, DRAIN_MS) <= 0)
            return;
        if (fds[0].revents && !take(w, w->err_fd, false))
            mt_close_fd(&w->err_fd);
        if (fds[1].revents && !take(w, w->out_fd, true))
            mt_close_fd(&w->out_fd);
    }
}

static int judge(watch *w, int status, mt_err **err)
{
    const mt_program *p = w->program;
    char text[ERRORS_MAX_BYTES * 2];
    mt_buf explain = MT_BUF_INIT(sizeof(text) - 1);

    if (mt_interrupted())
        return mt_fail_interrupted(err);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        if (p->output && p->output->failed)
            return mt_fail(err, MT_E_INTERNAL, "%s: '%s' printed more than %zu bytes", p->what,
                           p->argv[0], p->output->max);
        return 0;
    }
    output_explain(&w->out, &explain);
    (void)snprintf(text, sizeof(text), "%s", mt_buf_str(&explain));
    mt_buf_done(&explain);
    if (w->timed_out)
        return mt_fail(err, MT_E_UNAVAILABLE, "%s: '%s' did not end within %lld s%s", p->what,
                       p->argv[0], (long long)(w->deadline_us - w->started_us) / 1000000, text);
    return mt_fail(err, MT_E_UNAVAILABLE, "%s: '%s' failed with exit code %d%s", p->what,
                   p->argv[0], WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                   text);
}

static int follow(watch *w, pid_t pid, mt_err **err)
{
    int status = 0;

    while (watch_round(w)) {
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    drain(w);
    return judge(w, status, err);
}

int mt_program_run(const mt_program *p, mt_err **err)
{
    const char *env[MT_PROGRAM_MAX_ENV];
    int errs[2] = {-1, -1}, outs[2] = {-1, -1}, timeout_s = p->timeout_s;
    watch w = {.program = p, .out_fd = -1, .err_fd = -1, .pidfd = -1};
    child_plan child = {.program = p, .env = env};
    pid_t pid;
    int r;

    if (mt_interrupted())
        return mt_fail_interrupted(err);
    fill_env(p, env);
    if (pipe2(errs, O_CLOEXEC) < 0 || (p->output && pipe2(outs, O_CLOEXEC) < 0)) {
        mt_close_fd(&errs[0]);
        mt_close_fd(&errs[1]);
        return mt_fail_errno(err, errno, "%s: cannot make a pipe", p->what);
    }
    child.err_fd = errs[1];
    child.out_fd = p->output ? outs[1] : errs[1];
    w.started_us = w.beat_us = mt_monotonic_us();
    w.deadline_us = w.started_us + (timeout_s ? timeout_s : MT_PROGRAM_TIMEOUT_S) * 1000000LL;
    w.out.errors = (mt_buf)MT_BUF_INIT(ERRORS_MAX_BYTES);
    pid = start(&child, &w.pidfd, err);
    mt_close_fd(&errs[1]);
    mt_close_fd(&outs[1]);
    w.err_fd = errs[0];
    w.out_fd = outs[0];
    r = pid < 0 ? -1 : follow(&w, pid, err);
    mt_close_fd(&w.err_fd);
    mt_close_fd(&w.out_fd);
    mt_close_fd(&w.pidfd);
    mt_buf_done(&w.out.errors);
    return r;
}

char *mt_program_find(const char *name)
{
    const char *path = getenv("PATH");

    if (!path || !*path)
        path = DEFAULT_PATH;
    while (*path) {
        size_t len = strcspn(path, ":");
        char *full = len ? mt_asprintf("%.*s/%s", (int)len, path, name) : NULL;

        if (full && access(full, X_OK) == 0)
            return full;
        free(full);
        path += len + (path[len] == ':');
    }
    return NULL;
}
