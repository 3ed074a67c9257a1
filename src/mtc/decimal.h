// SPDX-License-Identifier: Apache-2.0
// The decimals of the app language: exact, base ten, at most 38 digits, 0 to 28 of them after the
// point. A result that needs more is rounded at its last digit, half to even; one whose whole part
// needs more is out of range.
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MT_DECIMAL_DIGITS = 38,
    MT_DECIMAL_SCALE = 28,
    MT_DECIMAL_TEXT = 1 + MT_DECIMAL_DIGITS + 2 + 1, // sign, digits, "0.", NUL
};

typedef struct mt_decimal {
    __int128 units; // of 10^-scale; less than 10^38 either way
    unsigned scale;
} mt_decimal;

mt_decimal mt_decimal_of_int(int64_t n);
// Digits with a sign before them and a point and digits behind them, where there are any; with
// `exponent`, a JSON number's exponent, too. 0, -EINVAL when it is no number, -ERANGE.
int mt_decimal_parse(mt_str text, bool exponent, mt_decimal *ret);
// All digits after the point that it has: "1.50". Returns the length.
size_t mt_decimal_format(mt_decimal d, char out[MT_DECIMAL_TEXT]);
// What stands before the point. False when that is no int.
bool mt_decimal_to_int(mt_decimal d, int64_t *ret);

int mt_decimal_compare(mt_decimal a, mt_decimal b); // -1, 0, 1

// 0, -ERANGE, or, with nothing to divide by, -EDOM.
int mt_decimal_add(mt_decimal a, mt_decimal b, mt_decimal *ret);
int mt_decimal_subtract(mt_decimal a, mt_decimal b, mt_decimal *ret);
int mt_decimal_multiply(mt_decimal a, mt_decimal b, mt_decimal *ret);
int mt_decimal_divide(mt_decimal a, mt_decimal b, mt_decimal *ret);    // as few digits as are exact
int mt_decimal_remainder(mt_decimal a, mt_decimal b, mt_decimal *ret); // of the left side's sign

typedef enum mt_rounding {
    MT_ROUND_HALF_EVEN,
    MT_ROUND_DOWN, // towards minus infinity
    MT_ROUND_UP,   // towards plus infinity
} mt_rounding;

// With so many digits (0 to 28) after the point. 0 or -ERANGE.
int mt_decimal_round(mt_decimal d, unsigned digits, mt_rounding how, mt_decimal *ret);
