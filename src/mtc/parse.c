// SPDX-License-Identifier: Apache-2.0
// Functions, by recursive descent; docs/reference/language.md has the grammar.
#include "mtc/parse-internal.h"

#include <stdarg.h>
#include <stdio.h>

// ---- tokens ----

void mt_mtc_advance(mt_mtc_parser *p)
{
    p->last_end = p->ahead[0].end;
    memmove(p->ahead, p->ahead + 1, sizeof(p->ahead) - sizeof(p->ahead[0]));
    mt_mtc_lexer_next(&p->lex, &p->ahead[MT_MTC_AHEAD - 1]);
    // What was read ahead before the file was given up.
    if (p->lex.stopped && (p->file->errors > MT_MTR_MAX_ERRORS || p->program->oom))
        p->ahead[0].kind = MT_TOK_END;
}

const char *mt_mtc_describe(mt_mtc_parser *p)
{
    const mt_mtc_token *t = mt_tok(p);

    if (t->kind == MT_TOK_END)
        return "end of file";
    return t->kind == MT_TOK_STRING ? "a string" : mt_mtc_quote(p->program, t->source);
}

bool mt_mtc_given_up(const mt_mtc_parser *p)
{
    return p->lex.stopped;
}

void mt_mtc_syntax(mt_mtc_parser *p, const char *hint, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    bool silent = p->panic || mt_tok(p)->kind == MT_TOK_BAD ||
                  (mt_tok(p)->kind == MT_TOK_END && mt_mtc_given_up(p));

    p->panic = true;
    if (p->function)
        p->function->body_broken = true;
    if (silent)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mt_mtc_report(p->file, MT_MTR_ERROR, mt_tok(p)->place, hint, "%s", text);
}

bool mt_mtc_expect(mt_mtc_parser *p, char mark, const char *after)
{
    if (!p->panic && mt_at_mark(mt_tok(p), MT_MARK2((unsigned char)mark, 0))) {
        mt_mtc_advance(p);
        return true;
    }
    mt_mtc_syntax(p, NULL, "unexpected %s: '%c' is expected after %s", mt_mtc_describe(p), mark,
                  after);
    return false;
}

bool mt_mtc_enter(mt_mtc_parser *p)
{
    if (p->nesting < MT_MTC_MAX_NESTING) {
        p->nesting++;
        return true;
    }
    if (!p->lex.stopped || mt_tok(p)->kind != MT_TOK_END)
        mt_mtc_lexer_stop(&p->lex, mt_tok(p)->place, "nested deeper than 200 levels");
    for (size_t i = 0; i < MT_MTC_AHEAD; i++)
        p->ahead[i].kind = MT_TOK_END;
    p->panic = true;
    if (p->function)
        p->function->body_broken = true;
    return false;
}

void mt_mtc_leave(mt_mtc_parser *p)
{
    p->nesting--;
}

bool mt_mtc_begins_function(const mt_mtc_parser *p)
{
    return p->ahead[0].kind == MT_TOK_TYPE && p->ahead[1].kind == MT_TOK_NAME &&
           mt_at_mark(&p->ahead[2], '(') &&
           (p->ahead[3].kind == MT_TOK_TYPE || mt_at_mark(&p->ahead[3], ')'));
}

bool mt_mtc_begins_statement(const mt_mtc_parser *p)
{
    const mt_mtc_token *t = &p->ahead[0];

    if (t->kind == MT_TOK_TYPE)
        return p->ahead[1].kind == MT_TOK_NAME;
    return t->kind == MT_TOK_KEYWORD && t->keyword != MT_KEY_ELSE && t->keyword != MT_KEY_IN &&
           t->keyword != MT_KEY_CATCH && t->keyword < MT_KEY_TRUE;
}

// ---- types ----

static const struct {
    const char *word, *instead;
} foreign_types[] = {
    {"str", "string"},     {"String", "string"},   {"char", "string"},       {"boolean", "bool"},
    {"Boolean", "bool"},   {"float", "decimal"},   {"double", "decimal"},    {"number", "decimal"},
    {"long", "int"},       {"integer", "int"},     {"object", "jsonObject"}, {"json", "jsonObject"},
    {"map", "jsonObject"}, {"dict", "jsonObject"}, {"list", "jsonArray"},    {"array", "jsonArray"},
    {"uuid", "guid"},      {"function", "void"},
};

static const char *type_hint(mt_mtc_parser *p, mt_str word)
{
    static const char *const words[] = {"bool", "int",        "decimal",   "string",
                                        "guid", "jsonObject", "jsonArray", "void"};
    const char *near = mt_nearest_of(word, words, MT_ARRAY_SIZE(words));

    for (size_t i = 0; i < MT_ARRAY_SIZE(foreign_types); i++) {
        if (mt_str_eq(word, foreign_types[i].word))
            near = foreign_types[i].instead;
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(words) && !near; i++) {
        if (mt_str_ieq(word, words[i]))
            near = words[i];
    }
    if (near)
        return mt_mtc_printf(p->program, "did you mean '%s'?", near);
    return "types are bool, int, decimal, string, guid, jsonObject, jsonArray";
}

// A type at the token in hand, or a word where one belongs (reported; MT_MTC_BAD).
static mt_mtc_type take_type(mt_mtc_parser *p)
{
    mt_mtc_token t = *mt_tok(p);

    mt_mtc_advance(p);
    if (t.kind == MT_TOK_TYPE)
        return t.type;
    mt_mtc_report(p->file, MT_MTR_ERROR, t.place, type_hint(p, t.text), "%s is no type",
                  mt_mtc_quote(p->program, t.text));
    return MT_MTC_BAD;
}

mt_mtc_variable *mt_mtc_new_variable(mt_mtc_parser *p, mt_mtc_type type, const mt_mtc_token *name)
{
    mt_mtc_variable *v = mt_arena_new_of(p->program->arena, mt_mtc_variable);

    if (!v) {
        p->program->oom = true;
        return NULL;
    }
    v->type = type;
    v->name = name->text;
    v->place = name->place;
    return v;
}

// Why the token in hand is no name.
static const char *no_name_hint(mt_mtc_parser *p)
{
    if (mt_at_mark(mt_tok(p), '['))
        return "lists are of the type jsonArray";
    if (mt_tok(p)->kind == MT_TOK_KEYWORD || mt_tok(p)->kind == MT_TOK_TYPE)
        return "it is a word of the language: choose another name";
    return NULL;
}

mt_mtc_variable *mt_mtc_parse_typed_name(mt_mtc_parser *p, const char *what)
{
    mt_mtc_type type;
    mt_mtc_variable *v;

    if (mt_tok(p)->kind != MT_TOK_TYPE &&
        !(mt_tok(p)->kind == MT_TOK_NAME && p->ahead[1].kind == MT_TOK_NAME)) {
        mt_mtc_syntax(p, NULL, "unexpected %s: %s is a type and a name", mt_mtc_describe(p), what);
        return NULL;
    }
    type = take_type(p);
    if (mt_tok(p)->kind != MT_TOK_NAME) {
        mt_mtc_syntax(p, no_name_hint(p), "unexpected %s: a name is expected after the type",
                      mt_mtc_describe(p));
        return NULL;
    }
    v = mt_mtc_new_variable(p, type, mt_tok(p));
    mt_mtc_advance(p);
    return v;
}

// ---- functions ----

static bool at_file_end(const mt_mtc_parser *p)
{
    return p->ahead[0].kind == MT_TOK_END || p->program->oom;
}

// Passes over what is no function, up to what looks like one.
static void recover_outside(mt_mtc_parser *p)
{
    p->panic = false;
    do
        mt_mtc_advance(p);
    while (!at_file_end(p) && !mt_mtc_begins_function(p));
}

static void parse_parameters(mt_mtc_parser *p, mt_mtc_function *f)
{
    mt_mtc_variable **end = &f->parameters;

    if (mt_at_mark(mt_tok(p), ')'))
        return;
    for (;;) {
        mt_mtc_variable *v = mt_mtc_parse_typed_name(p, "a parameter");

        if (!v)
            return;
        *end = v;
        end = &v->next;
        if (f->count++ == MT_MTC_MAX_PARAMETERS)
            mt_mtc_report(p->file, MT_MTR_ERROR, v->place, NULL,
                          "a function takes at most %d parameters", MT_MTC_MAX_PARAMETERS);
        if (!mt_at_mark(mt_tok(p), ','))
            return;
        mt_mtc_advance(p);
    }
}

static void add_function(mt_mtc_program *p, mt_mtc_function *f)
{
    f->number = p->function_count++;
    *p->end = f;
    p->end = &f->next;
}

static void parse_header(mt_mtc_parser *p, mt_mtc_function *f)
{
    mt_mtc_advance(p); // the '('
    parse_parameters(p, f);
    if (!p->panic)
        (void)mt_mtc_expect(p, ')', "the parameters");
    f->header_broken = p->panic;
    mt_mtc_recover_head(p);
}

static void parse_function_body(mt_mtc_parser *p, mt_mtc_function *f)
{
    if (mt_at_mark(mt_tok(p), '{')) {
        f->body = mt_mtc_parse_block(p);
        f->end = p->last_brace;
        p->unwind = false;
        p->panic = false;
        return;
    }
    f->body_broken = true;
    mt_mtc_syntax(p,
                  mt_at_mark(mt_tok(p), ';')
                      ? "functions are known everywhere: nothing is declared ahead"
                      : NULL,
                  "the body of function %s is missing: '{' is expected here",
                  mt_mtc_quote(p->program, f->name));
    if (!mt_mtc_begins_function(p))
        recover_outside(p);
    p->panic = false;
}

void mt_mtc_parse_function(mt_mtc_parser *p)
{
    mt_mtc_function *f = mt_arena_new_of(p->program->arena, mt_mtc_function);

    if (!f) {
        p->program->oom = true;
        return;
    }
    f->file = p->file;
    f->result = take_type(p);
    f->name = mt_tok(p)->text;
    f->place = f->end = mt_tok(p)->place;
    if (p->program->function_count >= MT_MTC_MAX_FUNCTIONS) {
        mt_mtc_lexer_stop(&p->lex, f->place, "more than 10000 functions in one app");
        p->ahead[0].kind = MT_TOK_END;
        return;
    }
    add_function(p->program, f);
    p->function = f;
    mt_mtc_advance(p);
    parse_header(p, f);
    parse_function_body(p, f);
    p->function = NULL;
}

static bool is_name_then(const mt_mtc_parser *p, unsigned mark)
{
    return p->ahead[0].kind == MT_TOK_NAME && mt_at_mark(&p->ahead[1], mark);
}

static void nothing_but_functions(mt_mtc_parser *p)
{
    const char *hint = NULL;

    if (mt_tok(p)->kind == MT_TOK_TYPE && p->ahead[1].kind == MT_TOK_NAME)
        hint = "there are no global variables: hand values to functions";
    else if (is_name_then(p, '('))
        hint = "a function begins with the type of its result: void name(…) { … }";
    else if (mt_tok(p)->kind == MT_TOK_NAME && mt_str_eq(mt_tok(p)->text, "import"))
        hint = "all files of an app's folder are one program";
    if (mt_at_mark(mt_tok(p), '}'))
        mt_mtc_syntax(p, NULL, "one '}' too many");
    else
        mt_mtc_syntax(p, hint, "unexpected %s: only functions stand outside of functions",
                      mt_mtc_describe(p));
    p->file->cut |= !mt_at_mark(mt_tok(p), '}');
    recover_outside(p);
}

void mt_mtc_parse(mt_mtc_file *f)
{
    mt_mtc_parser p = {.file = f, .program = f->program};

    mt_mtc_lexer_init(&p.lex, f);
    for (size_t i = 0; i < MT_MTC_AHEAD; i++)
        mt_mtc_lexer_next(&p.lex, &p.ahead[i]);
    while (!at_file_end(&p)) {
        bool typed = p.ahead[0].kind == MT_TOK_TYPE || p.ahead[0].kind == MT_TOK_NAME;

        if (typed && p.ahead[1].kind == MT_TOK_NAME && mt_at_mark(&p.ahead[2], '('))
            mt_mtc_parse_function(&p);
        else
            nothing_but_functions(&p);
    }
    f->program->cut |= f->cut;
}
