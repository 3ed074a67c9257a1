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

int event_add(tx *t, const char *kind, const char *id, const char *ns, const char *change,
              mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int64_t number;

    if (db_start(t->db, EVENT_ADD, &st, err, I(t->now), T(kind), T(id), T(ns), T(change)) < 0 ||
        db_step(t->db, st, err) < 0)
        return -1;
    number = db_int(st, 0);
    if (db_step(t->db, st, err) < 0)
        return -1;
    return note_event(t, number, kind, id, ns, change, err);
}

int event_tell(tx *t, const char *kind, const char *id, const char *ns, const char *change,
               mt_err **err)
{
    return note_event(t, 0, kind, id, ns, change, err);
}

int mt_store_event_list(mt_store *s, const mt_user *as, int64_t after, size_t limit,
                        mt_event_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_event_list_done) mt_event_list l = {0};
    int more;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, EVENT_LIST, &st, err, T(as_id(as)), I(as_all(as)), I(after),
                 I((int64_t)page_limit((mt_page){.limit = limit}))) < 0)
        return -1;
    while ((more = db_step(r->db, st, err)) > 0) {
        mt_event *e = list_add(&l);

        if (!e)
            return mt_fail_oom(err);
        e->number = db_int(st, 0);
        e->time_us = db_int(st, 1);
        db_copy(st, 2, e->kind);
        db_copy(st, 3, e->object_id);
        db_copy(st, 4, e->namespace_id);
        db_copy(st, 5, e->change);
    }
    if (more < 0)
        return more;
    *ret = l;
    l = (mt_event_list){0};
    return 0;
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
