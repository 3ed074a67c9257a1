// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

enum { CHUNK_BYTES = 8192 - 64 };

typedef struct chunk {
    struct chunk *next;
    size_t used;
    size_t size;
    _Alignas(16) char data[];
} chunk;

struct mt_arena {
    chunk *chunks;
    size_t max, left;
};

mt_arena *mt_arena_new(size_t max_bytes)
{
    mt_arena *a = calloc(1, sizeof(*a));

    if (a)
        a->max = a->left = max_bytes;
    return a;
}

size_t mt_arena_bytes(const mt_arena *a)
{
    return a->max - a->left;
}

void mt_arena_free(mt_arena *a)
{
    chunk *next;

    if (!a)
        return;
    for (chunk *c = a->chunks; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a);
}

void *mt_arena_alloc(mt_arena *a, size_t size)
{
    chunk *c = a->chunks;
    size_t need = (size + 15) & ~(size_t)15;
    void *p;

    if (need < size || need > a->left)
        return NULL;
    if (!c || c->size - c->used < need) {
        size_t bytes = MT_MAX(need, (size_t)CHUNK_BYTES);

        c = calloc(1, sizeof(*c) + bytes);
        if (!c)
            return NULL;
        c->size = bytes;
        // A big object gets a chunk of its own behind the current one, which stays in use.
        if (a->chunks && bytes > CHUNK_BYTES) {
            c->next = a->chunks->next;
            a->chunks->next = c;
        } else {
            c->next = a->chunks;
            a->chunks = c;
        }
    }
    p = c->data + c->used;
    c->used += need;
    a->left -= need;
    return p;
}

char *mt_arena_strndup(mt_arena *a, const char *s, size_t len)
{
    char *p = len + 1 ? mt_arena_alloc(a, len + 1) : NULL;

    if (p && len)
        memcpy(p, s, len);
    return p;
}

char *mt_arena_strdup(mt_arena *a, const char *s)
{
    return mt_arena_strndup(a, s, strlen(s));
}

char *mt_arena_printf(mt_arena *a, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL, *copy = NULL;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    if (text)
        copy = mt_arena_strdup(a, text);
    free(text);
    return copy;
}
