// SPDX-License-Identifier: Apache-2.0
// Groups on the real kernel, below a parent of the test's own: in the form that this host offers,
// and in the pure v1 and v2 forms where it has them.
#include "base/clock.h"
#include "base/id.h"
#include "base/tap.h"
#include "capsule/cgroup-find.h"
#include "capsule/cgroup.h"
#include "capsule/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static char instance[32];

static int64_t in_ms(int64_t ms)
{
    return mt_boottime_ns() + ms * 1000000;
}

typedef void body_fn(int write_fd);

// fork() into the group that PID 1 of a capsule is born in.
static pid_t born(mt_cgroup *g)
{
    _cleanup_close_ int fd = mt_cgroup_birth_fd(g);
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)fd,
    };

    return fd < 0 ? fork() : mt_sys_clone3(&args);
}

// A child that then moves itself by the fds, as commands of capsules do, and says it is there.
static pid_t child_in(mt_cgroup *g, int where, body_fn *body)
{
    int fds[MT_CGROUP_JOIN_MAX], pair[2];
    int count = mt_cgroup_join_fds(g, where, fds, NULL);
    char byte = 0;
    pid_t pid;

    if (count < 0 || pipe2(pair, O_CLOEXEC) < 0)
        return -1;
    pid = born(g);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < count; i++)
            if (write(fds[i], "0", 1) != 1)
                _exit(99);
        body(pair[1]);
        _exit(0);
    }
    (void)close(pair[1]);
    for (int i = 0; i < count; i++)
        (void)close(fds[i]);
    if (read(pair[0], &byte, 1) != 1)
        printf("# the child did not come up\n");
    (void)close(pair[0]);
    return pid;
}

static void sleeper(int fd)
{
    (void)!write(fd, "x", 1);
    (void)pause();
}

// A process that no signal to its group or session reaches, and one that it leaves behind.
static void family(int fd)
{
    if (fork() == 0) {
        (void)setsid();
        (void)signal(SIGTERM, SIG_IGN);
        (void)!write(fd, "x", 1);
        for (;;)
            (void)pause();
    }
    (void)pause();
}

static int status_of(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static void test_kill(mt_cgroup *g)
{
    pid_t cmd, init;

    CHECK_INT(mt_cgroup_make_command(g, 7, NULL), 0);
    cmd = child_in(g, MT_CGROUP_COMMAND(7), family);
    init = child_in(g, MT_CGROUP_INIT, sleeper);
    CHECK_INT(mt_cgroup_populated(g, MT_CGROUP_COMMAND(7)), 1);
    CHECK_INT(mt_cgroup_populated(g, MT_CGROUP_INIT), 1);
    CHECK_INT(mt_cgroup_remove_command(g, 7), -EBUSY);
    CHECK_INT(mt_cgroup_wait_empty(g, MT_CGROUP_CMDS, false, in_ms(20)), -ETIMEDOUT);
    // Only the command dies, its setsid child with it.
    CHECK_INT(mt_cgroup_kill(g, MT_CGROUP_COMMAND(7)), 0);
    CHECK(WTERMSIG(status_of(cmd)) == SIGKILL);
    CHECK_INT(mt_cgroup_wait_empty(g, MT_CGROUP_COMMAND(7), true, in_ms(20000)), 0);
    CHECK_INT(mt_cgroup_populated(g, MT_CGROUP_INIT), 1);
    while (mt_cgroup_remove_command(g, 7) == -EBUSY)
        (void)poll(NULL, 0, 1);
    CHECK_INT(mt_cgroup_populated(g, MT_CGROUP_COMMAND(7)), 0); // gone is empty
    CHECK_INT(mt_cgroup_kill(g, MT_CGROUP_ALL), 0);
    CHECK(WTERMSIG(status_of(init)) == SIGKILL);
    CHECK_INT(mt_cgroup_wait_empty(g, MT_CGROUP_ALL, true, in_ms(20000)), 0);
}

static void test_birth(mt_cgroup *g)
{
    pid_t pid = child_in(g, MT_CGROUP_BORN, sleeper);

    CHECK(pid > 0);
    CHECK_INT(mt_cgroup_populated(g, MT_CGROUP_CMDS), 1);
    CHECK_INT(mt_cgroup_populated(g, MT_CGROUP_INIT), 0);
    CHECK_INT(mt_cgroup_kill(g, MT_CGROUP_ALL), 0);
    CHECK_INT(mt_cgroup_wait_gone(g, in_ms(20000)), 0);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
    CHECK_INT(mt_cgroup_wait_empty(g, MT_CGROUP_ALL, false, in_ms(20000)), 0);
}

// Somebody who came in otherwise dies as well.
static void test_not_born(mt_cgroup *g)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    CHECK_INT(mt_cgroup_join(g, MT_CGROUP_CMDS, pid, NULL), 0);
    CHECK_INT(mt_cgroup_kill(g, MT_CGROUP_ALL), 0);
    CHECK_INT(mt_cgroup_wait_empty(g, MT_CGROUP_ALL, true, in_ms(20000)), 0);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
}

static void test_signal(mt_cgroup *g)
{
    pid_t pid = child_in(g, MT_CGROUP_CMDS, sleeper);

    CHECK_INT(mt_cgroup_signal(g, MT_CGROUP_CMDS, SIGTERM), 0);
    CHECK(WTERMSIG(status_of(pid)) == SIGTERM);
}

static void eat_memory(int fd)
{
    size_t size = 256 << 20;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)!write(fd, "x", 1);
    memset(p, 1, size);
    _exit(0);
}

static void fork_much(int fd)
{
    int failed = 0;

    for (int i = 0; i < 40; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)pause();
            _exit(0);
        }
        failed += pid < 0 && errno == EAGAIN;
    }
    (void)!write(fd, "x", 1);
    _exit(failed ? 55 : 0);
}

static bool has_memory, has_pids;

static void test_limits(mt_cgroup *g)
{
    mt_cgroup_counters before, after;
    int status;

    mt_cgroup_counters_get(g, &before);
    if (has_memory) {
        CHECK(before.oom_known);
        CHECK_INT(before.oom_kills, 0);
        CHECK(WTERMSIG(status_of(child_in(g, MT_CGROUP_CMDS, eat_memory))) == SIGKILL);
        mt_cgroup_counters_get(g, &after);
        CHECK_INT(after.oom_kills, 1);
        CHECK(after.memory_peak > (32 << 20) && after.memory_peak <= (64 << 20));
    } else {
        SKIP("no memory controller in this form");
    }
    if (has_pids) {
        status = status_of(child_in(g, MT_CGROUP_CMDS, fork_much));
        CHECK_INT(WEXITSTATUS(status), 55);
        mt_cgroup_counters_get(g, &after);
        CHECK(after.pids_refused > 0);
    } else {
        SKIP("no pids controller in this form");
    }
    mt_cgroup_counters_get(g, &after);
    CHECK(after.cpu_us > 0 || !has_pids);
    CHECK_INT(mt_cgroup_kill(g, MT_CGROUP_ALL), 0);
    CHECK_INT(mt_cgroup_wait_empty(g, MT_CGROUP_ALL, true, in_ms(20000)), 0);
}

static bool notes_missing(mt_cgroups *cgs, const char *controller)
{
    const char *const *notices;
    size_t count = mt_cgroups_notices(cgs, &notices);

    for (size_t i = 0; i < count; i++)
        if (strstr(notices[i], controller) && strstr(notices[i], "is not available"))
            return true;
    return false;
}

static void count_run(const char *run_id, void *data)
{
    (void)run_id;
    ++*(int *)data;
}

// A group of its own for each: who is born into one that was killed once dies as well, on kernels
// that count kills (6.18).
static void with_group(mt_cgroups *cgs, const mt_plan_limits *limits, void (*test)(mt_cgroup *g))
{
    char id[MT_ID_TEXT];
    mt_cgroup *g = NULL;

    mt_id_new(id);
    CHECK_INT(mt_cgroup_make(cgs, id, limits, &g, NULL), 0);
    if (!g)
        return;
    test(g);
    mt_cgroup_close(g);
    CHECK_INT(mt_cgroups_sweep(cgs, id, in_ms(20000)), 0);
}

// Made ahead: a name of its own, limits later.
static void test_spare(mt_cgroups *cgs, const mt_plan_limits *limits)
{
    static const char *const bad[] = {"spare-", "spare-x", "spare-1/2", "spares-1", "helpers", ""};
    mt_cgroup_counters c;
    mt_cgroup *g = NULL;

    for (size_t i = 0; i < MT_ARRAY_SIZE(bad); i++)
        CHECK_INT(mt_cgroup_make(cgs, bad[i], NULL, &g, NULL), -1);
    CHECK_INT(mt_cgroup_make(cgs, "spare-0a-1", NULL, &g, NULL), 0);
    if (!g)
        return;
    CHECK_INT(mt_cgroup_make_command(g, 0, NULL), 0);
    CHECK_INT(mt_cgroup_make_command(g, 0, NULL), 0);
    CHECK_INT(mt_cgroup_limit(g, limits, NULL), 0);
    mt_cgroup_limits_met(g, &c);
    CHECK_INT(c.oom_kills, 0);
    test_limits(g);
    mt_cgroup_limits_met(g, &c);
    CHECK_INT(c.oom_kills, has_memory);
    mt_cgroup_close(g);
    CHECK_INT(mt_cgroups_sweep(cgs, "spare-0a-1", in_ms(20000)), 0);
}

// Tries to get all of them; leaves with the number of those that it has.
static void count_cpus(int fd)
{
    cpu_set_t set;

    memset(&set, 0xff, sizeof(set));
    (void)sched_setaffinity(0, sizeof(set), &set);
    (void)!write(fd, "x", 1);
    _exit(sched_getaffinity(0, sizeof(set), &set) < 0 ? 99 : CPU_COUNT(&set));
}

static void test_cpus(mt_cgroups *cgs, const mt_plan_limits *limits)
{
    uint64_t load[MT_CPUS_MAX] = {0};
    mt_cpus all, one, found;
    mt_cgroup *g = NULL, *again = NULL;
    char id[MT_ID_TEXT];
    int status;

    if (mt_cgroups_cpus(cgs, &all) == 0) {
        SKIP("no cpuset controller here");
        return;
    }
    mt_id_new(id);
    mt_cpus_least(&all, load, 1, &one);
    CHECK_INT(mt_cgroup_make(cgs, id, limits, &g, NULL), 0);
    if (!g)
        return;
    CHECK_INT(mt_cgroup_cpus(g, &found), mt_cpus_count(&all));
    status = status_of(child_in(g, MT_CGROUP_CMDS, count_cpus));
    CHECK_INT(WEXITSTATUS(status), mt_cpus_count(&all));
    CHECK_INT(mt_cgroup_bind_cpus(g, &one, NULL), 0);
    CHECK_INT(mt_cgroup_make_command(g, 3, NULL), 0);
    status = status_of(child_in(g, MT_CGROUP_CMDS, count_cpus));
    CHECK_INT(WEXITSTATUS(status), 1);
    status = status_of(child_in(g, MT_CGROUP_COMMAND(3), count_cpus));
    CHECK_INT(WEXITSTATUS(status), 1);
    CHECK_INT(mt_cgroup_open(cgs, id, &again, NULL), 0); // what a later runner finds
    CHECK(again && mt_cgroup_cpus(again, &found) == 1 && memcmp(&found, &one, sizeof(one)) == 0);
    mt_cgroup_close(again);
    mt_cgroup_close(g);
    CHECK_INT(mt_cgroups_sweep(cgs, id, in_ms(20000)), 0);
}

static void hold_memory(int fd)
{
    char *p = malloc(20 << 20);

    memset(p, 1, 20 << 20);
    (void)!write(fd, p, 1);
    (void)pause();
}

static void test_memory_now(mt_cgroup *g)
{
    mt_cgroup_memory before, now;
    pid_t pid;

    CHECK_INT(mt_cgroup_memory_get(g, &before), has_memory);
    pid = child_in(g, MT_CGROUP_CMDS, hold_memory);
    (void)mt_cgroup_memory_get(g, &now);
    if (has_memory)
        CHECK(now.used >= before.used + (20 << 20) && now.active_anon + now.inactive_anon > 0 &&
              now.shmem == 0);
    // Held still, it can be killed once it is let go, on v1, and at once on v2.
    CHECK_INT(mt_cgroup_freeze(g, true), 0);
    (void)kill(pid, SIGKILL);
    CHECK_INT(mt_cgroup_freeze(g, false), 0);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
}

static void test_form(mt_cgroup_mode mode, const char *name)
{
    mt_cgroups_options o = {.instance = instance, .mode = mode};
    mt_plan_limits limits = {
        .memory_bytes = 64 << 20, .cpu_milli = 500, .pids = 16, .disk_bytes = 1 << 20};
    _cleanup_err_ mt_err *err = NULL;
    mt_cgroups *cgs = NULL;
    mt_cgroup *g = NULL, *again = NULL;
    char id[MT_ID_TEXT];
    int runs = 0;

    if (mt_cgroups_open(&o, &cgs, &err) < 0) {
        printf("# %s: %s\n", name, mt_err_sentence(err));
        SKIP("this host does not have the form");
        return;
    }
    printf("# %s: %s\n", name, mt_cgroups_mode_word(cgs));
    mt_id_new(id);
    CHECK_INT(mt_cgroup_open(cgs, id, &g, NULL), 1);
    CHECK(!mt_cgroups_exists(cgs, instance, id));
    CHECK_INT(mt_cgroup_make(cgs, id, &limits, &g, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
    CHECK(mt_cgroups_exists(cgs, instance, id));
    CHECK_INT(mt_cgroup_make(cgs, id, &limits, &again, NULL), -1); // an id has its groups once
    mt_cgroup_close(g);
    g = NULL;
    // The failed second one took the first with it: groups of one id are one run's.
    CHECK_INT(mt_cgroup_open(cgs, id, &g, NULL), 1);
    CHECK_INT(mt_cgroup_make(cgs, id, &limits, &g, &err), 0);
    mt_cgroup_close(g);
    with_group(cgs, &limits, test_birth);
    with_group(cgs, &limits, test_not_born);
    with_group(cgs, &limits, test_kill);
    with_group(cgs, &limits, test_signal);
    has_memory = !notes_missing(cgs, "memory");
    has_pids = !notes_missing(cgs, "pids");
    with_group(cgs, &limits, test_limits);
    with_group(cgs, &limits, test_memory_now);
    test_cpus(cgs, &limits);
    test_spare(cgs, &limits);
    CHECK_INT(mt_cgroup_open(cgs, id, &g, NULL), 0);
    CHECK_INT(mt_cgroups_each(cgs, count_run, &runs), 0);
    CHECK_INT(runs, 1);
    {
        pid_t pid = g ? child_in(g, MT_CGROUP_CMDS, sleeper) : -1;

        CHECK(g && mt_cgroup_freeze(g, true) == 0); // held by somebody who has died
        mt_cgroup_close(g);
        CHECK_INT(mt_cgroups_sweep(cgs, id, in_ms(20000)), 0);
        CHECK(pid < 0 || WTERMSIG(status_of(pid)) == SIGKILL);
    }
    CHECK(!mt_cgroups_exists(cgs, instance, id));
    CHECK_INT(mt_cgroups_sweep(cgs, id, in_ms(20000)), 0);
    mt_cgroups_remove_parent(cgs);
    CHECK_INT(mt_cgroups_each(cgs, count_run, &runs), 0);
    mt_cgroups_close(cgs);
}

static void test_find(void)
{
    cg_found f;

    CHECK_INT(
        cg_find_parse("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                      "35 31 0:32 / /sys/fs/cgroup/my\\040memory rw - cgroup cgroup rw,memory\n"
                      "37 31 0:34 / /sys/fs/cgroup/freezer rw shared:1 - cgroup cgroup rw,freezer\n"
                      "40 31 0:37 / /x rw - cgroup cgroup rw,name=systemd\n"
                      "garbage\n - \n1 2\n"
                      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
                      &f),
        0);
    CHECK_STR(f.v2, "/sys/fs/cgroup/unified");
    CHECK_STR(f.freezer, "/sys/fs/cgroup/freezer");
    CHECK_INT(f.v1_count, 2);
    CHECK_INT(f.v1[0].controllers, 1u << CG_CPU | 1u << CG_CPUACCT);
    CHECK_STR(f.v1[1].path, "/sys/fs/cgroup/my memory");
    cg_found_done(&f);
    CHECK_INT(cg_find_parse("", &f), 0);
    CHECK(!f.v2 && !f.freezer && f.v1_count == 0);
    cg_found_done(&f);
}

int main(void)
{
    if (geteuid() != 0) {
        SKIP("needs root");
        return TAP_DONE();
    }
    (void)snprintf(instance, sizeof(instance), "test-%d", (int)getpid());
    test_find();
    test_form(MT_CGROUP_AUTO, "auto");
    test_form(MT_CGROUP_V1, "v1");
    test_form(MT_CGROUP_V2, "v2");
    return TAP_DONE();
}
