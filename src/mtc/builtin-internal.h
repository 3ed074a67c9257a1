// SPDX-License-Identifier: Apache-2.0
// What the files of built-ins share.
#pragma once

#include "mtc/builtins.h"

// ---- texts ----

// What a buffer with the maximum MT_VM_STRING holds as a string. What it failed of is thrown
// (TooLarge) or ends the run: -1.
int vm_string_of(mt_vm *vm, const mt_buf *b, vm_value *ret);
// Room for a string of len bytes, however many: TooLarge (thrown).
int vm_string_room(mt_vm *vm, uint64_t len, vm_value *ret);
// As vm_chars() and vm_byte_at(), with the steps that a way through the text takes.
uint32_t vm_count(mt_vm *vm, vm_value string);
uint32_t vm_walk_to(mt_vm *vm, vm_value string, uint32_t i);
size_t vm_count_text(mt_str text); // characters of valid UTF-8
// Without blanks, tabs, LF and CR at its start, its end.
mt_str vm_trim(mt_str text, bool start, bool end);
// Appends a JSON value as JsonObjectGet gives it. 0 or what out->failed holds.
int vm_add_json_text(const mt_json *json, mt_buf *out);

// ---- arguments ----

// Whether i is a position of an item or character, or with `end` the one behind the last. -1 with
// OutOfRange thrown.
int vm_check_item(mt_vm *vm, vm_value array, int64_t i, bool end);
int vm_check_char(mt_vm *vm, vm_value string, int64_t i, bool end);
// -1 with BadArgument thrown where a number is less than 0.
int vm_check_count(mt_vm *vm, const char *name, int64_t count);

// ---- lists as they are made ----

// Takes the item over, whatever happens; NULL (also for the list): out of memory. 0, or -1 thrown
// (TooLarge, so that a list never grows far beyond what it may weigh) or ended.
int vm_list_add(mt_vm *vm, mt_json *list, mt_json *item);
int vm_list_add_text(mt_vm *vm, mt_json *list, mt_str text);

// ---- JSON that changes ----

// The JSON of *v, to be changed by one more child (NULL: none; `more` bytes beside it): in place
// where that cannot be refused, else a copy. NULL when the run has ended.
mt_json *vm_change_begin(mt_vm *vm, vm_value *v, const mt_json *child, size_t more);
// The changed JSON as result, *v being taken where it is the one. r is what the changes returned.
// -1 thrown (TooLarge: then *v is as it was) or ended.
int vm_change_end(mt_vm *vm, vm_value *v, mt_json *json, int r, vm_value *ret);
// The same around one child, which is taken over, NULL when the run has ended.
int vm_set_member(mt_vm *vm, vm_value *object, mt_str name, mt_json *child, vm_value *ret);
// The object or list that a text is. BadFormat, BadType, TooLarge thrown.
int vm_parse_json(mt_vm *vm, mt_str text, mt_mtc_type type, vm_value *ret);
const char *vm_kind_word(const mt_json *json); // "number"; "" for NULL
// JSON on one line, or pretty.
int vm_write_json(mt_vm *vm, vm_value v, unsigned flags, vm_value *ret);
