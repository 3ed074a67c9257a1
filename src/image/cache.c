// SPDX-License-Identifier: Apache-2.0
#include "image/cache.h"

#include "base/fd.h"
#include "image/run.h"
#include "image/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define BUILD_PREFIX ".build-"

enum {
    RECORD_MAX_BYTES = 1024 * 1024,
    NAMES_MAX = 1000,
    LOCK_PAUSE_MS = 200,
};

struct mt_images {
    char *path;
    int lock_fd;
};

static int make_folder(const char *path, mode_t mode, mt_err **err)
{
    int r = mt_mkdir_p(path, mode);

    return r < 0 ? mt_fail_errno(err, r, "cannot make the folder '%s'", path) : 0;
}

static int check_folder(const char *path, mt_err **err)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return mt_fail_errno(err, errno, "cannot look at '%s'", path);
    if (!S_ISDIR(st.st_mode))
        return mt_fail(err, MT_E_NOT_A_FOLDER, "'%s' is not a folder", path);
    if (st.st_uid != geteuid())
        return mt_fail(err, MT_E_FORBIDDEN,
                       "the images folder '%s' belongs to uid %u, not to uid %u: chown it, or name "
                       "another with --images",
                       path, (unsigned)st.st_uid, (unsigned)geteuid());
    if ((st.st_mode & 077) && chmod(path, 0700) < 0)
        return mt_fail_errno(err, errno, "cannot close '%s' to others", path);
    return 0;
}

int mt_images_open(const char *path, mt_images **ret, mt_err **err)
{
    _cleanup_free_ char *names = mt_asprintf("%s/names", path);
    _cleanup_(mt_images_close_p) mt_images *i = NULL;
    char *slash;

    if (!names)
        return mt_fail_oom(err);
    slash = strrchr(names, '/');
    *slash = '\0';
    if (strrchr(names, '/') > names) {
        _cleanup_free_ char *parent =
            mt_asprintf("%.*s", (int)(strrchr(names, '/') - names), names);

        if (!parent)
            return mt_fail_oom(err);
        if (make_folder(parent, 0755, err) < 0)
            return -1;
    }
    if (make_folder(path, 0700, err) < 0 || check_folder(path, err) < 0)
        return -1;
    *slash = '/';
    if (make_folder(names, 0755, err) < 0)
        return -1;
    i = calloc(1, sizeof(*i));
    if (!i)
        return mt_fail_oom(err);
    i->lock_fd = -1;
    i->path = strdup(path);
    if (!i->path)
        return mt_fail_oom(err);
    *ret = MT_TAKE_PTR(i);
    return 0;
}

void mt_images_close(mt_images *i)
{
    if (!i)
        return;
    mt_close_fd(&i->lock_fd);
    free(i->path);
    free(i);
}

const char *mt_images_path(const mt_images *i)
{
    return i->path;
}

// ---- the lock and what dead builders left ----

static int sweep(mt_images *i, mt_err **err)
{
    DIR *dir = opendir(i->path);
    struct dirent *e;
    int r = 0;

    if (!dir)
        return mt_fail_errno(err, errno, "cannot open '%s'", i->path);
    while (r == 0 && (e = readdir(dir))) {
        _cleanup_free_ char *path = NULL;

        if (!mt_starts_with(e->d_name, BUILD_PREFIX))
            continue;
        path = mt_asprintf("%s/%s", i->path, e->d_name);
        r = path ? mt_tree_remove(path, err) : mt_fail_oom(err);
    }
    (void)closedir(dir);
    return r;
}

int mt_images_lock(mt_images *i, mt_err **err)
{
    _cleanup_free_ char *path = mt_asprintf("%s/lock", i->path);
    bool said = false;

    if (!path)
        return mt_fail_oom(err);
    i->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (i->lock_fd < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", path);
    while (flock(i->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return mt_fail_errno(err, errno, "cannot lock '%s'", path);
        if (!said)
            mt_progress("another mt-image works on '%s': waiting for it to end", i->path);
        said = true;
        (void)poll(NULL, 0, LOCK_PAUSE_MS);
        if (mt_interrupted())
            return mt_fail_interrupted(err);
    }
    return sweep(i, err);
}

// ---- reading ----

bool mt_image_is_digest(mt_str s)
{
    if (s.len != MT_IMAGE_DIGEST_TEXT - 1)
        return false;
    for (size_t k = 0; k < s.len; k++)
        if (!((s.data[k] >= '0' && s.data[k] <= '9') || (s.data[k] >= 'a' && s.data[k] <= 'f')))
            return false;
    return true;
}

// > 0: the name is not there.
static int read_name(const mt_images *i, const char *name, char ret[MT_IMAGE_DIGEST_TEXT],
                     mt_err **err)
{
    _cleanup_free_ char *path = mt_asprintf("%s/names/%s", i->path, name);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);
    int r;

    if (!path)
        return mt_fail_oom(err);
    r = mt_read_file(AT_FDCWD, path, &b);
    if (r == -ENOENT)
        return 1;
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read '%s'", path);
    while (b.len && b.data[b.len - 1] == '\n')
        b.len--;
    if (!mt_image_is_digest((mt_str){b.data, b.len}))
        return mt_fail(err, MT_E_IO, "'%s' does not hold a digest: build the image again", path);
    memcpy(ret, b.data, b.len);
    ret[b.len] = '\0';
    return 0;
}

static int read_record(const mt_images *i, const char *digest, mt_json **ret, mt_err **err)
{
    _cleanup_free_ char *path = mt_asprintf("%s/%s/image.json", i->path, digest);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(RECORD_MAX_BYTES);
    _cleanup_json_ mt_json *record = NULL;
    int r;

    if (!path)
        return mt_fail_oom(err);
    r = mt_read_file(AT_FDCWD, path, &b);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read '%s'", path);
    if (mt_json_parse(mt_buf_str(&b), b.len, NULL, &record, err) < 0)
        return mt_wrap(err, "reading '%s'", path);
    if (mt_json_kind_of(record) != MT_JSON_OBJECT ||
        !mt_streq(mt_json_text(mt_json_get(record, "digest"), ""), digest))
        return mt_fail(err, MT_E_IO, "'%s' does not describe its image: build it again", path);
    *ret = MT_TAKE_PTR(record);
    return 0;
}

int mt_images_read(const mt_images *i, const char *name, mt_json **ret, mt_err **err)
{
    char digest[MT_IMAGE_DIGEST_TEXT];
    int r;

    if (!mt_is_name(mt_str_of(name)))
        return mt_fail(err, MT_E_BAD_FIELD, "'%s' is no image name", name);
    r = read_name(i, name, digest, err);
    return r ? r : read_record(i, digest, ret, err);
}

static int only_names(const struct dirent *e)
{
    return mt_is_name(mt_str_of(e->d_name));
}

static mt_json *list_item(const mt_images *i, const char *name)
{
    _cleanup_err_ mt_err *failure = NULL;
    mt_json *item = NULL;

    if (mt_images_read(i, name, &item, &failure) == 0)
        return item;
    item = mt_json_new_object();
    (void)mt_json_set(item, "name", mt_json_new_text(name));
    (void)mt_json_set(item, "error", mt_json_new_text(mt_err_sentence(failure)));
    return item;
}

int mt_images_list(const mt_images *i, mt_json **ret_array, mt_err **err)
{
    _cleanup_free_ char *path = mt_asprintf("%s/names", i->path);
    _cleanup_json_ mt_json *array = mt_json_new_array();
    struct dirent **entries = NULL;
    int n;

    if (!path || !array)
        return mt_fail_oom(err);
    n = scandir(path, &entries, only_names, alphasort);
    if (n < 0)
        return mt_fail_errno(err, errno, "cannot list '%s'", path);
    for (int k = 0; k < n; k++) {
        if (k < NAMES_MAX)
            (void)mt_json_append(array, list_item(i, entries[k]->d_name));
        free(entries[k]);
    }
    free(entries);
    if (!mt_json_ok(array))
        return mt_fail_oom(err);
    *ret_array = MT_TAKE_PTR(array);
    return 0;
}

// ---- building ----

int mt_images_begin(mt_images *i, char **ret_path, mt_err **err)
{
    _cleanup_free_ char *path = mt_asprintf("%s/" BUILD_PREFIX "XXXXXX", i->path);

    if (!path)
        return mt_fail_oom(err);
    if (!mkdtemp(path)) // 0700
        return mt_fail_errno(err, errno, "cannot make a folder in '%s'", i->path);
    *ret_path = MT_TAKE_PTR(path);
    return 0;
}

void mt_images_discard(mt_images *i, const char *path)
{
    _cleanup_err_ mt_err *failure = NULL;

    (void)i;
    if (path && mt_tree_remove(path, &failure) < 0)
        mt_progress("mt-image: %s (the next build removes it)", mt_err_sentence(failure));
}

static int write_record(const char *folder, const mt_json *record, mt_err **err)
{
    _cleanup_free_ char *path = mt_asprintf("%s/image.json", folder);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(RECORD_MAX_BYTES);
    int r;

    if (!path)
        return mt_fail_oom(err);
    r = mt_json_write(record, &b, MT_JSON_PRETTY);
    if (r == 0)
        r = mt_buf_addc(&b, '\n');
    if (r == 0)
        r = mt_write_file_atomic(AT_FDCWD, path, b.data, b.len, 0644);
    return r < 0 ? mt_fail_errno(err, r, "cannot write '%s'", path) : 0;
}

// Tens of thousands of new files: one syncfs() instead of an fsync() each.
static int sync_tree(const char *path, mt_err **err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || syncfs(fd) < 0)
        return mt_fail_errno(err, errno, "cannot sync '%s'", path);
    return 0;
}

static int sync_folder(const char *path, mt_err **err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return mt_fail_errno(err, errno, "cannot sync '%s'", path);
    return 0;
}

static int place(mt_images *i, const char *path, const char *digest, mt_err **err)
{
    _cleanup_free_ char *to = mt_asprintf("%s/%s", i->path, digest);

    if (!to)
        return mt_fail_oom(err);
    if (access(to, F_OK) == 0)
        return mt_tree_remove(path, err);
    if (rename(path, to) < 0)
        return mt_fail_errno(err, errno, "cannot rename '%s' to '%s'", path, to);
    return sync_folder(i->path, err);
}

int mt_images_publish(mt_images *i, const char *path, const mt_json *record, mt_err **err)
{
    const char *name = mt_json_text(mt_json_get(record, "name"), "");
    const char *digest = mt_json_text(mt_json_get(record, "digest"), "");
    _cleanup_free_ char *link = mt_asprintf("%s/names/%s", i->path, name);
    _cleanup_free_ char *line = mt_asprintf("%s\n", digest);
    int r;

    if (!link || !line)
        return mt_fail_oom(err);
    if (write_record(path, record, err) < 0 || sync_tree(path, err) < 0 ||
        place(i, path, digest, err) < 0)
        return -1;
    r = mt_write_file_atomic(AT_FDCWD, link, line, strlen(line), 0644);
    return r < 0 ? mt_fail_errno(err, r, "cannot write '%s'", link) : 0;
}

int mt_images_log(mt_images *i, const char *name, int *ret_fd, mt_err **err)
{
    _cleanup_free_ char *folder = mt_asprintf("%s/logs", i->path);
    _cleanup_free_ char *path = mt_asprintf("%s/logs/%s.log", i->path, name);
    int fd;

    if (!folder || !path)
        return mt_fail_oom(err);
    if (make_folder(folder, 0700, err) < 0)
        return -1;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", path);
    *ret_fd = fd;
    return 0;
}
