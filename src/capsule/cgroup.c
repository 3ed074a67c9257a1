// SPDX-License-Identifier: Apache-2.0
#include "capsule/cgroup.h"

#include "base/clock.h"
#include "base/id.h"
#include "capsule/cgroup-find.h"
#include "capsule/cgroup-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { NOTICE_MAX = 320 };

struct mt_cgroups {
    char parent[64]; // maitento-NAME
    const cg_track_ops *track_ops;
    bool track_v2;
    bool force_v1;
    int root_fd;      // of the tracking hierarchy
    int track_fd;     // the instance's parent there
    unsigned limited; // controllers that limit by the tracking hierarchy itself (v2)
    struct {
        int root_fd;
        int parent_fd;
        int init_fd;
        unsigned controllers;
    } v1[CG_V1_MAX];
    size_t v1_count;
    uint64_t memory_cap;
    char notices[MT_CGROUP_NOTICES_MAX][NOTICE_MAX];
    const char *notice_list[MT_CGROUP_NOTICES_MAX];
    size_t notice_count;
};

// All fds are the run's own, so that a supervisor can be left with these alone.
struct mt_cgroup {
    const cg_track_ops *track_ops;
    bool track_v2;
    unsigned limited;
    int run_fd, init_fd, cmds_fd; // tracking
    struct {
        int cmds_fd; // has the limits
        int init_fd; // shared by the instance
        unsigned controllers;
    } v1[CG_V1_MAX];
    size_t v1_count;
};

static void notice(mt_cgroups *c, const char *fmt, ...) MT_PRINTF(2, 3);

static void notice(mt_cgroups *c, const char *fmt, ...)
{
    va_list ap;

    if (c->notice_count == MT_CGROUP_NOTICES_MAX)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(c->notices[c->notice_count], NOTICE_MAX, fmt, ap);
    va_end(ap);
    c->notice_list[c->notice_count] = c->notices[c->notice_count];
    c->notice_count++;
}

static int open_dir(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

// Makes the folder where it is missing and opens it.
static int make_dir(int dirfd, const char *name)
{
    if (mkdirat(dirfd, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    return open_dir(dirfd, name);
}

static uint64_t machine_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t memory_cap(uint64_t reserve)
{
    uint64_t total = machine_memory();

    if (!reserve)
        reserve = MT_MAX((uint64_t)256 << 20, MT_MIN((uint64_t)4 << 30, total / 10));
    return reserve < total ? total - reserve : total / 2;
}

// On v2 a group passes controllers on only when told.
static unsigned pass_on(int group_fd, unsigned wanted)
{
    unsigned done = 0;

    for (unsigned i = 0; i < CG_CONTROLLERS; i++) {
        char text[32];

        if (!(wanted & (1u << i)))
            continue;
        (void)snprintf(text, sizeof(text), "+%s", cg_controller_names[i]);
        if (cg_write(group_fd, "cgroup.subtree_control", text) == 0)
            done |= 1u << i;
    }
    return done;
}

static int open_track(mt_cgroups *c, const cg_found *f, const char *path, mt_err **err)
{
    c->track_ops = c->track_v2 ? &cg_track_v2 : &cg_track_v1;
    c->root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    c->track_fd = c->root_fd < 0 ? -errno : make_dir(c->root_fd, c->parent);
    if (c->track_fd < 0)
        return mt_fail_errno(err, c->track_fd, "cannot make the control group '%s/%s'", path,
                             c->parent);
    if (c->track_v2) {
        unsigned wanted = f->v2_controllers & ~(1u << CG_CPUACCT);

        for (size_t i = 0; i < c->v1_count; i++)
            wanted &= ~c->v1[i].controllers;
        c->limited = pass_on(c->root_fd, wanted);
        c->limited &= pass_on(c->track_fd, c->limited);
    }
    return 0;
}

static int open_v1(mt_cgroups *c, const char *path, unsigned controllers, mt_err **err)
{
    size_t i = c->v1_count;
    int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int parent = root < 0 ? -errno : make_dir(root, c->parent);
    int init = parent < 0 ? parent : make_dir(parent, "init");

    if (init < 0) {
        mt_close_fd(&root);
        mt_close_fd(&parent);
        return mt_fail_errno(err, init, "cannot make the control group '%s/%s'", path, c->parent);
    }
    c->v1[i].root_fd = root;
    c->v1[i].parent_fd = parent;
    c->v1[i].init_fd = init;
    c->v1[i].controllers = controllers;
    c->v1_count++;
    return 0;
}

static unsigned all_limits(const mt_cgroups *c)
{
    unsigned bits = c->limited;

    for (size_t i = 0; i < c->v1_count; i++)
        bits |= c->v1[i].controllers;
    return bits;
}

// Where the limits of a controller are set at the instance's parent.
static void set_memory_cap(mt_cgroups *c)
{
    int r = -ENOENT;

    if (c->limited & (1u << CG_MEMORY))
        r = cg_limit_v2.memory(c->track_fd, c->memory_cap);
    for (size_t i = 0; i < c->v1_count; i++)
        if (c->v1[i].controllers & (1u << CG_MEMORY))
            r = cg_limit_v1.memory(c->v1[i].parent_fd, c->memory_cap);
    if (r < 0 && r != -ENOENT)
        notice(c,
               "the memory of all runs together is not capped (%s): runs may crowd out the rest "
               "of the machine",
               strerror(-r));
}

static void note_missing(mt_cgroups *c)
{
    static const struct {
        cg_controller which;
        const char *means;
    } rows[] = {
        {CG_MEMORY, "limits.memory is not enforced and out of memory is not told apart"},
        {CG_PIDS, "limits.pids is not enforced"},
        {CG_CPU, "limits.cpus is not enforced"},
    };
    unsigned have = all_limits(c);

    for (size_t i = 0; i < MT_ARRAY_SIZE(rows); i++)
        if (!(have & (1u << rows[i].which)))
            notice(c, "the control group controller '%s' is not available on this host: %s",
                   cg_controller_names[rows[i].which], rows[i].means);
    if (!c->track_v2)
        notice(c, "control groups are v1 only: a run is killed by freezing it, which is slower; "
                  "mount cgroup2 beside it (systemd does, as 'unified')");
}

static int open_all(mt_cgroups *c, const mt_cgroups_options *o, const cg_found *f, mt_err **err)
{
    bool v2 = f->v2 && o->mode != MT_CGROUP_V1;

    if (!v2 && (o->mode == MT_CGROUP_V2 || !f->freezer))
        return mt_fail(err, MT_E_UNAVAILABLE,
                       "this host has no %s: runs could be neither limited nor killed for sure; "
                       "mount the unified hierarchy at /sys/fs/cgroup",
                       o->mode == MT_CGROUP_V2 ? "mounted cgroup2 hierarchy"
                                               : "mounted cgroup2 or v1 freezer hierarchy");
    c->track_v2 = v2;
    for (size_t i = 0; o->mode != MT_CGROUP_V2 && i < f->v1_count; i++) {
        unsigned controllers = f->v1[i].controllers;

        // With v2 beside them its cpu.stat counts; one group fewer for each run.
        if (v2 && controllers == 1u << CG_CPUACCT)
            continue;
        if (open_v1(c, f->v1[i].path, controllers, err) < 0)
            return -1;
    }
    if (open_track(c, f, v2 ? f->v2 : f->freezer, err) < 0)
        return -1;
    set_memory_cap(c);
    note_missing(c);
    return 0;
}

int mt_cgroups_open(const mt_cgroups_options *o, mt_cgroups **ret, mt_err **err)
{
    mt_cgroups *c = calloc(1, sizeof(*c));
    cg_found found;
    int r;

    if (!c)
        return mt_fail_oom(err);
    c->root_fd = c->track_fd = -1;
    c->memory_cap = memory_cap(o->memory_reserve);
    (void)snprintf(c->parent, sizeof(c->parent), "maitento-%s", o->instance);
    if (cg_find(&found, err) < 0) {
        mt_cgroups_close(c);
        return -1;
    }
    r = open_all(c, o, &found, err);
    cg_found_done(&found);
    if (r < 0) {
        mt_cgroups_close(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void mt_cgroups_close(mt_cgroups *c)
{
    if (!c)
        return;
    mt_close_fd(&c->root_fd);
    mt_close_fd(&c->track_fd);
    for (size_t i = 0; i < c->v1_count; i++) {
        mt_close_fd(&c->v1[i].root_fd);
        mt_close_fd(&c->v1[i].parent_fd);
        mt_close_fd(&c->v1[i].init_fd);
    }
    free(c);
}

void mt_cgroups_remove_parent(mt_cgroups *c)
{
    (void)unlinkat(c->track_fd, "helpers", AT_REMOVEDIR);
    (void)unlinkat(c->root_fd, c->parent, AT_REMOVEDIR);
    for (size_t i = 0; i < c->v1_count; i++) {
        (void)unlinkat(c->v1[i].parent_fd, "init", AT_REMOVEDIR);
        (void)unlinkat(c->v1[i].root_fd, c->parent, AT_REMOVEDIR);
    }
}

const char *mt_cgroups_mode_word(const mt_cgroups *c)
{
    return !c->track_v2 ? "v1" : c->v1_count ? "hybrid" : "v2";
}

uint64_t mt_cgroups_memory_cap(const mt_cgroups *c)
{
    return c->memory_cap;
}

size_t mt_cgroups_notices(const mt_cgroups *c, const char *const **ret)
{
    *ret = c->notice_list;
    return c->notice_count;
}

static int join_by_file(int group_fd, const char *file, pid_t pid)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%d", (int)pid);
    return cg_write(group_fd, file, text);
}

int mt_cgroups_join_helpers(mt_cgroups *c, pid_t pid)
{
    int fd = make_dir(c->track_fd, "helpers"), r = fd;

    if (fd >= 0) {
        r = join_by_file(fd, "cgroup.procs", pid);
        (void)close(fd);
    }
    return r;
}

int mt_cgroups_kill_helpers(mt_cgroups *c, int64_t deadline_ns)
{
    _cleanup_close_ int fd = open_dir(c->track_fd, "helpers");

    while (fd >= 0 && c->track_ops->populated(fd) > 0) {
        (void)c->track_ops->kill(fd);
        (void)poll(NULL, 0, 5);
        if (mt_boottime_ns() > deadline_ns)
            return -ETIMEDOUT;
    }
    return 0;
}

int mt_cgroups_each(mt_cgroups *c, void (*fn)(const char *run_id, void *data), void *data)
{
    int fd = open_dir(c->track_fd, ".");
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        mt_close_fd(&fd);
        return fd < 0 ? fd : -ENOMEM;
    }
    while ((e = readdir(d)))
        if (mt_is_id(mt_str_of(e->d_name)))
            fn(e->d_name, data);
    (void)closedir(d);
    return 0;
}

bool mt_cgroups_exists(mt_cgroups *c, const char *instance, const char *run_id)
{
    char path[160];
    struct stat st;

    (void)snprintf(path, sizeof(path), "maitento-%.40s/%.40s", instance, run_id);
    if (fstatat(c->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    for (size_t i = 0; i < c->v1_count; i++)
        if (fstatat(c->v1[i].root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

static mt_cgroup *group_new(mt_cgroups *c)
{
    mt_cgroup *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    g->track_ops = c->track_ops;
    g->track_v2 = c->track_v2;
    g->limited = c->limited;
    g->run_fd = g->init_fd = g->cmds_fd = -1;
    g->v1_count = c->v1_count;
    for (size_t i = 0; i < g->v1_count; i++) {
        g->v1[i].controllers = c->v1[i].controllers;
        g->v1[i].cmds_fd = -1;
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
    for (size_t i = 0; i < g->v1_count; i++) {
        mt_close_fd(&g->v1[i].cmds_fd);
        mt_close_fd(&g->v1[i].init_fd);
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

static int make_track(mt_cgroups *c, mt_cgroup *g, const char *run_id)
{
    if (mkdirat(c->track_fd, run_id, 0755) < 0)
        return -errno;
    g->run_fd = open_dir(c->track_fd, run_id);
    if (g->run_fd < 0)
        return g->run_fd;
    if (g->limited && pass_on(g->run_fd, g->limited) != g->limited)
        return -EOPNOTSUPP;
    g->init_fd = make_dir(g->run_fd, "init");
    g->cmds_fd = make_dir(g->run_fd, "cmds");
    return g->init_fd < 0 ? g->init_fd : g->cmds_fd < 0 ? g->cmds_fd : 0;
}

static int make_v1(mt_cgroups *c, mt_cgroup *g, const char *run_id)
{
    for (size_t i = 0; i < g->v1_count; i++) {
        g->v1[i].cmds_fd = make_dir(c->v1[i].parent_fd, run_id);
        if (g->v1[i].cmds_fd < 0)
            return g->v1[i].cmds_fd;
    }
    return 0;
}

static int make_all(mt_cgroups *c, mt_cgroup *g, const char *run_id, const mt_plan_limits *limits,
                    mt_err **err)
{
    int r = make_track(c, g, run_id);

    if (r == 0)
        r = make_v1(c, g, run_id);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot make the control groups of the run");
    if (g->limited && set_limits(&cg_limit_v2, g->cmds_fd, g->limited, limits, err) < 0)
        return -1;
    for (size_t i = 0; i < g->v1_count; i++)
        if (set_limits(&cg_limit_v1, g->v1[i].cmds_fd, g->v1[i].controllers, limits, err) < 0)
            return -1;
    return 0;
}

int mt_cgroup_make(mt_cgroups *c, const char *run_id, const mt_plan_limits *limits, mt_cgroup **ret,
                   mt_err **err)
{
    mt_cgroup *g;

    if (!mt_is_id(mt_str_of(run_id)))
        return mt_fail(err, MT_E_INTERNAL, "a control group is made for run ids only");
    g = group_new(c);
    if (!g)
        return mt_fail_oom(err);
    if (make_all(c, g, run_id, limits, err) < 0) {
        mt_cgroup_close(g);
        (void)mt_cgroups_sweep(c, run_id, mt_boottime_ns());
        return -1;
    }
    *ret = g;
    return 0;
}

int mt_cgroup_open(mt_cgroups *c, const char *run_id, mt_cgroup **ret, mt_err **err)
{
    mt_cgroup *g;

    if (!mt_is_id(mt_str_of(run_id)))
        return mt_fail(err, MT_E_INTERNAL, "a control group is opened by run ids only");
    g = group_new(c);
    if (!g)
        return mt_fail_oom(err);
    g->run_fd = open_dir(c->track_fd, run_id);
    if (g->run_fd == -ENOENT) {
        mt_cgroup_close(g);
        *ret = NULL;
        return 1;
    }
    // What a crash left half made is opened as far as it goes: negative fds are not there.
    g->init_fd = g->run_fd < 0 ? -1 : open_dir(g->run_fd, "init");
    g->cmds_fd = g->run_fd < 0 ? -1 : open_dir(g->run_fd, "cmds");
    for (size_t i = 0; i < g->v1_count; i++)
        g->v1[i].cmds_fd = open_dir(c->v1[i].parent_fd, run_id);
    *ret = g;
    return 0;
}

size_t mt_cgroup_fds(const mt_cgroup *g, int fds[MT_CGROUP_FDS_MAX])
{
    const int own[] = {g->run_fd, g->init_fd, g->cmds_fd};
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

int mt_cgroup_make_command(mt_cgroup *g, uint32_t n, mt_err **err)
{
    char name[24];

    command_name(n, name);
    if (mkdirat(g->cmds_fd, name, 0755) < 0)
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
        return open_dir(g->cmds_fd, name);
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

int mt_cgroup_join_fds(mt_cgroup *g, int where, int fds[MT_CGROUP_JOIN_MAX], mt_err **err)
{
    _cleanup_close_ int place = place_fd(g, where);
    int count = 0, out[MT_CGROUP_JOIN_MAX];

    out[0] = place < 0 ? -1 : openat(place, g->track_ops->join_file, O_WRONLY | O_CLOEXEC);
    if (out[0] < 0)
        return mt_fail_errno(err, place < 0 ? place : errno, "cannot open a control group to join");
    count = 1;
    for (size_t i = 0; i < g->v1_count; i++) {
        int dir = where == MT_CGROUP_INIT ? g->v1[i].init_fd : g->v1[i].cmds_fd;

        out[count] = openat(dir, "tasks", O_WRONLY | O_CLOEXEC);
        if (out[count] < 0) {
            int e = errno;

            close_all(out, count);
            return mt_fail_errno(err, e, "cannot open a control group to join");
        }
        count++;
    }
    memcpy(fds, out, (size_t)count * sizeof(*fds));
    return count;
}

int mt_cgroup_join(mt_cgroup *g, int where, pid_t pid, mt_err **err)
{
    _cleanup_close_ int place = place_fd(g, where);
    int r = place < 0 ? place : join_by_file(place, "cgroup.procs", pid);

    for (size_t i = 0; r == 0 && i < g->v1_count; i++)
        r = join_by_file(where == MT_CGROUP_INIT ? g->v1[i].init_fd : g->v1[i].cmds_fd,
                         "cgroup.procs", pid);
    return r < 0 ? mt_fail_errno(err, r, "cannot join a control group") : 0;
}

int mt_cgroup_v2_fd(mt_cgroup *g, int where)
{
    int fd = g->track_v2 ? place_fd(g, where) : -1;

    return fd < 0 ? -1 : fd;
}

int mt_cgroup_kill(mt_cgroup *g, int where)
{
    _cleanup_close_ int fd = place_fd(g, where);
    int r = fd < 0 ? fd : g->track_ops->kill(fd);

    return r == -ENOENT || r == -ENODEV ? 0 : r;
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

    return fd == -ENOENT || fd == -ENODEV ? 0 : fd < 0 ? fd : g->track_ops->populated(fd);
}

int mt_cgroup_events_fd(mt_cgroup *g, int where)
{
    _cleanup_close_ int fd = place_fd(g, where);

    if (fd < 0 || !g->track_ops->events_file)
        return -1;
    return openat(fd, g->track_ops->events_file, O_RDONLY | O_CLOEXEC);
}

int mt_cgroup_wait_empty(mt_cgroup *g, int where, bool again, int64_t deadline_ns)
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
        if (mt_cgroup_populated(g, where) <= 0)
            return 0;
        left_ns = deadline_ns - mt_boottime_ns();
        if (left_ns <= 0)
            return -ETIMEDOUT;
        (void)poll(&p, events >= 0, (int)MT_MIN(left_ns / 1000000 + 1, (int64_t)step_ms));
        step_ms = MT_MIN(step_ms * 2, events >= 0 ? 100 : 10);
        if (again && step_ms > 8)
            (void)mt_cgroup_kill(g, where);
    }
}

int mt_cgroup_freeze(mt_cgroup *g, bool frozen)
{
    _cleanup_close_ int fd = place_fd(g, MT_CGROUP_CMDS);

    return fd < 0 ? fd : g->track_ops->freeze(fd, frozen);
}

void mt_cgroup_counters_get(mt_cgroup *g, mt_cgroup_counters *ret)
{
    *ret = (mt_cgroup_counters){0};
    for (unsigned c = 0; g->track_v2 && c < CG_CONTROLLERS; c++)
        if ((g->limited & (1u << c)) || c == CG_CPU)
            cg_limit_v2.count(g->cmds_fd, (cg_controller)c, ret);
    for (size_t i = 0; i < g->v1_count; i++)
        for (unsigned c = 0; c < CG_CONTROLLERS; c++)
            if (g->v1[i].controllers & (1u << c))
                cg_limit_v1.count(g->v1[i].cmds_fd, (cg_controller)c, ret);
}

// v1 (and the freezer) say EBUSY for some 300 us after the last process has left.
static int remove_dir(int dirfd, const char *name, int64_t deadline_ns)
{
    while (unlinkat(dirfd, name, AT_REMOVEDIR) < 0) {
        struct timespec pause = {.tv_nsec = 200000};

        if (errno == ENOENT || errno == ENODEV)
            return 0;
        if (errno != EBUSY || mt_boottime_ns() >= deadline_ns)
            return errno == EBUSY ? -ETIMEDOUT : -errno;
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

// All groups in a group, one level deep.
static int remove_children(int group_fd, int64_t deadline_ns)
{
    int fd = open_dir(group_fd, "."), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        mt_close_fd(&fd);
        return 0;
    }
    while (r == 0 && (e = readdir(d)))
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            r = remove_dir(group_fd, e->d_name, deadline_ns);
    (void)closedir(d);
    return r;
}

static int remove_groups(mt_cgroups *c, mt_cgroup *g, const char *run_id, int64_t deadline_ns)
{
    int r = 0;

    if (g) {
        r = remove_children(g->cmds_fd, deadline_ns);
        if (r == 0)
            r = remove_children(g->run_fd, deadline_ns);
        if (r == 0)
            r = remove_dir(c->track_fd, run_id, deadline_ns);
    }
    for (size_t i = 0; r == 0 && i < c->v1_count; i++)
        r = remove_dir(c->v1[i].parent_fd, run_id, deadline_ns);
    return r;
}

int mt_cgroups_sweep(mt_cgroups *c, const char *run_id, int64_t deadline_ns)
{
    _cleanup_(mt_cgroup_close_p) mt_cgroup *g = NULL;
    int64_t least = mt_boottime_ns() + (int64_t)20 * 1000000;
    int r = mt_cgroup_open(c, run_id, &g, NULL);

    if (r < 0)
        return -EIO;
    deadline_ns = MT_MAX(deadline_ns, least);
    if (g) {
        (void)mt_cgroup_kill(g, MT_CGROUP_ALL);
        r = mt_cgroup_wait_empty(g, MT_CGROUP_ALL, true, deadline_ns);
        if (r < 0)
            return r;
    }
    return remove_groups(c, g, run_id, deadline_ns);
}
