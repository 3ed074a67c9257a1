// SPDX-License-Identifier: Apache-2.0
// What main takes, as texts that come from outside, and what it gives.
#include "mtc/vm-internal.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>

static const mt_mtc_function *main_of(const mt_mtc_program *p)
{
    return mt_mtc_program_function(p, MT_STR("main"));
}

size_t mt_mtc_input_count(const mt_mtc_program *p)
{
    return main_of(p)->count;
}

mt_mtc_input mt_mtc_input_at(const mt_mtc_program *p, size_t i)
{
    const mt_mtc_variable *v = main_of(p)->parameters;

    while (i--)
        v = v->next;
    return (mt_mtc_input){v->name, v->type};
}

mt_mtc_type mt_mtc_result_type(const mt_mtc_program *p)
{
    return main_of(p)->result;
}

// ---- reading ----

// An input whose text has been understood.
typedef struct reading {
    mt_mtc_input input;
    mt_str text;
    bool truth;
    int64_t number;
    mt_decimal decimal;
    char guid[37];
    mt_json *json; // to be unreffed
} reading;

static int refuse(const reading *r, mt_err **err, const char *wanted)
{
    char name[MT_MTC_MAX_NAME + 1], quoted[VM_QUOTE];

    (void)snprintf(name, sizeof(name), "%.*s", (int)r->input.name.len, r->input.name.data);
    return mt_fail_field(err, MT_E_BAD_FIELD, name, "'%s' must be %s, not %s", name, wanted,
                         vm_quote(r->text, quoted));
}

static mt_str trim(mt_str text)
{
    static const char blanks[] = " \t\r\n";

    while (text.len && memchr(blanks, text.data[0], sizeof(blanks) - 1))
        text = (mt_str){text.data + 1, text.len - 1};
    while (text.len && memchr(blanks, text.data[text.len - 1], sizeof(blanks) - 1))
        text.len--;
    return text;
}

static int read_bool(reading *r, mt_err **err)
{
    r->truth = mt_str_eq(r->text, "true");
    return r->truth || mt_str_eq(r->text, "false") ? 0 : refuse(r, err, "true or false");
}

static int read_decimal(reading *r, mt_err **err)
{
    switch (mt_decimal_parse(trim(r->text), false, &r->decimal)) {
    case 0:
        return 0;
    case -ERANGE:
        return refuse(r, err, "a number of at most 38 digits");
    default:
        return refuse(r, err, "a number");
    }
}

static int read_int(reading *r, mt_err **err)
{
    int e = mt_decimal_parse(trim(r->text), false, &r->decimal);

    if (e == -EINVAL || (e == 0 && r->decimal.scale > 0))
        return refuse(r, err, "a whole number");
    if (e < 0 || !mt_decimal_to_int(r->decimal, &r->number))
        return refuse(r, err, "a whole number of 64 bits");
    return 0;
}

static int read_string(reading *r, mt_err **err)
{
    if (r->text.len > MT_VM_STRING)
        return refuse(r, err, "a text of at most 16 MiB");
    if (memchr(r->text.data, '\0', r->text.len) || !mt_utf8_valid(r->text.data, r->text.len))
        return refuse(r, err, "UTF-8 without NUL characters");
    return 0;
}

static int read_json(reading *r, mt_err **err)
{
    bool object = r->input.type == MT_MTC_JSON_OBJECT;
    _cleanup_err_ mt_err *cause = NULL;
    char wanted[512];

    if (mt_json_parse(r->text.data, r->text.len, &vm_json_limits, &r->json, &cause) == 0) {
        if (mt_json_kind_of(r->json) == (object ? MT_JSON_OBJECT : MT_JSON_ARRAY) &&
            !mt_json_has_nul(r->json))
            return 0;
        return refuse(r, err,
                      object ? "a JSON object without NUL characters"
                             : "a JSON list without NUL characters");
    }
    if (mt_err_code(cause) == MT_E_OOM)
        return mt_fail_oom(err);
    (void)snprintf(wanted, sizeof(wanted), "a JSON %s (%.400s)", object ? "object" : "list",
                   mt_err_sentence(cause));
    return refuse(r, err, wanted);
}

static int read_input(reading *r, mt_err **err)
{
    if (!r->text.data)
        r->text = MT_STR("");
    switch (r->input.type) {
    case MT_MTC_BOOL:
        return read_bool(r, err);
    case MT_MTC_INT:
        return read_int(r, err);
    case MT_MTC_DECIMAL:
        return read_decimal(r, err);
    case MT_MTC_GUID:
        return vm_read_guid(r->text, r->guid) ? 0 : refuse(r, err, "a guid");
    case MT_MTC_STRING:
        return read_string(r, err);
    default:
        return read_json(r, err);
    }
}

int mt_mtc_input_check(const mt_mtc_program *p, size_t i, mt_str text, mt_err **err)
{
    reading r = {.input = mt_mtc_input_at(p, i), .text = text};
    int result = read_input(&r, err);

    (void)mt_json_unref(r.json);
    return result;
}

// ---- giving ----

static int make(mt_vm *vm, reading *r, vm_value *ret)
{
    switch (r->input.type) {
    case MT_MTC_BOOL:
        *ret = vm_bool(r->truth);
        return 0;
    case MT_MTC_INT:
        *ret = vm_int(r->number);
        return 0;
    case MT_MTC_DECIMAL:
        return vm_make_decimal(vm, r->decimal, ret);
    case MT_MTC_GUID:
        return vm_make_guid(vm, r->guid, ret);
    case MT_MTC_STRING:
        return vm_make_string(vm, r->text, ret);
    default:
        return vm_make_json(vm, MT_TAKE_PTR(r->json), ret);
    }
}

int mt_vm_input(mt_vm *vm, size_t i, mt_str text, mt_err **err)
{
    reading r = {.input = mt_mtc_input_at(vm->program, i), .text = text};
    vm_value v = {.kind = VM_NONE};
    int result = read_input(&r, err);

    // Memory alone can be missing now, and then the run has ended before it began.
    if (result == 0 && make(vm, &r, &v) == 0) {
        vm_unref(vm, vm->stack[i]);
        vm->stack[i] = v;
    }
    (void)mt_json_unref(r.json);
    return result;
}
