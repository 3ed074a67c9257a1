// SPDX-License-Identifier: Apache-2.0
// Arithmetic: of decimals, and of ints where it goes wrong.
#include "mtc/vm-internal.h"

#include <errno.h>

static const char signs[] = {
    [MT_CODE_ADD_INT] = '+',          [MT_CODE_SUBTRACT_INT] = '-',
    [MT_CODE_MULTIPLY_INT] = '*',     [MT_CODE_DIVIDE_INT] = '/',
    [MT_CODE_REMAINDER_INT] = '%',    [MT_CODE_ADD_DECIMAL] = '+',
    [MT_CODE_SUBTRACT_DECIMAL] = '-', [MT_CODE_MULTIPLY_DECIMAL] = '*',
    [MT_CODE_DIVIDE_DECIMAL] = '/',   [MT_CODE_REMAINDER_DECIMAL] = '%',
};

// r: what kept a op b from being a number.
static int refuse(mt_vm *vm, mt_mtc_opcode op, int r, const vm_value *operands)
{
    char a[VM_SCALAR], b[VM_SCALAR];
    mt_str left = vm_scalar_text(operands[0], a), right = vm_scalar_text(operands[1], b);

    if (r == -EDOM)
        return vm_throw(vm, "DivisionByZero", "%.*s %c %.*s is a division by zero", (int)left.len,
                        left.data, signs[op], (int)right.len, right.data);
    return vm_throw(vm, "Overflow", "%.*s %c %.*s is beyond the range of %s", (int)left.len,
                    left.data, signs[op], (int)right.len, right.data,
                    operands[0].kind == VM_INT ? "an int" : "a decimal");
}

int vm_do_arithmetic(mt_vm *vm, mt_mtc_opcode op)
{
    vm_value *operands = vm->stack + vm->top - 2;
    bool divides = op == MT_CODE_DIVIDE_INT || op == MT_CODE_REMAINDER_INT;

    if (op == MT_CODE_NEGATE_INT)
        return vm_throw(vm, "Overflow", "-(%lld) is beyond the range of an int",
                        (long long)operands[1].number);
    return refuse(vm, op, divides && operands[1].number == 0 ? -EDOM : -ERANGE, operands);
}

// A decimal in the place of *v, which is one.
static int become(mt_vm *vm, vm_value *v, mt_decimal d)
{
    vm_value made;

    if (vm_is_own(*v)) {
        v->decimal->value = d;
        return 0;
    }
    if (vm_make_decimal(vm, d, &made) < 0)
        return -1;
    vm_unref(vm, *v);
    *v = made;
    return 0;
}

int vm_do_decimal(mt_vm *vm, mt_mtc_opcode op)
{
    static int (*const functions[])(mt_decimal, mt_decimal, mt_decimal *) = {
        mt_decimal_add, mt_decimal_subtract, mt_decimal_multiply, mt_decimal_divide,
        mt_decimal_remainder};
    enum { BYTES = 256 }; // looking at so many takes as long
    vm_value *operands = vm->stack + vm->top - 2;
    mt_decimal d;
    int r;

    vm_spend(vm, BYTES);
    if (op == MT_CODE_NEGATE_DECIMAL) {
        d = operands[1].decimal->value;
        d.units = -d.units;
        return become(vm, &operands[1], d);
    }
    r = functions[op - MT_CODE_ADD_DECIMAL](operands[0].decimal->value, operands[1].decimal->value,
                                            &d);
    if (r < 0)
        return refuse(vm, op, r, operands);
    if (become(vm, &operands[0], d) < 0)
        return -1;
    vm_unref(vm, operands[1]);
    vm->top--;
    return 0;
}
