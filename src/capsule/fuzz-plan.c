// SPDX-License-Identifier: Apache-2.0
#include "capsule/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(mt_plan_free_p) mt_plan *p = NULL, *again = NULL;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_PLAN_BYTES_MAX);
    _cleanup_err_ mt_err *err = NULL;

    if (mt_plan_decode(data, size, &p, &err) < 0)
        return 0;
    // What is accepted has one form.
    if (mt_plan_encode(p, &b, NULL) < 0 || b.len != size || memcmp(b.data, data, size) != 0 ||
        mt_plan_decode(b.data, b.len, &again, NULL) < 0)
        abort();
    return 0;
}
