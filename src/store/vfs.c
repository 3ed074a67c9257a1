// SPDX-License-Identifier: Apache-2.0
#include "store/store-internal.h"

#include <stdio.h>

static void vfs_row(db_stmt *st, mt_vfs_record *v)
{
    *v = (mt_vfs_record){0};
    db_copy(st, 0, v->id);
    db_copy(st, 1, v->namespace_id);
    db_copy(st, 2, v->namespace_name);
    db_copy(st, 3, v->name);
    v->limit_bytes = db_int(st, 4);
    v->date_created = db_int(st, 5);
    v->relation = (mt_relation)db_int(st, 6);
}

static int take_row(db *d, db_stmt *st, mt_vfs_record *ret, mt_err **err)
{
    int r = db_step(d, st, err);

    if (r <= 0)
        return r < 0 ? r : 1;
    vfs_row(st, ret);
    return 0;
}

static int load_by_id(db *d, const mt_user *as, const char *id, mt_vfs_record *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (db_start(d, VFS_BY_ID, &st, err, T(as_id(as)), I(as_all(as)), T(id)) < 0)
        return -1;
    return take_row(d, st, ret, err);
}

static int load_by_name(db *d, const mt_user *as, const char *namespace_id, const char *name,
                        mt_vfs_record *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (db_start(d, VFS_BY_NAME, &st, err, T(as_id(as)), I(as_all(as)), T(namespace_id), T(name)) <
        0)
        return -1;
    return take_row(d, st, ret, err);
}

int mt_store_vfs_by_id(mt_store *s, const mt_user *as, const char *id, mt_vfs_record *ret,
                       mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = load_by_id(r->db, as, id, ret, err);
    return rc > 0 ? mt_fail(err, MT_E_NOT_FOUND, "no file system '%.80s'", id) : rc;
}

int mt_store_vfs_get(mt_store *s, const mt_user *as, const char *namespace_id, const char *name,
                     mt_vfs_record *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    mt_namespace n;
    int rc;

    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = load_by_name(r->db, as, namespace_id, name, ret, err);
    if (rc <= 0)
        return rc;
    rc = namespace_load(r->db, as, DB_NAMESPACE_BY_ID, namespace_id, &n, err);
    if (rc < 0)
        return rc;
    return mt_fail(err, MT_E_NOT_FOUND, "no file system '%.80s' in namespace '%.80s'", name,
                   rc == 0 ? n.name : namespace_id);
}

int mt_store_vfs_list(mt_store *s, const mt_user *as, const char *namespace_id, mt_page page,
                      mt_vfs_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_vfs_list_done) mt_vfs_list l = {0};
    size_t limit = page_limit(page);
    const db_value values[] = {T(as_id(as)), I(as_all(as)), T(page.after ? page.after : ""),
                               I((int64_t)limit + 1), T(namespace_id)};
    int more;

    if (reader_get(s, &r, err) < 0 || db_start_(r->db, namespace_id ? DB_VFS_LIST_IN : DB_VFS_LIST,
                                                values, namespace_id ? 5 : 4, &st, err) < 0)
        return -1;
    while ((more = db_step(r->db, st, err)) > 0 && l.count < limit) {
        mt_vfs_record *v = list_add(&l);

        if (!v)
            return mt_fail_oom(err);
        vfs_row(st, v);
    }
    if (more < 0)
        return more;
    if (more > 0)
        (void)snprintf(l.next, sizeof(l.next), "%s",
                       namespace_id ? l.items[l.count - 1].name : l.items[l.count - 1].id);
    *ret = l;
    l = (mt_vfs_list){0};
    return 0;
}

void mt_vfs_list_done(mt_vfs_list *l)
{
    free(l->items);
    *l = (mt_vfs_list){0};
}

struct create {
    const char *id, *namespace_id, *name;
    int64_t limit;
    mt_vfs_record *ret;
};

static int create_op(tx *t, void *arg, mt_err **err)
{
    struct create *c = arg;
    mt_namespace n;
    int r = namespace_load(t->db, NULL, DB_NAMESPACE_BY_ID, c->namespace_id, &n, err);

    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no namespace '%.80s'", c->namespace_id);
    r = load_by_name(t->db, NULL, n.id, c->name, c->ret, err);
    if (r <= 0)
        return r < 0
                   ? r
                   : mt_fail(err, MT_E_ALREADY_EXISTS,
                             "file system '%s' exists already in namespace '%s'", c->name, n.name);
    if (db_run(t->db, VFS_ADD, err, T(c->id), T(n.id), T(c->name), I(c->limit), I(t->now)) < 0 ||
        event_add(t, "vfs", c->id, n.id, "created", err) < 0)
        return -1;
    return load_by_id(t->db, NULL, c->id, c->ret, err);
}

int mt_store_vfs_create(mt_store *s, const char *id, const char *namespace_id, const char *name,
                        int64_t limit_bytes, mt_vfs_record *ret, mt_err **err)
{
    char own[MT_ID_TEXT];
    mt_vfs_record made;
    struct create c = {id, namespace_id, name, limit_bytes ? limit_bytes : MT_VFS_DEFAULT_LIMIT,
                       &made};

    if (check_name(name, "file system", err) < 0)
        return -1;
    if (limit_bytes < 0)
        return mt_fail_field(err, MT_E_BAD_FIELD, "limitBytes", "a limit is a number above 0");
    if (!id) {
        mt_id_new(own);
        c.id = own;
    } else if (!mt_is_id(mt_str_of(id))) {
        return mt_fail(err, MT_E_INTERNAL, "'%.80s' is no id", id);
    }
    if (store_write(s, create_op, &c, err) < 0)
        return -1;
    *ret = made;
    return 0;
}

struct set_limit {
    const char *id;
    int64_t limit;
    mt_vfs_record *ret;
};

static int set_limit_op(tx *t, void *arg, mt_err **err)
{
    struct set_limit *c = arg;
    int r = load_by_id(t->db, NULL, c->id, c->ret, err);

    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no file system '%.80s'", c->id);
    if (db_run(t->db, VFS_LIMIT, err, T(c->id), I(c->limit)) < 0)
        return -1;
    c->ret->limit_bytes = c->limit;
    return event_add(t, "vfs", c->id, c->ret->namespace_id, "updated", err);
}

int mt_store_vfs_set_limit(mt_store *s, const char *id, int64_t limit_bytes, mt_vfs_record *ret,
                           mt_err **err)
{
    mt_vfs_record changed;
    struct set_limit c = {id, limit_bytes, &changed};

    if (limit_bytes <= 0)
        return mt_fail_field(err, MT_E_BAD_FIELD, "limit", "a limit is a number above 0");
    if (store_write(s, set_limit_op, &c, err) < 0)
        return -1;
    *ret = changed;
    return 0;
}

// ---- removal ----

struct delete
{
    const char *id;
    bool force;
};

static int refuse_in_use(tx *t, const mt_vfs_record *v, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(32768);
    _cleanup_stmt_ db_stmt *runs = NULL, *capsules = NULL;

    if (db_start(t->db, VFS_RUNS, &runs, err, T(v->id)) < 0 ||
        list_part(t->db, runs, "mounted by live runs", &b, err) < 0 ||
        db_start(t->db, VFS_CAPSULES, &capsules, err, T(v->namespace_id), T(v->name)) < 0 ||
        list_part(t->db, capsules, "named by capsules", &b, err) < 0)
        return -1;
    if (b.len == 0)
        return 0;
    return mt_fail(
        err, MT_E_CONFLICT,
        "file system '%s' of namespace '%s' is in use: %s; force removes it all the same", v->name,
        v->namespace_name, mt_buf_str(&b));
}

static int delete_op(tx *t, void *arg, mt_err **err)
{
    struct delete *d = arg;
    mt_vfs_record v;
    int r = load_by_id(t->db, NULL, d->id, &v, err);

    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no file system '%.80s'", d->id);
    if (!d->force && refuse_in_use(t, &v, err) < 0)
        return -1;
    return event_add(t, "vfs", v.id, v.namespace_id, "deleted", err) < 0 ||
                   db_run(t->db, VFS_DELETE, err, T(v.id)) < 0
               ? -1
               : 0;
}

int mt_store_vfs_delete(mt_store *s, const char *id, bool force, mt_err **err)
{
    struct delete d = {id, force};

    return store_write(s, delete_op, &d, err);
}
