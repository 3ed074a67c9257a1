// SPDX-License-Identifier: Apache-2.0
// The shape of a value, for the files of this folder alone.
#pragma once

#include "json/json.h"

// What every value begins with.
struct mt_json {
    uint32_t refs; // atomic
    uint8_t kind;
    bool truth;
    bool constant; // null, true and false: static, not counted
    bool held;     // is in a parent, so nothing may be added to it any more (atomic)
    bool failed;   // a container that lacks something
    bool nul;      // a string with a NUL, or a container that such a one was put into
};

// A string's bytes or a number's source text.
typedef struct json_text {
    mt_json head;
    size_t len;
    char data[]; // and a NUL
} json_text;

typedef struct json_member {
    mt_json *name; // a string
    mt_json *value;
} json_member;

// An array or object. Names of an object with more than INDEX_FROM members are found by a hash
// table of positions + 1, whose hash is keyed, so that chosen names cannot make it slow.
typedef struct json_box {
    mt_json head;
    unsigned height; // of what is in it, itself included
    uint32_t index_mask;
    size_t tallest; // how many containers in it give it its height
    size_t weight;  // of what is in it
    uint32_t *index;
    size_t count, cap;
    union {
        mt_json **items;
        json_member *members;
    };
    struct json_box *link; // of the list of what is being freed
} json_box;

static inline bool json_is_box(const mt_json *v)
{
    return v && v->kind >= MT_JSON_ARRAY;
}
static inline json_box *json_box_of(const mt_json *v)
{
    return (json_box *)v;
}
static inline json_text *json_text_of(const mt_json *v)
{
    return (json_text *)v;
}

static inline bool json_same(mt_str a, mt_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

// Weights: what malloc() takes for such a thing, room to grow and an object's index included.
enum {
    JSON_TEXT_WEIGHT = sizeof(json_text) + 16,
    JSON_BOX_WEIGHT = sizeof(json_box) + 32,
    JSON_ITEM_WEIGHT = 2 * sizeof(mt_json *),
    JSON_MEMBER_WEIGHT = 2 * sizeof(json_member) + 16,
};

// SIZE_MAX is too much to be told, and stays so.
static inline size_t json_weight_add(size_t a, size_t b)
{
    size_t sum;

    return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

// Of a value that is there.
static inline size_t json_weight(const mt_json *v)
{
    if (v->constant)
        return 0;
    return json_is_box(v) ? json_weight_add(JSON_BOX_WEIGHT, json_box_of(v)->weight)
                          : json_weight_add(JSON_TEXT_WEIGHT, json_text_of(v)->len);
}
static inline unsigned json_height(const mt_json *v)
{
    return json_is_box(v) ? json_box_of(v)->height : 0;
}

json_text *json_text_new(mt_json_kind kind, size_t len); // bytes to be filled in
mt_json *json_box_new(mt_json_kind kind);
mt_json *json_box_copy(const json_box *from); // shares the children
// Adds without looking for the same name, at the end. The references are taken only on success.
int json_box_push(json_box *box, mt_json *name, mt_json *value);
void json_box_replace(json_box *box, size_t i, mt_json *value); // takes the reference
void json_box_remove(json_box *box, size_t i);
size_t json_box_find(const json_box *box, mt_str name); // position, or SIZE_MAX
mt_str json_box_name(const json_box *box, size_t i);
// Makes parent as high as child, which it holds, wants it.
void json_box_rise(json_box *parent, const mt_json *child);

uint64_t json_hash_text(mt_str s); // SipHash-1-3 under a key of this process

bool json_number_valid(mt_str s);
bool json_number_equal(mt_str a, mt_str b);
uint64_t json_number_hash(mt_str s); // the same for equal numbers
size_t json_number_scan(const char *s,
                        size_t len); // bytes of the number at s, 0 where there is none

// At most 64 bytes of s, fit for a sentence: no control characters, no half of a character.
enum { JSON_QUOTE = 72 };
const char *json_quote(mt_str s, char out[JSON_QUOTE]);
