// SPDX-License-Identifier: Apache-2.0
// Expressions, from left to right onto the stack.
#include "mtc/emit-internal.h"

enum { NUMBER_MAX = (1 << 23) - 1 }; // in a word

static void put_int(mt_mtc_emitter *e, int64_t n)
{
    if (n >= -NUMBER_MAX && n <= NUMBER_MAX)
        mt_mtc_put(e, MT_CODE_NUMBER, (uint32_t)n & 0xffffff);
    else
        mt_mtc_put(e, MT_CODE_CONSTANT,
                   mt_mtc_constant_for(e, &(mt_mtc_constant){.type = MT_MTC_INT, .number = n}));
}

static void put_decimal(mt_mtc_emitter *e, mt_str text)
{
    mt_mtc_constant c = {.type = MT_MTC_DECIMAL};

    (void)mt_decimal_parse(text, false, &c.decimal); // the lexer knows its limits
    mt_mtc_put(e, MT_CODE_CONSTANT, mt_mtc_constant_for(e, &c));
}

static uint32_t builtin_number(const mt_mtc_program *p, const mt_mtc_builtin *b)
{
    size_t low = 0, high = p->builtin_count;

    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(p->builtins[middle]->name, b->name) <= 0)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

static void emit_call(mt_mtc_emitter *e, const mt_mtc_expr *x)
{
    mt_mtc_type result = x->function ? x->function->result : x->builtin->result;

    for (const mt_mtc_expr *a = x->first; a; a = a->next)
        mt_mtc_emit_expr(e, a);
    e->place = x->place;
    if (x->function)
        mt_mtc_put(e, MT_CODE_CALL, (uint32_t)x->function->number);
    else
        mt_mtc_put(e, MT_CODE_CALL_BUILTIN, builtin_number(e->program, x->builtin));
    mt_mtc_adjust(e, (result != MT_MTC_VOID) - (int)x->count);
}

static void emit_unary(mt_mtc_emitter *e, const mt_mtc_expr *x)
{
    // The least int is no literal without its sign.
    if (x->op == MT_OP_NEGATE && x->left->lone_minimum) {
        put_int(e, INT64_MIN);
        return;
    }
    mt_mtc_emit_expr(e, x->left);
    e->place = x->place;
    if (x->op == MT_OP_NOT)
        mt_mtc_put(e, MT_CODE_NOT, 0);
    else
        mt_mtc_put(e, x->type == MT_MTC_INT ? MT_CODE_NEGATE_INT : MT_CODE_NEGATE_DECIMAL, 0);
}

static mt_mtc_opcode opcode_for(const mt_mtc_expr *x)
{
    static const mt_mtc_opcode comparing[] = {
        [MT_OP_EQUAL] = MT_CODE_EQUAL,     [MT_OP_UNEQUAL] = MT_CODE_UNEQUAL,
        [MT_OP_LESS] = MT_CODE_LESS,       [MT_OP_LESS_EQUAL] = MT_CODE_LESS_EQUAL,
        [MT_OP_GREATER] = MT_CODE_GREATER, [MT_OP_GREATER_EQUAL] = MT_CODE_GREATER_EQUAL,
    };
    static const mt_mtc_opcode of_ints[] = {
        [MT_OP_ADD] = MT_CODE_ADD_INT,
        [MT_OP_SUBTRACT] = MT_CODE_SUBTRACT_INT,
        [MT_OP_MULTIPLY] = MT_CODE_MULTIPLY_INT,
        [MT_OP_DIVIDE] = MT_CODE_DIVIDE_INT,
        [MT_OP_REMAINDER] = MT_CODE_REMAINDER_INT,
    };

    if (x->op >= MT_OP_EQUAL && x->op <= MT_OP_GREATER_EQUAL)
        return comparing[x->op];
    if (x->type == MT_MTC_STRING)
        return MT_CODE_JOIN;
    return of_ints[x->op] + (x->type == MT_MTC_DECIMAL ? MT_CODE_ADD_DECIMAL - MT_CODE_ADD_INT : 0);
}

static void emit_binary(mt_mtc_emitter *e, const mt_mtc_expr *x)
{
    mt_mtc_jumps decided = {0};

    mt_mtc_emit_expr(e, x->left);
    if (x->op == MT_OP_AND || x->op == MT_OP_OR) {
        e->place = x->place;
        mt_mtc_jump(e, x->op == MT_OP_AND ? MT_CODE_AND : MT_CODE_OR, &decided);
        mt_mtc_emit_expr(e, x->right);
        mt_mtc_land(e, &decided);
        return;
    }
    mt_mtc_emit_expr(e, x->right);
    e->place = x->place;
    mt_mtc_put(e, opcode_for(x), 0);
}

static void emit_choice(mt_mtc_emitter *e, const mt_mtc_expr *x)
{
    mt_mtc_jumps otherwise = {0}, end = {0};

    mt_mtc_emit_expr(e, x->first);
    e->place = x->place;
    mt_mtc_jump(e, MT_CODE_JUMP_UNLESS, &otherwise);
    mt_mtc_emit_expr(e, x->left);
    mt_mtc_jump(e, MT_CODE_JUMP, &end);
    mt_mtc_adjust(e, -1); // one of the two
    mt_mtc_land(e, &otherwise);
    mt_mtc_emit_expr(e, x->right);
    mt_mtc_land(e, &end);
}

void mt_mtc_emit_expr(mt_mtc_emitter *e, const mt_mtc_expr *x)
{
    e->place = x->begin;
    switch (x->kind) {
    case MT_EXPR_BAD:
        break; // none in a program without errors
    case MT_EXPR_BOOL:
        mt_mtc_put(e, x->truth ? MT_CODE_TRUE : MT_CODE_FALSE, 0);
        break;
    case MT_EXPR_INT:
        put_int(e, x->number);
        break;
    case MT_EXPR_DECIMAL:
        put_decimal(e, x->text);
        break;
    case MT_EXPR_STRING:
        mt_mtc_put(
            e, MT_CODE_CONSTANT,
            mt_mtc_constant_for(e, &(mt_mtc_constant){.type = MT_MTC_STRING, .text = x->text}));
        break;
    case MT_EXPR_NAME:
        mt_mtc_put(e, MT_CODE_LOAD, x->variable->slot);
        break;
    case MT_EXPR_CALL:
        emit_call(e, x);
        break;
    case MT_EXPR_UNARY:
        emit_unary(e, x);
        break;
    case MT_EXPR_BINARY:
        emit_binary(e, x);
        break;
    case MT_EXPR_CHOICE:
        emit_choice(e, x);
        break;
    case MT_EXPR_WIDEN:
        mt_mtc_emit_expr(e, x->left);
        mt_mtc_put(e, MT_CODE_WIDEN, 0);
        break;
    }
}
