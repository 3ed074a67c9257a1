// SPDX-License-Identifier: Apache-2.0
// The supervisor's side of making a machine.
#include "runner/machine.h"

#include "base/clock.h"
#include "base/fd.h"
#include "capsule/idmap.h"
#include "capsule/initwire.h"
#include "capsule/syscalls.h"
#include "runner/machine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void parts_init(mt_machine_parts *p)
{
    *p = (mt_machine_parts){.birth_fd = -1,
                            .scratch_fd = -1,
                            .dev_fd = -1,
                            .mt_fd = -1,
                            .conf_fd = -1,
                            .report_fd = -1,
                            .control_fd = -1};
}

static void parts_done(mt_machine_parts *p)
{
    for (uint32_t i = 0; i < p->layer_count; i++)
        mt_close_fd(&p->layer_fds[i]);
    for (int i = 0; i < p->cmds_group_count; i++)
        mt_close_fd(&p->cmds_group_fds[i]);
    for (int i = 0; i < p->init_group_count; i++)
        mt_close_fd(&p->init_group_fds[i]);
    mt_close_fd(&p->birth_fd);
    mt_close_fd(&p->scratch_fd);
    mt_close_fd(&p->conf_fd);
    mt_close_fd(&p->dev_fd);
    mt_close_fd(&p->mt_fd);
    mt_close_fd(&p->report_fd);
    mt_close_fd(&p->control_fd);
}
#define _cleanup_parts_ _cleanup_(parts_done)

static int prepare_layers(mt_machine_parts *p, const mt_run_resources *res, mt_err **err)
{
    const uint64_t attrs = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

    for (uint32_t i = 0; i <= res->layer_count; i++) {
        int from = i == 0 ? res->image_fd : res->layer_fds[i - 1];

        if (mt_idmap_mount(from, "", res->image_userns_fd, attrs, &p->layer_fds[i], err) < 0)
            return mt_wrap(err, "preparing %s", i == 0 ? "the image" : "a package layer");
        p->layer_count++;
    }
    return 0;
}

static int prepare_scratch(mt_machine_parts *p, const mt_run_resources *res, mt_err **err)
{
    const uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

    // A layer that is being built gets owners as in an image.
    int map = res->builds ? res->image_userns_fd : -1;

    if (res->scratch_fd >= 0 &&
        mt_idmap_mount(res->scratch_fd, "", map, attrs, &p->scratch_fd, err) < 0)
        return mt_wrap(err, "preparing the scratch folder");
    if (res->conf_fd >= 0 && mt_idmap_mount(res->conf_fd, "", res->image_userns_fd,
                                            attrs | MOUNT_ATTR_RDONLY, &p->conf_fd, err) < 0)
        return mt_wrap(err, "preparing what the builder is told");
    return 0;
}

// Shown with root as the owner of the nodes, where the kernel can shift a tmpfs (from 6.3).
static int prepare_devices(mt_machine_parts *p, const mt_run_resources *res, mt_err **err)
{
    const uint64_t attrs = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

    if (mt_idmap_mount(res->dev_fd, "", res->image_userns_fd, attrs, &p->dev_fd, NULL) == 0)
        return 0;
    if (mt_idmap_mount(res->dev_fd, "", -1, attrs, &p->dev_fd, err) < 0)
        return mt_wrap(err, "preparing /dev");
    return 0;
}

// The same for mt. Its file system is read-only by itself, so it matters only to ls(1) whose it is.
static int prepare_program(mt_machine_parts *p, const mt_run_resources *res, mt_err **err)
{
    const uint64_t attrs = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

    if (res->mt_fd < 0 ||
        mt_idmap_mount(res->mt_fd, "", res->image_userns_fd, attrs, &p->mt_fd, NULL) == 0)
        return 0;
    if (mt_idmap_mount(res->mt_fd, "", -1, attrs, &p->mt_fd, err) < 0)
        return mt_wrap(err, "preparing mt");
    return 0;
}

static int prepare_sockets(mt_machine *m, mt_machine_parts *p, mt_err **err)
{
    int report[2], control[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0)
        return mt_fail_errno(err, errno, "cannot make a socket pair");
    m->report_fd = report[0];
    p->report_fd = report[1];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
        return mt_fail_errno(err, errno, "cannot make a socket pair");
    m->control_fd = control[0];
    p->control_fd = control[1];
    (void)mt_set_nonblock(m->report_fd, true);
    (void)mt_set_nonblock(m->control_fd, true);
    return 0;
}

static int write_map(pid_t pid, const char *name, uint32_t base, mt_err **err)
{
    char path[64], text[64];
    _cleanup_close_ int fd = -1;
    int r;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    (void)snprintf(text, sizeof(text), "0 %" PRIu32 " %d\n", base, MT_BLOCK_IDS);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    r = fd < 0 ? -errno : mt_write_full(fd, text, strlen(text));
    return r < 0 ? mt_fail_errno(err, r, "cannot write the %s of the capsule", name) : 0;
}

// Changes the effective user and keeps what is permitted in effect.
static int act_as(uid_t uid)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    if (setresuid((uid_t)-1, uid, (uid_t)-1) < 0 || syscall(SYS_capget, &head, data) < 0)
        return -errno;
    for (size_t i = 0; i < MT_ARRAY_SIZE(data); i++)
        data[i].effective = data[i].permitted;
    return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

// Who makes a user namespace owns it, and all that its users take of what the kernel allows each
// user (inotify instances, message queues, pending signals, locked memory) counts as its owner's,
// too. Were that root, one capsule could leave nothing for the host and for other runs; so it is
// the first id of the block, which is nobody's but this run's.
static pid_t clone_as(struct clone_args *args, uid_t owner)
{
    int r = act_as(owner), e;
    pid_t pid;

    if (r < 0) {
        errno = -r;
        return -1;
    }
    pid = mt_sys_clone3(args);
    if (pid == 0)
        return 0;
    e = errno;
    if (act_as(0) < 0)
        _exit(1); // never so: back to what it was
    errno = e;
    return pid;
}

static int clone_child(mt_machine *m, const mt_run_resources *res, const mt_machine_parts *p,
                       mt_err **err)
{
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                 CLONE_PIDFD | (res->netns_fd < 0 ? CLONE_NEWNET : 0) |
                 (p->birth_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t)(uintptr_t)&m->pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)p->birth_fd,
    };
    pid_t pid;

    // Before the clone: a child in a new user namespace may not enter one that belongs to the host.
    if (res->netns_fd >= 0 && setns(res->netns_fd, CLONE_NEWNET) < 0)
        return mt_fail_errno(err, errno, "cannot enter the capsule's network namespace");
    pid = clone_as(&args, res->uid_base);
    if (pid == 0)
        mt_machine_child(res, p);
    if (pid < 0)
        return mt_fail_errno(err, errno, "cannot make the capsule's namespaces");
    m->pid = pid;
    return 0;
}

// Whatever protects the runner from the kernel's choice of whom to kill must not protect capsules:
// when the host is short of memory, they go before its own services.
static void let_be_killed_first(pid_t pid)
{
    char path[64];
    _cleanup_close_ int fd = -1;

    (void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "500", 3);
}

static int let_go(mt_machine *m, const mt_run_resources *res, mt_err **err)
{
    let_be_killed_first(m->pid);
    if (write_map(m->pid, "uid_map", res->uid_base, err) < 0 ||
        write_map(m->pid, "gid_map", res->uid_base, err) < 0)
        return -1;
    if (send(m->report_fd, "g", 1, MSG_NOSIGNAL) != 1)
        return mt_fail_errno(err, errno, "cannot reach the child that makes the machine");
    return 0;
}

// Both halves of the machine have some of the users' time.
static void add_phase(mt_machine *m, const char *name, uint64_t us)
{
    for (uint32_t i = 0; i < m->phase_count; i++) {
        if (mt_streq(m->phases[i].name, name)) {
            m->phases[i].us += us;
            return;
        }
    }
    if (m->phase_count < MT_MACHINE_PHASES_MAX)
        m->phases[m->phase_count++] = (mt_machine_phase){name, us};
}

// The child moves itself, for which an RCU grace period is waited only where it changes its v2
// group (capsule/cgroup.h).
static int prepare_groups(mt_machine_parts *p, const mt_run_resources *res, mt_err **err)
{
    int born = mt_cgroup_join_fds(res->cgroup, MT_CGROUP_BORN, p->cmds_group_fds, err), init;

    if (born < 0)
        return -1;
    p->cmds_group_count = born;
    init = mt_cgroup_join_fds(res->cgroup, MT_CGROUP_INIT, p->init_group_fds, err);
    if (init < 0)
        return -1;
    p->init_group_count = init;
    p->birth_fd = mt_cgroup_birth_fd(res->cgroup);
    return 0;
}

static int begin(mt_machine *m, mt_machine_parts *p, const mt_run_resources *res, mt_err **err)
{
    int64_t cloned;

    if (prepare_layers(p, res, err) < 0 || prepare_scratch(p, res, err) < 0 ||
        prepare_devices(p, res, err) < 0 || prepare_program(p, res, err) < 0 ||
        prepare_sockets(m, p, err) < 0)
        return -1;
    if (prepare_groups(p, res, err) < 0)
        return -1;
    cloned = mt_monotonic_us();
    add_phase(m, "prepare", (uint64_t)(cloned - m->began_us));
    if (clone_child(m, res, p, err) < 0 || let_go(m, res, err) < 0)
        return -1;
    add_phase(m, "clone", (uint64_t)(mt_monotonic_us() - cloned));
    return 0;
}

int mt_machine_begin(mt_machine *m, const mt_run_resources *res, mt_err **err)
{
    _cleanup_parts_ mt_machine_parts parts;
    int status;

    parts_init(&parts);
    m->began_us = mt_monotonic_us();
    if (begin(m, &parts, res, err) == 0)
        return 0;
    if (m->pid > 0) {
        mt_machine_kill(m);
        (void)waitpid(m->pid, &status, 0); // it was killed and is ours: not long
        m->pid = 0;
    }
    mt_machine_done(m);
    return mt_wrap(err, "the machine could not be made");
}

// --- the run -------------------------------------------------------------------------------------

int mt_machine_secrets_place(mt_machine *m, mt_err **err)
{
    return mt_secrets_new(true, &m->secrets_fd, err);
}

int mt_machine_secrets(mt_machine *m, mt_plan *plan, const mt_run_resources *res, mt_err **err)
{
    int r = 0;

    if (plan->secret_count)
        r = mt_secrets_fill(m->secrets_fd, plan, res->uid_base + MT_MAITENTO_UID, err);
    mt_plan_forget(plan);
    return r < 0 ? mt_wrap(err, "the machine could not be made") : 0;
}

static void fill_identity(mt_identity *id, const mt_plan *plan)
{
    *id = (mt_identity){.memory_bytes = plan->limits.memory_bytes,
                        .mount_count = plan->mount_count,
                        .user_count = plan->user_count,
                        .has_secrets = plan->secret_count > 0,
                        .network = plan->network};
    (void)snprintf(id->hostname, sizeof(id->hostname), "%s", plan->hostname);
    for (uint32_t i = 0; i < plan->mount_count; i++)
        (void)snprintf(id->mounts[i], sizeof(id->mounts[i]), "%s", plan->mounts[i].mount_name);
    for (uint32_t i = 0; i < plan->user_count; i++)
        (void)snprintf(id->users[i], sizeof(id->users[i]), "%s", plan->users[i]);
}

static int send_identity(const mt_machine *m, const mt_identity *id, const int *fds)
{
    int r = mt_send_fds(m->report_fd, id, sizeof(*id), fds, id->mount_count + id->has_secrets, 0);

    // One that has failed already has said why: that is read as its report.
    return r == -EPIPE ? 0 : r;
}

int mt_machine_identify(mt_machine *m, const mt_plan *plan, const mt_run_resources *res,
                        mt_err **err)
{
    const uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    int fds[MT_PLAN_MOUNTS_MAX + 1], r = 0;
    uint32_t count = 0;
    mt_identity id;

    fill_identity(&id, plan);
    fds[plan->mount_count] = m->secrets_fd;
    for (; count < plan->mount_count && r == 0; count++)
        if (mt_idmap_mount(res->vfs_fds[count], "", res->vfs_userns_fd, attrs, &fds[count], err) <
            0)
            break;
    if (count < plan->mount_count)
        r = mt_wrap(err, "preparing /mnt/%s", plan->mounts[count].mount_name);
    else if ((r = send_identity(m, &id, fds)) < 0)
        r = mt_fail_errno(err, r, "cannot reach the process that completes the machine");
    while (count > 0)
        mt_close_fd(&fds[--count]);
    // One that nobody needs is taken apart by its close: not here, while the builder is waited for.
    if (id.has_secrets)
        mt_close_fd(&m->secrets_fd);
    return r < 0 ? mt_wrap(err, "the machine could not be made") : 0;
}

// --- reports -------------------------------------------------------------------------------------

// Phases are named by the tables of child and builder, which are this program's own; a name is
// matched against what is known here, so that no pointer into the message is kept.
static const char *phase_name(const char *name)
{
    static const char *const known[] = {"namespaces", "root",   "devices", "proc",
                                        "system",     "places", "pivot",   "seal",
                                        "mounts",     "files",  "users",   "names"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(known); i++) {
        if (mt_streq(known[i], name))
            return known[i];
    }
    return "other";
}

static int ended_early(mt_machine *m, mt_err **err)
{
    siginfo_t info = {0};

    if (waitid(P_PIDFD, (id_t)m->pidfd, &info, WEXITED | WNOWAIT | WNOHANG) < 0 || info.si_pid == 0)
        return mt_fail(err, MT_E_START_FAILED,
                       "the machine could not be made: the process that completes it died");
    return mt_fail(
        err, MT_E_START_FAILED,
        "the machine could not be made: the process that makes it was ended by signal %d",
        info.si_code == CLD_EXITED ? 0 : info.si_status);
}

static void take_message(mt_machine *m, mt_machine_message *msg, int fds[MT_REPORT_FDS])
{
    msg->step[sizeof(msg->step) - 1] = 0;
    msg->sentence[sizeof(msg->sentence) - 1] = 0;
    for (uint32_t i = 0; i < MT_MIN(msg->phase_count, (uint32_t)MT_ARRAY_SIZE(msg->phases)); i++) {
        msg->phases[i].name[sizeof(msg->phases[i].name) - 1] = 0;
        add_phase(m, phase_name(msg->phases[i].name), msg->phases[i].us);
    }
    if (msg->kind == MT_REPORT_ROOT && m->root_fd < 0) {
        m->root_fd = MT_TAKE_FD(fds[0]);
        m->mounts_fd = MT_TAKE_FD(fds[1]);
        m->meminfo_fd = MT_TAKE_FD(fds[2]);
        m->cpus_fd = MT_TAKE_FD(fds[3]);
        m->api_fd = MT_TAKE_FD(fds[4]);
    }
    for (size_t i = 0; i < MT_REPORT_FDS; i++)
        mt_close_fd(&fds[i]);
}

int mt_machine_report(mt_machine *m, mt_err **err)
{
    mt_machine_message msg;
    int fds[MT_REPORT_FDS];

    for (;;) {
        ssize_t n =
            mt_receive_fds(m->report_fd, &msg, sizeof(msg), fds, MT_REPORT_FDS, MSG_DONTWAIT);

        if (n == -EAGAIN)
            return m->done;
        // It left without having read what it was told. What it has said is still there.
        if (n == -ECONNRESET)
            continue;
        if (n <= 0 && m->done)
            return 1;
        if (n <= 0)
            return ended_early(m, err);
        if (n != (ssize_t)sizeof(msg))
            return mt_fail(err, MT_E_INTERNAL, "the machine could not be made: a bad report");
        take_message(m, &msg, fds);
        if (msg.kind == MT_REPORT_FAILED)
            return mt_fail(err, MT_E_START_FAILED, "the machine could not be made: %s (step %s)",
                           msg.sentence, msg.step);
        m->done |= msg.kind == MT_REPORT_DONE;
    }
}

void mt_machine_kill(mt_machine *m)
{
    if (m->pidfd >= 0)
        (void)pidfd_send_signal(m->pidfd, SIGKILL, NULL, 0);
}

bool mt_machine_reap(mt_machine *m, int wait_ms, int *ret_status)
{
    struct pollfd p = {.fd = m->pidfd, .events = POLLIN};
    int status;

    if (m->pid > 0 && wait_ms > 0)
        (void)poll(&p, 1, wait_ms);
    if (m->pid <= 0 || waitpid(m->pid, &status, WNOHANG) != m->pid)
        return false;
    m->pid = 0;
    *ret_status = status;
    return true;
}

void mt_machine_done(mt_machine *m)
{
    mt_close_fd(&m->report_fd);
    mt_close_fd(&m->control_fd);
    mt_close_fd(&m->root_fd);
    mt_close_fd(&m->mounts_fd);
    mt_close_fd(&m->api_fd);
    mt_close_fd(&m->meminfo_fd);
    mt_close_fd(&m->cpus_fd);
    mt_close_fd(&m->secrets_fd);
    mt_close_fd(&m->pidfd);
}
