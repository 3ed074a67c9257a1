// SPDX-License-Identifier: Apache-2.0
// Journals: any bytes are read to their end, and opening them for append leaves what was whole.
#include "base/fd.h"
#include "capsule/journal.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_close_ int fd = memfd_create("journal", MFD_CLOEXEC);
    mt_record record;

    (void)mt_record_decode(data, size, &record);
    if (fd >= 0 && mt_write_full(fd, data, size) == 0)
        (void)walk(fd);
    return 0;
}
