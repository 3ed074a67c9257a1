// SPDX-License-Identifier: Apache-2.0
#include "server/listings.h"

enum { ALL_BYTES = 32 << 20 };

static struct {
    mt_listing *first;
    size_t held;
} lists;

void mt_listing_join(mt_listing *l)
{
    l->next = lists.first;
    l->link = &lists.first;
    if (l->next)
        l->next->link = &l->next;
    lists.first = l;
}

void mt_listing_leave(mt_listing *l)
{
    if (!l->link)
        return;
    *l->link = l->next;
    if (l->next)
        l->next->link = l->link;
    l->link = NULL;
    lists.held -= l->held;
}

void mt_listing_grew(mt_listing *l, size_t now)
{
    lists.held += now - l->held;
    l->held = now;
}

mt_listing *mt_listing_too_many(void)
{
    mt_listing *largest = lists.first;

    if (lists.held <= ALL_BYTES)
        return NULL;
    for (mt_listing *l = largest; l; l = l->next)
        if (l->held > largest->held)
            largest = l;
    return largest;
}
