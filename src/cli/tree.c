// SPDX-License-Identifier: Apache-2.0
// Trees of files, local and of a file system, as lists; steps beneath a local folder.
#include "cli/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 256 };

void tree_done(tree *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->items[i].rel);
        free(t->items[i].target);
    }
    free(t->items);
    *t = (tree){0};
}

void tree_add(tree *t, tree_item item)
{
    if ((t->count & (t->count - 1)) == 0) { // at each power of two
        tree_item *grown = realloc(t->items, (t->count ? 2 * t->count : 1) * sizeof(*grown));

        if (!grown)
            xoom();
        t->items = grown;
    }
    t->items[t->count++] = item;
    if (item.type == VFS_FILE)
        t->bytes += item.size;
}

bool rel_is_plain(const char *rel)
{
    if (!rel[0])
        return false;
    while (*rel) {
        size_t n = strcspn(rel, "/");

        if (n == 0 || (n == 1 && rel[0] == '.') || (n == 2 && rel[0] == '.' && rel[1] == '.'))
            return false;
        rel += n;
        if (*rel == '/' && !*++rel)
            return false;
    }
    return true;
}

bool link_is_harmless(const char *rel, const char *target)
{
    size_t depth = 0;
    bool down = false;

    if (!target[0] || target[0] == '/')
        return false;
    for (const char *p = rel; *p; p++)
        depth += *p == '/';
    while (*target) {
        size_t n = strcspn(target, "/");

        if (n == 2 && target[0] == '.' && target[1] == '.') {
            if (down || depth-- == 0)
                return false;
        } else if (n > 1 || (n == 1 && target[0] != '.')) {
            down = true;
        }
        target += n + (target[n] == '/');
    }
    return true;
}

// --- local ---

static char *read_link(int folder, const char *name)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(folder, name, target, sizeof(target) - 1);

    if (n < 0)
        return xstrdup("");
    target[n] = '\0';
    return xstrdup(target);
}

static vfs_type type_of(mode_t mode)
{
    if (S_ISREG(mode))
        return VFS_FILE;
    if (S_ISDIR(mode))
        return VFS_FOLDER;
    return S_ISLNK(mode) ? VFS_LINK : VFS_OTHER;
}

static int scan_folder(int fd, const char *rel, int depth, tree *t, mt_err **err);

static int scan_entry(int folder, const char *rel, const char *name, int depth, tree *t,
                      mt_err **err)
{
    _cleanup_free_ char *path = rel[0] ? xprintf("%s/%s", rel, name) : xstrdup(name);
    struct stat st;
    int fd;

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : mt_fail_errno(err, errno, "cannot look at '%s'", path);
    tree_add(t, (tree_item){.rel = xstrdup(path),
                            .type = type_of(st.st_mode),
                            .size = (uint64_t)st.st_size,
                            .target = S_ISLNK(st.st_mode) ? read_link(folder, name) : NULL});
    if (!S_ISDIR(st.st_mode))
        return 0;
    fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot open the folder '%s'", path);
    return scan_folder(fd, path, depth + 1, t, err);
}

// Takes fd.
static int scan_folder(int fd, const char *rel, int depth, tree *t, mt_err **err)
{
    DIR *dir = fdopendir(fd);
    struct dirent *e;
    int r = 0;

    if (!dir) {
        (void)close(fd);
        return mt_fail_errno(err, errno, "cannot read the folder '%s'", rel);
    }
    if (depth > DEPTH_MAX)
        r = mt_fail(err, MT_E_BAD_PATH, "'%.100s…' is nested more than %d folders deep", rel,
                    DEPTH_MAX);
    while (r == 0 && !cli_interrupted && (errno = 0, e = readdir(dir)) != NULL) {
        if (!mt_streq(e->d_name, ".") && !mt_streq(e->d_name, ".."))
            r = scan_entry(fd, rel, e->d_name, depth, t, err);
    }
    if (r == 0 && cli_interrupted)
        r = mt_fail(err, MT_E_BAD_REQUEST, "interrupted");
    if (r == 0 && errno)
        r = mt_fail_errno(err, errno, "cannot read the folder '%s'", rel);
    (void)closedir(dir);
    return r;
}

int tree_scan_local(const char *path, bool recursive, tree *ret, mt_err **err)
{
    tree t = {0};
    struct stat st;
    int fd;

    if (stat(path, &st) < 0)
        return mt_fail_errno(err, errno, "cannot look at '%s'", path);
    tree_add(
        &t,
        (tree_item){.rel = xstrdup(""), .type = type_of(st.st_mode), .size = (uint64_t)st.st_size});
    if (S_ISDIR(st.st_mode) && recursive) {
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
            tree_done(&t);
            return mt_fail_errno(err, errno, "cannot open the folder '%s'", path);
        }
        if (scan_folder(fd, "", 0, &t, err) < 0) {
            tree_done(&t);
            return -1;
        }
    }
    *ret = t;
    return 0;
}

// --- file system ---

static void add_listed(cli *c, const mt_json *item, const char *folder, tree *t)
{
    _cleanup_free_ char *path = vfs_item_bytes(item, "path");
    size_t skip = mt_streq(folder, "/") ? 0 : strlen(folder);
    vfs_type type = vfs_item_type(item);

    if (strncmp(path, folder, skip) != 0 || path[skip] != '/' || !rel_is_plain(path + skip + 1)) {
        cli_warn(c, "the server lists '%.200s', which is no path below '%.200s': skipped", path,
                 folder);
        return;
    }
    tree_add(t, (tree_item){.rel = xstrdup(path + skip + 1),
                            .type = type,
                            .size = (uint64_t)MT_MAX(cli_int(item, "size"), (int64_t)0),
                            .target = type == VFS_LINK ? xstrdup(cli_text(item, "target")) : NULL});
}

void tree_add_list(cli *c, const mt_json *items, const char *folder, tree *t)
{
    for (size_t i = 0; i < mt_json_count(items); i++)
        add_listed(c, mt_json_at(items, i), folder, t);
}

int tree_scan_vfs(cli *c, const vfs_path *p, bool recursive, tree *ret, mt_err **err)
{
    _cleanup_json_ mt_json *top = NULL, *items = NULL;
    _cleanup_free_ char *url = vfs_url(p, "list", p->path);
    _cleanup_free_ char *whole = xprintf("%s&recursive=true", url);
    tree t = {0};
    vfs_type type;

    if (vfs_stat(c, p, p->path, &top, err) < 0)
        return -1;
    type = vfs_item_type(top);
    if (type == VFS_FOLDER && recursive && api_list(c, whole, &items, err) < 0)
        return -1;
    tree_add(&t, (tree_item){.rel = xstrdup(""),
                             .type = type,
                             .size = (uint64_t)MT_MAX(cli_int(top, "size"), (int64_t)0),
                             .target = type == VFS_LINK ? xstrdup(cli_text(top, "target")) : NULL});
    tree_add_list(c, items, p->path, &t);
    *ret = t;
    return 0;
}

// --- beneath ---

int beneath_parent(int root, const char *rel, bool make, const char **ret_name, mt_err **err)
{
    _cleanup_close_ int at = fcntl(root, F_DUPFD_CLOEXEC, 3);
    const char *name = rel;

    if (at < 0)
        return mt_fail_errno(err, errno, "cannot open a folder");
    if (!rel_is_plain(rel))
        return mt_fail(err, MT_E_BAD_PATH, "'%.200s' is no path below the target", rel);
    for (const char *slash; (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        _cleanup_free_ char *part = mt_str_dup((mt_str){name, (size_t)(slash - name)});
        int next;

        if (make && mkdirat(at, part, 0777) < 0 && errno != EEXIST)
            return mt_fail_errno(err, errno, "cannot make the folder '%.*s'", (int)(slash - rel),
                                 rel);
        next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
            return mt_fail(err, MT_E_NOT_A_FOLDER,
                           "'%.*s' is a link or a file where a folder is needed",
                           (int)(slash - rel), rel);
        if (next < 0)
            return mt_fail_errno(err, errno, "cannot open the folder '%.*s'", (int)(slash - rel),
                                 rel);
        mt_close_fd(&at);
        at = next;
    }
    *ret_name = name;
    return MT_TAKE_FD(at);
}

int beneath_mkdir(int root, const char *rel, mt_err **err)
{
    _cleanup_free_ char *inside = xprintf("%s/x", rel); // so that rel itself is a step
    const char *name;
    int fd = beneath_parent(root, inside, true, &name, err);

    if (fd < 0)
        return -1;
    (void)close(fd);
    return 0;
}

int beneath_open_file(int root, const char *rel, mt_err **err)
{
    const char *name = rel;
    _cleanup_close_ int folder = beneath_parent(root, rel, false, &name, err), fd = -1;
    struct stat st;

    if (folder < 0)
        return -1;
    fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", rel);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return mt_fail(err, MT_E_NOT_REGULAR_FILE, "'%s' is no regular file", rel);
    return MT_TAKE_FD(fd);
}
