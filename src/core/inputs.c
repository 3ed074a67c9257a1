// SPDX-License-Identifier: Apache-2.0
#include "core/inputs.h"

#include <stdio.h>
#include <strings.h>

typedef struct matching {
    const char *whose;
    const mt_input_spec *specs;
    size_t count;
    const mt_json *given;
} matching;

const char *mt_input_field(mt_str name, char ret[MT_INPUT_FIELD])
{
    (void)snprintf(ret, MT_INPUT_FIELD, "inputs.%.*s", (int)MT_MIN(name.len, (size_t)128),
                   name.data);
    return ret;
}

static void list_all(const matching *m, mt_buf *ret)
{
    for (size_t i = 0; i < m->count; i++) {
        const mt_input_spec *s = &m->specs[i];

        (void)mt_buf_addf(ret, "%s%.*s", i ? ", " : "", (int)s->name.len, s->name.data);
        if (s->note)
            (void)mt_buf_addf(ret, " (%s)", s->note);
    }
}

static int is_missing(const matching *m, mt_str name, mt_err **err)
{
    _cleanup_buf_ mt_buf names = MT_BUF_INIT(65536);
    char field[MT_INPUT_FIELD];

    list_all(m, &names);
    return mt_fail_field(err, MT_E_BAD_FIELD, mt_input_field(name, field),
                         "the input '%.*s' of %s is missing; it takes: %s", (int)name.len,
                         name.data, m->whose, mt_buf_str(&names));
}

static int is_unknown(const matching *m, mt_str name, mt_err **err)
{
    _cleanup_buf_ mt_buf names = MT_BUF_INIT(65536);
    char field[MT_INPUT_FIELD];

    list_all(m, &names);
    return mt_fail_field(err, MT_E_BAD_FIELD, mt_input_field(name, field),
                         m->count ? "%s has no input '%.*s'; there are: %s"
                                  : "%s has no input '%.*s'; it takes none%s",
                         m->whose, (int)MT_MIN(name.len, (size_t)80), name.data,
                         mt_buf_str(&names));
}

static size_t spec_of(const matching *m, mt_str name)
{
    for (size_t i = 0; i < m->count; i++) {
        mt_str known = m->specs[i].name;

        if (known.len == name.len && strncasecmp(known.data, name.data, name.len) == 0)
            return i;
    }
    return SIZE_MAX;
}

static int check_names(const matching *m, mt_err **err)
{
    char field[MT_INPUT_FIELD];

    for (size_t i = 0; i < mt_json_count(m->given); i++) {
        mt_str name = mt_json_name_at(m->given, i);

        if (spec_of(m, name) == SIZE_MAX)
            return is_unknown(m, name, err);
        for (size_t j = 0; j < i; j++)
            if (spec_of(m, mt_json_name_at(m->given, j)) == spec_of(m, name))
                return mt_fail_field(err, MT_E_BAD_FIELD, mt_input_field(name, field),
                                     "the input '%.*s' is given twice: capitals and small letters "
                                     "are one",
                                     (int)name.len, name.data);
    }
    return 0;
}

static const mt_json *value_of(const matching *m, size_t spec)
{
    for (size_t i = 0; i < mt_json_count(m->given); i++) {
        const mt_json *value = mt_json_value_at(m->given, i);

        if (spec_of(m, mt_json_name_at(m->given, i)) == spec)
            return m->specs[spec].null_is_none && !mt_json_given(value) ? NULL : value;
    }
    return NULL;
}

int mt_inputs_match(const char *whose, const mt_input_spec *specs, size_t count,
                    const mt_json *given, mt_json **ret, mt_err **err)
{
    const matching m = {whose, specs, count, given};
    _cleanup_json_ mt_json *inputs = mt_json_new_object();

    if (check_names(&m, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const mt_json *value = value_of(&m, i);

        if (value)
            (void)mt_json_set_str(inputs, specs[i].name, mt_json_ref(value));
        else if (specs[i].required)
            return is_missing(&m, specs[i].name, err);
    }
    if (!mt_json_ok(inputs))
        return mt_fail_oom(err);
    *ret = MT_TAKE_PTR(inputs);
    return 0;
}
