// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

size_t mt_utf8_decode(const char *s, size_t len, uint32_t *ret, bool *ret_cut)
{
    const unsigned char *p = (const unsigned char *)s;
    uint32_t c, low;
    size_t n;

    if (ret_cut)
        *ret_cut = false;
    if (len == 0)
        return 0;
    if (p[0] < 0x80) {
        *ret = p[0];
        return 1;
    }
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2, c = p[0] & 0x1fu, low = 0x80;
    } else if ((p[0] & 0xf0) == 0xe0) {
        n = 3, c = p[0] & 0x0fu, low = 0x800;
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4, c = p[0] & 0x07u, low = 0x10000;
    } else {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if (i >= len) {
            if (ret_cut)
                *ret_cut = true;
            return 0;
        }
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        // The second byte alone decides overlong forms, surrogates and what is past U+10FFFF.
        if (i == 1 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
                       (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)))
            return 0;
        c = (c << 6) | (p[i] & 0x3fu);
    }
    if (c < low)
        return 0;
    *ret = c;
    return n;
}

size_t mt_utf8_encode(uint32_t c, char out[4])
{
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        c = 0xfffd;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | (c >> 6));
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | (c >> 12));
        out[1] = (char)(0x80 | ((c >> 6) & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | (c >> 18));
    out[1] = (char)(0x80 | ((c >> 12) & 0x3f));
    out[2] = (char)(0x80 | ((c >> 6) & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

size_t mt_utf8_bad_at(const char *s, size_t len)
{
    uint32_t c;

    for (size_t i = 0; i < len;) {
        size_t n = mt_utf8_decode(s + i, len - i, &c, NULL);

        if (n == 0)
            return i;
        i += n;
    }
    return len;
}

bool mt_utf8_valid(const char *s, size_t len)
{
    return mt_utf8_bad_at(s, len) == len;
}

size_t mt_utf8_count(const char *s, size_t len)
{
    size_t count = 0;
    uint32_t c;

    for (size_t i = 0; i < len; count++) {
        size_t n = mt_utf8_decode(s + i, len - i, &c, NULL);

        i += n ? n : 1;
    }
    return count;
}

int mt_utf8_add_clean(mt_buf *b, const char *s, size_t len)
{
    while (len > 0 && !b->failed) {
        size_t good = mt_utf8_bad_at(s, len);

        (void)mt_buf_add(b, s, good);
        s += good;
        len -= good;
        if (len > 0) {
            (void)mt_buf_add(b, "\xef\xbf\xbd", 3);
            s++;
            len--;
        }
    }
    return b->failed;
}

size_t mt_utf8_tail(const char *s, size_t len, size_t max)
{
    size_t at = len;

    for (size_t count = 0; at > 0 && count < max; count++) {
        at--;
        while (at > 0 && ((unsigned char)s[at] & 0xc0) == 0x80)
            at--;
    }
    return at;
}
