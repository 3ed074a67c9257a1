// SPDX-License-Identifier: Apache-2.0
// How long to wait before a request is tried again. Pure. Used within src/model only.
#pragma once

#include "base/str.h"

enum {
    RETRY_TRIES = 5, // in all
    RETRY_BASE_MS = 500,
    RETRY_MAX_MS = 30000,
};

// A Retry-After: seconds, or a date of HTTP. -1 where it is neither.
int64_t retry_after_ms(mt_str value, int64_t now_us);
// After so many tries (1 and up): half of it for certain, half at random, so that many that failed
// together do not come again together.
int64_t retry_backoff_ms(unsigned tries);
