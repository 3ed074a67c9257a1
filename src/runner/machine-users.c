// SPDX-License-Identifier: Apache-2.0
// Step of the child: the users of the plan, as useradd would make them, with numbers from 1001 up
// that the image does not use.
#include "base/fd.h"
#include "base/str.h"
#include "capsule/exec.h"
#include "capsule/idmap.h"
#include "capsule/syscalls.h"
#include "runner/machine-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    FIRST_UID = 1001,
    LAST_UID = 59999, // where Debian's own range for people ends
    SKEL_DEPTH_MAX = 4,
    SKEL_FILES_MAX = 256,
    SKEL_BYTES_MAX = 1 << 20, // of one file
};

typedef struct accounts {
    mt_buf passwd, group;
    uint8_t used[(LAST_UID + 8) / 8]; // a bit for each number that is a uid or a gid
    uint32_t next;
} accounts;

static int read_etc(const mt_build *b, const char *path, mt_buf *to)
{
    _cleanup_close_ int fd = mt_build_open(b, path, O_RDONLY | O_NONBLOCK, 0);
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    return mt_read_all(fd, to);
}

// The third field of each line.
static void mark_used(accounts *a, const mt_buf *file)
{
    const char *line = mt_buf_str(file), *end = line + file->len;

    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const char *first, *second, *third;
        uint64_t id;

        if (!stop)
            stop = end;
        first = memchr(line, ':', (size_t)(stop - line));
        second = first ? memchr(first + 1, ':', (size_t)(stop - first - 1)) : NULL;
        third = second ? memchr(second + 1, ':', (size_t)(stop - second - 1)) : NULL;
        if (third &&
            mt_parse_u64((mt_str){second + 1, (size_t)(third - second - 1)}, LAST_UID, &id))
            a->used[id / 8] |= (uint8_t)(1u << (id % 8));
        line = stop + 1;
    }
}

// Whether a line begins with "name:".
static bool has_entry(const mt_buf *file, const char *name)
{
    const char *s = mt_buf_str(file), *end = s + file->len;
    size_t len = strlen(name);

    while (s < end) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));

        if ((size_t)(end - s) > len && memcmp(s, name, len) == 0 && s[len] == ':')
            return true;
        s = stop ? stop + 1 : end;
    }
    return false;
}

static int take_number(accounts *a, uint32_t *ret)
{
    while (a->next <= LAST_UID && (a->used[a->next / 8] & (1u << (a->next % 8))))
        a->next++;
    if (a->next > LAST_UID)
        return -EUSERS;
    *ret = a->next++;
    return 0;
}

// Appends to a file of /etc; one that does not end its last line gets that first.
static int append(const mt_build *b, const char *path, const mt_buf *before, const mt_buf *lines,
                  bool must_be)
{
    _cleanup_close_ int fd = mt_build_open(b, path, O_WRONLY | O_APPEND | O_NONBLOCK, 0);
    struct stat st;

    if (fd < 0)
        return fd == -ENOENT && !must_be ? 0 : fd;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    if (before && before->len && before->data[before->len - 1] != '\n' &&
        mt_write_full(fd, "\n", 1) < 0)
        return -EIO;
    return mt_write_full(fd, mt_buf_str(lines), lines->len);
}

// --- homes ---------------------------------------------------------------------------------------

static int copy_file(int from_dir, int to_dir, const char *name, uint32_t id)
{
    _cleanup_close_ int from = mt_sys_open_beneath(from_dir, name, O_RDONLY | O_NONBLOCK, 0);
    _cleanup_close_ int to = -1;
    _cleanup_buf_ mt_buf data = MT_BUF_INIT(SKEL_BYTES_MAX);
    struct stat st;
    int r;

    if (from < 0 || fstat(from, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return 0;
    r = mt_read_all(from, &data);
    if (r < 0)
        return r;
    to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                st.st_mode & 0777);
    if (to < 0)
        return -errno;
    r = mt_write_full(to, mt_buf_str(&data), data.len);
    if (r == 0 && fchown(to, id, id) < 0)
        r = -errno;
    return r;
}

static int copy_folder(int from, int to, uint32_t id, int depth, int *left);

static int copy_entry(int from, int to, const char *name, uint32_t id, int depth, int *left)
{
    _cleanup_close_ int sub_from = mt_sys_open_beneath(from, name, O_RDONLY | O_DIRECTORY, 0);
    _cleanup_close_ int sub_to = -1;

    // Only files and folders; the output of .bash_logout would land in records.
    if (sub_from < 0)
        return errno == ENOTDIR ? copy_file(from, to, name, id) : errno == ELOOP ? 0 : -errno;
    if (depth == SKEL_DEPTH_MAX)
        return 0;
    if (mkdirat(to, name, 0755) < 0 || fchownat(to, name, id, id, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    sub_to = mt_sys_open_beneath(to, name, O_RDONLY | O_DIRECTORY, 0);
    return sub_to < 0 ? -errno : copy_folder(sub_from, sub_to, id, depth + 1, left);
}

static int copy_folder(int from, int to, uint32_t id, int depth, int *left)
{
    int fd = fcntl(from, F_DUPFD_CLOEXEC, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    int r = 0;

    if (!dir) {
        mt_close_fd(&fd);
        return -errno;
    }
    while (r == 0 && (e = readdir(dir)) && (*left)-- > 0) {
        if (mt_streq(e->d_name, ".") || mt_streq(e->d_name, "..") ||
            mt_streq(e->d_name, ".bash_logout"))
            continue;
        r = copy_entry(from, to, e->d_name, id, depth, left);
    }
    (void)closedir(dir);
    return r;
}

static int make_home(mt_build *b, const char *name, uint32_t id)
{
    _cleanup_close_ int homes = mt_build_folder(b, "home");
    _cleanup_close_ int home = -1, skel = -1;
    int left = SKEL_FILES_MAX;

    mt_build_detail(b, "/home/%s", name);
    if (homes < 0)
        return homes;
    if (mkdirat(homes, name, 0700) < 0)
        return -errno;
    home = mt_sys_open_beneath(homes, name, O_RDONLY | O_DIRECTORY, 0);
    if (home < 0 || fchown(home, id, id) < 0)
        return -errno;
    skel = mt_build_open(b, "etc/skel", O_RDONLY | O_DIRECTORY, 0);
    if (skel < 0)
        return skel == -ENOENT ? 0 : skel;
    return copy_folder(skel, home, id, 0, &left);
}

// --- the step ------------------------------------------------------------------------------------

static int check_name(mt_build *b, const accounts *a, const char *name)
{
    if (has_entry(&a->passwd, name))
        return mt_build_say(
            b, "user '%s' cannot be made: the image has a user of that name already", name);
    if (has_entry(&a->group, name))
        return mt_build_say(
            b, "user '%s' cannot be made: the image has a group of that name already", name);
    return 0;
}

static int add_users(mt_build *b, accounts *a)
{
    _cleanup_buf_ mt_buf passwd = MT_BUF_INIT(64 << 10), group = MT_BUF_INIT(64 << 10),
                         shadow = MT_BUF_INIT(64 << 10);
    int r = 0;

    mark_used(a, &a->passwd);
    mark_used(a, &a->group);
    for (uint32_t i = 0; i < b->id->user_count && r == 0; i++) {
        const char *name = b->id->users[i];
        uint32_t id = 0;

        r = check_name(b, a, name);
        if (r == 0)
            r = take_number(a, &id);
        if (r == 0)
            r = make_home(b, name, id);
        (void)mt_buf_addf(&passwd, "%s:x:%" PRIu32 ":%" PRIu32 "::/home/%s:/bin/bash\n", name, id,
                          id, name);
        (void)mt_buf_addf(&group, "%s:x:%" PRIu32 ":\n", name, id);
        (void)mt_buf_addf(&shadow, "%s:*:19000:0:99999:7:::\n", name);
    }
    if (r < 0)
        return r;
    if (passwd.failed || group.failed || shadow.failed)
        return -ENOMEM;
    mt_build_detail(b, "/etc/passwd, /etc/group, /etc/shadow");
    if (r == 0)
        r = append(b, "etc/group", &a->group, &group, true);
    if (r == 0)
        r = append(b, "etc/shadow", NULL, &shadow, false);
    return r == 0 ? append(b, "etc/passwd", &a->passwd, &passwd, true) : r;
}

static int check_default_user(mt_build *b, const accounts *a)
{
    mt_exec_user u;

    if (mt_exec_find_user((mt_str){mt_buf_str(&a->passwd), a->passwd.len}, MT_STR(""), "maitento",
                          &u, NULL) < 0 ||
        u.uid != MT_MAITENTO_UID || u.gid != MT_MAITENTO_UID)
        return mt_build_say(b,
                            "the image has no user 'maitento' with uid and gid %d: build it "
                            "again with mt-image",
                            MT_MAITENTO_UID);
    return 0;
}

int mt_step_default_user(mt_build *b)
{
    accounts a = {.passwd = MT_BUF_INIT(MT_EXEC_FILE_MAX)};
    int r;

    mt_build_detail(b, "/etc/passwd, /etc/group");
    r = read_etc(b, "etc/passwd", &a.passwd);
    if (r == 0)
        r = check_default_user(b, &a);
    mt_buf_done(&a.passwd);
    return r;
}

int mt_step_users(mt_build *b)
{
    accounts a = {.passwd = MT_BUF_INIT(MT_EXEC_FILE_MAX),
                  .group = MT_BUF_INIT(MT_EXEC_FILE_MAX),
                  .next = FIRST_UID};
    int r;

    if (b->id->user_count == 0)
        return 0;
    mt_build_detail(b, "/etc/passwd, /etc/group");
    r = read_etc(b, "etc/passwd", &a.passwd);
    if (r == 0)
        r = read_etc(b, "etc/group", &a.group);
    if (r == 0)
        r = add_users(b, &a);
    mt_buf_done(&a.passwd);
    mt_buf_done(&a.group);
    return r;
}
