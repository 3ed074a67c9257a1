// SPDX-License-Identifier: Apache-2.0
// The clock of app runs: a heap by the moment at which each is to be looked at, and a thread that
// waits for the first. Moments are wall clock, as they outlive the server: at least once a minute
// the thread looks again, whatever somebody has set the clock to.
#include "core/apps-internal.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>

enum { LOOK_AGAIN_US = 60 * 1000000 };

static void put(mt_apps *apps, size_t i, app_live *l)
{
    apps->heap[i] = l;
    l->heap_at = i;
}

static void sift_up(mt_apps *apps, size_t i)
{
    app_live *l = apps->heap[i];

    while (i > 0 && apps->heap[(i - 1) / 2]->wake_at > l->wake_at) {
        put(apps, i, apps->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(apps, i, l);
}

static void sift_down(mt_apps *apps, size_t i)
{
    app_live *l = apps->heap[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < apps->heap_count &&
            apps->heap[child + 1]->wake_at < apps->heap[child]->wake_at)
            child++;
        if (child >= apps->heap_count || apps->heap[child]->wake_at >= l->wake_at)
            break;
        put(apps, i, apps->heap[child]);
        i = child;
    }
    put(apps, i, l);
}

int app_clock_room(mt_apps *apps)
{
    app_live **bigger;
    size_t cap = apps->heap_cap ? 2 * apps->heap_cap : 64;

    if (apps->live_count < apps->heap_cap)
        return 0;
    bigger = reallocarray((void *)apps->heap, cap, sizeof(void *));
    if (!bigger)
        return -ENOMEM;
    apps->heap = bigger;
    apps->heap_cap = cap;
    return 0;
}

void app_clock_clear(app_live *l)
{
    mt_apps *apps = l->apps;
    size_t i = l->heap_at;
    app_live *last;

    if (i == SIZE_MAX)
        return;
    l->heap_at = SIZE_MAX;
    last = apps->heap[--apps->heap_count];
    if (last == l)
        return;
    put(apps, i, last);
    sift_up(apps, i);
    sift_down(apps, last->heap_at);
}

void app_clock_set(app_live *l, int64_t wake_at)
{
    app_clock_clear(l);
    if (l->deadline && (!wake_at || l->deadline < wake_at))
        wake_at = l->deadline;
    l->wake_at = wake_at;
    if (!wake_at)
        return;
    put(l->apps, l->apps->heap_count++, l);
    sift_up(l->apps, l->heap_at);
    if (l->heap_at == 0)
        (void)pthread_cond_signal(&l->apps->clock_moved);
}

static void wait_for_first(mt_apps *apps, int64_t now)
{
    int64_t left = LOOK_AGAIN_US;
    struct timespec until;

    if (apps->heap_count > 0)
        left = MT_MIN(left, apps->heap[0]->wake_at - now);
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
        int64_t now = mt_now_us();

        if (apps->heap_count > 0 && apps->heap[0]->wake_at <= now) {
            app_live *l = apps->heap[0];

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
