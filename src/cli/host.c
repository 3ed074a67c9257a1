// SPDX-License-Identifier: Apache-2.0
#include "cli/host.h"

#include "base/clock.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#define STATE_FOLDER  "/var/lib/maitento"
#define CONFIG_FILE   "/etc/maitento/maitentod.conf"
#define IMAGES_FOLDER "/var/cache/maitento/images"

static void find(host_finding *f, int status, char *detail, const char *remedy)
{
    f->status = status;
    f->detail = detail;
    f->remedy = remedy;
}

// A small file of /proc or /sys without its last newline; "" when it cannot be read.
static char *read_small(const char *path)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);

    if (mt_read_file(AT_FDCWD, path, &b) < 0)
        return xstrdup("");
    while (b.len > 0 && b.data[b.len - 1] == '\n')
        b.data[--b.len] = '\0';
    return xstrdup(mt_buf_str(&b));
}

static void check_kernel(const char *state, host_finding *f)
{
    struct utsname u;
    int major = 0, minor = 0;

    if (uname(&u) < 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2) {
        find(f, HOST_WARNING, xstrdup("its version is not known"), "Linux 6.1 or newer is needed");
        return;
    }
    find(f, major > 6 || (major == 6 && minor >= 1) ? HOST_OK : HOST_FAILED,
         xprintf("Linux %s", u.release), "install Linux 6.1 or newer (Debian 12 has it)");
    if (!mt_streq(u.machine, "x86_64")) {
        free(f->detail);
        find(f, HOST_FAILED, xprintf("the machine is %s", u.machine),
             "only amd64 is supported so far");
    }
}

static void check_user_namespaces(const char *state, host_finding *f)
{
    _cleanup_free_ char *max = read_small("/proc/sys/user/max_user_namespaces");
    bool there = access("/proc/self/ns/user", F_OK) == 0;

    if (!there)
        find(f, HOST_FAILED, xstrdup("this kernel has none"), "use a kernel with CONFIG_USER_NS");
    else if (atoll(max) <= 0)
        find(f, HOST_FAILED,
             xprintf("user.max_user_namespaces is %s", max[0] ? max : "not readable"),
             "sysctl -w user.max_user_namespaces=100000, and keep it in /etc/sysctl.d");
    else
        find(f, HOST_OK, xprintf("at most %s", max), NULL);
}

// --- cgroups ---

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *p = list; (p = strstr(p, word)) != NULL; p += len) {
        bool starts = p == list || strchr(" ,\n", p[-1]), ends = !p[len] || strchr(" ,\n", p[len]);

        if (starts && ends)
            return true;
    }
    return false;
}

static void check_cgroup2(host_finding *f, const char *root)
{
    static const char *const needed[] = {"cpu", "cpuset", "memory", "pids"};
    _cleanup_free_ char *path = xprintf("%s/cgroup.controllers", root);
    _cleanup_free_ char *have = read_small(path);

    for (size_t i = 0; i < MT_ARRAY_SIZE(needed); i++) {
        if (!has_word(have, needed[i])) {
            find(f, HOST_FAILED, xprintf("version 2, without the controller '%s'", needed[i]),
                 "boot without cgroup_disable=, and let no cgroup v1 hierarchy hold it");
            return;
        }
    }
    find(f, HOST_OK, xprintf("version 2 (%s)", have), NULL);
}

static void check_cgroup1(host_finding *f)
{
    static const char *const needed[] = {"cpu", "cpuset", "freezer", "memory", "pids"};
    _cleanup_free_ char *mounts = read_small("/proc/self/mounts");
    _cleanup_buf_ mt_buf have = MT_BUF_INIT(1 << 16);

    for (char *line = mounts, *next; line; line = next) {
        char type[64], options[1024];

        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (sscanf(line, "%*s %*s %63s %1023s", type, options) == 2 && mt_streq(type, "cgroup"))
            (void)mt_buf_addf(&have, "%s,", options);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(needed); i++) {
        if (!has_word(mt_buf_str(&have), needed[i])) {
            find(f, HOST_FAILED, xprintf("version 1, without the hierarchy '%s'", needed[i]),
                 "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)");
            return;
        }
    }
    find(f, HOST_OK, xstrdup("version 1"), NULL);
}

static void check_cgroups(const char *state, host_finding *f)
{
    struct statfs s;

    if (statfs("/sys/fs/cgroup", &s) < 0)
        find(f, HOST_FAILED, xstrdup("nothing is mounted at /sys/fs/cgroup"),
             "mount -t cgroup2 cgroup2 /sys/fs/cgroup (systemd does it)");
    else if (s.f_type == CGROUP2_SUPER_MAGIC)
        check_cgroup2(f, "/sys/fs/cgroup");
    else
        check_cgroup1(f);
}

// --- file systems ---

static void check_overlay(const char *state, host_finding *f)
{
    _cleanup_free_ char *known = read_small("/proc/filesystems");

    if (strstr(known, "\toverlay"))
        find(f, HOST_OK, xstrdup("overlayfs is there"), NULL);
    else
        find(f, HOST_FAILED, xstrdup("the kernel does not know overlayfs (yet)"),
             "modprobe overlay, and name it in /etc/modules-load.d");
}

// What maitentod's configuration says, else where it would be.
static char *configured_state(void)
{
    _cleanup_free_ char *text = read_small(CONFIG_FILE);
    const char *line = text;

    for (; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *p = line + strspn(line, " \t");

        if (strncmp(p, "state", 5) != 0)
            continue;
        p += 5 + strspn(p + 5, " \t");
        if (*p == '=') {
            p += 1 + strspn(p + 1, " \t\"");
            return mt_str_dup((mt_str){p, strcspn(p, " \t\"\n")});
        }
    }
    return xstrdup(STATE_FOLDER);
}

// The state folder, or the nearest folder on the way to it that is there.
static char *state_place(const char *state)
{
    _cleanup_free_ char *place = state ? xstrdup(state) : configured_state();
    char *slash;

    while (access(place, F_OK) < 0 && (slash = strrchr(place, '/')) != NULL)
        *slash = '\0';
    return xstrdup(place[0] ? place : "/");
}

static void check_idmap(const char *state, host_finding *f)
{
    static const struct {
        long magic;
        const char *name;
    } known[] = {{EXT4_SUPER_MAGIC, "ext4"},    {XFS_SUPER_MAGIC, "xfs"},
                 {BTRFS_SUPER_MAGIC, "btrfs"},  {F2FS_SUPER_MAGIC, "f2fs"},
                 {TMPFS_MAGIC, "tmpfs (6.3+)"}, {OVERLAYFS_SUPER_MAGIC, NULL}};
    _cleanup_free_ char *place = state_place(state);
    struct statfs s;

    if (statfs(place, &s) < 0) {
        find(f, HOST_WARNING, xprintf("%s: %s", place, strerror(errno)), "");
        return;
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(known); i++) {
        if (s.f_type == known[i].magic && known[i].name) {
            find(f, HOST_OK, xprintf("%s is on %s", place, known[i].name), NULL);
            return;
        }
    }
    find(f, HOST_WARNING,
         xprintf("%s is on a file system (type 0x%lx) that may not take idmapped mounts", place,
                 (unsigned long)s.f_type),
         "keep the state folder on ext4, xfs or btrfs");
}

static void check_disk(const char *state, host_finding *f)
{
    _cleanup_free_ char *place = state_place(state);
    struct statvfs s;
    uint64_t free_bytes, floor_bytes;

    if (statvfs(place, &s) < 0) {
        find(f, HOST_WARNING, xprintf("%s: %s", place, strerror(errno)), "");
        return;
    }
    free_bytes = (uint64_t)s.f_bavail * s.f_frsize;
    floor_bytes = MT_MIN((uint64_t)s.f_blocks * s.f_frsize / 20, (uint64_t)2 << 30);
    find(f,
         free_bytes < floor_bytes       ? HOST_FAILED
         : free_bytes < 4 * floor_bytes ? HOST_WARNING
                                        : HOST_OK,
         xprintf("%.1f GiB free at %s (no run starts below %.1f GiB)",
                 (double)free_bytes / (1 << 30), place, (double)floor_bytes / (1 << 30)),
         "free disk space, or move the state folder");
}

static void check_memory(const char *state, host_finding *f)
{
    _cleanup_free_ char *info = read_small("/proc/meminfo");
    const char *at = strstr(info, "MemTotal:");
    double gib = at ? (double)atoll(at + strlen("MemTotal:")) / (1 << 20) : 0;

    find(f, gib > 0 && gib < 1.8 ? HOST_WARNING : HOST_OK, xprintf("%.1f GiB", gib),
         "a capsule may use 2 GiB unless its limits say less: set limits.memory, or add memory");
}

// --- security ---

static void check_landlock(const char *state, host_finding *f)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (abi >= 1)
        find(f, HOST_OK, xprintf("version %ld", abi), NULL);
    else
        find(f, HOST_FAILED, xprintf("not to be had: %s", strerror(errno)),
             "boot with landlock in lsm= (the kernel needs CONFIG_SECURITY_LANDLOCK), or start "
             "maitentod with "
             "--allow-no-landlock");
}

static void check_seccomp(const char *state, host_finding *f)
{
    if (access("/proc/sys/kernel/seccomp/actions_avail", F_OK) == 0)
        find(f, HOST_OK, xstrdup("filters are there"), NULL);
    else
        find(f, HOST_FAILED, xstrdup("the kernel has no seccomp filters"),
             "use a kernel with CONFIG_SECCOMP_FILTER");
}

// --- images ---

static void check_images(const char *state, host_finding *f)
{
    _cleanup_buf_ mt_buf names = MT_BUF_INIT(1 << 16);
    DIR *dir = opendir(IMAGES_FOLDER "/names");
    struct dirent *e;

    if (!dir && errno == EACCES) {
        find(f, HOST_OK, xstrdup("only root may look; the server's list follows"), NULL);
        return;
    }
    while (dir && (e = readdir(dir)) != NULL) {
        if (e->d_name[0] != '.')
            (void)mt_buf_addf(&names, "%s%s", names.len ? ", " : "", e->d_name);
    }
    if (dir)
        (void)closedir(dir);
    if (names.len > 0)
        find(f, HOST_OK, xstrdup(mt_buf_str(&names)), NULL);
    else
        find(f, HOST_WARNING, xstrdup("none in " IMAGES_FOLDER),
             "mt-image build slim (a minute), mt-image build default (all languages), as root");
}

const host_check host_checks[] = {
    {"kernel", check_kernel},
    {"user namespaces", check_user_namespaces},
    {"cgroups", check_cgroups},
    {"overlay", check_overlay},
    {"idmapped mounts", check_idmap},
    {"Landlock", check_landlock},
    {"seccomp", check_seccomp},
    {"disk", check_disk},
    {"memory", check_memory},
    {"images", check_images},
    {NULL, NULL},
};
