// SPDX-License-Identifier: Apache-2.0
// Walks a tree beside the table of its kind: checks every value and writes the canonical form.
#include "mtr/kinds-internal.h"
#include "mtr/mtr-internal.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>

enum { CANONICAL_MAX = 24 * 1024 * 1024 };

static const char *next_prop(size_t i, void *data)
{
    const mt_props *props = data;

    return i < props->count ? props->items[i].name : NULL;
}

// ---- places ----

void mt_checker_error(mt_checker *c, const mt_mtr_node *node, const char *hint, const char *fmt,
                      ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mt_mtr_report(c->file, MT_MTR_ERROR, node->line, node->column, c->path, hint, "%s", text);
}

void mt_checker_warn(mt_checker *c, const mt_mtr_node *node, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mt_mtr_report(c->file, MT_MTR_WARNING, node->line, node->column, c->path, NULL, "%s", text);
}

size_t mt_checker_enter(mt_checker *c, const char *name)
{
    size_t length = strlen(c->path);

    (void)snprintf(c->path + length, sizeof(c->path) - length, "%s%s", length ? "." : "", name);
    return length;
}

size_t mt_checker_enter_item(mt_checker *c, size_t i)
{
    size_t length = strlen(c->path);

    (void)snprintf(c->path + length, sizeof(c->path) - length, "[%zu]", i);
    return length;
}

void mt_checker_leave(mt_checker *c, size_t length)
{
    c->path[length] = '\0';
}

// ---- scalars ----

static const char *type_words(const mt_prop *prop)
{
    switch (prop->type) {
    case MT_PROP_STRING:
        return "a string";
    case MT_PROP_BOOL:
        return "true or false";
    case MT_PROP_INT:
        return "a whole number";
    case MT_PROP_DECIMAL:
    case MT_PROP_CPUS:
        return "a number";
    case MT_PROP_DURATION:
        return "a duration in double quotes, for example \"00:10:00\"";
    case MT_PROP_SIZE:
        return "a size in double quotes, for example \"512MiB\"";
    case MT_PROP_REF:
        return prop->ref == MT_REF_PROMPT ? "@prompt(\"name\")"
               : prop->ref == MT_REF_JSON ? "@json(\"name\")"
                                          : "@ref(\"name\")";
    case MT_PROP_LIST:
        return "a list";
    default:
        return "an object";
    }
}

static void wrong_type(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    static const char *const functions[] = {"@ref(\"…\")", "@prompt(\"…\")", "@json(\"…\")"};
    const char *hint = NULL;

    if (prop->type == MT_PROP_REF && node->type == MT_MTR_STRING && !c->request)
        hint = mt_mtr_printf(c->file, "write @%s(%s%.*s%s)",
                             prop->ref == MT_REF_PROMPT ? "prompt"
                             : prop->ref == MT_REF_JSON ? "json"
                                                        : "ref",
                             "\"", (int)MT_MIN(node->text.len, (size_t)60), node->text.data, "\"");
    else if (prop->type == MT_PROP_LIST)
        hint = "put [ … ] around it";
    mt_checker_error(c, node, hint, "%s takes %s, not %s", prop->name, type_words(prop),
                     node->type == MT_MTR_REF ? functions[node->function] : mt_mtr_type_word(node));
}

static void check_string(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    size_t max = prop->max ? (size_t)prop->max : MT_MTR_MAX_BYTES;

    if (node->text.len == 0 && !prop->empty_ok)
        mt_checker_error(c, node, NULL, "%s is empty", prop->name);
    else if (memchr(node->text.data, '\0', node->text.len))
        mt_checker_error(c, node, NULL, "%s holds a NUL character", prop->name);
    else if (node->text.len > max)
        mt_checker_error(c, node, NULL, "%s is %zu bytes long; the limit is %zu", prop->name,
                         node->text.len, max);
    else if (prop->rule)
        prop->rule(c, prop, node);
    mt_jw_string(&c->out, node->text);
}

static bool int_of(mt_str s, int64_t *ret)
{
    bool negative = s.len > 0 && s.data[0] == '-';
    uint64_t value;

    if (negative) {
        s.data++;
        s.len--;
    }
    if (!mt_parse_u64(s, INT64_MAX, &value))
        return false;
    *ret = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static void check_int(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    int64_t value = 0;

    if (!int_of(node->text, &value))
        mt_checker_error(c, node, NULL, "%s takes a whole number, not %.*s", prop->name,
                         (int)node->text.len, node->text.data);
    else if (value < prop->min || value > prop->max)
        mt_checker_error(c, node, NULL, "%s is %lld; it must be from %lld to %lld", prop->name,
                         (long long)value, (long long)prop->min, (long long)prop->max);
    else if (prop->rule)
        prop->rule(c, prop, node);
    mt_jw_int(&c->out, value);
}

static void check_decimal(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    char text[80];
    double value;

    (void)snprintf(text, sizeof(text), "%.*s", (int)node->text.len, node->text.data);
    value = strtod(text, NULL);
    if (!(value >= (double)prop->min && value <= (double)prop->max))
        mt_checker_error(c, node, NULL, "%s is %s; it must be from %lld to %lld", prop->name, text,
                         (long long)prop->min, (long long)prop->max);
    else if (prop->rule)
        prop->rule(c, prop, node);
    mt_jw_double(&c->out, value);
}

// "1.5" as thousandths: exact, so that no rounding decides about a ceiling.
static bool milli_of(mt_str s, int64_t *ret)
{
    const char *dot = memchr(s.data, '.', s.len);
    mt_str whole = {s.data, dot ? (size_t)(dot - s.data) : s.len};
    mt_str part = {dot ? dot + 1 : "", dot ? s.len - whole.len - 1 : 0};
    uint64_t units, thousandths = 0;

    if (!mt_parse_u64(whole, 1000000, &units) || part.len > 3 ||
        (part.len > 0 && !mt_parse_u64(part, 999, &thousandths)))
        return false;
    for (size_t i = part.len; i < 3; i++)
        thousandths *= 10;
    *ret = (int64_t)(units * 1000 + thousandths);
    return true;
}

static void check_cpus(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    int64_t milli = 0;

    if (!milli_of(node->text, &milli) || milli < prop->min)
        mt_checker_error(c, node, NULL,
                         "%s is %.*s; it must be a number from 0.01 up with at most three digits "
                         "after the point",
                         prop->name, (int)node->text.len, node->text.data);
    else if (prop->rule)
        prop->rule(c, prop, node);
    if (milli % 1000 == 0)
        mt_jw_int(&c->out, milli / 1000);
    else
        mt_jw_double(&c->out, (double)milli / 1000.0);
}

static void check_duration(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    int64_t ms = 0;
    char text[MT_DURATION_TEXT];

    if (!mt_duration_parse(node->text, &ms)) {
        mt_checker_error(c, node, NULL, "%s is %s; a duration is " MT_DURATION_GRAMMAR ", not zero",
                         prop->name, mt_mtr_quote(c->file, node->text));
        mt_jw_null(&c->out);
        return;
    }
    if (prop->rule)
        prop->rule(c, prop, node);
    mt_jw_text(&c->out, mt_duration_format(ms, text));
}

static void check_size(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    int64_t bytes = 0;
    char text[MT_SIZE_TEXT];

    if (!mt_size_parse(node->text, &bytes)) {
        mt_checker_error(c, node, NULL, "%s is %s; a size is " MT_SIZE_GRAMMAR, prop->name,
                         mt_mtr_quote(c->file, node->text));
        mt_jw_null(&c->out);
        return;
    }
    if (bytes < prop->min)
        mt_checker_error(c, node, NULL, "%s is below %s, the least that works", prop->name,
                         mt_size_format(prop->min, text));
    else if (prop->rule)
        prop->rule(c, prop, node);
    mt_jw_text(&c->out, mt_size_format(bytes, text));
}

static mt_mtr_function function_for(mt_ref_kind kind)
{
    return kind == MT_REF_PROMPT ? MT_MTR_FN_PROMPT
           : kind == MT_REF_JSON ? MT_MTR_FN_JSON
                                 : MT_MTR_FN_REF;
}

static void add_ref(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    mt_mtr_ref *ref = mt_arena_new_of(c->file->arena, mt_mtr_ref);

    if (ref) {
        ref->kind = prop->ref;
        ref->name = mt_arena_strndup(c->file->arena, node->text.data, node->text.len);
        ref->path = mt_arena_strdup(c->file->arena, c->path);
        ref->line = node->line;
        ref->column = node->column;
    }
    if (!ref || !ref->name || !ref->path) {
        c->oom = true;
        return;
    }
    *c->refs_end = ref;
    c->refs_end = &ref->next;
}

static void check_ref(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    const char *fault;

    if (node->type == MT_MTR_REF && node->function != function_for(prop->ref)) {
        wrong_type(c, prop, node);
        mt_jw_null(&c->out);
        return;
    }
    fault = mt_ref_fault(prop->ref, node->text);
    if (fault)
        mt_checker_error(c, node, NULL, "%s %s", mt_mtr_quote(c->file, node->text), fault);
    else
        add_ref(c, prop, node);
    mt_jw_string(&c->out, node->text);
}

// ---- lists, objects, maps ----

static bool too_many(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    if (!prop->max || node->count <= (size_t)prop->max)
        return false;
    mt_checker_error(c, node, NULL, "%s has %zu entries; the limit is %lld", prop->name,
                     node->count, (long long)prop->max);
    return true;
}

static bool seen_before(const mt_mtr_node *list, const mt_mtr_node *item)
{
    for (const mt_mtr_node *n = list->first; n != item; n = n->next) {
        if (n->type == MT_MTR_STRING && n->text.len == item->text.len &&
            memcmp(n->text.data, item->text.data, item->text.len) == 0)
            return true;
    }
    return false;
}

static void check_list(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    size_t i = 0;

    mt_jw_begin_array(&c->out);
    if (!too_many(c, prop, node)) {
        for (const mt_mtr_node *item = node->first; item; item = item->next) {
            size_t length = mt_checker_enter_item(c, i++);

            if (item->type == MT_MTR_NULL)
                mt_checker_error(c, item, NULL, "null cannot stand in a list");
            else if (!prop->unique || item->type != MT_MTR_STRING || !seen_before(node, item))
                mt_checker_value(c, prop->item, item);
            mt_checker_leave(c, length);
        }
        if (prop->rule)
            prop->rule(c, prop, node);
    }
    mt_jw_end_array(&c->out);
}

static void check_map(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    mt_jw_begin_object(&c->out);
    if (!too_many(c, prop, node)) {
        for (const mt_mtr_member *m = node->members; m; m = m->next) {
            if (m->value->type != MT_MTR_STRING && m->value->type != MT_MTR_BAD)
                mt_checker_error(c, m->value, "put double quotes around it",
                                 "values of %s are strings, not %s", prop->name,
                                 mt_mtr_type_word(m->value));
            else if (memchr(m->value->text.data ? m->value->text.data : "", '\0',
                            m->value->text.len))
                mt_checker_error(c, m->value, NULL, "a value of %s holds a NUL character",
                                 prop->name);
            mt_jw_key_str(&c->out, m->key);
            mt_jw_string(&c->out, m->value->text);
        }
        if (prop->rule)
            prop->rule(c, prop, node);
    }
    mt_jw_end_object(&c->out);
}

static bool known(const mt_props *props, mt_str name)
{
    for (size_t i = 0; i < props->count; i++) {
        if (mt_str_eq(name, props->items[i].name))
            return true;
    }
    return false;
}

static const char *all_names(mt_checker *c, const mt_props *props)
{
    mt_buf b = MT_BUF_INIT(1024);
    const char *text;

    (void)mt_buf_adds(&b, "known here: ");
    for (size_t i = 0; i < props->count; i++)
        (void)mt_buf_addf(&b, "%s%s", i ? ", " : "", props->items[i].name);
    text = mt_arena_strdup(c->file->arena, mt_buf_str(&b));
    mt_buf_done(&b);
    return text;
}

static void unknown(mt_checker *c, const mt_props *props, const mt_mtr_member *m)
{
    mt_mtr_node place = {.line = m->line, .column = m->column};
    const char *near = mt_nearest(m->key, next_prop, (void *)props);
    const char *name =
        mt_mtr_printf(c->file, "%.*s", (int)MT_MIN(m->key.len, (size_t)60), m->key.data);
    size_t length = mt_checker_enter(c, name ? name : "");

    mt_checker_error(
        c, &place, near ? mt_mtr_printf(c->file, "did you mean '%s'?", near) : all_names(c, props),
        "unknown property %s", mt_mtr_quote(c->file, m->key));
    mt_checker_leave(c, length);
}

void mt_checker_object(mt_checker *c, const mt_props *props, const mt_mtr_node *node)
{
    mt_jw_begin_object(&c->out);
    for (const mt_mtr_member *m = node ? node->members : NULL; m; m = m->next) {
        if (!known(props, m->key))
            unknown(c, props, m);
    }
    for (size_t i = 0; i < props->count; i++) {
        const mt_prop *prop = &props->items[i];
        const mt_mtr_member *m = mt_mtr_get(node, prop->name);
        const mt_mtr_node *value = m && m->value->type != MT_MTR_NULL ? m->value : NULL;
        size_t length = mt_checker_enter(c, prop->name);

        mt_jw_key(&c->out, prop->name);
        if (!value && prop->required && node)
            mt_checker_error(c, m ? m->value : node, NULL, "%s is missing", prop->name);
        mt_checker_value(c, prop, value);
        mt_checker_leave(c, length);
    }
    mt_jw_end_object(&c->out);
}

// ---- any value ----

static mt_mtr_type type_for(mt_prop_type type)
{
    switch (type) {
    case MT_PROP_BOOL:
        return MT_MTR_BOOL;
    case MT_PROP_INT:
    case MT_PROP_DECIMAL:
    case MT_PROP_CPUS:
        return MT_MTR_NUMBER;
    case MT_PROP_REF:
        return MT_MTR_REF;
    case MT_PROP_LIST:
        return MT_MTR_LIST;
    case MT_PROP_OBJECT:
    case MT_PROP_MAP:
        return MT_MTR_OBJECT;
    default:
        return MT_MTR_STRING;
    }
}

static void write_fallback(mt_checker *c, const mt_prop *prop)
{
    if (prop->fallback) {
        mt_jw_raw(&c->out, mt_str_of(prop->fallback));
    } else if (prop->type == MT_PROP_LIST) {
        mt_jw_begin_array(&c->out);
        mt_jw_end_array(&c->out);
    } else if (prop->type == MT_PROP_MAP) {
        mt_jw_begin_object(&c->out);
        mt_jw_end_object(&c->out);
    } else if (prop->type == MT_PROP_OBJECT) {
        mt_checker_object(c, prop->members, NULL);
    } else {
        mt_jw_null(&c->out);
    }
}

static void check_typed(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    switch (prop->type) {
    case MT_PROP_STRING:
        check_string(c, prop, node);
        break;
    case MT_PROP_BOOL:
        mt_jw_bool(&c->out, node->boolean);
        break;
    case MT_PROP_INT:
        check_int(c, prop, node);
        break;
    case MT_PROP_DECIMAL:
        check_decimal(c, prop, node);
        break;
    case MT_PROP_CPUS:
        check_cpus(c, prop, node);
        break;
    case MT_PROP_DURATION:
        check_duration(c, prop, node);
        break;
    case MT_PROP_SIZE:
        check_size(c, prop, node);
        break;
    case MT_PROP_REF:
        check_ref(c, prop, node);
        break;
    case MT_PROP_LIST:
        check_list(c, prop, node);
        break;
    case MT_PROP_MAP:
        check_map(c, prop, node);
        break;
    case MT_PROP_OBJECT:
        mt_checker_object(c, prop->members, node);
        if (prop->rule)
            prop->rule(c, prop, node);
        break;
    }
}

void mt_checker_value(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    mt_mtr_type wanted = type_for(prop->type);

    if (!node) {
        write_fallback(c, prop);
        return;
    }
    if (c->request && wanted == MT_MTR_REF)
        wanted = MT_MTR_STRING;
    if (node->type == wanted) {
        check_typed(c, prop, node);
        return;
    }
    if (node->type != MT_MTR_BAD)
        wrong_type(c, prop, node);
    mt_jw_null(&c->out);
}

int mt_mtr_check(mt_mtr_file *f, mt_kind kind, const mt_mtr_server *server, mt_mtr_checked *ret)
{
    const mt_kind_info *info = mt_kind_info_of(kind);
    _cleanup_buf_ mt_buf json = MT_BUF_INIT(CANONICAL_MAX);
    mt_checker c = {.file = f, .server = server};
    char *copy;

    c.refs_end = &c.refs;
    mt_jw_init(&c.out, &json, 0);
    mt_checker_object(&c, info->props, f->root);
    if (info->rule)
        info->rule(&c, f->root);
    copy = json.failed ? NULL : mt_arena_strndup(f->arena, mt_buf_str(&json), json.len);
    if (!copy || c.oom)
        return -1;
    ret->json = copy;
    ret->refs = c.refs;
    return 0;
}

const mt_prop *mt_prop_find(const mt_props *props, const char *name)
{
    for (size_t i = 0; i < props->count; i++) {
        if (mt_streq(props->items[i].name, name))
            return &props->items[i];
    }
    return NULL;
}

bool mt_kind_by_word(const char *word, mt_kind *ret)
{
    for (int i = 0; i < MT_KIND_IMAGE; i++) {
        if (mt_streq(mt_kind_info_of((mt_kind)i)->word, word)) {
            *ret = (mt_kind)i;
            return true;
        }
    }
    return false;
}

const char *mt_kind_word(mt_kind kind)
{
    return mt_kind_info_of(kind)->word;
}

const char *mt_kind_plural(mt_kind kind)
{
    return mt_kind_info_of(kind)->plural;
}
