// SPDX-License-Identifier: Apache-2.0
// Strings: looking into them and cutting them up. Places in them are bytes inside of here, and
// characters for the program; a part can only be found where characters begin, for both are UTF-8.
#include "mtc/builtin-internal.h"

#include "base/utf8.h"

int builtin_StringLength(mt_vm *vm, vm_value *args, vm_value *ret)
{
    *ret = vm_int(vm_count(vm, args[0]));
    return 0;
}

static mt_str slice(mt_str text, size_t from, size_t to)
{
    return (mt_str){text.data + from, to - from};
}

int builtin_StringSlice(mt_vm *vm, vm_value *args, vm_value *ret)
{
    uint32_t start, from, to;
    uint64_t count;

    if (vm_check_char(vm, args[0], args[1].number, true) < 0 ||
        vm_check_count(vm, "count", args[2].number) < 0)
        return -1;
    start = (uint32_t)args[1].number;
    count = MT_MIN((uint64_t)args[2].number, (uint64_t)(vm_count(vm, args[0]) - start));
    from = vm_walk_to(vm, args[0], start);
    to = vm_walk_to(vm, args[0], start + (uint32_t)count);
    vm_spend(vm, to - from);
    return vm_make_string(vm, slice(vm_text(args[0]), from, to), ret);
}

int builtin_StringCompare(mt_vm *vm, vm_value *args, vm_value *ret)
{
    vm_spend(vm, MT_MIN(args[0].string->len, args[1].string->len));
    *ret = vm_int(vm_compare(args[0], args[1]));
    return 0;
}

int builtin_StringCodeAt(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]);
    uint32_t at, code = 0;

    if (vm_check_char(vm, args[0], args[1].number, false) < 0)
        return -1;
    at = vm_walk_to(vm, args[0], (uint32_t)args[1].number);
    (void)mt_utf8_decode(text.data + at, text.len - at, &code, NULL);
    *ret = vm_int(code);
    return 0;
}

int builtin_StringFromCode(mt_vm *vm, vm_value *args, vm_value *ret)
{
    int64_t code = args[0].number;
    char text[4];

    if (code < 1 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return vm_throw(vm, "BadArgument", "%lld is the code of no character", (long long)code);
    return vm_make_string(vm, (mt_str){text, mt_utf8_encode((uint32_t)code, text)}, ret);
}

// ---- finding ----

// Where part first stands in text, as a byte; SIZE_MAX when it does not.
static size_t find(mt_str text, mt_str part)
{
    const char *found = memmem(text.data, text.len, part.data, part.len);

    return found ? (size_t)(found - text.data) : SIZE_MAX;
}

int builtin_StringIndexOf(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]);
    size_t from, at;

    if (vm_check_char(vm, args[0], args[2].number, true) < 0)
        return -1;
    from = vm_walk_to(vm, args[0], (uint32_t)args[2].number);
    text = slice(text, from, text.len);
    at = find(text, vm_text(args[1]));
    vm_spend(vm, MT_MIN(at, text.len));
    *ret = vm_int(-1);
    if (at != SIZE_MAX)
        *ret = vm_int(args[2].number + (int64_t)vm_count_text(slice(text, 0, at)));
    return 0;
}

static char *reversed(mt_str text)
{
    char *copy = malloc(text.len + 1);

    for (size_t i = 0; copy && i < text.len; i++)
        copy[i] = text.data[text.len - 1 - i];
    return copy;
}

// There is no search from behind that is as quick as the other one in the worst of cases.
int builtin_StringLastIndexOf(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]), part = vm_text(args[1]);
    _cleanup_free_ char *mirror = reversed(text), *mirrored_part = reversed(part);
    size_t at;

    if (!mirror || !mirrored_part)
        return vm_no_memory(vm);
    vm_spend(vm, 2 * text.len + part.len);
    at = find((mt_str){mirror, text.len}, (mt_str){mirrored_part, part.len});
    *ret = vm_int(-1);
    if (at != SIZE_MAX)
        *ret = vm_int((int64_t)vm_count_text(slice(text, 0, text.len - at - part.len)));
    return 0;
}

int builtin_StringContains(mt_vm *vm, vm_value *args, vm_value *ret)
{
    size_t at = find(vm_text(args[0]), vm_text(args[1]));

    vm_spend(vm, MT_MIN(at, (size_t)args[0].string->len));
    *ret = vm_bool(at != SIZE_MAX);
    return 0;
}

int builtin_StringStartsWith(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]), part = vm_text(args[1]);

    vm_spend(vm, part.len);
    *ret = vm_bool(text.len >= part.len && memcmp(text.data, part.data, part.len) == 0);
    return 0;
}

int builtin_StringEndsWith(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]), part = vm_text(args[1]);

    vm_spend(vm, part.len);
    *ret = vm_bool(text.len >= part.len &&
                   memcmp(text.data + text.len - part.len, part.data, part.len) == 0);
    return 0;
}

// ---- replacing, splitting, joining ----

static size_t count_parts(mt_str text, mt_str part)
{
    size_t count = 0, at;

    for (; (at = find(text, part)) != SIZE_MAX; count++)
        text = slice(text, at + part.len, text.len);
    return count;
}

static char *append(char *to, mt_str text)
{
    memcpy(to, text.data, text.len);
    return to + text.len;
}

int builtin_StringReplace(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]), part = vm_text(args[1]), by = vm_text(args[2]);
    uint64_t count;
    size_t at;
    char *to;

    if (part.len == 0)
        return vm_throw(vm, "BadArgument", "the part to be replaced is empty");
    vm_spend(vm, 2 * text.len);
    count = count_parts(text, part);
    if (vm_string_room(vm, text.len - count * part.len + count * by.len, ret) < 0)
        return -1;
    to = ret->string->data;
    for (; (at = find(text, part)) != SIZE_MAX; text = slice(text, at + part.len, text.len))
        to = append(append(to, slice(text, 0, at)), by);
    (void)append(to, text);
    return 0;
}

// Bytes of the first character; there is one.
static size_t first_length(mt_str text)
{
    uint32_t code;

    return mt_utf8_decode(text.data, text.len, &code, NULL);
}

static int split_characters(mt_vm *vm, mt_str text, mt_json *list)
{
    int r = 0;

    while (text.len && r == 0) {
        size_t len = first_length(text);

        r = vm_list_add_text(vm, list, slice(text, 0, len));
        text = slice(text, len, text.len);
    }
    return r;
}

static int split(mt_vm *vm, mt_str text, mt_str separator, mt_json *list)
{
    size_t at;

    while ((at = find(text, separator)) != SIZE_MAX) {
        if (vm_list_add_text(vm, list, slice(text, 0, at)) < 0)
            return -1;
        text = slice(text, at + separator.len, text.len);
    }
    return vm_list_add_text(vm, list, text);
}

int builtin_StringSplit(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]), separator = vm_text(args[1]);
    _cleanup_json_ mt_json *list = mt_json_new_array();

    vm_spend(vm, text.len);
    if ((separator.len ? split(vm, text, separator, list) : split_characters(vm, text, list)) < 0)
        return -1;
    return vm_make_json(vm, MT_TAKE_PTR(list), ret);
}

int builtin_StringSplitLines(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]);
    _cleanup_json_ mt_json *list = mt_json_new_array();

    vm_spend(vm, text.len);
    while (text.len) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;
        bool crlf = end && len && text.data[len - 1] == '\r';

        if (vm_list_add_text(vm, list, slice(text, 0, len - crlf)) < 0)
            return -1;
        text = slice(text, len + (end != NULL), text.len);
    }
    return vm_make_json(vm, MT_TAKE_PTR(list), ret);
}

int builtin_StringJoin(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const mt_json *array = args[0].json->json;
    mt_str separator = vm_text(args[1]);
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_VM_STRING);

    for (size_t i = 0; i < mt_json_count(array) && !text.failed; i++) {
        if (i)
            (void)mt_buf_add(&text, separator.data, separator.len);
        (void)vm_add_json_text(mt_json_at(array, i), &text);
    }
    vm_spend(vm, mt_json_count(array) + text.len);
    return vm_string_of(vm, &text, ret);
}
