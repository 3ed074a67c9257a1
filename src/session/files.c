// SPDX-License-Identifier: Apache-2.0
// The content of one file, out and in.
#include "session/program.h"

#include "base/fd.h"
#include "base/id.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

// Files of the kernel have no size until they are read.
enum { UNSIZED_MAX = 64 << 20 };

static void refuse_special(const struct stat *st)
{
    if (S_ISDIR(st->st_mode))
        fail(MT_SESSION_IS_FOLDER, 0);
    if (!S_ISREG(st->st_mode))
        fail(MT_SESSION_NOT_REGULAR, (uint8_t)mt_vfs_type_of(st->st_mode));
}

// Looked at before it is opened, as opening alone wakes who waits at a pipe; O_NONBLOCK and the
// second look are for what is swapped in between.
static int open_to_read(const char *path, struct stat *st)
{
    int fd;

    if (stat(path, st) < 0)
        fail_errno(errno);
    refuse_special(st);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, st) < 0)
        fail_errno(errno);
    refuse_special(st);
    return fd;
}

void read_file(const char *path)
{
    mt_buf b = MT_BUF_INIT(2 * MT_SESSION_FRAME_MAX);
    static char piece[MT_SESSION_DATA_MAX];
    mt_session_frame go;
    uint64_t offset, length;
    struct stat st;
    int fd = open_to_read(path, &st);

    say_entry_of(path, &st, NULL);
    if (!hear(&go) || go.type != MT_SESSION_GO || mt_session_get_go(&go, &offset, &length) < 0)
        _exit(1);
    length = MT_MIN(length, st.st_size > 0 ? (uint64_t)st.st_size : (uint64_t)UNSIZED_MAX);
    if (offset > 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0)
        fail_errno(errno);
    while (length > 0) {
        ssize_t n = read(fd, piece, (size_t)MT_MIN(length, (uint64_t)sizeof(piece)));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            fail_errno(errno);
        if (n == 0)
            break;
        (void)mt_session_put_data(&b, piece, (size_t)n);
        say(&b);
        length -= (uint64_t)n;
    }
    say_end(false);
}

// --- writing -------------------------------------------------------------------------------------

// What is being written, beside its place: with a name, or (`name` is empty) without one, so that
// nothing is left whoever is killed.
typedef struct upload {
    char *path; // where links lead to
    int folder;
    const char *base; // in folder
    char name[32];
    int fd;
} upload;

static void give_up(const upload *u, int e)
{
    if (u->name[0])
        (void)unlinkat(u->folder, u->name, 0);
    fail_errno(e);
}

static void take_name(upload *u)
{
    uint8_t random[8];
    char hex[2 * sizeof(random) + 1];

    mt_random_bytes(random, sizeof(random));
    mt_hex(random, sizeof(random), hex);
    (void)snprintf(u->name, sizeof(u->name), ".mt-%s.part", hex);
}

static void open_temporary(upload *u)
{
    u->fd = openat(u->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    if (u->fd >= 0)
        return;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
        fail_errno(errno);
    take_name(u);
    u->fd = openat(u->folder, u->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (u->fd < 0) {
        u->name[0] = '\0';
        fail_errno(errno);
    }
}

static void split(upload *u)
{
    char *slash = strrchr(u->path, '/'); // it begins with one

    u->base = slash + 1;
    if (!u->base[0])
        fail(MT_SESSION_IS_FOLDER, 0);
    if (slash == u->path) {
        u->folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } else {
        *slash = '\0';
        u->folder = open(u->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        *slash = '/';
    }
    if (u->folder < 0)
        fail_errno(errno);
}

// A file that is replaced hands its permission bits on, as far as they give no privilege.
static void begin(upload *u, const char *path)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    char *real = there ? realpath(path, NULL) : NULL;
    int e;

    if (there)
        refuse_special(&st);
    if (there && access(path, W_OK) < 0)
        fail_errno(errno);
    u->path = real ? real : mt_asprintf("%s", path);
    if (!u->path)
        fail_errno(ENOMEM);
    e = make_parents(u->path);
    if (e)
        fail_errno(e);
    split(u);
    open_temporary(u);
    if (there)
        (void)fchmod(u->fd, st.st_mode & 0777);
}

static void put_in_place(upload *u)
{
    char self[64];

    if (!u->name[0]) {
        take_name(u);
        (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", u->fd);
        if (linkat(AT_FDCWD, self, u->folder, u->name, AT_SYMLINK_FOLLOW) < 0) {
            u->name[0] = '\0';
            fail_errno(errno);
        }
    }
    if (renameat(u->folder, u->name, u->folder, u->base) < 0)
        give_up(u, errno);
    u->name[0] = '\0';
}

void write_file(const char *path)
{
    mt_buf b = MT_BUF_INIT(64);
    mt_session_frame f;
    upload u = {0};
    struct stat st;
    bool replaced;

    begin(&u, path);
    (void)mt_session_put_go(&b, 0, 0);
    say(&b);
    while (hear(&f)) {
        int r = f.type == MT_SESSION_DATA ? mt_write_full(u.fd, f.payload, f.len) : 0;

        if (r < 0)
            give_up(&u, -r);
        if (f.type == MT_SESSION_DATA)
            continue;
        if (f.type != MT_SESSION_END)
            break;
        replaced = fstatat(u.folder, u.base, &st, AT_SYMLINK_NOFOLLOW) == 0;
        put_in_place(&u);
        if (fstat(u.fd, &st) < 0)
            fail_errno(errno);
        say_entry_of(u.path, &st, NULL);
        say_end(replaced);
    }
    // Nobody is there any more: of the content there is nothing.
    if (u.name[0])
        (void)unlinkat(u.folder, u.name, 0);
    _exit(1);
}
