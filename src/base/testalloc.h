// SPDX-License-Identifier: Apache-2.0
// For tests that are linked with --wrap of malloc, calloc and realloc: an allocator that fails on
// demand.
#pragma once

#include <stdint.h>

// The n-th allocation from now on fails, of whatever thread, once; 0: none. Returns how many were
// left before the one that was to fail before, that one counted; 0: it has failed, or there was
// none.
uint64_t testalloc_fail(uint64_t n);
