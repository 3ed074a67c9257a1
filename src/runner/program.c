// SPDX-License-Identifier: Apache-2.0
// mt as capsules have it: a copy of the static build, made once, on a small file system of its own
// that is read-only as a whole, whoever mounts it and however. Every capsule gets a mount of the
// one file; nothing inside leads to the file on the host.
#include "runner/runner.h"

#include "base/fd.h"
#include "capsule/syscalls.h"

#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { PROGRAM_MAX = 64 << 20 };

char *program_find(const char *name, const char *build_folder, const char *installed)
{
    const char *const places[] = {"", build_folder};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < MT_ARRAY_SIZE(places); i++) {
        char *path = mt_asprintf("%.*s/%s%s", (int)(slash - self), self, places[i], name);

        if (path && access(path, R_OK) == 0)
            return path;
        free(path);
    }
    return mt_asprintf("%s/%s", installed, name);
}

int program_copy(int from, int to, off_t size)
{
    off_t at = 0;

    while (at < size) {
        ssize_t n = sendfile(to, from, &at, (size_t)(size - at));

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return -ENODATA;
    }
    return 0;
}

static int fill(int from, off_t size, int mount_fd)
{
    _cleanup_close_ int to = openat(mount_fd, "mt", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);
    int r = to < 0 ? -errno : program_copy(from, to, size);

    return r == 0 && fchmod(to, 0555) < 0 ? -errno : r;
}

// A detached file system with nothing but the file in it, which nobody can write from now on.
static int make(int from, off_t size, int *ret_mount)
{
    _cleanup_close_ int fs = fsopen("tmpfs", FSOPEN_CLOEXEC), mount = -1;
    char bytes[32];
    int r;

    (void)snprintf(bytes, sizeof(bytes), "%lld", (long long)size + (64 << 10));
    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", "tmpfs", 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "size", bytes, 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    mount = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (mount < 0)
        return -errno;
    r = fill(from, size, mount);
    if (r < 0)
        return r;
    if (fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
        return -errno;
    *ret_mount = MT_TAKE_FD(mount);
    return 0;
}

int program_mount(const char *path, bool must_be, int *ret_mount, mt_err **err)
{
    _cleanup_close_ int from = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    int r;

    *ret_mount = -1;
    if (from < 0 && errno == ENOENT && !must_be)
        return 0;
    if (from < 0 || fstat(from, &st) < 0)
        return mt_fail_errno(err, errno, "cannot open the mt of capsules at '%s' (--mt)", path);
    if (!S_ISREG(st.st_mode) || st.st_size == 0 || st.st_size > PROGRAM_MAX)
        return mt_fail(err, MT_E_IO, "'%s' is not the mt of capsules (--mt)", path);
    r = make(from, st.st_size, ret_mount);
    return r < 0 ? mt_fail_errno(err, r, "cannot keep a copy of '%s' in memory", path) : 0;
}
