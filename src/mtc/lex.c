// SPDX-License-Identifier: Apache-2.0
#include "mtc/lex.h"

#include "base/utf8.h"

// ---- moving ----

void mt_mtc_lexer_stop(mt_mtc_lexer *l, mt_mtc_place place, const char *message)
{
    mt_mtc_report(l->file, MT_MTR_ERROR, place, NULL, "%s", message);
    l->file->cut = true;
    l->stopped = true;
    l->p = l->stop;
}

static mt_mtc_place here(const mt_mtc_lexer *l)
{
    return (mt_mtc_place){l->line, l->column};
}

// Everything moves through here, so that lines and columns (in characters) are always right.
static void take(mt_mtc_lexer *l, size_t n)
{
    for (; n > 0; n--, l->p++) {
        if (*l->p == '\n') {
            l->line++;
            l->column = 1;
        } else if (((unsigned char)*l->p & 0xc0) != 0x80) {
            l->column++;
        }
    }
}

static size_t left(const mt_mtc_lexer *l)
{
    return (size_t)(l->stop - l->p);
}

static bool at(const mt_mtc_lexer *l, const char *text)
{
    size_t len = strlen(text);

    return left(l) >= len && memcmp(l->p, text, len) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
    return is_letter(c) || is_digit(c);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void mt_mtc_lexer_init(mt_mtc_lexer *l, mt_mtc_file *file)
{
    mt_str text = file->text;
    const char *nul = text.len ? memchr(text.data, '\0', text.len) : NULL;
    size_t bad = text.len ? mt_utf8_bad_at(text.data, text.len) : 0;

    *l = (mt_mtc_lexer){.file = file, .line = 1, .column = 1};
    l->p = text.data ? text.data : "";
    l->stop = l->p + text.len;
    if (text.len > MT_MTC_MAX_BYTES) {
        mt_mtc_lexer_stop(l, (mt_mtc_place){0, 0},
                          "the file is over 1024 KiB, the limit of a program's file");
        return;
    }
    if (nul && (size_t)(nul - text.data) < bad)
        bad = (size_t)(nul - text.data);
    if (bad == text.len)
        return;
    take(l, bad);
    mt_mtc_lexer_stop(l, here(l),
                      *l->p ? "not UTF-8: save the file as UTF-8" : "NUL byte in a program");
}

// ---- blanks and comments ----

static void take_comment(mt_mtc_lexer *l)
{
    bool block = at(l, "/*");
    const char *end = block ? (left(l) > 3 ? memmem(l->p + 2, left(l) - 2, "*/", 2) : NULL)
                            : memchr(l->p, '\n', left(l));

    if (block && !end)
        mt_mtc_lexer_stop(l, here(l), "comment is not closed: no '*/' follows");
    else
        take(l, end ? (size_t)(end - l->p) + (block ? 2 : 0) : left(l));
}

static void take_blanks(mt_mtc_lexer *l)
{
    for (;;) {
        while (left(l) > 0 && is_blank(*l->p))
            take(l, 1);
        if (left(l) > 0 && *l->p == '#')
            mt_mtc_report(l->file, MT_MTR_ERROR, here(l), "comments begin with //",
                          "there is no '#' in this language");
        else if (!at(l, "//") && !at(l, "/*"))
            return;
        take_comment(l);
    }
}

// ---- strings ----

static int hex4(const mt_mtc_lexer *l, size_t offset, uint32_t *ret)
{
    uint32_t value = 0;

    if (left(l) < offset + 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        char c = l->p[offset + i];

        if (is_digit(c))
            value = value * 16 + (uint32_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            value = value * 16 + (uint32_t)((c | 0x20) - 'a' + 10);
        else
            return -1;
    }
    *ret = value;
    return 0;
}

static void string_error(mt_mtc_lexer *l, bool *ok, const char *hint, const char *message)
{
    mt_mtc_report(l->file, MT_MTR_ERROR, here(l), hint, "%s", message);
    *ok = false;
}

// At "\u". Surrogates come in pairs, as in JSON.
static void take_unicode(mt_mtc_lexer *l, mt_buf *out, bool *ok)
{
    uint32_t c, low;
    char text[4];
    size_t used = 6;

    if (hex4(l, 2, &c) < 0) {
        string_error(l, ok, NULL, "\\u takes four hexadecimal digits");
        take(l, 2);
        return;
    }
    if (c >= 0xd800 && c < 0xdc00 && left(l) >= 12 && l->p[6] == '\\' && l->p[7] == 'u' &&
        hex4(l, 8, &low) == 0 && low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        used = 12;
    }
    if (c >= 0xd800 && c < 0xe000)
        string_error(l, ok, NULL, "half of a surrogate pair is no character");
    else if (c == 0)
        string_error(l, ok, NULL, "\\u0000 (NUL) cannot stand in a string");
    else
        (void)mt_buf_add(out, text, mt_utf8_encode(c, text));
    take(l, used);
}

static void take_escape(mt_mtc_lexer *l, mt_buf *out, bool *ok)
{
    static const char letters[] = "nrt\"\\", values[] = "\n\r\t\"\\";
    const char *found;

    if (left(l) < 2) {
        take(l, 1);
        return;
    }
    if (l->p[1] == 'u') {
        take_unicode(l, out, ok);
        return;
    }
    found = l->p[1] ? strchr(letters, l->p[1]) : NULL;
    if (found) {
        (void)mt_buf_addc(out, values[found - letters]);
        take(l, 2);
        return;
    }
    string_error(l, ok, "write \\\\ for a backslash; escapes are \\n \\r \\t \\\" \\\\ \\uXXXX",
                 "unknown escape in a string");
    take(l, 1);
}

static mt_str keep(mt_mtc_lexer *l, mt_buf *b)
{
    mt_mtc_program *p = l->file->program;
    char *copy = b->failed ? NULL : mt_arena_strndup(p->arena, mt_buf_str(b), b->len);

    if (!copy) {
        p->oom = true;
        l->stopped = true;
        return (mt_str){"", 0};
    }
    return (mt_str){copy, b->len};
}

static void take_string(mt_mtc_lexer *l, mt_mtc_token *t)
{
    _cleanup_buf_ mt_buf value = MT_BUF_INIT(MT_MTC_MAX_BYTES + 16);
    bool ok = true;

    take(l, 1);
    for (;;) {
        char c = left(l) > 0 ? *l->p : '\n';

        if (c == '\n' || (c == '\r' && at(l, "\r\n"))) {
            mt_mtc_report(l->file, MT_MTR_ERROR, t->place,
                          "close it with \"; a line end in a string is \\n, and + joins strings",
                          "string is not closed on its line");
            t->kind = MT_TOK_BAD;
            t->unclosed = true;
            return;
        }
        if (c == '"')
            break;
        if (c == '\\') {
            take_escape(l, &value, &ok);
            continue;
        }
        if (((unsigned char)c < 0x20 && c != '\t') || c == 0x7f)
            string_error(l, &ok, "write it as \\uXXXX", "control character in a string");
        (void)mt_buf_addc(&value, c);
        take(l, 1);
    }
    take(l, 1);
    t->kind = ok ? MT_TOK_STRING : MT_TOK_BAD;
    t->text = keep(l, &value);
}

// 'text' and “text” are taken whole, so that what is in them does not make more errors.
static void take_wrong_quotes(mt_mtc_lexer *l, mt_mtc_token *t, const char *closing)
{
    size_t skip = *l->p == '\'' || *l->p == '`' ? 1 : 3, close_len = strlen(closing);
    const char *line_end = memchr(l->p, '\n', left(l));
    size_t len = (line_end ? (size_t)(line_end - l->p) : left(l)) - skip;
    const char *end = memmem(l->p + skip, len, closing, close_len);

    mt_mtc_report(l->file, MT_MTR_ERROR, t->place, NULL,
                  "strings take straight double quotes: \"…\"");
    take(l, end ? (size_t)(end - l->p) + close_len : skip);
    t->kind = MT_TOK_BAD;
}

// ---- numbers ----

static size_t digits_at(const mt_mtc_lexer *l, size_t offset)
{
    size_t n = 0;

    while (offset + n < left(l) && is_digit(l->p[offset + n]))
        n++;
    return n;
}

static void number_error(mt_mtc_lexer *l, mt_mtc_token *t, const char *hint, const char *why)
{
    mt_mtc_report(l->file, MT_MTR_ERROR, t->place, hint, "%s %s",
                  mt_mtc_quote(l->file->program, t->source), why);
    t->kind = MT_TOK_BAD;
}

static void check_number(mt_mtc_lexer *l, mt_mtc_token *t, size_t whole, size_t part)
{
    const char *s = t->source.data;

    if (t->source.len > whole + (part ? part + 1 : 0))
        number_error(l, t, "numbers are written 42 or 1.50", "is no number");
    else if (whole > 1 && s[0] == '0')
        number_error(l, t, NULL, "begins with a zero");
    else if (part && (whole + part > MT_MTC_MAX_DIGITS || part > MT_MTC_MAX_SCALE))
        number_error(l, t, NULL,
                     "has too many digits: a decimal has at most 38, 28 of them after the point");
    else if (!part && (whole > 19 || (whole == 19 && memcmp(s, "9223372036854775808", 19) > 0)))
        number_error(l, t, "a decimal holds larger ones: write .0 after it",
                     "is too large: an int goes up to 9223372036854775807");
}

static void take_number(mt_mtc_lexer *l, mt_mtc_token *t)
{
    size_t whole = digits_at(l, 0), part = 0, all;

    if (whole < left(l) && l->p[whole] == '.')
        part = digits_at(l, whole + 1);
    all = whole + (part ? part + 1 : 0);
    t->kind = part ? MT_TOK_DECIMAL : MT_TOK_INT;
    while (all < left(l) && (is_name(l->p[all]) || (l->p[all] == '.' && digits_at(l, all + 1))))
        all++;
    t->text = t->source = (mt_str){l->p, all};
    check_number(l, t, whole, part);
    take(l, all);
}

// ---- names ----

static const char *const keywords[] = {
    [MT_KEY_IF] = "if",       [MT_KEY_ELSE] = "else",         [MT_KEY_WHILE] = "while",
    [MT_KEY_FOR] = "for",     [MT_KEY_FOREACH] = "foreach",   [MT_KEY_IN] = "in",
    [MT_KEY_BREAK] = "break", [MT_KEY_CONTINUE] = "continue", [MT_KEY_RETURN] = "return",
    [MT_KEY_THROW] = "throw", [MT_KEY_TRY] = "try",           [MT_KEY_CATCH] = "catch",
    [MT_KEY_TRUE] = "true",   [MT_KEY_FALSE] = "false",       [MT_KEY_NULL] = "null",
};

static void take_name(mt_mtc_lexer *l, mt_mtc_token *t)
{
    size_t n = 1;

    while (n < left(l) && is_name(l->p[n]))
        n++;
    t->kind = MT_TOK_NAME;
    t->text = (mt_str){l->p, n};
    take(l, n);
    if (n > MT_MTC_MAX_NAME) {
        mt_mtc_report(l->file, MT_MTR_ERROR, t->place, NULL, "a name is at most %d characters long",
                      MT_MTC_MAX_NAME);
        t->kind = MT_TOK_BAD;
        return;
    }
    if (mt_mtc_type_by_word(t->text, &t->type))
        t->kind = MT_TOK_TYPE;
    for (size_t i = 0; i < MT_ARRAY_SIZE(keywords); i++) {
        if (mt_str_eq(t->text, keywords[i])) {
            t->kind = MT_TOK_KEYWORD;
            t->keyword = (mt_mtc_keyword)i;
        }
    }
}

// ---- marks ----

// What other languages have and this one has not, the longest first. {mark, what to write}
static const char *const foreign[][2] = {
    {"===", "'==' compares"},
    {"!==", "'!=' compares"},
    {"**", NULL},
    {"<<", NULL},
    {">>", NULL},
    {"=>", NULL},
    {"->", NULL},
    {"::", NULL},
    {"??", NULL},
    {"&", "'&&' is and"},
    {"|", "'||' is or"},
    {"^", NULL},
    {"~", NULL},
    {"@", NULL},
    {"$", NULL},
    {"\\", NULL},
};

static bool take_mark(mt_mtc_lexer *l, mt_mtc_token *t)
{
    static const char *const marks[] = {"&&", "||", "==", "!=", "<=", ">=", "++", "--", "+=",
                                        "-=", "*=", "/=", "%=", "+",  "-",  "*",  "/",  "%",
                                        "<",  ">",  "=",  "!",  "?",  ":",  "(",  ")",  "{",
                                        "}",  "[",  "]",  ",",  ";",  "."};

    for (size_t i = 0; i < MT_ARRAY_SIZE(marks); i++) {
        if (!at(l, marks[i]))
            continue;
        t->kind = MT_TOK_MARK;
        t->mark = MT_MARK2((unsigned char)marks[i][0], (unsigned char)marks[i][1]);
        t->text = (mt_str){l->p, strlen(marks[i])};
        take(l, t->text.len);
        return true;
    }
    return false;
}

static bool take_foreign(mt_mtc_lexer *l, mt_mtc_token *t)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(foreign); i++) {
        if (!at(l, foreign[i][0]) || at(l, "&&") || at(l, "||"))
            continue;
        mt_mtc_report(l->file, MT_MTR_ERROR, t->place, foreign[i][1],
                      "there is no '%s' in this language", foreign[i][0]);
        t->kind = MT_TOK_BAD;
        take(l, strlen(foreign[i][0]));
        return true;
    }
    return false;
}

static void take_strange(mt_mtc_lexer *l, mt_mtc_token *t)
{
    uint32_t c = 0;
    size_t n = mt_utf8_decode(l->p, left(l), &c, NULL);

    if (c > 0x20 && c != 0x7f)
        mt_mtc_report(l->file, MT_MTR_ERROR, t->place, NULL, "unexpected character '%.*s'", (int)n,
                      l->p);
    else
        mt_mtc_report(l->file, MT_MTR_ERROR, t->place, NULL, "unexpected control character U+%04X",
                      c);
    // A run of such characters is one error, not hundreds.
    while (left(l) > 0 && !is_name(*l->p) && !is_blank(*l->p) &&
           ((unsigned char)*l->p >= 0x7f || (unsigned char)*l->p < 0x20))
        take(l, 1);
    t->kind = MT_TOK_BAD;
}

static void take_token(mt_mtc_lexer *l, mt_mtc_token *t)
{
    if (is_letter(*l->p))
        take_name(l, t);
    else if (is_digit(*l->p))
        take_number(l, t);
    else if (*l->p == '"')
        take_string(l, t);
    else if (*l->p == '\'')
        take_wrong_quotes(l, t, "'");
    else if (*l->p == '`')
        take_wrong_quotes(l, t, "`");
    else if (at(l, "\xe2\x80\x9c") || at(l, "\xe2\x80\x9d"))
        take_wrong_quotes(l, t, "\xe2\x80\x9d");
    else if (!take_foreign(l, t) && !take_mark(l, t))
        take_strange(l, t);
}

void mt_mtc_lexer_next(mt_mtc_lexer *l, mt_mtc_token *ret)
{
    const char *begin;

    if (l->file->errors > MT_MTR_MAX_ERRORS || l->file->program->oom)
        l->stopped = true;
    if (!l->stopped)
        take_blanks(l);
    *ret = (mt_mtc_token){.kind = MT_TOK_END, .place = here(l), .end = here(l)};
    if (l->stopped || left(l) == 0)
        return;
    begin = l->p;
    take_token(l, ret);
    if (l->stopped)
        ret->kind = MT_TOK_END;
    ret->source = (mt_str){begin, (size_t)(l->p - begin)};
    ret->end = here(l);
}
