// SPDX-License-Identifier: Apache-2.0
// JSON objects.
#include "mtc/builtin-internal.h"

int builtin_JsonObjectCreate(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_make_json(vm, mt_json_new_object(), ret);
}

int builtin_StringToJsonObject(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_parse_json(vm, vm_text(args[0]), MT_MTC_JSON_OBJECT, ret);
}

int builtin_JsonObjectToString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_write_json(vm, args[0], 0, ret);
}

int builtin_JsonObjectToPrettyString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_write_json(vm, args[0], MT_JSON_PRETTY, ret);
}

// ---- looking ----

static const mt_json *find(mt_vm *vm, vm_value object, vm_value name)
{
    vm_spend(vm, name.string->len);
    return mt_json_get_str(object.json->json, vm_text(name));
}

// args: the object and the name.
static int get(mt_vm *vm, const vm_value *args, mt_mtc_type type, vm_value *ret)
{
    vm_what what = {.kind = VM_WHAT_MEMBER, .text = vm_text(args[1])};

    return vm_from_json(vm, find(vm, args[0], args[1]), type, &what, ret);
}

int builtin_JsonObjectHas(mt_vm *vm, vm_value *args, vm_value *ret)
{
    *ret = vm_bool(find(vm, args[0], args[1]) != NULL);
    return 0;
}

int builtin_JsonObjectType(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_make_string(vm, mt_str_of(vm_kind_word(find(vm, args[0], args[1]))), ret);
}

int builtin_JsonObjectGet(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_STRING, ret);
}

int builtin_JsonObjectGetInt(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_INT, ret);
}

int builtin_JsonObjectGetDecimal(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_DECIMAL, ret);
}

int builtin_JsonObjectGetBool(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_BOOL, ret);
}

int builtin_JsonObjectGetGuid(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_GUID, ret);
}

int builtin_JsonObjectGetObject(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_JSON_OBJECT, ret);
}

int builtin_JsonObjectGetArray(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_JSON_ARRAY, ret);
}

// The member or item of that name; NULL where there is none.
static const mt_json *step(const mt_json *json, mt_str name)
{
    uint64_t i;

    if (mt_json_kind_of(json) == MT_JSON_OBJECT)
        return mt_json_get_str(json, name);
    return mt_parse_u64(name, UINT32_MAX, &i) ? mt_json_at(json, (size_t)i) : NULL;
}

int builtin_JsonObjectGetPath(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const mt_json *at = args[0].json->json;
    mt_str rest = vm_text(args[1]);
    const char *dot;

    vm_spend(vm, rest.len);
    while ((dot = rest.len ? memchr(rest.data, '.', rest.len) : NULL) != NULL && at) {
        size_t len = (size_t)(dot - rest.data);

        at = step(at, (mt_str){rest.data, len});
        rest = (mt_str){dot + 1, rest.len - len - 1};
    }
    return vm_from_json(vm, step(at, rest), MT_MTC_STRING, &(vm_what){0}, ret);
}

int builtin_JsonObjectKeys(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const mt_json *object = args[0].json->json;
    _cleanup_json_ mt_json *list = mt_json_new_array();

    for (size_t i = 0; i < mt_json_count(object); i++) {
        if (vm_list_add_text(vm, list, mt_json_name_at(object, i)) < 0)
            return -1;
    }
    return vm_make_json(vm, MT_TAKE_PTR(list), ret);
}

int builtin_JsonObjectCount(mt_vm *vm, vm_value *args, vm_value *ret)
{
    *ret = vm_int((int64_t)mt_json_count(args[0].json->json));
    return 0;
}

// ---- changing ----

// args: the object, the name and the value.
static int set(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_json *child = vm_to_json(vm, args[2]);

    return child ? vm_set_member(vm, &args[0], vm_text(args[1]), child, ret) : -1;
}

int builtin_JsonObjectSetString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    vm_spend(vm, args[2].string->len);
    return set(vm, args, ret);
}

int builtin_JsonObjectSetInt(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, args, ret);
}

int builtin_JsonObjectSetDecimal(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, args, ret);
}

int builtin_JsonObjectSetBool(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, args, ret);
}

int builtin_JsonObjectSetGuid(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, args, ret);
}

int builtin_JsonObjectSetObject(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, args, ret);
}

int builtin_JsonObjectSetArray(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, args, ret);
}

int builtin_JsonObjectSetNull(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_set_member(vm, &args[0], vm_text(args[1]), mt_json_new_null(), ret);
}

int builtin_JsonObjectRemove(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_json *json;

    if (!find(vm, args[0], args[1])) {
        *ret = args[0];
        args[0].kind = VM_NONE;
        return 0;
    }
    json = vm_change_begin(vm, &args[0], NULL, 0);
    if (!json)
        return -1;
    vm_spend(vm, mt_json_count(json) * sizeof(void *)); // what is behind it moves up
    (void)mt_json_remove(json, vm_text(args[1]));
    return vm_change_end(vm, &args[0], json, 0, ret);
}

int builtin_JsonObjectMerge(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const mt_json *other = args[1].json->json;
    mt_json *json = vm_change_begin(vm, &args[0], other, 0);
    int r = 0;

    if (!json)
        return -1;
    for (size_t i = 0; i < mt_json_count(other) && r == 0; i++) {
        mt_str name = mt_json_name_at(other, i);

        vm_spend(vm, name.len + sizeof(void *));
        r = mt_json_set_str(json, name, mt_json_ref(mt_json_value_at(other, i)));
    }
    return vm_change_end(vm, &args[0], json, r, ret);
}
