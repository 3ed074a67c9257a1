// SPDX-License-Identifier: Apache-2.0
// What the machine has, as the runner tells it, and what of it is promised to live runs. Any
// thread.
#include "core/runs-internal.h"

#include "base/clock.h"
#include "capsule/scratch.h"

#include <errno.h>
#include <sys/statvfs.h>

enum {
    INFO_WAIT_MS = 2000,
    PRUNE_WAIT_S = 60,
    INFO_FRESH_US = 10 * 1000000,
    OVERCOMMIT = 4, // promised memory and disk may be so many times what is there
};

// Runs under way must be able to end and be told: no new ones when the disk is nearly full.
static int check_disk_floor(mt_runs *runs, mt_err **err)
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

static int fit(uint64_t *limit, uint64_t most, bool named, const char *field, mt_err **err)
{
    char text[MT_SIZE_TEXT];

    if (!most || *limit <= most)
        return 0;
    if (named)
        return mt_fail_field(err, MT_E_BAD_FIELD, field, "%s is above what this machine has: %s",
                             field, mt_size_format((int64_t)(most >> 20 << 20), text));
    *limit = most;
    return 0;
}

int mt_runs_fit(mt_runs *runs, const mt_capsule_def *def, mt_plan_limits *limits, mt_err **err)
{
    uint64_t memory, disk;

    (void)pthread_mutex_lock(&runs->lock);
    memory = runs->memory_cap;
    disk = runs->disk_cap / 2;
    (void)pthread_mutex_unlock(&runs->lock);
    if (fit(&limits->memory_bytes, memory, def->limits.memory_bytes != 0, "limits.memory", err) < 0)
        return -1;
    return fit(&limits->disk_bytes, disk, def->limits.disk_bytes != 0, "limits.disk", err);
}

int mt_runs_reserve(mt_runs *runs, const mt_plan_limits *limits, mt_err **err)
{
    char size[MT_SIZE_TEXT];
    int r = 0;

    if (check_disk_floor(runs, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&runs->lock);
    if (runs->promised_runs >= runs->options.max_live_runs)
        r = mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                    "%lld runs are live, the most that this server takes at once",
                    (long long)runs->promised_runs);
    else if (runs->memory_cap &&
             runs->promised_memory + limits->memory_bytes > OVERCOMMIT * runs->memory_cap)
        r = mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                    "the memory promised to live runs is at its ceiling of %llu MiB (%d times what "
                    "they may use together): give capsules less by limits.memory",
                    (unsigned long long)(OVERCOMMIT * runs->memory_cap >> 20), OVERCOMMIT);
    else if (runs->disk_free < 2 * mt_scratch_floor(runs->disk_cap))
        r = mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                    "only %llu MiB of the scratch disk (%s) are free: what is left is for the runs "
                    "that live",
                    (unsigned long long)(runs->disk_free >> 20),
                    mt_size_format((int64_t)runs->disk_cap, size));
    else if (runs->disk_cap &&
             runs->promised_disk + limits->disk_bytes > OVERCOMMIT * runs->disk_cap &&
             runs->promised_runs > 0)
        r = mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                    "the disk promised to live runs is at its ceiling of %llu MiB (%d times the "
                    "scratch disk): give capsules less by limits.disk, or mt-runner a larger "
                    "--scratch-size",
                    (unsigned long long)(OVERCOMMIT * runs->disk_cap >> 20), OVERCOMMIT);
    if (r == 0) {
        runs->promised_runs++;
        runs->promised_memory += limits->memory_bytes;
        runs->promised_disk += limits->disk_bytes;
    }
    (void)pthread_mutex_unlock(&runs->lock);
    return r;
}

void mt_runs_release(mt_runs *runs, const mt_plan_limits *limits)
{
    (void)pthread_mutex_lock(&runs->lock);
    runs->promised_runs--;
    runs->promised_memory -= limits->memory_bytes;
    runs->promised_disk -= limits->disk_bytes;
    (void)pthread_mutex_unlock(&runs->lock);
}

static void ask_info_posted(void *data)
{
    runs_ask_info(data);
}

int mt_runs_info(mt_runs *runs, mt_arena *arena, mt_info *ret, mt_err **err)
{
    struct timespec until;
    mt_frame frame = {.type = MT_FRAME_INFO};
    uint64_t mine;
    uint8_t *copy = NULL;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += INFO_WAIT_MS / 1000;
    (void)pthread_mutex_lock(&runs->lock);
    mine = ++runs->info_asked;
    (void)mt_loop_post(runs->options.loop, ask_info_posted, runs);
    while (runs->info_answered < mine && runs->runner_there)
        if (pthread_cond_timedwait(&runs->info_changed, &runs->lock, &until) == ETIMEDOUT)
            break;
    if (runs->info_answered >= mine && (copy = mt_arena_alloc(arena, runs->info.len + 1)) != NULL) {
        memcpy(copy, mt_buf_str(&runs->info), runs->info.len);
        frame.payload = copy;
        frame.payload_len = runs->info.len;
    }
    (void)pthread_mutex_unlock(&runs->lock);
    if (!copy || mt_get_info(&frame, ret, arena) < 0)
        return mt_fail(err, MT_E_UNAVAILABLE,
                       "the runner does not answer: is mt-runner up? (its log says more)");
    return 0;
}

static void ask_prune_posted(void *data)
{
    runs_ask_prune(data);
}

int mt_runs_prune_layers(mt_runs *runs, uint32_t *ret_layers, uint64_t *ret_bytes, mt_err **err)
{
    struct timespec until;
    uint64_t mine;
    bool done;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PRUNE_WAIT_S;
    (void)pthread_mutex_lock(&runs->lock);
    mine = ++runs->prune_asked;
    (void)mt_loop_post(runs->options.loop, ask_prune_posted, runs);
    while (runs->prune_answered < mine && runs->runner_there)
        if (pthread_cond_timedwait(&runs->info_changed, &runs->lock, &until) == ETIMEDOUT)
            break;
    done = runs->prune_answered >= mine;
    *ret_layers = runs->pruned_layers;
    *ret_bytes = runs->pruned_bytes;
    (void)pthread_mutex_unlock(&runs->lock);
    if (!done)
        return mt_fail(err, MT_E_UNAVAILABLE,
                       "the runner does not answer: is mt-runner up? (its log says more)");
    return 0;
}

static bool image_in(mt_runs *runs, mt_arena *arena, const char *name,
                     char ret_digest[MT_DIGEST_LEN + 1])
{
    mt_frame frame = {.type = MT_FRAME_INFO};
    mt_info info = {0};
    bool fresh;

    (void)pthread_mutex_lock(&runs->lock);
    fresh = runs->info_us && mt_monotonic_us() - runs->info_us < INFO_FRESH_US;
    frame.payload =
        fresh ? (uint8_t *)mt_arena_strndup(arena, mt_buf_str(&runs->info), runs->info.len) : NULL;
    frame.payload_len = runs->info.len;
    (void)pthread_mutex_unlock(&runs->lock);
    if (!frame.payload || mt_get_info(&frame, &info, arena) < 0)
        return false;
    for (uint32_t i = 0; i < info.image_count; i++) {
        if (!mt_str_eq(info.images[i].name, name) || info.images[i].digest.len != MT_DIGEST_LEN)
            continue;
        memcpy(ret_digest, info.images[i].digest.data, MT_DIGEST_LEN);
        ret_digest[MT_DIGEST_LEN] = '\0';
        return true;
    }
    return false;
}

int mt_runs_image(mt_runs *runs, const char *name, char ret_digest[MT_DIGEST_LEN + 1], mt_err **err)
{
    _cleanup_arena_ mt_arena *arena = mt_arena_new(4 * (size_t)MT_FRAME_REPLY_MAX);
    _cleanup_buf_ mt_buf names = MT_BUF_INIT(4096);
    mt_info info = {0};

    if (!arena)
        return mt_fail_oom(err);
    if (image_in(runs, arena, name, ret_digest))
        return 0;
    if (mt_runs_info(runs, arena, &info, err) < 0)
        return -1;
    if (image_in(runs, arena, name, ret_digest))
        return 0;
    for (uint32_t i = 0; i < info.image_count; i++)
        (void)mt_buf_addf(&names, "%s%.*s", i ? ", " : "", (int)info.images[i].name.len,
                          info.images[i].name.data);
    return mt_fail_field(err, MT_E_NOT_FOUND, "image",
                         "no image '%s' on this server; it has: %s (mt-image build %s makes it)",
                         name, names.len ? mt_buf_str(&names) : "none", name);
}
