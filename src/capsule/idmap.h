// SPDX-License-Identifier: Apache-2.0
// Shifted owners: user namespaces that serve as id maps, and detached mounts seen through them.
#pragma once

#include "base/err.h"

#include <sys/types.h>

enum {
    MT_BLOCK_IDS = 65536,
    MT_BLOCK_FIRST = 0x70000000, // uid block n begins at MT_BLOCK_FIRST + n * 65536
    MT_BLOCK_COUNT = 4095,       // so that the last id stays below 2^31
    MT_VFS_FIRST = 0x6fff0000,   // V: owners in file systems, but for the service user
    MT_MAITENTO_UID = 1000,      // the default user inside
    MT_IDMAP_RANGES_MAX = 8,
};

typedef struct mt_id_range {
    uint32_t first; // in the namespace; for a mount: as on the disk
    uint32_t host;  // outside; for a mount: as seen through it
    uint32_t count;
} mt_id_range;

// A user namespace with these ranges as both its uid and its gid map (the kernel wants both), held
// by nothing but the fd. A helper process is cloned and reaped.
int mt_idmap_userns(const mt_id_range *ranges, size_t count, int *ret_fd, mt_err **err);
// Owners of images and layers: "0 base 65536".
int mt_idmap_image(uint32_t base, int *ret_fd, mt_err **err);
// Owners of file systems: "V base 1000", "S base+1000 1", "V+1001 base+1001 64535". The group map
// is the same with the service's gid.
int mt_idmap_vfs(uint32_t base, uid_t service_uid, gid_t service_gid, int *ret_fd, mt_err **err);

// A detached copy of the mount at path under dirfd ("" for dirfd itself), not recursive, shown
// through the map (userns_fd -1: none), with the MOUNT_ATTR_… of attrs set. dirfd must belong to
// the caller's mount namespace.
int mt_idmap_mount(int dirfd, const char *path, int userns_fd, uint64_t attrs, int *ret_fd,
                   mt_err **err);
