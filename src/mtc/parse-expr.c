// SPDX-License-Identifier: Apache-2.0
// Expressions, by precedence climbing.
#include "mtc/parse-internal.h"

// ---- nodes ----

// Stands for what could not be allocated, so that nobody has to look for NULL; program->oom or the
// stopped lexer end the parse soon.
static mt_mtc_expr *no_expr(mt_mtc_parser *p)
{
    mt_mtc_expr *e = mt_arena_new_of(p->program->arena, mt_mtc_expr);

    if (!e)
        p->program->oom = true;
    return e ? e : &p->spare;
}

mt_mtc_expr *mt_mtc_new_expr(mt_mtc_parser *p, mt_mtc_expr_kind kind, mt_mtc_place place)
{
    mt_mtc_expr *e = no_expr(p);

    if (p->program->oom)
        return e;
    if (++p->program->nodes > MT_MTC_MAX_NODES && !p->lex.stopped)
        mt_mtc_lexer_stop(&p->lex, place,
                          "the program is too large: more than 200000 expressions and statements");
    e->kind = kind;
    e->place = e->begin = place;
    e->height = 1;
    return e;
}

static void grow(mt_mtc_parser *p, mt_mtc_expr *e, const mt_mtc_expr *part)
{
    e->height = MT_MAX(e->height, part->height + 1);
    if (e->height <= MT_MTC_MAX_CHAIN + 1 || p->lex.stopped)
        return;
    mt_mtc_lexer_stop(&p->lex, e->place,
                      "more than 1000 operators in a row: use variables for parts of it");
}

mt_mtc_expr *mt_mtc_new_name(mt_mtc_parser *p, mt_str name, mt_mtc_place place)
{
    mt_mtc_expr *e = mt_mtc_new_expr(p, MT_EXPR_NAME, place);

    if (!p->program->oom)
        e->text = name;
    return e;
}

mt_mtc_expr *mt_mtc_new_binary(mt_mtc_parser *p, mt_mtc_op op, mt_mtc_place place,
                               mt_mtc_expr *left, mt_mtc_expr *right)
{
    mt_mtc_expr *e = mt_mtc_new_expr(p, MT_EXPR_BINARY, place);

    if (p->program->oom)
        return e;
    e->op = op;
    e->left = left;
    e->right = right;
    e->begin = left->begin;
    grow(p, e, left);
    grow(p, e, right);
    return e;
}

// ---- primaries ----

static mt_mtc_expr *bad_here(mt_mtc_parser *p)
{
    return mt_mtc_new_expr(p, MT_EXPR_BAD, mt_tok(p)->place);
}

static void parse_arguments(mt_mtc_parser *p, mt_mtc_expr *call)
{
    mt_mtc_expr **end = &call->first;

    mt_mtc_advance(p);
    if (mt_at_mark(mt_tok(p), ')')) {
        mt_mtc_advance(p);
        return;
    }
    for (;;) {
        mt_mtc_expr *argument = mt_mtc_parse_expression(p);

        if (p->program->oom || p->panic)
            return;
        *end = argument;
        end = &argument->next;
        call->count++;
        grow(p, call, argument);
        if (mt_at_mark(mt_tok(p), ')')) {
            mt_mtc_advance(p);
            return;
        }
        if (!mt_at_mark(mt_tok(p), ',')) {
            mt_mtc_syntax(p, NULL, "unexpected %s: ',' or ')' goes on or ends the arguments of %s",
                          mt_mtc_describe(p), mt_mtc_quote(p->program, call->text));
            return;
        }
        mt_mtc_advance(p);
    }
}

static bool begins_value(const mt_mtc_token *t)
{
    return t->kind == MT_TOK_NAME || mt_at_key(t, MT_KEY_TRUE) || mt_at_key(t, MT_KEY_FALSE);
}

static mt_mtc_expr *parse_name(mt_mtc_parser *p)
{
    mt_mtc_expr *e = mt_mtc_new_name(p, mt_tok(p)->text, mt_tok(p)->place);

    mt_mtc_advance(p);
    if (p->program->oom)
        return e;
    if (mt_str_eq(e->text, "not") && begins_value(mt_tok(p)))
        mt_mtc_syntax(p, "'!' is not", "unexpected %s", mt_mtc_describe(p));
    if (!mt_at_mark(mt_tok(p), '('))
        return e;
    e->kind = MT_EXPR_CALL;
    if (!mt_mtc_enter(p))
        return e;
    parse_arguments(p, e);
    mt_mtc_leave(p);
    return e;
}

static mt_mtc_expr *parse_parentheses(mt_mtc_parser *p)
{
    mt_mtc_place begin = mt_tok(p)->place;
    mt_mtc_expr *e;

    if (!mt_mtc_enter(p))
        return bad_here(p);
    mt_mtc_advance(p);
    e = mt_mtc_parse_expression(p);
    (void)mt_mtc_expect(p, ')', "the expression");
    mt_mtc_leave(p);
    if (!p->program->oom) {
        e->in_parentheses = true;
        e->begin = begin;
    }
    return e;
}

static mt_mtc_expr *parse_int(mt_mtc_parser *p)
{
    static const char minimum[] = "9223372036854775808";
    mt_mtc_expr *e = mt_mtc_new_expr(p, MT_EXPR_INT, mt_tok(p)->place);
    uint64_t value = 0;

    if (!p->program->oom) {
        e->lone_minimum = mt_str_eq(mt_tok(p)->text, minimum);
        if (!e->lone_minimum)
            (void)mt_parse_u64(mt_tok(p)->text, INT64_MAX, &value);
        e->number = e->lone_minimum ? INT64_MIN : (int64_t)value;
    }
    mt_mtc_advance(p);
    return e;
}

static mt_mtc_expr *parse_literal(mt_mtc_parser *p, mt_mtc_expr_kind kind)
{
    mt_mtc_expr *e = mt_mtc_new_expr(p, kind, mt_tok(p)->place);

    if (!p->program->oom) {
        e->text = mt_tok(p)->text;
        e->truth = mt_at_key(mt_tok(p), MT_KEY_TRUE);
    }
    // What an open string has swallowed is missing behind it.
    if (mt_tok(p)->unclosed)
        mt_mtc_syntax(p, NULL, "string is not closed");
    mt_mtc_advance(p);
    return e;
}

static mt_mtc_expr *missing_expression(mt_mtc_parser *p)
{
    mt_mtc_expr *e = bad_here(p);

    if (mt_at_key(mt_tok(p), MT_KEY_NULL)) {
        mt_mtc_report(p->file, MT_MTR_ERROR, mt_tok(p)->place,
                      "\"\" is an empty string, and what a missing JSON member reads as",
                      "there is no null in this language");
        mt_mtc_advance(p);
        return e;
    }
    if (mt_at_mark(mt_tok(p), '[') || mt_at_mark(mt_tok(p), '{'))
        mt_mtc_syntax(p,
                      mt_at_mark(mt_tok(p), '[')
                          ? "JsonArrayCreate() makes a list, StringToJsonArray(\"[1,2]\") reads one"
                          : "JsonObjectCreate() makes an object, StringToJsonObject(…) reads one",
                      "there are no literals of lists and objects");
    else
        mt_mtc_syntax(p, mt_at_mark(mt_tok(p), '.') ? "numbers are written 0.5" : NULL,
                      "an expression is missing before %s", mt_mtc_describe(p));
    return e;
}

static mt_mtc_expr *parse_primary(mt_mtc_parser *p)
{
    const mt_mtc_token *t = mt_tok(p);

    switch (t->kind) {
    case MT_TOK_NAME:
        return parse_name(p);
    case MT_TOK_INT:
        return parse_int(p);
    case MT_TOK_DECIMAL:
        return parse_literal(p, MT_EXPR_DECIMAL);
    case MT_TOK_STRING:
        return parse_literal(p, MT_EXPR_STRING);
    case MT_TOK_BAD:
        return parse_literal(p, MT_EXPR_BAD);
    default:
        break;
    }
    if (mt_at_key(t, MT_KEY_TRUE) || mt_at_key(t, MT_KEY_FALSE))
        return parse_literal(p, MT_EXPR_BOOL);
    if (mt_at_mark(t, '('))
        return parse_parentheses(p);
    return missing_expression(p);
}

// What other languages have behind a value. {mark, what it is called, what to write}
static const struct {
    unsigned mark;
    const char *name, *hint;
} tails[] = {
    {MT_MARK2('.', 0), ".", "JsonObjectGet(x, \"name\") reads a member; functions are called f(x)"},
    {MT_MARK2('[', 0), "[",
     "JsonArrayGet(list, i) reads an item, StringSlice(text, i, 1) a character"},
    {MT_MARK2('+', '+'), "++", NULL},
    {MT_MARK2('-', '-'), "--", NULL},
};

static mt_mtc_expr *parse_foreign_tail(mt_mtc_parser *p, mt_mtc_expr *e)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(tails) && !p->panic; i++) {
        if (!mt_at_mark(mt_tok(p), tails[i].mark) || (!tails[i].hint && p->in_statement))
            continue;
        if (tails[i].hint)
            mt_mtc_syntax(p,
                          e->kind == MT_EXPR_INT ? "numbers are written 42 or 1.50" : tails[i].hint,
                          "there is no '%s' in this language", tails[i].name);
        else
            mt_mtc_syntax(p, NULL, "'%s' makes a statement of its own, not a part of an expression",
                          tails[i].name);
        return bad_here(p);
    }
    return e;
}

static mt_mtc_expr *parse_unary(mt_mtc_parser *p)
{
    bool negate = mt_at_mark(mt_tok(p), '-');
    mt_mtc_place place = mt_tok(p)->place;
    mt_mtc_expr *e, *operand;

    if (mt_at_mark(mt_tok(p), '+')) {
        mt_mtc_syntax(p, NULL, "an expression is missing before '+'");
        return bad_here(p);
    }
    if (!negate && !mt_at_mark(mt_tok(p), '!'))
        return parse_foreign_tail(p, parse_primary(p));
    if (!mt_mtc_enter(p))
        return bad_here(p);
    mt_mtc_advance(p);
    operand = parse_unary(p);
    mt_mtc_leave(p);
    if (p->program->oom)
        return operand;
    if (negate && operand->lone_minimum && !operand->in_parentheses) {
        operand->lone_minimum = false;
        operand->begin = operand->place = place;
        return operand;
    }
    e = mt_mtc_new_expr(p, MT_EXPR_UNARY, place);
    if (p->program->oom)
        return e;
    e->op = negate ? MT_OP_NEGATE : MT_OP_NOT;
    e->left = operand;
    grow(p, e, operand);
    return e;
}

// ---- operators ----

static const struct {
    unsigned mark;
    int precedence;
    mt_mtc_op op;
} binary[] = {
    {MT_MARK2('|', '|'), 1, MT_OP_OR},      {MT_MARK2('&', '&'), 2, MT_OP_AND},
    {MT_MARK2('=', '='), 3, MT_OP_EQUAL},   {MT_MARK2('!', '='), 3, MT_OP_UNEQUAL},
    {MT_MARK2('<', 0), 4, MT_OP_LESS},      {MT_MARK2('<', '='), 4, MT_OP_LESS_EQUAL},
    {MT_MARK2('>', 0), 4, MT_OP_GREATER},   {MT_MARK2('>', '='), 4, MT_OP_GREATER_EQUAL},
    {MT_MARK2('+', 0), 5, MT_OP_ADD},       {MT_MARK2('-', 0), 5, MT_OP_SUBTRACT},
    {MT_MARK2('*', 0), 6, MT_OP_MULTIPLY},  {MT_MARK2('/', 0), 6, MT_OP_DIVIDE},
    {MT_MARK2('%', 0), 6, MT_OP_REMAINDER},
};

static int find_binary(const mt_mtc_token *t)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(binary) && t->kind == MT_TOK_MARK; i++) {
        if (binary[i].mark == t->mark)
            return (int)i;
    }
    return -1;
}

static mt_mtc_expr *parse_binary(mt_mtc_parser *p, int least)
{
    mt_mtc_expr *left = parse_unary(p);

    while (!p->panic && !p->program->oom) {
        int i = find_binary(mt_tok(p));
        mt_mtc_place place = mt_tok(p)->place;

        if (i < 0 || binary[i].precedence < least)
            break;
        mt_mtc_advance(p);
        left = mt_mtc_new_binary(p, binary[i].op, place, left,
                                 parse_binary(p, binary[i].precedence + 1));
    }
    return left;
}

static mt_mtc_expr *parse_choice(mt_mtc_parser *p, mt_mtc_expr *condition)
{
    mt_mtc_expr *e = mt_mtc_new_expr(p, MT_EXPR_CHOICE, mt_tok(p)->place);

    if (p->program->oom || !mt_mtc_enter(p))
        return condition;
    mt_mtc_advance(p);
    e->begin = condition->begin;
    e->first = condition;
    e->left = mt_mtc_parse_expression(p);
    e->right = mt_mtc_expect(p, ':', "what is taken when the condition holds")
                   ? mt_mtc_parse_expression(p)
                   : bad_here(p);
    mt_mtc_leave(p);
    if (p->program->oom)
        return condition;
    grow(p, e, condition);
    grow(p, e, e->left);
    grow(p, e, e->right);
    return e;
}

// Words that are operators elsewhere, and marks that were reported already.
static void refuse_foreign_operator(mt_mtc_parser *p)
{
    const mt_mtc_token *t = mt_tok(p);

    if (t->kind == MT_TOK_NAME && mt_str_eq(t->text, "and"))
        mt_mtc_syntax(p, "'&&' is and", "unexpected 'and'");
    else if (t->kind == MT_TOK_NAME && mt_str_eq(t->text, "or"))
        mt_mtc_syntax(p, "'||' is or", "unexpected 'or'");
    else if (t->kind == MT_TOK_BAD)
        mt_mtc_syntax(p, NULL, "unexpected character");
}

mt_mtc_expr *mt_mtc_parse_operation(mt_mtc_parser *p)
{
    mt_mtc_expr *e = parse_binary(p, 1);

    if (!p->panic && mt_at_mark(mt_tok(p), '?'))
        e = parse_choice(p, e);
    if (!p->panic)
        refuse_foreign_operator(p);
    // Half of an expression has no type that is worth a word.
    return p->panic ? bad_here(p) : e;
}

mt_mtc_expr *mt_mtc_parse_expression(mt_mtc_parser *p)
{
    bool in_statement = p->in_statement;
    mt_mtc_expr *e;

    p->in_statement = false;
    e = mt_mtc_parse_operation(p);
    p->in_statement = in_statement;
    if (p->panic || !mt_at_mark(mt_tok(p), '='))
        return e;
    mt_mtc_report(p->file, MT_MTR_ERROR, mt_tok(p)->place, "'==' compares",
                  "an assignment is a statement of its own, not a part of an expression");
    mt_mtc_advance(p);
    if (mt_mtc_enter(p)) {
        (void)mt_mtc_parse_expression(p);
        mt_mtc_leave(p);
    }
    return bad_here(p);
}
