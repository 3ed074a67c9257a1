// SPDX-License-Identifier: Apache-2.0
// Idempotency-Keys: each user's own, of whatever he starts or sends. They are remembered for a day,
// but for those that an app run's own calls come with, "app-run RUN NUMBER": a call may be repeated
// as long as its run lives, so the run holds its keys.
#include "store/store-internal.h"

static const int64_t KEY_US = (int64_t)MT_STORE_KEY_DAYS * 86400 * 1000000;
static const char CALL_KEY[] = "app-run ";

int check_idempotency_key(const char *key, const char *digest, mt_err **err)
{
    size_t n = key ? strlen(key) : 0;

    if (n >= 1 && n <= 255 && digest)
        return 0;
    return mt_fail_field(err, MT_E_BAD_FIELD, "Idempotency-Key",
                         "an Idempotency-Key has 1 to 255 characters");
}

// The columns of what a key has made follow each other as the kinds do. A command has its run, too,
// so the last one counts.
enum { FIRST_ID = 1 };

static keyed_kind kind_of(db_stmt *st)
{
    int kind = KEYED_KINDS - 1;

    while (kind > 0 && db_is_null(st, FIRST_ID + kind))
        kind--;
    return (keyed_kind)kind;
}

int idempotency_find(db *d, int64_t now, const keyed_request *q, char ret_id[MT_ID_TEXT],
                     mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start(d, IDEMPOTENCY_GET, &st, err, T(q->user_id), T(q->key), I(now - KEY_US)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : 1;
    if (!mt_streq(db_text(st, 0), q->digest) || kind_of(st) != q->kind)
        return mt_fail(
            err, MT_E_IDEMPOTENCY_REUSED,
            "the Idempotency-Key '%.80s' was used for another request within the last %d "
            "hours",
            q->key, 24 * MT_STORE_KEY_DAYS);
    db_copy_(st, FIRST_ID + (int)q->kind, ret_id, MT_ID_TEXT);
    return 0;
}

// The run that a key names as the one whose call it is of; NULL for any other key.
static const char *holder_of(const char *key, char id[MT_ID_TEXT])
{
    const size_t prefix = sizeof(CALL_KEY) - 1;

    if (!mt_starts_with(key, CALL_KEY) || strlen(key) <= prefix + MT_ID_LEN ||
        key[prefix + MT_ID_LEN] != ' ')
        return NULL;
    memcpy(id, key + prefix, MT_ID_LEN);
    id[MT_ID_LEN] = '\0';
    return id;
}

int idempotency_keep(tx *t, const keyed_request *q, const char *id, const char *of_run,
                     mt_err **err)
{
    const char *made[KEYED_KINDS] = {[KEYED_RUN] = of_run};
    char holder[MT_ID_TEXT];

    made[q->kind] = id;
    if (db_run(t->db, IDEMPOTENCY_TRIM, err, I(t->now - KEY_US)) < 0)
        return -1;
    return db_run(t->db, IDEMPOTENCY_ADD, err, T(q->user_id), T(q->key), T(q->digest),
                  T(made[KEYED_RUN]), T(made[KEYED_COMMAND]), T(made[KEYED_APP_RUN]),
                  T(made[KEYED_INTERACTION_RUN]), I(t->now), T(holder_of(q->key, holder))) < 0
               ? -1
               : 0;
}
