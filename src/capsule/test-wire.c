// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "capsule/wire.h"

#include <errno.h>

static void test_round_trip(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);
    _cleanup_arena_ mt_arena *a = mt_arena_new(1024);
    mt_wire_reader r;

    mt_wire_put_u8(&b, 0xab);
    mt_wire_put_u16(&b, 0x1234);
    mt_wire_put_u32(&b, 0xdeadbeef);
    mt_wire_put_u64(&b, UINT64_MAX - 1);
    mt_wire_put_i64(&b, INT64_MIN);
    mt_wire_put_bool(&b, true);
    mt_wire_put_bytes(&b, "a\0b", 3);
    mt_wire_put_text(&b, "häh");
    mt_wire_put_text(&b, NULL);
    CHECK_INT(b.failed, 0);
    CHECK_INT((unsigned char)b.data[1], 0x34); // little endian
    r = mt_wire_reader_of(b.data, b.len);
    CHECK_INT(mt_wire_get_u8(&r), 0xab);
    CHECK_INT(mt_wire_get_u16(&r), 0x1234);
    CHECK_INT(mt_wire_get_u32(&r), 0xdeadbeef);
    CHECK(mt_wire_get_u64(&r) == UINT64_MAX - 1);
    CHECK(mt_wire_get_i64(&r) == INT64_MIN);
    CHECK(mt_wire_get_bool(&r));
    CHECK_INT(mt_wire_get_bytes(&r, 3).len, 3);
    CHECK_STR(mt_wire_get_text(&r, 16, a), "häh");
    CHECK(!mt_wire_end(&r));
    CHECK_STR(mt_wire_get_text(&r, 16, a), "");
    CHECK(mt_wire_end(&r));
}

static void test_faults(void)
{
    static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 'x'};
    static const uint8_t nul[] = {2, 0, 0, 0, 'a', 0};
    static const uint8_t two[] = {2};
    _cleanup_arena_ mt_arena *a = mt_arena_new(1024);
    mt_wire_reader r = mt_wire_reader_of(huge, sizeof(huge));

    CHECK_INT(mt_wire_get_bytes(&r, SIZE_MAX).len, 0);
    CHECK(!mt_wire_ok(&r));
    CHECK_INT(mt_wire_get_u8(&r), 0); // sticky: the 'x' is not given out any more
    r = mt_wire_reader_of(huge, sizeof(huge));
    CHECK_INT(mt_wire_get_count(&r, UINT32_MAX, 4), 0);
    CHECK(!mt_wire_ok(&r));
    r = mt_wire_reader_of(nul, sizeof(nul));
    CHECK_STR(mt_wire_get_text(&r, 16, a), "");
    CHECK(!mt_wire_ok(&r));
    r = mt_wire_reader_of(nul, sizeof(nul));
    CHECK_INT(mt_wire_get_bytes(&r, 1).len, 0); // over its maximum
    CHECK(!mt_wire_ok(&r));
    r = mt_wire_reader_of(two, sizeof(two));
    CHECK(!mt_wire_get_bool(&r));
    CHECK(!mt_wire_ok(&r));
    r = mt_wire_reader_of(NULL, 0);
    CHECK(mt_wire_end(&r));
    CHECK_INT(mt_wire_get_u64(&r), 0);
    CHECK(!mt_wire_end(&r));
}

static void test_full_buffer(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(6);

    mt_wire_put_u32(&b, 1);
    mt_wire_put_u32(&b, 2);
    CHECK_INT(b.failed, -EMSGSIZE);
    CHECK_INT(b.len, 4);
}

int main(void)
{
    test_round_trip();
    test_faults();
    test_full_buffer();
    return TAP_DONE();
}
