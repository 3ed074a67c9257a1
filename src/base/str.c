// SPDX-License-Identifier: Apache-2.0
#include "base/str.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

uint64_t mt_str_hash(mt_str s)
{
    uint64_t h = 1469598103934665603u;

    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (unsigned char)s.data[i]) * 1099511628211u;
    return h ^ h >> 32;
}

bool mt_str_eq(mt_str a, const char *b)
{
    return strlen(b) == a.len && (a.len == 0 || memcmp(a.data, b, a.len) == 0);
}

bool mt_str_ieq(mt_str a, const char *b)
{
    return strlen(b) == a.len && (a.len == 0 || strncasecmp(a.data, b, a.len) == 0);
}

bool mt_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

char *mt_str_dup(mt_str s)
{
    char *p = malloc(s.len + 1);

    if (!p)
        return NULL;
    if (s.len)
        memcpy(p, s.data, s.len);
    p[s.len] = '\0';
    return p;
}

char *mt_asprintf(const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    return text;
}

mt_str mt_i64_text(int64_t n, char scratch[MT_I64_TEXT])
{
    char *end = scratch + MT_I64_TEXT, *at = end;
    uint64_t rest = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (n < 0)
        *--at = '-';
    return (mt_str){at, (size_t)(end - at)};
}

bool mt_parse_u64(mt_str s, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;

    if (s.len == 0 || s.len > 20)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.data[i] - '0'), &value))
            return false;
    }
    if (value > max)
        return false;
    *ret = value;
    return true;
}

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool mt_is_name(mt_str s)
{
    if (s.len == 0 || s.len > 63 || !is_lower_alnum(s.data[0]))
        return false;
    for (size_t i = 1; i < s.len; i++)
        if (!is_lower_alnum(s.data[i]) && !(s.data[i] && strchr("._-", s.data[i])))
            return false;
    return true;
}

bool mt_is_user_name(mt_str s)
{
    if (s.len == 0 || s.len > 32 || !((s.data[0] >= 'a' && s.data[0] <= 'z') || s.data[0] == '_'))
        return false;
    for (size_t i = 1; i < s.len; i++)
        if (!is_lower_alnum(s.data[i]) && s.data[i] != '_' && s.data[i] != '-')
            return false;
    return true;
}

bool mt_is_package_name(mt_str s)
{
    if (s.len < 2 || s.len > 128 || !is_lower_alnum(s.data[0]))
        return false;
    for (size_t i = 1; i < s.len; i++)
        if (!is_lower_alnum(s.data[i]) && !(s.data[i] && strchr("+.-", s.data[i])))
            return false;
    return true;
}

bool mt_is_package_version(mt_str s)
{
    if (s.len == 0 || s.data[0] < '0' || s.data[0] > '9')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_lower_alnum(s.data[i]) && !(s.data[i] >= 'A' && s.data[i] <= 'Z') &&
            !(s.data[i] && strchr(".+~:-", s.data[i])))
            return false;
    return true;
}

mt_str mt_package_name_of(mt_str s)
{
    const char *equals = s.len ? memchr(s.data, '=', s.len) : NULL;

    return (mt_str){s.data, equals ? (size_t)(equals - s.data) : s.len};
}

bool mt_is_package(mt_str s)
{
    mt_str name = mt_package_name_of(s);

    if (s.len > 255 || !mt_is_package_name(name))
        return false;
    return name.len == s.len ||
           mt_is_package_version((mt_str){s.data + name.len + 1, s.len - name.len - 1});
}

enum { NEAREST_MAX = 64 };

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

// Letters added, lost, changed, or two neighbours swapped: each counts one.
static size_t distance(mt_str a, const char *b, size_t blen)
{
    size_t rows[3][NEAREST_MAX + 1];

    for (size_t j = 0; j <= blen; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= blen; j++) {
            bool same = same_letter(a.data[i - 1], b[j - 1]);

            row[j] = MT_MIN(above[j - 1] + (same ? 0 : 1), MT_MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a.data[i - 1], b[j - 2]) &&
                same_letter(a.data[i - 2], b[j - 1]))
                row[j] = MT_MIN(row[j], above2[j - 2] + 1);
        }
    }
    return rows[a.len % 3][blen];
}

const char *mt_nearest(mt_str word, const char *(*next)(size_t i, void *data), void *data)
{
    const char *best = NULL, *name;
    size_t best_distance = MT_MAX(word.len / 3, (size_t)1) + 1;

    if (word.len == 0 || word.len > NEAREST_MAX)
        return NULL;
    for (size_t i = 0; (name = next(i, data)) != NULL; i++) {
        size_t len = strlen(name), d;

        if (len > NEAREST_MAX)
            continue;
        d = distance(word, name, len);
        if (d < best_distance) {
            best_distance = d;
            best = name;
        }
    }
    return best;
}

struct names {
    const char *const *names;
    size_t count;
};

static const char *next_of(size_t i, void *data)
{
    const struct names *n = data;

    return i < n->count ? n->names[i] : NULL;
}

const char *mt_nearest_of(mt_str word, const char *const *names, size_t count)
{
    struct names n = {names, count};

    return mt_nearest(word, next_of, &n);
}
