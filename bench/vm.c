// SPDX-License-Identifier: Apache-2.0
// Runs a program of an app without a server, as often as is said, and prints for each run the
// seconds of processor time that it took and what it returned. What it prints is dropped; other
// calls to the outside are refused.
//
// usage: bench-vm FILE.mtc RUNS
#include "mtc/vm.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>

enum { FILE_MAX = MT_MTC_MAX_BYTES + 1, TURN = 100000, RUNS_MAX = 1000000 };

static double processor_seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void answer(mt_vm *vm)
{
    const char *name = mt_vm_call_of(vm)->name;

    if (mt_starts_with(name, "Print"))
        (void)mt_vm_answer(vm, MT_STR("null"), NULL);
    else
        mt_vm_answer_error(vm, "notSupported", "there is no server");
}

static mt_vm_state run_to_end(mt_vm *vm)
{
    mt_vm_state state;

    while ((state = mt_vm_run(vm, TURN)) <= MT_VM_CALLS) {
        if (state == MT_VM_CALLS)
            answer(vm);
    }
    return state;
}

static int run_once(const mt_mtc_program *p)
{
    _cleanup_buf_ mt_buf result = MT_BUF_INIT(SIZE_MAX / 2);
    double began = processor_seconds();
    _cleanup_(mt_vm_free_p) mt_vm *vm =
        mt_vm_new(p, &(mt_vm_options){.run_id = "", .app = "bench", .namespace_name = "bench"});

    if (!vm)
        return -1;
    if (run_to_end(vm) == MT_VM_FAILED) {
        (void)fprintf(stderr, "bench-vm: %s\n", mt_vm_failure_of(vm)->message);
        return -1;
    }
    if (mt_vm_result(vm, &result) < 0)
        return -1;
    (void)printf("%.6f %s\n", processor_seconds() - began, mt_buf_str(&result));
    return 0;
}

static mt_mtc_program *read_program(const char *path, mt_buf *text, mt_mtr_diags *diags)
{
    _cleanup_buf_ mt_buf said = MT_BUF_INIT(1 << 20);
    mt_mtc_source source;
    mt_mtc_program *p;

    if (mt_read_file(AT_FDCWD, path, text) < 0) {
        (void)fprintf(stderr, "bench-vm: %s cannot be read\n", path);
        return NULL;
    }
    source = (mt_mtc_source){path, {mt_buf_str(text), text->len}};
    p = mt_mtc_check(&source, 1, 0, diags);
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++)
        (void)mt_mtr_diag_format(mt_mtr_diags_at(diags, i), &said);
    (void)fputs(mt_buf_str(&said), stderr);
    if (p && !mt_mtc_failed(p) && mt_mtc_make_ready(p) == 0)
        return p;
    mt_mtc_program_free(p);
    return NULL;
}

int main(int argc, char **argv)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(FILE_MAX);
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_mtc_program *p = NULL;
    uint64_t runs = 0;
    int r = 0;

    if (argc == 3 && diags && mt_parse_u64(mt_str_of(argv[2]), RUNS_MAX, &runs))
        p = read_program(argv[1], &text, diags);
    for (uint64_t i = 0; p && i < runs && r == 0; i++)
        r = run_once(p);
    mt_mtc_program_free(p);
    mt_mtr_diags_free(diags);
    return p && r == 0 ? 0 : 1;
}
