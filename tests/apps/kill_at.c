// SPDX-License-Identifier: Apache-2.0
// Loaded into maitentod by a test: kills it at the n-th write or sync, by whatever thread, of those that
// come once the test has armed it. The test writes n to the file that MT_TEST_KILL names, which is
// shared memory: one count for fdatasync(), one for pwrite64().
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int32_t *left; // 0: not armed

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("MT_TEST_KILL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (p != MAP_FAILED)
        left = p;
}

static void count(int which)
{
    if (left && left[which] > 0 && __atomic_sub_fetch(&left[which], 1, __ATOMIC_SEQ_CST) == 0)
        (void)kill(getpid(), SIGKILL);
}

int fdatasync(int fd)
{
    count(0);
    return (int)syscall(SYS_fdatasync, fd);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
    count(1);
    return syscall(SYS_pwrite64, fd, data, len, at);
}
