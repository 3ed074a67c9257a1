// SPDX-License-Identifier: Apache-2.0
// Copies of mt-init and mt-session in memory that nobody can write: what runs in a capsule can be
// reached through /proc/PID/exe, and a file on the host must not be.
#include "runner/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u // Linux 6.3; before, every memfd may be executed
#endif

enum { PROGRAM_MAX = 16 << 20 };

int runner_seal(const char *name, const char *path, int *ret_fd, mt_err **err)
{
    _cleanup_close_ int from = open(path, O_RDONLY | O_CLOEXEC), to = -1;
    struct stat st;
    int r;

    if (from < 0 || fstat(from, &st) < 0)
        return mt_fail_errno(err, errno, "cannot open %s at '%s'", name, path);
    if (!S_ISREG(st.st_mode) || st.st_size == 0 || st.st_size > PROGRAM_MAX)
        return mt_fail(err, MT_E_IO, "'%s' is not %s", path, name);
    to = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (to < 0 && errno == EINVAL)
        to = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (to < 0)
        return mt_fail_errno(err, errno, "cannot keep %s in memory", name);
    r = program_copy(from, to, st.st_size);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read %s at '%s'", name, path);
    if (fchmod(to, 0555) < 0 ||
        fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return mt_fail_errno(err, errno, "cannot seal %s", name);
    *ret_fd = MT_TAKE_FD(to);
    return 0;
}
