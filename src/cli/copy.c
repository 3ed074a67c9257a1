// SPDX-License-Identifier: Apache-2.0
// The content of single files: up, down, across.
#include "cli/copy-file.h"

#include "base/fd.h"
#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

// --- stdout ---

int cli_write_out(const void *data, size_t len, mt_err **err)
{
    int r = mt_write_full(STDOUT_FILENO, data, len);

    if (r == -EPIPE) {
        (void)signal(SIGPIPE, SIG_DFL);
        (void)raise(SIGPIPE);
    }
    return r < 0 ? mt_fail_errno(err, r, "the output cannot be written") : 0;
}

static int to_stdout(const void *piece, size_t len, void *data, mt_err **err)
{
    cli_progress *p = data;

    if (p)
        cli_progress_add(p, len);
    return cli_write_out(piece, len, err);
}

static int get_file(cli *c, const vfs_path *from, const char *path,
                    int (*on_data)(const void *, size_t, void *, mt_err **), void *data,
                    mt_err **err)
{
    _cleanup_free_ char *url = vfs_url(from, "files", path);
    _cleanup_answer_ transport_answer answer = TRANSPORT_ANSWER_INIT;
    transport_request request = {.method = "GET", .target = url, .on_data = on_data, .data = data};

    return api_send(c, &request, &answer, err);
}

int copy_to_stdout(cli *c, const vfs_path *from, mt_err **err)
{
    return get_file(c, from, from->path, to_stdout, NULL, err);
}

// --- down ---

typedef struct down {
    int fd;
    cli_progress *progress;
    const char *name;
} down;

static int to_fd(const void *piece, size_t len, void *data, mt_err **err)
{
    down *d = data;
    int r = mt_write_full(d->fd, piece, len);

    cli_progress_add(d->progress, len);
    return r < 0 ? mt_fail_errno(err, r, "cannot write '%s'", d->name) : 0;
}

int copy_down_to_fd(cli *c, const vfs_path *from, const char *path, int fd, cli_progress *progress,
                    mt_err **err)
{
    down d = {fd, progress, path};

    return get_file(c, from, path, to_fd, &d, err);
}

// A name beside the target that nobody else takes.
static int make_temporary(int folder, char name[64], mt_err **err)
{
    unsigned char random[8];
    char hex[17];
    int fd;

    mt_random_bytes(random, sizeof(random));
    mt_hex(random, sizeof(random), hex);
    (void)snprintf(name, 64, ".mt-%s.part", hex);
    fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return fd < 0 ? mt_fail_errno(err, errno, "cannot make a file") : fd;
}

// Whole or not at all: a part of a file never stands under its name.
int copy_down(cli *c, const vfs_path *from, const char *path, int folder, const char *name,
              cli_progress *progress, mt_err **err)
{
    char temporary[64];
    _cleanup_close_ int fd = make_temporary(folder, temporary, err);
    struct stat st;
    int r;

    if (fd < 0)
        return mt_wrap(err, "writing '%s'", name);
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        (void)fchmod(fd, st.st_mode & 0777);
    r = copy_down_to_fd(c, from, path, fd, progress, err);
    if (r == 0 && renameat(folder, temporary, folder, name) < 0)
        r = mt_fail_errno(err, errno, "cannot write '%s'", name);
    if (r < 0)
        (void)unlinkat(folder, temporary, 0);
    return r;
}

// --- up ---

typedef struct up {
    int fd;
    int64_t left; // -1: until the end
    cli_progress *progress;
    const char *name;
    bool whole; // all of it was read
} up;

static ptrdiff_t from_fd(void *buf, size_t cap, void *data, mt_err **err)
{
    up *u = data;
    ssize_t n;

    if (u->left >= 0 && (int64_t)cap > u->left)
        cap = (size_t)u->left;
    u->whole = cap == 0;
    if (u->whole)
        return 0;
    do
        n = read(u->fd, buf, cap);
    while (n < 0 && errno == EINTR && !cli_interrupted);
    if (n < 0)
        return mt_fail_errno(err, errno, "cannot read '%s'", u->name);
    if (n == 0 && u->left > 0)
        return mt_fail(err, MT_E_IO, "'%s' became shorter while it was read", u->name);
    if (u->left >= 0)
        u->left -= n;
    u->whole = n == 0 || u->left == 0;
    cli_progress_add(u->progress, (uint64_t)n);
    return n;
}

// The server keeps nothing of a body that did not come whole, so this much is known.
static int upload_failed(const cli *c, const up *u, mt_err *cause, mt_err **err)
{
    if (u->whole || mt_err_code(cause) != MT_E_OUTCOME_UNKNOWN) {
        mt_err_move(err, cause);
        return -1;
    }
    (void)mt_err_free(cause);
    return mt_fail(err, MT_E_UNREACHABLE,
                   "the server at %s: the connection was closed while '%s' was sent: nothing of it "
                   "is kept",
                   c->url.value, u->name);
}

int copy_up(cli *c, int fd, int64_t size, const vfs_path *to, const char *path,
            cli_progress *progress, mt_err **err)
{
    static const char *const headers[][2] = {{"Content-Type", "application/octet-stream"}};
    _cleanup_free_ char *url = vfs_url(to, "files", path);
    _cleanup_answer_ transport_answer answer = TRANSPORT_ANSWER_INIT;
    up u = {fd, size, progress, path, size == 0};
    mt_err *cause = NULL;
    transport_request request = {.method = "PUT",
                                 .target = url,
                                 .headers = headers,
                                 .header_count = 1,
                                 .read_body = from_fd,
                                 .body_length = size,
                                 .data = &u};

    // An empty body needs no pieces.
    if (size == 0) {
        request.read_body = NULL;
        request.has_body = true;
    }
    return api_send(c, &request, &answer, &cause) < 0 ? upload_failed(c, &u, cause, err) : 0;
}

// --- across ---

int copy_across(cli *c, const vfs_path *from, const char *from_path, const vfs_path *to,
                const char *to_path, cli_progress *progress, mt_err **err)
{
    const char *tmp = getenv("TMPDIR");
    cli_progress silent = {.c = c};
    _cleanup_close_ int fd = -1;
    off_t size;

    fd = open(tmp && tmp[0] == '/' ? tmp : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        FILE *f = tmpfile(); // where the file system has no O_TMPFILE

        fd = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 3) : -1;
        if (f)
            (void)fclose(f);
    }
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot make a temporary file (TMPDIR says where)");
    silent.shown_us = INT64_MAX; // only the second half is shown
    if (copy_down_to_fd(c, from, from_path, fd, &silent, err) < 0)
        return -1;
    size = lseek(fd, 0, SEEK_CUR);
    if (size < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return mt_fail_errno(err, errno, "cannot read the temporary file");
    return copy_up(c, fd, size, to, to_path, progress, err);
}
