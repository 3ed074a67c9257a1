// SPDX-License-Identifier: Apache-2.0
#include "core/answer.h"

#include "base/utf8.h"

enum {
    CANDIDATES = 64,    // JSON values in one answer, beyond which it is none
    FAULTS = 10,        // sentences about one of them
    EFFORT = 64u << 20, // bytes looked at while braces are matched
};

// What is looked for, and what was found.
typedef struct reading {
    const mt_schema *schema;
    mt_str fitting;
    size_t count, fits; // JSON values, and those that fit
    size_t effort;
    mt_json *faults; // of the last one that does not fit
    mt_err **err;
} reading;

static mt_str trim(mt_str s)
{
    while (s.len &&
           (s.data[0] == ' ' || s.data[0] == '\t' || s.data[0] == '\n' || s.data[0] == '\r'))
        s = (mt_str){s.data + 1, s.len - 1};
    while (s.len && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t' ||
                     s.data[s.len - 1] == '\n' || s.data[s.len - 1] == '\r'))
        s.len--;
    return s;
}

static mt_str without_bom(mt_str s)
{
    return s.len >= 3 && memcmp(s.data, "\xef\xbb\xbf", 3) == 0 ? (mt_str){s.data + 3, s.len - 3}
                                                                : s;
}

static int add_fault(mt_json *faults, const char *sentence)
{
    return mt_json_append(faults, mt_json_new_text(sentence));
}

// ---- one value ----

static int keep_faults(reading *r, const mt_schema_errors *errors, const char *sentence)
{
    mt_json *faults = mt_json_new_array();

    for (size_t i = 0; errors && i < errors->count; i++)
        (void)add_fault(faults, errors->items[i].sentence);
    if (errors && errors->more)
        (void)add_fault(faults, "and more");
    if (sentence)
        (void)add_fault(faults, sentence);
    (void)mt_json_unref(r->faults);
    r->faults = faults;
    return mt_json_ok(faults) ? 0 : mt_fail_oom(r->err);
}

// Whether a value fits: 1, 0 with r->faults, or -1.
static int fits(reading *r, const mt_json *value)
{
    _cleanup_errors_ mt_schema_errors errors = {.max = FAULTS};
    _cleanup_err_ mt_err *why = NULL;
    int v;

    if (mt_json_has_nul(value))
        return keep_faults(r, NULL, "a text in it holds a NUL character");
    v = mt_schema_validate(r->schema, value, NULL, &errors, &why);
    if (v == 0)
        return 1;
    if (v < 0 && mt_err_code(why) == MT_E_OOM)
        return mt_fail_oom(r->err);
    return keep_faults(r, &errors, v < 0 ? mt_err_sentence(why) : NULL);
}

// 1: text is JSON, which counts; 0: it is not, and *ret_why (may be NULL) says why; -1.
static int try_text(reading *r, mt_str text, mt_err **ret_why)
{
    _cleanup_json_ mt_json *value = NULL;
    _cleanup_err_ mt_err *why = NULL;
    int f;

    if (mt_json_parse(text.data, text.len, NULL, &value, &why) < 0) {
        if (mt_err_code(why) == MT_E_OOM)
            return mt_fail_oom(r->err);
        if (ret_why)
            *ret_why = MT_TAKE_PTR(why);
        return 0;
    }
    f = fits(r, value);
    if (f < 0)
        return -1;
    r->count++;
    if (f > 0) {
        r->fits++;
        r->fitting = text;
    }
    return 1;
}

// ---- fenced blocks ----

static mt_str next_line(mt_str *rest)
{
    const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->data) + 1 : rest->len;
    mt_str line = {rest->data, len};

    *rest = (mt_str){rest->data + len, rest->len - len};
    return line;
}

// How many of ``` or ~~~ a line begins with, behind three blanks at most; 0: fewer than three.
static size_t fence_of(mt_str line, char *ret_mark)
{
    size_t at = 0, count = 0;

    while (at < line.len && at < 3 && line.data[at] == ' ')
        at++;
    if (at == line.len || (line.data[at] != '`' && line.data[at] != '~'))
        return 0;
    *ret_mark = line.data[at];
    while (at + count < line.len && line.data[at + count] == *ret_mark)
        count++;
    return count >= 3 ? count : 0;
}

static bool closes(mt_str line, char mark, size_t count)
{
    char own = 0;
    size_t n = fence_of(line, &own);

    return n >= count && own == mark && fence_of(line, &own) == trim(line).len;
}

static int try_fences(reading *r, mt_str text)
{
    while (text.len && r->count < CANDIDATES) {
        char mark = 0;
        size_t count = fence_of(next_line(&text), &mark);
        const char *begin = text.data;

        if (count == 0)
            continue;
        while (text.len) {
            const char *end = text.data;

            if (!closes(next_line(&text), mark, count))
                continue;
            if (try_text(r, trim((mt_str){begin, (size_t)(end - begin)}), NULL) < 0)
                return -1;
            break;
        }
    }
    return 0;
}

// ---- prose ----

// How long the object or list at the start of text is, by its braces alone; 0: it has no end.
static size_t balanced(reading *r, mt_str text)
{
    size_t depth = 0;
    bool quoted = false;

    for (size_t i = 0; i < text.len && r->effort < EFFORT; i++, r->effort++) {
        char c = text.data[i];

        if (quoted && c == '\\') {
            i++;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted && (c == '{' || c == '[')) {
            depth++;
        } else if (!quoted && (c == '}' || c == ']') && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

static int try_prose(reading *r, mt_str text)
{
    for (size_t i = 0; i < text.len && r->count < CANDIDATES; i++) {
        mt_str rest = {text.data + i, text.len - i};
        size_t len;
        int found;

        if (rest.data[0] != '{' && rest.data[0] != '[')
            continue;
        len = balanced(r, rest);
        found = len ? try_text(r, (mt_str){rest.data, len}, NULL) : 0;
        if (found < 0)
            return -1;
        if (found > 0)
            i += len - 1;
        r->effort += len;
    }
    return 0;
}

// ---- the whole ----

static int no_json(reading *r, const mt_err *why)
{
    _cleanup_free_ char *sentence =
        mt_asprintf("the answer holds no JSON value: %s", mt_err_sentence(why));

    return sentence ? keep_faults(r, NULL, sentence) : mt_fail_oom(r->err);
}

static int several(reading *r)
{
    _cleanup_free_ char *sentence = mt_asprintf(
        "the answer holds %s%zu JSON values, and %s: give one alone",
        r->count == CANDIDATES ? "at least " : "", r->count,
        r->fits ? "more than one of them fits the schema" : "none of them fits the schema");

    r->fits = 0;
    return sentence ? keep_faults(r, NULL, sentence) : mt_fail_oom(r->err);
}

// The whole, else fenced blocks, else the prose: the first that has any JSON.
static int look(reading *r, mt_str text)
{
    _cleanup_err_ mt_err *why = NULL;
    int found = try_text(r, text, &why);

    if (found != 0)
        return found < 0 ? -1 : 0;
    if (try_fences(r, text) < 0 || (r->count == 0 && try_prose(r, text) < 0))
        return -1;
    if (r->count == 0)
        return no_json(r, why);
    return r->count == 1 || (r->fits == 1 && r->count < CANDIDATES) ? 0 : several(r);
}

int mt_answer_read(mt_str answer, const mt_schema *schema, mt_str *ret, mt_json **ret_faults,
                   mt_err **err)
{
    reading r = {.schema = schema, .err = err};

    if (look(&r, trim(without_bom(answer))) < 0) {
        (void)mt_json_unref(r.faults);
        return -1;
    }
    if (r.fits == 1) {
        (void)mt_json_unref(r.faults);
        *ret = r.fitting;
        return 0;
    }
    *ret_faults = r.faults;
    return 1;
}
