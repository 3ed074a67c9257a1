// SPDX-License-Identifier: Apache-2.0
// Forking supervisors: what they are given, and that they are given nothing else.
#include "runner/runner.h"

#include "base/fd.h"
#include "capsule/syscalls.h"

#include <stdio.h>
#include <sys/prctl.h>

void resources_init(mt_run_resources *s)
{
    *s = (mt_run_resources){0};
    s->block_lock_fd = s->image_userns_fd = s->vfs_userns_fd = s->run_dir_fd = s->listen_fd = -1;
    s->journal_read_fd = s->image_fd = s->scratch_fd = s->netns_fd = s->init_fd = s->dev_fd = -1;
    s->disk_usage_fd = s->mt_fd = s->cpuset_fd = -1;
    for (size_t i = 0; i < MT_PLAN_LAYERS_MAX; i++)
        s->layer_fds[i] = -1;
    for (size_t i = 0; i < MT_PLAN_MOUNTS_MAX; i++)
        s->vfs_fds[i] = -1;
}

void resources_close(mt_run_resources *s)
{
    int *fds[] = {&s->image_userns_fd, &s->vfs_userns_fd,   &s->run_dir_fd,
                  &s->listen_fd,       &s->journal_read_fd, &s->image_fd,
                  &s->scratch_fd,      &s->netns_fd,        &s->disk_usage_fd};

    for (size_t i = 0; i < MT_ARRAY_SIZE(fds); i++)
        mt_close_fd(fds[i]);
    for (size_t i = 0; i < MT_PLAN_LAYERS_MAX; i++)
        mt_close_fd(&s->layer_fds[i]);
    for (size_t i = 0; i < MT_PLAN_MOUNTS_MAX; i++)
        mt_close_fd(&s->vfs_fds[i]);
    mt_journal_close(MT_TAKE_PTR(s->journal));
    mt_cgroup_close(MT_TAKE_PTR(s->cgroup));
}

static int compare_fds(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

// Closes every fd from 3 up that is not the run's.
static void close_foreign(const mt_run_resources *s, int socket)
{
    int keep[32 + MT_PLAN_LAYERS_MAX + MT_PLAN_MOUNTS_MAX + MT_CGROUP_FDS_MAX] = {
        s->block_lock_fd,
        s->image_userns_fd,
        s->vfs_userns_fd,
        s->run_dir_fd,
        s->listen_fd,
        s->journal_read_fd,
        s->image_fd,
        s->scratch_fd,
        s->netns_fd,
        s->init_fd,
        s->dev_fd,
        s->mt_fd,
        s->disk_usage_fd,
        s->journal ? mt_journal_fd(s->journal) : -1,
        socket};
    size_t count = 15;
    unsigned from = 3;

    for (size_t i = 0; i < MT_PLAN_LAYERS_MAX; i++)
        keep[count++] = s->layer_fds[i];
    for (size_t i = 0; i < MT_PLAN_MOUNTS_MAX; i++)
        keep[count++] = s->vfs_fds[i];
    count += mt_cgroup_fds(s->cgroup, keep + count);
    qsort(keep, count, sizeof(*keep), compare_fds);
    for (size_t i = 0; i < count; i++) {
        if (keep[i] < (int)from)
            continue;
        if (keep[i] > (int)from)
            (void)close_range(from, (unsigned)keep[i] - 1, 0);
        from = (unsigned)keep[i] + 1;
    }
    (void)close_range(from, ~0u, 0);
}

// Counted from behind the name, which may hold anything.
uint64_t process_start_time(pid_t pid)
{
    char path[32], text[1024], *p;
    unsigned long long v = 0;
    _cleanup_close_ int fd = -1;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    p = strrchr(text, ')');
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p && sscanf(p, " %llu", &v) == 1 ? v : 0;
}

void process_name(pid_t pid, char out[48])
{
    (void)snprintf(out, 48, "%d %llu", (int)pid, (unsigned long long)process_start_time(pid));
}

static void reset_signals(void)
{
    sigset_t none;

    for (int sig = 1; sig < SIGRTMAX; sig++)
        (void)signal(sig, SIG_DFL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

MT_NORETURN static void supervise(runner *r, mt_plan *p, mt_run_resources *s, int socket)
{
    mt_record record = {
        .type = MT_REC_RESOURCE_MADE,
        .resource = {.kind = MT_RESOURCE_SUPERVISOR},
    };
    _cleanup_err_ mt_err *err = NULL;
    char name[48];

    (void)setsid();
    if (r->helpers_fd < 0)
        (void)mt_cgroups_join_helpers(r->cgroups);
    reset_signals();
    (void)prctl(PR_SET_NAME, "mt-supervisor");
    (void)dup2(r->null_fd, 0);
    (void)dup2(r->null_fd, 1);
    close_foreign(s, socket);
    server_wipe(r);
    if (!p)
        mt_supervisor_spare(s, socket);
    process_name(getpid(), name);
    record.resource.name = mt_str_of(name);
    if (mt_journal_append(s->journal, &record, false, &err) < 0)
        _exit(1);
    mt_supervisor_main(p, s);
}

// fork() into the group of supervisors. A raw call is enough: there is one thread, and nothing that
// wants to know of forks. Where that group is not to be had the child moves itself.
static pid_t fork_helper(runner *r)
{
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)r->helpers_fd,
    };

    return r->helpers_fd < 0 ? fork() : mt_sys_clone3(&args);
}

pid_t launch_supervisor(runner *r, mt_plan *p, mt_run_resources *s, int socket)
{
    pid_t pid = fork_helper(r);

    if (pid == 0)
        supervise(r, p, s, socket);
    return pid < 0 ? -errno : pid;
}
