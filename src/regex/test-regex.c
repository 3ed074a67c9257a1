// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "regex/regex.h"

// "1", "0", or the error's sentence.
static const char *found(const char *pattern, const char *text, char out[256])
{
    _cleanup_(mt_regex_free_p) mt_regex *r = NULL;
    _cleanup_err_ mt_err *err = NULL;
    mt_regex_search s;
    int n;

    if (mt_regex_new(mt_str_of(pattern), MT_REGEX_ECMA, &r, &err) < 0 ||
        mt_regex_search_init(&s, r, mt_str_of(text), 1000000, &err) < 0) {
        (void)snprintf(out, 256, "%s", mt_err_sentence(err));
        return out;
    }
    n = mt_regex_search_from(&s, 0, &err);
    mt_regex_search_done(&s);
    (void)snprintf(out, 256, "%s", n < 0 ? mt_err_sentence(err) : n > 0 ? "1" : "0");
    return out;
}

#define NOT_KNOWN "', which ECMA-262 does not know"
#define GROUPS                                                                                              \
    "the pattern has a group that ECMA-262 does not know: (…), (?:…), (?<name>…), (?=…), (?!…), " \
    "(?<=…) and (?<!…) are all"

static void test_ecma(void)
{
    static const struct {
        const char *pattern, *text, *expected;
    } cases[] = {
        {"", "", "1"},
        {"^a$", "a\n", "0"},
        {"^\\d$", "\u0663", "0"},
        {"^\\D$", "\u0663", "1"},
        {"^\\w$", "\u00e9", "0"},
        {"^\\W$", "\u00e9", "1"},
        {"^\\s$", "\u00a0", "1"},
        {"^\\s$", "\ufeff", "1"},
        {"^\\S$", "\ufeff", "0"},
        {"^[\\s]$", "\u2029", "1"},
        {"^[\\S]$", "\u2029", "0"},
        {"^[^\\S]$", "\u2029", "1"},
        {"^[\\S]$", "x", "1"},
        {"^.$", "\u2028", "0"},
        {"^.$", "\v", "1"},
        {"^[^]$", "\n", "1"},
        {"[]", "a", "0"},
        {"^\\v$", "\v", "1"},
        {"^\\cJ$", "\n", "1"},
        {"^\\u00e9\\xe9\\u{1F600}\\ud83d\\ude00$", "\u00e9\u00e9\U0001F600\U0001F600", "1"},
        {"^\\p{Letter}\\p{gc=Lu}\\P{L}\\p{Script=Greek}\\p{sc=Latin}$", "aA1\u03b1b", "1"},
        {"^\\p{Alphabetic}$", "a", "1"},
        {"^(?:a|\\1b)(c)?$", "b", "1"},
        {"^(?<year>\\d{4})-\\k<year>$", "2026-2026", "1"},
        {"^[[:alpha:]]+$", "a", "0"},
        {"^[[:alpha:]]$", "a]", "1"},
        {"^a{,3}$", "a{,3}", "1"},
        {"^\\-\\/$", "-/", "1"},
        {"^\U0001F432*$", "\U0001F432\U0001F432", "1"},
        {"\\a", "", "the pattern has '\\a" NOT_KNOWN},
        {"\\Z", "", "the pattern has '\\Z" NOT_KNOWN},
        {"\\Qa", "", "the pattern has '\\Q" NOT_KNOWN},
        {"\\K", "", "the pattern has '\\K" NOT_KNOWN},
        {"a++", "", "the pattern has two quantifiers after one another"},
        {"a{2}+", "", "the pattern has two quantifiers after one another"},
        {"(*UCP)a", "", "the pattern has '(*': there is nothing to repeat"},
        {"(?R)", "", GROUPS},
        {"(?>a)", "", GROUPS},
        {"(?i)a", "", GROUPS},
        {"(?#)", "", GROUPS},
        {"\\", "", "the pattern ends with a backslash"},
        {"\\ud83d", "", "the pattern has half of a surrogate pair, which no text holds"},
        {"\\u12", "", "the pattern has a '\\u' without the digits that belong to it"},
        {"\\u{110000}", "", "the pattern has a '\\u' without the digits that belong to it"},
        {"\\p", "", "the pattern has a '\\p' without a property: \\p{Letter}"},
        {"\\p{", "", "the pattern has a '\\p' with a property that is not known"},
        {"[\\1]", "", "the pattern has '\\1': write a character by its number as \\x00 or \\u0000"},
        {"(", "", "the pattern is wrong: missing closing parenthesis"},
        {"[a", "", "the pattern is wrong: missing terminating ] for character class"},
        {"^(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
         "the pattern takes too long on this text"},
    };
    char out[256];

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++)
        CHECK_STR(found(cases[i].pattern, cases[i].text, out), cases[i].expected);
}

// PCRE2's own language, as programs have it.
static void test_pcre(void)
{
    _cleanup_(mt_regex_free_p) mt_regex *r = NULL;
    size_t begin = 0, end = 0;
    mt_regex_search s;

    CHECK_INT(mt_regex_new(MT_STR("(?<d>\\d)(x)?"), MT_REGEX_ALL, &r, NULL), 0);
    CHECK_INT(mt_regex_groups(r), 2);
    CHECK_INT(mt_regex_named(r, MT_STR("d")), 1);
    CHECK_INT(mt_regex_named(r, MT_STR("e")), 0);
    CHECK(mt_str_eq(mt_regex_name(r, 1), "d"));
    CHECK_INT(mt_regex_search_init(&s, r, MT_STR("ab1\u0663"), 10000, NULL), 0);
    CHECK_INT(mt_regex_search_from(&s, 0, NULL), 1);
    CHECK(mt_regex_search_group(&s, 1, &begin, &end) && begin == 2 && end == 3);
    CHECK(!mt_regex_search_group(&s, 2, &begin, &end));
    CHECK_INT(mt_regex_search_from(&s, 3, NULL), 1);
    CHECK_INT(mt_regex_search_from(&s, 5, NULL), 0);
    CHECK(s.left < 10000);
    mt_regex_search_done(&s);
}

int main(void)
{
    test_ecma();
    test_pcre();
    return TAP_DONE();
}
