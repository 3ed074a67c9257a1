// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/tap.h"
#include "mtr/mtr.h"

#include <stdio.h>

// ---- the tree as text, so that expectations read well ----

static void show(const mt_mtr_node *n, mt_buf *b)
{
    bool first = true;

    switch (n->type) {
    case MT_MTR_NULL:
        (void)mt_buf_adds(b, "null");
        break;
    case MT_MTR_BOOL:
        (void)mt_buf_adds(b, n->boolean ? "true" : "false");
        break;
    case MT_MTR_NUMBER:
        (void)mt_buf_addf(b, "%.*s", (int)n->text.len, n->text.data);
        break;
    case MT_MTR_STRING:
        (void)mt_buf_addf(b, "'%.*s'", (int)n->text.len, n->text.data);
        break;
    case MT_MTR_REF:
        (void)mt_buf_addf(b, "@%d(%.*s)", (int)n->function, (int)n->text.len, n->text.data);
        break;
    case MT_MTR_BAD:
        (void)mt_buf_adds(b, "BAD");
        break;
    case MT_MTR_LIST:
        (void)mt_buf_addc(b, '[');
        for (const mt_mtr_node *i = n->first; i; i = i->next, first = false) {
            (void)mt_buf_adds(b, first ? "" : " ");
            show(i, b);
        }
        (void)mt_buf_addc(b, ']');
        break;
    case MT_MTR_OBJECT:
        (void)mt_buf_addc(b, '{');
        for (const mt_mtr_member *m = n->members; m; m = m->next, first = false) {
            (void)mt_buf_addf(b, "%s%.*s=", first ? "" : " ", (int)m->key.len, m->key.data);
            show(m->value, b);
        }
        (void)mt_buf_addc(b, '}');
        break;
    }
}

typedef struct parsed {
    mt_mtr_diags *diags;
    mt_mtr_file *file;
    mt_buf tree;
    mt_buf report; // "line:column message" a line each
} parsed;

static void parse(parsed *p, const char *text, size_t len)
{
    *p = (parsed){
        .diags = mt_mtr_diags_new(), .tree = MT_BUF_INIT(1 << 20), .report = MT_BUF_INIT(1 << 20)};
    p->file = mt_mtr_parse("x.mtr", text, len, p->diags);
    show(p->file->root, &p->tree);
    mt_mtr_diags_sort(p->diags);
    for (size_t i = 0; i < mt_mtr_diags_count(p->diags); i++) {
        const mt_mtr_diag *d = mt_mtr_diags_at(p->diags, i);

        (void)mt_buf_addf(&p->report, "%s%u:%u %s", i ? "\n" : "", d->line, d->column, d->message);
    }
}

static void done(parsed *p)
{
    mt_mtr_file_free(p->file);
    mt_mtr_diags_free(p->diags);
    mt_buf_done(&p->tree);
    mt_buf_done(&p->report);
}

static const struct {
    const char *text, *tree, *report;
} cases[] = {
    {"", "{}", ""},
    {"// only a comment", "{}", ""},
    {"a = 1", "{a=1}", ""},
    {"\xef\xbb\xbf"
     "a = true\r\nb = false\r\n",
     "{a=true b=false}", ""},
    {"a = null\nb = -1.5e3\nc = \"x\"", "{a=null b=-1.5e3 c='x'}", ""},
    {"# one\n// two\n/* three\n */ a = /* four */ 1 // five\n", "{a=1}", ""},
    {"duration.max = \"1\"\nduration.min = 2", "{duration={max='1' min=2}}", ""},
    {"a = [1, 2, 3,]", "{a=[1 2 3]}", ""},
    {"a = []\nb = {}", "{a=[] b={}}", ""},
    {"a = [\n  { x = 1 y = 2 },\n  { x = 3, y = 4 },\n  {\n    x = 5\n    y = 6,\n  }\n]",
     "{a=[{x=1 y=2} {x=3 y=4} {x=5 y=6}]}", ""},
    {"a = @ref(\"sales-data\")\nb = @prompt(\"p\")\nc = [@json(\"j\")]",
     "{a=@0(sales-data) b=@1(p) c=[@2(j)]}", ""},
    {"a = \"\\n\\t\\r\\\"\\\\\\u00e9\\ud83d\\ude00\"", "{a='\n\t\r\"\\\xc3\xa9\xf0\x9f\x98\x80'}",
     ""},
    {"a = <<EOT\none\n  two\nEOT\nb = 1", "{a='one\n  two\n' b=1}", ""},
    {"a = <<-EOT\n    one\n      two\n\n    three\n    EOT\nb = 1",
     "{a='one\n  two\n\nthree\n' b=1}", ""},
    {"a = <<EOT\r\none\r\nEOT\r\n", "{a='one\n'}", ""},
    {"a = <<EOT\nEOT", "{a=''}", ""},
    {"a = [<<X\nq\nX\n, 2]", "{a=['q\n' 2]}", ""},
    {"\"odd key\" = 1", "{odd key=1}", ""},
    {"a = \"${HOME} $(id)\"", "{a='${HOME} $(id)'}", ""},

    // Faults, each with its place, and what is understood beside them.
    {"a = 1\na = 2", "{a=1}", "2:1 'a' is given twice, first on line 1"},
    {"d.max = 1\nd.max = 2", "{d={max=1}}", "2:3 'max' is given twice, first on line 1"},
    {"d = 1\nd.max = 2", "{d=1}",
     "2:1 'd' is already a number (line 1), so nothing can be set in it"},
    {"a 1", "{}", "1:3 '=' is missing after 'a'"},
    {"a: 1\nb = 2", "{a=1 b=2}", "1:2 '=' is missing after 'a'"},
    {"a { b = 1 }\nc = 2", "{a={b=1} c=2}", "1:3 '=' is missing after 'a'"},
    {"a = \nb = 2", "{b=2}", "2:1 a value is missing before 'b'"},
    {"a.", "{}", "1:3 a name is missing after the '.'"},
    {"a.1 = 2", "{}", "1:3 a name is missing after the '.'"},
    {"a =", "{}", "1:4 a value is missing before the end of the file"},
    {"a = yes\nb = 2", "{a=BAD b=2}", "1:5 'yes' is no value: a text needs double quotes"},
    {"a = True", "{a=BAD}", "1:5 'True' is no value: a text needs double quotes"},
    {"a = 'x'\nb = 2", "{a=BAD b=2}", "1:5 strings take double quotes: \"…\", not '…'"},
    {"a = \"x\nb = 2", "{a=BAD b=2}", "1:5 string is not closed on its line"},
    {"a = \"\\q\"\nb = 2", "{a=BAD b=2}", "1:6 unknown escape in a string"},
    {"a = \"\\ud800\"", "{a=BAD}", "1:6 half of a surrogate pair is no character"},
    {"a = \"\\u0000\"", "{a=BAD}", "1:6 \\u0000 (NUL) cannot stand in a text"},
    {"a = \"\\u00g0\"", "{a=BAD}", "1:6 \\u takes four hexadecimal digits"},
    {"a = 00:05:00\nb = 1", "{a=BAD b=1}", "1:5 '00:05:00' is no number"},
    {"a = 10m", "{a=BAD}", "1:5 '10m' is no number"},
    {"a = 007", "{a=BAD}", "1:5 '007' is no number"},
    {"a = 1.", "{a=BAD}", "1:5 '1.' is no number"},
    {"a = [1 2]\nb = 3", "{a=[1 2] b=3}", "1:8 ',' is missing between the items of a list"},
    {"a = [1,, 2]", "{a=[1 2]}", "1:8 one ',' too many"},
    {"a = [1, 2\nb = 3", "{a=[1 2] b=3}",
     "2:1 ']' is missing: what opened on line 1, column 5 is not closed"},
    {"a = [\n  { x = 1\n]\nb = 3", "{a=[{x=1}] b=3}",
     "3:1 '}' is missing: what opened on line 2, column 3 is not closed"},
    {"a = {", "{a={}}", "1:6 '}' is missing: what opened on line 1, column 5 is not closed"},
    {"}\na = 1", "{a=1}", "1:1 unexpected '}': a property is written name = value"},
    {"a = ]\nb = 1", "{b=1}",
     "1:5 a value is missing before ']'\n1:5 unexpected ']': a property is "
     "written name = value"},
    {"a = @reff(\"x\")\nb = 1", "{a=BAD b=1}",
     "1:6 references are @ref(\"…\"), @prompt(\"…\") and @json(\"…\")"},
    {"a = @ref(x)\nb = 1", "{a=BAD b=1}", "1:10 a reference is written @ref(\"name\")"},
    {"a = @ref \"x\"\nb = 1", "{a=BAD b=1}", "1:10 a reference is written @ref(\"name\")"},
    {"a = 1 b = 2", "{a=1 b=2}", "1:7 each property of a file begins on a line of its own"},
    {"/* open\na = 1", "{}", "1:1 comment is not closed: no '*/' follows"},
    {"a = <<EOT\nx\n", "{}", "1:5 text is not closed: no line is just 'EOT'"},
    {"a = << \nb = 1", "{a=BAD b=1}",
     "1:5 after << (or <<-) comes one word, then the lines, then that word on a line of its own"},
    {"a = 1 ; b = 2\nc = 3", "{a=1 c=3}", "1:7 unexpected character ';'"},
    {"é = 1\nb = 2", "{b=2}", "1:1 unexpected character 'é'"},
    {"a = \xe2\x80\x9cx\xe2\x80\x9d\nb = 2", "{a=BAD b=2}",
     "1:5 strings take straight double quotes: \"…\""},
    // Columns are characters, not bytes.
    {"a = \"é日本\" x", "{a='é日本'}",
     "1:11 each property of a file begins on a line of its own\n"
     "1:12 '=' is missing after 'x'"},
    // All faults of a file at once.
    {"a = yes\nb = [1 2]\nc = \nd = 4", "{a=BAD b=[1 2] d=4}",
     "1:5 'yes' is no value: a text needs double quotes\n"
     "2:8 ',' is missing between the items of a list\n"
     "4:1 a value is missing before 'd'"},
};

static void test_cases(void)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        parsed p;

        parse(&p, cases[i].text, strlen(cases[i].text));
        printf("# case %zu: %s\n", i, cases[i].tree);
        CHECK_STR(mt_buf_str(&p.tree), cases[i].tree);
        CHECK_STR(mt_buf_str(&p.report), cases[i].report);
        CHECK(p.file->failed == (cases[i].report[0] != '\0'));
        done(&p);
    }
}

// Every prefix and every byte left out of good text: no crash, and a fault or a tree.
static void test_damage(void)
{
    static const char text[] = "// x\na.b = [ { c = \"d\\u00e9\" e = @ref(\"f\") }, <<-EOT\n  g\n  "
                               "EOT\n, -1.5 ]\n/* h */ i = { j = null, k = true }\n";
    char copy[sizeof(text)];

    for (size_t i = 0; i < sizeof(text); i++) {
        parsed p;

        parse(&p, text, i);
        done(&p);
        memcpy(copy, text, i);
        memcpy(copy + i, text + i + 1, sizeof(text) - i - 1);
        parse(&p, copy, sizeof(text) - 2);
        done(&p);
    }
    CHECK(true);
}

// ---- hostile input ----

static void check_fast(const char *what, const char *text, size_t len, const char *report)
{
    parsed p;
    int64_t start = mt_monotonic_us();

    parse(&p, text, len);
    printf("# %s: %lld us\n", what, (long long)(mt_monotonic_us() - start));
    CHECK(mt_monotonic_us() - start < 1000000);
    CHECK_STR(mt_buf_str(&p.report), report);
    CHECK(p.file->failed);
    done(&p);
}

static char *repeat(const char *unit, size_t count, const char *head)
{
    size_t len = strlen(unit), at = strlen(head);
    char *text = malloc(at + len * count + 1);

    memcpy(text, head, at);
    for (size_t i = 0; i < count; i++, at += len)
        memcpy(text + at, unit, len);
    text[at] = '\0';
    return text;
}

static void check_repeat(const char *unit, size_t count, const char *head, const char *report)
{
    _cleanup_free_ char *text = repeat(unit, count, head);

    check_fast(unit, text, strlen(text), report);
}

static void test_hostile(void)
{
    static const char deep[] = "nested deeper than 64 levels";
    char line[128], nul[] = "a = \"x\0y\"", latin[] = "a = \"caf\xe9\"";
    _cleanup_free_ char *text = NULL;
    parsed p;

    (void)snprintf(line, sizeof(line), "1:68 %s", deep);
    check_repeat("[", 100000, "a = ", line);
    (void)snprintf(line, sizeof(line), "1:1 unexpected '{': a property is written name = value");
    check_repeat("{", 100000, "", line);
    check_repeat("{ a = ", 100000, "a = ", "1:383 nested deeper than 64 levels");
    check_repeat("a.", 100000, "", "1:129 nested deeper than 64 levels");
    check_repeat("x", MT_MTR_MAX_BYTES - 10, "a = \"", "1:5 string is not closed on its line");
    check_repeat("x", MT_MTR_MAX_BYTES, "a = \"",
                 "0:0 the file is over 1024 KiB, the limit of a resource file");
    check_repeat("0,", 200000, "a = [", "1:200002 more than 100000 values in one file");
    check_repeat("\n", 1000000, "a = <<E", "1:5 text is not closed: no line is just 'E'");
    check_repeat("x", 1000000, "/*", "1:1 comment is not closed: no '*/' follows");

    text = repeat("a = yes\n", 500, "");
    parse(&p, text, strlen(text));
    CHECK_INT(mt_mtr_diags_count(p.diags), MT_MTR_MAX_ERRORS + 1);
    CHECK_STR(mt_mtr_diags_at(p.diags, MT_MTR_MAX_ERRORS)->message,
              "more than 100 errors in this file: correct these first");
    done(&p);

    parse(&p, nul, sizeof(nul) - 1);
    CHECK_STR(mt_buf_str(&p.report), "1:7 NUL byte (0x00) in a text file");
    done(&p);
    parse(&p, latin, sizeof(latin) - 1);
    CHECK_STR(mt_buf_str(&p.report), "1:9 byte 0xe9 is not UTF-8: save the file as UTF-8");
    done(&p);
}

static void test_many_members(void)
{
    mt_buf b = MT_BUF_INIT(1 << 20);
    parsed p;

    for (int i = 0; i < 2000; i++)
        (void)mt_buf_addf(&b, "k%d = 1\n", i);
    parse(&p, mt_buf_str(&b), b.len);
    CHECK_STR(mt_buf_str(&p.report), "1001:1 more than 1000 members in one object");
    done(&p);
    mt_buf_done(&b);
}

static void test_format_of_diagnostics(void)
{
    _cleanup_buf_ mt_buf out = MT_BUF_INIT(4096);
    parsed p;
    static const char text[] = "a = 1\n\tb = [\"é\" 2]\n";

    parse(&p, text, sizeof(text) - 1);
    CHECK_INT(mt_mtr_diags_count(p.diags), 1);
    CHECK_INT(mt_mtr_diag_format(mt_mtr_diags_at(p.diags, 0), &out), 0);
    CHECK_STR(mt_buf_str(&out), "x.mtr:2:11: error: ',' is missing between the items of a list\n"
                                "  \tb = [\"é\" 2]\n"
                                "  \t         ^\n");
    done(&p);
}

static void test_words_without_quotes(void)
{
    static const struct {
        const char *text, *hint;
    } words[] = {
        {"a = tru", "write true, or \"tru\" for a text"},
        {"a = flase", "write false, or \"flase\" for a text"},
        {"a = TRUE", "write true, or \"TRUE\" for a text"},
        {"a = yes", "write true, or \"yes\" for a text"},
        {"a = Off", "write false, or \"Off\" for a text"},
        {"a = None", "write null, or \"None\" for a text"},
        {"a = internet", "write \"internet\""},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(words); i++) {
        parsed p;

        parse(&p, words[i].text, strlen(words[i].text));
        CHECK_INT(mt_mtr_diags_count(p.diags), 1);
        CHECK_STR(mt_mtr_diags_at(p.diags, 0)->hint, words[i].hint);
        done(&p);
    }
}

int main(void)
{
    test_cases();
    test_words_without_quotes();
    test_damage();
    test_hostile();
    test_many_members();
    test_format_of_diagnostics();
    return TAP_DONE();
}
