// SPDX-License-Identifier: Apache-2.0
// The system calls that mt-net has: on what is open, and new sockets of the internet protocols.
#include "net/net.h"

#include "capsule/syscalls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static const unsigned short ALLOWED[] = {
    SYS_read,         SYS_write,          SYS_writev,       SYS_close,      SYS_fcntl,
    SYS_fstat,        SYS_newfstatat,     SYS_recvfrom,     SYS_recvmsg,    SYS_sendto,
    SYS_connect,      SYS_accept4,        SYS_getsockopt,   SYS_epoll_wait, SYS_epoll_pwait,
    SYS_epoll_ctl,    SYS_clock_gettime,  SYS_gettimeofday, SYS_getrandom,  SYS_restart_syscall,
    SYS_mmap,         SYS_munmap,         SYS_mremap,       SYS_mprotect,   SYS_madvise,
    SYS_brk,          SYS_futex,          SYS_getpid,       SYS_gettid,     SYS_tgkill,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_exit,       SYS_exit_group,
};

// arch | number | socket? family | one comparison for each call | EPERM | allow
enum { CALLS = MT_ARRAY_SIZE(ALLOWED), PROGRAM = 9 + CALLS + 2 };

int net_seal(void)
{
    struct sock_filter f[PROGRAM];
    struct sock_fprog program = {.len = PROGRAM, .filter = f};
    const unsigned char calls = CALLS;
    size_t n = 0;

    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                          offsetof(struct seccomp_data, args[0]));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET,
                                          (unsigned char)(calls + 3), 0);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6,
                                          (unsigned char)(calls + 2), (unsigned char)(calls + 1));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, calls, 0); // x32
    for (size_t i = 0; i < CALLS; i++)
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ALLOWED[i],
                                              (unsigned char)(CALLS - i), 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return mt_sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}
