// SPDX-License-Identifier: Apache-2.0
#include "capsule/scratch.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "capsule/btrfs.h"
#include "capsule/place.h"
#include "capsule/syscalls.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

enum {
    MKFS_MS = 60000,
    FORGET_MAX = 4096, // quota groups of deleted subvolumes that wait for the kernel's cleaner
};
#define DEFAULT_SIZE ((uint64_t)20 << 30)
#define FLOOR_MAX    ((uint64_t)1 << 30)
#define LEAST_SIZE   ((uint64_t)256 << 20) // btrfs itself takes a part; below this it is no use

struct mt_scratch {
    bool btrfs;
    char reason[512];
    int file_fd; // locked: one runner, one scratch disk
    int loop_fd;
    int root_fd;   // the mount
    int groups_fd; // /sys/fs/btrfs/<id>/qgroups, or -1
    int space_fd;  // …/allocation/data, or -1
    int root_dir_fd, runs_fd, ready_fd, dead_fd;
    uint64_t dead_seq, ready_seq;
    uint64_t forget[FORGET_MAX]; // janitor only
    size_t forget_count;
};

static uint64_t free_bytes(int fd)
{
    struct statvfs v;

    return fstatvfs(fd, &v) < 0 ? 0 : (uint64_t)v.f_bavail * v.f_frsize;
}

// Runs mkfs.btrfs on path (-K: no discard, which would make the file sparse again).
static int run_mkfs(const char *path, mt_err **err)
{
    _cleanup_close_ int pidfd = -1;
    struct pollfd p = {.events = POLLIN};
    int status = -1;
    pid_t pid = fork();

    if (pid < 0)
        return mt_fail_errno(err, errno, "cannot start mkfs.btrfs");
    if (pid == 0) {
        char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
        int null = open("/dev/null", O_RDWR);

        for (int fd = 0; null >= 0 && fd < 3; fd++)
            (void)dup2(null, fd);
        (void)close_range(3, ~0u, 0);
        (void)execle("/usr/sbin/mkfs.btrfs", "mkfs.btrfs", "-q", "-f", "-K", path, NULL, env);
        (void)execle("/sbin/mkfs.btrfs", "mkfs.btrfs", "-q", "-f", "-K", path, NULL, env);
        _exit(127);
    }
    pidfd = pidfd_open(pid, 0);
    p.fd = pidfd;
    if (pidfd < 0 || poll(&p, 1, MKFS_MS) <= 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return mt_fail(err, MT_E_UNAVAILABLE,
                       "mkfs.btrfs is not installed: apt install "
                       "btrfs-progs");
    if (status != 0)
        return mt_fail(err, MT_E_UNAVAILABLE, "mkfs.btrfs failed on '%s'", path);
    return 0;
}

static uint64_t choose_size(uint64_t wanted, const char *folder)
{
    _cleanup_close_ int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (wanted)
        return wanted;
    return fd < 0 ? DEFAULT_SIZE : MT_MIN(DEFAULT_SIZE, free_bytes(fd) / 4);
}

// The folder part of a path, malloc'd.
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return mt_str_dup(MT_STR("."));
    return mt_str_dup(slash == path ? MT_STR("/") : (mt_str){path, (size_t)(slash - path)});
}

// A new image file: allocated in full and with its file system under another name first, so that a
// crash leaves no half-made disk.
static int make_file(const mt_scratch_options *o, int *ret_fd, mt_err **err)
{
    _cleanup_free_ char *temp = mt_asprintf("%s.new", o->file), *folder = folder_of(o->file);
    _cleanup_close_ int fd = -1;
    char text[MT_SIZE_TEXT];
    uint64_t size;
    int r;

    if (!temp || !folder)
        return mt_fail_oom(err);
    r = mt_mkdir_p(folder, 0700);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot make the folder '%s'", folder);
    size = choose_size(o->size_bytes, folder) & ~(uint64_t)4095;
    if (size < LEAST_SIZE)
        return mt_fail(err, MT_E_DISK_FULL,
                       "there is no room for a scratch disk in '%s': it needs 256 MiB at least",
                       folder);
    fd = open(temp, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot make '%s'", temp);
    if (fallocate(fd, 0, 0, (off_t)size) < 0) {
        r = errno;
        (void)unlink(temp);
        return mt_fail_errno(err, r, "cannot allocate the %s of the scratch disk '%s'",
                             mt_size_format((int64_t)size, text), o->file);
    }
    if (run_mkfs(temp, err) < 0) {
        (void)unlink(temp);
        return -1;
    }
    if (fsync(fd) < 0 || rename(temp, o->file) < 0)
        return mt_fail_errno(err, errno, "cannot make '%s'", o->file);
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}

// With a little patience: a runner that was just killed may still be on its way out.
static int lock_file(int fd)
{
    for (int i = 0; i < 50; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        (void)poll(NULL, 0, 20);
    }
    return -EWOULDBLOCK;
}

static int open_file(const mt_scratch_options *o, int *ret_fd, mt_err **err)
{
    _cleanup_close_ int fd = open(o->file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno != ENOENT)
        return mt_fail_errno(err, errno, "cannot open the scratch disk '%s'", o->file);
    if (fd < 0 && make_file(o, &fd, err) < 0)
        return -1;
    if (lock_file(fd) < 0)
        return mt_fail(err, MT_E_CONFLICT,
                       "the scratch disk '%s' is in use by another mt-runner: give each its own "
                       "with --scratch",
                       o->file);
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}

// A detached mount of the device: its fd, or negative errno. Discarding would make the file sparse.
// The kernel gives the space of deleted subvolumes back only after a commit, hence every 15 s.
static int mount_loop(const char *device)
{
    _cleanup_close_ int fs = fsopen("btrfs", FSOPEN_CLOEXEC);
    int fd;

    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_FLAG, "nodiscard", NULL, 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "commit", "15", 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME);
    return fd < 0 ? -errno : fd;
}

// A disk that cannot be mounted holds nothing that anybody needs: it is made anew, once.
static int attach(mt_scratch *s, const mt_scratch_options *o, mt_err **err)
{
    // Opened again: the loop device keeps this very open file, and with it any lock, for as long as
    // a run that survived its runner has the disk mounted.
    _cleanup_close_ int own = open(o->file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    char device[32];
    bool fresh = false;
    int r = own < 0 ? -errno : mt_loop_attach(own, device, &s->loop_fd, &fresh);

    if (r < 0)
        return mt_fail_errno(err, r, "no loop device for the scratch disk");
    s->root_fd = mount_loop(device);
    if (s->root_fd == -ENODEV)
        return mt_fail(err, MT_E_UNAVAILABLE, "this kernel has no btrfs (modprobe btrfs)");
    if (s->root_fd < 0 && fresh) {
        if (run_mkfs(device, err) < 0)
            return -1;
        s->root_fd = mount_loop(device);
    }
    return s->root_fd < 0
               ? mt_fail_errno(err, s->root_fd, "cannot mount the scratch disk '%s'", o->file)
               : 0;
}

static int open_folder(int dirfd, const char *name)
{
    if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int open_folders(mt_scratch *s, mt_err **err)
{
    int r;

    // An fd of a mount is one of a path only; the ioctls want the folder itself.
    s->root_dir_fd = openat(s->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = s->root_dir_fd < 0 ? -errno : mt_btrfs_quota_on(s->root_dir_fd);
    if (r < 0 && r != -EEXIST)
        return mt_fail_errno(err, r, "cannot turn on quotas on the scratch disk");
    s->groups_fd = mt_btrfs_sysfs(s->root_dir_fd, "qgroups");
    s->space_fd = mt_btrfs_sysfs(s->root_dir_fd, "allocation/data");
    s->runs_fd = open_folder(s->root_dir_fd, "runs");
    s->ready_fd = open_folder(s->root_dir_fd, "ready");
    s->dead_fd = open_folder(s->root_dir_fd, "dead");
    if (s->runs_fd < 0 || s->ready_fd < 0 || s->dead_fd < 0)
        return mt_fail_errno(err, errno, "cannot make the folders of the scratch disk");
    return 0;
}

static void close_fds(mt_scratch *s)
{
    mt_close_fd(&s->root_fd);
    mt_close_fd(&s->root_dir_fd);
    mt_close_fd(&s->groups_fd);
    mt_close_fd(&s->space_fd);
    mt_close_fd(&s->runs_fd);
    mt_close_fd(&s->ready_fd);
    mt_close_fd(&s->dead_fd);
    mt_close_fd(&s->loop_fd);
    mt_close_fd(&s->file_fd);
}

// Left-over ready-made ones of an earlier process have unknown limits: they go.
static void clear_ready(mt_scratch *s)
{
    int fd = openat(s->ready_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        mt_close_fd(&fd);
        return;
    }
    while ((e = readdir(d))) {
        char name[300];

        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(name, sizeof(name), "ready-%s-%llu", e->d_name,
                       (unsigned long long)mt_now_us());
        (void)renameat(s->ready_fd, e->d_name, s->dead_fd, name);
    }
    (void)closedir(d);
}

int mt_scratch_open(const mt_scratch_options *o, mt_scratch **ret, mt_err **err)
{
    _cleanup_err_ mt_err *why = NULL;
    mt_scratch *s = calloc(1, sizeof(*s));
    int r = -1;

    if (!s)
        return mt_fail_oom(err);
    s->file_fd = s->loop_fd = s->root_fd = s->root_dir_fd = s->groups_fd = s->space_fd =
        s->runs_fd = s->ready_fd = s->dead_fd = -1;
    if (o->force_tmpfs)
        (void)mt_fail(&why, MT_E_UNAVAILABLE, "tmpfs was asked for");
    else if (open_file(o, &s->file_fd, &why) == 0 && attach(s, o, &why) == 0 &&
             open_folders(s, &why) == 0)
        r = 0;
    if (r < 0 && mt_err_code(why) == MT_E_CONFLICT) {
        mt_err_move(err, MT_TAKE_PTR(why));
        mt_scratch_close(s);
        return -1;
    }
    s->btrfs = r == 0;
    if (s->btrfs) {
        s->dead_seq = (uint64_t)mt_now_us();
        clear_ready(s);
    } else {
        (void)snprintf(s->reason, sizeof(s->reason),
                       "what runs write is kept in memory and counts as theirs, as there is no "
                       "scratch disk: %s",
                       mt_err_sentence(why));
        close_fds(s);
    }
    *ret = s;
    return 0;
}

void mt_scratch_close(mt_scratch *s)
{
    if (!s)
        return;
    close_fds(s);
    free(s);
}

bool mt_scratch_is_btrfs(const mt_scratch *s)
{
    return s->btrfs;
}

int mt_scratch_mount_fd(const mt_scratch *s)
{
    return s->root_fd;
}

const char *mt_scratch_reason(const mt_scratch *s)
{
    return s->reason;
}

// The number that a file of sysfs holds; 0 where it is not there.
static uint64_t read_number(int dirfd, const char *path)
{
    _cleanup_close_ int fd = dirfd < 0 ? -1 : openat(dirfd, path, O_RDONLY | O_CLOEXEC);
    char text[32];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    uint64_t v;

    if (n <= 0)
        return 0;
    n -= text[n - 1] == '\n';
    return mt_parse_u64((mt_str){text, (size_t)n}, UINT64_MAX, &v) ? v : 0;
}

void mt_scratch_space(const mt_scratch *s, uint64_t *ret_bytes, uint64_t *ret_free)
{
    struct statvfs v;
    uint64_t held;

    *ret_bytes = *ret_free = 0;
    if (s->btrfs && fstatvfs(s->root_dir_fd, &v) == 0) {
        *ret_bytes = (uint64_t)v.f_blocks * v.f_frsize;
        *ret_free = (uint64_t)v.f_bavail * v.f_frsize;
        held =
            read_number(s->space_fd, "bytes_may_use") + read_number(s->space_fd, "bytes_reserved");
        *ret_free -= MT_MIN(held, *ret_free);
    }
}

uint64_t mt_scratch_floor(uint64_t bytes)
{
    return MT_MIN(bytes / 16, FLOOR_MAX);
}

uint64_t mt_scratch_used(const mt_scratch *s, const char *place)
{
    _cleanup_close_ int fd = -1;
    char path[64];
    uint64_t id, used;

    if (!s->btrfs || !mt_is_place(mt_str_of(place)))
        return 0;
    fd = openat(s->runs_fd, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || mt_btrfs_subvolume_id(fd, &id) < 0)
        return 0;
    (void)snprintf(path, sizeof(path), "0_%llu/referenced", (unsigned long long)id);
    used = read_number(s->groups_fd, path);
    // What is in memory as yet is counted at the next commit.
    (void)snprintf(path, sizeof(path), "0_%llu/rsv_data", (unsigned long long)id);
    return used + read_number(s->groups_fd, path);
}

// A subvolume with its two folders, still root's and without a limit.
static int make_subvolume(int parent_fd, const char *name)
{
    _cleanup_close_ int fd = -1;
    int r = mt_btrfs_subvolume_make(parent_fd, name);

    if (r < 0)
        return r;
    fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || mkdirat(fd, "upper", 0755) < 0 || mkdirat(fd, "work", 0755) < 0) {
        r = -errno;
        (void)mt_btrfs_subvolume_delete(parent_fd, name);
        return r;
    }
    return 0;
}

// The name of a ready-made one: 1, or 0 when there is none.
static int find_ready(mt_scratch *s, char out[64])
{
    int fd = openat(s->ready_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        mt_close_fd(&fd);
        return 0;
    }
    while (!found && (e = readdir(d)))
        // Under its final name it is whole: see mt_scratch_fill().
        if (e->d_name[0] == 'r' && strlen(e->d_name) < 64) {
            (void)snprintf(out, 64, "%.63s", e->d_name);
            found = 1;
        }
    (void)closedir(d);
    return found;
}

static int take_subvolume(mt_scratch *s, const char *place)
{
    char name[64];
    struct stat st;

    if (fstatat(s->runs_fd, place, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    if (find_ready(s, name) && renameat(s->ready_fd, name, s->runs_fd, place) == 0)
        return 0;
    return make_subvolume(s->runs_fd, place);
}

static int give_away(int fd, uint32_t owner)
{
    if (fchownat(fd, "upper", owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ||
        fchownat(fd, "work", owner, owner, AT_SYMLINK_NOFOLLOW) < 0 || fchown(fd, owner, owner) < 0)
        return -errno;
    return 0;
}

int mt_scratch_make(mt_scratch *s, const char *place, uint64_t disk_bytes, uint32_t uid_base,
                    int *ret_fd, uint64_t *ret_subvolume, mt_err **err)
{
    _cleanup_close_ int fd = -1, path_fd = -1;
    uint64_t id = 0;
    int r;

    if (!s->btrfs || !mt_is_place(mt_str_of(place)))
        return mt_fail(err, MT_E_INTERNAL, "there is no scratch disk to make a run's folder on");
    r = take_subvolume(s, place);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot make the run's folder on the scratch disk");
    fd = openat(s->runs_fd, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    path_fd = openat(s->runs_fd, place, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = fd < 0 || path_fd < 0 ? -errno : mt_btrfs_subvolume_id(fd, &id);
    if (r == 0 && disk_bytes)
        r = mt_btrfs_limit(s->root_dir_fd, id, disk_bytes);
    if (r == 0)
        r = give_away(fd, uid_base);
    if (r < 0) {
        (void)mt_scratch_drop(s, place);
        return mt_fail_errno(err, r, "cannot limit the run's folder on the scratch disk");
    }
    *ret_fd = MT_TAKE_FD(path_fd);
    *ret_subvolume = id;
    return 0;
}

int mt_scratch_limit(mt_scratch *s, uint64_t subvolume, uint64_t disk_bytes, mt_err **err)
{
    int r = mt_btrfs_limit(s->root_dir_fd, subvolume, disk_bytes);

    return r < 0 ? mt_fail_errno(err, r, "cannot limit the run's folder on the scratch disk") : 0;
}

int mt_scratch_usage_fd(const mt_scratch *s, uint64_t subvolume)
{
    char path[48];

    (void)snprintf(path, sizeof(path), "0_%llu/referenced", (unsigned long long)subvolume);
    return s->groups_fd < 0 ? -1 : openat(s->groups_fd, path, O_RDONLY | O_CLOEXEC);
}

bool mt_scratch_met(int usage_fd, uint64_t disk_bytes)
{
    char text[32];
    ssize_t n = usage_fd < 0 ? -1 : pread(usage_fd, text, sizeof(text) - 1, 0);
    uint64_t used, margin = MT_MAX((uint64_t)2 << 20, disk_bytes / 64);

    if (n <= 0)
        return false;
    n -= text[n - 1] == '\n';
    // The write that is refused may be larger than what is left.
    return mt_parse_u64((mt_str){text, (size_t)n}, UINT64_MAX, &used) &&
           used + margin >= disk_bytes;
}

static unsigned count_entries(int dirfd, char first)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    unsigned n = 0;

    if (!d) {
        mt_close_fd(&fd);
        return 0;
    }
    while ((e = readdir(d)))
        n += e->d_name[0] == first;
    (void)closedir(d);
    return n;
}

int mt_scratch_fill(mt_scratch *s, unsigned count)
{
    char making[64], done[64];
    int r;

    if (!s->btrfs || count_entries(s->ready_fd, 'r') >= count)
        return 0;
    s->ready_seq++;
    (void)snprintf(making, sizeof(making), "m%llu-%d", (unsigned long long)s->ready_seq,
                   (int)getpid());
    (void)snprintf(done, sizeof(done), "r%llu-%d", (unsigned long long)s->ready_seq, (int)getpid());
    r = make_subvolume(s->ready_fd, making);
    if (r < 0)
        return r;
    return renameat(s->ready_fd, making, s->ready_fd, done) < 0 ? -errno : 1;
}

int mt_scratch_drop(mt_scratch *s, const char *place)
{
    char name[80];

    if (!s->btrfs)
        return 0;
    if (!mt_is_place(mt_str_of(place)))
        return -EINVAL;
    (void)snprintf(name, sizeof(name), "%s-%llu", place, (unsigned long long)++s->dead_seq);
    if (renameat(s->runs_fd, place, s->dead_fd, name) < 0)
        return errno == ENOENT ? 0 : -errno;
    return 0;
}

// Kernels that leave the group of a deleted subvolume behind (6.1) get it removed once their
// cleaner is done with it.
static void forget_groups(mt_scratch *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->forget_count; i++)
        if (mt_btrfs_forget(s->root_dir_fd, s->forget[i]) == -EBUSY)
            s->forget[kept++] = s->forget[i];
    s->forget_count = kept;
}

static void delete_one(mt_scratch *s, const char *name)
{
    _cleanup_close_ int fd =
        openat(s->dead_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    uint64_t id = 0;

    if (fd >= 0 && mt_btrfs_subvolume_id(fd, &id) < 0)
        id = 0;
    mt_close_fd(&fd);
    if (mt_btrfs_subvolume_delete(s->dead_fd, name) < 0)
        return;
    if (id && s->forget_count < FORGET_MAX)
        s->forget[s->forget_count++] = id;
}

void mt_scratch_janitor(mt_scratch *s)
{
    uint64_t bytes, free_now;
    int fd;
    DIR *d;
    struct dirent *e;

    if (!s->btrfs)
        return;
    fd = openat(s->dead_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        mt_close_fd(&fd);
        return;
    }
    while ((e = readdir(d)))
        if (e->d_name[0] != '.')
            delete_one(s, e->d_name);
    (void)closedir(d);
    mt_scratch_space(s, &bytes, &free_now);
    if (free_now < bytes / 4)
        (void)mt_btrfs_sync(s->root_dir_fd); // the space is wanted now
    forget_groups(s);
}

bool mt_scratch_pending(const mt_scratch *s)
{
    return s->forget_count > 0;
}

int mt_scratch_each(mt_scratch *s, void (*fn)(const char *place, void *data), void *data)
{
    int fd = s->btrfs ? openat(s->runs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        mt_close_fd(&fd);
        return s->btrfs ? -EIO : 0;
    }
    while ((e = readdir(d)))
        if (mt_is_place(mt_str_of(e->d_name)))
            fn(e->d_name, data);
    (void)closedir(d);
    return 0;
}
