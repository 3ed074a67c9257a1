// SPDX-License-Identifier: Apache-2.0
// A heap of moments: what is due first is found at once. Items are members of what they are for
// (MT_CONTAINER_OF). Not for more than one thread at a time.
#pragma once

#include "base/macros.h"

typedef struct mt_heap_item {
    int64_t key;  // the least comes first
    size_t index; // where it is in its heap, plus 1; 0: in none
} mt_heap_item;

typedef struct mt_heap {
    mt_heap_item **items;
    size_t count, cap;
} mt_heap;

// Room for so many items in all, so that adding them cannot fail. 0 or -ENOMEM.
int mt_heap_reserve(mt_heap *h, size_t count);
void mt_heap_done(mt_heap *h);
static inline mt_heap_item *mt_heap_first(const mt_heap *h) // NULL: it is empty
{
    return h->count ? h->items[0] : NULL;
}
static inline bool mt_heap_has(const mt_heap_item *item) // it is in its heap
{
    return item->index > 0;
}
// Adds it, or moves it to another key.
void mt_heap_put(mt_heap *h, mt_heap_item *item, int64_t key);
void mt_heap_remove(mt_heap *h, mt_heap_item *item); // fine for one that is in none
