// SPDX-License-Identifier: Apache-2.0
// What the language suite (tests/mtc) cannot say with files: limits, hostile sources, the table of
// built-ins, the tree.
#include "base/clock.h"
#include "base/tap.h"
#include "mtc/ast.h"

// A hostile source is refused within this; sanitizers and a busy machine take several times longer.
enum { HOSTILE_US = 1000 * 1000, SLOW_US = 20 * HOSTILE_US };

// Checks one file; ret_first is its first diagnostic, "" when there is none.
static size_t check_text(mt_str text, char ret_first[512])
{
    mt_mtc_source source = {"a.mtc", text};
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_mtc_program *p = mt_mtc_check(&source, 1, 0, diags);
    mt_buf shown = MT_BUF_INIT(1 << 20);
    size_t errors;

    mt_mtr_diags_sort(diags);
    if (mt_mtr_diags_count(diags) > 0)
        (void)mt_mtr_diag_format(mt_mtr_diags_at(diags, 0), &shown);
    (void)snprintf(ret_first, 512, "%.*s", (int)strcspn(mt_buf_str(&shown), "\n"),
                   mt_buf_str(&shown));
    errors = mt_mtr_diags_errors(diags);
    CHECK(p && mt_mtc_failed(p) == (errors > 0));
    mt_buf_done(&shown);
    mt_mtc_program_free(p);
    mt_mtr_diags_free(diags);
    return errors;
}

// head, then count times part, then tail.
static void expect_repeated(const char *head, const char *part, size_t count, const char *tail,
                            const char *expected)
{
    mt_buf b = MT_BUF_INIT(8 << 20);
    char first[512];
    int64_t began = mt_monotonic_us();

    (void)mt_buf_adds(&b, head);
    for (size_t i = 0; i < count; i++)
        (void)mt_buf_adds(&b, part);
    (void)mt_buf_adds(&b, tail);
    CHECK(!b.failed);
    (void)check_text((mt_str){mt_buf_str(&b), b.len}, first);
    CHECK_STR(first, expected);
#ifdef __SANITIZE_ADDRESS__
    CHECK(mt_monotonic_us() - began < SLOW_US);
#else
    CHECK(mt_monotonic_us() - began < HOSTILE_US);
#endif
    mt_buf_done(&b);
}

static void test_hostile(void)
{
    static const char deep[] = "a.mtc:1:%u: error: nested deeper than 200 levels";
    static const char head[] = "void main() { int x = ";
    char text[128];

    (void)snprintf(text, sizeof(text), deep, 222);
    expect_repeated(head, "(", 100000, "", text);
    (void)snprintf(text, sizeof(text), deep, 222);
    expect_repeated(head, "-", 100000, "1;}",
                    "a.mtc:1:23: error: an expression is missing before '--'");
    expect_repeated(head, "- ", 100000, "1;}", "a.mtc:1:421: error: nested deeper than 200 levels");
    expect_repeated(head, "!", 100000, "true;}", text);
    expect_repeated("void main() ", "{", 100000, "",
                    "a.mtc:1:213: error: nested deeper than 200 levels");
    expect_repeated("void main() {", "if (true) ", 100000, "{}}",
                    "a.mtc:1:2014: error: nested deeper than 200 levels");
    expect_repeated(head, "IntAbs(", 100000, "",
                    "a.mtc:1:1422: error: nested deeper than 200 levels");
    expect_repeated(head, "true ? 1 : ", 50000, "1;}",
                    "a.mtc:1:2217: error: nested deeper than 200 levels");
    expect_repeated(
        head, "1+", 100000, "1;}",
        "a.mtc:1:2024: error: more than 1000 operators in a row: use variables for parts of it");
    expect_repeated("void main() {", "[", 100000, "",
                    "a.mtc:1:14: error: there are no literals of lists and objects");
    expect_repeated("void main() { PrintLine(\"", "x", 1000000, "",
                    "a.mtc:1:25: error: string is not closed on its line");
    expect_repeated("", "/* ", 300000, "",
                    "a.mtc:1:1: error: comment is not closed: no '*/' follows");
    expect_repeated("", "x", 1000000, "",
                    "a.mtc:1:1: error: a name is at most 128 characters long");
    expect_repeated("void main() {}\n", " ", 1024 * 1024, "",
                    "a.mtc: error: the file is over 1024 KiB, the limit of a program's file");
}

// What is large but within the limits is taken.
static void test_large(void)
{
    expect_repeated("void main() { int x = 0; if (x == 1) { x = 0; }",
                    " else if (x == 2) { x = 1; }", 10000, "}", "");
    expect_repeated("void main() { int x = 0;", " x = x + 1;\n", 30000, "}", "");
    expect_repeated("void main() { string x = \"\"", "\n+ \"a\"", 990, "; }", "");
    expect_repeated("void main() { int x = 0;", "{", 150, "",
                    "a.mtc:1:175: error: '}' is missing: what "
                    "opened on line 1, column 174 is not closed");
    expect_repeated(
        "void main() { int x = 0;", " x = x + 1;\n", 80000, "}",
        "a.mtc:50000:6: error: the program is too large: more than 200000 expressions and "
        "statements");
}

static void test_many_functions(void)
{
    mt_buf b = MT_BUF_INIT(8 << 20);
    char first[512];

    for (int i = 0; i < 10001; i++)
        (void)mt_buf_addf(&b, "void f%d(){f%d();}\n", i, (i * 7919) % 10000);
    (void)check_text((mt_str){mt_buf_str(&b), b.len}, first);
    CHECK_STR(first, "a.mtc:10001:6: error: more than 10000 functions in one app");
    mt_buf_clear(&b);
    (void)mt_buf_adds(&b, "void main() {\n");
    for (int i = 0; i < 1001; i++)
        (void)mt_buf_addf(&b, "int v%d = 1;\n", i);
    (void)mt_buf_adds(&b, "}");
    (void)check_text((mt_str){mt_buf_str(&b), b.len}, first);
    CHECK_STR(first,
              "a.mtc:1002:5: error: more than 1000 variables are known here: that is the limit");
    mt_buf_done(&b);
}

static void test_errors_are_capped(void)
{
    mt_buf b = MT_BUF_INIT(8 << 20);
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_mtc_program *p;
    mt_mtc_source source = {"a.mtc", {NULL, 0}};

    (void)mt_buf_adds(&b, "void main() {\n");
    for (int i = 0; i < 20000; i++)
        (void)mt_buf_addf(&b, "unknown%d(missing%d);\n", i, i);
    (void)mt_buf_adds(&b, "}");
    source.text = (mt_str){mt_buf_str(&b), b.len};
    p = mt_mtc_check(&source, 1, 0, diags);
    CHECK(p && mt_mtc_failed(p));
    CHECK_INT(mt_mtr_diags_count(diags), MT_MTR_MAX_ERRORS + 1);
    mt_mtr_diags_sort(diags);
    CHECK_STR(mt_mtr_diags_at(diags, MT_MTR_MAX_ERRORS)->message,
              "more than 100 errors in this file: correct these first");
    mt_mtc_program_free(p);
    mt_mtr_diags_free(diags);
    mt_buf_done(&b);
}

// What reports say is not kept of those that are not shown: neither memory nor time is spent.
static void test_long_reports(void)
{
    mt_buf b = MT_BUF_INIT(8 << 20);
    char first[512];
    int64_t began = mt_monotonic_us();

    (void)mt_buf_adds(&b, "void f(int x");
    for (int i = 0; i < 60; i++)
        (void)mt_buf_addf(&b, ", int parameter_with_a_name_that_is_rather_long_for_one_%d", i);
    (void)mt_buf_adds(&b, ") {}\nvoid main() { int x = IntMax(0");
    for (int i = 0; i < 60000; i++)
        (void)mt_buf_adds(&b, ", f()");
    (void)mt_buf_adds(&b, ");\n");
    for (int i = 0; i < 60000; i++)
        (void)mt_buf_adds(&b, "f();\n");
    (void)mt_buf_adds(&b, "}");
    CHECK(check_text((mt_str){mt_buf_str(&b), b.len}, first) > MT_MTR_MAX_ERRORS);
    CHECK(mt_starts_with(first, "a.mtc:2:"));
    CHECK(mt_monotonic_us() - began < SLOW_US);
    mt_buf_done(&b);
}

static void test_bytes(void)
{
    char first[512];

    CHECK_INT(check_text(MT_STR("void main() {}\n\0"), first), 1);
    CHECK_STR(first, "a.mtc:2:1: error: NUL byte in a program");
    CHECK_INT(check_text(MT_STR("void main() {}\n// \xff"), first), 1);
    CHECK_STR(first, "a.mtc:2:4: error: not UTF-8: save the file as UTF-8");
    CHECK_INT(check_text(MT_STR("\xef\xbb\xbfvoid main() {\r\n\tPrintLine(1);\r\n}\r\n"), first),
              1);
    CHECK_STR(first, "a.mtc:2:12: error: argument 1 of PrintLine takes a string, not an int: "
                     "void PrintLine(string text)");
    CHECK_INT(check_text((mt_str){NULL, 0}, first), 1);
    CHECK_STR(first, "a.mtc: error: the program has no function main");
}

static void test_files(void)
{
    mt_mtc_source sources[MT_MTC_MAX_FILES + 1];
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_mtc_program *p;
    char *large = calloc(1, 900000);

    memset(large, ' ', 900000);
    for (size_t i = 0; i < MT_ARRAY_SIZE(sources); i++)
        sources[i] = (mt_mtc_source){"x.mtc", MT_STR("")};
    p = mt_mtc_check(sources, MT_ARRAY_SIZE(sources), 0, diags);
    CHECK_STR(mt_mtr_diags_at(diags, 0)->message, "more than 100 files in one app");
    mt_mtc_program_free(p);
    for (size_t i = 0; i < 5; i++)
        sources[i].text = (mt_str){large, 900000};
    p = mt_mtc_check(sources, 5, 0, diags);
    CHECK_STR(mt_mtr_diags_at(diags, 1)->message,
              "the files of this app are over 4 MiB together, the limit of a program");
    mt_mtc_program_free(p);
    mt_mtr_diags_free(diags);
    free(large);
}

// ---- the table ----

static void test_seed_signatures(void)
{
    static const char *const signatures[] = {
        "guid CapsuleStart(string capsule, string namespace, string startup, string vfs, string "
        "secrets)",
        "jsonObject CapsuleWaitUntilStarted(guid run)",
        "guid CapsuleExec(guid run, string command, string arguments, string user, int maxMs, bool "
        "async)",
        "jsonObject CapsuleCommandAwait(guid run, guid command)",
        "void CapsuleTerminate(guid run)",
        "guid InteractionStart(string interaction, jsonObject inputs, string vfs, string tools, "
        "string "
        "namespace)",
        "jsonObject InteractionAwait(guid run)",
        "jsonObject JsonObjectCreate()",
        "jsonObject JsonObjectSetString(jsonObject object, string name, string value)",
        "string JsonObjectGet(jsonObject object, string name)",
        "jsonObject StringToJsonObject(string text)",
        "void PrintLine(string text)",
        "void AppStateSetOutputString(string name, string value)",
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(signatures); i++) {
        const char *name = strchr(signatures[i], ' ') + 1;
        const mt_mtc_builtin *b = mt_mtc_builtin_find((mt_str){name, strcspn(name, "(")});
        mt_buf text = MT_BUF_INIT(4096);

        if (CHECK(b)) {
            (void)mt_mtc_builtin_signature(b, &text);
            CHECK_STR(mt_buf_str(&text), signatures[i]);
        }
        mt_buf_done(&text);
    }
    CHECK(!mt_mtc_builtin_find(MT_STR("printline")));
    CHECK(!mt_mtc_builtin_find(MT_STR("")));
}

static bool is_camel(const char *name, bool capital)
{
    if (capital ? name[0] < 'A' || name[0] > 'Z' : name[0] < 'a' || name[0] > 'z')
        return false;
    for (; *name; name++) {
        if (!((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
              (*name >= '0' && *name <= '9')))
            return false;
    }
    return true;
}

// Each row has a family, a doc of whole sentences, names in one style, and is there once.
static void test_table(void)
{
    const mt_mtc_builtin *b;
    size_t bad = 0;

    for (size_t i = 0; (b = mt_mtc_builtin_at(i)) != NULL; i++) {
        size_t len = strlen(b->doc);
        bool good = is_camel(b->name, true) && len > 10 && b->doc[len - 1] == '.' &&
                    mt_mtc_builtin_find(mt_str_of(b->name)) == b &&
                    mt_mtc_builtin_family(b)[0] != '\0' && b->result != MT_MTC_BAD &&
                    b->result != MT_MTC_ERROR && b->count <= MT_MTC_BUILTIN_PARAMETERS &&
                    (b->kind != MT_MTC_START || b->result == MT_MTC_GUID) &&
                    (b->kind != MT_MTC_WRITE || b->result == MT_MTC_VOID);

        for (size_t j = 0; j < b->count; j++)
            good = good && is_camel(b->parameters[j].name, false) &&
                   b->parameters[j].type != MT_MTC_VOID && b->parameters[j].type != MT_MTC_BAD;
        if (!good)
            printf("# %s\n", b->name);
        bad += !good;
    }
    CHECK_INT(bad, 0);
}

// ---- the tree ----

static void test_tree(void)
{
    mt_mtc_source source = {
        "a.mtc", MT_STR("decimal main(int n) { decimal d = n; n += 2; PrintLine(\"\" + n); "
                        "return(n < 3 ? n : d); }")};
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_mtc_program *p = mt_mtc_check(&source, 1, 0, diags);
    const mt_mtc_stmt *s;

    CHECK_INT(mt_mtr_diags_count(diags), 0);
    s = p->first->body->body;
    CHECK_INT(s->kind, MT_STMT_DECLARE);
    CHECK_INT(s->value->kind, MT_EXPR_WIDEN);
    CHECK(s->value->left->variable == p->first->parameters);
    s = s->next;
    CHECK_INT(s->kind, MT_STMT_ASSIGN);
    CHECK(s->target == p->first->parameters);
    CHECK_INT(s->value->op, MT_OP_ADD);
    CHECK_INT(s->value->right->number, 2);
    s = s->next;
    CHECK_INT(s->kind, MT_STMT_CALL);
    CHECK_STR(s->value->builtin->name, "PrintLine");
    CHECK_INT(s->value->first->type, MT_MTC_STRING);
    s = s->next;
    CHECK_INT(s->kind, MT_STMT_RETURN);
    CHECK_INT(s->value->kind, MT_EXPR_CHOICE);
    CHECK_INT(s->value->type, MT_MTC_DECIMAL);
    CHECK_INT(s->value->left->kind, MT_EXPR_WIDEN);
    CHECK(!s->next);
    mt_mtc_program_free(p);
    mt_mtr_diags_free(diags);
}

int main(void)
{
    test_bytes();
    test_hostile();
    test_large();
    test_many_functions();
    test_errors_are_capped();
    test_long_reports();
    test_files();
    test_seed_signatures();
    test_table();
    test_tree();
    return TAP_DONE();
}
