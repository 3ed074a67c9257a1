// SPDX-License-Identifier: Apache-2.0
// Every raw system call of the product that glibc of Debian 12 has no function for (it has those of
// mounts and of pidfds), and structures that its kernel headers lack. Each returns what the kernel
// returns: >= 0, or -1 with errno set.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif

static inline int mt_sys_openat2(int dirfd, const char *path, struct open_how *how)
{
    return (int)syscall(SYS_openat2, dirfd, path, how, sizeof(*how));
}
// Opens below dirfd: no link is followed, nothing outside is reached, no other mount is crossed
// unless the caller's own.
static inline int mt_sys_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return mt_sys_openat2(dirfd, path, &how);
}
static inline int mt_sys_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}
static inline pid_t mt_sys_clone3(struct clone_args *args)
{
    return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}
static inline int mt_sys_seccomp(unsigned op, unsigned flags, void *args)
{
    return (int)syscall(SYS_seccomp, op, flags, args);
}
static inline int mt_sys_execveat(int fd, const char *path, char *const argv[], char *const envp[],
                                  int flags)
{
    return (int)syscall(SYS_execveat, fd, path, argv, envp, flags);
}
