// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

int mt_read_full(int fd, void *data, size_t len)
{
    char *p = data;

    while (len > 0) {
        ssize_t n = read(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -ENODATA;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int mt_write_full(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};

            (void)poll(&wait, 1, -1);
            continue;
        }
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

// Most files are small.
enum { READ_FIRST = 4096, READ_MOST = 65536 };

int mt_read_all(int fd, mt_buf *b)
{
    for (;;) {
        // Room for one byte past the maximum tells a file that fits from one that does not.
        size_t room =
            MT_MIN(MT_MAX((size_t)READ_FIRST, MT_MIN(b->len, (size_t)READ_MOST)), b->max - b->len);
        char one;
        ssize_t n;
        void *to = room ? mt_buf_reserve(b, room) : &one;

        if (!to)
            return b->failed;
        n = read(fd, to, room ? room : 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        if (!room)
            return b->failed = -EMSGSIZE;
        mt_buf_added(b, (size_t)n);
    }
}

int mt_read_file(int dirfd, const char *path, mt_buf *b)
{
    _cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : mt_read_all(fd, b);
}

static int sync_parent(int dirfd, const char *path)
{
    const char *slash = strrchr(path, '/');
    char dir[4096];
    size_t len = slash ? (size_t)(slash - path) : 0;
    _cleanup_close_ int fd = -1;

    if (len >= sizeof(dir))
        return -ENAMETOOLONG;
    memcpy(dir, slash ? path : ".", slash ? len : 1);
    dir[slash ? len : 1] = '\0';
    fd = openat(dirfd, dir[0] ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return fsync(fd) < 0 ? -errno : 0;
}

int mt_write_file_atomic(int dirfd, const char *path, const void *data, size_t len, mode_t mode)
{
    char temporary[4096];
    uint64_t random = 0;
    _cleanup_close_ int fd = -1;
    int r;

    mt_random_bytes(&random, sizeof(random));
    if (snprintf(temporary, sizeof(temporary), "%s.%016llx.tmp", path,
                 (unsigned long long)random) >= (int)sizeof(temporary))
        return -ENAMETOOLONG;
    fd = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    r = mt_write_full(fd, data, len);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && renameat(dirfd, temporary, dirfd, path) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlinkat(dirfd, temporary, 0);
        return r;
    }
    return sync_parent(dirfd, path);
}

int mt_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int mt_mkdir_p(const char *path, mode_t mode)
{
    char copy[4096];
    size_t len = strlen(path);

    if (len == 0 || len >= sizeof(copy))
        return -ENAMETOOLONG;
    memcpy(copy, path, len + 1);
    for (char *p = copy + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return -errno;
        *p = '/';
    }
    return mkdir(copy, mode) < 0 && errno != EEXIST ? -errno : 0;
}

void mt_allow_many_fds(unsigned wanted)
{
    struct rlimit now, more = {wanted, wanted};

    if (getrlimit(RLIMIT_NOFILE, &now) < 0)
        return;
    now.rlim_cur = now.rlim_max;
    if (now.rlim_max >= wanted || setrlimit(RLIMIT_NOFILE, &more) < 0)
        (void)setrlimit(RLIMIT_NOFILE, &now);
}

int mt_send_fds_of(int socket, const struct iovec *parts, size_t part_count, const int *fds,
                   size_t count, int flags)
{
    char control[CMSG_SPACE(MT_FDS_MAX * sizeof(int))] __attribute__((aligned(8))) = {0};
    struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = part_count};
    ssize_t n;

    if (count > MT_FDS_MAX)
        return -EINVAL;
    if (count) {
        struct cmsghdr *c;

        msg.msg_control = control;
        msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    }
    do {
        n = sendmsg(socket, &msg, MSG_NOSIGNAL | flags);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int mt_send_fds(int socket, const void *data, size_t len, const int *fds, size_t count, int flags)
{
    const struct iovec part = {(void *)(uintptr_t)data, len};

    return mt_send_fds_of(socket, &part, 1, fds, count, flags);
}

ssize_t mt_receive_fds_of(int socket, const struct iovec *parts, size_t part_count, int *fds,
                          size_t count, int flags)
{
    char control[CMSG_SPACE(MT_FDS_MAX * sizeof(int))] __attribute__((aligned(8)));
    struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                         .msg_iovlen = part_count,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    size_t taken = 0;
    ssize_t n;

    memset(fds, -1, count * sizeof(int));
    do {
        n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | flags);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (taken < count)
                fds[taken++] = fd;
            else
                (void)close(fd);
        }
    }
    return n;
}

ssize_t mt_receive_fds(int socket, void *data, size_t size, int *fds, size_t count, int flags)
{
    const struct iovec part = {data, size};

    return mt_receive_fds_of(socket, &part, 1, fds, count, flags);
}

size_t mt_fds_count(const int *fds, size_t count)
{
    size_t n = 0;

    while (n < count && fds[n] >= 0)
        n++;
    return n;
}
