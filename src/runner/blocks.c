// SPDX-License-Identifier: Apache-2.0
// Blocks of 65,536 ids, one for each run. A block is taken by flock on a file of its number in a
// folder that all instances of the host share, so there is no table to lose: the kernel drops the
// lock with the last process that holds it. The file says who took it, "instance run-id\n"; a block
// whose lock is free but whose run still has a control group is left alone until that is gone.
#include "runner/runner.h"

#include "capsule/idmap.h"
#include "capsule/syscalls.h"

#include <stdio.h>
#include <sys/file.h>

enum {
    CACHED_BLOCKS = 512, // blocks whose id maps are kept: the lowest numbers are taken first
    OWNER_MAX = 96,
};

struct blocks {
    runner *r;
    struct {
        int image_fd, vfs_fd;
    } maps[CACHED_BLOCKS];
};

int blocks_new(runner *r, blocks **ret, mt_err **err)
{
    blocks *b = calloc(1, sizeof(*b));

    if (!b)
        return mt_fail_oom(err);
    b->r = r;
    for (size_t i = 0; i < CACHED_BLOCKS; i++)
        b->maps[i].image_fd = b->maps[i].vfs_fd = -1;
    *ret = b;
    return 0;
}

void blocks_free(blocks *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < CACHED_BLOCKS; i++) {
        mt_close_fd(&b->maps[i].image_fd);
        mt_close_fd(&b->maps[i].vfs_fd);
    }
    free(b);
}

// Whether a locked block may be used: nobody had it, or what he had is gone.
static bool is_clean(blocks *b, int fd)
{
    char owner[OWNER_MAX + 1], instance[64], run_id[64];
    ssize_t n = pread(fd, owner, OWNER_MAX, 0);

    if (n <= 0)
        return n == 0;
    owner[n] = '\0';
    if (sscanf(owner, "%40s %40s", instance, run_id) != 2)
        return true;
    return !mt_cgroups_exists(b->r->cgroups, instance, run_id);
}

static int note_owner(blocks *b, int fd, const char *run_id)
{
    char owner[OWNER_MAX + 1];
    int len = snprintf(owner, sizeof(owner), "%s %s\n", b->r->o.instance, run_id);

    if (ftruncate(fd, 0) < 0 || pwrite(fd, owner, (size_t)len, 0) != len)
        return -errno;
    return 0;
}

static int open_lock(blocks *b, uint32_t number)
{
    char name[16];
    int fd;

    (void)snprintf(name, sizeof(name), "%u", number);
    fd = mt_sys_open_beneath(b->r->ids_fd, name, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int e = errno;

        (void)close(fd);
        return -e;
    }
    return fd;
}

static void mark_ours(const blocks *b, bool ours[MT_BLOCK_COUNT])
{
    for (const run *u = b->r->runs; u; u = u->next)
        if (u->block >= 0 && u->block < MT_BLOCK_COUNT)
            ours[u->block] = true;
}

int blocks_take(blocks *b, const char *run_id, uint32_t *ret_number, int *ret_lock_fd, mt_err **err)
{
    bool ours[MT_BLOCK_COUNT] = {false};

    mark_ours(b, ours);
    for (uint32_t n = 0; n < MT_BLOCK_COUNT; n++) {
        int fd = ours[n] ? -EWOULDBLOCK : open_lock(b, n);

        if (fd == -EWOULDBLOCK)
            continue;
        if (fd < 0)
            return mt_fail_errno(err, fd, "cannot lock a block of ids");
        if (!is_clean(b, fd)) {
            (void)close(fd);
            continue;
        }
        if (note_owner(b, fd, run_id) < 0) {
            int e = errno;

            (void)close(fd);
            return mt_fail_errno(err, e, "cannot take a block of ids");
        }
        *ret_number = n;
        *ret_lock_fd = fd;
        return 0;
    }
    return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                   "all %d blocks of ids of this machine are in use: wait for runs to end",
                   MT_BLOCK_COUNT);
}

int blocks_relock(blocks *b, uint32_t number)
{
    return number < MT_BLOCK_COUNT ? open_lock(b, number) : -EINVAL;
}

bool blocks_is_of(blocks *b, uint32_t number, const char *place)
{
    char name[16], owner[OWNER_MAX + 1], instance[64], whose[64];
    _cleanup_close_ int fd = -1;
    ssize_t n;

    (void)snprintf(name, sizeof(name), "%u", number);
    fd = mt_sys_open_beneath(b->r->ids_fd, name, O_RDONLY, 0);
    n = fd < 0 ? -1 : pread(fd, owner, OWNER_MAX, 0);
    if (n <= 0)
        return false;
    owner[n] = '\0';
    return sscanf(owner, "%40s %40s", instance, whose) == 2 &&
           mt_streq(instance, b->r->o.instance) && mt_streq(whose, place);
}

void blocks_release(int lock_fd)
{
    if (lock_fd < 0)
        return;
    (void)!ftruncate(lock_fd, 0);
    (void)close(lock_fd);
}

void blocks_forget_instance(blocks *b)
{
    for (uint32_t n = 0; n < MT_BLOCK_COUNT; n++) {
        char name[16], owner[OWNER_MAX + 1], instance[64];
        _cleanup_close_ int fd = -1;
        ssize_t len;

        (void)snprintf(name, sizeof(name), "%u", n);
        if (faccessat(b->r->ids_fd, name, F_OK, 0) < 0)
            continue;
        fd = open_lock(b, n);
        len = fd < 0 ? -1 : pread(fd, owner, OWNER_MAX, 0);
        if (len <= 0)
            continue;
        owner[len] = '\0';
        if (sscanf(owner, "%40s", instance) == 1 && mt_streq(instance, b->r->o.instance))
            (void)!ftruncate(fd, 0);
    }
}

static int make_maps(blocks *b, uint32_t base, int *image_fd, int *vfs_fd, mt_err **err)
{
    if (mt_idmap_image(base, image_fd, err) < 0)
        return -1;
    if (mt_idmap_vfs(base, b->r->o.service_uid, b->r->o.service_gid, vfs_fd, err) < 0) {
        mt_close_fd(image_fd);
        return -1;
    }
    return 0;
}

int blocks_maps(blocks *b, uint32_t number, int *ret_image_fd, int *ret_vfs_fd, mt_err **err)
{
    uint32_t base = MT_BLOCK_FIRST + number * MT_BLOCK_IDS;
    int image = -1, vfs = -1;

    if (number < CACHED_BLOCKS) {
        image = b->maps[number].image_fd;
        vfs = b->maps[number].vfs_fd;
    }
    if (image < 0) {
        if (make_maps(b, base, &image, &vfs, err) < 0)
            return -1;
        if (number < CACHED_BLOCKS) {
            b->maps[number].image_fd = image;
            b->maps[number].vfs_fd = vfs;
        }
    }
    // Each run has fds of its own, so that nobody needs to know which are cached.
    if (number < CACHED_BLOCKS) {
        image = fcntl(image, F_DUPFD_CLOEXEC, 3);
        vfs = fcntl(vfs, F_DUPFD_CLOEXEC, 3);
        if (image < 0 || vfs < 0) {
            mt_close_fd(&image);
            mt_close_fd(&vfs);
            return mt_fail_errno(err, EMFILE, "cannot keep the id maps of a run");
        }
    }
    *ret_image_fd = image;
    *ret_vfs_fd = vfs;
    return 0;
}
