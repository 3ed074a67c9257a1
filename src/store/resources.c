// SPDX-License-Identifier: Apache-2.0
#include "store/store-internal.h"

#include <sodium.h>
#include <stdio.h>

static const char *const KINDS[MT_RESOURCE_KINDS] = {
    [MT_RESOURCE_AGENT] = "agent",     [MT_RESOURCE_APP] = "app",
    [MT_RESOURCE_CAPSULE] = "capsule", [MT_RESOURCE_INTERACTION] = "interaction",
    [MT_RESOURCE_JSON] = "json",       [MT_RESOURCE_PROMPT] = "prompt",
};

const char *mt_resource_kind_name(mt_resource_kind kind)
{
    return (size_t)kind < MT_ARRAY_SIZE(KINDS) ? KINDS[kind] : "?";
}

static mt_resource_kind kind_of(const char *name)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(KINDS); i++) {
        if (strcmp(KINDS[i], name) == 0)
            return (mt_resource_kind)i;
    }
    return MT_RESOURCE_KINDS; // the table's CHECK knows no other
}

void mt_deploy_result_done(mt_deploy_result *r)
{
    free(r->created.items);
    free(r->updated.items);
    free(r->unchanged.items);
    free(r->removed.items);
    *r = (mt_deploy_result){0};
}

// ---- deploy ----

enum { DIGEST = 32 };

struct item_ref {
    const mt_deploy_item *item;
};

struct deploy {
    const char *namespace_id;
    struct item_ref *items; // sorted by kind and name
    size_t count;
    bool prune, dry_run;
    mt_deploy_result *ret;
    mt_namespace ns;
};

static int compare_keys(mt_resource_kind a, const char *a_name, mt_resource_kind b,
                        const char *b_name)
{
    return a != b ? (a < b ? -1 : 1) : strcmp(a_name, b_name);
}

static int compare_items(const void *a, const void *b)
{
    const mt_deploy_item *x = ((const struct item_ref *)a)->item;
    const mt_deploy_item *y = ((const struct item_ref *)b)->item;

    return compare_keys(x->kind, x->name, y->kind, y->name);
}

static void hash_part(crypto_generichash_state *h, const void *data, size_t len)
{
    uint64_t size = len;

    (void)crypto_generichash_update(h, (const unsigned char *)&size, sizeof(size));
    (void)crypto_generichash_update(h, data, len);
}

// Of what a version is: its definition and its sources' texts. Where the files lay is not part of
// it, nor is the kind or name, under which it is found.
static void digest_of(const mt_deploy_item *item, unsigned char out[DIGEST])
{
    crypto_generichash_state h;

    (void)crypto_generichash_init(&h, NULL, 0, DIGEST);
    hash_part(&h, item->definition, strlen(item->definition));
    for (size_t i = 0; i < item->source_count; i++)
        hash_part(&h, item->sources[i].text, item->sources[i].len);
    (void)crypto_generichash_final(&h, out, DIGEST);
}

static int note(mt_deploy_list *l, mt_resource_kind kind, const char *name, int64_t version,
                mt_err **err)
{
    mt_deploy_entry *e = list_add(l);

    if (!e)
        return mt_fail_oom(err);
    e->kind = kind;
    e->version = version;
    (void)snprintf(e->name, sizeof(e->name), "%s", name);
    return 0;
}

// What a capsule names must be there: make is the command of mt that makes it.
static int check_named(tx *t, const struct deploy *d, const mt_deploy_item *item, db_id by_name,
                       const char *name, const char *what, const char *make, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start_id(t->db, by_name, &st, err, T(""), I(1), T(d->ns.id), T(name)) < 0)
        return -1;
    r = db_step(t->db, st, err);
    if (r != 0)
        return r < 0 ? r : 0;
    return mt_fail(err, MT_E_NOT_FOUND,
                   "capsule '%s' names %s '%s', which is not in namespace '%s': mt %s %s",
                   item->name, what, name, d->ns.name, make, name);
}

static int check_mounts(tx *t, const struct deploy *d, const mt_deploy_item *item, mt_err **err)
{
    for (size_t i = 0; i < item->vfs_count; i++) {
        if (check_named(t, d, item, DB_VFS_BY_NAME, item->vfs_names[i], "file system", "vfs-create",
                        err) < 0)
            return -1;
    }
    for (size_t i = 0; i < item->secret_count; i++) {
        if (check_named(t, d, item, DB_SECRET_BY_NAME, item->secret_names[i], "secret",
                        "secret-create", err) < 0)
            return -1;
    }
    return 0;
}

static int name_mounts(tx *t, const mt_deploy_item *item, const char *id, mt_err **err)
{
    if (db_run(t->db, RESOURCE_VFS_CLEAR, err, T(id)) < 0 ||
        db_run(t->db, RESOURCE_SECRETS_CLEAR, err, T(id)) < 0)
        return -1;
    for (size_t i = 0; i < item->vfs_count; i++) {
        if (db_run(t->db, RESOURCE_VFS_ADD, err, T(id), T(item->vfs_names[i])) < 0)
            return -1;
    }
    for (size_t i = 0; i < item->secret_count; i++) {
        if (db_run(t->db, RESOURCE_SECRETS_ADD, err, T(id), T(item->secret_names[i])) < 0)
            return -1;
    }
    return 0;
}

static int add_version(tx *t, const mt_deploy_item *item, const char *id, int64_t version,
                       const unsigned char *digest, mt_err **err)
{
    if (db_run(t->db, VERSION_ADD, err, T(id), I(version), B(digest, DIGEST), T(item->definition),
               I(t->now)) < 0)
        return -1;
    for (size_t i = 0; i < item->source_count; i++) {
        const mt_source *source = &item->sources[i];

        if (db_run(t->db, SOURCE_ADD, err, T(id), I(version), I((int64_t)i), T(source->path),
                   B(source->len ? source->text : "", source->len)) < 0)
            return -1;
    }
    return name_mounts(t, item, id, err);
}

struct state {
    char id[MT_ID_TEXT];
    int64_t newest;
    bool known, removed, same;
};

static int load_state(tx *t, const struct deploy *d, const mt_deploy_item *item,
                      const unsigned char *digest, struct state *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    const void *stored;
    size_t len;
    int r;

    if (db_start(t->db, RESOURCE_STATE, &st, err, T(d->ns.id), T(KINDS[item->kind]),
                 T(item->name)) < 0)
        return -1;
    r = db_step(t->db, st, err);
    if (r <= 0)
        return r;
    db_copy(st, 0, ret->id);
    ret->newest = db_int(st, 1);
    ret->removed = db_int(st, 2) != 0;
    stored = db_blob(st, 3, &len);
    ret->same = len == DIGEST && memcmp(stored, digest, DIGEST) == 0;
    ret->known = true;
    return 0;
}

static int add_resource(tx *t, const struct deploy *d, const mt_deploy_item *item,
                        struct state *state, mt_err **err)
{
    mt_id_new(state->id);
    state->newest = 1;
    return db_run(t->db, RESOURCE_ADD, err, T(state->id), T(d->ns.id), T(KINDS[item->kind]),
                  T(item->name), I(t->now)) < 0
               ? -1
               : 0;
}

static int deploy_item(tx *t, struct deploy *d, const mt_deploy_item *item, mt_err **err)
{
    unsigned char digest[DIGEST];
    struct state state = {0};
    bool fresh;

    digest_of(item, digest);
    if (check_mounts(t, d, item, err) < 0 || load_state(t, d, item, digest, &state, err) < 0)
        return -1;
    if (state.known && state.same && !state.removed)
        return note(&d->ret->unchanged, item->kind, item->name, state.newest, err);
    fresh = !state.known || state.removed;
    if (!state.known) {
        if (add_resource(t, d, item, &state, err) < 0)
            return -1;
    } else {
        state.newest++;
        if (db_run(t->db, RESOURCE_NEWEST, err, T(state.id), I(state.newest), I(t->now)) < 0)
            return -1;
    }
    if (add_version(t, item, state.id, state.newest, digest, err) < 0 ||
        event_add(t, KINDS[item->kind], state.id, d->ns.id, fresh ? "created" : "updated", err) < 0)
        return -1;
    return note(fresh ? &d->ret->created : &d->ret->updated, item->kind, item->name, state.newest,
                err);
}

static bool in_items(const struct deploy *d, mt_resource_kind kind, const char *name)
{
    mt_deploy_item key = {.kind = kind, .name = name};
    struct item_ref ref = {&key};

    return bsearch(&ref, d->items, d->count, sizeof(*d->items), compare_items) != NULL;
}

struct doomed {
    char id[MT_ID_TEXT];
    mt_resource_kind kind;
};
typedef struct doomed_list {
    struct doomed *items;
    size_t count;
} doomed_list;

static void doomed_list_done(doomed_list *l)
{
    free(l->items);
}

// First found, then removed: a table is not changed while it is read.
static int find_doomed(tx *t, struct deploy *d, doomed_list *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start(t->db, RESOURCE_ALL, &st, err, T(d->ns.id)) < 0)
        return -1;
    while ((r = db_step(t->db, st, err)) > 0) {
        mt_resource_kind kind = kind_of(db_text(st, 1));
        struct doomed *one;

        if (in_items(d, kind, db_text(st, 2)))
            continue;
        one = list_add(ret);
        if (!one)
            return mt_fail_oom(err);
        db_copy(st, 0, one->id);
        one->kind = kind;
        if (note(&d->ret->removed, kind, db_text(st, 2), db_int(st, 3), err) < 0)
            return -1;
    }
    return r;
}

static int prune(tx *t, struct deploy *d, mt_err **err)
{
    _cleanup_(doomed_list_done) doomed_list l = {0};

    if (find_doomed(t, d, &l, err) < 0)
        return -1;
    for (size_t i = 0; i < l.count; i++) {
        if (db_run(t->db, RESOURCE_REMOVE, err, T(l.items[i].id), I(t->now)) < 0 ||
            event_add(t, KINDS[l.items[i].kind], l.items[i].id, d->ns.id, "deleted", err) < 0)
            return -1;
    }
    return 0;
}

static int deploy_op(tx *t, void *arg, mt_err **err)
{
    struct deploy *d = arg;
    int r;

    mt_deploy_result_done(d->ret);
    r = namespace_load(t->db, NULL, DB_NAMESPACE_BY_ID, d->namespace_id, &d->ns, err);
    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no namespace '%.80s'", d->namespace_id);
    for (size_t i = 0; i < d->count; i++) {
        if (deploy_item(t, d, d->items[i].item, err) < 0)
            return -1;
    }
    if (d->prune && prune(t, d, err) < 0)
        return -1;
    t->discard = d->dry_run;
    return 0;
}

static int sort_items(struct deploy *d, const mt_deploy_item *items, mt_err **err)
{
    for (size_t i = 0; i < d->count; i++) {
        if ((size_t)items[i].kind >= MT_RESOURCE_KINDS)
            return mt_fail(err, MT_E_INTERNAL, "no such kind of resource");
        if (check_name(items[i].name, KINDS[items[i].kind], err) < 0)
            return -1;
        d->items[i].item = &items[i];
    }
    if (d->count > 1)
        qsort(d->items, d->count, sizeof(*d->items), compare_items);
    for (size_t i = 1; i < d->count; i++) {
        if (compare_items(&d->items[i - 1], &d->items[i]) == 0)
            return mt_fail(err, MT_E_BAD_REQUEST, "%s '%s' is there twice",
                           KINDS[d->items[i].item->kind], d->items[i].item->name);
    }
    return 0;
}

int mt_store_deploy(mt_store *s, const char *namespace_id, const mt_deploy_item *items,
                    size_t count, bool prune_others, bool dry_run, mt_deploy_result *ret,
                    mt_err **err)
{
    _cleanup_(mt_deploy_result_done) mt_deploy_result result = {0};
    struct deploy d = {.namespace_id = namespace_id,
                       .items = calloc(count + 1, sizeof(*d.items)),
                       .count = count,
                       .prune = prune_others,
                       .dry_run = dry_run,
                       .ret = &result};
    int r;

    if (!d.items)
        return mt_fail_oom(err);
    r = sort_items(&d, items, err);
    if (r == 0)
        r = store_write(s, deploy_op, &d, err);
    free(d.items);
    if (r < 0)
        return r;
    *ret = result;
    result = (mt_deploy_result){0};
    return 0;
}

// ---- reading ----

void mt_resource_done(mt_resource *r)
{
    for (size_t i = 0; i < r->source_count; i++) {
        free(r->sources[i].path);
        free(r->sources[i].text);
    }
    free(r->sources);
    free(r->versions);
    free(r->definition);
    *r = (mt_resource){0};
}

void mt_resource_list_done(mt_resource_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        mt_resource_done(&l->items[i]);
    free(l->items);
    *l = (mt_resource_list){0};
}

static int resource_row(db_stmt *st, mt_resource *r, mt_err **err)
{
    const void *digest;
    size_t len;

    db_copy(st, 0, r->id);
    r->kind = kind_of(db_text(st, 1));
    db_copy(st, 2, r->name);
    r->newest = db_int(st, 3);
    r->date_created = db_int(st, 4);
    r->date_updated = db_int(st, 5);
    r->version = db_int(st, 6);
    digest = db_blob(st, 7, &len);
    mt_hex(digest, MT_MIN(len, (size_t)DIGEST), r->digest);
    if (!db_is_null(st, 8)) {
        r->definition = db_dup(st, 8);
        if (!r->definition)
            return mt_fail_oom(err);
    }
    return 0;
}

static int load_versions(db *d, mt_resource *r, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int more;

    if (db_start(d, VERSION_LIST, &st, err, T(r->id)) < 0)
        return -1;
    while ((more = db_step(d, st, err)) > 0) {
        mt_version *v = list_grow((void **)&r->versions, &r->version_count, sizeof(*v));

        if (!v)
            return mt_fail_oom(err);
        v->version = db_int(st, 0);
        v->date_created = db_int(st, 1);
    }
    return more;
}

static int load_sources(db *d, mt_resource *r, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int more;

    if (db_start(d, SOURCE_LIST, &st, err, T(r->id), I(r->version)) < 0)
        return -1;
    while ((more = db_step(d, st, err)) > 0) {
        mt_source_text *source = list_grow((void **)&r->sources, &r->source_count, sizeof(*source));
        const void *text;

        if (!source)
            return mt_fail_oom(err);
        text = db_blob(st, 1, &source->len);
        source->path = db_dup(st, 0);
        source->text = malloc(source->len + 1);
        if (!source->path || !source->text)
            return mt_fail_oom(err);
        memcpy(source->text, text, source->len);
        source->text[source->len] = '\0';
    }
    return more;
}

static int not_found(db *d, const char *namespace_id, mt_resource_kind kind, const char *name,
                     int64_t version, mt_err **err)
{
    mt_namespace n;
    int r = namespace_load(d, NULL, DB_NAMESPACE_BY_ID, namespace_id, &n, err);
    const char *in = r == 0 ? n.name : namespace_id;

    if (r < 0)
        return r;
    if (version > 0)
        return mt_fail(err, MT_E_NOT_FOUND, "no version %lld of %s '%.80s' in namespace '%.80s'",
                       (long long)version, mt_resource_kind_name(kind), name, in);
    return mt_fail(err, MT_E_NOT_FOUND, "no %s '%.80s' in namespace '%.80s'",
                   mt_resource_kind_name(kind), name, in);
}

// How: DB_RESOURCE_GET, or DB_RESOURCE_VERSION.
static int load_resource(db *d, db_id how, const char *namespace_id, mt_resource_kind kind,
                         const char *name, int64_t version, mt_resource *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start_id(d, how, &st, err, T(namespace_id), T(mt_resource_kind_name(kind)), T(name),
                    I(version)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : 1;
    return resource_row(st, ret, err);
}

static int get_resource(mt_store *s, db_id how, const char *namespace_id, mt_resource_kind kind,
                        const char *name, int64_t version, mt_resource *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_(mt_resource_done) mt_resource found = {0};
    int rc;

    if (reader_get(s, &r, err) < 0 || reader_snapshot(r, err) < 0)
        return -1;
    rc = load_resource(r->db, how, namespace_id, kind, name, version, &found, err);
    if (rc > 0 && version > 0) // tell a missing version from a missing resource
        rc = load_resource(r->db, DB_RESOURCE_GET, namespace_id, kind, name, 0, &found, err) > 0
                 ? 1
                 : 2;
    if (rc > 0)
        return not_found(r->db, namespace_id, kind, name, rc == 2 ? version : 0, err);
    if (rc < 0 || load_versions(r->db, &found, err) < 0 || load_sources(r->db, &found, err) < 0)
        return -1;
    *ret = found;
    found = (mt_resource){0};
    return 0;
}

int mt_store_resource_get(mt_store *s, const char *namespace_id, mt_resource_kind kind,
                          const char *name, int64_t version, mt_resource *ret, mt_err **err)
{
    return get_resource(s, DB_RESOURCE_GET, namespace_id, kind, name, version, ret, err);
}

int mt_store_resource_version(mt_store *s, const char *namespace_id, mt_resource_kind kind,
                              const char *name, int64_t version, mt_resource *ret, mt_err **err)
{
    return get_resource(s, DB_RESOURCE_VERSION, namespace_id, kind, name, version, ret, err);
}

int mt_store_resource_list(mt_store *s, const char *namespace_id, mt_resource_kind kind,
                           mt_page page, mt_resource_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_resource_list_done) mt_resource_list l = {0};
    size_t limit = page_limit(page);
    int more;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, RESOURCE_LIST, &st, err, T(namespace_id), T(mt_resource_kind_name(kind)),
                 T(page.after ? page.after : ""), I((int64_t)limit + 1)) < 0)
        return -1;
    while ((more = db_step(r->db, st, err)) > 0 && l.count < limit) {
        mt_resource *one = list_add(&l);

        if (!one)
            return mt_fail_oom(err);
        if (resource_row(st, one, err) < 0)
            return -1;
    }
    if (more < 0)
        return more;
    if (more > 0)
        (void)snprintf(l.next, sizeof(l.next), "%s", l.items[l.count - 1].name);
    *ret = l;
    l = (mt_resource_list){0};
    return 0;
}
