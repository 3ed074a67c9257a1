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
    size_t at;
    unsigned line, column;
    struct {
        unsigned line, column;
        bool has_else;
    } open[MT_TEMPLATE_MAX_DEPTH];
    size_t depth;
    size_t tags, faults;
    mt_template_tag **end;
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

static void add_tag(reader *r, mt_str name)
{
    mt_template_tag *tag;

    if (++r->tags > MT_TEMPLATE_MAX_TAGS) {
        fault(r, NULL, "more than 2,000 tags in one template");
        r->stopped = true;
        return;
    }
    tag = mt_arena_new_of(r->arena, mt_template_tag);
    if (!tag) {
        r->oom = r->stopped = true;
        return;
    }
    *tag = (mt_template_tag){.name = name, .line = r->line, .column = r->column};
    *r->end = tag;
    r->end = &tag->next;
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
    add_tag(r, (mt_str){r->text.data + begin, n});
    take(r, n + 4);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
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
    add_tag(r, name);
    r->open[r->depth].line = r->line;
    r->open[r->depth].column = r->column;
    r->open[r->depth++].has_else = false;
    take(r, length);
}

static void read_else(reader *r)
{
    if (r->depth == 0)
        fault(r, NULL, "{{else}} without {{#if}}");
    else if (r->open[r->depth - 1].has_else)
        fault(r, NULL, "a second {{else}} in one {{#if}}");
    else
        r->open[r->depth - 1].has_else = true;
    take(r, 8);
}

static void read_end(reader *r)
{
    if (r->depth == 0)
        fault(r, NULL, "{{/if}} without {{#if}}");
    else
        r->depth--;
    take(r, 7);
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

int mt_template_tags(const char *file, mt_str text, mt_arena *arena, mt_mtr_diags *diags,
                     mt_template_tag **ret)
{
    mt_template_tag *list = NULL;
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
        for (size_t i = 0; i < r.depth && !r.stopped; i++)
            fault_at(&r, r.open[i].line, r.open[i].column, NULL,
                     "{{#if}} is not closed by {{/if}}");
    }
    if (r.oom)
        return -1;
    *ret = list;
    return r.faults > 0;
}
