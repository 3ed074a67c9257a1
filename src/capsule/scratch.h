// SPDX-License-Identifier: Apache-2.0
// Where runs write: the scratch disk. One fully allocated file with btrfs in it on one loop device,
// mounted only in the runner's own mount namespace; each run has a subvolume with a limit:
//
//   <scratch>/runs/<run id>/{upper,work}     owned by the run's uid base
//   <scratch>/ready/N                        made ahead, without identity
//   <scratch>/dead/<run id>-N                waiting to be deleted by the janitor process
//
// Where btrfs or loop devices are not there, runs get a tmpfs of their own instead (kind tmpfs); it
// counts as their memory. mt_scratch_reason() says why, for the doctor.
// Nothing of a run is deleted in the caller: mt_scratch_drop() renames, the janitor deletes.
#pragma once

#include "base/err.h"

#include <sys/types.h>

typedef struct mt_scratch mt_scratch;

typedef struct mt_scratch_options {
    const char *file;    // path of the image file; made when missing
    uint64_t size_bytes; // 0: the lesser of 20 GiB and a quarter of the free disk
    bool force_tmpfs;    // for tests of the fallback
} mt_scratch_options;

// Never fails for want of btrfs: then kind is tmpfs and the reason is kept. May run mkfs.btrfs. The
// mount is detached: before anything is mounted from it, attach it (mt_scratch_mount_fd) somewhere
// in the private mount namespace that is to have it.
int mt_scratch_open(const mt_scratch_options *o, mt_scratch **ret, mt_err **err);
void mt_scratch_close(mt_scratch *s); // fds; the mount dies with the mount namespace
bool mt_scratch_is_btrfs(const mt_scratch *s);
int mt_scratch_mount_fd(const mt_scratch *s);       // stays the scratch's; -1 for tmpfs
const char *mt_scratch_reason(const mt_scratch *s); // "" for btrfs
// Free is what nobody has written to, nor has been promised by the file system for what is in
// memory.
void mt_scratch_space(const mt_scratch *s, uint64_t *ret_bytes, uint64_t *ret_free);
// Of a disk of that size: below so much free space a run is ended, below twice that none starts.
uint64_t mt_scratch_floor(uint64_t bytes);
// What the run of that place has written there, in bytes; 0 where it cannot be known.
uint64_t mt_scratch_used(const mt_scratch *s, const char *place);

// The run's own folder with `upper` (mode 0755) and `work`, owned by uid_base. -EEXIST kind of
// failure when the run has one. Only for btrfs. *ret_fd: O_PATH folder fd; the subvolume's id for
// mt_scratch_limit(). disk_bytes 0: no limit as yet. place: capsule/place.h.
int mt_scratch_make(mt_scratch *s, const char *place, uint64_t disk_bytes, uint32_t uid_base,
                    int *ret_fd, uint64_t *ret_subvolume, mt_err **err);
int mt_scratch_limit(mt_scratch *s, uint64_t subvolume, uint64_t disk_bytes, mt_err **err);
// What tells how much a run has written, without privileges: an fd of the caller's, or -1.
int mt_scratch_usage_fd(const mt_scratch *s, uint64_t subvolume);
// Whether what was written came up against the limit. The file system counts at its commits, and
// commits when somebody is refused.
bool mt_scratch_met(int usage_fd, uint64_t disk_bytes);
// Makes ready-made ones until `count` are there; at most one per call. 1: made one, 0: enough.
int mt_scratch_fill(mt_scratch *s, unsigned count);
// Gives the run's folder to the janitor; none there is fine.
int mt_scratch_drop(mt_scratch *s, const char *place);
// Deletes what waits in dead/: for the janitor's process, never for the runner's.
void mt_scratch_janitor(mt_scratch *s);
bool mt_scratch_pending(
    const mt_scratch *s); // something of what it deleted is still to be forgotten
// Names that have a folder.
int mt_scratch_each(mt_scratch *s, void (*fn)(const char *place, void *data), void *data);
