// SPDX-License-Identifier: Apache-2.0
#include "runner/layer-turns.h"

#include <stdio.h>
#include <string.h>

// How many different builds go on that he waits for.
static size_t running_of(const turns_wait *waits, size_t count, const char *who)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        size_t j = 0;

        if (!waits[i].running || strcmp(waits[i].who, who) != 0)
            continue;
        while (j < i && (waits[j].what != waits[i].what || strcmp(waits[j].who, who) != 0))
            j++;
        found += j == i;
    }
    return found;
}

// 0: not served of late; the higher the later.
static size_t served(const turns *t, const char *who)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->served[i], who) == 0)
            return t->count - i;
    return 0;
}

const turns_wait *turns_next(const turns *t, const turns_wait *waits, size_t count)
{
    const turns_wait *best = NULL;
    size_t best_served = 0;

    for (size_t i = 0; i < count; i++) {
        const turns_wait *w = &waits[i];
        size_t s;

        if (!w->ready || w->running)
            continue;
        s = served(t, w->who);
        if (best && (s > best_served || (s == best_served && w->number >= best->number)))
            continue;
        if (running_of(waits, count, w->who) >= TURNS_RUNNING_EACH)
            continue;
        best = w;
        best_served = s;
    }
    return best;
}

void turns_served(turns *t, const char *who)
{
    size_t at = 0;

    while (at < t->count && strcmp(t->served[at], who) != 0)
        at++;
    if (at == t->count && t->count < TURNS_KEPT)
        t->count++;
    if (at == TURNS_KEPT)
        at--;
    memmove(t->served + 1, t->served, at * sizeof(t->served[0]));
    (void)snprintf(t->served[0], sizeof(t->served[0]), "%s", who);
}
