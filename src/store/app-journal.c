// SPDX-License-Identifier: Apache-2.0
// The journals of app runs: the calls that a program has made, in its order. The newest alone may
// be open or be written again, since the program sees its answer only when it is stored.
#include "store/store-internal.h"

#include <stdio.h>

enum {
    PAGE_BYTES = 4 << 20,  // of calls that are given at once
    CLEARED_AT_ONCE = 500, // calls, and keys, in one transaction
};

void mt_app_call_record_done(mt_app_call_record *c)
{
    free(c->arguments);
    free(c->code);
    free(c->result);
    *c = (mt_app_call_record){0};
}

void mt_app_call_list_done(mt_app_call_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        mt_app_call_record_done(&l->items[i]);
    free(l->items);
    *l = (mt_app_call_list){0};
}

// ---- writing ----

struct put {
    const char *run_id;
    const mt_app_call_record *call;
    int64_t bytes;
};

// The call was neither the next one nor the newest, or the run does not live.
static int refuse(tx *t, const struct put *p, mt_err **err)
{
    app_state state = {0};

    if (app_state_load(t->db, p->run_id, &state, err) < 0)
        return -1;
    if (state.ended)
        return mt_fail(err, MT_E_RUN_ENDED, "app run '%s' has ended (%s, %s)", p->run_id,
                       state.status, state.end_reason);
    return mt_fail(err, MT_E_INTERNAL,
                   "call %lld of app run '%s' is out of order: its journal has %lld",
                   (long long)p->call->number, p->run_id, (long long)state.calls);
}

static int count(tx *t, const struct put *p, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int64_t number = p->call->number, journal;
    int r;

    if (db_start(t->db, APP_CALL_COUNT, &st, err, T(p->run_id), I(number), I(p->bytes)) < 0)
        return -1;
    r = db_step(t->db, st, err);
    if (r <= 0)
        return r < 0 ? r : refuse(t, p, err);
    journal = db_int(st, 0);
    if (number > MT_STORE_APP_CALLS)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "app run '%s' has made %d calls, the most that one may make", p->run_id,
                       MT_STORE_APP_CALLS);
    if (journal > MT_STORE_APP_JOURNAL)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "the calls of app run '%s' and their results take more than %d MiB, the "
                       "most that its journal may hold",
                       p->run_id, MT_STORE_APP_JOURNAL >> 20);
    return db_step(t->db, st, err);
}

static int put_op(tx *t, void *arg, mt_err **err)
{
    const struct put *p = arg;
    const mt_app_call_record *c = p->call;
    int r;

    t->keeps_identities = true;
    if (count(t, p, err) < 0)
        return -1;
    r = db_run(t->db, APP_CALL_PUT, err, T(p->run_id), I(c->number), T(c->name), T(c->digest),
               I(c->open), I(c->until), I(p->bytes), T(text_or(c->code, "")),
               T(c->open ? c->arguments : NULL), T(c->open ? "" : c->result));
    if (r < 0)
        return r;
    return r > 0 ? 0
                 : mt_fail(err, MT_E_INTERNAL,
                           "call %lld of app run '%s' is another one in its journal than this %s",
                           (long long)c->number, p->run_id, c->name);
}

int mt_store_app_call_put(mt_store *s, const char *run_id, const mt_app_call_record *call,
                          mt_err **err)
{
    struct put p = {.run_id = run_id, .call = call};
    const char *text = call->open ? call->arguments : call->result;

    if (call->number < 1 || !call->name[0] || !text)
        return mt_fail(err, MT_E_INTERNAL, "call %lld of app run '%s' lacks its name, or its %s",
                       (long long)call->number, run_id, call->open ? "arguments" : "result");
    p.bytes = (int64_t)(strlen(call->name) + strlen(text));
    return store_write(s, put_op, &p, err);
}

int app_journal_clear(tx *t, const char *run_id, mt_err **err)
{
    int keys = db_run(t->db, IDEMPOTENCY_DROP, err, T(run_id), I(CLEARED_AT_ONCE));
    int calls = keys < 0 ? -1 : db_run(t->db, APP_CALL_DROP, err, T(run_id), I(CLEARED_AT_ONCE));

    if (calls < 0)
        return -1;
    return keys == CLEARED_AT_ONCE || calls == CLEARED_AT_ONCE;
}

// ---- reading ----

static int call_row(db_stmt *st, mt_app_call_record *c, mt_err **err)
{
    *c = (mt_app_call_record){0};
    c->number = db_int(st, 0);
    db_copy(st, 1, c->name);
    db_copy(st, 2, c->digest);
    c->open = db_int(st, 3) != 0;
    c->until = db_int(st, 4);
    c->code = db_dup(st, 5);
    if (c->open)
        c->arguments = db_dup(st, 6);
    c->result = db_dup(st, 7);
    if (c->code && c->result && (c->arguments || !c->open))
        return 0;
    mt_app_call_record_done(c);
    return mt_fail_oom(err);
}

int mt_store_app_call_list(mt_store *s, const char *run_id, int64_t from, mt_app_call_list *ret,
                           mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_app_call_list_done) mt_app_call_list l = {0};
    int64_t bytes = 0;
    int more = 0;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, APP_CALL_LIST, &st, err, T(run_id), I(from)) < 0)
        return -1;
    while (bytes < PAGE_BYTES && (more = db_step(r->db, st, err)) > 0) {
        mt_app_call_record *c = list_add(&l);

        if (!c)
            return mt_fail_oom(err);
        if (call_row(st, c, err) < 0)
            return -1;
        bytes += (int64_t)sizeof(*c) + db_int(st, 8);
    }
    if (more < 0)
        return more;
    *ret = l;
    l = (mt_app_call_list){0};
    return 0;
}

int mt_store_app_call_open(mt_store *s, const char *run_id, mt_app_call_record *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0 || db_start(r->db, APP_CALL_NEWEST, &st, err, T(run_id)) < 0)
        return -1;
    rc = db_step(r->db, st, err);
    if (rc < 0)
        return rc;
    if (rc == 0 || db_int(st, 3) == 0)
        return 1;
    return call_row(st, ret, err);
}
