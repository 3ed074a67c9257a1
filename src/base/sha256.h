// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for names that are made from content. Not for secrets.
#pragma once

#include "base/macros.h"

enum { MT_SHA256_BYTES = 32, MT_SHA256_TEXT = 65 };

typedef struct mt_sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
} mt_sha256;

void mt_sha256_init(mt_sha256 *s);
void mt_sha256_add(mt_sha256 *s, const void *data, size_t len);
// Lower-case hex; s is of no more use.
void mt_sha256_hex(mt_sha256 *s, char out[MT_SHA256_TEXT]);
