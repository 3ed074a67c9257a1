// SPDX-License-Identifier: Apache-2.0
// File systems as wholes: made, opened, destroyed, swept; and the lookups that all else uses.
#include "vfs/vfs-internal.h"

#include "base/clock.h"
#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>

// ---- lookups ----

int vfs_openat(int dirfd, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NOCTTY),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };

    // O_PATH takes few other flags; openat2 refuses what open() would ignore.
    if (flags & O_PATH)
        how.flags &= (uint64_t)(O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (int tries = 0;; tries++) {
        int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

        // EAGAIN: the kernel could not tell in the face of a concurrent rename.
        if (fd >= 0 || (errno != EINTR && (errno != EAGAIN || tries >= 8)))
            return fd < 0 ? -errno : fd;
    }
}

const char *vfs_relative(const mt_vfs_path *path)
{
    return path->len == 1 ? "." : path->text + 1;
}

int vfs_open_parent(const mt_vfs *vfs, const mt_vfs_path *path, int flags)
{
    char parent[MT_VFS_PATH_MAX + 1];
    size_t len = (size_t)(mt_vfs_path_name(path) - path->text) - 1;

    if (len <= 1) // "/a", or "/" itself, which callers do not ask for
        return vfs_openat(vfs->files, ".", flags | O_DIRECTORY | O_NOFOLLOW);
    memcpy(parent, path->text + 1, len - 1);
    parent[len - 1] = 0;
    return vfs_openat(vfs->files, parent, flags | O_DIRECTORY | O_NOFOLLOW);
}

// Finds the first name on the way that is no folder and says what it is. For the error text only.
static int fail_in_the_way(const mt_vfs *vfs, const mt_vfs_path *path, mt_err **err)
{
    mt_vfs_path part = {.len = 0};
    struct stat st;

    for (size_t i = 1; i <= path->len; i++) {
        _cleanup_close_ int fd = -1;

        if (i < path->len && path->text[i] != '/')
            continue;
        memcpy(part.text, path->text, i);
        part.text[i] = 0;
        fd = vfs_openat(vfs->files, part.text + 1, O_PATH | O_NOFOLLOW);
        if (fd < 0 || fstat(fd, &st) < 0)
            break;
        if (S_ISLNK(st.st_mode))
            return mt_fail_field(err, MT_E_NOT_A_FOLDER, "path",
                                 "'%s' is a link: links are not followed, name what it points to",
                                 VFS_SHOWN(part.text));
        if (!S_ISDIR(st.st_mode))
            return mt_fail_field(err, MT_E_NOT_A_FOLDER, "path", "'%s' is not a folder",
                                 VFS_SHOWN(part.text));
    }
    return mt_fail_field(err, MT_E_NOT_A_FOLDER, "path",
                         "something on the way to '%s' is not a folder", VFS_SHOWN(path->text));
}

int vfs_fail(const mt_vfs *vfs, int e, const mt_vfs_path *path, mt_err **err)
{
    const char *shown = VFS_SHOWN(path->text);

    switch (e < 0 ? -e : e) {
    case ENOENT:
        return mt_fail_field(err, MT_E_NOT_FOUND, "path", "no file or folder '%s'", shown);
    case ELOOP:
    case ENOTDIR:
        return fail_in_the_way(vfs, path, err);
    case EXDEV:
        return mt_fail_field(err, MT_E_BAD_PATH, "path",
                             "another file system is mounted on the way to '%s'", shown);
    default:
        return mt_fail_errno(err, e, "cannot use '%s'", shown);
    }
}

int vfs_check_limit(const mt_vfs *vfs, uint64_t size, mt_err **err)
{
    return vfs->limit && vfs->limit(vfs->limit_data, size, err) != 0 ? -1 : 0;
}

void vfs_tmp_name(const char *prefix, char out[VFS_TMP_NAME])
{
    uint8_t bytes[8];
    char hex[2 * sizeof(bytes) + 1];

    mt_random_bytes(bytes, sizeof(bytes));
    mt_hex(bytes, sizeof(bytes), hex);
    (void)snprintf(out, VFS_TMP_NAME, "%s%s", prefix, hex);
}

// ---- making folders ----

int vfs_adopt(int fd, uid_t uid, gid_t gid, mode_t mode)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    // Only ever what is this process's own: between mkdir and open the name may have been taken by
    // something of the capsule's.
    if (st.st_uid != geteuid())
        return 0;
    if ((st.st_uid != uid || st.st_gid != gid) && geteuid() == 0 && fchown(fd, uid, gid) < 0)
        return -errno;
    if ((st.st_mode & 0777) != mode && fchmod(fd, mode | (st.st_mode & S_ISGID)) < 0)
        return -errno;
    return 0;
}

int vfs_make_folder(const mt_vfs *vfs, int dirfd, const char *name, mt_err **err)
{
    _cleanup_close_ int fd = -1;
    int r;

    if (vfs_check_limit(vfs, 0, err) < 0)
        return -1;
    if (mkdirat(dirfd, name, VFS_FOLDER_MODE) < 0) {
        if (errno == EEXIST)
            return 1;
        return mt_fail_errno(err, errno, "cannot make the folder '%s'", VFS_SHOWN(name));
    }
    fd = vfs_openat(dirfd, name, VFS_DIR_FLAGS);
    if (fd < 0) // swapped already: whatever stands there now is not ours to touch
        return 0;
    r = vfs_adopt(fd, vfs->uid, vfs->gid, VFS_FOLDER_MODE);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot set the owner of the folder '%s'", VFS_SHOWN(name));
    return 0;
}

// Opens the folder name under dirfd, making it when it is missing. It may vanish in between, so it
// is tried more than once.
static int enter_or_make(const mt_vfs *vfs, int dirfd, const char *name, const mt_vfs_path *path,
                         mt_err **err)
{
    for (int tries = 0; tries < 8; tries++) {
        int fd = vfs_openat(dirfd, name, VFS_DIR_FLAGS), r;

        if (fd != -ENOENT)
            return fd < 0 ? vfs_fail(vfs, fd, path, err) : fd;
        r = vfs_make_folder(vfs, dirfd, name, err);
        if (r < 0)
            return -1;
        if (r == 0 && fsync(dirfd) < 0)
            return mt_fail_errno(err, errno, "cannot sync the folder of '%s'", VFS_SHOWN(name));
    }
    return mt_fail(err, MT_E_CONFLICT, "the folders of '%s' are removed while they are made",
                   VFS_SHOWN(path->text));
}

int vfs_make_parents(const mt_vfs *vfs, const mt_vfs_path *path, int *ret_fd, mt_err **err)
{
    _cleanup_close_ int dir = vfs_open_parent(vfs, path, VFS_DIR_FLAGS);
    char text[MT_VFS_PATH_MAX + 1];
    char *last, *slash;

    if (dir < 0 && dir != -ENOENT)
        return vfs_fail(vfs, dir, path, err);
    if (dir >= 0) {
        *ret_fd = MT_TAKE_FD(dir);
        return 0;
    }
    dir = vfs_openat(vfs->files, ".", VFS_DIR_FLAGS);
    if (dir < 0)
        return vfs_fail(vfs, dir, path, err);
    memcpy(text, path->text, path->len + 1);
    last = strrchr(text, '/');
    for (char *name = text + 1; name < last; name = slash + 1) {
        int next;

        slash = strchr(name, '/');
        *slash = 0;
        next = enter_or_make(vfs, dir, name, path, err);
        if (next < 0)
            return -1;
        mt_close_fd(&dir);
        dir = next;
    }
    *ret_fd = MT_TAKE_FD(dir);
    return 0;
}

// ---- whole file systems ----

static int check_id(const char *id, mt_err **err)
{
    if (!mt_is_id(mt_str_of(id)))
        return mt_fail(err, MT_E_INTERNAL, "'%s' is no id of a file system", VFS_SHOWN(id));
    return 0;
}

static int make_part(int dirfd, const char *name, uid_t uid, gid_t gid, mode_t mode, bool acl)
{
    _cleanup_close_ int fd = -1;
    int r;

    if (mkdirat(dirfd, name, mode) < 0)
        return -errno;
    fd = vfs_openat(dirfd, name, VFS_DIR_FLAGS);
    if (fd < 0)
        return fd;
    r = acl ? vfs_set_default_acl(fd, uid) : 0;
    if (r == 0)
        r = vfs_adopt(fd, uid, gid, mode);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    return r;
}

static int fail_make(int e, const char *id, mt_err **err)
{
    if (e == -EOPNOTSUPP)
        return mt_fail(err, MT_E_IO,
                       "cannot make the file system '%s': the disk of the state folder keeps no "
                       "ACLs; use ext4, xfs or btrfs, mounted with acl",
                       id);
    return mt_fail_errno(err, e, "cannot make the file system '%s'", id);
}

// Made under another name and renamed: a crash leaves nothing that looks like a file system.
int mt_vfs_create(int root_fd, const char *id, uid_t uid, gid_t gid, mt_err **err)
{
    _cleanup_close_ int dir = -1;
    char name[VFS_TMP_NAME];
    int r;

    if (check_id(id, err) < 0)
        return -1;
    vfs_tmp_name(".new-", name);
    r = make_part(root_fd, name, uid, gid, 0700, false);
    if (r == 0 && (dir = vfs_openat(root_fd, name, VFS_DIR_FLAGS)) < 0)
        r = dir;
    if (r == 0)
        r = make_part(dir, "files", uid, gid, VFS_FOLDER_MODE, true);
    if (r == 0)
        r = make_part(dir, "tmp", uid, gid, 0700, false);
    if (r == 0 && fsync(dir) < 0)
        r = -errno;
    if (r == 0 && renameat2(root_fd, name, root_fd, id, RENAME_NOREPLACE) < 0)
        r = -errno;
    if (r == 0 && fsync(root_fd) < 0)
        return mt_fail_errno(err, errno, "cannot sync the folder of file systems");
    if (r == 0)
        return 0;
    (void)vfs_purge(root_fd, name, NULL);
    return fail_make(r, id, err);
}

static int open_parts(mt_vfs *vfs, int dir)
{
    vfs->files = vfs_openat(dir, "files", VFS_DIR_FLAGS);
    if (vfs->files < 0)
        return vfs->files;
    vfs->tmp = vfs_openat(dir, "tmp", VFS_DIR_FLAGS);
    return vfs->tmp < 0 ? vfs->tmp : 0;
}

int mt_vfs_open(int root_fd, const char *id, uid_t uid, gid_t gid, mt_vfs **ret, mt_err **err)
{
    _cleanup_close_ int dir = -1;
    mt_vfs *vfs;
    int r;

    if (check_id(id, err) < 0)
        return -1;
    dir = vfs_openat(root_fd, id, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (dir < 0)
        return mt_fail_errno(err, dir, "cannot open the file system '%s'", id);
    vfs = calloc(1, sizeof(*vfs));
    if (!vfs)
        return mt_fail_oom(err);
    memcpy(vfs->id, id, sizeof(vfs->id));
    vfs->uid = uid;
    vfs->gid = gid;
    vfs->tmp = -1;
    r = open_parts(vfs, dir);
    if (r < 0) {
        (void)mt_vfs_free(vfs);
        return mt_fail_errno(err, r, "cannot open the content of the file system '%s'", id);
    }
    *ret = vfs;
    return 0;
}

mt_vfs *mt_vfs_free(mt_vfs *vfs)
{
    if (!vfs)
        return NULL;
    mt_close_fd(&vfs->files);
    mt_close_fd(&vfs->tmp);
    free(vfs);
    return NULL;
}

void mt_vfs_set_limit(mt_vfs *vfs, mt_vfs_limit_fn *fn, void *data)
{
    vfs->limit = fn;
    vfs->limit_data = data;
}

int mt_vfs_destroy(int root_fd, const char *id, mt_err **err)
{
    char name[VFS_TMP_NAME];

    if (check_id(id, err) < 0)
        return -1;
    vfs_tmp_name(".gone-", name);
    if (renameat2(root_fd, id, root_fd, name, RENAME_NOREPLACE) < 0) {
        if (errno == ENOENT)
            return 1;
        return mt_fail_errno(err, errno, "cannot remove the file system '%s'", id);
    }
    (void)fsync(root_fd);
    if (vfs_purge(root_fd, name, err) < 0)
        return mt_wrap(err, "removing the file system '%s'", id);
    return 0;
}

struct sweep {
    mt_vfs_known_fn *known;
    void *data;
    size_t *unknown;
};

// Removes all that is in tmp of one file system.
static int sweep_tmp(int root_fd, const char *id, mt_err **err)
{
    _cleanup_close_ int dir = vfs_openat(root_fd, id, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    _cleanup_close_ int tmp = dir < 0 ? dir : vfs_openat(dir, "tmp", VFS_DIR_FLAGS);
    _cleanup_(vfs_dir_done) struct vfs_dir entries = {.fd = tmp};
    const struct dirent64 *entry;
    int r, failed = 0;

    if (tmp < 0)
        return mt_fail_errno(err, tmp, "cannot sweep the uploads of file system '%s'", id);
    while ((r = vfs_dir_next(&entries, &entry)) > 0)
        failed |= vfs_purge(tmp, entry->d_name, err);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot sweep the uploads of file system '%s'", id);
    return failed;
}

// Removes a file system without a record unless it has content. 1: it stays.
static int sweep_unknown(int root_fd, const char *id, mt_err **err)
{
    _cleanup_close_ int dir = vfs_openat(root_fd, id, O_PATH | O_DIRECTORY | O_NOFOLLOW);

    if (dir < 0)
        return mt_fail_errno(err, dir, "cannot look at the file system '%s'", id);
    if (unlinkat(dir, "files", AT_REMOVEDIR) < 0 && errno != ENOENT)
        return 1;
    return vfs_purge(root_fd, id, err);
}

static int sweep_one(int root_fd, const char *name, const struct sweep *s, mt_err **err)
{
    int r;

    if (mt_starts_with(name, ".gone-") || mt_starts_with(name, ".new-"))
        return vfs_purge(root_fd, name, err);
    if (!mt_is_id(mt_str_of(name)))
        return 0;
    if (s->known && !s->known(s->data, name)) {
        r = sweep_unknown(root_fd, name, err);
        if (r <= 0)
            return r;
        (*s->unknown)++;
    }
    return sweep_tmp(root_fd, name, err);
}

int mt_vfs_sweep(int root_fd, mt_vfs_known_fn *known, void *data, size_t *ret_unknown, mt_err **err)
{
    _cleanup_close_ int own = vfs_openat(root_fd, ".", VFS_DIR_FLAGS); // a read position of its own
    _cleanup_(vfs_dir_done) struct vfs_dir entries = {.fd = own};
    const struct dirent64 *entry;
    size_t unknown = 0;
    struct sweep s = {known, data, &unknown};
    int r, failed = 0;

    if (own < 0)
        return mt_fail_errno(err, own, "cannot read the folder of file systems");
    while ((r = vfs_dir_next(&entries, &entry)) > 0)
        failed |= sweep_one(root_fd, entry->d_name, &s, err);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read the folder of file systems");
    if (ret_unknown)
        *ret_unknown = unknown;
    return failed;
}
