// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "server/event-frames.h"

#include "base/utf8.h"
#include "core/run-output.h"
#include "json/json.h"

// What a client reads of one frame, which is emptied: "" where the data is one line of JSON.
static mt_json *data_of(mt_buf *b, const char *head)
{
    _cleanup_free_ char *begin = mt_asprintf("%sdata: ", head);
    mt_json *v = NULL;
    const char *text = mt_buf_str(b), *end;

    CHECK(strncmp(text, begin, strlen(begin)) == 0);
    text += strlen(begin);
    end = strchr(text, '\n');
    CHECK(end && strcmp(end, "\n\n") == 0);
    if (end)
        CHECK(mt_json_parse(text, (size_t)(end - text), NULL, &v, NULL) == 0);
    mt_buf_clear(b);
    return v;
}

static void check_text(const mt_json *v, const char *name, const char *want)
{
    CHECK_STR(mt_json_text(mt_json_get(v, name), NULL), want);
}

static void check_int(const mt_json *v, const char *name, int64_t want)
{
    int64_t got = -1;

    CHECK(mt_json_as_int64(mt_json_get(v, name), &got));
    CHECK_INT(got, want);
}

static void test_change(mt_buf *b)
{
    mt_event e = {.number = 42,
                  .time_us = 1000000,
                  .kind = "command",
                  .object_id = "c",
                  .change = "ended",
                  .run_id = "r",
                  .namespace_name = "work",
                  .status = "Error",
                  .end_reason = "exited",
                  .has_exit_code = true,
                  .exit_code = 3};
    _cleanup_json_ mt_json *v = NULL, *none = NULL;

    mt_frame_change(b, &e);
    v = data_of(b, "id: 42\nevent: change\n");
    check_int(v, "number", 42);
    check_text(v, "date", "1970-01-01T00:00:01.000000Z");
    check_text(v, "kind", "command");
    check_text(v, "change", "ended");
    check_text(v, "id", "c");
    check_text(v, "namespace", "work");
    check_text(v, "runId", "r");
    check_text(v, "name", NULL);
    check_text(v, "status", "Error");
    check_text(v, "endReason", "exited");
    check_int(v, "exitCode", 3);
    e = (mt_event){
        .number = 1, .kind = "key", .object_id = "k", .name = "a \"b\"\n", .change = "created"};
    mt_frame_change(b, &e);
    none = data_of(b, "id: 1\nevent: change\n");
    check_text(none, "name", "a \"b\"\n");
    CHECK_INT(mt_json_count(none), mt_json_count(v));
    CHECK_INT(mt_json_kind_of(mt_json_get(none, "exitCode")), MT_JSON_NULL);
    CHECK_INT(mt_json_kind_of(mt_json_get(none, "namespace")), MT_JSON_NULL);
}

static void test_others(mt_buf *b)
{
    _cleanup_json_ mt_json *hello = NULL, *output = NULL, *line = NULL, *text = NULL, *end = NULL;
    mt_app_line_record record = {.number = 7, .time_us = 1, .level = 'o'};

    mt_frame_hello(b, 41, 15);
    hello = data_of(b, "id: 41\nevent: hello\n");
    check_int(hello, "after", 41);
    check_int(hello, "heartbeatSeconds", 15);
    mt_frame_output(b, &(mt_frame_piece){.run_id = "r",
                                         .command_id = "c",
                                         .stream = MT_STREAM_ERROR,
                                         .offset = 9,
                                         .bytes = {"a\xff\r\n\n\0z", 7}});
    output = data_of(b, "event: output\n");
    check_text(output, "stream", "error");
    check_int(output, "offset", 9);
    check_int(output, "bytes", 7);
    CHECK_INT(mt_json_str(mt_json_get(output, "text")).len, 9);
    mt_frame_console(b, "r", &record, 8192, MT_STR("rest\n"));
    line = data_of(b, "event: console\n");
    check_int(line, "number", 7);
    check_int(line, "from", 8192);
    check_text(line, "text", "rest\n");
    mt_frame_text(b, "r", 2, 5, MT_STR("North"));
    text = data_of(b, "event: text\n");
    check_int(text, "stream", 2);
    check_int(text, "from", 5);
    mt_frame_end(b, "tooSlow", 42, "why");
    end = data_of(b, "event: end\n");
    check_text(end, "code", "tooSlow");
    check_int(end, "after", 42);
    mt_frame_heartbeat(b);
    CHECK_STR(mt_buf_str(b), ": \n\n");
}

static void check_whole(const char *bytes, size_t len, size_t want)
{
    CHECK_INT(mt_frame_whole((mt_str){bytes, len}), want);
}

// However a text is cut into pieces, what is told of them is the text.
static void test_whole(void)
{
    static const char TEXT[] = "a\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9z";

    check_whole("", 0, 0);
    check_whole("abc", 3, 3);
    check_whole("a\xe2", 2, 1);
    check_whole("a\xe2\x82", 3, 1);
    check_whole("a\xe2\x82\xac", 4, 4);
    check_whole("\xf0\x9f\x98", 3, 0);
    check_whole("a\xff", 2, 2);            // never the begin of one
    check_whole("\x80\x80\x80\x80", 4, 4); // nor these
    check_whole("a\xf0\x80", 3, 3);        // an overlong one
    check_whole("a\xed\xa0", 3, 3);        // a surrogate
    check_whole("\xe2\x82\xe2\x82", 4, 2);
    for (size_t step = 1; step <= 5; step++) {
        size_t at = 0, given = step;

        while (at < strlen(TEXT)) {
            size_t n = mt_frame_whole((mt_str){TEXT + at, MT_MIN(given, strlen(TEXT) - at)});

            CHECK(mt_utf8_valid(TEXT + at, n));
            at += n;
            given = n ? step : given + step; // more came
        }
        CHECK_INT(at, strlen(TEXT));
    }
}

int main(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 16);

    test_change(&b);
    test_others(&b);
    test_whole();
    return TAP_DONE();
}
