// SPDX-License-Identifier: Apache-2.0
// Shared by check.c (functions, statements) and check-expr.c alone.
#pragma once

#include "mtc/ast.h"

typedef struct mt_mtc_checker {
    mt_mtc_program *program;
    mt_mtc_file *file;
    mt_mtc_function *function;
    const mt_mtc_variable *known[MT_MTC_MAX_VARIABLES]; // of all blocks around, the innermost last
    size_t known_count;
    mt_mtc_variable *missing; // names reported as unknown in this function
    unsigned loops;           // around the statement in hand
    bool broke;               // the innermost loop has a break
} mt_mtc_checker;

void mt_mtc_error(mt_mtc_checker *c, mt_mtc_place place, const char *hint, const char *fmt, ...)
    MT_PRINTF(4, 5);
// "an int"
const char *mt_mtc_type_words(mt_mtc_type type);
// Gives an expression its type, and names their meaning. MT_MTC_BAD when it was reported.
mt_mtc_type mt_mtc_check_expr(mt_mtc_checker *c, mt_mtc_expr *e);
// As that, for where a value is needed: a call that gives none is reported.
mt_mtc_type mt_mtc_check_value(mt_mtc_checker *c, mt_mtc_expr *e);
// Makes *slot, checked, fit for a place of the wanted type (an int becomes a decimal). False when
// it does not fit; nothing is reported.
bool mt_mtc_fit(mt_mtc_checker *c, mt_mtc_expr **slot, mt_mtc_type wanted);
// How to make one type of another, NULL when there is no way.
const char *mt_mtc_conversion_hint(mt_mtc_type from, mt_mtc_type to);
// The variable of that name; NULL when it is unknown (reported once in a function).
const mt_mtc_variable *mt_mtc_lookup(mt_mtc_checker *c, mt_str name, mt_mtc_place place);
