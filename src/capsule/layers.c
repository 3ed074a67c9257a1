// SPDX-License-Identifier: Apache-2.0
#include "capsule/layers.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "capsule/plan.h"
#include "capsule/syscalls.h"
#include "capsule/tree.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { NAME_SIZE = 128, LAYER_FORMAT = 1, LAYERS_MAX = 16384, FAILURE_KEPT_S = 600 };

#define BUILD_PREFIX  "build-"
#define FAILED_PREFIX "failed-"
#define GONE_PREFIX   "gone-"

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void mt_layer_digest(const char *image_digest, const char *const *packages, uint32_t count,
                     char out[MT_LAYER_TEXT])
{
    const char *sorted[MT_PLAN_PACKAGES_MAX];
    char head[128];
    mt_sha256 s;

    count = MT_MIN(count, MT_PLAN_PACKAGES_MAX);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = packages[i];
    qsort(sorted, count, sizeof(*sorted), by_text);
    mt_sha256_init(&s);
    (void)snprintf(head, sizeof(head), "layer %d\n%.64s\n", LAYER_FORMAT, image_digest);
    mt_sha256_add(&s, head, strlen(head));
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && mt_streq(sorted[i], sorted[i - 1]))
            continue;
        mt_sha256_add(&s, sorted[i], strlen(sorted[i]) + 1);
    }
    mt_sha256_hex(&s, out);
}

static const char *path_of(char out[NAME_SIZE], const char *prefix, const char *digest,
                           const char *rest)
{
    (void)snprintf(out, NAME_SIZE, "%s%.64s%s%s", prefix, digest, *rest ? "/" : "", rest);
    return out;
}

static bool is_same_file(int fd, int dirfd, const char *path)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && fstatat(dirfd, path, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int mt_layer_open(int layers_fd, const char *digest, mt_layer *ret)
{
    char lock_path[NAME_SIZE], path[NAME_SIZE];
    _cleanup_close_ int lock = -1, root = -1;
    struct stat st;

    (void)path_of(lock_path, "", digest, "lock");
    lock = mt_sys_open_beneath(layers_fd, lock_path, O_RDONLY, 0);
    if (lock < 0)
        return errno == ENOENT ? 1 : -errno;
    if (flock(lock, LOCK_SH | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? 1 : -errno; // it is being removed
    root =
        mt_sys_open_beneath(layers_fd, path_of(path, "", digest, "root"), O_PATH | O_DIRECTORY, 0);
    // The layer may have been removed, and made again, since the lock was opened.
    if (root < 0 || !is_same_file(lock, layers_fd, lock_path))
        return 1;
    if (fstatat(layers_fd, path_of(path, "", digest, "size"), &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 1;
    (void)futimens(lock, NULL);
    *ret = (mt_layer){.root_fd = MT_TAKE_FD(root),
                      .lock_fd = MT_TAKE_FD(lock),
                      .made_us = st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000};
    return 0;
}

// --- building ------------------------------------------------------------------------------------

// Out of the way at once; removed whenever there is time (mt_layers_prune).
static int put_away(int layers_fd, const char *name)
{
    char gone[NAME_SIZE], id[MT_ID_TEXT];

    mt_id_new(id);
    (void)snprintf(gone, sizeof(gone), GONE_PREFIX "%s", id);
    return renameat(layers_fd, name, layers_fd, gone) < 0 && errno != ENOENT ? -errno : 0;
}

static int make_build(int layers_fd, const char *digest, mt_str request)
{
    static const char *const folders[] = {"", "disk", "disk/upper", "disk/work", "conf"};
    char path[NAME_SIZE];
    int r;

    for (size_t i = 0; i < MT_ARRAY_SIZE(folders); i++) {
        // What is seen inside has the modes of a root.
        mode_t mode = i == 0 || i == 3 ? 0700 : 0755;

        (void)path_of(path, BUILD_PREFIX, digest, folders[i]);
        if (mkdirat(layers_fd, path, mode) < 0 || fchmodat(layers_fd, path, mode, 0) < 0)
            return -errno;
    }
    (void)path_of(path, BUILD_PREFIX, digest, "request");
    r = mt_write_file_atomic(layers_fd, path, request.data, request.len, 0600);
    if (r < 0)
        return r;
    if (unlinkat(layers_fd, path_of(path, FAILED_PREFIX, digest, ""), 0) < 0 && errno != ENOENT)
        return -errno;
    return 0;
}

int mt_layer_build_begin(int layers_fd, const char *digest, mt_str request, mt_err **err)
{
    char path[NAME_SIZE];
    int r = put_away(layers_fd, path_of(path, BUILD_PREFIX, digest, ""));

    if (r == 0)
        r = make_build(layers_fd, digest, request);
    if (r == 0)
        return 0;
    (void)put_away(layers_fd, path_of(path, BUILD_PREFIX, digest, ""));
    return mt_fail_errno(err, r, "cannot make the folder of a package layer");
}

bool mt_layer_is_building(int layers_fd, const char *digest)
{
    char path[NAME_SIZE];

    return faccessat(layers_fd, path_of(path, BUILD_PREFIX, digest, ""), F_OK,
                     AT_SYMLINK_NOFOLLOW) == 0;
}

static int read_text(int layers_fd, const char *path, mt_buf *ret)
{
    _cleanup_close_ int fd = mt_sys_open_beneath(layers_fd, path, O_RDONLY, 0);

    return fd < 0 ? -errno : mt_read_all(fd, ret);
}

int mt_layer_build_request(int layers_fd, const char *digest, mt_buf *ret)
{
    char path[NAME_SIZE];

    return read_text(layers_fd, path_of(path, BUILD_PREFIX, digest, "request"), ret);
}

int mt_layer_build_open(int layers_fd, const char *digest, const char *name)
{
    char path[NAME_SIZE];
    int fd = mt_sys_open_beneath(layers_fd, path_of(path, BUILD_PREFIX, digest, name),
                                 O_PATH | O_DIRECTORY, 0);

    return fd < 0 ? -errno : fd;
}

void mt_layer_build_stop(int layers_fd, const char *digest, const char *why)
{
    char path[NAME_SIZE];
    _cleanup_close_ int fd = mt_sys_open_beneath(
        layers_fd, path_of(path, BUILD_PREFIX, digest, "why"), O_WRONLY | O_CREAT | O_EXCL, 0600);

    if (fd >= 0)
        (void)mt_write_full(fd, why, strlen(why));
}

bool mt_layer_build_stopped(int layers_fd, const char *digest, mt_buf *ret)
{
    char path[NAME_SIZE];

    return read_text(layers_fd, path_of(path, BUILD_PREFIX, digest, "why"), ret) == 0 && ret->len;
}

void mt_layer_build_leave(int layers_fd, const char *digest)
{
    char path[NAME_SIZE];
    int fd = mt_sys_open_beneath(layers_fd, path_of(path, BUILD_PREFIX, digest, "left"),
                                 O_WRONLY | O_CREAT, 0600);

    mt_close_fd(&fd);
}

bool mt_layer_build_is_left(int layers_fd, const char *digest)
{
    char path[NAME_SIZE];

    return faccessat(layers_fd, path_of(path, BUILD_PREFIX, digest, "left"), F_OK,
                     AT_SYMLINK_NOFOLLOW) == 0;
}

void mt_layer_build_drop(int layers_fd, const char *digest)
{
    char path[NAME_SIZE];

    (void)put_away(layers_fd, path_of(path, BUILD_PREFIX, digest, ""));
}

uint64_t mt_layer_build_bytes(int layers_fd, const char *digest)
{
    mt_tree_sum sum = {0};
    char path[NAME_SIZE];

    (void)mt_tree_sum_up(layers_fd, path_of(path, BUILD_PREFIX, digest, "disk"), 0, &sum);
    return sum.bytes;
}

// What the machine and the way of building leave in the upper folder. Removed from outside, so that
// what the image has there shows again. Kept is /run: a package's folders in it are made once.
static const char *const LEFTOVERS[] = {
    "dev",
    "proc",
    "sys",
    "mnt",
    "tmp",
    "var/tmp",
    "etc/resolv.conf",
    "etc/hosts",
    "etc/hostname",
    "run/maitento-build",
    "usr/sbin/policy-rc.d",
    "var/cache/ldconfig",
    "var/cache/debconf/config.dat-old",
    "var/cache/debconf/templates.dat-old",
    "var/lib/dpkg/lock",
    "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/status-old",
    "var/lib/dpkg/diversions-old",
    "var/lib/dpkg/statoverride-old",
    "var/log/alternatives.log",
    "var/log/apt",
    "var/log/dpkg.log",
};
static const char *const LISTS[] = {"var/lib/apt/lists", "var/cache/apt"};

static int take_away(int upper_fd, const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int r = mt_tree_remove(upper_fd, paths[i]);

        if (r < 0)
            return r;
    }
    return 0;
}

// Where one before us came so far and died, it is called root already.
static int open_upper(int build_fd)
{
    int fd = mt_sys_open_beneath(build_fd, "disk/upper", O_RDONLY | O_DIRECTORY, 0);

    return fd < 0 && errno == ENOENT
               ? mt_sys_open_beneath(build_fd, "root", O_RDONLY | O_DIRECTORY, 0)
               : fd;
}

static int complete(int layers_fd, const char *digest, bool keep_lists, mt_err **err)
{
    char path[NAME_SIZE], text[32];
    _cleanup_close_ int build = mt_sys_open_beneath(
        layers_fd, path_of(path, BUILD_PREFIX, digest, ""), O_RDONLY | O_DIRECTORY, 0);
    _cleanup_close_ int upper = build < 0 ? -1 : open_upper(build);
    mt_tree_sum sum = {0};
    int r = upper < 0 ? -errno : take_away(upper, LEFTOVERS, MT_ARRAY_SIZE(LEFTOVERS));

    if (r == 0 && !keep_lists)
        r = take_away(upper, LISTS, MT_ARRAY_SIZE(LISTS));
    if (r == 0)
        r = mt_tree_sum_up(upper, ".", MT_TREE_AS_IMAGE, &sum);
    if (r == -EPERM)
        return mt_fail(err, MT_E_START_FAILED, "the layer holds what no image may hold");
    if (r == 0 && renameat(build, "disk/upper", build, "root") < 0 && errno != ENOENT)
        r = -errno;
    if (r == 0)
        r = take_away(build, (const char *const[]){"disk", "conf", "request", "why", "left"}, 5);
    (void)snprintf(text, sizeof(text), "%" PRIu64, sum.bytes);
    if (r == 0)
        r = mt_write_file_atomic(build, "lock", "", 0, 0600);
    if (r == 0)
        r = mt_write_file_atomic(build, "size", text, strlen(text), 0600);
    // A layer is believed for ever: it must not be cut short by a power loss.
    if (r == 0 && syncfs(build) < 0)
        r = -errno;
    return r < 0 ? mt_fail_errno(err, r, "cannot complete the package layer") : 0;
}

int mt_layer_build_commit(int layers_fd, const char *digest, bool keep_lists, mt_err **err)
{
    char from[NAME_SIZE], to[NAME_SIZE];
    int r;

    // Done, by one who died before he could say so.
    if (!mt_layer_is_building(layers_fd, digest) &&
        faccessat(layers_fd, path_of(to, "", digest, "size"), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (complete(layers_fd, digest, keep_lists, err) < 0)
        return -1;
    r = put_away(layers_fd, path_of(to, "", digest, ""));
    if (r == 0 && renameat(layers_fd, path_of(from, BUILD_PREFIX, digest, ""), layers_fd, to) < 0)
        r = -errno;
    return r < 0 ? mt_fail_errno(err, r, "cannot complete the package layer") : 0;
}

void mt_layer_build_fail(int layers_fd, const char *digest, mt_str why)
{
    char path[NAME_SIZE];

    // The reason first: who waits looks for it when there is no build.
    (void)mt_write_file_atomic(layers_fd, path_of(path, FAILED_PREFIX, digest, ""), why.data,
                               why.len, 0600);
    (void)put_away(layers_fd, path_of(path, BUILD_PREFIX, digest, ""));
}

int mt_layer_failure(int layers_fd, const char *digest, mt_buf *ret)
{
    char path[NAME_SIZE];

    return read_text(layers_fd, path_of(path, FAILED_PREFIX, digest, ""), ret);
}

// --- lists of them -------------------------------------------------------------------------------

static DIR *open_list(int layers_fd)
{
    int fd = openat(layers_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d)
        mt_close_fd(&fd);
    return d;
}

void mt_layer_each_build(int layers_fd, void (*each)(const char *digest, void *data), void *data)
{
    const size_t skip = sizeof(BUILD_PREFIX) - 1;
    DIR *d = open_list(layers_fd);
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (mt_starts_with(e->d_name, BUILD_PREFIX) && mt_is_digest(mt_str_of(e->d_name + skip)))
            each(e->d_name + skip, data);
    if (d)
        (void)closedir(d);
}

typedef struct one {
    char digest[MT_LAYER_TEXT];
    uint64_t bytes;
    int64_t used_us;
} one;

static int by_use(const void *a, const void *b)
{
    const one *x = a, *y = b;

    return (x->used_us > y->used_us) - (x->used_us < y->used_us);
}

static void look_at(int layers_fd, const char *digest, one *ret)
{
    _cleanup_buf_ mt_buf size = MT_BUF_INIT(64);
    char path[NAME_SIZE];
    struct stat st;

    (void)snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
    if (read_text(layers_fd, path_of(path, "", digest, "size"), &size) < 0 ||
        !mt_parse_u64(mt_str_of(mt_buf_str(&size)), UINT64_MAX, &ret->bytes))
        ret->bytes = 0;
    if (fstatat(layers_fd, path_of(path, "", digest, "lock"), &st, AT_SYMLINK_NOFOLLOW) == 0)
        ret->used_us = st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
}

// false: somebody uses it.
static bool remove_layer(int layers_fd, const char *digest)
{
    char path[NAME_SIZE];
    _cleanup_close_ int lock =
        mt_sys_open_beneath(layers_fd, path_of(path, "", digest, "lock"), O_RDONLY, 0);

    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0)
        return false;
    return put_away(layers_fd, path_of(path, "", digest, "")) == 0;
}

// Who waited has read it long ago.
static void forget_failure(int layers_fd, const char *name)
{
    struct stat st;

    if (fstatat(layers_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        mt_now_us() / 1000000 - st.st_mtim.tv_sec > FAILURE_KEPT_S)
        (void)unlinkat(layers_fd, name, 0);
}

// One that was replaced may still be in use; it goes when it is not.
static void remove_gone(int layers_fd)
{
    DIR *d = open_list(layers_fd);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        _cleanup_close_ int lock = -1;
        char path[NAME_SIZE + 256];

        if (mt_starts_with(e->d_name, FAILED_PREFIX))
            forget_failure(layers_fd, e->d_name);
        if (!mt_starts_with(e->d_name, GONE_PREFIX))
            continue;
        (void)snprintf(path, sizeof(path), "%s/lock", e->d_name);
        lock = mt_sys_open_beneath(layers_fd, path, O_RDONLY, 0);
        if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) == 0)
            (void)mt_tree_remove(layers_fd, e->d_name);
    }
    if (d)
        (void)closedir(d);
}

int mt_layers_prune(int layers_fd, uint64_t limit, unsigned keep_s, mt_layers_pruned *ret)
{
    _cleanup_free_ one *list = calloc(LAYERS_MAX, sizeof(*list));
    DIR *d = list ? open_list(layers_fd) : NULL;
    struct dirent *e;
    uint64_t total = 0;
    size_t count = 0;

    *ret = (mt_layers_pruned){0};
    if (!d)
        return list ? -errno : -ENOMEM;
    while (count < LAYERS_MAX && (e = readdir(d)))
        if (mt_is_digest(mt_str_of(e->d_name))) {
            look_at(layers_fd, e->d_name, &list[count]);
            total += list[count++].bytes;
        }
    (void)closedir(d);
    qsort(list, count, sizeof(*list), by_use);
    for (size_t i = 0; i < count && (total > limit || limit == 0); i++) {
        if (keep_s && mt_now_us() - list[i].used_us < keep_s * 1000000LL)
            break;
        if (!remove_layer(layers_fd, list[i].digest))
            continue;
        total -= list[i].bytes;
        ret->bytes += list[i].bytes;
        ret->layers++;
    }
    remove_gone(layers_fd);
    return 0;
}
