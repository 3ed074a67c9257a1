// SPDX-License-Identifier: Apache-2.0
// Errors: throwing them, where they came up, and how a run ends that none of its handlers saves.
#include "mtc/vm-internal.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

// ---- places ----

static size_t word_of(const vm_frame *frame) // the instruction under way
{
    const uint32_t *words = frame->body->words;

    return frame->pc > words ? (size_t)(frame->pc - words) - 1 : 0;
}

static void place_at(const vm_frame *frame, size_t word, char out[VM_PLACE])
{
    const char *path = frame->body->function->file->path, *slash = strrchr(path, '/');
    mt_mtc_place place = mt_mtc_place_of(frame->body, word);

    (void)snprintf(out, VM_PLACE, "%.256s:%u:%u", slash ? slash + 1 : path, place.line,
                   place.column);
}

void vm_place_of(const vm_frame *frame, char out[VM_PLACE])
{
    place_at(frame, word_of(frame), out);
}

// Of the function at that depth, 1 for main. One that was stopped between two instructions is at
// the next.
static void place_in(const mt_vm *vm, size_t depth, char out[VM_PLACE])
{
    const vm_frame *frame = &vm->frames[depth - 1];
    bool between = depth == vm->depth && vm->state == MT_VM_RUNS && !vm->ended;

    place_at(frame, between ? (size_t)(frame->pc - frame->body->words) : word_of(frame), out);
}

// ---- throwing ----

// Up to where it may stand in a string: it may have been cut, or come from outside.
static mt_str valid(mt_str text)
{
    if (text.len == 0)
        return MT_STR("");
    return (mt_str){text.data, mt_utf8_bad_at(text.data, text.len)};
}

static const char *put(char **at, mt_str text)
{
    const char *begin = *at;

    if (text.len)
        memcpy(*at, text.data, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return begin;
}

int vm_throw_as(mt_vm *vm, const char *code, mt_str message)
{
    char text[VM_PLACE], *at;
    mt_str place, name = valid(mt_str_of(code));
    vm_error *e;
    size_t size;

    vm_place_of(&vm->frames[vm->depth - 1], text);
    place = valid(mt_str_of(text));
    message = valid(message);
    size = sizeof(*e) + message.len + place.len + name.len + 3;
    e = vm_alloc(vm, size);
    if (!e)
        return -1;
    at = e->text;
    e->box = (vm_box){1, (uint32_t)size};
    e->message = put(&at, message);
    e->message_len = message.len;
    e->place = put(&at, place);
    e->code = put(&at, name);
    vm_unref(vm, vm->thrown);
    vm->thrown = (vm_value){.kind = VM_ERROR, .error = e};
    return -1;
}

int vm_throw_str(mt_vm *vm, const char *code, mt_str message)
{
    vm_spend(vm, message.len);
    return vm_throw_as(vm, code, message);
}

int vm_throw(mt_vm *vm, const char *code, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return vm_throw_as(vm, code, mt_str_of(text));
}

const char *vm_quote(mt_str text, char out[VM_QUOTE])
{
    enum { SHOWN = 40 };
    size_t n = 0, chars = 0;
    mt_str end;

    out[0] = '\'';
    while (n < text.len && chars++ < SHOWN) {
        uint32_t c;
        size_t step = mt_utf8_decode(text.data + n, text.len - n, &c, NULL);

        if (step == 0)
            break;
        memcpy(out + 1 + n, text.data + n, step);
        if (c < 0x20 || c == 0x7f)
            out[1 + n] = ' ';
        n += step;
    }
    end = n < text.len ? MT_STR("…'") : MT_STR("'");
    memcpy(out + 1 + n, end.data, end.len + 1);
    return out;
}

// ---- ends ----

enum { TRACE_FRAMES = 50, TRACE_BYTES = 64 << 10 };

const char *mt_vm_place(mt_vm *vm)
{
    if (vm->depth == 0)
        return "";
    place_in(vm, vm->depth, vm->place);
    return vm->place;
}

// The functions that are under way, innermost first.
char *mt_vm_stack(const mt_vm *vm)
{
    _cleanup_buf_ mt_buf out = MT_BUF_INIT(TRACE_BYTES);
    mt_jw w;

    mt_jw_init(&w, &out, 0);
    mt_jw_begin_array(&w);
    for (size_t i = vm->depth; i > 0 && vm->depth - i < TRACE_FRAMES; i--) {
        const vm_frame *frame = &vm->frames[i - 1];
        char place[VM_PLACE];

        place_in(vm, i, place);
        mt_jw_begin_object(&w);
        mt_jw_member_str(&w, "function", frame->body->function->name);
        mt_jw_member_text(&w, "place", place);
        mt_jw_end_object(&w);
    }
    mt_jw_end_array(&w);
    return mt_buf_take(&out);
}

static const char *why(mt_vm *vm)
{
    size_t limit = vm->heap.limit;

    switch (vm->failure.end) {
    case MT_VM_END_MEMORY:
        (void)snprintf(vm->why, sizeof(vm->why), "the run needs more than its %zu %s of memory",
                       limit >= 1 << 20 ? limit >> 20 : limit >> 10,
                       limit >= 1 << 20 ? "MiB" : "KiB");
        return vm->why;
    case MT_VM_END_DEPTH:
        (void)snprintf(vm->why, sizeof(vm->why), "calls are nested more than %d deep", MT_VM_DEPTH);
        return vm->why;
    case MT_VM_END_SYSTEM:
        return "the server is out of memory";
    default:
        return vm->thrown.error->message;
    }
}

void vm_fail(mt_vm *vm)
{
    mt_vm_failure *f = &vm->failure;

    if (!vm->ended)
        f->end = MT_VM_END_ERROR;
    vm->ended = true;
    vm->state = MT_VM_FAILED;
    f->message = why(vm);
    f->place = mt_vm_place(vm);
    if (f->end == MT_VM_END_ERROR) {
        f->code = vm->thrown.error->code;
        f->place = vm->thrown.error->place;
    }
    vm->trace = mt_vm_stack(vm);
    f->stack = vm->trace ? vm->trace : "[]";
}

const mt_vm_failure *mt_vm_failure_of(mt_vm *vm)
{
    return &vm->failure;
}
