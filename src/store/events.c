// SPDX-License-Identifier: Apache-2.0
#include "store/store-internal.h"

#include <stdio.h>

static mt_event *event_slot(mt_store *s)
{
    if (s->event_count == s->event_cap) {
        size_t cap = s->event_cap ? 2 * s->event_cap : 64;
        mt_event *bigger = reallocarray(s->events, cap, sizeof(*bigger));

        if (!bigger)
            return NULL;
        s->events = bigger;
        s->event_cap = cap;
    }
    return &s->events[s->event_count];
}

static int note_event(tx *t, int64_t number, const char *kind, const char *id, const char *ns,
                      const char *change, mt_err **err)
{
    mt_event *e = event_slot(t->store);

    if (!e)
        return mt_fail_oom(err);
    *e = (mt_event){.number = number, .time_us = t->now};
    (void)snprintf(e->kind, sizeof(e->kind), "%s", kind);
    (void)snprintf(e->object_id, sizeof(e->object_id), "%s", id);
    (void)snprintf(e->namespace_id, sizeof(e->namespace_id), "%s", ns);
    (void)snprintf(e->change, sizeof(e->change), "%s", change);
    t->store->event_count++;
    return 0;
}

static int add(tx *t, const char *kind, const char *id, const char *ns, const char *change,
               const char *name, const char *person, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int64_t number;

    if (db_start(t->db, EVENT_ADD, &st, err, I(t->now), T(kind), T(id), T(ns), T(change), T(name),
                 T(person)) < 0 ||
        db_step(t->db, st, err) < 0)
        return -1;
    number = db_int(st, 0);
    if (db_step(t->db, st, err) < 0)
        return -1;
    return note_event(t, number, kind, id, ns, change, err);
}

int event_add(tx *t, const char *kind, const char *id, const char *ns, const char *change,
              mt_err **err)
{
    return add(t, kind, id, ns, change, NULL, NULL, err);
}

int event_add_gone(tx *t, const char *kind, const char *id, const char *change, const char *name,
                   const char *person, mt_err **err)
{
    return add(t, kind, id, "", change, name, person, err);
}

int event_tell(tx *t, const char *kind, const char *id, const char *ns, const char *change,
               mt_err **err)
{
    return note_event(t, 0, kind, id, ns, change, err);
}

static void event_row(db_stmt *st, mt_event *e)
{
    e->number = db_int(st, 0);
    e->time_us = db_int(st, 1);
    db_copy(st, 2, e->kind);
    db_copy(st, 3, e->object_id);
    db_copy(st, 4, e->namespace_id);
    db_copy(st, 5, e->change);
    db_copy(st, 6, e->run_id);
    db_copy(st, 7, e->name);
    db_copy(st, 8, e->namespace_name);
    db_copy(st, 9, e->status);
    db_copy(st, 10, e->end_reason);
    e->has_exit_code = !db_is_null(st, 11);
    e->exit_code = db_int(st, 11);
}

int mt_store_event_list(mt_store *s, const mt_user *as, const mt_event_filter *f, size_t limit,
                        mt_event_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_event_list_done) mt_event_list l = {0};
    int more;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, EVENT_LIST, &st, err, T(as_id(as)), I(as_all(as)), I(f->after),
                 I(f->until ? f->until : INT64_MAX), T(f->namespace_id), T(f->kinds), T(f->run_id),
                 I((int64_t)page_limit((mt_page){.limit = limit}))) < 0)
        return -1;
    while ((more = db_step(r->db, st, err)) > 0) {
        mt_event *e = list_add(&l);

        if (!e)
            return mt_fail_oom(err);
        event_row(st, e);
    }
    if (more < 0)
        return more;
    *ret = l;
    l = (mt_event_list){0};
    return 0;
}

int mt_store_event_ends(mt_store *s, int64_t *ret_newest, int64_t *ret_oldest, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    if (reader_get(s, &r, err) < 0 || db_start(r->db, EVENT_ENDS, &st, err) < 0 ||
        db_step(r->db, st, err) < 0)
        return -1;
    *ret_newest = db_int(st, 0);
    *ret_oldest = db_int(st, 1);
    return 0;
}

int mt_store_event_back(mt_store *s, const mt_user *as, const mt_event_filter *f, size_t last,
                        int64_t *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, EVENT_BACK, &st, err, T(as_id(as)), I(as_all(as)), I(f->after),
                 I((int64_t)last), T(f->namespace_id), T(f->kinds), T(f->run_id)) < 0 ||
        db_step(r->db, st, err) < 0)
        return -1;
    if (!db_is_null(st, 0))
        *ret = db_int(st, 0);
    return 0;
}

int mt_store_event_may(mt_store *s, mt_user *user, const char *namespace_id, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    int found;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, EVENT_MAY, &st, err, T(user->id), T(user->key_id), I(mt_now_us()),
                 T(namespace_id)) < 0)
        return -1;
    found = db_step(r->db, st, err);
    if (found <= 0)
        return found;
    user->role =
        mt_streq(db_text(st, 0), mt_role_name(MT_ROLE_ADMIN)) ? MT_ROLE_ADMIN : MT_ROLE_USER;
    return db_int(st, 1) && db_int(st, 2);
}

int mt_store_commands_running(mt_store *s, const char *run_id, size_t limit, mt_id_list *ret,
                              mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_id_list_done) mt_id_list l = {0};
    int more;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, EVENT_COMMANDS, &st, err, T(run_id), I((int64_t)limit)) < 0)
        return -1;
    while ((more = db_step(r->db, st, err)) > 0) {
        if (!list_add(&l))
            return mt_fail_oom(err);
        db_copy(st, 0, l.items[l.count - 1].id);
    }
    if (more < 0)
        return more;
    *ret = l;
    l = (mt_id_list){0};
    return 0;
}

void mt_id_list_done(mt_id_list *l)
{
    free(l->items);
    *l = (mt_id_list){0};
}

void mt_event_list_done(mt_event_list *l)
{
    free(l->items);
    *l = (mt_event_list){0};
}

void mt_store_set_listener(mt_store *s, mt_store_listener_fn *fn, void *data)
{
    s->listener = fn;
    s->listener_data = data;
}
