// SPDX-License-Identifier: Apache-2.0
// Rules that need no other schema: types, numbers, lengths, what is there.
#include "schema/validate-internal.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

enum { BYTES_A_STEP = 32, NAMES_MAX = 300 };

#define FAULT(v, r, ...) schema_fault((v), (r)->node, (r)->rule->keyword, (r)->at, __VA_ARGS__)

// ---- kinds and values ----

static bool has_type(const mt_json *v, uint64_t types)
{
    mt_json_kind kind = mt_json_kind_of(v);

    return (types >> kind & 1) ||
           (kind == MT_JSON_NUMBER && (types & OP_TYPE_INTEGER) && mt_json_is_whole(v));
}

// "a string, an object or null".
static const char *list_types(uint64_t types, char out[256])
{
    const char *names[8];
    size_t count = 0, len = 0;

    for (mt_json_kind k = MT_JSON_NULL; k <= MT_JSON_OBJECT; k++) {
        if (types >> k & 1)
            names[count++] = mt_json_kind_name(k);
    }
    if (types & OP_TYPE_INTEGER)
        names[count++] = "an integer";
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(out + len, 256 - len, "%s%s",
                                i == 0           ? ""
                                : i + 1 == count ? " or "
                                                 : ", ",
                                names[i]);
    return out;
}

static int check_type(validation *v, const rule_at *r)
{
    const mt_json *json = r->at->json;
    mt_json_kind kind = mt_json_kind_of(json);
    char wanted[256], shown[SCHEMA_SHOW];

    if (has_type(json, r->rule->bound))
        return 1;
    (void)list_types(r->rule->bound, wanted);
    if (kind == MT_JSON_NUMBER || kind == MT_JSON_STRING || kind == MT_JSON_BOOL)
        return FAULT(v, r, "%s is %s, where %s is expected", schema_show(json, shown),
                     mt_json_kind_name(kind), wanted);
    return FAULT(v, r, "%s stands where %s is expected", mt_json_kind_name(kind), wanted);
}

static uint64_t steps_to_compare(const mt_json *a, const mt_json *b)
{
    return 1 + MT_MIN(mt_json_weight(a), mt_json_weight(b)) / BYTES_A_STEP;
}

// The values of an enum, as many as fit into a sentence.
static const char *list_values(const mt_json *values, char out[NAMES_MAX + SCHEMA_SHOW])
{
    char shown[SCHEMA_SHOW];
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < mt_json_count(values); i++) {
        if (len > NAMES_MAX - 16) {
            (void)snprintf(out + len, 16, ", …");
            break;
        }
        len += (size_t)snprintf(out + len, SCHEMA_SHOW, "%s%s", i ? ", " : "",
                                schema_show(mt_json_at(values, i), shown));
    }
    return out;
}

static int check_enum(validation *v, const rule_at *r)
{
    char values[NAMES_MAX + SCHEMA_SHOW], shown[SCHEMA_SHOW];

    for (size_t i = 0; i < mt_json_count(r->rule->value); i++) {
        const mt_json *one = mt_json_at(r->rule->value, i);

        if (schema_spend(v, steps_to_compare(one, r->at->json)) < 0)
            return -1;
        if (mt_json_equal(one, r->at->json))
            return 1;
    }
    if (schema_is_full(v))
        return 0;
    return FAULT(v, r, "%s is none of %s", schema_show(r->at->json, shown),
                 list_values(r->rule->value, values));
}

static int check_const(validation *v, const rule_at *r)
{
    char shown[SCHEMA_SHOW], wanted[SCHEMA_SHOW];

    if (schema_spend(v, steps_to_compare(r->rule->value, r->at->json)) < 0)
        return -1;
    if (mt_json_equal(r->rule->value, r->at->json))
        return 1;
    if (schema_is_full(v))
        return 0;
    return FAULT(v, r, "%s stands where %s is expected", schema_show(r->at->json, shown),
                 schema_show(r->rule->value, wanted));
}

// ---- numbers ----

// What is wrong with a number, or NULL.
static const char *compare(schema_op op, const mt_json *number, const mt_json *bound)
{
    int order;

    if (op == OP_MULTIPLE_OF)
        return mt_json_is_multiple(number, bound) ? NULL : "is not a multiple of";
    order = mt_json_compare(number, bound);
    if (op == OP_MAXIMUM)
        return order > 0 ? "is more than the maximum" : NULL;
    if (op == OP_EXCLUSIVE_MAXIMUM)
        return order >= 0 ? "is not less than" : NULL;
    if (op == OP_MINIMUM)
        return order < 0 ? "is less than the minimum" : NULL;
    return order <= 0 ? "is not more than" : NULL;
}

static int check_number(validation *v, const rule_at *r)
{
    const mt_json *json = r->at->json, *bound = r->rule->value;
    char shown[SCHEMA_SHOW], other[SCHEMA_SHOW];
    const char *wrong;

    if (mt_json_kind_of(json) != MT_JSON_NUMBER)
        return 1;
    if (schema_spend(v, (mt_json_str(json).len + mt_json_str(bound).len) / BYTES_A_STEP) < 0)
        return -1;
    wrong = compare(r->rule->op, json, bound);
    if (!wrong)
        return 1;
    return FAULT(v, r, "%s %s %s", schema_show(json, shown), wrong, schema_show(bound, other));
}

// ---- how many ----

static int check_bounds(validation *v, const rule_at *r, bool most, uint64_t count,
                        const char *what, const char *of)
{
    uint64_t bound = r->rule->bound;

    if (most ? count <= bound : count >= bound)
        return 1;
    return FAULT(v, r, "%s has %" PRIu64 " %s%s, %s than %" PRIu64, what, count, of,
                 count == 1 ? "" : "s", most ? "more" : "fewer", bound);
}

static int check_length(validation *v, const rule_at *r)
{
    mt_str text;

    if (!mt_json_as_str(r->at->json, &text))
        return 1;
    if (schema_spend(v, text.len / BYTES_A_STEP) < 0)
        return -1;
    return check_bounds(v, r, r->rule->op == OP_MAX_LENGTH, mt_utf8_count(text.data, text.len),
                        "the string", "character");
}

static int check_count(validation *v, const rule_at *r)
{
    bool items = r->rule->op == OP_MAX_ITEMS || r->rule->op == OP_MIN_ITEMS;
    bool most = r->rule->op == OP_MAX_ITEMS || r->rule->op == OP_MAX_PROPERTIES;
    size_t count = mt_json_count(r->at->json);

    if (mt_json_kind_of(r->at->json) != (items ? MT_JSON_ARRAY : MT_JSON_OBJECT))
        return 1;
    return check_bounds(v, r, most, count, items ? "the list" : "the object",
                        items ? "item" : "member");
}

static int check_pattern(validation *v, const rule_at *r)
{
    char shown[SCHEMA_SHOW], pattern[SCHEMA_SHOW];
    mt_str text;
    int found;

    if (!mt_json_as_str(r->at->json, &text))
        return 1;
    found = schema_match(v, r->rule->regex, text, r->at);
    if (found != 0)
        return found;
    return FAULT(v, r, "%s does not match the pattern %s", schema_show(r->at->json, shown),
                 schema_show_text(mt_json_str(r->rule->value), '\'', pattern));
}

// ---- equal items ----

typedef struct hashed {
    uint64_t hash;
    size_t index;
} hashed;

static int compare_hashed(const void *a, const void *b)
{
    const hashed *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int hash_items(validation *v, const mt_json *list, hashed *items)
{
    for (size_t i = 0; i < mt_json_count(list); i++) {
        const mt_json *item = mt_json_at(list, i);

        if (schema_spend(v, 4 + mt_json_weight(item) / BYTES_A_STEP) < 0)
            return -1;
        items[i] = (hashed){mt_json_hash(item), i};
    }
    return 0;
}

// The first item that is equal to one behind it. Items with the same hash are nearly always equal;
// where they are not, each pair costs. 1 when there is one, 0, or -1.
static int find_alike(validation *v, const mt_json *list, const hashed *items, size_t *ret_first,
                      size_t *ret_second)
{
    size_t count = mt_json_count(list);
    int found = 0;

    for (size_t i = 0; i < count; i++) {
        if (found && items[i].index > *ret_first)
            continue;
        for (size_t j = i + 1; j < count && items[j].hash == items[i].hash; j++) {
            const mt_json *a = mt_json_at(list, items[i].index);
            const mt_json *b = mt_json_at(list, items[j].index);

            if (schema_spend(v, 4 + steps_to_compare(a, b)) < 0)
                return -1;
            if (!mt_json_equal(a, b))
                continue;
            *ret_first = items[i].index;
            *ret_second = items[j].index;
            found = 1;
            break;
        }
    }
    return found;
}

static int check_unique(validation *v, const rule_at *r)
{
    size_t count = mt_json_count(r->at->json), first = 0, second = 0;
    _cleanup_free_ hashed *items = NULL;
    int alike;

    if (mt_json_kind_of(r->at->json) != MT_JSON_ARRAY || count < 2)
        return 1;
    items = calloc(count, sizeof(*items));
    if (!items)
        return mt_fail_oom(v->err);
    if (hash_items(v, r->at->json, items) < 0)
        return -1;
    qsort(items, count, sizeof(*items), compare_hashed);
    alike = find_alike(v, r->at->json, items, &first, &second);
    if (alike <= 0)
        return alike < 0 ? -1 : 1;
    return FAULT(v, r, "items %zu and %zu are equal", first, second);
}

// ---- members that must be there ----

static int check_required(validation *v, const rule_at *r)
{
    char shown[SCHEMA_SHOW];
    int fits = 1;

    if (mt_json_kind_of(r->at->json) != MT_JSON_OBJECT)
        return 1;
    for (size_t i = 0; i < mt_json_count(r->rule->value) && (fits || !schema_is_full(v)); i++) {
        mt_str name = mt_json_str(mt_json_at(r->rule->value, i));

        if (schema_spend(v, 2 + name.len / BYTES_A_STEP) < 0)
            return -1;
        if (mt_json_get_str(r->at->json, name))
            continue;
        fits = FAULT(v, r, "the property %s is missing", schema_show_text(name, '\'', shown));
        if (fits < 0)
            return -1;
    }
    return fits;
}

int rule_simple(validation *v, const rule_at *r)
{
    switch (r->rule->op) {
    case OP_TYPE:
        return check_type(v, r);
    case OP_ENUM:
        return check_enum(v, r);
    case OP_CONST:
        return check_const(v, r);
    case OP_MAX_LENGTH:
    case OP_MIN_LENGTH:
        return check_length(v, r);
    case OP_MAX_ITEMS:
    case OP_MIN_ITEMS:
    case OP_MAX_PROPERTIES:
    case OP_MIN_PROPERTIES:
        return check_count(v, r);
    case OP_PATTERN:
        return check_pattern(v, r);
    case OP_UNIQUE_ITEMS:
        return check_unique(v, r);
    case OP_REQUIRED:
        return check_required(v, r);
    default:
        return check_number(v, r);
    }
}
