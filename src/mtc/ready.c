// SPDX-License-Identifier: Apache-2.0
// A program that is ready to be run: its code, and what all its machines share.
#include "mtc/vm-internal.h"

#include <errno.h>

static int fix_constants(mt_arena *arena, mt_mtc_code *code)
{
    code->values = mt_arena_array_of(arena, vm_value, code->constant_count + 1);
    if (!code->values)
        return -ENOMEM;
    for (size_t i = 0; i < code->constant_count; i++) {
        void *memory = mt_arena_alloc(arena, vm_fixed_size(&code->constants[i]));

        if (!memory)
            return -ENOMEM;
        code->values[i] = vm_fix(&code->constants[i], memory);
    }
    return 0;
}

static int find_functions(const mt_mtc_program *p, mt_mtc_code *code)
{
    code->functions = mt_arena_array_of(p->arena, vm_builtin_fn *, p->builtin_count + 1);
    if (!code->functions)
        return -ENOMEM;
    for (size_t i = 0; i < p->builtin_count; i++)
        code->functions[i] = vm_builtin_function(p->builtins[i]);
    return 0;
}

int mt_mtc_make_ready(mt_mtc_program *p)
{
    mt_mtc_code *code = p->code ? NULL : mt_mtc_emit(p);

    if (p->code)
        return 0;
    if (!code || fix_constants(p->arena, code) < 0 || find_functions(p, code) < 0)
        return -ENOMEM;
    p->code = code;
    return 0;
}
