// SPDX-License-Identifier: Apache-2.0
// What was spent, added up exactly: decimal texts, digit by digit.
#include "store/store-internal.h"

enum {
    WHOLE = MT_STORE_COST - 1, // digits before the point, and as many behind it: a text has no more
    DIGITS = 2 * WHOLE,
};

static size_t digit_count(const char *text)
{
    return strspn(text, "0123456789");
}

// "12", "0.5": digits, and where there is a point, digits behind it.
static bool read_cost(const char *text, unsigned char digits[DIGITS])
{
    size_t whole = digit_count(text), part = 0, len = whole;

    if (text[whole] == '.') {
        part = digit_count(text + whole + 1);
        len += 1 + part;
    }
    if (whole == 0 || (len > whole && part == 0) || text[len] || len > WHOLE)
        return false;
    memset(digits, 0, DIGITS);
    for (size_t i = 0; i < whole; i++)
        digits[WHOLE - whole + i] = (unsigned char)(text[i] - '0');
    for (size_t i = 0; i < part; i++)
        digits[WHOLE + i] = (unsigned char)(text[whole + 1 + i] - '0');
    return true;
}

// Without zeros that say nothing. Digits behind the point that do not fit go.
static void write_cost(const unsigned char digits[DIGITS], char out[MT_STORE_COST])
{
    size_t first = 0, end, n = 0;

    while (first < WHOLE - 1 && digits[first] == 0)
        first++;
    end = MT_MIN(first + WHOLE - 1, (size_t)DIGITS); // the point takes a place
    while (end > WHOLE && digits[end - 1] == 0)
        end--;
    for (size_t i = first; i < MT_MAX(end, (size_t)WHOLE); i++) {
        if (i == WHOLE)
            out[n++] = '.';
        out[n++] = (char)('0' + digits[i]);
    }
    out[n] = '\0';
}

bool cost_is(const char *text)
{
    unsigned char digits[DIGITS];

    return read_cost(text, digits);
}

bool cost_add(char sum[MT_STORE_COST], const char *more)
{
    unsigned char a[DIGITS], b[DIGITS];
    int carry = 0;

    if (!read_cost(*sum ? sum : "0", a) || !read_cost(more, b))
        return false;
    for (size_t i = DIGITS; i-- > 0;) {
        int digit = a[i] + b[i] + carry;

        carry = digit >= 10;
        a[i] = (unsigned char)(digit - 10 * carry);
    }
    if (carry)
        memset(a, 9, WHOLE); // the most that a text can say
    write_cost(a, sum);
    return true;
}
