// SPDX-License-Identifier: Apache-2.0
// PCRE2's own limits count backtracking alone, anew at each place of the text where a match is
// tried, and so bound neither `[^x]*+y` on a long text nor many matches. Here each item of a
// pattern that is come to calls us back, and pays for itself and for the way since the one before
// it.
#include "regex/regex.h"

#include "base/utf8.h"
#include "regex/ecma.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
    PATTERN_MAX = 32768, // bytes
    WIDE_RANGES = 16,    // see has_many_ranges()
    HEAP_KIB = 65536,    // for backtracking
    ITEM_WORK = 16,
    MATCH_WORK = 64,
};

// What an item of the pattern costs: to come to it, and for each byte that it takes.
typedef struct item_cost {
    uint32_t item, byte;
} item_cost;

struct mt_regex {
    pcre2_code *code;
    mt_str pattern;              // its length alone outlives mt_regex_new()
    uint32_t groups, references; // references: the last group that a \1 means
    uint32_t behind;             // characters that (?<=…) goes back
    uint32_t dearest;            // cost of a byte
    uint32_t nested;             // groups that PCRE2 makes of (…){0,1000}, one in another
    mt_str *names;               // by group
    item_cost *costs;            // by position in the pattern
};

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
    mt_regex *r = data;
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
static uint64_t reference_work(const mt_regex *r, const pcre2_callout_block *block)
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
    mt_regex_search *s = data;
    const mt_regex *r = s->regex_;
    size_t at = block->current_position;
    const item_cost *cost = &r->costs[MT_MIN(block->pattern_position, r->pattern.len)];
    uint64_t work = cost->item + 2 * (uint64_t)r->nested + reference_work(r, block);

    work += (at > s->at_ ? at - s->at_ : s->at_ - at) * (uint64_t)s->byte_cost_;
    s->at_ = at;
    s->byte_cost_ = cost->byte;
    if (work > s->left)
        return PCRE2_ERROR_CALLOUT;
    s->left -= work;
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

static int refuse_pattern(mt_str pattern, unsigned flags, int error, size_t at, mt_err **err)
{
    PCRE2_UCHAR why[256];

    if (error == PCRE2_ERROR_HEAP_FAILED)
        return mt_fail_oom(err);
    (void)pcre2_get_error_message(error, why, sizeof(why));
    if (flags & MT_REGEX_ECMA) // the place would be one in what we made of it
        return mt_fail(err, MT_E_BAD_FIELD, "the pattern is wrong: %s", (const char *)why);
    return mt_fail(err, MT_E_BAD_FIELD, "the pattern is wrong at position %zu: %s",
                   mt_utf8_count(pattern.data, MT_MIN(at, pattern.len)), (const char *)why);
}

static int check_pattern(mt_str pattern, mt_err **err)
{
    const char *unknown = unknown_part(pattern);

    if (unknown)
        return mt_fail(err, MT_E_BAD_FIELD, "the pattern has %s, which is not known", unknown);
    if (pattern.len > PATTERN_MAX)
        return mt_fail(err, MT_E_BAD_FIELD, "the pattern has %zu bytes, more than %d", pattern.len,
                       PATTERN_MAX);
    if (may_be_caseless(pattern) && has_many_ranges(pattern))
        return mt_fail(err, MT_E_BAD_FIELD,
                       "the pattern has more than %d ranges beyond ASCII without regard to case",
                       WIDE_RANGES);
    return 0;
}

// When all matches are wanted, each search begins anew to look for the first letter, in both cases
// up to the end of the text where one of them is rare: then that is not done at all.
static uint32_t options_of(mt_str pattern, unsigned flags)
{
    uint32_t options =
        PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK | PCRE2_AUTO_CALLOUT;

    if (flags & MT_REGEX_ECMA) // \d, \w and \b are of ASCII there
        options |= PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF;
    else
        options |= PCRE2_UCP;
    if ((flags & MT_REGEX_ALL) && may_be_caseless(pattern))
        options |= PCRE2_NO_START_OPTIMIZE;
    return options;
}

static int compile(mt_regex *r, unsigned flags, mt_err **err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    size_t at = 0;
    int error = PCRE2_ERROR_HEAP_FAILED;

    if (context) {
        (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        (void)pcre2_set_bsr(context, PCRE2_BSR_UNICODE);
        r->code = pcre2_compile((PCRE2_SPTR)r->pattern.data, r->pattern.len,
                                options_of(r->pattern, flags), &error, &at, context);
    }
    pcre2_compile_context_free(context);
    return r->code ? 0 : refuse_pattern(r->pattern, flags, error, at, err);
}

static int take_names(mt_regex *r, mt_err **err)
{
    uint32_t count = 0, size = 0, doubled = 0;
    PCRE2_SPTR entry = NULL;

    (void)pcre2_pattern_info(r->code, PCRE2_INFO_NAMECOUNT, &count);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_NAMETABLE, &entry);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_JCHANGED, &doubled);
    if (doubled)
        return mt_fail(err, MT_E_BAD_FIELD, "the pattern has (?J): a name stands for one group");
    for (; count; count--, entry += size) {
        uint32_t group = (uint32_t)entry[0] << 8 | entry[1];

        r->names[group] = mt_str_of((const char *)entry + 2);
    }
    return 0;
}

static int learn(mt_regex *r, mt_err **err)
{
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &r->groups);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_BACKREFMAX, &r->references);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_MAXLOOKBEHIND, &r->behind);
    r->names = calloc(r->groups + 1, sizeof(*r->names));
    r->costs = calloc(r->pattern.len + 1, sizeof(*r->costs));
    if (!r->names || !r->costs)
        return mt_fail_oom(err);
    (void)pcre2_callout_enumerate(r->code, note_item, r);
    return take_names(r, err);
}

static int make(mt_str pattern, unsigned flags, mt_regex **ret, mt_err **err)
{
    _cleanup_(mt_regex_free_p) mt_regex *r = calloc(1, sizeof(*r));

    if (!r)
        return mt_fail_oom(err);
    r->pattern = pattern;
    if (check_pattern(pattern, err) < 0 || compile(r, flags, err) < 0 || learn(r, err) < 0)
        return -1;
    r->pattern.data = NULL;
    *ret = MT_TAKE_PTR(r);
    return 0;
}

int mt_regex_new(mt_str pattern, unsigned flags, mt_regex **ret, mt_err **err)
{
    _cleanup_buf_ mt_buf ours = MT_BUF_INIT(32 * PATTERN_MAX);

    if (!(flags & MT_REGEX_ECMA))
        return make(pattern, flags, ret, err);
    if (pattern.len > PATTERN_MAX)
        return check_pattern(pattern, err);
    if (regex_from_ecma(pattern, &ours, err) < 0)
        return -1;
    return make((mt_str){mt_buf_str(&ours), ours.len}, flags, ret, err);
}

mt_regex *mt_regex_free(mt_regex *r)
{
    if (!r)
        return NULL;
    pcre2_code_free(r->code);
    free(r->names);
    free(r->costs);
    free(r);
    return NULL;
}

uint32_t mt_regex_groups(const mt_regex *r)
{
    return r->groups;
}

mt_str mt_regex_name(const mt_regex *r, uint32_t group)
{
    return r->names[group];
}

uint32_t mt_regex_named(const mt_regex *r, mt_str name)
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

// ---- searches ----

static int too_long(mt_err **err)
{
    return mt_fail(err, MT_E_TOO_LARGE, "the pattern takes too long on this text");
}

int mt_regex_search_init(mt_regex_search *s, const mt_regex *r, mt_str text, uint64_t work,
                         mt_err **err)
{
    *s = (mt_regex_search){.left = work, .text = text, .regex_ = r};
    if (!text.data)
        s->text.data = "";
    // One item may take the whole text before it is come to the next one.
    if (r->dearest * (uint64_t)text.len > work)
        return too_long(err);
    s->match_ = pcre2_match_data_create_from_pattern(r->code, NULL);
    s->context_ = pcre2_match_context_create(NULL);
    if (!s->match_ || !s->context_) {
        mt_regex_search_done(s);
        return mt_fail_oom(err);
    }
    (void)pcre2_set_callout(s->context_, come_to_item, s);
    (void)pcre2_set_heap_limit(s->context_, HEAP_KIB);
    return 0;
}

void mt_regex_search_done(mt_regex_search *s)
{
    pcre2_match_data_free(s->match_);
    pcre2_match_context_free(s->context_);
    s->match_ = s->context_ = NULL;
}

static int refuse_match(int error, mt_err **err)
{
    PCRE2_UCHAR why[256];

    if (error == PCRE2_ERROR_NOMEMORY)
        return mt_fail_oom(err);
    if (error == PCRE2_ERROR_CALLOUT || error == PCRE2_ERROR_MATCHLIMIT ||
        error == PCRE2_ERROR_DEPTHLIMIT)
        return too_long(err);
    if (error == PCRE2_ERROR_HEAPLIMIT)
        return mt_fail(err, MT_E_TOO_LARGE, "the pattern takes too much memory on this text");
    (void)pcre2_get_error_message(error, why, sizeof(why));
    return mt_fail(err, MT_E_BAD_FIELD, "the pattern fails on this text: %s", (const char *)why);
}

int mt_regex_search_from(mt_regex_search *s, size_t from, mt_err **err)
{
    int found;

    s->left -= MT_MIN(s->left, (uint64_t)MATCH_WORK);
    s->at_ = from;
    found = pcre2_match(s->regex_->code, (PCRE2_SPTR)s->text.data, s->text.len, from,
                        PCRE2_NO_UTF_CHECK, s->match_, s->context_);
    if (found == PCRE2_ERROR_NOMATCH)
        return 0;
    return found < 0 ? refuse_match(found, err) : 1;
}

bool mt_regex_search_group(const mt_regex_search *s, uint32_t group, size_t *ret_begin,
                           size_t *ret_end)
{
    const size_t *at = &pcre2_get_ovector_pointer(s->match_)[2 * (size_t)group];

    if (at[0] == PCRE2_UNSET)
        return false;
    *ret_begin = at[0];
    *ret_end = at[1];
    return true;
}
