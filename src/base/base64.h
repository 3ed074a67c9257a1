// SPDX-License-Identifier: Apache-2.0
// Base64 as of RFC 4648 §4: padded, no blanks.
#pragma once

#include "base/buf.h"
#include "base/str.h"

// Room that decoding may take.
#define MT_BASE64_ROOM(len) ((len) / 4 * 3 + 1)

// Strict: false for blanks, missing padding and stray bits.
bool mt_base64_decode(mt_str text, char *out, size_t *ret_len);
// Appends the text of the bytes: 0, or what b->failed holds.
int mt_base64_encode(mt_str bytes, mt_buf *b);
