// SPDX-License-Identifier: Apache-2.0
// The tree of a program, for the files of src/mtc alone. All of it is in the program's arena; names
// are slices of the sources. After a check without errors every expression has its type, and every
// name what it means.
//
// How deep it is: statements nest MT_MTC_MAX_NESTING deep, an expression is at most
// MT_MTC_MAX_CHAIN + 1 high, so that walking it may recurse. An "else if" is not nesting: otherwise
// of an if that is an if again is walked in a loop.
#pragma once

#include "base/arena.h"
#include "mtc/mtc.h"

typedef struct mt_mtc_file mt_mtc_file;
typedef struct mt_mtc_expr mt_mtc_expr;
typedef struct mt_mtc_stmt mt_mtc_stmt;
typedef struct mt_mtc_function mt_mtc_function;

typedef struct mt_mtc_place {
    unsigned line, column; // from 1, columns in characters; 0 and 0: the whole file
} mt_mtc_place;

typedef struct mt_mtc_variable {
    mt_str name;
    mt_mtc_type type;
    mt_mtc_place place;
    unsigned slot;                // once code is made
    bool guessed;                 // of a declaration that was passed over
    const char *fixed;            // why it cannot be assigned to ("the variable of a foreach")
    struct mt_mtc_variable *next; // of a function's parameters
} mt_mtc_variable;

typedef enum mt_mtc_op {
    MT_OP_OR,
    MT_OP_AND,
    MT_OP_EQUAL,
    MT_OP_UNEQUAL,
    MT_OP_LESS,
    MT_OP_LESS_EQUAL,
    MT_OP_GREATER,
    MT_OP_GREATER_EQUAL,
    MT_OP_ADD, // with type string: joins
    MT_OP_SUBTRACT,
    MT_OP_MULTIPLY,
    MT_OP_DIVIDE,
    MT_OP_REMAINDER,
    MT_OP_NEGATE,
    MT_OP_NOT,
} mt_mtc_op;

typedef enum mt_mtc_expr_kind {
    MT_EXPR_BAD,
    MT_EXPR_BOOL,    // truth
    MT_EXPR_INT,     // number
    MT_EXPR_DECIMAL, // text: digits, a point, digits
    MT_EXPR_STRING,  // text: the value
    MT_EXPR_NAME,    // text, variable
    MT_EXPR_CALL,    // text; function or builtin; first: arguments, linked by next
    MT_EXPR_UNARY,   // op, left
    MT_EXPR_BINARY,  // op, left, right
    MT_EXPR_CHOICE,  // first ? left : right
    MT_EXPR_WIDEN,   // left, an int, as decimal; put in by the check
} mt_mtc_expr_kind;

struct mt_mtc_expr {
    mt_mtc_expr_kind kind;
    mt_mtc_type type;
    mt_mtc_op op;
    mt_mtc_place place; // of a binary one: its operator
    mt_mtc_place begin; // where it begins
    unsigned height;
    bool truth;
    bool in_parentheses;
    bool lone_minimum; // the int literal 9223372036854775808, good only after a minus sign
    int64_t number;
    mt_str text;
    mt_mtc_expr *left, *right, *first, *next;
    size_t count; // of arguments
    const mt_mtc_variable *variable;
    const mt_mtc_function *function;
    const mt_mtc_builtin *builtin;
};

typedef enum mt_mtc_stmt_kind {
    MT_STMT_BLOCK,   // body: linked by next
    MT_STMT_DECLARE, // variable, value
    MT_STMT_ASSIGN,  // text, target, value (of x += e and x++: the whole x + e)
    MT_STMT_CALL,    // value
    MT_STMT_IF,      // value, body, otherwise
    MT_STMT_WHILE,   // value, body
    MT_STMT_FOR,     // init, value, step, body; each but body may be NULL
    MT_STMT_FOREACH, // variable, value, body
    MT_STMT_BREAK,
    MT_STMT_CONTINUE,
    MT_STMT_RETURN, // value, maybe NULL
    MT_STMT_THROW,  // value
    MT_STMT_TRY,    // body, variable, otherwise: the catch's block
} mt_mtc_stmt_kind;

struct mt_mtc_stmt {
    mt_mtc_stmt_kind kind;
    mt_mtc_place place;
    mt_str text;
    const char *step_mark; // "++" or "--" of an assignment that was written so; else NULL
    mt_mtc_expr *value;
    mt_mtc_variable *variable;
    const mt_mtc_variable *target;
    mt_mtc_stmt *body, *otherwise, *init, *step, *next;
};

struct mt_mtc_function {
    mt_mtc_file *file;
    mt_str name;
    mt_mtc_type result;
    mt_mtc_place place; // of the name
    mt_mtc_place end;   // of the closing brace
    mt_mtc_variable *parameters;
    size_t count;
    mt_mtc_stmt *body;
    bool header_broken; // its parameters are not known
    bool body_broken;   // a part of its body was not understood
    size_t number;      // in source order
    mt_mtc_function *next;
};

struct mt_mtc_file {
    mt_mtc_program *program;
    const char *path;
    mt_str text; // without a BOM
    size_t errors;
    bool cut; // functions of it may be missing from the program
};

struct mt_mtc_program {
    mt_arena *arena;
    mt_mtr_diags *diags;
    mt_mtc_file *files;
    size_t file_count;
    size_t nodes;
    mt_mtc_function *first, **end; // in source order
    size_t function_count;
    // By name, so that a hostile choice of names cannot make looking one up slow.
    mt_mtc_function **by_name;
    const mt_mtc_builtin **builtins;
    size_t builtin_count;
    struct mt_mtc_code *code; // once it is ready
    bool cut;                 // of one of its files
    bool failed;
    bool oom;
};

// ---- reports ----

void mt_mtc_report(mt_mtc_file *f, mt_mtr_severity severity, mt_mtc_place place, const char *hint,
                   const char *fmt, ...) MT_PRINTF(5, 6);
// In the program's arena; "" when out of memory (then the program says so).
const char *mt_mtc_printf(mt_mtc_program *p, const char *fmt, ...) MT_PRINTF(2, 3);
// 'name', cut at 60 characters, fit to be shown.
const char *mt_mtc_quote(mt_mtc_program *p, mt_str text);
bool mt_mtc_same(mt_str a, mt_str b);

// ---- built-ins ----

size_t mt_mtc_builtin_row(const mt_mtc_builtin *b); // of builtins.def, families counted

// ---- stages ----

// Reads the functions of a file into its program. Faults are reported.
void mt_mtc_parse(mt_mtc_file *f);
// Looks up in by_name and builtins; NULL when there is none. Of several functions of one name the
// first.
mt_mtc_function *mt_mtc_program_function(const mt_mtc_program *p, mt_str name);
const mt_mtc_builtin *mt_mtc_program_builtin(const mt_mtc_program *p, mt_str name);
// Checks what was parsed: names, types, ways through functions, main.
void mt_mtc_resolve(mt_mtc_program *p, size_t main_file);
