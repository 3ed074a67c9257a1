// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "capsule/protocol.h"

#include <errno.h>

#define ID "0192f3a1-0000-7000-8000-000000000001"

static mt_frame parse(const mt_buf *b)
{
    mt_frame f = {0};

    CHECK_INT(mt_frame_parse(b->data, b->len, MT_FRAME_REPLY_MAX, &f), b->len);
    return f;
}

static void test_info(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);
    _cleanup_arena_ mt_arena *a = mt_arena_new(1 << 20);
    const mt_str notices[] = {MT_STR("no btrfs")};
    const mt_info_image images[] = {
        {.name = MT_STR("slim"),
         .digest = MT_STR("ab"),
         .json = MT_STR("{}"),
         .size_bytes = 7,
         .made_us = -1},
    };
    mt_info in = {.version = MT_STR("1"),
                  .boot_id = MT_STR("b"),
                  .cgroup_mode = MT_STR("v2"),
                  .scratch_kind = MT_STR("tmpfs"),
                  .scratch_bytes = 1,
                  .memory_bytes = 2,
                  .cpus = 3,
                  .live_runs = 4,
                  .notices = notices,
                  .notice_count = 1,
                  .images = images,
                  .image_count = 1};
    mt_info out = {0};
    mt_frame f;

    CHECK_INT(mt_put_info(&b, 9, &in), 0);
    f = parse(&b);
    CHECK_INT(f.type, MT_FRAME_INFO);
    CHECK_INT(f.tag, 9);
    CHECK_INT(mt_get_info(&f, &out, a), 0);
    CHECK(mt_str_eq(out.notices[0], "no btrfs"));
    CHECK(mt_str_eq(out.images[0].json, "{}"));
    CHECK_INT(out.images[0].made_us, -1);
    CHECK_INT(out.live_runs, 4);
    f.payload_len--;
    CHECK_INT(mt_get_info(&f, &out, a), -EBADMSG);
}

static void test_small_ones(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 16);
    char id[37];
    mt_code code;
    mt_str text;
    mt_forget forget;
    uint32_t layers;
    uint64_t seq;
    uint32_t base;
    mt_frame f;

    (void)mt_put_failed(&b, 1, MT_E_NOT_FOUND, "no such image");
    f = parse(&b);
    CHECK_INT(mt_get_failed(&f, &code, &text), 0);
    CHECK_INT(code, MT_E_NOT_FOUND);
    CHECK(mt_str_eq(text, "no such image"));
    mt_buf_clear(&b);
    (void)mt_put_sweep(&b, 2, ID, MT_FORGET_OUTPUTS);
    f = parse(&b);
    CHECK_INT(mt_get_sweep(&f, id, &forget), 0);
    CHECK_STR(id, ID);
    CHECK_INT(forget, MT_FORGET_OUTPUTS);
    mt_buf_clear(&b);
    (void)mt_put_sweep(&b, 2, ID, (mt_forget)3);
    f = parse(&b);
    CHECK_INT(mt_get_sweep(&f, id, &forget), -EBADMSG);
    mt_buf_clear(&b);
    (void)mt_put_gone(&b, ID);
    f = parse(&b);
    CHECK_INT(mt_get_run_id(&f, id), 0);
    CHECK_INT(f.tag, 0);
    mt_buf_clear(&b);
    (void)mt_put_gone(&b, "../../../../../../../../../../../etc");
    f = parse(&b);
    CHECK_INT(mt_get_run_id(&f, id), -EBADMSG);
    mt_buf_clear(&b);
    (void)mt_put_pruned(&b, 9, 3, 4096);
    f = parse(&b);
    CHECK_INT(mt_get_pruned(&f, &layers, &seq), 0);
    CHECK(f.tag == 9 && layers == 3 && seq == 4096);
    mt_buf_clear(&b);
    (void)mt_put_attach(&b, 77);
    f = parse(&b);
    CHECK_INT(mt_get_attach(&f, &seq), 0);
    CHECK_INT(seq, 77);
    mt_buf_clear(&b);
    (void)mt_put_synced(&b, 78);
    f = parse(&b);
    CHECK_INT(f.type, MT_FRAME_SYNCED);
    CHECK_INT(mt_get_synced(&f, &seq), 0);
    CHECK_INT(seq, 78);
    f.payload_len--;
    CHECK_INT(mt_get_synced(&f, &seq), -EBADMSG);
    mt_buf_clear(&b);
    (void)mt_put_api(&b, 0x70010000);
    f = parse(&b);
    CHECK_INT(f.type, MT_FRAME_API);
    CHECK_INT(mt_get_api(&f, &base), 0);
    CHECK_INT(base, 0x70010000);
    f.payload_len--;
    CHECK_INT(mt_get_api(&f, &base), -EBADMSG);
    mt_buf_clear(&b);
    (void)mt_put_terminate(&b, "ada");
    f = parse(&b);
    CHECK_INT(mt_get_terminate(&f, &text), 0);
    CHECK(mt_str_eq(text, "ada"));
}

static void test_commands(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 16);
    int64_t ms, ns;
    char id[37];
    mt_str text;
    mt_frame f;

    (void)mt_put_exec(&b, MT_STR("bytes"));
    f = parse(&b);
    CHECK_INT(f.type, MT_FRAME_EXEC);
    CHECK(f.payload_len == 5 && memcmp(f.payload, "bytes", 5) == 0);
    mt_buf_clear(&b);
    (void)mt_put_cancel(&b, ID, "ada");
    f = parse(&b);
    CHECK_INT(mt_get_cancel(&f, id, &text), 0);
    CHECK_STR(id, ID);
    CHECK(mt_str_eq(text, "ada"));
    mt_buf_clear(&b);
    (void)mt_put_cancel(&b, "no id", "ada");
    f = parse(&b);
    CHECK_INT(mt_get_cancel(&f, id, &text), -EBADMSG);
    mt_buf_clear(&b);
    (void)mt_put_extend(&b, 600000, 1ll << 40);
    f = parse(&b);
    CHECK_INT(mt_get_extend(&f, &ms, &ns), 0);
    CHECK_INT(ms, 600000);
    CHECK_INT(ns, 1ll << 40);
    f.payload_len--;
    CHECK_INT(mt_get_extend(&f, &ms, &ns), -EBADMSG);
}

static void test_disk(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 16);
    mt_usage usage = {0};
    bool on = false;
    mt_str text;
    mt_frame f;

    (void)mt_put_hold(&b, true);
    f = parse(&b);
    CHECK_INT(mt_get_hold(&f, &on), 0);
    CHECK(on);
    mt_buf_clear(&b);
    (void)mt_put_ask_usage(&b);
    f = parse(&b);
    CHECK_INT(f.type, MT_FRAME_USAGE);
    CHECK_INT(mt_get_usage(&f, &usage), -EBADMSG); // the question is no answer
    mt_buf_clear(&b);
    (void)mt_put_usage(&b, &(mt_usage){1ull << 40, 4096});
    f = parse(&b);
    CHECK_INT(mt_get_usage(&f, &usage), 0);
    CHECK(usage.file_bytes == 1ull << 40 && usage.dirty_bytes == 4096);
    mt_buf_clear(&b);
    (void)mt_put_disk_full(&b, "full");
    f = parse(&b);
    CHECK_INT(mt_get_disk_full(&f, &text), 0);
    CHECK(mt_str_eq(text, "full"));
}

static void test_framing(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 16);
    mt_frame f;
    int early = 0;

    (void)mt_put_hello(&b, 5);
    (void)mt_put_attach(&b, 1);
    for (size_t len = 0; len < MT_FRAME_HEADER; len++)
        early += mt_frame_parse(b.data, len, 100, &f) != 0;
    CHECK_INT(early, 0);
    CHECK_INT(mt_frame_parse(b.data, b.len, 100, &f), MT_FRAME_HEADER); // one at a time
    CHECK_INT(mt_frame_parse("\xff\xff\xff\xff", 4, 100, &f), -EMSGSIZE);
    CHECK_INT(mt_frame_parse("\x05\0\0\0", 4, 100, &f), -EBADMSG);
    CHECK_INT(mt_frame_parse("\x5b\0\0\0", 4, 100, &f), 0);
    CHECK_INT(mt_frame_parse("\x61\0\0\0", 4, 100, &f), -EMSGSIZE);
}

int main(void)
{
    test_info();
    test_small_ones();
    test_commands();
    test_disk();
    test_framing();
    return TAP_DONE();
}
