// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool mt_base64_decode(mt_str text, char *out, size_t *ret_len)
{
    size_t len = 0, pad = 0;

    if (text.len % 4 != 0)
        return false;
    while (pad < 2 && pad < text.len && text.data[text.len - 1 - pad] == '=')
        pad++;
    for (size_t i = 0; i < text.len; i += 4) {
        bool last = i + 4 == text.len;
        uint32_t bits = 0;

        for (size_t k = 0; k < 4; k++) {
            bool padding = last && k >= 4 - pad;
            int value = padding ? 0 : digit_of(text.data[i + k]);

            if (value < 0)
                return false;
            bits = bits << 6 | (uint32_t)value;
        }
        if (last && pad > 0 && (bits & (pad == 1 ? 0xffu : 0xffffu)) != 0)
            return false;
        for (size_t k = 0; k < 3 - (last ? pad : 0); k++)
            out[len++] = (char)(bits >> (16 - 8 * k));
    }
    *ret_len = len;
    return true;
}

int mt_base64_encode(mt_str bytes, mt_buf *b)
{
    char *out = mt_buf_reserve(b, (bytes.len + 2) / 3 * 4);
    size_t at = 0;

    if (!out)
        return b->failed;
    for (size_t i = 0; i < bytes.len; i += 3) {
        uint32_t n = (uint32_t)(unsigned char)bytes.data[i] << 16;
        size_t have = MT_MIN(bytes.len - i, (size_t)3);

        if (have > 1)
            n |= (uint32_t)(unsigned char)bytes.data[i + 1] << 8;
        if (have > 2)
            n |= (unsigned char)bytes.data[i + 2];
        out[at++] = DIGITS[n >> 18];
        out[at++] = DIGITS[n >> 12 & 63];
        out[at++] = have > 1 ? DIGITS[n >> 6 & 63] : '=';
        out[at++] = have > 2 ? DIGITS[n & 63] : '=';
    }
    mt_buf_added(b, at);
    return 0;
}
