// SPDX-License-Identifier: Apache-2.0
#include "capsule/cpus.h"

#include <stdio.h>

unsigned mt_cpus_count(const mt_cpus *c)
{
    unsigned n = 0;

    for (size_t i = 0; i < MT_ARRAY_SIZE(c->bits); i++)
        n += (unsigned)__builtin_popcountll(c->bits[i]);
    return n;
}

static mt_str trim(mt_str s)
{
    while (s.len && (s.data[s.len - 1] == '\n' || s.data[s.len - 1] == ' '))
        s.len--;
    while (s.len && s.data[0] == ' ') {
        s.data++;
        s.len--;
    }
    return s;
}

// "3" or "0-3"
static bool add_range(mt_str s, mt_cpus *to)
{
    const char *dash = memchr(s.data, '-', s.len);
    mt_str first = {s.data, dash ? (size_t)(dash - s.data) : s.len};
    uint64_t from, until;

    if (!mt_parse_u64(first, MT_CPUS_MAX - 1, &from))
        return false;
    until = from;
    if (dash && !mt_parse_u64((mt_str){dash + 1, s.len - first.len - 1}, MT_CPUS_MAX - 1, &until))
        return false;
    for (uint64_t cpu = from; cpu <= until; cpu++)
        mt_cpus_add(to, (unsigned)cpu);
    return from <= until;
}

bool mt_cpus_parse(mt_str text, mt_cpus *ret)
{
    mt_cpus found = {0};

    text = trim(text);
    while (text.len) {
        const char *comma = memchr(text.data, ',', text.len);
        size_t len = comma ? (size_t)(comma - text.data) : text.len;

        if (!add_range((mt_str){text.data, len}, &found))
            return false;
        text.data += len + (comma != NULL);
        text.len -= len + (comma != NULL);
        if (comma && !text.len)
            return false;
    }
    *ret = found;
    return true;
}

const char *mt_cpus_format(const mt_cpus *c, char out[MT_CPUS_TEXT])
{
    size_t len = 0;

    out[0] = '\0';
    for (unsigned cpu = 0; cpu < MT_CPUS_MAX; cpu++) {
        unsigned last = cpu;
        int n;

        if (!mt_cpus_has(c, cpu))
            continue;
        while (mt_cpus_has(c, last + 1))
            last++;
        n = last > cpu
                ? snprintf(out + len, MT_CPUS_TEXT - len, "%s%u-%u", len ? "," : "", cpu, last)
                : snprintf(out + len, MT_CPUS_TEXT - len, "%s%u", len ? "," : "", cpu);
        if (n < 0 || (size_t)n >= MT_CPUS_TEXT - len) {
            out[0] = '\0';
            break;
        }
        len += (size_t)n;
        cpu = last;
    }
    return out;
}

void mt_cpus_least(const mt_cpus *from, const uint64_t *load, unsigned count, mt_cpus *ret)
{
    mt_cpus chosen = {0};

    while (count-- > 0) {
        unsigned best = MT_CPUS_MAX;

        for (unsigned cpu = 0; cpu < MT_CPUS_MAX; cpu++)
            if (mt_cpus_has(from, cpu) && !mt_cpus_has(&chosen, cpu) &&
                (best == MT_CPUS_MAX || load[cpu] < load[best]))
                best = cpu;
        if (best == MT_CPUS_MAX)
            break;
        mt_cpus_add(&chosen, best);
    }
    *ret = chosen;
}
