// SPDX-License-Identifier: Apache-2.0
// Statements, by recursive descent.
#include "mtc/parse-internal.h"

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
    if (!(mt_tok(p)->kind == MT_TOK_END && mt_mtc_given_up(p)))
        mt_mtc_report(p->file, MT_MTR_ERROR, p->last_end, NULL, "';' is missing");
}

// A variable whose declaration is passed over is known nevertheless, so that its uses make no
// errors of their own.
static mt_mtc_stmt *passed_declaration(mt_mtc_parser *p)
{
    mt_mtc_stmt *s = new_stmt(p, MT_STMT_DECLARE, mt_tok(p)->place);

    if (!s)
        return NULL;
    s->variable = mt_mtc_new_variable(p, mt_tok(p)->type, &p->ahead[1]);
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

        if (mt_mtc_begins_function(p) && mt_tok(p)->place.column == 1)
            break;
        if (braces == 0 && new_line && moved && mt_mtc_begins_statement(p))
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

void mt_mtc_recover_head(mt_mtc_parser *p)
{
    size_t nest = 0;

    if (!p->panic)
        return;
    while (mt_tok(p)->kind != MT_TOK_END && !mt_at_mark(mt_tok(p), '{') &&
           !mt_at_mark(mt_tok(p), '}')) {
        bool closes = mt_at_mark(mt_tok(p), ')');

        nest += mt_at_mark(mt_tok(p), '(');
        if (mt_tok(p)->place.line > p->last_end.line && mt_mtc_begins_statement(p))
            break;
        mt_mtc_advance(p);
        if (closes && nest-- == 0)
            break;
    }
    p->panic = false;
}

mt_mtc_stmt *mt_mtc_parse_block(mt_mtc_parser *p)
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
    } else if (!p->unwind && !mt_mtc_given_up(p)) {
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
        return mt_mtc_parse_block(p);
    if (mt_at_mark(mt_tok(p), ';')) {
        mt_mtc_report(p->file, MT_MTR_ERROR, mt_tok(p)->place, "{ } is a block that does nothing",
                      "the body of this %s is missing", what);
        mt_mtc_advance(p);
        return new_stmt(p, MT_STMT_BLOCK, mt_tok(p)->place);
    }
    if (mt_tok(p)->kind == MT_TOK_TYPE && p->ahead[1].kind == MT_TOK_NAME &&
        !mt_mtc_begins_function(p))
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
    mt_mtc_recover_head(p);
}

static mt_mtc_stmt *parse_declaration(mt_mtc_parser *p)
{
    mt_mtc_stmt *s = new_stmt(p, MT_STMT_DECLARE, mt_tok(p)->place);
    mt_mtc_place place;

    if (!s)
        return NULL;
    s->variable = mt_mtc_parse_typed_name(p, "a declaration");
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

static void parse_condition(mt_mtc_parser *p, mt_mtc_stmt *s, const char *word)
{
    if (!open_head(p, word)) {
        mt_mtc_recover_head(p);
    } else {
        s->value = mt_mtc_parse_expression(p);
        close_head(p, "the condition");
    }
    if (!s->value)
        s->value = mt_mtc_new_expr(p, MT_EXPR_BAD, s->place);
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
        parse_condition(p, s, "if");
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
    parse_condition(p, s, "while");
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
    if (open_head(p, "foreach") &&
        (s->variable = mt_mtc_parse_typed_name(p, "the item of a foreach"))) {
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
    s->variable = mt_mtc_parse_typed_name(p, "what a catch takes");
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
    s->body = mt_mtc_parse_block(p);
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
        s->otherwise = mt_mtc_parse_block(p);
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
            (void)mt_mtc_parse_block(p);
            p->panic = mt_at_key(mt_tok(p), MT_KEY_WHILE);
            return true;
        }
    }
    return false;
}

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
    mt_mtc_parse_function(p);
    mt_mtc_leave(p);
    p->function = around;
}

static mt_mtc_stmt *parse_statement(mt_mtc_parser *p)
{
    mt_mtc_stmt *s;

    if (mt_at_mark(mt_tok(p), '{'))
        return mt_mtc_parse_block(p);
    if (mt_at_mark(mt_tok(p), ';')) {
        mt_mtc_report(p->file, MT_MTR_ERROR, mt_tok(p)->place, NULL, "one ';' too many");
        mt_mtc_advance(p);
        return NULL;
    }
    if (mt_mtc_begins_function(p)) {
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
