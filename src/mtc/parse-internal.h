// SPDX-License-Identifier: Apache-2.0
// Shared by parse.c (functions), parse-stmt.c and parse-expr.c alone.
#pragma once

#include "mtc/lex.h"

enum { MT_MTC_AHEAD = 4 };

// A syntax error is reported once; panic then keeps the parser silent until it has found where to
// go on (the end of the statement, of a head in parentheses, the next function).
typedef struct mt_mtc_parser {
    mt_mtc_lexer lex;
    mt_mtc_file *file;
    mt_mtc_program *program;
    mt_mtc_token ahead[MT_MTC_AHEAD]; // [0] is the token in hand
    mt_mtc_place last_end;            // of the token before it
    mt_mtc_place last_brace;          // the '}' that ended the last block
    unsigned nesting;
    bool panic;
    bool in_statement; // of the outermost expression of a statement, what follows is said there
    bool unwind;       // a function begins inside of a block: all blocks end here
    mt_mtc_function *function;
    mt_mtc_expr spare; // what stands for an expression when memory is over
} mt_mtc_parser;

static inline mt_mtc_token *mt_tok(mt_mtc_parser *p)
{
    return &p->ahead[0];
}

static inline bool mt_at_mark(const mt_mtc_token *t, unsigned mark)
{
    return t->kind == MT_TOK_MARK && t->mark == mark;
}

static inline bool mt_at_key(const mt_mtc_token *t, mt_mtc_keyword keyword)
{
    return t->kind == MT_TOK_KEYWORD && t->keyword == keyword;
}

void mt_mtc_advance(mt_mtc_parser *p);
// A syntax error at the token in hand, unless it or one before was reported already.
void mt_mtc_syntax(mt_mtc_parser *p, const char *hint, const char *fmt, ...) MT_PRINTF(3, 4);
const char *mt_mtc_describe(mt_mtc_parser *p); // the token in hand, for messages
// Consumes the mark. False when it is not there (a syntax error: "')' is missing …").
bool mt_mtc_expect(mt_mtc_parser *p, char mark, const char *after);
// One level deeper, until mt_mtc_leave(). False where that is too deep (reported, all is given up).
bool mt_mtc_enter(mt_mtc_parser *p);
void mt_mtc_leave(mt_mtc_parser *p);

bool mt_mtc_given_up(const mt_mtc_parser *p);        // by the lexer: what it said is enough
bool mt_mtc_begins_function(const mt_mtc_parser *p); // "type name (" and what can be parameters
bool mt_mtc_begins_statement(const mt_mtc_parser *p);
mt_mtc_variable *mt_mtc_new_variable(mt_mtc_parser *p, mt_mtc_type type, const mt_mtc_token *name);
// "type name" in the head of a foreach or catch, or as a parameter; NULL when it is not there.
mt_mtc_variable *mt_mtc_parse_typed_name(mt_mtc_parser *p, const char *what);
void mt_mtc_parse_function(mt_mtc_parser *p);

// parse-stmt.c. From a '{' to its '}'.
mt_mtc_stmt *mt_mtc_parse_block(mt_mtc_parser *p);
// After a syntax error in a head in parentheses: goes on with the body.
void mt_mtc_recover_head(mt_mtc_parser *p);

// parse-expr.c. Never NULL; kind MT_EXPR_BAD when it was not understood.
mt_mtc_expr *mt_mtc_parse_expression(mt_mtc_parser *p);
// As that, and leaves an '=' behind it to the caller.
mt_mtc_expr *mt_mtc_parse_operation(mt_mtc_parser *p);
mt_mtc_expr *mt_mtc_new_expr(mt_mtc_parser *p, mt_mtc_expr_kind kind, mt_mtc_place place);
mt_mtc_expr *mt_mtc_new_name(mt_mtc_parser *p, mt_str name, mt_mtc_place place);
mt_mtc_expr *mt_mtc_new_binary(mt_mtc_parser *p, mt_mtc_op op, mt_mtc_place place,
                               mt_mtc_expr *left, mt_mtc_expr *right);
