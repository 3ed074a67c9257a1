// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"
#include "base/log.h"
#include "store/store-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

enum {
    MASTER = crypto_kdf_KEYBYTES,
    TOKEN_KEY = crypto_generichash_KEYBYTES,
    SECRET_KEY = crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
};
enum {
    SAME_BOOT_US = 10000000, // no machine is started again sooner
    LOST_NUMBERS = 50000,    // more than events in what SQLite leaves without a sync, 1000 pages
};
_Static_assert(MASTER == 32 && TOKEN_KEY == 32 && SECRET_KEY == 32, "sizes in store.h");

// A folder that a power loss takes away takes all that was answered with it.
static void sync_parent(int dirfd)
{
    _cleanup_close_ int parent = openat(dirfd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (parent >= 0)
        (void)fsync(parent);
}

static int open_folder(mt_store *s, mt_err **err)
{
    bool made = mkdir(s->dir, 0700) == 0;

    if (!made && errno != EEXIST)
        return mt_fail_errno(err, errno, "cannot make '%s'", s->dir);
    s->dirfd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dirfd < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", s->dir);
    if (made)
        sync_parent(s->dirfd);
    return 0;
}

static int locked_by_other(mt_store *s, mt_err **err)
{
    _cleanup_buf_ mt_buf pid = MT_BUF_INIT(32);

    (void)mt_read_file(s->dirfd, "lock", &pid);
    return mt_fail(err, MT_E_CONFLICT,
                   "another server (process %s) uses the store '%s': stop it, or give this one "
                   "another state folder",
                   pid.len ? mt_buf_str(&pid) : "unknown", s->dir);
}

static int take_lock(mt_store *s, mt_err **err)
{
    char pid[32];
    int n;

    s->lock_fd = openat(s->dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock_fd < 0)
        return mt_fail_errno(err, errno, "cannot open the lock file of '%s'", s->dir);
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? locked_by_other(s, err)
                                    : mt_fail_errno(err, errno, "cannot lock '%s'", s->dir);
    // The number is for the sentence above only; on a full disk it may be missing.
    n = snprintf(pid, sizeof(pid), "%d", (int)getpid());
    if (ftruncate(s->lock_fd, 0) < 0 || pwrite(s->lock_fd, pid, (size_t)n, 0) < 0)
        mt_log(MT_LOG_DEBUG, "cannot note the process in the lock file", {"folder", s->dir});
    return 0;
}

static int read_key(mt_store *s, int fd, mt_err **err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return mt_fail_errno(err, errno, "cannot look at '%s/key'", s->dir);
    if (!S_ISREG(st.st_mode) || st.st_size != MASTER)
        return mt_fail(err, MT_E_IO,
                       "'%s/key' is no key file (%d bytes): put it back from a backup", s->dir,
                       MASTER);
    if (st.st_mode & 077)
        return mt_fail(err, MT_E_FORBIDDEN, "'%s/key' may be read by others: chmod 600 it", s->dir);
    if (mt_read_full(fd, s->master, MASTER) < 0)
        return mt_fail(err, MT_E_IO, "cannot read '%s/key'", s->dir);
    return 0;
}

static int make_key(mt_store *s, mt_err **err)
{
    int r;

    // Without its key a store is full of hashes and sealed values that nobody can read.
    if (faccessat(s->dirfd, "maitento.db", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return mt_fail(err, MT_E_NOT_FOUND,
                       "'%s/key' is missing beside its database: put it back from a backup",
                       s->dir);
    randombytes_buf(s->master, MASTER);
    r = mt_write_file_atomic(s->dirfd, "key", s->master, MASTER, 0600);
    return r < 0 ? mt_fail_errno(err, r, "cannot write '%s/key'", s->dir) : 0;
}

static int load_key(mt_store *s, mt_err **err)
{
    _cleanup_close_ int fd = -1;
    int r;

    if (sodium_init() < 0)
        return mt_fail(err, MT_E_INTERNAL, "cannot set up the cryptographic library");
    s->master = sodium_malloc(MASTER);
    s->token_key = sodium_malloc(TOKEN_KEY);
    s->secret_key = sodium_malloc(SECRET_KEY);
    if (!s->master || !s->token_key || !s->secret_key)
        return mt_fail_oom(err);
    fd = openat(s->dirfd, "key", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno != ENOENT)
        return mt_fail_errno(err, errno, "cannot open '%s/key'", s->dir);
    r = fd < 0 ? make_key(s, err) : read_key(s, fd, err);
    if (r < 0)
        return r;
    mt_store_derive_key(s, "mt_token", s->token_key);
    mt_store_derive_key(s, "mt_secrt", s->secret_key);
    (void)sodium_mprotect_readonly(s->master);
    (void)sodium_mprotect_readonly(s->token_key);
    (void)sodium_mprotect_readonly(s->secret_key);
    return 0;
}

void mt_store_derive_key(const mt_store *s, const char context[8], unsigned char out[32])
{
    (void)crypto_kdf_derive_from_key(out, 32, 1, context, s->master);
}

int store_reserve_make(mt_store *s, mt_err **err)
{
    _cleanup_close_ int fd =
        openat(s->dirfd, "reserve", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int e = fd < 0 ? errno : posix_fallocate(fd, 0, s->reserve_bytes);

    if (e == 0)
        return 0;
    (void)unlinkat(s->dirfd, "reserve", 0);
    return mt_fail_errno(err, e, "cannot keep a reserve of %lld bytes in '%s'",
                         (long long)s->reserve_bytes, s->dir);
}

void store_reserve_drop(mt_store *s)
{
    (void)unlinkat(s->dirfd, "reserve", 0);
}

static int open_database(mt_store *s, mt_err **err)
{
    _cleanup_close_ int fd = -1;

    // Made here, so that it is never readable by others; its side files take over its mode.
    fd = openat(s->dirfd, "maitento.db", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", s->path);
    if (fsync(s->dirfd) < 0)
        return mt_fail_errno(err, errno, "cannot sync '%s'", s->dir);
    // Closed before SQLite opens it: a close of any descriptor drops all POSIX locks of the
    // process.
    mt_close_fd(&fd);
    return db_open(s->path, true, &s->writer, err);
}

// A hash of the key tells whether the key file belongs to this database.
static int check_key(mt_store *s, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    unsigned char mark[32];
    const void *stored;
    size_t len;
    int r;

    mt_store_derive_key(s, "mt_check", mark);
    if (db_start(s->writer, META_GET, &st, err, T("key_check")) < 0)
        return -1;
    r = db_step(s->writer, st, err);
    if (r < 0)
        return r;
    if (r == 0)
        return db_run(s->writer, META_SET, err, T("key_check"), B(mark, sizeof(mark)));
    stored = db_blob(st, 0, &len);
    if (len != sizeof(mark) || sodium_memcmp(stored, mark, sizeof(mark)) != 0)
        return mt_fail(err, MT_E_CONFLICT,
                       "'%s/key' is not the key of its database: put back the two from one backup",
                       s->dir);
    return 0;
}

static int ensure_admin(mt_store *s, mt_err **err)
{
    tx t = {.store = s, .db = s->writer, .now = mt_now_us()};
    char id[MT_ID_TEXT];
    mt_user u;
    int r = user_load(s->writer, DB_USER_BY_UID, I(0), &u, err);

    if (r <= 0)
        return r;
    mt_id_new(id);
    if (db_run(s->writer, USER_ADD, err, T(id), T("admin"), T("admin"), I(0), I(t.now), T("")) < 0)
        return -1;
    return event_add(&t, "user", id, "", "created", err);
}

// After a loss of power the last events may be gone, whose numbers clients have seen: none comes
// twice, as the numbers go on well behind them. That the machine was started since is seen by when
// that was; where only the clock was set meanwhile the numbers jump for nothing.
static int skip_lost_numbers(mt_store *s, mt_err **err)
{
    int64_t booted = mt_now_us() - mt_boottime_ns() / 1000, before;
    _cleanup_stmt_ db_stmt *st = NULL;
    const void *stored;
    size_t len = 0;
    int r;

    if (db_start(s->writer, META_GET, &st, err, T("booted")) < 0)
        return -1;
    r = db_step(s->writer, st, err);
    if (r < 0)
        return -1;
    stored = r > 0 ? db_blob(st, 0, &len) : NULL;
    if (stored && len == sizeof(before)) {
        memcpy(&before, stored, sizeof(before));
        if (before - booted < SAME_BOOT_US && booted - before < SAME_BOOT_US)
            return 0;
    }
    if (db_run(s->writer, EVENT_JUMP, err, I(stored ? LOST_NUMBERS : 0)) < 0)
        return -1;
    return db_run(s->writer, META_SET, err, T("booted"), B(&booted, sizeof(booted))) < 0 ? -1 : 0;
}

static int first_words(mt_store *s, mt_err **err)
{
    if (db_do(s->writer, BEGIN, err) < 0)
        return -1;
    if (check_key(s, err) < 0 || ensure_admin(s, err) < 0 || skip_lost_numbers(s, err) < 0 ||
        db_do(s->writer, COMMIT, err) < 0) {
        if (db_in_transaction(s->writer))
            (void)db_do(s->writer, ROLLBACK, NULL);
        return -1;
    }
    s->event_count = 0;
    return 0;
}

static mt_store *store_new(const char *dir, int64_t reserve_bytes)
{
    mt_store *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->dirfd = s->lock_fd = -1;
    s->tail = &s->head;
    s->identities = 1;
    (void)pthread_mutex_init(&s->known_lock, NULL);
    s->reserve_bytes = reserve_bytes;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_mutex_init(&s->readers_lock, NULL);
    (void)pthread_cond_init(&s->wake, NULL);
    s->dir = strdup(dir);
    s->path = mt_asprintf("%s/maitento.db", dir);
    return s->dir && s->path ? s : mt_store_close(s);
}

// It can wait: a disk that is full is no reason not to open.
static void clear_left(mt_store *s)
{
    _cleanup_err_ mt_err *err = NULL;

    if (app_runs_clear_left(s, &err) < 0)
        mt_log(MT_LOG_WARNING,
               "what is left of journals of app runs that have ended cannot be removed; tried "
               "again at the next start",
               {"error", mt_err_sentence(err)});
}

int store_open_with(const char *dir, int64_t reserve_bytes, mt_store **ret, mt_err **err)
{
    _cleanup_store_ mt_store *s = store_new(dir, reserve_bytes);

    if (!s)
        return mt_fail_oom(err);
    if (open_folder(s, err) < 0 || take_lock(s, err) < 0 || load_key(s, err) < 0 ||
        open_database(s, err) < 0 || store_migrate(s->writer, err) < 0 || first_words(s, err) < 0)
        return -1;
    s->reserve_out = store_reserve_make(s, NULL) < 0;
    if (store_writer_start(s, err) < 0)
        return -1;
    clear_left(s);
    *ret = MT_TAKE_PTR(s);
    return 0;
}

int mt_store_open(const char *dir, mt_store **ret, mt_err **err)
{
    return store_open_with(dir, STORE_RESERVE, ret, err);
}

mt_store *mt_store_close(mt_store *s)
{
    if (!s)
        return NULL;
    store_writer_stop(s);
    readers_close(s);
    s->writer = db_close(s->writer);
    sodium_free(s->master);
    sodium_free(s->token_key);
    sodium_free(s->secret_key);
    mt_close_fd(&s->lock_fd);
    mt_close_fd(&s->dirfd);
    (void)pthread_cond_destroy(&s->wake);
    (void)pthread_mutex_destroy(&s->readers_lock);
    (void)pthread_mutex_destroy(&s->lock);
    free(s->events);
    free(s->dir);
    free(s->path);
    free(s);
    return NULL;
}
