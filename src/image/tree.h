// SPDX-License-Identifier: Apache-2.0
// Folder trees of an image: removed, copied, measured. Links are never followed and other file
// systems never entered. The trees are root's own, written by Debian's package scripts: not
// hostile, but the code would survive it.
#pragma once

#include "base/err.h"

enum { MT_TREE_DIGEST_TEXT = 65 };

typedef struct mt_tree_sum {
    char digest[MT_TREE_DIGEST_TEXT]; // BLAKE2b-256 in hex over every line of the manifest
    int64_t bytes;                    // of regular files, each hard link once
    int64_t files;                    // entries of every kind
} mt_tree_sum;

// A missing tree is no error. Also for a file.
int mt_tree_remove(const char *path, mt_err **err);
// Copies the folder from into the folder to (made when missing), over what is there. Owners become
// root, times are kept, modes are kept less the write bits of others.
int mt_tree_copy(const char *from, const char *to, mt_err **err);
// Walks the tree in byte order of names. Each entry is a line of the manifest: type, mode, owner,
// size, digest of the content or target of the link, path (escaped). manifest_fd: where the lines
// go, -1 for nowhere.
int mt_tree_sum_up(const char *path, int manifest_fd, mt_tree_sum *ret, mt_err **err);
