// SPDX-License-Identifier: Apache-2.0
// Each allocation of an answer's reading, and of a request's writing, fails once: what comes is
// whole, or is said to be for want of memory. Never a part for the whole, nor another's fault.
#include "base/tap.h"
#include "base/testalloc.h"
#include "model/reading.h"
#include "model/trouble.h"
#include "model/wire.h"

enum { ALLOCATIONS_MAX = 2000, TEXT_MAX = 4096 };

typedef struct outcome {
    problem problem;
    finish finish;
    bool said; // an error
    char text[TEXT_MAX], reasoning[TEXT_MAX], message[TEXT_MAX];
} outcome;

static void copy(char to[TEXT_MAX], mt_str s)
{
    size_t len = MT_MIN(s.len, (size_t)TEXT_MAX - 1);

    memcpy(to, s.data, len);
    to[len] = '\0';
}

static void read_answer(const wire *w, bool tool, const char *bytes, size_t step, uint64_t failing,
                        outcome *ret, uint64_t *ret_left)
{
    size_t len = strlen(bytes);
    reading r;

    *ret = (outcome){0};
    (void)testalloc_fail(failing);
    reading_init(&r, w, "sk-0123456789", tool);
    for (size_t at = 0; at < len; at += step)
        if (reading_feed(&r, bytes + at, MT_MIN(step, len - at)) < 0)
            break;
    reading_end(&r);
    *ret_left = testalloc_fail(0);
    ret->problem = r.problem;
    ret->finish = r.finish;
    ret->said = r.said.given;
    copy(ret->text, reading_text(&r));
    copy(ret->reasoning, reading_reasoning(&r));
    if (r.said.message)
        copy(ret->message, (mt_str){r.said.message, r.said.message_len});
    reading_done(&r);
}

static void check_answer(const char *name, const wire *w, bool tool, const char *bytes, size_t step)
{
    outcome whole, got;
    uint64_t left = 0, n = 1;

    read_answer(w, tool, bytes, step, 0, &whole, &left);
    for (left = 0; left == 0 && n < ALLOCATIONS_MAX; n++) {
        read_answer(w, tool, bytes, step, n, &got, &left);
        if (got.problem == PROBLEM_MEMORY)
            continue;
        if (got.problem != whole.problem || got.finish != whole.finish || got.said != whole.said ||
            strcmp(got.text, whole.text) != 0 || strcmp(got.reasoning, whole.reasoning) != 0 ||
            strcmp(got.message, whole.message) != 0) {
            CHECK(!"an answer that is not whole is told for one, or another's fault is");
            printf(
                "# %s in steps of %zu, allocation %llu fails: problem %d, finish %d, '%s' '%s'\n",
                name, step, (unsigned long long)n, (int)got.problem, (int)got.finish, got.text,
                got.message);
            return;
        }
    }
    CHECK(n > 2 && n < ALLOCATIONS_MAX);
}

static void test_answers(void)
{
    static const struct {
        const char *name;
        const wire *wire;
        bool tool;
        const char *bytes;
    } cases[] = {
        {"a stream", &wire_chat, false,
         "data: {\"model\":\"m-1\",\"choices\":[{\"delta\":{\"content\":\"h\xe2\x82\xac\"}}]}\n\n"
         ": a comment\n\n"
         "data: {\"choices\":[{\"delta\":{\"reasoning\":\"why sk-0123456789\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"content\":\" sk-01234\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"content\":\"56789 and\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"content\":\"\xe2\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"content\":\"\x82\xac more\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
         "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n"
         "data: [DONE]\n\n"},
        {"a document", &wire_chat, false,
         "{\"choices\":[{\"message\":{\"content\":\"North\",\"reasoning_content\":\"hm\"},"
         "\"finish_reason\":\"stop\"}]}"},
        {"a tool", &wire_messages, true,
         "data: {\"type\":\"content_block_start\",\"index\":1,"
         "\"content_block\":{\"type\":\"tool_use\",\"input\":{}}}\n\n"
         "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"partial_json\":"
         "\"{\\\"a\\\":1}\"}}\n\n"
         "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n"
         "data: {\"type\":\"message_stop\"}\n\n"},
        {"a tool at once", &wire_chat, true,
         "{\"choices\":[{\"message\":{\"tool_calls\":[{\"function\":"
         "{\"arguments\":{\"a\":[1,2]}}}]},\"finish_reason\":\"tool_calls\"}]}"},
        {"an error within", &wire_chat, false,
         "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
         "data: {\"error\":{\"message\":\"too much, sk-0123456789\",\"code\":429}}\n\n"},
        {"no protocol", &wire_messages, false, "<html>come back later</html>"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++)
        for (size_t step = 1; step < 4096; step *= 17)
            check_answer(cases[i].name, cases[i].wire, cases[i].tool, cases[i].bytes, step);
}

static void test_requests(void)
{
    static const mt_model_message messages[] = {{MT_SPEAKER_SYSTEM, MT_STR("be brief")},
                                                {MT_SPEAKER_TASK, MT_STR("which?")}};
    static const mt_model_wire wires[] = {MT_WIRE_CHAT, MT_WIRE_MESSAGES};

    for (size_t i = 0; i < MT_ARRAY_SIZE(wires); i++) {
        mt_model_request q = {.provider = "custom",
                              .wire = wires[i],
                              .model = "m",
                              .messages = messages,
                              .message_count = 2,
                              .schema_mode = MT_SCHEMA_SCHEMA,
                              .schema = MT_STR("{\"type\":\"object\",\"properties\":{\"a\":{"
                                               "\"type\":\"string\"}},\"required\":[\"a\"]}"),
                              .temperature = 0.5};
        _cleanup_buf_ mt_buf whole = MT_BUF_INIT(1 << 20);
        uint64_t left = 0, n = 1;

        CHECK_INT(wire_write(&q, &whole, NULL), 0);
        for (; left == 0 && n < ALLOCATIONS_MAX; n++) {
            _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);
            _cleanup_err_ mt_err *err = NULL;
            int r;

            (void)testalloc_fail(n);
            r = wire_write(&q, &b, &err);
            left = testalloc_fail(0);
            if (r < 0)
                CHECK_INT(mt_err_code(err), MT_E_OOM);
            else
                CHECK_STR(mt_buf_str(&b), mt_buf_str(&whole));
        }
        CHECK(n > 3 && n < ALLOCATIONS_MAX);
    }
}

int main(void)
{
    test_answers();
    test_requests();
    return TAP_DONE();
}
