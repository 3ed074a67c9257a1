// SPDX-License-Identifier: Apache-2.0
// Words of the app language. For the parser alone.
#pragma once

#include "mtc/ast.h"

typedef enum mt_mtc_token_kind {
    MT_TOK_END,
    MT_TOK_NAME,
    MT_TOK_INT,     // text: the digits
    MT_TOK_DECIMAL, // text: as written
    MT_TOK_STRING,  // text: the value
    MT_TOK_BAD,     // reported already; stands for a value
    MT_TOK_MARK,    // mark
    MT_TOK_KEYWORD, // keyword
    MT_TOK_TYPE,    // type; void and error, too
} mt_mtc_token_kind;

typedef enum mt_mtc_keyword {
    MT_KEY_IF,
    MT_KEY_ELSE,
    MT_KEY_WHILE,
    MT_KEY_FOR,
    MT_KEY_FOREACH,
    MT_KEY_IN,
    MT_KEY_BREAK,
    MT_KEY_CONTINUE,
    MT_KEY_RETURN,
    MT_KEY_THROW,
    MT_KEY_TRY,
    MT_KEY_CATCH,
    MT_KEY_TRUE,
    MT_KEY_FALSE,
    MT_KEY_NULL,
} mt_mtc_keyword;

// A mark of up to three characters as a number: MT_MARK2('<', '=').
#define MT_MARK2(a, b)    ((unsigned)(a) | (unsigned)(b) << 8)
#define MT_MARK3(a, b, c) (MT_MARK2(a, b) | (unsigned)(c) << 16)

typedef struct mt_mtc_token {
    mt_mtc_token_kind kind;
    mt_mtc_keyword keyword;
    mt_mtc_type type;
    unsigned mark;
    mt_str text;
    mt_str source; // as written
    bool unclosed; // a string without its closing quote
    mt_mtc_place place, end;
} mt_mtc_token;

typedef struct mt_mtc_lexer {
    mt_mtc_file *file;
    const char *p, *stop;
    unsigned line, column;
    bool stopped; // only MT_TOK_END comes from now on
} mt_mtc_lexer;

// Refuses (reported, stopped) what is too large, no UTF-8 or holds a NUL.
void mt_mtc_lexer_init(mt_mtc_lexer *l, mt_mtc_file *file);
void mt_mtc_lexer_next(mt_mtc_lexer *l, mt_mtc_token *ret);
// Reports and gives up on the rest of the file.
void mt_mtc_lexer_stop(mt_mtc_lexer *l, mt_mtc_place place, const char *message);
