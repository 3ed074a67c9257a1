// SPDX-License-Identifier: Apache-2.0
// The walk: a node at a value, its rules one after another. It recurses, by way of the rules, as
// deep as mt_schema_limits allows and no deeper.
#include "schema/validate-internal.h"

#include <errno.h>
#include <stdio.h>

enum {
    NODE_STEPS = 8,
    RULE_STEPS = 2,
    MATCH_STEPS = 20, // to begin one
    POINTER_MAX = 65536,
};

// ---- faults ----

void mt_schema_errors_done(mt_schema_errors *e)
{
    for (size_t i = 0; i < e->count; i++) {
        free(e->items[i].instance);
        free(e->items[i].schema);
        free(e->items[i].sentence);
    }
    *e = (mt_schema_errors){.max = e->max};
}

static size_t max_of(const mt_schema_errors *e)
{
    return e->max ? MT_MIN(e->max, (size_t)MT_SCHEMA_ERRORS) : (size_t)MT_SCHEMA_ERRORS;
}

bool schema_is_full(const validation *v)
{
    return v->quiet || v->errors->count >= max_of(v->errors);
}

static void add_instance_pointer(const spot *at, mt_buf *out)
{
    const spot *way[MT_JSON_DEPTH_MAX + 1];
    size_t depth = 0;

    for (; at->up && depth < MT_ARRAY_SIZE(way); at = at->up)
        way[depth++] = at;
    while (depth-- > 0) {
        if (mt_json_kind_of(way[depth]->up->json) == MT_JSON_ARRAY)
            (void)mt_buf_addf(out, "/%zu", way[depth]->index);
        else
            schema_add_token(out, way[depth]->name);
    }
}

static char *take_text(mt_buf *b)
{
    if (b->failed == -EMSGSIZE) { // longer than anybody reads
        mt_buf_done(b);
        return strdup("/…");
    }
    return b->len || b->failed ? mt_buf_take(b) : strdup("");
}

int schema_fault(validation *v, uint32_t node, const char *keyword, const spot *at, const char *fmt,
                 ...)
{
    _cleanup_buf_ mt_buf instance = MT_BUF_INIT(POINTER_MAX), schema = MT_BUF_INIT(POINTER_MAX);
    char text[1024], shown[SCHEMA_SHOW * 2];
    mt_schema_error e = {0};
    va_list ap;

    if (schema_is_full(v))
        return 0;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    add_instance_pointer(at, &instance);
    schema_add_pointer(v->s, node, keyword, &schema);
    e.instance = take_text(&instance);
    e.schema = take_text(&schema);
    if (e.instance)
        e.sentence = mt_asprintf("%s: %s", schema_show_pointer(mt_str_of(e.instance), shown), text);
    v->errors->items[v->errors->count++] = e;
    return e.instance && e.schema && e.sentence ? 0 : mt_fail_oom(v->err);
}

// ---- limits ----

int schema_spend(validation *v, uint64_t steps)
{
    if (steps > v->steps)
        return mt_fail(v->err, MT_E_TOO_LARGE,
                       "to see whether the value fits the schema takes too long: make the value "
                       "smaller, or the schema simpler");
    v->steps -= steps;
    return 0;
}

static int no_match(validation *v, const spot *at)
{
    _cleanup_buf_ mt_buf pointer = MT_BUF_INIT(POINTER_MAX);
    char shown[SCHEMA_SHOW * 2];

    if (mt_err_code(*v->err) == MT_E_OOM)
        return -1;
    add_instance_pointer(at, &pointer);
    return mt_wrap(v->err, "%s",
                   schema_show_pointer((mt_str){mt_buf_str(&pointer), pointer.len}, shown));
}

int schema_match(validation *v, uint32_t regex, mt_str text, const spot *at)
{
    mt_regex_search search;
    int found;

    if (schema_spend(v, MATCH_STEPS) < 0)
        return -1;
    if (mt_regex_search_init(&search, v->s->regexes.at[regex], text, v->regex_work, v->err) < 0)
        return no_match(v, at);
    found = mt_regex_search_from(&search, 0, v->err);
    v->regex_work = search.left;
    mt_regex_search_done(&search);
    return found < 0 ? no_match(v, at) : found;
}

// ---- marks ----

int marks_init(validation *v, marks *m, const mt_json *of)
{
    size_t words = mt_json_count(of) / 64 + 1;

    *m = (marks){.count = mt_json_count(of)};
    if (schema_spend(v, words) < 0)
        return -1;
    m->bits = calloc(words, sizeof(*m->bits));
    return m->bits ? 0 : mt_fail_oom(v->err);
}

void marks_done(marks *m)
{
    free(m->bits);
    m->bits = NULL;
}

void marks_add(marks *to, const marks *from)
{
    for (size_t i = 0; to && i < to->count / 64 + 1; i++)
        to->bits[i] |= from->bits[i];
}

// ---- the walk ----

static int apply_rule(validation *v, const rule_at *r)
{
    switch (r->rule->op) {
    case OP_MEMBERS:
        return rule_members(v, r);
    case OP_NAMES:
        return rule_names(v, r);
    case OP_ITEMS:
        return rule_items(v, r);
    case OP_CONTAINS:
        return rule_contains(v, r);
    case OP_UNEVALUATED_ITEMS:
    case OP_UNEVALUATED_PROPERTIES:
        return rule_unevaluated(v, r);
    case OP_REF:
    case OP_DYNAMIC_REF:
    case OP_DEPENDENCIES:
    case OP_ALL_OF:
    case OP_ANY_OF:
    case OP_ONE_OF:
    case OP_NOT:
    case OP_IF:
        return rule_logic(v, r);
    default:
        return rule_simple(v, r);
    }
}

// All rules are looked at as long as there is room for faults.
static int apply_rules(validation *v, uint32_t node, const spot *at, const scope *sc, marks *m)
{
    const schema_node *n = &v->s->nodes.at[node];
    rule_at r = {.node = node, .at = at, .scope = sc, .marks = m};
    int fits = 1;

    for (uint32_t i = 0; i < n->rule_count && (fits || !schema_is_full(v)); i++) {
        int one;

        if (schema_spend(v, RULE_STEPS) < 0)
            return -1;
        r.rule = &v->s->rules.at[n->first_rule + i];
        one = apply_rule(v, &r);
        if (one < 0)
            return -1;
        fits = fits && one;
    }
    return fits;
}

// A node that asks what was looked at sees what it and the schemas within it looked at, and hands
// that on where it fits.
static int apply_with_own_marks(validation *v, uint32_t node, const spot *at, const scope *sc,
                                marks *m)
{
    _cleanup_marks_ marks own = {0};
    int fits;

    if (marks_init(v, &own, at->json) < 0)
        return -1;
    fits = apply_rules(v, node, at, sc, &own);
    if (fits > 0)
        marks_add(m, &own);
    return fits;
}

int schema_apply(validation *v, uint32_t node, const spot *at, const scope *sc, marks *m)
{
    const schema_node *n = &v->s->nodes.at[node];
    scope here = {sc, n->resource};
    int fits;

    if (n->never)
        return schema_fault(v, node, NULL, at, "nothing is allowed here");
    if (v->depth == v->depth_max)
        return mt_fail(v->err, MT_E_TOO_LARGE,
                       "the schema nests more than %u deep in this value: make the value flatter",
                       v->depth_max);
    if (schema_spend(v, NODE_STEPS) < 0)
        return -1;
    if (!sc || sc->resource != n->resource)
        sc = &here;
    v->depth++;
    fits =
        n->unevaluated ? apply_with_own_marks(v, node, at, sc, m) : apply_rules(v, node, at, sc, m);
    v->depth--;
    return fits;
}

int schema_apply_quiet(validation *v, uint32_t node, const spot *at, const scope *sc, marks *m)
{
    int fits;

    v->quiet++;
    fits = schema_apply(v, node, at, sc, m);
    v->quiet--;
    return fits;
}

int mt_schema_validate(const mt_schema *s, const mt_json *instance, const mt_schema_limits *limits,
                       mt_schema_errors *errors, mt_err **err)
{
    static const mt_schema_limits usual = MT_SCHEMA_LIMITS_INIT;
    const mt_schema_limits *l = limits ? limits : &usual;
    mt_schema_errors unseen = {0};
    mt_err *why = NULL;
    validation v = {
        .s = s,
        .errors = errors ? errors : &unseen,
        .quiet = errors ? 0 : 1,
        .depth_max = MT_MIN(l->depth, (unsigned)MT_SCHEMA_DEPTH_MAX),
        .steps = l->steps,
        .regex_work = l->regex_work,
        .err = &why,
    };
    spot top = {.json = instance};
    int fits = schema_apply(&v, 0, &top, NULL, NULL);

    if (fits < 0) {
        mt_schema_errors_done(v.errors);
        mt_err_move(err, why);
        return -1;
    }
    v.errors->more = v.errors->count == max_of(v.errors);
    return fits ? 0 : 1;
}

// ---- schemas as values ----

int schema_check_meta(schema_compiler *c, const mt_json *document)
{
    const char *uri = mt_json_text(mt_json_get(document, "$schema"), SCHEMA_URI_2020);
    _cleanup_json_ mt_json *meta = mt_json_new_object();
    _cleanup_schema_ mt_schema *s = NULL;
    _cleanup_errors_ mt_schema_errors errors = {.max = 1};
    const mt_schema_error *e = &errors.items[0];
    int r;

    if (c->s->resources.at[0].draft == SCHEMA_DRAFT_7)
        uri = SCHEMA_URI_7;
    (void)mt_json_set(meta, "$ref", mt_json_new_text(uri));
    if (!mt_json_ok(meta))
        return mt_fail_oom(c->err);
    s = schema_compile_plain(meta, c->options, c->err);
    r = s ? mt_schema_validate(s, document, NULL, &errors, c->err) : -1;
    if (r <= 0)
        return r;
    return mt_fail_field(c->err, MT_E_BAD_FIELD, e->instance, "%s", e->sentence);
}
