// SPDX-License-Identifier: Apache-2.0
#include "store/db.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

struct db {
    sqlite3 *handle;
    bool writer;
    sqlite3_stmt *statements[DB_STATEMENTS];
};

static const char *const TEXTS[DB_STATEMENTS] = {
#define STATEMENT(name, text) [DB_##name] = text,
#include "store/statements.def"
#undef STATEMENT
};

static sqlite3_stmt *raw(db_stmt *st)
{
    return (sqlite3_stmt *)(void *)st;
}

// SQLite's messages name tables and columns, never values, so they may travel.
static int fail(db *d, mt_err **err)
{
    int rc = d->handle ? sqlite3_extended_errcode(d->handle) : SQLITE_NOMEM;
    const char *text = d->handle ? sqlite3_errmsg(d->handle) : "";

    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return mt_fail_oom(err);
    case SQLITE_FULL:
        return mt_fail(err, MT_E_DISK_FULL,
                       "the disk that holds the store is full: free space on it and try again");
    case SQLITE_IOERR: {
        int e = sqlite3_system_errno(d->handle);

        if (e == ENOSPC || e == EDQUOT)
            return mt_fail(err, MT_E_DISK_FULL,
                           "the disk that holds the store is full: free space on it and try again");
        return mt_fail(err, MT_E_IO, "cannot read or write the store: %s (%d, errno %d)", text, rc,
                       e);
    }
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return mt_fail(err, MT_E_IO,
                       "the store is damaged (%s): stop the server and put back a backup", text);
    case SQLITE_BUSY:
        return mt_fail(err, MT_E_UNAVAILABLE, "the store is busy: try again");
    case SQLITE_TOOBIG:
        return mt_fail(err, MT_E_TOO_LARGE, "a value is too large for the store");
    case SQLITE_CONSTRAINT:
        if (rc == SQLITE_CONSTRAINT_FOREIGNKEY)
            return mt_fail(err, MT_E_CONFLICT,
                           "something that this refers to was removed meanwhile: try again");
        if (rc == SQLITE_CONSTRAINT_UNIQUE || rc == SQLITE_CONSTRAINT_PRIMARYKEY)
            return mt_fail(err, MT_E_ALREADY_EXISTS, "it exists already (%s)", text);
        return mt_fail(err, MT_E_INTERNAL, "a value breaks a rule of the store: %s", text);
    default:
        return mt_fail(err, MT_E_INTERNAL, "the store failed: %s (%d)", text, rc);
    }
}

static int configure(db *d, mt_err **err)
{
    static const struct {
        int what, on;
    } SWITCHES[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_FKEY, 1},    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_DQS_DML, 0},        {SQLITE_DBCONFIG_DQS_DDL, 0},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(SWITCHES); i++) {
        if (sqlite3_db_config(d->handle, SWITCHES[i].what, SWITCHES[i].on, NULL) != SQLITE_OK)
            return fail(d, err);
    }
    (void)sqlite3_limit(d->handle, SQLITE_LIMIT_ATTACHED, 0);
    (void)sqlite3_busy_timeout(d->handle, 5000);
    if (d->writer)
        return db_exec(d,
                       "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
                       "PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY; "
                       "PRAGMA cache_size = -16000; PRAGMA mmap_size = 0;",
                       err);
    // The WAL-reset race of SQLite before 3.51.3 needs two connections that write or checkpoint:
    // readers do neither, not even when they are the last to close.
    if (sqlite3_db_config(d->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) != SQLITE_OK)
        return fail(d, err);
    return db_exec(d,
                   "PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY; "
                   "PRAGMA cache_size = -2000; PRAGMA mmap_size = 0;",
                   err);
}

int db_open(const char *path, bool writer, db **ret, mt_err **err)
{
    db *d = calloc(1, sizeof(*d));
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE;

    if (!d)
        return mt_fail_oom(err);
    d->writer = writer;
    // Before the first use of the library: nobody asks how much memory it has, and each of its
    // allocations would take a lock to count.
    if (writer)
        (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    flags |= writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    if (sqlite3_open_v2(path, &d->handle, flags, NULL) != SQLITE_OK)
        (void)fail(d, err);
    else if (configure(d, err) == 0) {
        *ret = d;
        return 0;
    }
    (void)db_close(d);
    return mt_wrap(err, "opening '%s'", path);
}

db *db_close(db *d)
{
    if (!d)
        return NULL;
    for (size_t i = 0; i < DB_STATEMENTS; i++)
        (void)sqlite3_finalize(d->statements[i]);
    if (d->handle && d->writer) {
        (void)db_exec(d, "PRAGMA optimize;", NULL);
        (void)sqlite3_wal_checkpoint_v2(d->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    (void)sqlite3_close(d->handle);
    free(d);
    return NULL;
}

static int bind(sqlite3_stmt *st, int index, const db_value *v)
{
    if (v->type == DB_IS_INT)
        return sqlite3_bind_int64(st, index, v->number);
    if (!v->data)
        return sqlite3_bind_null(st, index);
    if (v->type == DB_IS_TEXT)
        return sqlite3_bind_text(st, index, v->data, -1, SQLITE_STATIC);
    return sqlite3_bind_blob64(st, index, v->data, v->len, SQLITE_STATIC);
}

int db_start_(db *d, db_id id, const db_value *values, size_t count, db_stmt **ret, mt_err **err)
{
    sqlite3_stmt **st = &d->statements[id];

    if (!*st && sqlite3_prepare_v3(d->handle, TEXTS[id], -1, SQLITE_PREPARE_PERSISTENT, st, NULL) !=
                    SQLITE_OK)
        return fail(d, err);
    (void)sqlite3_reset(*st);
    for (size_t i = 0; i < count; i++) {
        if (bind(*st, (int)i + 1, &values[i]) != SQLITE_OK)
            return fail(d, err);
    }
    *ret = (db_stmt *)(void *)*st;
    return 0;
}

int db_step(db *d, db_stmt *st, mt_err **err)
{
    int rc = sqlite3_step(raw(st));

    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE)
        return 0;
    return fail(d, err);
}

void db_end(db_stmt *st)
{
    (void)sqlite3_reset(raw(st));
    (void)sqlite3_clear_bindings(raw(st));
}

int db_run_(db *d, db_id id, const db_value *values, size_t count, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start_(d, id, values, count, &st, err) < 0)
        return -1;
    do
        r = db_step(d, st, err);
    while (r > 0);
    return r < 0 ? r : sqlite3_changes(d->handle);
}

int64_t db_int(db_stmt *st, int column)
{
    return sqlite3_column_int64(raw(st), column);
}

const char *db_text(db_stmt *st, int column)
{
    const unsigned char *text = sqlite3_column_text(raw(st), column);

    return text ? (const char *)text : "";
}

bool db_is_null(db_stmt *st, int column)
{
    return sqlite3_column_type(raw(st), column) == SQLITE_NULL;
}

const void *db_blob(db_stmt *st, int column, size_t *ret_len)
{
    const void *data = sqlite3_column_blob(raw(st), column);

    *ret_len = (size_t)sqlite3_column_bytes(raw(st), column);
    return data ? data : "";
}

char *db_dup(db_stmt *st, int column)
{
    return strdup(db_text(st, column));
}

char *db_dup_blob(db_stmt *st, int column, size_t *ret_len)
{
    const void *data = db_blob(st, column, ret_len);
    char *copy = malloc(*ret_len + 1);

    if (!copy)
        return NULL;
    memcpy(copy, data, *ret_len);
    copy[*ret_len] = '\0';
    return copy;
}

void db_copy_(db_stmt *st, int column, char *out, size_t size)
{
    (void)snprintf(out, size, "%s", db_text(st, column));
}

bool db_in_transaction(db *d)
{
    return !sqlite3_get_autocommit(d->handle);
}

int db_exec(db *d, const char *sql, mt_err **err)
{
    return sqlite3_exec(d->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(d, err);
}

int db_sync(db *d, mt_err **err)
{
    sqlite3_file *wal = NULL;
    int rc = sqlite3_file_control(d->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal);

    if (rc == SQLITE_OK && wal && wal->pMethods)
        rc = wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    return rc == SQLITE_OK ? 0 : mt_fail(err, MT_E_IO, "the store cannot be synced (%d)", rc);
}
