// SPDX-License-Identifier: Apache-2.0
// Steps of the child: mt, and the socket by which the capsule's default user is signed in to the
// server (docs/internals/sign-in.md). Both are the same for every run, so spares have them.
#include "base/aside.h"
#include "base/fd.h"
#include "capsule/idmap.h"
#include "capsule/syscalls.h"
#include "runner/machine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { BACKLOG = 128 }; // clients that wait while the server is away

// An empty file to mount over; a layer may hold a link or anything else there.
static int make_place(const mt_build *b, const char *folder, const char *name)
{
    _cleanup_close_ int dir = mt_build_folder(b, folder), fd = -1;
    struct stat st;

    if (dir < 0)
        return dir;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISREG(st.st_mode))
            return 0;
        if (unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
            return -errno;
    }
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
    return fd < 0 ? -errno : 0;
}

int mt_step_program(mt_build *b)
{
    _cleanup_close_ int at = -1;
    int r;

    if (b->parts->mt_fd < 0)
        return 0;
    mt_build_detail(b, "/usr/local/bin/mt");
    r = make_place(b, "usr/local/bin", "mt");
    if (r < 0)
        return r;
    at = mt_build_open(b, "usr/local/bin/mt", O_PATH, 0);
    if (at < 0)
        return at;
    return move_mount(b->parts->mt_fd, "", at, "",
                      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
               ? -errno
               : 0;
}

// Listening, and for the default user alone, before anybody can see it.
static int listen_in(int folder_fd, int *ret_fd)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "api.sock"};
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)mt_refuse_fds(fd); // where not, the server takes care
    if (fd < 0 || fchdir(folder_fd) < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        fchmodat(folder_fd, "api.sock", 0600, 0) < 0 ||
        fchownat(folder_fd, "api.sock", MT_MAITENTO_UID, MT_MAITENTO_UID, AT_SYMLINK_NOFOLLOW) <
            0 ||
        listen(fd, BACKLOG) < 0)
        return -errno;
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}

// A file system of its own: nothing of it lies on the host, and it goes with the mount namespace.
// Read-only, so that not even the capsule's root can put another socket in its place.
int mt_step_api(mt_build *b)
{
    static const char *const options[] = {"mode", "0755", "size", "4k", "nr_inodes", "4", NULL};
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};
    _cleanup_close_ int mount = -1;
    int r;

    if (!b->res->sign_in)
        return 0;
    mt_build_detail(b, "/run/maitento");
    mount =
        mt_build_new_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (mount < 0)
        return mount;
    r = listen_in(mount, &b->api_fd);
    if (r < 0)
        return r;
    if (mount_setattr(mount, "", AT_EMPTY_PATH, &ro, sizeof(ro)) < 0)
        return -errno;
    return mt_build_attach(b, MT_TAKE_FD(mount), "run/maitento");
}
