// SPDX-License-Identifier: Apache-2.0
// The code of a program, for the files of src/mtc alone: made anew from its sources whenever it is
// wanted, in the program's arena. A stack machine; each function has slots for its parameters and
// variables. Between two statements a function's stack is empty, so a handler needs no depth.
#pragma once

#include "mtc/ast.h"
#include "mtc/decimal.h"

typedef enum mt_mtc_operand {
    MT_OPERAND_NONE,
    MT_OPERAND_NUMBER,
    MT_OPERAND_SLOT,
    MT_OPERAND_TARGET, // index of a word
    MT_OPERAND_CONSTANT,
    MT_OPERAND_FUNCTION, // its number
    MT_OPERAND_BUILTIN,  // its place in the program's builtins
} mt_mtc_operand;

typedef enum mt_mtc_opcode {
#define MT_OPCODE(name, operand, takes, gives) MT_CODE_##name,
#include "mtc/opcodes.def"
#undef MT_OPCODE
    MT_CODE_COUNT,
} mt_mtc_opcode;

typedef struct mt_mtc_opcode_info {
    const char *name;
    mt_mtc_operand operand;
    uint8_t takes, gives;
} mt_mtc_opcode_info;

extern const mt_mtc_opcode_info mt_mtc_opcodes[MT_CODE_COUNT];

typedef struct mt_mtc_constant {
    mt_mtc_type type; // int, decimal or string
    int64_t number;
    mt_decimal decimal;
    mt_str text;
} mt_mtc_constant;

// What throws in [begin, end) goes on at target with the error on the stack. Of several that cover
// a word the first is meant.
typedef struct mt_mtc_handler {
    uint32_t begin, end, target;
} mt_mtc_handler;

typedef struct mt_mtc_line {
    uint32_t first; // from this word on
    mt_mtc_place place;
} mt_mtc_line;

typedef struct mt_mtc_body {
    const mt_mtc_function *function;
    uint32_t *words;
    mt_mtc_handler *handlers;
    mt_mtc_line *lines;
    size_t count, handler_count, line_count;
    uint32_t slots, stack; // that it needs
} mt_mtc_body;

struct vm_value;
struct mt_vm;

typedef struct mt_mtc_code {
    mt_mtc_body *bodies; // by function->number
    mt_mtc_constant *constants;
    size_t constant_count;
    // Once the program is ready to be run: the constants as values, and the functions of the
    // program's built-ins, NULL of those that reach outside.
    struct vm_value *values;
    int (**functions)(struct mt_vm *, struct vm_value *, struct vm_value *);
} mt_mtc_code;

static inline mt_mtc_opcode mt_mtc_opcode_of(uint32_t word)
{
    return (mt_mtc_opcode)(word & 0xff);
}

static inline uint32_t mt_mtc_operand_of(uint32_t word)
{
    return word >> 8;
}

// Of MT_CODE_NUMBER.
static inline int32_t mt_mtc_number_of(uint32_t word)
{
    return (int32_t)word >> 8;
}

// Where a word came from.
mt_mtc_place mt_mtc_place_of(const mt_mtc_body *body, size_t word);

// The code of a program that has no errors; NULL when out of memory.
mt_mtc_code *mt_mtc_emit(mt_mtc_program *p);
