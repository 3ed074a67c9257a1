// SPDX-License-Identifier: Apache-2.0
// Errors: a code for programs, a sentence for people, and where there is one the field or place.
// Functions above base return < 0 on failure with *err set, 0 done, > 0 a documented other outcome;
// err comes last and may be NULL. Thread-safe: an mt_err belongs to who holds it. Never log secrets
// into one: sentences travel to clients.
#pragma once

#include "base/macros.h"

typedef enum mt_code {
    MT_E_NONE = 0,
#define MT_ERROR(constant, name, status, exit_code, help) MT_E_##constant,
#include "base/errors.def"
#undef MT_ERROR
    MT_E_COUNT,
} mt_code;

typedef struct mt_err mt_err;

// Each sets *err (when err is not NULL and *err is NULL) and returns -1, so that a caller can write
// return mt_fail(err, MT_E_NOT_FOUND, "no namespace '%s'", name);
int mt_fail(mt_err **err, mt_code code, const char *fmt, ...) MT_PRINTF(3, 4);
// As mt_fail, with the code that fits errno e (ENOENT: notFound, ENOSPC/EDQUOT: diskFull, …) and
// ": " with the system's text at the end. e may be negative.
int mt_fail_errno(mt_err **err, int e, const char *fmt, ...) MT_PRINTF(3, 4);
int mt_fail_oom(mt_err **err);
// As mt_fail; field names the member, parameter or option at fault ("maxDuration").
int mt_fail_field(mt_err **err, mt_code code, const char *field, const char *fmt, ...)
    MT_PRINTF(4, 5);

// Puts "context: " before the sentence of *err. Returns -1.
int mt_wrap(mt_err **err, const char *fmt, ...) MT_PRINTF(2, 3);

mt_code mt_err_code(const mt_err *err);         // MT_E_NONE for NULL
const char *mt_err_sentence(const mt_err *err); // "" for NULL
const char *mt_err_field(const mt_err *err);    // NULL when there is none
mt_err *mt_err_free(mt_err *err);               // returns NULL; accepts NULL
void mt_err_move(mt_err **to, mt_err *from);    // hands over, or frees when to is NULL or full
MT_DEFINE_CLEANUP(mt_err_free, mt_err *)
#define _cleanup_err_ _cleanup_(mt_err_free_p)

const char *mt_code_name(mt_code code);    // "notFound"
int mt_code_http_status(mt_code code);     // 404
int mt_code_exit(mt_code code);            // mt's exit code
const char *mt_code_help(mt_code code);    // what a user may do
mt_code mt_code_by_name(const char *name); // MT_E_NONE when unknown
