// SPDX-License-Identifier: Apache-2.0
// Rules that look at the same value again: references, and all, any, one, none of some schemas.
#include "schema/validate-internal.h"

#include <stdio.h>

#define FAULT(v, r, ...) schema_fault((v), (r)->node, (r)->rule->keyword, (r)->at, __VA_ARGS__)

// A schema whose marks count only if it fits.
static int apply_apart(validation *v, const rule_at *r, uint32_t node, bool quiet)
{
    _cleanup_marks_ marks own = {0};
    int fits;

    if (r->marks && marks_init(v, &own, r->at->json) < 0)
        return -1;
    fits = (quiet ? schema_apply_quiet : schema_apply)(v, node, r->at, r->scope,
                                                       r->marks ? &own : NULL);
    if (fits > 0 && r->marks)
        marks_add(r->marks, &own);
    return fits;
}

// ---- references ----

// Of all resources on the way here, the outermost that has such an anchor.
static int find_dynamic(validation *v, const rule_at *r, uint32_t *ret)
{
    mt_str name = v->s->anchors.at[r->rule->anchor].name;

    for (const scope *sc = r->scope; sc; sc = sc->outer) {
        uint32_t i = v->s->resources.at[sc->resource].anchors;

        for (; i != SCHEMA_NONE; i = v->s->anchors.at[i].next) {
            const schema_anchor *a = &v->s->anchors.at[i];

            if (schema_spend(v, 1) < 0)
                return -1;
            if (a->name.len == name.len && memcmp(a->name.data, name.data, name.len) == 0)
                *ret = a->node;
        }
        if (schema_spend(v, 1) < 0)
            return -1;
    }
    return 0;
}

static int apply_reference(validation *v, const rule_at *r)
{
    uint32_t node = r->rule->first;

    if (r->rule->op == OP_DYNAMIC_REF && r->rule->anchor != SCHEMA_NONE &&
        find_dynamic(v, r, &node) < 0)
        return -1;
    return schema_apply(v, node, r->at, r->scope, r->marks);
}

// ---- all, any, one, not ----

static int apply_all(validation *v, const rule_at *r)
{
    int fits = 1;

    for (uint32_t i = 0; i < r->rule->count && (fits || !schema_is_full(v)); i++) {
        int one = schema_apply(v, r->rule->first + i, r->at, r->scope, r->marks);

        if (one < 0)
            return -1;
        fits = fits && one;
    }
    return fits;
}

static void forget_faults(mt_schema_errors *e, size_t from)
{
    for (; e->count > from; e->count--) {
        mt_schema_error *last = &e->items[e->count - 1];

        free(last->instance);
        free(last->schema);
        free(last->sentence);
    }
}

// The last fault, which sums up those from there on, goes in front of them.
static void put_first(mt_schema_errors *e, size_t from)
{
    mt_schema_error last = e->items[e->count - 1];

    memmove(&e->items[from + 1], &e->items[from], (e->count - 1 - from) * sizeof(last));
    e->items[from] = last;
}

// What was wrong with each of the schemas stays, behind a fault that says that none fits. The last
// place is left for it.
static int none_fits(validation *v, const rule_at *r, size_t from)
{
    size_t before = v->errors->count;
    int fits;

    if (!v->quiet && schema_is_full(v) && before > from) {
        forget_faults(v->errors, before - 1);
        before--;
    }
    fits = FAULT(v, r, "fits none of the %u schemas of %s", r->rule->count, r->rule->keyword);
    if (v->errors->count > before)
        put_first(v->errors, from);
    return fits;
}

static int apply_any(validation *v, const rule_at *r)
{
    size_t from = v->errors->count;
    bool found = false;

    for (uint32_t i = 0; i < r->rule->count && (!found || r->marks); i++) {
        int one = apply_apart(v, r, r->rule->first + i, found);

        if (one < 0)
            return -1;
        found = found || one;
    }
    if (!found)
        return none_fits(v, r, from);
    forget_faults(v->errors, from);
    return 1;
}

static int apply_one(validation *v, const rule_at *r)
{
    size_t from = v->errors->count;
    uint32_t first = SCHEMA_NONE;

    for (uint32_t i = 0; i < r->rule->count; i++) {
        int one = apply_apart(v, r, r->rule->first + i, first != SCHEMA_NONE);

        if (one < 0)
            return -1;
        if (one > 0 && first != SCHEMA_NONE) {
            forget_faults(v->errors, from);
            return FAULT(v, r, "fits schema %u and schema %u of oneOf, not exactly one", first, i);
        }
        if (one > 0)
            first = i;
    }
    if (first == SCHEMA_NONE)
        return none_fits(v, r, from);
    forget_faults(v->errors, from);
    return 1;
}

static int apply_not(validation *v, const rule_at *r)
{
    int fits = schema_apply_quiet(v, r->rule->first, r->at, r->scope, NULL);

    if (fits < 0)
        return -1;
    return fits ? FAULT(v, r, "fits the schema that must not fit") : 1;
}

static int apply_if(validation *v, const rule_at *r)
{
    int fits = apply_apart(v, r, r->rule->first, true);
    uint32_t next;

    if (fits < 0)
        return -1;
    next = fits ? r->rule->second : r->rule->rest;
    return next == SCHEMA_NONE ? 1 : schema_apply(v, next, r->at, r->scope, r->marks);
}

// ---- what a property brings with it ----

static int want_beside(validation *v, const rule_at *r, mt_str name, const mt_json *list)
{
    char shown[SCHEMA_SHOW], other[SCHEMA_SHOW];
    int fits = 1;

    for (size_t i = 0; i < mt_json_count(list) && (fits || !schema_is_full(v)); i++) {
        mt_str needed = mt_json_str(mt_json_at(list, i));

        if (schema_spend(v, 2 + needed.len / 32) < 0)
            return -1;
        if (mt_json_get_str(r->at->json, needed))
            continue;
        fits = FAULT(v, r, "the property %s is missing, which %s needs beside it",
                     schema_show_text(needed, '\'', shown), schema_show_text(name, '\'', other));
        if (fits < 0)
            return -1;
    }
    return fits;
}

static int apply_dependencies(validation *v, const rule_at *r)
{
    uint32_t node = r->rule->first;
    int fits = 1;

    if (mt_json_kind_of(r->at->json) != MT_JSON_OBJECT)
        return 1;
    for (size_t i = 0; i < mt_json_count(r->rule->value) && (fits || !schema_is_full(v)); i++) {
        mt_str name = mt_json_name_at(r->rule->value, i);
        const mt_json *wanted = mt_json_value_at(r->rule->value, i);
        bool list = mt_json_kind_of(wanted) == MT_JSON_ARRAY;
        int one = 1;

        if (schema_spend(v, 2 + name.len / 32) < 0)
            return -1;
        if (mt_json_get_str(r->at->json, name))
            one = list ? want_beside(v, r, name, wanted)
                       : schema_apply(v, node, r->at, r->scope, r->marks);
        if (one < 0)
            return -1;
        fits = fits && one;
        node += !list;
    }
    return fits;
}

int rule_logic(validation *v, const rule_at *r)
{
    switch (r->rule->op) {
    case OP_ALL_OF:
        return apply_all(v, r);
    case OP_ANY_OF:
        return apply_any(v, r);
    case OP_ONE_OF:
        return apply_one(v, r);
    case OP_NOT:
        return apply_not(v, r);
    case OP_IF:
        return apply_if(v, r);
    case OP_DEPENDENCIES:
        return apply_dependencies(v, r);
    default:
        return apply_reference(v, r);
    }
}
