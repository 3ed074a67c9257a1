// SPDX-License-Identifier: Apache-2.0
// What cases of the language suite (tests/mtc/run-builtins) cannot show of the built-ins: how many
// steps they take, patterns made to take long, every allocation failing once.
#include "base/tap.h"
#include "base/testalloc.h"
#include "mtc/testrun.h"
#include "mtc/vm-internal.h"

// ---- programs ----

// What comes of `return(EXPRESSION);` after a text s and a text t of n repetitions, and in how many
// steps.
static uint64_t check_run(const char *what, int n, const char *expected)
{
    mt_buf out = MT_BUF_INIT(1 << 20);
    testrun run = {.slice = TESTRUN_STEPS};
    char text[2048];
    mt_mtc_program *p;
    uint64_t steps;

    (void)snprintf(text, sizeof(text),
                   "string main() { int n = %d; string s = StringRepeat(\"a\", n);"
                   " string t = StringRepeat(\"\xc3\xa9\xf0\x9f\x98\x80\", n); try { %s }"
                   " catch (error e) { return(ErrorCode(e) + \": \" + ErrorMessage(e)); }"
                   " return(\"\"); }",
                   n, what);
    p = testrun_ready(text);
    run.program = p;
    steps = testrun_run(&run, &out);
    CHECK_STR(mt_buf_str(&out), expected);
    mt_buf_done(&out);
    mt_mtc_program_free(p);
    return steps;
}

// ---- steps ----

static void check_linear(const char *what)
{
    enum { TIMES = 20000 };
    uint64_t one = check_run(what, TIMES, "= \"\"\n"), two = check_run(what, 2 * TIMES, "= \"\"\n");

    if (!CHECK(two < one * 9 / 4))
        printf("# %llu, %llu: %s\n", (unsigned long long)one, (unsigned long long)two, what);
}

// For twice as much they take about twice as long, whatever the text is.
static void test_linear(void)
{
    check_linear("int at = 0; while (at < StringLength(t)) { at = StringIndexOf(t, \"\xc3\xa9\", "
                 "at) + 2; }");
    check_linear("string all = \"\"; for (int i = 0; i < n; i++) { all += StringSlice(t, i, 1); }");
    check_linear("int sum = 0; for (int i = n; i > 0; i--) { sum += StringCodeAt(t, 2 * i - 1); }");
    check_linear("int at = StringLastIndexOf(s, StringRepeat(\"a\", n / 2) + \"b\");");
    check_linear("int at = StringLastIndexOf(s, StringRepeat(\"a\", n / 2));");
    check_linear("string u = StringReplace(s, StringRepeat(\"a\", n / 2), \"b\");");
    check_linear("string u = StringJoin(StringSplit(t, \"\"), StringFormat(\"{0}\", "
                 "JsonArrayAddInt(JsonArrayCreate(), 1)));");
    check_linear("string u = RegexReplace(t, \"(?i)\xc3\xa9\", \"$0$0\");");
    check_linear("jsonArray a = RegexFindAll(t, \"\xc3\x89|(?i)\xc3\x89\");");
    check_linear("jsonArray a = RegexSplit(s, \"\"); a = JsonArrayReverse(a);");
    check_linear("jsonArray a = JsonArrayCreate(); for (int i = 0; i < n; i++) { a = "
                 "JsonArrayConcat(a, JsonArraySlice(a, i - i / 2, 1)); a = JsonArrayAddInt(a, i); }"
                 " a = JsonArraySlice(a, 0, n);");
    check_linear("jsonObject o = JsonObjectCreate(); for (int i = 0; i < n; i++) { o = "
                 "JsonObjectMerge(o, JsonObjectSetInt(JsonObjectCreate(), \"m\" + i, i)); }");
}

// A turn takes about as long whatever is done in it: what looks at a long text takes many steps.
static void check_dear(const char *what, uint64_t least)
{
    uint64_t steps = check_run(what, 1 << 20, "= \"\"\n");

    if (!CHECK(steps >= least))
        printf("# %llu: %s\n", (unsigned long long)steps, what);
}

static void test_steps(void)
{
    uint64_t none = check_run(" ", 1 << 20, "= \"\"\n"), mib = (1 << 20) / 64;

    check_dear("bool b = StringContains(s, \"b\");", none + mib);
    check_dear("int i = StringLastIndexOf(s, \"b\");", none + mib);
    check_dear("bool b = StringCompare(s, StringToUpper(s)) == 0;", none + mib);
    check_dear("string h = HashSha256(s);", none + mib);
    check_dear("string u = UrlEncode(s);", none + mib);
    check_dear("string u = Base64Decode(Base64Encode(s));", none + 2 * mib);
    check_dear("bool b = StringIsJson(\"\\\"\" + s + \"\\\"\");", none + mib);
    check_dear("bool b = StringIsInt(s);", none + mib);
    check_dear("bool b = RegexTest(s, \"^a*[bc]\");", none + mib);
    check_dear("int i = StringLength(t);", none + mib);
    check_dear("jsonArray a = JsonArraySort(JsonArrayAddString(JsonArrayAddString("
               "JsonArrayCreate(), s), s));",
               none + 2 * mib);
}

// ---- patterns ----

// Each would take minutes to years, most of them without much that PCRE2 itself limits.
static void test_patterns(void)
{
    static const struct {
        const char *text, *pattern;
    } cases[] = {
        {"StringRepeat(\"a\", 30)", "(a*)*c|b"},             // tries that grow with powers of 2
        {"StringRepeat(\"a\", 400000)", "[^x]*+[yz]"},       // all of the text from each place
        {"StringRepeat(\"a\", 400000)", "a{60000}[bc]"},     // by a count
        {"StringRepeat(\"a\", 65000)", "(.*)\\\\1[xy]"},     // by a reference
        {"StringRepeat(\"a\", 400000)", "(?<=a{200})(?!a)"}, // by going back
        {"StringRepeat(\"\\u4e00\", 40000)", "[^CLASS]*+x"}, // by a class of many ranges
        {"StringRepeat(\"a\", 10000)", "(?:x|){0,1000}[cd]"},
        {"StringRepeat(\"a\", 100000)", "(?:GROUPS)[bc]"}, // by what a step copies
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        char what[1024];

        (void)snprintf(what, sizeof(what),
                       "string p = \"%s\"; p = StringReplace(p, \"CLASS\", "
                       "StringRepeat(\"\\u0100-\\u0102\", 2000)); p = StringReplace(p, \"GROUPS\", "
                       "StringRepeat(\"(a|)\", 500)); jsonArray a = RegexFindAll(%s, p);",
                       cases[i].pattern, cases[i].text);
        CHECK(check_run(what, 1, "= \"BadPattern: the pattern takes too long on this text\"\n") <
              TESTRUN_STEPS);
    }
}

// ---- allocations that fail ----

static const char *const greedy[] = {
    "string main() { jsonArray a = StringSplit(\"c,b,a\", \",\"); a = JsonArraySort(a);"
    " return(StringJoin(JsonArrayConcat(a, StringSplitLines(\"x\\ny\")), \"-\")"
    " + StringFormat(\"{0}{{\", a) + StringReplace(\"abab\", \"b\", \"cc\")"
    " + StringLastIndexOf(\"abab\", \"b\") + StringPadStart(\"x\", 3, \"-\")"
    " + StringTrim(\" y \") + StringToUpper(\"z\") + StringRepeat(\"ab\", 3)); }",
    "jsonObject main() { jsonObject o = StringToJsonObject(\"{\\\"a\\\":{\\\"b\\\":[1.5]}}\");"
    " o = JsonObjectSetString(o, \"s\", JsonObjectGetPath(o, \"a.b.0\"));"
    " o = JsonObjectSetDecimal(o, \"d\", 2.5); o = JsonObjectSetArray(o, \"k\", JsonObjectKeys(o));"
    " jsonObject p = o; o = JsonObjectMerge(o, JsonObjectGetObject(p, \"a\"));"
    " o = JsonObjectSetNull(JsonObjectRemove(o, \"s\"), \"n\");"
    " return(JsonObjectSetString(o, \"t\", JsonObjectToPrettyString(o))); }",
    "jsonArray main() { jsonArray a = StringToJsonArray(\"[1,[2],{\\\"a\\\":3},null,\\\"x\\\"]\");"
    " jsonArray b = a; a = JsonArraySetArray(a, 0, b); a = JsonArrayRemove(a, 3);"
    " a = JsonArrayAddGuid(a, StringToGuid(\"01234567-89ab-7def-8123-456789abcdef\"));"
    " a = JsonArrayReverse(JsonArraySlice(a, 1, 3)); return(JsonArraySort(a)); }",
    "string main() { jsonObject m = RegexFind(\"a1b2\", \"(?<l>[a-z])(x)?(\\\\d)\");"
    " jsonArray all = RegexFindAll(\"a1b2\", \"[a-z]\"); return(JsonObjectToString(m)"
    " + JsonArrayToString(all) + RegexReplace(\"abc\", \"(b)\", \"<$1$$>\")"
    " + StringJoin(RegexSplit(\"a,b\", \",\"), \";\") + RegexEscape(\"a.b\")); }",
    "string main() { return(HashSha256(\"x\") + Base64Decode(Base64Encode(\"abc\"))"
    " + UrlDecode(UrlEncode(\"a b\")) + TimeToString(StringToTime(\"2026-11-30\"))"
    " + DecimalRound(StringToDecimal(\"1.25\"), 1) + DecimalMax(1.5, DecimalAbs(-2.5))); }",
    "string main() { string s = \"\"; for (int i = 0; i < 3; i++) { try { if (i == 0) {"
    " s += StringToInt(\"x\"); } s += JsonArrayGetInt(StringToJsonArray(\"[1,\"), i); }"
    " catch (error e) { s += ErrorMessage(e); } } return(s); }",
};

// True when nothing failed.
static bool run_or_fail(const mt_mtc_program *p, uint64_t of_heap, uint64_t of_all)
{
    mt_vm_options options = {.app = "a", .fail_allocation = of_heap};
    mt_vm_state state = MT_VM_RUNS;
    mt_vm *vm;
    bool failed;

    (void)testalloc_fail(of_all);
    vm = mt_vm_new(p, &options);
    while (vm && state == MT_VM_RUNS)
        state = mt_vm_run(vm, 50);
    (void)testalloc_fail(0);
    failed = !vm || state == MT_VM_FAILED;
    if (vm && failed && mt_vm_failure_of(vm)->end != MT_VM_END_SYSTEM)
        CHECK_STR(mt_vm_failure_of(vm)->message, "the server is out of memory");
    if (vm)
        vm_empty(vm);
    if (vm && vm->heap.used)
        CHECK_INT(vm->heap.used, 0);
    (void)mt_vm_free(vm);
    return !failed;
}

static void test_failing_allocations(void)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(greedy); i++) {
        mt_mtc_program *p = testrun_ready(greedy[i]);
        uint64_t n = 1;

        while (!run_or_fail(p, n, 0))
            n++;
        CHECK(n > 5);
        n = 1;
        for (unsigned quiet = 0; quiet < 20; n++)
            quiet = run_or_fail(p, 0, n) ? quiet + 1 : 0;
        CHECK(n > 30);
        mt_mtc_program_free(p);
    }
}

int main(void)
{
    test_linear();
    test_steps();
    test_patterns();
    test_failing_allocations();
    return TAP_DONE();
}
