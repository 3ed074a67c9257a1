// SPDX-License-Identifier: Apache-2.0
// Regular expressions.
#include "mtc/builtin-internal.h"
#include "mtc/regex.h"

#define _cleanup_regex_ _cleanup_(vm_regex_free_p)

int builtin_RegexTest(mt_vm *vm, vm_value *args, vm_value *ret)
{
    _cleanup_regex_ vm_regex *r =
        vm_regex_new(vm, vm_text(args[0]), vm_text(args[1]), VM_REGEX_ONCE);
    int found = r ? vm_regex_next(r) : -1;

    if (found < 0)
        return -1;
    *ret = vm_bool(found > 0);
    return 0;
}

// ---- matches as JSON ----

// A search whose matches are told by character.
typedef struct search {
    mt_vm *vm;
    vm_regex *regex;
    mt_str text;
    size_t byte, character; // the last place that was looked up
} search;

static int64_t index_of(search *s, size_t byte)
{
    s->character += vm_count_text((mt_str){s->text.data + s->byte, byte - s->byte});
    s->byte = byte;
    return (int64_t)s->character;
}

// Groups within groups may take the same text again and again.
static int check_groups(const search *s)
{
    size_t bytes = 0;
    mt_str text;

    for (uint32_t i = 0; i <= vm_regex_groups(s->regex); i++)
        bytes += vm_regex_group(s->regex, i, &text) ? text.len : 0;
    vm_spend(s->vm, bytes);
    if (bytes <= MT_VM_JSON)
        return 0;
    return vm_throw(s->vm, "TooLarge", "the groups of the match take more than %d MiB",
                    MT_VM_JSON >> 20);
}

static mt_json *group_json(const search *s, uint32_t group)
{
    mt_str text;

    return vm_regex_group(s->regex, group, &text) ? mt_json_new_string(text) : mt_json_new_null();
}

// NULL when out of memory.
static mt_json *match_json(search *s)
{
    mt_json *match = mt_json_new_object(), *groups = mt_json_new_array();
    mt_json *named = mt_json_new_object();

    for (uint32_t i = 1; i <= vm_regex_groups(s->regex); i++) {
        mt_json *group = group_json(s, i);
        mt_str name = vm_regex_name(s->regex, i);

        if (name.data)
            (void)mt_json_set_str(named, name, mt_json_ref(group));
        (void)mt_json_append(groups, group);
    }
    (void)mt_json_set(match, "text", group_json(s, 0));
    (void)mt_json_set(match, "index", mt_json_new_int(index_of(s, vm_regex_begin(s->regex))));
    (void)mt_json_set(match, "groups", groups);
    (void)mt_json_set(match, "named", named);
    return mt_json_ok(match) ? match : mt_json_unref(match);
}

int builtin_RegexFind(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]);
    _cleanup_regex_ vm_regex *r = vm_regex_new(vm, text, vm_text(args[1]), VM_REGEX_ONCE);
    search s = {.vm = vm, .regex = r, .text = text};
    int found = r ? vm_regex_next(r) : -1;

    if (found == 0)
        return vm_make_json(vm, mt_json_new_object(), ret);
    if (found < 0 || check_groups(&s) < 0)
        return -1;
    return vm_make_json(vm, match_json(&s), ret);
}

int builtin_RegexFindAll(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]);
    _cleanup_regex_ vm_regex *r = vm_regex_new(vm, text, vm_text(args[1]), VM_REGEX_ALL);
    _cleanup_json_ mt_json *list = r ? mt_json_new_array() : NULL;
    search s = {.vm = vm, .regex = r, .text = text};
    int found = -1;

    while (r && (found = vm_regex_next(r)) > 0) {
        if (check_groups(&s) < 0 || vm_list_add(vm, list, match_json(&s)) < 0)
            return -1;
    }
    return found < 0 ? -1 : vm_make_json(vm, MT_TAKE_PTR(list), ret);
}

// ---- replacing ----

// What a dollar in the text that replaces begins.
typedef struct reference {
    size_t len;     // bytes
    bool is_group;  // else it stands for a dollar
    uint32_t group; // UINT32_MAX: there is none such
} reference;

static uint32_t group_of(const vm_regex *r, mt_str name)
{
    uint64_t number;

    if (mt_parse_u64(name, vm_regex_groups(r), &number))
        return (uint32_t)number;
    number = vm_regex_named(r, name);
    return number ? (uint32_t)number : UINT32_MAX;
}

static reference reference_at(const vm_regex *r, mt_str by, size_t at)
{
    mt_str rest = {by.data + at + 1, by.len - at - 1};
    const char *brace;
    size_t digits = 0;

    if (rest.len && rest.data[0] == '$')
        return (reference){.len = 2};
    while (digits < rest.len && rest.data[digits] >= '0' && rest.data[digits] <= '9')
        digits++;
    if (digits)
        return (reference){1 + digits, true, group_of(r, (mt_str){rest.data, digits})};
    if (!rest.len || rest.data[0] != '{')
        return (reference){.len = 1};
    brace = memchr(rest.data, '}', rest.len);
    if (!brace)
        return (reference){1 + rest.len, true, UINT32_MAX};
    return (reference){2 + (size_t)(brace - rest.data), true,
                       group_of(r, (mt_str){rest.data + 1, (size_t)(brace - rest.data) - 1})};
}

static size_t find_dollar(mt_str by, size_t at)
{
    const char *found = memchr(by.data + at, '$', by.len - at);

    return found ? (size_t)(found - by.data) : by.len;
}

static int check_references(mt_vm *vm, const vm_regex *r, mt_str by)
{
    char quoted[VM_QUOTE];
    reference found;

    vm_spend(vm, by.len);
    for (size_t at = find_dollar(by, 0); at < by.len; at = find_dollar(by, at + found.len)) {
        found = reference_at(r, by, at);
        if (found.is_group && found.group == UINT32_MAX)
            return vm_throw(vm, "BadArgument",
                            "%s is no group of the pattern; $$ stands for a dollar",
                            vm_quote((mt_str){by.data + at, found.len}, quoted));
    }
    return 0;
}

// Appends what replaces a match.
static int add_replacement(vm_regex *r, mt_str by, mt_buf *out)
{
    enum { REFERENCE_WORK = 32 };
    size_t at = 0;

    while (at < by.len) {
        size_t dollar = find_dollar(by, at);
        reference found;
        mt_str text = MT_STR("$");

        (void)mt_buf_add(out, by.data + at, dollar - at);
        if (dollar == by.len)
            return 0;
        found = reference_at(r, by, dollar);
        if (found.is_group && vm_regex_charge(r, REFERENCE_WORK) < 0)
            return -1;
        if (!found.is_group || vm_regex_group(r, found.group, &text))
            (void)mt_buf_add(out, text.data, text.len);
        at = dollar + found.len;
    }
    return 0;
}

static int replace_all(vm_regex *r, mt_str text, mt_str by, mt_buf *out)
{
    size_t at = 0;
    int found;

    while ((found = vm_regex_next(r)) > 0 && !out->failed) {
        (void)mt_buf_add(out, text.data + at, vm_regex_begin(r) - at);
        at = vm_regex_end(r);
        if (add_replacement(r, by, out) < 0)
            return -1;
    }
    (void)mt_buf_add(out, text.data + at, text.len - at);
    return found < 0 ? -1 : 0;
}

int builtin_RegexReplace(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]), by = vm_text(args[2]);
    _cleanup_regex_ vm_regex *r = vm_regex_new(vm, text, vm_text(args[1]), VM_REGEX_ALL);
    _cleanup_buf_ mt_buf out = MT_BUF_INIT(MT_VM_STRING);

    if (!r || check_references(vm, r, by) < 0 || replace_all(r, text, by, &out) < 0)
        return -1;
    vm_spend(vm, out.len);
    return vm_string_of(vm, &out, ret);
}

// ---- splitting, escaping ----

// An empty match splits between two characters alone.
static bool splits(const vm_regex *r, size_t from, size_t len)
{
    size_t begin = vm_regex_begin(r), end = vm_regex_end(r);

    return begin < end || (begin > from && begin < len);
}

int builtin_RegexSplit(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]);
    _cleanup_regex_ vm_regex *r = vm_regex_new(vm, text, vm_text(args[1]), VM_REGEX_ALL);
    _cleanup_json_ mt_json *list = r ? mt_json_new_array() : NULL;
    size_t from = 0;
    int found = -1;

    while (r && (found = vm_regex_next(r)) > 0) {
        mt_str part = {text.data + from, vm_regex_begin(r) - from};

        if (!splits(r, from, text.len))
            continue;
        if (vm_list_add_text(vm, list, part) < 0)
            return -1;
        from = vm_regex_end(r);
    }
    if (found < 0 || vm_list_add_text(vm, list, (mt_str){text.data + from, text.len - from}) < 0)
        return -1;
    return vm_make_json(vm, MT_TAKE_PTR(list), ret);
}

int builtin_RegexEscape(mt_vm *vm, vm_value *args, vm_value *ret)
{
    static const char special[] = "\\^$.[]|()?*+{}-# \t\n\v\f\r";
    mt_str text = vm_text(args[0]);
    uint64_t len = text.len;
    char *to;

    for (size_t i = 0; i < text.len; i++)
        len += strchr(special, text.data[i]) != NULL;
    vm_spend(vm, text.len);
    if (vm_string_room(vm, len, ret) < 0)
        return -1;
    to = ret->string->data;
    for (size_t i = 0; i < text.len; i++) {
        if (strchr(special, text.data[i]))
            *to++ = '\\';
        *to++ = text.data[i];
    }
    return 0;
}
