// SPDX-License-Identifier: Apache-2.0
// The janitor: a process beside the runner that removes what ended runs left, deletes their files,
// and makes network namespaces and scratch folders ahead. The runner tells it what to do over a
// SOCK_SEQPACKET pair and goes on; it works one job at a time. It dies with the runner and is
// started again when it dies itself; unfinished jobs are then told again.
#include "runner/runner.h"

#include "base/clock.h"
#include "base/fd.h"
#include "capsule/place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

typedef enum job_type {
    JOB_CLEAN = 1,
    JOB_FORGET,
    JOB_NETNS,
    JOB_SCRATCH,
    JOB_MEASURE,
    JOB_PRUNE,
} job_type;

typedef struct job {
    job_type type;
    char run_id[37];
    lost_as lost;
    unsigned count;
    char layer[MT_LAYER_TEXT];
    uint64_t limit;
    mt_forget forget;
} job;

typedef struct answer {
    job_type type;
    char run_id[37];
    clean_result result;
    char layer[MT_LAYER_TEXT];
    uint64_t bytes;
    mt_layers_pruned pruned;
} answer;

enum { KEEP_S = 60 }; // a layer that was just made is there for whom it was made

struct janitor {
    runner *r;
    pid_t pid;
    int fd;
    mt_io *io;
};

static void answer_with(int fd, const answer *a, int pass_fd)
{
    if (mt_send_fds(fd, a, sizeof(*a), &pass_fd, pass_fd >= 0, 0) < 0)
        _exit(1); // the runner is gone
}

static void make_namespaces(int fd, unsigned count)
{
    while (count-- > 0) {
        answer a = {.type = JOB_NETNS};
        int ns = netns_make(); // left at the next one

        a.result.result = ns < 0 ? ns : 0;
        answer_with(fd, &a, ns);
        mt_close_fd(&ns);
        if (a.result.result < 0)
            return;
    }
}

static void do_job(runner *r, int fd, const job *j)
{
    answer a = {.type = j->type};

    switch (j->type) {
    case JOB_CLEAN:
        memcpy(a.run_id, j->run_id, sizeof(a.run_id));
        if (mt_is_spare(mt_str_of(j->run_id)))
            a.result.result = janitor_clean_place(r, j->run_id);
        else
            a.result = janitor_clean_run(r, j->run_id, j->lost);
        answer_with(fd, &a, -1);
        break;
    case JOB_FORGET:
        janitor_forget_run(r, j->run_id, j->forget);
        break;
    case JOB_NETNS:
        make_namespaces(fd, j->count);
        break;
    case JOB_MEASURE:
        memcpy(a.layer, j->layer, sizeof(a.layer));
        a.bytes = mt_layer_build_bytes(r->layers_fd, j->layer);
        answer_with(fd, &a, -1);
        break;
    case JOB_PRUNE:
        a.bytes = j->limit;
        a.result.result = mt_layers_prune(r->layers_fd, j->limit, j->limit ? KEEP_S : 0, &a.pruned);
        answer_with(fd, &a, -1);
        break;
    case JOB_SCRATCH:
        break; // done below, when nothing else waits
    }
}

// --- aside ---------------------------------------------------------------------------------------

// What becomes of a build, and the removal of layers, take seconds on a busy disk: a process of
// their own does them, so that no run waits for that to be cleaned. It dies with the janitor.
enum { ASIDE_MAX = 8 };

static struct aside {
    pid_t pid; // 0: free
    job job;
} asides[ASIDE_MAX];

static bool is_slow(const job *j)
{
    return j->type == JOB_PRUNE || (j->type == JOB_CLEAN && j->layer[0]);
}

// One that died itself has answered nothing: the job is told again later.
static void reap_asides(int fd)
{
    for (size_t i = 0; i < ASIDE_MAX; i++) {
        struct aside *s = &asides[i];
        answer a = {.type = JOB_CLEAN, .result = {.result = -EIO}};
        int status;

        if (!s->pid || waitpid(s->pid, &status, WNOHANG) != s->pid)
            continue;
        memcpy(a.run_id, s->job.run_id, sizeof(a.run_id));
        if (s->job.type == JOB_CLEAN && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
            answer_with(fd, &a, -1);
        s->pid = 0;
    }
}

static void do_aside(runner *r, int fd, const job *j)
{
    pid_t parent = getpid();
    size_t i = 0;

    while (i < ASIDE_MAX && asides[i].pid)
        i++;
    if (i < ASIDE_MAX) {
        asides[i] = (struct aside){.pid = fork(), .job = *j};
        if (asides[i].pid > 0)
            return;
    }
    if (i < ASIDE_MAX && asides[i].pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            do_job(r, fd, j);
        _exit(0);
    }
    if (i < ASIDE_MAX)
        asides[i].pid = 0;
    do_job(r, fd, j);
}

static bool more_waits(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, timeout_ms) > 0;
}

// Deleting and filling wait for a quiet moment, but not for ever.
enum { QUIET_MS = 15, LONGEST_MS = 500, PENDING_MS = 5000 };

// When nothing waits: deleting first, as it gives space back, then filling up.
static void idle(runner *r, int fd)
{
    mt_scratch_janitor(r->scratch);
    while (!more_waits(fd, 0) && mt_scratch_fill(r->scratch, RUNNER_READY_SCRATCH) > 0)
        ;
}

static void leave_signals(void)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

MT_NORETURN static void work(runner *r, pid_t parent, int fd)
{
    int64_t since = 0; // when there began to be something to do in a quiet moment; 0: nothing is

    (void)prctl(PR_SET_NAME, "mt-janitor");
    (void)setpriority(PRIO_PROCESS, 0, 5); // starts come first
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) // it died before the line above
        _exit(0);
    leave_signals();
    for (;;) {
        job j;
        ssize_t n;

        if (since &&
            (!more_waits(fd, QUIET_MS) || mt_monotonic_us() - since > LONGEST_MS * 1000LL)) {
            idle(r, fd);
            since = 0;
        }
        if (mt_scratch_pending(r->scratch) && !more_waits(fd, PENDING_MS)) {
            mt_scratch_janitor(r->scratch);
            continue;
        }
        n = recv(fd, &j, sizeof(j), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != sizeof(j))
            _exit(0);
        reap_asides(fd);
        if (is_slow(&j))
            do_aside(r, fd, &j);
        else
            do_job(r, fd, &j);
        since = since ? since : mt_monotonic_us();
    }
}

static int tell(janitor *j, const job *what)
{
    if (j->fd < 0)
        return -EPIPE;
    // Never waited for: a job that finds no room is told again by the periodic look.
    return send(j->fd, what, sizeof(*what), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

// One answer and, with it, maybe an fd. 1, 0 when there is none now, negative at the end.
static int receive(janitor *j, answer *a, int *ret_fd)
{
    ssize_t n = mt_receive_fds(j->fd, a, sizeof(*a), ret_fd, 1, MSG_DONTWAIT);

    return n == -EAGAIN ? 0 : n == (ssize_t)sizeof(*a) ? 1 : -EPIPE;
}

static void take_netns(runner *r, const answer *a, int fd)
{
    if (r->netns_asked)
        r->netns_asked--;
    if (a->result.result < 0) {
        r->netns_asked = 0;
        return;
    }
    if (fd >= 0 && r->netns_count < RUNNER_NETNS_POOL)
        r->netns[r->netns_count++] = MT_TAKE_FD(fd);
    mt_close_fd(&fd);
}

static void start_again(janitor *j);

static void on_answer(mt_io *io, uint32_t events, void *data)
{
    janitor *j = data;
    answer a;
    int fd = -1, got;

    while ((got = receive(j, &a, &fd)) > 0) {
        if (a.type == JOB_NETNS)
            take_netns(j->r, &a, fd);
        else
            mt_close_fd(&fd);
        if (a.type == JOB_CLEAN)
            runs_cleaned(j->r, a.run_id, a.result);
        if (a.type == JOB_PRUNE && a.bytes == 0) // all that could go: somebody asked for it
            server_pruned(j->r, &a.pruned);
        if (a.type == JOB_MEASURE)
            layers_measured(j->r, a.layer, a.bytes);
    }
    if (got < 0)
        start_again(j);
}

// The child keeps what the work needs; nothing of runs, servers or blocks. Nothing is taken out of
// the loop: its epoll is shared with the runner.
static void close_others(runner *r)
{
    for (run *u = r->runs; u; u = u->next) {
        mt_close_fd(&u->lock_fd);
        mt_close_fd(&u->pidfd);
        spares_free(u);
    }
    for (unsigned i = 0; i < r->netns_count; i++)
        mt_close_fd(&r->netns[i]);
    mt_close_fd(&r->listen_fd);
    server_close_fds(r);
    gateway_close_fds(r);
}

static int begin(janitor *j, mt_err **err)
{
    pid_t self = getpid();
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return mt_fail_errno(err, errno, "cannot make a socket for the janitor");
    apart_share(true); // for what close_others() has to close
    j->pid = fork();
    if (j->pid == 0) {
        (void)close(pair[0]);
        close_others(j->r);
        work(j->r, self, pair[1]);
    }
    apart_share(false);
    (void)close(pair[1]);
    if (j->pid < 0) {
        (void)close(pair[0]);
        return mt_fail_errno(err, errno, "cannot start the janitor");
    }
    j->fd = pair[0];
    j->io = mt_io_add(j->r->loop, j->fd, EPOLLIN, on_answer, j);
    return j->io ? 0 : mt_fail_oom(err);
}

static void stop(janitor *j)
{
    mt_io_remove(j->io);
    j->io = NULL;
    mt_close_fd(&j->fd);
    if (j->pid > 0) {
        (void)kill(j->pid, SIGKILL);
        while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    j->pid = -1;
}

static void start_again(janitor *j)
{
    _cleanup_err_ mt_err *err = NULL;

    stop(j);
    mt_log_plain(MT_LOG_ERROR, "the janitor died; starting it again");
    j->r->netns_asked = 0;
    if (begin(j, &err) < 0) {
        mt_log(MT_LOG_ERROR, "no janitor", {"error", mt_err_sentence(err)});
        return;
    }
    for (run *u = j->r->runs; u; u = u->next)
        if (u->state == RUN_CLEANING && janitor_clean(j, u) < 0)
            u->state = RUN_STUCK;
}

int janitor_start(runner *r, mt_err **err)
{
    janitor *j = calloc(1, sizeof(*j));

    if (!j)
        return mt_fail_oom(err);
    j->r = r;
    j->fd = -1;
    if (begin(j, err) < 0) {
        janitor_free(j);
        return -1;
    }
    r->janitor = j;
    return 0;
}

void janitor_free(janitor *j)
{
    if (!j)
        return;
    stop(j);
    free(j);
}

int janitor_clean(janitor *j, run *u)
{
    job what = {.type = JOB_CLEAN, .lost = u->lost};

    memcpy(what.run_id, u->id, sizeof(what.run_id));
    memcpy(what.layer, u->layer, sizeof(what.layer));
    return tell(j, &what);
}

int janitor_forget(janitor *j, const char *run_id, mt_forget forget)
{
    job what = {.type = JOB_FORGET, .forget = forget};

    memcpy(what.run_id, run_id, sizeof(what.run_id));
    return tell(j, &what);
}

void janitor_ask_netns(janitor *j, unsigned count)
{
    job what = {.type = JOB_NETNS, .count = count};

    if (count && tell(j, &what) == 0)
        j->r->netns_asked += count;
}

void janitor_ask_scratch(janitor *j)
{
    job what = {.type = JOB_SCRATCH};

    (void)tell(j, &what);
}

void janitor_measure(janitor *j, const char *layer)
{
    job what = {.type = JOB_MEASURE};

    (void)snprintf(what.layer, sizeof(what.layer), "%s", layer);
    (void)tell(j, &what);
}

void janitor_prune(janitor *j, uint64_t limit)
{
    job what = {.type = JOB_PRUNE, .limit = limit};

    (void)tell(j, &what);
}

int janitor_fd(const janitor *j)
{
    return j->fd;
}
