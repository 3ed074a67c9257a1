// SPDX-License-Identifier: Apache-2.0
// Numbers.
#include "mtc/builtin-internal.h"

// ---- ints ----

int builtin_IntAbs(mt_vm *vm, vm_value *args, vm_value *ret)
{
    int64_t n = args[0].number;

    if (n == INT64_MIN)
        return vm_throw(vm, "Overflow", "%lld without its sign is beyond the range of an int",
                        (long long)n);
    *ret = vm_int(n < 0 ? -n : n);
    return 0;
}

int builtin_IntMin(mt_vm *vm, vm_value *args, vm_value *ret)
{
    *ret = vm_int(MT_MIN(args[0].number, args[1].number));
    return 0;
}

int builtin_IntMax(mt_vm *vm, vm_value *args, vm_value *ret)
{
    *ret = vm_int(MT_MAX(args[0].number, args[1].number));
    return 0;
}

// By squares. False beyond 64 bits.
static bool power_of(int64_t base, uint64_t power, int64_t *ret)
{
    int64_t result = 1;

    for (; power; power >>= 1) {
        if ((power & 1) && __builtin_mul_overflow(result, base, &result))
            return false;
        if (power > 1 && __builtin_mul_overflow(base, base, &base))
            return false;
    }
    *ret = result;
    return true;
}

int builtin_IntPower(mt_vm *vm, vm_value *args, vm_value *ret)
{
    int64_t power = args[1].number, result;

    if (vm_check_count(vm, "power", power) < 0)
        return -1;
    if (!power_of(args[0].number, (uint64_t)power, &result))
        return vm_throw(vm, "Overflow", "%lld to the power %lld is beyond the range of an int",
                        (long long)args[0].number, (long long)power);
    *ret = vm_int(result);
    return 0;
}

// ---- decimals ----

int builtin_DecimalAbs(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_decimal d = args[0].decimal->value;

    d.units = d.units < 0 ? -d.units : d.units;
    return vm_make_decimal(vm, d, ret);
}

int builtin_DecimalMin(mt_vm *vm, vm_value *args, vm_value *ret)
{
    *ret = vm_ref(args[vm_compare(args[0], args[1]) > 0]);
    return 0;
}

int builtin_DecimalMax(mt_vm *vm, vm_value *args, vm_value *ret)
{
    *ret = vm_ref(args[vm_compare(args[0], args[1]) < 0]);
    return 0;
}

static int rounded(mt_vm *vm, vm_value v, unsigned digits, mt_rounding how, vm_value *ret)
{
    mt_decimal d;
    char text[MT_DECIMAL_TEXT];

    if (mt_decimal_round(v.decimal->value, digits, how, &d) == 0)
        return vm_make_decimal(vm, d, ret);
    (void)mt_decimal_format(v.decimal->value, text);
    return vm_throw(vm, "Overflow", "%s with %u digits after the point has more than %d digits",
                    text, digits, MT_DECIMAL_DIGITS);
}

int builtin_DecimalRound(mt_vm *vm, vm_value *args, vm_value *ret)
{
    int64_t digits = args[1].number;

    if (digits < 0 || digits > MT_DECIMAL_SCALE)
        return vm_throw(vm, "BadArgument", "digits is %lld, not from 0 to %d", (long long)digits,
                        MT_DECIMAL_SCALE);
    return rounded(vm, args[0], (unsigned)digits, MT_ROUND_HALF_EVEN, ret);
}

int builtin_DecimalFloor(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return rounded(vm, args[0], 0, MT_ROUND_DOWN, ret);
}

int builtin_DecimalCeiling(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return rounded(vm, args[0], 0, MT_ROUND_UP, ret);
}
