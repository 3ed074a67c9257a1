// SPDX-License-Identifier: Apache-2.0
#include "store/store-internal.h"

#include <stdio.h>

const char *mt_role_name(mt_role role)
{
    return role == MT_ROLE_ADMIN ? "admin" : "user";
}

void user_row(db_stmt *st, mt_user *u)
{
    *u = (mt_user){0};
    db_copy(st, 0, u->id);
    db_copy(st, 1, u->name);
    u->role = mt_streq(db_text(st, 2), "admin") ? MT_ROLE_ADMIN : MT_ROLE_USER;
    u->uid = db_int(st, 3);
    db_copy(st, 4, u->default_namespace_id);
    db_copy(st, 5, u->default_namespace);
    u->date_created = db_int(st, 6);
    db_copy(st, 7, u->run_id);
    u->stopped = db_int(st, 8) != 0;
}

int user_load(db *d, db_id by, db_value key, mt_user *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start_(d, by, &key, 1, &st, err) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : 1;
    user_row(st, ret);
    return 0;
}

// Names of people follow their login names, which know more letters than names of things.
static bool is_person(const char *name)
{
    size_t n = name ? strlen(name) : 0;

    if (n == 0 || n >= MT_STORE_NAME || strchr(".-+@", name[0]))
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+@") == n;
}

static int read_user(mt_store *s, db_id by, db_value key, const char *asked, mt_user *ret,
                     mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = user_load(r->db, by, key, ret, err);
    return rc > 0 ? mt_fail(err, MT_E_NOT_FOUND, "no user '%.80s'", asked) : rc;
}

int mt_store_user_get(mt_store *s, const char *id, mt_user *ret, mt_err **err)
{
    return read_user(s, DB_USER_BY_ID, T(id), id, ret, err);
}

int mt_store_user_by_name(mt_store *s, const char *name, mt_user *ret, mt_err **err)
{
    return read_user(s, DB_USER_BY_NAME, T(name), name, ret, err);
}

static int collect_users(db *d, db_stmt *st, size_t limit, mt_user_list *ret, mt_err **err)
{
    _cleanup_(mt_user_list_done) mt_user_list l = {0};
    int more;

    while ((more = db_step(d, st, err)) > 0 && l.count < limit) {
        mt_user *u = list_add(&l);

        if (!u)
            return mt_fail_oom(err);
        user_row(st, u);
    }
    if (more < 0)
        return more;
    if (more > 0)
        (void)snprintf(l.next, sizeof(l.next), "%s", l.items[l.count - 1].name);
    *ret = l;
    l = (mt_user_list){0};
    return 0;
}

int mt_store_user_list(mt_store *s, mt_page page, mt_user_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    size_t limit = page_limit(page);

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, USER_LIST, &st, err, T(page.after ? page.after : ""),
                 I((int64_t)limit + 1)) < 0)
        return -1;
    return collect_users(r->db, st, limit, ret, err);
}

int mt_store_member_list(mt_store *s, const char *namespace_id, mt_page page, mt_user_list *ret,
                         mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    size_t limit = page_limit(page);

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, MEMBER_LIST, &st, err, T(page.after ? page.after : ""),
                 I((int64_t)limit + 1), T(namespace_id)) < 0)
        return -1;
    return collect_users(r->db, st, limit, ret, err);
}

void mt_user_list_done(mt_user_list *l)
{
    free(l->items);
    *l = (mt_user_list){0};
}

// uid -1: bound to none. run_id "": for good.
static int add_user(tx *t, const char *name, mt_role role, int64_t uid, const char *run_id,
                    mt_user *ret, mt_err **err)
{
    char id[MT_ID_TEXT];

    mt_id_new(id);
    if (db_run(t->db, USER_ADD, err, T(id), T(name), T(mt_role_name(role)),
               uid < 0 ? T(NULL) : I(uid), I(t->now), T(run_id)) < 0 ||
        event_add(t, "user", id, "", "created", err) < 0)
        return -1;
    return user_load(t->db, DB_USER_BY_ID, T(id), ret, err);
}

struct create {
    const char *name;
    mt_role role;
    const char *run_id;
    mt_user *ret;
};

static int create_op(tx *t, void *arg, mt_err **err)
{
    struct create *c = arg;
    int r = user_load(t->db, DB_USER_BY_NAME, T(c->name), c->ret, err);

    if (r <= 0)
        return r < 0 ? r : mt_fail(err, MT_E_ALREADY_EXISTS, "user '%s' exists already", c->name);
    if (run_must_live(t->db, c->run_id, err) < 0)
        return -1;
    return add_user(t, c->name, c->role, -1, c->run_id, c->ret, err);
}

int mt_store_user_create(mt_store *s, const char *name, mt_role role, mt_user *ret, mt_err **err)
{
    return mt_store_user_create_in_run(s, name, role, "", ret, err);
}

int mt_store_user_create_in_run(mt_store *s, const char *name, mt_role role, const char *run_id,
                                mt_user *ret, mt_err **err)
{
    mt_user made;
    struct create c = {name, role, run_id, &made};

    if (!is_person(name))
        return mt_fail_field(err, MT_E_BAD_FIELD, "name",
                             "user name '%.80s' is not allowed: 1 to 63 of letters, digits . _ - + "
                             "@, the first a letter, digit or _",
                             name ? name : "");
    if (store_write(s, create_op, &c, err) < 0)
        return -1;
    *ret = made;
    return 0;
}

// ---- people of the host ----

struct login {
    const char *name; // a person's name
    int64_t uid;
    mt_user *ret;
};

static void name_with_uid(const struct login *l, char out[MT_STORE_NAME])
{
    (void)snprintf(out, MT_STORE_NAME, "%.40s.%lld", l->name, (long long)l->uid);
}

// The record of this uid is this person's when it bears his name. Otherwise the host has given the
// uid to somebody else since, who must not find himself in another's place.
static int same_person(const struct login *l, const mt_user *u, mt_err **err)
{
    char other[MT_STORE_NAME];

    name_with_uid(l, other);
    if (l->uid == 0 || mt_streq(u->name, l->name) || mt_streq(u->name, other))
        return 0;
    return mt_fail(
        err, MT_E_FORBIDDEN,
        "uid %lld of this host is known here as user '%s', not as '%s': an administrator "
        "removes that user (mt user-delete) if the account was renamed",
        (long long)l->uid, u->name, l->name);
}

static int bind_by_name(tx *t, const struct login *l, const char *name, mt_err **err)
{
    int r = user_load(t->db, DB_USER_BY_NAME, T(name), l->ret, err);

    if (r < 0)
        return r;
    if (r > 0)
        return add_user(t, name, MT_ROLE_USER, l->uid, "", l->ret, err);
    if (l->ret->uid >= 0)
        return 1; // bound to another uid
    if (db_run(t->db, USER_BIND, err, T(l->ret->id), I(l->uid)) < 0 ||
        event_add(t, "user", l->ret->id, "", "updated", err) < 0)
        return -1;
    l->ret->uid = l->uid;
    return 0;
}

static int login_op(tx *t, void *arg, mt_err **err)
{
    struct login *l = arg;
    char other[MT_STORE_NAME];
    int r = user_load(t->db, DB_USER_BY_UID, I(l->uid), l->ret, err);

    if (r <= 0)
        return r < 0 ? r : same_person(l, l->ret, err);
    r = bind_by_name(t, l, l->name, err);
    if (r <= 0)
        return r;
    name_with_uid(l, other);
    r = bind_by_name(t, l, other, err);
    return r <= 0 ? r
                  : mt_fail(err, MT_E_FORBIDDEN, "the user names '%s' and '%s' belong to others",
                            l->name, other);
}

int mt_store_user_by_login(mt_store *s, const char *login, int64_t uid, mt_user *ret, mt_err **err)
{
    char nameless[MT_STORE_NAME];
    mt_user found;
    struct login l = {login, uid, &found};
    reader *r = NULL;
    int rc;

    if (!is_person(login)) {
        (void)snprintf(nameless, sizeof(nameless), "uid-%lld", (long long)uid);
        l.name = nameless;
    }
    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = user_load(r->db, DB_USER_BY_UID, I(uid), &found, err);
    reader_put(r);
    if (rc == 0)
        rc = same_person(&l, &found, err);
    else if (rc > 0)
        rc = store_write(s, login_op, &l, err);
    if (rc < 0)
        return rc;
    if (found.stopped)
        return mt_fail(err, MT_E_UNAUTHENTICATED,
                       "user '%s' was made inside capsule run '%s' and ended with it: an "
                       "administrator removes him (mt user-delete)",
                       found.name, found.run_id);
    *ret = found;
    return 0;
}

// ---- removal, default namespace ----

static int refuse_while(tx *t, db_id what, const char *id, const char *sentence, const char *name,
                        mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);
    _cleanup_stmt_ db_stmt *st = NULL;
    int n;

    if (db_start_id(t->db, what, &st, err, T(id)) < 0)
        return -1;
    n = list_names(t->db, st, &b, err);
    return n > 0 ? mt_fail(err, MT_E_CONFLICT, "user '%s' %s: %s", name, sentence, mt_buf_str(&b))
                 : n;
}

static int delete_op(tx *t, void *arg, mt_err **err)
{
    const char *id = arg;
    mt_user u;
    int r = user_load(t->db, DB_USER_BY_ID, T(id), &u, err);

    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no user '%.80s'", id);
    if (u.uid == 0)
        return mt_fail(err, MT_E_CONFLICT, "user '%s' is the server's own and stays", u.name);
    if (refuse_while(t, DB_USER_NAMESPACES, id, "owns namespaces", u.name, err) < 0 ||
        refuse_while(t, DB_USER_RUNS, id, "has live runs", u.name, err) < 0 ||
        refuse_while(t, DB_USER_APP_RUNS, id, "has live app runs", u.name, err) < 0 ||
        refuse_while(t, DB_USER_INTERACTION_RUNS, id, "has live interaction runs", u.name, err) < 0)
        return -1;
    return event_add(t, "user", u.id, "", "deleted", err) < 0 ||
                   db_run(t->db, USER_DELETE, err, T(id)) < 0
               ? -1
               : 0;
}

int mt_store_user_delete(mt_store *s, const char *id, mt_err **err)
{
    return store_write(s, delete_op, (void *)(uintptr_t)id, err);
}

struct set_default {
    const char *user_id, *namespace_id;
    mt_user *ret;
};

static int default_op(tx *t, void *arg, mt_err **err)
{
    struct set_default *d = arg;
    int changed = db_run(t->db, USER_DEFAULT, err, T(d->user_id),
                         T(d->namespace_id[0] ? d->namespace_id : NULL));

    if (changed < 0)
        return -1;
    if (changed == 0)
        return mt_fail(err, MT_E_NOT_FOUND, "no user '%.80s'", d->user_id);
    if (event_add(t, "user", d->user_id, "", "updated", err) < 0)
        return -1;
    return user_load(t->db, DB_USER_BY_ID, T(d->user_id), d->ret, err);
}

int mt_store_user_set_default(mt_store *s, const char *user_id, const char *namespace_id,
                              mt_user *ret, mt_err **err)
{
    mt_user now;
    struct set_default d = {user_id, namespace_id ? namespace_id : "", &now};

    if (store_write(s, default_op, &d, err) < 0)
        return -1;
    *ret = now;
    return 0;
}
