// SPDX-License-Identifier: Apache-2.0
// What the machine has, as the runner tells it. Any thread.
#include "core/runs-internal.h"

#include "base/clock.h"

#include <errno.h>

enum {
    INFO_WAIT_MS = 2000,
    PRUNE_WAIT_S = 60,
    INFO_FRESH_US = 10 * 1000000,
};

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
