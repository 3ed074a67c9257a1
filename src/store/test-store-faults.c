// SPDX-License-Identifier: Apache-2.0
// What may go wrong: many writers, kill -9 in the middle of a write, a full disk, a wrong key file,
// other schemas.
#include "base/fd.h"
#include "store/test-util.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

// ---- group commit ----

enum { THREADS = 8, EACH = 100 };

struct group {
    mt_store *store;
    mt_user owner;
    int thread, made, read_back;
};

static void *write_many(void *arg)
{
    struct group *g = arg;

    for (int i = 0; i < EACH; i++) {
        char name[32];
        mt_namespace made, got;

        (void)snprintf(name, sizeof(name), "t%d-%d", g->thread, i);
        g->made += mt_store_namespace_create(g->store, &g->owner, name, &made, NULL, NULL) == 0;
        // What was answered can be read at once, by a reader.
        g->read_back += mt_store_namespace_get(g->store, NULL, name, &got, NULL) == 0;
    }
    return NULL;
}

static void test_group_commit(const char *top)
{
    _cleanup_free_ char *dir = mt_asprintf("%s/group", top);
    mt_store *s = open_or_die(dir);
    struct group groups[THREADS];
    pthread_t threads[THREADS];
    int64_t began = mt_monotonic_us();

    for (int i = 0; i < THREADS; i++) {
        groups[i] = (struct group){.store = s, .thread = i};
        (void)mt_store_user_by_login(s, "root", 0, &groups[i].owner, NULL);
        CHECK_INT(pthread_create(&threads[i], NULL, write_many, &groups[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        CHECK_INT(groups[i].made, EACH);
        CHECK_INT(groups[i].read_back, EACH);
    }
    printf("# %d durable writes by %d threads in %lld ms\n", THREADS * EACH, THREADS,
           (long long)(mt_monotonic_us() - began) / 1000);
    (void)mt_store_close(s);
}

// One failing operation of a group leaves the others alone.
static int succeed_op(tx *t, void *arg, mt_err **err)
{
    return db_run(t->db, META_SET, err, T(arg), B("x", 1)) < 0 ? -1 : 0;
}

static int fail_op(tx *t, void *arg, mt_err **err)
{
    (void)db_run(t->db, META_SET, NULL, T(arg), B("x", 1));
    return mt_fail(err, MT_E_CONFLICT, "not this one");
}

// Fails as a broken transaction would the first time, in the middle of its group.
static int break_once_op(tx *t, void *arg, mt_err **err)
{
    static bool broken;

    if (!broken) {
        broken = true;
        (void)db_exec(t->db, "ROLLBACK", NULL);
        return -1;
    }
    return db_run(t->db, META_SET, err, T(arg), B("x", 1)) < 0 ? -1 : 0;
}

static pthread_barrier_t hold;

static int hold_op(tx *t, void *arg, mt_err **err)
{
    (void)t;
    (void)arg;
    (void)err;
    (void)pthread_barrier_wait(&hold); // it runs, alone
    (void)pthread_barrier_wait(&hold); // the others are queued
    return 0;
}

static int results[4];

static void note_result(int result, const mt_err *err, void *data)
{
    (void)err;
    *(int *)data = result;
}

static void queue_op(mt_store *s, op_fn *fn, const char *name, int *result)
{
    CHECK_INT(store_write_async(s, fn, strdup(name), false, note_result, result, NULL), 0);
}

static bool meta_has(mt_store *s, const char *name)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    return reader_get(s, &r, NULL) == 0 && db_start(r->db, META_GET, &st, NULL, T(name)) == 0 &&
           db_step(r->db, st, NULL) == 1;
}

static void test_one_fails(const char *top)
{
    _cleanup_free_ char *dir = mt_asprintf("%s/fails", top);
    mt_store *s = open_or_die(dir);

    for (int round = 0; round < 2; round++) {
        char names[3][8] = {"a0", "b0", "c0"};

        for (int i = 0; i < 3; i++)
            names[i][1] = (char)('0' + round);
        (void)pthread_barrier_init(&hold, NULL, 2);
        queue_op(s, hold_op, "", &results[3]);
        (void)pthread_barrier_wait(&hold);
        // These three wait behind the held one, so they make one group.
        queue_op(s, succeed_op, names[0], &results[0]);
        queue_op(s, round == 0 ? fail_op : break_once_op, names[1], &results[1]);
        queue_op(s, succeed_op, names[2], &results[2]);
        (void)pthread_barrier_wait(&hold);
        CHECK_INT(store_write(s, succeed_op, names[0], NULL), 0); // all before it are done
        CHECK_INT(results[0], 0);
        CHECK_INT(results[1], round == 0 ? -1 : 0);
        CHECK_INT(results[2], 0);
        CHECK(meta_has(s, names[0]) && meta_has(s, names[2]));
        CHECK_INT(meta_has(s, names[1]), round == 1);
        (void)pthread_barrier_destroy(&hold);
    }
    (void)mt_store_close(s);
}

// ---- kill -9 ----

static void write_until_killed(const char *dir, int out)
{
    mt_store *s = NULL;
    mt_user owner;
    mt_namespace made;

    if (mt_store_open(dir, &s, NULL) < 0 || mt_store_user_by_login(s, "root", 0, &owner, NULL) < 0)
        _exit(2);
    for (int i = 0;; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "n-%d", i);
        if (mt_store_namespace_create(s, &owner, name, &made, NULL, NULL) < 0 ||
            mt_write_full(out, &i, sizeof(i)) < 0)
            _exit(3);
    }
}

static int kill_in_mid_write(const char *dir, int acknowledged)
{
    int fds[2], last = -1;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        (void)close(fds[0]);
        write_until_killed(dir, fds[1]);
    }
    (void)close(fds[1]);
    while (last < acknowledged && mt_read_full(fds[0], &last, sizeof(last)) == 0)
        continue;
    (void)kill(pid, SIGKILL);
    while (mt_read_full(fds[0], &last, sizeof(last)) == 0) // what it said before it died
        continue;
    (void)waitpid(pid, NULL, 0);
    (void)close(fds[0]);
    return last;
}

static bool is_sound(const char *dir)
{
    _cleanup_free_ char *path = mt_asprintf("%s/maitento.db", dir);
    sqlite3 *handle = NULL;
    sqlite3_stmt *st = NULL;
    bool ok = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
              sqlite3_prepare_v2(handle, "PRAGMA integrity_check", -1, &st, NULL) == SQLITE_OK &&
              sqlite3_step(st) == SQLITE_ROW &&
              mt_streq((const char *)sqlite3_column_text(st, 0), "ok");

    (void)sqlite3_finalize(st);
    (void)sqlite3_close(handle);
    return ok;
}

static void test_kill(const char *top)
{
    for (int round = 0; round < 5; round++) {
        _cleanup_free_ char *dir = mt_asprintf("%s/kill-%d", top, round);
        int last = kill_in_mid_write(dir, 20 + 13 * round), missing = 0;
        mt_store *s;
        mt_namespace got;

        CHECK(last >= 20 + 13 * round);
        s = open_or_die(dir); // the lock died with its holder
        for (int i = 0; i <= last; i++) {
            char name[32];

            (void)snprintf(name, sizeof(name), "n-%d", i);
            missing += mt_store_namespace_get(s, NULL, name, &got, NULL) < 0;
        }
        CHECK_INT(missing, 0);
        (void)mt_store_close(s);
        CHECK(is_sound(dir));
    }
}

// ---- a full disk ----

enum { RESERVE = 1 << 20 };

static int fill_disk(const char *top)
{
    _cleanup_free_ char *path = mt_asprintf("%s/filler", top);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    static char block[4096];

    while (fd >= 0 && write(fd, block, sizeof(block)) > 0)
        continue;
    return errno;
}

static void empty_disk(const char *top)
{
    _cleanup_free_ char *path = mt_asprintf("%s/filler", top);

    (void)unlink(path);
}

static void start_run(mt_store *s, const mt_user *by, const mt_namespace *ns, char id[MT_ID_TEXT])
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_new n = {
        .namespace_id = ns->id, .capsule = "c", .version = 1, .definition = "{}", .started_by = by};
    mt_run r = {0};

    CHECK_OK(mt_store_run_create(s, &n, NULL, NULL, &r, &err));
    (void)snprintf(id, MT_ID_TEXT, "%s", r.id);
    mt_run_done(&r);
}

static void start_app(mt_store *s, const mt_user *by, const mt_namespace *ns, char id[MT_ID_TEXT])
{
    _cleanup_err_ mt_err *err = NULL;
    mt_app_run_new n = {.id = id,
                        .namespace_id = ns->id,
                        .app = "a",
                        .version = 1,
                        .inputs = "{}",
                        .started_by = by,
                        .language = 1};
    mt_app_run r = {0};

    mt_id_new(id);
    CHECK_OK(mt_store_app_run_create(s, &n, &r, &err));
    mt_app_run_done(&r);
}

// It can go on, and neither its calls nor what it prints are lost, when there is room again.
static void check_app_waits(mt_store *s, const char *id)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_app_call_record call = {.number = 1, .name = "TimeNow", .result = (char[]){"1"}};
    const mt_app_line line = {.number = 1, .text = MT_STR("x"), .level = 'o'};
    int result = 0;

    CHECK_CODE(mt_store_app_call_put(s, id, &call, &err), DISK_FULL);
    CHECK_OK(mt_store_app_note(s, id, &line, 1, NULL, 0, note_result, &result, &err));
    CHECK_OK(mt_store_settle(s, &err));
    CHECK_INT(result, -1);
}

static void check_app_ends(mt_store *s, const char *id)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_app_end end = {.status = "Error", .end_reason = "cancelled"};
    mt_app_run r = {0};

    CHECK_OK(mt_store_app_run_request_cancel(s, id, "admin", &err));
    CHECK_OK(mt_store_app_run_end(s, id, &end, &err));
    CHECK_OK(mt_store_app_run_get(s, NULL, id, &r, &err));
    CHECK_STR(r.end_reason, "cancelled");
    mt_app_run_done(&r);
}

static void check_run_ends(mt_store *s, const char *id)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_change end = {.ended = true, .status = "Error", .end_reason = "diskFull"};
    mt_run r = {0};

    CHECK_OK(mt_store_run_apply_wait(s, id, 0, &end, &err));
    CHECK_OK(mt_store_run_get(s, NULL, id, &r, &err));
    CHECK_STR(r.end_reason, "diskFull");
    mt_run_done(&r);
}

static void full_disk(const char *top)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *dir = mt_asprintf("%s/store", top);
    char ids[8][MT_ID_TEXT], app[MT_ID_TEXT], name[32];
    mt_store *s = NULL;
    mt_namespace ns, other;
    int refused = 0;
    mt_user admin;

    CHECK_OK(store_open_with(dir, RESERVE, &s, &err));
    if (!s)
        return;
    CHECK_OK(mt_store_user_by_login(s, "root", 0, &admin, &err));
    CHECK_OK(mt_store_namespace_create(s, &admin, "ns", &ns, NULL, &err));
    for (int i = 0; i < 8; i++)
        start_run(s, &admin, &ns, ids[i]);
    start_app(s, &admin, &ns, app);
    CHECK_INT(fill_disk(top), ENOSPC);
    // The WAL has some room of its own left; sooner or later a write is refused, and says why.
    for (int i = 0; i < 2000 && !refused; i++) {
        (void)snprintf(name, sizeof(name), "x-%d", i);
        refused = mt_store_namespace_create(s, &admin, name, &other, NULL, &err) < 0;
    }
    CHECK(refused);
    CHECK_INT(mt_err_code(err), MT_E_DISK_FULL);
    printf("#   %s\n", mt_err_sentence(err));
    err = mt_err_free(err);
    for (int i = 0; i < 8; i++)
        check_run_ends(s, ids[i]);
    CHECK_CODE(mt_store_namespace_create(s, &admin, "no", &other, NULL, &err), DISK_FULL);
    check_app_waits(s, app);
    check_app_ends(s, app);
    CHECK_OK(mt_store_namespace_get(s, NULL, "ns", &other, &err));
    empty_disk(top);
    refused = 1;
    for (int i = 0; i < 600 && refused; i++) { // the reserve is made again within a second or two
        refused = mt_store_namespace_create(s, &admin, "yes", &other, NULL, NULL) < 0;
        if (refused)
            (void)usleep(50000);
    }
    CHECK(!refused);
    (void)mt_store_close(s);
    CHECK(is_sound(dir));
}

static void test_full_disk(const char *top)
{
    _cleanup_free_ char *disk = mt_asprintf("%s/disk", top);
    int *count =
        mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;
    int status = -1;

    if (geteuid() != 0 || count == MAP_FAILED) {
        SKIP("needs root: a small tmpfs in a mount namespace of its own");
        return;
    }
    (void)mkdir(disk, 0700);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", disk, "tmpfs", MS_NOSUID | MS_NODEV, "size=6m") < 0)
            _exit(77);
        full_disk(disk);
        *count = tap_count_;
        _exit(tap_failed_ ? 1 : 0);
    }
    (void)waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        SKIP("needs a mount namespace of its own");
        return;
    }
    tap_count_ = *count; // the child's lines were numbered on from ours
    CHECK_INT(status, 0);
}

// ---- keys and schemas ----

static void run_sql(const char *dir, const char *sql)
{
    _cleanup_free_ char *path = mt_asprintf("%s/maitento.db", dir);
    sqlite3 *handle = NULL;

    CHECK(sqlite3_open(path, &handle) == SQLITE_OK &&
          sqlite3_exec(handle, sql, NULL, NULL, NULL) == SQLITE_OK);
    (void)sqlite3_close(handle);
}

static void test_key_file(const char *top)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *dir = mt_asprintf("%s/keys", top);
    _cleanup_free_ char *key = mt_asprintf("%s/keys/key", top);
    _cleanup_free_ char *aside = mt_asprintf("%s/keys/key.aside", top);
    unsigned char wrong[32] = {1};
    mt_store *s = open_or_die(dir);
    unsigned char a[32], b[32];

    mt_store_derive_key(s, "mt_seal1", a);
    mt_store_derive_key(s, "mt_seal2", b);
    CHECK(memcmp(a, b, sizeof(a)) != 0);
    s = mt_store_close(s);
    CHECK(chmod(key, 0640) == 0);
    CHECK_CODE(mt_store_open(dir, &s, &err), FORBIDDEN);
    CHECK(rename(key, aside) == 0);
    CHECK_CODE(mt_store_open(dir, &s, &err), NOT_FOUND);
    CHECK_INT(mt_write_file_atomic(AT_FDCWD, key, wrong, sizeof(wrong), 0600), 0);
    CHECK_CODE(mt_store_open(dir, &s, &err), CONFLICT);
    CHECK_INT(mt_write_file_atomic(AT_FDCWD, key, wrong, 5, 0600), 0);
    CHECK_CODE(mt_store_open(dir, &s, &err), IO);
    CHECK(rename(aside, key) == 0 && chmod(key, 0600) == 0);
    s = open_or_die(dir);
    mt_store_derive_key(s, "mt_seal1", b);
    CHECK(memcmp(a, b, sizeof(a)) == 0);
    (void)mt_store_close(s);
}

static void test_schemas(const char *top)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *dir = mt_asprintf("%s/schemas", top);
    mt_store *s = mt_store_close(open_or_die(dir));

    run_sql(dir, "INSERT INTO schema_migrations VALUES (9999, 'later', 'x', 0)");
    CHECK_CODE(mt_store_open(dir, &s, &err), NOT_SUPPORTED);
    run_sql(dir, "DELETE FROM schema_migrations WHERE number = 9999");
    s = mt_store_close(open_or_die(dir));
    run_sql(dir, "UPDATE schema_migrations SET checksum = 'x' WHERE number = 1");
    CHECK_CODE(mt_store_open(dir, &s, &err), NOT_SUPPORTED);
}

static void test_damage(const char *top)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *dir = mt_asprintf("%s/damage", top);
    _cleanup_free_ char *path = mt_asprintf("%s/damage/maitento.db", top);
    mt_store *s = mt_store_close(open_or_die(dir));
    static char noise[8192];

    memset(noise, 0x5a, sizeof(noise));
    CHECK_INT(mt_write_file_atomic(AT_FDCWD, path, noise, sizeof(noise), 0600), 0);
    CHECK_CODE(mt_store_open(dir, &s, &err), IO);
    CHECK_CODE(mt_store_open("/nowhere/at/all", &s, &err), NOT_FOUND);
}

int main(void)
{
    _cleanup_free_ char *top = temp_folder();

    test_group_commit(top);
    test_one_fails(top);
    test_kill(top);
    test_key_file(top);
    test_schemas(top);
    test_damage(top);
    test_full_disk(top);
    remove_tree(top);
    return TAP_DONE();
}
