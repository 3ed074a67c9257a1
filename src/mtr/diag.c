// SPDX-License-Identifier: Apache-2.0
#include "mtr/mtr-internal.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

enum { DIAGS_ARENA_BYTES = 8 * 1024 * 1024 };

typedef struct entry {
    mt_mtr_diag diag;
    size_t file_number; // order of first appearance
    size_t number;
} entry;

struct mt_mtr_diags {
    mt_arena *arena;
    entry *items;
    size_t count, cap;
    size_t errors;
    size_t files;
    bool oom;
};

mt_mtr_diags *mt_mtr_diags_new(void)
{
    mt_mtr_diags *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->arena = mt_arena_new(DIAGS_ARENA_BYTES);
    if (!d->arena) {
        free(d);
        return NULL;
    }
    return d;
}

void mt_mtr_diags_free(mt_mtr_diags *d)
{
    if (!d)
        return;
    mt_arena_free(d->arena);
    free(d->items);
    free(d);
}

size_t mt_mtr_diags_count(const mt_mtr_diags *d)
{
    return d->count;
}

const mt_mtr_diag *mt_mtr_diags_at(const mt_mtr_diags *d, size_t i)
{
    return i < d->count ? &d->items[i].diag : NULL;
}

size_t mt_mtr_diags_errors(const mt_mtr_diags *d)
{
    return d->errors;
}

bool mt_mtr_diags_oom(const mt_mtr_diags *d)
{
    return d->oom;
}

static int compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (x->file_number != y->file_number)
        return x->file_number < y->file_number ? -1 : 1;
    // Those about the whole file (line 0) come after all others.
    if (x->diag.line != y->diag.line)
        return x->diag.line - 1 < y->diag.line - 1 ? -1 : 1;
    if (x->diag.column != y->diag.column)
        return x->diag.column < y->diag.column ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

void mt_mtr_diags_sort(mt_mtr_diags *d)
{
    if (d->count > 1)
        qsort(d->items, d->count, sizeof(*d->items), compare);
}

// The text of a line without its end; empty when there is no such line.
static mt_str line_of(mt_str text, unsigned line)
{
    const char *p = text.data, *end = text.data + text.len, *stop;

    for (; line > 1; line--) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (!p)
            return (mt_str){"", 0};
        p++;
    }
    stop = memchr(p, '\n', (size_t)(end - p));
    if (!stop)
        stop = end;
    if (stop > p && stop[-1] == '\r')
        stop--;
    return (mt_str){p, (size_t)(stop - p)};
}

static const char *quote_line(mt_mtr_diags *d, mt_str text, unsigned line)
{
    mt_buf clean = MT_BUF_INIT((size_t)16 * MT_MTR_MAX_SOURCE_LINE);
    mt_str source;
    const char *copy = NULL;

    if (!text.data || line == 0)
        return NULL;
    source = line_of(text, line);
    if (source.len == 0 || source.len > (size_t)4 * MT_MTR_MAX_SOURCE_LINE ||
        mt_utf8_count(source.data, source.len) > MT_MTR_MAX_SOURCE_LINE)
        return NULL;
    if (mt_utf8_add_clean(&clean, source.data, source.len) == 0)
        copy = mt_arena_strndup(d->arena, clean.data, clean.len);
    mt_buf_done(&clean);
    return copy;
}

static entry *push(mt_mtr_diags *d)
{
    if (d->count == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 16;
        entry *items = realloc(d->items, cap * sizeof(*items));

        if (!items)
            return NULL;
        d->items = items;
        d->cap = cap;
    }
    return memset(&d->items[d->count++], 0, sizeof(entry));
}

static const char *copy_or_null(mt_mtr_diags *d, const char *text)
{
    const char *copy = text ? mt_arena_strdup(d->arena, text) : NULL;

    if (text && !copy)
        d->oom = true;
    return copy;
}

// File names come in runs, so that comparing with the last one finds nearly all.
static size_t number_of_file(mt_mtr_diags *d, const char *file, const char **ret_name)
{
    for (size_t i = d->count; i-- > 0;) {
        if (mt_streq(d->items[i].diag.file, file)) {
            *ret_name = d->items[i].diag.file;
            return d->items[i].file_number;
        }
    }
    *ret_name = copy_or_null(d, file);
    return d->files++;
}

static void vadd(mt_mtr_diags *d, const mt_mtr_diag *place, mt_str text, const char *fmt,
                 va_list ap) MT_PRINTF(4, 0);
static void vadd(mt_mtr_diags *d, const mt_mtr_diag *place, mt_str text, const char *fmt,
                 va_list ap)
{
    char *message = NULL;
    const char *name;
    size_t number;
    entry *e;

    if (place->severity == MT_MTR_ERROR)
        d->errors++;
    if (d->count >= MT_MTR_MAX_DIAGNOSTICS)
        return;
    number = number_of_file(d, place->file, &name);
    if (vasprintf(&message, fmt, ap) < 0)
        message = NULL;
    e = message && name ? push(d) : NULL;
    if (!e) {
        d->oom = true;
        free(message);
        return;
    }
    e->file_number = number;
    e->number = d->count;
    e->diag = *place;
    e->diag.file = name;
    e->diag.message = copy_or_null(d, message);
    e->diag.hint = copy_or_null(d, place->hint);
    e->diag.path = copy_or_null(d, place->path);
    e->diag.source_line = quote_line(d, text, place->line);
    free(message);
    if (!e->diag.message)
        d->count--;
}

void mt_mtr_diags_add(mt_mtr_diags *d, mt_mtr_severity severity, const char *file, mt_str text,
                      unsigned line, unsigned column, const char *path, const char *hint,
                      const char *fmt, ...)
{
    mt_mtr_diag place = {
        .severity = severity,
        .file = file,
        .line = line,
        .column = column,
        .path = path,
        .hint = hint,
    };
    va_list ap;

    va_start(ap, fmt);
    vadd(d, &place, text, fmt, ap);
    va_end(ap);
}

void mt_mtr_report(mt_mtr_file *f, mt_mtr_severity severity, unsigned line, unsigned column,
                   const char *path, const char *hint, const char *fmt, ...)
{
    mt_mtr_diag place = {
        .severity = severity,
        .file = f->name,
        .line = line,
        .column = column,
        .path = path,
        .hint = hint,
    };
    va_list ap;

    if (severity == MT_MTR_ERROR)
        f->failed = true;
    if (f->reports_ > MT_MTR_MAX_ERRORS)
        return;
    if (f->reports_++ == MT_MTR_MAX_ERRORS) {
        mt_mtr_diags_add(f->diags, severity, f->name, (mt_str){NULL, 0}, 0, 0, NULL, NULL,
                         "more than %d errors in this file: correct these first",
                         MT_MTR_MAX_ERRORS);
        return;
    }
    va_start(ap, fmt);
    vadd(f->diags, &place, (mt_str){f->text, f->len}, fmt, ap);
    va_end(ap);
}

// The caret goes under the column; tabs before it are kept, so that it lines up in any terminal.
static void add_caret(mt_buf *out, const mt_mtr_diag *diag)
{
    const char *p = diag->source_line;
    size_t left = strlen(p);

    (void)mt_buf_addf(out, "\n  %s\n  ", p);
    for (unsigned i = 1; i < diag->column && left > 0; i++) {
        uint32_t c;
        size_t n = mt_utf8_decode(p, left, &c, NULL);

        if (n == 0)
            n = 1;
        (void)mt_buf_addc(out, *p == '\t' ? '\t' : ' ');
        p += n;
        left -= n;
    }
    (void)mt_buf_addc(out, '^');
}

int mt_mtr_diag_format(const mt_mtr_diag *diag, mt_buf *out)
{
    (void)mt_buf_adds(out, diag->file);
    if (diag->line)
        (void)mt_buf_addf(out, ":%u:%u", diag->line, diag->column);
    (void)mt_buf_addf(out, ": %s: %s", diag->severity == MT_MTR_ERROR ? "error" : "warning",
                      diag->message);
    if (diag->source_line)
        add_caret(out, diag);
    if (diag->hint)
        (void)mt_buf_addf(out, "\n  hint: %s", diag->hint);
    return mt_buf_addc(out, '\n');
}

const char *mt_mtr_printf(mt_mtr_file *f, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    const char *copy = NULL;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    if (text)
        copy = mt_arena_strdup(f->arena, text);
    free(text);
    return copy;
}

const char *mt_mtr_quote(mt_mtr_file *f, mt_str text)
{
    enum { SHOWN = 60 };
    mt_buf b = MT_BUF_INIT(4096);
    const char *quoted;
    size_t used = 0;

    (void)mt_buf_addc(&b, '\'');
    for (int i = 0; used < text.len && i < SHOWN; i++) {
        uint32_t c = 0;
        size_t n = mt_utf8_decode(text.data + used, text.len - used, &c, NULL);

        if (n == 0 || c < 0x20 || c == 0x7f)
            (void)mt_buf_addf(&b, "\\u%04x", n ? c : 0xfffdu);
        else
            (void)mt_buf_add(&b, text.data + used, n);
        used += n ? n : 1;
    }
    (void)mt_buf_adds(&b, used < text.len ? "…'" : "'");
    quoted = b.failed ? NULL : mt_arena_strdup(f->arena, mt_buf_str(&b));
    mt_buf_done(&b);
    return quoted ? quoted : "that text";
}
