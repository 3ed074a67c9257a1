// SPDX-License-Identifier: Apache-2.0
#include "image/tree.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "image/run.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { DIGEST_BYTES = 32, BLOCK_BYTES = 256 * 1024, MANIFEST_FLUSH_BYTES = 64 * 1024 };

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static FTS *walk_open(const char *path, mt_err **err)
{
    char *const roots[] = {(char *)path, NULL};
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, by_name);

    if (!fts)
        (void)mt_fail_errno(err, errno, "cannot walk '%s'", path);
    return fts;
}

static void walk_close(FTS **fts)
{
    if (*fts)
        (void)fts_close(*fts);
}
#define _cleanup_walk_ _cleanup_(walk_close)

// The next entry; NULL with *ret_r 0 at the end and -1 on a failure.
static FTSENT *walk_next(FTS *fts, int *ret_r, mt_err **err)
{
    FTSENT *e;

    *ret_r = -1;
    if (mt_interrupted()) {
        (void)mt_fail_interrupted(err);
        return NULL;
    }
    errno = 0;
    e = fts_read(fts);
    if (!e) {
        *ret_r = errno ? mt_fail_errno(err, errno, "cannot walk a folder") : 0;
        return NULL;
    }
    if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS) {
        (void)mt_fail_errno(err, e->fts_errno, "cannot read '%s'", e->fts_path);
        return NULL;
    }
    return e;
}

// ---- removal ----

int mt_tree_remove(const char *path, mt_err **err)
{
    char *const roots[] = {(char *)path, NULL};
    _cleanup_walk_ FTS *fts = NULL;
    FTSENT *e;
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : mt_fail_errno(err, errno, "cannot look at '%s'", path);
    fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV | FTS_NOSTAT, NULL);
    if (!fts)
        return mt_fail_errno(err, errno, "cannot walk '%s'", path);
    while ((e = fts_read(fts))) {
        bool folder = e->fts_info == FTS_DP;

        if (e->fts_info == FTS_D)
            continue;
        if ((folder ? rmdir(e->fts_accpath) : unlink(e->fts_accpath)) < 0 && errno != ENOENT)
            return mt_fail_errno(err, errno, "cannot remove '%s'", e->fts_path);
    }
    return 0;
}

// ---- copying ----

static int copy_content(int from, int to)
{
    for (;;) {
        ssize_t n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
            break;
        if (n <= 0)
            return n < 0 ? -errno : 0;
    }
    for (char block[16384];;) {
        ssize_t n = read(from, block, sizeof(block));
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        r = mt_write_full(to, block, (size_t)n);
        if (r < 0)
            return r;
    }
}

static int copy_file(const FTSENT *e, const char *to, mt_err **err)
{
    const struct timespec times[2] = {e->fts_statp->st_atim, e->fts_statp->st_mtim};
    _cleanup_close_ int in = open(e->fts_accpath, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_close_ int out = -1;
    int r;

    if (in < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", e->fts_path);
    (void)unlink(to);
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return mt_fail_errno(err, errno, "cannot make '%s'", to);
    r = copy_content(in, out);
    if (r < 0 || fchmod(out, e->fts_statp->st_mode & 0755) < 0 || futimens(out, times) < 0)
        return mt_fail_errno(err, r < 0 ? r : errno, "cannot write '%s'", to);
    return 0;
}

static int copy_link(const FTSENT *e, const char *to, mt_err **err)
{
    char target[4096];
    ssize_t n = readlink(e->fts_accpath, target, sizeof(target) - 1);

    if (n < 0)
        return mt_fail_errno(err, errno, "cannot read the link '%s'", e->fts_path);
    target[n] = '\0';
    (void)unlink(to);
    if (symlink(target, to) < 0)
        return mt_fail_errno(err, errno, "cannot make the link '%s'", to);
    return 0;
}

static int copy_entry(const FTSENT *e, const char *to, mt_err **err)
{
    switch (e->fts_info) {
    case FTS_D:
        if (mkdir(to, 0755) < 0 && errno != EEXIST)
            return mt_fail_errno(err, errno, "cannot make '%s'", to);
        return 0;
    case FTS_F:
        return copy_file(e, to, err);
    case FTS_SL:
    case FTS_SLNONE:
        return copy_link(e, to, err);
    default: // FTS_DP; sockets, pipes and devices have no place in what is copied here
        return 0;
    }
}

int mt_tree_copy(const char *from, const char *to, mt_err **err)
{
    _cleanup_walk_ FTS *fts = walk_open(from, err);
    size_t skip = strlen(from);
    FTSENT *e;
    int r;

    if (!fts)
        return -1;
    while ((e = walk_next(fts, &r, err))) {
        _cleanup_free_ char *target = mt_asprintf("%s%s", to, e->fts_path + skip);

        if (!target)
            return mt_fail_oom(err);
        if (copy_entry(e, target, err) < 0)
            return -1;
    }
    return r;
}

// ---- measuring ----

typedef struct summing {
    crypto_generichash_state state;
    mt_buf lines;
    int fd;
    mt_tree_sum sum;
    unsigned char *block; // BLOCK_BYTES
    int64_t started_us, beat_us;
} summing;

static int hash_file(summing *s, const FTSENT *e, char hex[MT_TREE_DIGEST_TEXT], mt_err **err)
{
    _cleanup_close_ int fd = open(e->fts_accpath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    unsigned char digest[DIGEST_BYTES];
    crypto_generichash_state state;
    ssize_t n;

    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", e->fts_path);
    (void)crypto_generichash_init(&state, NULL, 0, DIGEST_BYTES);
    while ((n = read(fd, s->block, BLOCK_BYTES)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mt_fail_errno(err, errno, "cannot read '%s'", e->fts_path);
        (void)crypto_generichash_update(&state, s->block, (unsigned long long)n);
    }
    (void)crypto_generichash_final(&state, digest, DIGEST_BYTES);
    mt_hex(digest, DIGEST_BYTES, hex);
    return 0;
}

static void add_escaped(mt_buf *b, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c <= ' ' || c >= 0x7f || c == '%')
            (void)mt_buf_addf(b, "%%%02X", c);
        else
            (void)mt_buf_addc(b, (char)c);
    }
}

static int add_content(summing *s, const FTSENT *e, mt_err **err)
{
    const struct stat *st = e->fts_statp;
    char text[4096] = "-";
    ssize_t n;

    if (S_ISREG(st->st_mode)) {
        if (hash_file(s, e, text, err) < 0)
            return -1;
    } else if (S_ISLNK(st->st_mode)) {
        n = readlink(e->fts_accpath, text, sizeof(text) - 1);
        if (n < 0)
            return mt_fail_errno(err, errno, "cannot read the link '%s'", e->fts_path);
        text[n] = '\0';
    } else if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) {
        (void)snprintf(text, sizeof(text), "%u:%u", major(st->st_rdev), minor(st->st_rdev));
    }
    add_escaped(&s->lines, text);
    return 0;
}

static char type_letter(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return 'f';
    case S_IFDIR:
        return 'd';
    case S_IFLNK:
        return 'l';
    case S_IFIFO:
        return 'p';
    case S_IFSOCK:
        return 's';
    default:
        return 'c';
    }
}

static int flush_lines(summing *s, size_t least, mt_err **err)
{
    int r;

    if (s->lines.failed)
        return mt_fail_oom(err);
    if (s->lines.len <= least)
        return 0;
    (void)crypto_generichash_update(&s->state, (const unsigned char *)s->lines.data, s->lines.len);
    r = s->fd < 0 ? 0 : mt_write_full(s->fd, s->lines.data, s->lines.len);
    mt_buf_clear(&s->lines);
    return r < 0 ? mt_fail_errno(err, r, "cannot write the manifest") : 0;
}

// Sizes of folders and counts of links differ from one file system to the next: not in the lines.
static int sum_entry(summing *s, const FTSENT *e, size_t skip, mt_err **err)
{
    const struct stat *st = e->fts_statp;
    bool regular = S_ISREG(st->st_mode);

    (void)mt_buf_addf(&s->lines, "%c %04o %u:%u %lld ", type_letter(st->st_mode),
                      (unsigned)(st->st_mode & 07777), (unsigned)st->st_uid, (unsigned)st->st_gid,
                      regular ? (long long)st->st_size : 0LL);
    if (add_content(s, e, err) < 0)
        return -1;
    (void)mt_buf_addc(&s->lines, ' ');
    add_escaped(&s->lines, e->fts_path[skip] ? e->fts_path + skip : "/");
    (void)mt_buf_addc(&s->lines, '\n');
    s->sum.files++;
    if (regular)
        s->sum.bytes += st->st_size / (st->st_nlink ? (int64_t)st->st_nlink : 1);
    mt_progress_beat(s->started_us, &s->beat_us, "reading all files", NULL);
    return flush_lines(s, MANIFEST_FLUSH_BYTES, err);
}

static int sum_walk(summing *s, const char *path, mt_err **err)
{
    _cleanup_walk_ FTS *fts = walk_open(path, err);
    FTSENT *e;
    int r;

    if (!fts)
        return -1;
    while ((e = walk_next(fts, &r, err)))
        if (e->fts_info != FTS_DP && sum_entry(s, e, strlen(path), err) < 0)
            return -1;
    return r < 0 ? r : flush_lines(s, 0, err);
}

int mt_tree_sum_up(const char *path, int manifest_fd, mt_tree_sum *ret, mt_err **err)
{
    summing s = {.fd = manifest_fd, .lines = MT_BUF_INIT(4u << 20)};
    unsigned char digest[DIGEST_BYTES];
    int r;

    if (sodium_init() < 0)
        return mt_fail(err, MT_E_INTERNAL, "cannot start libsodium");
    s.block = malloc(BLOCK_BYTES);
    if (!s.block)
        return mt_fail_oom(err);
    s.started_us = s.beat_us = mt_monotonic_us();
    (void)crypto_generichash_init(&s.state, NULL, 0, DIGEST_BYTES);
    r = sum_walk(&s, path, err);
    if (r == 0) {
        (void)crypto_generichash_final(&s.state, digest, DIGEST_BYTES);
        mt_hex(digest, DIGEST_BYTES, s.sum.digest);
        *ret = s.sum;
    }
    mt_buf_done(&s.lines);
    free(s.block);
    return r;
}
