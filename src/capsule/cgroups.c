// SPDX-License-Identifier: Apache-2.0
// The groups of an instance: its parent, its helpers, and removing those of a run by its id.
#include "base/clock.h"
#include "capsule/cgroup-find.h"
#include "capsule/cgroup-internal.h"
#include "capsule/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

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

static int open_track(mt_cgroups *c, const cg_found *f, const char *path, mt_err **err)
{
    c->track_ops = c->track_v2 ? &cg_track_v2 : &cg_track_v1;
    c->root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    c->track_fd = c->root_fd < 0 ? -errno : cg_make_dir(c->root_fd, c->parent);
    if (c->track_fd < 0)
        return mt_fail_errno(err, c->track_fd, "cannot make the control group '%s/%s'", path,
                             c->parent);
    if (c->track_v2) {
        unsigned wanted = f->v2_controllers & ~(1u << CG_CPUACCT);

        for (size_t i = 0; i < c->v1_count; i++)
            wanted &= ~c->v1[i].controllers;
        c->limited = cg_pass_on(c->root_fd, wanted);
        c->limited &= cg_pass_on(c->track_fd, c->limited);
    }
    return 0;
}

// Nobody may join a cpuset group before it has processors and memory nodes: the instance's parent
// gets all that there are, and what is made in it begins with those of its parent.
static int prepare_cpuset(int root, int parent)
{
    int r = cg_copy(root, parent, "cpuset.cpus");

    if (r == 0)
        r = cg_copy(root, parent, "cpuset.mems");
    return r == 0 ? cg_write(parent, "cgroup.clone_children", "1") : r;
}

static int open_v1(mt_cgroups *c, const char *path, unsigned controllers, mt_err **err)
{
    size_t i = c->v1_count;
    int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int parent = root < 0 ? -errno : cg_make_dir(root, c->parent);
    int ready = parent >= 0 && (controllers & (1u << CG_CPUSET)) ? prepare_cpuset(root, parent) : 0;
    int init = parent < 0 ? parent : ready < 0 ? ready : cg_make_dir(parent, "init");

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

// Processes of all runs together: half of the numbers that the machine has for them. The ceiling of
// one run is far below, but a dozen runs would leave the host unable to start anything.
static uint64_t pids_cap(void)
{
    static const char *const files[] = {"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"};
    uint64_t least = 32768, v;

    for (size_t i = 0; i < MT_ARRAY_SIZE(files); i++) {
        if (cg_read_number(AT_FDCWD, files[i], NULL, &v))
            least = i == 0 ? v : MT_MIN(least, v);
    }
    return least / 2;
}

static void set_pids_cap(mt_cgroups *c)
{
    uint64_t cap = pids_cap();
    int r = -ENOENT;

    if (c->limited & (1u << CG_PIDS))
        r = cg_limit_v2.pids(c->track_fd, cap);
    for (size_t i = 0; i < c->v1_count; i++)
        if (c->v1[i].controllers & (1u << CG_PIDS))
            r = cg_limit_v1.pids(c->v1[i].parent_fd, cap);
    if (r < 0 && r != -ENOENT)
        notice(c, "the processes of all runs together are not capped (%s)", strerror(-r));
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
        {CG_CPUSET, "programs count all processors, whatever limits.cpus says"},
    };
    unsigned have = all_limits(c);

    for (size_t i = 0; i < MT_ARRAY_SIZE(rows); i++)
        if (!(have & (1u << rows[i].which)))
            notice(c, "the control group controller '%s' is not available on this host: %s",
                   cg_controller_names[rows[i].which], rows[i].means);
    if (!c->track_v2 && c->v2_fd < 0)
        notice(c, "control groups are v1 only: a run is killed by freezing it, which is slower; "
                  "mount cgroup2 beside it (systemd does, as 'unified')");
}

static int open_beside(mt_cgroups *c, const char *path, mt_err **err)
{
    c->v2_root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    c->v2_fd = c->v2_root_fd < 0 ? -errno : cg_make_dir(c->v2_root_fd, c->parent);
    return c->v2_fd < 0 ? mt_fail_errno(err, c->v2_fd, "cannot make the control group '%s/%s'",
                                        path, c->parent)
                        : 0;
}

// All of them, whatever they are good for here: a Java machine that does not see memory, cpu,
// cpuacct and cpuset takes the host's numbers for its own.
static int open_controllers(mt_cgroups *c, const mt_cgroups_options *o, const cg_found *f,
                            mt_err **err)
{
    for (size_t i = 0; o->mode != MT_CGROUP_V2 && i < f->v1_count; i++) {
        unsigned controllers = f->v1[i].controllers;

        if (open_v1(c, f->v1[i].path, controllers, err) < 0)
            return -1;
    }
    return 0;
}

// v2 tracks where it has the controllers (or is asked for), and where v1 lacks the freezer.
static int open_all(mt_cgroups *c, const mt_cgroups_options *o, const cg_found *f, mt_err **err)
{
    bool v2 = f->v2 && o->mode != MT_CGROUP_V1;
    bool freezer = f->freezer && o->mode != MT_CGROUP_V2;
    bool track_v2 = v2 && (!freezer || (f->v2_controllers & (1u << CG_MEMORY)));
    const char *path = track_v2 ? f->v2 : freezer ? f->freezer : NULL;

    if (!path)
        return mt_fail(err, MT_E_UNAVAILABLE,
                       "this host has no %s: runs could be neither limited nor killed for sure; "
                       "mount the unified hierarchy at /sys/fs/cgroup",
                       o->mode == MT_CGROUP_V2 ? "mounted cgroup2 hierarchy"
                                               : "mounted cgroup2 or v1 freezer hierarchy");
    c->track_v2 = track_v2;
    if (open_controllers(c, o, f, err) < 0 || open_track(c, f, path, err) < 0)
        return -1;
    if (v2 && !c->track_v2 && open_beside(c, f->v2, err) < 0)
        return -1;
    set_memory_cap(c);
    set_pids_cap(c);
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
    c->root_fd = c->track_fd = c->v2_root_fd = c->v2_fd = -1;
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
    mt_close_fd(&c->v2_root_fd);
    mt_close_fd(&c->v2_fd);
    for (size_t i = 0; i < c->v1_count; i++) {
        mt_close_fd(&c->v1[i].root_fd);
        mt_close_fd(&c->v1[i].parent_fd);
        mt_close_fd(&c->v1[i].init_fd);
    }
    free(c);
}

// Supervisors stand in the v2 hierarchy where there is one: service managers look there.
static int helpers_parent(const mt_cgroups *c)
{
    return c->v2_fd >= 0 ? c->v2_fd : c->track_fd;
}

static const cg_track_ops *helpers_ops(const mt_cgroups *c)
{
    return c->v2_fd >= 0 ? &cg_track_v2 : c->track_ops;
}

void mt_cgroups_remove_parent(mt_cgroups *c)
{
    (void)unlinkat(helpers_parent(c), "helpers", AT_REMOVEDIR);
    (void)unlinkat(c->root_fd, c->parent, AT_REMOVEDIR);
    if (c->v2_fd >= 0)
        (void)unlinkat(c->v2_root_fd, c->parent, AT_REMOVEDIR);
    for (size_t i = 0; i < c->v1_count; i++) {
        (void)unlinkat(c->v1[i].parent_fd, "init", AT_REMOVEDIR);
        (void)unlinkat(c->v1[i].root_fd, c->parent, AT_REMOVEDIR);
    }
}

const char *mt_cgroups_mode_word(const mt_cgroups *c)
{
    if (c->v2_fd >= 0 || (c->track_v2 && c->v1_count))
        return "hybrid";
    return c->track_v2 ? "v2" : "v1";
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

int mt_cgroups_helpers_fd(mt_cgroups *c)
{
    int fd = c->track_v2 || c->v2_fd >= 0 ? cg_make_dir(helpers_parent(c), "helpers") : -1;

    return fd < 0 ? -1 : fd;
}

int mt_cgroups_join_helpers(mt_cgroups *c)
{
    _cleanup_close_ int fd = cg_make_dir(helpers_parent(c), "helpers");

    return fd < 0 ? fd : cg_join_by_file(fd, helpers_ops(c)->join_file, 0);
}

int mt_cgroups_kill_helpers(mt_cgroups *c, int64_t deadline_ns)
{
    _cleanup_close_ int fd = cg_open_dir(helpers_parent(c), "helpers");

    while (fd >= 0 && helpers_ops(c)->populated(fd) > 0) {
        (void)helpers_ops(c)->kill(fd);
        (void)poll(NULL, 0, 5);
        if (mt_boottime_ns() > deadline_ns)
            return -ETIMEDOUT;
    }
    return 0;
}

int mt_cgroups_each(mt_cgroups *c, void (*fn)(const char *place, void *data), void *data)
{
    int fd = cg_open_dir(c->track_fd, ".");
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        mt_close_fd(&fd);
        return fd < 0 ? fd : -ENOMEM;
    }
    while ((e = readdir(d)))
        if (mt_is_place(mt_str_of(e->d_name)))
            fn(e->d_name, data);
    (void)closedir(d);
    return 0;
}

bool mt_cgroups_exists(mt_cgroups *c, const char *instance, const char *place)
{
    char path[160];
    struct stat st;

    (void)snprintf(path, sizeof(path), "maitento-%.40s/%.40s", instance, place);
    if (fstatat(c->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
        (c->v2_fd >= 0 && fstatat(c->v2_root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0))
        return true;
    for (size_t i = 0; i < c->v1_count; i++)
        if (fstatat(c->v1[i].root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
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
    int fd = cg_open_dir(group_fd, "."), r = 0;
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

static int remove_groups(mt_cgroups *c, mt_cgroup *g, const char *place, int64_t deadline_ns)
{
    int r = 0;

    if (g) {
        r = remove_children(g->cmds_fd, deadline_ns);
        if (r == 0)
            r = remove_children(g->run_fd, deadline_ns);
        if (r == 0)
            r = remove_dir(c->track_fd, place, deadline_ns);
    }
    if (r == 0 && c->v2_fd >= 0)
        r = remove_dir(c->v2_fd, place, deadline_ns);
    for (size_t i = 0; r == 0 && i < c->v1_count; i++)
        r = remove_dir(c->v1[i].parent_fd, place, deadline_ns);
    return r;
}

int mt_cgroups_sweep(mt_cgroups *c, const char *place, int64_t deadline_ns)
{
    _cleanup_(mt_cgroup_close_p) mt_cgroup *g = NULL;
    int64_t least = mt_boottime_ns() + (int64_t)20 * 1000000;
    int r = mt_cgroup_open(c, place, &g, NULL);

    if (r < 0)
        return -EIO;
    deadline_ns = MT_MAX(deadline_ns, least);
    if (g) {
        // A supervisor that died while its run was held: on v1 what is frozen cannot die.
        (void)mt_cgroup_freeze(g, false);
        (void)mt_cgroup_kill(g, MT_CGROUP_ALL);
        r = mt_cgroup_wait_empty(g, MT_CGROUP_ALL, true, deadline_ns);
        if (r < 0)
            return r;
    }
    return remove_groups(c, g, place, deadline_ns);
}
