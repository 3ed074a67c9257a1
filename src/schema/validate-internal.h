// SPDX-License-Identifier: Apache-2.0
// One validation, shared by validate.c and the files of rules.
#pragma once

#include "schema/schema-internal.h"

// A value and how it was come to.
typedef struct spot {
    const mt_json *json;
    const struct spot *up; // NULL of the instance itself
    mt_str name;           // in an object
    size_t index;          // in an array
} spot;

// Which items or members were looked at by a schema that fits: a bit each.
typedef struct marks {
    uint64_t *bits;
    size_t count; // of items or members
} marks;

// The resources that were gone through, from the last one out.
typedef struct scope {
    const struct scope *outer;
    uint32_t resource;
} scope;

typedef struct validation {
    const mt_schema *s;
    mt_schema_errors *errors;
    unsigned quiet; // not 0: faults do not matter, only whether there is one
    unsigned depth, depth_max;
    uint64_t steps, regex_work; // left
    mt_err **err;
} validation;

// Where a rule is looked at. marks is NULL where nobody wants to know.
typedef struct rule_at {
    const schema_rule *rule;
    uint32_t node;
    const spot *at;
    const scope *scope;
    marks *marks;
} rule_at;

// Everything here that is a check gives 1 where the value fits, 0 where not (the fault is noted)
// and -1 when the validation cannot go on.

int schema_apply(validation *v, uint32_t node, const spot *at, const scope *sc, marks *m);
int schema_apply_quiet(validation *v, uint32_t node, const spot *at, const scope *sc, marks *m);
// Notes a fault. keyword: of the node, or NULL for the node itself. Returns 0, or -1.
int schema_fault(validation *v, uint32_t node, const char *keyword, const spot *at, const char *fmt,
                 ...) MT_PRINTF(5, 6);
bool schema_is_full(const validation *v); // of faults: one more would not be kept
int schema_spend(validation *v, uint64_t steps);
// Whether a pattern matches a text of what is at a place.
int schema_match(validation *v, uint32_t regex, mt_str text, const spot *at);

int marks_init(validation *v, marks *m, const mt_json *of);
void marks_done(marks *m);
#define _cleanup_marks_ _cleanup_(marks_done)
static inline void marks_set(marks *m, size_t i)
{
    if (m && i < m->count)
        m->bits[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline bool marks_has(const marks *m, size_t i)
{
    return m->bits[i / 64] & UINT64_C(1) << (i % 64);
}
void marks_add(marks *to, const marks *from);

int rule_simple(validation *v, const rule_at *r);  // of the value alone (rules-simple.c)
int rule_members(validation *v, const rule_at *r); // rules-inside.c
int rule_names(validation *v, const rule_at *r);
int rule_items(validation *v, const rule_at *r);
int rule_contains(validation *v, const rule_at *r);
int rule_unevaluated(validation *v, const rule_at *r); // both
int rule_logic(validation *v, const rule_at *r);       // rules-logic.c
