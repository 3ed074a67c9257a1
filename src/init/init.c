// SPDX-License-Identifier: Apache-2.0
// mt-init, PID 1 of a capsule. It makes the processes that the supervisor asks for, so that they
// are born inside every namespace and under the filter, and reaps all that end. It holds no secret,
// opens no file but /dev/null and never writes to a stream of a command. The supervisor believes
// what it says about its own capsule only.
#include "capsule/initwire.h"
#include "init/sys.h"

#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/socket.h>
#include <linux/wait.h>
#include <stdbool.h>

#define CLOEXEC 02000000
#define RDWR    02
#define EINTR   4
#define EBADMSG 74

enum {
    SEAL_SHRINK_WRITE = 0x2 | 0x8, // F_SEAL_SHRINK, F_SEAL_WRITE
    GET_SEALS = 1034,
    SIG_SET_BYTES = 8,
    MSG_CLOEXEC = 0x40000000,
    MSG_TRUNCATED = 0x20 | 0x8, // MSG_TRUNC, MSG_CTRUNC
    MSG_NO_SIGNAL = 0x4000,
    UNIX_RIGHTS = 1,
    LEVEL_SOCKET = 1,
    CHILD_STACK = 16 * 1024,
};

typedef struct iov {
    void *base;
    size_t len;
} iov;

// struct msghdr and cmsghdr as the kernel has them.
typedef struct message {
    void *name;
    int name_len;
    iov *vec;
    size_t vec_len;
    void *control;
    size_t control_len;
    unsigned flags;
} message;

typedef struct control {
    size_t len;
    int level;
    int type;
    int fds[MT_INIT_FDS_MAX + 1];
} control;

typedef struct watched {
    int pid;
    uint64_t token;
} watched;

// What the child needs; it shares our memory until it executes.
typedef struct job {
    mt_init_request req;
    int fds[MT_INIT_FDS_MAX];
    int fd_count;
    const char *block;
    char **pointers;
    size_t pointers_bytes;
    const char *program;
    const char *cwd;
    char **argv;
    char **envp;
    volatile uint32_t stage;
    volatile int32_t error;
} job;

static watched children[MT_INIT_CHILDREN_MAX];
static unsigned child_count;
static job current;
static char *few_pointers[64];
static char child_stack[CHILD_STACK] __attribute__((aligned(16)));
static int null_fd;
static int signal_fd;

// gcc may call these by itself.
void *memset(void *to, int c, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n);

void *memset(void *to, int c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = (char)c;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

static void leave(int code)
{
    for (;;)
        (void)SYS1(__NR_exit_group, code);
}

// A reply that cannot be sent means that the supervisor is gone.
static void reply(uint32_t type, uint64_t token, uint32_t stage, int error, int status, int pid)
{
    mt_init_reply r = {
        .type = type, .stage = stage, .token = token, .error = error, .status = status, .pid = pid};
    long n;

    do {
        n = SYS6(__NR_sendto, MT_INIT_CONTROL_FD, &r, sizeof(r), MSG_NO_SIGNAL, 0, 0);
    } while (n == -EINTR);
    if (n != (long)sizeof(r))
        leave(1);
}

static void close_fds(job *j)
{
    for (int i = 0; i < j->fd_count; i++)
        (void)SYS1(__NR_close, j->fds[i]);
    j->fd_count = 0;
}

static bool is_here(const job *j)
{
    return j->req.flags & MT_INIT_BLOCK_HERE;
}

static void release(job *j)
{
    close_fds(j);
    if (j->block && !is_here(j))
        (void)SYS2(__NR_munmap, j->block, j->req.block_bytes);
    if (j->pointers && j->pointers != few_pointers)
        (void)SYS2(__NR_munmap, j->pointers, j->pointers_bytes);
    j->block = NULL;
    j->pointers = NULL;
}

static void *map(size_t bytes, int protection, int flags, int fd)
{
    long p = SYS6(__NR_mmap, 0, bytes, protection, flags, fd, 0);

    return p < 0 && p > -4096 ? NULL : (void *)p;
}

// The next string of the block, or NULL where none ends inside it.
static const char *next_string(const char *block, size_t bytes, size_t *at)
{
    size_t start = *at;

    for (size_t i = start; i < bytes; i++) {
        if (block[i] == 0) {
            *at = i + 1;
            return block + start;
        }
    }
    return NULL;
}

static int lay_out_strings(job *j)
{
    size_t at = 0, n = 0;

    j->program = next_string(j->block, j->req.block_bytes, &at);
    j->cwd = next_string(j->block, j->req.block_bytes, &at);
    if (!j->program || !j->cwd)
        return -EBADMSG;
    j->argv = j->pointers;
    for (uint32_t i = 0; i < j->req.argc; i++) {
        j->pointers[n] = (char *)next_string(j->block, j->req.block_bytes, &at);
        if (!j->pointers[n++])
            return -EBADMSG;
    }
    j->pointers[n++] = NULL;
    j->envp = j->pointers + n;
    for (uint32_t i = 0; i < j->req.envc; i++) {
        j->pointers[n] = (char *)next_string(j->block, j->req.block_bytes, &at);
        if (!j->pointers[n++])
            return -EBADMSG;
    }
    j->pointers[n] = NULL;
    return 0;
}

static int flagged_fds(uint32_t flags)
{
    int n = 0;

    for (uint32_t bit = MT_INIT_HAS_STDIN; bit <= MT_INIT_HAS_PROGRAM; bit <<= 1)
        n += (flags & bit) != 0;
    return n;
}

// A mapped file that shrinks is a SIGBUS, and one that changes is read twice with two answers.
static bool is_sealed(const job *j)
{
    return (SYS3(__NR_fcntl, j->fds[0], GET_SEALS, 0) & SEAL_SHRINK_WRITE) == SEAL_SHRINK_WRITE &&
           SYS3(__NR_lseek, j->fds[0], 0, 2) == (long)j->req.block_bytes;
}

static int check_request(job *j)
{
    mt_init_request *r = &j->req;

    if (r->type != MT_INIT_EXEC || r->group_count > MT_INIT_GROUPS_MAX ||
        r->cgroup_count > MT_INIT_CGROUPS_MAX || r->argc > MT_INIT_STRINGS_MAX ||
        r->envc > MT_INIT_STRINGS_MAX || r->argc + r->envc > MT_INIT_STRINGS_MAX || r->argc < 1 ||
        r->block_bytes < 2 || r->block_bytes > MT_INIT_BLOCK_MAX ||
        (r->flags & MT_INIT_HAS_TEXT && r->flags & MT_INIT_HAS_PROGRAM) ||
        j->fd_count != !is_here(j) + flagged_fds(r->flags) + (int)r->cgroup_count ||
        (is_here(j) && r->block_bytes > MT_INIT_BLOCK_HERE_MAX) ||
        child_count == MT_INIT_CHILDREN_MAX)
        return -EBADMSG;
    return is_here(j) || is_sealed(j) ? 0 : -EBADMSG;
}

static int prepare(job *j)
{
    int e = check_request(j);

    if (e)
        return e;
    j->pointers_bytes = (j->req.argc + j->req.envc + 2) * sizeof(char *);
    j->block =
        is_here(j) ? j->req.block : map(j->req.block_bytes, PROT_READ, MAP_PRIVATE, j->fds[0]);
    j->pointers =
        j->pointers_bytes <= sizeof(few_pointers)
            ? few_pointers
            : map(j->pointers_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!j->block || !j->pointers)
        return -12; // ENOMEM
    return lay_out_strings(j);
}

static int failed(job *j, uint32_t stage, long e)
{
    j->stage = stage;
    j->error = (int32_t)-e;
    return 127;
}

static long join_cgroups(job *j)
{
    for (int i = j->fd_count - (int)j->req.cgroup_count; i < j->fd_count; i++) {
        long n = SYS3(__NR_write, j->fds[i], "0", 1);

        if (n < 0)
            return n;
    }
    return 0;
}

// Received fds are all above 2, as 0, 1 and 2 are open from the start; the text or program may sit
// at 3 already. A program's is closed when it is executed.
static long arrange_fds(job *j)
{
    int next = is_here(j) ? 0 : 1, keep = 2;
    long r = 0;

    for (int fd = 0; fd <= 2 && r >= 0; fd++) {
        int from = j->req.flags & (MT_INIT_HAS_STDIN << fd) ? j->fds[next++] : null_fd;

        r = SYS3(__NR_dup3, from, fd, 0);
    }
    if (r >= 0 && (j->req.flags & (MT_INIT_HAS_TEXT | MT_INIT_HAS_PROGRAM))) {
        int flag = j->req.flags & MT_INIT_HAS_PROGRAM ? CLOEXEC : 0;

        keep = MT_INIT_TEXT_FD;
        if (j->fds[next] == keep)
            r = SYS3(__NR_fcntl, keep, F_SETFD, flag != 0);
        else
            r = SYS3(__NR_dup3, j->fds[next], keep, flag);
    }
    return r < 0 ? r : SYS3(__NR_close_range, keep + 1, ~0u, 0);
}

static long execute(const job *j)
{
    if (j->req.flags & MT_INIT_HAS_PROGRAM)
        return SYS6(__NR_execveat, MT_INIT_PROGRAM_FD, "", j->argv, j->envp, AT_EMPTY_PATH, 0);
    return SYS3(__NR_execve, j->program, j->argv, j->envp);
}

static long take_ids(const mt_init_request *r)
{
    long e = SYS2(__NR_setgroups, r->group_count, r->groups);

    if (e >= 0)
        e = SYS3(__NR_setresgid, r->gid, r->gid, r->gid);
    if (e >= 0)
        e = SYS3(__NR_setresuid, r->uid, r->uid, r->uid);
    return e;
}

// Runs in the child, which shares our memory and not our fds. Everything but 0 to 2 is closed
// before the working folder is entered, so that no name under /proc/self/fd leads anywhere.
static int child_main(void *data)
{
    uint64_t none = 0;
    job *j = data;
    long e;

    if ((e = join_cgroups(j)) < 0)
        return failed(j, MT_INIT_STAGE_CGROUP, e);
    (void)SYS0(__NR_setsid);
    (void)SYS4(__NR_rt_sigprocmask, SIG_SETMASK, &none, 0, SIG_SET_BYTES);
    (void)SYS1(__NR_umask, 022);
    if ((e = arrange_fds(j)) < 0)
        return failed(j, MT_INIT_STAGE_FDS, e);
    if ((e = take_ids(&j->req)) < 0)
        return failed(j, MT_INIT_STAGE_IDS, e);
    if ((e = SYS1(__NR_chdir, j->cwd)) < 0)
        return failed(j, MT_INIT_STAGE_CHDIR, e);
    e = execute(j);
    return failed(j, MT_INIT_STAGE_EXEC, e);
}

static void start(job *j)
{
    uint64_t token = j->req.token;
    int e = prepare(j);
    long pid;

    if (e) {
        release(j);
        reply(MT_INIT_FAILED, token, MT_INIT_STAGE_REQUEST, -e, 0, 0);
        return;
    }
    j->stage = MT_INIT_STAGE_NONE;
    j->error = 0;
    pid =
        sys_clone_call(CLONE_VM | CLONE_VFORK | SIGCHLD, child_stack + CHILD_STACK, child_main, j);
    release(j);
    if (pid < 0) {
        reply(MT_INIT_FAILED, token, MT_INIT_STAGE_CLONE, (int)-pid, 0, 0);
    } else if (j->stage != MT_INIT_STAGE_NONE) {
        // It is reaped below with the others, unwatched.
        reply(MT_INIT_FAILED, token, j->stage, j->error, 0, 0);
    } else {
        children[child_count].pid = (int)pid;
        children[child_count++].token = token;
        reply(MT_INIT_STARTED, token, 0, 0, 0, (int)pid);
    }
}

// Orphans end here as well and are no one's business.
static void reap(void)
{
    int status;
    long pid;

    while ((pid = SYS4(__NR_wait4, -1, &status, WNOHANG, 0)) > 0) {
        for (unsigned i = 0; i < child_count; i++) {
            if (children[i].pid != (int)pid)
                continue;
            reply(MT_INIT_EXITED, children[i].token, 0, 0, status, (int)pid);
            children[i] = children[--child_count];
            break;
        }
    }
}

// The fds of a packet belong to the job from here on, whatever else is wrong with it.
static void take_fds(job *j, const control *c, size_t control_len)
{
    size_t head = offsetof(control, fds);
    size_t n;

    j->fd_count = 0;
    if (control_len < head || c->level != LEVEL_SOCKET || c->type != UNIX_RIGHTS || c->len < head)
        return;
    n = (c->len - head) / sizeof(int);
    for (size_t i = 0; i < n && i < MT_INIT_FDS_MAX; i++)
        j->fds[j->fd_count++] = c->fds[i];
}

static void receive(void)
{
    job *j = &current;
    control c = {0};
    iov vec = {&j->req, sizeof(j->req)};
    message m = {.vec = &vec, .vec_len = 1, .control = &c, .control_len = sizeof(c)};
    long n = SYS3(__NR_recvmsg, MT_INIT_CONTROL_FD, &m, MSG_CLOEXEC);

    if (n == -EINTR || n == -11) // EAGAIN
        return;
    if (n <= 0)
        leave(0);
    take_fds(j, &c, m.control_len);
    if (n != (long)sizeof(j->req) || (m.flags & MSG_TRUNCATED)) {
        close_fds(j);
        // Fds are cut off when they would be too many for the limit of this process, which the
        // capsule's root may lower: the request itself is whole then.
        reply(MT_INIT_FAILED, n == (long)sizeof(j->req) ? j->req.token : ~0ull,
              MT_INIT_STAGE_REQUEST, EBADMSG, 0, 0);
        return;
    }
    start(j);
}

// What is ignored here would be ignored in every program that is executed.
static void reset_signals(void)
{
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } standard = {0};

    for (int sig = 1; sig <= 64; sig++)
        (void)SYS4(__NR_rt_sigaction, sig, &standard, 0, SIG_SET_BYTES);
}

static int open_streams(void)
{
    uint64_t sigchld = 1ull << (SIGCHLD - 1);
    long fd = SYS4(__NR_openat, AT_FDCWD, "/dev/null", RDWR | CLOEXEC, 0);

    if (fd < 0)
        return -1;
    for (int i = 0; i <= 2; i++) {
        if (fd != i && SYS3(__NR_dup3, fd, i, CLOEXEC) < 0)
            return -1;
    }
    null_fd = (int)fd;
    (void)SYS4(__NR_rt_sigprocmask, SIG_SETMASK, &sigchld, 0, SIG_SET_BYTES);
    signal_fd = (int)SYS4(__NR_signalfd4, -1, &sigchld, SIG_SET_BYTES, CLOEXEC | 04000); // NONBLOCK
    return signal_fd < 0 ? -1 : 0;
}

static void serve(void)
{
    struct pollfd fds[2] = {{.fd = MT_INIT_CONTROL_FD, .events = POLLIN},
                            {.fd = signal_fd, .events = POLLIN}};

    for (;;) {
        long n = SYS3(__NR_poll, fds, 2, -1);

        if (n == -EINTR)
            continue;
        if (n < 0) // never so; not to be asked for ever, outside of every limit
            leave(1);
        if (fds[1].revents & POLLIN) {
            char discarded[128 * 4];

            (void)SYS3(__NR_read, signal_fd, discarded, sizeof(discarded));
            reap();
        }
        if (fds[0].revents)
            receive();
    }
}

int mt_init_main(void);

int mt_init_main(void)
{
    // First of all: from here on no process of the capsule can look at or into this one.
    if (SYS2(__NR_prctl, PR_SET_DUMPABLE, 0) < 0)
        return 1;
    // No credential changes after this one, which would undo it.
    if (SYS2(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL) < 0)
        return 1;
    // Executed by descriptor, it would be called by that number.
    (void)SYS2(__NR_prctl, PR_SET_NAME, "mt-init");
    (void)SYS3(__NR_fcntl, MT_INIT_CONTROL_FD, F_SETFD, 1);
    (void)SYS3(__NR_close_range, MT_INIT_CONTROL_FD + 1, ~0u, 0);
    reset_signals();
    if (open_streams() < 0)
        return 1;
    reap(); // the builder may have ended before its end could be told
    reply(MT_INIT_READY, 0, 0, 0, 0, 1);
    serve();
    return 0;
}
