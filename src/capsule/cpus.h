// SPDX-License-Identifier: Apache-2.0
// Sets of processors, in the form that the kernel writes and reads: "0-3,6".
#pragma once

#include "base/str.h"

enum { MT_CPUS_MAX = 1024, MT_CPUS_TEXT = 4096 };

typedef struct mt_cpus {
    uint64_t bits[MT_CPUS_MAX / 64];
} mt_cpus;

static inline bool mt_cpus_has(const mt_cpus *c, unsigned cpu)
{
    return cpu < MT_CPUS_MAX && (c->bits[cpu / 64] >> (cpu % 64) & 1);
}

static inline void mt_cpus_add(mt_cpus *c, unsigned cpu)
{
    if (cpu < MT_CPUS_MAX)
        c->bits[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

unsigned mt_cpus_count(const mt_cpus *c);
// Surrounding blanks and line ends are fine; "" is the empty set. False where it is no such list.
bool mt_cpus_parse(mt_str text, mt_cpus *ret);
const char *mt_cpus_format(const mt_cpus *c, char out[MT_CPUS_TEXT]); // "" where it does not fit
// The count of those in `from` that have the least load (an array of MT_CPUS_MAX); all of them when
// there are not more.
void mt_cpus_least(const mt_cpus *from, const uint64_t *load, unsigned count, mt_cpus *ret);
