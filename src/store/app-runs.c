// SPDX-License-Identifier: Apache-2.0
// Runs of apps: made, listed, read, ended, removed. What a program does meanwhile is in
// app-journal.c and app-notes.c.
//
//   Running --ended--> Finished | Error
#include "store/store-internal.h"

#include <stdio.h>

enum {
    OUTPUTS_JSON = 128u << 20, // all outputs, with each byte of their names escaped
};

void mt_app_run_done(mt_app_run *r)
{
    free(r->failure_details);
    free(r->failure_code);
    free(r->failure_place);
    free(r->failure_stack);
    free(r->waiting_for);
    free(r->return_value);
    free(r->inputs);
    free(r->outputs);
    *r = (mt_app_run){0};
}

void mt_app_run_list_done(mt_app_run_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        mt_app_run_done(&l->items[i]);
    free(l->items);
    *l = (mt_app_run_list){0};
}

void mt_app_children_done(mt_app_children *c)
{
    free(c->capsule_runs);
    free(c->app_runs);
    free(c->interaction_runs);
    *c = (mt_app_children){0};
}

int no_app_run(const char *id, mt_err **err)
{
    return mt_fail(err, MT_E_NOT_FOUND, "no app run '%.80s'", id);
}

// ---- rows ----

// The last two columns are NULL in lists.
static bool take_texts(db_stmt *st, mt_app_run *r)
{
    const row_text texts[] = {{10, &r->failure_details}, {11, &r->failure_code},
                              {12, &r->failure_place},   {13, &r->failure_stack},
                              {14, &r->waiting_for},     {33, &r->inputs},
                              {34, &r->return_value}};

    return row_texts(st, texts, MT_ARRAY_SIZE(texts));
}

// Columns in the order of APP_HEAD; *ret_number is the place in lists.
static int run_row(db_stmt *st, void *item, int64_t *ret_number, mt_err **err)
{
    mt_app_run *r = item;
    *r = (mt_app_run){0};
    db_copy(st, 0, r->id);
    db_copy(st, 1, r->namespace_id);
    db_copy(st, 2, r->namespace_name);
    db_copy(st, 3, r->app);
    r->version = db_int(st, 4);
    db_copy(st, 5, r->status);
    db_copy(st, 6, r->end_reason);
    r->limit_ms = db_int(st, 7);
    db_copy(st, 8, r->cancelled_by);
    db_copy(st, 9, r->cancel_requested_by);
    db_copy(st, 15, r->started_by_id);
    db_copy(st, 16, r->started_by);
    db_copy(st, 17, r->parent_id);
    db_copy(st, 18, r->parent_app_id);
    db_copy(st, 19, r->rerun_of);
    r->language = db_int(st, 20);
    r->date_created = db_int(st, 21);
    r->date_ended = db_int(st, 22);
    r->deadline = db_int(st, 23);
    r->max_duration_ms = db_int(st, 24);
    r->console_count = db_int(st, 25);
    r->console_kept = db_int(st, 26);
    r->line_count = db_int(st, 27);
    r->output_count = db_int(st, 28);
    r->call_count = db_int(st, 29);
    r->journal_bytes = db_int(st, 30);
    *ret_number = db_int(st, 31);
    r->relation = (mt_relation)db_int(st, 32);
    if (take_texts(st, r))
        return 0;
    mt_app_run_done(r);
    return mt_fail_oom(err);
}

static int load_outputs(db *d, mt_app_run *r, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(OUTPUTS_JSON);

    if (app_outputs_add(d, r->id, &b, err) < 0)
        return -1;
    r->outputs = mt_buf_take(&b);
    return r->outputs ? 0 : mt_fail_oom(err);
}

// 0 found, 1 none, < 0.
static int row_load(db *d, db_id which, const mt_user *as, const char *id, mt_app_run *ret,
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

static int run_load(db *d, const mt_user *as, const char *id, mt_app_run *ret, mt_err **err)
{
    _cleanup_(mt_app_run_done) mt_app_run found = {0};
    int r = row_load(d, DB_APP_RUN_BY_ID, as, id, &found, err);

    if (r != 0)
        return r;
    if (load_outputs(d, &found, err) < 0)
        return -1;
    *ret = found;
    found = (mt_app_run){0};
    return 0;
}

int mt_store_app_run_get(mt_store *s, const mt_user *as, const char *id, mt_app_run *ret,
                         mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0 || reader_snapshot(r, err) < 0)
        return -1;
    rc = run_load(r->db, as, id, ret, err);
    return rc > 0 ? no_app_run(id, err) : rc;
}

int mt_store_app_run_look(mt_store *s, const mt_user *as, const char *id, mt_app_run *ret,
                          mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = row_load(r->db, DB_APP_RUN_LOOK, as, id, ret, err);
    return rc > 0 ? no_app_run(id, err) : rc;
}

int app_state_load(db *d, const char *id, app_state *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start(d, APP_RUN_STATE, &st, err, T(id)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : no_app_run(id, err);
    ret->ended = db_int(st, 0) != 0;
    db_copy(st, 1, ret->namespace_id);
    db_copy(st, 2, ret->status);
    db_copy(st, 3, ret->end_reason);
    ret->calls = db_int(st, 4);
    ret->lines = db_int(st, 5);
    ret->lines_kept = db_int(st, 6);
    ret->lines_bytes = db_int(st, 7);
    ret->console = db_int(st, 8);
    ret->console_kept = db_int(st, 9);
    ret->outputs = db_int(st, 10);
    ret->output_bytes = db_int(st, 11);
    return 0;
}

// ---- making ----

// 0: *ret is the run of an earlier start, 1: no such key, < 0: reused for another request.
static int by_idempotency(db *d, int64_t now, const mt_user *by, const char *key,
                          const char *digest, mt_app_run *ret, mt_err **err)
{
    const keyed_request q = {KEYED_APP_RUN, by->id, key, digest};
    char id[MT_ID_TEXT];
    int r = idempotency_find(d, now, &q, id, err);

    return r != 0 ? r : run_load(d, by, id, ret, err);
}

int mt_store_app_run_by_idempotency(mt_store *s, const mt_user *by, const char *key,
                                    const char *request_digest, mt_app_run *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;

    if (check_idempotency_key(key, request_digest, err) < 0 || reader_get(s, &r, err) < 0 ||
        reader_snapshot(r, err) < 0)
        return -1;
    return by_idempotency(r->db, mt_now_us(), by, key, request_digest, ret, err);
}

struct create {
    const mt_app_run_new *new;
    mt_app_run *ret;
};

static int add(tx *t, const mt_app_run_new *n, mt_err **err)
{
    const keyed_request q = {KEYED_APP_RUN, n->started_by->id, n->idempotency_key,
                             n->request_digest};
    run_lineage lineage;

    if (app_lineage_of(t, n->parent_id, n->parent_app_id, &lineage, err) < 0 ||
        db_run(t->db, APP_RUN_ADD, err, T(n->id), T(n->namespace_id), T(n->app), I(n->version),
               T(n->started_by->id), T(n->started_by->name), T(text_or(n->parent_id, "")),
               T(text_or(n->parent_app_id, "")), T(lineage.root_id), I(lineage.depth),
               I(lineage.app_depth), T(text_or(n->rerun_of, "")), I(n->language),
               I(n->date_created ? n->date_created : t->now), I(n->deadline),
               I(n->max_duration_ms)) < 0 ||
        db_run(t->db, APP_RUN_VALUES, err, T(n->id), T(n->inputs)) < 0)
        return -1;
    return q.key ? idempotency_keep(t, &q, n->id, NULL, err) : 0;
}

static int create_op(tx *t, void *arg, mt_err **err)
{
    struct create *c = arg;
    const mt_app_run_new *n = c->new;
    int r;

    t->keeps_identities = true;
    mt_app_run_done(c->ret);
    if (n->idempotency_key) {
        r = by_idempotency(t->db, t->now, n->started_by, n->idempotency_key, n->request_digest,
                           c->ret, err);
        if (r <= 0)
            return r < 0 ? r : 1;
    }
    if (add(t, n, err) < 0 || event_add(t, "appRun", n->id, n->namespace_id, "created", err) < 0)
        return -1;
    r = run_load(t->db, n->started_by, n->id, c->ret, err);
    return r > 0 ? no_app_run(n->id, err) : r;
}

static int check_new(const mt_app_run_new *n, mt_err **err)
{
    if (!mt_is_id(mt_str_of(n->id)))
        return mt_fail(err, MT_E_INTERNAL, "'%.80s' is no id", n->id ? n->id : "");
    return n->idempotency_key ? check_idempotency_key(n->idempotency_key, n->request_digest, err)
                              : 0;
}

int mt_store_app_run_create(mt_store *s, const mt_app_run_new *run, mt_app_run *ret, mt_err **err)
{
    _cleanup_(mt_app_run_done) mt_app_run stored = {0};
    struct create c = {run, &stored};
    int r;

    if (check_new(run, err) < 0)
        return -1;
    r = store_write(s, create_op, &c, err);
    if (r < 0)
        return r;
    *ret = stored;
    stored = (mt_app_run){0};
    return r;
}

// ---- lists ----

static void run_done(void *item)
{
    mt_app_run_done(item);
}

static const run_rows ROWS = {sizeof(mt_app_run), run_row, run_done, DB_APP_RUN_LIVE};

static const run_lists LISTS = {
    .rows = &ROWS,
    .all = DB_APP_RUN_LIST,
    .seen = DB_APP_RUN_LIST_SEEN,
    .in = DB_APP_RUN_LIST_IN,
    .live = DB_APP_RUN_LIST_LIVE,
    .live_seen = DB_APP_RUN_LIST_LIVE_SEEN,
    .live_in = DB_APP_RUN_LIST_LIVE_IN,
    .below = DB_APP_RUN_LIST_BELOW,
};

int mt_store_app_run_list(mt_store *s, const mt_user *as, const mt_app_run_filter *filter,
                          mt_page page, mt_app_run_list *ret, mt_err **err)
{
    static const mt_app_run_filter ANY;
    const mt_app_run_filter *f = filter ? filter : &ANY;
    const run_filter wanted = {f->namespace_id,  f->app,       f->status,
                               f->started_by_id, f->id_ending, f->parent_app_id};
    run_list l;

    if (run_list_get(s, &LISTS, as, &wanted, page, &l, err) < 0)
        return -1;
    run_list_give(&l, ret);
    return 0;
}

int mt_store_app_run_live(mt_store *s, mt_app_run_list *ret, mt_err **err)
{
    run_list l;

    if (run_live_list(s, &ROWS, &l, err) < 0)
        return -1;
    run_list_give(&l, ret);
    return 0;
}

int mt_store_app_run_live_count(mt_store *s, const char *started_by_id, int64_t *ret, mt_err **err)
{
    return run_live_count(s, DB_APP_RUN_LIVE_COUNT, DB_APP_RUN_LIVE_COUNT_OF, started_by_id, ret,
                          err);
}

// The ids of one statement's rows; id NULL: it takes none.
static int collect_ids(db *d, db_id statement, const char *id, char (**ret)[MT_ID_TEXT],
                       size_t *ret_count, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    const db_value value = T(id);
    int more;

    if (db_start_(d, statement, &value, id ? 1 : 0, &st, err) < 0)
        return -1;
    while ((more = db_step(d, st, err)) > 0) {
        char *slot = list_grow((void **)ret, ret_count, MT_ID_TEXT);

        if (!slot)
            return mt_fail_oom(err);
        db_copy_(st, 0, slot, MT_ID_TEXT);
    }
    return more;
}

int mt_store_app_run_children(mt_store *s, const char *id, mt_app_children *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_(mt_app_children_done) mt_app_children c = {0};

    if (reader_get(s, &r, err) < 0 ||
        collect_ids(r->db, DB_APP_RUN_BELOW_CAPSULES, id, &c.capsule_runs, &c.capsule_run_count,
                    err) < 0 ||
        collect_ids(r->db, DB_APP_RUN_BELOW, id, &c.app_runs, &c.app_run_count, err) < 0 ||
        collect_ids(r->db, DB_APP_RUN_BELOW_INTERACTIONS, id, &c.interaction_runs,
                    &c.interaction_run_count, err) < 0)
        return -1;
    *ret = (mt_app_children){
        .capsule_runs = MT_TAKE_PTR(c.capsule_runs),
        .app_runs = MT_TAKE_PTR(c.app_runs),
        .interaction_runs = MT_TAKE_PTR(c.interaction_runs),
        .capsule_run_count = c.capsule_run_count,
        .app_run_count = c.app_run_count,
        .interaction_run_count = c.interaction_run_count,
    };
    return 0;
}

// ---- asked to end, waiting ----

struct cancel {
    const char *id, *by;
};

static int cancel_op(tx *t, void *arg, mt_err **err)
{
    const struct cancel *c = arg;
    app_state state = {0};
    int r;

    t->keeps_identities = true;
    if (app_state_load(t->db, c->id, &state, err) < 0)
        return -1;
    r = db_run(t->db, APP_RUN_CANCEL, err, T(c->id), T(c->by));
    if (r <= 0)
        return r < 0 ? r : 1;
    return event_add(t, "appRun", c->id, state.namespace_id, "updated", err);
}

int mt_store_app_run_request_cancel(mt_store *s, const char *id, const char *by, mt_err **err)
{
    struct cancel c = {id, by};

    return store_write_essential(s, cancel_op, &c, err);
}

struct waits {
    char id[MT_ID_TEXT];
    char what[];
};

static int waits_op(tx *t, void *arg, mt_err **err)
{
    const struct waits *w = arg;

    t->keeps_identities = true;
    return db_run(t->db, APP_RUN_WAITS, err, T(w->id), T(w->what)) < 0 ? -1 : 0;
}

int mt_store_app_run_waits(mt_store *s, const char *id, const char *what, mt_err **err)
{
    size_t len = strlen(what);
    struct waits *w = malloc(sizeof(*w) + len + 1);

    if (!w)
        return mt_fail_oom(err);
    (void)snprintf(w->id, sizeof(w->id), "%s", id);
    memcpy(w->what, what, len + 1);
    if (store_write_async(s, waits_op, w, false, NULL, NULL, err) < 0) {
        free(w);
        return -1;
    }
    return 0;
}

// ---- the end ----

struct end {
    const char *id;
    const mt_app_end *how;
    const char *details;
    bool more; // of the journal than one transaction should take
};

static int end_op(tx *t, void *arg, mt_err **err)
{
    struct end *e = arg;
    const mt_app_end *how = e->how;
    app_state state = {0};
    int more;

    t->keeps_identities = true;
    e->more = false;
    if (app_state_load(t->db, e->id, &state, err) < 0)
        return -1;
    if (state.ended)
        return 1;
    if (db_run(t->db, APP_RUN_END, err, T(e->id), T(how->status), T(how->end_reason), T(e->details),
               T(text_or(how->failure_code, "")), T(text_or(how->failure_place, "")),
               T(text_or(how->failure_stack, "[]")), T(text_or(how->cancelled_by, "")),
               I(how->limit_ms), I(t->now)) < 0 ||
        (how->return_value &&
         db_run(t->db, APP_RUN_RETURN, err, T(e->id), T(how->return_value)) < 0))
        return -1;
    more = app_journal_clear(t, e->id, err);
    if (more < 0 || (more > 0 && db_run(t->db, APP_RUN_LEFT, err, T(e->id), I(1)) < 0))
        return -1;
    e->more = more > 0;
    return event_add(t, "appRun", e->id, state.namespace_id, "ended", err);
}

static int clear_op(tx *t, void *arg, mt_err **err)
{
    const char *id = arg;
    int r = app_journal_clear(t, id, err);

    t->keeps_identities = true;
    if (r == 0 && db_run(t->db, APP_RUN_LEFT, err, T(id), I(0)) < 0)
        return -1;
    return r;
}

static int clear_left(mt_store *s, const char *id, mt_err **err)
{
    int r;

    do
        r = store_write(s, clear_op, (void *)(uintptr_t)id, err);
    while (r > 0);
    return r;
}

int app_runs_clear_left(mt_store *s, mt_err **err)
{
    _cleanup_(mt_app_children_done) mt_app_children left = {0};
    reader *r = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = collect_ids(r->db, DB_APP_RUN_LEFT_LIST, NULL, &left.app_runs, &left.app_run_count, err);
    reader_put(r);
    for (size_t i = 0; rc == 0 && i < left.app_run_count; i++)
        rc = clear_left(s, left.app_runs[i], err);
    return rc;
}

int mt_store_app_run_end(mt_store *s, const char *id, const mt_app_end *end, mt_err **err)
{
    _cleanup_free_ char *details = NULL;
    struct end e = {.id = id, .how = end};
    int r;

    if (check_run_end("app run", end->status, end->end_reason, err) < 0)
        return -1;
    details = run_end_details(end->failure_details);
    if (!details)
        return mt_fail_oom(err);
    e.details = details;
    r = store_write_essential(s, end_op, &e, err);
    // The run has ended by now: what cannot be removed goes when the store is opened again.
    if (r == 0 && e.more)
        (void)clear_left(s, id, NULL);
    return r;
}
