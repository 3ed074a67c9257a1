// SPDX-License-Identifier: Apache-2.0
// The sign-in of a run: whose it is, what was made by way of it, and what of that ends with the
// run.
#include "store/store-internal.h"

#include <stdio.h>

// The run's row by a statement whose first column says when it ended. 0, or < 0: it is not there or
// has ended.
static int live_run(db *d, db_id statement, const char *run_id, db_stmt **ret, mt_err **err)
{
    int r;

    if (db_start_id(d, statement, ret, err, T(run_id)) < 0)
        return -1;
    r = db_step(d, *ret, err);
    if (r < 0)
        return r;
    if (r == 0 || db_int(*ret, 0) != 0)
        return mt_fail(err, MT_E_UNAUTHENTICATED,
                       "capsule run '%.80s' has ended, and its sign-in with it", run_id);
    return 0;
}

int run_must_live(db *d, const char *run_id, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    return !run_id || !*run_id ? 0 : live_run(d, DB_RUN_LINEAGE, run_id, &st, err);
}

int mt_store_run_sign_in(mt_store *s, const char *run_id, mt_user *ret,
                         char ret_namespace[MT_STORE_NAME], mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    char user_id[MT_ID_TEXT];
    mt_user user;
    int rc;

    if (reader_get(s, &r, err) < 0 || reader_snapshot(r, err) < 0 ||
        live_run(r->db, DB_RUN_SIGN_IN, run_id, &st, err) < 0)
        return -1;
    db_copy(st, 1, user_id);
    rc = user_load(r->db, DB_USER_BY_ID, T(user_id), &user, err);
    if (rc < 0)
        return rc;
    if (rc > 0 || user.stopped)
        return mt_fail(err, MT_E_UNAUTHENTICATED,
                       "the user who started capsule run '%s' is no more, and its sign-in neither",
                       run_id);
    db_copy_(st, 2, ret_namespace, MT_STORE_NAME);
    *ret = user;
    return 0;
}

// ---- runs that start runs ----

static int check_room(tx *t, const char *root_id, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (db_start(t->db, RUN_ROOT_COUNT, &st, err, T(root_id)) < 0 || db_step(t->db, st, err) < 0)
        return -1;
    if (db_int(st, 0) < MT_STORE_RUN_CHILDREN)
        return 0;
    return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                   "%d runs that capsule run '%s' and those below it have started are live, the "
                   "most that may be: wait for some to end",
                   MT_STORE_RUN_CHILDREN, root_id);
}

int run_lineage_of(tx *t, const char *parent_id, run_lineage *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    run_lineage parent;

    *ret = (run_lineage){0};
    if (!parent_id || !*parent_id)
        return 0;
    if (live_run(t->db, DB_RUN_LINEAGE, parent_id, &st, err) < 0)
        return -1;
    db_copy(st, 1, parent.root_id);
    parent.depth = db_int(st, 2);
    if (parent.depth >= MT_STORE_RUN_DEPTH)
        return mt_fail(err, MT_E_TOO_DEEP,
                       "capsules start capsules %d deep at most, and capsule run '%s' is that deep",
                       MT_STORE_RUN_DEPTH, parent_id);
    memcpy(ret->root_id, parent.root_id, sizeof(ret->root_id));
    if (!*ret->root_id)
        (void)snprintf(ret->root_id, sizeof(ret->root_id), "%s", parent_id);
    ret->depth = parent.depth + 1;
    return check_room(t, ret->root_id, err);
}

// ---- the end ----

static int tell_all(tx *t, db_stmt *st, const char *kind, const char *change, mt_err **err)
{
    int r;

    while ((r = db_step(t->db, st, err)) > 0) {
        char id[MT_ID_TEXT];

        db_copy(st, 0, id);
        if (event_add(t, kind, id, "", change, err) < 0)
            return -1;
    }
    return r;
}

int run_sign_in_end(tx *t, const char *run_id, mt_err **err)
{
    _cleanup_stmt_ db_stmt *keys = NULL, *gone = NULL, *stopped = NULL;

    if (db_start(t->db, RUN_DROP_KEYS, &keys, err, T(run_id)) < 0 ||
        tell_all(t, keys, "key", "deleted", err) < 0 ||
        db_start(t->db, RUN_DROP_USERS, &gone, err, T(run_id)) < 0 ||
        tell_all(t, gone, "user", "deleted", err) < 0 ||
        db_start(t->db, RUN_STOP_USERS, &stopped, err, T(run_id)) < 0)
        return -1;
    return tell_all(t, stopped, "user", "updated", err);
}
