// SPDX-License-Identifier: Apache-2.0
// Runs of interactions: made, listed, read, ended. How often a model was asked meanwhile is in
// interaction-attempts.c.
//
//   Running --ended--> Finished | Error
#include "store/store-internal.h"

#include <stdio.h>

void mt_interaction_run_done(mt_interaction_run *r)
{
    free(r->failure_details);
    free(r->output);
    free(r->inputs);
    free(r->plan);
    *r = (mt_interaction_run){0};
}

void mt_interaction_run_list_done(mt_interaction_run_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        mt_interaction_run_done(&l->items[i]);
    free(l->items);
    *l = (mt_interaction_run_list){0};
}

static int no_run(const char *id, mt_err **err)
{
    return mt_fail(err, MT_E_NOT_FOUND, "no interaction run '%.80s'", id);
}

// ---- rows ----

// Columns in the order of INTERACTION_HEAD; *ret_number is the place in lists.
static int run_row(db_stmt *st, void *item, int64_t *ret_number, mt_err **err)
{
    mt_interaction_run *r = item;
    const row_text texts[] = {
        {11, &r->failure_details}, {26, &r->inputs}, {27, &r->plan}, {28, &r->output}};

    *r = (mt_interaction_run){0};
    db_copy(st, 0, r->id);
    db_copy(st, 1, r->namespace_id);
    db_copy(st, 2, r->namespace_name);
    db_copy(st, 3, r->interaction);
    r->version = db_int(st, 4);
    db_copy(st, 5, r->model);
    db_copy(st, 6, r->status);
    db_copy(st, 7, r->end_reason);
    r->limit_ms = db_int(st, 8);
    db_copy(st, 9, r->cancelled_by);
    db_copy(st, 10, r->cancel_requested_by);
    db_copy(st, 12, r->started_by_id);
    db_copy(st, 13, r->started_by);
    db_copy(st, 14, r->parent_id);
    db_copy(st, 15, r->parent_app_id);
    r->date_created = db_int(st, 16);
    r->date_ended = db_int(st, 17);
    r->deadline = db_int(st, 18);
    r->max_duration_ms = db_int(st, 19);
    r->attempt_count = db_int(st, 20);
    r->tokens_in = db_int(st, 21);
    r->tokens_out = db_int(st, 22);
    db_copy(st, 23, r->cost);
    *ret_number = db_int(st, 24);
    r->relation = (mt_relation)db_int(st, 25);
    if (row_texts(st, texts, MT_ARRAY_SIZE(texts)))
        return 0;
    mt_interaction_run_done(r);
    return mt_fail_oom(err);
}

// 0 found, 1 none, < 0.
static int run_load(db *d, db_id which, const mt_user *as, const char *id, mt_interaction_run *ret,
                    mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int64_t number;
    int r;

    if (db_start_id(d, which, &st, err, T(as_id(as)), I(as_all(as)), T(id)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : 1;
    return run_row(st, ret, &number, err);
}

static int read_run(mt_store *s, db_id which, const mt_user *as, const char *id,
                    mt_interaction_run *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = run_load(r->db, which, as, id, ret, err);
    return rc > 0 ? no_run(id, err) : rc;
}

int mt_store_interaction_run_get(mt_store *s, const mt_user *as, const char *id,
                                 mt_interaction_run *ret, mt_err **err)
{
    return read_run(s, DB_INTERACTION_RUN_BY_ID, as, id, ret, err);
}

int mt_store_interaction_run_look(mt_store *s, const mt_user *as, const char *id,
                                  mt_interaction_run *ret, mt_err **err)
{
    return read_run(s, DB_INTERACTION_RUN_LOOK, as, id, ret, err);
}

int interaction_state_load(db *d, const char *id, interaction_state *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start(d, INTERACTION_RUN_STATE, &st, err, T(id)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : no_run(id, err);
    ret->ended = db_int(st, 0) != 0;
    db_copy(st, 1, ret->namespace_id);
    db_copy(st, 2, ret->status);
    db_copy(st, 3, ret->end_reason);
    ret->attempts = db_int(st, 4);
    ret->tokens_in = db_int(st, 5);
    ret->tokens_out = db_int(st, 6);
    db_copy(st, 7, ret->cost);
    return 0;
}

// ---- making ----

// 0: *ret is the run of an earlier start, 1: no such key, < 0: reused for another request.
static int by_idempotency(db *d, int64_t now, const mt_user *by, const char *key,
                          const char *digest, mt_interaction_run *ret, mt_err **err)
{
    const keyed_request q = {KEYED_INTERACTION_RUN, by->id, key, digest};
    char id[MT_ID_TEXT];
    int r = idempotency_find(d, now, &q, id, err);

    return r != 0 ? r : run_load(d, DB_INTERACTION_RUN_BY_ID, by, id, ret, err);
}

int mt_store_interaction_run_by_idempotency(mt_store *s, const mt_user *by, const char *key,
                                            const char *request_digest, mt_interaction_run *ret,
                                            mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;

    if (check_idempotency_key(key, request_digest, err) < 0 || reader_get(s, &r, err) < 0 ||
        reader_snapshot(r, err) < 0)
        return -1;
    return by_idempotency(r->db, mt_now_us(), by, key, request_digest, ret, err);
}

struct create {
    const mt_interaction_run_new *new;
    mt_interaction_run *ret;
};

static int add(tx *t, const mt_interaction_run_new *n, mt_err **err)
{
    const keyed_request q = {KEYED_INTERACTION_RUN, n->started_by->id, n->idempotency_key,
                             n->request_digest};
    run_lineage lineage;

    if (interaction_lineage_of(t, n->parent_id, n->parent_app_id, &lineage, err) < 0 ||
        db_run(t->db, INTERACTION_RUN_ADD, err, T(n->id), T(n->namespace_id), T(n->interaction),
               I(n->version), T(n->model), T(n->started_by->id), T(n->started_by->name),
               T(text_or(n->parent_id, "")), T(text_or(n->parent_app_id, "")), T(lineage.root_id),
               I(t->now), I(n->deadline), I(n->max_duration_ms)) < 0 ||
        db_run(t->db, INTERACTION_RUN_VALUES, err, T(n->id), T(n->inputs), T(n->plan)) < 0)
        return -1;
    return q.key ? idempotency_keep(t, &q, n->id, NULL, err) : 0;
}

static int create_op(tx *t, void *arg, mt_err **err)
{
    struct create *c = arg;
    const mt_interaction_run_new *n = c->new;
    int r;

    t->keeps_identities = true;
    mt_interaction_run_done(c->ret);
    if (n->idempotency_key) {
        r = by_idempotency(t->db, t->now, n->started_by, n->idempotency_key, n->request_digest,
                           c->ret, err);
        if (r <= 0)
            return r < 0 ? r : 1;
    }
    if (add(t, n, err) < 0 ||
        event_add(t, "interactionRun", n->id, n->namespace_id, "created", err) < 0)
        return -1;
    r = run_load(t->db, DB_INTERACTION_RUN_BY_ID, n->started_by, n->id, c->ret, err);
    return r > 0 ? no_run(n->id, err) : r;
}

static int check_new(const mt_interaction_run_new *n, mt_err **err)
{
    if (!mt_is_id(mt_str_of(n->id)))
        return mt_fail(err, MT_E_INTERNAL, "'%.80s' is no id", n->id ? n->id : "");
    return n->idempotency_key ? check_idempotency_key(n->idempotency_key, n->request_digest, err)
                              : 0;
}

int mt_store_interaction_run_create(mt_store *s, const mt_interaction_run_new *run,
                                    mt_interaction_run *ret, mt_err **err)
{
    _cleanup_(mt_interaction_run_done) mt_interaction_run stored = {0};
    struct create c = {run, &stored};
    int r;

    if (check_new(run, err) < 0)
        return -1;
    r = store_write(s, create_op, &c, err);
    if (r < 0)
        return r;
    *ret = stored;
    stored = (mt_interaction_run){0};
    return r;
}

// ---- lists ----

static void run_done(void *item)
{
    mt_interaction_run_done(item);
}

static const run_rows ROWS = {sizeof(mt_interaction_run), run_row, run_done,
                              DB_INTERACTION_RUN_LIVE};

static const run_lists LISTS = {
    .rows = &ROWS,
    .all = DB_INTERACTION_RUN_LIST,
    .seen = DB_INTERACTION_RUN_LIST_SEEN,
    .in = DB_INTERACTION_RUN_LIST_IN,
    .live = DB_INTERACTION_RUN_LIST_LIVE,
    .live_seen = DB_INTERACTION_RUN_LIST_LIVE_SEEN,
    .live_in = DB_INTERACTION_RUN_LIST_LIVE_IN,
    .below = DB_INTERACTION_RUN_LIST_BELOW,
};

int mt_store_interaction_run_list(mt_store *s, const mt_user *as,
                                  const mt_interaction_run_filter *filter, mt_page page,
                                  mt_interaction_run_list *ret, mt_err **err)
{
    static const mt_interaction_run_filter ANY;
    const mt_interaction_run_filter *f = filter ? filter : &ANY;
    const run_filter wanted = {f->namespace_id,  f->interaction, f->status,
                               f->started_by_id, f->id_ending,   f->parent_app_id};
    run_list l;

    if (run_list_get(s, &LISTS, as, &wanted, page, &l, err) < 0)
        return -1;
    run_list_give(&l, ret);
    return 0;
}

int mt_store_interaction_run_live(mt_store *s, mt_interaction_run_list *ret, mt_err **err)
{
    run_list l;

    if (run_live_list(s, &ROWS, &l, err) < 0)
        return -1;
    run_list_give(&l, ret);
    return 0;
}

int mt_store_interaction_run_live_count(mt_store *s, const char *started_by_id, int64_t *ret,
                                        mt_err **err)
{
    return run_live_count(s, DB_INTERACTION_RUN_LIVE_COUNT, DB_INTERACTION_RUN_LIVE_COUNT_OF,
                          started_by_id, ret, err);
}

// ---- asked to end, the end ----

struct cancel {
    const char *id, *by;
};

static int cancel_op(tx *t, void *arg, mt_err **err)
{
    const struct cancel *c = arg;
    interaction_state state = {0};
    int r;

    t->keeps_identities = true;
    if (interaction_state_load(t->db, c->id, &state, err) < 0)
        return -1;
    r = db_run(t->db, INTERACTION_RUN_CANCEL, err, T(c->id), T(c->by));
    if (r <= 0)
        return r < 0 ? r : 1;
    return event_add(t, "interactionRun", c->id, state.namespace_id, "updated", err);
}

int mt_store_interaction_run_request_cancel(mt_store *s, const char *id, const char *by,
                                            mt_err **err)
{
    struct cancel c = {id, by};

    return store_write_essential(s, cancel_op, &c, err);
}

struct end {
    const char *id;
    const mt_interaction_end *how;
    const char *details;
};

static int end_op(tx *t, void *arg, mt_err **err)
{
    const struct end *e = arg;
    const mt_interaction_end *how = e->how;
    interaction_state state = {0};

    t->keeps_identities = true;
    if (interaction_state_load(t->db, e->id, &state, err) < 0)
        return -1;
    if (state.ended)
        return 1;
    if (db_run(t->db, INTERACTION_RUN_END, err, T(e->id), T(how->status), T(how->end_reason),
               T(e->details), T(text_or(how->cancelled_by, "")), I(how->limit_ms), I(t->now)) < 0 ||
        (how->output && db_run(t->db, INTERACTION_RUN_OUTPUT, err, T(e->id), T(how->output)) < 0) ||
        db_run(t->db, ATTEMPT_STOP, err, T(e->id), I(state.attempts), T(how->end_reason),
               I(t->now)) < 0)
        return -1;
    return event_add(t, "interactionRun", e->id, state.namespace_id, "ended", err);
}

int mt_store_interaction_run_end(mt_store *s, const char *id, const mt_interaction_end *end,
                                 mt_err **err)
{
    _cleanup_free_ char *details = NULL;
    struct end e = {.id = id, .how = end};

    if (check_run_end("interaction run", end->status, end->end_reason, err) < 0)
        return -1;
    details = run_end_details(end->failure_details);
    if (!details)
        return mt_fail_oom(err);
    e.details = details;
    return store_write_essential(s, end_op, &e, err);
}
