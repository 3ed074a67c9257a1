// SPDX-License-Identifier: Apache-2.0
// PCRE2's own limits count backtracking alone, anew at each place of the text where a match is
// tried, and so bound neither `[^x]*+y` on a long text nor many matches. Here each item of a
// pattern that is come to calls us back, and pays for itself and for the way since the one before
// it.
#include "mtc/regex.h"

#include "mtc/builtin-internal.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
    PATTERN_MAX = 32768, // bytes
    WIDE_RANGES = 16,    // see check_ranges()
    HEAP_KIB = 65536,    // for backtracking
    // Work. A character that is passed over is one, some nanoseconds.
    ITEM_WORK = 16,
    MATCH_WORK = 64,
    WORK_MAX = 100000000,
    WORK_A_BYTE = 40, // more, for each byte of the text
    WORK_BYTES = 16,  // that are looked at elsewhere in that time
};

// What an item of the pattern costs: to come to it, and for each byte that it takes.
typedef struct item_cost {
    uint32_t item, byte;
} item_cost;

struct vm_regex {
    mt_vm *vm;
    mt_str text, pattern;
    pcre2_code *code;
    pcre2_match_context *context;
    pcre2_match_data *match;
    uint32_t groups, references; // references: the last group that a \1 means
    uint32_t behind;             // characters that (?<=…) goes back
    uint32_t dearest;            // cost of a byte
    uint32_t nested;             // groups that PCRE2 makes of (…){0,1000}, one in another
    mt_str *names;               // by group
    item_cost *costs;            // by position in the pattern
    uint64_t left;               // of the work that it may do
    size_t at;                   // where the item before stood
    uint32_t byte_cost;          // of that item
    size_t next, end;            // where the search goes on, where the match before ended
    bool over;
};

static int bad_pattern(mt_vm *vm, const char *why)
{
    return vm_throw(vm, "BadPattern", "the pattern %s", why);
}

static int too_long(const vm_regex *r)
{
    return bad_pattern(r->vm, "takes too long on this text");
}

// ---- work ----

// Of a quantifier {least,most}; both 0 where an item has none.
typedef struct counts {
    uint32_t least, most;
} counts;

static uint32_t take_count(const char **at, const char *end)
{
    uint32_t count = 0;

    for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
        count = MT_MIN(count * 10 + (uint32_t)(**at - '0'), (uint32_t)UINT16_MAX);
    return count;
}

static counts counts_of(mt_str item)
{
    const char *at = memrchr(item.data, '{', item.len), *end = item.data + item.len;
    counts found = {0};

    if (!at || (at == item.data + 2 && item.data[0] == '\\' && strchr("xopPNgk", item.data[1])))
        return found;
    at++;
    found.least = take_count(&at, end);
    if (at < end && *at == ',')
        at++;
    found.most = take_count(&at, end);
    found.most = MT_MAX(found.least, found.most);
    return found;
}

// A class is looked through range by range, apart from ASCII.
static uint32_t byte_cost(mt_str item)
{
    uint32_t cost = 1;

    if (item.len == 0 || item.data[0] != '[')
        return cost;
    for (size_t i = 0; i < item.len; i++)
        cost += item.data[i] == '\\' ? 2 : (unsigned char)item.data[i] >= 0x80;
    return cost;
}

static int note_item(pcre2_callout_enumerate_block *block, void *data)
{
    vm_regex *r = data;
    size_t at = MT_MIN(block->pattern_position, r->pattern.len);
    mt_str item = {r->pattern.data + at, MT_MIN(block->next_item_length, r->pattern.len - at)};
    counts found = counts_of(item);
    uint32_t byte = byte_cost(item);
    char first = item.len ? item.data[0] : '\0';

    if (r->costs[at].item) // one of the copies of a group that is repeated
        return 0;
    r->costs[at] = (item_cost){ITEM_WORK + r->groups / 2 + byte, byte};
    r->dearest = MT_MAX(r->dearest, byte);
    if (first == '(')
        r->costs[at].item += r->behind;
    else if (first == ')')
        r->nested += found.most - found.least;
    else
        r->costs[at].item += byte * found.least; // that many are tried without a call in between
    return 0;
}

// A \1 compares what its group took.
static uint64_t reference_work(const vm_regex *r, const pcre2_callout_block *block)
{
    uint64_t work = 0;

    for (uint32_t i = 1; i <= r->references && i < block->capture_top; i++) {
        size_t begin = block->offset_vector[2 * i], end = block->offset_vector[2 * i + 1];

        work += 1 + (end > begin && end != PCRE2_UNSET ? end - begin : 0);
    }
    return work;
}

static int come_to_item(pcre2_callout_block *block, void *data)
{
    vm_regex *r = data;
    size_t at = block->current_position;
    const item_cost *cost = &r->costs[MT_MIN(block->pattern_position, r->pattern.len)];
    uint64_t work = cost->item + 2 * (uint64_t)r->nested + reference_work(r, block);

    work += (at > r->at ? at - r->at : r->at - at) * (uint64_t)r->byte_cost;
    r->at = at;
    r->byte_cost = cost->byte;
    if (work > r->left)
        return PCRE2_ERROR_CALLOUT;
    r->left -= work;
    return 0;
}

int vm_regex_charge(vm_regex *r, size_t work)
{
    if (work > r->left)
        return too_long(r);
    r->left -= work;
    vm_spend(r->vm, WORK_BYTES * work);
    return 0;
}

// ---- patterns ----

static bool is_option(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '^';
}

// Whether letters may be matched without regard to case somewhere.
static bool may_be_caseless(mt_str pattern)
{
    const char *at = pattern.data, *end = at + pattern.len;

    while ((at = memmem(at, (size_t)(end - at), "(?", 2)) != NULL) {
        for (at += 2; at < end && is_option(*at); at++) {
            if (*at == 'i')
                return true;
        }
    }
    return false;
}

// A class without regard to case costs PCRE2 up to 16 ms for each range up to characters beyond
// ASCII. Their dashes are counted, and some that are none.
static bool has_many_ranges(mt_str pattern)
{
    size_t count = 0;

    for (size_t i = 0; i + 1 < pattern.len; i++) {
        unsigned char next = (unsigned char)pattern.data[i + 1];

        count += pattern.data[i] == '-' && (next >= 0x80 || next <= ' ' || next == '\\');
    }
    return count > WIDE_RANGES;
}

// What takes long between two calls, too long for a long text.
static const char *unknown_part(mt_str pattern)
{
    static const char *const runs[] = {"(*sr:", "(*asr:", "(*script_run:", "(*atomic_script_run:"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(runs); i++) {
        if (memmem(pattern.data, pattern.len, runs[i], strlen(runs[i])))
            return "a script run";
    }
    for (size_t i = 0; i + 1 < pattern.len; i++) {
        if (pattern.data[i] != '\\')
            continue;
        if (pattern.data[++i] == 'X')
            return "\\X";
    }
    return NULL;
}

static int check_pattern(mt_vm *vm, mt_str pattern)
{
    const char *unknown = unknown_part(pattern);

    if (unknown)
        return vm_throw(vm, "BadPattern", "the pattern has %s, which is not known", unknown);
    if (pattern.len > PATTERN_MAX)
        return vm_throw(vm, "BadPattern", "the pattern has %zu bytes, more than %d", pattern.len,
                        PATTERN_MAX);
    if (may_be_caseless(pattern) && has_many_ranges(pattern))
        return vm_throw(vm, "BadPattern",
                        "the pattern has more than %d ranges beyond ASCII without regard to case",
                        WIDE_RANGES);
    return 0;
}

static int refuse_pattern(const vm_regex *r, int error, size_t at)
{
    PCRE2_UCHAR why[256];

    if (error == PCRE2_ERROR_HEAP_FAILED)
        return vm_no_memory(r->vm);
    (void)pcre2_get_error_message(error, why, sizeof(why));
    return vm_throw(r->vm, "BadPattern", "the pattern is wrong at position %zu: %s",
                    vm_count_text((mt_str){r->pattern.data, MT_MIN(at, r->pattern.len)}),
                    (const char *)why);
}

static int refuse_match(const vm_regex *r, int error)
{
    PCRE2_UCHAR why[256];

    if (error == PCRE2_ERROR_NOMEMORY)
        return vm_no_memory(r->vm);
    if (error == PCRE2_ERROR_CALLOUT || error == PCRE2_ERROR_MATCHLIMIT ||
        error == PCRE2_ERROR_DEPTHLIMIT)
        return too_long(r);
    if (error == PCRE2_ERROR_HEAPLIMIT)
        return bad_pattern(r->vm, "takes too much memory on this text");
    (void)pcre2_get_error_message(error, why, sizeof(why));
    return vm_throw(r->vm, "BadPattern", "the pattern fails on this text: %s", (const char *)why);
}

// When all matches are wanted, each search begins anew to look for the first letter, in both cases
// up to the end of the text where one of them is rare: then that is not done at all.
static int compile(vm_regex *r, vm_regex_use use)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    uint32_t options =
        PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK | PCRE2_AUTO_CALLOUT;
    size_t at = 0;
    int error = PCRE2_ERROR_HEAP_FAILED;

    if (use == VM_REGEX_ALL && may_be_caseless(r->pattern))
        options |= PCRE2_NO_START_OPTIMIZE;
    if (context) {
        (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        (void)pcre2_set_bsr(context, PCRE2_BSR_UNICODE);
        r->code = pcre2_compile((PCRE2_SPTR)r->pattern.data, r->pattern.len, options, &error, &at,
                                context);
    }
    pcre2_compile_context_free(context);
    return r->code ? 0 : refuse_pattern(r, error, at);
}

static int take_names(vm_regex *r)
{
    uint32_t count = 0, size = 0, doubled = 0;
    PCRE2_SPTR entry = NULL;

    (void)pcre2_pattern_info(r->code, PCRE2_INFO_NAMECOUNT, &count);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_NAMETABLE, &entry);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_JCHANGED, &doubled);
    if (doubled)
        return bad_pattern(r->vm, "has (?J): a name stands for one group");
    for (; count; count--, entry += size) {
        uint32_t group = (uint32_t)entry[0] << 8 | entry[1];

        r->names[group] = mt_str_of((const char *)entry + 2);
    }
    return 0;
}

static int learn(vm_regex *r)
{
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &r->groups);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_BACKREFMAX, &r->references);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_MAXLOOKBEHIND, &r->behind);
    r->names = calloc(r->groups + 1, sizeof(*r->names));
    r->costs = calloc(r->pattern.len + 1, sizeof(*r->costs));
    r->match = pcre2_match_data_create_from_pattern(r->code, NULL);
    r->context = pcre2_match_context_create(NULL);
    if (!r->names || !r->costs || !r->match || !r->context)
        return vm_no_memory(r->vm);
    (void)pcre2_callout_enumerate(r->code, note_item, r);
    (void)pcre2_set_callout(r->context, come_to_item, r);
    (void)pcre2_set_heap_limit(r->context, HEAP_KIB);
    // One item may take the whole text before it is come to the next one.
    return r->dearest * (uint64_t)r->text.len > r->left ? too_long(r) : take_names(r);
}

vm_regex *vm_regex_new(mt_vm *vm, mt_str text, mt_str pattern, vm_regex_use use)
{
    vm_regex *r;

    vm_spend(vm, pattern.len);
    if (check_pattern(vm, pattern) < 0)
        return NULL;
    r = calloc(1, sizeof(*r));
    if (!r) {
        (void)vm_no_memory(vm);
        return NULL;
    }
    r->vm = vm;
    r->text = text;
    r->pattern = pattern;
    r->left = WORK_MAX + (uint64_t)WORK_A_BYTE * text.len;
    return compile(r, use) < 0 || learn(r) < 0 ? vm_regex_free(r) : r;
}

vm_regex *vm_regex_free(vm_regex *r)
{
    if (!r)
        return NULL;
    pcre2_match_data_free(r->match);
    pcre2_match_context_free(r->context);
    pcre2_code_free(r->code);
    free(r->names);
    free(r->costs);
    free(r);
    return NULL;
}

uint32_t vm_regex_groups(const vm_regex *r)
{
    return r->groups;
}

mt_str vm_regex_name(const vm_regex *r, uint32_t group)
{
    return r->names[group];
}

uint32_t vm_regex_named(const vm_regex *r, mt_str name)
{
    char text[40];
    int group;

    if (name.len >= sizeof(text))
        return 0;
    memcpy(text, name.data, name.len);
    text[name.len] = '\0';
    group = pcre2_substring_number_from_name(r->code, (PCRE2_SPTR)text);
    return group > 0 ? (uint32_t)group : 0;
}

// ---- matches ----

size_t vm_regex_begin(const vm_regex *r)
{
    return pcre2_get_ovector_pointer(r->match)[0];
}

size_t vm_regex_end(const vm_regex *r)
{
    return pcre2_get_ovector_pointer(r->match)[1];
}

bool vm_regex_group(const vm_regex *r, uint32_t group, mt_str *ret)
{
    const size_t *at = &pcre2_get_ovector_pointer(r->match)[2 * (size_t)group];

    if (at[0] == PCRE2_UNSET)
        return false;
    *ret = (mt_str){r->text.data + at[0], at[1] - at[0]};
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
    r->over = r->end == r->text.len;
    for (r->next++; r->next < r->text.len && ((unsigned char)r->text.data[r->next] & 0xc0) == 0x80;)
        r->next++;
}

int vm_regex_next(vm_regex *r)
{
    uint64_t before = r->left;
    int found;

    if (r->over)
        return 0;
    r->left -= MT_MIN(r->left, (uint64_t)MATCH_WORK);
    r->at = r->next;
    found = pcre2_match(r->code, (PCRE2_SPTR)r->text.data, r->text.len, r->next, PCRE2_NO_UTF_CHECK,
                        r->match, r->context);
    vm_spend(r->vm, WORK_BYTES * (before - r->left));
    if (found == PCRE2_ERROR_NOMATCH)
        return 0;
    if (found < 0)
        return refuse_match(r, found);
    if (!is_sane(r))
        return bad_pattern(r->vm, "has a \\K that moves the begin of a match behind its end");
    go_on(r);
    return 1;
}
