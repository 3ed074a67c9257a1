// SPDX-License-Identifier: Apache-2.0
// Changes of the tree: folders, links, moving, deleting.
#include "vfs/vfs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int fail_root(const char *field, const char *verb, mt_err **err)
{
    return mt_fail_field(err, MT_E_BAD_PATH, field,
                         "'/' is the whole file system and cannot be %s: name what is in it", verb);
}

static int fail_taken(const mt_vfs_path *path, mt_err **err)
{
    return mt_fail_field(err, MT_E_ALREADY_EXISTS, "path", "'%s' is there already",
                         VFS_SHOWN(path->text));
}

// Folders are synced after a change, so that what was answered outlives a power cut.
static int sync_folder(int dir, const mt_vfs_path *path, mt_err **err)
{
    if (fsync(dir) < 0)
        return mt_fail_errno(err, errno, "cannot sync the folder of '%s'", VFS_SHOWN(path->text));
    return 0;
}

// ---- folders ----

// Whether what has the name is a folder.
static bool is_folder(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

int mt_vfs_mkdir(const mt_vfs *vfs, const mt_vfs_path *path, bool parents, mt_err **err)
{
    _cleanup_close_ int dir = -1;
    const char *name = mt_vfs_path_name(path);
    int r;

    if (path->len == 1)
        return parents ? 1 : fail_taken(path, err);
    if (parents) {
        if (vfs_make_parents(vfs, path, &dir, err) < 0)
            return -1;
    } else {
        dir = vfs_open_parent(vfs, path, VFS_DIR_FLAGS);
        if (dir < 0)
            return vfs_fail(vfs, dir, path, err);
    }
    r = vfs_make_folder(vfs, dir, name, err);
    if (r < 0)
        return -1;
    if (r > 0)
        return parents && is_folder(dir, name) ? 1 : fail_taken(path, err);
    return sync_folder(dir, path, err);
}

// ---- links ----

// Made in tmp, where no capsule can swap it before it has its owner, then moved into place.
int mt_vfs_link(const mt_vfs *vfs, const mt_vfs_path *path, mt_str target, mt_err **err)
{
    _cleanup_close_ int dir = -1;
    _cleanup_free_ char *text = NULL;
    char name[VFS_TMP_NAME];
    int e = 0;

    if (path->len == 1 || path->folder)
        return fail_taken(path, err);
    if (target.len == 0 || target.len > MT_VFS_PATH_MAX || memchr(target.data, 0, target.len))
        return mt_fail_field(err, MT_E_BAD_FIELD, "target",
                             "target must have 1 to 4095 bytes and no NUL");
    if (vfs_check_limit(vfs, 0, err) < 0 || vfs_make_parents(vfs, path, &dir, err) < 0)
        return -1;
    text = mt_str_dup(target);
    if (!text)
        return mt_fail_oom(err);
    vfs_tmp_name("link-", name);
    if (symlinkat(text, vfs->tmp, name) < 0)
        return mt_fail_errno(err, errno, "cannot make the link '%s'", VFS_SHOWN(path->text));
    if (geteuid() == 0 && fchownat(vfs->tmp, name, vfs->uid, vfs->gid, AT_SYMLINK_NOFOLLOW) < 0)
        e = errno;
    if (!e && renameat2(vfs->tmp, name, dir, mt_vfs_path_name(path), RENAME_NOREPLACE) < 0)
        e = errno;
    if (!e)
        return sync_folder(dir, path, err);
    (void)unlinkat(vfs->tmp, name, 0);
    if (e == EEXIST)
        return fail_taken(path, err);
    return mt_fail_errno(err, e, "cannot make the link '%s'", VFS_SHOWN(path->text));
}

// ---- moving ----

static int fail_move(int e, const mt_vfs_path *from, const mt_vfs_path *to, mt_err **err)
{
    const char *a = VFS_SHOWN(from->text), *b = VFS_SHOWN(to->text);

    switch (e) {
    case EEXIST:
        return mt_fail_field(err, MT_E_ALREADY_EXISTS, "to",
                             "'%s' is there already: name another, or ask to replace it", b);
    case ENOTEMPTY:
        return mt_fail_field(err, MT_E_NOT_EMPTY, "to", "the folder '%s' is not empty", b);
    case EISDIR:
        return mt_fail_field(err, MT_E_IS_A_FOLDER, "to",
                             "'%s' is a folder and '%s' is not: it cannot take its place", b, a);
    case ENOTDIR:
        return mt_fail_field(err, MT_E_NOT_A_FOLDER, "to",
                             "'%s' is not a folder and '%s' is: it cannot take its place", b, a);
    case EINVAL:
        return mt_fail_field(err, MT_E_BAD_PATH, "to", "'%s' cannot be moved into itself", a);
    case ENOENT:
        return mt_fail_field(err, MT_E_NOT_FOUND, "from", "no file or folder '%s'", a);
    case EBUSY:
    case EXDEV:
        return mt_fail_field(err, MT_E_CONFLICT, "from",
                             "something is mounted at '%s' or '%s': it stays", a, b);
    default:
        return mt_fail_errno(err, e, "cannot move '%s' to '%s'", a, b);
    }
}

// rename() does nothing, and says so to nobody, when both names are hard links to one file.
static void drop_twin(int from_dir, const char *from, int to_dir, const char *to)
{
    struct stat a, b;

    if (from_dir == to_dir && mt_streq(from, to))
        return;
    if (fstatat(from_dir, from, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
        fstatat(to_dir, to, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_ino == b.st_ino &&
        !S_ISDIR(a.st_mode))
        (void)unlinkat(from_dir, from, 0);
}

static int open_ends(const mt_vfs *vfs, const mt_vfs_path *from, const mt_vfs_path *to,
                     int *from_dir, int *to_dir, mt_err **err)
{
    if (from->len == 1)
        return fail_root("from", "moved", err);
    if (to->len == 1)
        return fail_root("to", "replaced", err);
    *from_dir = vfs_open_parent(vfs, from, VFS_DIR_FLAGS);
    if (*from_dir < 0)
        return vfs_fail(vfs, *from_dir, from, err);
    *to_dir = vfs_open_parent(vfs, to, VFS_DIR_FLAGS);
    if (*to_dir == -ENOENT)
        return mt_fail_field(err, MT_E_NOT_FOUND, "to", "the folder of '%s' is not there",
                             VFS_SHOWN(to->text));
    return *to_dir < 0 ? vfs_fail(vfs, *to_dir, to, err) : 0;
}

int mt_vfs_move(const mt_vfs *vfs, const mt_vfs_path *from, const mt_vfs_path *to, bool replace,
                mt_err **err)
{
    _cleanup_close_ int from_dir = -1, to_dir = -1;
    const char *a = mt_vfs_path_name(from), *b = mt_vfs_path_name(to);
    bool same = mt_streq(from->text, to->text);
    struct stat st;

    if (open_ends(vfs, from, to, &from_dir, &to_dir, err) < 0)
        return -1;
    // A name that ends in "/" is a folder's.
    if (to->folder && (fstatat(from_dir, a, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)))
        return mt_fail_field(err, MT_E_BAD_PATH, "to",
                             "'%s/' ends in '/' and '%s' is no folder: give the whole new name",
                             VFS_SHOWN(to->text), VFS_SHOWN(from->text));
    if (renameat2(from_dir, a, to_dir, b, replace ? 0 : RENAME_NOREPLACE) < 0)
        return fail_move(errno, from, to, err);
    if (replace && !same)
        drop_twin(from_dir, a, to_dir, b);
    if (sync_folder(to_dir, to, err) < 0)
        return -1;
    return sync_folder(from_dir, from, err);
}

// ---- deleting ----

static int fail_delete(const mt_vfs *vfs, int e, const mt_vfs_path *path, mt_err **err)
{
    const char *shown = VFS_SHOWN(path->text);

    switch (e) {
    case ENOTEMPTY:
    case EEXIST:
        return mt_fail_field(err, MT_E_NOT_EMPTY, "path", "the folder '%s' is not empty", shown);
    case EBUSY:
    case EXDEV:
        return mt_fail_field(err, MT_E_CONFLICT, "path", "something is mounted at '%s': it stays",
                             shown);
    default:
        return vfs_fail(vfs, e, path, err);
    }
}

// One rename takes the tree out of sight; what removes it afterwards cannot be led astray by a
// process that goes on using the old path.
static int delete_tree(const mt_vfs *vfs, int dir, const mt_vfs_path *path, mt_err **err)
{
    char name[VFS_TMP_NAME];

    vfs_tmp_name("gone-", name);
    if (renameat2(dir, mt_vfs_path_name(path), vfs->tmp, name, RENAME_NOREPLACE) < 0)
        return fail_delete(vfs, errno, path, err);
    vfs_used_changed(vfs);
    if (vfs_purge(vfs->tmp, name, err) < 0)
        return mt_wrap(err, "removing '%s'", VFS_SHOWN(path->text));
    return 0;
}

int mt_vfs_delete(const mt_vfs *vfs, const mt_vfs_path *path, bool recursive, mt_err **err)
{
    _cleanup_close_ int dir = -1;
    const char *name = mt_vfs_path_name(path);

    if (path->len == 1)
        return fail_root("path", "deleted", err);
    dir = vfs_open_parent(vfs, path, O_PATH);
    if (dir < 0)
        return vfs_fail(vfs, dir, path, err);
    if (path->folder ? is_folder(dir, name) : false) {
        // asked for as a folder, and it is one: go straight to it
    } else if (unlinkat(dir, name, 0) == 0) {
        return 0;
    } else if (errno != EISDIR) {
        return fail_delete(vfs, errno, path, err);
    }
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOTEMPTY || !recursive)
        return fail_delete(vfs, errno, path, err);
    return delete_tree(vfs, dir, path, err);
}
