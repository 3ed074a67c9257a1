// SPDX-License-Identifier: Apache-2.0
#include "mtc/decimal.h"

#include <errno.h>

typedef unsigned __int128 u128;

// What two of them may come to on the way: 10^76 at most.
typedef struct u256 {
    u128 high, low;
} u256;

enum { POWER_STEP = 19 }; // the greatest power of ten in 64 bits

// ---- whole numbers ----

static u128 power_of_ten(unsigned n) // up to 38
{
    u128 p = 1;

    while (n--)
        p *= 10;
    return p;
}

static u128 magnitude(mt_decimal d)
{
    return d.units < 0 ? -(u128)d.units : (u128)d.units;
}

static mt_decimal with_sign(u128 units, unsigned scale, bool negative)
{
    return (mt_decimal){negative ? -(__int128)units : (__int128)units, scale};
}

static u256 multiply(u128 a, u128 b)
{
    uint64_t a1 = (uint64_t)(a >> 64), a0 = (uint64_t)a, b1 = (uint64_t)(b >> 64), b0 = (uint64_t)b;
    u128 low = (u128)a0 * b0, x = (u128)a1 * b0, y = (u128)a0 * b1, middle;

    middle = (low >> 64) + (uint64_t)x + (uint64_t)y;
    return (u256){(u128)a1 * b1 + (x >> 64) + (y >> 64) + (middle >> 64),
                  middle << 64 | (uint64_t)low};
}

static int compare(u256 a, u256 b)
{
    if (a.high != b.high)
        return a.high < b.high ? -1 : 1;
    return (a.low > b.low) - (a.low < b.low);
}

static u256 add(u256 a, u256 b)
{
    u128 low = a.low + b.low;

    return (u256){a.high + b.high + (low < a.low), low};
}

static u256 subtract(u256 a, u256 b) // a >= b
{
    return (u256){a.high - b.high - (a.low < b.low), a.low - b.low};
}

// By 64 bits; what remains goes to *rest.
static u256 divide(u256 a, uint64_t by, uint64_t *rest)
{
    uint64_t limbs[4] = {(uint64_t)(a.high >> 64), (uint64_t)a.high, (uint64_t)(a.low >> 64),
                         (uint64_t)a.low};
    u128 r = 0;

    for (int i = 0; i < 4; i++) {
        u128 part = r << 64 | limbs[i];

        limbs[i] = (uint64_t)(part / by);
        r = part % by;
    }
    *rest = (uint64_t)r;
    return (u256){(u128)limbs[0] << 64 | limbs[1], (u128)limbs[2] << 64 | limbs[3]};
}

static unsigned digits_of(u256 a)
{
    uint64_t rest;
    unsigned n = 0;

    for (; a.high; n++)
        a = divide(a, 10, &rest);
    for (; a.low; n++)
        a.low /= 10;
    return n;
}

// ---- rounding ----

static bool goes_up(unsigned digit, bool more, bool odd, bool negative, mt_rounding how)
{
    if (how == MT_ROUND_HALF_EVEN)
        return digit > 5 || (digit == 5 && (more || odd));
    return (digit || more) && negative == (how == MT_ROUND_DOWN);
}

// Without its last n digits.
static u256 cut(u256 a, unsigned n, bool negative, mt_rounding how)
{
    bool more = false;
    uint64_t rest;

    if (n == 0)
        return a;
    for (n--; n;) {
        unsigned step = MT_MIN(n, (unsigned)POWER_STEP);

        a = divide(a, (uint64_t)power_of_ten(step), &rest);
        more = more || rest;
        n -= step;
    }
    a = divide(a, 10, &rest);
    return goes_up((unsigned)rest, more, a.low & 1, negative, how) ? add(a, (u256){0, 1}) : a;
}

// The decimal of that many units, with as many digits as there may be.
static int fit(u256 units, unsigned scale, bool negative, mt_decimal *ret)
{
    unsigned drop = scale > MT_DECIMAL_SCALE ? scale - MT_DECIMAL_SCALE : 0;
    unsigned digits = digits_of(units);

    if (digits > MT_DECIMAL_DIGITS)
        drop = MT_MAX(drop, digits - MT_DECIMAL_DIGITS);
    if (drop > scale)
        return -ERANGE;
    units = cut(units, drop, negative, MT_ROUND_HALF_EVEN);
    scale -= drop;
    if (units.low == power_of_ten(MT_DECIMAL_DIGITS)) { // rounded up to one digit more
        if (scale == 0)
            return -ERANGE;
        units.low /= 10;
        scale--;
    }
    *ret = with_sign(units.low, scale, negative);
    return 0;
}

int mt_decimal_round(mt_decimal d, unsigned digits, mt_rounding how, mt_decimal *ret)
{
    u256 units = {0, magnitude(d)};

    if (digits < d.scale)
        units = cut(units, d.scale - digits, d.units < 0, how);
    else
        units = multiply(units.low, power_of_ten(digits - d.scale));
    if (digits_of(units) > MT_DECIMAL_DIGITS)
        return -ERANGE;
    *ret = with_sign(units.low, digits, d.units < 0);
    return 0;
}

// ---- texts ----

mt_decimal mt_decimal_of_int(int64_t n)
{
    return (mt_decimal){n, 0};
}

// A number as it is read: more digits than there may be are told by one bit.
typedef struct reading {
    u256 units;
    unsigned count; // of digits in units
    int64_t scale;
    bool more; // what was left out was not all zeros
} reading;

enum { READ_DIGITS = 60, EXPONENT_MAX = 100000 };

static void take_digit(reading *r, unsigned digit, bool behind)
{
    if (r->count == READ_DIGITS) {
        r->more = r->more || digit;
        r->scale -= !behind;
        return;
    }
    r->units = add(multiply(r->units.low, 10), (u256){multiply(r->units.high, 10).low, 0});
    r->units = add(r->units, (u256){0, digit});
    r->count += r->count || digit;
    r->scale += behind;
}

static size_t take_digits(reading *r, mt_str text, size_t at, bool behind)
{
    size_t begin = at;

    while (at < text.len && text.data[at] >= '0' && text.data[at] <= '9')
        take_digit(r, (unsigned)(text.data[at++] - '0'), behind);
    return at - begin;
}

// Of "e-12"; where it is beyond all use, far beyond it.
static int take_exponent(reading *r, mt_str text, size_t *at)
{
    bool negative;
    int64_t n = 0;
    size_t begin;

    if (*at == text.len || (text.data[*at] | 0x20) != 'e')
        return 0;
    ++*at;
    negative = *at < text.len && text.data[*at] == '-';
    if (*at < text.len && (negative || text.data[*at] == '+'))
        ++*at;
    begin = *at;
    for (; *at < text.len && text.data[*at] >= '0' && text.data[*at] <= '9'; ++*at)
        n = MT_MIN(n * 10 + (text.data[*at] - '0'), (int64_t)EXPONENT_MAX);
    r->scale += negative ? n : -n;
    return *at == begin ? -EINVAL : 0;
}

// What was read, as the decimal nearest to it.
static int settle(reading *r, bool negative, mt_decimal *ret)
{
    if (r->units.low == 0 && r->units.high == 0) {
        *ret = (mt_decimal){
            0, (unsigned)MT_MAX(MT_MIN(r->scale, (int64_t)MT_DECIMAL_SCALE), (int64_t)0)};
        return 0;
    }
    if (r->more) { // so far behind that it matters to a half alone
        r->units = add(add(multiply(r->units.low, 10), (u256){multiply(r->units.high, 10).low, 0}),
                       (u256){0, 1});
        r->scale++;
    }
    for (; r->scale < 0; r->scale++) {
        if (digits_of(r->units) > MT_DECIMAL_DIGITS)
            return -ERANGE;
        r->units = multiply(r->units.low, 10);
    }
    // All of it, and more, is behind the last digit.
    if (r->scale > MT_DECIMAL_SCALE + READ_DIGITS + 1) {
        *ret = (mt_decimal){0, MT_DECIMAL_SCALE};
        return 0;
    }
    return fit(r->units, (unsigned)r->scale, negative, ret);
}

int mt_decimal_parse(mt_str text, bool exponent, mt_decimal *ret)
{
    reading r = {0};
    size_t at = 0;
    bool negative = text.len && text.data[0] == '-';

    if (text.len && (negative || text.data[0] == '+'))
        at++;
    if (take_digits(&r, text, at, false) == 0)
        return -EINVAL;
    while (at < text.len && text.data[at] >= '0' && text.data[at] <= '9')
        at++;
    if (at < text.len && text.data[at] == '.') {
        size_t n = take_digits(&r, text, at + 1, true);

        if (n == 0)
            return -EINVAL;
        at += 1 + n;
    }
    if (exponent && take_exponent(&r, text, &at) < 0)
        return -EINVAL;
    return at == text.len ? settle(&r, negative, ret) : -EINVAL;
}

size_t mt_decimal_format(mt_decimal d, char out[MT_DECIMAL_TEXT])
{
    char reversed[MT_DECIMAL_TEXT];
    u128 units = magnitude(d);
    size_t n = 0, len = 0;

    for (unsigned i = 0; units || i <= d.scale; i++) {
        if (i == d.scale && i)
            reversed[n++] = '.';
        reversed[n++] = (char)('0' + (int)(units % 10));
        units /= 10;
    }
    if (d.units < 0)
        out[len++] = '-';
    while (n)
        out[len++] = reversed[--n];
    out[len] = '\0';
    return len;
}

bool mt_decimal_to_int(mt_decimal d, int64_t *ret)
{
    __int128 whole = d.units / (__int128)power_of_ten(d.scale);

    *ret = (int64_t)whole;
    return whole >= INT64_MIN && whole <= INT64_MAX;
}

// ---- comparing, computing ----

static u256 at_scale(mt_decimal d, unsigned scale)
{
    return multiply(magnitude(d), power_of_ten(scale - d.scale));
}

int mt_decimal_compare(mt_decimal a, mt_decimal b)
{
    unsigned scale = MT_MAX(a.scale, b.scale);
    int r;

    if ((a.units < 0) != (b.units < 0))
        return a.units < 0 ? -1 : 1;
    r = compare(at_scale(a, scale), at_scale(b, scale));
    return a.units < 0 ? -r : r;
}

int mt_decimal_add(mt_decimal a, mt_decimal b, mt_decimal *ret)
{
    unsigned scale = MT_MAX(a.scale, b.scale);
    u256 x = at_scale(a, scale), y = at_scale(b, scale);

    if ((a.units < 0) == (b.units < 0))
        return fit(add(x, y), scale, a.units < 0, ret);
    if (compare(x, y) >= 0)
        return fit(subtract(x, y), scale, a.units < 0, ret);
    return fit(subtract(y, x), scale, b.units < 0, ret);
}

int mt_decimal_subtract(mt_decimal a, mt_decimal b, mt_decimal *ret)
{
    b.units = -b.units;
    return mt_decimal_add(a, b, ret);
}

int mt_decimal_multiply(mt_decimal a, mt_decimal b, mt_decimal *ret)
{
    return fit(multiply(magnitude(a), magnitude(b)), a.scale + b.scale,
               (a.units < 0) != (b.units < 0), ret);
}

// Twice r, or r and more, both less than by: what is over by goes to the digit.
static void over(u128 *r, u128 more, u128 by, unsigned *digit)
{
    *r += more;
    if (*r >= by) {
        *r -= by;
        ++*digit;
    }
}

// Ten times *rest by a number that is greater than it: the digit, and the rest of that.
static unsigned next_digit(u128 *rest, u128 by)
{
    u128 r = *rest;
    unsigned digit = 0;

    over(&r, r, by, &digit); // 2
    digit *= 2;
    over(&r, r, by, &digit);     // 4
    over(&r, *rest, by, &digit); // 5
    digit *= 2;
    over(&r, r, by, &digit); // 10
    *rest = r;
    return digit;
}

int mt_decimal_divide(mt_decimal a, mt_decimal b, mt_decimal *ret)
{
    u128 by = magnitude(b), limit = power_of_ten(MT_DECIMAL_DIGITS), q, rest;
    int scale = (int)a.scale - (int)b.scale;
    bool negative = (a.units < 0) != (b.units < 0);

    if (by == 0)
        return -EDOM;
    q = magnitude(a) / by;
    rest = magnitude(a) % by;
    for (; scale < 0 || (rest && scale < MT_DECIMAL_SCALE); scale++) {
        if (q >= limit / 10) {
            if (scale < 0)
                return -ERANGE;
            break;
        }
        q = q * 10 + next_digit(&rest, by);
    }
    if (rest > by - rest || (rest == by - rest && (q & 1)))
        q++;
    if (q == limit && scale == 0)
        return -ERANGE;
    for (; scale > 0 && q % 10 == 0; scale--)
        q /= 10;
    *ret = with_sign(q, (unsigned)scale, negative);
    return 0;
}

int mt_decimal_remainder(mt_decimal a, mt_decimal b, mt_decimal *ret)
{
    unsigned scale = MT_MAX(a.scale, b.scale);
    u256 by = at_scale(b, scale);
    u128 rest = magnitude(a);

    if (b.units == 0)
        return -EDOM;
    if (by.high == 0) {
        rest %= by.low;
        for (unsigned i = a.scale; i < scale; i++)
            (void)next_digit(&rest, by.low);
    } // else the right side is the greater one: a.scale is scale
    *ret = with_sign(rest, scale, a.units < 0);
    return 0;
}
