// SPDX-License-Identifier: Apache-2.0
#include "capsule/command.h"

#include "capsule/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(mt_command_free_p) mt_command *c = NULL, *again = NULL;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_FRAME_EXEC_MAX);

    if (mt_command_decode(data, size, &c, NULL) < 0)
        return 0;
    // What is accepted has one form.
    if (mt_command_encode(c, &b, NULL) < 0 || b.len != size || memcmp(b.data, data, size) != 0 ||
        mt_command_decode(b.data, b.len, &again, NULL) < 0)
        abort();
    return 0;
}
