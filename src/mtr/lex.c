// SPDX-License-Identifier: Apache-2.0
#include "mtr/mtr-internal.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

void mt_lexer_stop(mt_lexer *l, unsigned line, unsigned column, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mt_mtr_report(l->file, MT_MTR_ERROR, line, column, NULL, NULL, "%s", text);
    l->stopped = true;
    l->p = l->end;
}

// Everything moves through here, so that lines and columns (in characters) are always right.
static void take(mt_lexer *l, size_t n)
{
    for (; n > 0; n--, l->p++) {
        if (*l->p == '\n') {
            l->line++;
            l->column = 1;
            l->line_start = true;
        } else if (((unsigned char)*l->p & 0xc0) != 0x80) {
            l->column++;
        }
    }
}

static size_t left(const mt_lexer *l)
{
    return (size_t)(l->end - l->p);
}

static bool at(const mt_lexer *l, const char *text)
{
    size_t len = strlen(text);

    return left(l) >= len && memcmp(l->p, text, len) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c)
{
    return is_word_start(c) || is_digit(c) || c == '-';
}

void mt_lexer_init(mt_lexer *l, mt_mtr_file *file)
{
    size_t bad;
    const char *nul;

    *l = (mt_lexer){
        .file = file,
        .p = file->text,
        .end = file->text + file->len,
        .line = 1,
        .column = 1,
        .line_start = true,
    };
    if (file->len > MT_MTR_MAX_BYTES) {
        mt_lexer_stop(l, 0, 0, "the file is over %d KiB, the limit of a resource file",
                      MT_MTR_MAX_BYTES / 1024);
        return;
    }
    if (file->len == 0)
        return;
    bad = mt_utf8_bad_at(file->text, file->len);
    nul = memchr(file->text, '\0', file->len);
    if (bad == file->len && !nul)
        return;
    if (nul && (size_t)(nul - file->text) < bad)
        bad = (size_t)(nul - file->text);
    take(l, bad);
    mt_lexer_stop(l, l->line, l->column,
                  *l->p ? "byte 0x%02x is not UTF-8: save the file as UTF-8"
                        : "NUL byte (0x%02x) in a text file",
                  (unsigned char)*l->p);
}

// ---- blanks and comments ----

static void take_line(mt_lexer *l)
{
    const char *stop = memchr(l->p, '\n', left(l));

    take(l, stop ? (size_t)(stop - l->p) : left(l));
}

static void take_block_comment(mt_lexer *l)
{
    unsigned line = l->line, column = l->column;
    bool was_start = l->line_start;
    const char *stop = left(l) > 3 ? memmem(l->p + 2, left(l) - 2, "*/", 2) : NULL;

    if (!stop) {
        mt_lexer_stop(l, line, column, "comment is not closed: no '*/' follows");
        return;
    }
    take(l, (size_t)(stop - l->p) + 2);
    // "/* why */ key = 1": the key still begins its line.
    if (l->line == line)
        l->line_start = was_start;
}

static bool at_comment(const mt_lexer *l)
{
    return left(l) > 0 && (*l->p == '#' || at(l, "//") || at(l, "/*"));
}

static void take_comment(mt_lexer *l)
{
    if (at(l, "/*"))
        take_block_comment(l);
    else
        take_line(l);
}

static void take_blanks(mt_lexer *l)
{
    for (;;) {
        while (left(l) > 0 && (*l->p == ' ' || *l->p == '\t' || *l->p == '\n' || *l->p == '\r'))
            take(l, 1);
        if (l->comments || !at_comment(l))
            return;
        take_comment(l);
    }
}

// ---- strings ----

static int hex4(const mt_lexer *l, size_t offset, uint32_t *ret)
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

static void string_error(mt_lexer *l, bool *ok, const char *hint, const char *message)
{
    mt_mtr_report(l->file, MT_MTR_ERROR, l->line, l->column, NULL, hint, "%s", message);
    *ok = false;
}

// At "\u". Surrogates come in pairs, as in JSON.
static void take_unicode(mt_lexer *l, mt_buf *out, bool *ok)
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
        string_error(l, ok, NULL, "\\u0000 (NUL) cannot stand in a text");
    else
        (void)mt_buf_add(out, text, mt_utf8_encode(c, text));
    take(l, used);
}

static void take_escape(mt_lexer *l, mt_buf *out, bool *ok)
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

static mt_str keep(mt_lexer *l, mt_buf *b)
{
    char *copy = b->failed ? NULL : mt_arena_strndup(l->file->arena, mt_buf_str(b), b->len);

    if (!copy) {
        mt_lexer_stop(l, l->line, l->column, "out of memory");
        return (mt_str){"", 0};
    }
    return (mt_str){copy, b->len};
}

static void take_string(mt_lexer *l, mt_token *t)
{
    _cleanup_buf_ mt_buf value = MT_BUF_INIT(MT_MTR_MAX_BYTES + 16);
    bool ok = true;

    take(l, 1);
    for (;;) {
        char c = left(l) > 0 ? *l->p : '\n';

        if (c == '\n' || (c == '\r' && at(l, "\r\n"))) {
            mt_mtr_report(l->file, MT_MTR_ERROR, t->line, t->column, NULL,
                          "for a text of several lines write <<EOT, the lines, and EOT",
                          "string is not closed on its line");
            t->kind = MT_TOKEN_BAD;
            return;
        }
        if (c == '"')
            break;
        if (c == '\\') {
            take_escape(l, &value, &ok);
        } else {
            if ((unsigned char)c < 0x20 && c != '\t')
                string_error(l, &ok, "write it as \\uXXXX", "control character in a string");
            (void)mt_buf_addc(&value, c);
            take(l, 1);
        }
    }
    take(l, 1);
    t->kind = ok ? MT_TOKEN_STRING : MT_TOKEN_BAD;
    t->text = keep(l, &value);
}

// 'text': taken whole, so that what is in it does not make more errors.
static void take_single_quoted(mt_lexer *l, mt_token *t)
{
    const char *line_end = memchr(l->p, '\n', left(l));
    size_t len = line_end ? (size_t)(line_end - l->p) : left(l);
    const char *stop = len > 1 ? memchr(l->p + 1, '\'', len - 1) : NULL;

    mt_mtr_report(l->file, MT_MTR_ERROR, t->line, t->column, NULL, NULL,
                  "strings take double quotes: \"…\", not '…'");
    take(l, stop ? (size_t)(stop - l->p) + 1 : 1);
    t->kind = MT_TOKEN_BAD;
}

// ---- heredocs ----

static mt_str line_at(const char *p, const char *end)
{
    const char *stop = memchr(p, '\n', (size_t)(end - p));

    return (mt_str){p, (size_t)((stop ? stop : end) - p)};
}

static mt_str trim(mt_str s)
{
    while (s.len > 0 && (*s.data == ' ' || *s.data == '\t')) {
        s.data++;
        s.len--;
    }
    while (s.len > 0 && strchr(" \t\r", s.data[s.len - 1]))
        s.len--;
    return s;
}

static bool same(mt_str a, mt_str b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

// Where the line that closes the heredoc begins; NULL when there is none.
static const char *heredoc_end(const char *p, const char *end, mt_str tag)
{
    while (p < end) {
        mt_str line = line_at(p, end);

        if (same(trim(line), tag))
            return p;
        p += line.len;
        if (p < end)
            p++;
    }
    return NULL;
}

static size_t indent_of(mt_str line)
{
    size_t n = 0;

    while (n < line.len && (line.data[n] == ' ' || line.data[n] == '\t'))
        n++;
    return n;
}

// The blanks that all lines with text begin with.
static size_t common_indent(const char *p, const char *end)
{
    size_t common = SIZE_MAX;

    while (p < end) {
        mt_str line = line_at(p, end);

        if (trim(line).len > 0)
            common = MT_MIN(common, indent_of(line));
        p += line.len + 1;
    }
    return common == SIZE_MAX ? 0 : common;
}

// Lines end in \n whatever the file does: a shell script with \r would not run.
static void heredoc_text(const char *p, const char *end, bool strip, mt_buf *out)
{
    size_t indent = strip ? common_indent(p, end) : 0;

    while (p < end) {
        mt_str line = line_at(p, end);
        size_t skip = MT_MIN(indent, indent_of(line));

        p += line.len + 1;
        line.data += skip;
        line.len -= skip;
        if (line.len > 0 && line.data[line.len - 1] == '\r')
            line.len--;
        (void)mt_buf_add(out, line.data, line.len);
        (void)mt_buf_addc(out, '\n');
    }
}

// "<<EOT" and "<<-EOT": l->p is behind the tag; fills ret with it. False when the form is wrong.
static bool take_heredoc_head(mt_lexer *l, bool *ret_strip, mt_str *ret_tag)
{
    mt_str rest;
    size_t n = 0;

    take(l, 2);
    *ret_strip = left(l) > 0 && *l->p == '-';
    if (*ret_strip)
        take(l, 1);
    while (n < left(l) && is_word(l->p[n]))
        n++;
    *ret_tag = (mt_str){l->p, n};
    if (n == 0 || !is_word_start(*l->p))
        return false;
    take(l, n);
    rest = trim(line_at(l->p, l->end));
    return rest.len == 0;
}

static void take_heredoc(mt_lexer *l, mt_token *t)
{
    _cleanup_buf_ mt_buf value = MT_BUF_INIT(MT_MTR_MAX_BYTES + 16);
    bool strip;
    mt_str tag;
    const char *body, *stop;

    t->kind = MT_TOKEN_BAD;
    if (!take_heredoc_head(l, &strip, &tag)) {
        mt_mtr_report(l->file, MT_MTR_ERROR, t->line, t->column, NULL, NULL,
                      "after << (or <<-) comes one word, then the lines, then that word on a line "
                      "of its own");
        take_line(l);
        return;
    }
    take_line(l);
    take(l, left(l) > 0 ? 1 : 0);
    body = l->p;
    stop = heredoc_end(body, l->end, tag);
    if (!stop) {
        mt_lexer_stop(l, t->line, t->column, "text is not closed: no line is just '%.*s'",
                      (int)MT_MIN(tag.len, (size_t)60), tag.data);
        return;
    }
    heredoc_text(body, stop, strip, &value);
    take(l, (size_t)(stop - body));
    take_line(l);
    t->kind = MT_TOKEN_STRING;
    t->heredoc = true;
    t->text = keep(l, &value);
}

// ---- numbers, words, marks ----

static size_t digits_at(const mt_lexer *l, size_t offset)
{
    size_t n = 0;

    while (offset + n < left(l) && is_digit(l->p[offset + n]))
        n++;
    return n;
}

static size_t number_length(const mt_lexer *l)
{
    size_t n = *l->p == '-' ? 1 : 0, more;

    n += digits_at(l, n);
    if (n < left(l) && l->p[n] == '.' && (more = digits_at(l, n + 1)) > 0)
        n += 1 + more;
    if (n < left(l) && (l->p[n] | 0x20) == 'e') {
        size_t sign = n + 1 < left(l) && (l->p[n + 1] == '+' || l->p[n + 1] == '-') ? 1 : 0;

        if ((more = digits_at(l, n + 1 + sign)) > 0)
            n += 1 + sign + more;
    }
    return n;
}

static void take_number(mt_lexer *l, mt_token *t)
{
    enum { LONGEST = 64 };
    size_t n = number_length(l), all = n, sign = *l->p == '-' ? 1 : 0;
    bool zero_led = n > sign + 1 && l->p[sign] == '0' && is_digit(l->p[sign + 1]);

    while (all < left(l) && (is_word(l->p[all]) || l->p[all] == '.' || l->p[all] == ':'))
        all++;
    t->text = (mt_str){l->p, n};
    t->kind = MT_TOKEN_NUMBER;
    if (all > n || zero_led || n > LONGEST || n == sign) {
        mt_str word = {l->p, all > n ? all : n};

        mt_mtr_report(
            l->file, MT_MTR_ERROR, t->line, t->column, NULL,
            all > n ? "durations, sizes and names are strings: put double quotes around it" : NULL,
            "%s is no number", mt_mtr_quote(l->file, word));
        t->kind = MT_TOKEN_BAD;
        n = word.len;
    }
    take(l, n ? n : 1);
}

// “text” is taken whole, like 'text'.
static void take_curly(mt_lexer *l, mt_token *t)
{
    const char *line_end = memchr(l->p, '\n', left(l));
    size_t len = line_end ? (size_t)(line_end - l->p) : left(l);
    const char *stop = memmem(l->p + 3, len - 3, "\xe2\x80\x9d", 3);

    mt_mtr_report(l->file, MT_MTR_ERROR, t->line, t->column, NULL, NULL,
                  "strings take straight double quotes: \"…\"");
    take(l, stop ? (size_t)(stop - l->p) + 3 : 3);
    t->kind = MT_TOKEN_BAD;
}

static void take_strange(mt_lexer *l, mt_token *t)
{
    uint32_t c = 0;
    size_t n = mt_utf8_decode(l->p, left(l), &c, NULL);

    if (c > 0x20 && c != 0x7f)
        mt_mtr_report(l->file, MT_MTR_ERROR, t->line, t->column, NULL, NULL,
                      "unexpected character '%.*s'", (int)n, l->p);
    else
        mt_mtr_report(l->file, MT_MTR_ERROR, t->line, t->column, NULL, NULL,
                      "unexpected control character U+%04X", c);
    // A run of such characters is one error, not hundreds.
    while (left(l) > 0 && !is_word(*l->p) && !strchr("=.,:()[]{}@\"'#/<- \t\r\n", *l->p))
        take(l, 1);
    t->kind = MT_TOKEN_BAD;
}

static void take_lone(mt_lexer *l, mt_token *t)
{
    mt_mtr_report(l->file, MT_MTR_ERROR, t->line, t->column, NULL, NULL, "unexpected '%c'", *l->p);
    take(l, 1);
    t->kind = MT_TOKEN_BAD;
}

static void take_token(mt_lexer *l, mt_token *t)
{
    char c = *l->p;

    if (at_comment(l)) {
        take_comment(l);
        t->kind = MT_TOKEN_COMMENT;
    } else if (is_word_start(c)) {
        size_t n = 1;

        while (n < left(l) && is_word(l->p[n]))
            n++;
        t->kind = MT_TOKEN_WORD;
        t->text = (mt_str){l->p, n};
        take(l, n);
    } else if (c == '"') {
        take_string(l, t);
    } else if (at(l, "<<")) {
        take_heredoc(l, t);
    } else if (is_digit(c) || (c == '-' && left(l) > 1 && is_digit(l->p[1]))) {
        take_number(l, t);
    } else if (strchr("=.,:()[]{}@", c)) {
        t->kind = MT_TOKEN_MARK;
        t->mark = c;
        t->text = (mt_str){l->p, 1};
        take(l, 1);
    } else if (c == '\'') {
        take_single_quoted(l, t);
    } else if (at(l, "\xe2\x80\x9c") || at(l, "\xe2\x80\x9d")) {
        take_curly(l, t);
    } else if (c == '/' || c == '<' || c == '-') {
        take_lone(l, t);
    } else {
        take_strange(l, t);
    }
}

void mt_lexer_next(mt_lexer *l, mt_token *ret)
{
    const char *begin;

    if (l->file->reports_ > MT_MTR_MAX_ERRORS)
        l->stopped = true;
    if (!l->stopped)
        take_blanks(l);
    *ret = (mt_token){
        .kind = MT_TOKEN_END,
        .line_start = l->line_start,
        .line = l->line,
        .column = l->column,
        .last_line = l->line,
    };
    if (l->stopped || left(l) == 0)
        return;
    begin = l->p;
    l->line_start = false;
    take_token(l, ret);
    if (l->stopped) {
        ret->kind = MT_TOKEN_END;
        return;
    }
    ret->source = (mt_str){begin, (size_t)(l->p - begin)};
    ret->last_line = l->line;
}

bool mt_lexer_at_assignment(const mt_lexer *l)
{
    const char *p = l->p;

    while (p < l->end && (*p == ' ' || *p == '\t'))
        p++;
    return p < l->end && (*p == '=' || (*p == '.' && p + 1 < l->end && is_word_start(p[1])));
}
