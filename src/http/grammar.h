// SPDX-License-Identifier: Apache-2.0
// Classes of bytes of RFC 9110, 9112 and 3986, one bit each. Internal to src/http.
#pragma once

#include "base/macros.h"

enum {
    MT_HTTP_C_LINE = 1u << 0,  // may stand in a field line: no control byte but HTAB
    MT_HTTP_C_TOKEN = 1u << 1, // tchar
    MT_HTTP_C_PATH = 1u << 2,  // pchar and '/', without '%'
    MT_HTTP_C_QUERY = 1u << 3, // those and '?', without '%'
    MT_HTTP_C_HOST = 1u << 4,  // uri-host and port, without '%' and ','
    MT_HTTP_C_HEXDIG = 1u << 5,
};

extern const uint8_t mt_http_class_[256];

static inline bool mt_http_is_(char c, unsigned classes)
{
    return (mt_http_class_[(unsigned char)c] & classes) != 0;
}
static inline int mt_http_hex_(char c) // of a HEXDIG
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}
