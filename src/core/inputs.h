// SPDX-License-Identifier: Apache-2.0
// What a start is given by name against what an app or interaction takes.
#pragma once

#include "base/err.h"
#include "json/json.h"

typedef struct mt_input_spec {
    mt_str name;
    const char *note; // for people: its type, or "optional"; NULL: none
    bool required;
    bool null_is_none; // null is as good as not given
} mt_input_spec;

enum { MT_INPUT_FIELD = 144 }; // "inputs." and a name
const char *mt_input_field(mt_str name, char ret[MT_INPUT_FIELD]);

// The values by the names that are declared, in their order; given (NULL: nothing) is an object
// whose names match without regard to case. whose: "app 'analyst'". badField of "inputs.NAME", with
// all that there are, for one that is unknown, missing or given twice.
int mt_inputs_match(const char *whose, const mt_input_spec *specs, size_t count,
                    const mt_json *given, mt_json **ret, mt_err **err);
