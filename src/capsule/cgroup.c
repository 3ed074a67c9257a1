// SPDX-License-Identifier: Apache-2.0
// The groups of one run.
#include "base/clock.h"
#include "capsule/cgroup-internal.h"
#include "capsule/place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

static mt_cgroup *group_new(mt_cgroups *c)
{
    mt_cgroup *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    g->track_ops = c->track_ops;
    g->track_v2 = c->track_v2;
    g->limited = c->limited;
    g->run_fd = g->init_fd = g->cmds_fd = g->all_fd = g->ahead_fd = -1;
    g->oom_kills_fd = g->pids_refused_fd = -1;
    g->v1_count = c->v1_count;
    for (size_t i = 0; i < g->v1_count; i++) {
        g->v1[i].controllers = c->v1[i].controllers;
        g->v1[i].cmds_fd = g->v1[i].join_fd = -1;
        g->v1[i].init_fd = fcntl(c->v1[i].init_fd, F_DUPFD_CLOEXEC, 3);
    }
    return g;
}

void mt_cgroup_close(mt_cgroup *g)
{
    if (!g)
        return;
    mt_close_fd(&g->run_fd);
    mt_close_fd(&g->init_fd);
    mt_close_fd(&g->cmds_fd);
    mt_close_fd(&g->all_fd);
    mt_close_fd(&g->ahead_fd);
    mt_close_fd(&g->oom_kills_fd);
    mt_close_fd(&g->pids_refused_fd);
    for (size_t i = 0; i < g->v1_count; i++) {
        mt_close_fd(&g->v1[i].cmds_fd);
        mt_close_fd(&g->v1[i].init_fd);
        mt_close_fd(&g->v1[i].join_fd);
    }
    free(g);
}

static int set_limits(const cg_limit_ops *ops, int fd, unsigned controllers,
                      const mt_plan_limits *l, mt_err **err)
{
    int r = 0;

    if (controllers & (1u << CG_MEMORY))
        r = ops->memory(fd, l->memory_bytes);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot set the memory limit");
    if (controllers & (1u << CG_PIDS))
        r = ops->pids(fd, l->pids);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot set the limit of processes");
    if ((controllers & (1u << CG_CPU)) && l->cpu_milli &&
        l->cpu_milli < (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000)
        r = ops->cpu(fd, l->cpu_milli);
    return r < 0 ? mt_fail_errno(err, r, "cannot set the cpu limit") : 0;
}

static int make_track(mt_cgroups *c, mt_cgroup *g, const char *place)
{
    if (mkdirat(c->track_fd, place, 0755) < 0)
        return -errno;
    g->run_fd = cg_open_dir(c->track_fd, place);
    if (g->run_fd < 0)
        return g->run_fd;
    if (g->limited && cg_pass_on(g->run_fd, g->limited) != g->limited)
        return -EOPNOTSUPP;
    g->init_fd = cg_make_dir(g->run_fd, "init");
    g->cmds_fd = cg_make_dir(g->run_fd, "cmds");
    return g->init_fd < 0 ? g->init_fd : g->cmds_fd < 0 ? g->cmds_fd : 0;
}

static int make_v1(mt_cgroups *c, mt_cgroup *g, const char *place)
{
    if (c->v2_fd >= 0) {
        g->all_fd = cg_make_dir(c->v2_fd, place);
        if (g->all_fd < 0)
            return g->all_fd;
    }
    for (size_t i = 0; i < g->v1_count; i++) {
        g->v1[i].cmds_fd = cg_make_dir(c->v1[i].parent_fd, place);
        if (g->v1[i].cmds_fd < 0)
            return g->v1[i].cmds_fd;
    }
    return 0;
}

static int make_all(mt_cgroups *c, mt_cgroup *g, const char *place, const mt_plan_limits *limits,
                    mt_err **err)
{
    int r = make_track(c, g, place);

    if (r == 0)
        r = make_v1(c, g, place);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot make the control groups of the run");
    return limits ? mt_cgroup_limit(g, limits, err) : 0;
}

int mt_cgroup_limit(mt_cgroup *g, const mt_plan_limits *limits, mt_err **err)
{
    if (g->limited && set_limits(&cg_limit_v2, g->cmds_fd, g->limited, limits, err) < 0)
        return -1;
    for (size_t i = 0; i < g->v1_count; i++)
        if (set_limits(&cg_limit_v1, g->v1[i].cmds_fd, g->v1[i].controllers, limits, err) < 0)
            return -1;
    return 0;
}

int mt_cgroup_make(mt_cgroups *c, const char *place, const mt_plan_limits *limits, mt_cgroup **ret,
                   mt_err **err)
{
    mt_cgroup *g;

    if (!mt_is_place(mt_str_of(place)))
        return mt_fail(err, MT_E_INTERNAL, "a control group is made for runs only");
    g = group_new(c);
    if (!g)
        return mt_fail_oom(err);
    if (make_all(c, g, place, limits, err) < 0) {
        mt_cgroup_close(g);
        (void)mt_cgroups_sweep(c, place, mt_boottime_ns());
        return -1;
    }
    *ret = g;
    return 0;
}

int mt_cgroup_open(mt_cgroups *c, const char *place, mt_cgroup **ret, mt_err **err)
{
    mt_cgroup *g;

    if (!mt_is_place(mt_str_of(place)))
        return mt_fail(err, MT_E_INTERNAL, "a control group is opened by the names of runs only");
    g = group_new(c);
    if (!g)
        return mt_fail_oom(err);
    g->run_fd = cg_open_dir(c->track_fd, place);
    if (g->run_fd == -ENOENT) {
        mt_cgroup_close(g);
        *ret = NULL;
        return 1;
    }
    // What a crash left half made is opened as far as it goes: negative fds are not there.
    g->init_fd = g->run_fd < 0 ? -1 : cg_open_dir(g->run_fd, "init");
    g->cmds_fd = g->run_fd < 0 ? -1 : cg_open_dir(g->run_fd, "cmds");
    g->all_fd = c->v2_fd < 0 ? -1 : cg_open_dir(c->v2_fd, place);
    for (size_t i = 0; i < g->v1_count; i++)
        g->v1[i].cmds_fd = cg_open_dir(c->v1[i].parent_fd, place);
    *ret = g;
    return 0;
}

size_t mt_cgroup_fds(const mt_cgroup *g, int fds[MT_CGROUP_FDS_MAX])
{
    const int own[] = {g->run_fd, g->init_fd, g->cmds_fd, g->all_fd};
    size_t count = 0;

    for (size_t i = 0; i < MT_ARRAY_SIZE(own); i++)
        if (own[i] >= 0)
            fds[count++] = own[i];
    for (size_t i = 0; i < g->v1_count; i++) {
        if (g->v1[i].cmds_fd >= 0)
            fds[count++] = g->v1[i].cmds_fd;
        if (g->v1[i].init_fd >= 0)
            fds[count++] = g->v1[i].init_fd;
    }
    return count;
}

static void command_name(uint32_t n, char out[24])
{
    (void)snprintf(out, 24, "%u", n);
}

static bool is_ahead(const mt_cgroup *g, uint32_t n)
{
    return g->ahead_fd >= 0 && g->ahead == n;
}

int mt_cgroup_make_command(mt_cgroup *g, uint32_t n, mt_err **err)
{
    char name[24];

    if (is_ahead(g, n))
        return 0;
    command_name(n, name);
    if (mkdirat(g->cmds_fd, name, 0755) < 0 && errno != EEXIST)
        return mt_fail_errno(err, errno, "cannot make the control group of command %u", n);
    return 0;
}

int mt_cgroup_remove_command(mt_cgroup *g, uint32_t n)
{
    char name[24];

    command_name(n, name);
    return unlinkat(g->cmds_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

// The tracking folder of a place: an fd of the caller's, or negative errno.
static int place_fd(mt_cgroup *g, int where)
{
    char name[24];
    int fd = where == MT_CGROUP_ALL ? g->run_fd : where == MT_CGROUP_INIT ? g->init_fd : g->cmds_fd;

    if (where >= 0) {
        command_name((uint32_t)where, name);
        return cg_open_dir(g->cmds_fd, name);
    }
    if (fd < 0)
        return -ENOENT;
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? -errno : fd;
}

static void close_all(int *fds, int count)
{
    while (count-- > 0)
        (void)close(fds[count]);
}

static int v1_dir(const mt_cgroup *g, size_t i, int where)
{
    return where == MT_CGROUP_INIT ? g->v1[i].init_fd : g->v1[i].cmds_fd;
}

// Opens a file to join by; negative errno.
static int open_join(int dirfd, const char *file)
{
    int fd = dirfd < 0 ? dirfd : openat(dirfd, file, O_WRONLY | O_CLOEXEC);

    return fd == -1 ? -errno : fd;
}

// The group of all commands is joined again and again: its file stays open.
static int open_v1_join(mt_cgroup *g, size_t i, int where)
{
    int fd;

    if (where == MT_CGROUP_INIT)
        return open_join(v1_dir(g, i, where), "tasks");
    if (g->v1[i].join_fd < 0) {
        fd = open_join(v1_dir(g, i, where), "tasks");
        if (fd < 0)
            return fd;
        g->v1[i].join_fd = fd;
    }
    fd = fcntl(g->v1[i].join_fd, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? -errno : fd;
}

static int open_track_join(mt_cgroup *g, int where)
{
    _cleanup_close_ int place = -1;

    if (where >= 0 && is_ahead(g, (uint32_t)where))
        return MT_TAKE_FD(g->ahead_fd);
    place = place_fd(g, where);
    return open_join(place, g->track_ops->join_file);
}

void mt_cgroup_make_ahead(mt_cgroup *g, uint32_t n)
{
    if (is_ahead(g, n))
        return;
    mt_close_fd(&g->ahead_fd);
    if (mt_cgroup_make_command(g, n, NULL) < 0)
        return;
    g->ahead_fd = open_track_join(g, (int)n);
    g->ahead = n;
}

int mt_cgroup_join_fds(mt_cgroup *g, int where, int fds[MT_CGROUP_JOIN_MAX], mt_err **err)
{
    int count = 0, out[MT_CGROUP_JOIN_MAX];

    // Who was born in its place is there already, as far as v2 goes.
    if (where != MT_CGROUP_BORN || !g->track_v2)
        out[count++] = open_track_join(g, where);
    for (size_t i = 0; i < g->v1_count && (count == 0 || out[count - 1] >= 0); i++)
        out[count++] = open_v1_join(g, i, where);
    if (count && out[count - 1] < 0) {
        close_all(out, count - 1);
        return mt_fail_errno(err, out[count - 1], "cannot open a control group to join");
    }
    memcpy(fds, out, (size_t)count * sizeof(*fds));
    return count;
}

int mt_cgroup_join(mt_cgroup *g, int where, pid_t pid, mt_err **err)
{
    _cleanup_close_ int place = place_fd(g, where);
    int r = place < 0 ? place : cg_join_by_file(place, "cgroup.procs", pid);

    if (r == 0 && g->all_fd >= 0)
        r = cg_join_by_file(g->all_fd, "cgroup.procs", pid);
    for (size_t i = 0; r == 0 && i < g->v1_count; i++)
        r = cg_join_by_file(v1_dir(g, i, where), "cgroup.procs", pid);
    return r < 0 ? mt_fail_errno(err, r, "cannot join a control group") : 0;
}

int mt_cgroup_birth_fd(mt_cgroup *g)
{
    int fd = g->all_fd >= 0 ? g->all_fd : g->track_v2 ? g->cmds_fd : -1;

    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static int kill_tracked(mt_cgroup *g, int where)
{
    _cleanup_close_ int fd = place_fd(g, where);
    int r = fd < 0 ? fd : g->track_ops->kill(fd);

    return r == -ENOENT || r == -ENODEV ? 0 : r;
}

int mt_cgroup_kill(mt_cgroup *g, int where)
{
    if (where == MT_CGROUP_ALL && g->all_fd >= 0 && cg_track_v2.populated(g->all_fd) > 0)
        return cg_track_v2.kill(g->all_fd);
    return kill_tracked(g, where);
}

static int signal_one(pid_t pid, void *data)
{
    (void)kill(pid, *(const int *)data);
    return 0;
}

int mt_cgroup_signal(mt_cgroup *g, int where, int sig)
{
    _cleanup_close_ int fd = place_fd(g, where);

    return fd < 0 ? fd : cg_each_process(fd, signal_one, &sig);
}

int mt_cgroup_populated(mt_cgroup *g, int where)
{
    _cleanup_close_ int fd = place_fd(g, where);

    if (where == MT_CGROUP_ALL && g->all_fd >= 0 && cg_track_v2.populated(g->all_fd) > 0)
        return 1;

    return fd == -ENOENT || fd == -ENODEV ? 0 : fd < 0 ? fd : g->track_ops->populated(fd);
}

int mt_cgroup_events_fd(mt_cgroup *g, int where)
{
    _cleanup_close_ int fd = place_fd(g, where);

    if (where == MT_CGROUP_ALL && g->all_fd >= 0)
        return openat(g->all_fd, cg_track_v2.events_file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || !g->track_ops->events_file)
        return -1;
    return openat(fd, g->track_ops->events_file, O_RDONLY | O_CLOEXEC);
}

static int wait_until(mt_cgroup *g, int where, int (*populated)(mt_cgroup *g, int where),
                      bool again, int64_t deadline_ns)
{
    _cleanup_close_ int events = mt_cgroup_events_fd(g, where);
    int step_ms = 1;

    for (;;) {
        struct pollfd p = {.fd = events, .events = POLLPRI};
        int64_t left_ns;
        char text[256];

        // The read arms the poll; what happens between them is not lost.
        if (events >= 0)
            (void)!pread(events, text, sizeof(text), 0);
        if (populated(g, where) <= 0)
            return 0;
        left_ns = deadline_ns - mt_boottime_ns();
        if (left_ns <= 0)
            return -ETIMEDOUT;
        (void)poll(&p, events >= 0, (int)MT_MIN(left_ns / 1000000 + 1, (int64_t)step_ms));
        step_ms = MT_MIN(step_ms * 2, events >= 0 ? 100 : 10);
        // The second reaches who was not born in the v2 group.
        if (again && step_ms > 8) {
            (void)mt_cgroup_kill(g, where);
            (void)kill_tracked(g, where);
        }
    }
}

int mt_cgroup_wait_empty(mt_cgroup *g, int where, bool again, int64_t deadline_ns)
{
    return wait_until(g, where, mt_cgroup_populated, again, deadline_ns);
}

static int birth_populated(mt_cgroup *g, int where)
{
    return g->all_fd >= 0 ? cg_track_v2.populated(g->all_fd) : mt_cgroup_populated(g, where);
}

int mt_cgroup_wait_gone(mt_cgroup *g, int64_t deadline_ns)
{
    return wait_until(g, MT_CGROUP_ALL, birth_populated, true, deadline_ns);
}

int mt_cgroup_freeze(mt_cgroup *g, bool frozen)
{
    _cleanup_close_ int fd = place_fd(g, MT_CGROUP_CMDS);

    return fd < 0 ? fd : g->track_ops->freeze(fd, frozen);
}

// The folder with the run's limit of a controller, or -1.
static int limit_dir(const mt_cgroup *g, cg_controller which, bool *ret_v2)
{
    *ret_v2 = g->track_v2 && (g->limited & (1u << which));
    if (*ret_v2)
        return g->cmds_fd;
    for (size_t i = 0; i < g->v1_count; i++)
        if (g->v1[i].controllers & (1u << which))
            return g->v1[i].cmds_fd;
    return -1;
}

// Asked at the begin and end of each command, so the file is kept open.
static bool read_kept(int *fd, int dirfd, const cg_number_at *at, uint64_t *ret)
{
    char text[512];
    ssize_t n;

    if (*fd < 0)
        *fd = openat(dirfd, at->file, O_RDONLY | O_CLOEXEC);
    n = *fd < 0 ? -1 : pread(*fd, text, sizeof(text) - 1, 0);
    if (n < 0)
        return false;
    text[n] = '\0';
    return cg_number_in(text, at->key, ret);
}

void mt_cgroup_limits_met(mt_cgroup *g, mt_cgroup_counters *ret)
{
    bool v2;
    int dir = limit_dir(g, CG_MEMORY, &v2);

    *ret = (mt_cgroup_counters){0};
    if (dir >= 0)
        ret->oom_known =
            read_kept(&g->oom_kills_fd, dir, v2 ? &cg_limit_v2.oom_kills : &cg_limit_v1.oom_kills,
                      &ret->oom_kills);
    dir = limit_dir(g, CG_PIDS, &v2);
    if (dir >= 0)
        (void)read_kept(&g->pids_refused_fd, dir,
                        v2 ? &cg_limit_v2.pids_refused : &cg_limit_v1.pids_refused,
                        &ret->pids_refused);
}

// What is known of all controllers about what was used.
static void ask_all(mt_cgroup *g, cg_count_fn *v1, cg_count_fn *v2, mt_cgroup_counters *ret)
{
    for (unsigned c = 0; c < CG_CONTROLLERS; c++) {
        if (g->track_v2 && ((g->limited & (1u << c)) || c == CG_CPU))
            v2(g->cmds_fd, (cg_controller)c, ret);
        for (size_t i = 0; i < g->v1_count; i++)
            if (g->v1[i].controllers & (1u << c))
                v1(g->v1[i].cmds_fd, (cg_controller)c, ret);
    }
}

void mt_cgroup_counters_get(mt_cgroup *g, mt_cgroup_counters *ret)
{
    mt_cgroup_limits_met(g, ret);
    if (g->all_fd >= 0)
        cg_limit_v2.used(g->all_fd, CG_CPU, ret);
    ask_all(g, cg_limit_v1.used, cg_limit_v2.used, ret);
}

bool mt_cgroup_memory_get(mt_cgroup *g, mt_cgroup_memory *ret)
{
    bool v2;
    int fd = limit_dir(g, CG_MEMORY, &v2);

    *ret = (mt_cgroup_memory){0};
    if (fd >= 0)
        (v2 ? &cg_limit_v2 : &cg_limit_v1)->memory_now(fd, ret);
    return fd >= 0;
}
