// SPDX-License-Identifier: Apache-2.0
// What the supervisor gives up. Once the child is cloned: every system call but those on what it
// holds already (the few that still prepare mounts are of no use without capabilities). Once the
// machine stands: every capability but the one to signal. It has no network, executes nothing and
// makes no process. As user 0 without capabilities it still owns the files of the groups.
#include "base/log.h"
#include "capsule/syscalls.h"
#include "runner/supervisor-internal.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static const unsigned short ALLOWED[] = {
    // streams and files that are open, and folders below them
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_lseek,
    SYS_close,
    SYS_close_range,
    SYS_fcntl,
    SYS_ioctl,
    SYS_dup,
    SYS_dup3,
    SYS_pipe2,
    SYS_fchmod,
    SYS_fstat,
    SYS_newfstatat,
    SYS_openat,
    SYS_openat2,
    SYS_mkdirat,
    SYS_unlinkat,
    SYS_getdents64,
    SYS_readlinkat,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_memfd_create,
    // the file systems and secrets of the run, until the capabilities are dropped
    SYS_open_tree,
    SYS_mount_setattr,
    SYS_fchown,
    SYS_capset,
    // the loop
    SYS_epoll_create1,
    SYS_eventfd2,
    SYS_epoll_wait,
    SYS_epoll_pwait,
    SYS_epoll_ctl,
    SYS_poll,
    SYS_ppoll,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_restart_syscall,
    // its clients and mt-init
    SYS_accept4,
    SYS_socketpair, // for sessions: an end for each side
    SYS_setsockopt,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_sendto,
    SYS_sendmsg,
    SYS_getsockopt,
    SYS_shutdown,
    // processes: its own child and those of the groups
    SYS_wait4,
    SYS_waitid,
    SYS_kill,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_getpid,
    SYS_gettid,
    // memory and the rest of what the C library does
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_getrandom,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_tgkill,
    SYS_sched_yield,
    SYS_exit,
    SYS_exit_group,
};

// arch | number | one comparison for each allowed call | EPERM | allow
enum { CALLS = MT_ARRAY_SIZE(ALLOWED), PROGRAM = 5 + CALLS + 2 };
_Static_assert(CALLS < 250, "a jump of the filter reaches 255 instructions");

static int load_filter(void)
{
    struct sock_filter f[PROGRAM];
    struct sock_fprog program = {.len = PROGRAM, .filter = f};
    size_t n = 0;

    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, CALLS, 0); // x32
    for (size_t i = 0; i < CALLS; i++)
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ALLOWED[i],
                                              (unsigned char)(CALLS - i), 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return mt_sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int drop_bounding_set(void)
{
    for (int cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno == EINVAL) // past the kernel's last one
                break;
            return -errno;
        }
    }
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ? -errno : 0;
}

static int keep_kill(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    data[0].effective = data[0].permitted = 1u << CAP_KILL;
    return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

static void check(const supervisor *s, int r)
{
    if (r < 0)
        mt_log(MT_LOG_WARNING, "a supervisor could not drop its privileges", {"run", s->res->place},
               {"reason", strerror(-r)});
}

void sup_seal_calls(supervisor *s)
{
    int r = drop_bounding_set();

    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    check(s, r < 0 ? r : load_filter());
}

void sup_seal_rights(supervisor *s)
{
    check(s, keep_kill());
}
