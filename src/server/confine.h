// SPDX-License-Identifier: Apache-2.0
// How maitentod gives up what it does not need: root becomes the service user with two
// capabilities, and Landlock lets it write only where state lives.
#pragma once

#include "base/err.h"

#include <sys/types.h>

// As root: a mount namespace of its own, in which vfs_path is nosuid, nodev, noexec.
int mt_confine_mounts(const char *vfs_path, mt_err **err);
// Root to uid:gid, keeping CAP_DAC_OVERRIDE and CAP_FOWNER (files that capsules made in a VFS); all
// other capabilities are gone for good, no_new_privs is set. Does nothing when not root.
int mt_confine_user(uid_t uid, gid_t gid, mt_err **err);
// 0: restricted, 1: this kernel has no Landlock. writable: folders, ended by NULL.
int mt_confine_files(const char *const *writable, mt_err **err);
