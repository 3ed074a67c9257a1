// SPDX-License-Identifier: Apache-2.0
// For tests that are linked with --wrap of malloc, calloc and realloc: an allocator that fails on
// demand.
#pragma once

#include <stdint.h>

// The n-th allocation from now on fails, once; 0: none.
void testalloc_fail(uint64_t n);
