// SPDX-License-Identifier: Apache-2.0
// The machine's own state, for value*.c and vm*.c alone.
//
// One stack holds the slots and operands of all functions that are under way:
//
//     main's slots | its operands | slots of what it called | operands of that      <- top
//                                 ^ base of the second frame; its parameters were operands of main
#pragma once

#include "mtc/value.h"

enum { VM_PLACE = 320 }; // bytes of "analyst.mtc:12:3"

typedef struct vm_heap {
    size_t used, limit;
    uint64_t fail_allocation; // counts down to the one that fails; 0: none
} vm_heap;

typedef struct vm_frame {
    const mt_mtc_body *body;
    const uint32_t *pc; // the next word
    size_t base;
} vm_frame;

// A text that is growing in place though its variable is to keep it when something is thrown:
// lend().
typedef struct vm_loan {
    const mt_mtc_body *body;
    const uint32_t *begin, *end; // between these words
    size_t position;             // where it is in the stack
    uint32_t slot, len;          // of the variable; as long as it was
} vm_loan;

struct mt_vm {
    const mt_mtc_program *program;
    const mt_mtc_code *code;
    vm_heap heap;
    vm_value *stack;
    size_t top, stack_cap;
    vm_frame *frames;
    size_t depth, frame_cap;
    int64_t left;   // steps of this turn
    uint64_t steps; // of the turns before
    vm_loan loan;
    vm_value thrown; // VM_NONE: nothing
    vm_value result; // of main
    mt_vm_state state;
    bool ended; // for good: failure.end
    const mt_mtc_builtin *call;
    mt_vm_failure failure;
    char *trace;           // what failure.stack is
    char why[80];          // what failure.message may be
    char place[VM_PLACE];  // of the call or failure
    mt_vm_options options; // texts behind the struct
};

void vm_empty(mt_vm *vm); // before the end: heap.used is 0 then, or somebody counted wrong
int vm_end(mt_vm *vm, mt_vm_end end); // of the run, when it has not ended yet; always -1
// As vm_alloc(), of what had `old` bytes; p stays when it fails.
void *vm_realloc(mt_vm *vm, void *p, size_t old, size_t size);

// ---- values ----

enum { VM_SCALAR = 64 }; // bytes of any scalar but a string, as text
// A scalar as text, in scratch or in v.
mt_str vm_scalar_text(vm_value v, char scratch[VM_SCALAR]);
// A fixed string or decimal in memory of the caller, of vm_fixed_size() bytes.
size_t vm_fixed_size(const mt_mtc_constant *c);
vm_value vm_fix(const mt_mtc_constant *c, void *memory);
void vm_string_cut(vm_value v, uint32_t len); // of one reference: back to what it was

// ---- the longer instructions: 0, or -1 thrown or ended ----
// They take their operands from before top and leave the result there; pc is behind the
// instruction's word.

int vm_do_arithmetic(mt_vm *vm, mt_mtc_opcode op); // of ints: what the fast way cannot do
int vm_do_decimal(mt_vm *vm, mt_mtc_opcode op);
int vm_do_join(mt_vm *vm);
int vm_do_compare(mt_vm *vm, mt_mtc_opcode op);
int vm_do_next(mt_vm *vm, uint32_t slot, mt_mtc_type type); // 1: the list is over
// A built-in that computes, and the STORE behind it when it changes a variable: its arguments end
// at sp. The new sp, or NULL.
vm_value *vm_do_pure(mt_vm *vm, uint32_t builtin, const uint32_t **pc, vm_value *sp,
                     vm_value *slots);

// ---- errors ----

// Where the instruction under way of a frame came from.
void vm_place_of(const vm_frame *frame, char out[VM_PLACE]);
int vm_throw_as(mt_vm *vm, const char *code, mt_str message); // code may be any text; always -1
void vm_give_back_loan(mt_vm *vm); // before a function's stack is emptied
void vm_fail(mt_vm *vm);           // the run is over: why, and where
