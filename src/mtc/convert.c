// SPDX-License-Identifier: Apache-2.0
// Values from JSON and to JSON.
#include "mtc/builtin-internal.h"

#include <errno.h>
#include <stdio.h>

static const char *const wanted[] = {
    [MT_MTC_BOOL] = "true or false",    [MT_MTC_INT] = "a whole number",
    [MT_MTC_DECIMAL] = "a number",      [MT_MTC_GUID] = "a guid",
    [MT_MTC_JSON_OBJECT] = "an object", [MT_MTC_JSON_ARRAY] = "a list",
};

// A value for a sentence: "abc" in its quotes, 1.5, true, null, a list.
static const char *show(const mt_json *json, char out[VM_QUOTE])
{
    mt_json_kind kind = mt_json_kind_of(json);
    size_t len;

    if (kind == MT_JSON_BOOL)
        return mt_json_is_true(json) ? "true" : "false";
    if (kind != MT_JSON_STRING && kind != MT_JSON_NUMBER)
        return mt_json_kind_name(kind);
    (void)vm_quote(mt_json_str(json), out);
    len = strlen(out);
    if (kind == MT_JSON_STRING) {
        out[0] = out[len - 1] = '"';
    } else {
        memmove(out, out + 1, len - 2);
        out[len - 2] = '\0';
    }
    return out;
}

enum { NAME = VM_QUOTE + 16 };
static const char *name_of(const vm_what *what, char out[NAME])
{
    char quoted[VM_QUOTE];

    if (what->kind == VM_WHAT_ITEM)
        (void)snprintf(out, NAME, "item %lld", (long long)what->item);
    else if (what->kind == VM_WHAT_MEMBER)
        (void)snprintf(out, NAME, "member %s", vm_quote(what->text, quoted));
    else
        (void)snprintf(out, NAME, "%.*s", (int)what->text.len, what->text.data);
    return out;
}

static int wrong(mt_vm *vm, const char *code, const mt_json *json, mt_mtc_type type,
                 const vm_what *what)
{
    char shown[VM_QUOTE], name[NAME];

    if (!json)
        return vm_throw(vm, code, "there is no %s", name_of(what, name));
    return vm_throw(vm, code, "%s is %s, not %s", name_of(what, name), show(json, shown),
                    wanted[type]);
}

static int beyond(mt_vm *vm, const mt_json *json, mt_mtc_type type, const vm_what *what)
{
    char shown[VM_QUOTE], name[NAME];

    return vm_throw(vm, "Overflow", "%s is %s, beyond the range of %s", name_of(what, name),
                    show(json, shown), type == MT_MTC_INT ? "an int" : "a decimal");
}

static int int_of(mt_vm *vm, const mt_json *json, const vm_what *what, vm_value *ret)
{
    int64_t number;

    if (mt_json_as_int64(json, &number)) {
        *ret = vm_int(number);
        return 0;
    }
    if (mt_json_is_whole(json))
        return beyond(vm, json, MT_MTC_INT, what);
    return wrong(vm, "BadType", json, MT_MTC_INT, what);
}

static int decimal_of(mt_vm *vm, const mt_json *json, const vm_what *what, vm_value *ret)
{
    mt_decimal d;

    if (mt_json_kind_of(json) != MT_JSON_NUMBER)
        return wrong(vm, "BadType", json, MT_MTC_DECIMAL, what);
    if (mt_decimal_parse(mt_json_str(json), true, &d) < 0)
        return beyond(vm, json, MT_MTC_DECIMAL, what);
    return vm_make_decimal(vm, d, ret);
}

static int guid_of(mt_vm *vm, const mt_json *json, const vm_what *what, vm_value *ret)
{
    char text[37];

    if (mt_json_kind_of(json) != MT_JSON_STRING)
        return wrong(vm, "BadType", json, MT_MTC_GUID, what);
    if (!vm_read_guid(mt_json_str(json), text))
        return wrong(vm, "BadFormat", json, MT_MTC_GUID, what);
    return vm_make_guid(vm, text, ret);
}

static int string_of(mt_vm *vm, const mt_json *json, vm_value *ret)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_VM_STRING);

    if (mt_json_kind_of(json) == MT_JSON_STRING)
        return vm_make_string(vm, mt_json_str(json), ret);
    (void)vm_add_json_text(json, &text);
    vm_spend(vm, text.len);
    return vm_string_of(vm, &text, ret);
}

int vm_from_json(mt_vm *vm, const mt_json *json, mt_mtc_type type, const vm_what *what,
                 vm_value *ret)
{
    mt_json_kind kind = mt_json_kind_of(json);

    switch (type) {
    case MT_MTC_INT:
        return int_of(vm, json, what, ret);
    case MT_MTC_DECIMAL:
        return decimal_of(vm, json, what, ret);
    case MT_MTC_GUID:
        return guid_of(vm, json, what, ret);
    case MT_MTC_STRING:
        return string_of(vm, json, ret);
    case MT_MTC_BOOL:
        if (kind != MT_JSON_BOOL)
            return wrong(vm, "BadType", json, type, what);
        *ret = vm_bool(mt_json_is_true(json));
        return 0;
    default:
        if (kind != (type == MT_MTC_JSON_OBJECT ? MT_JSON_OBJECT : MT_JSON_ARRAY))
            return wrong(vm, "BadType", json, type, what);
        return vm_make_json(vm, mt_json_ref(json), ret);
    }
}

static mt_json *number_of(mt_decimal d)
{
    char text[MT_DECIMAL_TEXT];
    size_t len = mt_decimal_format(d, text);

    return mt_json_new_number((mt_str){text, len});
}

static mt_json *json_of(vm_value v)
{
    switch (v.kind) {
    case VM_BOOL:
        return mt_json_new_bool(v.truth);
    case VM_INT:
        return mt_json_new_int(v.number);
    case VM_DECIMAL:
        return number_of(v.decimal->value);
    case VM_STRING:
        return mt_json_new_string(vm_text(v));
    case VM_GUID:
        return mt_json_new_text(v.guid->text);
    case VM_JSON:
        return mt_json_ref(v.json->json);
    default:
        return mt_json_new_null();
    }
}

mt_json *vm_to_json(mt_vm *vm, vm_value v)
{
    mt_json *json = json_of(v);

    if (!json)
        (void)vm_no_memory(vm);
    return json;
}
