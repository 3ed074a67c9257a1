// SPDX-License-Identifier: Apache-2.0
// What memory the runs of apps take, in all and those of each user. A run that waits needs none:
// where its user has much, it waits without its machine, and is done again from its journal when
// what it waits for is there. One that computes needs its machine: where its user has more than his
// share, the one that takes most of it ends.
#include "core/apps-internal.h"

#include "base/share.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum {
    OF_MACHINE = 8, // all runs together may take this part of the machine's memory…
    EACH = 2,       // …and those of one user this part of that, less the more of it is used
    WAITING = 2,    // of a share: what may be taken by runs that wait
};

static uint64_t memory_of(const mt_apps *apps)
{
    if (apps->options.memory)
        return apps->options.memory;
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / OF_MACHINE;
}

uint64_t app_memory_share(const mt_apps *apps)
{
    uint64_t all = memory_of(apps);

    return mt_share(all / EACH, all, apps->bytes);
}

static app_user **find(mt_apps *apps, const char *id)
{
    app_user **at = &apps->users[mt_str_hash(mt_str_of(id)) % APP_USER_BUCKETS];

    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    return at;
}

int app_memory_join(app_live *l)
{
    app_user **at = find(l->apps, l->user_id);

    if (!*at) {
        *at = calloc(1, sizeof(**at));
        if (!*at)
            return -ENOMEM;
        (void)snprintf((*at)->id, sizeof((*at)->id), "%s", l->user_id);
    }
    l->user = *at;
    l->user->runs++;
    return 0;
}

static void set(app_live *l, size_t bytes)
{
    l->apps->bytes += bytes - l->bytes;
    l->user->bytes += bytes - l->bytes;
    l->bytes = bytes;
}

void app_memory_leave(app_live *l)
{
    app_user **at, *user = l->user;

    if (!user)
        return;
    set(l, 0);
    l->user = NULL;
    if (--user->runs > 0)
        return;
    at = find(l->apps, user->id);
    *at = user->next;
    free(user);
}

// Its part of a program that many may run.
static size_t program_bytes(const app_live *l)
{
    size_t bytes;

    if (!l->program)
        return 0;
    (void)pthread_mutex_lock(&l->apps->programs_lock);
    bytes = l->program->bytes / l->program->refs;
    (void)pthread_mutex_unlock(&l->apps->programs_lock);
    return bytes;
}

size_t app_memory_of(const app_live *l)
{
    return sizeof(*l) + (l->vm ? mt_vm_bytes(l->vm) : 0) + mt_json_weight(l->arguments) +
           l->subscription_count * sizeof(*l->subscriptions) + program_bytes(l);
}

app_verdict app_memory_judge(app_live *l, size_t bytes, bool waits)
{
    uint64_t share;

    set(l, bytes);
    share = app_memory_share(l->apps);
    if (waits)
        return l->user->bytes > share / WAITING && (l->vm || l->arguments) ? APP_MEMORY_SHED
                                                                           : APP_MEMORY_FITS;
    if (l->user->bytes <= share || l->bytes < l->user->bytes / l->user->runs)
        return APP_MEMORY_FITS;
    return APP_MEMORY_OVER;
}

int app_memory_check(mt_apps *apps, const char *user_id, mt_err **err)
{
    const app_user *user = *find(apps, user_id);
    uint64_t share = app_memory_share(apps);

    if (!user || user->bytes < share)
        return 0;
    return mt_fail(
        err, MT_E_CAPACITY_EXCEEDED,
        "%zu app runs of this user take %zu MiB of memory, the share of one user: end some",
        user->runs, user->bytes >> 20);
}
