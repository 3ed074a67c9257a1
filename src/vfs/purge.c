// SPDX-License-Identifier: Apache-2.0
// Removing a tree that may be of any depth, while someone may still write to it.
//
// Depth is bounded by flattening: a folder that lies DEPTH levels below the top is renamed into the
// top itself and removed from there later, so a chain of a million folders needs DEPTH fds and a
// fixed stack. Each step is relative to the fd of the folder that holds the name: a link is
// unlinked, never followed; openat2 refuses a mount (NO_XDEV) and unlink does (EBUSY), so what is
// mounted stays whole. What is added meanwhile makes another pass, a bounded number of times.
#include "vfs/vfs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { DEPTH = 32, QUIET_PASSES = 16, ALL_PASSES = 1 << 20 };

struct purge {
    int top;
    bool flattened;                  // in this pass
    int error;                       // the first that matters, negative errno
    char where[MT_VFS_NAME_MAX + 1]; // the name that it was about
};

static void note(struct purge *p, int e, const char *name)
{
    if (p->error)
        return;
    p->error = -e;
    (void)snprintf(p->where, sizeof(p->where), "%s", name);
}

static void empty_folder(struct purge *p, int dir, int depth);

static void flatten(struct purge *p, int dir, const char *name)
{
    char fresh[VFS_TMP_NAME];

    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return;
    vfs_tmp_name("deep-", fresh);
    if (renameat2(dir, name, p->top, fresh, RENAME_NOREPLACE) == 0)
        p->flattened = true;
    else if (errno != ENOENT)
        note(p, errno, name);
}

static void remove_folder(struct purge *p, int dir, const char *name, int depth)
{
    int fd;

    if (depth >= DEPTH) {
        flatten(p, dir, name);
        return;
    }
    fd = vfs_openat(dir, name, VFS_DIR_FLAGS);
    if (fd >= 0) {
        empty_folder(p, fd, depth);
        (void)close(fd);
        // ENOTEMPTY: someone still writes there, or a mount stays (noted); the next pass decides.
        if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT && errno != ENOTEMPTY &&
            errno != ENOTDIR)
            note(p, errno, name);
    } else if (fd == -ENOTDIR || fd == -ELOOP) { // swapped for something else
        (void)unlinkat(dir, name, 0);
    } else if (fd != -ENOENT) {
        note(p, -fd, name);
    }
}

// Recursive, at most DEPTH deep.
static void empty_folder(struct purge *p, int dir, int depth)
{
    _cleanup_(vfs_dir_done) struct vfs_dir entries = {.fd = dir};
    const struct dirent64 *entry;
    int r;

    while ((r = vfs_dir_next(&entries, &entry)) > 0) {
        if (entry->d_type != DT_DIR) {
            if (unlinkat(dir, entry->d_name, 0) == 0 || errno == ENOENT)
                continue;
            if (errno != EISDIR) {
                note(p, errno, entry->d_name);
                continue;
            }
        }
        remove_folder(p, dir, entry->d_name, depth + 1);
    }
    if (r < 0)
        note(p, -r, "a folder");
}

// Passes until the top is gone. 0 or a negative errno; -ENOTEMPTY: it is filled as fast as it is
// emptied.
static int purge_folder(struct purge *p, int parent, const char *name)
{
    int quiet = 0;

    for (int pass = 0; pass < ALL_PASSES && quiet < QUIET_PASSES; pass++) {
        p->flattened = false;
        if (lseek(p->top, 0, SEEK_SET) < 0)
            return -errno;
        empty_folder(p, p->top, 0);
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != ENOTEMPTY)
            return -errno;
        if (p->error)
            return p->error;
        if (!p->flattened)
            quiet++;
    }
    return -ENOTEMPTY;
}

static int fail_purge(const struct purge *p, int r, const char *name, mt_err **err)
{
    const char *shown = VFS_SHOWN(p->where[0] ? p->where : name);

    if (r == -EXDEV || r == -EBUSY)
        return mt_fail(err, MT_E_CONFLICT,
                       "something is mounted at '%s': it and its content were left alone", shown);
    if (r == -ENOTEMPTY)
        return mt_fail(err, MT_E_CONFLICT,
                       "a process keeps writing into what is being removed: end the runs that use "
                       "it; what is left goes at the next start of the server");
    return mt_fail_errno(err, r, "cannot remove '%s'", shown);
}

int vfs_purge(int parent, const char *name, mt_err **err)
{
    _cleanup_close_ int top = -1;
    struct purge p = {0};
    int r;

    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return fail_purge(&p, -errno, name, err);
    top = vfs_openat(parent, name, VFS_DIR_FLAGS);
    if (top < 0)
        return fail_purge(&p, top, name, err);
    p.top = top;
    r = purge_folder(&p, parent, name);
    return r < 0 ? fail_purge(&p, r, name, err) : 0;
}

int mt_vfs_remove_tree(int parent, const char *name, mt_err **err)
{
    return vfs_purge(parent, name, err);
}
