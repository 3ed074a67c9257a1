// SPDX-License-Identifier: Apache-2.0
// Keywords: which drafts and vocabularies have them, and the rules that they become. What a keyword
// holds is checked here, in words; schema_check_meta() finds the rest.
#include "schema/schema-internal.h"

#include <stdio.h>

enum {
    RULES_MAX = 200000,
    REGEXES_MAX = 500,
    BOTH = SCHEMA_DRAFT_7 | SCHEMA_DRAFT_2020,
};

typedef struct keyword keyword;

// A keyword of a schema that is being made into rules.
typedef struct spot {
    schema_compiler *c;
    const keyword *keyword;
    const mt_json *schema, *value;
    uint32_t node;
    schema_draft draft;
} spot;

struct keyword {
    const char *name;
    unsigned drafts, vocabulary;
    int (*add)(const spot *k);
    schema_op op;
};

#define BAD(k, ...) schema_bad((k)->c, MT_E_BAD_FIELD, (k)->node, (k)->keyword->name, __VA_ARGS__)

// ---- parts ----

static schema_rule *add_rule(const spot *k)
{
    schema_rule *r = SCHEMA_PUSH(k->c, k->c->s->rules, RULES_MAX, "keywords");

    if (!r)
        return NULL;
    *r = (schema_rule){
        .op = k->keyword->op,
        .keyword = k->keyword->name,
        .value = k->value,
        .most = UINT64_MAX,
        .first = SCHEMA_NONE,
        .second = SCHEMA_NONE,
        .rest = SCHEMA_NONE,
        .anchor = SCHEMA_NONE,
    };
    return r;
}

static uint32_t add_child(const spot *k, const char *name, const mt_json *json)
{
    schema_child how = {.parent = k->node, .step = STEP_KEYWORD, .keyword = name};

    return schema_add_node(k->c, json, k->c->s->nodes.at[k->node].resource, &how);
}

// A keyword beside the one that is looked at. 0 and SCHEMA_NONE where there is none.
static int add_beside(const spot *k, const char *name, uint32_t *ret)
{
    const mt_json *v = mt_json_get(k->schema, name);

    *ret = v ? add_child(k, name, v) : (uint32_t)SCHEMA_NONE;
    return v && *ret == SCHEMA_NONE ? -1 : 0;
}

// The schemas of a list, one after another.
static int add_list(const spot *k, const char *name, const mt_json *list, uint32_t *ret)
{
    *ret = k->c->s->nodes.count;
    for (size_t i = 0; i < mt_json_count(list); i++) {
        schema_child how = {
            .parent = k->node, .step = STEP_INDEX, .keyword = name, .index = (uint32_t)i};

        if (schema_add_node(k->c, mt_json_at(list, i), k->c->s->nodes.at[k->node].resource, &how) ==
            SCHEMA_NONE)
            return -1;
    }
    return 0;
}

// The schemas of an object's members, one after another; lists are passed over.
static int add_members(const spot *k, const char *name, const mt_json *object, uint32_t *ret)
{
    *ret = k->c->s->nodes.count;
    for (size_t i = 0; i < mt_json_count(object); i++) {
        const mt_json *v = mt_json_value_at(object, i);
        schema_child how = {.parent = k->node,
                            .step = STEP_NAME,
                            .keyword = name,
                            .name = mt_json_name_at(object, i)};

        if (mt_json_kind_of(v) == MT_JSON_ARRAY)
            continue;
        if (schema_add_node(k->c, v, k->c->s->nodes.at[k->node].resource, &how) == SCHEMA_NONE)
            return -1;
    }
    return 0;
}

static int want(const spot *k, const char *name, const mt_json *v, mt_json_kind kind)
{
    if (!v || mt_json_kind_of(v) == kind)
        return 0;
    return schema_bad(k->c, MT_E_BAD_FIELD, k->node, name, "%s is expected, not %s",
                      mt_json_kind_name(kind), mt_json_kind_name(mt_json_kind_of(v)));
}

static int want_names(const spot *k, const mt_json *list)
{
    for (size_t i = 0; i < mt_json_count(list); i++) {
        if (mt_json_kind_of(mt_json_at(list, i)) != MT_JSON_STRING)
            return BAD(k, "the names of properties are strings, and item %zu is %s", i,
                       mt_json_kind_name(mt_json_kind_of(mt_json_at(list, i))));
    }
    return 0;
}

// A whole number from 0. What no value can have is UINT64_MAX.
static int take_bound(const spot *k, const char *name, uint64_t *ret)
{
    const mt_json *v = mt_json_get(k->schema, name);
    char shown[SCHEMA_SHOW];
    int64_t n;

    if (!v)
        return 0;
    if (mt_json_as_int64(v, &n) && n >= 0) {
        *ret = (uint64_t)n;
        return 0;
    }
    if (!mt_json_is_whole(v) || mt_json_str(v).data[0] == '-')
        return schema_bad(k->c, MT_E_BAD_FIELD, k->node, name,
                          "a whole number from 0 on is expected, not %s", schema_show(v, shown));
    *ret = UINT64_MAX;
    return 0;
}

static int add_regex(const spot *k, mt_str pattern, uint32_t *ret)
{
    mt_regex **at = SCHEMA_PUSH(k->c, k->c->s->regexes, REGEXES_MAX, "patterns");
    _cleanup_err_ mt_err *why = NULL;
    char shown[SCHEMA_SHOW];

    if (!at)
        return -1;
    *ret = k->c->s->regexes.count - 1;
    if (mt_regex_new(pattern, MT_REGEX_ECMA, at, &why) == 0)
        return 0;
    if (mt_err_code(why) == MT_E_OOM)
        return mt_fail_oom(k->c->err);
    return BAD(k, "%s: %s", schema_show_text(pattern, '\'', shown), mt_err_sentence(why));
}

// ---- references ----

static int add_reference(const spot *k)
{
    schema_rule *r = add_rule(k);
    mt_str reference;

    if (!r)
        return -1;
    if (!mt_json_as_str(k->value, &reference))
        return want(k, k->keyword->name, k->value, MT_JSON_STRING);
    return schema_add_reference(k->c, k->node, k->c->s->rules.count - 1, reference);
}

static int add_definitions(const spot *k)
{
    uint32_t first;

    if (want(k, k->keyword->name, k->value, MT_JSON_OBJECT) < 0)
        return -1;
    return add_members(k, k->keyword->name, k->value, &first);
}

// A schema that says nothing about whether a value fits, but may be referred to.
static int add_silent(const spot *k)
{
    return add_child(k, k->keyword->name, k->value) == SCHEMA_NONE ? -1 : 0;
}

// ---- assertions ----

static const char *const type_names[] = {"array",  "boolean", "integer", "null",
                                         "number", "object",  "string"};

static int take_type(const spot *k, const mt_json *v, uint64_t *ret)
{
    static const uint64_t bits[] = {1u << MT_JSON_ARRAY, 1u << MT_JSON_BOOL,   OP_TYPE_INTEGER,
                                    1u << MT_JSON_NULL,  1u << MT_JSON_NUMBER, 1u << MT_JSON_OBJECT,
                                    1u << MT_JSON_STRING};
    mt_str name = mt_json_str(v);
    char shown[SCHEMA_SHOW];
    const char *near;

    if (mt_json_kind_of(v) != MT_JSON_STRING)
        return BAD(k, "a type is a string, not %s", mt_json_kind_name(mt_json_kind_of(v)));
    for (size_t i = 0; i < MT_ARRAY_SIZE(type_names); i++) {
        if (mt_str_eq(name, type_names[i])) {
            *ret |= bits[i];
            return 0;
        }
    }
    near = mt_nearest_of(name, type_names, MT_ARRAY_SIZE(type_names));
    (void)schema_show_text(name, '\'', shown);
    if (near)
        return BAD(k, "%s is no type: did you mean '%s'?", shown, near);
    return BAD(k, "%s is no type: array, boolean, integer, null, number, object and string are",
               shown);
}

static int add_type(const spot *k)
{
    schema_rule *r = add_rule(k);

    if (!r)
        return -1;
    if (mt_json_kind_of(k->value) != MT_JSON_ARRAY)
        return take_type(k, k->value, &r->bound);
    if (mt_json_count(k->value) == 0)
        return BAD(k, "a list of types has at least one");
    for (size_t i = 0; i < mt_json_count(k->value); i++) {
        if (take_type(k, mt_json_at(k->value, i), &r->bound) < 0)
            return -1;
    }
    return 0;
}

static int add_enum(const spot *k)
{
    return add_rule(k) ? want(k, k->keyword->name, k->value, MT_JSON_ARRAY) : -1;
}

static int add_value(const spot *k)
{
    return add_rule(k) ? 0 : -1;
}

static int add_number(const spot *k)
{
    return add_rule(k) ? want(k, k->keyword->name, k->value, MT_JSON_NUMBER) : -1;
}

static int add_multiple_of(const spot *k)
{
    char shown[SCHEMA_SHOW];

    if (add_number(k) < 0)
        return -1;
    if (mt_json_digits(k->value) == 0 || mt_json_str(k->value).data[0] == '-')
        return BAD(k, "a number above 0 is expected, not %s", schema_show(k->value, shown));
    if (mt_json_digits(k->value) > MT_JSON_DIVISOR)
        return BAD(k, "at most %d digits, without zeros at either end, are known here",
                   MT_JSON_DIVISOR);
    return 0;
}

static int add_bound(const spot *k)
{
    schema_rule *r = add_rule(k);

    return r ? take_bound(k, k->keyword->name, &r->bound) : -1;
}

static int add_pattern(const spot *k)
{
    schema_rule *r = add_rule(k);
    mt_str pattern;

    if (!r)
        return -1;
    if (!mt_json_as_str(k->value, &pattern))
        return want(k, k->keyword->name, k->value, MT_JSON_STRING);
    return add_regex(k, pattern, &r->regex);
}

static int add_unique(const spot *k)
{
    if (want(k, k->keyword->name, k->value, MT_JSON_BOOL) < 0)
        return -1;
    return mt_json_is_true(k->value) && !add_rule(k) ? -1 : 0;
}

static int add_required(const spot *k)
{
    if (!add_rule(k) || want(k, k->keyword->name, k->value, MT_JSON_ARRAY) < 0)
        return -1;
    return want_names(k, k->value);
}

// dependentRequired has lists, dependentSchemas schemas, and dependencies either.
static int add_dependencies(const spot *k)
{
    bool lists = mt_streq(k->keyword->name, "dependentRequired");
    bool schemas = mt_streq(k->keyword->name, "dependentSchemas");
    schema_rule *r = add_rule(k);

    if (!r || want(k, k->keyword->name, k->value, MT_JSON_OBJECT) < 0)
        return -1;
    for (size_t i = 0; i < mt_json_count(k->value); i++) {
        const mt_json *v = mt_json_value_at(k->value, i);
        bool list = mt_json_kind_of(v) == MT_JSON_ARRAY;

        if ((lists && !list) || (schemas && list))
            return BAD(k, "%s is expected for each name, not %s", lists ? "a list" : "a schema",
                       mt_json_kind_name(mt_json_kind_of(v)));
        if (list && want_names(k, v) < 0)
            return -1;
    }
    if (add_members(k, k->keyword->name, k->value, &r->first) < 0)
        return -1;
    r->count = k->c->s->nodes.count - r->first;
    return 0;
}

// ---- schemas beneath ----

static int add_one(const spot *k)
{
    schema_rule *r = add_rule(k);

    if (!r)
        return -1;
    r->first = add_child(k, k->keyword->name, k->value);
    return r->first == SCHEMA_NONE ? -1 : 0;
}

static int add_some(const spot *k)
{
    schema_rule *r = add_rule(k);

    if (!r || want(k, k->keyword->name, k->value, MT_JSON_ARRAY) < 0)
        return -1;
    r->count = (uint32_t)mt_json_count(k->value);
    if (r->count == 0)
        return BAD(k, "the list has at least one schema");
    return add_list(k, k->keyword->name, k->value, &r->first);
}

static int add_patterns(const spot *k, const mt_json *patterns, schema_rule *r)
{
    r->count = (uint32_t)mt_json_count(patterns);
    r->regex = k->c->s->regexes.count;
    for (size_t i = 0; i < r->count; i++) {
        uint32_t regex;

        if (add_regex(k, mt_json_name_at(patterns, i), &regex) < 0)
            return -1;
    }
    return add_members(k, "patternProperties", patterns, &r->second);
}

// Whether another keyword of the same group has made the rule already.
static bool is_first(const spot *k, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count && !mt_streq(names[i], k->keyword->name); i++) {
        if (mt_json_get(k->schema, names[i]))
            return false;
    }
    return true;
}

// properties, patternProperties and additionalProperties are looked at together.
static int add_properties(const spot *k)
{
    static const char *const group[] = {"properties", "patternProperties", "additionalProperties"};
    const mt_json *properties = mt_json_get(k->schema, "properties");
    const mt_json *patterns = mt_json_get(k->schema, "patternProperties");
    schema_rule *r;

    if (!is_first(k, group, MT_ARRAY_SIZE(group)))
        return 0;
    r = add_rule(k);
    if (!r || want(k, "properties", properties, MT_JSON_OBJECT) < 0 ||
        want(k, "patternProperties", patterns, MT_JSON_OBJECT) < 0)
        return -1;
    r->value = properties;
    if (add_members(k, "properties", properties, &r->first) < 0 || add_patterns(k, patterns, r) < 0)
        return -1;
    return add_beside(k, "additionalProperties", &r->rest);
}

// The first items and the others: prefixItems and items, in draft 7 items and additionalItems.
static int add_items(const spot *k)
{
    static const char *const groups[][2] = {{"prefixItems", "items"}, {"items", "additionalItems"}};
    const char *const *group = groups[k->draft == SCHEMA_DRAFT_7];
    const mt_json *first = mt_json_get(k->schema, group[0]);
    schema_rule *r;

    if (!is_first(k, group, 2))
        return 0;
    r = add_rule(k);
    if (!r)
        return -1;
    if (k->draft == SCHEMA_DRAFT_7 && mt_json_kind_of(first) != MT_JSON_ARRAY) {
        uint32_t unused; // additionalItems means nothing beside one schema, or alone

        if (add_beside(k, "additionalItems", &unused) < 0)
            return -1;
        return add_beside(k, "items", &r->rest);
    }
    if (want(k, group[0], first, MT_JSON_ARRAY) < 0)
        return -1;
    if (k->draft == SCHEMA_DRAFT_2020 &&
        mt_json_kind_of(mt_json_get(k->schema, "items")) == MT_JSON_ARRAY)
        return schema_bad(k->c, MT_E_BAD_FIELD, k->node, "items",
                          "a list of schemas is called prefixItems in draft 2020-12");
    r->count = (uint32_t)mt_json_count(first);
    if (add_list(k, group[0], first, &r->first) < 0)
        return -1;
    return add_beside(k, group[1], &r->rest);
}

static int add_contains(const spot *k)
{
    schema_rule *r;

    if (add_one(k) < 0)
        return -1;
    r = &k->c->s->rules.at[k->c->s->rules.count - 1];
    r->bound = 1;
    if (k->draft == SCHEMA_DRAFT_7)
        return 0;
    if (k->c->s->resources.at[k->c->s->nodes.at[k->node].resource].vocabularies & SCHEMA_VALIDATION)
        return take_bound(k, "minContains", &r->bound) < 0 ? -1
                                                           : take_bound(k, "maxContains", &r->most);
    return 0;
}

static int add_if(const spot *k)
{
    schema_rule *r;

    if (add_one(k) < 0)
        return -1;
    r = &k->c->s->rules.at[k->c->s->rules.count - 1];
    if (add_beside(k, "then", &r->second) < 0)
        return -1;
    return add_beside(k, "else", &r->rest);
}

// then and else without if, minContains without contains: nothing but what they must be.
static int add_branch(const spot *k)
{
    return mt_json_get(k->schema, "if") ? 0 : add_silent(k);
}

static int check_bound(const spot *k)
{
    uint64_t unused;

    return take_bound(k, k->keyword->name, &unused);
}

static int add_unevaluated(const spot *k)
{
    k->c->s->nodes.at[k->node].unevaluated = true;
    return add_one(k);
}

// In the order in which they are looked at: what is cheap first, unevaluated… last.
static const keyword keywords[] = {
    {"$ref", BOTH, SCHEMA_CORE, add_reference, OP_REF},
    {"$dynamicRef", SCHEMA_DRAFT_2020, SCHEMA_CORE, add_reference, OP_DYNAMIC_REF},
    {"$defs", SCHEMA_DRAFT_2020, SCHEMA_CORE, add_definitions, 0},
    {"definitions", BOTH, SCHEMA_CORE, add_definitions, 0},
    {"type", BOTH, SCHEMA_VALIDATION, add_type, OP_TYPE},
    {"enum", BOTH, SCHEMA_VALIDATION, add_enum, OP_ENUM},
    {"const", BOTH, SCHEMA_VALIDATION, add_value, OP_CONST},
    {"multipleOf", BOTH, SCHEMA_VALIDATION, add_multiple_of, OP_MULTIPLE_OF},
    {"maximum", BOTH, SCHEMA_VALIDATION, add_number, OP_MAXIMUM},
    {"exclusiveMaximum", BOTH, SCHEMA_VALIDATION, add_number, OP_EXCLUSIVE_MAXIMUM},
    {"minimum", BOTH, SCHEMA_VALIDATION, add_number, OP_MINIMUM},
    {"exclusiveMinimum", BOTH, SCHEMA_VALIDATION, add_number, OP_EXCLUSIVE_MINIMUM},
    {"maxLength", BOTH, SCHEMA_VALIDATION, add_bound, OP_MAX_LENGTH},
    {"minLength", BOTH, SCHEMA_VALIDATION, add_bound, OP_MIN_LENGTH},
    {"maxItems", BOTH, SCHEMA_VALIDATION, add_bound, OP_MAX_ITEMS},
    {"minItems", BOTH, SCHEMA_VALIDATION, add_bound, OP_MIN_ITEMS},
    {"maxProperties", BOTH, SCHEMA_VALIDATION, add_bound, OP_MAX_PROPERTIES},
    {"minProperties", BOTH, SCHEMA_VALIDATION, add_bound, OP_MIN_PROPERTIES},
    {"pattern", BOTH, SCHEMA_VALIDATION, add_pattern, OP_PATTERN},
    {"required", BOTH, SCHEMA_VALIDATION, add_required, OP_REQUIRED},
    {"uniqueItems", BOTH, SCHEMA_VALIDATION, add_unique, OP_UNIQUE_ITEMS},
    {"dependentRequired", SCHEMA_DRAFT_2020, SCHEMA_VALIDATION, add_dependencies, OP_DEPENDENCIES},
    {"dependentSchemas", SCHEMA_DRAFT_2020, SCHEMA_APPLICATOR, add_dependencies, OP_DEPENDENCIES},
    {"dependencies", BOTH, SCHEMA_APPLICATOR, add_dependencies, OP_DEPENDENCIES},
    {"propertyNames", BOTH, SCHEMA_APPLICATOR, add_one, OP_NAMES},
    {"properties", BOTH, SCHEMA_APPLICATOR, add_properties, OP_MEMBERS},
    {"patternProperties", BOTH, SCHEMA_APPLICATOR, add_properties, OP_MEMBERS},
    {"additionalProperties", BOTH, SCHEMA_APPLICATOR, add_properties, OP_MEMBERS},
    {"prefixItems", SCHEMA_DRAFT_2020, SCHEMA_APPLICATOR, add_items, OP_ITEMS},
    {"items", BOTH, SCHEMA_APPLICATOR, add_items, OP_ITEMS},
    {"additionalItems", SCHEMA_DRAFT_7, SCHEMA_APPLICATOR, add_items, OP_ITEMS},
    {"contains", BOTH, SCHEMA_APPLICATOR, add_contains, OP_CONTAINS},
    {"minContains", SCHEMA_DRAFT_2020, SCHEMA_VALIDATION, check_bound, 0},
    {"maxContains", SCHEMA_DRAFT_2020, SCHEMA_VALIDATION, check_bound, 0},
    {"allOf", BOTH, SCHEMA_APPLICATOR, add_some, OP_ALL_OF},
    {"anyOf", BOTH, SCHEMA_APPLICATOR, add_some, OP_ANY_OF},
    {"oneOf", BOTH, SCHEMA_APPLICATOR, add_some, OP_ONE_OF},
    {"not", BOTH, SCHEMA_APPLICATOR, add_one, OP_NOT},
    {"if", BOTH, SCHEMA_APPLICATOR, add_if, OP_IF},
    {"then", BOTH, SCHEMA_APPLICATOR, add_branch, 0},
    {"else", BOTH, SCHEMA_APPLICATOR, add_branch, 0},
    {"contentSchema", SCHEMA_DRAFT_2020, SCHEMA_CONTENT, add_silent, 0},
    {"unevaluatedItems", SCHEMA_DRAFT_2020, SCHEMA_UNEVALUATED, add_unevaluated,
     OP_UNEVALUATED_ITEMS},
    {"unevaluatedProperties", SCHEMA_DRAFT_2020, SCHEMA_UNEVALUATED, add_unevaluated,
     OP_UNEVALUATED_PROPERTIES},
};

// In draft 7 a $ref hides what stands beside it; definitions may still be referred to.
static bool is_hidden(const spot *k, bool reference)
{
    return k->draft == SCHEMA_DRAFT_7 && reference && !mt_streq(k->keyword->name, "$ref") &&
           !mt_streq(k->keyword->name, "definitions");
}

int schema_add_rules(schema_compiler *c, uint32_t node)
{
    const schema_node *n = &c->s->nodes.at[node];
    const schema_resource *r = &c->s->resources.at[n->resource];
    unsigned vocabularies = r->vocabularies;
    spot k = {.c = c, .schema = n->json, .node = node, .draft = r->draft};
    bool reference = mt_json_get(k.schema, "$ref");

    for (size_t i = 0; i < MT_ARRAY_SIZE(keywords); i++) {
        k.keyword = &keywords[i];
        if (!(k.keyword->drafts & k.draft) || !(k.keyword->vocabulary & vocabularies) ||
            is_hidden(&k, reference))
            continue;
        k.value = mt_json_get(k.schema, k.keyword->name);
        if (k.value && k.keyword->add(&k) < 0)
            return -1;
    }
    return 0;
}
