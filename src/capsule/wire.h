// SPDX-License-Identifier: Apache-2.0
// The flat binary form of plans, journal records and the protocols of runner and supervisor: fixed
// little-endian numbers, texts and bytes with a 32-bit length before them, lists as a 32-bit count
// and then their members. No recursion, no pointers, no padding.
//
// Writing goes into an mt_buf (its maximum bounds the result, its `failed` is the sticky error).
// Reading never goes past the bytes it was given and never allocates: after the first fault every
// getter returns zero or an empty slice, so a run of getters needs one check, mt_wire_ok(), at its
// end. Slices point into the bytes that are read.
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

void mt_wire_put_u8(mt_buf *b, uint8_t v);
void mt_wire_put_u16(mt_buf *b, uint16_t v);
void mt_wire_put_u32(mt_buf *b, uint32_t v);
void mt_wire_put_u64(mt_buf *b, uint64_t v);
void mt_wire_put_i64(mt_buf *b, int64_t v);
void mt_wire_put_bool(mt_buf *b, bool v);
void mt_wire_put_bytes(mt_buf *b, const void *data, size_t len); // u32 length, then the bytes
void mt_wire_put_str(mt_buf *b, mt_str s);
void mt_wire_put_text(mt_buf *b, const char *s); // NULL is written as ""

typedef struct mt_wire_reader {
    const uint8_t *data;
    size_t len;
    size_t pos;
    bool failed;
} mt_wire_reader;

static inline mt_wire_reader mt_wire_reader_of(const void *data, size_t len)
{
    return (mt_wire_reader){.data = data, .len = len};
}

uint8_t mt_wire_get_u8(mt_wire_reader *r);
uint16_t mt_wire_get_u16(mt_wire_reader *r);
uint32_t mt_wire_get_u32(mt_wire_reader *r);
uint64_t mt_wire_get_u64(mt_wire_reader *r);
int64_t mt_wire_get_i64(mt_wire_reader *r);
bool mt_wire_get_bool(mt_wire_reader *r); // anything but 0 and 1 is a fault
// A slice of at most max bytes; longer is a fault. May hold any bytes.
mt_str mt_wire_get_bytes(mt_wire_reader *r, size_t max);
// As mt_wire_get_bytes, copied into the arena with a NUL behind; a NUL inside is a fault. "" after
// a fault (an arena that is full is one, too).
const char *mt_wire_get_text(mt_wire_reader *r, size_t max, mt_arena *arena);
// A list's count: at most max, and never more than the bytes left could hold with min_bytes each,
// so that a hostile count cannot make the reader allocate.
uint32_t mt_wire_get_count(mt_wire_reader *r, uint32_t max, size_t min_bytes);
void mt_wire_fail(mt_wire_reader *r);
bool mt_wire_ok(const mt_wire_reader *r);  // no fault so far
bool mt_wire_end(const mt_wire_reader *r); // no fault, and every byte was read
