// SPDX-License-Identifier: Apache-2.0
// Regular expressions: PCRE2 with bounds that hold for hostile patterns and texts. How much work a
// search does is counted and limited, not how long it takes, so that the same search always ends
// the same way. Nothing is compiled to machine code. Patterns and texts are valid UTF-8.
//
// A pattern may be used by several threads at once, a search by one.
#pragma once

#include "base/err.h"
#include "base/str.h"

typedef struct mt_regex mt_regex;

enum {
    MT_REGEX_ECMA = 1u << 0, // the pattern is ECMA-262's (with flag u), not PCRE2's: see ecma.h
    MT_REGEX_ALL = 1u << 1,  // searches look for all matches, not for the first alone
};

// -1 with badField ("the pattern is wrong at position 3: …") or outOfMemory.
int mt_regex_new(mt_str pattern, unsigned flags, mt_regex **ret, mt_err **err);
mt_regex *mt_regex_free(mt_regex *r); // returns NULL; accepts NULL
MT_DEFINE_CLEANUP(mt_regex_free, mt_regex *)

// Its groups are 1 to this.
uint32_t mt_regex_groups(const mt_regex *r);
mt_str mt_regex_name(const mt_regex *r, uint32_t group); // {NULL, 0} where it has none
uint32_t mt_regex_named(const mt_regex *r, mt_str name); // the group; 0 when there is none

// Searches through one text for one pattern, which both must outlive it. Work: a character that is
// passed over is one, some nanoseconds.
typedef struct mt_regex_search {
    uint64_t left; // of the work that it may do
    mt_str text;
    const mt_regex *regex_;
    void *match_, *context_;
    size_t at_;          // where the item before stood
    uint32_t byte_cost_; // of that item
} mt_regex_search;

// -1 with tooLarge (the text is too long for the work) or outOfMemory: nothing to be done then.
int mt_regex_search_init(mt_regex_search *s, const mt_regex *r, mt_str text, uint64_t work,
                         mt_err **err);
void mt_regex_search_done(mt_regex_search *s);
#define _cleanup_search_ _cleanup_(mt_regex_search_done)
// The first match that begins at from or behind it. 1, 0 when there is none, -1 with tooLarge (it
// takes too long, or too much memory), badField (the pattern fails on this text) or outOfMemory.
int mt_regex_search_from(mt_regex_search *s, size_t from, mt_err **err);
// Of the match, where a group begins and ends (0: all of it); false where it took no part.
bool mt_regex_search_group(const mt_regex_search *s, uint32_t group, size_t *ret_begin,
                           size_t *ret_end);
