// SPDX-License-Identifier: Apache-2.0
// A database that an earlier version has written is brought to what this one knows, and all that
// was in it is still there.
#include "store/test-util.h"

#include <sodium.h>
#include <sqlite3.h>

struct migration {
    int number;
    const char *name;
    const char *sql;
    size_t len;
};
#include "migrations.inc"

static bool run_sql(sqlite3 *handle, const char *sql)
{
    char *why = NULL;
    bool ok = sqlite3_exec(handle, sql, NULL, NULL, &why) == SQLITE_OK;

    if (!ok)
        printf("# %s\n", why);
    sqlite3_free(why);
    return ok;
}

static bool apply(sqlite3 *handle, const struct migration *m)
{
    unsigned char hash[32];
    char sum[65], *row;
    bool ok;

    (void)crypto_generichash(hash, sizeof(hash), (const unsigned char *)m->sql, m->len, NULL, 0);
    mt_hex(hash, sizeof(hash), sum);
    row = mt_asprintf("INSERT INTO schema_migrations VALUES (%d, '%s', '%s', 1)", m->number,
                      m->name, sum);
    ok = row && run_sql(handle, m->sql) && run_sql(handle, row);
    free(row);
    return ok;
}

// A store of the first so many migrations, with what sql puts into it.
static void make_old(const char *dir, size_t migrations, const char *sql)
{
    _cleanup_free_ char *path = mt_asprintf("%s/maitento.db", dir);
    sqlite3 *handle = NULL;

    (void)mt_store_close(open_or_die(dir)); // makes its key file
    CHECK(unlink(path) == 0);
    CHECK(sqlite3_open(path, &handle) == SQLITE_OK);
    CHECK(run_sql(handle,
                  "CREATE TABLE schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, "
                  "checksum TEXT NOT NULL, date_applied INTEGER NOT NULL) STRICT"));
    for (size_t i = 0; i < migrations; i++)
        CHECK(apply(handle, &MIGRATIONS[i]));
    CHECK(run_sql(handle, sql));
    CHECK(sqlite3_close(handle) == SQLITE_OK);
}

// Idempotency-Keys were of runs and commands alone before there were runs of apps.
static void test_before_apps(const char *top)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *dir = mt_asprintf("%s/before-apps", top);
    _cleanup_free_ char *sql = mt_asprintf(
        "INSERT INTO users (id, name, role, date_created) VALUES ('u', 'anna', 'user', 1);"
        "INSERT INTO namespaces VALUES ('n', 'work', 'u', 1);"
        "INSERT INTO runs (id, namespace_id, capsule, version, started_by_id, started_by, "
        "date_created, definition) VALUES ('r', 'n', 'c', 1, 'u', 'anna', 1, '{}');"
        "INSERT INTO commands (id, run_id, run_as_user, async, max_duration_ms, working_directory, "
        "bytes, date_created, command, arguments, environment) "
        "VALUES ('c', 'r', 'maitento', 0, 0, '', 0, 1, 'ls', '[]', '{}');"
        "INSERT INTO idempotency VALUES ('u', 'start', 'd', 'r', %lld, NULL), "
        "('u', 'command', 'd', 'r', %lld, 'c'), ('u', 'old', 'd', 'r', 1, NULL);",
        (long long)mt_now_us(), (long long)mt_now_us());
    mt_command_record c = {0};
    mt_store *s;
    mt_user anna;
    mt_run r = {0};

    make_old(dir, 5, sql);
    s = open_or_die(dir);
    CHECK_OK(mt_store_user_by_name(s, "anna", &anna, &err));
    CHECK_OK(mt_store_run_by_idempotency(s, &anna, "start", "d", &r, &err));
    CHECK_STR(r.id, "r");
    CHECK_STR(r.parent_app_id, "");
    mt_run_done(&r);
    CHECK_OK(mt_store_command_by_idempotency(s, &anna, "command", "d", &c, &err));
    CHECK_STR(c.id, "c");
    mt_command_record_done(&c);
    CHECK_CODE(mt_store_run_by_idempotency(s, &anna, "command", "d", &r, &err), IDEMPOTENCY_REUSED);
    CHECK_IS(mt_store_run_by_idempotency(s, &anna, "old", "d", &r, &err), 1);
    (void)mt_store_close(s);
    s = open_or_die(dir); // and it stays so
    CHECK_OK(mt_store_run_get(s, NULL, "r", &r, &err));
    mt_run_done(&r);
    (void)mt_store_close(s);
}

// Those of apps, with the runs that hold them, came before the ones of interactions.
static void test_before_interactions(const char *top)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *dir = mt_asprintf("%s/before-interactions", top);
    mt_app_run r = {0};
    mt_run run = {0};
    mt_store *s;
    mt_user anna;
    _cleanup_free_ char *sql = mt_asprintf(
        "INSERT INTO users (id, name, role, date_created) VALUES ('u', 'anna', 'user', 1);"
        "INSERT INTO namespaces VALUES ('n', 'work', 'u', 1);"
        "INSERT INTO app_runs (id, namespace_id, app, version, started_by_id, started_by, "
        "parent_id, parent_app_id, root_id, depth, app_depth, rerun_of, language, date_created, "
        "deadline, max_duration_ms) "
        "VALUES ('a', 'n', 'c', 1, 'u', 'anna', '', '', '', 0, 0, '', 1, 1, 1, 1);"
        "INSERT INTO app_values (run_id, inputs) VALUES ('a', '{}');"
        "INSERT INTO runs (id, namespace_id, capsule, version, started_by_id, started_by, "
        "date_created, definition) VALUES ('r', 'n', 'c', 1, 'u', 'anna', 1, '{}');"
        "INSERT INTO idempotency VALUES ('u', 'app', 'd', NULL, NULL, 'a', NULL, %lld), "
        "('u', 'held', 'd', 'r', NULL, NULL, 'a', 1), ('u', 'old', 'd', 'r', NULL, NULL, NULL, 1);",
        (long long)mt_now_us());

    make_old(dir, 7, sql);
    s = open_or_die(dir);
    CHECK_OK(mt_store_user_by_name(s, "anna", &anna, &err));
    CHECK_OK(mt_store_app_run_by_idempotency(s, &anna, "app", "d", &r, &err));
    CHECK_STR(r.id, "a");
    mt_app_run_done(&r);
    CHECK_OK(mt_store_run_by_idempotency(s, &anna, "held", "d", &run, &err));
    CHECK_STR(run.id, "r");
    mt_run_done(&run);
    CHECK_IS(mt_store_run_by_idempotency(s, &anna, "old", "d", &run, &err), 1);
    (void)mt_store_close(s);
}

// Events of before knew no run: it is looked up where its record is.
static void test_before_events(const char *top)
{
    _cleanup_(mt_event_list_done) mt_event_list l = {0};
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *dir = mt_asprintf("%s/before-events", top);
    mt_store *s;

    make_old(dir, 9,
             "INSERT INTO users (id, name, role, date_created) VALUES ('u', 'anna', 'user', 1);"
             "INSERT INTO namespaces VALUES ('n', 'work', 'u', 1);"
             "INSERT INTO runs (id, namespace_id, capsule, version, started_by_id, started_by, "
             "date_created, definition) VALUES ('r', 'n', 'c', 1, 'u', 'anna', 1, '{}');"
             "INSERT INTO commands (id, run_id, run_as_user, async, max_duration_ms, "
             "working_directory, bytes, date_created, command, arguments, environment) "
             "VALUES ('c', 'r', 'maitento', 0, 0, '', 0, 1, 'ls', '[]', '{}');"
             "INSERT INTO events VALUES (7, 1, 'capsuleRun', 'r', 'n', 'created'), "
             "(8, 1, 'command', 'c', 'n', 'created'), (9, 1, 'command', 'gone', 'n', 'created'), "
             "(10, 1, 'vfs', 'v', 'n', 'created');");
    s = open_or_die(dir);
    CHECK_OK(
        mt_store_event_list(s, NULL, &(mt_event_filter){.after = 6, .until = 10}, 10, &l, &err));
    CHECK_INT(l.count, 4);
    CHECK_STR(l.items[0].run_id, "r");
    CHECK_STR(l.items[1].run_id, "r");
    CHECK_STR(l.items[2].run_id, "");
    CHECK_STR(l.items[3].run_id, "");
    CHECK_STR(l.items[3].name, "");
    (void)mt_store_close(s);
}

int main(void)
{
    _cleanup_free_ char *top = temp_folder();

    test_before_apps(top);
    test_before_interactions(top);
    test_before_events(top);
    remove_tree(top);
    return TAP_DONE();
}
