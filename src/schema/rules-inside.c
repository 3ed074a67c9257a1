// SPDX-License-Identifier: Apache-2.0
// Rules that go into the value: members, names, items.
#include "schema/validate-internal.h"

#include <inttypes.h>

#define FAULT(v, r, ...) schema_fault((v), (r)->node, (r)->rule->keyword, (r)->at, __VA_ARGS__)

enum { MEMBER_STEPS = 4, NEAREST_FROM_MAX = 200 };

static spot member_at(const spot *at, size_t i)
{
    return (spot){
        .json = mt_json_value_at(at->json, i), .up = at, .name = mt_json_name_at(at->json, i)};
}

static spot item_at(const spot *at, size_t i)
{
    return (spot){.json = mt_json_at(at->json, i), .up = at, .index = i};
}

// ---- members ----

static const char *next_name(size_t i, void *properties)
{
    return mt_json_name_at(properties, i).data;
}

// A property that a schema `false` stands for, in the words of its object. known: what there is, or
// NULL.
static int not_allowed(validation *v, uint32_t node, const spot *at, mt_str name,
                       const mt_json *known)
{
    char shown[SCHEMA_SHOW], other[SCHEMA_SHOW];
    const char *near = NULL;

    if (schema_is_full(v))
        return 0;
    if (mt_json_count(known) <= NEAREST_FROM_MAX)
        near = mt_nearest(name, next_name, (void *)known);
    (void)schema_show_text(name, '\'', shown);
    if (near)
        return schema_fault(v, node, NULL, at, "the property %s is not allowed: did you mean %s?",
                            shown, schema_show_text(mt_str_of(near), '\'', other));
    return schema_fault(v, node, NULL, at, "the property %s is not allowed", shown);
}

static int apply_rest(validation *v, const rule_at *r, const spot *member)
{
    if (v->s->nodes.at[r->rule->rest].never)
        return not_allowed(v, r->rule->rest, r->at, member->name, r->rule->value);
    return schema_apply(v, r->rule->rest, member, r->scope, NULL);
}

// The schemas of all patterns that the name matches.
static int apply_patterns(validation *v, const rule_at *r, const spot *member, bool *ret_known)
{
    int fits = 1;

    for (uint32_t i = 0; i < r->rule->count; i++) {
        int one = schema_match(v, r->rule->regex + i, member->name, member);

        if (one < 0)
            return -1;
        if (one == 0)
            continue;
        *ret_known = true;
        one = schema_apply(v, r->rule->second + i, member, r->scope, NULL);
        if (one < 0)
            return -1;
        fits = fits && one;
    }
    return fits;
}

static int apply_member(validation *v, const rule_at *r, const spot *member, size_t i)
{
    size_t at = mt_json_find(r->rule->value, member->name);
    bool known = at != SIZE_MAX;
    int fits = 1, one;

    if (schema_spend(v, MEMBER_STEPS + member->name.len / 32) < 0)
        return -1;
    if (known)
        fits = schema_apply(v, r->rule->first + (uint32_t)at, member, r->scope, NULL);
    if (fits < 0)
        return -1;
    one = apply_patterns(v, r, member, &known);
    if (one < 0)
        return -1;
    fits = fits && one;
    if (!known && r->rule->rest != SCHEMA_NONE) {
        one = apply_rest(v, r, member);
        if (one < 0)
            return -1;
        fits = fits && one;
        known = true;
    }
    if (known)
        marks_set(r->marks, i);
    return fits;
}

int rule_members(validation *v, const rule_at *r)
{
    int fits = 1;

    if (mt_json_kind_of(r->at->json) != MT_JSON_OBJECT)
        return 1;
    for (size_t i = 0; i < mt_json_count(r->at->json) && (fits || !schema_is_full(v)); i++) {
        spot member = member_at(r->at, i);
        int one = apply_member(v, r, &member, i);

        if (one < 0)
            return -1;
        fits = fits && one;
    }
    return fits;
}

// A name is looked at as a string, in the place of its object.
int rule_names(validation *v, const rule_at *r)
{
    int fits = 1;

    if (mt_json_kind_of(r->at->json) != MT_JSON_OBJECT)
        return 1;
    for (size_t i = 0; i < mt_json_count(r->at->json) && (fits || !schema_is_full(v)); i++) {
        mt_str name = mt_json_name_at(r->at->json, i);
        _cleanup_json_ mt_json *json = mt_json_new_string(name);
        spot at = *r->at;
        int one;

        if (!json)
            return mt_fail_oom(v->err);
        if (schema_spend(v, MEMBER_STEPS + name.len / 32) < 0)
            return -1;
        at.json = json;
        one = v->s->nodes.at[r->rule->first].never
                  ? not_allowed(v, r->rule->first, r->at, name, NULL)
                  : schema_apply(v, r->rule->first, &at, r->scope, NULL);
        if (one < 0)
            return -1;
        fits = fits && one;
    }
    return fits;
}

// ---- items ----

static int apply_item(validation *v, const rule_at *r, size_t i)
{
    uint32_t node = i < r->rule->count ? r->rule->first + (uint32_t)i : r->rule->rest;
    spot item = item_at(r->at, i);

    if (schema_spend(v, 1) < 0)
        return -1;
    marks_set(r->marks, i);
    return schema_apply(v, node, &item, r->scope, NULL);
}

int rule_items(validation *v, const rule_at *r)
{
    size_t count = mt_json_count(r->at->json);
    int fits = 1;

    if (mt_json_kind_of(r->at->json) != MT_JSON_ARRAY)
        return 1;
    if (r->rule->rest == SCHEMA_NONE)
        count = MT_MIN(count, (size_t)r->rule->count);
    for (size_t i = 0; i < count && (fits || !schema_is_full(v)); i++) {
        int one = apply_item(v, r, i);

        if (one < 0)
            return -1;
        fits = fits && one;
    }
    return fits;
}

int rule_contains(validation *v, const rule_at *r)
{
    uint64_t count = 0;

    if (mt_json_kind_of(r->at->json) != MT_JSON_ARRAY)
        return 1;
    for (size_t i = 0; i < mt_json_count(r->at->json); i++) {
        spot item = item_at(r->at, i);
        int one = schema_apply_quiet(v, r->rule->first, &item, r->scope, NULL);

        if (one < 0)
            return -1;
        if (one > 0) {
            marks_set(r->marks, i);
            count++;
        }
    }
    if (count > r->rule->most)
        return schema_fault(v, r->node, "maxContains", r->at,
                            "%" PRIu64 " items fit the schema of contains, more than %" PRIu64,
                            count, r->rule->most);
    if (count >= r->rule->bound)
        return 1;
    if (count == 0)
        return FAULT(v, r, "no item fits the schema of contains");
    return schema_fault(v, r->node, "minContains", r->at,
                        "%" PRIu64 " items fit the schema of contains, fewer than %" PRIu64, count,
                        r->rule->bound);
}

// ---- what nobody has looked at ----

int rule_unevaluated(validation *v, const rule_at *r)
{
    bool items = r->rule->op == OP_UNEVALUATED_ITEMS, never = v->s->nodes.at[r->rule->first].never;
    int fits = 1;

    if (mt_json_kind_of(r->at->json) != (items ? MT_JSON_ARRAY : MT_JSON_OBJECT))
        return 1;
    for (size_t i = 0; i < mt_json_count(r->at->json) && (fits || !schema_is_full(v)); i++) {
        spot one = items ? item_at(r->at, i) : member_at(r->at, i);
        int ok;

        if (schema_spend(v, 1) < 0)
            return -1;
        if (marks_has(r->marks, i))
            continue;
        ok = never && !items ? not_allowed(v, r->rule->first, r->at, one.name, NULL)
                             : schema_apply(v, r->rule->first, &one, r->scope, NULL);
        if (ok < 0)
            return -1;
        fits = fits && ok;
        marks_set(r->marks, i);
    }
    return fits;
}
