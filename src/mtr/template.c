// SPDX-License-Identifier: Apache-2.0
#include "mtr/template.h"

#include "base/utf8.h"
#include "mtr/kinds-internal.h"

#define TAGS "the tags are %%name%%, {{#if name}}, {{else}} and {{/if}}; write \\{{ for the text"

typedef struct reader {
    const char *file;
    mt_str text;
    mt_arena *arena;
    mt_mtr_diags *diags;
    size_t at, text_from; // what comes between is text that no piece has yet
    unsigned line, column;
    struct {
        mt_template_piece *begin, *last; // the if; it or its else
    } open[MT_TEMPLATE_MAX_DEPTH];
    size_t depth;
    size_t tags, faults;
    mt_template_piece **end;
    bool oom, stopped;
} reader;

static void take(reader *r, size_t n)
{
    for (; n > 0 && r->at < r->text.len; n--, r->at++) {
        if (r->text.data[r->at] == '\n') {
            r->line++;
            r->column = 1;
        } else if (((unsigned char)r->text.data[r->at] & 0xc0) != 0x80) {
            r->column++;
        }
    }
}

static bool at(const reader *r, const char *text)
{
    size_t len = strlen(text);

    return r->text.len - r->at >= len && memcmp(r->text.data + r->at, text, len) == 0;
}

static void fault_at(reader *r, unsigned line, unsigned column, const char *hint,
                     const char *message)
{
    if (++r->faults > MT_MTR_MAX_ERRORS) {
        r->stopped = true;
        return;
    }
    mt_mtr_diags_add(r->diags, MT_MTR_ERROR, r->file, r->text, line, column, NULL, hint, "%s",
                     message);
}

static void fault(reader *r, const char *hint, const char *message)
{
    fault_at(r, r->line, r->column, hint, message);
}

static mt_template_piece *add_piece(reader *r, mt_piece_kind kind, mt_str text)
{
    mt_template_piece *piece = mt_arena_new_of(r->arena, mt_template_piece);

    if (!piece) {
        r->oom = r->stopped = true;
        return NULL;
    }
    *piece = (mt_template_piece){.kind = kind, .text = text, .line = r->line, .column = r->column};
    *r->end = piece;
    r->end = &piece->next;
    return piece;
}

static void add_text(reader *r, size_t end)
{
    if (end > r->text_from)
        (void)add_piece(r, MT_PIECE_TEXT,
                        (mt_str){r->text.data + r->text_from, end - r->text_from});
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

// Whether nothing but blanks stands in [r->at, r->at + length)'s line beside it: then where that
// line begins, and where the next one does.
static bool is_alone(const reader *r, size_t length, size_t *ret_begin, size_t *ret_end)
{
    const char *text = r->text.data;
    size_t begin = r->at, end = r->at + length;

    while (begin > 0 && is_blank(text[begin - 1]))
        begin--;
    while (end < r->text.len && is_blank(text[end]))
        end++;
    if (end + 1 < r->text.len && text[end] == '\r' && text[end + 1] == '\n')
        end++;
    if ((begin > 0 && text[begin - 1] != '\n') || (end < r->text.len && text[end] != '\n'))
        return false;
    *ret_begin = begin;
    *ret_end = MT_MIN(end + 1, r->text.len);
    return true;
}

// A tag of that length, with the text before it.
static mt_template_piece *add_tag(reader *r, mt_piece_kind kind, mt_str name, size_t length)
{
    size_t before = r->at, after = r->at + length;
    mt_template_piece *tag;

    if (++r->tags > MT_TEMPLATE_MAX_TAGS) {
        fault(r, NULL, "more than 2,000 tags in one template");
        r->stopped = true;
        return NULL;
    }
    if (kind != MT_PIECE_VALUE)
        (void)is_alone(r, length, &before, &after);
    add_text(r, before);
    tag = add_piece(r, kind, name);
    take(r, after - r->at);
    r->text_from = r->at;
    return tag;
}

// Length of the name at offset; 0 where there is none.
static size_t name_length(const reader *r, size_t offset)
{
    size_t n = 0;

    while (offset + n < r->text.len && n < 100 &&
           mt_is_input_name((mt_str){r->text.data + offset, n + 1}))
        n++;
    return n;
}

static void read_value(reader *r)
{
    size_t begin = r->at + 2, n = name_length(r, begin);

    if (n == 0 || r->text.len - begin < n + 2 || memcmp(r->text.data + begin + n, "%%", 2) != 0) {
        take(r, 1);
        return;
    }
    (void)add_tag(r, MT_PIECE_VALUE, (mt_str){r->text.data + begin, n}, n + 4);
}

// At "{{#if": the blank-separated name and "}}". 0 when malformed, else the length of the tag.
static size_t if_length(const reader *r, mt_str *ret_name)
{
    size_t p = r->at + 5, n;

    while (p < r->text.len && is_blank(r->text.data[p]))
        p++;
    n = name_length(r, p);
    if (n == 0 || p == r->at + 5)
        return 0;
    *ret_name = (mt_str){r->text.data + p, n};
    p += n;
    while (p < r->text.len && is_blank(r->text.data[p]))
        p++;
    if (r->text.len - p < 2 || memcmp(r->text.data + p, "}}", 2) != 0)
        return 0;
    return p + 2 - r->at;
}

static void read_if(reader *r)
{
    mt_template_piece *tag;
    mt_str name;
    size_t length = if_length(r, &name);

    if (length == 0) {
        fault(r, "write {{#if name}}", "malformed {{#if}}");
        take(r, 3);
        return;
    }
    if (r->depth == MT_TEMPLATE_MAX_DEPTH) {
        fault(r, NULL, "{{#if}} nested deeper than 64 levels");
        r->stopped = true;
        return;
    }
    tag = add_tag(r, MT_PIECE_IF, name, length);
    if (!tag)
        return;
    r->open[r->depth].begin = tag;
    r->open[r->depth++].last = tag;
}

static void read_else(reader *r)
{
    mt_template_piece *tag;

    if (r->depth == 0)
        fault(r, NULL, "{{else}} without {{#if}}");
    else if (r->open[r->depth - 1].last->kind == MT_PIECE_ELSE)
        fault(r, NULL, "a second {{else}} in one {{#if}}");
    tag = add_tag(r, MT_PIECE_ELSE, MT_STR(""), 8);
    if (!tag || r->depth == 0)
        return;
    r->open[r->depth - 1].last->jump = tag;
    r->open[r->depth - 1].last = tag;
}

static void read_end(reader *r)
{
    mt_template_piece *tag;

    if (r->depth == 0)
        fault(r, NULL, "{{/if}} without {{#if}}");
    tag = add_tag(r, MT_PIECE_END, MT_STR(""), 7);
    if (tag && r->depth > 0)
        r->open[--r->depth].last->jump = tag;
}

static void read_step(reader *r)
{
    if (at(r, "\\%%") || at(r, "\\{{")) {
        take(r, 3);
    } else if (at(r, "%%")) {
        read_value(r);
    } else if (at(r, "{{#if")) {
        read_if(r);
    } else if (at(r, "{{else}}")) {
        read_else(r);
    } else if (at(r, "{{/if}}")) {
        read_end(r);
    } else if (at(r, "{{#") || at(r, "{{/")) {
        fault(r, TAGS, "unknown tag");
        take(r, 3);
    } else {
        take(r, 1);
    }
}

static bool check_bytes(reader *r)
{
    size_t bad = mt_utf8_bad_at(r->text.data, r->text.len);
    const char *nul = r->text.len ? memchr(r->text.data, '\0', r->text.len) : NULL;

    if (bad == r->text.len && !nul)
        return true;
    if (nul && (size_t)(nul - r->text.data) < bad)
        bad = (size_t)(nul - r->text.data);
    take(r, bad);
    fault(r, NULL, r->text.data[bad] ? "not UTF-8: save the file as UTF-8" : "NUL byte in a text");
    return false;
}

int mt_template_read(const char *file, mt_str text, mt_arena *arena, mt_mtr_diags *diags,
                     mt_template_piece **ret)
{
    mt_template_piece *list = NULL;
    reader r = {
        .file = file,
        .text = text,
        .arena = arena,
        .diags = diags,
        .line = 1,
        .column = 1,
        .end = &list,
    };

    if (text.len > MT_MTR_MAX_BYTES) {
        r.line = r.column = 0;
        fault(&r, NULL, "the file is over 1024 KiB, the limit of a prompt");
        return 1;
    }
    if (check_bytes(&r)) {
        while (!r.stopped && r.at < text.len)
            read_step(&r);
        add_text(&r, text.len);
        for (size_t i = 0; i < r.depth && !r.stopped; i++)
            fault_at(&r, r.open[i].begin->line, r.open[i].begin->column, NULL,
                     "{{#if}} is not closed by {{/if}}");
    }
    if (r.oom)
        return -1;
    *ret = list;
    return r.faults > 0;
}

const mt_template_piece *mt_template_name(const mt_template_piece *p)
{
    while (p && p->kind != MT_PIECE_VALUE && p->kind != MT_PIECE_IF)
        p = p->next;
    return p;
}

// ---- rendering ----

static int add_literal(mt_buf *out, mt_str text)
{
    const char *at = text.data, *end = text.data + text.len;

    while (at < end) {
        const char *backslash = memchr(at, '\\', (size_t)(end - at));

        if (!backslash)
            backslash = end;
        (void)mt_buf_add(out, at, (size_t)(backslash - at));
        at = backslash;
        if (end - at >= 3 && (memcmp(at + 1, "%%", 2) == 0 || memcmp(at + 1, "{{", 2) == 0)) {
            (void)mt_buf_add(out, at + 1, 2);
            at += 3;
        } else if (at < end) {
            (void)mt_buf_addc(out, *at++);
        }
    }
    return out->failed;
}

static void add_value(mt_buf *out, const mt_json *v)
{
    mt_json_kind kind = mt_json_kind_of(v);
    mt_str text = mt_json_str(v); // of a string or number

    if (kind == MT_JSON_STRING || kind == MT_JSON_NUMBER)
        (void)mt_buf_add(out, text.data, text.len);
    else if (kind != MT_JSON_ABSENT && kind != MT_JSON_NULL)
        (void)mt_json_write(v, out, 0);
}

static bool is_true(const mt_json *v)
{
    switch (mt_json_kind_of(v)) {
    case MT_JSON_ABSENT:
    case MT_JSON_NULL:
        return false;
    case MT_JSON_BOOL:
        return mt_json_is_true(v);
    case MT_JSON_STRING:
        return mt_json_str(v).len > 0;
    default:
        return true;
    }
}

int mt_template_render(const mt_template_piece *p, const mt_json *inputs, mt_buf *out)
{
    for (; p && !out->failed; p = p->next) {
        if (p->kind == MT_PIECE_TEXT)
            (void)add_literal(out, p->text);
        else if (p->kind == MT_PIECE_VALUE)
            add_value(out, mt_json_get_str(inputs, p->text));
        else if (p->kind == MT_PIECE_ELSE ||
                 (p->kind == MT_PIECE_IF && !is_true(mt_json_get_str(inputs, p->text))))
            p = p->jump;
    }
    return out->failed;
}
