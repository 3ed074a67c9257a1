// SPDX-License-Identifier: Apache-2.0
// Migrations: migrations/NNNN_name.sql, embedded by embed.py. Forward only, each in a transaction
// of its own, their checksums kept: a file that was applied never changes again.
#include "store/store-internal.h"

#include <sodium.h>

struct migration {
    int number;
    const char *name;
    const char *sql;
    size_t len;
};
#include "migrations.inc"

enum { CHECKSUM = 32, CHECKSUM_TEXT = 2 * CHECKSUM + 1 };

static void checksum(const struct migration *m, char out[CHECKSUM_TEXT])
{
    unsigned char hash[CHECKSUM];

    (void)crypto_generichash(hash, sizeof(hash), (const unsigned char *)m->sql, m->len, NULL, 0);
    mt_hex(hash, sizeof(hash), out);
}

static int apply(db *d, const struct migration *m, mt_err **err)
{
    char sum[CHECKSUM_TEXT];

    checksum(m, sum);
    if (db_do(d, BEGIN, err) < 0)
        return -1;
    if (db_exec(d, m->sql, err) < 0 ||
        db_run(d, MIGRATION_ADD, err, I(m->number), T(m->name), T(sum), I(mt_now_us())) < 0 ||
        db_do(d, COMMIT, err) < 0) {
        if (db_in_transaction(d))
            (void)db_do(d, ROLLBACK, NULL);
        return mt_wrap(err, "migration %04d_%s", m->number, m->name);
    }
    return 0;
}

// Compares what was applied with what this program knows; *ret_applied is how many.
static int compare(db *d, size_t *ret_applied, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    size_t n = 0;
    int r;

    if (db_start_(d, DB_MIGRATION_LIST, NULL, 0, &st, err) < 0)
        return -1;
    while ((r = db_step(d, st, err)) > 0) {
        char sum[CHECKSUM_TEXT];

        if (n == MT_ARRAY_SIZE(MIGRATIONS))
            return mt_fail(err, MT_E_NOT_SUPPORTED,
                           "the store was written by a newer version (schema %d, this one knows "
                           "%zu): run that version, or put back a backup from before the upgrade",
                           (int)db_int(st, 0), MT_ARRAY_SIZE(MIGRATIONS));
        checksum(&MIGRATIONS[n], sum);
        if (db_int(st, 0) != MIGRATIONS[n].number || !mt_streq(db_text(st, 2), sum))
            return mt_fail(err, MT_E_NOT_SUPPORTED,
                           "the store was made by another build (its migration %04d_%s differs): "
                           "run that build, or begin with an empty state folder",
                           (int)db_int(st, 0), db_text(st, 1));
        n++;
    }
    *ret_applied = n;
    return r;
}

int store_migrate(db *d, mt_err **err)
{
    size_t applied = 0;
    bool fresh;

    if (db_exec(d,
                "CREATE TABLE IF NOT EXISTS schema_migrations (number INTEGER PRIMARY KEY, "
                "name TEXT NOT NULL, checksum TEXT NOT NULL, date_applied INTEGER NOT NULL) STRICT",
                err) < 0 ||
        compare(d, &applied, err) < 0)
        return -1;
    fresh = applied == 0;
    for (; applied < MT_ARRAY_SIZE(MIGRATIONS); applied++) {
        if (apply(d, &MIGRATIONS[applied], err) < 0)
            return -1;
    }
    return fresh;
}
