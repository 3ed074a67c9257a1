// SPDX-License-Identifier: Apache-2.0
// An arena: many small objects that die together (one HTTP request, one parsed file). Never store a
// pointer into one in something that outlives it. Not for more than one thread at a time.
#pragma once

#include "base/macros.h"

typedef struct mt_arena mt_arena;

mt_arena *mt_arena_new(size_t max_bytes); // NULL when out of memory; max_bytes limits all of it
void mt_arena_free(mt_arena *a);
MT_DEFINE_CLEANUP(mt_arena_free, mt_arena *)
#define _cleanup_arena_ _cleanup_(mt_arena_free_p)

size_t mt_arena_bytes(const mt_arena *a); // that were asked for so far

// Zeroed memory aligned for anything; NULL past the maximum or out of memory.
void *mt_arena_alloc(mt_arena *a, size_t size);
char *mt_arena_strndup(mt_arena *a, const char *s, size_t len);
char *mt_arena_strdup(mt_arena *a, const char *s);
char *mt_arena_printf(mt_arena *a, const char *fmt, ...) MT_PRINTF(2, 3);
#define mt_arena_new_of(a, type)          ((type *)mt_arena_alloc((a), sizeof(type)))
#define mt_arena_array_of(a, type, count) ((type *)mt_arena_alloc((a), sizeof(type) * (count)))
