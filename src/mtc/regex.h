// SPDX-License-Identifier: Apache-2.0
// Regular expressions of programs, for the files of src/mtc alone: PCRE2 with bounds that hold for
// hostile patterns and texts. How much work a search does is counted and limited, not how long it
// takes, so that a run that goes on after a restart meets the same error.
#pragma once

#include "mtc/value.h"

typedef struct vm_regex vm_regex;

typedef enum vm_regex_use {
    VM_REGEX_ONCE, // for the first match
    VM_REGEX_ALL,  // for all of them
} vm_regex_use;

// A search through text, which must outlive it. NULL with BadPattern thrown, or when the run has
// ended.
vm_regex *vm_regex_new(mt_vm *vm, mt_str text, mt_str pattern, vm_regex_use use);
vm_regex *vm_regex_free(vm_regex *r); // returns NULL; accepts NULL
MT_DEFINE_CLEANUP(vm_regex_free, vm_regex *)

// The next match, which begins where the one before it ended; after an empty one a character
// further on. 1, 0 when there is none, -1 with BadPattern thrown or when the run has ended.
int vm_regex_next(vm_regex *r);
// Counts work that is done for a match. -1 with BadPattern thrown when it is too much.
int vm_regex_charge(vm_regex *r, size_t work);

// Of the match: where it begins and ends, in bytes; what a group took (0: all of it), false where
// it took no part.
size_t vm_regex_begin(const vm_regex *r);
size_t vm_regex_end(const vm_regex *r);
bool vm_regex_group(const vm_regex *r, uint32_t group, mt_str *ret);

// Of the pattern: its groups are 1 to this.
uint32_t vm_regex_groups(const vm_regex *r);
mt_str vm_regex_name(const vm_regex *r, uint32_t group); // {NULL, 0} where it has none
uint32_t vm_regex_named(const vm_regex *r, mt_str name); // the group; 0 when there is none
