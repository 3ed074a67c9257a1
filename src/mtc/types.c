// SPDX-License-Identifier: Apache-2.0
// Words of types, the table of built-ins, reports.
#include "mtc/ast.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

// ---- types ----

static const char *const type_words[] = {
    [MT_MTC_BAD] = "?",
    [MT_MTC_BOOL] = "bool",
    [MT_MTC_INT] = "int",
    [MT_MTC_DECIMAL] = "decimal",
    [MT_MTC_STRING] = "string",
    [MT_MTC_GUID] = "guid",
    [MT_MTC_JSON_OBJECT] = "jsonObject",
    [MT_MTC_JSON_ARRAY] = "jsonArray",
    [MT_MTC_VOID] = "void",
    [MT_MTC_ERROR] = "error",
};

const char *mt_mtc_type_word(mt_mtc_type type)
{
    return type_words[type];
}

bool mt_mtc_type_by_word(mt_str word, mt_mtc_type *ret)
{
    for (size_t i = MT_MTC_BOOL; i < MT_ARRAY_SIZE(type_words); i++) {
        if (mt_str_eq(word, type_words[i])) {
            *ret = (mt_mtc_type)i;
            return true;
        }
    }
    return false;
}

// ---- built-ins ----

#define BOOL(name)        \
    {                     \
        MT_MTC_BOOL, name \
    }
#define INT(name)        \
    {                    \
        MT_MTC_INT, name \
    }
#define DECIMAL(name)        \
    {                        \
        MT_MTC_DECIMAL, name \
    }
#define STRING(name)        \
    {                       \
        MT_MTC_STRING, name \
    }
#define GUID(name)        \
    {                     \
        MT_MTC_GUID, name \
    }
#define OBJECT(name)             \
    {                            \
        MT_MTC_JSON_OBJECT, name \
    }
#define ARRAY(name)             \
    {                           \
        MT_MTC_JSON_ARRAY, name \
    }
#define ERROR(name)        \
    {                      \
        MT_MTC_ERROR, name \
    }
// Of results.
#define TYPE_VOID    MT_MTC_VOID
#define TYPE_BOOL    MT_MTC_BOOL
#define TYPE_INT     MT_MTC_INT
#define TYPE_DECIMAL MT_MTC_DECIMAL
#define TYPE_STRING  MT_MTC_STRING
#define TYPE_GUID    MT_MTC_GUID
#define TYPE_OBJECT  MT_MTC_JSON_OBJECT
#define TYPE_ARRAY   MT_MTC_JSON_ARRAY
#define COUNT(...) \
    (sizeof((const mt_mtc_parameter[]){{0}, ##__VA_ARGS__}) / sizeof(mt_mtc_parameter) - 1)
#define MT_FAMILY(title) {.doc = (title)},
#define MT_BUILTIN(name_, kind_, result_, doc_, ...) \
    {.name = #name_,                                 \
     .kind = MT_MTC_##kind_,                         \
     .result = TYPE_##result_,                       \
     .doc = (doc_),                                  \
     .parameters = {__VA_ARGS__},                    \
     .count = COUNT(__VA_ARGS__)},

// A row without a name is the family (its doc) of those that follow it.
static const mt_mtc_builtin rows[] = {
#include "mtc/builtins.def"
};

const char *mt_mtc_kind_word(mt_mtc_kind kind)
{
    static const char *const words[] = {
        [MT_MTC_PURE] = "pure",
        [MT_MTC_READ] = "read",
        [MT_MTC_START] = "start",
        [MT_MTC_WRITE] = "write",
    };

    return words[kind];
}

const mt_mtc_builtin *mt_mtc_builtin_at(size_t i)
{
    for (const mt_mtc_builtin *b = rows; b < rows + MT_ARRAY_SIZE(rows); b++) {
        if (b->name && i-- == 0)
            return b;
    }
    return NULL;
}

const mt_mtc_builtin *mt_mtc_builtin_find(mt_str name)
{
    for (const mt_mtc_builtin *b = rows; b < rows + MT_ARRAY_SIZE(rows); b++) {
        if (b->name && mt_str_eq(name, b->name))
            return b;
    }
    return NULL;
}

size_t mt_mtc_builtin_row(const mt_mtc_builtin *b)
{
    return (size_t)(b - rows);
}

const char *mt_mtc_builtin_family(const mt_mtc_builtin *b)
{
    while (b->name)
        b--;
    return b->doc;
}

int mt_mtc_builtin_signature(const mt_mtc_builtin *b, mt_buf *out)
{
    (void)mt_buf_addf(out, "%s %s(", mt_mtc_type_word(b->result), b->name);
    for (size_t i = 0; i < b->count; i++)
        (void)mt_buf_addf(out, "%s%s %s", i ? ", " : "", mt_mtc_type_word(b->parameters[i].type),
                          b->parameters[i].name);
    return mt_buf_adds(out, ")");
}

// ---- reports ----

void mt_mtc_report(mt_mtc_file *f, mt_mtr_severity severity, mt_mtc_place place, const char *hint,
                   const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    if (severity == MT_MTR_ERROR) {
        f->program->failed = true;
        f->errors++;
    }
    if (f->errors > MT_MTR_MAX_ERRORS) {
        if (f->errors == MT_MTR_MAX_ERRORS + 1 && severity == MT_MTR_ERROR)
            mt_mtr_diags_add(f->program->diags, severity, f->path, (mt_str){NULL, 0}, 0, 0, NULL,
                             NULL, "more than %d errors in this file: correct these first",
                             MT_MTR_MAX_ERRORS);
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mt_mtr_diags_add(f->program->diags, severity, f->path, f->text, place.line, place.column, NULL,
                     hint, "%s", text);
}

const char *mt_mtc_printf(mt_mtc_program *p, const char *fmt, ...)
{
    char text[2048];
    const char *copy;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    copy = mt_arena_strdup(p->arena, text);
    if (!copy)
        p->oom = true;
    return copy ? copy : "";
}

const char *mt_mtc_quote(mt_mtc_program *p, mt_str text)
{
    enum { SHOWN = 60 };
    size_t n = 0, chars = 0;
    char flat[SHOWN * 4 + 1];

    while (n < text.len && chars < SHOWN) {
        uint32_t c;
        size_t step = mt_utf8_decode(text.data + n, text.len - n, &c, NULL);

        if (step == 0)
            break;
        memcpy(flat + n, text.data + n, step);
        if (c < 0x20 || c == 0x7f)
            flat[n] = ' ';
        n += step;
        chars++;
    }
    flat[n] = '\0';
    return mt_mtc_printf(p, "'%s%s'", flat, n < text.len ? "…" : "");
}

bool mt_mtc_same(mt_str a, mt_str b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}
