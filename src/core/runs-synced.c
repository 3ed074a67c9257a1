// SPDX-License-Identifier: Apache-2.0
// Ends that a supervisor has told of before they are on the disk. They are stored at once; who
// waits for one hears of it when the supervisor says that its journal is synced. The sync takes as
// long as the store does, so mostly nobody waits for it.
#include "core/runs-internal.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

typedef char asked_id[MT_ID_TEXT];

// Guarded by the lock of runs.
struct unsynced {
    struct unsynced *next;
    char run_id[MT_ID_TEXT];
    asked_id *asked; // of a run or command, by somebody who was not told
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

void runs_told_early(live *l, uint64_t seq)
{
    mt_runs *runs = l->runs;

    (void)pthread_mutex_lock(&runs->lock);
    // Without memory it is told some moments too early.
    if (add(runs, l->id))
        l->unsynced = seq;
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

bool mt_runs_may_tell(mt_runs *runs, const char *run_id, const char *id)
{
    struct unsynced *u;
    asked_id *more = NULL;

    (void)pthread_mutex_lock(&runs->lock);
    u = runs->unsynced ? *find(runs, run_id) : NULL;
    if (u)
        more = reallocarray(u->asked, u->asked_count + 1, sizeof(*more));
    if (more) {
        u->asked = more;
        (void)snprintf(more[u->asked_count++], sizeof(*more), "%s", id);
    }
    (void)pthread_mutex_unlock(&runs->lock);
    return !more;
}
