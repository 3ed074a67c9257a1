// SPDX-License-Identifier: Apache-2.0
// Numbers: the grammar, and conversions from source text. No program of ours calls setlocale(), so
// strtod() and printf() speak with a point.
#include "json/json-internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

static size_t digits(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

size_t json_number_scan(const char *s, size_t len)
{
    size_t at = len > 0 && s[0] == '-', n = digits(s + at, len - at);

    if (n == 0)
        return 0;
    at += s[at] == '0' ? 1 : n; // what follows a leading 0 is not part of it
    if (at < len && s[at] == '.') {
        n = digits(s + at + 1, len - at - 1);
        if (n == 0)
            return 0;
        at += 1 + n;
    }
    if (at < len && (s[at] == 'e' || s[at] == 'E')) {
        size_t sign = at + 1 < len && (s[at + 1] == '+' || s[at + 1] == '-');

        n = digits(s + at + 1 + sign, len - at - 1 - sign);
        if (n == 0)
            return 0;
        at += 1 + sign + n;
    }
    return at;
}

bool json_number_valid(mt_str s)
{
    return s.len > 0 && json_number_scan(s.data, s.len) == s.len;
}

// A number as sign, significant digits without zeros at either end (a point may stand between
// them), and the power of ten of the last one.
typedef struct decimal {
    bool negative, zero;
    bool huge; // the exponent is past all sense: only the same text is the same number
    const char *first, *last;
    size_t count;
    int64_t exponent;
} decimal;

static int64_t read_exponent(const char *s, const char *end, bool *huge)
{
    bool negative = s < end && *s == '-';
    int64_t value = 0;

    if (s < end && (*s == '-' || *s == '+'))
        s++;
    for (; s < end; s++) {
        value = value * 10 + (*s - '0');
        if (value > INT64_MAX / 100) {
            *huge = true;
            break;
        }
    }
    return negative ? -value : value;
}

static decimal take_apart(mt_str s)
{
    const char *end = s.data + s.len, *at = s.data;
    bool after_point = false;
    int64_t zeros = 0;
    decimal d = {.zero = true};

    if (at < end && *at == '-') {
        d.negative = true;
        at++;
    }
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            after_point = true;
            continue;
        }
        if (after_point)
            d.exponent--;
        if (*at == '0') {
            zeros++;
            continue;
        }
        if (d.zero)
            d.first = at;
        else
            d.count += (size_t)zeros;
        d.zero = false;
        d.count++;
        d.last = at;
        zeros = 0;
    }
    d.exponent += zeros;
    if (at < end)
        d.exponent += read_exponent(at + 1, end, &d.huge);
    return d;
}

bool json_number_equal(mt_str a, mt_str b)
{
    decimal x = take_apart(a), y = take_apart(b);
    const char *p = x.first, *q = y.first;

    if (x.zero || y.zero)
        return x.zero && y.zero;
    if (x.huge || y.huge)
        return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
    if (x.negative != y.negative || x.count != y.count || x.exponent != y.exponent)
        return false;
    while (p <= x.last && q <= y.last) {
        if (*p == '.')
            p++;
        if (*q == '.')
            q++;
        if (*p++ != *q++)
            return false;
    }
    return true;
}

uint64_t json_number_hash(mt_str s)
{
    decimal d = take_apart(s);
    char text[96];
    size_t n = 0;
    int len;

    if (d.zero)
        return 0;
    if (d.huge)
        return json_hash_text(s);
    len = snprintf(text, 32, "%d%lld", d.negative, (long long)d.exponent);
    for (const char *p = d.first; p <= d.last && n < 64; p++) {
        if (*p != '.')
            text[(size_t)len + n++] = *p;
    }
    return json_hash_text((mt_str){text, (size_t)len + n}) + d.count;
}

// Of numbers that are not 0, without regard to their signs.
static int compare_magnitude(const decimal *x, const decimal *y)
{
    int64_t tall = x->exponent + (int64_t)x->count, other = y->exponent + (int64_t)y->count;
    const char *p = x->first, *q = y->first;

    if (tall != other)
        return tall < other ? -1 : 1;
    while (p <= x->last && q <= y->last) {
        if (*p == '.')
            p++;
        if (*q == '.')
            q++;
        if (*p != *q)
            return *p < *q ? -1 : 1;
        p++;
        q++;
    }
    return (x->count > y->count) - (x->count < y->count);
}

int mt_json_compare(const mt_json *a, const mt_json *b)
{
    decimal x = take_apart(mt_json_str(a)), y = take_apart(mt_json_str(b));
    int left = x.zero ? 0 : x.negative ? -1 : 1, right = y.zero ? 0 : y.negative ? -1 : 1;

    if (left != right || left == 0)
        return left - right;
    return left * compare_magnitude(&x, &y);
}

size_t mt_json_digits(const mt_json *v)
{
    return mt_json_kind_of(v) == MT_JSON_NUMBER ? take_apart(mt_json_str(v)).count : 0;
}

// With a = A * 10^i and b = B * 10^j, B must divide A * 10^(i - j). A ends in no 0, so i < j never
// does; and B, less than 2^128, has no more than 128 times the factors of 10, so that more zeros
// than that make no difference.
bool mt_json_is_multiple(const mt_json *a, const mt_json *b)
{
    decimal x = take_apart(mt_json_str(a)), y = take_apart(mt_json_str(b));
    unsigned __int128 divisor = 0, rest = 0;
    int64_t zeros;

    if (x.zero)
        return true;
    if (y.zero || y.count > MT_JSON_DIVISOR || x.exponent < y.exponent)
        return false;
    for (const char *p = y.first; p <= y.last; p++) {
        if (*p != '.')
            divisor = divisor * 10 + (unsigned)(*p - '0');
    }
    assert(divisor != 0);
    for (const char *p = x.first; p <= x.last; p++) {
        if (*p != '.')
            rest = (rest * 10 + (unsigned)(*p - '0')) % divisor;
    }
    zeros = MT_MIN(x.exponent - y.exponent, (int64_t)128);
    for (int64_t i = 0; i < zeros && rest; i++)
        rest = rest * 10 % divisor;
    return rest == 0;
}

bool mt_json_as_int64(const mt_json *v, int64_t *ret)
{
    decimal d;
    uint64_t value = 0;

    if (mt_json_kind_of(v) != MT_JSON_NUMBER)
        return false;
    d = take_apart(mt_json_str(v));
    if (d.zero) {
        *ret = 0;
        return true;
    }
    // The last digit is no zero, so a power below 0 is a fraction. 19 digits are 2^63 at most.
    if (d.huge || d.exponent < 0 || d.exponent > 19 || d.count + (size_t)d.exponent > 19)
        return false;
    for (const char *p = d.first; p <= d.last; p++) {
        if (*p != '.')
            value = value * 10 + (uint64_t)(*p - '0');
    }
    for (int64_t i = 0; i < d.exponent; i++)
        value *= 10;
    if (value > (uint64_t)INT64_MAX + d.negative)
        return false;
    *ret = d.negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool mt_json_is_whole(const mt_json *v)
{
    decimal d;

    if (mt_json_kind_of(v) != MT_JSON_NUMBER)
        return false;
    d = take_apart(mt_json_str(v));
    return d.zero || d.exponent >= 0;
}

bool mt_json_as_double(const mt_json *v, double *ret)
{
    double value;

    if (mt_json_kind_of(v) != MT_JSON_NUMBER)
        return false;
    value = strtod(json_text_of(v)->data, NULL);
    if (!isfinite(value))
        return false;
    *ret = value;
    return true;
}

mt_json *mt_json_new_double(double value)
{
    char text[40];

    if (!isfinite(value))
        return NULL;
    for (int precision = 15; precision <= 17; precision++) {
        (void)snprintf(text, sizeof(text), "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return mt_json_new_number(mt_str_of(text));
}
