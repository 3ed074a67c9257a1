// SPDX-License-Identifier: Apache-2.0
#include "capsule/btrfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static int result(int r)
{
    return r < 0 ? -errno : 0;
}

int mt_btrfs_quota_on(int fs_fd)
{
    struct btrfs_ioctl_quota_ctl_args args = {.cmd = BTRFS_QUOTA_CTL_ENABLE};

    return result(ioctl(fs_fd, BTRFS_IOC_QUOTA_CTL, &args));
}

static int with_name(int parent_fd, unsigned long request, const char *name)
{
    struct btrfs_ioctl_vol_args args = {0};

    if (strlen(name) > BTRFS_PATH_NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(args.name, name, strlen(name));
    return result(ioctl(parent_fd, request, &args));
}

int mt_btrfs_subvolume_make(int parent_fd, const char *name)
{
    return with_name(parent_fd, BTRFS_IOC_SUBVOL_CREATE, name);
}

int mt_btrfs_subvolume_delete(int parent_fd, const char *name)
{
    return with_name(parent_fd, BTRFS_IOC_SNAP_DESTROY, name);
}

int mt_btrfs_subvolume_id(int subvolume_fd, uint64_t *ret)
{
    struct btrfs_ioctl_ino_lookup_args args = {.objectid = BTRFS_FIRST_FREE_OBJECTID};

    if (ioctl(subvolume_fd, BTRFS_IOC_INO_LOOKUP, &args) < 0)
        return -errno;
    *ret = args.treeid;
    return 0;
}

int mt_btrfs_limit(int fs_fd, uint64_t subvolume, uint64_t bytes)
{
    struct btrfs_ioctl_qgroup_limit_args args = {
        .qgroupid = subvolume,
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes ? bytes : UINT64_MAX},
    };

    return result(ioctl(fs_fd, BTRFS_IOC_QGROUP_LIMIT, &args));
}

int mt_btrfs_forget(int fs_fd, uint64_t subvolume)
{
    struct btrfs_ioctl_qgroup_create_args args = {.create = 0, .qgroupid = subvolume};

    return result(ioctl(fs_fd, BTRFS_IOC_QGROUP_CREATE, &args));
}

int mt_btrfs_sync(int fs_fd)
{
    return result(ioctl(fs_fd, BTRFS_IOC_SYNC));
}

int mt_btrfs_sysfs(int fs_fd, const char *name)
{
    struct btrfs_ioctl_fs_info_args info = {0};
    const uint8_t *u = info.fsid;
    char path[128];
    int fd;

    if (ioctl(fs_fd, BTRFS_IOC_FS_INFO, &info) < 0)
        return -errno;
    (void)snprintf(path, sizeof(path),
                   "/sys/fs/btrfs/%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
                   "%02x%02x%02x%02x%02x%02x/%s",
                   u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
                   u[13], u[14], u[15], name);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

// The loop device's file is told by device and inode, which no rename or hard link can hide.
static int bound_to(const char *path, const struct stat *file, int *ret_fd)
{
    _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
    struct loop_info64 info;

    if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
        return 0;
    // The kernel's own coding of device numbers.
    if (info.lo_inode != file->st_ino ||
        info.lo_device !=
            ((uint64_t)(minor(file->st_dev) & 0xff) | ((uint64_t)major(file->st_dev) << 8) |
             ((uint64_t)(minor(file->st_dev) & ~0xffu) << 12)))
        return 0;
    *ret_fd = MT_TAKE_FD(fd);
    return 1;
}

static int find_bound(const struct stat *file, char path[32], int *ret_fd)
{
    DIR *d = opendir("/sys/block");
    struct dirent *e;
    int found = 0;

    if (!d)
        return -errno;
    while (!found && (e = readdir(d))) {
        if (strncmp(e->d_name, "loop", 4) != 0 || strlen(e->d_name) > 20)
            continue;
        (void)snprintf(path, 32, "/dev/%.20s", e->d_name);
        found = bound_to(path, file, ret_fd);
    }
    (void)closedir(d);
    return found;
}

static int bind_free(int file_fd, char path[32], int *ret_fd)
{
    _cleanup_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    struct loop_config config = {
        .fd = (uint32_t)file_fd,
        .block_size = 4096,
        .info = {.lo_flags = LO_FLAGS_AUTOCLEAR},
    };

    if (control < 0)
        return -errno;
    // Another process may take the free one between the two calls.
    for (int i = 0; i < 32; i++) {
        _cleanup_close_ int fd = -1;
        int n = ioctl(control, LOOP_CTL_GET_FREE);

        if (n < 0)
            return -errno;
        (void)snprintf(path, 32, "/dev/loop%d", n);
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            return -errno;
        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
            *ret_fd = MT_TAKE_FD(fd);
            return 0;
        }
        if (errno != EBUSY)
            return -errno;
    }
    return -EBUSY;
}

int mt_loop_attach(int file_fd, char path[32], int *ret_fd, bool *ret_new)
{
    struct stat st;
    int r;

    if (fstat(file_fd, &st) < 0)
        return -errno;
    r = find_bound(&st, path, ret_fd);
    if (r < 0)
        return r;
    *ret_new = r == 0;
    return r ? 0 : bind_free(file_fd, path, ret_fd);
}
