// SPDX-License-Identifier: Apache-2.0
// A set of GUIDs that only grows: 16 bytes each, in a table that is at most three quarters full.
#include "runner/commands-internal.h"

typedef struct key {
    uint64_t high, low; // both 0: free
} key;

struct seen {
    key *table;
    size_t size; // a power of two
    size_t count;
};

enum { FIRST_SIZE = 64 };

seen *seen_new(void)
{
    return calloc(1, sizeof(seen));
}

void seen_free(seen *s)
{
    if (!s)
        return;
    free(s->table);
    free(s);
}

static key key_of(const char *id)
{
    key k = {0};

    for (; *id; id++) {
        uint64_t digit;

        if (*id == '-')
            continue;
        digit = (uint64_t)(*id <= '9' ? *id - '0' : *id - 'a' + 10) & 15;
        k.high = k.high << 4 | k.low >> 60;
        k.low = k.low << 4 | digit;
    }
    k.low += k.high == 0 && k.low == 0;
    return k;
}

// Ids begin with the time: the whole of both halves takes part.
static size_t place(const seen *s, key k)
{
    uint64_t h = (k.high ^ (k.low * 0x9e3779b97f4a7c15u)) * 0xd6e8feb86659fd93u;

    return (size_t)(h ^ (h >> 32)) & (s->size - 1);
}

// Where it stands, or the free place where it belongs.
static key *find(const seen *s, key k)
{
    size_t i = place(s, k);

    while ((s->table[i].high || s->table[i].low) &&
           (s->table[i].high != k.high || s->table[i].low != k.low))
        i = (i + 1) & (s->size - 1);
    return &s->table[i];
}

static int grow(seen *s)
{
    seen larger = {.size = s->size ? 2 * s->size : FIRST_SIZE, .count = s->count};

    larger.table = calloc(larger.size, sizeof(key));
    if (!larger.table)
        return -1;
    for (size_t i = 0; i < s->size; i++)
        if (s->table[i].high || s->table[i].low)
            *find(&larger, s->table[i]) = s->table[i];
    free(s->table);
    *s = larger;
    return 0;
}

int seen_add(seen *s, const char *id)
{
    key k = key_of(id), *at;

    if (4 * (s->count + 1) > 3 * s->size && grow(s) < 0)
        return -1;
    at = find(s, k);
    if (at->high == k.high && at->low == k.low)
        return 0;
    *at = k;
    s->count++;
    return 1;
}
