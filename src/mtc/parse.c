// SPDX-License-Identifier: Apache-2.0
// Functions and statements, by recursive descent; docs/reference/language.md has the grammar.
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

// The lexer has given up: what it said is enough.
static bool given_up(const mt_mtc_parser *p)
{
    return p->lex.stopped;
}

void mt_mtc_syntax(mt_mtc_parser *p, const char *hint, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    bool silent =
        p->panic || mt_tok(p)->kind == MT_TOK_BAD || (mt_tok(p)->kind == MT_TOK_END && given_up(p));

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

// "type name (", followed by what can only be parameters.
static bool begins_function(const mt_mtc_parser *p)
{
    return p->ahead[0].kind == MT_TOK_TYPE && p->ahead[1].kind == MT_TOK_NAME &&
           mt_at_mark(&p->ahead[2], '(') &&
           (p->ahead[3].kind == MT_TOK_TYPE || mt_at_mark(&p->ahead[3], ')'));
}

static bool begins_statement(const mt_mtc_parser *p)
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

static mt_mtc_variable *new_variable(mt_mtc_parser *p, mt_mtc_type type, const mt_mtc_token *name)
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

// "type name" in the head of a foreach or catch, or as a parameter; NULL when it is not there.
static mt_mtc_variable *parse_typed_name(mt_mtc_parser *p, const char *what)
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
    v = new_variable(p, type, mt_tok(p));
    mt_mtc_advance(p);
    return v;
}

// ---- statements ----

static mt_mtc_stmt *parse_statement(mt_mtc_parser *p);

static mt_mtc_stmt *new_stmt(mt_mtc_parser *p, mt_mtc_stmt_kind kind, mt_mtc_place place)
{
    mt_mtc_stmt *s = mt_arena_new_of(p->program->arena, mt_mtc_stmt);

    if (!s) {
        p->program->oom = true;
        return NULL;
    }
    if (++p->program->nodes > MT_MTC_MAX_NODES && !p->lex.stopped)
        mt_mtc_lexer_stop(&p->lex, place,
                          "the program is too large: more than 200000 expressions and statements");
    s->kind = kind;
    s->place = place;
    return s;
}

// A ';' that is forgotten at the end of a line is said there, and nothing is passed over.
static void expect_semicolon(mt_mtc_parser *p)
{
    if (p->panic)
        return;
    if (mt_at_mark(mt_tok(p), ';')) {
        mt_mtc_advance(p);
        return;
    }
    if (mt_tok(p)->kind == MT_TOK_BAD ||
        (mt_tok(p)->place.line == p->last_end.line && !mt_at_mark(mt_tok(p), '}') &&
         mt_tok(p)->kind != MT_TOK_END)) {
        mt_mtc_syntax(p, NULL, "unexpected %s: ';' ends a statement", mt_mtc_describe(p));
        return;
    }
    if (!(mt_tok(p)->kind == MT_TOK_END && given_up(p)))
        mt_mtc_report(p->file, MT_MTR_ERROR, p->last_end, NULL, "';' is missing");
}

// A variable whose declaration is passed over is known nevertheless, so that its uses make no
// errors of their own.
static mt_mtc_stmt *passed_declaration(mt_mtc_parser *p)
{
    mt_mtc_stmt *s = new_stmt(p, MT_STMT_DECLARE, mt_tok(p)->place);

    if (!s)
        return NULL;
    s->variable = new_variable(p, mt_tok(p)->type, &p->ahead[1]);
    if (!s->variable)
        return NULL;
    s->variable->guessed = true;
    if (s->variable->type == MT_MTC_VOID || s->variable->type == MT_MTC_ERROR)
        s->variable->type = MT_MTC_BAD;
    s->value = mt_mtc_new_expr(p, MT_EXPR_BAD, mt_tok(p)->place);
    return s;
}

// After a syntax error: passes over the rest of the statement, at least one token of it (moved: one
// was taken before the error). Returns a declaration that was in it.
static mt_mtc_stmt *recover(mt_mtc_parser *p, bool moved)
{
    mt_mtc_stmt *found = NULL;
    size_t braces = 0;

    p->panic = false;
    while (mt_tok(p)->kind != MT_TOK_END) {
        bool new_line = mt_tok(p)->place.line > p->last_end.line;

        if (begins_function(p) && mt_tok(p)->place.column == 1)
            break;
        if (braces == 0 && new_line && moved && begins_statement(p))
            break;
        if (braces == 0 && mt_at_mark(mt_tok(p), ';')) {
            mt_mtc_advance(p);
            break;
        }
        if (mt_at_mark(mt_tok(p), '}')) {
            if (braces == 0)
                break;
            if (--braces == 0) {
                mt_mtc_advance(p);
                if (mt_at_mark(mt_tok(p), ';'))
                    mt_mtc_advance(p);
                break;
            }
        } else if (mt_at_mark(mt_tok(p), '{')) {
            braces++;
        } else if (braces == 0 && !found && mt_tok(p)->kind == MT_TOK_TYPE &&
                   p->ahead[1].kind == MT_TOK_NAME) {
            found = passed_declaration(p);
        }
        moved = true;
        mt_mtc_advance(p);
    }
    return found;
}

// After a syntax error in the head of an if, while, for, foreach or catch: goes on with its body.
static void recover_head(mt_mtc_parser *p)
{
    size_t nest = 0;

    if (!p->panic)
        return;
    while (mt_tok(p)->kind != MT_TOK_END && !mt_at_mark(mt_tok(p), '{') &&
           !mt_at_mark(mt_tok(p), '}')) {
        bool closes = mt_at_mark(mt_tok(p), ')');

        nest += mt_at_mark(mt_tok(p), '(');
        if (mt_tok(p)->place.line > p->last_end.line && begins_statement(p))
            break;
        mt_mtc_advance(p);
        if (closes && nest-- == 0)
            break;
    }
    p->panic = false;
}

static mt_mtc_stmt *parse_block(mt_mtc_parser *p)
{
    mt_mtc_place opened = mt_tok(p)->place;
    mt_mtc_stmt *block = new_stmt(p, MT_STMT_BLOCK, opened);
    mt_mtc_stmt **end;

    if (!block || !mt_mtc_enter(p))
        return block;
    end = &block->body;
    mt_mtc_advance(p);
    while (mt_tok(p)->kind != MT_TOK_END && !mt_at_mark(mt_tok(p), '}') && !p->unwind &&
           !p->program->oom) {
        const char *begin = mt_tok(p)->source.data;
        mt_mtc_stmt *s = parse_statement(p);

        if (!s && !p->panic)
            continue;
        if (p->panic) {
            mt_mtc_stmt *passed = recover(p, mt_tok(p)->source.data != begin);

            if (!s)
                s = passed;
            else if (s->kind != MT_STMT_DECLARE)
                s->next = passed;
        }
        *end = s;
        while (*end)
            end = &(*end)->next;
    }
    if (mt_at_mark(mt_tok(p), '}')) {
        p->last_brace = mt_tok(p)->place;
        mt_mtc_advance(p);
    } else if (!p->unwind && !given_up(p)) {
        mt_mtc_report(p->file, MT_MTR_ERROR, mt_tok(p)->place, NULL,
                      "'}' is missing: what opened on line %u, column %u is not closed",
                      opened.line, opened.column);
        p->unwind = true;
        p->function->body_broken = true;
    }
    mt_mtc_leave(p);
    return block;
}

static mt_mtc_stmt *parse_body(mt_mtc_parser *p, const char *what)
{
    mt_mtc_stmt *s;

    if (mt_at_mark(mt_tok(p), '{'))
        return parse_block(p);
    if (mt_at_mark(mt_tok(p), ';')) {
        mt_mtc_report(p->file, MT_MTR_ERROR, mt_tok(p)->place, "{ } is a block that does nothing",
                      "the body of this %s is missing", what);
        mt_mtc_advance(p);
        return new_stmt(p, MT_STMT_BLOCK, mt_tok(p)->place);
    }
    if (mt_tok(p)->kind == MT_TOK_TYPE && p->ahead[1].kind == MT_TOK_NAME && !begins_function(p))
        mt_mtc_report(p->file, MT_MTR_ERROR, mt_tok(p)->place, "put { } around the body",
                      "a declaration that is the whole body of this %s is of no use", what);
    if (!mt_mtc_enter(p))
        return NULL;
    s = parse_statement(p);
    mt_mtc_leave(p);
    return s;
}

// "(" of a head; false when it is not there (then the statement is given up).
static bool open_head(mt_mtc_parser *p, const char *word)
{
    return mt_mtc_expect(p, '(', mt_mtc_printf(p->program, "'%s'", word));
}

static void close_head(mt_mtc_parser *p, const char *what)
{
    if (!p->panic)
        (void)mt_mtc_expect(p, ')', what);
    recover_head(p);
}

static mt_mtc_stmt *parse_declaration(mt_mtc_parser *p)
{
    mt_mtc_stmt *s = new_stmt(p, MT_STMT_DECLARE, mt_tok(p)->place);
    mt_mtc_place place;

    if (!s)
        return NULL;
    s->variable = parse_typed_name(p, "a declaration");
    if (!s->variable)
        return NULL;
    place = mt_tok(p)->place;
    if (mt_at_mark(mt_tok(p), '=')) {
        mt_mtc_advance(p);
        s->value = mt_mtc_parse_expression(p);
        if (!p->panic && mt_at_mark(mt_tok(p), ','))
            mt_mtc_syntax(p, NULL, "one declaration declares one variable: end it with ';'");
        return s;
    }
    s->value = mt_mtc_new_expr(p, MT_EXPR_BAD, place);
    if (mt_at_mark(mt_tok(p), ';'))
        mt_mtc_report(p->file, MT_MTR_ERROR, place, NULL,
                      "variable %s has no first value: write = and one",
                      mt_mtc_quote(p->program, s->variable->name));
    else
        mt_mtc_syntax(
            p, mt_at_key(mt_tok(p), MT_KEY_IN) ? "foreach (string item in list) { … }" : NULL,
            "unexpected %s: '=' and a first value are expected after %s", mt_mtc_describe(p),
            mt_mtc_quote(p->program, s->variable->name));
    return s;
}

static const struct {
    unsigned mark;
    mt_mtc_op op;
} changes[] = {
    {MT_MARK2('+', '='), MT_OP_ADD},       {MT_MARK2('-', '='), MT_OP_SUBTRACT},
    {MT_MARK2('*', '='), MT_OP_MULTIPLY},  {MT_MARK2('/', '='), MT_OP_DIVIDE},
    {MT_MARK2('%', '='), MT_OP_REMAINDER}, {MT_MARK2('+', '+'), MT_OP_ADD},
    {MT_MARK2('-', '-'), MT_OP_SUBTRACT},
};

static bool is_step(const mt_mtc_token *t)
{
    return mt_at_mark(t, MT_MARK2('+', '+')) || mt_at_mark(t, MT_MARK2('-', '-'));
}

static bool is_change(const mt_mtc_token *t)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(changes); i++) {
        if (mt_at_mark(t, changes[i].mark))
            return true;
    }
    return mt_at_mark(t, '=');
}

// "x = e", "x += e", "x++" and "++x".
static mt_mtc_stmt *parse_change(mt_mtc_parser *p)
{
    bool before = is_step(mt_tok(p));
    const mt_mtc_token name = p->ahead[before ? 1 : 0], mark = p->ahead[before ? 0 : 1];
    mt_mtc_stmt *s = new_stmt(p, MT_STMT_ASSIGN, name.place);
    mt_mtc_expr *value, *old;

    if (!s)
        return NULL;
    s->text = name.text;
    mt_mtc_advance(p);
    mt_mtc_advance(p);
    if (is_step(&mark)) {
        s->step_mark = mt_at_mark(&mark, MT_MARK2('+', '+')) ? "++" : "--";
        value = mt_mtc_new_expr(p, MT_EXPR_INT, mark.place);
        if (!p->program->oom)
            value->number = 1;
    } else {
        value = mt_mtc_parse_expression(p);
    }
    s->value = value;
    for (size_t i = 0; i < MT_ARRAY_SIZE(changes); i++) {
        if (!mt_at_mark(&mark, changes[i].mark))
            continue;
        old = mt_mtc_new_name(p, name.text, name.place);
        s->value = mt_mtc_new_binary(p, changes[i].op, mark.place, old, value);
    }
    return s;
}

static bool ends_statement(const mt_mtc_parser *p)
{
    return mt_at_mark(&p->ahead[0], ';') || mt_at_mark(&p->ahead[0], ')') ||
           mt_at_mark(&p->ahead[0], '}') || p->ahead[0].kind == MT_TOK_END ||
           p->ahead[0].place.line > p->last_end.line;
}

// An expression that stands where a statement does and is no call.
static void no_statement(mt_mtc_parser *p, const mt_mtc_expr *e, mt_mtc_place place)
{
    static const char *const words[] = {"if",    "else",     "while",  "for",   "foreach",
                                        "break", "continue", "return", "throw", "try"};
    const char *near =
        e->kind == MT_EXPR_NAME ? mt_nearest_of(e->text, words, MT_ARRAY_SIZE(words)) : NULL;

    if (ends_statement(p))
        mt_mtc_report(p->file, MT_MTR_ERROR, place, NULL,
                      "this does nothing: a statement is a call, an assignment or a declaration");
    else
        mt_mtc_syntax(p, near ? mt_mtc_printf(p->program, "did you mean '%s'?", near) : NULL,
                      "unexpected %s: ';' ends a statement", mt_mtc_describe(p));
}

static mt_mtc_stmt *parse_call(mt_mtc_parser *p)
{
    mt_mtc_place place = mt_tok(p)->place;
    mt_mtc_expr *e;
    mt_mtc_stmt *s;

    p->in_statement = true;
    e = mt_mtc_parse_operation(p);
    p->in_statement = false;
    if (p->panic || p->program->oom)
        return NULL;
    if (is_change(mt_tok(p))) {
        mt_mtc_syntax(p, NULL, "only a variable can be assigned to");
        return NULL;
    }
    if (e->kind == MT_EXPR_BAD)
        return NULL;
    if (e->kind != MT_EXPR_CALL || e->in_parentheses) {
        no_statement(p, e, place);
        return NULL;
    }
    s = new_stmt(p, MT_STMT_CALL, place);
    if (s)
        s->value = e;
    return s;
}

// What may stand in the head of a for, and as a statement of its own.
static mt_mtc_stmt *parse_simple(mt_mtc_parser *p)
{
    const mt_mtc_token *t = mt_tok(p);

    if (t->kind == MT_TOK_TYPE || (t->kind == MT_TOK_NAME && p->ahead[1].kind == MT_TOK_NAME))
        return parse_declaration(p);
    if ((t->kind == MT_TOK_NAME && is_change(&p->ahead[1])) ||
        (is_step(t) && p->ahead[1].kind == MT_TOK_NAME))
        return parse_change(p);
    return parse_call(p);
}

static mt_mtc_stmt *parse_if(mt_mtc_parser *p)
{
    mt_mtc_stmt *first = NULL, **end = &first;

    // "else if" goes on in this loop, so that a long row of them is not nesting.
    for (;;) {
        mt_mtc_stmt *s = new_stmt(p, MT_STMT_IF, mt_tok(p)->place);

        if (!s)
            return first;
        *end = s;
        mt_mtc_advance(p);
        if (!open_head(p, "if"))
            recover_head(p);
        else {
            s->value = mt_mtc_parse_expression(p);
            close_head(p, "the condition");
        }
        if (!s->value)
            s->value = mt_mtc_new_expr(p, MT_EXPR_BAD, s->place);
        s->body = parse_body(p, "if");
        if (p->panic || p->unwind || !mt_at_key(mt_tok(p), MT_KEY_ELSE))
            return first;
        mt_mtc_advance(p);
        end = &s->otherwise;
        if (!mt_at_key(mt_tok(p), MT_KEY_IF))
            break;
    }
    *end = parse_body(p, "else");
    return first;
}

static mt_mtc_stmt *parse_while(mt_mtc_parser *p)
{
    mt_mtc_stmt *s = new_stmt(p, MT_STMT_WHILE, mt_tok(p)->place);

    mt_mtc_advance(p);
    if (!s)
        return NULL;
    if (!open_head(p, "while"))
        recover_head(p);
    else {
        s->value = mt_mtc_parse_expression(p);
        close_head(p, "the condition");
    }
    if (!s->value)
        s->value = mt_mtc_new_expr(p, MT_EXPR_BAD, s->place);
    s->body = parse_body(p, "while");
    return s;
}

static void parse_for_head(mt_mtc_parser *p, mt_mtc_stmt *s)
{
    if (!mt_at_mark(mt_tok(p), ';'))
        s->init = parse_simple(p);
    if (!mt_mtc_expect(p, ';', "the beginning of the loop"))
        return;
    if (!mt_at_mark(mt_tok(p), ';'))
        s->value = mt_mtc_parse_expression(p);
    if (!mt_mtc_expect(p, ';', "the condition"))
        return;
    if (!mt_at_mark(mt_tok(p), ')'))
        s->step = parse_simple(p);
    if (s->step && s->step->kind == MT_STMT_DECLARE) {
        mt_mtc_report(p->file, MT_MTR_ERROR, s->step->place, NULL,
                      "the step of a for cannot declare a variable");
        s->step = NULL;
    }
}

static mt_mtc_stmt *parse_for(mt_mtc_parser *p)
{
    mt_mtc_stmt *s = new_stmt(p, MT_STMT_FOR, mt_tok(p)->place);

    mt_mtc_advance(p);
    if (!s)
        return NULL;
    if (open_head(p, "for"))
        parse_for_head(p, s);
    close_head(p, "the step");
    s->body = parse_body(p, "for");
    return s;
}

static mt_mtc_stmt *parse_foreach(mt_mtc_parser *p)
{
    mt_mtc_stmt *s = new_stmt(p, MT_STMT_FOREACH, mt_tok(p)->place);

    mt_mtc_advance(p);
    if (!s)
        return NULL;
    if (open_head(p, "foreach") && (s->variable = parse_typed_name(p, "the item of a foreach"))) {
        s->variable->fixed = "the variable of a foreach";
        if (mt_at_key(mt_tok(p), MT_KEY_IN)) {
            mt_mtc_advance(p);
            s->value = mt_mtc_parse_expression(p);
        } else {
            mt_mtc_syntax(p, "foreach (string item in list) { … }",
                          "unexpected %s: 'in' is expected after the name of the item",
                          mt_mtc_describe(p));
        }
    }
    close_head(p, "the list");
    if (!s->value)
        s->value = mt_mtc_new_expr(p, MT_EXPR_BAD, s->place);
    s->body = parse_body(p, "foreach");
    return s;
}

static void parse_catch_head(mt_mtc_parser *p, mt_mtc_stmt *s)
{
    if (!mt_mtc_expect(p, '(', "'catch'"))
        return;
    if (mt_tok(p)->kind != MT_TOK_TYPE || mt_tok(p)->type != MT_MTC_ERROR) {
        mt_mtc_syntax(p, "catch (error e) { … }", "unexpected %s: a catch takes an error",
                      mt_mtc_describe(p));
        return;
    }
    s->variable = parse_typed_name(p, "what a catch takes");
    if (s->variable)
        s->variable->fixed = "the variable of a catch";
}

static mt_mtc_stmt *parse_try(mt_mtc_parser *p)
{
    mt_mtc_stmt *s = new_stmt(p, MT_STMT_TRY, mt_tok(p)->place);

    mt_mtc_advance(p);
    if (!s)
        return NULL;
    if (!mt_at_mark(mt_tok(p), '{')) {
        mt_mtc_syntax(p, "try { … } catch (error e) { … }",
                      "unexpected %s: '{' is expected after 'try'", mt_mtc_describe(p));
        return NULL;
    }
    s->body = parse_block(p);
    if (p->panic || p->unwind)
        return s;
    if (!mt_at_key(mt_tok(p), MT_KEY_CATCH)) {
        mt_mtc_syntax(p, "try { … } catch (error e) { … }", "unexpected %s: a try needs its catch",
                      mt_mtc_describe(p));
        return s;
    }
    mt_mtc_advance(p);
    parse_catch_head(p, s);
    close_head(p, "the name of the error");
    if (mt_at_mark(mt_tok(p), '{'))
        s->otherwise = parse_block(p);
    else
        mt_mtc_syntax(p, "try { … } catch (error e) { … }",
                      "unexpected %s: '{' is expected after the head of a catch",
                      mt_mtc_describe(p));
    return s;
}

static mt_mtc_stmt *parse_word(mt_mtc_parser *p, mt_mtc_stmt_kind kind)
{
    mt_mtc_stmt *s = new_stmt(p, kind, mt_tok(p)->place);

    mt_mtc_advance(p);
    if (!s)
        return NULL;
    if (kind == MT_STMT_THROW || (kind == MT_STMT_RETURN && !mt_at_mark(mt_tok(p), ';') &&
                                  !mt_at_mark(mt_tok(p), '}') && mt_tok(p)->kind != MT_TOK_END))
        s->value = mt_mtc_parse_expression(p);
    expect_semicolon(p);
    return s;
}

static mt_mtc_stmt *parse_keyword(mt_mtc_parser *p)
{
    switch (mt_tok(p)->keyword) {
    case MT_KEY_IF:
        return parse_if(p);
    case MT_KEY_WHILE:
        return parse_while(p);
    case MT_KEY_FOR:
        return parse_for(p);
    case MT_KEY_FOREACH:
        return parse_foreach(p);
    case MT_KEY_TRY:
        return parse_try(p);
    case MT_KEY_BREAK:
        return parse_word(p, MT_STMT_BREAK);
    case MT_KEY_CONTINUE:
        return parse_word(p, MT_STMT_CONTINUE);
    case MT_KEY_RETURN:
        return parse_word(p, MT_STMT_RETURN);
    case MT_KEY_THROW:
        return parse_word(p, MT_STMT_THROW);
    case MT_KEY_ELSE:
        mt_mtc_syntax(p, NULL, "an 'else' without its if");
        break;
    case MT_KEY_CATCH:
        mt_mtc_syntax(p, NULL, "a 'catch' without its try");
        break;
    default:
        mt_mtc_syntax(p, NULL, "unexpected %s: a statement is expected here", mt_mtc_describe(p));
        break;
    }
    mt_mtc_advance(p);
    return NULL;
}

// Statements of other languages. {word, what to write}
static const char *const foreign_statements[][2] = {
    {"switch", "write if … else if …"},
    {"do", "write while (true) { … if (…) break; }"},
    {"finally", "write what is to be done in the catch and behind it"},
    {"goto", NULL},
    {"yield", NULL},
    {"await", "calls whose names end in Await wait"},
    {"const", "leave it out"},
    {"async", NULL},
};

static bool foreign_statement(mt_mtc_parser *p)
{
    if (mt_tok(p)->kind != MT_TOK_NAME || is_change(&p->ahead[1]))
        return false;
    for (size_t i = 0; i < MT_ARRAY_SIZE(foreign_statements); i++) {
        if (mt_str_eq(mt_tok(p)->text, foreign_statements[i][0])) {
            mt_mtc_syntax(p, foreign_statements[i][1], "there is no '%s' in this language",
                          foreign_statements[i][0]);
            if (i == 0 || !mt_at_mark(&p->ahead[1], '{'))
                return true;
            // The block of a do or finally is read; what is behind it is passed over.
            p->panic = false;
            mt_mtc_advance(p);
            (void)parse_block(p);
            p->panic = mt_at_key(mt_tok(p), MT_KEY_WHILE);
            return true;
        }
    }
    return false;
}

static void parse_function(mt_mtc_parser *p);

// At the beginning of a line a '}' is missing more likely than not: all blocks end here. Else it
// was meant to stand inside, and is read, so that calls of it make no errors.
static void function_in_function(mt_mtc_parser *p)
{
    mt_mtc_function *around = p->function;
    bool first = mt_tok(p)->place.column == 1;

    mt_mtc_syntax(p, first ? "is a '}' missing before it?" : "put it beside this one",
                  "a function cannot stand in a function");
    p->panic = false;
    p->unwind = first;
    if (first || !mt_mtc_enter(p))
        return;
    parse_function(p);
    mt_mtc_leave(p);
    p->function = around;
}

static mt_mtc_stmt *parse_statement(mt_mtc_parser *p)
{
    mt_mtc_stmt *s;

    if (mt_at_mark(mt_tok(p), '{'))
        return parse_block(p);
    if (mt_at_mark(mt_tok(p), ';')) {
        mt_mtc_report(p->file, MT_MTR_ERROR, mt_tok(p)->place, NULL, "one ';' too many");
        mt_mtc_advance(p);
        return NULL;
    }
    if (begins_function(p)) {
        function_in_function(p);
        return NULL;
    }
    if (mt_tok(p)->kind == MT_TOK_KEYWORD && mt_tok(p)->keyword < MT_KEY_TRUE)
        return parse_keyword(p);
    if (foreign_statement(p))
        return NULL;
    s = parse_simple(p);
    expect_semicolon(p);
    return s;
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
    while (!at_file_end(p) && !begins_function(p));
}

static void parse_parameters(mt_mtc_parser *p, mt_mtc_function *f)
{
    mt_mtc_variable **end = &f->parameters;

    if (mt_at_mark(mt_tok(p), ')'))
        return;
    for (;;) {
        mt_mtc_variable *v = parse_typed_name(p, "a parameter");

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
    recover_head(p);
}

static void parse_function_body(mt_mtc_parser *p, mt_mtc_function *f)
{
    if (mt_at_mark(mt_tok(p), '{')) {
        f->body = parse_block(p);
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
    if (!begins_function(p))
        recover_outside(p);
    p->panic = false;
}

static void parse_function(mt_mtc_parser *p)
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
            parse_function(&p);
        else
            nothing_but_functions(&p);
    }
    f->program->cut |= f->cut;
}
