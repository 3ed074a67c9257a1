// SPDX-License-Identifier: Apache-2.0
// What mt-net may do: system calls on what is open, and new sockets of the internet protocols.
// Where the kernel can tell (6.7), it connects to port 53 only, and has no right on any file; a
// filter of system calls alone sees no address.
#include "net/net.h"

#include "capsule/syscalls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
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

// linux/landlock.h of 6.7
struct ruleset {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
};
struct port_rule {
    uint64_t allowed_access;
    uint64_t port;
};
enum { RULE_PORT = 2, ABI_NET = 4, BIND_TCP = 1, CONNECT_TCP = 2, FILES = (1 << 13) - 1 };

static void close_landlock(void)
{
    struct ruleset all = {.handled_access_fs = FILES, .handled_access_net = BIND_TCP | CONNECT_TCP};
    struct port_rule dns = {.allowed_access = CONNECT_TCP, .port = 53};
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    _cleanup_close_ int fd = -1;

    if (abi < 1)
        return;
    fd = (int)syscall(SYS_landlock_create_ruleset, &all,
                      abi < ABI_NET ? sizeof(all.handled_access_fs) : sizeof(all), 0);
    if (fd < 0 || (abi >= ABI_NET && syscall(SYS_landlock_add_rule, fd, RULE_PORT, &dns, 0) < 0))
        return;
    (void)syscall(SYS_landlock_restrict_self, fd, 0);
}

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
    close_landlock();
    return mt_sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}
