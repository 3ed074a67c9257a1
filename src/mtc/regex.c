// SPDX-License-Identifier: Apache-2.0
// Searches of programs: src/regex, charged to the run, with its faults as the language's.
#include "mtc/regex.h"

#include "mtc/builtin-internal.h"
#include "regex/regex.h"

enum {
    WORK_MAX = 100000000,
    WORK_A_BYTE = 40, // more, for each byte of the text
    WORK_BYTES = 16,  // that are looked at elsewhere in that time
};

struct vm_regex {
    mt_vm *vm;
    mt_regex *regex;
    mt_regex_search search;
    size_t next, end; // where the search goes on, where the match before ended
    bool over;
};

// Throws what src/regex says, and takes it.
static int refuse(mt_vm *vm, mt_err *why)
{
    int r = mt_err_code(why) == MT_E_OOM ? vm_no_memory(vm)
                                         : vm_throw(vm, "BadPattern", "%s", mt_err_sentence(why));

    (void)mt_err_free(why);
    return r;
}

int vm_regex_charge(vm_regex *r, size_t work)
{
    if (work > r->search.left)
        return vm_throw(r->vm, "BadPattern", "the pattern takes too long on this text");
    r->search.left -= work;
    vm_spend(r->vm, WORK_BYTES * work);
    return 0;
}

static int start(vm_regex *r, mt_str text, mt_str pattern, vm_regex_use use)
{
    uint64_t work = WORK_MAX + (uint64_t)WORK_A_BYTE * text.len;
    mt_err *why = NULL;

    if (mt_regex_new(pattern, use == VM_REGEX_ALL ? MT_REGEX_ALL : 0, &r->regex, &why) < 0 ||
        mt_regex_search_init(&r->search, r->regex, text, work, &why) < 0)
        return refuse(r->vm, why);
    return 0;
}

vm_regex *vm_regex_new(mt_vm *vm, mt_str text, mt_str pattern, vm_regex_use use)
{
    vm_regex *r;

    vm_spend(vm, pattern.len);
    r = calloc(1, sizeof(*r));
    if (!r) {
        (void)vm_no_memory(vm);
        return NULL;
    }
    r->vm = vm;
    return start(r, text, pattern, use) < 0 ? vm_regex_free(r) : r;
}

vm_regex *vm_regex_free(vm_regex *r)
{
    if (!r)
        return NULL;
    mt_regex_search_done(&r->search);
    (void)mt_regex_free(r->regex);
    free(r);
    return NULL;
}

uint32_t vm_regex_groups(const vm_regex *r)
{
    return mt_regex_groups(r->regex);
}

mt_str vm_regex_name(const vm_regex *r, uint32_t group)
{
    return mt_regex_name(r->regex, group);
}

uint32_t vm_regex_named(const vm_regex *r, mt_str name)
{
    return mt_regex_named(r->regex, name);
}

// ---- matches ----

static void bounds(const vm_regex *r, size_t *begin, size_t *end)
{
    *begin = *end = 0; // all of a match always takes part
    (void)mt_regex_search_group(&r->search, 0, begin, end);
}

size_t vm_regex_begin(const vm_regex *r)
{
    size_t begin, end;

    bounds(r, &begin, &end);
    return begin;
}

size_t vm_regex_end(const vm_regex *r)
{
    size_t begin, end;

    bounds(r, &begin, &end);
    return end;
}

bool vm_regex_group(const vm_regex *r, uint32_t group, mt_str *ret)
{
    size_t begin, end;

    if (!mt_regex_search_group(&r->search, group, &begin, &end))
        return false;
    *ret = (mt_str){r->search.text.data + begin, end - begin};
    return true;
}

// Of \K in something that looks ahead.
static bool is_sane(const vm_regex *r)
{
    return vm_regex_begin(r) <= vm_regex_end(r) && vm_regex_begin(r) >= r->end;
}

static void go_on(vm_regex *r)
{
    r->end = r->next = vm_regex_end(r);
    if (vm_regex_begin(r) < r->end)
        return;
    r->over = r->end == r->search.text.len;
    for (r->next++; r->next < r->search.text.len &&
                    ((unsigned char)r->search.text.data[r->next] & 0xc0) == 0x80;)
        r->next++;
}

int vm_regex_next(vm_regex *r)
{
    uint64_t before = r->search.left;
    mt_err *why = NULL;
    int found;

    if (r->over)
        return 0;
    found = mt_regex_search_from(&r->search, r->next, &why);
    vm_spend(r->vm, WORK_BYTES * (before - r->search.left));
    if (found < 0)
        return refuse(r->vm, why);
    if (found == 0)
        return 0;
    if (!is_sane(r))
        return vm_throw(r->vm, "BadPattern",
                        "the pattern has a \\K that moves the begin of a match behind its end");
    go_on(r);
    return 1;
}
