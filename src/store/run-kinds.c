// SPDX-License-Identifier: Apache-2.0
// What runs have in common: how they are read into lists; and those of apps and of interactions,
// how they are listed and counted, and how they end.
#include "base/utf8.h"
#include "store/store-internal.h"

#include <stdio.h>

// ---- lists ----

static db_id list_statement(const run_lists *l, const mt_user *as, const run_filter *f)
{
    bool live = f->status && mt_streq(f->status, "Running");

    if (f->parent_app_id)
        return l->below;
    if (f->namespace_id)
        return live ? l->live_in : l->in;
    if (as_all(as))
        return live ? l->live : l->all;
    return live ? l->live_seen : l->seen;
}

int run_collect(db *d, db_stmt *st, size_t limit, const run_rows *rows, run_list *ret, mt_err **err)
{
    run_list l = {0};
    int64_t number = 0;
    int r;

    while ((r = db_step(d, st, err)) > 0 && l.count < limit) {
        void *item = list_grow(&l.items, &l.count, rows->size);

        r = item ? rows->read(st, item, &number, err) : mt_fail_oom(err);
        if (r < 0)
            break;
    }
    if (r < 0) {
        for (size_t i = 0; i < l.count; i++)
            rows->done((char *)l.items + i * rows->size);
        free(l.items);
        return r;
    }
    if (r > 0)
        (void)snprintf(l.next, sizeof(l.next), "%lld", (long long)number);
    *ret = l;
    return 0;
}

int run_live_list(mt_store *s, const run_rows *rows, run_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    return reader_get(s, &r, err) < 0 || db_start_id(r->db, rows->live, &st, err, T("")) < 0
               ? -1
               : run_collect(r->db, st, SIZE_MAX, rows, ret, err);
}

int run_list_get(mt_store *s, const run_lists *lists, const mt_user *as, const run_filter *f,
                 mt_page page, run_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    size_t limit = page_limit(page);
    uint64_t before = 0;

    // One more than the page has, to see whether there is one.
    if (page_number(page, &before, err) < 0 || reader_get(s, &r, err) < 0 ||
        db_start_id(r->db, list_statement(lists, as, f), &st, err, T(as_id(as)), I(as_all(as)),
                    I((int64_t)before), T(f->namespace_id), T(f->name), T(f->status),
                    T(f->started_by_id), T(f->id_ending), T(f->parent_app_id),
                    I((int64_t)limit + 1)) < 0)
        return -1;
    return run_collect(r->db, st, limit, lists->rows, ret, err);
}

int run_live_count(mt_store *s, db_id of_all, db_id of_one, const char *started_by_id, int64_t *ret,
                   mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    if (reader_get(s, &r, err) < 0 ||
        (started_by_id ? db_start_id(r->db, of_one, &st, err, T(started_by_id))
                       : db_start_(r->db, of_all, NULL, 0, &st, err)) < 0 ||
        db_step(r->db, st, err) < 0)
        return -1;
    *ret = db_int(st, 0);
    return 0;
}

// ---- ends ----

int check_run_end(const char *what, const char *status, const char *reason, mt_err **err)
{
    if (!status || (!mt_streq(status, "Finished") && !mt_streq(status, "Error")))
        return mt_fail(err, MT_E_INTERNAL, "an %s ends Finished or Error, not '%.40s'", what,
                       text_or(status, ""));
    if (!reason || !reason[0] || strlen(reason) >= MT_STORE_WORD)
        return mt_fail(err, MT_E_INTERNAL, "an %s ends for a reason", what);
    return 0;
}

char *run_end_details(const char *details)
{
    mt_str whole = mt_str_of(text_or(details, ""));

    if (whole.len > MT_STORE_APP_DETAILS)
        whole.len = mt_utf8_bad_at(whole.data, MT_STORE_APP_DETAILS);
    return mt_str_dup(whole);
}
