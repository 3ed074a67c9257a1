// SPDX-License-Identifier: Apache-2.0
// Containers: the names of an object, what is put in and taken out, and what all of it weighs.
#include "json/json-internal.h"

#include "base/id.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

enum { INDEX_FROM = 8, INDEX_LEAST = 64 };

// --- names of an object ---

static uint64_t hash_key[2];

static void hash_key_make(void)
{
    mt_random_bytes(hash_key, sizeof(hash_key));
}

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

static void sip_round(uint64_t v[4])
{
    v[0] += v[1], v[1] = ROTL(v[1], 13), v[1] ^= v[0], v[0] = ROTL(v[0], 32);
    v[2] += v[3], v[3] = ROTL(v[3], 16), v[3] ^= v[2];
    v[0] += v[3], v[3] = ROTL(v[3], 21), v[3] ^= v[0];
    v[2] += v[1], v[1] = ROTL(v[1], 17), v[1] ^= v[2], v[2] = ROTL(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

uint64_t json_hash_text(mt_str s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t word = 0, v[4];
    size_t left = s.len;

    (void)pthread_once(&once, hash_key_make);
    v[0] = hash_key[0] ^ 0x736f6d6570736575u;
    v[1] = hash_key[1] ^ 0x646f72616e646f6du;
    v[2] = hash_key[0] ^ 0x6c7967656e657261u;
    v[3] = hash_key[1] ^ 0x7465646279746573u;
    for (; left >= 8; left -= 8) {
        memcpy(&word, s.data + s.len - left, 8);
        sip_word(v, word);
    }
    word = (uint64_t)s.len << 56;
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)(unsigned char)s.data[s.len - left + i] << (8 * i);
    sip_word(v, word);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

mt_str json_box_name(const json_box *box, size_t i)
{
    const json_text *name = json_text_of(box->members[i].name);

    return (mt_str){name->data, name->len};
}

static void index_put(json_box *box, size_t position)
{
    uint32_t slot = (uint32_t)json_hash_text(json_box_name(box, position)) & box->index_mask;

    assert(box->index);
    while (box->index[slot])
        slot = (slot + 1) & box->index_mask;
    box->index[slot] = (uint32_t)position + 1;
}

static int index_make(json_box *box, size_t size)
{
    uint32_t *index = calloc(size, sizeof(*index));

    if (!index)
        return -ENOMEM;
    free(box->index);
    box->index = index;
    box->index_mask = (uint32_t)size - 1;
    for (size_t i = 0; i < box->count; i++)
        index_put(box, i);
    return 0;
}

static size_t index_size(const json_box *box)
{
    return box->index ? (size_t)box->index_mask + 1 : 0;
}

// After a push: keeps the table under half full.
static int index_grow(json_box *box)
{
    size_t size = index_size(box), wanted = size;

    if (box->count <= INDEX_FROM)
        return 0;
    while (wanted < 2 * box->count)
        wanted = wanted ? wanted * 2 : INDEX_LEAST;
    if (wanted > UINT32_MAX / 2)
        return -EMSGSIZE;
    if (wanted > size)
        return index_make(box, wanted);
    index_put(box, box->count - 1);
    return 0;
}

// Empties a slot. What was put behind it because it was taken moves up, so that a search, which
// ends at an empty slot, still comes to it.
static void index_close_gap(json_box *box, uint32_t gap)
{
    uint32_t mask = box->index_mask, slot = gap;

    for (;;) {
        uint32_t wanted;

        box->index[gap] = 0;
        do {
            slot = (slot + 1) & mask;
            if (!box->index[slot])
                return;
            wanted = (uint32_t)json_hash_text(json_box_name(box, box->index[slot] - 1)) & mask;
        } while (((slot - wanted) & mask) < ((slot - gap) & mask));
        box->index[gap] = box->index[slot];
        gap = slot;
    }
}

// Before the member at a position goes and those behind it move up.
static void index_forget(json_box *box, size_t position)
{
    uint32_t slot = (uint32_t)json_hash_text(json_box_name(box, position)) & box->index_mask;

    while (box->index[slot] != position + 1)
        slot = (slot + 1) & box->index_mask;
    index_close_gap(box, slot);
    for (size_t i = 0; i <= box->index_mask; i++)
        box->index[i] -= box->index[i] > position + 1;
}

// After one went. A table that stays larger than it must be is no fault.
static void index_shrink(json_box *box)
{
    if (box->count <= INDEX_FROM) {
        free(box->index);
        box->index = NULL;
    } else if (index_size(box) > INDEX_LEAST && index_size(box) > 8 * box->count) {
        (void)index_make(box, index_size(box) / 2);
    }
}

size_t json_box_find(const json_box *box, mt_str name)
{
    if (!box->index) {
        for (size_t i = 0; i < box->count; i++) {
            if (json_same(json_box_name(box, i), name))
                return i;
        }
        return SIZE_MAX;
    }
    for (uint32_t slot = (uint32_t)json_hash_text(name) & box->index_mask; box->index[slot];
         slot = (slot + 1) & box->index_mask) {
        size_t position = box->index[slot] - 1;

        if (json_same(json_box_name(box, position), name))
            return position;
    }
    return SIZE_MAX;
}

// --- weight, height ---

static size_t cost(const mt_json *name, const mt_json *value)
{
    size_t own =
        name ? json_weight_add(JSON_MEMBER_WEIGHT, json_weight(name)) : (size_t)JSON_ITEM_WEIGHT;

    return json_weight_add(own, json_weight(value));
}

void json_box_rise(json_box *parent, const mt_json *child)
{
    unsigned height = json_height(child) + 1;

    if (height == 1)
        return;
    if (height > parent->height) {
        parent->height = height;
        parent->tallest = 0;
    }
    parent->tallest += height == parent->height;
}

static mt_json *value_at(const json_box *box, size_t i)
{
    return box->head.kind == MT_JSON_OBJECT ? box->members[i].value : box->items[i];
}

// After a child of that height has gone.
static void sink(json_box *box, unsigned height)
{
    if (height == 0 || height + 1 != box->height || --box->tallest > 0)
        return;
    box->height = 1;
    for (size_t i = 0; i < box->count; i++)
        json_box_rise(box, value_at(box, i));
}

static void gain(json_box *box, const mt_json *name, const mt_json *value)
{
    box->weight = json_weight_add(box->weight, cost(name, value));
    box->head.nul = box->head.nul || value->nul || (name && name->nul);
    json_box_rise(box, value);
}

static void lose(json_box *box, mt_json *name, mt_json *value)
{
    if (box->weight != SIZE_MAX)
        box->weight -= cost(name, value);
    sink(box, json_height(value));
    (void)mt_json_unref(name);
    (void)mt_json_unref(value);
}

// --- putting in, taking out ---

mt_json *json_box_new(mt_json_kind kind)
{
    json_box *box = calloc(1, sizeof(*box));

    if (!box)
        return NULL;
    box->head = (mt_json){.refs = 1, .kind = (uint8_t)kind};
    box->height = 1;
    return &box->head;
}

static size_t child_size(const json_box *box)
{
    return box->head.kind == MT_JSON_OBJECT ? sizeof(json_member) : sizeof(mt_json *);
}

static int resize(json_box *box, size_t cap)
{
    void *items;

    if (cap > SIZE_MAX / 2 / sizeof(json_member))
        return -ENOMEM;
    items = realloc(box->items, cap * child_size(box));
    if (!items)
        return -ENOMEM;
    box->items = items;
    box->cap = cap;
    return 0;
}

int json_box_push(json_box *box, mt_json *name, mt_json *value)
{
    int r = 0;

    if (box->count == box->cap)
        r = resize(box, box->cap ? box->cap * 2 : 4);
    if (r < 0)
        return r;
    if (box->head.kind == MT_JSON_ARRAY) {
        box->items[box->count++] = value;
    } else {
        box->members[box->count++] = (json_member){name, value};
        r = index_grow(box);
    }
    if (r < 0)
        box->count--;
    else
        gain(box, name, value);
    return r;
}

void json_box_replace(json_box *box, size_t i, mt_json *value)
{
    bool object = box->head.kind == MT_JSON_OBJECT;
    mt_json **at = object ? &box->members[i].value : &box->items[i], *old = *at;
    mt_json *name = object ? box->members[i].name : NULL;

    *at = value;
    gain(box, name, value); // first, so that one as tall as the other needs no search
    lose(box, mt_json_ref(name), old);
}

void json_box_remove(json_box *box, size_t i)
{
    bool object = box->head.kind == MT_JSON_OBJECT;
    mt_json *name = object ? box->members[i].name : NULL, *value = value_at(box, i);
    char *at = (char *)box->items + i * child_size(box);

    if (box->index)
        index_forget(box, i);
    memmove(at, at + child_size(box), (box->count - i - 1) * child_size(box));
    box->count--;
    if (box->index)
        index_shrink(box);
    if (box->cap > 8 && box->count < box->cap / 4)
        (void)resize(box, box->cap / 2);
    lose(box, name, value);
}

static int copy_lists(json_box *to, const json_box *from)
{
    if (from->count == 0)
        return 0;
    if (resize(to, from->count) < 0)
        return -ENOMEM;
    memcpy(to->items, from->items, from->count * child_size(from));
    if (!from->index)
        return 0;
    to->index = malloc(index_size(from) * sizeof(*to->index));
    if (!to->index)
        return -ENOMEM;
    memcpy(to->index, from->index, index_size(from) * sizeof(*to->index));
    to->index_mask = from->index_mask;
    return 0;
}

mt_json *json_box_copy(const json_box *from)
{
    mt_json *copy = json_box_new(from->head.kind);
    json_box *to = json_box_of(copy);

    if (!copy || copy_lists(to, from) < 0)
        return mt_json_unref(copy);
    copy->failed = from->head.failed;
    copy->nul = from->head.nul;
    to->height = from->height;
    to->tallest = from->tallest;
    to->weight = from->weight;
    to->count = from->count;
    for (size_t i = 0; i < to->count; i++) {
        if (copy->kind == MT_JSON_OBJECT)
            (void)mt_json_ref(to->members[i].name);
        (void)mt_json_ref(value_at(to, i));
    }
    return copy;
}
