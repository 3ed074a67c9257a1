// SPDX-License-Identifier: Apache-2.0
// SQLite behind a small wall: connections, the table of statements, values and rows. Its types
// appear in db.c alone. A connection is used by one thread at a time. Internal to src/store.
#pragma once

#include "base/err.h"

typedef struct db db;
typedef struct db_stmt db_stmt; // never defined: a prepared statement that its connection owns

typedef enum db_id {
#define STATEMENT(name, text) DB_##name,
#include "store/statements.def"
#undef STATEMENT
    DB_STATEMENTS,
} db_id;

typedef struct db_value {
    enum { DB_IS_INT, DB_IS_TEXT, DB_IS_BLOB } type;
    int64_t number;
    const void *data; // NULL: SQL's NULL
    size_t len;
} db_value;
#define T(text) ((db_value){.type = DB_IS_TEXT, .data = (text)})
#define I(n)    ((db_value){.type = DB_IS_INT, .number = (n)})
#define B(p, n) ((db_value){.type = DB_IS_BLOB, .data = (p), .len = (n)})

// The writer makes the file; readers cannot write, nor ever checkpoint (see db.c).
int db_open(const char *path, bool writer, db **ret, mt_err **err);
db *db_close(db *d); // the writer's last: optimizes and checkpoints

// Binds values to a statement of the table (prepared at first use). What they point at must last
// until db_end(). One statement is never used twice at a time.
int db_start_(db *d, db_id id, const db_value *values, size_t count, db_stmt **ret, mt_err **err);
int db_step(db *d, db_stmt *st, mt_err **err); // 1: a row, 0: the end, < 0
void db_end(db_stmt *st);
MT_DEFINE_CLEANUP(db_end, db_stmt *)
#define _cleanup_stmt_ _cleanup_(db_end_p)

// A whole statement without rows of interest. Rows changed, or < 0.
int db_run_(db *d, db_id id, const db_value *values, size_t count, mt_err **err);

#define DB_VALUES_(...) \
    (const db_value[]){__VA_ARGS__}, sizeof((const db_value[]){__VA_ARGS__}) / sizeof(db_value)
#define db_start(d, id, ret, err, ...) \
    db_start_((d), DB_##id, DB_VALUES_(__VA_ARGS__), (ret), (err))
#define db_start_id(d, id, ret, err, ...) \
    db_start_((d), (id), DB_VALUES_(__VA_ARGS__), (ret), (err))
#define db_run(d, id, err, ...) db_run_((d), DB_##id, DB_VALUES_(__VA_ARGS__), (err))
#define db_do(d, id, err)       db_run_((d), DB_##id, NULL, 0, (err))

int64_t db_int(db_stmt *st, int column);
const char *db_text(db_stmt *st, int column); // "" for NULL; until the next step
bool db_is_null(db_stmt *st, int column);
const void *db_blob(db_stmt *st, int column, size_t *ret_len);
char *db_dup(db_stmt *st, int column); // malloc'd, "" for NULL
// malloc'd, followed by a NUL that does not count; NULL when out of memory.
char *db_dup_blob(db_stmt *st, int column, size_t *ret_len);
// Copies into an array, cut at its end (what the store wrote always fits).
void db_copy_(db_stmt *st, int column, char *out, size_t size);
#define db_copy(st, column, array) db_copy_((st), (column), (array), sizeof(array))

bool db_in_transaction(db *d);
int db_exec(db *d, const char *sql, mt_err **err); // our own constant texts only
// What was committed without a sync is on the disk from here on.
int db_sync(db *d, mt_err **err);
