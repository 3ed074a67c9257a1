// SPDX-License-Identifier: Apache-2.0
#include "base/loop.h"

#include "base/clock.h"
#include "base/heap.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>

enum { EVENTS_AT_ONCE = 64 };

struct mt_io {
    mt_loop *loop;
    int fd;
    mt_io_fn *fn; // NULL once removed
    void *data;
    mt_io *prev, *next;
};

struct mt_timer {
    mt_loop *loop;
    mt_timer_fn *fn;
    void *data;
    mt_heap_item due; // by CLOCK_BOOTTIME, ns
};

struct post {
    struct post *next;
    mt_post_fn *fn;
    void *data;
};

struct mt_loop {
    int epoll_fd;
    int event_fd;
    bool stop;
    mt_io *ios;
    mt_io *removed; // freed once no pending event can name them
    mt_heap heap;
    size_t timers;        // that exist, armed or not: the heap has room for all
    pthread_mutex_t lock; // guards posts alone; a leaf: nothing is locked below it
    struct post *first, **last;
};

mt_loop *mt_loop_new(void)
{
    mt_loop *loop = calloc(1, sizeof(*loop));
    struct epoll_event e = {.events = EPOLLIN};

    if (!loop)
        return NULL;
    (void)pthread_mutex_init(&loop->lock, NULL);
    loop->last = &loop->first;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->event_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->event_fd, &e) < 0) {
        mt_loop_free(loop);
        return NULL;
    }
    return loop;
}

static void free_removed(mt_loop *loop)
{
    mt_io *next;

    for (mt_io *io = loop->removed; io; io = next) {
        next = io->next;
        free(io);
    }
    loop->removed = NULL;
}

void mt_loop_free(mt_loop *loop)
{
    struct post *next;

    if (!loop)
        return;
    while (loop->ios)
        mt_io_remove(loop->ios);
    free_removed(loop);
    while (mt_heap_first(&loop->heap))
        mt_timer_free(MT_CONTAINER_OF(mt_heap_first(&loop->heap), mt_timer, due));
    for (struct post *p = loop->first; p; p = next) {
        next = p->next;
        free(p);
    }
    mt_close_fd(&loop->epoll_fd);
    mt_close_fd(&loop->event_fd);
    (void)pthread_mutex_destroy(&loop->lock);
    mt_heap_done(&loop->heap);
    free(loop);
}

mt_io *mt_io_add(mt_loop *loop, int fd, uint32_t events, mt_io_fn *fn, void *data)
{
    mt_io *io = calloc(1, sizeof(*io));
    struct epoll_event e = {.events = events, .data.ptr = io};

    if (!io)
        return NULL;
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0) {
        free(io);
        return NULL;
    }
    io->loop = loop;
    io->fd = fd;
    io->fn = fn;
    io->data = data;
    io->next = loop->ios;
    if (io->next)
        io->next->prev = io;
    loop->ios = io;
    return io;
}

int mt_io_set(mt_io *io, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = io};

    return epoll_ctl(io->loop->epoll_fd, EPOLL_CTL_MOD, io->fd, &e) < 0 ? -errno : 0;
}

void mt_io_remove(mt_io *io)
{
    if (!io || !io->fn)
        return;
    (void)epoll_ctl(io->loop->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
    io->fn = NULL;
    if (io->prev)
        io->prev->next = io->next;
    else
        io->loop->ios = io->next;
    if (io->next)
        io->next->prev = io->prev;
    io->next = io->loop->removed;
    io->loop->removed = io;
}

// Room in the heap is made with the timer, so that arming one cannot fail.
mt_timer *mt_timer_new(mt_loop *loop, mt_timer_fn *fn, void *data)
{
    mt_timer *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    if (mt_heap_reserve(&loop->heap, loop->timers + 1) < 0) {
        free(t);
        return NULL;
    }
    loop->timers++;
    t->loop = loop;
    t->fn = fn;
    t->data = data;
    return t;
}

void mt_timer_at(mt_timer *t, int64_t boottime_ns)
{
    mt_heap_put(&t->loop->heap, &t->due, boottime_ns);
}

void mt_timer_in_ms(mt_timer *t, int64_t ms)
{
    mt_timer_at(t, mt_boottime_ns() + ms * 1000000);
}

void mt_timer_stop(mt_timer *t)
{
    mt_heap_remove(&t->loop->heap, &t->due);
}

int64_t mt_timer_left_ms(const mt_timer *t)
{
    int64_t left = mt_heap_has(&t->due) ? (t->due.key - mt_boottime_ns() + 999999) / 1000000 : 0;

    return MT_MAX(left, (int64_t)0);
}

void mt_timer_free(mt_timer *t)
{
    if (!t)
        return;
    mt_timer_stop(t);
    t->loop->timers--;
    free(t);
}

int mt_loop_post(mt_loop *loop, mt_post_fn *fn, void *data)
{
    struct post *p = malloc(sizeof(*p));
    uint64_t one = 1;

    if (!p)
        return -ENOMEM;
    *p = (struct post){.fn = fn, .data = data};
    (void)pthread_mutex_lock(&loop->lock);
    *loop->last = p;
    loop->last = &p->next;
    (void)pthread_mutex_unlock(&loop->lock);
    // EAGAIN means that the counter is full: the loop will wake all the same.
    if (write(loop->event_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        return -errno;
    return 0;
}

static void run_posts(mt_loop *loop)
{
    struct post *p, *next;
    uint64_t count;

    if (read(loop->event_fd, &count, sizeof(count)) < 0)
        return;
    (void)pthread_mutex_lock(&loop->lock);
    p = loop->first;
    loop->first = NULL;
    loop->last = &loop->first;
    (void)pthread_mutex_unlock(&loop->lock);
    for (; p; p = next) {
        next = p->next;
        p->fn(p->data);
        free(p);
    }
}

static void run_timers(mt_loop *loop)
{
    int64_t now = mt_boottime_ns();

    // A timer armed by a callback for the past runs in the next round: no endless loop here.
    for (size_t most = loop->heap.count; most > 0 && mt_heap_first(&loop->heap); most--) {
        mt_timer *t = MT_CONTAINER_OF(mt_heap_first(&loop->heap), mt_timer, due);

        if (t->due.key > now)
            break;
        mt_timer_stop(t);
        t->fn(t, t->data);
    }
}

static int wait_ms(mt_loop *loop, int timeout_ms)
{
    int64_t left;

    if (!mt_heap_first(&loop->heap))
        return timeout_ms;
    left = (mt_heap_first(&loop->heap)->key - mt_boottime_ns() + 999999) / 1000000;
    if (left < 0)
        left = 0;
    if (left > 3600000)
        left = 3600000;
    return timeout_ms < 0 || left < timeout_ms ? (int)left : timeout_ms;
}

int mt_loop_once(mt_loop *loop, int timeout_ms)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(loop->epoll_fd, events, EVENTS_AT_ONCE, wait_ms(loop, timeout_ms));

    if (n < 0 && errno != EINTR)
        return -errno;
    for (int i = 0; i < n; i++) {
        mt_io *io = events[i].data.ptr;

        if (!io)
            run_posts(loop);
        else if (io->fn)
            io->fn(io, events[i].events, io->data);
    }
    run_timers(loop);
    free_removed(loop);
    return 0;
}

int mt_loop_run(mt_loop *loop)
{
    int r = 0;

    loop->stop = false;
    while (!loop->stop && r == 0)
        r = mt_loop_once(loop, -1);
    return r;
}

void mt_loop_stop(mt_loop *loop)
{
    loop->stop = true;
}
