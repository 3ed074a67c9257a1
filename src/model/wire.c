// SPDX-License-Identifier: Apache-2.0
#include "model/wire.h"

#include <errno.h>

static const mt_json_limits SCHEMA_LIMITS = {
    .bytes = 1 << 20, .values = 100000, .depth = 100, .string = SIZE_MAX};

int wire_write(const mt_model_request *r, mt_buf *b, mt_err **err)
{
    _cleanup_json_ mt_json *schema = NULL;
    mt_jw w;

    if (r->schema.len > 0 &&
        mt_json_parse(r->schema.data, r->schema.len, &SCHEMA_LIMITS, &schema, err) < 0)
        return mt_wrap(err, "the schema of the answer");
    mt_jw_init(&w, b, 0);
    wire_of(r->wire)->write(r, schema, &w);
    if (b->failed == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE, "what is asked of the model is larger than %d MiB",
                       WIRE_BODY_MAX >> 20);
    return b->failed ? mt_fail_oom(err) : 0;
}

const char *wire_schema_name(const char *name, char out[WIRE_NAME_MAX + 1])
{
    size_t n = 0;

    if (!name || !name[0])
        name = "answer";
    for (; name[n] && n < WIRE_NAME_MAX; n++) {
        bool fine = (name[n] >= 'a' && name[n] <= 'z') || (name[n] >= 'A' && name[n] <= 'Z') ||
                    (name[n] >= '0' && name[n] <= '9') || name[n] == '_' || name[n] == '-';

        out[n] = '_';
        if (fine)
            out[n] = name[n];
    }
    out[n] = '\0';
    return out;
}

// --- the strict part of JSON Schema -------------------------------------------------------------

static bool is_strict_keyword(mt_str name)
{
    static const char *const words[] = {"$defs",
                                        "$id",
                                        "$ref",
                                        "$schema",
                                        "additionalProperties",
                                        "anyOf",
                                        "const",
                                        "definitions",
                                        "description",
                                        "enum",
                                        "exclusiveMaximum",
                                        "exclusiveMinimum",
                                        "format",
                                        "items",
                                        "maxItems",
                                        "maximum",
                                        "minItems",
                                        "minimum",
                                        "multipleOf",
                                        "pattern",
                                        "properties",
                                        "required",
                                        "title",
                                        "type"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(words); i++)
        if (mt_str_eq(name, words[i]))
            return true;
    return false;
}

static bool is_false(const mt_json *v)
{
    bool value;

    return mt_json_as_bool(v, &value) && !value;
}

static bool has_word(const mt_json *list, mt_str word)
{
    for (size_t i = 0; i < mt_json_count(list); i++) {
        mt_str s = mt_json_str(mt_json_at(list, i));

        if (s.len == word.len && memcmp(s.data, word.data, s.len) == 0)
            return true;
    }
    return false;
}

// An object has no members but those named, and all of them.
static bool is_closed(const mt_json *schema)
{
    const mt_json *members = mt_json_get(schema, "properties");
    const mt_json *type = mt_json_get(schema, "type");
    bool object =
        members || mt_str_eq(mt_json_str(type), "object") || has_word(type, MT_STR("object"));

    if (!object)
        return true;
    for (size_t i = 0; i < mt_json_count(members); i++)
        if (!has_word(mt_json_get(schema, "required"), mt_json_name_at(members, i)))
            return false;
    return members && is_false(mt_json_get(schema, "additionalProperties"));
}

static bool is_strict(const mt_json *schema);

static bool all_strict(const mt_json *many)
{
    for (size_t i = 0; i < mt_json_count(many); i++)
        if (!is_strict(mt_json_at(many, i) ? mt_json_at(many, i) : mt_json_value_at(many, i)))
            return false;
    return true;
}

// As deep as SCHEMA_LIMITS lets it.
static bool is_strict(const mt_json *schema)
{
    if (mt_json_kind_of(schema) != MT_JSON_OBJECT)
        return false;
    for (size_t i = 0; i < mt_json_count(schema); i++)
        if (!is_strict_keyword(mt_json_name_at(schema, i)))
            return false;
    return is_closed(schema) && all_strict(mt_json_get(schema, "properties")) &&
           all_strict(mt_json_get(schema, "$defs")) &&
           all_strict(mt_json_get(schema, "definitions")) &&
           all_strict(mt_json_get(schema, "anyOf")) &&
           (!mt_json_get(schema, "items") || is_strict(mt_json_get(schema, "items")));
}

bool wire_schema_is_strict(const mt_json *schema)
{
    return is_strict(schema) && mt_str_eq(mt_json_str(mt_json_get(schema, "type")), "object");
}
