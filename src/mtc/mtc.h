// SPDX-License-Identifier: Apache-2.0
// The app language (docs/reference/language.md): the sources of one app in, a checked program and
// diagnostics out. No I/O. All errors of all files are found in one go. Hostile input is bounded by
// the limits below. Not thread-safe: one thread per program and its mt_mtr_diags.
#pragma once

#include "mtr/mtr.h"

enum {
    MT_MTC_MAX_BYTES = 1024 * 1024, // of one file
    MT_MTC_MAX_FILES = 100,
    MT_MTC_MAX_TOTAL_BYTES = 4 * 1024 * 1024,
    MT_MTC_MAX_NESTING = 200,  // blocks, parentheses, signs, within each other
    MT_MTC_MAX_CHAIN = 1000,   // operators in a row: how high a tree of expressions gets
    MT_MTC_MAX_NODES = 200000, // expressions and statements
    MT_MTC_MAX_FUNCTIONS = 10000,
    MT_MTC_MAX_PARAMETERS = 64,  // of a function of the program
    MT_MTC_MAX_VARIABLES = 1000, // known at one place
    MT_MTC_MAX_NAME = 128,
    MT_MTC_MAX_DIGITS = 38, // of a decimal
    MT_MTC_MAX_SCALE = 28,  // of them after the point
};

// ---- types ----

typedef enum mt_mtc_type {
    MT_MTC_BAD, // of what was reported already: whoever meets it says nothing more
    MT_MTC_BOOL,
    MT_MTC_INT,
    MT_MTC_DECIMAL,
    MT_MTC_STRING,
    MT_MTC_GUID,
    MT_MTC_JSON_OBJECT,
    MT_MTC_JSON_ARRAY,
    MT_MTC_VOID,
    MT_MTC_ERROR,
} mt_mtc_type;

const char *mt_mtc_type_word(mt_mtc_type type); // "jsonObject"
// False when there is no such type. error is one.
bool mt_mtc_type_by_word(mt_str word, mt_mtc_type *ret);

// ---- built-ins ----

typedef enum mt_mtc_kind {
    MT_MTC_PURE,  // computes
    MT_MTC_READ,  // asks something outside; the result is kept
    MT_MTC_START, // starts something, once
    MT_MTC_WRITE, // done twice it leaves the same
} mt_mtc_kind;

enum { MT_MTC_BUILTIN_PARAMETERS = 6 };

typedef struct mt_mtc_parameter {
    mt_mtc_type type;
    const char *name;
} mt_mtc_parameter;

typedef struct mt_mtc_builtin {
    const char *name;
    mt_mtc_kind kind;
    mt_mtc_type result;
    const char *doc; // sentences, Markdown
    mt_mtc_parameter parameters[MT_MTC_BUILTIN_PARAMETERS];
    size_t count;
} mt_mtc_builtin;

const mt_mtc_builtin *mt_mtc_builtin_at(size_t i); // in the order of the table; NULL past its end
const mt_mtc_builtin *mt_mtc_builtin_find(mt_str name);     // NULL when there is none
const char *mt_mtc_builtin_family(const mt_mtc_builtin *b); // "Capsules"
const char *mt_mtc_kind_word(mt_mtc_kind kind);             // "pure"
// Appends "guid CapsuleStart(string capsule, …)".
int mt_mtc_builtin_signature(const mt_mtc_builtin *b, mt_buf *out);
// The reference page, Markdown.
int mt_mtc_write_docs(mt_buf *out);

// ---- programs ----

// The bytes must outlive the program.
typedef struct mt_mtc_source {
    const char *path; // as diagnostics show it
    mt_str text;
} mt_mtc_source;

typedef struct mt_mtc_program mt_mtc_program;

// Checks an app. main_file is the index of the source that holds main; SIZE_MAX when there is none
// (reported on the first source). Faults and warnings go to diags, which are not sorted. NULL only
// when out of memory.
mt_mtc_program *mt_mtc_check(const mt_mtc_source *sources, size_t count, size_t main_file,
                             mt_mtr_diags *diags);
void mt_mtc_program_free(mt_mtc_program *p);
MT_DEFINE_CLEANUP(mt_mtc_program_free, mt_mtc_program *)
bool mt_mtc_failed(const mt_mtc_program *p);          // an error was reported
size_t mt_mtc_program_bytes(const mt_mtc_program *p); // of memory that it takes, about
// Appends the code of a program that has not failed, to be read. 0 or negative errno.
int mt_mtc_listing(mt_mtc_program *p, mt_buf *out);

// Makes the code of a program that has not failed. After that the program is only read, and may be
// run by many machines (vm.h) at once. 0 or -ENOMEM.
int mt_mtc_make_ready(mt_mtc_program *p);

// What main takes: the inputs of the app.
typedef struct mt_mtc_input {
    mt_str name;
    mt_mtc_type type;
} mt_mtc_input;
size_t mt_mtc_input_count(const mt_mtc_program *p);
mt_mtc_input mt_mtc_input_at(const mt_mtc_program *p, size_t i);
// Whether text is a value for main's i-th parameter: numbers with blanks around them, true, false,
// guids, JSON, any text. badField with the parameter's name.
int mt_mtc_input_check(const mt_mtc_program *p, size_t i, mt_str text, mt_err **err);
mt_mtc_type mt_mtc_result_type(const mt_mtc_program *p); // of main
