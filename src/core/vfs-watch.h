// SPDX-License-Identifier: Apache-2.0
// Keeps what capsules write into file systems within bounds, as far as that can be done from
// outside: the kernel's own quotas need a file system that was made with them.
//
//   every 50 ms   free space of the disk (one system call). A file system whose room could be half
//                 used up by what has gone since it was measured, is measured again; so is one that
//                 has not been for a while.
//   over          more is in it than its limit allows, and more than when somebody was ended for
//                 that: the runs that mount it are held, each tells what it has written lately, and
//                 the one that wrote most ends as `diskFull`. The others go on.
//   low disk      below the floor the same is done with the file system that has grown most.
//
// What is written between two looks is the overshoot. Ended runs leave their files: a file system
// that is over its limit takes no new runs until it is not.
//
// Knows runs by their ids only. All on the loop's thread, but mt_vfs_watch_is_over().
#pragma once

#include "base/loop.h"
#include "store/store.h"

typedef struct mt_vfs_watch mt_vfs_watch;

typedef struct mt_vfs_watch_options {
    mt_loop *loop;
    mt_store *store;
    int vfs_dirfd;
    // Asks what the run has written, and with hold also to let its commands stand still. The answer
    // comes by mt_vfs_watch_usage(), or never.
    void (*ask)(void *data, const char *run_id, bool hold);
    void (*let_go)(void *data, const char *run_id);
    // False: it could not be told.
    bool (*end)(void *data, const char *run_id, const char *sentence);
    void *data;
} mt_vfs_watch_options;

int mt_vfs_watch_new(const mt_vfs_watch_options *options, mt_vfs_watch **ret, mt_err **err);
void mt_vfs_watch_free(mt_vfs_watch *w); // accepts NULL

// A run that mounts this file system lives. Out of memory is a file system that is not watched.
void mt_vfs_watch_join(mt_vfs_watch *w, const char *run_id, const char *vfs_id);
// It has ended.
void mt_vfs_watch_leave(mt_vfs_watch *w, const char *run_id);
void mt_vfs_watch_usage(mt_vfs_watch *w, const char *run_id, uint64_t file_bytes,
                        uint64_t dirty_bytes);

// Whether it held more than it may when it was measured last, after runs had grown it. Any thread.
bool mt_vfs_watch_is_over(mt_vfs_watch *w, const char *vfs_id);
// It is not any more: somebody has looked. Any thread.
void mt_vfs_watch_forgive(mt_vfs_watch *w, const char *vfs_id);

// Below so many free bytes on a disk of that size no run starts; below half of it the run that
// fills it is ended.
uint64_t mt_disk_floor(uint64_t disk_bytes);
