// SPDX-License-Identifier: Apache-2.0
// Steps of the child: who it is at its start, and what it gives up at its end.
#include "base/fd.h"
#include "capsule/initwire.h"
#include "capsule/syscalls.h"
#include "runner/machine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

// A default container's set without MKNOD and NET_RAW.
#define KEPT_CAPABILITIES                                                                     \
    (1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER | 1ull << CAP_FSETID | \
     1ull << CAP_KILL | 1ull << CAP_SETGID | 1ull << CAP_SETUID | 1ull << CAP_SETPCAP |       \
     1ull << CAP_NET_BIND_SERVICE | 1ull << CAP_SYS_CHROOT | 1ull << CAP_AUDIT_WRITE |        \
     1ull << CAP_SETFCAP)

// Those of "N:LIST:PATH" whose path is of this run. In the others we stand in the host's root,
// which a view would show.
static int find_hierarchies(mt_build *b)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(64 << 10);
    int r = mt_read_file(AT_FDCWD, "/proc/self/cgroup", &text);
    char *save = NULL;

    if (r < 0 || !text.data)
        return r;
    for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        size_t len = strlen(b->hierarchies);

        if (!path || path == list + 1 || strncmp(list + 1, "name=", 5) == 0 ||
            strncmp(list + 1, "freezer", 7) == 0 || !strstr(path, b->res->place))
            continue;
        (void)snprintf(b->hierarchies + len, sizeof(b->hierarchies) - len, "%.*s ",
                       (int)(path - list - 1), list + 1);
    }
    return 0;
}

static int join(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        if (write(fds[i], "0", 1) < 0)
            return -errno;
    return 0;
}

int mt_step_ids(mt_build *b)
{
    int r = join(b->parts->cmds_group_fds, b->parts->cmds_group_count);

    // Before the change, after which the runner's own root cannot be entered.
    if (r == 0)
        r = find_hierarchies(b);
    if (r < 0)
        return r;
    if (setresgid(0, 0, 0) < 0 || setgroups(0, NULL) < 0 || setresuid(0, 0, 0) < 0)
        return -errno;
    // After the change of ids, which clears it. mt-init sets it again for itself.
    return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : 0;
}

// It stands in the limited group: unshared there, that is the root which programs see. Then out of
// it, so that its limits never stop PID 1.
int mt_step_groups(mt_build *b)
{
    if (unshare(CLONE_NEWCGROUP) < 0)
        return -errno;
    return join(b->parts->init_group_fds, b->parts->init_group_count);
}

static int loopback_up(void)
{
    _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r) < 0 ? -errno : 0;
}

// Soft limits as on a fresh Debian; hard ones may not be raised here.
static void set_rlimit(__rlimit_resource_t resource, rlim_t soft, rlim_t hard)
{
    struct rlimit now, want;

    if (getrlimit(resource, &now) < 0)
        return;
    want.rlim_max = MT_MIN(hard, now.rlim_max);
    want.rlim_cur = MT_MIN(soft, want.rlim_max);
    (void)setrlimit(resource, &want);
}

int mt_step_names(mt_build *b)
{
    return sethostname(b->id->hostname, strlen(b->id->hostname)) < 0 ? -errno : 0;
}

int mt_step_limits(mt_build *b)
{
    if (b->res->netns_fd < 0) {
        int r = loopback_up();

        if (r < 0)
            return r;
    }
    // No file, and no program of the host's either: capsule/seccomp.c keeps it so.
    set_rlimit(RLIMIT_CORE, 1, 1);
    set_rlimit(RLIMIT_NOFILE, 1024, 1 << 20);
    // A quarter of it bounds arguments and environment: 2 MiB and 1 MiB are promised.
    set_rlimit(RLIMIT_STACK, 16 << 20, RLIM_INFINITY);
    set_rlimit(RLIMIT_MEMLOCK, 8 << 20, 8 << 20);
    return 0;
}

static int set_capabilities(uint64_t kept)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    for (int i = 0; i < 2; i++)
        data[i].effective = data[i].permitted = (uint32_t)(kept >> (32 * i));
    return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

static int drop_capabilities(void)
{
    for (int cap = 0; cap < 64; cap++) {
        if (KEPT_CAPABILITIES & 1ull << cap)
            continue;
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno == EINVAL) // past the kernel's last one
                break;
            return -errno;
        }
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    return set_capabilities(KEPT_CAPABILITIES);
}

// The last of the builder, which leaves right after it while the first command may begin.
int mt_step_give_up(mt_build *b)
{
    (void)b;
    return set_capabilities(0);
}

// Its own null on 0 to 2: the runner's log is no one's inside.
static int take_null(void)
{
    _cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    for (int i = 0; i <= 2; i++) {
        if (dup2(fd, i) < 0)
            return -errno;
    }
    return 0;
}

int mt_step_privileges(mt_build *b)
{
    int r = take_null();

    (void)b;
    if (r < 0)
        return r;
    // The session keyring of the service would be inherited otherwise.
    (void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
    r = drop_capabilities();
    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return dup2(b->control_fd, MT_INIT_CONTROL_FD) < 0 ? -errno : 0;
}

int mt_step_init(mt_build *b)
{
    static char *const argv[] = {(char *)"mt-init", NULL};
    static char *const envp[] = {NULL};
    // The numbers below 100 are free for what mt-init finds there.
    int init = fcntl(b->res->init_fd, F_DUPFD_CLOEXEC, 100);
    int r;

    if (init < 0)
        return -errno;
    r = mt_seccomp_load(b->res->seccomp);
    if (r < 0)
        return r;
    (void)mt_sys_execveat(init, "", argv, envp, AT_EMPTY_PATH);
    return -errno;
}
