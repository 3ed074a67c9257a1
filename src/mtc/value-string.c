// SPDX-License-Identifier: Apache-2.0
// Texts: making and joining them, and their characters.
#include "mtc/vm-internal.h"

#define NOT_COUNTED UINT32_MAX // of chars

enum { GRAIN = 16 }; // of what malloc() gives

// ---- making ----

static int too_large(mt_vm *vm, size_t len)
{
    return vm_throw(vm, "TooLarge", "a text of %zu bytes is over the limit of %d MiB", len,
                    MT_VM_STRING >> 20);
}

// len characters' bytes, with the room behind them that malloc() has anyway.
int vm_make_string_room(mt_vm *vm, size_t len, vm_value *ret)
{
    size_t size = (sizeof(vm_string) + len + GRAIN - 1) / GRAIN * GRAIN + GRAIN / 2;
    vm_string *s;

    if (len > MT_VM_STRING)
        return too_large(vm, len);
    s = vm_alloc(vm, size);
    if (!s)
        return -1;
    *s = (vm_string){.box = {1, (uint32_t)size},
                     .len = (uint32_t)len,
                     .cap = (uint32_t)(size - offsetof(vm_string, data)),
                     .chars = len ? NOT_COUNTED : 0};
    *ret = (vm_value){.kind = VM_STRING, .string = s};
    return 0;
}

int vm_make_string(mt_vm *vm, mt_str text, vm_value *ret)
{
    if (vm_make_string_room(vm, text.len, ret) < 0)
        return -1;
    if (text.len)
        memcpy(ret->string->data, text.data, text.len);
    vm_spend(vm, text.len);
    return 0;
}

// ---- constants of a program ----

size_t vm_fixed_size(const mt_mtc_constant *c)
{
    if (c->type == MT_MTC_STRING)
        return sizeof(vm_string) + c->text.len;
    return c->type == MT_MTC_DECIMAL ? sizeof(vm_decimal) : 0;
}

vm_value vm_fix(const mt_mtc_constant *c, void *memory)
{
    vm_value v = {.kind = VM_INT, .fixed = true, .number = c->number};

    if (c->type == MT_MTC_DECIMAL) {
        v.kind = VM_DECIMAL;
        v.decimal = memory;
        v.decimal->value = c->decimal;
    } else if (c->type == MT_MTC_STRING) {
        v.kind = VM_STRING;
        v.string = memory;
        v.string->len = v.string->cap = (uint32_t)c->text.len;
        if (c->text.len)
            memcpy(v.string->data, c->text.data, c->text.len);
        v.string->chars = NOT_COUNTED;
        (void)vm_chars(v); // now: it is not to be written later
    }
    return v;
}

// ---- characters ----

static bool begins(char c) // a character
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

// How many characters begin in the 8 bytes.
static uint32_t begin_in_8(const char *s)
{
    uint64_t w;

    memcpy(&w, s, 8);
    return 8 - (uint32_t)__builtin_popcountll((w >> 7) & (~w >> 6) & 0x0101010101010101u);
}

static uint32_t count(const char *s, uint32_t len)
{
    uint32_t n = 0, at = 0;

    for (; at + 8 <= len; at += 8)
        n += begin_in_8(s + at);
    for (; at < len; at++)
        n += begins(s[at]);
    return n;
}

uint32_t vm_chars(vm_value string)
{
    vm_string *s = string.string;

    if (s->chars == NOT_COUNTED)
        s->chars = count(s->data, s->len);
    return s->chars;
}

// n characters forward from one that begins at a byte.
static uint32_t forward(const vm_string *s, uint32_t at, uint32_t n)
{
    for (; at + 8 <= s->len; at += 8) {
        uint32_t here = begin_in_8(s->data + at);

        if (here > n)
            break;
        n -= here;
    }
    for (; at < s->len; at++) {
        if (begins(s->data[at]) && n-- == 0)
            break;
    }
    return at;
}

static uint32_t backward(const vm_string *s, uint32_t at, uint32_t n)
{
    for (; at >= 8; at -= 8) {
        uint32_t here = begin_in_8(s->data + at - 8);

        if (here >= n)
            break;
        n -= here;
    }
    while (n > 0)
        n -= begins(s->data[--at]);
    return at;
}

uint32_t vm_byte_at(vm_value string, uint32_t i)
{
    vm_string *s = string.string;
    uint32_t chars = vm_chars(string), byte;

    if (chars == s->len)
        return i;
    if (i < s->crumb_char / 2)
        byte = forward(s, 0, i);
    else if (i < s->crumb_char)
        byte = backward(s, s->crumb_byte, s->crumb_char - i);
    else if (i - s->crumb_char <= chars - i)
        byte = forward(s, s->crumb_byte, i - s->crumb_char);
    else
        byte = backward(s, s->len, chars - i);
    if (!string.fixed) {
        s->crumb_char = i;
        s->crumb_byte = byte;
    }
    return byte;
}

// ---- joining ----

// Room for `more` bytes in a text of one reference: twice as much as before, so that a text which
// grows piece by piece is moved seldom; just so much when memory is short.
static int make_room(mt_vm *vm, vm_value *v, size_t more)
{
    vm_string *s = v->string;
    size_t need = s->len + more, cap = MT_MAX(need, MT_MIN(2 * (size_t)s->cap, MT_VM_STRING));
    size_t size = s->box.size;

    if (need <= s->cap)
        return 0;
    if (cap - s->cap > vm->heap.limit - vm->heap.used)
        cap = need;
    s = vm_realloc(vm, s, size, size + cap - s->cap);
    if (!s)
        return -1;
    s->box.size = (uint32_t)(size + cap - s->cap);
    s->cap = (uint32_t)cap;
    v->string = s;
    return 0;
}

static int append(mt_vm *vm, vm_value *left, mt_str text, uint32_t chars)
{
    vm_string *s;

    if (make_room(vm, left, text.len) < 0)
        return -1;
    s = left->string;
    if (text.len)
        memcpy(s->data + s->len, text.data, text.len);
    s->len += (uint32_t)text.len;
    if (s->chars != NOT_COUNTED)
        s->chars += chars;
    return 0;
}

static uint32_t chars_of(vm_value v, mt_str text)
{
    return v.kind == VM_STRING ? vm_chars(v) : (uint32_t)text.len;
}

static int join_anew(mt_vm *vm, mt_str head, mt_str tail, vm_value *ret)
{
    if (vm_make_string_room(vm, head.len + tail.len, ret) < 0)
        return -1;
    if (head.len)
        memcpy(ret->string->data, head.data, head.len);
    if (tail.len)
        memcpy(ret->string->data + head.len, tail.data, tail.len);
    vm_spend(vm, head.len + tail.len);
    return 0;
}

int vm_join(mt_vm *vm, vm_value *left, vm_value right, vm_value *ret)
{
    char a[VM_SCALAR], b[VM_SCALAR];
    mt_str head = vm_scalar_text(*left, a), tail = vm_scalar_text(right, b);

    if (head.len + tail.len > MT_VM_STRING)
        return too_large(vm, head.len + tail.len);
    if (left->kind == VM_STRING && vm_is_own(*left)) {
        bool counted = left->string->chars != NOT_COUNTED;

        vm_spend(vm, tail.len);
        if (append(vm, left, tail, counted ? chars_of(right, tail) : 0) < 0)
            return -1;
        *ret = *left;
        left->kind = VM_NONE;
        return 0;
    }
    if (left->kind == VM_STRING && tail.len == 0)
        *ret = vm_ref(*left);
    else if (right.kind == VM_STRING && head.len == 0)
        *ret = vm_ref(right);
    else
        return join_anew(vm, head, tail, ret);
    return 0;
}

void vm_string_cut(vm_value v, uint32_t len)
{
    vm_string *s = v.string;

    s->len = len;
    s->chars = NOT_COUNTED;
    s->crumb_char = s->crumb_byte = 0;
}
