// SPDX-License-Identifier: Apache-2.0
// Calls to the outside: what is asked, and what comes back.
#include "mtc/vm-internal.h"

#include <stdio.h>

const mt_mtc_builtin *mt_vm_call_of(const mt_vm *vm)
{
    return vm->call;
}

int mt_vm_call_arguments(const mt_vm *vm, mt_buf *out)
{
    const vm_value *args = vm->stack + vm->top - vm->call->count;

    (void)mt_buf_addc(out, '[');
    for (size_t i = 0; i < vm->call->count; i++) {
        if (i)
            (void)mt_buf_addc(out, ',');
        (void)vm_add_json(args[i], out);
    }
    return mt_buf_addc(out, ']');
}

// ---- answers ----

// The call is over: its arguments go, and the machine runs again.
static void go_on(mt_vm *vm)
{
    for (size_t i = vm->call->count; i > 0; i--)
        vm_unref(vm, vm->stack[--vm->top]);
    vm->call = NULL;
    vm->state = MT_VM_RUNS;
}

static int not_a(const mt_vm *vm, const mt_json *json, mt_err **err)
{
    return mt_fail(err, MT_E_BAD_JSON, "the answer of %s is %s, not %s", vm->call->name,
                   mt_json_kind_name(mt_json_kind_of(json)), mt_mtc_type_word(vm->call->result));
}

// Whether json is a value of that type as it is, nothing read as something else.
static bool is_of(const mt_json *json, mt_mtc_type type)
{
    mt_json_kind kind = mt_json_kind_of(json);
    mt_decimal d;
    int64_t n;
    char guid[37];

    switch (type) {
    case MT_MTC_BOOL:
        return kind == MT_JSON_BOOL;
    case MT_MTC_INT:
        return mt_json_as_int64(json, &n);
    case MT_MTC_DECIMAL:
        return kind == MT_JSON_NUMBER && mt_decimal_parse(mt_json_str(json), true, &d) == 0;
    case MT_MTC_STRING:
        return kind == MT_JSON_STRING;
    case MT_MTC_GUID:
        return kind == MT_JSON_STRING && vm_read_guid(mt_json_str(json), guid);
    case MT_MTC_JSON_OBJECT:
        return kind == MT_JSON_OBJECT;
    default:
        return kind == MT_JSON_ARRAY;
    }
}

// 1: it is more than a value may be, which is an error for the program.
static int parse(const mt_vm *vm, mt_str text, mt_json **ret, mt_err **err)
{
    enum { ESCAPES = 6 }; // bytes of a text's character at most, so that a text is looked at whole
    mt_json_limits limits = vm_json_limits;
    mt_err *cause = NULL;

    if (vm->call->result == MT_MTC_STRING)
        limits.bytes = (size_t)ESCAPES * MT_VM_STRING + 2;
    if (mt_json_parse(text.data, text.len, &limits, ret, &cause) == 0)
        return 0;
    if (mt_err_code(cause) == MT_E_TOO_LARGE) {
        (void)mt_err_free(cause);
        return 1;
    }
    if (mt_err_code(cause) != MT_E_OOM)
        (void)mt_wrap(&cause, "the answer of %s", vm->call->name);
    mt_err_move(err, cause);
    return -1;
}

static void take_result(mt_vm *vm, mt_mtc_type type, const mt_json *json)
{
    vm_value v = {.kind = VM_NONE};

    if (vm_from_json(vm, json, type, &(vm_what){.text = MT_STR("the answer")}, &v) == 0)
        vm->stack[vm->top++] = v;
}

int mt_vm_answer(mt_vm *vm, mt_str json, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;
    mt_mtc_type type = vm->call->result;
    int r = type == MT_MTC_VOID ? 0 : parse(vm, json, &v, err);

    if (r < 0)
        return -1;
    if (r > 0) {
        mt_vm_answer_error(vm, "TooLarge", "the answer is larger than a value may be");
        return 0;
    }
    if (type != MT_MTC_VOID && !is_of(v, type))
        return not_a(vm, v, err);
    if (mt_json_has_nul(v))
        return mt_fail(err, MT_E_BAD_JSON, "the answer of %s holds a NUL character",
                       vm->call->name);
    go_on(vm);
    if (type != MT_MTC_VOID)
        take_result(vm, type, v);
    return 0;
}

void mt_vm_answer_error(mt_vm *vm, const char *code, const char *message)
{
    go_on(vm);
    (void)vm_throw_as(vm, code, mt_str_of(message));
}
