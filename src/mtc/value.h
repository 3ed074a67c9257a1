// SPDX-License-Identifier: Apache-2.0
// The values of a run and the memory that they take, for the files of src/mtc alone. Values do not
// change once somebody else can see them: what has one reference may be changed in place.
//
// Every allocation goes through the run's heap and is counted; one that fails, or would be over the
// limit, ends the run (vm_no_memory()), and the caller only has to return.
#pragma once

#include "mtc/code.h"
#include "mtc/vm.h"
#include "json/json.h"

typedef enum vm_kind {
    VM_NONE, // an empty slot
    VM_BOOL,
    VM_INT,
    // Those below have references.
    VM_DECIMAL,
    VM_STRING,
    VM_GUID,
    VM_JSON, // jsonObject and jsonArray
    VM_ERROR,
} vm_kind;

// What counted values begin with. Not atomic: a run is one thread's at a time.
typedef struct vm_box {
    uint32_t refs;
    uint32_t size; // bytes of the heap that it takes
} vm_box;

typedef struct vm_decimal {
    vm_box box;
    mt_decimal value;
} vm_decimal;

// UTF-8, valid, without NUL. crumb: a place that was looked up, so that a walk through a text by
// positions does not begin anew each time.
typedef struct vm_string {
    vm_box box;
    uint32_t len, cap;               // bytes
    uint32_t chars;                  // UINT32_MAX: not counted yet; == len: all ASCII
    uint32_t crumb_char, crumb_byte; // 0 and 0 at first
    char data[];
} vm_string;

typedef struct vm_guid {
    vm_box box;
    char text[37];
} vm_guid;

// An object or array of src/json. `weight` of it is counted by the heap as long as this lives.
typedef struct vm_json {
    vm_box box;
    unsigned height; // of json when it was counted
    mt_json *json;
    size_t weight;
} vm_json;

typedef struct vm_error {
    vm_box box;
    const char *code, *place, *message;
    size_t message_len;
    char text[]; // the three of them, each with a NUL
} vm_error;

typedef struct vm_value {
    vm_kind kind;
    bool fixed; // a constant of the program, which all its machines share: not counted, not written
    union {
        bool truth;
        int64_t number;
        vm_box *box;
        vm_decimal *decimal;
        vm_string *string;
        vm_guid *guid;
        vm_json *json;
        vm_error *error;
    };
} vm_value;

// In two halves: most values were written so, and a load that is wider than the store before it
// waits for that.
static inline void vm_move(vm_value *to, const vm_value *from)
{
    uint64_t head;
    int64_t number = from->number;

    memcpy(&head, from, sizeof(head));
    memcpy(to, &head, sizeof(head));
    to->number = number;
}

// ---- memory ----

// NULL over the limit or without memory: then the run has ended (vm_no_memory() was called).
void *vm_alloc(mt_vm *vm, size_t size);
void vm_free(mt_vm *vm, void *p, size_t size);
// Counts what others allocated for a value. False over the limit: nothing is counted, the run
// ended.
bool vm_charge(mt_vm *vm, size_t bytes);
void vm_discharge(mt_vm *vm, size_t bytes);

static inline bool vm_is_counted(vm_value v)
{
    return v.kind >= VM_DECIMAL && !v.fixed;
}
// Whether this is the only reference, so that it may be changed in place.
static inline bool vm_is_own(vm_value v)
{
    return vm_is_counted(v) && v.box->refs == 1;
}
static inline vm_value vm_ref(vm_value v)
{
    if (vm_is_counted(v))
        v.box->refs++;
    return v;
}
void vm_drop_counted(mt_vm *vm, vm_value v); // the last reference is gone
static inline void vm_unref(mt_vm *vm, vm_value v)
{
    if (vm_is_counted(v) && --v.box->refs == 0)
        vm_drop_counted(vm, v);
}

// ---- making values: 0, or -1 when the run has ended ----

static inline vm_value vm_bool(bool truth)
{
    vm_value v = {.kind = VM_BOOL, .number = 0}; // all of it, so that it moves as the others do

    v.truth = truth;
    return v;
}
static inline vm_value vm_int(int64_t number)
{
    return (vm_value){.kind = VM_INT, .number = number};
}
int vm_make_decimal(mt_vm *vm, mt_decimal d, vm_value *ret);
// Bytes that are valid UTF-8 without NUL; TooLarge (thrown) over MT_VM_STRING.
int vm_make_string(mt_vm *vm, mt_str text, vm_value *ret);
// One to be filled by the caller: len bytes at ret->string->data.
int vm_make_string_room(mt_vm *vm, size_t len, vm_value *ret);
int vm_make_guid(mt_vm *vm, const char text[37], vm_value *ret); // small letters
// The guid that a text is, capitals as small letters. False: it is none.
bool vm_read_guid(mt_str text, char out[37]);
// Takes over json, an object or array, whatever happens; NULL, or one that failed: out of memory,
// the run has ended. Throws TooLarge when it is too heavy or too deep, BadFormat when there is a
// text with a NUL in it.
int vm_make_json(mt_vm *vm, mt_json *json, vm_value *ret);
extern const mt_json_limits vm_json_limits; // for reading JSON that is to become a value

// ---- looking at values ----

static inline mt_str vm_text(vm_value v) // of a string
{
    return (mt_str){v.string->data, v.string->len};
}
uint32_t vm_chars(vm_value string); // how many characters it has
// The byte where character i begins; i is at most their count. Unless all is ASCII it looks at what
// is between there and the nearest of the beginning, the end and the place that it found last.
uint32_t vm_byte_at(vm_value string, uint32_t i);
// Appends a scalar as text, as `+` does; JSON as JSON text. 0 or negative errno.
int vm_add_text(vm_value v, mt_buf *out);
// Appends v as JSON. 0 or negative errno.
int vm_add_json(vm_value v, mt_buf *out);
// -1, 0, 1: two of one kind that is ordered.
int vm_compare(vm_value a, vm_value b);
bool vm_equal(vm_value a, vm_value b); // two of one kind

// ---- changing ----

// left + right as text, into ret; uses up neither. What has one reference grows in place: then left
// is taken (its kind is VM_NONE afterwards). Throws TooLarge.
int vm_join(mt_vm *vm, vm_value *left, vm_value right, vm_value *ret);
// Makes *v the only one to hold its JSON, so that that may be changed: in place where it had one
// reference, else *v is a copy now. Follow with vm_json_settle(). 0, or -1 when the run has ended.
int vm_json_own(mt_vm *vm, vm_value *v);
// After a change of v->json->json: counts what it weighs now, looks at the limits. 0, or -1 thrown
// or ended. It cannot undo a change: what may be lent (below) is to be known to fit before.
int vm_json_settle(mt_vm *vm, vm_value v);

// ---- errors ----

// Throws at the place of the instruction that is under way. Always -1. The message is a sentence
// without a full stop; a text of the program in it is cut by vm_quote().
int vm_throw(mt_vm *vm, const char *code, const char *fmt, ...) MT_PRINTF(3, 4);
int vm_throw_str(mt_vm *vm, const char *code, mt_str message); // any length, as it is
int vm_no_memory(mt_vm *vm);                                   // ends the run; always -1
// 'text', cut at 40 characters and fit for a sentence.
enum { VM_QUOTE = 4 * 40 + 8 }; // bytes
const char *vm_quote(mt_str text, char out[VM_QUOTE]);
// Moving or looking at so many bytes takes steps, too.
void vm_spend(mt_vm *vm, size_t bytes);

// ---- built-ins ----

// A pure built-in: arguments of the types that the table gives it, in args; they stay the
// machine's, but an argument may be taken (set its kind to VM_NONE) or changed in place where
// vm_is_own() says so. All that may be refused is looked at before anything is changed or taken:
// the machine may have lent a variable's only reference. 0 with *ret set (void: untouched), or -1
// thrown or ended.
typedef int vm_builtin_fn(mt_vm *vm, vm_value *args, vm_value *ret);
// By row of builtins.def: the function builtin_NAME of a pure one, NULL for the others.
vm_builtin_fn *vm_builtin_function(const mt_mtc_builtin *b);
const mt_vm_options *vm_options(const mt_vm *vm); // run_id, app, namespace_name
// What a sentence calls a value: member 'size', item 7, or a text. Made a text only when it is
// told.
typedef struct vm_what {
    enum { VM_WHAT_TEXT, VM_WHAT_MEMBER, VM_WHAT_ITEM } kind;
    mt_str text; // of a member its name
    int64_t item;
} vm_what;
// A JSON value as a value of that type, as JsonObjectGet… reads it; NULL is one that is missing.
// BadType, BadFormat, Overflow, TooLarge thrown.
int vm_from_json(mt_vm *vm, const mt_json *json, mt_mtc_type type, const vm_what *what,
                 vm_value *ret);
// v (no error) as JSON; NULL: the run has ended.
mt_json *vm_to_json(mt_vm *vm, vm_value v);
