// SPDX-License-Identifier: Apache-2.0
// Step of the child: small files over those of the kernel that would tell of the host. What is in
// them is the supervisor's to write, through fds that it is sent.
#include "base/fd.h"
#include "capsule/syscalls.h"
#include "runner/machine-internal.h"

#include <errno.h>
#include <fcntl.h>

// A file of the stage, read-only on top of that of the new root. Where the root has none there is
// nothing to hide.
static int cover(const mt_build *b, const char *file, const char *path)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                          MOUNT_ATTR_NOEXEC};
    _cleanup_close_ int at = mt_build_open(b, path, O_PATH, 0);
    _cleanup_close_ int mount = -1;

    if (at < 0)
        return at == -ENOENT ? 0 : at;
    mount = open_tree(AT_FDCWD, file, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    if (mount < 0 || mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ||
        move_mount(mount, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return -errno;
    return 0;
}

static int make(const char *file)
{
    int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);

    return fd < 0 ? -errno : fd;
}

// The working folder is the stage.
int mt_step_views(mt_build *b)
{
    mt_cgroup_memory now;
    int r = 0;

    mt_build_detail(b, "meminfo");
    b->meminfo_fd = make("meminfo");
    if (b->meminfo_fd < 0)
        return b->meminfo_fd;
    if (mt_cgroup_memory_get(b->res->cgroup, &now)) // else nobody knows what to write there
        r = cover(b, "meminfo", "proc/meminfo");
    if (r < 0)
        return r;
    mt_build_detail(b, "cpus");
    b->cpus_fd = make("cpus");
    if (b->cpus_fd < 0)
        return b->cpus_fd;
    return cover(b, "cpus", "sys/devices/system/cpu/online");
}
