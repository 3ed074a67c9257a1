// SPDX-License-Identifier: Apache-2.0
#include "server/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef LANDLOCK_ACCESS_FS_REFER // linux/landlock.h of 5.19
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE // of 6.2
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#define KEPT_CAPS ((1u << CAP_DAC_OVERRIDE) | (1u << CAP_FOWNER))

// Landlock has no say in modes, owners and attributes of files (chmod(2) and its like), which
// CAP_FOWNER would let this process change on all of the host. A read-only mount has.
int mt_confine_mounts(const char *const *writable, mt_err **err)
{
    struct mount_attr closed = {.attr_set = MOUNT_ATTR_RDONLY};
    struct mount_attr state = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                               .attr_clr = MOUNT_ATTR_RDONLY};

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return mt_fail_errno(err, errno, "cannot make a mount namespace");
    for (size_t i = 0; writable[i]; i++)
        if (mount(writable[i], writable[i], NULL, MS_BIND, NULL) < 0)
            return mt_fail_errno(err, errno, "cannot mount '%s' on itself", writable[i]);
    if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &closed, sizeof(closed)) < 0)
        return mt_fail_errno(err, errno, "cannot see the host read-only");
    for (size_t i = 0; writable[i]; i++)
        if (mount_setattr(AT_FDCWD, writable[i], 0, &state, sizeof(state)) < 0)
            return mt_fail_errno(err, errno, "cannot mount '%s' without setuid and devices",
                                 writable[i]);
    return 0;
}

static int set_caps(uint32_t caps)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.effective = caps, .permitted = caps}};

    return (int)syscall(SYS_capset, &header, data);
}

int mt_confine_user(uid_t uid, gid_t gid, mt_err **err)
{
    if (geteuid() != 0)
        return 0;
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        if (cap > 31 || !((KEPT_CAPS >> cap) & 1u))
            (void)prctl(PR_CAPBSET_DROP, cap);
    if (prctl(PR_SET_KEEPCAPS, 1) < 0 || setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
        setresuid(uid, uid, uid) < 0 || set_caps(KEPT_CAPS) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return mt_fail_errno(err, errno, "cannot become uid %u, gid %u", (unsigned)uid,
                             (unsigned)gid);
    // A core file of this process would hold keys.
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return mt_fail_errno(err, errno, "cannot become non-dumpable");
    return 0;
}

static int allow(int ruleset, const char *path, uint64_t access, mt_err **err)
{
    _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return 0; // not on this host
    if (!S_ISDIR(st.st_mode))
        rule.allowed_access &= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                               LANDLOCK_ACCESS_FS_TRUNCATE;
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return mt_fail_errno(err, errno, "cannot allow '%s'", path);
    return 0;
}

int mt_confine_files(const char *const *writable, const char *const *readable, mt_err **err)
{
    // What name resolution, accounts and the C library read.
    static const char *const READABLE[] = {"/etc",
                                           "/usr/lib",
                                           "/lib",
                                           "/lib64",
                                           "/proc/self",
                                           "/run/systemd/resolve",
                                           "/run/nscd",
                                           "/var/lib/extrausers",
                                           "/usr/share/zoneinfo",
                                           "/dev/null",
                                           "/dev/urandom"};
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct landlock_ruleset_attr attr = {.handled_access_fs =
                                             (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
    const uint64_t reads = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    _cleanup_close_ int ruleset = -1;

    if (abi < 1)
        return 1;
    if (abi >= 2)
        attr.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= 3)
        attr.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (ruleset < 0)
        return mt_fail_errno(err, errno, "cannot make a Landlock ruleset");
    for (size_t i = 0; i < MT_ARRAY_SIZE(READABLE); i++)
        if (allow(ruleset, READABLE[i], reads, err) < 0)
            return -1;
    for (size_t i = 0; readable[i]; i++)
        if (allow(ruleset, readable[i], reads, err) < 0)
            return -1;
    for (size_t i = 0; writable[i]; i++)
        if (allow(ruleset, writable[i],
                  attr.handled_access_fs &
                      ~(uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                                  LANDLOCK_ACCESS_FS_MAKE_CHAR),
                  err) < 0)
            return -1;
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return mt_fail_errno(err, errno, "cannot restrict this process with Landlock");
    return 0;
}
