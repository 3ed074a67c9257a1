// SPDX-License-Identifier: Apache-2.0
// The sign-ins of runs: whose they are, what was made by way of one, and what of that ends with its
// run.
#include "store/store-internal.h"

#include <stdio.h>

typedef struct run_kind {
    const char *name;
    db_id lineage, sign_in; // the first column says when the run has ended
} run_kind;
static const run_kind CAPSULE_RUN = {"capsule run", DB_RUN_LINEAGE, DB_RUN_SIGN_IN};
static const run_kind APP_RUN = {"app run", DB_APP_RUN_LINEAGE, DB_APP_RUN_SIGN_IN};

// The run's row by one of the statements. 0, or < 0: it is not there or has ended.
static int live_run(db *d, const run_kind *k, db_id statement, const char *run_id, db_stmt **ret,
                    mt_err **err)
{
    int r;

    if (db_start_id(d, statement, ret, err, T(run_id)) < 0)
        return -1;
    r = db_step(d, *ret, err);
    if (r < 0)
        return r;
    if (r == 0 || db_int(*ret, 0) != 0)
        return mt_fail(err, MT_E_UNAUTHENTICATED, "%s '%.80s' has ended, and its sign-in with it",
                       k->name, run_id);
    return 0;
}

int run_must_live(db *d, const char *run_id, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    return !run_id || !*run_id ? 0
                               : live_run(d, &CAPSULE_RUN, CAPSULE_RUN.lineage, run_id, &st, err);
}

static int sign_in(mt_store *s, const run_kind *k, const char *run_id, mt_user *ret,
                   char ret_namespace[MT_STORE_NAME], mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    char user_id[MT_ID_TEXT];
    mt_user user;
    int rc;

    if (reader_get(s, &r, err) < 0 || reader_snapshot(r, err) < 0 ||
        live_run(r->db, k, k->sign_in, run_id, &st, err) < 0)
        return -1;
    db_copy(st, 1, user_id);
    rc = user_load(r->db, DB_USER_BY_ID, T(user_id), &user, err);
    if (rc < 0)
        return rc;
    if (rc > 0 || user.stopped)
        return mt_fail(err, MT_E_UNAUTHENTICATED,
                       "the user who started %s '%s' is no more, and its sign-in neither", k->name,
                       run_id);
    db_copy_(st, 2, ret_namespace, MT_STORE_NAME);
    *ret = user;
    return 0;
}

int mt_store_run_sign_in(mt_store *s, const char *run_id, mt_user *ret,
                         char ret_namespace[MT_STORE_NAME], mt_err **err)
{
    return sign_in(s, &CAPSULE_RUN, run_id, ret, ret_namespace, err);
}

int mt_store_app_run_sign_in(mt_store *s, const char *run_id, mt_user *ret,
                             char ret_namespace[MT_STORE_NAME], mt_err **err)
{
    return sign_in(s, &APP_RUN, run_id, ret, ret_namespace, err);
}

// ---- runs that start runs ----
//
// A start by a capsule run's sign-in is one step deeper, whatever it starts, and counts for the
// first run of its chain. What an app run starts stands where the app run itself does, so that a
// chain of both kinds comes to an end as well.

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

static int below_run(tx *t, const char *parent_id, run_lineage *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (live_run(t->db, &CAPSULE_RUN, CAPSULE_RUN.lineage, parent_id, &st, err) < 0)
        return -1;
    db_copy(st, 1, ret->root_id);
    ret->depth = db_int(st, 2) + 1;
    if (!*ret->root_id)
        (void)snprintf(ret->root_id, sizeof(ret->root_id), "%s", parent_id);
    return 0;
}

static int below_app(tx *t, const char *parent_app_id, run_lineage *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (live_run(t->db, &APP_RUN, APP_RUN.lineage, parent_app_id, &st, err) < 0)
        return -1;
    db_copy(st, 1, ret->root_id);
    ret->depth = db_int(st, 2);
    ret->app_depth = db_int(st, 3) + 1;
    return 0;
}

// Without a look at how deep that is.
static int lineage_of(tx *t, const char *parent_id, const char *parent_app_id, run_lineage *ret,
                      mt_err **err)
{
    *ret = (run_lineage){0};
    if (parent_app_id && *parent_app_id && below_app(t, parent_app_id, ret, err) < 0)
        return -1;
    return parent_id && *parent_id ? below_run(t, parent_id, ret, err) : 0;
}

int run_lineage_of(tx *t, const char *parent_id, const char *parent_app_id, run_lineage *ret,
                   mt_err **err)
{
    if (lineage_of(t, parent_id, parent_app_id, ret, err) < 0)
        return -1;
    // Only a capsule run's sign-in is a step deeper.
    if (ret->depth > MT_STORE_RUN_DEPTH)
        return mt_fail(err, MT_E_TOO_DEEP,
                       "capsules start others %d deep at most, and capsule run '%s' is that deep",
                       MT_STORE_RUN_DEPTH, text_or(parent_id, ""));
    return *ret->root_id ? check_room(t, ret->root_id, err) : 0;
}

static int check_app_room(tx *t, const char *parent_app_id, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (db_start(t->db, APP_RUN_BELOW_COUNT, &st, err, T(parent_app_id)) < 0 ||
        db_step(t->db, st, err) < 0)
        return -1;
    if (db_int(st, 0) < MT_STORE_APP_CHILDREN)
        return 0;
    return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                   "%d runs of apps and interactions that app run '%s' has started are live, the "
                   "most that may be: wait for some to end",
                   MT_STORE_APP_CHILDREN, parent_app_id);
}

int app_lineage_of(tx *t, const char *parent_id, const char *parent_app_id, run_lineage *ret,
                   mt_err **err)
{
    if (run_lineage_of(t, parent_id, parent_app_id, ret, err) < 0)
        return -1;
    if (ret->app_depth > MT_STORE_APP_DEPTH)
        return mt_fail(err, MT_E_TOO_DEEP,
                       "apps start apps %d deep at most, and app run '%s' is that deep",
                       MT_STORE_APP_DEPTH, parent_app_id);
    return ret->app_depth > 0 ? check_app_room(t, parent_app_id, err) : 0;
}

int interaction_lineage_of(tx *t, const char *parent_id, const char *parent_app_id,
                           run_lineage *ret, mt_err **err)
{
    if (lineage_of(t, parent_id, parent_app_id, ret, err) < 0 ||
        (*ret->root_id && check_room(t, ret->root_id, err) < 0))
        return -1;
    return ret->app_depth > 0 ? check_app_room(t, parent_app_id, err) : 0;
}

// ---- the end ----

static int tell_all(tx *t, db_stmt *st, const char *kind, const char *change, mt_err **err)
{
    int r;

    while ((r = db_step(t->db, st, err)) > 0) {
        char id[MT_ID_TEXT], name[MT_STORE_LABEL], person[MT_ID_TEXT];

        db_copy(st, 0, id);
        db_copy(st, 1, name);
        db_copy(st, 2, person);
        if (event_add_gone(t, kind, id, change, name, person, err) < 0)
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
