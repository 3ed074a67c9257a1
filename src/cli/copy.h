// SPDX-License-Identifier: Apache-2.0
// Moving the content of files between here and a file system, safe against what either side lists:
// local paths are walked part by part and no link is ever followed below the place that was named.
#pragma once

#include "cli/vfs-path.h"

// Whole, on stdout. A reader that left ends mt in silence, as SIGPIPE does.
int cli_write_out(const void *data, size_t len, mt_err **err);
int copy_to_stdout(cli *c, const vfs_path *from, mt_err **err);

// One entry of a tree.
typedef struct tree_item {
    char *rel; // "a/b" below the top; "" is the top itself
    vfs_type type;
    uint64_t size;
    char *target; // of a link
} tree_item;
typedef struct tree {
    tree_item *items;
    size_t count;
    uint64_t bytes; // of its files
} tree;
void tree_done(tree *t);
void tree_add(tree *t, tree_item item); // takes the strings

// A relative path whose parts are all names: none is "", "." or "..".
bool rel_is_plain(const char *rel);
// Whether a link at rel may be kept: its target is relative and, from its own folder, only goes up
// at its beginning and never above the top. Then no chain of such links leads out of the tree.
bool link_is_harmless(const char *rel, const char *target);

// What is at the local path: the top, and with recursive all that is in it. Links below the top are
// listed, not followed.
int tree_scan_local(const char *path, bool recursive, tree *ret, mt_err **err);
// What a server lists below the folder; what is no path below it is left out, with a warning.
void tree_add_list(cli *c, const mt_json *items, const char *folder, tree *t);
int tree_scan_vfs(cli *c, const vfs_path *p, bool recursive, tree *ret, mt_err **err);

// The folder that holds rel below root, by steps that follow no link; made when missing and asked
// for. *ret_name points to the last part of rel. fd, or -1 with *err.
int beneath_parent(int root, const char *rel, bool make, const char **ret_name, mt_err **err);
int beneath_mkdir(int root, const char *rel, mt_err **err);
int beneath_open_file(int root, const char *rel, mt_err **err); // a regular file, for reading
