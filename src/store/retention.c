// SPDX-License-Identifier: Apache-2.0
// What is kept of ended runs and of events, and its removal, in steps that are short for the
// writer.
#include "store/store-internal.h"

enum {
    COMMANDS_AT_ONCE = 200,
    LINES_AT_ONCE = 2000,
    ATTEMPTS_AT_ONCE = 5, // answers may be long
    EVENTS_AT_ONCE = 10000,
};

void mt_kept_list_done(mt_kept_list *l)
{
    free(l->items);
    *l = (mt_kept_list){0};
}

static int collect(db *d, db_stmt *st, mt_kept_list *ret, mt_err **err)
{
    _cleanup_(mt_kept_list_done) mt_kept_list l = {0};
    int more;

    while ((more = db_step(d, st, err)) > 0) {
        mt_kept_run *run = list_add(&l);

        if (!run)
            return mt_fail_oom(err);
        db_copy(st, 0, run->id);
        run->date_ended = db_int(st, 1);
        run->output_bytes = db_int(st, 2);
    }
    if (more < 0)
        return more;
    *ret = l;
    l = (mt_kept_list){0};
    return 0;
}

int mt_store_kept_outputs(mt_store *s, bool unmeasured, size_t limit, mt_kept_list *ret,
                          mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    return reader_get(s, &r, err) < 0 ||
                   (unmeasured ? db_start(r->db, KEPT_UNMEASURED, &st, err, I((int64_t)limit))
                               : db_start(r->db, KEPT_OUTPUTS, &st, err, I((int64_t)limit))) < 0
               ? -1
               : collect(r->db, st, ret, err);
}

int mt_store_kept_bytes(mt_store *s, int64_t *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    if (reader_get(s, &r, err) < 0 || db_start(r->db, KEPT_BYTES, &st, err) < 0 ||
        db_step(r->db, st, err) < 0)
        return -1;
    *ret = db_int(st, 0);
    return 0;
}

static int kept_until(mt_store *s, db_id statement, int64_t ended_until, size_t limit,
                      mt_kept_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    if (reader_get(s, &r, err) < 0 ||
        db_start_id(r->db, statement, &st, err, I(ended_until), I((int64_t)limit)) < 0)
        return -1;
    return collect(r->db, st, ret, err);
}

int mt_store_kept_runs(mt_store *s, int64_t ended_until, size_t limit, mt_kept_list *ret,
                       mt_err **err)
{
    return kept_until(s, DB_KEPT_RUNS, ended_until, limit, ret, err);
}

int mt_store_kept_app_runs(mt_store *s, int64_t ended_until, size_t limit, mt_kept_list *ret,
                           mt_err **err)
{
    return kept_until(s, DB_KEPT_APP_RUNS, ended_until, limit, ret, err);
}

int mt_store_kept_interaction_runs(mt_store *s, int64_t ended_until, size_t limit,
                                   mt_kept_list *ret, mt_err **err)
{
    return kept_until(s, DB_KEPT_INTERACTION_RUNS, ended_until, limit, ret, err);
}

int mt_store_run_exists(mt_store *s, const char *id, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    if (reader_get(s, &r, err) < 0 || db_start(r->db, RUN_STATE, &st, err, T(id)) < 0)
        return -1;
    return db_step(r->db, st, err);
}

// ---- what was found out ----

static int measured_op(tx *t, void *arg, mt_err **err)
{
    const mt_kept_list *l = arg;

    for (size_t i = 0; i < l->count; i++) {
        if (db_run(t->db, KEPT_MEASURED, err, T(l->items[i].id), I(l->items[i].output_bytes)) < 0)
            return -1;
    }
    return 0;
}

int mt_store_outputs_measured(mt_store *s, const mt_kept_list *runs, mt_err **err)
{
    return runs->count ? store_write(s, measured_op, (void *)(uintptr_t)runs, err) : 0;
}

static int outputs_removed_op(tx *t, void *arg, mt_err **err)
{
    return db_run(t->db, KEPT_REMOVED, err, T((const char *)arg), I(t->now)) < 0 ? -1 : 0;
}

int mt_store_outputs_removed(mt_store *s, const char *run_id, mt_err **err)
{
    return store_write(s, outputs_removed_op, (void *)(uintptr_t)run_id, err);
}

// ---- records ----

// Runs of one kind: what is asked of them and dropped of each, with the id as the first value.
typedef struct run_kind {
    const char *event;
    db_id space, drop_parts, drop;
    int64_t at_once; // parts: its commands, the lines that it printed, its attempts
    bool keeps_identities;
} run_kind;

static const run_kind CAPSULE_RUNS = {"capsuleRun",     DB_KEPT_NAMESPACE, DB_KEPT_DROP_COMMANDS,
                                      DB_KEPT_DROP_RUN, COMMANDS_AT_ONCE,  false};
static const run_kind APP_RUNS = {
    "appRun", DB_KEPT_APP_NAMESPACE, DB_KEPT_DROP_LINES, DB_KEPT_DROP_APP_RUN, LINES_AT_ONCE, true};
static const run_kind INTERACTION_RUNS = {"interactionRun",      DB_KEPT_INTERACTION_NAMESPACE,
                                          DB_KEPT_DROP_ATTEMPTS, DB_KEPT_DROP_INTERACTION_RUN,
                                          ATTEMPTS_AT_ONCE,      true};

struct removal {
    const run_kind *kind;
    const char *id;
    bool more;
};

// One with many parts goes in several goes. Only one that has ended goes.
static int delete_op(tx *t, void *arg, mt_err **err)
{
    struct removal *d = arg;
    const run_kind *k = d->kind;
    const db_value id = T(d->id), part[] = {T(d->id), I(k->at_once)};
    _cleanup_stmt_ db_stmt *st = NULL;
    char ns[MT_ID_TEXT];
    int r;

    t->keeps_identities = k->keeps_identities;
    d->more = false;
    if (db_start_id(t->db, k->space, &st, err, T(d->id)) < 0)
        return -1;
    r = db_step(t->db, st, err);
    if (r <= 0)
        return r;
    db_copy(st, 0, ns);
    r = db_run_(t->db, k->drop_parts, part, 2, err);
    if (r < 0)
        return -1;
    d->more = r == k->at_once;
    if (d->more)
        return 0;
    return event_add(t, k->event, d->id, ns, "deleted", err) < 0 ||
                   db_run_(t->db, k->drop, &id, 1, err) < 0
               ? -1
               : 0;
}

static int delete_run(mt_store *s, const run_kind *kind, const char *id, mt_err **err)
{
    struct removal d = {.kind = kind, .id = id, .more = true};

    while (d.more) {
        if (store_write(s, delete_op, &d, err) < 0)
            return -1;
    }
    return 0;
}

int mt_store_run_delete(mt_store *s, const char *run_id, mt_err **err)
{
    return delete_run(s, &CAPSULE_RUNS, run_id, err);
}

int mt_store_app_run_delete(mt_store *s, const char *id, mt_err **err)
{
    return delete_run(s, &APP_RUNS, id, err);
}

int mt_store_interaction_run_delete(mt_store *s, const char *id, mt_err **err)
{
    return delete_run(s, &INTERACTION_RUNS, id, err);
}

// ---- events ----

struct trim {
    int64_t before, most;
    bool more;
};

static int trim_op(tx *t, void *arg, mt_err **err)
{
    struct trim *trim = arg;
    int r = db_run(t->db, EVENT_TRIM, err, I(EVENTS_AT_ONCE), I(trim->before), I(trim->most));

    trim->more = r == EVENTS_AT_ONCE;
    return r < 0 ? -1 : 0;
}

// 1: there is something to trim. So that nothing is written where there is not.
static int find_old(mt_store *s, int64_t before, int64_t most, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    if (reader_get(s, &r, err) < 0 || db_start(r->db, EVENT_OLD, &st, err, I(before), I(most)) < 0)
        return -1;
    return db_step(r->db, st, err);
}

int mt_store_event_trim(mt_store *s, int64_t before, int64_t most, mt_err **err)
{
    struct trim trim = {.before = before, .most = most};
    int r = find_old(s, before, most, err);

    if (r < 0)
        return -1;
    trim.more = r > 0;
    while (trim.more) {
        if (store_write(s, trim_op, &trim, err) < 0)
            return -1;
    }
    return 0;
}
