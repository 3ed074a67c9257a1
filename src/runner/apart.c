// SPDX-License-Identifier: Apache-2.0
// What the runner knows of its runs, in memory that its forks do not get: a supervisor learns
// nothing of other runs, its fork has less to copy, and none keeps an old copy of a list that
// changes with each start. Slots of one size; blocks are kept for as long as the runner lives.
#include "runner/runner.h"

#include <sys/mman.h>

enum { BLOCK_BYTES = 64 << 10 };

typedef union slot {
    union slot *next;
    char bytes[APART_BYTES];
} slot;

static slot *unused;
static slot *mapped; // by their first slots, which are not given out

static int add_block(void)
{
    slot *block =
        mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (block == MAP_FAILED)
        return -1;
    (void)madvise(block, BLOCK_BYTES, MADV_DONTFORK); // refused, it is copied: that is all
    block->next = mapped;
    mapped = block;
    for (size_t i = BLOCK_BYTES / sizeof(slot); i-- > 1;) {
        block[i].next = unused;
        unused = &block[i];
    }
    return 0;
}

void *apart_new(void)
{
    slot *s;

    if (!unused && add_block() < 0)
        return NULL;
    s = unused;
    unused = s->next;
    return memset(s, 0, sizeof(*s));
}

void apart_free(void *p)
{
    slot *s = p;

    if (!s)
        return;
    s->next = unused;
    unused = s;
}

void apart_share(bool on)
{
    for (slot *block = mapped; block; block = block->next)
        (void)madvise(block, BLOCK_BYTES, on ? MADV_DOFORK : MADV_DONTFORK);
}
