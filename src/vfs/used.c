// SPDX-License-Identifier: Apache-2.0
// How much a file system holds: a walk of bounded memory, fds and time through a tree that may
// change under it. The fds of the last OPEN levels stay open; to go back further up, ".." of the
// child is opened and believed only if it is the very folder that the walk came from (a capsule may
// have moved the child meanwhile; then the walk ends there and says so).
#include "vfs/vfs-internal.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

enum { OPEN = 32, DEEPEST = 65536, LOOK_AT_CLOCK = 128 };

struct level {
    ino_t inode;
    int64_t position; // of the entry after the one that was entered
    struct vfs_dir dir;
};

struct used {
    struct level *levels;
    size_t depth, capacity;
    uint64_t bytes;
    int64_t deadline_ns;
    const _Atomic bool *stop;
    unsigned entries;
    bool partial;
};

static void close_level(struct level *l)
{
    vfs_dir_done(&l->dir);
    mt_close_fd(&l->dir.fd);
}

static void used_done(struct used *u)
{
    while (u->depth > 0)
        close_level(&u->levels[--u->depth]);
    free(u->levels);
}

static void count(struct used *u, const struct stat *st)
{
    uint64_t bytes = (uint64_t)st->st_blocks * 512;

    // Each of n hard links carries its part; none can lead out of the file system.
    if (!S_ISDIR(st->st_mode) && st->st_nlink > 1)
        bytes /= st->st_nlink;
    u->bytes += bytes;
}

static int enter(struct used *u, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0) {
        (void)close(fd);
        return -errno;
    }
    count(u, &st);
    if (u->depth == u->capacity) {
        size_t capacity = u->capacity ? 2 * u->capacity : OPEN;
        struct level *levels = realloc(u->levels, capacity * sizeof(*levels));

        if (!levels) {
            (void)close(fd);
            return -ENOMEM;
        }
        u->levels = levels;
        u->capacity = capacity;
    }
    if (u->depth >= OPEN)
        close_level(&u->levels[u->depth - OPEN]);
    u->levels[u->depth++] = (struct level){.inode = st.st_ino, .dir.fd = fd};
    return 0;
}

static int open_above(const struct level *child, const struct level *parent)
{
    struct open_how how = {
        .flags = VFS_DIR_FLAGS | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    _cleanup_close_ int fd = (int)syscall(SYS_openat2, child->dir.fd, "..", &how, sizeof(how));
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (st.st_ino != parent->inode || lseek(fd, parent->position, SEEK_SET) < 0)
        return -ESTALE;
    return MT_TAKE_FD(fd);
}

// Back to the level above. False: the way is lost.
static bool leave(struct used *u)
{
    struct level *child = &u->levels[--u->depth];
    struct level *parent = child - 1;
    bool found = true;

    if (u->depth > 0 && parent->dir.fd < 0) {
        int fd = open_above(child, parent);

        found = fd >= 0;
        parent->dir.fd = found ? fd : -1;
    }
    close_level(child);
    return found;
}

static int visit(struct used *u, struct level *l, const struct dirent64 *entry)
{
    struct stat st;
    int fd;

    l->position = entry->d_off;
    if (entry->d_type != DT_DIR) {
        if (fstatat(l->dir.fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return 0; // vanished
        if (!S_ISDIR(st.st_mode)) {
            count(u, &st);
            return 0;
        }
    }
    if (u->depth >= DEEPEST) {
        u->partial = true;
        return 0;
    }
    fd = vfs_openat(l->dir.fd, entry->d_name, VFS_DIR_FLAGS);
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
        return fd;
    return fd < 0 ? 0 : enter(u, fd);
}

static bool time_is_over(struct used *u)
{
    return u->entries++ % LOOK_AT_CLOCK == 0 &&
           (mt_boottime_ns() >= u->deadline_ns || (u->stop && *u->stop));
}

static int walk(struct used *u)
{
    while (u->depth > 0) {
        struct level *l = &u->levels[u->depth - 1];
        const struct dirent64 *entry;
        int r;

        if (time_is_over(u)) {
            u->partial = true;
            return 0;
        }
        r = vfs_dir_next(&l->dir, &entry);
        if (r > 0)
            r = visit(u, l, entry);
        else if (r == 0 && !leave(u)) {
            u->partial = true;
            return 0;
        }
        if (r < 0)
            return r;
    }
    return 0;
}

int vfs_walk_used(const mt_vfs *vfs, int64_t deadline_ms, const _Atomic bool *stop,
                  uint64_t *ret_bytes, mt_err **err)
{
    struct used u = {
        .deadline_ns = mt_boottime_ns() + deadline_ms * 1000000,
        .stop = stop,
    };
    int r = vfs_openat(vfs->files, ".", VFS_DIR_FLAGS);

    if (r >= 0)
        r = enter(&u, r);
    if (r >= 0)
        r = walk(&u);
    used_done(&u);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot measure the file system");
    *ret_bytes = u.bytes;
    return u.partial ? 1 : 0;
}

int mt_vfs_used(const mt_vfs *vfs, int64_t deadline_ms, uint64_t *ret_bytes, mt_err **err)
{
    return vfs_walk_used(vfs, deadline_ms, NULL, ret_bytes, err);
}
