// SPDX-License-Identifier: Apache-2.0
// The functions of the built-ins that compute, by row of the table.
#include "mtc/builtins.h"

#define FUNCTION_PURE(name)         builtin_##name
#define FUNCTION_READ(name)         NULL
#define FUNCTION_START(name)        NULL
#define FUNCTION_WRITE(name)        NULL
#define MT_FAMILY(title)            NULL,
#define MT_BUILTIN(name, kind, ...) FUNCTION_##kind(name),

vm_builtin_fn *vm_builtin_function(const mt_mtc_builtin *b)
{
    static vm_builtin_fn *const functions[] = {
#include "mtc/builtins.def"
    };

    return functions[mt_mtc_builtin_row(b)];
}
