// SPDX-License-Identifier: Apache-2.0
#include "mtc/testrun.h"

#include "mtc/vm-internal.h"

#include <stdio.h>

typedef struct world {
    mt_vm *vm;
    mt_buf *out;
    int64_t now;
    uint64_t chance;
    unsigned guids;
} world;

// ---- calls ----

static void answer(world *w, const char *json)
{
    if (mt_vm_answer(w->vm, mt_str_of(json), NULL) < 0)
        abort();
}

static void answer_int(world *w, int64_t n)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%lld", (long long)n);
    answer(w, text);
}

static int64_t int_at(const mt_json *list, size_t i)
{
    int64_t n = 0;

    (void)mt_json_as_int64(mt_json_at(list, i), &n);
    return n;
}

static void print(world *w, const mt_json *arguments, const char *end)
{
    mt_str text = mt_json_str(mt_json_at(arguments, 0));

    (void)mt_buf_add(w->out, text.data, text.len);
    (void)mt_buf_adds(w->out, end);
    answer(w, "null");
}

static void give_guid(world *w)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "\"00000000-0000-4000-8000-%012u\"", ++w->guids);
    answer(w, text);
}

// Numbers one after the other, so that all that may come does come.
static void give_number(world *w, int64_t least, int64_t most)
{
    uint64_t more = (uint64_t)most - (uint64_t)least, chance = w->chance++;

    if (least > most)
        mt_vm_answer_error(w->vm, "BadArgument", "least is more than most");
    else
        answer_int(w, (int64_t)((uint64_t)least + (more == UINT64_MAX ? 0 : chance % (more + 1))));
}

static void give_nothing(world *w, const char *name)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "there is no %s in tests", name);
    mt_vm_answer_error(w->vm, "notSupported", text);
}

static void perform(world *w, const char *name, const mt_json *arguments)
{
    if (mt_streq(name, "Print"))
        print(w, arguments, "");
    else if (mt_streq(name, "PrintLine"))
        print(w, arguments, "\n");
    else if (mt_starts_with(name, "Log") || mt_starts_with(name, "AppStateSetOutput") ||
             mt_streq(name, "Sleep"))
        answer(w, "null");
    else if (mt_streq(name, "TimeNow"))
        answer_int(w, w->now++);
    else if (mt_streq(name, "GuidCreate"))
        give_guid(w);
    else if (mt_streq(name, "RandomInt"))
        give_number(w, int_at(arguments, 0), int_at(arguments, 1));
    else
        give_nothing(w, name);
}

static void make_call(world *w)
{
    mt_buf text = MT_BUF_INIT((size_t)256 << 20);
    mt_json *arguments = NULL;

    if (mt_vm_call_arguments(w->vm, &text) == 0 &&
        mt_json_parse(text.data, text.len, NULL, &arguments, NULL) == 0)
        perform(w, mt_vm_call_of(w->vm)->name, arguments);
    else
        mt_vm_answer_error(w->vm, "TooLarge", "the arguments are too large for a test");
    (void)mt_json_unref(arguments);
    mt_buf_done(&text);
}

// ---- inputs ----

// The value of an input in lines "name=value".
static mt_str value_of(mt_str lines, mt_str name)
{
    const char *at = lines.data, *end = lines.data + lines.len;

    while (at < end) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((eol ? eol : end) - at);

        if (len > name.len && memcmp(at, name.data, name.len) == 0 && at[name.len] == '=')
            return (mt_str){at + name.len + 1, len - name.len - 1};
        at += len + 1;
    }
    return MT_STR("");
}

static int give_inputs(mt_vm *vm, const testrun *run, mt_err **err)
{
    for (size_t i = 0; i < mt_mtc_input_count(run->program); i++) {
        mt_str name = mt_mtc_input_at(run->program, i).name;

        if (mt_vm_input(vm, i, value_of(run->inputs, name), err) < 0)
            return -1;
    }
    return 0;
}

// ---- ends ----

static void say_failure(mt_vm *vm, mt_buf *out)
{
    static const char *const ends[] = {
        [MT_VM_END_MEMORY] = "memory", [MT_VM_END_DEPTH] = "depth", [MT_VM_END_SYSTEM] = "system"};
    const mt_vm_failure *f = mt_vm_failure_of(vm);
    mt_json *stack = NULL;

    (void)mt_buf_addf(out, "! %s: ", f->end == MT_VM_END_ERROR ? f->code : ends[f->end]);
    (void)mt_buf_adds(out, f->message);
    (void)mt_buf_addc(out, '\n');
    if (mt_json_parse(f->stack, strlen(f->stack), NULL, &stack, NULL) < 0)
        abort();
    for (size_t i = 0; i < mt_json_count(stack); i++) {
        const mt_json *frame = mt_json_at(stack, i);

        (void)mt_buf_addf(out, "  at %s (%s)\n", mt_json_text(mt_json_get(frame, "function"), "?"),
                          mt_json_text(mt_json_get(frame, "place"), "?"));
    }
    (void)mt_json_unref(stack);
}

static void say_end(mt_vm *vm, mt_vm_state state, mt_buf *out)
{
    if (out->len && out->data[out->len - 1] != '\n')
        (void)mt_buf_addc(out, '\n');
    if (state == MT_VM_RUNS) {
        (void)mt_buf_addf(out, "! steps: it goes on after %d of them\n", TESTRUN_STEPS);
    } else if (state == MT_VM_FAILED) {
        say_failure(vm, out);
    } else {
        (void)mt_buf_adds(out, "= ");
        (void)mt_vm_result(vm, out);
        (void)mt_buf_addc(out, '\n');
    }
}

static mt_vm_state go(world *w, uint64_t slice)
{
    mt_vm_state state;

    do {
        state = mt_vm_run(w->vm, slice);
        if (state == MT_VM_CALLS)
            make_call(w);
    } while ((state == MT_VM_RUNS || state == MT_VM_CALLS) && w->vm->steps < TESTRUN_STEPS);
    return state == MT_VM_CALLS ? MT_VM_RUNS : state;
}

uint64_t testrun_run(const testrun *run, mt_buf *out)
{
    mt_vm_options options = {.run_id = "01234567-89ab-7def-8123-456789abcdef",
                             .app = "test",
                             .namespace_name = "tests",
                             .heap = run->heap,
                             .fail_allocation = run->fail_allocation};
    mt_vm *vm = mt_vm_new(run->program, &options);
    world w = {.vm = vm, .out = out, .now = 1000000};
    mt_err *err = NULL;
    uint64_t steps = 0;

    if (!vm) {
        (void)mt_buf_adds(out, "! system: no machine\n");
        return 0;
    }
    if (give_inputs(vm, run, &err) < 0)
        (void)mt_buf_addf(out, "! badField: %s\n", mt_err_sentence(err));
    else
        say_end(vm, go(&w, run->slice), out);
    steps = vm->steps;
    vm_empty(vm);
    if (vm->heap.used)
        (void)mt_buf_addf(out, "%zu bytes are counted that nobody has\n", vm->heap.used);
    (void)mt_err_free(err);
    (void)mt_vm_free(vm);
    return steps;
}

mt_mtc_program *testrun_ready(const char *text)
{
    mt_mtc_source source = {"apps/a/a.mtc", {text, strlen(text)}};
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_mtc_program *p = mt_mtc_check(&source, 1, 0, diags);
    _cleanup_buf_ mt_buf shown = MT_BUF_INIT(1 << 20);

    if (!mt_mtc_failed(p) && mt_mtc_make_ready(p) == 0) {
        mt_mtr_diags_free(diags);
        return p;
    }
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++)
        (void)mt_mtr_diag_format(mt_mtr_diags_at(diags, i), &shown);
    printf("Bail out! not a program: %s\n%s\n", text, mt_buf_str(&shown));
    exit(2);
}
