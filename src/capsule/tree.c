// SPDX-License-Identifier: Apache-2.0
#include "capsule/tree.h"

#include "base/str.h"
#include "capsule/syscalls.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

enum { PATH_SIZE = 512, ID_MAX = 65535 };

static DIR *open_dir(int dir, const char *name, dev_t *device)
{
    int fd = mt_sys_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct stat st;

    if (!d) {
        mt_close_fd(&fd);
        return NULL;
    }
    if (fstat(fd, &st) < 0 || (*device && st.st_dev != *device)) {
        (void)closedir(d);
        errno = EXDEV;
        return NULL;
    }
    *device = st.st_dev;
    return d;
}

static bool is_dots(const char *name)
{
    return mt_streq(name, ".") || mt_streq(name, "..");
}

// --- removal -------------------------------------------------------------------------------------

static int remove_at(int dir, const char *name, dev_t device, int depth)
{
    struct dirent *e;
    int r = 0;
    DIR *d;

    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (depth == 0)
        return -ELOOP;
    d = open_dir(dir, name, &device);
    if (!d)
        return -errno;
    while (r == 0 && (e = readdir(d)))
        if (!is_dots(e->d_name))
            r = remove_at(dirfd(d), e->d_name, device, depth - 1);
    (void)closedir(d);
    if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        r = -errno;
    return r;
}

int mt_tree_remove(int dir, const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_close_ int parent = -1;
    char folder[PATH_SIZE];

    if ((size_t)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
                         slash ? path : ".") >= sizeof(folder))
        return -ENAMETOOLONG;
    parent = mt_sys_open_beneath(dir, folder, O_RDONLY | O_DIRECTORY, 0);
    // A link, or no folder, is in the way: then nothing of ours is behind it.
    if (parent < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENOTDIR ? 0 : -errno;
    return remove_at(parent, slash ? slash + 1 : path, 0, MT_TREE_DEPTH_MAX);
}

// --- sums ----------------------------------------------------------------------------------------

static bool fits_image(const struct stat *st)
{
    if (st->st_uid > ID_MAX || st->st_gid > ID_MAX || S_ISBLK(st->st_mode))
        return false;
    return !S_ISCHR(st->st_mode) || st->st_rdev == 0; // 0:0 is an overlay's whiteout
}

static int sum_folder(DIR *d, unsigned flags, dev_t device, int depth, mt_tree_sum *sum)
{
    struct dirent *e;
    int r = 0;

    while (r == 0 && (e = readdir(d))) {
        struct stat st;

        if (is_dots(e->d_name))
            continue;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            r = errno == ENOENT ? 0 : -errno; // somebody works there
            continue;
        }
        if ((flags & MT_TREE_AS_IMAGE) && !fits_image(&st))
            return -EPERM;
        sum->entries++;
        sum->bytes += (uint64_t)st.st_blocks * 512 /
                      (S_ISDIR(st.st_mode) || st.st_nlink == 0 ? 1 : (uint64_t)st.st_nlink);
        if (S_ISDIR(st.st_mode)) {
            DIR *sub = depth ? open_dir(dirfd(d), e->d_name, &device) : NULL;

            if (!sub)
                return depth == 0 ? -ELOOP : errno == ENOENT ? 0 : -errno;
            r = sum_folder(sub, flags, device, depth - 1, sum);
            (void)closedir(sub);
        }
    }
    return r;
}

int mt_tree_sum_up(int dir, const char *path, unsigned flags, mt_tree_sum *sum)
{
    dev_t device = 0;
    DIR *d = open_dir(dir, path, &device);
    int r;

    if (!d)
        return -errno;
    r = sum_folder(d, flags, device, MT_TREE_DEPTH_MAX, sum);
    (void)closedir(d);
    return r;
}
