// SPDX-License-Identifier: Apache-2.0
// Scalars as texts and the other way.
#include "mtc/builtin-internal.h"

#include <errno.h>

// ---- to texts ----

static int as_text(mt_vm *vm, vm_value v, vm_value *ret)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_VM_STRING);

    (void)vm_add_text(v, &text);
    return vm_string_of(vm, &text, ret);
}

int builtin_BoolToString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return as_text(vm, args[0], ret);
}

int builtin_IntToString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return as_text(vm, args[0], ret);
}

int builtin_DecimalToString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return as_text(vm, args[0], ret);
}

int builtin_GuidToString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return as_text(vm, args[0], ret);
}

// ---- from texts ----

static int refuse(mt_vm *vm, mt_str text, int r, const char *what)
{
    char quoted[VM_QUOTE];

    if (r == -ERANGE)
        return vm_throw(vm, "Overflow", "%s is beyond the range of %s", vm_quote(text, quoted),
                        what);
    return vm_throw(vm, "BadFormat", "%s is not %s", vm_quote(text, quoted), what);
}

// The whole number that a text is, blanks around it aside. 0, -EINVAL or -ERANGE.
static int read_int(mt_str text, int64_t *ret)
{
    mt_str digits = vm_trim(text, true, true);
    bool negative = digits.len && digits.data[0] == '-';
    int64_t n = 0;
    bool beyond = false;

    if (digits.len && (negative || digits.data[0] == '+'))
        digits = (mt_str){digits.data + 1, digits.len - 1};
    if (digits.len == 0)
        return -EINVAL;
    for (size_t i = 0; i < digits.len; i++) {
        int digit = digits.data[i] - '0';

        if (digit < 0 || digit > 9)
            return -EINVAL;
        beyond = beyond || __builtin_mul_overflow(n, 10, &n) ||
                 __builtin_sub_overflow(n, digit, &n); // there is one more of them below zero
    }
    if (beyond || (!negative && n == INT64_MIN))
        return -ERANGE;
    *ret = negative ? n : -n;
    return 0;
}

int builtin_StringToInt(mt_vm *vm, vm_value *args, vm_value *ret)
{
    int64_t number;
    int r = read_int(vm_text(args[0]), &number);

    vm_spend(vm, args[0].string->len);
    if (r < 0)
        return refuse(vm, vm_text(args[0]), r, r == -ERANGE ? "an int" : "a whole number");
    *ret = vm_int(number);
    return 0;
}

int builtin_StringIsInt(mt_vm *vm, vm_value *args, vm_value *ret)
{
    int64_t number;

    vm_spend(vm, args[0].string->len);
    *ret = vm_bool(read_int(vm_text(args[0]), &number) == 0);
    return 0;
}

int builtin_StringToDecimal(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_decimal d;
    int r = mt_decimal_parse(vm_trim(vm_text(args[0]), true, true), false, &d);

    vm_spend(vm, args[0].string->len);
    if (r < 0)
        return refuse(vm, vm_text(args[0]), r, r == -ERANGE ? "a decimal" : "a number");
    return vm_make_decimal(vm, d, ret);
}

int builtin_StringIsDecimal(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_decimal d;

    vm_spend(vm, args[0].string->len);
    *ret = vm_bool(mt_decimal_parse(vm_trim(vm_text(args[0]), true, true), false, &d) == 0);
    return 0;
}

int builtin_StringToGuid(mt_vm *vm, vm_value *args, vm_value *ret)
{
    char text[37];

    if (!vm_read_guid(vm_text(args[0]), text))
        return refuse(vm, vm_text(args[0]), -EINVAL, "a guid");
    return vm_make_guid(vm, text, ret);
}

int builtin_StringIsGuid(mt_vm *vm, vm_value *args, vm_value *ret)
{
    char text[37];

    *ret = vm_bool(vm_read_guid(vm_text(args[0]), text));
    return 0;
}

int builtin_StringToBool(mt_vm *vm, vm_value *args, vm_value *ret)
{
    bool truth = mt_str_eq(vm_text(args[0]), "true");

    if (!truth && !mt_str_eq(vm_text(args[0]), "false"))
        return refuse(vm, vm_text(args[0]), -EINVAL, "true or false");
    *ret = vm_bool(truth);
    return 0;
}

// ---- numbers ----

int builtin_IntToDecimal(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_make_decimal(vm, mt_decimal_of_int(args[0].number), ret);
}

int builtin_DecimalToInt(mt_vm *vm, vm_value *args, vm_value *ret)
{
    char text[MT_DECIMAL_TEXT];
    int64_t number;

    if (!mt_decimal_to_int(args[0].decimal->value, &number)) {
        (void)mt_decimal_format(args[0].decimal->value, text);
        return vm_throw(vm, "Overflow", "%s is beyond the range of an int", text);
    }
    *ret = vm_int(number);
    return 0;
}
