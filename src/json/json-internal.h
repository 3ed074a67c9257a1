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

json_text *json_text_new(mt_json_kind kind, size_t len); // bytes to be filled in
mt_json *json_box_new(mt_json_kind kind);
// Adds without looking for the same name, at the end. The references are taken only on success.
int json_box_push(json_box *box, mt_json *name, mt_json *value);
size_t json_box_find(const json_box *box, mt_str name); // position, or SIZE_MAX

bool json_number_valid(mt_str s);
bool json_number_equal(mt_str a, mt_str b);
size_t json_number_scan(const char *s,
                        size_t len); // bytes of the number at s, 0 where there is none

// At most 64 bytes of s, fit for a sentence: no control characters, no half of a character.
enum { JSON_QUOTE = 72 };
const char *json_quote(mt_str s, char out[JSON_QUOTE]);
