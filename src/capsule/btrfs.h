// SPDX-License-Identifier: Apache-2.0
// The ioctls of btrfs and loop devices that the scratch disk needs; used by scratch.c only. Each
// returns 0 (or what is said) or a negative errno.
#pragma once

#include "base/macros.h"

#include <sys/types.h>

int mt_btrfs_quota_on(int fs_fd);
int mt_btrfs_subvolume_make(int parent_fd, const char *name);
int mt_btrfs_subvolume_id(int subvolume_fd, uint64_t *ret);
int mt_btrfs_subvolume_delete(int parent_fd, const char *name);
// Bytes that the subvolume may refer to; 0: no limit.
int mt_btrfs_limit(int fs_fd, uint64_t subvolume, uint64_t bytes);
// Forgets the quota group of a deleted subvolume; -EBUSY while it is still being cleaned.
int mt_btrfs_forget(int fs_fd, uint64_t subvolume);

// Commits, and wakes the kernel's cleaner of deleted subvolumes.
int mt_btrfs_sync(int fs_fd);
// A folder of what sysfs shows of the file system ("qgroups"): its fd or negative errno.
int mt_btrfs_sysfs(int fs_fd, const char *name);

// The loop device on this file: the one that is bound to it already, else a new one (*ret_new),
// which goes away with its last user. Never a second one on the same file: two caches over one file
// system destroy it. *ret_fd keeps it; path gets "/dev/loopN".
int mt_loop_attach(int file_fd, char path[32], int *ret_fd, bool *ret_new);
