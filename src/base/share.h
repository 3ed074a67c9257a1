// SPDX-License-Identifier: Apache-2.0
// What one caller may have of something that all callers share. A bound for all alone would let
// one of them, or a few, take everything; a small bound for each alone would waste what nobody asks
// for. So a caller's share shrinks as the whole fills up: alone it has `each`, and whoever has
// nothing yet finds something as long as callers by the hundred do not act together.
#pragma once

#include "base/macros.h"

// each: what a caller has at most; all: what there is; used: what all callers have now, the one
// that asks included. It may have more as long as it has less than what this gives. Never 0.
static inline uint64_t mt_share(uint64_t each, uint64_t all, uint64_t used)
{
    uint64_t left = all > used ? all - used : 0;
    __extension__ typedef unsigned __int128 wide;

    if (each >= all || left >= all - each)
        return each;
    return MT_MAX((uint64_t)((wide)each * left / (all - each)), (uint64_t)1);
}
