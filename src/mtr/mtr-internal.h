// SPDX-License-Identifier: Apache-2.0
// Shared by the files of src/mtr alone: the lexer (used by parser and formatter) and the report
// that takes a va_list.
#pragma once

#include "mtr/mtr.h"

typedef enum mt_token_kind {
    MT_TOKEN_END,
    MT_TOKEN_WORD,    // [A-Za-z_][A-Za-z0-9_-]*
    MT_TOKEN_STRING,  // text: the value; heredocs too
    MT_TOKEN_NUMBER,  // text: as written
    MT_TOKEN_MARK,    // one of = . , : ( ) [ ] { } @
    MT_TOKEN_COMMENT, // only when asked for; text: as written, without the line end
    MT_TOKEN_BAD,     // reported already; stands for a value
} mt_token_kind;

typedef struct mt_token {
    mt_token_kind kind;
    char mark;
    bool line_start; // the first token of its line
    bool heredoc;
    mt_str text;
    mt_str source; // as written
    unsigned line, column;
    unsigned last_line; // where it ends
} mt_token;

typedef struct mt_lexer {
    mt_mtr_file *file;
    const char *p, *end;
    unsigned line, column;
    bool line_start;
    bool comments; // give comments as tokens
    bool stopped;  // only MT_TOKEN_END comes from now on
} mt_lexer;

// Refuses (with a report, stopped) what is too large, no UTF-8 or holds a NUL. Skips a BOM.
void mt_lexer_init(mt_lexer *l, mt_mtr_file *file);
void mt_lexer_next(mt_lexer *l, mt_token *ret);
// The token just given is followed by "=" or by ".word", so it begins a member.
bool mt_lexer_at_assignment(const mt_lexer *l);
// Reports and gives up on the rest of the file.
void mt_lexer_stop(mt_lexer *l, unsigned line, unsigned column, const char *fmt, ...)
    MT_PRINTF(4, 5);

// Text for messages: 'sales.csv', cut at 60 characters. In the file's arena; never NULL.
const char *mt_mtr_quote(mt_mtr_file *f, mt_str text);
const char *mt_mtr_printf(mt_mtr_file *f, const char *fmt, ...) MT_PRINTF(2, 3); // NULL: no memory
