// SPDX-License-Identifier: Apache-2.0
// Names of files: "/vfs/NAME[@NAMESPACE]/PATH" is a file of a file system, everything else a local
// one ("//vfs/…" and "./vfs/…" too). And what the server lists about them.
#pragma once

#include "cli/cli.h"

typedef struct vfs_path {
    char *vfs, *ns;
    char *path;         // "/a/b", "/" for the root; no ".", "..", doubled or ending slash
    bool ends_in_slash; // it was written so: a folder is meant
} vfs_path;

bool vfs_path_is(const char *word);
int vfs_path_parse(cli *c, const char *word, vfs_path *ret, mt_err **err); // asks for the namespace
void vfs_path_done(vfs_path *p);
#define _cleanup_vfs_path_ _cleanup_(vfs_path_done)
char *vfs_path_join(const char *folder, const char *rel); // "/a" + "b/c"; rel may be ""
const char *vfs_path_name(const vfs_path *p); // its last part; the file system's for the root

// ".../VERB?path=PATH" for path in p's file system; VERB alone where path is NULL.
char *vfs_url(const vfs_path *p, const char *verb, const char *path);

typedef enum vfs_type { VFS_FILE, VFS_FOLDER, VFS_LINK, VFS_OTHER } vfs_type;
vfs_type vfs_item_type(const mt_json *item);
// A member that is a path or name, as bytes: with nameEscaped its %XX are undone.
char *vfs_item_bytes(const mt_json *item, const char *member);
int vfs_stat(cli *c, const vfs_path *p, const char *path, mt_json **ret, mt_err **err);
// Whether path is there as a folder: 1, 0 (also for nothing), -1.
int vfs_is_folder(cli *c, const vfs_path *p, const char *path, mt_err **err);
