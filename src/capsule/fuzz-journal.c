// SPDX-License-Identifier: Apache-2.0
// Journals: any bytes are read to their end, and opening them for append leaves what was whole.
#include "base/fd.h"
#include "capsule/journal-internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int walk(int fd)
{
    _cleanup_(mt_journal_reader_free_p) mt_journal_reader *r = NULL;
    mt_record record;
    mt_str frame;
    int n = 0;

    if (mt_journal_reader_new(fd, &r, NULL) < 0)
        return 0;
    while (mt_journal_next(r, 0, &record, &frame, NULL) > 0) {
        n++;
        if (record.seq != (uint64_t)n || frame.len < MT_RECORD_HEADER + MT_RECORD_FIXED)
            abort();
    }
    return n;
}

// The bytes as the body of one record whose length and checksum are right: what lies behind them is
// never reached by chance.
static void decode_body(const uint8_t *data, size_t size)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20), again = MT_BUF_INIT(1 << 20);
    mt_record record;

    mt_wire_put_u32(&b, (uint32_t)size);
    mt_wire_put_u32(&b, mt_crc32c(data, size));
    (void)mt_buf_add(&b, data, size);
    if (b.failed || mt_record_decode(b.data, b.len, &record) <= 0)
        return;
    // What was accepted can be written again and is then read as the same length.
    if (((record.type >= MT_REC_BOOT && record.type <= MT_REC_CLOSED) ||
         (record.type >= MT_REC_COMMAND_STARTED && record.type <= MT_REC_EXTENDED)) &&
        (mt_record_encode(&record, &again) < 0 || again.len != b.len))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_close_ int fd = memfd_create("journal", MFD_CLOEXEC);
    mt_record record;

    (void)mt_record_decode(data, size, &record);
    decode_body(data, size);
    if (fd >= 0 && mt_write_full(fd, data, size) == 0)
        (void)walk(fd);
    return 0;
}
