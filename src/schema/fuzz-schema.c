// SPDX-License-Identifier: Apache-2.0
// Input: a JSON list of a schema and of values. Whatever they are, there is an end soon, an error
// has a sentence, and what fits with all faults wanted fits also with none and with one.
#include "schema/schema.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const mt_schema_limits limits = {
    .depth = MT_SCHEMA_DEPTH_MAX, .steps = 200000, .regex_work = 1000000};

static void check_errors(const mt_schema_errors *errors, int r)
{
    if ((r == 1) != (errors->count > 0))
        abort();
    for (size_t i = 0; i < errors->count; i++) {
        const mt_schema_error *e = &errors->items[i];

        if (!e->instance || !e->schema || !e->sentence || !*e->sentence)
            abort();
    }
}

static void validate(const mt_schema *s, const mt_json *v)
{
    _cleanup_errors_ mt_schema_errors all = {0}, one = {.max = 1};
    _cleanup_err_ mt_err *err = NULL;
    int r = mt_schema_validate(s, v, &limits, &all, &err), first, quick;

    if (r < 0) {
        if (!err || *mt_err_sentence(err) == '\0' || all.count)
            abort();
        return;
    }
    check_errors(&all, r);
    first = mt_schema_validate(s, v, &limits, &one, NULL);
    quick = mt_schema_validate(s, v, &limits, NULL, NULL);
    if (first != r || quick != r)
        abort();
    check_errors(&one, r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_json_limits json_limits = MT_JSON_LIMITS_INIT;
    _cleanup_json_ mt_json *input = NULL;
    _cleanup_schema_ mt_schema *s = NULL;
    _cleanup_err_ mt_err *err = NULL;

    json_limits.depth = MT_JSON_DEPTH_MAX;
    if (mt_json_parse((const char *)data, size, &json_limits, &input, NULL) < 0)
        return 0;
    if (mt_json_count(input) == 0)
        return 0;
    s = mt_schema_compile(mt_json_at(input, 0), NULL, &err);
    if (!s && (!err || *mt_err_sentence(err) == '\0'))
        abort();
    for (size_t i = 1; s && i < mt_json_count(input); i++)
        validate(s, mt_json_at(input, i));
    return 0;
}
