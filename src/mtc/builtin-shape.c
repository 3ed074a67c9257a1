// SPDX-License-Identifier: Apache-2.0
// Strings: other shapes of them.
#include "mtc/builtin-internal.h"

// ---- blanks at the ends ----

static int trimmed(mt_vm *vm, vm_value text, bool start, bool end, vm_value *ret)
{
    vm_spend(vm, text.string->len);
    return vm_make_string(vm, vm_trim(vm_text(text), start, end), ret);
}

int builtin_StringTrim(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return trimmed(vm, args[0], true, true, ret);
}

int builtin_StringTrimStart(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return trimmed(vm, args[0], true, false, ret);
}

int builtin_StringTrimEnd(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return trimmed(vm, args[0], false, true, ret);
}

// ---- letters ----

// The text with the letters from first to last in the other case.
static int change_letters(mt_vm *vm, vm_value text, char first, char last, vm_value *ret)
{
    mt_str from = vm_text(text);

    if (vm_string_room(vm, from.len, ret) < 0)
        return -1;
    for (size_t i = 0; i < from.len; i++) {
        char c = from.data[i];

        ret->string->data[i] = c >= first && c <= last ? (char)(c ^ 0x20) : c;
    }
    return 0;
}

int builtin_StringToUpper(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return change_letters(vm, args[0], 'a', 'z', ret);
}

int builtin_StringToLower(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return change_letters(vm, args[0], 'A', 'Z', ret);
}

// ---- length ----

static char *repeat(char *to, mt_str text, uint64_t count)
{
    if (text.len == 1) {
        memset(to, text.data[0], count);
        return to + count;
    }
    for (uint64_t i = 0; i < count; i++, to += text.len)
        memcpy(to, text.data, text.len);
    return to;
}

// Bytes of a text so many times; more than any string has where that is too many.
static uint64_t repeated_length(mt_str text, uint64_t count)
{
    return text.len && count > MT_VM_STRING ? UINT32_MAX : text.len * count;
}

int builtin_StringRepeat(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]);
    int64_t count = args[1].number;

    if (vm_check_count(vm, "count", count) < 0 ||
        vm_string_room(vm, repeated_length(text, (uint64_t)count), ret) < 0)
        return -1;
    if (text.len)
        (void)repeat(ret->string->data, text, (uint64_t)count);
    return 0;
}

// args: the text, the length and what fills.
static int pad(mt_vm *vm, vm_value *args, bool before, vm_value *ret)
{
    mt_str text = vm_text(args[0]), fill = vm_text(args[2]);
    int64_t missing = args[1].number;
    char *to;

    vm_spend(vm, fill.len);
    if (vm_count_text(fill) != 1)
        return vm_throw(vm, "BadArgument", "fill has %zu characters, not 1", vm_count_text(fill));
    missing = missing > vm_count(vm, args[0]) ? missing - vm_count(vm, args[0]) : 0;
    if (vm_string_room(vm, text.len + repeated_length(fill, (uint64_t)missing), ret) < 0)
        return -1;
    to = ret->string->data;
    if (before)
        to = repeat(to, fill, (uint64_t)missing);
    memcpy(to, text.data, text.len);
    if (!before)
        (void)repeat(to + text.len, fill, (uint64_t)missing);
    return 0;
}

int builtin_StringPadStart(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return pad(vm, args, true, ret);
}

int builtin_StringPadEnd(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return pad(vm, args, false, ret);
}

// ---- formats ----

typedef struct format {
    mt_vm *vm;
    mt_str text;
    size_t at;
    vm_value values;
    mt_buf out;
} format;

static int bad_format(const format *f, const char *why)
{
    size_t place = vm_count_text((mt_str){f->text.data, f->at});

    return vm_throw(f->vm, "BadFormat", "the format is wrong at position %zu: %s", place, why);
}

// "{12}" at the place that is reached.
static int add_item(format *f)
{
    size_t begin = f->at + 1, end = begin;
    uint64_t i;

    while (end < f->text.len && f->text.data[end] >= '0' && f->text.data[end] <= '9')
        end++;
    if (end == begin || end == f->text.len || f->text.data[end] != '}')
        return bad_format(f, "'{' begins {0}, {1} and so on, and {{ stands for it");
    if (!mt_parse_u64((mt_str){f->text.data + begin, end - begin}, INT64_MAX, &i))
        i = INT64_MAX;
    if (vm_check_item(f->vm, f->values, (int64_t)i, false) < 0)
        return -1;
    (void)vm_add_json_text(mt_json_at(f->values.json->json, (size_t)i), &f->out);
    f->at = end + 1;
    return 0;
}

// The brace at the place that is reached.
static int add_brace(format *f)
{
    char brace = f->text.data[f->at];

    if (f->at + 1 < f->text.len && f->text.data[f->at + 1] == brace) {
        (void)mt_buf_addc(&f->out, brace);
        f->at += 2;
        return 0;
    }
    return brace == '{' ? add_item(f) : bad_format(f, "'}' without '{'; }} stands for it");
}

static size_t until_brace(const format *f)
{
    size_t at = f->at;

    while (at < f->text.len && f->text.data[at] != '{' && f->text.data[at] != '}')
        at++;
    return at - f->at;
}

static int add_all(format *f)
{
    while (f->at < f->text.len && !f->out.failed) {
        size_t plain = until_brace(f);

        (void)mt_buf_add(&f->out, f->text.data + f->at, plain);
        f->at += plain;
        if (f->at < f->text.len && add_brace(f) < 0)
            return -1;
    }
    return 0;
}

int builtin_StringFormat(mt_vm *vm, vm_value *args, vm_value *ret)
{
    format f = {
        .vm = vm, .text = vm_text(args[0]), .values = args[1], .out = MT_BUF_INIT(MT_VM_STRING)};
    int r = add_all(&f);

    vm_spend(vm, f.text.len + f.out.len);
    if (r == 0)
        r = vm_string_of(vm, &f.out, ret);
    mt_buf_done(&f.out);
    return r;
}
