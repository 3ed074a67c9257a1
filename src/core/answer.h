// SPDX-License-Identifier: Apache-2.0
// The JSON value that a model's answer is, or holds.
#pragma once

#include "schema/schema.h"
#include "json/json.h"

// Looks, in this order, for: the whole text; the only one of its fenced blocks that is JSON; the
// only object or list in its prose. Where there are several, one alone has to fit the schema.
// Nothing is mended. 0: *ret is its own text in answer. 1: there is none; *ret_faults is a list of
// sentences that say what is wrong, for the model and for people. -1: outOfMemory.
int mt_answer_read(mt_str answer, const mt_schema *schema, mt_str *ret, mt_json **ret_faults,
                   mt_err **err);
