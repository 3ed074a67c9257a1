// SPDX-License-Identifier: Apache-2.0
// The longer instructions, and what keeps them from copying: `x = JsonArrayAddInt(x, 1);` and
// `s = s + a + b;` change the variable's own value where nobody else has it.
#include "mtc/vm-internal.h"

static vm_frame *running(mt_vm *vm)
{
    return &vm->frames[vm->depth - 1];
}

static vm_value *slots_of(mt_vm *vm)
{
    return vm->stack + running(vm)->base;
}

// Whether a variable holds the very value, and the two are its only references.
static bool only_variable_has(vm_value v, vm_value variable)
{
    return vm_is_counted(v) && v.box->refs == 2 && variable.kind == v.kind && variable.box == v.box;
}

// ---- comparing ----

static bool holds(mt_mtc_opcode op, vm_value a, vm_value b)
{
    switch (op) {
    case MT_CODE_EQUAL:
        return vm_equal(a, b);
    case MT_CODE_UNEQUAL:
        return !vm_equal(a, b);
    case MT_CODE_LESS:
        return vm_compare(a, b) < 0;
    case MT_CODE_LESS_EQUAL:
        return vm_compare(a, b) <= 0;
    case MT_CODE_GREATER:
        return vm_compare(a, b) > 0;
    default:
        return vm_compare(a, b) >= 0;
    }
}

static size_t bytes_of(vm_value v)
{
    if (v.kind == VM_JSON)
        return v.json->weight;
    return v.kind == VM_STRING ? v.string->len : 0;
}

int vm_do_compare(mt_vm *vm, mt_mtc_opcode op)
{
    vm_value *operands = vm->stack + vm->top - 2;
    bool truth = holds(op, operands[0], operands[1]);

    vm_spend(vm, MT_MIN(bytes_of(operands[0]), bytes_of(operands[1])));
    vm_unref(vm, operands[0]);
    vm_unref(vm, operands[1]);
    operands[0] = vm_bool(truth);
    vm->top--;
    return 0;
}

// ---- joining ----

// What a word does to the height of the stack, when it is one that may stand in `s + a + b` behind
// the first +: it computes, and leads to no other place. INT_MIN when it is not.
static int effect_of(const mt_mtc_program *p, uint32_t word)
{
    mt_mtc_opcode op = mt_mtc_opcode_of(word);

    if (op == MT_CODE_CALL_BUILTIN) {
        const mt_mtc_builtin *b = p->builtins[mt_mtc_operand_of(word)];

        return b->kind == MT_MTC_PURE && b->result != MT_MTC_VOID ? 1 - (int)b->count : INT32_MIN;
    }
    if (op == MT_CODE_STORE || op == MT_CODE_DROP || op >= MT_CODE_JUMP)
        return INT32_MIN;
    return mt_mtc_opcodes[op].gives - mt_mtc_opcodes[op].takes;
}

static int takes_of(const mt_mtc_program *p, uint32_t word)
{
    mt_mtc_opcode op = mt_mtc_opcode_of(word);

    if (op == MT_CODE_CALL_BUILTIN)
        return (int)p->builtins[mt_mtc_operand_of(word)]->count;
    return mt_mtc_opcodes[op].takes;
}

// Whether from a word on the text on top of the stack, with more joined to it, is stored in a
// variable and nothing else happens that leads elsewhere: then *ret is that word.
static bool leads_to_store(const mt_vm *vm, const uint32_t *word, const uint32_t **ret)
{
    enum { WORDS = 100 };
    int above = 0; // values on top of the text

    for (int i = 0; i < WORDS; i++, word++) {
        mt_mtc_opcode op = mt_mtc_opcode_of(*word);
        int effect = effect_of(vm->program, *word);

        if (op == MT_CODE_STORE && above == 0) {
            *ret = word;
            return true;
        }
        if (effect == INT32_MIN || takes_of(vm->program, *word) > above + (op == MT_CODE_JOIN))
            return false;
        above += effect;
    }
    return false;
}

static bool loads(const uint32_t *word, const uint32_t *end, uint32_t slot)
{
    while (word < end && *word != (slot << 8 | MT_CODE_LOAD))
        word++;
    return word < end;
}

// Takes the variable's reference to a text that is about to grow and then to be stored in it again,
// so that it grows in place. When something is thrown on the way, it gets back what it had.
static void lend(mt_vm *vm, vm_value *text)
{
    const vm_frame *frame = running(vm);
    const uint32_t *store;
    vm_value *variable;

    if (!leads_to_store(vm, frame->pc, &store))
        return;
    variable = slots_of(vm) + mt_mtc_operand_of(*store);
    if (!only_variable_has(*text, *variable) || loads(frame->pc, store, mt_mtc_operand_of(*store)))
        return;
    vm->loan = (vm_loan){.body = frame->body,
                         .begin = frame->pc,
                         .end = store,
                         .position = (size_t)(text - vm->stack),
                         .slot = mt_mtc_operand_of(*store),
                         .len = text->string->len};
    variable->kind = VM_NONE;
    text->box->refs--;
}

void vm_give_back_loan(mt_vm *vm)
{
    const vm_loan *loan = &vm->loan;
    const vm_frame *frame = running(vm);
    vm_value *text, *variable;

    // Of an earlier one the variable has long got what was stored.
    if (loan->body != frame->body || frame->pc < loan->begin || frame->pc > loan->end)
        return;
    variable = slots_of(vm) + loan->slot;
    if (variable->kind != VM_NONE)
        return;
    text = vm->stack + loan->position;
    vm_string_cut(*text, loan->len);
    *variable = *text;
    text->kind = VM_NONE;
}

int vm_do_join(mt_vm *vm)
{
    vm_value *left = vm->stack + vm->top - 2, right = left[1], joined;

    if (left->kind == VM_STRING && vm_is_counted(*left) && left->box->refs == 2)
        lend(vm, left);
    if (vm_join(vm, left, right, &joined) < 0)
        return -1;
    vm_unref(vm, *left);
    vm_unref(vm, right);
    *left = joined;
    vm->top--;
    return 0;
}

// ---- foreach ----

static int item(mt_vm *vm, const mt_json *list, size_t i, mt_mtc_type type, vm_value *ret)
{
    vm_what what = {.kind = VM_WHAT_ITEM, .item = (int64_t)i};

    return vm_from_json(vm, mt_json_at(list, i), type, &what, ret);
}

int vm_do_next(mt_vm *vm, uint32_t slot, mt_mtc_type type)
{
    vm_value *list = slots_of(vm) + slot, *position = list + 1, *ret = vm->stack + vm->top;
    const mt_json *json = list->json->json;
    size_t i = (size_t)position->number;
    int r;

    if (i >= mt_json_count(json))
        return 1;
    if (mt_json_kind_of(json) == MT_JSON_OBJECT)
        r = vm_make_string(vm, mt_json_name_at(json, i), ret);
    else
        r = item(vm, json, i, type, ret);
    if (r < 0)
        return -1;
    position->number++;
    vm->top++;
    return 0;
}

// ---- built-ins that compute ----

// The variable that is to be stored in next, when it holds v and nobody else does.
static vm_value *lender_of(uint32_t next, vm_value *slots, vm_value v)
{
    if (mt_mtc_opcode_of(next) != MT_CODE_STORE)
        return NULL;
    return only_variable_has(v, slots[mt_mtc_operand_of(next)]) ? &slots[mt_mtc_operand_of(next)]
                                                                : NULL;
}

vm_value *vm_do_pure(mt_vm *vm, uint32_t builtin, const uint32_t **pc, vm_value *sp,
                     vm_value *slots)
{
    const mt_mtc_builtin *b = vm->program->builtins[builtin];
    vm_value *args = sp - b->count, ret = {.kind = VM_NONE};
    vm_value *lender = b->count ? lender_of(**pc, slots, args[0]) : NULL;

    if (lender) {
        lender->kind = VM_NONE;
        args[0].box->refs--;
    }
    if (vm->code->functions[builtin](vm, args, &ret) < 0) {
        if (lender) {
            *lender = args[0];
            args[0].kind = VM_NONE;
        }
        return NULL;
    }
    while (sp > args)
        vm_unref(vm, *--sp);
    if (lender) { // the STORE is done at once
        vm_move(lender, &ret);
        ++*pc;
    } else if (b->result != MT_MTC_VOID) {
        vm_move(sp++, &ret);
    }
    return sp;
}
