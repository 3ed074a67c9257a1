// SPDX-License-Identifier: Apache-2.0
// Runs: made, listed, read. What happens to them afterwards is in run-changes.c.
#include "store/store-internal.h"

#include <stdio.h>

void mt_run_done(mt_run *r)
{
    free(r->failure_details);
    free(r->limits_reached);
    free(r->labels);
    free(r->phases);
    free(r->definition);
    free(r->request);
    *r = (mt_run){0};
}

void mt_run_list_done(mt_run_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        mt_run_done(&l->items[i]);
    free(l->items);
    *l = (mt_run_list){0};
}

// Columns in the order of RUN_HEAD; *ret_number is the place in lists.
static int run_row(db_stmt *st, void *item, int64_t *ret_number, mt_err **err)
{
    mt_run *r = item;
    *r = (mt_run){0};
    db_copy(st, 0, r->id);
    db_copy(st, 1, r->namespace_id);
    db_copy(st, 2, r->namespace_name);
    db_copy(st, 3, r->capsule);
    r->version = db_int(st, 4);
    db_copy(st, 5, r->status);
    db_copy(st, 6, r->end_reason);
    r->limit_ms = db_int(st, 7);
    r->signal = (int)db_int(st, 8);
    db_copy(st, 9, r->terminated_by);
    db_copy(st, 10, r->stop_requested_by);
    r->limits_reached = db_dup(st, 11);
    r->labels = db_dup(st, 12);
    db_copy(st, 13, r->started_by_id);
    db_copy(st, 14, r->started_by);
    db_copy(st, 15, r->parent_id);
    r->date_created = db_int(st, 16);
    r->date_ready = db_int(st, 17);
    r->date_ended = db_int(st, 18);
    r->deadline = db_int(st, 19);
    r->max_duration_ms = db_int(st, 20);
    db_copy(st, 21, r->image);
    db_copy(st, 22, r->image_digest);
    r->memory_peak_bytes = db_int(st, 23);
    r->cpu_us = db_int(st, 24);
    r->seq = db_int(st, 25);
    r->phases = db_dup(st, 26);
    r->failure_details = db_dup(st, 27);
    *ret_number = db_int(st, 28);
    r->relation = (mt_relation)db_int(st, 29);
    r->extended_ms = db_int(st, 30);
    r->date_outputs_removed = db_int(st, 31);
    db_copy(st, 32, r->parent_app_id);
    if (!db_is_null(st, 33))
        r->request = db_dup(st, 33);
    if (!db_is_null(st, 34))
        r->definition = db_dup(st, 34);
    if (!r->limits_reached || !r->labels || !r->phases || !r->failure_details ||
        (!db_is_null(st, 33) && (!r->request || !r->definition))) {
        mt_run_done(r);
        return mt_fail_oom(err);
    }
    return 0;
}

// 0 found, 1 none, < 0.
static int run_load(db *d, const mt_user *as, const char *id, mt_run *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int64_t number;
    int r;

    if (db_start(d, RUN_BY_ID, &st, err, T(as_id(as)), I(as_all(as)), T(id)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : 1;
    return run_row(st, ret, &number, err);
}

int mt_store_run_get(mt_store *s, const mt_user *as, const char *id, mt_run *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = run_load(r->db, as, id, ret, err);
    return rc > 0 ? mt_fail(err, MT_E_NOT_FOUND, "no capsule run '%.80s'", id) : rc;
}

// 0: *ret is the run of an earlier start, 1: no such key, < 0: reused for another request.
static int by_idempotency(db *d, int64_t now, const mt_user *by, const char *key,
                          const char *digest, mt_run *ret, mt_err **err)
{
    const keyed_request q = {KEYED_RUN, by->id, key, digest};
    char id[MT_ID_TEXT];
    int r = idempotency_find(d, now, &q, id, err);

    return r != 0 ? r : run_load(d, by, id, ret, err);
}

int mt_store_run_by_idempotency(mt_store *s, const mt_user *by, const char *key,
                                const char *request_digest, mt_run *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;

    if (check_idempotency_key(key, request_digest, err) < 0 || reader_get(s, &r, err) < 0)
        return -1;
    return by_idempotency(r->db, mt_now_us(), by, key, request_digest, ret, err);
}

// ---- making ----

struct create {
    const mt_run_new *new;
    const char *id;
    mt_run *ret;
};

static int remember_key(tx *t, const struct create *c, mt_err **err)
{
    const mt_run_new *n = c->new;
    const keyed_request q = {KEYED_RUN, n->started_by->id, n->idempotency_key, n->request_digest};

    return q.key ? idempotency_keep(t, &q, c->id, NULL, err) : 0;
}

static int add_mounts(tx *t, const struct create *c, mt_err **err)
{
    for (size_t i = 0; i < c->new->vfs_count; i++) {
        if (db_run(t->db, RUN_VFS_ADD, err, T(c->id), T(c->new->vfs_ids[i])) < 0)
            return -1;
    }
    for (size_t i = 0; i < c->new->secret_count; i++) {
        if (db_run(t->db, RUN_SECRETS_ADD, err, T(c->id), T(c->new->secret_ids[i])) < 0)
            return -1;
    }
    return 0;
}

static int create_op(tx *t, void *arg, mt_err **err)
{
    struct create *c = arg;
    const mt_run_new *n = c->new;
    run_lineage lineage;
    int r;

    mt_run_done(c->ret);
    if (n->idempotency_key) {
        r = by_idempotency(t->db, t->now, n->started_by, n->idempotency_key, n->request_digest,
                           c->ret, err);
        if (r <= 0)
            return r < 0 ? r : 1;
    }
    if (run_lineage_of(t, n->parent_id, n->parent_app_id, &lineage, err) < 0)
        return -1;
    if (db_run(t->db, RUN_ADD, err, T(c->id), T(n->namespace_id), T(n->capsule), I(n->version),
               T(text_or(n->labels, "{}")), T(n->started_by->id), T(n->started_by->name),
               T(text_or(n->parent_id, "")), I(n->date_created ? n->date_created : t->now),
               I(n->deadline), I(n->max_duration_ms), T(text_or(n->image, "")),
               T(text_or(n->image_digest, "")), T(text_or(n->request, "{}")), T(n->definition),
               T(lineage.root_id), I(lineage.depth), T(text_or(n->parent_app_id, ""))) < 0 ||
        add_mounts(t, c, err) < 0 || remember_key(t, c, err) < 0 ||
        event_add(t, "capsuleRun", c->id, n->namespace_id, "created", err) < 0)
        return -1;
    return run_load(t->db, n->started_by, c->id, c->ret, err);
}

static int check_new(const mt_run_new *run, mt_err **err)
{
    if (run->idempotency_key &&
        check_idempotency_key(run->idempotency_key, run->request_digest, err) < 0)
        return -1;
    if (run->id && !mt_is_id(mt_str_of(run->id)))
        return mt_fail(err, MT_E_INTERNAL, "'%.80s' is no id", run->id);
    return 0;
}

int mt_store_run_create(mt_store *s, const mt_run_new *run, mt_store_done_fn *made, void *data,
                        mt_run *ret, mt_err **err)
{
    _cleanup_(mt_run_done) mt_run stored = {0};
    char own[MT_ID_TEXT];
    struct create c = {run, run->id, &stored};
    int r;

    if (check_new(run, err) < 0) {
        if (made)
            made(-1, err ? *err : NULL, data);
        return -1;
    }
    if (!run->id) {
        mt_id_new(own);
        c.id = own;
    }
    r = store_write_then(s, create_op, &c, made, data, err);
    if (r < 0)
        return r;
    *ret = stored;
    stored = (mt_run){0};
    return r;
}

// ---- lists ----

static db_id list_statement(const mt_user *as, const mt_run_filter *f)
{
    bool live = f->status && (mt_streq(f->status, "Starting") || mt_streq(f->status, "Running"));

    if (f->namespace_id)
        return live ? DB_RUN_LIST_LIVE_IN : DB_RUN_LIST_IN;
    if (as_all(as))
        return live ? DB_RUN_LIST_LIVE : DB_RUN_LIST;
    return live ? DB_RUN_LIST_LIVE_SEEN : DB_RUN_LIST_SEEN;
}

static void run_done(void *item)
{
    mt_run_done(item);
}

static const run_rows ROWS = {sizeof(mt_run), run_row, run_done, DB_RUN_LIVE};

int mt_store_run_list(mt_store *s, const mt_user *as, const mt_run_filter *filter, mt_page page,
                      mt_run_list *ret, mt_err **err)
{
    static const mt_run_filter ANY;
    const mt_run_filter *f = filter ? filter : &ANY;
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    size_t limit = page_limit(page);
    uint64_t before = 0;
    run_list l;

    if (page_number(page, &before, err) < 0 || reader_get(s, &r, err) < 0 ||
        db_start_id(r->db, list_statement(as, f), &st, err, T(as_id(as)), I(as_all(as)),
                    I((int64_t)before), T(f->namespace_id), T(f->capsule), T(f->status),
                    T(f->started_by_id), T(f->id_ending), I((int64_t)limit + 1)) < 0 ||
        run_collect(r->db, st, limit, &ROWS, &l, err) < 0)
        return -1;
    run_list_give(&l, ret);
    return 0;
}

int mt_store_run_live(mt_store *s, mt_run_list *ret, mt_err **err)
{
    run_list l;

    if (run_live_list(s, &ROWS, &l, err) < 0)
        return -1;
    run_list_give(&l, ret);
    return 0;
}

int mt_store_run_live_count(mt_store *s, int64_t *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    if (reader_get(s, &r, err) < 0 || db_start_(r->db, DB_RUN_LIVE_COUNT, NULL, 0, &st, err) < 0 ||
        db_step(r->db, st, err) < 0)
        return -1;
    *ret = db_int(st, 0);
    return 0;
}
