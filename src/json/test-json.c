// SPDX-License-Identifier: Apache-2.0
#include "json/json.h"

#include "base/tap.h"

#include <errno.h>
#include <pthread.h>

static mt_json *parse(const char *text)
{
    mt_json *v = NULL;

    return mt_json_parse(text, strlen(text), NULL, &v, NULL) < 0 ? NULL : v;
}

static bool accepts(const char *data, size_t len)
{
    _cleanup_json_ mt_json *v = NULL;

    return mt_json_parse(data, len, NULL, &v, NULL) == 0;
}

// text parsed and written must be expect (text itself when NULL).
static void check_echo(const char *text, const char *expect)
{
    _cleanup_json_ mt_json *v = parse(text);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);

    CHECK(v != NULL);
    CHECK_INT(mt_json_write(v, &b, 0), 0);
    CHECK_STR(mt_buf_str(&b), expect ? expect : text);
}

static void test_accepted(void)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-1",
        "0.5",
        "1.10",
        "1e400",
        "1E+2",
        "-0.0e-0",
        "123456789012345678901234567890",
        "\"\"",
        "\"a\"",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "{\"a\":[]}",
        "[1,2,3]",
        "{\"\":0}",
        "{\"a\":1,\"A\":2}",
        "[null,true,false,\"x\",1.5,{\"a\":{}}]",
        "\"\xe2\x82\xac\"",
        "\"\xf0\x9f\x98\x80\"",
        "\"\xef\xbf\xbf\"",
        "\"\xf4\x8f\xbf\xbf\"",
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(texts); i++)
        check_echo(texts[i], NULL);
    check_echo(" \t\r\n[ 1 , 2 ]\n", "[1,2]");
    check_echo("{ \"a\" : 1 , \"b\" : [ ] }", "{\"a\":1,\"b\":[]}");
    check_echo("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"",
               "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check_echo("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
    check_echo("\"\\u0000\\u001f\\u007f\"", "\"\\u0000\\u001f\\u007f\"");
    check_echo("\"\\uFFFF\"", "\"\xef\xbf\xbf\"");
}

static void test_refused(void)
{
    static const char *const texts[] = {
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "NaN",
        "Infinity",
        "-",
        "-a",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "1.e1",
        "1e",
        "1e+",
        "0x10",
        "1_000",
        "[",
        "]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1,,2]",
        "{",
        "}",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        "{\"a\" 1}",
        "{\"a\"::1}",
        "{\"a\":1 \"b\":2}",
        "{,}",
        "[}",
        "{]",
        "[1}",
        "{\"a\":1]",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\",
        "\"\\x\"",
        "\"\\u\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\U0041\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800\\ud800\"",
        "\"\\ud800x\"",
        "\"\t\"",
        "\"\n\"",
        "\"\x1f\"",
        "'a'",
        "1 2",
        "[] []",
        "nullx",
        "true,",
        "/**/1",
        "1//",
        "#1",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "\xef\xbb\xbf{}",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe2\x82\"",
        "[\xff]",
        "\xc2\xa0[]",
        "\v1",
        "\f[]",
        "[1]\xff",
        "\"\xe2\x28\xa1\"",
        "\"\\a\"",
        "\"\\0\"",
        "{\"a\":}",
        "{:1}",
        "[-]",
        "[1e1.5]",
        "\xe2\x80\xa8[]",
        "1\xc3\xa9",
        "[\"a\",\n4\n,1,",
        "{\"x\", null}",
        "{[1]:2}",
        "*",
        "[\"\"\"",
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(texts); i++) {
        if (!CHECK(!accepts(texts[i], strlen(texts[i]))))
            printf("# accepted: %s\n", texts[i]);
    }
    CHECK(!accepts("\"\0\"", 3));
    CHECK(!accepts("1\0", 2));
    CHECK(!accepts("\0", 1));
    CHECK(!accepts(NULL, 0));
    CHECK(!accepts("\"\\\0\"", 4));
}

// Every proper beginning of a document that needs its end is refused.
static void test_cut(void)
{
    static const char text[] =
        "{\"a\":[1,2.5e3,\"x\\u20ac\\n\",{\"b\":null,\"c\":true}],\"d\":false}";

    for (size_t len = 0; len < sizeof(text) - 1; len++)
        CHECK(!accepts(text, len));
    CHECK(accepts(text, sizeof(text) - 1));
}

static void check_error(const char *text, const char *sentence)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_json *v = NULL;

    CHECK_INT(mt_json_parse(text, strlen(text), NULL, &v, &err), -1);
    CHECK_STR(mt_err_sentence(err), sentence);
}

static void test_places(void)
{
    mt_json_place place = {0};
    mt_json *v = NULL;

    check_error("{\n  \"a\": 1,\n  \"a\": 2\n}",
                "line 3, column 3: the name 'a' stands twice in one object");
    check_error("[1,\n \xe2\x82\xac]", "line 2, column 2: a value is expected here");
    check_error("[\"\xe2\x82\xac\", x]", "line 1, column 7: a value is expected here");
    check_error("[1", "line 1, column 3: the text ends where ',' or ']' is expected");
    check_error("\"\x01\"", "line 1, column 2: control byte 0x01 in a string: write it as \\u0001");
    check_error("\"\\ud800\"", "line 1, column 2: \\ud800 is half of a surrogate pair");
    check_error("[\"abc]", "line 1, column 2: a string without its closing quote");
    check_error("[012]", "line 1, column 2: a number with a leading zero");
    check_error("{\"a\\u001b[31m\":1,\"a\\u001b[31m\":1}",
                "line 1, column 18: the name 'a?[31m' stands twice in one object");
    CHECK_INT(mt_json_parse_at("[\n?", 3, NULL, &v, &place, NULL), -1);
    CHECK_INT(place.offset, 2);
    CHECK_INT(place.line, 2);
    CHECK_INT(place.column, 1);
}

static char *nested(size_t depth, const char *open, const char *inner, const char *close)
{
    mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);

    for (size_t i = 0; i < depth; i++)
        (void)mt_buf_adds(&b, open);
    (void)mt_buf_adds(&b, inner);
    for (size_t i = 0; i < depth; i++)
        (void)mt_buf_adds(&b, close);
    return mt_buf_take(&b);
}

static bool deep_ok(size_t depth, unsigned limit, const char *open, const char *close)
{
    _cleanup_free_ char *text = nested(depth, open, "1", close);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);
    _cleanup_json_ mt_json *v = NULL, *copy = NULL;
    mt_json_limits limits = MT_JSON_LIMITS_INIT;

    limits.depth = limit;
    if (mt_json_parse(text, strlen(text), &limits, &v, NULL) < 0)
        return false;
    copy = mt_json_copy(v);
    CHECK_INT(mt_json_write(copy, &b, 0), 0);
    CHECK_STR(mt_buf_str(&b), text);
    CHECK(mt_json_equal(v, copy));
    return true;
}

static void test_depth(void)
{
    _cleanup_free_ char *hundred_thousand = nested(100000, "[", "", "");
    _cleanup_free_ char *objects = nested(100000, "{\"a\":", "", "");

    CHECK(deep_ok(10, 10, "[", "]"));
    CHECK(!deep_ok(11, 10, "[", "]"));
    CHECK(deep_ok(1000, 5000, "[", "]"));
    CHECK(deep_ok(1000, 5000, "{\"a\":", "}"));
    CHECK(!deep_ok(1001, 5000, "[", "]"));
    CHECK(!accepts(hundred_thousand, strlen(hundred_thousand)));
    CHECK(!accepts(objects, strlen(objects)));
}

static void test_limits(void)
{
    mt_json_limits limits = {.bytes = 20, .values = 4, .depth = 3, .string = 3};
    _cleanup_err_ mt_err *err = NULL;
    mt_json *v = NULL;

    CHECK_INT(mt_json_parse("[1,2,3]", 7, &limits, &v, NULL), 0);
    v = mt_json_unref(v);
    CHECK_INT(mt_json_parse("[1,2,3,4]", 9, &limits, &v, &err), -1);
    CHECK_INT(mt_err_code(err), MT_E_TOO_LARGE);
    CHECK_INT(mt_json_parse("\"abc\"", 5, &limits, &v, NULL), 0);
    v = mt_json_unref(v);
    CHECK_INT(mt_json_parse("\"abcd\"", 6, &limits, &v, NULL), -1);
    CHECK_INT(mt_json_parse("\"\\u0061bc\"", 10, &limits, &v, NULL), 0);
    v = mt_json_unref(v);
    CHECK_INT(mt_json_parse("                    1", 21, &limits, &v, NULL), -1);
    limits.skip_bom = true;
    CHECK_INT(mt_json_parse("\xef\xbb\xbf[]", 5, &limits, &v, NULL), 0);
    v = mt_json_unref(v);
}

static void check_int(const char *text, bool fits, int64_t expect)
{
    _cleanup_json_ mt_json *v = parse(text);
    int64_t got = 77;

    CHECK_INT(mt_json_as_int64(v, &got), fits);
    CHECK_INT(got, fits ? expect : 77);
}

static void test_numbers(void)
{
    _cleanup_json_ mt_json *big = parse("1e400"), *tenth = parse("0.1"), *text = parse("\"1\"");
    double d = 0;

    check_int("0", true, 0);
    check_int("-0.000e5", true, 0);
    check_int("0e99999999999999999999", true, 0);
    check_int("9223372036854775807", true, INT64_MAX);
    check_int("-9223372036854775808", true, INT64_MIN);
    check_int("9223372036854775808", false, 0);
    check_int("-9223372036854775809", false, 0);
    check_int("18446744073709551616", false, 0);
    check_int("99999999999999999999", false, 0);
    check_int("1e18", true, 1000000000000000000);
    check_int("1e19", false, 0);
    check_int("1.0", true, 1);
    check_int("100e-2", true, 1);
    check_int("1.5e1", true, 15);
    check_int("1.5", false, 0);
    check_int("1e-1", false, 0);
    check_int("10.020e3", true, 10020);
    check_int("1e99999999999999999999", false, 0);
    check_int("1e-99999999999999999999", false, 0);
    check_int("0.00000000000000000000000000001e29", true, 1);
    check_int("100000000000000000000000000000e-29", true, 1);
    CHECK(!mt_json_as_double(big, &d));
    CHECK(mt_json_as_double(tenth, &d) && d == 0.1);
    CHECK(!mt_json_as_double(text, &d));
    CHECK(!mt_json_as_double(NULL, &d));
}

static bool equal(const char *a, const char *b)
{
    _cleanup_json_ mt_json *x = parse(a), *y = parse(b);
    bool r = mt_json_equal(x, y);

    CHECK(x && y);
    CHECK_INT(mt_json_equal(y, x), r);
    return r;
}

static void test_equal(void)
{
    CHECK(equal("1", "1.0"));
    CHECK(equal("10", "1e1"));
    CHECK(equal("0", "-0.0"));
    CHECK(equal("123.450", "12345e-2"));
    CHECK(equal("1.2", "12e-1"));
    CHECK(!equal("1.2", "1.20000000000000000000000000001"));
    CHECK(!equal("1", "-1"));
    CHECK(!equal("1e99999999999999999999", "1e99999999999999999998"));
    CHECK(equal("1e99999999999999999999", "1e99999999999999999999"));
    CHECK(!equal("12345678901234567890", "12345678901234567891"));
    CHECK(!equal("1", "\"1\""));
    CHECK(!equal("0", "false"));
    CHECK(!equal("null", "false"));
    CHECK(equal("{\"a\":1,\"b\":[1,{}]}", "{\"b\":[1.0,{}],\"a\":1}"));
    CHECK(!equal("{\"a\":1}", "{\"b\":1}"));
    CHECK(!equal("{\"a\":1}", "{\"a\":1,\"b\":1}"));
    CHECK(!equal("[1,2]", "[2,1]"));
    CHECK(!equal("[[1],[2]]", "[[1],[3]]"));
    CHECK(!equal("[]", "{}"));
    CHECK(mt_json_equal(NULL, NULL));
}

static void test_access(void)
{
    _cleanup_json_ mt_json *v =
        parse("{\"a\":[10,{\"x/y\":1,\"m~n\":2,\"\":3}],\"\":5,\"t\":true}");
    int64_t i;
    mt_str name = mt_json_name_at(v, 0);

    CHECK(mt_str_eq(name, "a"));
    CHECK(mt_json_name_at(v, 3).data == NULL);
    CHECK(mt_json_as_int64(mt_json_pointer(v, MT_STR("/a/0")), &i) && i == 10);
    CHECK(mt_json_as_int64(mt_json_pointer(v, MT_STR("/a/1/x~1y")), &i) && i == 1);
    CHECK(mt_json_as_int64(mt_json_pointer(v, MT_STR("/a/1/m~0n")), &i) && i == 2);
    CHECK(mt_json_as_int64(mt_json_pointer(v, MT_STR("/a/1/")), &i) && i == 3);
    CHECK(mt_json_as_int64(mt_json_pointer(v, MT_STR("/")), &i) && i == 5);
    CHECK(mt_json_pointer(v, MT_STR("")) == v);
    CHECK(!mt_json_pointer(v, MT_STR("a")));
    CHECK(!mt_json_pointer(v, MT_STR("/a/2")));
    CHECK(!mt_json_pointer(v, MT_STR("/a/00")));
    CHECK(!mt_json_pointer(v, MT_STR("/a/-")));
    CHECK(!mt_json_pointer(v, MT_STR("/a/1/m~2n")));
    CHECK(!mt_json_pointer(v, MT_STR("/a/0/b")));
    CHECK(!mt_json_pointer(NULL, MT_STR("/a")));
    CHECK(mt_json_is_true(mt_json_get(v, "t")));
    CHECK(!mt_json_get(v, "nope"));
    CHECK(!mt_json_get(NULL, "a"));
    CHECK_INT(mt_json_count(NULL), 0);
    CHECK_STR(mt_json_text(mt_json_get(v, "a"), "-"), "-");
}

static void test_building(void)
{
    _cleanup_json_ mt_json *v = mt_json_new_object(), *list = mt_json_new_array(), *copy = NULL;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1000);

    (void)mt_json_append(list, mt_json_new_int(INT64_MIN));
    (void)mt_json_append(list, mt_json_new_double(0.1));
    (void)mt_json_append(list, mt_json_new_number(MT_STR("1.10")));
    (void)mt_json_append(list, mt_json_new_string(MT_STR("a\xff\"\n\0b")));
    (void)mt_json_set(v, "list", mt_json_ref(list));
    (void)mt_json_set(v, "n", mt_json_new_null());
    (void)mt_json_set(v, "n", mt_json_new_bool(true));
    (void)mt_json_set(v, "e", mt_json_new_object());
    (void)mt_json_set(v, "t", mt_json_new_text(NULL));
    CHECK(mt_json_ok(v));
    CHECK_INT(mt_json_write(v, &b, 0), 0);
    CHECK_STR(mt_buf_str(&b),
              "{\"list\":[-9223372036854775808,0.1,1.10,\"a\xef\xbf\xbd\\\"\\n\\u0000b\"],"
              "\"n\":true,\"e\":{},\"t\":null}");
    mt_buf_clear(&b);
    copy = mt_json_copy(v);
    (void)mt_json_set(copy, "n", mt_json_new_int(2));
    CHECK(mt_json_is_true(mt_json_get(v, "n")));
    CHECK(!mt_json_equal(v, copy));
    CHECK_INT(mt_json_write(mt_json_get(copy, "e"), &b, MT_JSON_PRETTY), 0);
    CHECK_STR(mt_buf_str(&b), "{}");
    CHECK(mt_json_new_number(MT_STR("1.")) == NULL);
    CHECK(mt_json_new_number(MT_STR(" 1")) == NULL);
    CHECK(mt_json_new_double(1.0 / 0.0) == NULL);
}

static void test_sticky_failure(void)
{
    _cleanup_json_ mt_json *v = mt_json_new_object(), *outer = mt_json_new_array();
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(100);

    CHECK_INT(mt_json_set(v, "a", NULL), -ENOMEM);
    CHECK_INT(mt_json_set(v, "b", mt_json_new_int(1)), 0);
    CHECK(!mt_json_ok(v));
    CHECK_INT(mt_json_append(outer, MT_TAKE_PTR(v)), -ENOMEM);
    CHECK(!mt_json_ok(outer));
    CHECK(mt_json_write(outer, &b, 0) < 0);
    CHECK_INT(b.len, 0);
    CHECK_INT(mt_json_set(NULL, "a", mt_json_new_array()), -ENOMEM);
    CHECK(!mt_json_ok(NULL));
}

static void test_build_depth(void)
{
    _cleanup_json_ mt_json *v = mt_json_new_array(), *outer = NULL;
    int r = 0;

    for (int i = 1; i < MT_JSON_DEPTH_MAX; i++) {
        mt_json *next = mt_json_new_array();

        r |= mt_json_append(next, v);
        v = next;
    }
    CHECK_INT(r, 0);
    CHECK(mt_json_ok(v));
    outer = mt_json_new_array();
    CHECK_INT(mt_json_append(outer, MT_TAKE_PTR(v)), -EMSGSIZE);
    CHECK(!mt_json_ok(outer));
}

static void test_large_object(void)
{
    _cleanup_json_ mt_json *v = mt_json_new_object(), *back = NULL;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 22);
    char name[32];
    int64_t i;

    for (int n = 0; n < 20000; n++) {
        (void)snprintf(name, sizeof(name), "member-%d", n);
        (void)mt_json_set(v, name, mt_json_new_int(n));
    }
    (void)mt_json_set(v, "member-7", mt_json_new_int(-7));
    CHECK(mt_json_ok(v));
    CHECK_INT(mt_json_count(v), 20000);
    CHECK(mt_json_as_int64(mt_json_get(v, "member-19999"), &i) && i == 19999);
    CHECK(mt_json_as_int64(mt_json_get(v, "member-7"), &i) && i == -7);
    CHECK(!mt_json_get(v, "member-20000"));
    CHECK_INT(mt_json_write(v, &b, MT_JSON_PRETTY), 0);
    CHECK_INT(mt_json_parse(b.data, b.len, NULL, &back, NULL), 0);
    CHECK(mt_json_equal(v, back));
    b.len -= 2;
    (void)mt_buf_adds(&b, ",\"member-3\":1}");
    CHECK(!accepts(b.data, b.len));
}

static void test_streaming(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1000), tiny = MT_BUF_INIT(10);
    _cleanup_json_ mt_json *v = parse("{\"x\":[1,{}]}");
    mt_jw w;

    mt_jw_init(&w, &b, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_text(&w, "a", "x\"\x1b");
    mt_jw_member_text(&w, "b", NULL);
    mt_jw_key(&w, "c");
    mt_jw_begin_array(&w);
    mt_jw_int(&w, 1);
    mt_jw_bool(&w, false);
    mt_jw_begin_object(&w);
    mt_jw_end_object(&w);
    mt_jw_string(&w, (mt_str){"\xc3", 1});
    mt_jw_double(&w, 1.5);
    mt_jw_raw(&w, MT_STR("[0]"));
    mt_jw_end_array(&w);
    mt_jw_member_value(&w, "v", v);
    mt_jw_member_time(&w, "t", 1);
    mt_jw_member_time(&w, "t0", 0);
    mt_jw_member_duration(&w, "d", 600000);
    mt_jw_end_object(&w);
    CHECK_INT(b.failed, 0);
    CHECK_STR(mt_buf_str(&b),
              "{\"a\":\"x\\\"\\u001b\",\"b\":null,\"c\":[1,false,{},\"\xef\xbf\xbd\",1.5,[0]],"
              "\"v\":{\"x\":[1,{}]},\"t\":\"1970-01-01T00:00:00.000001Z\",\"t0\":null,"
              "\"d\":\"00:10:00\"}");
    mt_buf_clear(&b);
    CHECK_INT(mt_json_write(v, &b, MT_JSON_PRETTY), 0);
    CHECK_STR(mt_buf_str(&b), "{\n  \"x\": [\n    1,\n    {}\n  ]\n}");
    CHECK_INT(mt_json_write(v, &tiny, 0), -EMSGSIZE);
}

static void check_field(const mt_err *err, const char *field, const char *sentence)
{
    CHECK_INT(mt_err_code(err), MT_E_BAD_FIELD);
    CHECK_STR(mt_err_field(err), field);
    CHECK_STR(mt_err_sentence(err), sentence);
}

static void test_members(void)
{
    _cleanup_json_ mt_json *v =
        parse("{\"name\":\"ab\",\"nul\":\"a\\u0000b\",\"bad\":\"A\\n\",\"n\":5,\"x\":null,\"d\":"
              "\"00:10:00\","
              "\"d2\":\"90\",\"map\":{\"A\":\"1\",\"B\":2},\"ok\":{\"A\":\"1\"},\"list\":[1]}");
    mt_err *err = NULL;
    const mt_json *part;
    int64_t i = 0;
    bool flag = false;
    mt_str s;

    CHECK_INT(mt_json_need_string(v, "name", &s, NULL), 0);
    CHECK_STR(s.data, "ab");
    CHECK_INT(mt_json_need_name(v, "name", &s, NULL), 0);
    CHECK_INT(mt_json_need_name(v, "bad", &s, &err), -1);
    check_field(err, "bad",
                "'A?' is not a name: 1 to 63 of a-z 0-9 . _ - and the first of them a "
                "letter or digit");
    err = mt_err_free(err);
    CHECK_INT(mt_json_need_string(v, "nul", &s, &err), -1);
    check_field(err, "nul", "'nul' must not hold a NUL character");
    err = mt_err_free(err);
    CHECK_INT(mt_json_need_bytes(v, "nul", &s, NULL), 0);
    CHECK_INT(s.len, 3);
    CHECK_INT(mt_json_need_string(v, "gone", &s, &err), -1);
    check_field(err, "gone", "'gone' is missing: give a string");
    err = mt_err_free(err);
    CHECK_INT(mt_json_need_string(v, "n", &s, &err), -1);
    check_field(err, "n", "'n' must be a string, not a number");
    err = mt_err_free(err);
    CHECK_INT(mt_json_opt_string(v, "x", &s, NULL), 0);
    CHECK(s.data == NULL);
    CHECK_INT(mt_json_opt_int(v, "n", (mt_json_range){1, 5, 9}, &i, NULL), 0);
    CHECK_INT(i, 5);
    CHECK_INT(mt_json_opt_int(v, "x", (mt_json_range){1, 5, 9}, &i, NULL), 0);
    CHECK_INT(i, 9);
    CHECK_INT(mt_json_opt_int(v, "n", (mt_json_range){1, 4, 1}, &i, &err), -1);
    check_field(err, "n", "'n' must be a whole number from 1 to 4");
    err = mt_err_free(err);
    CHECK_INT(mt_json_opt_bool(v, "x", true, &flag, NULL), 0);
    CHECK(flag);
    CHECK_INT(mt_json_opt_bool(v, "n", true, &flag, NULL), -1);
    CHECK_INT(mt_json_opt_duration(v, "d", 1, &i, NULL), 0);
    CHECK_INT(i, 600000);
    CHECK_INT(mt_json_opt_duration(v, "d2", 1, &i, NULL), -1);
    CHECK_INT(mt_json_opt_duration(v, "x", 1, &i, NULL), 0);
    CHECK_INT(i, 1);
    CHECK_INT(mt_json_opt_string_map(v, "map", &part, &err), -1);
    check_field(err, "map", "'B' of 'map' must be a string");
    err = mt_err_free(err);
    CHECK_INT(mt_json_opt_string_map(v, "ok", &part, NULL), 0);
    CHECK_INT(mt_json_count(part), 1);
    CHECK_INT(mt_json_opt_array(v, "list", &part, NULL), 0);
    CHECK_INT(mt_json_count(part), 1);
    CHECK_INT(mt_json_opt_object(v, "list", &part, NULL), -1);
    CHECK_INT(mt_json_need_object(v, "the body", NULL), 0);
    CHECK_INT(mt_json_need_object(mt_json_get(v, "list"), "the body", &err), -1);
    CHECK_STR(mt_err_sentence(err), "the body must be a JSON object, not a list");
    err = mt_err_free(err);
}

static void test_only(void)
{
    _cleanup_json_ mt_json *v = parse("{\"name\":1,\"expirse\":2}"), *w = parse("{\"zzz\":2}");
    mt_err *err = NULL;

    CHECK_INT(MT_JSON_ONLY(v, &err, "name", "expires"), -1);
    check_field(err, "expirse", "unknown member 'expirse': did you mean 'expires'?");
    err = mt_err_free(err);
    CHECK_INT(MT_JSON_ONLY(w, &err, "name"), -1);
    check_field(err, "zzz", "unknown member 'zzz'");
    err = mt_err_free(err);
    CHECK_INT(MT_JSON_ONLY(v, NULL, "name", "expirse"), 0);
}

static void *share(void *data)
{
    for (int i = 0; i < 20000; i++) {
        mt_json *v = mt_json_ref(data), *copy = mt_json_copy(v);

        (void)mt_json_set(copy, "mine", mt_json_new_int(i));
        (void)mt_json_unref(copy);
        (void)mt_json_unref(v);
    }
    return NULL;
}

static void test_threads(void)
{
    mt_json *v = parse("{\"a\":{\"b\":[1,2,3]},\"c\":\"x\",\"n\":null}");
    pthread_t threads[4];

    for (size_t i = 0; i < MT_ARRAY_SIZE(threads); i++)
        CHECK_INT(pthread_create(&threads[i], NULL, share, v), 0);
    for (size_t i = 0; i < MT_ARRAY_SIZE(threads); i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_INT(mt_json_count(v), 3);
    (void)mt_json_unref(v);
}

static void test_wipe(void)
{
    static const char text[] =
        "{\"a\":\"secret\",\"b\":[\"secret\",{\"c\":\"secret\"},[]],\"n\":1.5}";
    _cleanup_json_ mt_json *v = NULL, *held = NULL;
    mt_str a, b, c;

    CHECK_INT(mt_json_parse(text, strlen(text), NULL, &v, NULL), 0);
    a = mt_json_str(mt_json_get(v, "a"));
    b = mt_json_str(mt_json_at(mt_json_get(v, "b"), 0));
    held = mt_json_ref(mt_json_get(mt_json_at(mt_json_get(v, "b"), 1), "c"));
    c = mt_json_str(held);
    mt_json_wipe(v);
    CHECK(a.data[0] == 0 && a.data[5] == 0 && b.data[0] == 0 && b.data[5] == 0);
    CHECK(mt_str_eq(c, "secret")); // somebody else has it
    CHECK_INT(mt_json_count(v), 3);
    mt_json_wipe(NULL);
    mt_json_wipe(held);
}

static void test_whole(void)
{
    static const struct {
        const char *text;
        bool whole;
    } cases[] = {{"0", true},      {"-0.0", true},    {"1.50e1", true}, {"1e400", true},
                 {"1.5", false},   {"1e-400", false}, {"15e-1", false}, {"0e-5", true},
                 {"\"1\"", false}, {"null", false},   {"[1]", false}};

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        _cleanup_json_ mt_json *v = parse(cases[i].text);

        if (!CHECK(mt_json_is_whole(v) == cases[i].whole))
            printf("# %s\n", cases[i].text);
    }
    CHECK(!mt_json_is_whole(NULL));
}

static mt_json *number(const char *text)
{
    return mt_json_new_number(mt_str_of(text));
}

static void test_exact_numbers(void)
{
    static const struct {
        const char *a, *b;
        int order;
        bool multiple;
    } cases[] = {
        {"1", "1.0", 0, true},
        {"10", "1e1", 0, true},
        {"0", "-0.0", 0, true},
        {"0", "5", -1, true},
        {"-1", "1", -1, true},
        {"-2", "-1", -1, true},
        {"1.5", "1", 1, false},
        {"0.0075", "0.0001", 1, true},
        {"0.00751", "0.0001", 1, false},
        {"1e308", "0.123456789", 1, false},
        {"1e308", "0.5", 1, true},
        {"12391239123", "1e-8", 1, true},
        {"1e-8", "1e-9", 1, true},
        {"1e-9", "1e-8", -1, false},
        {"9007199254740993", "9007199254740992", 1, false},
        {"100000000000000000000000000000000000001", "3", 1, false},
        {"100000000000000000000000000000000000002", "3", 1, true},
        {"1e1000000000000", "1e999999999999", 1, true},
        {"3", "1111111111111111111111111111111111111", -1, false},
        {"3333333333333333333333333333333333333", "1111111111111111111111111111111111111", 1, true},
        {"1e200", "170141183460469231731687303715884105728", 1, false}, // 39 digits
        {"1e50", "1374389534720000000000000", 1, true},                 // 2^37 and 13 zeros
        {"1e49", "1374389534720000000000000", 1, false},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        _cleanup_json_ mt_json *a = number(cases[i].a), *b = number(cases[i].b);
        int order = mt_json_compare(a, b);

        CHECK_INT((order > 0) - (order < 0), cases[i].order);
        CHECK_INT((mt_json_compare(b, a) > 0) - (mt_json_compare(b, a) < 0), -cases[i].order);
        CHECK_INT(mt_json_is_multiple(a, b), cases[i].multiple);
        CHECK_INT(mt_json_equal(a, b), cases[i].order == 0);
        CHECK_INT(mt_json_hash(a) == mt_json_hash(b), cases[i].order == 0);
    }
}

static void test_hash(void)
{
    static const char *const same[] = {"{\"a\":1,\"b\":[2,{}]}", "{\"b\":[2.0,{}],\"a\":1e0}"};
    static const char *const others[] = {"null",      "false",     "true", "0",     "\"\"",
                                         "[]",        "{}",        "[[]]", "[0,1]", "[1,0]",
                                         "{\"a\":0}", "{\"b\":0}", "\"0\""};
    uint64_t seen[MT_ARRAY_SIZE(others)];

    for (size_t i = 0; i < MT_ARRAY_SIZE(others); i++) {
        _cleanup_json_ mt_json *v = NULL;

        CHECK_INT(mt_json_parse(others[i], strlen(others[i]), NULL, &v, NULL), 0);
        seen[i] = mt_json_hash(v);
        for (size_t j = 0; j < i; j++)
            CHECK(seen[i] != seen[j]);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(same); i++) {
        _cleanup_json_ mt_json *v = NULL;

        CHECK_INT(mt_json_parse(same[i], strlen(same[i]), NULL, &v, NULL), 0);
        seen[i] = mt_json_hash(v);
    }
    CHECK(seen[0] == seen[1]);
}

static void test_place_of(void)
{
    static const char text[] =
        "{ \"a\" : [1, {\"\\u0041~/\": \"}]\\\"\"},\n  -2.5 ,null],\n\"b\":{}}";
    static const struct {
        const char *pointer;
        unsigned line, column;
    } cases[] = {
        {"", 1, 1},       {"/a", 1, 9},   {"/a/0", 1, 10}, {"/a/1", 1, 13}, {"/a/1/A~0~1", 1, 26},
        {"/a/2", 2, 3},   {"/a/3", 2, 9}, {"/b", 3, 5},    {"/b/c", 3, 5},  {"/c", 1, 1},
        {"/a/9/x", 1, 9}, {"/a/x", 1, 9},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        mt_json_place p = mt_json_place_of(text, strlen(text), mt_str_of(cases[i].pointer));

        CHECK_INT(p.line, cases[i].line);
        CHECK_INT(p.column, cases[i].column);
    }
}

int main(void)
{
    test_whole();
    test_wipe();
    test_accepted();
    test_refused();
    test_cut();
    test_places();
    test_depth();
    test_limits();
    test_numbers();
    test_equal();
    test_access();
    test_building();
    test_sticky_failure();
    test_build_depth();
    test_large_object();
    test_streaming();
    test_members();
    test_only();
    test_threads();
    test_exact_numbers();
    test_hash();
    test_place_of();
    return TAP_DONE();
}
