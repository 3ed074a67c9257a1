// SPDX-License-Identifier: Apache-2.0
// Uploads: a file in tmp that commit renames into place.
#include "vfs/vfs-internal.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

struct mt_vfs_upload {
    struct mt_vfs vfs; // own copies of the fds
    mt_vfs_path path;
    int fd;
    uint64_t size;
    struct vfs_claims *claims; // NULL: it is not bounded
    uint64_t claimed, limit;
    char name[VFS_TMP_NAME]; // in tmp; empty once it is in place or was given up
};

mt_vfs_upload *mt_vfs_upload_free(mt_vfs_upload *up)
{
    if (!up)
        return NULL;
    if (up->name[0])
        (void)unlinkat(up->vfs.tmp, up->name, 0);
    if (up->claims)
        vfs_claims_leave(up->claims, up->claimed);
    mt_close_fd(&up->fd);
    mt_close_fd(&up->vfs.files);
    mt_close_fd(&up->vfs.tmp);
    free(up);
    return NULL;
}

static int fail_folder(const mt_vfs_path *path, mt_err **err)
{
    return mt_fail_field(err, MT_E_IS_A_FOLDER, "path",
                         "'%s' is a folder: give the name of a file in it", VFS_SHOWN(path->text));
}

// What can be refused before the content comes.
static int check_place(const mt_vfs *vfs, const mt_vfs_path *path, mt_err **err)
{
    _cleanup_close_ int dir = -1;
    struct stat st;

    if (path->len == 1 || path->folder)
        return fail_folder(path, err);
    dir = vfs_open_parent(vfs, path, O_PATH);
    if (dir == -ENOENT)
        return 0;
    if (dir < 0)
        return vfs_fail(vfs, dir, path, err);
    if (fstatat(dir, mt_vfs_path_name(path), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return fail_folder(path, err);
    return 0;
}

static int open_temporary(mt_vfs_upload *up)
{
    char name[VFS_TMP_NAME];

    vfs_tmp_name("up-", name);
    up->fd = openat(up->vfs.tmp, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (up->fd < 0)
        return -errno;
    memcpy(up->name, name, sizeof(name));
    return vfs_adopt(up->fd, up->vfs.uid, up->vfs.gid, VFS_FILE_MODE);
}

static int open_upload(mt_vfs_upload *up, const mt_vfs *vfs)
{
    up->vfs.files = fcntl(vfs->files, F_DUPFD_CLOEXEC, 3);
    if (up->vfs.files < 0)
        return -errno;
    up->vfs.tmp = fcntl(vfs->tmp, F_DUPFD_CLOEXEC, 3);
    return up->vfs.tmp < 0 ? -errno : open_temporary(up);
}

int mt_vfs_upload_begin(const mt_vfs *vfs, const mt_vfs_path *path, int64_t announced_size,
                        mt_vfs_upload **ret, mt_err **err)
{
    mt_vfs_upload *up;
    int r;

    if (check_place(vfs, path, err) < 0 ||
        vfs_check_limit(vfs, announced_size > 0 ? (uint64_t)announced_size : 0, err) < 0)
        return -1;
    up = calloc(1, sizeof(*up));
    if (!up)
        return mt_fail_oom(err);
    up->path = *path;
    up->fd = -1;
    up->vfs = *vfs;
    up->vfs.files = up->vfs.tmp = -1;
    r = open_upload(up, vfs);
    if (r < 0) {
        (void)mt_vfs_upload_free(up);
        return mt_fail_errno(err, r, "cannot begin the upload of '%s'", VFS_SHOWN(path->text));
    }
    *ret = up;
    return 0;
}

int mt_vfs_upload_bound(mt_vfs_upload *up, uint64_t used, uint64_t limit)
{
    if (!up->claims)
        up->claims = vfs_claims_join(&up->vfs, used);
    up->limit = limit;
    return up->claims ? mt_vfs_upload_claim(up, 0) : -ENOMEM;
}

// Its claim is already somebody else's to have: its blocks go now, not when its client has heard of
// it.
static void give_up(mt_vfs_upload *up)
{
    (void)!ftruncate(up->fd, 0);
    if (up->name[0])
        (void)unlinkat(up->vfs.tmp, up->name, 0);
    up->name[0] = 0;
}

int mt_vfs_upload_claim(mt_vfs_upload *up, uint64_t size)
{
    uint64_t more = size > up->claimed ? size - up->claimed : 0;

    if (!up->claims || vfs_claims_add(up->claims, &up->claimed, more, up->limit))
        return 0;
    give_up(up);
    return -EDQUOT;
}

int mt_vfs_upload_write(mt_vfs_upload *up, const void *data, size_t len, mt_err **err)
{
    int r;

    if (vfs_check_limit(&up->vfs, up->size + len, err) < 0)
        return -1;
    r = mt_write_full(up->fd, data, len);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot write '%s'", VFS_SHOWN(up->path.text));
    up->size += len;
    return 0;
}

int mt_vfs_upload_fd(mt_vfs_upload *up)
{
    return up->fd;
}

// Permission bits that a replaced file had stay (a script that was made executable inside stays
// so); what makes programs privileged does not.
static int keep_mode(const mt_vfs_upload *up, int dir, const char *name, mt_err **err)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return 0;
    if (fchmod(up->fd, VFS_FILE_MODE | (st.st_mode & 0777)) < 0)
        return mt_fail_errno(err, errno, "cannot keep the mode of '%s'", VFS_SHOWN(up->path.text));
    return 0;
}

// 0 new, 1 replaced.
static int put_in_place(mt_vfs_upload *up, int dir, const char *name, mt_err **err)
{
    int replaced = 0;

    if (renameat2(up->vfs.tmp, up->name, dir, name, RENAME_NOREPLACE) < 0) {
        if (errno == EEXIST) {
            replaced = 1;
            errno = renameat(up->vfs.tmp, up->name, dir, name) < 0 ? errno : 0;
        }
        if (errno == EISDIR)
            return fail_folder(&up->path, err);
        if (errno == EBUSY)
            return mt_fail_field(err, MT_E_CONFLICT, "path",
                                 "something is mounted at '%s': it stays",
                                 VFS_SHOWN(up->path.text));
        if (errno)
            return mt_fail_errno(err, errno, "cannot put '%s' into place",
                                 VFS_SHOWN(up->path.text));
    }
    up->name[0] = 0;
    return replaced;
}

int mt_vfs_upload_commit(mt_vfs_upload *up, mt_arena *arena, mt_vfs_entry *ret, mt_err **err)
{
    _cleanup_close_ int dir = -1;
    const char *name = mt_vfs_path_name(&up->path);
    struct stat st;
    int replaced;

    if (!up->name[0])
        return mt_fail(err, MT_E_INTERNAL, "the upload is over");
    if (fstat(up->fd, &st) < 0)
        return mt_fail_errno(err, errno, "cannot look at the upload of '%s'",
                             VFS_SHOWN(up->path.text));
    if (vfs_check_limit(&up->vfs, (uint64_t)st.st_size, err) < 0 ||
        vfs_make_parents(&up->vfs, &up->path, &dir, err) < 0 || keep_mode(up, dir, name, err) < 0)
        return -1;
    if (fsync(up->fd) < 0)
        return mt_fail_errno(err, errno, "cannot write '%s' to the disk", VFS_SHOWN(up->path.text));
    replaced = put_in_place(up, dir, name, err);
    if (replaced < 0)
        return -1;
    vfs_used_grew(&up->vfs, up->claims, &up->claimed, (uint64_t)st.st_size);
    if (fsync(dir) < 0 || fstat(up->fd, &st) < 0)
        return mt_fail_errno(err, errno, "cannot sync the folder of '%s'",
                             VFS_SHOWN(up->path.text));
    if (ret && !vfs_fill(arena, ret, up->path.text, &st, NULL))
        return mt_fail_oom(err);
    return replaced;
}
