// SPDX-License-Identifier: Apache-2.0
#include "base/aside.h"

#include "base/macros.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum { FDS_MAX = 253 }; // of one message: the kernel's SCM_MAX_FD

static struct {
    pthread_mutex_t lock; // a leaf
    pthread_cond_t wake;
    int *fds;
    size_t count, room;
    bool running;
} aside = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

bool mt_refuse_fds(int socket)
{
    const int no = 0;

    return setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no)) == 0;
}

MT_NORETURN static void *close_main(void *data)
{
    (void)data;
    for (;;) {
        int fd;

        (void)pthread_mutex_lock(&aside.lock);
        while (aside.count == 0)
            (void)pthread_cond_wait(&aside.wake, &aside.lock);
        fd = aside.fds[--aside.count];
        (void)pthread_mutex_unlock(&aside.lock);
        (void)close(fd);
    }
}

// Under the lock. False: without memory, or a thread.
static bool add(int fd)
{
    pthread_t thread;

    if (aside.count == aside.room) {
        size_t room = 2 * aside.room + FDS_MAX;
        int *more = realloc(aside.fds, room * sizeof(*more));

        if (!more)
            return false;
        aside.fds = more;
        aside.room = room;
    }
    if (!aside.running && pthread_create(&thread, NULL, close_main, NULL) == 0)
        aside.running = pthread_detach(thread) == 0;
    if (aside.running)
        aside.fds[aside.count++] = fd;
    return aside.running;
}

void mt_close_aside(int *fd)
{
    bool added;

    if (*fd < 0)
        return;
    (void)pthread_mutex_lock(&aside.lock);
    added = add(*fd);
    (void)pthread_cond_signal(&aside.wake);
    (void)pthread_mutex_unlock(&aside.lock);
    if (!added)
        (void)close(*fd);
    *fd = -1;
}

static bool take_fds(struct msghdr *m)
{
    bool some = m->msg_flags & MSG_CTRUNC;

    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
            mt_close_aside(&fd);
            some = true;
        }
    }
    return some;
}

ssize_t mt_recv_aside(int fd, void *data, size_t len)
{
    alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    struct iovec part = {.iov_base = data, .iov_len = len};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0 || !take_fds(&m))
        return n;
    errno = EPROTO;
    return -1;
}
