// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD: kills the process before the n-th sync, or the n-th write at a place of a file,
// that it makes, whichever of its threads that is. The file that MT_KILLAT names holds two 64-bit
// numbers: how many syncs and how many writes are left, 0 for none to come. Tests write there at
// any time.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic int64_t *left; // [0] syncs, [1] writes

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("MT_KILLAT");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (p != MAP_FAILED)
        left = p;
    if (fd >= 0)
        (void)close(fd);
}

static void count(int what)
{
    if (left && atomic_load(&left[what]) > 0 && atomic_fetch_sub(&left[what], 1) == 1)
        (void)kill(getpid(), SIGKILL);
}

int fdatasync(int fd)
{
    count(0);
    return (int)syscall(SYS_fdatasync, fd);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    count(1);
    return syscall(SYS_pwrite64, fd, data, size, offset);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return pwrite64(fd, data, size, offset);
}
