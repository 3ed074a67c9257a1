// SPDX-License-Identifier: Apache-2.0
// Ids: UUID version 7 as lower-case text, growing within one process; random bytes and hex.
#pragma once

#include "base/str.h"

enum { MT_ID_LEN = 36, MT_ID_TEXT = 37 };

// Any thread.
void mt_id_new(char out[MT_ID_TEXT]);
bool mt_is_id(mt_str s); // 8-4-4-4-12 lower-case hex digits, any version
void mt_random_bytes(void *out, size_t len);
void mt_hex(const void *data, size_t len, char *out); // 2 * len + 1 bytes
