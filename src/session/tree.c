// SPDX-License-Identifier: Apache-2.0
// Names: looking at them, making, moving and deleting them.
#include "session/program.h"

#include "base/clock.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

void say_end(bool flag)
{
    mt_buf b = MT_BUF_INIT(64);

    (void)mt_session_put_end(&b, flag);
    say(&b);
    _exit(0);
}

void say_entry_of(const char *path, const struct stat *st, const char *target)
{
    const mt_session_entry e = {
        .path = mt_str_of(path),
        .target = mt_str_of(target ? target : ""),
        .is_link = target,
        .type = (uint8_t)mt_vfs_type_of(st->st_mode),
        .mode = st->st_mode & 07777,
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .inode = st->st_ino,
        .modified_ns = mt_timespec_ns(st->st_mtim),
        .changed_ns = mt_timespec_ns(st->st_ctim),
    };
    mt_buf b = MT_BUF_INIT(MT_SESSION_FRAME_MAX);

    (void)mt_session_put_entry(&b, &e);
    say(&b);
    mt_buf_done(&b);
}

// What the path leads to; a link that leads nowhere is told as a link.
void stat_path(const char *path)
{
    char target[MT_SESSION_PATH_MAX + 1];
    struct stat st;
    ssize_t n;

    if (stat(path, &st) == 0) {
        say_entry_of(path, &st, NULL);
        say_end(false);
    }
    if ((errno != ENOENT && errno != ELOOP) || lstat(path, &st) < 0)
        fail_errno(errno);
    n = readlink(path, target, sizeof(target) - 1);
    if (n < 0)
        fail_errno(errno);
    target[n] = '\0';
    say_entry_of(path, &st, target);
    say_end(false);
}

static int errno_of(const mt_err *err)
{
    switch (mt_err_code(err)) {
    case MT_E_NOT_FOUND:
        return ENOENT;
    case MT_E_FORBIDDEN:
        return EACCES;
    case MT_E_NOT_A_FOLDER:
        return ENOTDIR;
    case MT_E_OOM:
        return ENOMEM;
    default:
        return EIO;
    }
}

// False: the name is too long to be told.
static bool say_item(const char *folder, const mt_vfs_entry *item, mt_buf *b)
{
    char *path = mt_asprintf("%s%s", mt_streq(folder, "/") ? "" : folder, item->path);
    bool fits = path && strlen(path) <= MT_SESSION_PATH_MAX;
    const mt_session_entry e = {
        .path = mt_str_of(path),
        .target = mt_str_of(item->target ? item->target : ""),
        .is_link = item->target,
        .type = (uint8_t)item->type,
        .mode = item->mode,
        .size = item->size,
        .inode = item->inode_,
        .modified_ns = item->modified_ns_,
        .changed_ns = item->changed_ns_,
    };

    if (fits)
        (void)mt_session_put_entry(b, &e);
    free(path);
    if (fits)
        say(b);
    return fits;
}

void list_folder(const char *path, const mt_session_request *r)
{
    mt_arena *arena = mt_arena_new(64 << 20);
    const mt_vfs_list_options options = {
        .limit = r->limit, .after = r->second, .recursive = r->flag};
    mt_buf b = MT_BUF_INIT(MT_SESSION_FRAME_MAX);
    mt_err *err = NULL;
    mt_vfs_page page;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        fail_errno(errno);
    if (!arena)
        fail_errno(ENOMEM);
    if (mt_vfs_read_any_folder(fd, &options, arena, &page, &err) < 0) {
        if (mt_err_code(err) == MT_E_BAD_FIELD)
            fail(MT_SESSION_BAD_CURSOR, 0);
        fail_errno(errno_of(err));
    }
    for (size_t i = 0; i < page.count; i++)
        if (!say_item(path, &page.items[i], &b))
            page.left_out++;
    (void)mt_session_put_next(&b, mt_str_of(page.next ? page.next : ""), page.left_out);
    say(&b);
    say_end(false);
}

// --- changes -------------------------------------------------------------------------------------

static void say_made(const char *path)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        fail_errno(errno);
    say_entry_of(path, &st, NULL);
}

int make_parents(const char *path)
{
    char *copy = mt_asprintf("%s", path);
    int e = copy ? 0 : ENOMEM;

    for (char *slash = copy ? strchr(copy + 1, '/') : NULL; slash && !e;
         slash = strchr(slash + 1, '/')) {
        struct stat st;

        *slash = '\0';
        if (stat(copy, &st) < 0 && mkdir(copy, 0755) < 0 && errno != EEXIST)
            e = errno;
        *slash = '/';
    }
    free(copy);
    return e;
}

void make_folder(const char *path, bool parents)
{
    struct stat st;
    bool there;
    int e;

    if (parents && (e = make_parents(path)) != 0)
        fail_errno(e);
    there = mkdir(path, 0755) < 0;
    if (there && (errno != EEXIST || !parents || stat(path, &st) < 0 || !S_ISDIR(st.st_mode)))
        fail_errno(errno);
    if (there)
        say_entry_of(path, &st, NULL);
    else
        say_made(path);
    say_end(there);
}

// The folder of the last name; ends the program where there is none.
static int open_parent(const char *path, const char **ret_name, bool second)
{
    const char *slash = strrchr(path, '/');
    char *parent =
        slash == path ? mt_asprintf("/") : mt_asprintf("%.*s", (int)(slash - path), path);
    int fd = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int e = errno;

    free(parent);
    *ret_name = slash + 1;
    if (fd < 0 && second)
        fail_second(MT_SESSION_ERRNO, e);
    if (fd < 0)
        fail_errno(e);
    return fd;
}

static void delete_tree(const char *path)
{
    mt_err *err = NULL;
    const char *name;
    int parent = open_parent(path, &name, false);

    if (mt_vfs_remove_tree(parent, name, &err) == 0)
        say_end(false);
    if (mt_err_code(err) == MT_E_CONFLICT)
        fail(MT_SESSION_BUSY, 0);
    fail_errno(errno_of(err));
}

void delete_path(const char *path, bool recursive)
{
    if (mt_streq(path, "/"))
        fail(MT_SESSION_MOUNTED, 0);
    if (unlink(path) == 0)
        say_end(false);
    if (errno != EISDIR)
        fail_errno(errno);
    if (rmdir(path) == 0)
        say_end(false);
    if (errno == ENOTEMPTY && recursive)
        delete_tree(path);
    fail_errno(errno);
}

MT_NORETURN static void fail_move(int e)
{
    switch (e) {
    case EEXIST:
        fail_second(MT_SESSION_TAKEN, 0);
    case ENOTEMPTY:
        fail_second(MT_SESSION_NOT_EMPTY, 0);
    case EISDIR:
        fail_second(MT_SESSION_IS_FOLDER, 0);
    case ENOTDIR:
        fail_second(MT_SESSION_NOT_FOLDER, 0);
    case EINVAL:
        fail(MT_SESSION_INTO_ITSELF, 0);
    default:
        fail_errno(e);
    }
}

void move_path(const char *from, const char *to, bool replace)
{
    const char *a, *b;
    int from_dir, to_dir;

    if (mt_streq(from, "/") || mt_streq(to, "/"))
        fail(MT_SESSION_MOUNTED, 0);
    from_dir = open_parent(from, &a, false);
    to_dir = open_parent(to, &b, true);
    if (renameat2(from_dir, a, to_dir, b, replace ? 0 : RENAME_NOREPLACE) < 0)
        fail_move(errno);
    say_made(to);
    say_end(false);
}

void make_link(const char *path, const char *target)
{
    struct stat st;
    int e = make_parents(path);

    if (e)
        fail_errno(e);
    if (symlink(target, path) < 0)
        fail_errno(errno);
    if (lstat(path, &st) < 0)
        fail_errno(errno);
    say_entry_of(path, &st, target);
    say_end(false);
}
