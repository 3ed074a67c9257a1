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
    s->disk_usage_fd = s->mt_fd = s->session_fd = s->net_life_fd = -1;
    s->layer_lock_fd = s->layers_fd = s->conf_fd = -1;
    for (size_t i = 0; i < MT_RUN_LAYERS_MAX; i++)
        s->layer_fds[i] = -1;
    for (size_t i = 0; i < MT_PLAN_MOUNTS_MAX; i++)
        s->vfs_fds[i] = -1;
}

void resources_close(mt_run_resources *s)
{
    int *fds[] = {&s->image_userns_fd, &s->vfs_userns_fd, &s->run_dir_fd,    &s->listen_fd,
                  &s->journal_read_fd, &s->image_fd,      &s->scratch_fd,    &s->netns_fd,
                  &s->net_life_fd,     &s->disk_usage_fd, &s->layer_lock_fd, &s->conf_fd};

    for (size_t i = 0; i < MT_ARRAY_SIZE(fds); i++)
        mt_close_fd(fds[i]);
    for (size_t i = 0; i < MT_RUN_LAYERS_MAX; i++)
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

void launch_close_but(int *keep, size_t count)
{
    unsigned from = 3;

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

static void close_foreign(const mt_run_resources *s, int socket)
{
    const int own[] = {s->block_lock_fd,
                       s->image_userns_fd,
                       s->vfs_userns_fd,
                       s->run_dir_fd,
                       s->listen_fd,
                       s->journal_read_fd,
                       s->image_fd,
                       s->scratch_fd,
                       s->netns_fd,
                       s->net_life_fd,
                       s->init_fd,
                       s->dev_fd,
                       s->mt_fd,
                       s->session_fd,
                       s->disk_usage_fd,
                       s->layer_lock_fd,
                       s->layers_fd,
                       s->conf_fd,
                       s->journal ? mt_journal_fd(s->journal) : -1,
                       socket};
    int keep[MT_ARRAY_SIZE(own) + MT_RUN_LAYERS_MAX + MT_PLAN_MOUNTS_MAX + MT_CGROUP_FDS_MAX];
    size_t count = MT_ARRAY_SIZE(own);

    memcpy(keep, own, sizeof(own));
    for (size_t i = 0; i < MT_RUN_LAYERS_MAX; i++)
        keep[count++] = s->layer_fds[i];
    for (size_t i = 0; i < MT_PLAN_MOUNTS_MAX; i++)
        keep[count++] = s->vfs_fds[i];
    count += mt_cgroup_fds(s->cgroup, keep + count);
    launch_close_but(keep, count);
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

void launch_detach(runner *r)
{
    (void)setsid();
    if (r->helpers_fd < 0)
        (void)mt_cgroups_join_helpers(r->cgroups);
    reset_signals();
    (void)dup2(r->null_fd, 0);
    (void)dup2(r->null_fd, 1);
}

MT_NORETURN static void supervise(runner *r, mt_plan *p, mt_run_resources *s, int socket)
{
    mt_record record = {
        .type = MT_REC_RESOURCE_MADE,
        .resource = {.kind = MT_RESOURCE_SUPERVISOR},
    };
    _cleanup_err_ mt_err *err = NULL;
    char name[48];

    (void)prctl(PR_SET_NAME, "mt-supervisor");
    launch_detach(r);
    server_wipe(r);
    // A builder that is told nothing finds no script, and fails.
    if (s->builds && layer_conf_write(r, s) < 0)
        mt_log(MT_LOG_ERROR, "a builder of packages is not told what to do", {"run", s->run_id});
    close_foreign(s, socket);
    if (!p)
        mt_supervisor_spare(s, socket);
    process_name(getpid(), name);
    record.resource.name = mt_str_of(name);
    if (mt_journal_append(s->journal, &record, false, &err) < 0)
        _exit(1);
    mt_supervisor_main(p, s);
}

// A raw call is enough: there is one thread, and nothing that
// wants to know of forks. Where that group is not to be had the child moves itself.
pid_t launch_helper(runner *r)
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
    pid_t pid = launch_helper(r);

    if (pid == 0)
        supervise(r, p, s, socket);
    return pid < 0 ? -errno : pid;
}
