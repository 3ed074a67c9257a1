// SPDX-License-Identifier: Apache-2.0
// Each step works on what the store and the run folders say, not on what was asked of the runner
// before: a request that is lost is made again at the next one.
#include "core/retention.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    AT_ONCE = 100, // runs of one kind in one step
    SHORTEST_S = 1,
    LONGEST_S = 60,
    FOLDERS_EVERY_S = 3600, // all of them are listed then
    MS_A_SECOND = 1000,
};

// What a step came to.
typedef struct progress {
    bool more; // something is left to do, or was asked of the runner
    bool done; // something was removed
} progress;

struct mt_retention {
    mt_retention_options o;
    int64_t pause_s;
    int64_t folders_next_us; // boot time
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
};

// ---- the folders ----

static int open_below(int runs_dirfd, const char *run_id, const char *name)
{
    char path[MT_ID_TEXT + 16];

    (void)snprintf(path, sizeof(path), "%s%s%s", run_id, *name ? "/" : "", name);
    return openat(runs_dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_there(const mt_retention *r, const char *run_id, const char *name)
{
    _cleanup_close_ int fd = open_below(r->o.runs_dirfd, run_id, name);

    return fd >= 0 || errno != ENOENT;
}

// What the files take: holes, where old output was dropped, take nothing.
static int64_t measure(const mt_retention *r, const char *run_id)
{
    int fd = open_below(r->o.runs_dirfd, run_id, "out");
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    struct stat st;
    int64_t bytes = 0;

    if (!d) {
        mt_close_fd(&fd);
        return 0;
    }
    while ((e = readdir(d)))
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            bytes += (int64_t)st.st_blocks * 512;
    (void)closedir(d);
    return bytes;
}

// ---- outputs ----

static int measure_new(mt_retention *r, progress *p, mt_err **err)
{
    _cleanup_(mt_kept_list_done) mt_kept_list l = {0};

    if (mt_store_kept_outputs(r->o.store, true, AT_ONCE, &l, err) < 0)
        return -1;
    for (size_t i = 0; i < l.count; i++)
        l.items[i].output_bytes = measure(r, l.items[i].id);
    p->more |= l.count == AT_ONCE;
    return mt_store_outputs_measured(r->o.store, &l, err);
}

// 1: they are gone, 0: the runner was asked.
static int remove_outputs(mt_retention *r, const char *run_id, mt_err **err)
{
    if (!is_there(r, run_id, "out"))
        return mt_store_outputs_removed(r->o.store, run_id, err) < 0 ? -1 : 1;
    return mt_runs_forget(r->o.runs, run_id, MT_FORGET_OUTPUTS, err);
}

static int outputs_step(mt_retention *r, int64_t now, progress *p, mt_err **err)
{
    _cleanup_(mt_kept_list_done) mt_kept_list l = {0};
    int64_t kept, until = now - r->o.limits.outputs_ms * 1000;
    size_t i = 0;
    int gone;

    if (measure_new(r, p, err) < 0 || mt_store_kept_bytes(r->o.store, &kept, err) < 0 ||
        mt_store_kept_outputs(r->o.store, false, AT_ONCE, &l, err) < 0)
        return -1;
    for (; i < l.count; i++) {
        const mt_kept_run *run = &l.items[i];

        if (run->date_ended > until && kept <= r->o.limits.outputs_bytes)
            break;
        gone = remove_outputs(r, run->id, err);
        if (gone < 0)
            return -1;
        p->done |= gone > 0;
        kept -= MT_MAX(run->output_bytes, 0);
    }
    p->more |= i > 0;
    return 0;
}

// ---- records ----

static int records_step(mt_retention *r, int64_t now, progress *p, mt_err **err)
{
    _cleanup_(mt_kept_list_done) mt_kept_list l = {0};

    if (mt_store_kept_runs(r->o.store, now - r->o.limits.runs_ms * 1000, AT_ONCE, &l, err) < 0)
        return -1;
    for (size_t i = 0; i < l.count; i++) {
        const char *id = l.items[i].id;
        bool there = is_there(r, id, "");

        if ((there ? mt_runs_forget(r->o.runs, id, MT_FORGET_ALL, err)
                   : mt_store_run_delete(r->o.store, id, err)) < 0)
            return -1;
        p->done |= !there;
    }
    p->more |= l.count > 0;
    return 0;
}

// Runs that keep nothing but their records.
typedef struct record_kind {
    int (*list)(mt_store *s, int64_t ended_until, size_t limit, mt_kept_list *ret, mt_err **err);
    int (*delete)(mt_store *s, const char *id, mt_err **err);
} record_kind;

static const record_kind APP_RECORDS = {mt_store_kept_app_runs, mt_store_app_run_delete};
static const record_kind INTERACTION_RECORDS = {mt_store_kept_interaction_runs,
                                                mt_store_interaction_run_delete};

static int plain_records_step(mt_retention *r, int64_t now, const record_kind *kind, progress *p,
                              mt_err **err)
{
    _cleanup_(mt_kept_list_done) mt_kept_list l = {0};

    if (kind->list(r->o.store, now - r->o.limits.runs_ms * 1000, AT_ONCE, &l, err) < 0)
        return -1;
    for (size_t i = 0; i < l.count; i++) {
        if (kind->delete (r->o.store, l.items[i].id, err) < 0)
            return -1;
        p->done = true;
    }
    p->more |= l.count == AT_ONCE;
    return 0;
}

// ---- folders ----

static bool is_stopping(mt_retention *r)
{
    bool stopping;

    (void)pthread_mutex_lock(&r->lock);
    stopping = r->stopping;
    (void)pthread_mutex_unlock(&r->lock);
    return stopping;
}

// A record is made before its folder is, so that a folder without one has lost it.
static int folders_step(mt_retention *r, progress *p, mt_err **err)
{
    int fd = openat(r->o.runs_dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    size_t asked = 0;
    int known = 0;

    if (!d) {
        mt_close_fd(&fd);
        return mt_fail_errno(err, errno, "cannot list the run folders");
    }
    while (known >= 0 && asked < AT_ONCE && !is_stopping(r) && (e = readdir(d))) {
        if (!mt_is_id(mt_str_of(e->d_name)))
            continue;
        known = mt_store_run_exists(r->o.store, e->d_name, err);
        if (known == 0) {
            known = mt_runs_forget(r->o.runs, e->d_name, MT_FORGET_ALL, err);
            asked++;
        }
    }
    (void)closedir(d);
    p->more |= asked == AT_ONCE;
    if (asked < AT_ONCE)
        r->folders_next_us = mt_boottime_ns() / 1000 + FOLDERS_EVERY_S * 1000000LL;
    return known < 0 ? -1 : 0;
}

// ---- steps ----

static int step(mt_retention *r, progress *p, mt_err **err)
{
    int64_t now = mt_now_us();

    if (outputs_step(r, now, p, err) < 0 || records_step(r, now, p, err) < 0 ||
        plain_records_step(r, now, &APP_RECORDS, p, err) < 0 ||
        plain_records_step(r, now, &INTERACTION_RECORDS, p, err) < 0 ||
        mt_store_event_trim(r->o.store, now - r->o.limits.events_ms * 1000, r->o.limits.events_most,
                            err) < 0)
        return -1;
    return mt_boottime_ns() / 1000 >= r->folders_next_us ? folders_step(r, p, err) : 0;
}

// False at the end.
static bool wait_s(mt_retention *r, int64_t seconds)
{
    struct timespec until;
    bool stopping;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    (void)pthread_mutex_lock(&r->lock);
    while (!r->stopping && pthread_cond_timedwait(&r->wake, &r->lock, &until) != ETIMEDOUT)
        ;
    stopping = r->stopping;
    (void)pthread_mutex_unlock(&r->lock);
    return !stopping;
}

static void *retention_main(void *data)
{
    mt_retention *r = data;
    int64_t pause = SHORTEST_S;
    bool before = false;

    while (wait_s(r, pause)) {
        _cleanup_err_ mt_err *err = NULL;
        progress p = {0};

        if (step(r, &p, &err) < 0) {
            mt_log(MT_LOG_WARNING, "old runs and events could not be cleaned up; tried again",
                   {"error", mt_err_sentence(err)});
            p.more = false;
        }
        // What the runner cannot do (yet) is asked for less and less often.
        if (!p.more)
            pause = r->pause_s;
        else
            pause = p.done || !before ? SHORTEST_S : MT_MIN(2 * pause, r->pause_s);
        before = p.more;
    }
    return NULL;
}

static int64_t pause_of(const mt_retention_limits *l)
{
    int64_t shortest_ms = MT_MIN(l->outputs_ms, MT_MIN(l->runs_ms, l->events_ms));

    return MT_MIN(MT_MAX(shortest_ms / MS_A_SECOND / 4, (int64_t)SHORTEST_S), (int64_t)LONGEST_S);
}

int mt_retention_start(const mt_retention_options *options, mt_retention **ret, mt_err **err)
{
    mt_retention *r = calloc(1, sizeof(*r));
    pthread_condattr_t monotonic;
    int e;

    if (!r)
        return mt_fail_oom(err);
    r->o = *options;
    r->pause_s = pause_of(&options->limits);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&r->wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    e = pthread_create(&r->thread, NULL, retention_main, r);
    if (e != 0) {
        (void)pthread_cond_destroy(&r->wake);
        (void)pthread_mutex_destroy(&r->lock);
        free(r);
        return mt_fail_errno(err, e, "cannot start a thread");
    }
    *ret = r;
    return 0;
}

void mt_retention_stop(mt_retention *r)
{
    if (!r)
        return;
    (void)pthread_mutex_lock(&r->lock);
    r->stopping = true;
    (void)pthread_cond_signal(&r->wake);
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL);
    (void)pthread_cond_destroy(&r->wake);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}
