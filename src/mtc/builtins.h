// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mtc/value.h"

#define MT_FAMILY(title)
#define DECLARE_PURE(name) int builtin_##name(mt_vm *vm, vm_value *args, vm_value *ret);
#define DECLARE_READ(name)
#define DECLARE_START(name)
#define DECLARE_WRITE(name)
#define MT_BUILTIN(name, kind, ...) DECLARE_##kind(name)
#include "mtc/builtins.def"
#undef MT_FAMILY
#undef MT_BUILTIN
