// SPDX-License-Identifier: Apache-2.0
// What a run knows of itself and of the errors that it caught.
#include "mtc/builtins.h"

int builtin_AppRunId(mt_vm *vm, vm_value *args, vm_value *ret)
{
    static const char none[37] = "00000000-0000-0000-0000-000000000000";
    const char *id = vm_options(vm)->run_id;

    return vm_make_guid(vm, strlen(id) == 36 ? id : none, ret);
}

int builtin_AppName(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_make_string(vm, mt_str_of(vm_options(vm)->app), ret);
}

int builtin_AppNamespace(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_make_string(vm, mt_str_of(vm_options(vm)->namespace_name), ret);
}

int builtin_ErrorCode(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_make_string(vm, mt_str_of(args[0].error->code), ret);
}

int builtin_ErrorMessage(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const vm_error *e = args[0].error;

    return vm_make_string(vm, (mt_str){e->message, e->message_len}, ret);
}

int builtin_ErrorPlace(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_make_string(vm, mt_str_of(args[0].error->place), ret);
}
