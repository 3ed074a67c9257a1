// SPDX-License-Identifier: Apache-2.0
// Names of files: "/vfs/NAME[@NAMESPACE]/PATH" is a file of a file system, "run:RUN:PATH" one of a
// run, everything else a local one ("//vfs/…", "./vfs/…" and "./run:…" too). And what the server
// lists about them.
#pragma once

#include "cli/cli.h"

typedef struct vfs_path {
    char *vfs, *ns;
    char *run;          // its id, for a file of a run: then vfs and ns are NULL
    const char *user;   // of the run's, or NULL; not owned
    char *path;         // "/a/b", "/" for the root; no ".", "..", doubled or ending slash
    bool ends_in_slash; // it was written so: a folder is meant
} vfs_path;

bool vfs_path_is(const char *word);
// Asks the server for the namespace, the run's id, the user's home, where they are not said.
int vfs_path_parse(cli *c, const char *word, vfs_path *ret, mt_err **err);
void vfs_path_done(vfs_path *p);
#define _cleanup_vfs_path_ _cleanup_(vfs_path_done)
char *vfs_path_join(const char *folder, const char *rel); // "/a" + "b/c"; rel may be ""
const char *vfs_path_name(
    const vfs_path *p); // its last part; the file system's or run's for the root

// ".../VERB?path=PATH" for path in p's file system; VERB alone where path is NULL.
char *vfs_url(const vfs_path *p, const char *verb, const char *path);
mt_json *vfs_body(const vfs_path *p);                // of a request without a path in its URL
bool vfs_same(const vfs_path *a, const vfs_path *b); // file system or run
// For --user of the commands that take paths.
#define VFS_USER_OPTION                                                     \
    {                                                                       \
        "user", 'u', "USER", "as this user of the run (files of runs only)" \
    }

typedef enum vfs_type { VFS_FILE, VFS_FOLDER, VFS_LINK, VFS_OTHER } vfs_type;
vfs_type vfs_item_type(const mt_json *item);
// A member that is a path or name, as bytes: with nameEscaped its %XX are undone.
char *vfs_item_bytes(const mt_json *item, const char *member);
int vfs_stat(cli *c, const vfs_path *p, const char *path, mt_json **ret, mt_err **err);
// Whether path is there as a folder: 1, 0 (also for nothing), -1.
int vfs_is_folder(cli *c, const vfs_path *p, const char *path, mt_err **err);
