// SPDX-License-Identifier: Apache-2.0
#include "http/grammar.h"

#include "http/parse.h"

#define L MT_HTTP_C_LINE
#define T (L | MT_HTTP_C_TOKEN)
#define P (L | MT_HTTP_C_PATH | MT_HTTP_C_QUERY)
#define H MT_HTTP_C_HOST
#define X MT_HTTP_C_HEXDIG

// clang-format off
const uint8_t mt_http_class_[256] = {
    ['\t'] = L, [' '] = L,
    ['!'] = T | P | H, ['"'] = L, ['#'] = T, ['$'] = T | P | H, ['%'] = T, ['&'] = T | P | H,
    ['\''] = T | P | H, ['('] = P | H, [')'] = P | H, ['*'] = T | P | H, ['+'] = T | P | H,
    [','] = P, ['-'] = T | P | H, ['.'] = T | P | H, ['/'] = P,
    ['0' ... '9'] = T | P | H | X,
    [':'] = P | H, [';'] = P | H, ['<'] = L, ['='] = P | H, ['>'] = L,
    ['?'] = L | MT_HTTP_C_QUERY, ['@'] = P,
    ['A' ... 'F'] = T | P | H | X, ['G' ... 'Z'] = T | P | H,
    ['['] = L | H, ['\\'] = L, [']'] = L | H, ['^'] = T, ['_'] = T | P | H, ['`'] = T,
    ['a' ... 'f'] = T | P | H | X, ['g' ... 'z'] = T | P | H,
    ['{'] = L, ['|'] = T, ['}'] = L, ['~'] = T | P | H,
    [0x80 ... 0xff] = L,
};
// clang-format on

bool mt_http_is_token(mt_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mt_http_is_(s.data[i], MT_HTTP_C_TOKEN))
            return false;
    return s.len > 0;
}

bool mt_http_is_field_value(mt_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mt_http_is_(s.data[i], MT_HTTP_C_LINE))
            return false;
    return true;
}

ptrdiff_t mt_http_percent_decode(mt_str s, bool plus, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];

        if (c == '%') {
            if (s.len - i < 3 || !mt_http_is_(s.data[i + 1], MT_HTTP_C_HEXDIG) ||
                !mt_http_is_(s.data[i + 2], MT_HTTP_C_HEXDIG))
                return -1;
            c = (char)(mt_http_hex_(s.data[i + 1]) << 4 | mt_http_hex_(s.data[i + 2]));
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c == '\0')
            return -1;
        out[n++] = c;
    }
    return (ptrdiff_t)n;
}

static const char *const METHODS[] = {
    [MT_HTTP_OTHER] = "",        [MT_HTTP_GET] = "GET",         [MT_HTTP_HEAD] = "HEAD",
    [MT_HTTP_POST] = "POST",     [MT_HTTP_PUT] = "PUT",         [MT_HTTP_PATCH] = "PATCH",
    [MT_HTTP_DELETE] = "DELETE", [MT_HTTP_OPTIONS] = "OPTIONS",
};

const char *mt_http_method_name(mt_http_method method)
{
    return (size_t)method < MT_ARRAY_SIZE(METHODS) ? METHODS[method] : "";
}
