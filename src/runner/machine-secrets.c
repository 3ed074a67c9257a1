// SPDX-License-Identifier: Apache-2.0
// The secrets of a run, on the supervisor's side: a small file system in memory, written here and
// made read-only before anything of the capsule sees it. What makes the machine, and mt-init, get
// it as a mount that is finished: no value is ever in a process inside the capsule's namespaces but
// those that read the files.
#include "base/fd.h"
#include "runner/machine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

// Each file rounded up to its pages, each with its inode, and the root.
#define SIZE        "2m"
#define INODES      "80"
#define FOLDER_MODE 0500
_Static_assert(MT_PLAN_SECRET_BYTES_MAX + MT_PLAN_SECRETS_MAX * 4096 <= 2 << 20, "SIZE");
_Static_assert(MT_PLAN_SECRETS_MAX + 1 <= 80, "INODES");

// On a disk it would be there even after the run: a tmpfs that is never swapped out, which Linux
// has from 6.4 on; else a ramfs, which never is either. That one knows no limit of its size, but
// nobody can write to it once it is read-only.
static int new_memory(bool noswap)
{
    static const char *const tmpfs[] = {"mode", "0500",   "size", SIZE, "nr_inodes",
                                        INODES, "noswap", NULL,   NULL};
    static const char *const ramfs[] = {"mode", "0500", NULL};
    const unsigned attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    int fd = noswap ? mt_build_new_fs("tmpfs", tmpfs, attrs) : -EINVAL;

    return fd == -EINVAL ? mt_build_new_fs("ramfs", ramfs, attrs) : fd;
}

int mt_secrets_new(bool noswap, int *ret_fd, mt_err **err)
{
    int fd = new_memory(noswap);

    if (fd < 0)
        return mt_fail_errno(err, fd, "cannot make a place for the secrets");
    *ret_fd = fd;
    return 0;
}

static int write_one(int dirfd, const mt_plan_secret *secret, uid_t owner)
{
    _cleanup_close_ int fd =
        openat(dirfd, secret->mount_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);
    int r = fd < 0 ? -errno : mt_write_full(fd, secret->value.data, secret->value.len);

    if (r == 0 && (fchmod(fd, 0400) < 0 || fchown(fd, owner, owner) < 0))
        r = -errno;
    return r;
}

static int give_folder(int fd, uid_t owner)
{
    _cleanup_close_ int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return dir < 0 || fchmod(dir, FOLDER_MODE) < 0 || fchown(dir, owner, owner) < 0 ? -errno : 0;
}

int mt_secrets_fill(int fd, const mt_plan *plan, uid_t owner, mt_err **err)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    int r = 0;

    for (uint32_t i = 0; i < plan->secret_count && r == 0; i++) {
        r = write_one(fd, &plan->secrets[i], owner);
        if (r < 0)
            return mt_fail_errno(err, r, "cannot write /mnt/secrets/%s",
                                 plan->secrets[i].mount_name);
    }
    r = give_folder(fd, owner);
    if (r == 0 && mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        r = -errno;
    return r < 0 ? mt_fail_errno(err, r, "cannot make /mnt/secrets read-only") : 0;
}
