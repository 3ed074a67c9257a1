// SPDX-License-Identifier: Apache-2.0
// Ends that a supervisor has told of before they are on the disk. They are stored at once; who
// waits for one hears of it when the supervisor says that its journal is synced. The sync takes as
// long as the store does, so mostly nobody waits for it.
#include "core/runs-internal.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { ENDS_MAX = 64 };

typedef char id_text[MT_ID_TEXT]; // of a run or command

// Guarded by the lock of runs.
struct unsynced {
    struct unsynced *next;
    char run_id[MT_ID_TEXT];
    id_text ends[ENDS_MAX]; // what has ended; of many, the first
    size_t end_count;
    id_text *asked; // after what somebody has asked, who was not told
    size_t asked_count;
};

static struct unsynced **find(mt_runs *runs, const char *run_id)
{
    struct unsynced **at = &runs->unsynced;

    while (*at && strcmp((*at)->run_id, run_id) != 0)
        at = &(*at)->next;
    return at;
}

static struct unsynced *add(mt_runs *runs, const char *run_id)
{
    struct unsynced **at = find(runs, run_id), *u = *at;

    if (u)
        return u;
    u = calloc(1, sizeof(*u));
    if (u)
        (void)snprintf(u->run_id, sizeof(u->run_id), "%s", run_id);
    *at = u;
    return u;
}

void runs_told_early(live *l, uint64_t seq, mt_str id)
{
    mt_runs *runs = l->runs;
    struct unsynced *u;

    (void)pthread_mutex_lock(&runs->lock);
    u = add(runs, l->id);
    if (u) // without memory it is told some moments too early
        l->unsynced = seq;
    if (u && u->end_count < ENDS_MAX)
        (void)snprintf(u->ends[u->end_count++], sizeof(u->ends[0]), "%.*s",
                       (int)MT_MIN(id.len, (size_t)MT_ID_LEN), id.data);
    (void)pthread_mutex_unlock(&runs->lock);
}

// Who was not told looks again.
static void tell(live *l)
{
    const mt_runs_options *o = &l->runs->options;
    struct unsynced **at, *u;

    l->unsynced = 0;
    (void)pthread_mutex_lock(&l->runs->lock);
    at = find(l->runs, l->id);
    u = *at;
    if (u)
        *at = u->next;
    (void)pthread_mutex_unlock(&l->runs->lock);
    for (size_t i = 0; u && o->announce && i < u->asked_count; i++)
        o->announce(u->asked[i], o->announce_data);
    if (u)
        free(u->asked);
    free(u);
}

void runs_told_synced(live *l, uint64_t seq)
{
    if (!l->unsynced || seq < l->unsynced)
        return;
    tell(l);
    if (l->end_stored)
        runs_forget(l);
}

void runs_sync_here(live *l)
{
    char path[MT_ID_TEXT + 16];
    _cleanup_close_ int fd = -1;

    if (!l->unsynced)
        return;
    (void)snprintf(path, sizeof(path), "%s/journal", l->id);
    fd = openat(l->runs->options.runs_dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fdatasync(fd) < 0)
        mt_log(MT_LOG_ERROR, "the journal of a run cannot be synced", {"run", l->id},
               {"error", strerror(errno)});
    tell(l);
}

// Who asked is told later; false without memory.
static bool note(struct unsynced *u, const char *id)
{
    id_text *more = reallocarray(u->asked, u->asked_count + 1, sizeof(*more));

    if (!more)
        return false;
    u->asked = more;
    (void)snprintf(more[u->asked_count++], sizeof(*more), "%s", id);
    return true;
}

bool mt_runs_may_tell(mt_runs *runs, const char *run_id, const char *id)
{
    struct unsynced *u;
    bool noted;

    (void)pthread_mutex_lock(&runs->lock);
    u = runs->unsynced ? *find(runs, run_id) : NULL;
    noted = u && note(u, id);
    (void)pthread_mutex_unlock(&runs->lock);
    return !noted;
}

static bool has_end(const struct unsynced *u, const char *id)
{
    for (size_t i = 0; i < u->end_count; i++)
        if (strcmp(u->ends[i], id) == 0)
            return true;
    return false;
}

bool mt_runs_hold_news(mt_runs *runs, const char *id)
{
    bool noted = false;

    (void)pthread_mutex_lock(&runs->lock);
    for (struct unsynced *u = runs->unsynced; u && !noted; u = u->next)
        noted = has_end(u, id) && note(u, id);
    (void)pthread_mutex_unlock(&runs->lock);
    return noted;
}
