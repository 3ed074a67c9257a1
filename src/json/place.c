// SPDX-License-Identifier: Apache-2.0
// Places of values. A value does not keep where it stood; a text that was read once can be gone
// through again, without the checks.
#include "json/json-internal.h"

#include "base/utf8.h"

typedef struct scan {
    const char *at, *end;
} scan;

static char peek(const scan *s)
{
    return s->at < s->end ? *s->at : '\0';
}

static void skip_blanks(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
}

static void skip_string(scan *s)
{
    for (s->at++; s->at < s->end && *s->at != '"'; s->at++)
        s->at += *s->at == '\\';
    s->at = s->at < s->end ? s->at + 1 : s->end;
}

static bool ends_scalar(char c)
{
    return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_value(scan *s)
{
    size_t depth = 0;

    do {
        char c = peek(s);

        if (c == '"') {
            skip_string(s);
        } else if (depth == 0 && c != '{' && c != '[') {
            while (s->at < s->end && !ends_scalar(*s->at))
                s->at++;
        } else {
            depth += c == '{' || c == '[';
            depth -= c == '}' || c == ']';
            s->at++;
        }
    } while (depth > 0 && s->at < s->end);
}

// The name that stands here, as a value.
static bool is_name(scan *s, mt_str token)
{
    _cleanup_json_ mt_json *object = NULL, *name = NULL;
    _cleanup_buf_ mt_buf pointer = MT_BUF_INIT(SIZE_MAX / 2);
    const char *from = s->at;

    skip_string(s);
    if (mt_json_parse(from, (size_t)(s->at - from), NULL, &name, NULL) < 0)
        return false;
    object = mt_json_new_object();
    (void)mt_json_set_str(object, mt_json_str(name), mt_json_new_null());
    (void)mt_buf_addc(&pointer, '/');
    (void)mt_buf_add(&pointer, token.data, token.len);
    return mt_json_pointer(object, (mt_str){mt_buf_str(&pointer), pointer.len}) != NULL;
}

// Goes to the member or item of the container that begins here; false where there is none.
static bool enter(scan *s, mt_str token)
{
    bool object = peek(s) == '{';
    uint64_t index = 0;

    if (!object && (peek(s) != '[' || !mt_parse_u64(token, SIZE_MAX, &index)))
        return false;
    for (s->at++;; s->at++) {
        bool found;

        skip_blanks(s);
        if (s->at == s->end || peek(s) == ']' || peek(s) == '}')
            return false;
        found = object ? is_name(s, token) : index-- == 0;
        if (object) {
            skip_blanks(s);
            s->at = MT_MIN(s->at + 1, s->end); // the colon
            skip_blanks(s);
        }
        if (found)
            return true;
        skip_value(s);
        skip_blanks(s);
        if (peek(s) != ',')
            return false;
    }
}

static mt_json_place place_at(const char *data, const char *at)
{
    mt_json_place p = {.offset = (size_t)(at - data), .line = 1};
    const char *line = data;

    for (const char *c = data; c < at; c++) {
        if (*c == '\n') {
            p.line++;
            line = c + 1;
        }
    }
    p.column = 1 + (unsigned)mt_utf8_count(line, (size_t)(at - line));
    return p;
}

mt_json_place mt_json_place_of(const char *data, size_t len, mt_str pointer)
{
    scan s = {data, data + len};
    const char *at = pointer.data, *end = pointer.data + pointer.len;

    if (len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
        s.at += 3;
    skip_blanks(&s);
    while (at < end && *at == '/') {
        const char *slash = memchr(at + 1, '/', (size_t)(end - at - 1));
        mt_str token = {at + 1, (size_t)((slash ? slash : end) - at - 1)};
        scan before = s;

        if (!enter(&s, token)) {
            s = before;
            break;
        }
        at = slash ? slash : end;
    }
    return place_at(data, s.at);
}
