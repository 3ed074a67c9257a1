// SPDX-License-Identifier: Apache-2.0
#include "capsule/idmap.h"

#include "base/fd.h"
#include "capsule/syscalls.h"

#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { HELPER_STACK = 16384 };

// Holds the new namespace until its maps are written. It shares the caller's memory (a copy of the
// page tables would cost ten times as much), so it does nothing but wait for its end.
static int hold(void *arg)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != *(const pid_t *)arg) // it died before the line above
        return 0;
    for (;;)
        (void)pause();
    return 0;
}

static int write_map(pid_t pid, const char *file, const mt_id_range *ranges, size_t count)
{
    _cleanup_close_ int fd = -1;
    char path[64], text[MT_IDMAP_RANGES_MAX * 36];
    size_t len = 0;

    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%u %u %u\n", ranges[i].first,
                                ranges[i].host, ranges[i].count);
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, len) != (ssize_t)len) // the kernel takes it in one write only
        return -errno;
    return 0;
}

static int make(pid_t pid, const mt_id_range *uids, const mt_id_range *gids, size_t count,
                int *ret_fd)
{
    char path[64];
    int fd, r = write_map(pid, "uid_map", uids, count);

    if (r == 0)
        r = write_map(pid, "gid_map", gids, count);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

static int userns(const mt_id_range *uids, const mt_id_range *gids, size_t count, int *ret_fd,
                  mt_err **err)
{
    _cleanup_free_ char *stack = NULL;
    pid_t self = getpid(), pid;
    int r;

    if (count == 0 || count > MT_IDMAP_RANGES_MAX)
        return mt_fail(err, MT_E_INTERNAL, "an id map has between 1 and 8 ranges");
    stack = malloc(HELPER_STACK);
    if (!stack)
        return mt_fail_oom(err);
    pid = clone(hold, stack + HELPER_STACK, CLONE_VM | CLONE_NEWUSER | SIGCHLD, &self);
    if (pid < 0)
        return mt_fail_errno(err, errno,
                             "cannot make a user namespace: see the sysctl "
                             "user.max_user_namespaces");
    r = make(pid, uids, gids, count, ret_fd);
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r < 0 ? mt_fail_errno(err, r, "cannot write the id map of a user namespace") : 0;
}

int mt_idmap_userns(const mt_id_range *ranges, size_t count, int *ret_fd, mt_err **err)
{
    return userns(ranges, ranges, count, ret_fd, err);
}

int mt_idmap_image(uint32_t base, int *ret_fd, mt_err **err)
{
    mt_id_range all = {.first = 0, .host = base, .count = MT_BLOCK_IDS};

    return userns(&all, &all, 1, ret_fd, err);
}

static void vfs_ranges(uint32_t base, uint32_t service, mt_id_range out[3])
{
    const uint32_t after = MT_MAITENTO_UID + 1;

    out[0] = (mt_id_range){MT_VFS_FIRST, base, MT_MAITENTO_UID};
    out[1] = (mt_id_range){service, base + MT_MAITENTO_UID, 1};
    out[2] = (mt_id_range){MT_VFS_FIRST + after, base + after, MT_BLOCK_IDS - after};
}

int mt_idmap_vfs(uint32_t base, uid_t service_uid, gid_t service_gid, int *ret_fd, mt_err **err)
{
    mt_id_range uids[3], gids[3];

    vfs_ranges(base, service_uid, uids);
    vfs_ranges(base, service_gid, gids);
    return userns(uids, gids, 3, ret_fd, err);
}

int mt_idmap_mount(int dirfd, const char *path, int userns_fd, uint64_t attrs, int *ret_fd,
                   mt_err **err)
{
    struct mount_attr attr = {.attr_set = attrs, .propagation = MS_PRIVATE};
    _cleanup_close_ int fd =
        open_tree(dirfd, path, AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot clone the mount of '%s'", path);
    if (userns_fd >= 0) {
        attr.attr_set |= MOUNT_ATTR_IDMAP;
        attr.userns_fd = (uint64_t)userns_fd;
    }
    if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return mt_fail_errno(err, errno,
                             "cannot shift the owners of '%s': its file system has no idmapped "
                             "mounts (ext4, xfs, btrfs and tmpfs of newer kernels have)",
                             path);
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}
