// SPDX-License-Identifier: Apache-2.0
// The runner's own mount namespace: private from the first moment, and with a small root of its
// own, so that making a capsule copies six mounts instead of all of the host's:
//
//   /proc      full, without which a capsule may not mount its own
//   /scratch   the scratch disk
//   /images    IMAGES       /vfs   STATE/vfs, nosuid nodev
//   /layers    STATE/layers
//   /dev       the devices of every capsule; read-only
//   /program   mt for every capsule; read-only
// All else that the runner needs of the host it has opened before.
#include "runner/runner.h"

#include "base/fd.h"
#include "capsule/syscalls.h"

#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const char *const stub_folders[] = {"proc",   "scratch", "images",  "vfs",
                                           "layers", "dev",     "program", "old"};

static int clone_folder(const char *path, uint64_t attrs, int *ret_fd, mt_err **err)
{
    struct mount_attr attr = {.attr_set = attrs, .propagation = MS_PRIVATE};
    _cleanup_close_ int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return mt_fail_errno(err, errno, "cannot make a mount of '%s'", path);
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}

static int own_namespace(mt_err **err)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return mt_fail_errno(err, errno,
                             "cannot make a mount namespace: mt-runner must run as "
                             "root");
    return 0;
}

// A detached tmpfs, root's alone.
static int make_tmpfs(const char *size, const char *mode, int *ret_fd, mt_err **err)
{
    _cleanup_close_ int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "mode", mode, 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return mt_fail_errno(err, errno, "cannot make a tmpfs");
    *ret_fd = fsmount(fs, FSMOUNT_CLOEXEC, 0);
    return *ret_fd < 0 ? mt_fail_errno(err, errno, "cannot make a tmpfs") : 0;
}

static int make_node(int dir, const char *name, unsigned minor_number, unsigned major_number)
{
    if (mknodat(dir, name, S_IFCHR | 0666, makedev(major_number, minor_number)) < 0)
        return -1;
    return fchmodat(dir, name, 0666, 0); // whatever the umask
}

static int fill_dev(int dir)
{
    static const struct {
        const char *name;
        unsigned minor, major;
    } nodes[] = {{"null", 3, 1},   {"zero", 5, 1},    {"full", 7, 1},
                 {"random", 8, 1}, {"urandom", 9, 1}, {"tty", 0, 5}};
    static const struct {
        const char *name, *target;
    } links[] = {{"fd", "/proc/self/fd"},
                 {"stdin", "/proc/self/fd/0"},
                 {"stdout", "/proc/self/fd/1"},
                 {"stderr", "/proc/self/fd/2"},
                 {"ptmx", "pts/ptmx"}};
    static const char *const folders[] = {"pts", "shm", "mqueue"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(nodes); i++)
        if (make_node(dir, nodes[i].name, nodes[i].minor, nodes[i].major) < 0)
            return -errno;
    for (size_t i = 0; i < MT_ARRAY_SIZE(links); i++)
        if (symlinkat(links[i].target, dir, links[i].name) < 0)
            return -errno;
    for (size_t i = 0; i < MT_ARRAY_SIZE(folders); i++)
        if (mkdirat(dir, folders[i], 0755) < 0)
            return -errno;
    return 0;
}

static int make_dev(int *ret_fd, mt_err **err)
{
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC};
    _cleanup_close_ int fd = -1;
    int r;

    if (make_tmpfs("64k", "755", &fd, err) < 0)
        return -1;
    r = fill_dev(fd);
    if (r == 0 && mount_setattr(fd, "", AT_EMPTY_PATH, &ro, sizeof(ro)) < 0)
        r = -errno;
    if (r < 0)
        return mt_fail_errno(err, r, "cannot make the devices of capsules");
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}

static int attach(int mount_fd, const char *at, mt_err **err)
{
    if (move_mount(mount_fd, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return mt_fail_errno(err, errno, "cannot attach '%s' in the runner's own root", at);
    return 0;
}

static int open_folder(const char *path, int *ret_fd, mt_err **err)
{
    *ret_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0
               ? mt_fail_errno(err, errno, "cannot open '%s' in the runner's own root", path)
               : 0;
}

// The small root is put together over /proc, which every host has, and then becomes the root.
static int enter_stub(mt_err **err)
{
    _cleanup_close_ int stub = -1;

    // Not closed to others: a child that has become the capsule's root looks at /proc here.
    if (make_tmpfs("1m", "755", &stub, err) < 0 || attach(stub, "/proc", err) < 0)
        return -1;
    if (chdir("/proc") < 0)
        return mt_fail_errno(err, errno, "cannot enter the runner's own root");
    for (size_t i = 0; i < MT_ARRAY_SIZE(stub_folders); i++)
        if (mkdir(stub_folders[i], 0755) < 0)
            return mt_fail_errno(err, errno, "cannot make the runner's own root");
    return 0;
}

static int leave_host(mt_err **err)
{
    if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
        mt_sys_pivot_root(".", "old") < 0 || chdir("/") < 0 || umount2("/old", MNT_DETACH) < 0 ||
        rmdir("/old") < 0)
        return mt_fail_errno(err, errno, "cannot enter the runner's own root");
    return 0;
}

static int open_scratch(runner *r, mt_err **err)
{
    mt_scratch_options o = {
        .file = r->o.scratch,
        .size_bytes = r->o.scratch_size,
        .force_tmpfs = r->o.force_tmpfs,
    };

    return mt_scratch_open(&o, &r->scratch, err);
}

// Without it capsules have none, which the doctor tells.
static int open_program(runner *r, int mount_fd, mt_err **err)
{
    if (mount_fd < 0)
        return 0;
    if (attach(mount_fd, "/program", err) < 0)
        return -1;
    r->mt_fd = open("/program/mt", O_PATH | O_CLOEXEC);
    return r->mt_fd < 0 ? mt_fail_errno(err, errno, "cannot open the mt of capsules") : 0;
}

int runner_mount(runner *r, mt_err **err)
{
    _cleanup_free_ char *vfs = mt_asprintf("%s/vfs", r->o.state);
    _cleanup_free_ char *program =
        r->o.mt ? mt_str_dup(mt_str_of(r->o.mt)) : program_find("mt-capsule", "../cli/", INSTALLED);
    _cleanup_free_ char *layers = mt_asprintf("%s/layers", r->o.state);
    _cleanup_close_ int images_tree = -1, vfs_tree = -1, layers_tree = -1, dev_tree = -1;
    _cleanup_close_ int program_tree = -1;

    if (!vfs || !layers || !program)
        return mt_fail_oom(err);
    if (program_mount(program, r->o.mt != NULL, &program_tree, err) < 0)
        return -1;
    if (own_namespace(err) < 0 || clone_folder(r->o.images, 0, &images_tree, err) < 0 ||
        clone_folder(vfs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &vfs_tree, err) < 0 ||
        clone_folder(layers, 0, &layers_tree, err) < 0 || make_dev(&dev_tree, err) < 0 ||
        open_scratch(r, err) < 0 || enter_stub(err) < 0)
        return -1;
    if (attach(images_tree, "images", err) < 0 || attach(vfs_tree, "vfs", err) < 0 ||
        attach(layers_tree, "layers", err) < 0 || attach(dev_tree, "dev", err) < 0)
        return -1;
    if (mt_scratch_is_btrfs(r->scratch) &&
        attach(mt_scratch_mount_fd(r->scratch), "scratch", err) < 0)
        return -1;
    if (leave_host(err) < 0 || open_program(r, program_tree, err) < 0)
        return -1;
    if (open_folder("/images", &r->images_fd, err) < 0 ||
        open_folder("/vfs", &r->vfs_fd, err) < 0 ||
        open_folder("/layers", &r->layers_fd, err) < 0 || open_folder("/dev", &r->dev_fd, err) < 0)
        return -1;
    r->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    return r->null_fd < 0 ? mt_fail_errno(err, errno, "cannot open /dev/null") : 0;
}
