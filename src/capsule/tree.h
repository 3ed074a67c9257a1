// SPDX-License-Identifier: Apache-2.0
// Folder trees with hostile content, removed and looked through: no link is followed, no other file
// system entered, no depth trusted.
#pragma once

#include "base/macros.h"

enum { MT_TREE_DEPTH_MAX = 400 };

// What is at path below dirfd, whatever it is; no folder on the way may be a link. Fine where there
// is nothing. 0 or negative errno.
int mt_tree_remove(int dirfd, const char *path);

typedef struct mt_tree_sum {
    uint64_t bytes; // that it takes on the disk; a file of several names is shared between them
    uint64_t entries;
} mt_tree_sum;

enum { MT_TREE_AS_IMAGE = 1u << 0 }; // -EPERM where an owner is above 65,535, and for devices

// Adds up the folder at path. 0 or negative errno.
int mt_tree_sum_up(int dirfd, const char *path, unsigned flags, mt_tree_sum *sum);
