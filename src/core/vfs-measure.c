// SPDX-License-Identifier: Apache-2.0
#include "core/vfs-measure.h"

#include "base/clock.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

struct mt_vfs_measure {
    mt_loop *loop;
    mt_store *store;
    int vfs_dirfd;
    int64_t most_ms;
    void (*done)(void *data, const mt_vfs_measured *what);
    void *data;
    bool busy; // the loop's: from asking to the answer
    pthread_t thread;
    pthread_mutex_t lock; // a leaf; guards what follows
    pthread_cond_t wake;
    _Atomic bool stopping; // also read by a walk
    bool asked;
    mt_vfs_measured what;
};

static void measure(mt_vfs_measure *m, mt_vfs_measured *what)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    mt_vfs_record record;
    int r;

    what->began_ns = mt_boottime_ns();
    if (mt_store_vfs_by_id(m->store, NULL, what->id, &record, NULL) < 0 ||
        mt_vfs_open(m->vfs_dirfd, what->id, geteuid(), getegid(), &vfs, NULL) < 0)
        return;
    r = mt_vfs_used_now(vfs, m->most_ms, &m->stopping, &what->used, NULL);
    if (r < 0)
        return;
    what->there = true;
    what->partial = r == 1;
    what->limit = (uint64_t)record.limit_bytes;
    what->took_ns = mt_boottime_ns() - what->began_ns;
    (void)snprintf(what->name, sizeof(what->name), "%s", record.name);
}

static void answered(void *data)
{
    mt_vfs_measure *m = data;
    mt_vfs_measured what;

    (void)pthread_mutex_lock(&m->lock);
    what = m->what;
    (void)pthread_mutex_unlock(&m->lock);
    m->busy = false;
    m->done(m->data, &what);
}

static bool next(mt_vfs_measure *m, mt_vfs_measured *ret)
{
    bool go;

    (void)pthread_mutex_lock(&m->lock);
    while (!m->stopping && !m->asked)
        (void)pthread_cond_wait(&m->wake, &m->lock);
    go = !m->stopping;
    m->asked = false;
    *ret = m->what;
    (void)pthread_mutex_unlock(&m->lock);
    return go;
}

static void *measure_main(void *data)
{
    mt_vfs_measure *m = data;
    mt_vfs_measured what;

    while (next(m, &what)) {
        measure(m, &what);
        (void)pthread_mutex_lock(&m->lock);
        m->what = what;
        (void)pthread_mutex_unlock(&m->lock);
        while (mt_loop_post(m->loop, answered, m) == -ENOMEM)
            (void)usleep(1000);
    }
    return NULL;
}

int mt_vfs_measure_new(mt_loop *loop, mt_store *store, int vfs_dirfd, int64_t most_ms,
                       void (*done)(void *data, const mt_vfs_measured *what), void *data,
                       mt_vfs_measure **ret, mt_err **err)
{
    mt_vfs_measure *m = calloc(1, sizeof(*m));
    int e;

    if (!m)
        return mt_fail_oom(err);
    *m = (mt_vfs_measure){.loop = loop,
                          .store = store,
                          .vfs_dirfd = vfs_dirfd,
                          .most_ms = most_ms,
                          .done = done,
                          .data = data};
    (void)pthread_mutex_init(&m->lock, NULL);
    (void)pthread_cond_init(&m->wake, NULL);
    e = pthread_create(&m->thread, NULL, measure_main, m);
    if (e != 0) {
        free(m);
        return mt_fail_errno(err, e, "cannot start a thread");
    }
    *ret = m;
    return 0;
}

void mt_vfs_measure_free(mt_vfs_measure *m)
{
    if (!m)
        return;
    (void)pthread_mutex_lock(&m->lock);
    m->stopping = true;
    (void)pthread_cond_signal(&m->wake);
    (void)pthread_mutex_unlock(&m->lock);
    (void)pthread_join(m->thread, NULL);
    (void)pthread_cond_destroy(&m->wake);
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}

bool mt_vfs_measure_ask(mt_vfs_measure *m, const char *id)
{
    if (m->busy)
        return false;
    m->busy = true;
    (void)pthread_mutex_lock(&m->lock);
    m->what = (mt_vfs_measured){0};
    (void)snprintf(m->what.id, sizeof(m->what.id), "%s", id);
    m->asked = true;
    (void)pthread_cond_signal(&m->wake);
    (void)pthread_mutex_unlock(&m->lock);
    return true;
}
