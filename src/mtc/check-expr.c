// SPDX-License-Identifier: Apache-2.0
// Types of expressions. What was reported has the type MT_MTC_BAD, and nobody says more about it.
#include "mtc/check-internal.h"

// ---- words ----

const char *mt_mtc_type_words(mt_mtc_type type)
{
    static const char *const words[] = {
        [MT_MTC_BAD] = "?",
        [MT_MTC_BOOL] = "a bool",
        [MT_MTC_INT] = "an int",
        [MT_MTC_DECIMAL] = "a decimal",
        [MT_MTC_STRING] = "a string",
        [MT_MTC_GUID] = "a guid",
        [MT_MTC_JSON_OBJECT] = "a jsonObject",
        [MT_MTC_JSON_ARRAY] = "a jsonArray",
        [MT_MTC_VOID] = "no value",
        [MT_MTC_ERROR] = "an error",
    };

    return words[type];
}

const char *mt_mtc_conversion_hint(mt_mtc_type from, mt_mtc_type to)
{
    static const struct {
        mt_mtc_type from, to;
        const char *hint;
    } ways[] = {
        {MT_MTC_STRING, MT_MTC_INT, "StringToInt(…) reads a number from a string"},
        {MT_MTC_STRING, MT_MTC_DECIMAL, "StringToDecimal(…) reads a number from a string"},
        {MT_MTC_STRING, MT_MTC_BOOL, "compare it: … == \"true\""},
        {MT_MTC_STRING, MT_MTC_GUID, "StringToGuid(…) reads a guid from a string"},
        {MT_MTC_STRING, MT_MTC_JSON_OBJECT, "StringToJsonObject(…) reads JSON from a string"},
        {MT_MTC_STRING, MT_MTC_JSON_ARRAY, "StringToJsonArray(…) reads JSON from a string"},
        {MT_MTC_BOOL, MT_MTC_STRING, "\"\" + … makes a string of it"},
        {MT_MTC_INT, MT_MTC_STRING, "\"\" + … makes a string of it"},
        {MT_MTC_DECIMAL, MT_MTC_STRING, "\"\" + … makes a string of it"},
        {MT_MTC_GUID, MT_MTC_STRING, "GuidToString(…) makes a string of it"},
        {MT_MTC_JSON_OBJECT, MT_MTC_STRING,
         "JsonObjectToString(…) makes a string of it, JsonObjectGet(…, \"name\") reads a member"},
        {MT_MTC_JSON_ARRAY, MT_MTC_STRING,
         "JsonArrayToString(…) makes a string of it, StringJoin(…, \", \") joins its items"},
        {MT_MTC_DECIMAL, MT_MTC_INT, "DecimalToInt(…) cuts what is after the point"},
        {MT_MTC_INT, MT_MTC_BOOL, "compare it: … != 0"},
        {MT_MTC_ERROR, MT_MTC_STRING, "ErrorMessage(…) is its text"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(ways); i++) {
        if (ways[i].from == from && ways[i].to == to)
            return ways[i].hint;
    }
    return NULL;
}

static bool is_number(mt_mtc_type type)
{
    return type == MT_MTC_INT || type == MT_MTC_DECIMAL;
}

static bool is_scalar(mt_mtc_type type)
{
    return type >= MT_MTC_BOOL && type <= MT_MTC_GUID;
}

// ---- conversions ----

bool mt_mtc_fit(mt_mtc_checker *c, mt_mtc_expr **slot, mt_mtc_type wanted)
{
    mt_mtc_expr *e = *slot, *wide;

    if (e->type == MT_MTC_BAD || wanted == MT_MTC_BAD || e->type == wanted)
        return true;
    if (e->type != MT_MTC_INT || wanted != MT_MTC_DECIMAL)
        return false;
    wide = mt_arena_new_of(c->program->arena, mt_mtc_expr);
    if (!wide) {
        c->program->oom = true;
        return true;
    }
    *wide = (mt_mtc_expr){.kind = MT_EXPR_WIDEN,
                          .type = MT_MTC_DECIMAL,
                          .place = e->place,
                          .begin = e->begin,
                          .height = e->height + 1,
                          .left = e,
                          .next = e->next};
    e->next = NULL;
    *slot = wide;
    return true;
}

// ---- names ----

typedef struct candidates {
    const mt_mtc_checker *c;
    const mt_mtc_function *at;
} candidates;

enum { MOST_CANDIDATES = 1000 }; // each costs time: a hostile program may have many

static const char *next_variable(size_t i, void *data)
{
    const mt_mtc_checker *c = ((const candidates *)data)->c;
    const mt_mtc_variable *v;

    if (i >= c->known_count)
        return NULL;
    v = c->known[c->known_count - 1 - i];
    return mt_mtc_printf(c->program, "%.*s", (int)v->name.len, v->name.data);
}

static const char *next_function(size_t i, void *data)
{
    candidates *d = data;
    const mt_mtc_program *p = d->c->program;
    const mt_mtc_function *f;

    if (i < p->builtin_count)
        return p->builtins[i]->name;
    f = i == p->builtin_count ? p->first : d->at;
    if (!f || i > MOST_CANDIDATES)
        return NULL;
    d->at = f->next;
    return mt_mtc_printf(d->c->program, "%.*s", (int)f->name.len, f->name.data);
}

// Only while reports of the file are still shown: candidates cost time and memory.
static const char *nearest(mt_mtc_checker *c, mt_str word,
                           const char *(*next)(size_t i, void *data))
{
    candidates d = {.c = c};
    const char *near = NULL, *name;

    if (c->file->errors >= MT_MTR_MAX_ERRORS || word.len > MT_MTC_MAX_NAME)
        return NULL;
    for (size_t i = 0; !near && (name = next(i, &d)); i++) {
        if (mt_str_ieq(word, name))
            near = name;
    }
    d.at = NULL;
    return near ? near : mt_nearest(word, next, &d);
}

static const char *did_you_mean(mt_mtc_checker *c, const char *near)
{
    return near ? mt_mtc_printf(c->program, "did you mean '%s'?", near) : NULL;
}

static void unknown_variable(mt_mtc_checker *c, mt_str name, mt_mtc_place place)
{
    mt_mtc_variable *v;
    const char *hint = NULL;

    for (v = c->missing; v; v = v->next) {
        if (mt_mtc_same(v->name, name))
            return;
    }
    if (c->function->header_broken) // it may be a parameter
        return;
    if (mt_mtc_program_builtin(c->program, name) || mt_mtc_program_function(c->program, name))
        hint = mt_mtc_printf(c->program, "it is a function: call it, %.*s(…)",
                             (int)MT_MIN(name.len, (size_t)60), name.data);
    else
        hint = did_you_mean(c, nearest(c, name, next_variable));
    mt_mtc_error(c, place, hint, "no variable %s is known here", mt_mtc_quote(c->program, name));
    v = mt_arena_new_of(c->program->arena, mt_mtc_variable);
    if (!v) {
        c->program->oom = true;
        return;
    }
    v->name = name;
    v->next = c->missing;
    c->missing = v;
}

const mt_mtc_variable *mt_mtc_lookup(mt_mtc_checker *c, mt_str name, mt_mtc_place place)
{
    for (size_t i = c->known_count; i-- > 0;) {
        if (mt_mtc_same(c->known[i]->name, name))
            return c->known[i];
    }
    unknown_variable(c, name, place);
    return NULL;
}

// ---- calls ----

static const char *function_signature(mt_mtc_checker *c, const mt_mtc_function *f)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(16384);

    (void)mt_buf_addf(&b, "%s %.*s(", mt_mtc_type_word(f->result), (int)f->name.len, f->name.data);
    for (const mt_mtc_variable *v = f->parameters; v; v = v->next)
        (void)mt_buf_addf(&b, "%s%s %.*s", v == f->parameters ? "" : ", ",
                          mt_mtc_type_word(v->type), (int)v->name.len, v->name.data);
    (void)mt_buf_adds(&b, ")");
    return mt_mtc_printf(c->program, "%s", mt_buf_str(&b));
}

static const char *signature(mt_mtc_checker *c, const mt_mtc_expr *call)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);

    if (call->function)
        return function_signature(c, call->function);
    (void)mt_mtc_builtin_signature(call->builtin, &b);
    return mt_mtc_printf(c->program, "%s", mt_buf_str(&b));
}

static void wrong_argument(mt_mtc_checker *c, const mt_mtc_expr *call, const mt_mtc_expr *argument,
                           size_t i, mt_mtc_type wanted)
{
    mt_mtc_error(c, argument->begin, mt_mtc_conversion_hint(argument->type, wanted),
                 "argument %zu of %.*s takes %s, not %s: %s", i + 1, (int)call->text.len,
                 call->text.data, mt_mtc_type_words(wanted), mt_mtc_type_words(argument->type),
                 signature(c, call));
}

// Checks the arguments against the types that are wanted; type_of gives them.
static void check_arguments(mt_mtc_checker *c, mt_mtc_expr *call, size_t wanted)
{
    const mt_mtc_variable *parameter = call->function ? call->function->parameters : NULL;
    mt_mtc_expr **slot = &call->first;
    size_t i = 0;

    if (call->count != wanted) {
        mt_mtc_error(c, call->place, NULL, "%.*s takes %zu argument%s, not %zu: %s",
                     (int)call->text.len, call->text.data, wanted, wanted == 1 ? "" : "s",
                     call->count, signature(c, call));
        return;
    }
    for (; *slot && (parameter || call->builtin); slot = &(*slot)->next, i++) {
        mt_mtc_type type = parameter ? parameter->type : call->builtin->parameters[i].type;

        if (!mt_mtc_fit(c, slot, type))
            wrong_argument(c, call, *slot, i, type);
        parameter = parameter ? parameter->next : NULL;
    }
}

static bool is_variable(const mt_mtc_checker *c, mt_str name)
{
    for (size_t i = 0; i < c->known_count; i++) {
        if (mt_mtc_same(c->known[i]->name, name))
            return true;
    }
    return false;
}

static mt_mtc_type unknown_function(mt_mtc_checker *c, const mt_mtc_expr *e)
{
    if (!c->program->cut)
        mt_mtc_error(c, e->place,
                     is_variable(c, e->text) ? "it is a variable: only functions are called"
                                             : did_you_mean(c, nearest(c, e->text, next_function)),
                     "no function %s is known", mt_mtc_quote(c->program, e->text));
    return MT_MTC_BAD;
}

static mt_mtc_type check_call(mt_mtc_checker *c, mt_mtc_expr *e)
{
    for (mt_mtc_expr *a = e->first; a; a = a->next)
        (void)mt_mtc_check_value(c, a);
    e->builtin = mt_mtc_program_builtin(c->program, e->text);
    if (!e->builtin)
        e->function = mt_mtc_program_function(c->program, e->text);
    if (!e->builtin && !e->function)
        return unknown_function(c, e);
    if (e->builtin) {
        check_arguments(c, e, e->builtin->count);
        return e->builtin->result;
    }
    if (!e->function->header_broken)
        check_arguments(c, e, e->function->count);
    return e->function->result;
}

// ---- operators ----

static const char *const op_words[] = {
    [MT_OP_OR] = "||",       [MT_OP_AND] = "&&",           [MT_OP_EQUAL] = "==",
    [MT_OP_UNEQUAL] = "!=",  [MT_OP_LESS] = "<",           [MT_OP_LESS_EQUAL] = "<=",
    [MT_OP_GREATER] = ">",   [MT_OP_GREATER_EQUAL] = ">=", [MT_OP_ADD] = "+",
    [MT_OP_SUBTRACT] = "-",  [MT_OP_MULTIPLY] = "*",       [MT_OP_DIVIDE] = "/",
    [MT_OP_REMAINDER] = "%", [MT_OP_NEGATE] = "-",         [MT_OP_NOT] = "!",
};

static mt_mtc_type wrong_operands(mt_mtc_checker *c, const mt_mtc_expr *e, const char *hint)
{
    mt_mtc_error(c, e->place, hint, "'%s' does not take %s and %s", op_words[e->op],
                 mt_mtc_type_words(e->left->type), mt_mtc_type_words(e->right->type));
    return MT_MTC_BAD;
}

// Both sides as one type: the same, or decimals of an int and a decimal.
static bool meet(mt_mtc_checker *c, mt_mtc_expr *e)
{
    if (e->left->type == MT_MTC_DECIMAL)
        return mt_mtc_fit(c, &e->right, MT_MTC_DECIMAL);
    return mt_mtc_fit(c, &e->left, e->right->type);
}

static void check_logic(mt_mtc_checker *c, const mt_mtc_expr *e)
{
    mt_mtc_type other = e->left->type == MT_MTC_BOOL ? e->right->type : e->left->type;

    if (other != MT_MTC_BOOL)
        (void)wrong_operands(c, e, mt_mtc_conversion_hint(other, MT_MTC_BOOL));
}

static void check_equality(mt_mtc_checker *c, mt_mtc_expr *e)
{
    mt_mtc_type left = e->left->type, right = e->right->type;
    const char *hint = left == MT_MTC_STRING ? mt_mtc_conversion_hint(left, right)
                                             : mt_mtc_conversion_hint(right, left);

    if (left == MT_MTC_ERROR || !meet(c, e))
        (void)wrong_operands(c, e, left == right ? NULL : hint);
}

static void check_order(mt_mtc_checker *c, mt_mtc_expr *e)
{
    mt_mtc_type left = e->left->type, right = e->right->type;
    const char *hint = left == MT_MTC_STRING ? mt_mtc_conversion_hint(left, right)
                                             : mt_mtc_conversion_hint(right, left);

    if (is_number(left) && is_number(right))
        (void)meet(c, e);
    else if (left == MT_MTC_BOOL && is_number(right) && e->left->kind == MT_EXPR_BINARY)
        (void)wrong_operands(c, e, "write a < b && b < c");
    else if (left != MT_MTC_STRING || right != MT_MTC_STRING)
        (void)wrong_operands(c, e, hint);
}

static mt_mtc_type check_arithmetic(mt_mtc_checker *c, mt_mtc_expr *e)
{
    mt_mtc_type left = e->left->type, right = e->right->type;

    if (is_number(left) && is_number(right)) {
        (void)meet(c, e);
        return e->left->type;
    }
    if (e->op == MT_OP_ADD && is_scalar(left) && is_scalar(right) &&
        (left == MT_MTC_STRING || right == MT_MTC_STRING))
        return MT_MTC_STRING;
    if (left == MT_MTC_STRING && right == MT_MTC_STRING)
        return wrong_operands(c, e, NULL);
    if (left == MT_MTC_STRING)
        return wrong_operands(c, e,
                              mt_mtc_conversion_hint(is_number(right) ? left : right,
                                                     is_number(right) ? right : left));
    return wrong_operands(
        c, e,
        mt_mtc_conversion_hint(is_number(left) ? right : left, is_number(left) ? left : right));
}

static mt_mtc_type check_binary(mt_mtc_checker *c, mt_mtc_expr *e)
{
    mt_mtc_type left = mt_mtc_check_value(c, e->left), right = mt_mtc_check_value(c, e->right);
    bool compares = e->op <= MT_OP_GREATER_EQUAL;

    // What a comparison gives is known whatever is compared.
    if (left == MT_MTC_BAD || right == MT_MTC_BAD)
        return compares ? MT_MTC_BOOL : MT_MTC_BAD;
    if (!compares)
        return check_arithmetic(c, e);
    if (e->op <= MT_OP_AND)
        check_logic(c, e);
    else if (e->op <= MT_OP_UNEQUAL)
        check_equality(c, e);
    else
        check_order(c, e);
    return MT_MTC_BOOL;
}

static mt_mtc_type check_unary(mt_mtc_checker *c, mt_mtc_expr *e)
{
    mt_mtc_type type = mt_mtc_check_value(c, e->left);
    bool fits = e->op == MT_OP_NOT ? type == MT_MTC_BOOL : is_number(type);

    if (type == MT_MTC_BAD || fits)
        return type;
    mt_mtc_error(c, e->place,
                 mt_mtc_conversion_hint(type, e->op == MT_OP_NOT ? MT_MTC_BOOL : MT_MTC_INT),
                 "'%s' does not take %s", op_words[e->op], mt_mtc_type_words(type));
    return MT_MTC_BAD;
}

static mt_mtc_type check_choice(mt_mtc_checker *c, mt_mtc_expr *e)
{
    mt_mtc_type condition = mt_mtc_check_value(c, e->first), left, right;

    left = mt_mtc_check_value(c, e->left);
    right = mt_mtc_check_value(c, e->right);
    if (condition != MT_MTC_BAD && condition != MT_MTC_BOOL)
        mt_mtc_error(c, e->first->begin, mt_mtc_conversion_hint(condition, MT_MTC_BOOL),
                     "a condition is a bool, not %s", mt_mtc_type_words(condition));
    if (left == MT_MTC_BAD || right == MT_MTC_BAD)
        return MT_MTC_BAD;
    if (meet(c, e))
        return e->left->type;
    mt_mtc_error(c, e->place, NULL, "'?' gives %s or %s: both must be of one type",
                 mt_mtc_type_words(left), mt_mtc_type_words(right));
    return MT_MTC_BAD;
}

// ---- all ----

static mt_mtc_type check_name(mt_mtc_checker *c, mt_mtc_expr *e)
{
    e->variable = mt_mtc_lookup(c, e->text, e->place);
    return e->variable ? e->variable->type : MT_MTC_BAD;
}

static mt_mtc_type check_int(mt_mtc_checker *c, const mt_mtc_expr *e)
{
    if (e->lone_minimum)
        mt_mtc_error(c, e->place, "a decimal holds larger ones: write .0 after it",
                     "'9223372036854775808' is too large: an int goes up to 9223372036854775807");
    return MT_MTC_INT;
}

mt_mtc_type mt_mtc_check_expr(mt_mtc_checker *c, mt_mtc_expr *e)
{
    mt_mtc_type type = MT_MTC_BAD;

    // Nothing more is shown of this file, so nothing more is looked for.
    if (c->file->errors > MT_MTR_MAX_ERRORS)
        return e->type = MT_MTC_BAD;
    switch (e->kind) {
    case MT_EXPR_BAD:
        break;
    case MT_EXPR_BOOL:
        type = MT_MTC_BOOL;
        break;
    case MT_EXPR_INT:
        type = check_int(c, e);
        break;
    case MT_EXPR_DECIMAL:
    case MT_EXPR_WIDEN:
        type = MT_MTC_DECIMAL;
        break;
    case MT_EXPR_STRING:
        type = MT_MTC_STRING;
        break;
    case MT_EXPR_NAME:
        type = check_name(c, e);
        break;
    case MT_EXPR_CALL:
        type = check_call(c, e);
        break;
    case MT_EXPR_UNARY:
        type = check_unary(c, e);
        break;
    case MT_EXPR_BINARY:
        type = check_binary(c, e);
        break;
    case MT_EXPR_CHOICE:
        type = check_choice(c, e);
        break;
    }
    e->type = type;
    return type;
}

mt_mtc_type mt_mtc_check_value(mt_mtc_checker *c, mt_mtc_expr *e)
{
    if (mt_mtc_check_expr(c, e) != MT_MTC_VOID)
        return e->type;
    mt_mtc_error(c, e->begin, NULL, "%.*s gives no value", (int)e->text.len, e->text.data);
    e->type = MT_MTC_BAD;
    return MT_MTC_BAD;
}
