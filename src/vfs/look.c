// SPDX-License-Identifier: Apache-2.0
// Looking at one thing: stat, opening a file to read; and reading folders entry by entry.
#include "vfs/vfs-internal.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static const char *const TYPE_NAMES[] = {
    [MT_VFS_FILE] = "file", [MT_VFS_FOLDER] = "folder", [MT_VFS_LINK] = "link",
    [MT_VFS_FIFO] = "fifo", [MT_VFS_SOCKET] = "socket", [MT_VFS_DEVICE] = "device",
};

const char *mt_vfs_type_name(mt_vfs_type type)
{
    return TYPE_NAMES[type];
}

mt_vfs_type mt_vfs_type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return MT_VFS_FILE;
    case S_IFDIR:
        return MT_VFS_FOLDER;
    case S_IFLNK:
        return MT_VFS_LINK;
    case S_IFIFO:
        return MT_VFS_FIFO;
    case S_IFSOCK:
        return MT_VFS_SOCKET;
    default:
        return MT_VFS_DEVICE;
    }
}

bool vfs_fill(mt_arena *arena, mt_vfs_entry *entry, const char *full_path, const struct stat *st,
              const char *target)
{
    mt_vfs_entry e = {
        .path = mt_arena_strdup(arena, full_path),
        .target = target ? mt_arena_strdup(arena, target) : NULL,
        .type = mt_vfs_type_of(st->st_mode),
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .mode = st->st_mode & 07777,
        .modified_us = mt_timespec_ns(st->st_mtim) / 1000,
        .modified_ns_ = mt_timespec_ns(st->st_mtim),
        .changed_ns_ = mt_timespec_ns(st->st_ctim),
        .inode_ = st->st_ino,
    };

    if (!e.path || (target && !e.target))
        return false;
    e.name = strrchr(e.path, '/') + 1;
    *entry = e;
    return true;
}

int vfs_read_link(int fd, const char *name, char out[MT_VFS_PATH_MAX + 1])
{
    ssize_t n = readlinkat(fd, name, out, MT_VFS_PATH_MAX);

    if (n < 0)
        return -errno;
    out[n] = 0;
    return 0;
}

const char *mt_vfs_etag(const mt_vfs_entry *entry, char out[MT_VFS_ETAG_TEXT])
{
    // Times have the grain of the kernel's clock tick: two changes within one leave the same time.
    int64_t quiet_us = mt_now_us() - MT_MAX(entry->modified_ns_, entry->changed_ns_) / 1000;

    (void)snprintf(out, MT_VFS_ETAG_TEXT, "%s\"%llx-%llx-%llx-%llx\"",
                   quiet_us < 2000000 ? "W/" : "", (unsigned long long)entry->inode_,
                   (unsigned long long)entry->size, (unsigned long long)entry->modified_ns_,
                   (unsigned long long)entry->changed_ns_);
    return out;
}

int mt_vfs_stat(const mt_vfs *vfs, const mt_vfs_path *path, mt_arena *arena, mt_vfs_entry *ret,
                mt_err **err)
{
    _cleanup_close_ int fd = vfs_openat(vfs->files, vfs_relative(path), O_PATH | O_NOFOLLOW);
    char target[MT_VFS_PATH_MAX + 1];
    struct stat st;
    bool link;
    int r;

    if (fd < 0)
        return vfs_fail(vfs, fd, path, err);
    if (fstat(fd, &st) < 0)
        return vfs_fail(vfs, errno, path, err);
    link = S_ISLNK(st.st_mode);
    if (link && (r = vfs_read_link(fd, "", target)) < 0)
        return vfs_fail(vfs, r, path, err);
    if (!vfs_fill(arena, ret, path->text, &st, link ? target : NULL))
        return mt_fail_oom(err);
    return 0;
}

// ---- reading a file ----

static int fail_type(mode_t mode, const mt_vfs_path *path, mt_err **err)
{
    const char *shown = VFS_SHOWN(path->text);

    if (S_ISDIR(mode))
        return mt_fail_field(err, MT_E_IS_A_FOLDER, "path", "'%s' is a folder", shown);
    if (S_ISLNK(mode))
        return mt_fail_field(err, MT_E_NOT_REGULAR_FILE, "path",
                             "'%s' is a link, not a regular file: links are not followed, name "
                             "what it points to",
                             shown);
    return mt_fail_field(err, MT_E_NOT_REGULAR_FILE, "path", "'%s' is not a regular file (%s)",
                         shown, TYPE_NAMES[mt_vfs_type_of(mode)]);
}

static int fail_open(const mt_vfs *vfs, int e, const mt_vfs_path *path, mt_err **err)
{
    switch (-e) {
    case ELOOP: // became a link since it was looked at
        return fail_type(S_IFLNK, path, err);
    case ENXIO: // became a socket
        return fail_type(S_IFSOCK, path, err);
    case EAGAIN: // open would have waited for a lease (fcntl F_SETLEASE) that it now breaks
        return mt_fail_field(err, MT_E_UNAVAILABLE, "path",
                             "a process in a capsule holds a lease on '%s': try again in a minute",
                             VFS_SHOWN(path->text));
    default:
        return vfs_fail(vfs, e, path, err);
    }
}

// The type is looked at before the open, so that a pipe is never opened (that alone wakes a writer
// waiting in it); O_NONBLOCK and the look after the open are for what is swapped in between.
int mt_vfs_open_file(const mt_vfs *vfs, const mt_vfs_path *path, mt_arena *arena, int *ret_fd,
                     mt_vfs_entry *ret, mt_err **err)
{
    _cleanup_close_ int parent = -1, fd = -1;
    const char *name = mt_vfs_path_name(path);
    struct stat st;

    if (path->len == 1)
        return fail_type(S_IFDIR, path, err);
    parent = vfs_open_parent(vfs, path, O_PATH);
    if (parent < 0)
        return vfs_fail(vfs, parent, path, err);
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return vfs_fail(vfs, errno, path, err);
    if (!S_ISREG(st.st_mode))
        return fail_type(st.st_mode, path, err);
    if (path->folder)
        return mt_fail_field(err, MT_E_NOT_A_FOLDER, "path",
                             "'%s' is not a folder: leave out the "
                             "'/' at the end",
                             VFS_SHOWN(path->text));
    fd = vfs_openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return fail_open(vfs, fd, path, err);
    if (fstat(fd, &st) < 0)
        return vfs_fail(vfs, errno, path, err);
    if (!S_ISREG(st.st_mode))
        return fail_type(st.st_mode, path, err);
    if (!vfs_fill(arena, ret, path->text, &st, NULL))
        return mt_fail_oom(err);
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}

// ---- reading a folder ----

int vfs_dir_next(struct vfs_dir *dir, const struct dirent64 **ret)
{
    for (;;) {
        const struct dirent64 *entry;

        if (dir->at >= dir->len) {
            ssize_t n;

            if (!dir->buffer && !(dir->buffer = malloc(VFS_DIR_BUFFER)))
                return -ENOMEM;
            n = getdents64(dir->fd, dir->buffer, VFS_DIR_BUFFER);
            if (n < 0)
                return errno == ENOENT ? 0 : -errno; // ENOENT: the folder was removed meanwhile
            if (n == 0)
                return 0;
            dir->at = 0;
            dir->len = (size_t)n;
        }
        entry = (const struct dirent64 *)(dir->buffer + dir->at);
        dir->at += entry->d_reclen;
        if (mt_streq(entry->d_name, ".") || mt_streq(entry->d_name, ".."))
            continue;
        *ret = entry;
        return 1;
    }
}

void vfs_dir_done(struct vfs_dir *dir)
{
    free(dir->buffer);
    dir->buffer = NULL;
    dir->at = dir->len = 0;
}
