// SPDX-License-Identifier: Apache-2.0
#include "model/text-join.h"

#include "base/utf8.h"

// Within the last private plane, which no text has a use for; a tamed text that holds them all the
// same gets U+FFFD there.
enum {
    TAMED_UNIT = 0x10f000, // + a surrogate - 0xd800
    TAMED_UNIT_END = 0x10f7ff,
    TAMED_BYTE = 0x10ff00, // + a byte, 0x80 to 0xff
    TAMED_BYTE_FIRST = TAMED_BYTE + 0x80,
    TAMED_BYTE_END = TAMED_BYTE + 0xff,
    REPLACEMENT = 0xfffd,
    ESCAPE_LEN = 6, // \uXXXX
};

static int add_char(mt_buf *out, uint32_t c)
{
    char text[4];

    return mt_buf_add(out, text, mt_utf8_encode(c, text));
}

static bool is_high(uint32_t u)
{
    return u >= 0xd800 && u <= 0xdbff;
}

static bool is_low(uint32_t u)
{
    return u >= 0xdc00 && u <= 0xdfff;
}

// The unit of an escape \uXXXX at the start, or false.
static bool read_unit(mt_str s, uint32_t *ret)
{
    uint32_t unit = 0;

    if (s.len < ESCAPE_LEN || s.data[0] != '\\' || s.data[1] != 'u')
        return false;
    for (size_t i = 2; i < ESCAPE_LEN; i++) {
        char c = s.data[i];
        const char *digits = "0123456789abcdef";
        const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;

        if (!at)
            return false;
        unit = unit * 16 + (uint32_t)(at - digits);
    }
    *ret = unit;
    return true;
}

// One escape, or the backslash of one that is none; *used gets its length.
static int tame_escape(mt_str s, mt_buf *out, size_t *used)
{
    uint32_t unit, low;

    *used = MT_MIN(s.len, (size_t)2);
    if (!read_unit(s, &unit))
        return mt_buf_add(out, s.data, *used);
    *used = ESCAPE_LEN;
    if (is_high(unit) && read_unit((mt_str){s.data + ESCAPE_LEN, s.len - ESCAPE_LEN}, &low) &&
        is_low(low))
        *used += ESCAPE_LEN;
    else if (is_high(unit) || is_low(unit))
        return add_char(out, TAMED_UNIT + (unit - 0xd800));
    return mt_buf_add(out, s.data, *used);
}

int text_tame(mt_str s, mt_buf *out)
{
    while (s.len > 0 && !out->failed) {
        uint32_t c;
        size_t n = mt_utf8_decode(s.data, s.len, &c, NULL);

        if (n == 0) {
            n = 1;
            (void)add_char(out, TAMED_BYTE + (unsigned char)s.data[0]);
        } else if (c == '\\') {
            (void)tame_escape(s, out, &n);
        } else {
            (void)mt_buf_add(out, s.data, n);
        }
        s.data += n;
        s.len -= n;
    }
    return out->failed;
}

int text_join_end(text_join *j, mt_buf *out)
{
    if (j->held_len > 0 || j->high)
        (void)add_char(out, REPLACEMENT);
    j->held_len = 0;
    j->high = 0;
    return out->failed;
}

static void join_byte(text_join *j, char byte, mt_buf *out)
{
    if (j->high)
        (void)text_join_end(j, out);
    j->held[j->held_len++] = byte;
    while (j->held_len > 0) {
        uint32_t c;
        bool cut = false;
        size_t n = mt_utf8_decode(j->held, j->held_len, &c, &cut);

        if (n == 0 && cut)
            return;
        (void)add_char(out, n ? c : REPLACEMENT);
        n = n ? n : 1;
        j->held_len -= (unsigned)n;
        memmove(j->held, j->held + n, j->held_len);
    }
}

static void join_unit(text_join *j, uint32_t unit, mt_buf *out)
{
    uint32_t high = j->high;

    if (high && is_low(unit)) {
        j->high = 0;
        (void)add_char(out, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
        return;
    }
    (void)text_join_end(j, out);
    if (is_high(unit))
        j->high = unit;
    else
        (void)add_char(out, REPLACEMENT);
}

// s is valid UTF-8: a strict reader gave it.
static void join_tamed(text_join *j, mt_str s, mt_buf *out)
{
    while (s.len > 0 && !out->failed) {
        uint32_t c;
        size_t n = mt_utf8_decode(s.data, s.len, &c, NULL);

        if (n == 0)
            n = 1, c = REPLACEMENT;
        if (c >= TAMED_BYTE_FIRST && c <= TAMED_BYTE_END) {
            join_byte(j, (char)(c - TAMED_BYTE), out);
        } else if (c >= TAMED_UNIT && c <= TAMED_UNIT_END) {
            join_unit(j, c - TAMED_UNIT + 0xd800, out);
        } else {
            (void)text_join_end(j, out);
            (void)add_char(out, c);
        }
        s.data += n;
        s.len -= n;
    }
}

int text_join_add(text_join *j, mt_str s, bool tamed, mt_buf *out)
{
    if (s.len == 0)
        return out->failed;
    if (tamed) {
        join_tamed(j, s, out);
        return out->failed;
    }
    (void)text_join_end(j, out);
    return mt_buf_add(out, s.data, s.len);
}
