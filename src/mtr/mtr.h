// SPDX-License-Identifier: Apache-2.0
// The resource language: bytes in, tree and diagnostics out. No I/O, no knowledge of kinds (that is
// kinds.h). All errors of a file are found in one go. Hostile input is bounded: 1 MiB a file, depth
// 64, 100,000 values, 1,000 members an object, 100 errors a file. Not thread-safe: one thread per
// mt_mtr_diags and per file.
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum {
    MT_MTR_MAX_BYTES = 1024 * 1024,
    MT_MTR_MAX_DEPTH = 64,
    MT_MTR_MAX_VALUES = 100000,
    MT_MTR_MAX_MEMBERS = 1000,
    MT_MTR_MAX_ERRORS = 100,       // of one file
    MT_MTR_MAX_SOURCE_LINE = 240,  // longer lines are not quoted
    MT_MTR_MAX_DIAGNOSTICS = 1000, // of one project
};

// ---- diagnostics ----

typedef enum mt_mtr_severity {
    MT_MTR_ERROR,
    MT_MTR_WARNING,
} mt_mtr_severity;

// Plain data; everything belongs to the mt_mtr_diags. line and column count from 1, columns in
// characters; both are 0 where the whole file is meant.
typedef struct mt_mtr_diag {
    mt_mtr_severity severity;
    const char *file;
    unsigned line, column;
    const char *message;
    const char *hint;        // NULL when there is none: "did you mean 'autoTerminate'?"
    const char *source_line; // NULL when there is none (no place, or a very long line)
    const char *path;        // member at fault, "startup[0].maxDuration"; NULL outside values
} mt_mtr_diag;

typedef struct mt_mtr_diags mt_mtr_diags;

mt_mtr_diags *mt_mtr_diags_new(void); // NULL when out of memory
void mt_mtr_diags_free(mt_mtr_diags *d);
MT_DEFINE_CLEANUP(mt_mtr_diags_free, mt_mtr_diags *)

size_t mt_mtr_diags_count(const mt_mtr_diags *d);
const mt_mtr_diag *mt_mtr_diags_at(const mt_mtr_diags *d, size_t i);
size_t mt_mtr_diags_errors(const mt_mtr_diags *d); // also counts those over the caps
bool mt_mtr_diags_oom(const mt_mtr_diags *d);      // some are missing: treat as failure
// text (may be NULL) is where source lines are quoted from; line 0: the whole file; path and hint
// may be NULL. Everything is copied.
void mt_mtr_diags_add(mt_mtr_diags *d, mt_mtr_severity severity, const char *file, mt_str text,
                      unsigned line, unsigned column, const char *path, const char *hint,
                      const char *fmt, ...) MT_PRINTF(9, 10);
// By file (in the order in which the files first appeared), line, column.
void mt_mtr_diags_sort(mt_mtr_diags *d);
// Appends "file:line:column: error: message" with the source line, a caret and the hint.
int mt_mtr_diag_format(const mt_mtr_diag *diag, mt_buf *out);

// ---- tree ----

typedef enum mt_mtr_type {
    MT_MTR_NULL,
    MT_MTR_BOOL,
    MT_MTR_NUMBER, // text: as written, [-]digits[.digits][e[+-]digits]
    MT_MTR_STRING, // text: the value, valid UTF-8 without NUL
    MT_MTR_LIST,
    MT_MTR_OBJECT,
    MT_MTR_REF, // @ref("text"), @prompt("text"), @json("text"): function and text
    MT_MTR_BAD, // already reported: whoever meets it says nothing more
} mt_mtr_type;

typedef enum mt_mtr_function {
    MT_MTR_FN_REF,
    MT_MTR_FN_PROMPT,
    MT_MTR_FN_JSON,
} mt_mtr_function;

typedef struct mt_mtr_node mt_mtr_node;

typedef struct mt_mtr_member {
    mt_str key;
    unsigned line, column; // of the key (its own part of a dotted one)
    mt_mtr_node *value;
    struct mt_mtr_member *next;
} mt_mtr_member;

// Read only, except for mtr's own files. Lists and objects are linked in source order.
struct mt_mtr_node {
    mt_mtr_type type;
    mt_mtr_function function;
    bool boolean;
    unsigned line, column;
    mt_str text;
    mt_mtr_node *first, *last_; // items of a list
    mt_mtr_node *next;          // next item of the list that holds this one
    mt_mtr_member *members, *last_member_;
    size_t count; // items or members
};

typedef struct mt_mtr_file {
    mt_arena *arena;  // holds the tree; may hold what a caller hangs on it
    const char *name; // "capsules/sales-report.mtr"
    const char *text; // the caller's bytes (after a BOM), not copied: they must outlive this
    size_t len;
    mt_mtr_node *root; // always an object, maybe empty
    bool failed;       // an error was reported for this file
    mt_mtr_diags *diags;
    size_t reports_; // private
} mt_mtr_file;

// Parses data. Faults go into diags with the place; the tree then holds what was understood. NULL
// only when out of memory. diags must outlive the file.
mt_mtr_file *mt_mtr_parse(const char *name, const char *data, size_t len, mt_mtr_diags *diags);
void mt_mtr_file_free(mt_mtr_file *f);
MT_DEFINE_CLEANUP(mt_mtr_file_free, mt_mtr_file *)

// The member of an object node, NULL when there is none (or node is not an object).
const mt_mtr_member *mt_mtr_get(const mt_mtr_node *object, const char *key);
const char *mt_mtr_type_word(const mt_mtr_node *node); // "a string", "a list", "@ref(…)"

// Reports on f. line 0: the whole file. hint and path may be NULL.
void mt_mtr_report(mt_mtr_file *f, mt_mtr_severity severity, unsigned line, unsigned column,
                   const char *path, const char *hint, const char *fmt, ...) MT_PRINTF(7, 8);

// ---- formatter ----

// Appends the text of a file in the one layout (two blanks a level, one member a line, comments
// kept). Formatting twice changes nothing more. -1 (badRequest, first diagnostic as sentence) when
// it does not parse.
int mt_mtr_format(const char *name, const char *data, size_t len, mt_buf *out, mt_err **err);
// The same of one that was parsed and has not failed.
int mt_mtr_format_file(mt_mtr_file *file, mt_buf *out, mt_err **err);
