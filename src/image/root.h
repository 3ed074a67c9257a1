// SPDX-License-Identifier: Apache-2.0
// Files of a root that is being built. Paths are relative to it; the last component is never
// followed, folders on the way are made (0755). The root is root's own and not yet run: links on
// the way (lib -> usr/lib) are relative in Debian and stay inside.
#pragma once

#include "base/err.h"

#include <sys/types.h>

int mt_root_write(const char *root, const char *path, const char *text, mode_t mode, mt_err **err);
int mt_root_remove(const char *root, const char *path, mt_err **err); // a missing one is no error
int mt_root_empty(const char *root, const char *path, mt_err **err);  // a missing one is no error
int mt_root_folder(const char *root, const char *path, mode_t mode, mt_err **err);
int mt_root_link(const char *root, const char *path, const char *target, mt_err **err);

// Gives a tree to the default user. path: of the host.
int mt_root_own(const char *path, mt_err **err);

// What makes a Debian root one for capsules: the user maitento (1000), profile without programs,
// plain files to mount over, no identity.
int mt_root_finish(const char *root, mt_err **err);
