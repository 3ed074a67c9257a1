// SPDX-License-Identifier: Apache-2.0
// How maitentod gives up what it does not need: root becomes the service user with two
// capabilities, and Landlock and its own mounts let it write only where state lives. A mount
// namespace of its own is why the two capabilities end there, too.
#pragma once

#include "base/err.h"

#include <sys/types.h>

// As root: a mount namespace of its own, in which all is read-only but the folders in writable
// (ended by NULL), which are nosuid, nodev, noexec. Sockets can still be connected to.
int mt_confine_mounts(const char *const *writable, mt_err **err);
// Root to uid:gid, keeping CAP_DAC_OVERRIDE and CAP_FOWNER (files that capsules made in a VFS); all
// other capabilities are gone for good, no_new_privs is set. Does nothing when not root.
int mt_confine_user(uid_t uid, gid_t gid, mt_err **err);
// 0: restricted, 1: this kernel has no Landlock. Lists of folders, ended by NULL; readable: besides
// what the C library reads.
int mt_confine_files(const char *const *writable, const char *const *readable, mt_err **err);
