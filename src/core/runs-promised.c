// SPDX-License-Identifier: Apache-2.0
// What of the machine is promised to live runs, in all and to those of each user. Any thread.
#include "core/runs-internal.h"

#include "base/clock.h"
#include "base/share.h"
#include "capsule/scratch.h"

#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>

enum {
    OVERCOMMIT = 4, // promised memory and disk may be so many times what is there
    SHARE = 3,      // of 4 parts: what one user who is no administrator may have (base/share.h)
};

// Runs under way must be able to end and be told: no new ones when the disk is nearly full.
int mt_runs_check_disk(mt_runs *runs, mt_err **err)
{
    struct statvfs st;
    uint64_t free_bytes, floor;

    if (fstatvfs(runs->options.runs_dirfd, &st) < 0)
        return 0;
    free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
    floor = mt_disk_floor((uint64_t)st.f_blocks * st.f_frsize);
    if (free_bytes >= floor)
        return 0;
    return mt_fail(err, MT_E_DISK_FULL,
                   "only %llu MiB are free where the state folder is; no run starts below %llu MiB",
                   (unsigned long long)(free_bytes >> 20), (unsigned long long)(floor >> 20));
}

static void add(promised *p, const mt_plan_limits *limits)
{
    p->runs++;
    p->memory += limits->memory_bytes;
    p->disk += limits->disk_bytes;
}

static void subtract(promised *p, const mt_plan_limits *limits)
{
    p->runs--;
    p->memory -= limits->memory_bytes;
    p->disk -= limits->disk_bytes;
}

static struct promised_to **find(mt_runs *runs, const char *user_id)
{
    struct promised_to **at = &runs->promised_to;

    while (*at && !mt_streq((*at)->user_id, user_id))
        at = &(*at)->next;
    return at;
}

static struct promised_to *find_or_add(mt_runs *runs, const char *user_id)
{
    struct promised_to **at = find(runs, user_id);

    if (!*at && (*at = calloc(1, sizeof(**at))) != NULL)
        (void)snprintf((*at)->user_id, sizeof((*at)->user_id), "%s", user_id);
    return *at;
}

static void forget_if_nothing(mt_runs *runs, const struct promised_to *to)
{
    struct promised_to **at = find(runs, to->user_id);

    if (to->of.runs)
        return;
    *at = to->next;
    free((void *)to);
}

static int check_all(const mt_runs *runs, const mt_plan_limits *limits, mt_err **err)
{
    const promised *p = &runs->promised;
    char size[MT_SIZE_TEXT];

    if (p->runs >= (uint64_t)runs->options.max_live_runs)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "%llu runs are live, the most that this server takes at once",
                       (unsigned long long)p->runs);
    if (runs->memory_cap && p->memory + limits->memory_bytes > OVERCOMMIT * runs->memory_cap)
        return mt_fail(
            err, MT_E_CAPACITY_EXCEEDED,
            "the memory promised to live runs is at its ceiling of %llu MiB (%d times what "
            "they may use together): give capsules less by limits.memory",
            (unsigned long long)(OVERCOMMIT * runs->memory_cap >> 20), OVERCOMMIT);
    if (runs->disk_free < 2 * mt_scratch_floor(runs->disk_cap))
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "only %llu MiB of the scratch disk (%s) are free: what is left is for the "
                       "runs that live",
                       (unsigned long long)(runs->disk_free >> 20),
                       mt_size_format((int64_t)runs->disk_cap, size));
    if (runs->disk_cap && p->disk + limits->disk_bytes > OVERCOMMIT * runs->disk_cap && p->runs > 0)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "the disk promised to live runs is at its ceiling of %llu MiB (%d times the "
                       "scratch disk): give capsules less by limits.disk, or mt-runner a larger "
                       "--scratch-size",
                       (unsigned long long)(OVERCOMMIT * runs->disk_cap >> 20), OVERCOMMIT);
    return 0;
}

static uint64_t share(uint64_t all, uint64_t used)
{
    return mt_share((SHARE * all + 3) / 4, all, used);
}

// One user never has everything: whoever comes next finds room, too.
static int check_user(const mt_runs *runs, const promised *has, const mt_user *user,
                      const mt_plan_limits *limits, mt_err **err)
{
    uint64_t runs_max = (uint64_t)runs->options.max_live_runs;
    uint64_t memory_max = OVERCOMMIT * runs->memory_cap, disk_max = OVERCOMMIT * runs->disk_cap;
    const promised *p = &runs->promised;
    const char *what = NULL;

    if (user->role == MT_ROLE_ADMIN || has->runs == 0)
        return 0;
    if (has->runs >= share(runs_max, p->runs))
        what = "live runs";
    else if (memory_max && has->memory + limits->memory_bytes > share(memory_max, p->memory))
        what = "memory (limits.memory)";
    else if (disk_max && has->disk + limits->disk_bytes > share(disk_max, p->disk))
        what = "disk (limits.disk)";
    if (!what)
        return 0;
    return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                   "user '%s' has %llu live runs, and with one more would have more than one "
                   "user's share of the server's %s: end some of them",
                   user->name, (unsigned long long)has->runs, what);
}

int mt_runs_reserve(mt_runs *runs, const mt_user *user, const mt_plan_limits *limits, mt_err **err)
{
    struct promised_to *to;
    int r;

    if (mt_runs_check_disk(runs, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&runs->lock);
    to = find_or_add(runs, user->id);
    r = to ? check_all(runs, limits, err) : mt_fail_oom(err);
    if (r == 0)
        r = check_user(runs, &to->of, user, limits, err);
    if (r == 0) {
        add(&runs->promised, limits);
        add(&to->of, limits);
    } else if (to) {
        forget_if_nothing(runs, to);
    }
    (void)pthread_mutex_unlock(&runs->lock);
    return r;
}

int runs_promised_before(mt_runs *runs, const char *user_id, const mt_plan_limits *limits)
{
    struct promised_to *to;

    (void)pthread_mutex_lock(&runs->lock);
    to = find_or_add(runs, user_id);
    if (to) {
        add(&runs->promised, limits);
        add(&to->of, limits);
    }
    (void)pthread_mutex_unlock(&runs->lock);
    return to ? 0 : -ENOMEM;
}

void mt_runs_release(mt_runs *runs, const char *user_id, const mt_plan_limits *limits)
{
    struct promised_to *to;

    (void)pthread_mutex_lock(&runs->lock);
    to = *find(runs, user_id);
    subtract(&runs->promised, limits);
    if (to) { // as its room was reserved
        subtract(&to->of, limits);
        forget_if_nothing(runs, to);
    }
    (void)pthread_mutex_unlock(&runs->lock);
}

void runs_forget_promised(mt_runs *runs)
{
    for (struct promised_to *to = runs->promised_to, *next; to; to = next) {
        next = to->next;
        free(to);
    }
}
