// SPDX-License-Identifier: Apache-2.0
// The events of a stream are the same however its bytes are cut.
#include "base/sse.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int note(mt_str name, mt_str value, void *user)
{
    mt_buf *b = user;

    (void)mt_buf_add(b, name.data, name.len);
    (void)mt_buf_addc(b, '|');
    (void)mt_buf_add(b, value.data, value.len);
    return mt_buf_addc(b, '\n');
}

static void read_all(const char *bytes, size_t size, size_t step, mt_buf *out)
{
    mt_sse s;

    mt_sse_init(&s, note, out);
    for (size_t at = 0; at < size; at += step)
        if (mt_sse_feed(&s, bytes + at, MT_MIN(step, size - at)) < 0)
            abort(); // nothing here is too long
    mt_sse_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ mt_buf whole = MT_BUF_INIT(SIZE_MAX / 2);

    read_all((const char *)data, size, size + 1, &whole);
    for (size_t step = 1; step < 6; step++) {
        _cleanup_buf_ mt_buf cut = MT_BUF_INIT(SIZE_MAX / 2);

        read_all((const char *)data, size, step, &cut);
        if (cut.len != whole.len || memcmp(mt_buf_str(&cut), mt_buf_str(&whole), cut.len) != 0)
            abort();
    }
    return 0;
}
