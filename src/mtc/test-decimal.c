// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "mtc/decimal.h"

#include <errno.h>

#define NINES "99999999999999999999999999999999999999" // as many as there may be

static mt_decimal of(const char *text)
{
    mt_decimal d = {0};

    CHECK_INT(mt_decimal_parse(mt_str_of(text), true, &d), 0);
    return d;
}

static const char *text_of(mt_decimal d)
{
    static char text[MT_DECIMAL_TEXT];
    size_t n = mt_decimal_format(d, text);

    CHECK_INT(n, strlen(text));
    return text;
}

static const char *result(int r, mt_decimal d)
{
    return r == 0 ? text_of(d) : r == -EDOM ? "by zero" : "out of range";
}

static void test_parse(void)
{
    static const struct {
        const char *text, *is;
    } good[] = {
        {"0", "0"},
        {"-0", "0"},
        {"007", "7"},
        {"+1.50", "1.50"},
        {"-0.05", "-0.05"},
        {NINES, NINES},
        {"0.00000000000000000000000000005", "0.0000000000000000000000000000"},  // half to even
        {"0.000000000000000000000000000051", "0.0000000000000000000000000001"}, // more than half
        {"0.00000000000000000000000000015", "0.0000000000000000000000000002"},
        {"1234567890123456789012345678901234567.89", "1234567890123456789012345678901234567.9"},
        {"1e3", "1000"},
        {"12.5E-2", "0.125"},
        {"0e99999999999999999999", "0"},
        {"1e-99999999999999999999", "0.0000000000000000000000000000"},
        {"1000000000000000000000000000000000000000000000000000000000000000000000001e-70",
         "100.0000000000000000000000000000"},
    };
    static const char *const bad[] = {"",    "-",     "+",   ".5",  "5.",   "1.2.3", " 1",
                                      "1 ",  "0x10",  "1e",  "1e+", "e5",   "--1",   "1,5",
                                      "NaN", "1e5.5", "1\n", "١",   "1e5e5"};
    static const char *const beyond[] = {NINES "9", NINES ".5", "1e38", "1e99999999999999999999"};
    mt_decimal d;

    for (size_t i = 0; i < MT_ARRAY_SIZE(good); i++)
        CHECK_STR(text_of(of(good[i].text)), good[i].is);
    for (size_t i = 0; i < MT_ARRAY_SIZE(bad); i++)
        CHECK_INT(mt_decimal_parse(mt_str_of(bad[i]), true, &d), -EINVAL);
    for (size_t i = 0; i < MT_ARRAY_SIZE(beyond); i++)
        CHECK_INT(mt_decimal_parse(mt_str_of(beyond[i]), true, &d), -ERANGE);
    CHECK_INT(mt_decimal_parse(mt_str_of("1e3"), false, &d), -EINVAL);
}

static void test_computing(void)
{
    static const struct {
        const char *a;
        char op;
        const char *b, *is;
    } cases[] = {
        {"1.5", '+', "1.50", "3.00"},
        {"0.1", '+', "0.2", "0.3"},
        {"1", '-', "1.00", "0.00"},
        {"-3", '-', "0.5", "-3.5"},
        {NINES, '+', "1", "out of range"},
        {NINES, '+', "0.4", NINES},
        {NINES, '+', "0.5", "out of range"},
        {"-" NINES, '-', NINES, "out of range"},
        {"1.5", '*', "1.50", "2.250"},
        {"-0.5", '*', "0", "0.0"},
        {"0.00000000000001", '*', "0.000000000000005", "0.0000000000000000000000000000"},
        {"0.00000000000003", '*', "0.000000000000005", "0.0000000000000000000000000002"},
        {NINES, '*', "10", "out of range"},
        {NINES, '*', "0.1", "9999999999999999999999999999999999999.9"},
        {"1", '/', "8", "0.125"},
        {"1.50", '/', "1", "1.5"},
        {"100", '/', "0.5", "200"},
        {"1", '/', "3", "0.3333333333333333333333333333"},
        {"2", '/', "-3", "-0.6666666666666666666666666667"},
        {"20000000000", '/', "3", "6666666666.6666666666666666666666666667"},
        {"200000000000", '/', "3", "66666666666.666666666666666666666666667"},
        {"1", '/', "0.00", "by zero"},
        {NINES, '/', "0.1", "out of range"},
        {"7.5", '%', "2", "1.5"},
        {"-7.5", '%', "2", "-1.5"},
        {"7", '%', "-0.30", "0.10"},
        {NINES, '%', "0.0000000000000000000000000007", "0.0000000000000000000000000004"},
        {"0.5", '%', NINES, "0.5"},
        {"1", '%', "0", "by zero"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        mt_decimal a = of(cases[i].a), b = of(cases[i].b), is = {0};
        int r = cases[i].op == '+'   ? mt_decimal_add(a, b, &is)
                : cases[i].op == '-' ? mt_decimal_subtract(a, b, &is)
                : cases[i].op == '*' ? mt_decimal_multiply(a, b, &is)
                : cases[i].op == '/' ? mt_decimal_divide(a, b, &is)
                                     : mt_decimal_remainder(a, b, &is);

        CHECK_STR(result(r, is), cases[i].is);
    }
}

static void test_comparing(void)
{
    CHECK_INT(mt_decimal_compare(of("1.5"), of("1.50")), 0);
    CHECK_INT(mt_decimal_compare(of("-0.0"), of("0")), 0);
    CHECK_INT(mt_decimal_compare(of("-2"), of("-1.9999")), -1);
    CHECK_INT(mt_decimal_compare(of(NINES), of("0.0000000000000000000000000001")), 1);
    CHECK_INT(mt_decimal_compare(of("-" NINES), of("1")), -1);
}

static void test_rounding(void)
{
    static const struct {
        const char *d;
        unsigned digits;
        const char *even, *down, *up;
    } cases[] = {
        {"2.5", 0, "2", "2", "3"},
        {"3.5", 0, "4", "3", "4"},
        {"-2.5", 0, "-2", "-3", "-2"},
        {"-0.4", 0, "0", "-1", "0"},
        {"1.005", 2, "1.00", "1.00", "1.01"},
        {"1.0051", 2, "1.01", "1.00", "1.01"},
        {"7", 3, "7.000", "7.000", "7.000"},
        {"9.99", 1, "10.0", "9.9", "10.0"},
        {NINES, 1, "out of range", "out of range", "out of range"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        const char *const is[] = {cases[i].even, cases[i].down, cases[i].up};

        for (int how = MT_ROUND_HALF_EVEN; how <= MT_ROUND_UP; how++) {
            mt_decimal d = {0};
            int r = mt_decimal_round(of(cases[i].d), cases[i].digits, (mt_rounding)how, &d);

            CHECK_STR(result(r, d), is[how]);
        }
    }
}

static void test_ints(void)
{
    int64_t n;

    CHECK_STR(text_of(mt_decimal_of_int(INT64_MIN)), "-9223372036854775808");
    CHECK(mt_decimal_to_int(of("-9223372036854775808.9"), &n) && n == INT64_MIN);
    CHECK(mt_decimal_to_int(of("9223372036854775807.9"), &n) && n == INT64_MAX);
    CHECK(!mt_decimal_to_int(of("9223372036854775808"), &n));
    CHECK(mt_decimal_to_int(of("-0.99"), &n) && n == 0);
}

// What holds of all numbers.
static bool laws_hold(mt_decimal a, mt_decimal b)
{
    mt_decimal sum, back, q, product, rest;
    char text[MT_DECIMAL_TEXT];

    (void)mt_decimal_format(a, text);
    if (mt_decimal_parse(mt_str_of(text), false, &back) < 0 || back.units != a.units ||
        back.scale != a.scale)
        return false;
    if (mt_decimal_add(a, b, &sum) < 0 || sum.scale < MT_MAX(a.scale, b.scale))
        return true; // rounded
    if (mt_decimal_subtract(sum, b, &back) < 0 || mt_decimal_compare(back, a) != 0)
        return false;
    // a is b times a whole number, and less than b: where none of it is rounded.
    if (b.units == 0 || mt_decimal_divide(a, b, &q) < 0 || q.scale == MT_DECIMAL_SCALE)
        return true;
    if (mt_decimal_round(q, 0, (a.units < 0) == (b.units < 0) ? MT_ROUND_DOWN : MT_ROUND_UP, &q) <
            0 ||
        mt_decimal_multiply(q, b, &product) < 0 || product.scale != b.scale)
        return true;
    return mt_decimal_remainder(a, b, &rest) == 0 && mt_decimal_add(product, rest, &back) == 0 &&
           (back.scale < rest.scale || mt_decimal_compare(back, a) == 0);
}

static int64_t next_number(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (int64_t)(*state >> 20);
}

static void test_laws(void)
{
    uint64_t state = 42;
    int broken = 0;

    for (unsigned i = 0; i < 20000; i++) {
        mt_decimal a = {(__int128)next_number(&state) * (next_number(&state) % 1000000000), i % 29};
        mt_decimal b = {next_number(&state) * (i & 1 ? 1 : -1), (unsigned)next_number(&state) % 15};

        broken += !laws_hold(a, b);
    }
    CHECK_INT(broken, 0);
}

int main(void)
{
    test_parse();
    test_computing();
    test_comparing();
    test_rounding();
    test_ints();
    test_laws();
    return TAP_DONE();
}
