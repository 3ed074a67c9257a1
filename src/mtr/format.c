// SPDX-License-Identifier: Apache-2.0
// The one layout. Works on tokens, so that comments and the way a text was written are kept:
//
//   name = value            a member a line, blank lines between them kept (one at most)
//   name = [                what was on several lines stays so: an item a line, each with a comma;
//     1, // why             what was on one line stays on one
//   ]
//
// A comment in the middle of a member moves behind it. What comes out is stable: formatted again it
// stays as it is. Only text that parses is formatted, so that nesting is bounded by the parser's.
#include "mtr/mtr-internal.h"

typedef struct printer {
    const mt_token *tokens;
    size_t count, at;
    const mt_token *last; // the last one printed or passed, for blank lines
    mt_buf *out;
    unsigned indent;
    bool line_comment; // the line in hand ends in a comment that reaches to its end
    size_t *pending;   // comments met inside a member, to be printed behind it
    size_t pending_count;
} printer;

static const mt_token *peek(const printer *p)
{
    return &p->tokens[p->at]; // the last one is always MT_TOKEN_END
}

static bool is(const mt_token *t, char mark)
{
    return t->kind == MT_TOKEN_MARK && t->mark == mark;
}

static bool is_comment(const mt_token *t)
{
    return t->kind == MT_TOKEN_COMMENT;
}

static const mt_token *pass(printer *p)
{
    p->last = peek(p);
    if (p->at + 1 < p->count)
        p->at++;
    return p->last;
}

// The next token that is no comment; comments before it wait for the end of the member.
static const mt_token *next_code(printer *p)
{
    while (is_comment(peek(p))) {
        p->pending[p->pending_count++] = p->at;
        (void)pass(p);
    }
    return peek(p);
}

// ---- text ----

static void put(printer *p, const char *text)
{
    (void)mt_buf_adds(p->out, text);
}

// As written, without carriage returns.
static void put_source(printer *p, mt_str s)
{
    size_t begin = 0;

    for (size_t i = 0; i <= s.len; i++) {
        if (i < s.len && !(s.data[i] == '\r' && (i + 1 == s.len || s.data[i + 1] == '\n')))
            continue;
        (void)mt_buf_add(p->out, s.data + begin, i - begin);
        begin = i + 1;
    }
}

static void new_line(printer *p)
{
    if (p->out->len > 0)
        (void)mt_buf_addc(p->out, '\n');
    p->line_comment = false;
}

static void put_indent(printer *p)
{
    for (unsigned i = 0; i < p->indent; i++)
        put(p, "  ");
}

// Begins the line of t; a blank line that stood before it stays, but not at the start of a group.
static void begin_line(printer *p, const mt_token *t, bool first)
{
    new_line(p);
    if (!first && p->last && t->line > p->last->last_line + 1)
        (void)mt_buf_addc(p->out, '\n');
    put_indent(p);
}

// ---- comments ----

static void put_comment(printer *p, const mt_token *t)
{
    mt_str s = t->source;

    while (s.len > 0 && strchr(" \t\r", s.data[s.len - 1]))
        s.len--;
    put_source(p, s);
    p->line_comment = s.data[0] != '/' || s.data[1] != '*';
}

// Behind what was printed: on its line, unless that ends in a comment already or the comment had a
// line of its own.
static void put_behind(printer *p, const mt_token *t)
{
    if (p->line_comment || t->line_start) {
        new_line(p);
        put_indent(p);
    } else {
        put(p, " ");
    }
    put_comment(p, t);
}

// Comments that waited, then those that follow on the same line.
static void finish_line(printer *p)
{
    for (size_t i = 0; i < p->pending_count; i++)
        put_behind(p, &p->tokens[p->pending[i]]);
    p->pending_count = 0;
    while (is_comment(peek(p)) && !peek(p)->line_start && peek(p)->line == p->last->last_line)
        put_behind(p, pass(p));
}

// ---- values ----

static void put_value(printer *p);

// Index of the mark that closes the group at open.
static size_t closing(const printer *p, size_t open)
{
    size_t depth = 0, i = open;

    for (; i + 1 < p->count; i++) {
        const mt_token *t = &p->tokens[i];

        if (is(t, '[') || is(t, '{'))
            depth++;
        else if ((is(t, ']') || is(t, '}')) && --depth == 0)
            break;
    }
    return i;
}

static bool fits_one_line(const printer *p, size_t open)
{
    size_t close = closing(p, open);

    if (close == open + 1)
        return true;
    if (p->tokens[open].line != p->tokens[close].line)
        return false;
    for (size_t i = open; i < close; i++) {
        if (is_comment(&p->tokens[i]))
            return false;
    }
    return true;
}

static void put_key(printer *p)
{
    put_source(p, pass(p)->source);
    while (is(next_code(p), '.')) {
        put(p, ".");
        (void)pass(p);
        (void)next_code(p);
        put_source(p, pass(p)->source);
    }
    (void)pass(p); // "="
    put(p, " = ");
    (void)next_code(p);
    put_value(p);
}

static bool pass_comma(printer *p)
{
    size_t at = p->at;

    while (is_comment(&p->tokens[at]))
        at++;
    if (!is(&p->tokens[at], ','))
        return false;
    (void)next_code(p);
    (void)pass(p);
    return true;
}

static void put_element(printer *p, bool list)
{
    if (list)
        put_value(p);
    else
        put_key(p);
}

static void put_on_one_line(printer *p, bool list, char close)
{
    bool first = true;

    while (!is(peek(p), close)) {
        put(p, first ? (list ? "" : " ") : ", ");
        put_element(p, list);
        (void)pass_comma(p);
        first = false;
    }
    put(p, list || first ? "" : " ");
}

// The elements of a group on lines of their own, up to what closes it.
static void put_lines(printer *p, bool list, char close)
{
    bool first = true;

    while (peek(p)->kind != MT_TOKEN_END && !is(peek(p), close)) {
        const mt_token *t = peek(p);

        begin_line(p, t, first);
        first = false;
        if (is_comment(t)) {
            put_comment(p, pass(p));
            continue;
        }
        put_element(p, list);
        if (list && p->last->heredoc) {
            new_line(p); // nothing may stand behind the closing word
            put_indent(p);
        }
        if (list)
            put(p, ",");
        (void)pass_comma(p);
        finish_line(p);
    }
}

static void put_group(printer *p)
{
    bool one_line = fits_one_line(p, p->at);
    const mt_token *open = pass(p);
    bool list = is(open, '[');
    char close = list ? ']' : '}';

    put(p, list ? "[" : "{");
    if (one_line) {
        put_on_one_line(p, list, close);
    } else {
        finish_line(p);
        p->indent++;
        put_lines(p, list, close);
        p->indent--;
        new_line(p);
        put_indent(p);
    }
    put(p, list ? "]" : "}");
    (void)pass(p);
}

// "@", word, "(", string, ")".
static void put_reference(printer *p)
{
    for (int i = 0; i < 5; i++) {
        (void)next_code(p);
        put_source(p, pass(p)->source);
    }
}

static void put_heredoc(printer *p, mt_str source)
{
    while (source.len > 0 && strchr(" \t\r", source.data[source.len - 1]))
        source.len--;
    put_source(p, source);
}

static void put_value(printer *p)
{
    const mt_token *t = peek(p);

    if (is(t, '[') || is(t, '{'))
        put_group(p);
    else if (is(t, '@'))
        put_reference(p);
    else if (t->heredoc)
        put_heredoc(p, pass(p)->source);
    else
        put_source(p, pass(p)->source);
}

// ---- files ----

typedef struct tokens {
    mt_token *items;
    size_t count, cap;
} tokens;

static int collect(mt_mtr_file *f, tokens *ret)
{
    mt_lexer l;

    mt_lexer_init(&l, f);
    l.comments = true;
    do {
        if (ret->count == ret->cap) {
            size_t cap = ret->cap ? ret->cap * 2 : 256;
            mt_token *items = realloc(ret->items, cap * sizeof(*items));

            if (!items)
                return -1;
            ret->items = items;
            ret->cap = cap;
        }
        mt_lexer_next(&l, &ret->items[ret->count++]);
    } while (ret->items[ret->count - 1].kind != MT_TOKEN_END);
    return 0;
}

int mt_mtr_format_file(mt_mtr_file *f, mt_buf *out, mt_err **err)
{
    mt_buf text = MT_BUF_INIT((size_t)16 * MT_MTR_MAX_BYTES);
    tokens list = {0};
    printer p = {.out = &text};
    int r = collect(f, &list);

    p.tokens = list.items;
    p.count = list.count;
    p.pending = r == 0 ? calloc(list.count, sizeof(*p.pending)) : NULL;
    if (p.pending) {
        put_lines(&p, false, '\0');
        if (text.len > 0)
            (void)mt_buf_addc(&text, '\n');
        r = text.failed ? text.failed : mt_buf_add(out, text.data, text.len);
        if (r < 0)
            (void)mt_fail(err, MT_E_TOO_LARGE, "%s: the formatted text is too large", f->name);
    } else {
        r = mt_fail_oom(err);
    }
    free(p.pending);
    free(list.items);
    mt_buf_done(&text);
    return r < 0 ? -1 : 0;
}

int mt_mtr_format(const char *name, const char *data, size_t len, mt_buf *out, mt_err **err)
{
    _cleanup_(mt_mtr_diags_free_p) mt_mtr_diags *diags = mt_mtr_diags_new();
    _cleanup_(mt_mtr_file_free_p) mt_mtr_file *f = NULL;
    const mt_mtr_diag *d;

    f = diags ? mt_mtr_parse(name, data, len, diags) : NULL;
    if (!f)
        return mt_fail_oom(err);
    if (!f->failed)
        return mt_mtr_format_file(f, out, err);
    mt_mtr_diags_sort(diags);
    d = mt_mtr_diags_at(diags, 0);
    if (!d)
        return mt_fail_oom(err);
    return mt_fail(err, MT_E_BAD_REQUEST, "%s:%u:%u: %s", d->file, d->line, d->column, d->message);
}
