// SPDX-License-Identifier: Apache-2.0
// JSON values, reader and writer: RFC 8259 strictly, hostile input assumed. Numbers keep their
// source text and are converted on use; objects keep the order of their members; a doubled name,
// bad UTF-8, a lone surrogate, a control byte in a string and too deep a nesting are refused with
// their place. No I/O.
//
// Values are immutable and reference counted (atomically: they may be shared between threads).
// Only a value that was just made by mt_json_new_*(), mt_json_copy() or mt_json_own(), has one
// reference and was not yet put into another may be changed; this is asserted. Every accessor
// accepts NULL, which stands for "absent"; pointers that accessors return are borrowed from the
// value asked.
//
// Nothing here recurses: nesting is at most MT_JSON_DEPTH_MAX everywhere, also when building.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

typedef struct mt_json mt_json;

typedef enum mt_json_kind {
    MT_JSON_ABSENT, // of a NULL pointer only
    MT_JSON_NULL,
    MT_JSON_BOOL,
    MT_JSON_NUMBER,
    MT_JSON_STRING,
    MT_JSON_ARRAY,
    MT_JSON_OBJECT,
} mt_json_kind;

enum { MT_JSON_DEPTH_MAX = 1000 }; // containers within containers

// --- reading ---------------------------------------------------------------------------------

typedef struct mt_json_limits {
    size_t bytes;   // of the document
    size_t values;  // in it, members and elements included
    unsigned depth; // at most MT_JSON_DEPTH_MAX
    size_t string;  // bytes of one string or name, decoded
    size_t weight;  // of the value (mt_json_weight()); 0: any
    bool skip_bom;  // a UTF-8 byte order mark in front is passed over instead of refused
} mt_json_limits;

// What NULL limits mean: 64 MiB, 4 million values, 200 deep, strings up to the document's size.
#define MT_JSON_LIMITS_INIT                                                                     \
    {                                                                                           \
        .bytes = 64u << 20, .values = 4u << 20, .depth = 200, .string = SIZE_MAX, .skip_bom = 0 \
    }

typedef struct mt_json_place {
    size_t offset;         // bytes from the start
    unsigned line, column; // from 1; columns count characters
} mt_json_place;

// Exactly one document, blanks around it allowed. -1 with badJson ("line 3, column 7: …"), tooLarge
// (a limit) or outOfMemory.
MT_MUST_USE int mt_json_parse(const char *data, size_t len, const mt_json_limits *limits,
                              mt_json **ret, mt_err **err);
// The same with the place apart: *ret_place is set on failure and the sentence does not hold it.
MT_MUST_USE int mt_json_parse_at(const char *data, size_t len, const mt_json_limits *limits,
                                 mt_json **ret, mt_json_place *ret_place, mt_err **err);

// Where in a text that was read a pointer (RFC 6901) leads: to the value's first character, or
// where nothing is there, as far as it leads.
mt_json_place mt_json_place_of(const char *data, size_t len, mt_str pointer);

mt_json *mt_json_ref(const mt_json *v); // returns v; accepts NULL
mt_json *mt_json_unref(mt_json *v);     // returns NULL; accepts NULL
// Overwrites the texts of all strings in v that nobody else has: for what may hold secrets, before
// the last unref. NULL is fine.
void mt_json_wipe(mt_json *v);
MT_DEFINE_CLEANUP(mt_json_unref, mt_json *)
#define _cleanup_json_ _cleanup_(mt_json_unref_p)

mt_json_kind mt_json_kind_of(const mt_json *v);
const char *mt_json_kind_name(mt_json_kind kind);  // "an object", "a string", … for sentences
static inline bool mt_json_given(const mt_json *v) // neither absent nor null
{
    return mt_json_kind_of(v) > MT_JSON_NULL;
}

// Conversions: false where v is of another kind or does not fit, *ret untouched then.
bool mt_json_as_bool(const mt_json *v, bool *ret);
bool mt_json_as_int64(const mt_json *v, int64_t *ret); // exactly: 1, 1.0 and 1e2 do, 1.5 does not
bool mt_json_is_whole(const mt_json *v);               // a number without a fraction, however large
bool mt_json_as_double(const mt_json *v, double *ret); // nearest; false past the range
bool mt_json_as_str(const mt_json *v, mt_str *ret);    // NUL follows the bytes; NULs may be in them
bool mt_json_is_true(const mt_json *v);                // false for all but true
// A string's bytes or a number's source text; {"", 0} for every other kind.
mt_str mt_json_str(const mt_json *v);
// The same for callers that print: the fallback when v is not a string.
const char *mt_json_text(const mt_json *v, const char *fallback);

size_t mt_json_count(const mt_json *v);                    // of an array or object, else 0
const mt_json *mt_json_at(const mt_json *array, size_t i); // NULL past the end
const mt_json *mt_json_get(const mt_json *object, const char *name); // NULL when absent
const mt_json *mt_json_get_str(const mt_json *object, mt_str name);
size_t mt_json_find(const mt_json *object, mt_str name); // position, or SIZE_MAX when absent
mt_str mt_json_name_at(const mt_json *object, size_t i); // {NULL, 0} past the end
const mt_json *mt_json_value_at(const mt_json *object, size_t i);
// RFC 6901: "" is v itself, "/a/0" a step each, ~0 and ~1 escapes; NULL where nothing is there, and
// where there is no memory to undo escapes: without ~ it needs none.
const mt_json *mt_json_pointer(const mt_json *v, mt_str pointer);

// About the bytes of memory that v takes with all that is in it. What is in it twice counts twice,
// so it may be SIZE_MAX. What a value weighs is the same however it was made.
size_t mt_json_weight(const mt_json *v);
unsigned mt_json_height(const mt_json *v); // containers within containers; 0 of a scalar
// Whether a string or name in v holds a NUL; true also when one was in it once.
bool mt_json_has_nul(const mt_json *v);

// By value: numbers as numbers (1 equals 1.0), objects whatever their order.
bool mt_json_equal(const mt_json *a, const mt_json *b);
// The same for values that are equal, in one process. Nobody can choose values to collide, but what
// lies more than 32 containers deep does not count.
uint64_t mt_json_hash(const mt_json *v);

// Numbers, exactly, however many digits they have. (Powers of ten past 10^16 are taken for about as
// large as each other.)
int mt_json_compare(const mt_json *a, const mt_json *b); // of two numbers: less than, 0, more than
size_t mt_json_digits(const mt_json *v); // of a number, without zeros at either end; else 0
// Whether number a is a whole number of times number b, which has 1 to MT_JSON_DIVISOR digits.
bool mt_json_is_multiple(const mt_json *a, const mt_json *b);
enum { MT_JSON_DIVISOR = 37 };

// --- building --------------------------------------------------------------------------------
// Each returns a value with one reference, NULL when out of memory. Bytes that are no UTF-8 become
// U+FFFD. mt_json_set…() and mt_json_append() take over the child's reference whatever happens; a
// NULL child, one that failed, too deep a nesting or no memory mark the parent as failed for good,
// so that a chain needs one mt_json_ok() at its end. Parents may be NULL, too.
mt_json *mt_json_new_null(void);
mt_json *mt_json_new_bool(bool value);
mt_json *mt_json_new_int(int64_t value);
mt_json *mt_json_new_double(
    double value); // shortest text that reads back the same; NULL for inf, nan
mt_json *mt_json_new_number(mt_str source); // NULL where source is not a JSON number
mt_json *mt_json_new_string(mt_str value);
mt_json *mt_json_new_text(const char *value); // null for NULL
mt_json *mt_json_new_object(void);
mt_json *mt_json_new_array(void);
mt_json *mt_json_copy(const mt_json *v); // a value of its own that may be changed; shares children
// Takes v over and gives a value that may be changed: v where that is the only reference to it,
// else a copy. A scalar stays what it is. NULL when out of memory.
mt_json *mt_json_own(mt_json *v);

int mt_json_set(mt_json *object, const char *name, mt_json *child); // 0 or negative errno; replaces
int mt_json_set_str(mt_json *object, mt_str name, mt_json *child);
int mt_json_append(mt_json *array, mt_json *child);
int mt_json_set_at(mt_json *array, size_t i, mt_json *child); // i is less than its count
// The same of a scalar that weighs what the one there does, without a change of anything else,
// where the array's only reference is the caller's. False: nothing is done, the reference not
// taken, also where there is no such item.
bool mt_json_swap_at(mt_json *array, size_t i, mt_json *scalar);
// Members and items behind it move up. False when there is none.
bool mt_json_remove(mt_json *object, mt_str name);
bool mt_json_remove_at(mt_json *array, size_t i);
bool mt_json_ok(const mt_json *v); // not NULL and not failed

// --- writing ---------------------------------------------------------------------------------
enum {
    MT_JSON_PRETTY = 1u << 0, // two blanks an indent, a line a member
};
// Appends v (absent: null). 0 or what b->failed holds; a failed value writes nothing, -ENOMEM.
int mt_json_write(const mt_json *v, mt_buf *b, unsigned flags);
// Appends s quoted and escaped; what is no UTF-8 becomes U+FFFD.
int mt_json_write_string(mt_str s, mt_buf *b);

// The streaming writer: commas and indents are its work, pairing begin and end the caller's.
// Failures stand in the buffer (buf->failed): check there once.
typedef struct mt_jw {
    mt_buf *buf;
    unsigned flags_;
    unsigned depth_;
    bool comma_, after_key_;
} mt_jw;

void mt_jw_init(mt_jw *w, mt_buf *buf, unsigned flags);
void mt_jw_begin_object(mt_jw *w);
void mt_jw_end_object(mt_jw *w);
void mt_jw_begin_array(mt_jw *w);
void mt_jw_end_array(mt_jw *w);
void mt_jw_key(mt_jw *w, const char *name);
void mt_jw_key_str(mt_jw *w, mt_str name);
void mt_jw_null(mt_jw *w);
void mt_jw_bool(mt_jw *w, bool value);
void mt_jw_int(mt_jw *w, int64_t value);
void mt_jw_double(mt_jw *w, double value); // null for inf and nan
void mt_jw_string(mt_jw *w, mt_str value);
void mt_jw_text(mt_jw *w, const char *value); // null for NULL
void mt_jw_value(mt_jw *w, const mt_json *v); // null for NULL
void mt_jw_raw(mt_jw *w, mt_str json);        // text that is one valid JSON value: not checked
void mt_jw_time(mt_jw *w, int64_t us);        // "2026-11-30T04:51:17.123456Z"; null for 0 and less
void mt_jw_duration(mt_jw *w, int64_t ms);    // "00:10:00"; null for 0 and less
// Key and value in one.
void mt_jw_member_text(mt_jw *w, const char *name, const char *value);
void mt_jw_member_str(mt_jw *w, const char *name, mt_str value);
void mt_jw_member_int(mt_jw *w, const char *name, int64_t value);
void mt_jw_member_bool(mt_jw *w, const char *name, bool value);
void mt_jw_member_null(mt_jw *w, const char *name);
void mt_jw_member_time(mt_jw *w, const char *name, int64_t us);
void mt_jw_member_duration(mt_jw *w, const char *name, int64_t ms);
void mt_jw_member_value(mt_jw *w, const char *name, const mt_json *v);

// --- typed members, for handlers --------------------------------------------------------------
// object is a request body (or a part of one). Failures are badField with the member's name as
// field. need: must be there; opt: absent and null are "not given" (0, and *ret is the fallback, or
// {NULL, 0}, or NULL). Borrowed results live as long as object.

int mt_json_need_object(const mt_json *v, const char *what, mt_err **err); // v itself; badRequest
int mt_json_need_string(const mt_json *object, const char *name, mt_str *ret, mt_err **err);
int mt_json_opt_string(const mt_json *object, const char *name, mt_str *ret, mt_err **err);
// As the two above, but NUL characters are let through (those refuse them, so that ret->data can be
// used as a C string without losing an end).
int mt_json_need_bytes(const mt_json *object, const char *name, mt_str *ret, mt_err **err);
int mt_json_opt_bytes(const mt_json *object, const char *name, mt_str *ret, mt_err **err);
// A string that mt_is_name() accepts.
int mt_json_need_name(const mt_json *object, const char *name, mt_str *ret, mt_err **err);
int mt_json_opt_bool(const mt_json *object, const char *name, bool fallback, bool *ret,
                     mt_err **err);
typedef struct mt_json_range {
    int64_t min, max, fallback;
} mt_json_range;
int mt_json_opt_int(const mt_json *object, const char *name, mt_json_range range, int64_t *ret,
                    mt_err **err);
int mt_json_opt_duration(const mt_json *object, const char *name, int64_t fallback_ms,
                         int64_t *ret_ms, mt_err **err); // "hh:mm:ss"
int mt_json_opt_time(const mt_json *object, const char *name, int64_t *ret_us, mt_err **err);
int mt_json_opt_object(const mt_json *object, const char *name, const mt_json **ret, mt_err **err);
int mt_json_opt_array(const mt_json *object, const char *name, const mt_json **ret, mt_err **err);
// An object whose members are all strings without NUL ("environment", "labels").
int mt_json_opt_string_map(const mt_json *object, const char *name, const mt_json **ret,
                           mt_err **err);
// Refuses members that are not in names, with the nearest that is.
int mt_json_only(const mt_json *object, const char *const *names, size_t count, mt_err **err);
#define MT_JSON_ONLY(object, err, ...)                         \
    mt_json_only((object), (const char *const[]){__VA_ARGS__}, \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (err))
// MT_JSON_ONLY(body, err, "name", "expires")
