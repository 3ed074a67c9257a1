// SPDX-License-Identifier: Apache-2.0
// Recursive descent, at most MT_MTR_MAX_DEPTH deep. After an error the parser skips to the next
// thing that looks like a member, an item or a closing bracket, and goes on:
//
//   file    = member*                       each on a line of its own
//   member  = key ("." key)* "=" value      key = word | string
//   value   = string | number | true | false | null | list | object | @function("text")
//   list    = "[" [value ("," value)* [","]] "]"
//   object  = "{" member* "}"               newlines, commas or blanks between members
#include "mtr/mtr-internal.h"

// 64 MiB: the largest tree (values and members) is about 14 MiB; texts and what a check adds
// follow.
enum { FILE_ARENA_BYTES = 64 * 1024 * 1024 };

typedef struct parser {
    mt_lexer lex;
    mt_mtr_file *file;
    mt_token tok;
    size_t values;
    unsigned depth;
} parser;

static void next(parser *p)
{
    mt_lexer_next(&p->lex, &p->tok);
}

static bool is_mark(const parser *p, char mark)
{
    return p->tok.kind == MT_TOKEN_MARK && p->tok.mark == mark;
}

static void stop(parser *p, const char *message)
{
    mt_lexer_stop(&p->lex, p->tok.line, p->tok.column, "%s", message);
    p->tok.kind = MT_TOKEN_END;
}

static void error_at_token(parser *p, const char *hint, const char *message)
{
    mt_mtr_report(p->file, MT_MTR_ERROR, p->tok.line, p->tok.column, NULL, hint, "%s",
                  message ? message : "syntax error");
}

static const char *describe(parser *p)
{
    const char *text;

    switch (p->tok.kind) {
    case MT_TOKEN_END:
        return "the end of the file";
    case MT_TOKEN_STRING:
        text = mt_mtr_printf(p->file, "the string %s", mt_mtr_quote(p->file, p->tok.text));
        break;
    default:
        text = mt_mtr_quote(p->file, p->tok.text);
        break;
    }
    return text ? text : "that";
}

static mt_mtr_node *new_node(parser *p, mt_mtr_type type)
{
    mt_mtr_node *node;

    if (++p->values > MT_MTR_MAX_VALUES) {
        stop(p, "more than 100000 values in one file");
        return NULL;
    }
    node = mt_arena_new_of(p->file->arena, mt_mtr_node);
    if (!node) {
        stop(p, "out of memory");
        return NULL;
    }
    node->type = type;
    node->line = p->tok.line;
    node->column = p->tok.column;
    return node;
}

static bool begins_member(const parser *p)
{
    return (p->tok.kind == MT_TOKEN_WORD || p->tok.kind == MT_TOKEN_STRING) &&
           mt_lexer_at_assignment(&p->lex);
}

// Skips to what can be gone on with: the beginning of a member on a new line, a closing bracket of
// ours, or (in a list) a comma.
static void skip(parser *p, bool in_list)
{
    size_t nest = 0;

    while (p->tok.kind != MT_TOKEN_END) {
        if (nest == 0 && p->tok.line_start && begins_member(p))
            return;
        if (nest == 0 && in_list && is_mark(p, ','))
            return;
        if (is_mark(p, '[') || is_mark(p, '{')) {
            nest++;
        } else if (is_mark(p, ']') || is_mark(p, '}')) {
            if (nest == 0)
                return;
            nest--;
        }
        next(p);
    }
}

// ---- members ----

static mt_mtr_member *find(const mt_mtr_node *object, mt_str key)
{
    for (mt_mtr_member *m = object->members; m; m = m->next) {
        if (m->key.len == key.len && memcmp(m->key.data, key.data, key.len) == 0)
            return m;
    }
    return NULL;
}

const mt_mtr_member *mt_mtr_get(const mt_mtr_node *object, const char *key)
{
    return object && object->type == MT_MTR_OBJECT ? find(object, mt_str_of(key)) : NULL;
}

typedef struct key_part {
    mt_str text;
    unsigned line, column;
} key_part;

static mt_mtr_member *add_member(parser *p, mt_mtr_node *object, const key_part *key,
                                 mt_mtr_node *value)
{
    mt_mtr_member *m;

    if (object->count >= MT_MTR_MAX_MEMBERS) {
        mt_lexer_stop(&p->lex, key->line, key->column, "more than %d members in one object",
                      MT_MTR_MAX_MEMBERS);
        p->tok.kind = MT_TOKEN_END;
        return NULL;
    }
    m = mt_arena_new_of(p->file->arena, mt_mtr_member);
    if (!m) {
        stop(p, "out of memory");
        return NULL;
    }
    *m =
        (mt_mtr_member){.key = key->text, .line = key->line, .column = key->column, .value = value};
    if (object->last_member_)
        object->last_member_->next = m;
    else
        object->members = m;
    object->last_member_ = m;
    object->count++;
    return m;
}

// The object that the parts before the last of a dotted key lead to; made where it is missing.
// NULL when there cannot be one (reported).
static mt_mtr_node *descend(parser *p, mt_mtr_node *object, const key_part *part)
{
    mt_mtr_member *m = find(object, part->text);

    if (!m) {
        mt_mtr_node *made = new_node(p, MT_MTR_OBJECT);

        if (!made)
            return NULL;
        made->line = part->line;
        made->column = part->column;
        return add_member(p, object, part, made) ? made : NULL;
    }
    if (m->value->type == MT_MTR_OBJECT)
        return m->value;
    if (m->value->type != MT_MTR_BAD)
        mt_mtr_report(p->file, MT_MTR_ERROR, part->line, part->column, NULL, NULL,
                      "%s is already %s (line %u), so nothing can be set in it",
                      mt_mtr_quote(p->file, part->text), mt_mtr_type_word(m->value), m->line);
    return NULL;
}

static void set_member(parser *p, mt_mtr_node *object, const key_part *parts, size_t count,
                       mt_mtr_node *value)
{
    const key_part *last = &parts[count - 1];
    mt_mtr_member *old;

    for (size_t i = 0; i + 1 < count && object; i++)
        object = descend(p, object, &parts[i]);
    if (!object)
        return;
    old = find(object, last->text);
    if (!old) {
        (void)add_member(p, object, last, value);
        return;
    }
    mt_mtr_report(p->file, MT_MTR_ERROR, last->line, last->column, NULL, NULL,
                  "%s is given twice, first on line %u", mt_mtr_quote(p->file, last->text),
                  old->line);
}

// Reads "a.b.c"; 0 where it is malformed or too deep (reported).
static size_t parse_key(parser *p, key_part parts[MT_MTR_MAX_DEPTH])
{
    size_t count = 0;

    for (;;) {
        if (p->tok.kind != MT_TOKEN_WORD && p->tok.kind != MT_TOKEN_STRING) {
            if (p->tok.kind != MT_TOKEN_BAD && !p->lex.stopped)
                error_at_token(p, NULL, "a name is missing after the '.'");
            return 0;
        }
        if (p->depth + count >= MT_MTR_MAX_DEPTH) {
            stop(p, "nested deeper than 64 levels");
            return 0;
        }
        parts[count++] = (key_part){p->tok.text, p->tok.line, p->tok.column};
        next(p);
        if (!is_mark(p, '.'))
            return count;
        next(p);
    }
}

static mt_mtr_node *parse_value(parser *p);

// After the key: "=". What other languages write there is named and passed over.
static bool parse_equals(parser *p, const key_part *key)
{
    const char *name = mt_mtr_quote(p->file, key->text);
    const char *message;

    if (is_mark(p, '=')) {
        next(p);
        return true;
    }
    if (p->lex.stopped || p->tok.kind == MT_TOKEN_BAD)
        return false;
    message = mt_mtr_printf(p->file, "'=' is missing after %s", name);
    if (is_mark(p, ':')) {
        error_at_token(p, "members are written name = value", message ? message : "'=' is missing");
        next(p);
        return true;
    }
    error_at_token(p, is_mark(p, '{') ? "write name = { … }" : NULL,
                   message ? message : "'=' is missing");
    return is_mark(p, '{') || is_mark(p, '[');
}

static void parse_member(parser *p, mt_mtr_node *object)
{
    key_part parts[MT_MTR_MAX_DEPTH];
    size_t count = parse_key(p, parts);
    unsigned depth = p->depth;
    mt_mtr_node *value;

    if (count == 0 || !parse_equals(p, &parts[count - 1])) {
        skip(p, false);
        return;
    }
    p->depth += (unsigned)count - 1;
    value = parse_value(p);
    p->depth = depth;
    if (value)
        set_member(p, object, parts, count, value);
    else if (!p->lex.stopped)
        skip(p, false);
}

// Members up to what closes them: '}' of an object, the end of a file.
static void parse_members(parser *p, mt_mtr_node *object, bool top)
{
    bool after_member = false;

    while (p->tok.kind != MT_TOKEN_END && !(is_mark(p, '}') && !top)) {
        if (p->tok.kind == MT_TOKEN_WORD || p->tok.kind == MT_TOKEN_STRING) {
            if (top && after_member && !p->tok.line_start)
                error_at_token(p, NULL, "each property of a file begins on a line of its own");
            parse_member(p, object);
            after_member = true;
            continue;
        }
        if (is_mark(p, ']') && !top)
            return; // of the list around: the caller says that this object is not closed
        if (is_mark(p, ',') && after_member && !top) {
            after_member = false;
            next(p);
            continue;
        }
        if (p->tok.kind != MT_TOKEN_BAD)
            error_at_token(p, NULL,
                           mt_mtr_printf(p->file,
                                         "unexpected %s: a property is written name = value",
                                         describe(p)));
        after_member = false;
        next(p);
        skip(p, false);
    }
}

// ---- values ----

static void not_closed(parser *p, const mt_mtr_node *node, const char *what)
{
    if (!p->lex.stopped)
        error_at_token(p, NULL,
                       mt_mtr_printf(p->file,
                                     "%s is missing: what opened on line %u, column %u "
                                     "is not closed",
                                     what, node->line, node->column));
}

static mt_mtr_node *parse_object(parser *p)
{
    mt_mtr_node *object = new_node(p, MT_MTR_OBJECT);

    if (!object)
        return NULL;
    next(p);
    parse_members(p, object, false);
    if (is_mark(p, '}'))
        next(p);
    else
        not_closed(p, object, "'}'");
    return object;
}

static void append(mt_mtr_node *list, mt_mtr_node *item)
{
    if (list->last_)
        list->last_->next = item;
    else
        list->first = item;
    list->last_ = item;
    list->count++;
}

// True when the list goes on behind an item.
static bool parse_separator(parser *p)
{
    if (is_mark(p, ',')) {
        next(p);
        while (is_mark(p, ',')) {
            error_at_token(p, NULL, "one ',' too many");
            next(p);
        }
        return true;
    }
    if (is_mark(p, ']') || is_mark(p, '}') || p->tok.kind == MT_TOKEN_END || begins_member(p))
        return false;
    if (p->tok.kind != MT_TOKEN_BAD)
        error_at_token(p, NULL, "',' is missing between the items of a list");
    return true;
}

static mt_mtr_node *parse_list(parser *p)
{
    mt_mtr_node *list = new_node(p, MT_MTR_LIST), *item;
    bool more = true;

    if (!list)
        return NULL;
    next(p);
    while (more && !is_mark(p, ']') && !is_mark(p, '}') && p->tok.kind != MT_TOKEN_END &&
           !(p->tok.line_start && begins_member(p))) {
        item = parse_value(p);
        if (item) {
            append(list, item);
        } else {
            if (p->lex.stopped)
                return NULL;
            next(p);
            skip(p, true);
        }
        more = parse_separator(p);
    }
    if (is_mark(p, ']'))
        next(p);
    else
        not_closed(p, list, "']'");
    return list;
}

static const char *const functions[] = {"ref", "prompt", "json"};

static bool function_by_name(mt_str name, mt_mtr_function *ret)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(functions); i++) {
        if (mt_str_eq(name, functions[i])) {
            *ret = (mt_mtr_function)i;
            return true;
        }
    }
    return false;
}

// '(' "text" ')' of a reference. False when malformed (reported), the rest of the line skipped.
static bool parse_call(parser *p, mt_str name, mt_str *ret)
{
    unsigned line = p->tok.line;
    bool opened = is_mark(p, '(');

    if (opened)
        next(p);
    if (opened && p->tok.kind == MT_TOKEN_STRING) {
        *ret = p->tok.text;
        next(p);
        if (is_mark(p, ')')) {
            next(p);
            return true;
        }
    }
    if (p->lex.stopped)
        return false;
    if (p->tok.kind != MT_TOKEN_BAD)
        error_at_token(p, NULL,
                       mt_mtr_printf(p->file, "a reference is written @%.*s(\"name\")",
                                     (int)MT_MIN(name.len, (size_t)20), name.data));
    while (p->tok.kind != MT_TOKEN_END && p->tok.line == line && !is_mark(p, ')') &&
           !is_mark(p, ',') && !is_mark(p, ']') && !is_mark(p, '}'))
        next(p);
    if (is_mark(p, ')'))
        next(p);
    return false;
}

static mt_mtr_node *parse_reference(parser *p)
{
    mt_mtr_node *node = new_node(p, MT_MTR_BAD);
    mt_str name = {"ref", 3};
    bool known = false;

    if (!node)
        return NULL;
    next(p);
    if (p->tok.kind == MT_TOKEN_WORD) {
        name = p->tok.text;
        known = function_by_name(name, &node->function);
        if (!known) {
            const char *near = mt_nearest_of(name, functions, MT_ARRAY_SIZE(functions));

            error_at_token(p, near ? mt_mtr_printf(p->file, "did you mean @%s(…)?", near) : NULL,
                           "references are @ref(\"…\"), @prompt(\"…\") and @json(\"…\")");
        }
        next(p);
    }
    if (parse_call(p, name, &node->text) && known)
        node->type = MT_MTR_REF;
    return node;
}

// What a word may have been meant for: true, false or null misspelled, or as other languages write
// them. NULL when it can only be a text.
static const char *constant_near(mt_str text)
{
    static const char *const words[] = {"true", "false", "null"};
    static const struct {
        const char *other, *word;
    } foreign[] = {{"yes", "true"},  {"on", "true"},  {"no", "false"},
                   {"off", "false"}, {"nil", "null"}, {"none", "null"}};

    for (size_t i = 0; i < MT_ARRAY_SIZE(words); i++) {
        if (mt_str_ieq(text, words[i]))
            return words[i];
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(foreign); i++) {
        if (mt_str_ieq(text, foreign[i].other))
            return foreign[i].word;
    }
    return mt_nearest_of(text, words, MT_ARRAY_SIZE(words));
}

// true, false, null; any other word is one of these misspelled, or a text without its quotes.
static mt_mtr_node *parse_word(parser *p)
{
    mt_mtr_node *node = new_node(p, MT_MTR_BAD);
    mt_str text = p->tok.text;

    if (!node)
        return NULL;
    if (mt_str_eq(text, "true") || mt_str_eq(text, "false")) {
        node->type = MT_MTR_BOOL;
        node->boolean = text.data[0] == 't';
    } else if (mt_str_eq(text, "null")) {
        node->type = MT_MTR_NULL;
    } else {
        const char *near = constant_near(text);
        int shown = (int)MT_MIN(text.len, (size_t)60);
        const char *hint = near ? mt_mtr_printf(p->file, "write %s, or \"%.*s\" for a text", near,
                                                shown, text.data)
                                : mt_mtr_printf(p->file, "write \"%.*s\"", shown, text.data);

        error_at_token(p, hint,
                       mt_mtr_printf(p->file, "%s is no value: a text needs double quotes",
                                     mt_mtr_quote(p->file, text)));
    }
    next(p);
    return node;
}

static mt_mtr_node *parse_scalar(parser *p, mt_mtr_type type)
{
    mt_mtr_node *node = new_node(p, type);

    if (!node)
        return NULL;
    node->text = p->tok.text;
    next(p);
    return node;
}

static mt_mtr_node *parse_nested(parser *p)
{
    mt_mtr_node *node;

    if (p->depth + 1 >= MT_MTR_MAX_DEPTH) {
        stop(p, "nested deeper than 64 levels");
        return NULL;
    }
    p->depth++;
    node = is_mark(p, '[') ? parse_list(p) : parse_object(p);
    p->depth--;
    return node;
}

// NULL when there is no value here (reported; nothing was taken) or the parser stopped.
static mt_mtr_node *parse_value(parser *p)
{
    switch (p->tok.kind) {
    case MT_TOKEN_STRING:
        return parse_scalar(p, MT_MTR_STRING);
    case MT_TOKEN_NUMBER:
        return parse_scalar(p, MT_MTR_NUMBER);
    case MT_TOKEN_BAD:
        return parse_scalar(p, MT_MTR_BAD);
    case MT_TOKEN_WORD:
        if (p->tok.line_start && begins_member(p))
            break;
        return parse_word(p);
    case MT_TOKEN_MARK:
        if (p->tok.mark == '[' || p->tok.mark == '{')
            return parse_nested(p);
        if (p->tok.mark == '@')
            return parse_reference(p);
        break;
    default:
        break;
    }
    if (!p->lex.stopped)
        error_at_token(p, NULL,
                       mt_mtr_printf(p->file, "a value is missing before %s", describe(p)));
    return NULL;
}

const char *mt_mtr_type_word(const mt_mtr_node *node)
{
    static const char *const words[] = {
        [MT_MTR_NULL] = "null",       [MT_MTR_BOOL] = "true or false",
        [MT_MTR_NUMBER] = "a number", [MT_MTR_STRING] = "a string",
        [MT_MTR_LIST] = "a list",     [MT_MTR_OBJECT] = "an object",
        [MT_MTR_REF] = "a reference", [MT_MTR_BAD] = "a faulty value",
    };

    return words[node->type];
}

mt_mtr_file *mt_mtr_parse(const char *name, const char *data, size_t len, mt_mtr_diags *diags)
{
    _cleanup_(mt_mtr_file_free_p) mt_mtr_file *f = calloc(1, sizeof(*f));
    parser p = {.file = f};

    if (!f)
        return NULL;
    if (len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) {
        data += 3;
        len -= 3;
    }
    f->text = len ? data : "";
    f->len = len;
    f->diags = diags;
    f->arena = mt_arena_new(FILE_ARENA_BYTES);
    f->name = f->arena ? mt_arena_strdup(f->arena, name) : NULL;
    if (!f->name)
        return NULL;
    mt_lexer_init(&p.lex, f);
    p.tok = (mt_token){.line = 1, .column = 1};
    f->root = new_node(&p, MT_MTR_OBJECT);
    if (!f->root)
        return NULL;
    next(&p);
    parse_members(&p, f->root, true);
    return MT_TAKE_PTR(f);
}

void mt_mtr_file_free(mt_mtr_file *f)
{
    if (!f)
        return;
    mt_arena_free(f->arena);
    free(f);
}
