// SPDX-License-Identifier: Apache-2.0
#include "base/sse.h"
#include "base/tap.h"

static int note_event(mt_str name, mt_str data, void *user)
{
    mt_buf *b = user;

    return mt_buf_addf(b, "[%.*s|%.*s]", (int)name.len, name.data, (int)data.len, data.data);
}

static char *events_of(const char *bytes, size_t len, size_t step)
{
    mt_buf b = MT_BUF_INIT(65536);
    mt_sse s;

    mt_sse_init(&s, note_event, &b);
    for (size_t at = 0; at < len; at += step)
        if (mt_sse_feed(&s, bytes + at, MT_MIN(step, len - at)) < 0)
            (void)mt_buf_adds(&b, "!");
    mt_sse_done(&s);
    return mt_buf_take(&b);
}

static void test_events(void)
{
    static const struct {
        const char *bytes, *events;
    } cases[] = {
        {"data: a\n\n", "[|a]"},
        {"data:a\r\rdata: b\r\n\r\ndata:c\n\n", "[|a][|b][|c]"},
        {"\xef\xbb\xbf"
         "data: a\n\n",
         "[|a]"},
        {"\xef\xbb"
         "data: a\n\ndata: b\n\n",
         "[|b]"}, // what began like a mark is a line's
        {": hello\n\ndata: a\n\n", "[|a]"},
        {"event: x\ndata: a\ndata:  b\ndata\n\n", "[x|a\n b\n]"},
        {"event: x\n\ndata: a\n\n", "[|a]"}, // a name without data is no event's
        {"id: 1\nretry: 5\nother\ndata: a\n\n", "[|a]"},
        {"data:\n\n", "[|]"},
        {"data: a\n\ndata: cut off", "[|a]"},
        {"data: a\n\ndata: cut off\n", "[|a]"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        for (size_t step = 1; step < 5; step++) {
            _cleanup_free_ char *got = events_of(cases[i].bytes, strlen(cases[i].bytes), step);

            CHECK_STR(got, cases[i].events);
        }
    }
}

static void test_events_have_a_size(void)
{
    static char big[MT_SSE_EVENT_MAX + 16];
    _cleanup_free_ char *got = NULL;

    memset(big, 'x', sizeof(big));
    got = events_of(big, sizeof(big), sizeof(big));
    CHECK_STR(got, "!");
}

int main(void)
{
    test_events();
    test_events_have_a_size();
    return TAP_DONE();
}
