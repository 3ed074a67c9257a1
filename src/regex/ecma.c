// SPDX-License-Identifier: Apache-2.0
// One pass over the pattern. What both languages mean alike is copied; what PCRE2 reads otherwise
// is spelled out; what only PCRE2 has is refused, so that a schema means the same everywhere.
#include "regex/ecma.h"

#include "base/utf8.h"

#include <stdio.h>

// ECMA-262's WhiteSpace and LineTerminator, and all else.
#define SPACES                                                                           \
    "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}" \
    "\\x{205f}\\x{3000}\\x{feff}"
#define NO_SPACES                                                                    \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}" \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"   \
    "\\x{3001}-\\x{d7ff}\\x{e000}-\\x{fefe}\\x{ff00}-\\x{10ffff}"
#define NO_LINE_END "[^\\n\\r\\x{2028}\\x{2029}]"

enum { PROPERTY_MAX = 64 };

typedef struct translator {
    const char *at, *end;
    mt_buf *out;
    mt_err **err;
    bool in_class;
} translator;

#define BAD(t, ...) mt_fail((t)->err, MT_E_BAD_FIELD, __VA_ARGS__)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static char peek(const translator *t, size_t ahead)
{
    return (size_t)(t->end - t->at) > ahead ? t->at[ahead] : '\0';
}
static bool take(translator *t, const char *text)
{
    size_t len = strlen(text);

    if ((size_t)(t->end - t->at) < len || memcmp(t->at, text, len) != 0)
        return false;
    t->at += len;
    return true;
}

// ---- escapes ----

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Exactly so many digits; -1 where they are not there, nothing taken then.
static int32_t take_hex(translator *t, size_t count)
{
    int32_t value = 0;

    for (size_t i = 0; i < count; i++) {
        int digit = hex_digit(peek(t, i));

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    t->at += count;
    return value;
}

static int32_t take_braced(translator *t)
{
    int32_t value = 0;
    size_t i = 1;

    for (; hex_digit(peek(t, i)) >= 0 && value <= 0x10ffff; i++)
        value = value * 16 + hex_digit(peek(t, i));
    if (i == 1 || peek(t, i) != '}' || value > 0x10ffff)
        return -1;
    t->at += i + 1;
    return value;
}

// After \u: {1F600}, 00e9, or the two halves of a pair.
static int32_t take_unicode(translator *t)
{
    int32_t high = peek(t, 0) == '{' ? take_braced(t) : take_hex(t, 4), low;
    const char *after = t->at;

    if (high < 0xd800 || high > 0xdbff || !take(t, "\\u"))
        return high;
    low = take_hex(t, 4);
    if (low >= 0xdc00 && low <= 0xdfff)
        return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    t->at = after;
    return high;
}

static int put_character(translator *t, int32_t c, const char *escape)
{
    if (c < 0)
        return BAD(t, "the pattern has a '%s' without the digits that belong to it", escape);
    if (c >= 0xd800 && c <= 0xdfff)
        return BAD(t, "the pattern has half of a surrogate pair, which no text holds");
    (void)mt_buf_addf(t->out, "\\x{%x}", (unsigned)c);
    return 0;
}

// Long names of general categories, which PCRE2 knows by their short ones alone.
static const char *short_category(const char *name)
{
    static const char *const names[][2] = {
        {"Cased_Letter", "L&"},
        {"Close_Punctuation", "Pe"},
        {"Connector_Punctuation", "Pc"},
        {"Control", "Cc"},
        {"Currency_Symbol", "Sc"},
        {"Dash_Punctuation", "Pd"},
        {"Decimal_Number", "Nd"},
        {"Enclosing_Mark", "Me"},
        {"Final_Punctuation", "Pf"},
        {"Format", "Cf"},
        {"Initial_Punctuation", "Pi"},
        {"LC", "L&"},
        {"Letter", "L"},
        {"Letter_Number", "Nl"},
        {"Line_Separator", "Zl"},
        {"Lowercase_Letter", "Ll"},
        {"Mark", "M"},
        {"Math_Symbol", "Sm"},
        {"Modifier_Letter", "Lm"},
        {"Modifier_Symbol", "Sk"},
        {"Nonspacing_Mark", "Mn"},
        {"Number", "N"},
        {"Open_Punctuation", "Ps"},
        {"Other", "C"},
        {"Other_Letter", "Lo"},
        {"Other_Number", "No"},
        {"Other_Punctuation", "Po"},
        {"Other_Symbol", "So"},
        {"Paragraph_Separator", "Zp"},
        {"Private_Use", "Co"},
        {"Punctuation", "P"},
        {"Separator", "Z"},
        {"Space_Separator", "Zs"},
        {"Spacing_Mark", "Mc"},
        {"Surrogate", "Cs"},
        {"Symbol", "S"},
        {"Titlecase_Letter", "Lt"},
        {"Unassigned", "Cn"},
        {"Uppercase_Letter", "Lu"},
        {"cntrl", "Cc"},
        {"digit", "Nd"},
        {"punct", "P"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(names); i++) {
        if (mt_streq(name, names[i][0]))
            return names[i][1];
    }
    return name;
}

// After \p or \P: {Letter}, {gc=Lu}, {Script=Greek}.
static int put_property(translator *t, char letter)
{
    static const char *const kinds[][2] = {
        {"General_Category=", ""}, {"gc=", ""},        {"Script_Extensions=", "scx:"},
        {"scx=", "scx:"},          {"Script=", "sc:"}, {"sc=", "sc:"}};
    const char *kind = "";
    char name[PROPERTY_MAX];
    size_t len = 0;

    if (!take(t, "{"))
        return BAD(t, "the pattern has a '\\%c' without a property: \\%c{Letter}", letter, letter);
    for (size_t i = 0; i < MT_ARRAY_SIZE(kinds); i++) {
        if (take(t, kinds[i][0])) {
            kind = kinds[i][1];
            break;
        }
    }
    while (len + 1 < sizeof(name) &&
           (is_letter(peek(t, len)) || is_digit(peek(t, len)) || peek(t, len) == '_')) {
        name[len] = peek(t, len);
        len++;
    }
    if (len == 0 || peek(t, len) != '}')
        return BAD(t, "the pattern has a '\\%c' with a property that is not known", letter);
    name[len] = '\0';
    t->at += len + 1;
    (void)mt_buf_addf(t->out, "\\%c{%s%s}", letter, kind, *kind ? name : short_category(name));
    return 0;
}

static int put_control(translator *t)
{
    char c = peek(t, 0);

    if (!is_letter(c))
        return BAD(t, "the pattern has a '\\c' without a letter");
    t->at++;
    return put_character(t, c % 32, "\\c");
}

static int put_reference(translator *t, char first)
{
    if (first == '0' && !is_digit(peek(t, 0)))
        return put_character(t, 0, "\\0");
    if (first == '0' || t->in_class)
        return BAD(t, "the pattern has '\\%c': write a character by its number as \\x00 or \\u0000",
                   first);
    (void)mt_buf_addf(t->out, "\\g{%c", first);
    for (; is_digit(peek(t, 0)); t->at++)
        (void)mt_buf_addc(t->out, peek(t, 0));
    (void)mt_buf_addc(t->out, '}');
    return 0;
}

static void put_spaces(translator *t, bool none)
{
    (void)mt_buf_addf(t->out, t->in_class ? "%s" : "[%s]", none ? NO_SPACES : SPACES);
}

// A letter after the backslash.
static int put_letter_escape(translator *t, char c)
{
    switch (c) {
    case 'd':
    case 'D':
    case 'w':
    case 'W':
    case 'b':
    case 'B':
    case 't':
    case 'n':
    case 'f':
    case 'r':
        (void)mt_buf_addf(t->out, "\\%c", c);
        return 0;
    case 's':
    case 'S':
        put_spaces(t, c == 'S');
        return 0;
    case 'v':
        return put_character(t, '\v', "\\v");
    case 'c':
        return put_control(t);
    case 'x':
        return put_character(t, take_hex(t, 2), "\\x");
    case 'u':
        return put_character(t, take_unicode(t), "\\u");
    case 'p':
    case 'P':
        return put_property(t, c);
    case 'k':
        if (peek(t, 0) == '<' && !t->in_class) {
            (void)mt_buf_adds(t->out, "\\k");
            return 0;
        }
        break;
    default:
        break;
    }
    return BAD(t, "the pattern has '\\%c', which ECMA-262 does not know", c);
}

static int put_escape(translator *t)
{
    char c = peek(t, 1);

    if (t->end - t->at < 2)
        return BAD(t, "the pattern ends with a backslash");
    t->at += 2;
    if (is_letter(c))
        return put_letter_escape(t, c);
    if (is_digit(c))
        return put_reference(t, c);
    if ((unsigned char)c < 0x80)
        (void)mt_buf_addc(t->out, '\\');
    (void)mt_buf_addc(t->out, c);
    return 0;
}

// ---- groups and quantifiers ----

static int put_group(translator *t)
{
    static const char *const kinds[] = {"?:", "?=", "?!", "?<=", "?<!"};

    t->at++;
    (void)mt_buf_addc(t->out, '(');
    if (peek(t, 0) == '*')
        return BAD(t, "the pattern has '(*': there is nothing to repeat");
    if (peek(t, 0) != '?')
        return 0;
    for (size_t i = 0; i < MT_ARRAY_SIZE(kinds); i++) {
        if (take(t, kinds[i])) {
            (void)mt_buf_adds(t->out, kinds[i]);
            return 0;
        }
    }
    if (peek(t, 1) == '<' && (is_letter(peek(t, 2)) || peek(t, 2) == '_')) {
        (void)mt_buf_adds(t->out, "?<");
        t->at += 2;
        return 0;
    }
    return BAD(t, "the pattern has a group that ECMA-262 does not know: (…), (?:…), (?<name>…), "
                  "(?=…), (?!…), (?<=…) and (?<!…) are all");
}

// Bytes of {3}, {3,} or {3,5}; 0 where it is none.
static size_t braces(const translator *t)
{
    size_t i = 1;

    while (is_digit(peek(t, i)))
        i++;
    if (i == 1)
        return 0;
    if (peek(t, i) == ',') {
        for (i++; is_digit(peek(t, i));)
            i++;
    }
    return peek(t, i) == '}' ? i + 1 : 0;
}

static int put_quantifier(translator *t, size_t len)
{
    (void)mt_buf_add(t->out, t->at, len);
    t->at += len;
    if (take(t, "?"))
        (void)mt_buf_addc(t->out, '?');
    if (peek(t, 0) == '+' || peek(t, 0) == '*' || peek(t, 0) == '?')
        return BAD(t, "the pattern has two quantifiers after one another");
    return 0;
}

static int put_outside(translator *t)
{
    char c = *t->at;

    switch (c) {
    case '(':
        return put_group(t);
    case '[':
        t->in_class = true;
        (void)mt_buf_adds(t->out, peek(t, 1) == '^' ? "[^" : "[");
        t->at += peek(t, 1) == '^' ? 2 : 1;
        return 0;
    case '.':
        (void)mt_buf_adds(t->out, NO_LINE_END);
        break;
    case '*':
    case '+':
    case '?':
        return put_quantifier(t, 1);
    case '{':
        if (braces(t))
            return put_quantifier(t, braces(t));
        (void)mt_buf_adds(t->out, "\\{");
        break;
    default:
        (void)mt_buf_addc(t->out, c);
        break;
    }
    t->at++;
    return 0;
}

static void put_inside(translator *t)
{
    char c = *t->at++;

    if (c == ']')
        t->in_class = false;
    if (c == '[') // else "[:alpha:]" and the like would mean something
        (void)mt_buf_addc(t->out, '\\');
    (void)mt_buf_addc(t->out, c);
}

int regex_from_ecma(mt_str pattern, mt_buf *out, mt_err **err)
{
    translator t = {.at = pattern.data, .end = pattern.data + pattern.len, .out = out, .err = err};

    while (t.at < t.end) {
        if (*t.at == '\\') {
            if (put_escape(&t) < 0)
                return -1;
        } else if (t.in_class) {
            put_inside(&t);
        } else if (put_outside(&t) < 0) {
            return -1;
        }
    }
    return out->failed ? mt_fail_oom(err) : 0;
}
