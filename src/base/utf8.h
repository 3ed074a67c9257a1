// SPDX-License-Identifier: Apache-2.0
// UTF-8: strict (no surrogates, no overlong forms, nothing past U+10FFFF). "Characters" are Unicode
// code points everywhere in the product.
#pragma once

#include "base/buf.h"

// Reads one character. Returns its length in bytes (1-4) and sets *ret; 0 where the bytes at the
// start are not a character (bad, or cut off by the end: *ret_cut tells, when not NULL).
size_t mt_utf8_decode(const char *s, size_t len, uint32_t *ret, bool *ret_cut);
size_t mt_utf8_encode(uint32_t c, char out[4]); // bytes written; U+FFFD for what is no character
bool mt_utf8_valid(const char *s, size_t len);
// Offset of the first bad byte, len when there is none.
size_t mt_utf8_bad_at(const char *s, size_t len);
size_t mt_utf8_count(const char *s, size_t len); // characters; each bad byte counts as one
// Appends s with every byte that belongs to no character replaced by U+FFFD.
int mt_utf8_add_clean(mt_buf *b, const char *s, size_t len);
// Start of the last max characters of s, as an offset (s must be valid).
size_t mt_utf8_tail(const char *s, size_t len, size_t max);
