// SPDX-License-Identifier: Apache-2.0
// The clock of app runs: a heap by the moment at which each is to be looked at, and a thread that
// waits for the first. Moments are wall clock, as they outlive the server: at least once a minute
// the thread looks again, whatever somebody has set the clock to.
#include "core/apps-internal.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>

enum { LOOK_AGAIN_US = 60 * 1000000 };

int app_clock_room(mt_apps *apps)
{
    return mt_heap_reserve(&apps->heap, apps->live_count + 1);
}

void app_clock_clear(app_live *l)
{
    mt_heap_remove(&l->apps->heap, &l->due);
}

void app_clock_set(app_live *l, int64_t wake_at)
{
    if (l->deadline && (!wake_at || l->deadline < wake_at))
        wake_at = l->deadline;
    if (!wake_at) {
        app_clock_clear(l);
        return;
    }
    mt_heap_put(&l->apps->heap, &l->due, wake_at);
    if (mt_heap_first(&l->apps->heap) == &l->due)
        (void)pthread_cond_signal(&l->apps->clock_moved);
}

static void wait_for_first(mt_apps *apps, int64_t now)
{
    int64_t left = LOOK_AGAIN_US;
    struct timespec until;

    if (mt_heap_first(&apps->heap))
        left = MT_MIN(left, mt_heap_first(&apps->heap)->key - now);
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += left / 1000000;
    until.tv_nsec += left % 1000000 * 1000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)pthread_cond_timedwait(&apps->clock_moved, &apps->lock, &until);
}

static void *run_clock(void *data)
{
    mt_apps *apps = data;

    (void)pthread_mutex_lock(&apps->lock);
    while (!apps->stop) {
        const mt_heap_item *first = mt_heap_first(&apps->heap);
        int64_t now = mt_now_us();

        if (first && first->key <= now) {
            app_live *l = MT_CONTAINER_OF(first, app_live, due);

            app_clock_clear(l);
            app_poke(l);
        } else {
            wait_for_first(apps, now);
        }
    }
    (void)pthread_mutex_unlock(&apps->lock);
    return NULL;
}

int app_clock_start(mt_apps *apps, mt_err **err)
{
    pthread_condattr_t attr;
    sigset_t all, old;
    int r;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&apps->clock_moved, &attr);
    (void)pthread_condattr_destroy(&attr);
    // Signals are the main thread's.
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&apps->clock, NULL, run_clock, apps);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    apps->clock_runs = r == 0;
    return r == 0 ? 0 : mt_fail(err, MT_E_OOM, "cannot start the clock of app runs");
}

void app_clock_stop(mt_apps *apps)
{
    (void)pthread_mutex_lock(&apps->lock);
    apps->stop = true;
    (void)pthread_cond_signal(&apps->clock_moved);
    (void)pthread_mutex_unlock(&apps->lock);
    if (apps->clock_runs)
        (void)pthread_join(apps->clock, NULL);
    apps->clock_runs = false;
}
