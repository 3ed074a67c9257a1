// SPDX-License-Identifier: Apache-2.0
// Text that comes in pieces which need not end where a character ends. Some servers cut a character
// between two events: half of its bytes in each, or one of its two surrogates. A strict JSON reader
// refuses both events, so they are tamed first: a byte that belongs to no character, and an escape
// of a lone surrogate, become characters of a private range. The join takes those back, puts halves
// together, and makes U+FFFD of what stays broken. Used within src/model only.
#pragma once

#include "base/buf.h"
#include "base/str.h"

typedef struct text_join {
    char held[4]; // bytes of a character that is not whole yet
    unsigned held_len;
    uint32_t high; // a surrogate that waits for its other half; 0: none
} text_join;

// JSON text that a strict reader can take, where it failed for such halves alone. 0, or what
// out->failed holds.
int text_tame(mt_str json, mt_buf *out);

// Appends whole characters; tamed says that s was read from tamed JSON. 0, or what out->failed
// holds.
int text_join_add(text_join *j, mt_str s, bool tamed, mt_buf *out);
int text_join_end(text_join *j, mt_buf *out); // what is held stays broken
