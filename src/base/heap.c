// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <errno.h>

int mt_heap_reserve(mt_heap *h, size_t count)
{
    size_t cap = MT_MAX(count, MT_MAX(2 * h->cap, (size_t)16));
    mt_heap_item **bigger;

    if (count <= h->cap)
        return 0;
    bigger = reallocarray((void *)h->items, cap, sizeof(void *));
    if (!bigger)
        return -ENOMEM;
    h->items = bigger;
    h->cap = cap;
    return 0;
}

void mt_heap_done(mt_heap *h)
{
    free((void *)h->items);
    *h = (mt_heap){0};
}

static void place(mt_heap *h, size_t i, mt_heap_item *item)
{
    h->items[i] = item;
    item->index = i + 1;
}

static void sift_up(mt_heap *h, size_t i)
{
    mt_heap_item *item = h->items[i];

    while (i > 0 && h->items[(i - 1) / 2]->key > item->key) {
        place(h, i, h->items[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place(h, i, item);
}

static void sift_down(mt_heap *h, size_t i)
{
    mt_heap_item *item = h->items[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < h->count && h->items[child + 1]->key < h->items[child]->key)
            child++;
        if (child >= h->count || h->items[child]->key >= item->key)
            break;
        place(h, i, h->items[child]);
        i = child;
    }
    place(h, i, item);
}

void mt_heap_put(mt_heap *h, mt_heap_item *item, int64_t key)
{
    mt_heap_remove(h, item);
    item->key = key;
    place(h, h->count++, item);
    sift_up(h, h->count - 1);
}

void mt_heap_remove(mt_heap *h, mt_heap_item *item)
{
    mt_heap_item *last;
    size_t i = item->index;

    if (i == 0)
        return;
    item->index = 0;
    last = h->items[--h->count];
    if (last == item)
        return;
    place(h, i - 1, last);
    sift_up(h, i - 1);
    sift_down(h, last->index - 1);
}
