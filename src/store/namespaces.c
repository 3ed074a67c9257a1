// SPDX-License-Identifier: Apache-2.0
#include "store/store-internal.h"

#include <stdio.h>

static void namespace_row(db_stmt *st, mt_namespace *n)
{
    *n = (mt_namespace){0};
    db_copy(st, 0, n->id);
    db_copy(st, 1, n->name);
    db_copy(st, 2, n->owner_id);
    db_copy(st, 3, n->owner);
    n->date_created = db_int(st, 4);
    n->relation = (mt_relation)db_int(st, 5);
}

int namespace_load(db *d, const mt_user *as, db_id by, const char *key, mt_namespace *ret,
                   mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start_id(d, by, &st, err, T(as_id(as)), I(as_all(as)), T(key)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : 1;
    namespace_row(st, ret);
    return 0;
}

static int read_namespace(mt_store *s, const mt_user *as, db_id by, const char *key,
                          mt_namespace *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = namespace_load(r->db, as, by, key, ret, err);
    return rc > 0 ? mt_fail(err, MT_E_NOT_FOUND, "no namespace '%.80s'", key) : rc;
}

int mt_store_namespace_get(mt_store *s, const mt_user *as, const char *name, mt_namespace *ret,
                           mt_err **err)
{
    return read_namespace(s, as, DB_NAMESPACE_BY_NAME, name, ret, err);
}

int mt_store_namespace_by_id(mt_store *s, const mt_user *as, const char *id, mt_namespace *ret,
                             mt_err **err)
{
    return read_namespace(s, as, DB_NAMESPACE_BY_ID, id, ret, err);
}

int mt_store_namespace_list(mt_store *s, const mt_user *as, mt_page page, mt_namespace_list *ret,
                            mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_namespace_list_done) mt_namespace_list l = {0};
    size_t limit = page_limit(page);
    int more;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, NAMESPACE_LIST, &st, err, T(as_id(as)), I(as_all(as)),
                 T(page.after ? page.after : ""), I((int64_t)limit + 1)) < 0)
        return -1;
    while ((more = db_step(r->db, st, err)) > 0 && l.count < limit) {
        mt_namespace *n = list_add(&l);

        if (!n)
            return mt_fail_oom(err);
        namespace_row(st, n);
    }
    if (more < 0)
        return more;
    if (more > 0)
        (void)snprintf(l.next, sizeof(l.next), "%s", l.items[l.count - 1].name);
    *ret = l;
    l = (mt_namespace_list){0};
    return 0;
}

void mt_namespace_list_done(mt_namespace_list *l)
{
    free(l->items);
    *l = (mt_namespace_list){0};
}

// ---- making ----

struct create {
    const mt_user *owner;
    const char *name;
    mt_namespace *ret;
    bool became_default;
};

static int create_op(tx *t, void *arg, mt_err **err)
{
    struct create *c = arg;
    char id[MT_ID_TEXT];
    mt_user owner;
    int r = namespace_load(t->db, c->owner, DB_NAMESPACE_BY_NAME, c->name, c->ret, err);

    c->became_default = false;
    if (r <= 0)
        return r < 0 ? r
                     : mt_fail(err, MT_E_ALREADY_EXISTS, "namespace '%s' exists already", c->name);
    r = user_load(t->db, DB_USER_BY_ID, T(c->owner->id), &owner, err);
    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no user '%s'", c->owner->name);
    mt_id_new(id);
    if (db_run(t->db, NAMESPACE_ADD, err, T(id), T(c->name), T(owner.id), I(t->now)) < 0 ||
        event_add(t, "namespace", id, id, "created", err) < 0)
        return -1;
    if (!owner.default_namespace_id[0]) {
        if (db_run(t->db, USER_DEFAULT, err, T(owner.id), T(id)) < 0)
            return -1;
        c->became_default = true;
    }
    return namespace_load(t->db, c->owner, DB_NAMESPACE_BY_ID, id, c->ret, err);
}

int mt_store_namespace_create(mt_store *s, const mt_user *owner, const char *name,
                              mt_namespace *ret, bool *ret_became_default, mt_err **err)
{
    mt_namespace made;
    struct create c = {owner, name, &made, false};

    if (check_name(name, "namespace", err) < 0 || store_write(s, create_op, &c, err) < 0)
        return -1;
    *ret = made;
    if (ret_became_default)
        *ret_became_default = c.became_default;
    return 0;
}

// ---- removal ----

static int list_of(tx *t, db_id what, const char *id, const char *title, mt_buf *b, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (db_start_id(t->db, what, &st, err, T(id)) < 0)
        return -1;
    return list_part(t->db, st, title, b, err);
}

static int refuse_unless_empty(tx *t, const mt_namespace *n, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(32768);

    if (list_of(t, DB_NAMESPACE_VFS, n->id, "file systems", &b, err) < 0 ||
        list_of(t, DB_NAMESPACE_SECRETS, n->id, "secrets", &b, err) < 0 ||
        list_of(t, DB_NAMESPACE_RESOURCES, n->id, "resources", &b, err) < 0 ||
        list_of(t, DB_NAMESPACE_RUNS, n->id, "live runs", &b, err) < 0 ||
        list_of(t, DB_NAMESPACE_APP_RUNS, n->id, "live app runs", &b, err) < 0 ||
        list_of(t, DB_NAMESPACE_INTERACTION_RUNS, n->id, "live interaction runs", &b, err) < 0)
        return -1;
    if (b.len == 0)
        return 0;
    return mt_fail(err, MT_E_CONFLICT, "namespace '%s' is not empty: %s", n->name, mt_buf_str(&b));
}

static int delete_op(tx *t, void *arg, mt_err **err)
{
    const char *id = arg;
    mt_namespace n;
    int r = namespace_load(t->db, NULL, DB_NAMESPACE_BY_ID, id, &n, err);

    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no namespace '%.80s'", id);
    if (refuse_unless_empty(t, &n, err) < 0 ||
        event_add(t, "namespace", n.id, n.id, "deleted", err) < 0 ||
        db_run(t->db, NAMESPACE_DROP_RUNS, err, T(id)) < 0 ||
        db_run(t->db, NAMESPACE_DROP_APP_RUNS, err, T(id)) < 0 ||
        db_run(t->db, NAMESPACE_DROP_INTERACTION_RUNS, err, T(id)) < 0 ||
        db_run(t->db, NAMESPACE_DROP_RESOURCES, err, T(id)) < 0 ||
        db_run(t->db, NAMESPACE_DELETE, err, T(id)) < 0)
        return -1;
    return 0;
}

int mt_store_namespace_delete(mt_store *s, const char *id, mt_err **err)
{
    return store_write(s, delete_op, (void *)(uintptr_t)id, err);
}

// ---- members ----

struct member {
    const char *namespace_id, *user_id;
};

static int load_both(tx *t, const struct member *m, mt_namespace *n, mt_user *u, mt_err **err)
{
    int r = namespace_load(t->db, NULL, DB_NAMESPACE_BY_ID, m->namespace_id, n, err);

    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no namespace '%.80s'", m->namespace_id);
    r = user_load(t->db, DB_USER_BY_ID, T(m->user_id), u, err);
    return r > 0 ? mt_fail(err, MT_E_NOT_FOUND, "no user '%.80s'", m->user_id) : r;
}

static int add_op(tx *t, void *arg, mt_err **err)
{
    struct member *m = arg;
    mt_namespace n;
    mt_user u;
    int added;

    if (load_both(t, m, &n, &u, err) < 0)
        return -1;
    if (mt_streq(n.owner_id, u.id))
        return 1;
    added = db_run(t->db, MEMBER_ADD, err, T(n.id), T(u.id), I(t->now));
    if (added <= 0)
        return added < 0 ? -1 : 1;
    return event_add(t, "namespace", n.id, n.id, "updated", err);
}

int mt_store_member_add(mt_store *s, const char *namespace_id, const char *user_id, mt_err **err)
{
    struct member m = {namespace_id, user_id};

    return store_write(s, add_op, &m, err);
}

static int remove_op(tx *t, void *arg, mt_err **err)
{
    struct member *m = arg;
    mt_namespace n;
    mt_user u;
    int removed;

    if (load_both(t, m, &n, &u, err) < 0)
        return -1;
    if (mt_streq(n.owner_id, u.id))
        return mt_fail(err, MT_E_CONFLICT, "user '%s' owns namespace '%s' and stays in it", u.name,
                       n.name);
    removed = db_run(t->db, MEMBER_REMOVE, err, T(n.id), T(u.id));
    if (removed < 0)
        return -1;
    if (removed == 0)
        return mt_fail(err, MT_E_NOT_FOUND, "user '%s' is no member of namespace '%s'", u.name,
                       n.name);
    if (db_run(t->db, MEMBER_FORGET_DEFAULT, err, T(n.id), T(u.id)) < 0)
        return -1;
    return event_add(t, "namespace", n.id, n.id, "updated", err);
}

int mt_store_member_remove(mt_store *s, const char *namespace_id, const char *user_id, mt_err **err)
{
    struct member m = {namespace_id, user_id};

    return store_write(s, remove_op, &m, err);
}
