// SPDX-License-Identifier: Apache-2.0
// What an operator has set of providers of models. A key is sealed (seal.c) with the provider's
// name and base URL as additional data, so it opens for requests to that URL alone.
#include "store/store-internal.h"

#include <stdio.h>

enum {
    SEALED_MAX = MT_PROVIDER_KEY_MAX + STORE_SEAL,
    BINDING_MAX = 16 + MT_STORE_NAME + MT_PROVIDER_URL,
    PRICE_DIGITS = 12, // before and after the point
    SEALED_COLUMN = 8,
};

// ---- rows ----

static void row(db_stmt *st, mt_provider_record *p)
{
    *p = (mt_provider_record){0};
    db_copy(st, 0, p->name);
    db_copy(st, 1, p->base_url);
    db_copy(st, 2, p->schema_mode);
    p->concurrency = db_int(st, 3);
    db_copy(st, 4, p->price_in);
    db_copy(st, 5, p->price_out);
    p->date_created = db_int(st, 6);
    p->date_updated = db_int(st, 7);
    p->has_key = !db_is_null(st, SEALED_COLUMN);
}

static mt_str binding_of(const mt_provider_record *p, char out[BINDING_MAX])
{
    // A secret's begins with an id, which "provider" is not: neither opens as the other.
    int n = snprintf(out, BINDING_MAX, "provider %s %s", p->name, p->base_url);

    return (mt_str){out, (size_t)n};
}

static int open_key(const mt_store *s, const mt_provider_record *p, db_stmt *st, mt_buf *ret,
                    mt_err **err)
{
    char binding[BINDING_MAX];
    size_t len;
    const void *sealed = db_blob(st, SEALED_COLUMN, &len);
    int r = store_unseal(s, sealed, len, MT_PROVIDER_KEY_MAX, binding_of(p, binding), ret, err);

    if (r <= 0)
        return r;
    return mt_fail(err, MT_E_IO,
                   "the key of provider '%s' cannot be read: the store was changed from outside; "
                   "put it back from a backup, or give the key again (mt provider-set %s)",
                   p->name, p->name);
}

// key: NULL, or what gets the key where there is one. 1: no row.
static int load(const mt_store *s, db *d, const char *name, mt_provider_record *ret, mt_buf *key,
                mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    mt_provider_record p = {0};
    int r;

    if (db_start(d, PROVIDER_BY_NAME, &st, err, T(name)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r < 0)
        return r;
    if (r == 0)
        (void)snprintf(p.name, sizeof(p.name), "%s", name);
    else
        row(st, &p);
    if (r > 0 && p.has_key && key && open_key(s, &p, st, key, err) < 0)
        return -1;
    *ret = p;
    return r == 0;
}

// ---- looking ----

int mt_store_provider_get(mt_store *s, const char *name, mt_provider_record *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;

    return reader_get(s, &r, err) < 0 ? -1 : load(s, r->db, name, ret, NULL, err);
}

int mt_store_provider_open(mt_store *s, const char *name, mt_provider_record *ret, mt_buf *ret_key,
                           mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;

    return reader_get(s, &r, err) < 0 ? -1 : load(s, r->db, name, ret, ret_key, err);
}

int mt_store_provider_list(mt_store *s, mt_provider_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_provider_list_done) mt_provider_list l = {0};
    int more;

    if (reader_get(s, &r, err) < 0 || db_start_(r->db, DB_PROVIDER_LIST, NULL, 0, &st, err) < 0)
        return -1;
    while ((more = db_step(r->db, st, err)) > 0) {
        mt_provider_record *p = list_add(&l);

        if (!p)
            return mt_fail_oom(err);
        row(st, p);
    }
    if (more < 0)
        return more;
    *ret = l;
    l = (mt_provider_list){0};
    return 0;
}

void mt_provider_list_done(mt_provider_list *l)
{
    free(l->items);
    *l = (mt_provider_list){0};
}

// ---- changing ----

static int check_length(const char *text, size_t room, const char *field, const char *what,
                        mt_err **err)
{
    if (!text || strlen(text) < room)
        return 0;
    return mt_fail_field(err, MT_E_BAD_FIELD, field, "%s may have at most %zu bytes", what,
                         room - 1);
}

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

static int check_price(const char *price, const char *field, mt_err **err)
{
    size_t whole = price ? digits(price) : 0;
    const char *rest = price ? price + whole : NULL;
    size_t fraction = rest && *rest == '.' ? digits(rest + 1) : 0;
    bool good;

    if (!price || !*price)
        return 0;
    good = whole >= 1 && whole <= PRICE_DIGITS && fraction <= PRICE_DIGITS &&
           (!*rest || (fraction >= 1 && !rest[1 + fraction]));
    return good ? 0
                : mt_fail_field(err, MT_E_BAD_FIELD, field,
                                "'%.40s' is no price of a million tokens: a decimal such as 0.28",
                                price);
}

static int check_key(mt_str key, mt_err **err)
{
    if (key.len > MT_PROVIDER_KEY_MAX)
        return mt_fail_field(err, MT_E_TOO_LARGE, "key",
                             "the key of a provider may have at most %d bytes",
                             MT_PROVIDER_KEY_MAX);
    // It becomes a header of each request.
    for (size_t i = 0; i < key.len; i++)
        if (key.data[i] <= ' ' || key.data[i] > '~')
            return mt_fail_field(err, MT_E_BAD_FIELD, "key",
                                 "the key of a provider is one line of printable ASCII without "
                                 "blanks; its character %zu is none",
                                 i + 1);
    return 0;
}

static int check_change(const char *name, const mt_provider_change *c, mt_err **err)
{
    if (check_name(name, "provider", err) < 0 ||
        check_length(c->base_url, MT_PROVIDER_URL, "baseUrl", "a base URL", err) < 0 ||
        check_length(c->schema_mode, MT_STORE_WORD, "schemaMode", "a schema mode", err) < 0 ||
        check_price(c->price_in, "pricePerMillionTokensIn", err) < 0 ||
        check_price(c->price_out, "pricePerMillionTokensOut", err) < 0)
        return -1;
    return check_key(c->key, err);
}

struct set {
    const char *name;
    const mt_provider_change *change;
    unsigned char *sealed;
    mt_provider_record *ret;
};

#define MERGE(into, from)                                       \
    do {                                                        \
        if (from)                                               \
            (void)snprintf((into), sizeof(into), "%s", (from)); \
    } while (0)

static void merge(mt_provider_record *p, const mt_provider_change *c)
{
    MERGE(p->base_url, c->base_url);
    MERGE(p->schema_mode, c->schema_mode);
    MERGE(p->price_in, c->price_in);
    MERGE(p->price_out, c->price_out);
    if (c->concurrency >= 0)
        p->concurrency = c->concurrency;
    if (c->key.data)
        p->has_key = c->key.len > 0;
}

static bool is_empty(const mt_provider_record *p)
{
    return !p->base_url[0] && !p->schema_mode[0] && !p->price_in[0] && !p->price_out[0] &&
           p->concurrency == 0 && !p->has_key;
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static int put(tx *t, const mt_provider_record *p, const unsigned char *sealed, size_t len,
               mt_err **err)
{
    return db_run(t->db, PROVIDER_PUT, err, T(p->name), T(or_null(p->base_url)),
                  T(or_null(p->schema_mode)), p->concurrency ? I(p->concurrency) : T(NULL),
                  T(or_null(p->price_in)), T(or_null(p->price_out)),
                  B(p->has_key ? sealed : NULL, len), I(t->now));
}

// Of which nothing is set any more.
static int forget(tx *t, const mt_provider_record *p, bool was_set, mt_provider_record *ret,
                  mt_err **err)
{
    *ret = (mt_provider_record){0};
    memcpy(ret->name, p->name, sizeof(ret->name));
    if (!was_set)
        return 0;
    if (db_run(t->db, PROVIDER_DELETE, err, T(p->name)) < 0)
        return -1;
    return event_add(t, "provider", p->name, "", "deleted", err);
}

// A key that stays is sealed again, as it may be for another base URL from now on. With a new one
// the old one is not looked at: so one that cannot be read is replaced.
static int set_op(tx *t, void *arg, mt_err **err)
{
    _cleanup_buf_ mt_buf old = MT_BUF_SECRET_INIT(MT_PROVIDER_KEY_MAX);
    struct set *c = arg;
    mt_provider_record p;
    char binding[BINDING_MAX];
    mt_str key = c->change->key;
    size_t len = 0;
    int r = load(t->store, t->db, c->name, &p, key.data ? NULL : &old, err);

    if (r < 0)
        return r;
    t->keeps_identities = true;
    merge(&p, c->change);
    if (!key.data)
        key = (mt_str){mt_buf_str(&old), old.len};
    if (p.has_key)
        len = store_seal(t->store, key, binding_of(&p, binding), c->sealed);
    if (is_empty(&p))
        return forget(t, &p, r == 0, c->ret, err);
    if (put(t, &p, c->sealed, len, err) < 0 ||
        event_add(t, "provider", p.name, "", r == 1 ? "created" : "updated", err) < 0)
        return -1;
    return load(t->store, t->db, p.name, c->ret, NULL, err);
}

int mt_store_provider_set(mt_store *s, const char *name, const mt_provider_change *change,
                          mt_provider_record *ret, mt_err **err)
{
    unsigned char sealed[SEALED_MAX];
    mt_provider_record changed;
    struct set c = {name, change, sealed, &changed};

    if (check_change(name, change, err) < 0 || store_write(s, set_op, &c, err) < 0)
        return -1;
    *ret = changed;
    return 0;
}

static int delete_op(tx *t, void *arg, mt_err **err)
{
    const char *name = arg;
    int r = db_run(t->db, PROVIDER_DELETE, err, T(name));

    t->keeps_identities = true;
    if (r <= 0)
        return r < 0 ? r : 1;
    return event_add(t, "provider", name, "", "deleted", err);
}

int mt_store_provider_delete(mt_store *s, const char *name, mt_err **err)
{
    _cleanup_free_ char *copy = strdup(name);

    return copy ? store_write(s, delete_op, copy, err) : mt_fail_oom(err);
}
