// SPDX-License-Identifier: Apache-2.0
#include "capsule/wire.h"

#include <errno.h>

static void put_le(mt_buf *b, uint64_t v, size_t bytes)
{
    uint8_t out[8];

    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(v >> (8 * i));
    (void)mt_buf_add(b, out, bytes);
}

void mt_wire_put_u8(mt_buf *b, uint8_t v)
{
    put_le(b, v, 1);
}

void mt_wire_put_u16(mt_buf *b, uint16_t v)
{
    put_le(b, v, 2);
}

void mt_wire_put_u32(mt_buf *b, uint32_t v)
{
    put_le(b, v, 4);
}

void mt_wire_put_u64(mt_buf *b, uint64_t v)
{
    put_le(b, v, 8);
}

void mt_wire_put_i64(mt_buf *b, int64_t v)
{
    put_le(b, (uint64_t)v, 8);
}

void mt_wire_put_bool(mt_buf *b, bool v)
{
    put_le(b, v ? 1 : 0, 1);
}

void mt_wire_put_bytes(mt_buf *b, const void *data, size_t len)
{
    if (len > UINT32_MAX) {
        b->failed = b->failed ? b->failed : -EMSGSIZE;
        return;
    }
    put_le(b, len, 4);
    if (len)
        (void)mt_buf_add(b, data, len);
}

void mt_wire_put_str(mt_buf *b, mt_str s)
{
    mt_wire_put_bytes(b, s.data, s.len);
}

void mt_wire_put_text(mt_buf *b, const char *s)
{
    mt_wire_put_bytes(b, s, s ? strlen(s) : 0);
}

void mt_wire_fail(mt_wire_reader *r)
{
    r->failed = true;
    r->pos = r->len;
}

bool mt_wire_ok(const mt_wire_reader *r)
{
    return !r->failed;
}

bool mt_wire_end(const mt_wire_reader *r)
{
    return !r->failed && r->pos == r->len;
}

// The next len bytes, or NULL and a fault.
static const uint8_t *take(mt_wire_reader *r, size_t len)
{
    const uint8_t *p;

    if (r->failed || len > r->len - r->pos) {
        mt_wire_fail(r);
        return NULL;
    }
    p = r->data + r->pos;
    r->pos += len;
    return p;
}

static uint64_t get_le(mt_wire_reader *r, size_t bytes)
{
    const uint8_t *p = take(r, bytes);
    uint64_t v = 0;

    for (size_t i = 0; p && i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint8_t mt_wire_get_u8(mt_wire_reader *r)
{
    return (uint8_t)get_le(r, 1);
}

uint16_t mt_wire_get_u16(mt_wire_reader *r)
{
    return (uint16_t)get_le(r, 2);
}

uint32_t mt_wire_get_u32(mt_wire_reader *r)
{
    return (uint32_t)get_le(r, 4);
}

uint64_t mt_wire_get_u64(mt_wire_reader *r)
{
    return get_le(r, 8);
}

int64_t mt_wire_get_i64(mt_wire_reader *r)
{
    return (int64_t)get_le(r, 8);
}

bool mt_wire_get_bool(mt_wire_reader *r)
{
    uint8_t v = mt_wire_get_u8(r);

    if (v > 1)
        mt_wire_fail(r);
    return v == 1;
}

mt_str mt_wire_get_bytes(mt_wire_reader *r, size_t max)
{
    uint32_t len = mt_wire_get_u32(r);
    const uint8_t *p;

    if (len > max)
        mt_wire_fail(r);
    p = take(r, len);
    return p && !r->failed ? (mt_str){(const char *)p, len} : (mt_str){"", 0};
}

const char *mt_wire_get_text(mt_wire_reader *r, size_t max, mt_arena *arena)
{
    mt_str s = mt_wire_get_bytes(r, max);
    char *copy;

    if (r->failed || s.len == 0)
        return "";
    if (memchr(s.data, '\0', s.len)) {
        mt_wire_fail(r);
        return "";
    }
    copy = mt_arena_strndup(arena, s.data, s.len);
    if (!copy) {
        mt_wire_fail(r);
        return "";
    }
    return copy;
}

uint32_t mt_wire_get_count(mt_wire_reader *r, uint32_t max, size_t min_bytes)
{
    uint32_t count = mt_wire_get_u32(r);

    if (count > max || (min_bytes && count > (r->len - r->pos) / min_bytes)) {
        mt_wire_fail(r);
        return 0;
    }
    return r->failed ? 0 : count;
}
