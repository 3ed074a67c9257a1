// SPDX-License-Identifier: Apache-2.0
#include "core/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LANES = 128 }; // half of them for runs

struct job {
    struct job *next;
    void (*fn)(void *data);
    void *data;
};

struct lane {
    struct job *first, **last;
    size_t running;
};

struct mt_pool {
    pthread_mutex_t lock; // guards what follows; a leaf
    pthread_cond_t wake;
    struct lane lanes[LANES];
    size_t turn;     // the lane that is looked at first
    size_t per_lane; // threads that one may have
    size_t of_runs;  // threads that the lanes of runs have, all together
    bool stop;
    int nice; // of its threads, above the process's
    pthread_t *threads;
    size_t count;
};

static bool is_of_runs(const mt_pool *pool, const struct lane *lane)
{
    return (lane - pool->lanes) % 2 == 1;
}

// The next job, by turns; NULL: none that may run now.
static struct job *take(mt_pool *pool, struct lane **ret_lane)
{
    for (size_t i = 0; i < LANES; i++) {
        struct lane *lane = &pool->lanes[(pool->turn + i) % LANES];
        struct job *job = lane->first;

        if (!job || lane->running >= pool->per_lane ||
            (is_of_runs(pool, lane) && pool->of_runs >= pool->per_lane))
            continue;
        lane->first = job->next;
        if (!lane->first)
            lane->last = &lane->first;
        lane->running++;
        pool->of_runs += is_of_runs(pool, lane);
        pool->turn = (pool->turn + i + 1) % LANES;
        *ret_lane = lane;
        return job;
    }
    return NULL;
}

static void *work(void *data)
{
    mt_pool *pool = data;
    struct lane *lane;

    if (pool->nice)
        (void)setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + pool->nice);
    (void)pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        struct job *job = take(pool, &lane);

        if (!job) {
            (void)pthread_cond_wait(&pool->wake, &pool->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&pool->lock);
        job->fn(job->data);
        free(job);
        (void)pthread_mutex_lock(&pool->lock);
        pool->of_runs -= is_of_runs(pool, lane);
        lane->running--; // this thread looks again, so what the lane held back is seen
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int mt_pool_new(size_t threads, int nice, mt_pool **ret, mt_err **err)
{
    mt_pool *pool = calloc(1, sizeof(*pool));
    sigset_t all, old;

    if (!pool || !(pool->threads = calloc(threads, sizeof(pthread_t)))) {
        free(pool);
        return mt_fail_oom(err);
    }
    pool->nice = nice;
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);
    for (size_t i = 0; i < LANES; i++)
        pool->lanes[i].last = &pool->lanes[i].first;
    pool->per_lane = threads > 2 ? threads - 2 : threads;
    // Signals are the main thread's.
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; pool->count < threads; pool->count++)
        if (pthread_create(&pool->threads[pool->count], NULL, work, pool) != 0)
            break;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pool->count < threads) {
        mt_pool_free(pool);
        return mt_fail(err, MT_E_OOM, "cannot start %zu worker threads", threads);
    }
    *ret = pool;
    return 0;
}

void mt_pool_free(mt_pool *pool)
{
    if (!pool)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->count; i++)
        (void)pthread_join(pool->threads[i], NULL);
    for (size_t i = 0; i < LANES; i++)
        for (struct job *job = pool->lanes[i].first, *next; job; job = next) {
            next = job->next;
            free(job);
        }
    (void)pthread_cond_destroy(&pool->wake);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}

int mt_pool_run(mt_pool *pool, mt_lane of, void (*fn)(void *data), void *data)
{
    struct lane *lane = &pool->lanes[(of.number % (LANES / 2)) * 2 + of.of_run];
    struct job *job = malloc(sizeof(*job));

    if (!job)
        return -ENOMEM;
    *job = (struct job){.fn = fn, .data = data};
    (void)pthread_mutex_lock(&pool->lock);
    *lane->last = job;
    lane->last = &job->next;
    (void)pthread_cond_signal(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
    return 0;
}
