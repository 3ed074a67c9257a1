// SPDX-License-Identifier: Apache-2.0
// The reader: one pass with a stack of its own, so that depth is a number and not the C stack. A
// container is put into its parent when it opens; so the root owns all that was read at any moment,
// and a failure frees it in one step.
#include "json/json-internal.h"

#include "base/utf8.h"

#include <assert.h>

typedef struct reader {
    const char *start, *at, *end;
    mt_json_limits limits;
    size_t values;
    size_t weight; // of all that was read
    json_box *stack[MT_JSON_DEPTH_MAX];
    unsigned depth;
    mt_json *root;
    mt_json *name; // read, waiting for its value
    const char *bad_at;
    mt_err **err;
} reader;

// Sets the error and its place.
#define BAD(r, where, ...) ((r)->bad_at = (where), mt_fail((r)->err, MT_E_BAD_JSON, __VA_ARGS__))
#define TOO(r, where, ...) ((r)->bad_at = (where), mt_fail((r)->err, MT_E_TOO_LARGE, __VA_ARGS__))

static void skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
}

// --- strings ---

static int hex4(const char *s, const char *end)
{
    int value = 0;

    if (end - s < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = s[i];

        value <<= 4;
        if (c >= '0' && c <= '9')
            value |= c - '0';
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            value |= (c | 0x20) - 'a' + 10;
        else
            return -1;
    }
    return value;
}

// \uXXXX at s (past the u), a surrogate pair as one. Bytes of input used; 0 with the error set.
static size_t unicode_escape(reader *r, const char *s, const char *end, uint32_t *ret)
{
    int high = hex4(s, end), low;

    if (high < 0)
        return (void)BAD(r, s - 2, "\\u needs four hexadecimal digits"), 0;
    *ret = (uint32_t)high;
    if (high < 0xd800 || high > 0xdfff)
        return 4;
    if (high < 0xdc00 && end - s >= 10 && s[4] == '\\' && s[5] == 'u') {
        low = hex4(s + 6, end);
        if (low >= 0xdc00 && low <= 0xdfff) {
            *ret = 0x10000 + (((uint32_t)high - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
            return 10;
        }
    }
    return (void)BAD(r, s - 2, "\\u%.4s is half of a surrogate pair", s), 0;
}

// One escape at s (past the backslash) into out. Bytes of input used; 0 with the error set.
static size_t escape(reader *r, const char *s, const char *end, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found = s < end && *s ? strchr(from, *s) : NULL;
    uint32_t c;
    size_t n;

    if (found) {
        *(*out)++ = to[found - from];
        return 1;
    }
    if (s == end || *s != 'u')
        return (void)BAD(r, s - 1,
                         "unknown escape: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX are known"),
               0;
    n = unicode_escape(r, s + 1, end, &c);
    if (n == 0)
        return 0;
    *out += mt_utf8_encode(c, *out);
    return n + 1;
}

// The closing quote of the string whose content begins at s; NULL with the error set.
static const char *string_end(reader *r, const char *s)
{
    for (const char *p = s; p < r->end; p++) {
        unsigned char c = (unsigned char)*p;

        if (c == '"')
            return p;
        if (c == '\\')
            p++;
        else if (c < 0x20)
            return (void)BAD(r, p, "control byte 0x%02x in a string: write it as \\u%04x", c, c),
                   NULL;
    }
    return (void)BAD(r, s - 1, "a string without its closing quote"), NULL;
}

static int decode(reader *r, const char *s, const char *end, json_text *t)
{
    char *out = t->data;

    while (s < end) {
        size_t used;

        if (*s != '\\') {
            *out++ = *s++;
            continue;
        }
        used = escape(r, s + 1, end, &out);
        if (used == 0)
            return -1;
        s += 1 + used;
    }
    *out = '\0';
    t->len = (size_t)(out - t->data);
    return 0;
}

// Gives back what escapes took more than what they mean.
static json_text *trim(json_text *t, size_t len)
{
    json_text *small = len - t->len > 64 ? realloc(t, sizeof(*t) + t->len + 1) : NULL;

    return small ? small : t;
}

static int read_string(reader *r, mt_json **ret)
{
    const char *s = r->at + 1, *end = string_end(r, s);
    json_text *t;
    size_t bad;

    if (!end)
        return -1;
    bad = mt_utf8_bad_at(s, (size_t)(end - s));
    if (bad != (size_t)(end - s))
        return BAD(r, s + bad, "byte 0x%02x is not UTF-8 here", (unsigned char)s[bad]);
    t = json_text_new(MT_JSON_STRING, (size_t)(end - s)); // decoding never grows
    if (!t)
        return mt_fail_oom(r->err);
    if (decode(r, s, end, t) < 0) {
        free(t);
        return -1;
    }
    if (t->len > r->limits.string) {
        free(t);
        return TOO(r, r->at, "a string of more than %zu bytes", r->limits.string);
    }
    t = trim(t, (size_t)(end - s));
    t->head.nul = memchr(t->data, '\0', t->len) != NULL;
    r->at = end + 1;
    *ret = &t->head;
    return 0;
}

// --- scalars ---

static int read_number(reader *r, mt_json **ret)
{
    size_t n = json_number_scan(r->at, (size_t)(r->end - r->at));
    json_text *t;

    if (n == 0)
        return BAD(r, r->at, "not a JSON number");
    if (r->at + n < r->end && r->at[n] >= '0' && r->at[n] <= '9')
        return BAD(r, r->at, "a number with a leading zero");
    t = json_text_new(MT_JSON_NUMBER, n);
    if (!t)
        return mt_fail_oom(r->err);
    memcpy(t->data, r->at, n);
    r->at += n;
    *ret = &t->head;
    return 0;
}

static bool word(reader *r, const char *text)
{
    size_t len = strlen(text);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len) != 0)
        return false;
    r->at += len;
    return true;
}

static int expected(reader *r, const char *what)
{
    if (r->at == r->end)
        return BAD(r, r->at, "the text ends where %s is expected", what);
    return BAD(r, r->at, "%s is expected here", what);
}

static int read_value(reader *r, mt_json **ret)
{
    char c = r->at < r->end ? *r->at : '\0';

    if (c == '"')
        return read_string(r, ret);
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r, ret);
    if (c == '{' || c == '[') {
        if (r->depth == r->limits.depth)
            return TOO(r, r->at, "nested more than %u deep", r->limits.depth);
        r->at++;
        *ret = json_box_new(c == '{' ? MT_JSON_OBJECT : MT_JSON_ARRAY);
    } else if (word(r, "true") || word(r, "false")) {
        *ret = mt_json_new_bool(c == 't');
    } else if (word(r, "null")) {
        *ret = mt_json_new_null();
    } else {
        return expected(r, "a value");
    }
    return *ret ? 0 : mt_fail_oom(r->err);
}

// --- structure ---

// Puts a fresh value where it belongs and opens it when it is a container.
static int place(reader *r, mt_json *v)
{
    json_box *parent = r->depth > 0 ? r->stack[r->depth - 1] : NULL;
    size_t before = parent ? parent->weight : 0;

    assert(v);
    if (++r->values > r->limits.values) {
        (void)mt_json_unref(v);
        return TOO(r, r->at, "more than %zu values", r->limits.values);
    }
    if (!parent) {
        r->root = v;
    } else if (json_box_push(parent, r->name, v) < 0) {
        (void)mt_json_unref(v);
        return mt_fail_oom(r->err);
    }
    r->name = NULL;
    r->weight += parent ? parent->weight - before : mt_json_weight(v);
    if (r->limits.weight && r->weight > r->limits.weight)
        return TOO(r, r->at, "JSON that takes more than %zu bytes of memory", r->limits.weight);
    if (parent && !v->constant) // constants are of all threads, and not written to
        v->held = true;
    if (json_is_box(v))
        r->stack[r->depth++] = json_box_of(v);
    return 0;
}

static int read_name(reader *r)
{
    const char *from;
    char quoted[JSON_QUOTE];

    skip_blanks(r);
    from = r->at;
    if (r->at == r->end || *r->at != '"')
        return expected(r, "a name in double quotes");
    if (read_string(r, &r->name) < 0)
        return -1;
    if (json_box_find(r->stack[r->depth - 1], mt_json_str(r->name)) != SIZE_MAX)
        return BAD(r, from, "the name '%s' stands twice in one object",
                   json_quote(mt_json_str(r->name), quoted));
    skip_blanks(r);
    if (r->at == r->end || *r->at != ':')
        return expected(r, "':'");
    r->at++;
    return 0;
}

static void close_box(reader *r)
{
    json_box *box = r->stack[--r->depth];

    if (r->depth > 0) {
        json_box *parent = r->stack[r->depth - 1];

        parent->weight = json_weight_add(parent->weight, box->weight);
        parent->head.nul = parent->head.nul || box->head.nul;
        if (box->height > 1) // else it is as it was when it was put in
            json_box_rise(parent, &box->head);
    }
    r->at++;
}

// After a value: closes what ends here. 1 when another value follows (an object's name is read
// then), 0 when the document is complete.
static int follow(reader *r, bool opened)
{
    while (r->depth > 0) {
        bool object = r->stack[r->depth - 1]->head.kind == MT_JSON_OBJECT;
        char c;

        skip_blanks(r);
        c = r->at < r->end ? *r->at : '\0';
        if (c == (object ? '}' : ']')) {
            close_box(r);
            opened = false;
            continue;
        }
        if (!opened && c != ',')
            return expected(r, object ? "',' or '}'" : "',' or ']'");
        if (!opened)
            r->at++;
        return object && read_name(r) < 0 ? -1 : 1;
    }
    return 0;
}

static int read_document(reader *r)
{
    int more;

    do {
        mt_json *v = NULL;
        unsigned depth = r->depth;

        skip_blanks(r);
        if (read_value(r, &v) < 0 || place(r, v) < 0)
            return -1;
        more = follow(r, r->depth > depth);
    } while (more > 0);
    if (more < 0)
        return -1;
    skip_blanks(r);
    return r->at == r->end ? 0 : BAD(r, r->at, "text after the end of the document");
}

static mt_json_place place_of(const reader *r)
{
    const char *at = r->bad_at ? r->bad_at : r->at, *line = r->start;
    mt_json_place p = {.offset = (size_t)(at - r->start), .line = 1};

    for (const char *s = r->start; s < at; s++) {
        if (*s == '\n') {
            p.line++;
            line = s + 1;
        }
    }
    p.column = 1 + (unsigned)mt_utf8_count(line, (size_t)(at - line));
    return p;
}

static void start(reader *r, const char *data, size_t len, const mt_json_limits *limits,
                  mt_err **err)
{
    static const mt_json_limits usual = MT_JSON_LIMITS_INIT;

    r->start = r->at = data;
    r->end = data + len;
    r->limits = limits ? *limits : usual;
    r->limits.depth = MT_MIN(r->limits.depth, (unsigned)MT_JSON_DEPTH_MAX);
    r->values = 0;
    r->weight = 0;
    r->depth = 0;
    r->root = r->name = NULL;
    r->bad_at = NULL;
    r->err = err;
}

int mt_json_parse_at(const char *data, size_t len, const mt_json_limits *limits, mt_json **ret,
                     mt_json_place *ret_place, mt_err **err)
{
    reader r; // its stack is not worth clearing
    int result;

    start(&r, len > 0 ? data : "", len, limits, err);
    if (len > r.limits.bytes)
        result = TOO(&r, r.at, "JSON of more than %zu bytes", r.limits.bytes);
    else {
        if (r.limits.skip_bom && len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
            r.at += 3;
        result = read_document(&r);
    }
    (void)mt_json_unref(r.name);
    if (result < 0) {
        *ret_place = place_of(&r);
        mt_json_wipe(r.root); // whatever it was to become
        (void)mt_json_unref(r.root);
        return -1;
    }
    *ret = r.root;
    return 0;
}

int mt_json_parse(const char *data, size_t len, const mt_json_limits *limits, mt_json **ret,
                  mt_err **err)
{
    mt_json_place place = {0};
    mt_err *cause = NULL;
    int r = mt_json_parse_at(data, len, limits, ret, &place, &cause);

    if (r < 0) {
        if (mt_err_code(cause) != MT_E_OOM)
            (void)mt_wrap(&cause, "line %u, column %u", place.line, place.column);
        mt_err_move(err, cause);
    }
    return r;
}
