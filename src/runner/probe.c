// SPDX-License-Identifier: Apache-2.0
// What this host cannot do, found out at the start and told by INFO, so that nobody has to learn it
// from the first run that fails.
#include "runner/runner.h"

#include "capsule/idmap.h"
#include "capsule/syscalls.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

static void add(runner *r, const char *fmt, ...) MT_PRINTF(2, 3);

static void add(runner *r, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;

    if (r->notice_count == RUNNER_NOTICES_MAX)
        return;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) >= 0)
        r->notices[r->notice_count++] = text;
    va_end(ap);
}

static void probe_idmap(runner *r, int folder_fd, int userns_fd, const char *what,
                        const char *option)
{
    _cleanup_err_ mt_err *err = NULL;
    int fd = -1;

    if (mt_idmap_mount(folder_fd, "", userns_fd, 0, &fd, &err) < 0)
        add(r,
            "no run can be started: the file system of %s (%s) has no idmapped mounts; keep them "
            "on "
            "ext4, xfs or btrfs",
            what, option);
    mt_close_fd(&fd);
}

// The runner's own root is a tmpfs like those that runs get.
static void probe_tmpfs(runner *r)
{
    if (setxattr("/", "user.overlay.probe", "y", 1, 0) == 0) {
        (void)removexattr("/", "user.overlay.probe");
        return;
    }
    add(r, "what runs write is kept in memory, and this kernel (before 6.6) keeps no attributes "
           "there: "
           "a folder of the image that was removed cannot be made again in a run");
}

static void probe_layers(runner *r)
{
    struct statvfs st;

    if (fstatvfs(r->layers_fd, &st) == 0 && (st.f_flag & ST_NOEXEC))
        add(r, "programs of packages cannot be executed: the file system of the state folder "
               "(--state) is mounted noexec");
}

void runner_probe(runner *r)
{
    _cleanup_close_ int image = -1, vfs = -1;
    _cleanup_err_ mt_err *err = NULL;
    const char *const *groups;
    size_t count = mt_cgroups_notices(r->cgroups, &groups);

    for (size_t i = 0; i < count; i++)
        add(r, "%s", groups[i]);
    if (r->mt_fd < 0)
        add(r, "capsules have no mt: there is no mt-capsule beside mt-runner or in " INSTALLED
               " (--mt)");
    if (*mt_scratch_reason(r->scratch))
        add(r, "%s", mt_scratch_reason(r->scratch));
    if (!mt_scratch_is_btrfs(r->scratch))
        probe_tmpfs(r);
    if (blocks_maps(r->blocks, 0, &image, &vfs, &err) < 0) {
        add(r, "no run can be started: %s", mt_err_sentence(err));
        return;
    }
    probe_idmap(r, r->images_fd, image, "images", "--images");
    probe_idmap(r, r->vfs_fd, vfs, "the state folder", "--state");
    probe_layers(r);
}
