// SPDX-License-Identifier: Apache-2.0
#include "base/pages.h"

#include <malloc.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,
    STACK_DEPTH = 256 << 10, // further down nobody has been
    STACK_MARGIN = 1024,     // the frames of madvise() itself, and what signals would need
};

static uintptr_t up(uintptr_t at)
{
    return (at + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
}

static uintptr_t down(uintptr_t at)
{
    return at & ~(uintptr_t)(PAGE - 1);
}

// Of pages that are not there the kernel says so, having dropped the others.
static void drop(uintptr_t from, uintptr_t to)
{
    if (from < to)
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

void mt_pages_drop(void *p, size_t len)
{
    drop(up((uintptr_t)p), down((uintptr_t)p + len));
}

__attribute__((noinline)) void mt_pages_drop_stack(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    drop(down(here - STACK_DEPTH), down(here - STACK_MARGIN));
}

void mt_pages_drop_heap(void)
{
    (void)malloc_trim(0);
}
