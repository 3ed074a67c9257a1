// SPDX-License-Identifier: Apache-2.0
// Sentences, pointers, limits and hostile schemas and values; what keywords mean is for the
// official suite (test-suite.c).
#include "base/tap.h"
#include "schema/schema.h"

#include <pthread.h>

static mt_json *parse(const char *text)
{
    mt_json_limits limits = MT_JSON_LIMITS_INIT;
    mt_json *v = NULL;
    mt_err *err = NULL;

    limits.depth = MT_JSON_DEPTH_MAX;
    if (mt_json_parse(text, strlen(text), &limits, &v, &err) < 0)
        printf("# %s: %s\n", text, mt_err_sentence(err));
    mt_err_free(err);
    return v;
}

static mt_schema *compile(const char *text, mt_err **err)
{
    _cleanup_json_ mt_json *v = parse(text);

    return mt_schema_compile(v, NULL, err);
}

// ---- faults of schemas ----

static void test_bad_schemas(void)
{
    static const struct {
        const char *schema, *field, *sentence;
    } cases[] = {
        {"5", "", "the top level: a schema is an object (or true or false), not a number"},
        {"{\"properties\":{\"a\":{\"type\":\"strng\"}}}", "/properties/a/type",
         "/properties/a/type: 'strng' is no type: did you mean 'string'?"},
        {"{\"properties\":{\"a/b~\":{\"type\":\"text\"}}}", "/properties/a~1b~0/type",
         "/properties/a~1b~0/type: 'text' is no type: array, boolean, integer, null, number, "
         "object and string are"},
        {"{\"type\":[]}", "/type", "/type: a list of types has at least one"},
        {"{\"type\":[5]}", "/type", "/type: a type is a string, not a number"},
        {"{\"items\":[{}]}", "/items",
         "/items: a list of schemas is called prefixItems in draft 2020-12"},
        {"{\"allOf\":[true,5]}", "/allOf/1",
         "/allOf/1: a schema is an object (or true or false), not a number"},
        {"{\"allOf\":[]}", "/allOf", "/allOf: the list has at least one schema"},
        {"{\"allOf\":{}}", "/allOf", "/allOf: a list is expected, not an object"},
        {"{\"maxLength\":-1}", "/maxLength",
         "/maxLength: a whole number from 0 on is expected, not -1"},
        {"{\"maxLength\":\"5\"}", "/maxLength",
         "/maxLength: a whole number from 0 on is expected, not \"5\""},
        {"{\"minContains\":1.5}", "/minContains",
         "/minContains: a whole number from 0 on is expected, not 1.5"},
        {"{\"maximum\":\"5\"}", "/maximum", "/maximum: a number is expected, not a string"},
        {"{\"multipleOf\":0.0}", "/multipleOf",
         "/multipleOf: a number above 0 is expected, not 0.0"},
        {"{\"multipleOf\":1.00000000000000000000000000000000000001}", "/multipleOf",
         "/multipleOf: at most 37 digits, without zeros at either end, are known here"},
        {"{\"pattern\":\"(\"}", "/pattern",
         "/pattern: '(': the pattern is wrong: missing closing parenthesis"},
        {"{\"patternProperties\":{\"\\\\A\":{}}}", "/patternProperties",
         "/patternProperties: '\\A': the pattern has '\\A', which ECMA-262 does not know"},
        {"{\"required\":\"a\"}", "/required", "/required: a list is expected, not a string"},
        {"{\"required\":[null]}", "/required",
         "/required: the names of properties are strings, and item 0 is null"},
        {"{\"required\":[\"a\",\"a\"]}", "/required", "/required: items 0 and 1 are equal"},
        {"{\"dependentRequired\":{\"a\":{}}}", "/dependentRequired",
         "/dependentRequired: a list is expected for each name, not an object"},
        {"{\"$ref\":\"#/$defs/a\"}", "/$ref",
         "/$ref: '#/$defs/a' leads nowhere: nothing is at that pointer"},
        {"{\"$ref\":\"#a\"}", "/$ref", "/$ref: '#a' leads nowhere: no schema has that anchor"},
        {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":[]}}", "/$defs/a",
         "/$defs/a: a schema is an object (or true or false), not a list"},
        {"{\"$ref\":\"https://example.com/a\"}", "/$ref",
         "/$ref: 'https://example.com/a' leads nowhere: a schema refers to itself ('#/$defs/…') "
         "and to the meta-schemas, and nothing is fetched: put what is meant under $defs"},
        {"{\"$ref\":\"file:///etc/passwd\"}", "/$ref",
         "/$ref: 'file:///etc/passwd' leads nowhere: a schema refers to itself ('#/$defs/…') and "
         "to the meta-schemas, and nothing is fetched: put what is meant under $defs"},
        {"{\"$ref\":5}", "/$ref", "/$ref: a string is expected, not a number"},
        {"{\"$ref\":\"#\"}", "/$ref",
         "/$ref: leads back to itself without going into the value, and so to no end: refer to it "
         "from properties or items"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/a\"}],"
         "\"$defs\":{\"a\":{\"not\":{\"$ref\":\"#\"}}}}",
         "/$defs/a/not/$ref",
         "/$defs/a/not/$ref: leads back to itself without going into the value, and so to no end: "
         "refer to it from properties or items"},
        {"{\"if\":true,\"else\":{\"$ref\":\"#\"}}", "/else/$ref",
         "/else/$ref: leads back to itself without going into the value, and so to no end: refer "
         "to it from properties or items"},
        {"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\"}", "/$schema",
         "/$schema: the meta-schema 'https://json-schema.org/draft/2019-09/schema' is not known: "
         "'https://json-schema.org/draft/2020-12/schema' and "
         "'http://json-schema.org/draft-07/schema#' are, or leave $schema away for the former"},
        {"{\"$schema\":7}", "/$schema", "/$schema: the URI of a draft is a string"},
        {"{\"$id\":\"a#b\"}", "/$id",
         "/$id: the URI of a schema has no fragment: $anchor gives one a name"},
        {"{\"$defs\":{\"a\":{\"$id\":\"x\"},\"b\":{\"$id\":\"x\"}}}", "/$defs/b/$id",
         "/$defs/b/$id: another schema has the URI 'x', too"},
        {"{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}", "/$defs/b",
         "/$defs/b: the anchor 'x' stands twice"},
        // What the meta-schemas find.
        {"{\"title\":5}", "/title", "/title: 5 is a number, where a string is expected"},
        {"{\"properties\":{\"a\":{\"deprecated\":\"yes\"}}}", "/properties/a/deprecated",
         "/properties/a/deprecated: \"yes\" is a string, where a boolean is expected"},
        {"{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"readOnly\":1}", "/readOnly",
         "/readOnly: 1 is a number, where a boolean is expected"},
        {"{\"$schema\":\"http://json-schema.org/draft-07/schema#\","
         "\"items\":[{\"type\":\"int\"}]}",
         "/items/0/type",
         "/items/0/type: 'int' is no type: array, boolean, integer, null, number, object and "
         "string are"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        _cleanup_err_ mt_err *err = NULL;
        _cleanup_schema_ mt_schema *s = compile(cases[i].schema, &err);

        CHECK(!s);
        CHECK_STR(mt_err_sentence(err), cases[i].sentence);
        CHECK_STR(mt_err_field(err), cases[i].field);
        CHECK_INT(mt_err_code(err), MT_E_BAD_FIELD);
    }
}

static void test_documents(void)
{
    static const mt_schema_document documents[] = {
        {"https://example.com/a", {"{\"$defs\":{\"n\":{\"maximum\":4}}}", 29}},
        {"https://example.com/bad", {"{\"type\":\"strng\"}", 16}},
        {"https://example.com/cut", {"{\"type\"", 7}},
    };
    const mt_schema_options options = {documents, MT_ARRAY_SIZE(documents)};
    static const char *const refs[][2] = {
        {"{\"$ref\":\"https://example.com/bad\"}",
         "https://example.com/bad#/type: 'strng' is no type: did you mean 'string'?"},
        {"{\"$ref\":\"https://example.com/cut\"}",
         "the document 'https://example.com/cut': line 1, column 8: the text ends where ':' is "
         "expected"},
    };
    _cleanup_json_ mt_json *v = parse("{\"$ref\":\"https://example.com/a#/$defs/n\"}");
    _cleanup_json_ mt_json *five = parse("5");
    _cleanup_schema_ mt_schema *s = mt_schema_compile(v, &options, NULL);
    _cleanup_errors_ mt_schema_errors errors = {0};

    CHECK_INT(mt_schema_validate(s, five, NULL, &errors, NULL), 1);
    CHECK_STR(errors.items[0].schema, "https://example.com/a#/$defs/n/maximum");
    for (size_t i = 0; i < MT_ARRAY_SIZE(refs); i++) {
        _cleanup_err_ mt_err *err = NULL;
        _cleanup_json_ mt_json *ref = parse(refs[i][0]);
        _cleanup_schema_ mt_schema *bad = mt_schema_compile(ref, &options, &err);

        CHECK(!bad);
        CHECK_STR(mt_err_sentence(err), refs[i][1]);
        CHECK_STR(mt_err_field(err), NULL);
    }
}

// ---- faults of values ----

// "sentence (schema pointer)" a line each, or the error.
static char *faults(const char *schema, const char *instance, size_t max)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_schema_ mt_schema *s = compile(schema, &err);
    _cleanup_json_ mt_json *v = parse(instance);
    _cleanup_errors_ mt_schema_errors errors = {.max = max};
    mt_buf b = MT_BUF_INIT(1 << 20);
    int r = s ? mt_schema_validate(s, v, NULL, &errors, &err) : -1;

    if (r < 0)
        (void)mt_buf_adds(&b, mt_err_sentence(err));
    for (size_t i = 0; i < errors.count; i++)
        (void)mt_buf_addf(&b, "%s%s (%s)", i ? "\n" : "", errors.items[i].sentence,
                          errors.items[i].schema);
    if (errors.more)
        (void)mt_buf_adds(&b, "\nmore");
    (void)mt_buf_adds(&b, "");
    CHECK_INT(r, r < 0 ? -1 : errors.count > 0);
    return mt_buf_take(&b);
}

static void expect(const char *schema, const char *instance, const char *expected)
{
    _cleanup_free_ char *got = faults(schema, instance, 0);

    CHECK_STR(got, expected);
}

static void test_sentences(void)
{
    static const char *const cases[][3] = {
        {"{\"maximum\":4}", "5", "the top level: 5 is more than the maximum 4 (/maximum)"},
        {"{\"properties\":{\"items\":{\"items\":{\"maximum\":4}}}}", "{\"items\":[1,2,3,5]}",
         "/items/3: 5 is more than the maximum 4 (/properties/items/items/maximum)"},
        {"{\"minimum\":4}", "3.9", "the top level: 3.9 is less than the minimum 4 (/minimum)"},
        {"{\"exclusiveMaximum\":4}", "4.0",
         "the top level: 4.0 is not less than 4 (/exclusiveMaximum)"},
        {"{\"exclusiveMinimum\":4}", "4",
         "the top level: 4 is not more than 4 (/exclusiveMinimum)"},
        {"{\"multipleOf\":0.01}", "4.02", ""},
        {"{\"multipleOf\":0.01}", "4.021",
         "the top level: 4.021 is not a multiple of 0.01 (/multipleOf)"},
        {"{\"type\":\"integer\"}", "1.0", ""},
        {"{\"type\":\"integer\"}", "1.5",
         "the top level: 1.5 is a number, where an integer is expected (/type)"},
        {"{\"type\":[\"string\",\"null\",\"object\"]}", "[]",
         "the top level: a list stands where null, a string or an object is expected (/type)"},
        {"{\"enum\":[\"a\",1,null,[]]}", "\"b\"",
         "the top level: \"b\" is none of \"a\", 1, null, [] (/enum)"},
        {"{\"const\":{\"a\":1}}", "{\"a\":2}",
         "the top level: {\"a\":2} stands where {\"a\":1} is expected (/const)"},
        {"{\"maxLength\":2}", "\"\u00e9\u00e9\U0001F600\"",
         "the top level: the string has 3 characters, more than 2 (/maxLength)"},
        {"{\"minItems\":2}", "[1]", "the top level: the list has 1 item, fewer than 2 (/minItems)"},
        {"{\"maxProperties\":0}", "{\"a\":1}",
         "the top level: the object has 1 member, more than 0 (/maxProperties)"},
        {"{\"pattern\":\"^a+$\"}", "\"b\\n\\u0007\"",
         "the top level: \"b??\" does not match the pattern '^a+$' (/pattern)"},
        {"{\"uniqueItems\":true}", "[1,{\"a\":[]},2,{\"a\":[]},1.0]",
         "the top level: items 0 and 4 are equal (/uniqueItems)"},
        {"{\"required\":[\"a\",\"b\"]}", "{\"b\":1}",
         "the top level: the property 'a' is missing (/required)"},
        {"{\"properties\":{\"name\":{}},\"additionalProperties\":false}", "{\"nmae\":1,\"x\":2}",
         "the top level: the property 'nmae' is not allowed: did you mean 'name'? "
         "(/additionalProperties)\n"
         "the top level: the property 'x' is not allowed (/additionalProperties)"},
        {"{\"properties\":{\"a\":false}}", "{\"a\":1}",
         "/a: nothing is allowed here (/properties/a)"},
        {"{\"properties\":{\"a\":true},\"unevaluatedProperties\":false}", "{\"a\":1,\"b\":2}",
         "the top level: the property 'b' is not allowed (/unevaluatedProperties)"},
        {"{\"prefixItems\":[true],\"unevaluatedItems\":false}", "[1,2]",
         "/1: nothing is allowed here (/unevaluatedItems)"},
        {"{\"propertyNames\":{\"maxLength\":1}}", "{\"a\":1,\"bc\":2}",
         "the top level: the string has 2 characters, more than 1 (/propertyNames/maxLength)"},
        {"{\"propertyNames\":false}", "{\"a\":1}",
         "the top level: the property 'a' is not allowed (/propertyNames)"},
        {"{\"contains\":{\"const\":1}}", "[2]",
         "the top level: no item fits the schema of contains (/contains)"},
        {"{\"contains\":{\"const\":1},\"minContains\":2}", "[1]",
         "the top level: 1 items fit the schema of contains, fewer than 2 (/minContains)"},
        {"{\"contains\":{\"const\":1},\"maxContains\":1}", "[1,1]",
         "the top level: 2 items fit the schema of contains, more than 1 (/maxContains)"},
        {"{\"not\":{\"type\":\"string\"}}", "\"\"",
         "the top level: fits the schema that must not fit (/not)"},
        {"{\"oneOf\":[{},false,{}]}", "1",
         "the top level: fits schema 0 and schema 2 of oneOf, not exactly one (/oneOf)"},
        {"{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":5}]}}}",
         "{\"a\":3}",
         "/a: fits none of the 2 schemas of anyOf (/properties/a/anyOf)\n"
         "/a: 3 is a number, where a string is expected (/properties/a/anyOf/0/type)\n"
         "/a: 3 is less than the minimum 5 (/properties/a/anyOf/1/minimum)"},
        {"{\"anyOf\":[{\"type\":\"string\"},true],\"minimum\":5}", "3",
         "the top level: 3 is less than the minimum 5 (/minimum)"},
        {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}",
         "the top level: the property 'b' is missing, which 'a' needs beside it "
         "(/dependentRequired)"},
        {"{\"if\":{\"const\":1},\"else\":{\"const\":2}}", "3",
         "the top level: 3 stands where 2 is expected (/else/const)"},
        {"{\"$ref\":\"#/$defs/tree\",\"$defs\":{\"tree\":{\"type\":\"object\",\"properties\":"
         "{\"kids\":{\"items\":{\"$ref\":\"#/$defs/tree\"}}}}}}",
         "{\"kids\":[{\"kids\":[{},7]}]}",
         "/kids/0/kids/1: 7 is a number, where an object is expected (/$defs/tree/type)"},
        {"{\"items\":{\"a~/\":1,\"properties\":{\"a~/\":{\"type\":\"null\"}}}}", "[{\"a~/\":1}]",
         "/0/a~0~1: 1 is a number, where null is expected "
         "(/items/properties/a~0~1/type)"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++)
        expect(cases[i][0], cases[i][1], cases[i][2]);
}

static void test_many_faults(void)
{
    static const char schema[] =
        "{\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}}";
    _cleanup_free_ char *two = faults(schema, "[1,2]", 2), *four = faults(schema, "[1,\"\"]", 4);
    _cleanup_free_ char *all = faults("{\"items\":{\"type\":\"string\"}}",
                                      "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]", 100);
    size_t lines = 0;

    CHECK_STR(two, "/0: fits none of the 2 schemas of anyOf (/items/anyOf)\n"
                   "/0: 1 is a number, where a string is expected (/items/anyOf/0/type)\n"
                   "more");
    CHECK_STR(four, "/0: fits none of the 2 schemas of anyOf (/items/anyOf)\n"
                    "/0: 1 is a number, where a string is expected (/items/anyOf/0/type)\n"
                    "/0: 1 is a number, where null is expected (/items/anyOf/1/type)");
    for (const char *c = all; *c; c++)
        lines += *c == '\n';
    CHECK_INT(lines, MT_SCHEMA_ERRORS);
}

// ---- hostile ----

static char *repeat(const char *before, const char *middle, const char *after, size_t times)
{
    mt_buf b = MT_BUF_INIT(64 << 20);

    for (size_t i = 0; i < times; i++)
        (void)mt_buf_adds(&b, before);
    (void)mt_buf_adds(&b, middle);
    for (size_t i = 0; i < times; i++)
        (void)mt_buf_adds(&b, after);
    return mt_buf_take(&b);
}

static void test_limits(void)
{
    static const mt_schema_limits few = {.depth = 1000, .steps = 1000, .regex_work = 1000};
    static const char *const cases[][3] = {
        {"{\"items\":{\"type\":\"integer\"}}",
         "[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,"
         "1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,"
         "1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]",
         "to see whether the value fits the schema takes too long: make the value smaller, or the "
         "schema simpler"},
        {"{\"properties\":{\"a\":{\"pattern\":\"^(a+)+$\"}}}", "{\"a\":\"aaaaaaaaaaaaaaaaaaaab\"}",
         "/a: the pattern takes too long on this text"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        _cleanup_schema_ mt_schema *s = compile(cases[i][0], NULL);
        _cleanup_json_ mt_json *v = parse(cases[i][1]);
        _cleanup_errors_ mt_schema_errors errors = {0};
        _cleanup_err_ mt_err *err = NULL;

        CHECK_INT(mt_schema_validate(s, v, &few, &errors, &err), -1);
        CHECK_INT(mt_err_code(err), MT_E_TOO_LARGE);
        CHECK_STR(mt_err_sentence(err), cases[i][2]);
        CHECK_INT(errors.count, 0);
    }
}

// A branching in each level would be 2^n schemas at the same value.
static void test_branching(void)
{
    mt_buf b = MT_BUF_INIT(1 << 20);
    _cleanup_free_ char *got = NULL;

    (void)mt_buf_adds(&b, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
    for (int i = 0; i < 60; i++)
        (void)mt_buf_addf(
            &b, "\"%d\":{\"allOf\":[{\"$ref\":\"#/$defs/%d\"},{\"$ref\":\"#/$defs/%d\"}]},", i,
            i + 1, i + 1);
    (void)mt_buf_adds(&b, "\"60\":{}}}");
    got = faults(mt_buf_str(&b), "1", 0);
    CHECK_STR(got, "to see whether the value fits the schema takes too long: make the value "
                   "smaller, or the schema simpler");
    mt_buf_done(&b);
}

static void *deepest(void *data)
{
    static const char *const schemas[] = {
        "{\"items\":{\"$ref\":\"#\"}}",
        "{\"items\":{\"anyOf\":[{\"$ref\":\"#\"}]},\"unevaluatedItems\":{\"$dynamicRef\":\"#\"}}",
        "{\"unevaluatedItems\":{\"$ref\":\"#\"}}",
        "{\"contains\":{\"$ref\":\"#\"}}",
        "{\"items\":{\"if\":{\"$ref\":\"#\"}}}",
        "{\"items\":{\"not\":{\"not\":{\"$ref\":\"#\"}}}}",
    };
    _cleanup_free_ char *lists = repeat("[", "", "]", MT_JSON_DEPTH_MAX);

    for (size_t i = 0; i < MT_ARRAY_SIZE(schemas); i++)
        expect(schemas[i], lists,
               "the schema nests more than 1000 deep in this value: make the value flatter");
    return data;
}

// As deep as it goes, on an eighth of the stack that threads have; sanitizers make frames larger.
#ifdef __SANITIZE_ADDRESS__
enum { STACK = 8 << 20 };
#else
enum { STACK = 1 << 20 };
#endif

static void test_depth(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    CHECK_INT(pthread_attr_init(&attributes), 0);
    CHECK_INT(pthread_attr_setstacksize(&attributes, STACK), 0);
    CHECK_INT(pthread_create(&thread, &attributes, deepest, NULL), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(pthread_attr_destroy(&attributes), 0);
}

static void test_deep_schemas(void)
{
    static const char *const parts[][3] = {
        {"{\"not\":", "{}", "}"},
        {"{\"items\":", "{}", "}"},
        {"{\"properties\":{\"a\":", "{}", "}}"},
        {"{\"x\":", "{}", "}"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(parts); i++) {
        _cleanup_free_ char *text = repeat(parts[i][0], parts[i][1], parts[i][2], 400);
        _cleanup_err_ mt_err *err = NULL;
        _cleanup_schema_ mt_schema *s = compile(text, &err);

        CHECK(s || mt_err_code(err) == MT_E_TOO_LARGE);
        if (!s)
            printf("# %s\n", mt_err_sentence(err));
    }
}

static void test_many_schemas(void)
{
    _cleanup_free_ char *text = repeat("{},", "{}", "", 50000);
    _cleanup_free_ char *all = mt_asprintf("{\"anyOf\":[%s]}", text);
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_schema_ mt_schema *s = compile(all, &err);

    CHECK(!s);
    CHECK_STR(mt_err_sentence(err), "the schema has more than 50000 schemas");
}

// Texts with a NUL are texts like others.
static void test_nul(void)
{
    expect("{\"const\":\"a\\u0000b\"}", "\"a\\u0000b\"", "");
    expect("{\"const\":\"a\\u0000b\"}", "\"a\\u0000c\"",
           "the top level: \"a?c\" stands where \"a?b\" is expected (/const)");
    expect("{\"properties\":{\"a\\u0000b\":{\"type\":\"null\"}}}", "{\"a\\u0000b\":1,\"a\":1}",
           "/a\\u0000b: 1 is a number, where null is expected (/properties/a\\u0000b/type)");
    expect("{\"pattern\":\"^a\\u0000b$\"}", "\"a\\u0000b\"", "");
}

int main(void)
{
    test_bad_schemas();
    test_documents();
    test_sentences();
    test_many_faults();
    test_limits();
    test_branching();
    test_depth();
    test_deep_schemas();
    test_many_schemas();
    test_nul();
    return TAP_DONE();
}
