// SPDX-License-Identifier: Apache-2.0
// JSON as values: its limits, and changes in place.
#include "mtc/vm-internal.h"

const mt_json_limits vm_json_limits = {
    .bytes = MT_VM_STRING,
    .values = SIZE_MAX,
    .depth = MT_VM_JSON_DEPTH,
    .string = MT_VM_STRING,
    .weight = MT_VM_JSON,
};

// ---- limits ----

static int within_limits(mt_vm *vm, size_t weight, unsigned height)
{
    if (height > MT_VM_JSON_DEPTH)
        return vm_throw(vm, "TooLarge", "a JSON value is nested more than %d deep",
                        MT_VM_JSON_DEPTH);
    if (weight > MT_VM_JSON)
        return vm_throw(vm, "TooLarge", "a JSON value takes more than %d MiB of memory",
                        MT_VM_JSON >> 20);
    return 0;
}

int vm_make_json(mt_vm *vm, mt_json *json, vm_value *ret)
{
    _cleanup_json_ mt_json *own = json;
    size_t weight = mt_json_weight(json);
    vm_json *box;

    if (!mt_json_ok(json))
        return vm_no_memory(vm);
    if (mt_json_has_nul(json))
        return vm_throw(vm, "BadFormat", "a text in JSON holds a NUL character");
    if (within_limits(vm, weight, mt_json_height(json)) < 0)
        return -1;
    box = vm_alloc(vm, sizeof(*box));
    if (!box)
        return -1;
    if (!vm_charge(vm, weight)) {
        vm_free(vm, box, sizeof(*box));
        return -1;
    }
    *box = (vm_json){.box = {1, sizeof(*box)},
                     .height = mt_json_height(json),
                     .json = MT_TAKE_PTR(own),
                     .weight = weight};
    *ret = (vm_value){.kind = VM_JSON, .json = box};
    return 0;
}

// ---- changing ----

enum { CHILD_BYTES = 16 }; // what copying one moves, and looking at one

int vm_json_own(mt_vm *vm, vm_value *v)
{
    mt_json *before = v->json->json;
    vm_value copy;

    if (vm_is_own(*v)) {
        v->json->json = mt_json_own(before);
        if (v->json->json != before)
            vm_spend(vm, mt_json_count(v->json->json) * CHILD_BYTES);
        return v->json->json ? 0 : vm_no_memory(vm);
    }
    vm_spend(vm, mt_json_count(before) * CHILD_BYTES);
    if (vm_make_json(vm, mt_json_copy(before), &copy) < 0)
        return -1;
    vm_unref(vm, *v);
    *v = copy;
    return 0;
}

int vm_json_settle(mt_vm *vm, vm_value v)
{
    vm_json *box = v.json;
    size_t weight = mt_json_weight(box->json);
    unsigned height = mt_json_height(box->json);

    if (!mt_json_ok(box->json))
        return vm_no_memory(vm);
    if (weight > box->weight && !vm_charge(vm, weight - box->weight))
        return -1;
    if (weight < box->weight)
        vm_discharge(vm, box->weight - weight);
    if (height < box->height) // all children were looked at
        vm_spend(vm, mt_json_count(box->json) * CHILD_BYTES);
    box->weight = weight;
    box->height = height;
    return within_limits(vm, weight, height);
}
