// SPDX-License-Identifier: Apache-2.0
// The protocols of runner and supervisor: a stream of frames, each payload read as every kind.
#include "capsule/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const mt_frame *f)
{
    _cleanup_arena_ mt_arena *a = mt_arena_new(1 << 20);
    mt_info info;
    char id[37];
    mt_code code;
    mt_str text;
    mt_forget forget = MT_FORGET_NOTHING;
    bool on;
    uint32_t layers;
    uint64_t seq;
    int64_t ms, ns;
    uint32_t base;
    mt_usage usage;

    (void)mt_get_info(f, &info, a);
    (void)mt_get_run_id(f, id);
    (void)mt_get_failed(f, &code, &text);
    (void)mt_get_sweep(f, id, &forget);
    (void)mt_get_pruned(f, &layers, &seq);
    (void)mt_get_attach(f, &seq);
    (void)mt_get_synced(f, &seq);
    (void)mt_get_terminate(f, &text);
    (void)mt_get_cancel(f, id, &text);
    (void)mt_get_extend(f, &ms, &ns);
    (void)mt_get_api(f, &base);
    (void)mt_get_hold(f, &on);
    (void)mt_get_usage(f, &usage);
    (void)mt_get_disk_full(f, &text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t at = 0;

    while (at < size) {
        mt_frame f;
        ssize_t n = mt_frame_parse(data + at, size - at, MT_FRAME_SUPERVISOR_MAX, &f);

        if (n <= 0)
            break;
        if ((size_t)n > size - at || f.payload + f.payload_len != data + at + n)
            abort();
        read_all(&f);
        at += (size_t)n;
    }
    return 0;
}
