// SPDX-License-Identifier: Apache-2.0
// What built-ins of several families need.
#include "mtc/builtin-internal.h"

#include "base/id.h"

#include <errno.h>

// ---- texts ----

static int too_large(mt_vm *vm)
{
    return vm_throw(vm, "TooLarge", "the text would have more than %d MiB", MT_VM_STRING >> 20);
}

int vm_string_of(mt_vm *vm, const mt_buf *b, vm_value *ret)
{
    if (b->failed == -EMSGSIZE)
        return too_large(vm);
    if (b->failed)
        return vm_no_memory(vm);
    return vm_make_string(vm, (mt_str){mt_buf_str(b), b->len}, ret);
}

int vm_string_room(mt_vm *vm, uint64_t len, vm_value *ret)
{
    if (len > MT_VM_STRING)
        return too_large(vm);
    vm_spend(vm, len);
    return vm_make_string_room(vm, len, ret);
}

uint32_t vm_count(mt_vm *vm, vm_value string)
{
    if (string.string->chars == UINT32_MAX)
        vm_spend(vm, string.string->len);
    return vm_chars(string);
}

uint32_t vm_walk_to(mt_vm *vm, vm_value string, uint32_t i)
{
    uint32_t before = string.string->crumb_byte, at = vm_byte_at(string, i);

    if (vm_chars(string) != string.string->len)
        vm_spend(vm, at > before ? at - before : before - at);
    return at;
}

size_t vm_count_text(mt_str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

mt_str vm_trim(mt_str text, bool start, bool end)
{
    while (end && text.len && is_blank(text.data[text.len - 1]))
        text.len--;
    while (start && text.len && is_blank(text.data[0])) {
        text.data++;
        text.len--;
    }
    return text;
}

bool vm_read_guid(mt_str text, char out[37])
{
    if (text.len != MT_ID_LEN)
        return false;
    for (size_t i = 0; i < MT_ID_LEN; i++) {
        char c = text.data[i];

        out[i] = c >= 'A' && c <= 'F' ? (char)(c | 0x20) : c;
    }
    out[MT_ID_LEN] = '\0';
    return mt_is_id((mt_str){out, MT_ID_LEN});
}

int vm_add_json_text(const mt_json *json, mt_buf *out)
{
    mt_str text = mt_json_str(json);

    switch (mt_json_kind_of(json)) {
    case MT_JSON_ABSENT:
    case MT_JSON_NULL:
        return out->failed;
    case MT_JSON_STRING:
    case MT_JSON_NUMBER:
        return mt_buf_add(out, text.data, text.len);
    default:
        return mt_json_write(json, out, 0);
    }
}

// ---- arguments ----

static int outside(mt_vm *vm, int64_t i, const char *of, size_t count, const char *unit)
{
    return vm_throw(vm, "OutOfRange", "position %lld is outside of a %s of %zu %s%s", (long long)i,
                    of, count, unit, count == 1 ? "" : "s");
}

int vm_check_item(mt_vm *vm, vm_value array, int64_t i, bool end)
{
    size_t count = mt_json_count(array.json->json);

    if (i >= 0 && (uint64_t)i < count + end)
        return 0;
    return outside(vm, i, "list", count, "item");
}

int vm_check_char(mt_vm *vm, vm_value string, int64_t i, bool end)
{
    uint32_t count = vm_count(vm, string);

    if (i >= 0 && (uint64_t)i < (uint64_t)count + end)
        return 0;
    return outside(vm, i, "text", count, "character");
}

int vm_check_count(mt_vm *vm, const char *name, int64_t count)
{
    if (count >= 0)
        return 0;
    return vm_throw(vm, "BadArgument", "%s is %lld, less than 0", name, (long long)count);
}
