// SPDX-License-Identifier: Apache-2.0
// Strings: slices from outside (pointer and length, not NUL-terminated), names, numbers and
// "did you mean".
#pragma once

#include "base/macros.h"

typedef struct mt_str {
    const char *data;
    size_t len;
} mt_str;

#define MT_STR(literal) ((mt_str){(literal), sizeof(literal) - 1})

static inline mt_str mt_str_of(const char *s)
{
    return (mt_str){s, s ? strlen(s) : 0};
}
static inline bool mt_streq(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}
uint64_t mt_str_hash(mt_str s); // FNV-1a: for tables whose keys nobody chooses to collide
bool mt_str_eq(mt_str a, const char *b);
bool mt_str_ieq(mt_str a, const char *b); // ASCII letters without regard to case
bool mt_starts_with(const char *s, const char *prefix);
char *mt_str_dup(mt_str s);
char *mt_asprintf(const char *fmt, ...) MT_PRINTF(1, 2); // NULL when out of memory

// Decimal digits only (no sign, blank or prefix), the whole slice. False when anything else is
// there or the number is over max.
enum { MT_I64_TEXT = 20 };                                // "-9223372036854775808", without a NUL
mt_str mt_i64_text(int64_t n, char scratch[MT_I64_TEXT]); // somewhere in scratch
bool mt_parse_u64(mt_str s, uint64_t max, uint64_t *ret);

// [a-z0-9][a-z0-9._-]{0,62}: names of namespaces, file systems, secrets, resources and mounts.
bool mt_is_name(mt_str s);
// [a-z_][a-z0-9_-]{0,31}: users of a capsule.
bool mt_is_user_name(mt_str s);
// Debian's grammar of package names: [a-z0-9][a-z0-9+.-]+, at most 128.
bool mt_is_package_name(mt_str s);
// dpkg's of versions (deb-version(7)): [epoch:]upstream[-revision].
bool mt_is_package_version(mt_str s);
// NAME or NAME=VERSION, at most 255.
bool mt_is_package(mt_str s);
mt_str mt_package_name_of(mt_str s); // what is before the '='

// The candidate nearest to word by edit distance (a swap of neighbours is one edit), when near
// enough to be what was meant (at most a third of its length, at least 1); NULL otherwise. next(i)
// gives candidate i, NULL at the end.
const char *mt_nearest(mt_str word, const char *(*next)(size_t i, void *data), void *data);
const char *mt_nearest_of(mt_str word, const char *const *names, size_t count);
