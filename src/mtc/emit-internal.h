// SPDX-License-Identifier: Apache-2.0
// Shared by emit.c (functions, statements) and emit-expr.c alone.
#pragma once

#include "mtc/code.h"

// Jumps whose target is not known yet: a list through their operands.
typedef struct mt_mtc_jumps {
    uint32_t last; // and one more; 0: none
} mt_mtc_jumps;

typedef struct mt_mtc_loop {
    struct mt_mtc_loop *outer;
    mt_mtc_jumps breaks, continues;
} mt_mtc_loop;

typedef struct mt_mtc_emitter {
    mt_mtc_program *program;
    mt_mtc_code *code;
    size_t constant_room;
    mt_mtc_body body; // in hand; its lists grow on the heap
    size_t word_room, handler_room, line_room;
    mt_mtc_place place; // of what is being emitted
    uint32_t slot;      // the next free one
    uint32_t depth;     // of the stack
    mt_mtc_loop *loop;
    unsigned tries; // that a statement is within
    bool oom;
} mt_mtc_emitter;

uint32_t mt_mtc_here(const mt_mtc_emitter *e);
void mt_mtc_put(mt_mtc_emitter *e, mt_mtc_opcode op, uint32_t operand);
void mt_mtc_put_word(mt_mtc_emitter *e, uint32_t word); // one that belongs to the opcode before it
// A value less or more on the stack than its opcode says.
void mt_mtc_adjust(mt_mtc_emitter *e, int by);
void mt_mtc_jump(mt_mtc_emitter *e, mt_mtc_opcode op, mt_mtc_jumps *to);
void mt_mtc_land(mt_mtc_emitter *e, mt_mtc_jumps *jumps); // they lead here
uint32_t mt_mtc_constant_for(mt_mtc_emitter *e, const mt_mtc_constant *c);
void mt_mtc_emit_expr(mt_mtc_emitter *e, const mt_mtc_expr *x);
