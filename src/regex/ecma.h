// SPDX-License-Identifier: Apache-2.0
// Patterns of ECMA-262 as PCRE2's, for regex.c alone. What only PCRE2 knows (verbs, recursion,
// options, possessive quantifiers, \Q, \A …) is refused.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

// Appends to out. -1 with badField or outOfMemory.
int regex_from_ecma(mt_str pattern, mt_buf *out, mt_err **err);
