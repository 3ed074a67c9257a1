// SPDX-License-Identifier: Apache-2.0
#include "base/testalloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

static _Atomic uint64_t failing; // counts down to the allocation that fails; 0: none

uint64_t testalloc_fail(uint64_t n)
{
    return atomic_exchange(&failing, n);
}

static bool fails(void)
{
    uint64_t n = atomic_load(&failing);

    while (n && !atomic_compare_exchange_weak(&failing, &n, n - 1))
        ;
    return n == 1;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}
