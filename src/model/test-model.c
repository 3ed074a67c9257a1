// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "base/utf8.h"
#include "model/reading.h"
#include "model/retry.h"
#include "model/trouble.h"
#include "model/wire.h"

// --- text ---------------------------------------------------------------------------------------

static char *joined(const char *const *pieces, bool tamed)
{
    mt_buf b = MT_BUF_INIT(4096);
    text_join j = {0};

    for (size_t i = 0; pieces[i]; i++) {
        mt_buf t = MT_BUF_INIT(4096);

        if (tamed)
            (void)text_tame(mt_str_of(pieces[i]), &t);
        else
            (void)mt_buf_adds(&t, pieces[i]);
        (void)text_join_add(&j, (mt_str){mt_buf_str(&t), t.len}, tamed, &b);
        CHECK(mt_utf8_valid(mt_buf_str(&b), b.len));
        mt_buf_done(&t);
    }
    (void)text_join_end(&j, &b);
    return mt_buf_take(&b);
}

static void test_join(void)
{
    static const char *const halves[] = {"a\xe2", "\x82",
                                         "\xac"
                                         "b",
                                         NULL};
    static const char *const broken[] = {"\xff", "x\xe2", "y\xf0\x9f", NULL};
    static const char *const surrogates[] = {"\\ud83d", "\\ude00!", "\\ude00", "\\ud83dx", NULL};
    static const char *const pair[] = {"\\ud83d\\ude00 \\\\ud83d \\u00e9", NULL};
    _cleanup_free_ char *a = joined(halves, true), *b = joined(broken, true);
    _cleanup_free_ char *c = joined(surrogates, true), *d = joined(pair, true);

    CHECK_STR(a, "a€b");
    CHECK_STR(b, "\xef\xbf\xbd"
                 "x"
                 "\xef\xbf\xbd"
                 "y"
                 "\xef\xbf\xbd");
    CHECK_STR(c, "😀!"
                 "\xef\xbf\xbd"
                 "\xef\xbf\xbd"
                 "x");
    CHECK_STR(d, pair[0]); // these are JSON's to read
}

static void test_mask(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);

    (void)mt_buf_adds(&b, "sk-12345678 and sk-12345678sk-12345678");
    trouble_mask(&b, 0, "sk-12345678");
    CHECK_STR(b.data, "*** and ******");
    trouble_mask(&b, 0, "and"); // too short to be a secret
    CHECK_STR(b.data, "*** and ******");
}

static void test_quote(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);
    _cleanup_buf_ mt_buf long_one = MT_BUF_INIT(65536), quoted = MT_BUF_INIT(65536);

    (void)trouble_quote(MT_STR("a\x1b[31mb\nc\0d\xff"), "", &b);
    CHECK_STR(b.data, "a[31mb cd\xef\xbf\xbd");
    mt_buf_clear(&b);
    (void)trouble_quote(MT_STR("sk-1\x01"
                               "2345678!"),
                        "sk-12345678", &b);
    CHECK_STR(b.data, "***!");
    for (int i = 0; i < 400; i++)
        (void)mt_buf_adds(&long_one, "€");
    (void)trouble_quote((mt_str){long_one.data, long_one.len}, "", &quoted);
    CHECK_INT(mt_utf8_count(quoted.data, quoted.len), TROUBLE_QUOTE_MAX + 1);
}

// --- waiting ------------------------------------------------------------------------------------

static void test_retry_after(void)
{
    static const int64_t now = 784111777LL * 1000000; // Sun, 06 Nov 1994 08:49:37 GMT

    CHECK_INT(retry_after_ms(MT_STR("3"), now), 3000);
    CHECK_INT(retry_after_ms(MT_STR("0"), now), 0);
    CHECK_INT(retry_after_ms(MT_STR("-3"), now), -1);
    CHECK_INT(retry_after_ms(MT_STR("3.5"), now), -1);
    CHECK_INT(retry_after_ms(MT_STR(""), now), -1);
    CHECK_INT(retry_after_ms(MT_STR("soon"), now), -1);
    CHECK(retry_after_ms(MT_STR("99999999999999999999"), now) == -1);
    CHECK(retry_after_ms(MT_STR("9999999999999999999"), now) > 0);
    CHECK_INT(retry_after_ms(MT_STR("Sun, 06 Nov 1994 08:49:40 GMT"), now), 3000);
    CHECK_INT(retry_after_ms(MT_STR("Sun, 06 Nov 1994 08:49:30 GMT"), now), 0);
    CHECK_INT(retry_after_ms(MT_STR("Sun, 06 Nov 1994 08:49:40 CET"), now), -1);
    CHECK_INT(retry_after_ms(MT_STR("Sun, 06 ovD 1994 08:49:40 GMT"), now), -1);
}

static void test_backoff(void)
{
    for (unsigned tries = 1; tries < 40; tries++) {
        int64_t ms = retry_backoff_ms(tries);
        int64_t whole = tries < 7 ? RETRY_BASE_MS << (tries - 1) : RETRY_MAX_MS;

        CHECK(ms >= whole / 2 && ms <= whole);
    }
}

// --- requests and answers -----------------------------------------------------------------------

static bool strict(const char *schema)
{
    _cleanup_json_ mt_json *v = NULL;

    CHECK_INT(mt_json_parse(schema, strlen(schema), NULL, &v, NULL), 0);
    return wire_schema_is_strict(v);
}

static void test_strict(void)
{
    CHECK(strict("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},"
                 "\"required\":[\"a\"],\"additionalProperties\":false}"));
    CHECK(!strict("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},"
                  "\"additionalProperties\":false}"));
    CHECK(!strict("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},"
                  "\"required\":[\"a\"]}"));
    CHECK(!strict("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":"
                  "{\"type\":\"object\"}}},\"required\":[\"a\"],\"additionalProperties\":false}"));
    CHECK(!strict("{\"type\":\"object\",\"properties\":{\"a\":{\"uniqueItems\":true}},"
                  "\"required\":[\"a\"],\"additionalProperties\":false}"));
    CHECK(!strict("{\"type\":\"string\"}"));
    CHECK(!strict("true"));
}

static void test_schema_names(void)
{
    char out[WIRE_NAME_MAX + 1];

    CHECK_STR(wire_schema_name("solution", out), "solution");
    CHECK_STR(wire_schema_name("my.schema é", out), "my_schema___");
    CHECK_STR(wire_schema_name(NULL, out), "answer");
    CHECK_INT(
        strlen(wire_schema_name("0123456789012345678901234567890123456789012345678901234567890"
                                "1234567890",
                                out)),
        WIRE_NAME_MAX);
}

static void test_troubles(void)
{
    static const struct {
        int status;
        const char *body;
        mt_model_end end;
        bool again;
    } cases[] = {
        {400, "{\"error\":{\"message\":\"bad\"}}", MT_MODEL_BAD_REQUEST, false},
        {401, "{\"error\":{\"message\":\"no model found for key\"}}", MT_MODEL_BAD_KEY, false},
        {403, "{\"error\":{\"type\":\"permission_error\"}}", MT_MODEL_BAD_KEY, false},
        {403, "{\"error\":{\"code\":403,\"metadata\":{\"reasons\":[\"x\"]}}}", MT_MODEL_REFUSED,
         false},
        {400, "[{\"error\":{\"code\":400,\"message\":\"API key not valid.\"}}]", MT_MODEL_BAD_KEY,
         false},
        {400, "{\"error\":{\"message\":\"Model Not Exist\"}}", MT_MODEL_NO_MODEL, false},
        {400, "{\"message\":\"Invalid model: x\",\"code\":\"1500\"}", MT_MODEL_NO_MODEL, false},
        {400, "{\"error\":{\"code\":\"content_filter\"}}", MT_MODEL_REFUSED, false},
        {402, "{}", MT_MODEL_BAD_REQUEST, false},
        {404, "{}", MT_MODEL_NO_MODEL, false},
        {422, "{\"message\":{\"detail\":[{\"msg\":\"x\"}]}}", MT_MODEL_BAD_REQUEST, false},
        {429, "{\"error\":{\"code\":\"rate_limit_exceeded\"}}", MT_MODEL_RATE_LIMIT, true},
        {429, "{\"error\":{\"code\":\"insufficient_quota\"}}", MT_MODEL_RATE_LIMIT, false},
        {500, "{}", MT_MODEL_FAILED, true},
        {501, "{}", MT_MODEL_FAILED, false},
        {529, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}", MT_MODEL_FAILED,
         true},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        _cleanup_json_ mt_json *v = NULL;
        trouble t = {0};
        trouble_kind kind;

        CHECK_INT(mt_json_parse(cases[i].body, strlen(cases[i].body), NULL, &v, NULL), 0);
        CHECK_INT(trouble_read(&t, v), 0);
        kind = trouble_kind_of(cases[i].status, &t);
        CHECK_INT(kind.end, cases[i].end);
        CHECK_INT(kind.again, cases[i].again);
        trouble_done(&t);
    }
}

static void collect(mt_str piece, void *user)
{
    (void)mt_buf_add(user, piece.data, piece.len);
}

// The same bytes in steps of every size give the same text, and the pieces are the text.
static void check_answer(const wire *w, bool tool, const char *body, const char *text)
{
    for (size_t step = 1; step < 40; step++) {
        _cleanup_buf_ mt_buf pieces = MT_BUF_INIT(65536);
        reading r;

        reading_init(&r, w, "sk-0123456789", tool);
        r.piece = collect;
        r.user = &pieces;
        for (size_t at = 0; at < strlen(body); at += step)
            (void)reading_feed(&r, body + at, MT_MIN(step, strlen(body) - at));
        reading_end(&r);
        CHECK_STR(reading_text(&r).data, text);
        CHECK_STR(mt_buf_str(&pieces), text);
        CHECK_INT(r.problem, PROBLEM_NONE);
        reading_done(&r);
    }
}

static void test_answers(void)
{
    check_answer(&wire_chat, false,
                 "data: {\"choices\":[{\"delta\":{\"content\":\"h\xe2\x82\xac\"}}]}\n\n"
                 "data: {\"choices\":[{\"delta\":{\"content\":\" sk-01234\"}}]}\n\n"
                 "data: {\"choices\":[{\"delta\":{\"content\":\"56789 sk-\"}}]}\n\n"
                 "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
                 "data: [DONE]\n\n",
                 "h€ *** sk-");
    check_answer(&wire_chat, true,
                 "{\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[{\"function\":"
                 "{\"arguments\":\"{\\\"a\\\":1}\"}}]},\"finish_reason\":\"tool_calls\"}]}",
                 "{\"a\":1}");
    check_answer(&wire_chat, true,
                 "{\"choices\":[{\"message\":{\"content\":\"I talk\"},"
                 "\"finish_reason\":\"stop\"}]}",
                 "I talk");
    check_answer(&wire_messages, true,
                 "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,"
                 "\"content_block\":{\"type\":\"tool_use\",\"input\":{}}}\n\n"
                 "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"partial_json\":"
                 "\"{\\\"a\\\"\"}}\n\n"
                 "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"partial_json\":"
                 "\":1}\"}}\n\n"
                 "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n"
                 "data: {\"type\":\"message_stop\"}\n\n",
                 "{\"a\":1}");
    check_answer(&wire_messages, true,
                 "data: {\"type\":\"content_block_start\",\"index\":0,"
                 "\"content_block\":{\"type\":\"tool_use\",\"input\":{}}}\n\n"
                 "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n",
                 "{}");
}

int main(void)
{
    test_join();
    test_mask();
    test_quote();
    test_retry_after();
    test_backoff();
    test_strict();
    test_schema_names();
    test_troubles();
    test_answers();
    return TAP_DONE();
}
