// SPDX-License-Identifier: Apache-2.0
// Values: counting, building, access, equality.
#include "json/json-internal.h"

#include "base/utf8.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static mt_json constants[] = {
    {.kind = MT_JSON_NULL, .constant = true},
    {.kind = MT_JSON_BOOL, .constant = true},
    {.kind = MT_JSON_BOOL, .constant = true, .truth = true},
};

// --- counting ---

mt_json *mt_json_ref(const mt_json *v)
{
    mt_json *own = (mt_json *)v;

    if (own && !own->constant)
        (void)__atomic_add_fetch(&own->refs, 1, __ATOMIC_RELAXED);
    return own;
}

// Drops one reference. A container whose last one it was joins the list instead of being entered:
// how deep a document is must not become how deep the stack is.
static void drop(mt_json *v, json_box **dying)
{
    if (!v || v->constant)
        return;
    // Nobody else can come by a reference when this is the only one.
    if (__atomic_load_n(&v->refs, __ATOMIC_ACQUIRE) != 1 &&
        __atomic_sub_fetch(&v->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (json_is_box(v)) {
        json_box_of(v)->link = *dying;
        *dying = json_box_of(v);
    } else {
        free(v);
    }
}

mt_json *mt_json_unref(mt_json *v)
{
    json_box *dying = NULL;

    if (!v || v->constant)
        return NULL;
    drop(v, &dying);
    while (dying) {
        json_box *box = dying;

        dying = box->link;
        for (size_t i = 0; i < box->count; i++) {
            if (box->head.kind == MT_JSON_OBJECT) {
                drop(box->members[i].name, &dying);
                drop(box->members[i].value, &dying);
            } else {
                drop(box->items[i], &dying);
            }
        }
        free(box->items);
        free(box->index);
        free(box);
    }
    return NULL;
}

// Nobody else's: a text is overwritten, a container is to be entered.
static json_box *wipe_one(mt_json *v)
{
    if (!v || v->constant || __atomic_load_n(&v->refs, __ATOMIC_ACQUIRE) != 1)
        return NULL;
    if (json_is_box(v))
        return json_box_of(v);
    if (v->kind == MT_JSON_STRING)
        explicit_bzero(json_text_of(v)->data, json_text_of(v)->len);
    return NULL;
}

void mt_json_wipe(mt_json *v)
{
    struct {
        json_box *box;
        size_t next;
    } stack[MT_JSON_DEPTH_MAX + 1]; // its first `depth` are set
    json_box *box = wipe_one(v);
    size_t depth = 0;

    while (box || depth > 0) {
        bool object;
        size_t i;

        if (box) {
            stack[depth].box = box;
            stack[depth++].next = 0;
        }
        i = stack[depth - 1].next++;
        box = stack[depth - 1].box;
        object = box->head.kind == MT_JSON_OBJECT;
        if (i == box->count) {
            depth--;
            box = NULL;
        } else {
            box = wipe_one(object ? box->members[i].value : box->items[i]);
        }
    }
}

// --- making ---

json_text *json_text_new(mt_json_kind kind, size_t len)
{
    json_text *t = len < SIZE_MAX / 2 ? malloc(sizeof(*t) + len + 1) : NULL;

    if (!t)
        return NULL;
    t->head = (mt_json){.refs = 1, .kind = (uint8_t)kind};
    t->len = len;
    t->data[len] = '\0';
    return t;
}

mt_json *mt_json_new_null(void)
{
    return &constants[0];
}

mt_json *mt_json_new_bool(bool value)
{
    return &constants[value ? 2 : 1];
}

static mt_json *new_verbatim(mt_json_kind kind, const char *data, size_t len)
{
    json_text *t = json_text_new(kind, len);

    if (!t)
        return NULL;
    if (len > 0)
        memcpy(t->data, data, len);
    t->head.nul = len > 0 && memchr(data, '\0', len);
    return &t->head;
}

mt_json *mt_json_new_int(int64_t value)
{
    char scratch[MT_I64_TEXT];
    mt_str text = mt_i64_text(value, scratch);

    return new_verbatim(MT_JSON_NUMBER, text.data, text.len);
}

mt_json *mt_json_new_number(mt_str source)
{
    return json_number_valid(source) ? new_verbatim(MT_JSON_NUMBER, source.data, source.len) : NULL;
}

mt_json *mt_json_new_string(mt_str value)
{
    _cleanup_buf_ mt_buf clean = MT_BUF_INIT(SIZE_MAX / 2);

    if (mt_utf8_valid(value.data, value.len))
        return new_verbatim(MT_JSON_STRING, value.data, value.len);
    if (mt_utf8_add_clean(&clean, value.data, value.len) < 0)
        return NULL;
    return new_verbatim(MT_JSON_STRING, clean.data, clean.len);
}

mt_json *mt_json_new_text(const char *value)
{
    return value ? mt_json_new_string(mt_str_of(value)) : mt_json_new_null();
}

mt_json *mt_json_new_object(void)
{
    return json_box_new(MT_JSON_OBJECT);
}

mt_json *mt_json_new_array(void)
{
    return json_box_new(MT_JSON_ARRAY);
}

mt_json *mt_json_copy(const mt_json *v)
{
    return json_is_box(v) ? json_box_copy(json_box_of(v)) : mt_json_ref(v);
}

// Whether v, whose reference is the caller's, may be added to. One that was in another value and
// has one reference now is in none any more.
static bool may_be_edited(mt_json *v)
{
    if (__atomic_load_n(&v->refs, __ATOMIC_ACQUIRE) != 1)
        return false;
    __atomic_store_n(&v->held, false, __ATOMIC_RELAXED);
    return true;
}

mt_json *mt_json_own(mt_json *v)
{
    mt_json *copy;

    if (!json_is_box(v) || may_be_edited(v))
        return v;
    copy = mt_json_copy(v);
    (void)mt_json_unref(v);
    return copy;
}

// --- building ---

static int give_up(mt_json *parent, mt_json *child, int r)
{
    (void)mt_json_unref(child);
    if (parent)
        parent->failed = true;
    return r;
}

// Whether parent may take child: 0 or the errno that fits.
static int check_child(const mt_json *parent, const mt_json *child)
{
    if (!parent || !child || child->failed)
        return -ENOMEM;
    assert(__atomic_load_n(&parent->refs, __ATOMIC_RELAXED) == 1);
    assert(!__atomic_load_n(&parent->held, __ATOMIC_RELAXED));
    if (json_is_box(child) && json_box_of(child)->height + 1 > MT_JSON_DEPTH_MAX)
        return -EMSGSIZE;
    return 0;
}

static void hold(mt_json *child)
{
    if (!child->constant)
        __atomic_store_n(&child->held, true, __ATOMIC_RELAXED);
}

int mt_json_append(mt_json *array, mt_json *child)
{
    int r = check_child(array, child);

    assert(!array || array->kind == MT_JSON_ARRAY);
    if (r == 0)
        r = json_box_push(json_box_of(array), NULL, child);
    if (r < 0)
        return give_up(array, child, r);
    hold(child);
    return 0;
}

int mt_json_set_str(mt_json *object, mt_str name, mt_json *child)
{
    int r = check_child(object, child);
    json_box *box = json_box_of(object);
    mt_json *key = NULL;
    size_t at;

    assert(!object || object->kind == MT_JSON_OBJECT);
    if (r < 0)
        return give_up(object, child, r);
    at = json_box_find(box, name);
    if (at == SIZE_MAX) {
        key = mt_json_new_string(name);
        if (!key)
            return give_up(object, child, -ENOMEM);
        if (!json_same(mt_json_str(key), name)) // it was no UTF-8
            at = json_box_find(box, mt_json_str(key));
    }
    if (at != SIZE_MAX) {
        json_box_replace(box, at, child);
        (void)mt_json_unref(key);
    } else if ((r = json_box_push(box, key, child)) < 0) {
        (void)mt_json_unref(key);
        return give_up(object, child, r);
    }
    hold(child);
    return 0;
}

int mt_json_set_at(mt_json *array, size_t i, mt_json *child)
{
    int r = check_child(array, child);

    assert(!array || (array->kind == MT_JSON_ARRAY && i < json_box_of(array)->count));
    if (r < 0)
        return give_up(array, child, r);
    json_box_replace(json_box_of(array), i, child);
    hold(child);
    return 0;
}

bool mt_json_swap_at(mt_json *array, size_t i, mt_json *scalar)
{
    json_box *box = json_box_of(array);
    mt_json *old;

    assert(array->kind == MT_JSON_ARRAY);
    if (i >= box->count || !may_be_edited(array))
        return false;
    old = box->items[i];
    if (json_is_box(scalar) || json_is_box(old) || scalar->nul ||
        json_weight(scalar) != json_weight(old))
        return false;
    box->items[i] = scalar;
    hold(scalar);
    (void)mt_json_unref(old);
    return true;
}

bool mt_json_remove(mt_json *object, mt_str name)
{
    json_box *box = json_box_of(object);
    size_t at;

    if (mt_json_kind_of(object) != MT_JSON_OBJECT)
        return false;
    assert(__atomic_load_n(&object->refs, __ATOMIC_RELAXED) == 1);
    at = json_box_find(box, name);
    if (at != SIZE_MAX)
        json_box_remove(box, at);
    return at != SIZE_MAX;
}

bool mt_json_remove_at(mt_json *array, size_t i)
{
    if (mt_json_kind_of(array) != MT_JSON_ARRAY || i >= json_box_of(array)->count)
        return false;
    assert(__atomic_load_n(&array->refs, __ATOMIC_RELAXED) == 1);
    json_box_remove(json_box_of(array), i);
    return true;
}

int mt_json_set(mt_json *object, const char *name, mt_json *child)
{
    return mt_json_set_str(object, mt_str_of(name), child);
}

bool mt_json_ok(const mt_json *v)
{
    return v && !v->failed;
}

// --- size ---

size_t mt_json_weight(const mt_json *v)
{
    return v ? json_weight(v) : 0;
}

unsigned mt_json_height(const mt_json *v)
{
    return v ? json_height(v) : 0;
}

bool mt_json_has_nul(const mt_json *v)
{
    return v && v->nul;
}

// --- access ---

mt_json_kind mt_json_kind_of(const mt_json *v)
{
    return v ? (mt_json_kind)v->kind : MT_JSON_ABSENT;
}

const char *mt_json_kind_name(mt_json_kind kind)
{
    static const char *const names[] = {"nothing",  "null",   "a boolean", "a number",
                                        "a string", "a list", "an object"};

    return (size_t)kind < MT_ARRAY_SIZE(names) ? names[kind] : "nothing";
}

bool mt_json_as_bool(const mt_json *v, bool *ret)
{
    if (mt_json_kind_of(v) != MT_JSON_BOOL)
        return false;
    *ret = v->truth;
    return true;
}

bool mt_json_is_true(const mt_json *v)
{
    return mt_json_kind_of(v) == MT_JSON_BOOL && v->truth;
}

bool mt_json_as_str(const mt_json *v, mt_str *ret)
{
    if (mt_json_kind_of(v) != MT_JSON_STRING)
        return false;
    *ret = mt_json_str(v);
    return true;
}

mt_str mt_json_str(const mt_json *v)
{
    mt_json_kind kind = mt_json_kind_of(v);

    if (kind != MT_JSON_STRING && kind != MT_JSON_NUMBER)
        return MT_STR("");
    return (mt_str){json_text_of(v)->data, json_text_of(v)->len};
}

const char *mt_json_text(const mt_json *v, const char *fallback)
{
    return mt_json_kind_of(v) == MT_JSON_STRING ? json_text_of(v)->data : fallback;
}

size_t mt_json_count(const mt_json *v)
{
    return json_is_box(v) ? json_box_of(v)->count : 0;
}

const mt_json *mt_json_at(const mt_json *array, size_t i)
{
    if (mt_json_kind_of(array) != MT_JSON_ARRAY || i >= json_box_of(array)->count)
        return NULL;
    return json_box_of(array)->items[i];
}

const mt_json *mt_json_get_str(const mt_json *object, mt_str name)
{
    size_t at;

    if (mt_json_kind_of(object) != MT_JSON_OBJECT)
        return NULL;
    at = json_box_find(json_box_of(object), name);
    return at == SIZE_MAX ? NULL : json_box_of(object)->members[at].value;
}

const mt_json *mt_json_get(const mt_json *object, const char *name)
{
    return mt_json_get_str(object, mt_str_of(name));
}

size_t mt_json_find(const mt_json *object, mt_str name)
{
    return mt_json_kind_of(object) == MT_JSON_OBJECT ? json_box_find(json_box_of(object), name)
                                                     : SIZE_MAX;
}

mt_str mt_json_name_at(const mt_json *object, size_t i)
{
    if (mt_json_kind_of(object) != MT_JSON_OBJECT || i >= json_box_of(object)->count)
        return (mt_str){NULL, 0};
    return json_box_name(json_box_of(object), i);
}

const mt_json *mt_json_value_at(const mt_json *object, size_t i)
{
    if (mt_json_kind_of(object) != MT_JSON_OBJECT || i >= json_box_of(object)->count)
        return NULL;
    return json_box_of(object)->members[i].value;
}

// --- pointer ---

// One reference token with ~0 and ~1 undone; false for any other ~.
static bool untilde(mt_str token, mt_buf *out)
{
    for (size_t i = 0; i < token.len; i++) {
        char c = token.data[i];

        if (c == '~') {
            if (++i == token.len || (token.data[i] != '0' && token.data[i] != '1'))
                return false;
            c = token.data[i] == '0' ? '~' : '/';
        }
        (void)mt_buf_addc(out, c);
    }
    return !out->failed;
}

static const mt_json *step(const mt_json *v, mt_str token)
{
    _cleanup_buf_ mt_buf name = MT_BUF_INIT(SIZE_MAX / 2);
    uint64_t i;

    if (mt_json_kind_of(v) == MT_JSON_ARRAY) {
        if (token.len > 1 && token.data[0] == '0')
            return NULL;
        return mt_parse_u64(token, SIZE_MAX, &i) ? mt_json_at(v, (size_t)i) : NULL;
    }
    if (!token.len || !memchr(token.data, '~', token.len))
        return mt_json_get_str(v, token);
    if (!untilde(token, &name))
        return NULL;
    return mt_json_get_str(v, (mt_str){mt_buf_str(&name), name.len});
}

const mt_json *mt_json_pointer(const mt_json *v, mt_str pointer)
{
    const char *at = pointer.data, *end = pointer.data + pointer.len;

    while (v && at < end) {
        const char *slash;

        if (*at++ != '/')
            return NULL;
        slash = at < end ? memchr(at, '/', (size_t)(end - at)) : NULL;
        if (!slash)
            slash = end;
        v = step(v, (mt_str){at, (size_t)(slash - at)});
        at = slash;
    }
    return v;
}

// --- equality ---

typedef struct pair {
    const json_box *a, *b;
    size_t next;
} pair;

// 1 equal, 0 not, -1: two containers of the same kind and size, whose content decides.
static int compare_shallow(const mt_json *a, const mt_json *b)
{
    if (a == b)
        return 1;
    if (mt_json_kind_of(a) != mt_json_kind_of(b) || !a || !b)
        return 0;
    switch (a->kind) {
    case MT_JSON_NULL:
        return 1;
    case MT_JSON_BOOL:
        return a->truth == b->truth;
    case MT_JSON_NUMBER:
        return json_number_equal(mt_json_str(a), mt_json_str(b));
    case MT_JSON_STRING:
        return json_same(mt_json_str(a), mt_json_str(b));
    default:
        return json_box_of(a)->count == json_box_of(b)->count ? -1 : 0;
    }
}

bool mt_json_equal(const mt_json *a, const mt_json *b)
{
    pair stack[MT_JSON_DEPTH_MAX];
    size_t depth = 0;
    int r = compare_shallow(a, b);

    for (;;) {
        pair *top;
        size_t i;

        if (r == 0)
            return false;
        assert(r > 0 || (a && b));
        if (r < 0)
            stack[depth++] = (pair){json_box_of(a), json_box_of(b), 0};
        while (depth > 0 && stack[depth - 1].next == stack[depth - 1].a->count)
            depth--;
        if (depth == 0)
            return true;
        top = &stack[depth - 1];
        i = top->next++;
        if (top->a->head.kind == MT_JSON_OBJECT) {
            size_t j = json_box_find(top->b, json_box_name(top->a, i));

            a = top->a->members[i].value;
            b = j == SIZE_MAX ? NULL : top->b->members[j].value;
        } else {
            a = top->a->items[i];
            b = top->b->items[i];
        }
        r = compare_shallow(a, b);
    }
}

// --- hashes ---

enum { HASH_DEPTH = 32 };

static uint64_t hash_words(uint64_t a, uint64_t b)
{
    uint64_t words[2] = {a, b};

    return json_hash_text((mt_str){(const char *)words, sizeof(words)});
}

static uint64_t hash_value(const mt_json *v, unsigned depth);

static uint64_t hash_box(const json_box *box, unsigned depth)
{
    uint64_t all = box->count;

    if (depth == HASH_DEPTH)
        return 0;
    for (size_t i = 0; i < box->count; i++) {
        if (box->head.kind == MT_JSON_ARRAY)
            all = hash_words(all, hash_value(box->items[i], depth + 1));
        else // their order does not matter
            all += hash_words(json_hash_text(json_box_name(box, i)),
                              hash_value(box->members[i].value, depth + 1));
    }
    return all;
}

static uint64_t hash_value(const mt_json *v, unsigned depth)
{
    mt_json_kind kind = mt_json_kind_of(v);

    if (kind == MT_JSON_NUMBER)
        return hash_words(kind, json_number_hash(mt_json_str(v)));
    if (kind == MT_JSON_STRING)
        return hash_words(kind, json_hash_text(mt_json_str(v)));
    return hash_words(kind, json_is_box(v) ? hash_box(json_box_of(v), depth) : mt_json_is_true(v));
}

uint64_t mt_json_hash(const mt_json *v)
{
    return hash_value(v, 0);
}
