// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct mt_err {
    mt_code code;
    char *sentence;
    char *field;
};

static const struct {
    const char *name;
    int status;
    int exit_code;
    const char *help;
} CODES[MT_E_COUNT] = {
    [MT_E_NONE] = {"none", 200, 0, ""},
#define MT_ERROR(constant, name, status, exit_code, help) \
    [MT_E_##constant] = {name, status, exit_code, help},
#include "base/errors.def"
#undef MT_ERROR
};

// Out of memory is one constant object: it can always be reported, and is never freed.
static mt_err oom = {MT_E_OOM, (char *)"out of memory", NULL};

static int set(mt_err **err, mt_code code, const char *field, char *sentence)
{
    mt_err *e;

    if (!err || *err) {
        free(sentence);
        return -1;
    }
    e = sentence ? calloc(1, sizeof(*e)) : NULL;
    if (!e) {
        free(sentence);
        *err = &oom;
        return -1;
    }
    e->code = code;
    e->sentence = sentence;
    e->field = field ? strdup(field) : NULL;
    *err = e;
    return -1;
}

static char *MT_PRINTF(1, 0) vformat(const char *fmt, va_list ap)
{
    char *text = NULL;

    if (vasprintf(&text, fmt, ap) < 0)
        return NULL;
    return text;
}

int mt_fail(mt_err **err, mt_code code, const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = vformat(fmt, ap);
    va_end(ap);
    return set(err, code, NULL, text);
}

int mt_fail_field(mt_err **err, mt_code code, const char *field, const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = vformat(fmt, ap);
    va_end(ap);
    return set(err, code, field, text);
}

int mt_fail_oom(mt_err **err)
{
    if (err && !*err)
        *err = &oom;
    return -1;
}

static mt_code code_of_errno(int e)
{
    switch (e) {
    case ENOMEM:
        return MT_E_OOM;
    case ENOENT:
        return MT_E_NOT_FOUND;
    case EEXIST:
        return MT_E_ALREADY_EXISTS;
    case ENOSPC:
    case EDQUOT:
        return MT_E_DISK_FULL;
    case ENOTDIR:
        return MT_E_NOT_A_FOLDER;
    case EISDIR:
        return MT_E_IS_A_FOLDER;
    case ENOTEMPTY:
        return MT_E_NOT_EMPTY;
    case EXDEV:
    case ELOOP:
    case ENAMETOOLONG:
        return MT_E_BAD_PATH;
    case ECONNREFUSED:
    case ENETUNREACH:
    case EHOSTUNREACH:
        return MT_E_UNREACHABLE;
    default:
        return MT_E_IO;
    }
}

int mt_fail_errno(mt_err **err, int e, const char *fmt, ...)
{
    va_list ap;
    char *text, *full = NULL;

    e = e < 0 ? -e : e;
    va_start(ap, fmt);
    text = vformat(fmt, ap);
    va_end(ap);
    if (text && asprintf(&full, "%s: %s", text, strerror(e)) < 0)
        full = NULL;
    free(text);
    return set(err, code_of_errno(e), NULL, full);
}

int mt_wrap(mt_err **err, const char *fmt, ...)
{
    va_list ap;
    char *text, *full = NULL;

    if (!err || !*err || *err == &oom)
        return -1;
    va_start(ap, fmt);
    text = vformat(fmt, ap);
    va_end(ap);
    if (text && asprintf(&full, "%s: %s", text, (*err)->sentence) >= 0) {
        free((*err)->sentence);
        (*err)->sentence = full;
    }
    free(text);
    return -1;
}

mt_code mt_err_code(const mt_err *err)
{
    return err ? err->code : MT_E_NONE;
}

const char *mt_err_sentence(const mt_err *err)
{
    return err ? err->sentence : "";
}

const char *mt_err_field(const mt_err *err)
{
    return err ? err->field : NULL;
}

mt_err *mt_err_free(mt_err *err)
{
    if (err && err != &oom) {
        free(err->sentence);
        free(err->field);
        free(err);
    }
    return NULL;
}

void mt_err_move(mt_err **to, mt_err *from)
{
    if (to && !*to)
        *to = from;
    else
        mt_err_free(from);
}

const char *mt_code_name(mt_code code)
{
    return code < MT_E_COUNT ? CODES[code].name : "internal";
}

int mt_code_http_status(mt_code code)
{
    return code < MT_E_COUNT ? CODES[code].status : 500;
}

int mt_code_exit(mt_code code)
{
    return code < MT_E_COUNT ? CODES[code].exit_code : 1;
}

const char *mt_code_help(mt_code code)
{
    return code < MT_E_COUNT ? CODES[code].help : "";
}

mt_code mt_code_by_name(const char *name)
{
    for (int i = 1; i < MT_E_COUNT; i++)
        if (strcmp(CODES[i].name, name) == 0)
            return (mt_code)i;
    return MT_E_NONE;
}
