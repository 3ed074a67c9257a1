// SPDX-License-Identifier: Apache-2.0
// The memory of a run: every byte of its values, stack and frames is counted here.
#include "mtc/vm-internal.h"

int vm_end(mt_vm *vm, mt_vm_end end)
{
    if (!vm->ended)
        vm->failure.end = end;
    vm->ended = true;
    return -1;
}

int vm_no_memory(mt_vm *vm)
{
    return vm_end(vm, MT_VM_END_SYSTEM);
}

bool vm_charge(mt_vm *vm, size_t bytes)
{
    if (bytes > vm->heap.limit - vm->heap.used)
        return vm_end(vm, MT_VM_END_MEMORY) == 0;
    vm->heap.used += bytes;
    return true;
}

void vm_discharge(mt_vm *vm, size_t bytes)
{
    vm->heap.used -= bytes;
}

static bool is_to_fail(mt_vm *vm)
{
    return vm->heap.fail_allocation && --vm->heap.fail_allocation == 0;
}

void *vm_alloc(mt_vm *vm, size_t size)
{
    void *p;

    if (!vm_charge(vm, size))
        return NULL;
    p = is_to_fail(vm) ? NULL : malloc(size);
    if (!p) {
        vm_discharge(vm, size);
        (void)vm_no_memory(vm);
    }
    return p;
}

void *vm_realloc(mt_vm *vm, void *p, size_t old, size_t size)
{
    void *moved;

    if (!vm_charge(vm, size - old))
        return NULL;
    moved = is_to_fail(vm) ? NULL : realloc(p, size);
    if (!moved) {
        vm_discharge(vm, size - old);
        (void)vm_no_memory(vm);
    }
    return moved;
}

void vm_free(mt_vm *vm, void *p, size_t size)
{
    if (p)
        vm_discharge(vm, size);
    free(p);
}

void vm_drop_counted(mt_vm *vm, vm_value v)
{
    if (v.kind == VM_JSON) {
        vm_discharge(vm, v.json->weight);
        (void)mt_json_unref(v.json->json);
    }
    vm_free(vm, v.box, v.box->size);
}

void vm_spend(mt_vm *vm, size_t bytes)
{
    vm->left -= (int64_t)(bytes / 64);
}
