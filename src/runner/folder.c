// SPDX-License-Identifier: Apache-2.0
// The folder of a run: STATE/runs/<run id>, root's, readable by the service. A spare has one by the
// name of its place, which is renamed when a run gets it.
//
//   journal   0640 root:S   written by runner and supervisor, read by the server
//   sock      0600 S:S      the supervisor's, for servers
//   out/      02750 root:S  what commands have printed (capsule/command.h)
//
// The folder hands its group on, so that the supervisor, who may not give files away, makes files
// that the service can read.
#include "runner/runner.h"

#include "base/aside.h"
#include "base/fd.h"
#include "base/id.h"
#include "capsule/syscalls.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { BACKLOG = 16 };

int folder_make(runner *r, const char *run_id, int *ret_fd, mt_err **err)
{
    _cleanup_close_ int fd = -1;

    if (mkdirat(r->runs_fd, run_id, 0700) < 0) {
        if (errno == EEXIST)
            return mt_fail(err, MT_E_ALREADY_EXISTS, "there is a run '%s' already", run_id);
        return mt_fail_errno(err, errno, "cannot make the folder of run '%s'", run_id);
    }
    fd = mt_sys_open_beneath(r->runs_fd, run_id, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 || fchown(fd, 0, r->o.service_gid) < 0 || fchmod(fd, 02750) < 0) {
        int e = errno;

        (void)unlinkat(r->runs_fd, run_id, AT_REMOVEDIR);
        return mt_fail_errno(err, e, "cannot open the folder of run '%s'", run_id);
    }
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}

// Only a folder that root made is a run's: nobody else's can be taken for one.
int folder_open(runner *r, const char *run_id, int *ret_fd, mt_err **err)
{
    _cleanup_close_ int fd = mt_sys_open_beneath(r->runs_fd, run_id, O_RDONLY | O_DIRECTORY, 0);
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return 1;
    if (fd < 0 || fstat(fd, &st) < 0)
        return mt_fail_errno(err, errno, "cannot open the folder of run '%s'", run_id);
    if (st.st_uid != 0 || (st.st_mode & 0022))
        return mt_fail(err, MT_E_FORBIDDEN, "the folder of run '%s' is not root's alone", run_id);
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}

int folder_listen(runner *r, int folder_fd, int *ret_fd, mt_err **err)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/sock", folder_fd);
    (void)mt_refuse_fds(fd);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        fchownat(folder_fd, "sock", r->o.service_uid, r->o.service_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
        fchmodat(folder_fd, "sock", 0600, 0) < 0 || listen(fd, BACKLOG) < 0)
        return mt_fail_errno(err, errno, "cannot make the socket of the run");
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}

int folder_rename(runner *r, const char *from, const char *to, mt_err **err)
{
    if (renameat2(r->runs_fd, from, r->runs_fd, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EEXIST)
        return mt_fail(err, MT_E_ALREADY_EXISTS, "there is a run '%s' already", to);
    return mt_fail_errno(err, errno, "cannot make the folder of run '%s'", to);
}

bool folder_closed(int folder_fd)
{
    _cleanup_close_ int fd = mt_sys_open_beneath(folder_fd, "journal", O_RDONLY, 0);
    char tail[MT_RECORD_HEADER + MT_RECORD_FIXED];
    mt_record record;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(tail))
        return false;
    return pread(fd, tail, sizeof(tail), st.st_size - (off_t)sizeof(tail)) == sizeof(tail) &&
           mt_record_decode(tail, sizeof(tail), &record) == sizeof(tail) &&
           record.type == MT_REC_CLOSED;
}

// Files, and files in folders of it (spools): never deeper, never through a link.
static void empty(int dirfd, int depth)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        mt_close_fd(&fd);
        return;
    }
    while ((e = readdir(d))) {
        if (mt_streq(e->d_name, ".") || mt_streq(e->d_name, ".."))
            continue;
        if (e->d_type == DT_DIR && depth > 0) {
            _cleanup_close_ int sub =
                mt_sys_open_beneath(dirfd, e->d_name, O_RDONLY | O_DIRECTORY, 0);

            if (sub >= 0)
                empty(sub, depth - 1);
        }
        (void)unlinkat(dirfd, e->d_name, e->d_type == DT_DIR ? AT_REMOVEDIR : 0);
    }
    (void)closedir(d);
}

int folder_each(runner *r, void (*fn)(const char *name, void *data), void *data)
{
    int fd = openat(r->runs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        int why = errno;

        mt_close_fd(&fd);
        return -why;
    }
    while ((e = readdir(d)))
        if (e->d_name[0] != '.')
            fn(e->d_name, data);
    (void)closedir(d);
    return 0;
}

void folder_remove_outputs(int folder_fd)
{
    _cleanup_close_ int fd = mt_sys_open_beneath(folder_fd, "out", O_RDONLY | O_DIRECTORY, 0);

    if (fd < 0)
        return;
    empty(fd, 0);
    (void)unlinkat(folder_fd, "out", AT_REMOVEDIR);
}

void folder_remove(runner *r, const char *run_id)
{
    _cleanup_close_ int fd = -1;

    if (folder_open(r, run_id, &fd, NULL) != 0)
        return;
    empty(fd, 2);
    (void)unlinkat(r->runs_fd, run_id, AT_REMOVEDIR);
}
