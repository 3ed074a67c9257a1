// SPDX-License-Identifier: Apache-2.0
// The attempts of interaction runs: a model is asked, its answer is kept with what was wrong with
// it. At most the newest one is under way.
#include "store/store-internal.h"

static void attempt_done(mt_interaction_attempt *a)
{
    free(a->faults);
    free(a->answer);
    free(a->reasoning);
    *a = (mt_interaction_attempt){0};
}

void mt_interaction_attempt_list_done(mt_interaction_attempt_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        attempt_done(&l->items[i]);
    free(l->items);
    *l = (mt_interaction_attempt_list){0};
}

static int live_state(tx *t, const char *run_id, interaction_state *ret, mt_err **err)
{
    if (interaction_state_load(t->db, run_id, ret, err) < 0)
        return -1;
    return !ret->ended ? 0
                       : mt_fail(err, MT_E_RUN_ENDED, "interaction run '%s' has ended (%s, %s)",
                                 run_id, ret->status, ret->end_reason);
}

// ---- begin ----

struct begin {
    const char *run_id;
    int64_t number;
};

static int begin_op(tx *t, void *arg, mt_err **err)
{
    struct begin *b = arg;
    interaction_state state = {0};
    int again;

    t->keeps_identities = true;
    if (live_state(t, b->run_id, &state, err) < 0)
        return -1;
    again = db_run(t->db, ATTEMPT_AGAIN, err, T(b->run_id), I(state.attempts), I(t->now));
    if (again < 0)
        return -1;
    b->number = again ? state.attempts : state.attempts + 1;
    if (!again && (db_run(t->db, ATTEMPT_ADD, err, T(b->run_id), I(b->number), I(t->now)) < 0 ||
                   db_run(t->db, INTERACTION_RUN_ATTEMPTS, err, T(b->run_id), I(b->number)) < 0))
        return -1;
    return event_add(t, "interactionRun", b->run_id, state.namespace_id, "updated", err);
}

int mt_store_interaction_attempt_begin(mt_store *s, const char *run_id, int64_t *ret_number,
                                       mt_err **err)
{
    struct begin b = {.run_id = run_id};

    if (store_write(s, begin_op, &b, err) < 0)
        return -1;
    *ret_number = b.number;
    return 0;
}

// ---- end ----

struct end {
    const char *run_id;
    const mt_interaction_attempt *attempt;
    const char *cost;
};

// Of tokens; < 0: not told.
static int64_t sum(int64_t so_far, int64_t more)
{
    if (more < 0 || so_far < 0)
        return MT_MAX(more, so_far);
    return so_far > INT64_MAX - more ? INT64_MAX : so_far + more;
}

static int add_use(tx *t, const struct end *e, interaction_state *state, mt_err **err)
{
    if (e->cost && !cost_add(state->cost, e->cost))
        return mt_fail(err, MT_E_INTERNAL, "the cost of interaction run '%s' is no decimal: '%s'",
                       e->run_id, state->cost);
    return db_run(t->db, INTERACTION_RUN_USE, err, T(e->run_id),
                  I(sum(state->tokens_in, e->attempt->tokens_in)),
                  I(sum(state->tokens_out, e->attempt->tokens_out)), T(state->cost)) < 0
               ? -1
               : 0;
}

static int end_op(tx *t, void *arg, mt_err **err)
{
    const struct end *e = arg;
    const mt_interaction_attempt *a = e->attempt;
    interaction_state state = {0};
    int ended;

    t->keeps_identities = true;
    if (live_state(t, e->run_id, &state, err) < 0)
        return -1;
    ended = db_run(t->db, ATTEMPT_END, err, T(e->run_id), I(a->number), T(a->outcome),
                   T(text_or(a->faults, "[]")), T(text_or(a->answer, "")),
                   T(text_or(a->reasoning, "")), T(a->model), I(a->http_status), I(a->requests),
                   I(MT_MAX(a->tokens_in, -1)), I(MT_MAX(a->tokens_out, -1)), I(t->now));
    if (ended < 0)
        return -1;
    if (!ended)
        return mt_fail(err, MT_E_INTERNAL,
                       "attempt %lld of interaction run '%s' is not under way: %lld were begun",
                       (long long)a->number, e->run_id, (long long)state.attempts);
    return add_use(t, e, &state, err) < 0
               ? -1
               : event_add(t, "interactionRun", e->run_id, state.namespace_id, "updated", err);
}

int mt_store_interaction_attempt_end(mt_store *s, const char *run_id,
                                     const mt_interaction_attempt *attempt, const char *cost,
                                     mt_err **err)
{
    struct end e = {run_id, attempt, cost};

    if (!attempt->outcome[0])
        return mt_fail(err, MT_E_INTERNAL, "an attempt of an interaction run has an outcome");
    if (cost && !cost_is(cost))
        return mt_fail(err, MT_E_INTERNAL,
                       "what an attempt of interaction run '%.80s' cost is no decimal: '%.40s'",
                       run_id, cost);
    return store_write(s, end_op, &e, err);
}

// ---- reading ----

static int attempt_row(db_stmt *st, mt_interaction_attempt *a, mt_err **err)
{
    const row_text texts[] = {{4, &a->faults}, {5, &a->answer}, {6, &a->reasoning}};

    a->number = db_int(st, 0);
    a->date_started = db_int(st, 1);
    a->date_ended = db_int(st, 2);
    db_copy(st, 3, a->outcome);
    db_copy(st, 7, a->model);
    a->http_status = db_int(st, 8);
    a->requests = db_int(st, 9);
    a->tokens_in = db_int(st, 10);
    a->tokens_out = db_int(st, 11);
    return row_texts(st, texts, MT_ARRAY_SIZE(texts)) ? 0 : mt_fail_oom(err);
}

// Adds the row, or says that there are more where the page has no room for it.
static int add_row(db_stmt *st, const mt_interaction_attempt_page *page, size_t *bytes,
                   mt_interaction_attempt_list *l, mt_err **err)
{
    _cleanup_(attempt_done) mt_interaction_attempt a = {0};
    mt_interaction_attempt *item;
    size_t wholes = l->count - l->first;

    if (attempt_row(st, &a, err) < 0)
        return -1;
    if (a.number > page->after) {
        *bytes += strlen(a.answer) + strlen(a.reasoning) + strlen(a.faults);
        l->more = wholes > 0 &&
                  ((page->limit && wholes >= page->limit) || (page->bytes && *bytes > page->bytes));
    }
    if (l->more)
        return 0;
    item = list_add(l);
    if (!item)
        return mt_fail_oom(err);
    *item = a;
    a = (mt_interaction_attempt){0};
    if (item->number <= page->after)
        l->first = l->count;
    return 0;
}

int mt_store_interaction_attempt_list(mt_store *s, const char *run_id,
                                      mt_interaction_attempt_page page,
                                      mt_interaction_attempt_list *ret, mt_err **err)
{
    // One character more than what is asked for: so a longer answer is seen to be longer.
    const int64_t start = MT_STORE_ATTEMPT_START + 1;
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_interaction_attempt_list_done) mt_interaction_attempt_list l = {0};
    size_t bytes = 0;
    int more = 0;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, ATTEMPT_LIST, &st, err, T(run_id), I(page.after), I(start)) < 0)
        return -1;
    while (!l.more && (more = db_step(r->db, st, err)) > 0)
        if (add_row(st, &page, &bytes, &l, err) < 0)
            return -1;
    if (!l.more && more < 0)
        return more;
    *ret = l;
    l = (mt_interaction_attempt_list){0};
    return 0;
}
