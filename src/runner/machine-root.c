// SPDX-License-Identifier: Apache-2.0
// Steps of the child: the root and the file systems of the kernel in it.
#include "base/fd.h"
#include "base/str.h"
#include "capsule/syscalls.h"
#include "runner/machine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

enum { LAYER_NAME = 12 };

// --- tools ---------------------------------------------------------------------------------------

int mt_build_open(const mt_build *b, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY)),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int fd = mt_sys_openat2(b->root_fd, path, &how);

    return fd < 0 ? -errno : fd;
}

int mt_build_folder(const mt_build *b, const char *path)
{
    int fd = mt_build_open(b, path, O_PATH | O_DIRECTORY, 0);
    _cleanup_close_ int parent = -1;
    char folder[256];
    char *slash;

    if (fd != -ENOENT)
        return fd;
    if ((size_t)snprintf(folder, sizeof(folder), "%s", path) >= sizeof(folder))
        return -ENAMETOOLONG;
    slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    parent = slash ? mt_build_folder(b, folder) : mt_build_open(b, ".", O_PATH | O_DIRECTORY, 0);
    if (parent < 0)
        return parent;
    if (mkdirat(parent, slash ? slash + 1 : folder, 0755) < 0 && errno != EEXIST)
        return -errno;
    return mt_build_open(b, path, O_PATH | O_DIRECTORY, 0);
}

int mt_build_new_fs(const char *type, const char *const *options, unsigned attrs)
{
    _cleanup_close_ int fs = fsopen(type, FSOPEN_CLOEXEC);
    int fd;

    if (fs < 0)
        return -errno;
    // The name that df and mount(8) show.
    if (fsconfig(fs, FSCONFIG_SET_STRING, "source", type, 0) < 0)
        return -errno;
    for (; options && options[0]; options += 2) {
        unsigned how = options[1] ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

        if (fsconfig(fs, how, options[0], options[1], 0) < 0)
            return -errno;
    }
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    fd = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
    return fd < 0 ? -errno : fd;
}

static int attach_at(int mount_fd, int dirfd, const char *path)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (path[0] ? 0 : MOVE_MOUNT_T_EMPTY_PATH);

    return move_mount(mount_fd, "", dirfd, path, flags) < 0 ? -errno : 0;
}

int mt_build_attach(const mt_build *b, int mount_fd, const char *path)
{
    _cleanup_close_ int mount = mount_fd;
    _cleanup_close_ int at = -1;

    if (mount < 0)
        return mount;
    at = mt_build_folder(b, path);
    return at < 0 ? at : attach_at(mount, at, "");
}

// A copy of what is mounted or stands at path, read-only, on top of itself.
static int make_read_only(const mt_build *b, const char *path)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                          MOUNT_ATTR_NOEXEC};
    _cleanup_close_ int at = mt_build_open(b, path, O_PATH, 0);
    _cleanup_close_ int mount = -1;

    if (at < 0)
        return at == -ENOENT ? 0 : at;
    mount = open_tree(at, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (mount < 0 ||
        mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return -errno;
    return attach_at(mount, at, "");
}

// --- root ----------------------------------------------------------------------------------------

// A small tmpfs over "/" of this namespace, and our working folder in it: layers get short names
// there, whatever the host's tree looks like.
int mt_step_stage(mt_build *b)
{
    static const char *const options[] = {"mode", "0700", "size", "64k", NULL};
    _cleanup_close_ int stage = -1;

    (void)b;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    stage = mt_build_new_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (stage < 0)
        return stage;
    if (move_mount(stage, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0 || fchdir(stage) < 0)
        return -errno;
    return 0;
}

static int attach_layer(int fd, const char *name)
{
    if (mkdir(name, 0700) < 0)
        return -errno;
    return attach_at(fd, AT_FDCWD, name);
}

static int attach_scratch(const mt_build *b)
{
    char size[32];
    const char *const options[] = {"mode", "0755", "size", size, NULL};
    int r;

    if (b->parts->scratch_fd >= 0)
        return attach_layer(b->parts->scratch_fd, "u");
    (void)snprintf(size, sizeof(size), "%" PRIu64, b->res->tmpfs_bytes);
    r = mt_build_new_fs("tmpfs", options, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
    if (r < 0)
        return r;
    {
        _cleanup_close_ int fd = r;

        r = attach_layer(fd, "u");
    }
    if (r == 0 && (mkdir("u/upper", 0755) < 0 || mkdir("u/work", 0755) < 0))
        r = -errno;
    return r;
}

static int attach_layers(const mt_build *b)
{
    int r = 0;

    for (uint32_t i = 0; i < b->parts->layer_count && r == 0; i++) {
        char name[LAYER_NAME];

        (void)snprintf(name, sizeof(name), "l%" PRIu32, i);
        r = attach_layer(b->parts->layer_fds[i], name);
    }
    return r;
}

// Volatile: the root dies with the run, so nothing in it is worth an fsync.
int mt_step_overlay(mt_build *b)
{
    char lower[(1 + MT_RUN_LAYERS_MAX) * LAYER_NAME] = "";
    const char *const options[] = {"lowerdir", lower, "upperdir",  "u/upper", "workdir", "u/work",
                                   "volatile", NULL,  "userxattr", NULL,      NULL};
    size_t len = 0;
    int r = attach_scratch(b), fd;

    if (r == 0)
        r = attach_layers(b);
    if (r < 0)
        return r;
    for (uint32_t i = b->parts->layer_count; i-- > 0;) // the topmost first
        len +=
            (size_t)snprintf(lower + len, sizeof(lower) - len, "l%" PRIu32 "%s", i, i ? ":" : "");
    fd = mt_build_new_fs("overlay", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (fd < 0)
        return fd;
    r = attach_layer(fd, "r");
    (void)close(fd);
    if (r < 0)
        return r;
    b->root_fd = open("r", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return b->root_fd < 0 ? -errno : 0;
}

// --- /proc, /dev, /sys ---------------------------------------------------------------------------

static int hide_file(const mt_build *b, const char *path)
{
    _cleanup_close_ int at = mt_build_open(b, path, O_PATH, 0);
    _cleanup_close_ int null = mt_build_open(b, "dev/null", O_PATH, 0);
    _cleanup_close_ int mount = -1;

    if (at < 0 || null < 0)
        return at == -ENOENT ? 0 : MT_MIN(at, null);
    mount = open_tree(null, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return mount < 0 ? -errno : attach_at(mount, at, "");
}

static int hide_folder(const mt_build *b, const char *path)
{
    static const char *const options[] = {"mode", "0755", "size", "4k", NULL};
    _cleanup_close_ int at = mt_build_open(b, path, O_PATH | O_DIRECTORY, 0);
    _cleanup_close_ int mount = -1;

    if (at < 0)
        return at == -ENOENT || at == -ENOTDIR ? 0 : at;
    mount = mt_build_new_fs("tmpfs", options,
                            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                MOUNT_ATTR_NOEXEC);
    return mount < 0 ? mount : attach_at(mount, at, "");
}

// The number is of this user namespace: it may make no further ones.
static int forbid_user_namespaces(const mt_build *b)
{
    _cleanup_close_ int fd = mt_build_open(b, "proc/sys/user/max_user_namespaces", O_WRONLY, 0);

    return fd < 0 ? fd : mt_write_full(fd, "0", 1);
}

// What default containers hide or protect, too.
static const char *const PROC_FILES[] = {
    "proc/kcore",         "proc/keys", "proc/timer_list", "proc/sched_debug",
    "proc/latency_stats", "proc/kmsg", "proc/kallsyms",   "proc/interrupts"};
static const char *const PROC_FOLDERS[] = {"proc/acpi", "proc/scsi", "proc/asound"};
static const char *const PROC_READ_ONLY[] = {"proc/bus", "proc/fs", "proc/irq", "proc/sys",
                                             "proc/sysrq-trigger"};

// /dev is attached before, as hidden files are its null.
int mt_step_proc(mt_build *b)
{
    int r = mt_build_attach(
        b, mt_build_new_fs("proc", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC),
        "proc");

    if (r == 0)
        r = forbid_user_namespaces(b);
    for (size_t i = 0; i < MT_ARRAY_SIZE(PROC_FILES) && r == 0; i++) {
        mt_build_detail(b, "%s", PROC_FILES[i]);
        r = hide_file(b, PROC_FILES[i]);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(PROC_FOLDERS) && r == 0; i++) {
        mt_build_detail(b, "%s", PROC_FOLDERS[i]);
        r = hide_folder(b, PROC_FOLDERS[i]);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(PROC_READ_ONLY) && r == 0; i++) {
        mt_build_detail(b, "%s", PROC_READ_ONLY[i]);
        r = make_read_only(b, PROC_READ_ONLY[i]);
    }
    return r;
}

// Its size is told later, by the fd that it was made with.
static int attach_shm(mt_build *b)
{
    _cleanup_close_ int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
    int fd, r;

    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", "tmpfs", 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "mode", "1777", 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    r = mt_build_attach(b, fd < 0 ? -errno : fd, "dev/shm");
    b->shm_fd = r < 0 ? -1 : MT_TAKE_FD(fs);
    return r;
}

// Counted as the memory of who writes there; half of the run's, as on any machine.
int mt_step_shm(mt_build *b)
{
    char size[32];

    (void)snprintf(size, sizeof(size), "%" PRIu64, b->id->memory_bytes / 2);
    if (fsconfig(b->shm_fd, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
        fsconfig(b->shm_fd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
        return -errno;
    mt_close_fd(&b->shm_fd);
    return 0;
}

int mt_step_devices(mt_build *b)
{
    // The kernel has some 3,000 terminals for all instances together: each run may have a part.
    static const char *const pts[] = {"newinstance", NULL, "ptmxmode", "0666", "mode", "0620",
                                      "gid",         "5",  "max",      "256",  NULL};
    int r = mt_build_attach(b, fcntl(b->parts->dev_fd, F_DUPFD_CLOEXEC, 0), "dev");

    if (r < 0)
        return r;
    mt_build_detail(b, "devpts");
    r = mt_build_attach(b, mt_build_new_fs("devpts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC),
                        "dev/pts");
    if (r < 0)
        return r;
    mt_build_detail(b, "shm");
    r = attach_shm(b);
    if (r < 0)
        return r;
    mt_build_detail(b, "mqueue");
    return mt_build_attach(
        b,
        mt_build_new_fs("mqueue", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC),
        "dev/mqueue");
}

static int write_file(const mt_build *b, const char *path, const char *text)
{
    _cleanup_close_ int fd = mt_build_open(b, path, O_WRONLY | O_CREAT | O_TRUNC, 0444);

    return fd < 0 ? fd : mt_write_full(fd, text, strlen(text));
}

// How many processors there are: the C library asks these files.
static int write_cpu_files(const mt_build *b)
{
    static const char *const names[] = {"online", "possible", "present"};
    long n = sysconf(_SC_NPROCESSORS_CONF);
    int fd = mt_build_folder(b, "sys/devices/system/cpu");
    char text[32], path[64];
    int r = fd < 0 ? fd : 0;

    if (fd >= 0)
        (void)close(fd);
    (void)snprintf(text, sizeof(text), n > 1 ? "0-%ld\n" : "0\n", n - 1);
    for (size_t i = 0; i < MT_ARRAY_SIZE(names) && r == 0; i++) {
        (void)snprintf(path, sizeof(path), "sys/devices/system/cpu/%s", names[i]);
        r = write_file(b, path, text);
    }
    return r;
}

// One v1 hierarchy at /sys/fs/cgroup/LIST. Programs that look for their limits read it; the cgroup
// namespace shows the run's own group only.
static int attach_v1_view(const mt_build *b, const char *list)
{
    const char *options[2 * 8 + 1] = {NULL};
    char copy[64], path[96];
    size_t n = 0;

    (void)snprintf(copy, sizeof(copy), "%s", list);
    for (char *save = NULL, *name = strtok_r(copy, ",", &save); name && n < 16;
         name = strtok_r(NULL, ",", &save)) {
        options[n++] = name;
        options[n++] = NULL;
    }
    options[n] = NULL;
    (void)snprintf(path, sizeof(path), "sys/fs/cgroup/%s", list);
    return mt_build_attach(b,
                           mt_build_new_fs("cgroup", options,
                                           MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
                                               MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC),
                           path);
}

// The view is a courtesy: where the kernel refuses it, programs see the machine's numbers.
static void attach_cgroup_view(const mt_build *b)
{
    char copy[sizeof(b->hierarchies)], *save = NULL;
    bool v1 = false;

    (void)snprintf(copy, sizeof(copy), "%s", b->hierarchies);
    for (char *list = strtok_r(copy, " ", &save); list; list = strtok_r(NULL, " ", &save)) {
        v1 = true;
        (void)attach_v1_view(b, list);
    }
    if (!v1)
        (void)mt_build_attach(b,
                              mt_build_new_fs("cgroup2", NULL,
                                              MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
                                                  MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC),
                              "sys/fs/cgroup");
}

// Not the kernel's sysfs: it tells of the host's devices, and may not be mounted over a network
// namespace that was made outside. A small tmpfs has what programs ask for.
int mt_step_sys(mt_build *b)
{
    static const char *const options[] = {"mode", "0755", "size", "64k", NULL};
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    _cleanup_close_ int at = -1;
    int r = mt_build_attach(
        b,
        mt_build_new_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC),
        "sys");

    if (r == 0)
        r = write_cpu_files(b);
    if (r < 0)
        return r;
    at = mt_build_folder(b, "sys/fs/cgroup");
    if (at < 0)
        return at;
    attach_cgroup_view(b);
    (void)close(MT_TAKE_FD(at));
    at = mt_build_open(b, "sys", O_PATH | O_DIRECTORY, 0);
    if (at < 0)
        return at;
    return mount_setattr(at, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

// --- the change ----------------------------------------------------------------------------------

// A mount left on top of the root would be entered by "..".
static int check_nothing_above(int root_fd)
{
    struct stat root, above;

    if (fstat(root_fd, &root) < 0 || stat("/..", &above) < 0)
        return -errno;
    return root.st_dev == above.st_dev && root.st_ino == above.st_ino ? 0 : -EXDEV;
}

// After the change there lie over the new root the old one, and over that the stage: each is taken
// off, and with them all that was mounted below. The rest is built through root_fd as before.
int mt_step_pivot(mt_build *b)
{
    if (fchdir(b->root_fd) < 0 || mt_sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return -errno;
    b->mounts_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return b->mounts_fd < 0 ? -errno : check_nothing_above(b->root_fd);
}
