// SPDX-License-Identifier: Apache-2.0
// Decimals and guids; values as text and as JSON; comparing.
#include "mtc/vm-internal.h"

// ---- making ----

int vm_make_decimal(mt_vm *vm, mt_decimal d, vm_value *ret)
{
    vm_decimal *box = vm_alloc(vm, sizeof(*box));

    if (!box)
        return -1;
    box->box = (vm_box){1, sizeof(*box)};
    box->value = d;
    *ret = (vm_value){.kind = VM_DECIMAL, .decimal = box};
    return 0;
}

int vm_make_guid(mt_vm *vm, const char text[37], vm_value *ret)
{
    vm_guid *box = vm_alloc(vm, sizeof(*box));

    if (!box)
        return -1;
    box->box = (vm_box){1, sizeof(*box)};
    memcpy(box->text, text, sizeof(box->text));
    *ret = (vm_value){.kind = VM_GUID, .guid = box};
    return 0;
}

// ---- as text ----

mt_str vm_scalar_text(vm_value v, char scratch[VM_SCALAR])
{
    switch (v.kind) {
    case VM_BOOL:
        return v.truth ? MT_STR("true") : MT_STR("false");
    case VM_INT:
        return mt_i64_text(v.number, scratch);
    case VM_DECIMAL:
        return (mt_str){scratch, mt_decimal_format(v.decimal->value, scratch)};
    case VM_STRING:
        return vm_text(v);
    case VM_GUID:
        return (mt_str){v.guid->text, 36};
    default:
        return MT_STR("");
    }
}

int vm_add_text(vm_value v, mt_buf *out)
{
    char scratch[VM_SCALAR];
    mt_str text;

    if (v.kind == VM_JSON)
        return mt_json_write(v.json->json, out, 0);
    text = vm_scalar_text(v, scratch);
    return mt_buf_add(out, text.data, text.len);
}

int vm_add_json(vm_value v, mt_buf *out)
{
    if (v.kind == VM_STRING)
        return mt_json_write_string(vm_text(v), out);
    if (v.kind == VM_GUID)
        return mt_json_write_string((mt_str){v.guid->text, 36}, out);
    return vm_add_text(v, out);
}

// ---- comparing ----

static int compare_texts(mt_str a, mt_str b)
{
    // Bytes of UTF-8 stand in the order of code points.
    int r = memcmp(a.data, b.data, MT_MIN(a.len, b.len));

    return r ? (r > 0) - (r < 0) : (a.len > b.len) - (a.len < b.len);
}

int vm_compare(vm_value a, vm_value b)
{
    if (a.kind == VM_INT)
        return (a.number > b.number) - (a.number < b.number);
    if (a.kind == VM_DECIMAL)
        return mt_decimal_compare(a.decimal->value, b.decimal->value);
    return compare_texts(vm_text(a), vm_text(b));
}

bool vm_equal(vm_value a, vm_value b)
{
    switch (a.kind) {
    case VM_BOOL:
        return a.truth == b.truth;
    case VM_INT:
        return a.number == b.number;
    case VM_DECIMAL:
        return mt_decimal_compare(a.decimal->value, b.decimal->value) == 0;
    case VM_STRING:
        return a.string == b.string || (a.string->len == b.string->len &&
                                        memcmp(a.string->data, b.string->data, a.string->len) == 0);
    case VM_GUID:
        return memcmp(a.guid->text, b.guid->text, 36) == 0;
    case VM_JSON:
        return mt_json_equal(a.json->json, b.json->json);
    default:
        return false;
    }
}
