// SPDX-License-Identifier: Apache-2.0
// The filter, loaded in children that then try calls.
#include "base/tap.h"
#include "capsule/seccomp.h"
#include "capsule/syscalls.h"

#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

static mt_seccomp filter;

// errno of one call made under the filter by a child; 0 when it was done. `high` goes into the
// upper half of the registers, which the kernel does not look at where an argument is an int.
static int try_call(long number, unsigned long a, unsigned long b, unsigned long c)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || mt_seccomp_load(&filter) < 0)
            _exit(250);
        _exit(syscall(number, a, b, c, 0UL, 0UL, 0UL) < 0 ? errno : 0);
    }
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 251;
}

#define HIGH (1ul << 32)

static void test_refused(void)
{
    CHECK_INT(try_call(SYS_mount, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_fsopen, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_move_mount, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_unshare, CLONE_NEWUSER, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_setns, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_keyctl, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_add_key, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_io_uring_setup, 1, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_bpf, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_userfaultfd, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_perf_event_open, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_open_by_handle_at, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_kexec_load, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_init_module, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_swapon, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_reboot, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_settimeofday, 0, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_pidfd_getfd, 0, 0, 0), EPERM);
}

static void test_unknown(void)
{
    CHECK_INT(try_call(SYS_clone3, 0, 0, 0), ENOSYS);
    CHECK_INT(try_call(457, 0, 0, 0), ENOSYS); // statmount
    CHECK_INT(try_call(511, 0, 0, 0), ENOSYS);
    CHECK_INT(try_call(600, 0, 0, 0), ENOSYS);
    CHECK_INT(try_call(0x40000000 | 39, 0, 0, 0), ENOSYS); // x32 getpid
}

static void test_allowed(void)
{
    CHECK_INT(try_call(SYS_getpid, 0, 0, 0), 0);
    CHECK_INT(try_call(SYS_sched_yield, 0, 0, 0), 0);
    CHECK_INT(try_call(SYS_memfd_create, (unsigned long)"x", 0, 0), 0);
    CHECK_INT(try_call(SYS_ptrace, PTRACE_TRACEME, 0, 0), 0);
    CHECK_INT(try_call(SYS_close_range, 100, 200, 0), 0);
    CHECK_INT(try_call(SYS_openat2, 0, 0, 0), EINVAL); // asked the kernel
}

static void test_arguments(void)
{
    CHECK_INT(try_call(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_clone, CLONE_NEWNS | SIGCHLD, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), 0);
    CHECK_INT(try_call(SYS_socket, AF_INET6, SOCK_DGRAM, 0), 0);
    CHECK_INT(try_call(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP), EPROTONOSUPPORT);
    CHECK_INT(try_call(SYS_socket, AF_INET6, SOCK_SEQPACKET, 0), ESOCKTNOSUPPORT);
    CHECK_INT(try_call(SYS_socket, AF_INET, SOCK_DCCP, 0), ESOCKTNOSUPPORT);
    CHECK_INT(try_call(SYS_setrlimit, RLIMIT_CORE, 1, 0), 0); // not looked at
    CHECK_INT(try_call(SYS_setrlimit, RLIMIT_NOFILE, 1, 0), EFAULT);
    CHECK_INT(try_call(SYS_prlimit64, 0, RLIMIT_CORE, HIGH), 0);
    CHECK_INT(try_call(SYS_prlimit64, 0, RLIMIT_CORE, 0), 0);
    CHECK_INT(try_call(SYS_prlimit64, 1, RLIMIT_NOFILE, 1), EPERM);
    CHECK_INT(try_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 1), EFAULT);
    CHECK_INT(try_call(SYS_ioctl, 0, TIOCSETD, 0), EPERM);
    CHECK_INT(try_call(SYS_clone, CLONE_NEWCGROUP | SIGCHLD | HIGH, 0, 0), EPERM);
    CHECK_INT(try_call(SYS_clone, SIGCHLD, 0, 0), 0);
    CHECK_INT(try_call(SYS_socket, AF_UNIX, SOCK_STREAM, 0), 0);
    CHECK_INT(try_call(SYS_socket, AF_INET, SOCK_STREAM, 0), 0);
    CHECK_INT(try_call(SYS_socket, AF_INET6, SOCK_STREAM, 0), 0);
    CHECK_INT(try_call(SYS_socket, AF_NETLINK, SOCK_RAW, 0), 0);
    CHECK_INT(try_call(SYS_socket, AF_NETLINK, SOCK_RAW, 12), EPROTONOSUPPORT); // netfilter
    CHECK_INT(try_call(SYS_socket, AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT);
    CHECK_INT(try_call(SYS_socket, 38 /* AF_ALG */, 5, 0), EAFNOSUPPORT);
    CHECK_INT(try_call(SYS_socket, HIGH | 38, 5, 0), EAFNOSUPPORT);
    CHECK_INT(try_call(SYS_socket, AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT);
    CHECK_INT(try_call(SYS_socketpair, AF_TIPC, SOCK_STREAM, 0), EAFNOSUPPORT);
    // Nothing lingers, and nobody is told; all else is the kernel's to answer.
    CHECK_INT(try_call(SYS_setsockopt, 100, SOL_SOCKET, SO_LINGER), 0);
    CHECK_INT(try_call(SYS_setsockopt, 100, HIGH | SOL_SOCKET, HIGH | SO_LINGER), 0);
    CHECK_INT(try_call(SYS_setsockopt, 100, SOL_SOCKET, SO_KEEPALIVE), EBADF);
    CHECK_INT(try_call(SYS_setsockopt, 100, IPPROTO_TCP, SO_LINGER), EBADF);
    CHECK_INT(try_call(SYS_ioctl, 100, TIOCSTI, 0), EPERM);
    CHECK_INT(try_call(SYS_ioctl, 100, HIGH | TIOCSTI, 0), EPERM);
    CHECK_INT(try_call(SYS_ioctl, 100, TIOCLINUX, 0), EPERM);
    CHECK_INT(try_call(SYS_ioctl, 100, FIONREAD, 0), EBADF);
    CHECK_INT(try_call(SYS_ioctl, 100, MT_FS_IOC_RESVSP, 0), EOPNOTSUPP);
    CHECK_INT(try_call(SYS_ioctl, 100, MT_FS_IOC_RESVSP64, 0), EOPNOTSUPP);
    CHECK_INT(try_call(SYS_ioctl, 100, HIGH | MT_FS_IOC_ZERO_RANGE, 0), EOPNOTSUPP);
    CHECK_INT(try_call(SYS_ioctl, 100, BTRFS_IOC_SNAP_CREATE, 0), ENOTTY);
    CHECK_INT(try_call(SYS_ioctl, 100, BTRFS_IOC_SNAP_CREATE_V2, 0), ENOTTY);
    CHECK_INT(try_call(SYS_ioctl, 100, BTRFS_IOC_SUBVOL_CREATE, 0), ENOTTY);
    CHECK_INT(try_call(SYS_ioctl, 100, HIGH | BTRFS_IOC_SUBVOL_CREATE_V2, 0), ENOTTY);
    CHECK_INT(try_call(SYS_ioctl, 100, FICLONE, 0), EBADF);
    CHECK_INT(try_call(SYS_fallocate, 100, 0, 0), EOPNOTSUPP);
    CHECK_INT(try_call(SYS_fallocate, 100, HIGH, 0), EOPNOTSUPP);
    CHECK_INT(try_call(SYS_fallocate, 100, FALLOC_FL_KEEP_SIZE, 0), EOPNOTSUPP);
    CHECK_INT(try_call(SYS_fallocate, 100, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 0),
              EOPNOTSUPP);
    CHECK_INT(try_call(SYS_fallocate, 100, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0), EBADF);
    CHECK_INT(try_call(SYS_personality, 0xffffffff, 0, 0), 0);
    CHECK_INT(try_call(SYS_personality, PER_LINUX32, 0, 0), 0);
    CHECK_INT(try_call(SYS_personality, ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC, 0, 0), EPERM);
}

// As the kernel finds out, once, which calls it need not ask the filter about: those that it allows
// without having looked at more than number and ABI.
static bool allowed_unasked(unsigned number)
{
    uint32_t a = 0;

    for (size_t at = 0; at < filter.count; at++) {
        const struct sock_filter *f = &filter.instructions[at];
        bool taken = false;

        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (f->k != offsetof(struct seccomp_data, nr) &&
                f->k != offsetof(struct seccomp_data, arch))
                return false;
            a = f->k == offsetof(struct seccomp_data, nr) ? number : AUDIT_ARCH_X86_64;
            continue;
        case BPF_RET | BPF_K:
            return f->k == SECCOMP_RET_ALLOW;
        case BPF_JMP | BPF_JEQ | BPF_K:
            taken = a == f->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            taken = a >= f->k;
            break;
        default:
            return false;
        }
        at += taken ? f->jt : f->jf;
    }
    return false;
}

// What programs call all the time must cost nothing.
static void test_frequent(void)
{
    static const unsigned frequent[] = {
        SYS_read,        SYS_write,  SYS_pread64,  SYS_pwrite64,   SYS_readv,   SYS_writev,
        SYS_lseek,       SYS_fcntl,  SYS_fstat,    SYS_stat,       SYS_lstat,   SYS_newfstatat,
        SYS_statx,       SYS_access, SYS_openat,   SYS_close,      SYS_mmap,    SYS_munmap,
        SYS_mprotect,    SYS_brk,    SYS_futex,    SYS_poll,       SYS_getpid,  SYS_epoll_wait,
        SYS_epoll_pwait, SYS_sendto, SYS_recvfrom, SYS_sendmsg,    SYS_recvmsg, SYS_rt_sigprocmask,
        SYS_fdatasync,   SYS_fsync,  SYS_madvise,  SYS_getdents64, SYS_execve,  SYS_wait4,
    };

    for (size_t i = 0; i < sizeof(frequent) / sizeof(frequent[0]); i++) {
        if (!allowed_unasked(frequent[i]))
            printf("# call %u\n", frequent[i]);
        CHECK(allowed_unasked(frequent[i]));
    }
    CHECK(!allowed_unasked(SYS_clone));
    CHECK(!allowed_unasked(SYS_mount));
}

// Programs of the other ABI are not let in by their own numbers: int 0x80 with 21 is mount there.
static void test_other_abi(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        long r;

        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void)mt_seccomp_load(&filter);
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(21), "b"(0), "c"(0), "d"(0) : "memory");
        _exit(r < 0 ? (int)-r : 0);
    }
    (void)waitpid(pid, &status, 0);
    // A kernel without the 32-bit ABI kills at the trap.
    CHECK(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == ENOSYS));
}

int main(void)
{
    _cleanup_err_ mt_err *err = NULL;

    if (mt_seccomp_compile(&filter, &err) < 0)
        return printf("Bail out! %s\n", mt_err_sentence(err)), 1;
    printf("# %u instructions\n", filter.count);
    CHECK(filter.count < 256);
    CHECK_INT(mt_seccomp_verdict("read"), 1);
    CHECK_INT(mt_seccomp_verdict("mount"), 0);
    CHECK_INT(mt_seccomp_verdict("clone3"), -1);
    test_refused();
    test_unknown();
    test_allowed();
    test_arguments();
    test_frequent();
    test_other_abi();
    mt_seccomp_done(&filter);
    return TAP_DONE();
}
