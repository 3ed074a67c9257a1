// SPDX-License-Identifier: Apache-2.0
// Which JSON value an answer is taken for, and what is said where there is none.
#include "base/clock.h"
#include "base/tap.h"
#include "core/answer.h"

static const char SCHEMA[] = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
                             "\"note\":{\"type\":\"string\"}},"
                             "\"required\":[\"a\",\"note\"],\"additionalProperties\":false}";
#define GOOD "{\"a\":1,\"note\":\"n\"}"

static mt_schema *schema_of(const char *text)
{
    _cleanup_json_ mt_json *document = NULL;
    mt_schema *s;

    CHECK_INT(mt_json_parse(text, strlen(text), NULL, &document, NULL), 0);
    s = mt_schema_compile(document, NULL, NULL);
    CHECK(s != NULL);
    return s;
}

static mt_schema *schema;

// output: what is taken; NULL: nothing, and the faults, joined by "; ", begin with `faults`.
static void check_text(mt_str answer, const char *output, const char *faults)
{
    _cleanup_json_ mt_json *list = NULL;
    _cleanup_buf_ mt_buf all = MT_BUF_INIT(1 << 16);
    _cleanup_free_ char *taken = NULL;
    mt_str found = {0};
    int r = mt_answer_read(answer, schema, &found, &list, NULL);

    CHECK_INT(r, output ? 0 : 1);
    if (r == 0)
        taken = mt_str_dup(found);
    for (size_t i = 0; i < mt_json_count(list); i++)
        (void)mt_buf_addf(&all, "%s%s", i ? "; " : "", mt_json_text(mt_json_at(list, i), "?"));
    if (output && taken)
        CHECK_STR(taken, output);
    if (!output && !mt_starts_with(mt_buf_str(&all), faults))
        CHECK_STR(mt_buf_str(&all), faults);
}

static void check(const char *answer, const char *output)
{
    check_text(mt_str_of(answer), output, "");
}

static void refused(const char *answer, const char *faults)
{
    check_text(mt_str_of(answer), NULL, faults);
}

static void test_whole(void)
{
    check(GOOD, GOOD);
    check("\xef\xbb\xbf \n" GOOD "\r\n", GOOD);
    check("{ \"note\" : \"n\",\n\t\"a\" : 1.0 }", "{ \"note\" : \"n\",\n\t\"a\" : 1.0 }");
    check("{\"a\":1,\"note\":\"```json\\n{}\\n```\"}", "{\"a\":1,\"note\":\"```json\\n{}\\n```\"}");
    refused("{\"a\":1}", "");
    refused("{\"a\":\"1\",\"note\":\"n\"}", "/a: ");
    refused("17", "");
    refused("", "the answer holds no JSON value: ");
    refused("I would rather not say.", "the answer holds no JSON value: line 1, column 1: ");
    // Nothing is mended.
    refused("{\"a\":1,\"note\":\"n\",}", "the answer holds no JSON value: line 1, column 19: ");
    refused("{\"a\":1,\"note\":\"n", "the answer holds no JSON value: ");
    refused("{\"a\":1,\"note\":\"\\u0000\"}", "a text in it holds a NUL character");
}

static void test_fences(void)
{
    check("```json\n" GOOD "\n```", GOOD);
    check("Here you are:\n\n```JSON\n" GOOD "\n```\nAnything else?", GOOD);
    check("```\n" GOOD "\n```", GOOD);
    check("~~~~\n" GOOD "\n~~~~", GOOD);
    check("  ````json\r\n" GOOD "\r\n````\r\n", GOOD);
    check("First\n```sh\nls {a,b}\n```\nthen\n```json\n" GOOD "\n```", GOOD);
    // Of two that are JSON the one that fits.
    check("```\n[1]\n```\nno:\n```\n" GOOD "\n```", GOOD);
    refused("```\n" GOOD "\n```\n```\n" GOOD "\n```",
            "the answer holds 2 JSON values, and more than one of them fits the schema");
    refused("```\n{\"a\":1}\n```", "");
    refused("```sh\necho hello\n```", "the answer holds no JSON value");
    // A fence that is not closed is prose.
    check("```json\n" GOOD, GOOD);
}

static void test_prose(void)
{
    check("The answer is " GOOD ".", GOOD);
    check("Use {x} like so: " GOOD " (as in [1])", GOOD);
    check("\"quoted\" and 'it's' " GOOD, GOOD);
    check("{\"a\":1,\"note\":\"}\\\"{\"} and done", "{\"a\":1,\"note\":\"}\\\"{\"}");
    check("Not {\"b\":2}, but " GOOD, GOOD);
    refused("Either " GOOD " or {\"a\":2,\"note\":\"m\"}",
            "the answer holds 2 JSON values, and more than one of them fits the schema");
    refused("Neither {\"a\":true} nor [2]",
            "the answer holds 2 JSON values, and none of them fits the schema");
    refused("Only {\"a\":true,\"note\":\"n\"}.", "/a: ");
}

// However it is made, an answer is read in a moment.
static void test_hostile(void)
{
    static const char *const parts[] = {"{", "[", "{\"a\":", "```\n", "\"", "{}", "[1,", "\\\"{"};
    int64_t began = mt_monotonic_us();

    for (size_t i = 0; i < MT_ARRAY_SIZE(parts); i++) {
        mt_buf text = MT_BUF_INIT(4 << 20);

        while (text.len + 16 < text.max)
            (void)mt_buf_adds(&text, parts[i]);
        check_text((mt_str){text.data, text.len}, NULL, "");
        mt_buf_done(&text);
    }
    printf("# %d ms\n", (int)((mt_monotonic_us() - began) / 1000));
}

int main(void)
{
    schema = schema_of(SCHEMA);
    test_whole();
    test_fences();
    test_prose();
    test_hostile();
    mt_schema_free(schema);
    return TAP_DONE();
}
