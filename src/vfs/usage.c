// SPDX-License-Identifier: Apache-2.0
// What is remembered of the sizes of file systems: a small table for the whole process, as what it
// speaks of (the disk) is one for the whole process as well. A slot that another one needs is given
// up; that costs a walk. And what uploads in flight have claimed, which nothing gives up: each may
// have room for itself, and all together must, too.
#include "vfs/vfs-internal.h"

#include "base/clock.h"

#include <pthread.h>

enum { SLOTS = 256, MEASURE_MS = 1000, AGE_PER_COST = 50 };

struct slot {
    uint64_t bytes;
    uint64_t grown; // by commits of uploads, ever, to whatever file system had this slot
    int64_t measured_us, took_us;
    char id[MT_ID_TEXT];
    bool partial;
};

struct vfs_claims {
    struct vfs_claims *next;
    uint64_t used;  // as measured last, and what was committed since
    uint64_t bytes; // of the uploads in flight; a commit moves them from here to there in one step
    size_t uploads;
    char id[MT_ID_TEXT];
};

static struct slot slots[SLOTS];
static struct vfs_claims *claims; // one of each file system with uploads in flight
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of both; nothing is done under it

static struct slot *slot_of(const mt_vfs *vfs)
{
    return &slots[mt_str_hash((mt_str){vfs->id, strlen(vfs->id)}) % SLOTS];
}

static bool recall(const mt_vfs *vfs, int64_t max_age_ms, struct slot *ret)
{
    struct slot *slot = slot_of(vfs);
    bool known;

    (void)pthread_mutex_lock(&lock);
    *ret = *slot;
    known = strcmp(slot->id, vfs->id) == 0;
    (void)pthread_mutex_unlock(&lock);
    return known && mt_monotonic_us() - ret->measured_us <
                        MT_MAX(max_age_ms * 1000, ret->took_us * AGE_PER_COST);
}

int mt_vfs_used_now(const mt_vfs *vfs, int64_t deadline_ms, const _Atomic bool *stop,
                    uint64_t *ret_bytes, mt_err **err)
{
    struct slot found = {0}, *slot = slot_of(vfs);
    int64_t start = mt_monotonic_us();
    int r;

    (void)pthread_mutex_lock(&lock);
    found.grown = slot->grown;
    (void)pthread_mutex_unlock(&lock);
    r = vfs_walk_used(vfs, deadline_ms, stop, &found.bytes, err);
    if (r < 0)
        return -1;
    *ret_bytes = found.bytes;
    memcpy(found.id, vfs->id, sizeof(found.id));
    found.partial = r == 1;
    found.measured_us = mt_monotonic_us();
    found.took_us = found.measured_us - start;
    (void)pthread_mutex_lock(&lock);
    found.bytes += slot->grown - found.grown; // the walk may have come by before
    found.grown = slot->grown;
    *slot = found;
    (void)pthread_mutex_unlock(&lock);
    return r;
}

int mt_vfs_used_lately(const mt_vfs *vfs, int64_t max_age_ms, uint64_t *ret_bytes, mt_err **err)
{
    struct slot found;

    if (!recall(vfs, max_age_ms, &found))
        return mt_vfs_used_now(vfs, MEASURE_MS, NULL, ret_bytes, err);
    *ret_bytes = found.bytes;
    return found.partial ? 1 : 0;
}

void vfs_used_grew(const mt_vfs *vfs, struct vfs_claims *c, uint64_t *claimed, uint64_t bytes)
{
    struct slot *slot = slot_of(vfs);

    (void)pthread_mutex_lock(&lock);
    slot->grown += bytes;
    if (strcmp(slot->id, vfs->id) == 0)
        slot->bytes += bytes;
    if (c) {
        c->bytes -= *claimed;
        c->used += bytes;
        *claimed = 0;
    }
    (void)pthread_mutex_unlock(&lock);
}

void vfs_used_changed(const mt_vfs *vfs)
{
    struct slot *slot = slot_of(vfs);

    (void)pthread_mutex_lock(&lock);
    if (strcmp(slot->id, vfs->id) == 0)
        slot->id[0] = 0;
    (void)pthread_mutex_unlock(&lock);
}

struct vfs_claims *vfs_claims_join(const mt_vfs *vfs, uint64_t used)
{
    struct vfs_claims *fresh = calloc(1, sizeof(*fresh)), *c;
    struct slot *slot = slot_of(vfs);

    (void)pthread_mutex_lock(&lock);
    for (c = claims; c && strcmp(c->id, vfs->id) != 0; c = c->next)
        ;
    if (!c && fresh) {
        c = MT_TAKE_PTR(fresh);
        memcpy(c->id, vfs->id, sizeof(c->id));
        c->next = claims;
        claims = c;
    }
    if (c) {
        // What was remembered also knows what was committed since it was measured.
        c->used = strcmp(slot->id, vfs->id) == 0 ? slot->bytes : used;
        c->uploads++;
    }
    (void)pthread_mutex_unlock(&lock);
    free(fresh);
    return c;
}

bool vfs_claims_add(struct vfs_claims *c, uint64_t *claimed, uint64_t bytes, uint64_t limit)
{
    bool fits;

    (void)pthread_mutex_lock(&lock);
    fits = c->used + c->bytes <= limit && bytes <= limit - c->used - c->bytes;
    c->bytes -= fits ? 0 : *claimed;
    *claimed = fits ? *claimed + bytes : 0;
    c->bytes += fits ? bytes : 0;
    (void)pthread_mutex_unlock(&lock);
    return fits;
}

void vfs_claims_leave(struct vfs_claims *c, uint64_t claimed)
{
    struct vfs_claims **at = &claims;

    (void)pthread_mutex_lock(&lock);
    c->bytes -= claimed;
    if (--c->uploads == 0) {
        while (*at != c)
            at = &(*at)->next;
        *at = c->next;
        free(c);
    }
    (void)pthread_mutex_unlock(&lock);
}
