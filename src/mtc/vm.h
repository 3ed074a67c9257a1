// SPDX-License-Identifier: Apache-2.0
// The machine that runs a checked program: one for each run, without I/O, clock or chance of its
// own. A call that reaches outside (kinds read, start, write) stops the machine until it is
// answered, so a run that waits costs its memory alone. Everything that a program can do wrong, and
// running out of what it may use, is an end of this machine alone.
//
// Threads: one at a time for each machine; machines of one program may run beside each other.
#pragma once

#include "base/err.h"
#include "mtc/mtc.h"

typedef struct mt_vm mt_vm;

enum {
    MT_VM_HEAP = 64 << 20,   // bytes of a run, unless said
    MT_VM_DEPTH = 1000,      // calls within calls
    MT_VM_STRING = 16 << 20, // bytes of one string, or of one JSON text
    MT_VM_JSON = 32 << 20,   // bytes of memory of one JSON value
    MT_VM_JSON_DEPTH = 200,  // JSON values within values
};

typedef struct mt_vm_options {
    const char *run_id, *app, *namespace_name; // what AppRunId() and its like give; copied
    size_t heap;                               // 0: MT_VM_HEAP
    uint64_t fail_allocation;                  // for tests: the n-th one fails; 0: none
} mt_vm_options;

// A machine that stands before main. The program has been made ready (mt_mtc_make_ready()) and must
// outlive it. NULL when out of memory.
mt_vm *mt_vm_new(const mt_mtc_program *p, const mt_vm_options *options);
mt_vm *mt_vm_free(mt_vm *vm); // returns NULL; accepts NULL
MT_DEFINE_CLEANUP(mt_vm_free, mt_vm *)
size_t mt_vm_bytes(const mt_vm *vm); // of memory that it takes, about

// The value of main's i-th parameter, as text: what mt_mtc_input_check() accepts. badField with the
// parameter's name. All are given before the first mt_vm_run().
int mt_vm_input(mt_vm *vm, size_t i, mt_str text, mt_err **err);

typedef enum mt_vm_state {
    MT_VM_RUNS,     // its steps are used up: run it again
    MT_VM_CALLS,    // it waits for the answer of a call
    MT_VM_FINISHED, // main returned
    MT_VM_FAILED,   // mt_vm_failure() says why
} mt_vm_state;

// Goes on for about so many steps: an instruction is one, and what moves many bytes is more. They
// are counted where a program goes back or calls a function: the whole of what may come until then.
mt_vm_state mt_vm_run(mt_vm *vm, uint64_t steps);

// ---- a call to the outside: MT_VM_CALLS ----

const mt_mtc_builtin *mt_vm_call_of(const mt_vm *vm);
// Appends the arguments as a JSON list: guids are strings, decimals numbers. 0 or negative errno.
int mt_vm_call_arguments(const mt_vm *vm, mt_buf *out);
// The result as JSON of the built-in's type; anything for void. badJson when it is not: then
// nothing has changed. One that is larger than a value may be is TooLarge for the program.
int mt_vm_answer(mt_vm *vm, mt_str json, mt_err **err);
// The call failed: an error that the program may catch.
void mt_vm_answer_error(mt_vm *vm, const char *code, const char *message);

// ---- ends ----

// Appends what main returned, as JSON; null for void. 0 or negative errno.
int mt_vm_result(const mt_vm *vm, mt_buf *out);

typedef enum mt_vm_end {
    MT_VM_END_ERROR,  // an error that nothing caught
    MT_VM_END_MEMORY, // over its memory
    MT_VM_END_DEPTH,  // calls nested too deep
    MT_VM_END_SYSTEM, // the server is out of memory: the program did no wrong
} mt_vm_end;

typedef struct mt_vm_failure {
    mt_vm_end end;
    const char *code;    // "Thrown", "Overflow", …; of an END_ERROR
    const char *message; // of a thrown text that text alone
    const char *place;   // "analyst.mtc:12:3"
    const char *stack; // JSON list, innermost first: {"function":"main","place":"…"}; 50 at most
} mt_vm_failure;

// Valid as long as the machine.
const mt_vm_failure *mt_vm_failure_of(mt_vm *vm);

// Where a machine is that has not ended, as in mt_vm_failure. The place is valid until it runs
// again; the stack is malloc'd, NULL when out of memory.
const char *mt_vm_place(mt_vm *vm);
char *mt_vm_stack(const mt_vm *vm);
