// SPDX-License-Identifier: Apache-2.0
// Steps of the child: the file systems of the namespace, and small files of the machine.
#include "base/fd.h"
#include "capsule/syscalls.h"
#include "runner/machine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

int mt_step_mounts(mt_build *b)
{
    for (uint32_t i = 0; i < b->id->mount_count; i++) {
        char path[128];
        int r;

        mt_build_detail(b, "/mnt/%s", b->id->mounts[i]);
        (void)snprintf(path, sizeof(path), "mnt/%s", b->id->mounts[i]);
        r = mt_build_attach(b, MT_TAKE_FD(b->vfs_fds[i]), path);
        if (r < 0)
            return r;
    }
    return 0;
}

int mt_step_secrets(mt_build *b)
{
    if (!b->id->has_secrets)
        return 0;
    mt_build_detail(b, "/mnt/secrets");
    return mt_build_attach(b, MT_TAKE_FD(b->vfs_fds[b->id->mount_count]), "mnt/secrets");
}

// Whether the file is there with that content: it need not be copied up then.
static bool has_content(const mt_build *b, const char *path, const char *text)
{
    _cleanup_close_ int fd = mt_build_open(b, path, O_RDONLY | O_NONBLOCK, 0);
    char have[1024];
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    n = read(fd, have, sizeof(have));
    return n == (ssize_t)strlen(text) && memcmp(have, text, (size_t)n) == 0;
}

// A layer may hold a link or anything else there: it is replaced, never followed.
static int put_file(mt_build *b, const char *folder, const char *name, const char *text)
{
    _cleanup_close_ int dir = -1, fd = -1;
    char path[128];

    mt_build_detail(b, "/%s/%s", folder, name);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (has_content(b, path, text))
        return 0;
    dir = mt_build_folder(b, folder);
    if (dir < 0)
        return dir;
    if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
        return -errno;
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    return mt_write_full(fd, text, strlen(text));
}

static int ensure_tmp(mt_build *b)
{
    _cleanup_close_ int fd = -1;
    struct stat st;

    mt_build_detail(b, "/tmp");
    fd = mt_build_folder(b, "tmp");
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((st.st_mode & 07777) == 01777)
        return 0;
    // fchmod(2) does not take O_PATH; "." is the folder itself.
    return fchmodat(fd, ".", 01777, 0) < 0 ? -errno : 0;
}

// The files themselves, so that giving them their content is all that is left to the builder.
int mt_step_places(mt_build *b)
{
    int r = ensure_tmp(b);

    if (r == 0)
        r = put_file(b, "etc", "resolv.conf", "");
    if (r == 0)
        r = put_file(b, "etc", "hostname", "\n");
    return r == 0 ? put_file(b, "etc", "hosts", "\n") : r;
}

// The first that is written to a layer: an overlay whose upper folder cannot be used is mounted
// read-only without a word, which ends here.
int mt_step_conf(mt_build *b)
{
    if (b->parts->conf_fd < 0)
        return 0;
    mt_build_detail(b, "/run/maitento-build");
    return mt_build_attach(b, fcntl(b->parts->conf_fd, F_DUPFD_CLOEXEC, 0), "run/maitento-build");
}

// Cut only where it is too long, which it hardly is: that costs as much as all the rest.
static int fill_file(mt_build *b, const char *path, const char *text)
{
    _cleanup_close_ int fd = mt_build_open(b, path, O_WRONLY | O_NONBLOCK, 0);
    struct stat st;

    mt_build_detail(b, "/%s", path);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 ||
        (st.st_size > (off_t)strlen(text) && ftruncate(fd, (off_t)strlen(text)) < 0))
        return -errno;
    return mt_write_full(fd, text, strlen(text));
}

int mt_step_files(mt_build *b)
{
    const char *host = b->id->hostname;
    char text[512];
    int r;

    r = fill_file(b, "etc/resolv.conf",
                  b->id->network == MT_NETWORK_INTERNET
                      ? "nameserver 127.0.0.53\n"
                      : "# network = \"none\": no names are looked up\n");
    if (r < 0)
        return r;
    (void)snprintf(text, sizeof(text), "%s\n", host);
    r = fill_file(b, "etc/hostname", text);
    if (r < 0)
        return r;
    (void)snprintf(text, sizeof(text),
                   "127.0.0.1\tlocalhost\n127.0.1.1\t%s\n::1\tlocalhost ip6-localhost\n", host);
    return fill_file(b, "etc/hosts", text);
}
