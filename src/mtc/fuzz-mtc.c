// SPDX-License-Identifier: Apache-2.0
// Any bytes through lexer, parser, checker and emitter, as one file and as two. A form feed divides
// them. What has no errors is run, with little memory and for a short while, in one go and again in
// small turns, and comes to the same.
#include "mtc/testcode.h"
#include "mtc/vm-internal.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

// ---- running ----

enum { HEAP = 1 << 20 };

static const char *const inputs[] = {
    [MT_MTC_BOOL] = "true",
    [MT_MTC_INT] = "7",
    [MT_MTC_DECIMAL] = "2.50",
    [MT_MTC_STRING] = "text \xe2\x82\xac",
    [MT_MTC_GUID] = "01234567-89ab-7def-8123-456789abcdef",
    [MT_MTC_JSON_OBJECT] = "{\"a\":1,\"b\":[true,null,\"x\"]}",
    [MT_MTC_JSON_ARRAY] = "[1,2.5,\"three\",[],{\"n\":4}]",
    [MT_MTC_VOID] = "",
};

// Every third call fails.
static void answer(mt_vm *vm, unsigned n)
{
    mt_mtc_type type = mt_vm_call_of(vm)->result;
    mt_buf text = MT_BUF_INIT(64 << 20);

    require(mt_vm_call_arguments(vm, &text) == 0 && mt_vm_place(vm));
    mt_buf_clear(&text);
    if (type == MT_MTC_STRING || type == MT_MTC_GUID)
        (void)mt_json_write_string(mt_str_of(inputs[type]), &text);
    else
        (void)mt_buf_adds(&text, inputs[type]);
    if (n % 3 == 2)
        mt_vm_answer_error(vm, "notFound", "nothing there");
    else
        require(mt_vm_answer(vm, (mt_str){mt_buf_str(&text), text.len}, NULL) == 0);
    mt_buf_done(&text);
}

static void say_end(mt_vm *vm, mt_vm_state state, mt_buf *out)
{
    const mt_vm_failure *f = mt_vm_failure_of(vm);

    if (state == MT_VM_FINISHED)
        require(mt_vm_result(vm, out) == 0);
    if (state == MT_VM_FAILED)
        (void)mt_buf_addf(out, "%s %s %s", f->message, f->place, f->stack);
}

static void run(const mt_mtc_program *p, uint64_t slice, unsigned turns, mt_buf *out)
{
    static const mt_vm_options options = {.app = "fuzz", .heap = HEAP};
    mt_vm *vm = mt_vm_new(p, &options);
    mt_vm_state state = MT_VM_RUNS;
    unsigned calls = 0;

    for (size_t i = 0; vm && i < mt_mtc_input_count(p); i++)
        (void)mt_vm_input(vm, i, mt_str_of(inputs[mt_mtc_input_at(p, i).type]), NULL);
    for (; vm && turns && (state == MT_VM_RUNS || state == MT_VM_CALLS); turns--) {
        if (state == MT_VM_CALLS)
            answer(vm, calls++);
        state = mt_vm_run(vm, slice);
    }
    if (!vm)
        return;
    say_end(vm, state, out);
    vm_empty(vm);
    require(vm->heap.used == 0);
    (void)mt_vm_free(vm);
}

static void run_twice(mt_mtc_program *p)
{
    mt_buf once = MT_BUF_INIT(64 << 20), again = MT_BUF_INIT(64 << 20);

    require(mt_mtc_make_ready(p) == 0);
    run(p, 20000, 30, &once);
    run(p, 7, 3000, &again);
    // One of them may have been stopped before its end.
    require(!once.len || !again.len || mt_streq(mt_buf_str(&once), mt_buf_str(&again)));
    mt_buf_done(&once);
    mt_buf_done(&again);
}

// ---- all stages ----

static void check(const mt_mtc_source *sources, size_t count)
{
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_mtc_program *p = mt_mtc_check(sources, count, 0, diags);
    mt_buf shown = MT_BUF_INIT((size_t)64 << 20);

    require(p && mt_mtc_failed(p) == (mt_mtr_diags_errors(diags) > 0));
    mt_mtr_diags_sort(diags);
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++)
        require(mt_mtr_diag_format(mt_mtr_diags_at(diags, i), &shown) == 0);
    if (!mt_mtc_failed(p)) {
        const mt_mtc_code *code = mt_mtc_emit(p);

        require(code && !testcode_wrong(p, code) && mt_mtc_listing(p, &shown) == 0);
        run_twice(p);
    }
    mt_buf_done(&shown);
    mt_mtc_program_free(p);
    mt_mtr_diags_free(diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    // Copies that end where the input does, so that reading past the end is seen.
    const uint8_t *cut = size ? memchr(data, '\f', size) : NULL;
    size_t first = cut ? (size_t)(cut - data) : size, second = cut ? size - first - 1 : 0;
    char *a = malloc(first ? first : 1), *b = malloc(second ? second : 1);

    if (a && b) {
        mt_mtc_source sources[] = {{"fuzz.mtc", {a, first}}, {"more.mtc", {b, second}}};

        memcpy(a, first ? (const char *)data : "", first);
        memcpy(b, second ? (const char *)cut + 1 : "", second);
        check(sources, cut ? 2 : 1);
    }
    free(a);
    free(b);
    return 0;
}
