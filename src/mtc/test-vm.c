// SPDX-License-Identifier: Apache-2.0
// What cases of the language suite cannot show of the machine: what it takes in steps and memory,
// every allocation failing once, answers and inputs that are wrong, machines beside each other.
#include "base/tap.h"
#include "base/testalloc.h"
#include "mtc/testrun.h"
#include "mtc/vm-internal.h"

#include <pthread.h>

// ---- programs ----

static mt_vm *machine(const mt_mtc_program *p)
{
    static const mt_vm_options options = {.app = "a"};

    return mt_vm_new(p, &options);
}

// What comes of a program, and in how many steps.
static uint64_t check_run(const testrun *how, const char *text, const char *expected)
{
    mt_buf out = MT_BUF_INIT(1 << 20);
    testrun run = *how;
    mt_mtc_program *p = testrun_ready(text);
    uint64_t steps;

    run.program = p;
    run.slice = TESTRUN_STEPS;
    steps = testrun_run(&run, &out);
    CHECK_STR(mt_buf_str(&out), expected);
    mt_buf_done(&out);
    mt_mtc_program_free(p);
    return steps;
}

// ---- in place ----

// A program that does something n times takes about twice as long for twice as many.
static void check_linear(const char *what)
{
    enum { TIMES = 3000 };
    uint64_t steps[2];

    for (uint64_t i = 0; i < 2; i++) {
        char text[2048], expected[64];

        (void)snprintf(text, sizeof(text),
                       "jsonArray add(jsonArray a, int i) { return(JsonArrayAddInt(a, i)); }"
                       " string wrap(string s, string t) { return(s + t + \".\"); }"
                       " int main() { int n = %d; string s = \"\"; jsonArray a = JsonArrayCreate();"
                       " jsonObject o = JsonObjectCreate(); string part = \"0123456789\";"
                       " for (int i = 0; i < n; i++) { %s } return(n); }",
                       TIMES * (int)(i + 1), what);
        (void)snprintf(expected, sizeof(expected), "= %d\n", TIMES * (int)(i + 1));
        steps[i] = check_run(&(testrun){0}, text, expected);
    }
    if (!CHECK(steps[1] < steps[0] * 9 / 4))
        printf("# %llu, %llu: %s\n", (unsigned long long)steps[0], (unsigned long long)steps[1],
               what);
}

static void test_in_place(void)
{
    check_linear("a = JsonArrayAddInt(a, i);");
    check_linear("a = JsonArrayAddString(a, part); a = JsonArraySetInt(a, i / 2, 0);");
    check_linear("o = JsonObjectSetInt(o, \"n\" + i, i);");
    check_linear(
        "o = JsonObjectSetString(o, \"n\" + i, part); o = JsonObjectRemove(o, \"n\" + (i - 9));");
    check_linear("s = s + part;");
    check_linear("s += part + i;");
    check_linear("s = s + part + i + \", \" + true;");
    check_linear("s = s + part + IntToString(i * 2) + (i + 1) + (i < 5);");
    check_linear("s = s + part; int length = StringLength(s);");
    check_linear("try { s = s + part + i / (i % 3); } catch (error e) { s = s + \"-\"; }");
    check_linear("try { a = JsonArrayAddInt(a, i); a = JsonArraySetInt(a, -1, i); }"
                 " catch (error e) { a = JsonArrayAddInt(a, i); }");
    // Outside of a try the last who reads a variable may have what is in it.
    check_linear("a = JsonArraySetInt(JsonArrayAddInt(a, i), i / 2, i);");
    check_linear(
        "a = add(a, i); o = JsonObjectSetInt(JsonObjectSetInt(o, \"a\" + i, 1), \"b\", i);");
    check_linear("s = wrap(s, i % 2 == 0 ? part : \"-\");");
}

// What is thrown on the way leaves a variable as it was, also where it had lent its value.
static void test_lent(void)
{
    (void)check_run(&(testrun){0},
                    "string main() { string s = \"abc\" + 1; string t = s;"
                    " try { s = s + \"d\" + (1 / (1 - 1)) + \"e\"; } catch (error e) { }"
                    " t = t + s; s = s + \"-\" + t + \"-\";"
                    " try { s = s + \"d\" + StringToInt(\"x\"); } catch (error e) { }"
                    " return(s + StringLength(s)); }",
                    "= \"abc1-abc1abc1-14\"\n");
    (void)check_run(
        &(testrun){0},
        "string main() { string s = \"0123456789abcdef\" + 1;"
        " while (StringLength(s) < 5000000) { s = s + s; } int before = StringLength(s);"
        " try { s = s + \"more\" + s; } catch (error e) { return(ErrorCode(e) + \" \" +"
        " (StringLength(s) == before)); } return(\"\"); }",
        "= \"TooLarge true\"\n");
    (void)check_run(&(testrun){0},
                    "string main() { jsonArray a = JsonArrayAddInt(JsonArrayCreate(), 1);"
                    " jsonArray b = a; a = JsonArrayAddArray(a, a); a = JsonArrayAddInt(a, 2);"
                    " try { a = JsonArraySetInt(a, 7, 0); } catch (error e) { }"
                    " return(JsonArrayToString(a) + JsonArrayToString(b)); }",
                    "= \"[1,[1],2][1]\"\n");
}

// ---- memory, depth ----

static void test_memory(void)
{
    static const testrun small = {.heap = 1 << 20};
    mt_mtc_program *p = testrun_ready("int main() { Sleep(1); return(1); }");
    mt_vm *vm = machine(p);

    CHECK_INT(mt_vm_run(vm, 1000), MT_VM_CALLS);
    CHECK(mt_vm_bytes(vm) < 4096); // what a run that waits costs
    (void)mt_vm_free(vm);
    mt_mtc_program_free(p);
    (void)check_run(&small,
                    "void main() { jsonArray a = JsonArrayCreate();"
                    " try { while (true) { a = JsonArrayAddInt(a, 1); } } catch (error e) { } }",
                    "! memory: the run needs more than its 1 MiB of memory\n"
                    "  at main (a.mtc:1:73)\n");
    (void)check_run(&small, "void main() { string s = \"x\"; while (true) { s = s + s; } }",
                    "! memory: the run needs more than its 1 MiB of memory\n"
                    "  at main (a.mtc:1:52)\n");
    (void)check_run(&(testrun){.heap = 100 << 10},
                    "int f(int n) { int a = n; return(n == 0 ? 0 : 1 + f(n - 1)); }"
                    " int main() { return(f(999)); }",
                    "= 999\n");
}

static void test_depth(void)
{
    static const char text[] = "int f(int n) { if (n == 0) { return(0); } return(1 + f(n - 1)); }"
                               "int main(int n) { try { return(f(n)); } catch (error e) { } "
                               "return(0); }";
    mt_mtc_program *p = testrun_ready(text);
    mt_buf out = MT_BUF_INIT(1 << 20);
    testrun run = {.program = p, .slice = 100, .inputs = MT_STR("n=999")};
    size_t lines = 0;

    (void)testrun_run(&run, &out);
    CHECK_STR(mt_buf_str(&out), "= 999\n"); // f(0) is the 1,000th call
    mt_buf_clear(&out);
    run.inputs = MT_STR("n=1000");
    (void)testrun_run(&run, &out);
    CHECK(mt_starts_with(mt_buf_str(&out), "! depth: calls are nested more than 1000 deep\n"
                                           "  at f (a.mtc:1:54)\n"));
    for (const char *at = mt_buf_str(&out); *at; at++)
        lines += *at == '\n';
    CHECK_INT(lines, 51);
    mt_buf_done(&out);
    mt_mtc_program_free(p);
}

// ---- allocations that fail ----

static const char *const greedy[] = {
    "string main() { string s = \"a\"; for (int i = 0; i < 20; i++) { s = s + i + s; }"
    " return(StringSlice(s, 0, 20)); }",
    "jsonObject main() { jsonObject o = JsonObjectCreate(); for (int i = 0; i < 20; i++) {"
    " jsonObject p = o; o = JsonObjectSetObject(o, \"m\" + i, JsonObjectSetInt(p, \"x\", i)); }"
    " return(JsonObjectRemove(o, \"m3\")); }",
    "jsonArray main() { jsonArray a = StringToJsonArray(\"[1,[\\\"two\\\",{\\\"n\\\":3.5}]]\");"
    " foreach (string s in a) { a = JsonArrayConcat(a, StringSplit(s, \",\")); } return(a); }",
    "string main() { try { decimal d = 1.5; d = d / (d - 1.5); } catch (error e) {"
    " return(ErrorMessage(e) + ErrorPlace(e)); } return(\"\"); }",
    "int f(int n) { return(n == 0 ? 0 : f(n - 1) + 1); } int main() { return(f(200)); }",
    "int main() { foreach (string name in JsonObjectSetInt(JsonObjectCreate(), \"a\", 1)) {"
    " throw(name + name); } return(1); }",
};

// Runs without calls to the outside. True when nothing failed.
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
    failed = !vm || (state == MT_VM_FAILED && mt_vm_failure_of(vm)->end == MT_VM_END_SYSTEM);
    if (failed && vm && !mt_streq(mt_vm_failure_of(vm)->message, "the server is out of memory"))
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
        CHECK(n > 2);
        n = 1;
        // The trace of an error that ends a run may be missing, and the run is as it was then.
        for (unsigned quiet = 0; quiet < 3; n++)
            quiet = run_or_fail(p, 0, n) ? quiet + 1 : 0;
        CHECK(n > 5);
        mt_mtc_program_free(p);
    }
}

// ---- calls and answers ----

static void check_refused(mt_vm *vm, const char *json, const char *sentence)
{
    mt_err *err = NULL;

    CHECK_INT(mt_vm_answer(vm, mt_str_of(json), &err), -1);
    CHECK_INT(mt_err_code(err), MT_E_BAD_JSON);
    if (sentence)
        CHECK_STR(mt_err_sentence(err), sentence);
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_CALLS); // still
    (void)mt_err_free(err);
}

// Stopped between two instructions, a machine is at the one that comes next.
static void test_place_of_a_loop(void)
{
    mt_mtc_program *p = testrun_ready("void loop() {\n\tfor (;;) { }\n}\nvoid main() { loop(); }");
    mt_vm *vm = machine(p);
    char *stack;

    for (int i = 0; i < 5; i++)
        CHECK_INT(mt_vm_run(vm, 10), MT_VM_RUNS);
    CHECK_STR(mt_vm_place(vm), "a.mtc:2:2");
    stack = mt_vm_stack(vm);
    CHECK_STR(stack, "[{\"function\":\"loop\",\"place\":\"a.mtc:2:2\"},"
                     "{\"function\":\"main\",\"place\":\"a.mtc:4:15\"}]");
    free(stack);
    (void)mt_vm_free(vm);
    mt_mtc_program_free(p);
}

static void test_answers(void)
{
    mt_mtc_program *p =
        testrun_ready("string main() { int n = TimeNow();\n\tguid g = GuidCreate();"
                      " jsonArray a = CapsuleList(\"x\\\"\"); bool b = VfsExists(\"v\", \"p\");"
                      " string t = VfsReadText(\"\", \"\"); jsonObject o = CapsuleRunGet(g);"
                      " Sleep(-n); return(\"\" + n + g + JsonArrayToString(a) + b + t + "
                      "JsonObjectToString(o)); }");
    mt_buf b = MT_BUF_INIT(1 << 20);
    mt_vm *vm = machine(p);

    CHECK_INT(mt_vm_run(vm, 100), MT_VM_CALLS);
    CHECK_STR(mt_vm_call_of(vm)->name, "TimeNow");
    CHECK_STR(mt_vm_place(vm), "a.mtc:1:25");
    check_refused(vm, "1.5", "the answer of TimeNow is a number, not int");
    check_refused(vm, "99999999999999999999", NULL);
    check_refused(vm, "\"1\"", "the answer of TimeNow is a string, not int");
    check_refused(vm, "[", NULL);
    CHECK_INT(mt_vm_answer(vm, MT_STR("7e1"), NULL), 0);
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_CALLS);
    CHECK_STR(mt_vm_place(vm), "a.mtc:2:11");
    check_refused(vm, "\"01234567-89AB-7def-8123-456789abcde\"", NULL);
    CHECK_INT(mt_vm_answer(vm, MT_STR("\"01234567-89AB-7def-8123-456789ABCDEF\""), NULL), 0);
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_CALLS);
    CHECK_INT(mt_vm_call_arguments(vm, &b), 0);
    CHECK_STR(mt_buf_str(&b), "[\"x\\\"\"]");
    check_refused(vm, "{}", "the answer of CapsuleList is an object, not jsonArray");
    check_refused(vm, "[\"\\u0000\"]", "the answer of CapsuleList holds a NUL character");
    CHECK_INT(mt_vm_answer(vm, MT_STR("[1.50,null]"), NULL), 0);
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_CALLS);
    check_refused(vm, "null", "the answer of VfsExists is null, not bool");
    CHECK_INT(mt_vm_answer(vm, MT_STR("true"), NULL), 0);
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_CALLS);
    check_refused(vm, "3", "the answer of VfsReadText is a number, not string");
    CHECK_INT(mt_vm_answer(vm, MT_STR("\"\\u00e9\\n\""), NULL), 0);
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_CALLS);
    check_refused(vm, "[]", NULL);
    CHECK_INT(mt_vm_answer(vm, MT_STR("{\"k\":{}}"), NULL), 0);
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_CALLS);
    mt_buf_clear(&b);
    CHECK_INT(mt_vm_call_arguments(vm, &b), 0);
    CHECK_STR(mt_buf_str(&b), "[-70]");
    CHECK_INT(mt_vm_answer(vm, MT_STR("whatever"), NULL), 0);
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_FINISHED);
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_FINISHED);
    mt_buf_clear(&b);
    CHECK_INT(mt_vm_result(vm, &b), 0);
    CHECK_STR(mt_buf_str(&b), "\"7001234567-89ab-7def-8123-456789abcdef[1.50,null]true\xc3\xa9\\n"
                              "{\\\"k\\\":{}}\"");
    (void)mt_vm_free(vm);
    mt_buf_done(&b);
    mt_mtc_program_free(p);
}

static void test_answers_too_large(void)
{
    mt_mtc_program *p =
        testrun_ready("string main() { try { return(VfsReadText(\"\", \"\")); }"
                      " catch (error e) { return(ErrorCode(e) + \" \" + ErrorPlace(e)); } }");
    mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);
    mt_vm *vm = machine(p);
    char *room;

    CHECK_INT(mt_vm_run(vm, 100), MT_VM_CALLS);
    (void)mt_buf_addc(&b, '"');
    room = mt_buf_reserve(&b, MT_VM_STRING + 1);
    memset(room, 'x', MT_VM_STRING + 1);
    mt_buf_added(&b, MT_VM_STRING + 1);
    (void)mt_buf_addc(&b, '"');
    CHECK_INT(mt_vm_answer(vm, (mt_str){b.data, b.len}, NULL), 0);
    CHECK_INT(mt_vm_run(vm, 1000), MT_VM_FINISHED);
    mt_buf_clear(&b);
    (void)mt_vm_result(vm, &b);
    CHECK_STR(mt_buf_str(&b), "\"TooLarge a.mtc:1:30\"");
    (void)mt_vm_free(vm);
    mt_buf_done(&b);
    mt_mtc_program_free(p);
}

static void test_answers_with_errors(void)
{
    mt_mtc_program *p =
        testrun_ready("void main() { try { Sleep(1); } catch (error e) { throw(e); } }");
    mt_vm *vm = machine(p);
    const mt_vm_failure *f;

    CHECK_INT(mt_vm_run(vm, 100), MT_VM_CALLS);
    mt_vm_answer_error(vm, "notFound", "nothing \xff there"); // what is no UTF-8 is cut
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_FAILED);
    CHECK_INT(mt_vm_run(vm, 100), MT_VM_FAILED);
    f = mt_vm_failure_of(vm);
    CHECK_INT(f->end, MT_VM_END_ERROR);
    CHECK_STR(f->code, "notFound");
    CHECK_STR(f->message, "nothing ");
    CHECK_STR(f->place, "a.mtc:1:21"); // where it came up, not where it was thrown again
    CHECK_STR(f->stack, "[{\"function\":\"main\",\"place\":\"a.mtc:1:51\"}]");
    (void)mt_vm_free(vm);
    mt_mtc_program_free(p);
}

// ---- inputs ----

static void check_input(mt_vm *vm, const mt_mtc_program *p, size_t i, const char *text,
                        const char *refused)
{
    mt_err *err = NULL;

    CHECK_INT(mt_mtc_input_check(p, i, mt_str_of(text), NULL), refused ? -1 : 0);
    CHECK_INT(mt_vm_input(vm, i, mt_str_of(text), &err), refused ? -1 : 0);
    CHECK_STR(mt_err_sentence(err), refused ? refused : "");
    if (refused) {
        CHECK_INT(mt_err_code(err), MT_E_BAD_FIELD);
        CHECK(mt_str_eq(mt_mtc_input_at(p, i).name, mt_err_field(err)));
    }
    (void)mt_err_free(err);
}

static void test_inputs(void)
{
    mt_mtc_program *p = testrun_ready(
        "string main(bool b, int n, decimal d, string s, guid g, jsonObject o, jsonArray a)"
        " { return(\"\" + b + n + \" \" + d + s + g + JsonObjectToString(o) + "
        "JsonArrayToString(a)); }");
    mt_buf out = MT_BUF_INIT(1000);
    mt_vm *vm = machine(p);

    CHECK_INT(mt_mtc_input_count(p), 7);
    CHECK_INT(mt_mtc_input_at(p, 6).type, MT_MTC_JSON_ARRAY);
    CHECK_INT(mt_mtc_result_type(p), MT_MTC_STRING);
    check_input(vm, p, 0, "True", "'b' must be true or false, not 'True'");
    check_input(vm, p, 0, "true", NULL);
    check_input(vm, p, 1, "", "'n' must be a whole number, not ''");
    check_input(vm, p, 1, "1.0", "'n' must be a whole number, not '1.0'");
    check_input(vm, p, 1, "9223372036854775808",
                "'n' must be a whole number of 64 bits, not '9223372036854775808'");
    check_input(vm, p, 1, " -9223372036854775808\n", NULL);
    check_input(vm, p, 2, "1e5", "'d' must be a number, not '1e5'");
    check_input(vm, p, 2, "999999999999999999999999999999999999999",
                "'d' must be a number of at most 38 digits, not "
                "'999999999999999999999999999999999999999'");
    check_input(vm, p, 2, " 1.50", NULL);
    check_input(vm, p, 3, "a\xff", "'s' must be UTF-8 without NUL characters, not 'a…'");
    check_input(vm, p, 3, "first", NULL);
    check_input(vm, p, 3, " \xe2\x82\xac ", NULL);
    check_input(vm, p, 4, "x", "'g' must be a guid, not 'x'");
    check_input(vm, p, 4, "01234567-89AB-7def-8123-456789ABCDEF", NULL);
    check_input(vm, p, 5, "[]", "'o' must be a JSON object without NUL characters, not '[]'");
    check_input(vm, p, 5, "{",
                "'o' must be a JSON object (line 1, column 2: the text ends where a "
                "name in double quotes is expected), not '{'");
    check_input(vm, p, 5, "{\"a\":1.0}", NULL);
    check_input(vm, p, 6, "[\"\\u0000\"]",
                "'a' must be a JSON list without NUL characters, not '[\"\\u0000\"]'");
    check_input(vm, p, 6, "[]", NULL);
    CHECK_INT(mt_vm_run(vm, 1000), MT_VM_FINISHED);
    CHECK_INT(mt_vm_result(vm, &out), 0);
    CHECK_STR(mt_buf_str(&out), "\"true-9223372036854775808 1.50 \xe2\x82\xac "
                                "01234567-89ab-7def-8123-456789abcdef{\\\"a\\\":1.0}[]\"");
    (void)mt_vm_free(vm);
    mt_buf_done(&out);
    mt_mtc_program_free(p);
}

// ---- characters ----

// Looks up each place in an order that goes to and fro.
static bool places_are_right(vm_value v)
{
    mt_str text = vm_text(v);
    uint32_t n = vm_chars(v), *places = calloc(n + 1, sizeof(*places)), count = 0;
    bool right = true;

    for (uint32_t i = 0; i < text.len; i++) {
        if (((unsigned char)text.data[i] & 0xc0) != 0x80)
            places[count++] = i;
    }
    places[count] = (uint32_t)text.len;
    right = count == n;
    for (uint32_t i = 0; i <= n && right; i++) {
        uint32_t there = i % 3 ? (i * 7919) % (n + 1) : i;

        right = vm_byte_at(v, there) == places[there];
    }
    free(places);
    return right;
}

static void test_characters(void)
{
    static const char *const letters[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    mt_mtc_program *p = testrun_ready("void main() { }");
    mt_vm *vm = machine(p);
    unsigned seed = 7;
    bool right = true;
    vm_value v, part, joined;

    CHECK_INT(vm_make_string(vm, MT_STR(""), &v), 0);
    for (int i = 0; i < 300 && right; i++) {
        seed = seed * 1103515245u + 12345u;
        (void)vm_make_string(vm, mt_str_of(letters[seed >> 20 & (i < 150 ? 3 : 0)]), &part);
        right = vm_join(vm, &v, part, &joined) == 0 && v.kind == VM_NONE;
        vm_unref(vm, part);
        v = joined;
        right = right && places_are_right(v);
    }
    CHECK(right);
    CHECK_INT(vm_chars(v), 300);
    vm_string_cut(v, 0);
    CHECK_INT(vm_chars(v), 0);
    vm_unref(vm, v);
    (void)mt_vm_free(vm);
    mt_mtc_program_free(p);
}

// ---- beside each other ----

static void *run_beside(void *program)
{
    mt_buf *out = malloc(sizeof(*out));
    testrun run = {.program = program, .slice = 100};

    *out = (mt_buf)MT_BUF_INIT(1 << 20);
    (void)testrun_run(&run, out);
    return out;
}

static void test_threads(void)
{
    mt_mtc_program *p =
        testrun_ready("string main() { string s = \"\"; for (int i = 0; i < 5000; i++) {"
                      " s = StringSlice(\"\u00e9\u00e8\" + s + 1.5, 1, 20); } return(s); }");
    pthread_t threads[4];

    for (size_t i = 0; i < MT_ARRAY_SIZE(threads); i++)
        CHECK_INT(pthread_create(&threads[i], NULL, run_beside, p), 0);
    for (size_t i = 0; i < MT_ARRAY_SIZE(threads); i++) {
        void *out = NULL;

        CHECK_INT(pthread_join(threads[i], &out), 0);
        CHECK(mt_starts_with(mt_buf_str(out), "= \"\xc3\xa8\xc3\xa8"));
        mt_buf_done(out);
        free(out);
    }
    mt_mtc_program_free(p);
}

int main(void)
{
    test_in_place();
    test_lent();
    test_memory();
    test_depth();
    test_failing_allocations();
    test_place_of_a_loop();
    test_answers();
    test_answers_too_large();
    test_answers_with_errors();
    test_inputs();
    test_characters();
    test_threads();
    return TAP_DONE();
}
