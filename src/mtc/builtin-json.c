// SPDX-License-Identifier: Apache-2.0
// What the built-ins of JSON objects and of lists share.
#include "mtc/builtin-internal.h"

#include <errno.h>

// ---- lists ----

static int too_heavy(mt_vm *vm)
{
    return vm_throw(vm, "TooLarge", "the list would take more than %d MiB of memory",
                    MT_VM_JSON >> 20);
}

int vm_list_add(mt_vm *vm, mt_json *list, mt_json *item)
{
    if (mt_json_append(list, item) < 0)
        return vm_no_memory(vm);
    return mt_json_weight(list) > MT_VM_JSON ? too_heavy(vm) : 0;
}

int vm_list_add_text(mt_vm *vm, mt_json *list, mt_str text)
{
    enum { ITEM = 128 }; // what making one takes, as bytes

    vm_spend(vm, ITEM + text.len);
    return vm_list_add(vm, list, mt_json_new_string(text));
}

// ---- changes ----

mt_json *vm_change_begin(mt_vm *vm, vm_value *v, const mt_json *child, size_t more)
{
    enum { SLACK = 1024 }; // more than an entry itself takes
    size_t weight = mt_json_weight(child) + more + SLACK;
    mt_json *copy;

    if (v->json->weight + weight <= MT_VM_JSON && mt_json_height(child) < MT_VM_JSON_DEPTH)
        return vm_json_own(vm, v) < 0 ? NULL : v->json->json;
    vm_spend(vm, mt_json_count(v->json->json) * sizeof(void *));
    copy = mt_json_copy(v->json->json);
    if (!copy)
        (void)vm_no_memory(vm);
    return copy;
}

// A copy that is within the limits takes the place of what v alone has: only one of them is
// counted.
static bool put_in_place(vm_value *v, mt_json *copy)
{
    if (!vm_is_own(*v) || !mt_json_ok(copy) || mt_json_weight(copy) > MT_VM_JSON ||
        mt_json_height(copy) > MT_VM_JSON_DEPTH)
        return false;
    (void)mt_json_unref(v->json->json);
    v->json->json = copy;
    return true;
}

int vm_change_end(mt_vm *vm, vm_value *v, mt_json *json, int r, vm_value *ret)
{
    bool copied = json != v->json->json;

    if (r < 0) {
        if (copied)
            (void)mt_json_unref(json);
        return vm_no_memory(vm);
    }
    if (copied && !put_in_place(v, json))
        return vm_make_json(vm, json, ret);
    if (vm_json_settle(vm, *v) < 0)
        return -1;
    vm_move(ret, v);
    v->kind = VM_NONE;
    return 0;
}

int vm_set_member(mt_vm *vm, vm_value *object, mt_str name, mt_json *child, vm_value *ret)
{
    mt_json *json = child ? vm_change_begin(vm, object, child, name.len) : NULL;

    vm_spend(vm, name.len);
    if (!json) {
        (void)mt_json_unref(child);
        return -1;
    }
    return vm_change_end(vm, object, json, mt_json_set_str(json, name, child), ret);
}

// ---- texts ----

static int read_json(mt_vm *vm, mt_str text, mt_json **ret, mt_err **err)
{
    enum { EFFORT = 16 }; // more than looking at a byte

    vm_spend(vm, EFFORT * text.len);
    return mt_json_parse(text.data, text.len, &vm_json_limits, ret, err);
}

static int refuse(mt_vm *vm, const mt_err *err)
{
    if (mt_err_code(err) == MT_E_OOM)
        return vm_no_memory(vm);
    return vm_throw(vm, mt_err_code(err) == MT_E_TOO_LARGE ? "TooLarge" : "BadFormat", "%s",
                    mt_err_sentence(err));
}

int vm_parse_json(mt_vm *vm, mt_str text, mt_mtc_type type, vm_value *ret)
{
    mt_json_kind wanted = type == MT_MTC_JSON_OBJECT ? MT_JSON_OBJECT : MT_JSON_ARRAY;
    _cleanup_json_ mt_json *json = NULL;
    _cleanup_err_ mt_err *err = NULL;

    if (read_json(vm, text, &json, &err) < 0)
        return refuse(vm, err);
    if (mt_json_kind_of(json) != wanted)
        return vm_throw(vm, "BadType", "the text is %s, not %s",
                        mt_json_kind_name(mt_json_kind_of(json)), mt_json_kind_name(wanted));
    return vm_make_json(vm, MT_TAKE_PTR(json), ret);
}

int builtin_StringIsJson(mt_vm *vm, vm_value *args, vm_value *ret)
{
    _cleanup_json_ mt_json *json = NULL;
    _cleanup_err_ mt_err *err = NULL;

    if (read_json(vm, vm_text(args[0]), &json, &err) < 0 && mt_err_code(err) == MT_E_OOM)
        return vm_no_memory(vm);
    *ret = vm_bool(mt_json_kind_of(json) >= MT_JSON_ARRAY && !mt_json_has_nul(json));
    return 0;
}

int vm_write_json(mt_vm *vm, vm_value v, unsigned flags, vm_value *ret)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_VM_STRING);

    (void)mt_json_write(v.json->json, &text, flags);
    vm_spend(vm, text.len);
    return vm_string_of(vm, &text, ret);
}

const char *vm_kind_word(const mt_json *json)
{
    static const char *const words[] = {
        [MT_JSON_ABSENT] = "",       [MT_JSON_NULL] = "null",     [MT_JSON_BOOL] = "bool",
        [MT_JSON_NUMBER] = "number", [MT_JSON_STRING] = "string", [MT_JSON_ARRAY] = "array",
        [MT_JSON_OBJECT] = "object",
    };

    return words[mt_json_kind_of(json)];
}
