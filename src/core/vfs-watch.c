// SPDX-License-Identifier: Apache-2.0
#include "core/vfs-watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/vfs-measure.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/statvfs.h>

enum {
    TICK_MS = 50,
    AGAIN_PER_COST = 2,   // urgent: not sooner again than so many times what measuring took
    LATER_PER_COST = 50,  // else
    LATER_MS = 1000,      // where the disk has changed
    LATEST_MS = 10000,    // where it seems not to have
    ANSWER_MS = 1000,     // for runs that are held
    LOW_AGAIN_MS = 1000,  // between two rounds at the low-disk floor
    LOW_QUIET_MS = 10000, // after one in which nobody was to blame
    SETTLE_MS = 15000,    // for the end of a run that was told to end
    // Those that take longer to walk are measured apart, so that they hold up no others.
    QUICK_MS = 250,
    CHEAP_MS = 20,
    SLOW_MS = 30000,
    OVER_MAX = 1024,
};
#define NS_PER_MS  1000000LL
#define SLACK      ((uint64_t)64 << 10) // folders and the like: not worth anybody's life
#define BLAME      ((uint64_t)8 << 20)  // what makes a file system suspect at the floor
#define SUSPECT    ((uint64_t)1 << 20)  // and a run
#define DISK_FLOOR ((uint64_t)2 << 30)

typedef struct mounter {
    struct mounter *next;
    char run_id[MT_ID_TEXT];
    bool answered;
    uint64_t before, now, dirty; // what it has written: at the last calm look, now
} mounter;

typedef struct watched {
    struct watched *next;
    char id[MT_ID_TEXT], name[MT_STORE_NAME];
    mounter *mounters; // the last one that came first
    size_t mounter_count;
    bool known; // was measured since it is watched
    bool asked; // being measured
    bool slow;  // to be measured apart
    // Somebody was ended: what is in it once that run is gone is where it begins again.
    bool settling;
    char ending[MT_ID_TEXT]; // "": it is gone
    int64_t gone_ns, settle_by_ns;
    uint64_t limit, used;
    uint64_t calm;     // used, when the disk was not low last
    uint64_t forgiven; // above the limit; 0: nothing
    uint64_t free_then;
    int64_t measured_ns, took_ns, left_ns;
    // Mounters are held and asked:
    bool judging;
    int64_t judge_by_ns;
    bool for_disk; // because the disk is low
} watched;

struct mt_vfs_watch {
    mt_vfs_watch_options o;
    mt_vfs_measure *measure[2]; // of the quick, of the slow
    mt_timer *timer;
    bool ticking;
    watched *list;
    uint64_t disk_bytes, disk_free;
    uint64_t calm_free; // when it was not low last, or when somebody was ended for it
    int64_t low_since_ns, low_pause_ns; // a round at the floor has begun; none before
    pthread_mutex_t lock;               // a leaf; guards what follows
    char over[OVER_MAX][MT_ID_TEXT];
    size_t over_count;
};

uint64_t mt_disk_floor(uint64_t disk_bytes)
{
    return MT_MIN(disk_bytes / 20, DISK_FLOOR);
}

static watched *find(mt_vfs_watch *w, const char *id)
{
    for (watched *v = w->list; v; v = v->next)
        if (strcmp(v->id, id) == 0)
            return v;
    return NULL;
}

static void drop(mt_vfs_watch *w, watched *v)
{
    watched **at = &w->list;

    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    for (mounter *m = v->mounters, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    free(v);
}

// ---- file systems that are over their limit ----

static size_t over_at(const mt_vfs_watch *w, const char *id)
{
    size_t i = 0;

    while (i < w->over_count && strcmp(w->over[i], id) != 0)
        i++;
    return i;
}

static void set_over(mt_vfs_watch *w, const char *id, bool over)
{
    size_t i;

    (void)pthread_mutex_lock(&w->lock);
    i = over_at(w, id);
    if (over && i == w->over_count && i < OVER_MAX)
        memcpy(w->over[w->over_count++], id, MT_ID_TEXT);
    else if (!over && i < w->over_count)
        memmove(w->over[i], w->over[--w->over_count], MT_ID_TEXT);
    (void)pthread_mutex_unlock(&w->lock);
}

bool mt_vfs_watch_is_over(mt_vfs_watch *w, const char *vfs_id)
{
    bool over;

    (void)pthread_mutex_lock(&w->lock);
    over = over_at(w, vfs_id) < w->over_count;
    (void)pthread_mutex_unlock(&w->lock);
    return over;
}

void mt_vfs_watch_forgive(mt_vfs_watch *w, const char *vfs_id)
{
    set_over(w, vfs_id, false);
}

// ---- who has to end ----

static uint64_t written(const mounter *m)
{
    return (m->now > m->before ? m->now - m->before : 0) + m->dirty;
}

static void say(const mt_vfs_watch *w, const watched *v, char *out, size_t size)
{
    char limit[MT_SIZE_TEXT];

    if (v->for_disk)
        (void)snprintf(out, size,
                       "disk full: only %llu MiB are free on the server's disk, file system '%s' "
                       "grew most, and of the runs that mount it this one wrote most",
                       (unsigned long long)(w->disk_free >> 20), v->name);
    else
        (void)snprintf(out, size,
                       "disk full: file system '%s' holds %.1f MiB, its limit is %s, and of the "
                       "runs that mount it this one wrote most",
                       v->name, (double)v->used / (1 << 20),
                       mt_size_format((int64_t)v->limit, limit));
}

static void let_all_go(const mt_vfs_watch *w, const watched *v, const mounter *but)
{
    for (const mounter *m = v->mounters; m; m = m->next)
        if (m != but)
            w->o.let_go(w->o.data, m->run_id);
}

static void verdict(mt_vfs_watch *w, watched *v)
{
    mounter *worst = v->mounters;
    char text[512], id[MT_ID_TEXT];

    v->judging = false;
    // Where nothing tells them apart it is the one that came last.
    for (mounter *m = v->mounters; m; m = m->next)
        if (written(m) > written(worst))
            worst = m;
    // At the floor it may have been uploads.
    if (!worst || (v->for_disk && worst->answered && written(worst) < SUSPECT)) {
        let_all_go(w, v, NULL);
        return;
    }
    say(w, v, text, sizeof(text));
    memcpy(id, worst->run_id, sizeof(id));
    if (w->o.end(w->o.data, id, text)) {
        mt_log(MT_LOG_WARNING, "a run is ended for what it wrote", {"run", id}, {"reason", text});
        v->settling = true;
        memcpy(v->ending, id, sizeof(v->ending));
        v->settle_by_ns = mt_boottime_ns() + SETTLE_MS * NS_PER_MS;
        v->forgiven = v->calm = v->used;
    }
    let_all_go(w, v, worst);
}

static bool all_answered(const watched *v)
{
    for (const mounter *m = v->mounters; m; m = m->next)
        if (!m->answered)
            return false;
    return true;
}

static void judge(mt_vfs_watch *w, watched *v, bool for_disk)
{
    if (v->judging)
        return;
    v->for_disk = for_disk;
    v->judging = true;
    v->judge_by_ns = mt_boottime_ns() + ANSWER_MS * NS_PER_MS;
    if (v->mounter_count <= 1 && !for_disk) {
        verdict(w, v);
        return;
    }
    for (mounter *m = v->mounters; m; m = m->next)
        m->answered = false;
    for (mounter *m = v->mounters; m; m = m->next)
        w->o.ask(w->o.data, m->run_id, true);
}

void mt_vfs_watch_usage(mt_vfs_watch *w, const char *run_id, uint64_t file_bytes,
                        uint64_t dirty_bytes)
{
    for (watched *v = w->list; v; v = v->next) {
        for (mounter *m = v->mounters; m; m = m->next) {
            if (strcmp(m->run_id, run_id) != 0)
                continue;
            m->now = file_bytes;
            m->dirty = dirty_bytes;
            m->answered = true;
            if (!v->judging)
                m->before = file_bytes;
        }
        if (v->judging && all_answered(v))
            verdict(w, v);
    }
}

// ---- measuring ----

static uint64_t most(const watched *v)
{
    return MT_MAX(v->limit, v->forgiven) + SLACK;
}

// What is in it although nobody is known to have put it there: it was there before it was watched,
// its limit was lowered, or whoever did it has been told to end.
static void begin_again(watched *v, bool innocent, bool partial)
{
    if (v->settling || innocent)
        v->forgiven = v->used;
    if (v->settling || !v->known)
        v->calm = v->used;
    if (v->used <= v->limit)
        v->forgiven = 0;
    else if (!partial)
        v->forgiven = MT_MIN(v->forgiven, v->used);
    v->settling = v->settling && mt_boottime_ns() < v->settle_by_ns &&
                  (v->ending[0] || v->measured_ns < v->gone_ns);
}

static void on_measured(void *data, const mt_vfs_measured *what)
{
    mt_vfs_watch *w = data;
    watched *v = find(w, what->id);
    bool innocent;

    if (!v)
        return;
    innocent = !v->known || what->used <= v->used;
    v->asked = false;
    if (what->partial && !v->slow) {
        v->slow = true; // and it is still due
        return;
    }
    v->slow = v->slow && what->took_ns > QUICK_MS * NS_PER_MS / 2;
    v->measured_ns = what->began_ns;
    v->took_ns = what->took_ns;
    if (what->there) {
        memcpy(v->name, what->name, sizeof(v->name));
        v->used = what->used;
        v->limit = what->limit;
        begin_again(v, innocent, what->partial);
        set_over(w, v->id, v->used > v->limit + SLACK);
    } else {
        set_over(w, v->id, false); // it is gone
    }
    v->known = true;
    if (!v->mounters) {
        if (v->measured_ns >= v->left_ns)
            drop(w, v);
        return;
    }
    if (v->used > most(v)) {
        judge(w, v, false);
        return;
    }
    if (w->disk_free >= mt_disk_floor(w->disk_bytes))
        v->calm = v->used;
    if (!v->judging && !w->low_since_ns)
        for (mounter *m = v->mounters; m; m = m->next)
            w->o.ask(w->o.data, m->run_id, false);
}

static bool is_due(const mt_vfs_watch *w, const watched *v, int64_t now)
{
    uint64_t gone = v->free_then > w->disk_free ? v->free_then - w->disk_free : 0;
    int64_t age = now - v->measured_ns;

    if (!v->known || (w->low_since_ns > v->measured_ns && !v->slow))
        return true;
    // Once more when the last run has gone. What it wrote may be masked by what others have
    // deleted: it is measured in any case, later where that takes long.
    if (!v->mounters)
        return v->measured_ns < v->left_ns && (gone > 0 || v->took_ns < CHEAP_MS * NS_PER_MS ||
                                               age >= v->took_ns * LATER_PER_COST);
    if (age < v->took_ns * AGAIN_PER_COST || v->judging)
        return false;
    if (gone > 0 && (most(v) <= v->used || gone >= (most(v) - v->used) / 2))
        return true;
    if (w->disk_free == v->free_then)
        return age >= MT_MAX(LATEST_MS * NS_PER_MS, v->took_ns * LATER_PER_COST);
    return age >= MT_MAX(LATER_MS * NS_PER_MS, v->took_ns * LATER_PER_COST);
}

// The one that waits longest.
static void measure_next(mt_vfs_watch *w, bool slow, int64_t now)
{
    watched *due = NULL;

    for (watched *v = w->list, *next; v; v = next) {
        next = v->next;
        if (v->slow != slow)
            continue;
        if (!v->asked && is_due(w, v, now)) {
            if (!due || v->measured_ns < due->measured_ns)
                due = v;
        } else if (!v->mounters && !v->asked && v->measured_ns >= v->left_ns) {
            drop(w, v); // nothing was written since it was measured
        }
    }
    if (!due || !mt_vfs_measure_ask(w->measure[slow], due->id))
        return;
    due->asked = true;
    due->free_then = w->disk_free;
}

// ---- the low-disk floor ----

static void blame_one(mt_vfs_watch *w, int64_t now)
{
    watched *worst = NULL;
    uint64_t fall = w->calm_free > w->disk_free ? w->calm_free - w->disk_free : 0;
    // Who has no part in it is not ended for it: that would not help.
    uint64_t grown = MT_MAX(fall / 8, MT_MIN(BLAME, mt_disk_floor(w->disk_bytes) / 16));

    for (watched *v = w->list; v; v = v->next) {
        if (v->mounters && v->used > v->calm && v->used - v->calm >= grown) {
            grown = v->used - v->calm;
            worst = v;
        }
    }
    if (worst) {
        judge(w, worst, true);
        w->low_pause_ns = now + LOW_AGAIN_MS * NS_PER_MS;
        w->calm_free = w->disk_free;
        for (watched *v = w->list; v; v = v->next)
            v->calm = v->used;
    } else {
        mt_log_plain(MT_LOG_WARNING, "the disk of the state folder is nearly full, and no file "
                                     "system that a run mounts has grown lately");
        w->low_pause_ns = now + LOW_QUIET_MS * NS_PER_MS;
    }
    w->low_since_ns = 0;
}

// A round: every file system is measured, then one is to blame.
static void look_at_disk(mt_vfs_watch *w, int64_t now)
{
    struct statvfs st;

    if (fstatvfs(w->o.vfs_dirfd, &st) < 0)
        return;
    w->disk_bytes = (uint64_t)st.f_blocks * st.f_frsize;
    w->disk_free = (uint64_t)st.f_bavail * st.f_frsize;
    if (w->disk_free >= mt_disk_floor(w->disk_bytes))
        w->calm_free = w->disk_free;
    if (w->disk_free >= mt_disk_floor(w->disk_bytes) / 2) {
        w->low_since_ns = 0;
    } else if (!w->low_since_ns) {
        if (now >= w->low_pause_ns)
            w->low_since_ns = now;
    } else {
        for (const watched *v = w->list; v; v = v->next)
            if ((v->measured_ns < w->low_since_ns && !v->slow) || v->judging)
                return;
        blame_one(w, now);
    }
}

static void on_tick(mt_timer *timer, void *data)
{
    mt_vfs_watch *w = data;
    int64_t now = mt_boottime_ns();

    look_at_disk(w, now);
    measure_next(w, false, now);
    measure_next(w, true, now);
    for (watched *v = w->list; v; v = v->next)
        if (v->judging && now >= v->judge_by_ns)
            verdict(w, v);
    w->ticking = w->list != NULL;
    if (w->ticking)
        mt_timer_in_ms(timer, TICK_MS);
}

// ---- the border ----

int mt_vfs_watch_new(const mt_vfs_watch_options *options, mt_vfs_watch **ret, mt_err **err)
{
    mt_vfs_watch *w = calloc(1, sizeof(*w));

    if (!w)
        return mt_fail_oom(err);
    w->o = *options;
    (void)pthread_mutex_init(&w->lock, NULL);
    w->timer = mt_timer_new(options->loop, on_tick, w);
    if (!w->timer) {
        mt_vfs_watch_free(w);
        return mt_fail_oom(err);
    }
    if (mt_vfs_measure_new(options->loop, options->store, options->vfs_dirfd, QUICK_MS, on_measured,
                           w, &w->measure[0], err) < 0 ||
        mt_vfs_measure_new(options->loop, options->store, options->vfs_dirfd, SLOW_MS, on_measured,
                           w, &w->measure[1], err) < 0) {
        mt_vfs_watch_free(w);
        return -1;
    }
    *ret = w;
    return 0;
}

void mt_vfs_watch_free(mt_vfs_watch *w)
{
    if (!w)
        return;
    mt_vfs_measure_free(w->measure[0]);
    mt_vfs_measure_free(w->measure[1]);
    mt_timer_free(w->timer);
    while (w->list)
        drop(w, w->list);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

static mounter *find_mounter(watched *v, const char *run_id)
{
    for (mounter *m = v->mounters; m; m = m->next)
        if (strcmp(m->run_id, run_id) == 0)
            return m;
    return NULL;
}

void mt_vfs_watch_join(mt_vfs_watch *w, const char *run_id, const char *vfs_id)
{
    watched *v = find(w, vfs_id);
    mounter *m;

    if (!v && (v = calloc(1, sizeof(*v))) != NULL) {
        (void)snprintf(v->id, sizeof(v->id), "%s", vfs_id);
        v->next = w->list;
        w->list = v;
    }
    if (!v || find_mounter(v, run_id) || !(m = calloc(1, sizeof(*m))))
        return;
    (void)snprintf(m->run_id, sizeof(m->run_id), "%s", run_id);
    m->next = v->mounters;
    v->mounters = m;
    v->mounter_count++;
    if (!w->ticking)
        mt_timer_in_ms(w->timer, 0);
    w->ticking = true;
}

void mt_vfs_watch_leave(mt_vfs_watch *w, const char *run_id)
{
    for (watched *v = w->list; v; v = v->next) {
        for (mounter **at = &v->mounters; *at; at = &(*at)->next) {
            mounter *m = *at;

            if (strcmp(m->run_id, run_id) != 0)
                continue;
            *at = m->next;
            free(m);
            v->mounter_count--;
            v->left_ns = mt_boottime_ns();
            break;
        }
        if (strcmp(v->ending, run_id) == 0) {
            v->ending[0] = '\0';
            v->gone_ns = mt_boottime_ns();
        }
    }
}
