// SPDX-License-Identifier: Apache-2.0
// Values that are changed in place: what they weigh, who may change them, members that come and go.
#include "json/json.h"

#include "base/tap.h"

#include <errno.h>

static mt_json *parse(const char *text)
{
    mt_json *v = NULL;

    return mt_json_parse(text, strlen(text), NULL, &v, NULL) < 0 ? NULL : v;
}

// v is as if it had just been read: what it weighs, how high it is, what its names lead to.
static bool as_if_read(const mt_json *v)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 22);
    _cleanup_json_ mt_json *read = NULL;
    bool same;

    if (mt_json_write(v, &b, 0) < 0 || mt_json_parse(b.data, b.len, NULL, &read, NULL) < 0)
        return false;
    same = mt_json_equal(v, read) && mt_json_equal(read, v) &&
           mt_json_weight(v) == mt_json_weight(read) && mt_json_height(v) == mt_json_height(read);
    if (!same)
        printf("# %zu, %u: %s\n", mt_json_weight(v), mt_json_height(v), mt_buf_str(&b));
    return same;
}

static void test_weight(void)
{
    _cleanup_json_ mt_json *v = parse("{\"a\":[1,\"xyz\",{}],\"b\":null}");
    _cleanup_json_ mt_json *part = mt_json_ref(mt_json_get(v, "a")), *twice = mt_json_new_array();
    size_t weight = mt_json_weight(v);

    CHECK_INT(mt_json_weight(NULL), 0);
    CHECK_INT(mt_json_weight(mt_json_get(v, "b")), 0);
    CHECK(weight > mt_json_weight(part));
    CHECK_INT(mt_json_height(v), 3);
    CHECK_INT(mt_json_height(mt_json_get(v, "b")), 0);
    CHECK(as_if_read(v));
    for (int i = 0; i < 100; i++) { // each holds the one before it twice
        mt_json *next = mt_json_new_array();

        (void)mt_json_append(next, mt_json_ref(twice));
        (void)mt_json_append(next, twice);
        twice = next;
    }
    CHECK(mt_json_ok(twice));
    CHECK(mt_json_weight(twice) == SIZE_MAX);
    twice = mt_json_own(twice);
    CHECK(mt_json_remove_at(twice, 0) && mt_json_remove_at(twice, 0));
    CHECK(mt_json_weight(twice) == SIZE_MAX); // it cannot tell any more
    CHECK_INT(mt_json_height(twice), 1);
}

static void test_weight_limit(void)
{
    static const char text[] = "[[1,2,3],{\"name\":\"a text\"},[]]";
    _cleanup_json_ mt_json *whole = parse(text), *v = NULL;
    mt_json_limits limits = MT_JSON_LIMITS_INIT;
    _cleanup_err_ mt_err *err = NULL;

    limits.weight = mt_json_weight(whole);
    CHECK_INT(mt_json_parse(text, strlen(text), &limits, &v, NULL), 0);
    limits.weight--;
    CHECK_INT(mt_json_parse(text, strlen(text), &limits, &v, &err), -1);
    CHECK_INT(mt_err_code(err), MT_E_TOO_LARGE);
}

static void test_nul(void)
{
    _cleanup_json_ mt_json *a = parse("{\"x\":[[\"a\\u0000\"]]}"), *b = parse("{\"\\u0000\":1}");
    _cleanup_json_ mt_json *c = parse("{\"x\":[\"a\\u0001\"]}"), *list = mt_json_new_array();

    CHECK(mt_json_has_nul(a) && mt_json_has_nul(b));
    CHECK(!mt_json_has_nul(c) && !mt_json_has_nul(NULL) && !mt_json_has_nul(list));
    (void)mt_json_append(list, mt_json_new_string((mt_str){"\0", 1}));
    CHECK(mt_json_has_nul(list));
}

static void test_own(void)
{
    _cleanup_json_ mt_json *v = parse("{\"a\":[1],\"b\":2}"), *part = NULL;
    mt_json *same = v, *shared = mt_json_ref(v), *other;

    other = mt_json_own(shared); // two have it
    CHECK(other != v);
    CHECK_INT(mt_json_set(other, "c", mt_json_new_int(3)), 0);
    CHECK_INT(mt_json_count(v), 2);
    CHECK_INT(mt_json_count(other), 3);
    (void)mt_json_unref(other);
    v = mt_json_own(v);
    CHECK(v == same);
    part = mt_json_own(mt_json_ref(mt_json_get(v, "a")));
    CHECK(part != mt_json_get(v, "a"));
    (void)mt_json_unref(part);
    part = mt_json_ref(mt_json_get(v, "a"));
    v = mt_json_unref(v);
    same = part;
    part = mt_json_own(part); // what held it is gone
    CHECK(part == same);
    CHECK_INT(mt_json_append(part, mt_json_new_int(2)), 0);
    CHECK(as_if_read(part));
    CHECK(mt_json_own(mt_json_new_null()) == mt_json_new_null());
    CHECK(mt_json_own(NULL) == NULL);
}

static void test_removing(void)
{
    _cleanup_json_ mt_json *v = parse("{\"a\":1,\"b\":[[]],\"c\":3}");
    _cleanup_json_ mt_json *list = parse("[1,[2],3]"), *expect = parse("{\"a\":1,\"c\":[]}");

    CHECK(!mt_json_remove(v, MT_STR("d")));
    CHECK(mt_json_remove(v, MT_STR("b")));
    CHECK(!mt_json_remove(v, MT_STR("b")));
    CHECK_INT(mt_json_height(v), 1);
    CHECK_INT(mt_json_set(v, "c", mt_json_new_array()), 0);
    CHECK(mt_json_equal(v, expect) && as_if_read(v));
    CHECK(!mt_json_remove(list, MT_STR("a")) && !mt_json_remove_at(v, 0));
    CHECK(!mt_json_remove_at(list, 3) && !mt_json_remove_at(NULL, 0));
    CHECK_INT(mt_json_set_at(list, 0, parse("[4,[5]]")), 0);
    CHECK(mt_json_remove_at(list, 2));
    CHECK(as_if_read(list));
    CHECK_INT(mt_json_height(list), 3);
    CHECK_INT(mt_json_set_at(list, 0, mt_json_new_bool(true)), 0);
    CHECK_INT(mt_json_height(list), 2);
    CHECK(as_if_read(list));
    CHECK_INT(mt_json_set_at(list, 0, NULL), -ENOMEM);
    CHECK(!mt_json_ok(list));
}

static mt_json *some_value(unsigned n)
{
    static const char *const texts[] = {"1",        "[]",   "[[1]]",
                                        "\"text\"", "null", "{\"a\":{\"b\":{}}}"};

    return parse(texts[n % MT_ARRAY_SIZE(texts)]);
}

// In the short way where there is one.
static void replace(mt_json *list, size_t i, mt_json *value)
{
    size_t weight = mt_json_weight(list);

    if (!mt_json_swap_at(list, i, value))
        (void)mt_json_set_at(list, i, value);
    else if (weight != mt_json_weight(list))
        CHECK(!"a swap changes no weight");
}

static void test_swap(void)
{
    _cleanup_json_ mt_json *list = parse("[1,\"ab\",true,[],\"c\"]"), *other = NULL;
    mt_json *two = mt_json_new_int(2), *long_one = mt_json_new_text("abc"), *nul = NULL;

    CHECK(mt_json_swap_at(list, 0, two) && mt_json_at(list, 0) == two);
    CHECK(mt_json_swap_at(list, 2, mt_json_new_null()));
    CHECK(!mt_json_swap_at(list, 1, long_one));
    CHECK(!mt_json_swap_at(list, 3, mt_json_new_null()) && !mt_json_swap_at(list, 5, long_one));
    nul = mt_json_new_string((mt_str){"", 1});
    CHECK(!mt_json_swap_at(list, 4, nul));
    (void)mt_json_unref(nul);
    other = mt_json_ref(list); // somebody else sees it
    CHECK(!mt_json_swap_at(list, 2, mt_json_new_bool(true)));
    (void)mt_json_unref(long_one);
    CHECK(as_if_read(list));
}

// Members come and go, many of them: an object is found to be right after each.
static void test_editing_at_random(void)
{
    _cleanup_json_ mt_json *object = mt_json_new_object(), *list = mt_json_new_array();
    unsigned seed = 1;
    bool right = true;

    for (unsigned n = 0; n < 6000; n++) {
        unsigned chance = seed = seed * 1103515245u + 12345u, names = n / 1000 % 2 ? 300 : 20;
        size_t count = mt_json_count(list);
        char name[16];

        chance >>= 8;
        (void)snprintf(name, sizeof(name), "n%u", chance % names);
        object = mt_json_own(object);
        if (chance % 7 < 3 || n / 1000 % 3 == 2)
            (void)mt_json_remove(object, mt_str_of(name));
        else
            (void)mt_json_set(object, name, some_value(chance / 7));
        if (count < 20 || chance % 5 < 2)
            (void)mt_json_append(list, some_value(chance / 5));
        else if (chance % 5 < 4)
            (void)mt_json_remove_at(list, chance % count);
        else
            replace(list, chance % count, some_value(chance / 5));
        if (n % 16 == 0)
            right = right && as_if_read(object) && as_if_read(list);
    }
    CHECK(right);
    while (mt_json_count(object) > 0)
        (void)mt_json_remove(object, mt_json_name_at(object, mt_json_count(object) / 2));
    CHECK(as_if_read(object));
}

int main(void)
{
    test_weight();
    test_weight_limit();
    test_nul();
    test_own();
    test_removing();
    test_swap();
    test_editing_at_random();
    return TAP_DONE();
}
