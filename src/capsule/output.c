// SPDX-License-Identifier: Apache-2.0
#include "capsule/output.h"

#include "base/utf8.h"

#include <errno.h>

void mt_tail_init(mt_tail *t, size_t max_chars)
{
    *t = (mt_tail){.max_chars = max_chars, .cap = max_chars * 4 + 4};
}

void mt_tail_done(mt_tail *t)
{
    free(t->ring);
    t->ring = NULL;
}

// A character has at most 4 bytes, so that many hold the last max_chars of them; 4 more, as the
// first kept byte may stand inside one.
static void keep(mt_tail *t, const char *data, size_t len)
{
    size_t first;

    if (!t->ring && !t->lost) {
        t->ring = malloc(t->cap);
        t->lost = !t->ring;
    }
    t->total += len;
    if (t->lost)
        return;
    if (len > t->cap) {
        data += len - t->cap;
        len = t->cap;
    }
    first = MT_MIN(len, t->cap - t->at);
    memcpy(t->ring + t->at, data, first);
    memcpy(t->ring, data + first, len - first);
    t->at += len;
    if (t->at >= t->cap) // len is at most cap
        t->at -= t->cap;
}

// Most output is ASCII, which is counted eight bytes at a time.
static size_t ascii_words(const char *data, size_t len)
{
    size_t i = 0;

    for (; i + 8 <= len; i += 8) {
        uint64_t word;

        memcpy(&word, data + i, 8);
        if (word & 0x8080808080808080u)
            break;
    }
    return i;
}

static void count_whole(mt_tail *t, const char *data, size_t len)
{
    size_t i = 0;

    while (i < len) {
        uint32_t c;
        bool cut = false;
        size_t n = ascii_words(data + i, len - i);

        if (n) {
            t->chars += n;
            i += n;
            continue;
        }
        n = mt_utf8_decode(data + i, len - i, &c, &cut);
        if (n == 0 && cut) {
            t->carry_len = len - i;
            memcpy(t->carry, data + i, t->carry_len);
            return;
        }
        t->chars++;
        i += n ? n : 1;
    }
}

// The bytes carried over are counted together with as few new ones as decide what they are.
static void count(mt_tail *t, const char *data, size_t len)
{
    while (t->carry_len && len) {
        char joined[4];
        size_t n = t->carry_len;

        memcpy(joined, t->carry, n);
        joined[n++] = *data++;
        len--;
        t->carry_len = 0;
        count_whole(t, joined, n);
    }
    count_whole(t, data, len);
}

void mt_tail_add(mt_tail *t, const void *data, size_t len)
{
    if (!len)
        return;
    count(t, data, len);
    keep(t, data, len);
}

uint64_t mt_tail_chars(const mt_tail *t)
{
    return t->chars + t->carry_len;
}

int mt_tail_get(const mt_tail *t, mt_buf *b)
{
    _cleanup_buf_ mt_buf raw = MT_BUF_INIT(t->cap + 1);
    _cleanup_buf_ mt_buf clean = MT_BUF_INIT(3 * t->cap + 4);
    size_t from;

    if (!t->ring)
        return t->lost ? -ENOMEM : 0;
    if (t->total >= t->cap) // it is full: the oldest byte is where the next one goes
        (void)mt_buf_add(&raw, t->ring + t->at, t->cap - t->at);
    (void)mt_buf_add(&raw, t->ring, t->at);
    if (raw.failed || mt_utf8_add_clean(&clean, raw.data ? raw.data : "", raw.len) < 0)
        return -ENOMEM;
    from = mt_utf8_tail(mt_buf_str(&clean), clean.len, t->max_chars);
    return mt_buf_add(b, mt_buf_str(&clean) + from, clean.len - from);
}
