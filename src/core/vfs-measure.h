// SPDX-License-Identifier: Apache-2.0
// Measures file systems on a thread of its own, one after the other: a walk through a large tree
// takes its time, and may wait for the disk.
#pragma once

#include "base/loop.h"
#include "store/store.h"

typedef struct mt_vfs_measure mt_vfs_measure;

typedef struct mt_vfs_measured {
    char id[MT_ID_TEXT];
    char name[MT_STORE_NAME];
    bool there;       // false: it is gone, or could not be measured; the rest is not set
    uint64_t used;    // bytes; at least so many where it is partial
    bool partial;     // the walk took too long
    uint64_t limit;   // as its record says now
    int64_t began_ns; // CLOCK_BOOTTIME
    int64_t took_ns;
} mt_vfs_measured;

// done is called on the loop's thread. vfs_dirfd stays the caller's.
// A walk takes most_ms at most.
int mt_vfs_measure_new(mt_loop *loop, mt_store *store, int vfs_dirfd, int64_t most_ms,
                       void (*done)(void *data, const mt_vfs_measured *what), void *data,
                       mt_vfs_measure **ret, mt_err **err);
void mt_vfs_measure_free(mt_vfs_measure *m); // waits for the thread; accepts NULL
// One at a time: false while another is being measured.
bool mt_vfs_measure_ask(mt_vfs_measure *m, const char *id);
