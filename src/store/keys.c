// SPDX-License-Identifier: Apache-2.0
// API keys: 256 random bits, of which only a keyed BLAKE2b hash is stored. A slow hash would add
// nothing against that much randomness, and the key of the hash is not in the database.
#include "base/utf8.h"
#include "store/store-internal.h"

#include <sodium.h>
#include <stdio.h>

enum { SECRET = 32, HASH = STORE_HASH, USED_RESOLUTION_US = 60 * 1000000 };
_Static_assert(MT_STORE_TOKEN == 3 + 2 * SECRET + 1, "size in store.h");

static void hash_token(const mt_store *s, const char *token, unsigned char hash[HASH])
{
    (void)crypto_generichash(hash, HASH, (const unsigned char *)token, MT_STORE_TOKEN - 1,
                             s->token_key, crypto_generichash_KEYBYTES);
}

static int check_label(const char *name, mt_err **err)
{
    size_t n = name ? strlen(name) : 0;
    bool good = n > 0 && n < MT_STORE_LABEL - 3 && mt_utf8_valid(name, n);

    for (size_t i = 0; good && i < n; i++)
        good = (unsigned char)name[i] >= 0x20 && name[i] != 0x7f;
    return good ? 0
                : mt_fail_field(err, MT_E_BAD_FIELD, "name",
                                "a key needs a name of 1 to 100 bytes without control characters");
}

static void key_row(db_stmt *st, mt_key *k)
{
    *k = (mt_key){0};
    db_copy(st, 0, k->id);
    db_copy(st, 1, k->user_id);
    db_copy(st, 2, k->user);
    db_copy(st, 3, k->name);
    k->date_created = db_int(st, 4);
    k->date_expires = db_int(st, 5);
    k->date_last_used = db_int(st, 6);
    db_copy(st, 7, k->run_id);
}

static int key_load(db *d, const char *id, mt_key *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start(d, KEY_BY_ID, &st, err, T(id)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no key '%.80s'", id);
    key_row(st, ret);
    return 0;
}

struct create {
    const char *user_id, *name;
    int64_t expires;
    const char *run_id;
    const unsigned char *hash;
    mt_key *ret;
};

static int create_op(tx *t, void *arg, mt_err **err)
{
    struct create *c = arg;
    char id[MT_ID_TEXT];

    mt_id_new(id);
    if (run_must_live(t->db, c->run_id, err) < 0 ||
        db_run(t->db, KEY_ADD, err, T(id), T(c->user_id), T(c->name), B(c->hash, HASH), I(t->now),
               I(c->expires), T(c->run_id)) < 0 ||
        event_add(t, "key", id, "", "created", err) < 0)
        return -1;
    return key_load(t->db, id, c->ret, err);
}

int mt_store_key_create(mt_store *s, const char *user_id, const char *name, int64_t date_expires,
                        mt_key *ret, char token[MT_STORE_TOKEN], mt_err **err)
{
    return mt_store_key_create_in_run(s, user_id, name, date_expires, "", ret, token, err);
}

int mt_store_key_create_in_run(mt_store *s, const char *user_id, const char *name,
                               int64_t date_expires, const char *run_id, mt_key *ret,
                               char token[MT_STORE_TOKEN], mt_err **err)
{
    unsigned char secret[SECRET], hash[HASH];
    char text[MT_STORE_TOKEN] = "mt_";
    mt_key made;
    struct create c = {user_id, name, date_expires, run_id, hash, &made};
    int r;

    if (check_label(name, err) < 0)
        return -1;
    if (date_expires != 0 && date_expires <= mt_now_us())
        return mt_fail_field(err, MT_E_BAD_FIELD, "expires", "a key cannot expire in the past");
    randombytes_buf(secret, sizeof(secret));
    mt_hex(secret, sizeof(secret), text + 3);
    hash_token(s, text, hash);
    r = store_write(s, create_op, &c, err);
    if (r == 0) {
        *ret = made;
        memcpy(token, text, sizeof(text));
    }
    sodium_memzero(secret, sizeof(secret));
    sodium_memzero(text, sizeof(text));
    return r;
}

struct touch {
    char id[MT_ID_TEXT];
};

static int touch_op(tx *t, void *arg, mt_err **err)
{
    struct touch *touch = arg;

    t->keeps_identities = true;
    return db_run(t->db, KEY_TOUCH, err, T(touch->id), I(t->now)) < 0 ? -1 : 0;
}

// "Last used" to the minute: a read does not cost a write each time.
static void touch(mt_store *s, const char *id)
{
    struct touch *arg = calloc(1, sizeof(*arg));

    if (!arg)
        return;
    (void)snprintf(arg->id, sizeof(arg->id), "%s", id);
    if (store_write_async(s, touch_op, arg, false, NULL, NULL, NULL) < 0)
        free(arg);
}

typedef struct live_key {
    char id[MT_ID_TEXT], user_id[MT_ID_TEXT], run_id[MT_ID_TEXT];
    bool touch;    // it is to be noted that it was used
    int64_t until; // then this has to be asked again, for the key or for when it was last used
} live_key;

static int find_live(db *d, const unsigned char *hash, live_key *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int64_t now = mt_now_us(), expires;
    int r;

    if (db_start(d, KEY_BY_HASH, &st, err, B(hash, HASH)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : 1;
    expires = db_int(st, 2);
    if (expires != 0 && expires <= now)
        return 1;
    db_copy(st, 0, ret->id);
    db_copy(st, 1, ret->user_id);
    db_copy(st, 4, ret->run_id);
    ret->touch = db_int(st, 3) < now - USED_RESOLUTION_US;
    ret->until = MT_MAX(db_int(st, 3), now - USED_RESOLUTION_US) + USED_RESOLUTION_US;
    if (expires != 0)
        ret->until = MT_MIN(ret->until, expires);
    return 0;
}

int mt_store_key_lookup(mt_store *s, const char *token, size_t len, mt_user *ret, mt_err **err)
{
    static const char NOT_VALID[] = "the API key is not valid, or has expired";
    _cleanup_reader_ reader *r = NULL;
    unsigned char hash[HASH];
    uint64_t identities = atomic_load(&s->identities);
    live_key key;
    mt_user found;
    int rc;

    if (len != MT_STORE_TOKEN - 1 || memcmp(token, "mt_", 3) != 0)
        return mt_fail(err, MT_E_UNAUTHENTICATED, "%s", NOT_VALID);
    hash_token(s, token, hash);
    if (known_get(s, hash, mt_now_us(), ret))
        return 0;
    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = find_live(r->db, hash, &key, err);
    if (rc == 0)
        rc = user_load(r->db, DB_USER_BY_ID, T(key.user_id), &found, err);
    if (rc != 0 || found.stopped)
        return rc < 0 ? rc : mt_fail(err, MT_E_UNAUTHENTICATED, "%s", NOT_VALID);
    memcpy(found.key_id, key.id, sizeof(found.key_id));
    if (key.run_id[0])
        memcpy(found.run_id, key.run_id, sizeof(found.run_id));
    if (key.touch)
        touch(s, key.id);
    known_put(s, hash, identities, key.until, &found);
    *ret = found;
    return 0;
}

int mt_store_key_get(mt_store *s, const char *id, mt_key *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;

    return reader_get(s, &r, err) < 0 ? -1 : key_load(r->db, id, ret, err);
}

int mt_store_key_list(mt_store *s, const char *user_id, mt_page page, mt_key_list *ret,
                      mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_key_list_done) mt_key_list l = {0};
    size_t limit = page_limit(page);
    int more;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, KEY_LIST, &st, err, T(page.after ? page.after : ""), I((int64_t)limit + 1),
                 T(user_id)) < 0)
        return -1;
    while ((more = db_step(r->db, st, err)) > 0 && l.count < limit) {
        mt_key *k = list_add(&l);

        if (!k)
            return mt_fail_oom(err);
        key_row(st, k);
    }
    if (more < 0)
        return more;
    if (more > 0)
        (void)snprintf(l.next, sizeof(l.next), "%s", l.items[l.count - 1].id);
    *ret = l;
    l = (mt_key_list){0};
    return 0;
}

void mt_key_list_done(mt_key_list *l)
{
    free(l->items);
    *l = (mt_key_list){0};
}

static int delete_op(tx *t, void *arg, mt_err **err)
{
    const char *id = arg;
    int n = event_add(t, "key", id, "", "deleted", err) < 0
                ? -1
                : db_run(t->db, KEY_DELETE, err, T(id)); // fails where there is none: all is undone

    return n != 0 ? MT_MIN(n, 0) : mt_fail(err, MT_E_NOT_FOUND, "no key '%.80s'", id);
}

int mt_store_key_delete(mt_store *s, const char *id, mt_err **err)
{
    return store_write(s, delete_op, (void *)(uintptr_t)id, err);
}
