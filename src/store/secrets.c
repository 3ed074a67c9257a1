// SPDX-License-Identifier: Apache-2.0
// Secrets. A value is sealed (seal.c) with the record's id, namespace and name as additional data.
// So whoever can write to the database, but has not the key file, cannot put the value of one
// record into another that he may mount, nor move a record to his namespace or to another name.
#include "store/store-internal.h"

#include <stdio.h>

enum {
    SEALED_MAX = MT_SECRET_MAX + STORE_SEAL,
    BINDING_MAX = 2 * MT_ID_TEXT + MT_STORE_NAME,
};

// ---- rows ----

static void secret_row(db_stmt *st, mt_secret *v)
{
    *v = (mt_secret){0};
    db_copy(st, 0, v->id);
    db_copy(st, 1, v->namespace_id);
    db_copy(st, 2, v->namespace_name);
    db_copy(st, 3, v->name);
    v->date_created = db_int(st, 4);
    v->date_updated = db_int(st, 5);
    v->relation = (mt_relation)db_int(st, 6);
}

static int take_row(db *d, db_stmt *st, mt_secret *ret, mt_err **err)
{
    int r = db_step(d, st, err);

    if (r <= 0)
        return r < 0 ? r : 1;
    secret_row(st, ret);
    return 0;
}

static int load_by_id(db *d, const char *id, mt_secret *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (db_start(d, SECRET_BY_ID, &st, err, T(as_id(NULL)), I(as_all(NULL)), T(id)) < 0)
        return -1;
    return take_row(d, st, ret, err);
}

static int load_by_name(db *d, const mt_user *as, const char *namespace_id, const char *name,
                        mt_secret *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (db_start(d, SECRET_BY_NAME, &st, err, T(as_id(as)), I(as_all(as)), T(namespace_id),
                 T(name)) < 0)
        return -1;
    return take_row(d, st, ret, err);
}

// By name, or the sentence that there is none.
static int need_by_name(db *d, const mt_user *as, const char *namespace_id, const char *name,
                        mt_secret *ret, mt_err **err)
{
    mt_namespace n;
    int r = load_by_name(d, as, namespace_id, name, ret, err);

    if (r <= 0)
        return r;
    r = namespace_load(d, as, DB_NAMESPACE_BY_ID, namespace_id, &n, err);
    if (r < 0)
        return r;
    return mt_fail(err, MT_E_NOT_FOUND, "no secret '%.80s' in namespace '%.80s'", name,
                   r == 0 ? n.name : namespace_id);
}

// ---- sealing ----

static mt_str binding_of(const mt_secret *v, char out[BINDING_MAX])
{
    int n = snprintf(out, BINDING_MAX, "%s %s %s", v->id, v->namespace_id, v->name);

    return (mt_str){out, (size_t)n};
}

static size_t seal(const mt_store *s, const mt_secret *v, mt_str value,
                   unsigned char out[SEALED_MAX])
{
    char binding[BINDING_MAX];

    return store_seal(s, value, binding_of(v, binding), out);
}

static int unseal(const mt_store *s, const mt_secret *v, const void *sealed, size_t len,
                  mt_buf *ret, mt_err **err)
{
    char binding[BINDING_MAX];
    int r = store_unseal(s, sealed, len, MT_SECRET_MAX, binding_of(v, binding), ret, err);

    if (r <= 0)
        return r;
    return mt_fail(err, MT_E_IO,
                   "the value of secret '%s' in namespace '%s' cannot be read: the store was "
                   "changed from outside; put it back from a backup, or give the secret its "
                   "value again (mt secret-set %s)",
                   v->name, v->namespace_name, v->name);
}

int mt_store_secret_open(mt_store *s, const char *namespace_id, const char *name, mt_buf *ret,
                         mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    const void *sealed;
    mt_secret v;
    size_t len;
    int found;

    if (reader_get(s, &r, err) < 0 || reader_snapshot(r, err) < 0 ||
        need_by_name(r->db, NULL, namespace_id, name, &v, err) < 0 ||
        db_start(r->db, SECRET_SEALED, &st, err, T(v.id)) < 0)
        return -1;
    found = db_step(r->db, st, err);
    if (found <= 0)
        return found < 0 ? found : mt_fail(err, MT_E_INTERNAL, "secret '%s' has no value", name);
    sealed = db_blob(st, 0, &len);
    return unseal(s, &v, sealed, len, ret, err);
}

// ---- looking ----

int mt_store_secret_get(mt_store *s, const mt_user *as, const char *namespace_id, const char *name,
                        mt_secret *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;

    return reader_get(s, &r, err) < 0 ? -1 : need_by_name(r->db, as, namespace_id, name, ret, err);
}

int mt_store_secret_list(mt_store *s, const mt_user *as, const char *namespace_id, mt_page page,
                         mt_secret_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_secret_list_done) mt_secret_list l = {0};
    size_t limit = page_limit(page);
    int more;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, SECRET_LIST, &st, err, T(as_id(as)), I(as_all(as)), T(namespace_id),
                 T(page.after ? page.after : ""), I((int64_t)limit + 1)) < 0)
        return -1;
    while ((more = db_step(r->db, st, err)) > 0 && l.count < limit) {
        mt_secret *v = list_add(&l);

        if (!v)
            return mt_fail_oom(err);
        secret_row(st, v);
    }
    if (more < 0)
        return more;
    if (more > 0)
        (void)snprintf(l.next, sizeof(l.next), "%s", l.items[l.count - 1].name);
    *ret = l;
    l = (mt_secret_list){0};
    return 0;
}

void mt_secret_list_done(mt_secret_list *l)
{
    free(l->items);
    *l = (mt_secret_list){0};
}

// ---- making and changing ----

static int check_value(mt_str value, mt_err **err)
{
    if (value.len == 0)
        return mt_fail_field(err, MT_E_BAD_FIELD, "value",
                             "the value of a secret may not be empty");
    if (value.len > MT_SECRET_MAX)
        return mt_fail_field(err, MT_E_TOO_LARGE, "value",
                             "the value of a secret may have at most %d bytes", MT_SECRET_MAX);
    return 0;
}

// The writer gets what is sealed already: the value never waits in its queue.
struct create {
    const mt_secret *new; // id, namespace_id and name
    const unsigned char *sealed;
    size_t len;
    mt_secret *ret;
};

static int create_op(tx *t, void *arg, mt_err **err)
{
    struct create *c = arg;
    const mt_secret *new = c->new;
    mt_namespace n;
    int r = namespace_load(t->db, NULL, DB_NAMESPACE_BY_ID, new->namespace_id, &n, err);

    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no namespace '%.80s'", new->namespace_id);
    r = load_by_name(t->db, NULL, n.id, new->name, c->ret, err);
    if (r <= 0)
        return r < 0 ? r
                     : mt_fail(err, MT_E_ALREADY_EXISTS,
                               "secret '%s' exists already in namespace '%s': mt secret-set %s "
                               "gives it another value",
                               new->name, n.name, new->name);
    if (db_run(t->db, SECRET_ADD, err, T(new->id), T(n.id), T(new->name), I(t->now),
               B(c->sealed, c->len)) < 0 ||
        event_add(t, "secret", new->id, n.id, "created", err) < 0)
        return -1;
    return load_by_id(t->db, new->id, c->ret, err);
}

int mt_store_secret_create(mt_store *s, const char *namespace_id, const char *name, mt_str value,
                           mt_secret *ret, mt_err **err)
{
    _cleanup_free_ unsigned char *sealed = malloc(SEALED_MAX);
    mt_secret new = {0}, made;
    struct create c = {&new, sealed, 0, &made};

    if (check_name(name, "secret", err) < 0 || check_value(value, err) < 0)
        return -1;
    if (!sealed)
        return mt_fail_oom(err);
    mt_id_new(new.id);
    (void)snprintf(new.namespace_id, sizeof(new.namespace_id), "%s", namespace_id);
    (void)snprintf(new.name, sizeof(new.name), "%s", name);
    c.len = seal(s, &new, value, sealed);
    if (store_write(s, create_op, &c, err) < 0)
        return -1;
    *ret = made;
    return 0;
}

struct set {
    const char *id;
    mt_str value;
    unsigned char *sealed;
    mt_secret *ret;
};

static int set_op(tx *t, void *arg, mt_err **err)
{
    struct set *c = arg;
    size_t len;
    int r = load_by_id(t->db, c->id, c->ret, err);

    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no secret '%.80s'", c->id);
    len = seal(t->store, c->ret, c->value, c->sealed);
    if (db_run(t->db, SECRET_SET, err, T(c->id), B(c->sealed, len), I(t->now)) < 0 ||
        event_add(t, "secret", c->id, c->ret->namespace_id, "updated", err) < 0)
        return -1;
    return load_by_id(t->db, c->id, c->ret, err);
}

int mt_store_secret_set(mt_store *s, const char *id, mt_str value, mt_secret *ret, mt_err **err)
{
    _cleanup_free_ unsigned char *sealed = malloc(SEALED_MAX);
    mt_secret changed;
    struct set c = {id, value, sealed, &changed};

    if (check_value(value, err) < 0)
        return -1;
    if (!sealed)
        return mt_fail_oom(err);
    if (store_write(s, set_op, &c, err) < 0)
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

static int refuse_in_use(tx *t, const mt_secret *v, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(32768);
    _cleanup_stmt_ db_stmt *runs = NULL, *capsules = NULL;

    if (db_start(t->db, SECRET_RUNS, &runs, err, T(v->id)) < 0 ||
        list_part(t->db, runs, "mounted by live runs", &b, err) < 0 ||
        db_start(t->db, SECRET_CAPSULES, &capsules, err, T(v->namespace_id), T(v->name)) < 0 ||
        list_part(t->db, capsules, "named by capsules", &b, err) < 0)
        return -1;
    if (b.len == 0)
        return 0;
    return mt_fail(err, MT_E_CONFLICT,
                   "secret '%s' of namespace '%s' is in use: %s; force removes it all the same",
                   v->name, v->namespace_name, mt_buf_str(&b));
}

static int delete_op(tx *t, void *arg, mt_err **err)
{
    struct delete *d = arg;
    mt_secret v;
    int r = load_by_id(t->db, d->id, &v, err);

    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no secret '%.80s'", d->id);
    if (!d->force && refuse_in_use(t, &v, err) < 0)
        return -1;
    return event_add(t, "secret", v.id, v.namespace_id, "deleted", err) < 0 ||
                   db_run(t->db, SECRET_DELETE, err, T(v.id)) < 0
               ? -1
               : 0;
}

int mt_store_secret_delete(mt_store *s, const char *id, bool force, mt_err **err)
{
    struct delete d = {id, force};

    return store_write(s, delete_op, &d, err);
}
