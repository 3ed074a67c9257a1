// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "http/parse.h"

#include <stdio.h>

// Every message is parsed whole, byte by byte, and split in two at every place: the result must be
// the same.

static mt_http_progress parse_split(mt_http_head *h, const char *text, size_t len, size_t at)
{
    mt_http_progress p;

    mt_http_head_init(h, 0, 0, 0);
    p = mt_http_head_parse(h, text, at);
    return p == MT_HTTP_MORE ? mt_http_head_parse(h, text, len) : p;
}

static mt_http_progress parse_bytes(mt_http_head *h, const char *text, size_t len)
{
    mt_http_progress p = MT_HTTP_MORE;

    mt_http_head_init(h, 0, 0, 0);
    for (size_t i = 1; i <= len && p == MT_HTTP_MORE; i++) {
        // A copy of its own size, so that a look past its end is seen by the sanitizer.
        char *copy = malloc(i);

        memcpy(copy, text, i);
        p = mt_http_head_parse(h, copy, i);
        free(copy);
    }
    return p;
}

static bool all_agree(const char *text, size_t len, mt_http_progress expect, mt_code wrong)
{
    mt_http_head h;

    for (size_t i = 0; i <= len; i++) {
        mt_http_progress p = parse_split(&h, text, len, i);

        if (p != expect || h.wrong != wrong) {
            printf("# split at %zu: %d %s\n", i, p, h.why ? h.why : "");
            return false;
        }
    }
    if (parse_bytes(&h, text, len) != expect || h.wrong != wrong) {
        printf("# byte by byte: %s\n", h.why ? h.why : "");
        return false;
    }
    return true;
}

#define H       "Host: a\r\n"
#define B(text) text, sizeof(text) - 1

static const struct {
    const char *name, *text;
    size_t len;
    mt_code wrong;
} REFUSED[] = {
    // The odd requests on which servers differ (docs/decisions/0001-http-core.md).
    {"Content-Length twice, differing",
     B("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
     MT_E_BAD_REQUEST},
    {"Content-Length twice, the same",
     B("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
     MT_E_BAD_REQUEST},
    {"Content-Length as a list", B("POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\nhello"),
     MT_E_BAD_REQUEST},
    {"Content-Length and chunked",
     B("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
     MT_E_BAD_REQUEST},
    {"chunked and Content-Length",
     B("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
     MT_E_BAD_REQUEST},
    {"blank before the colon", B("POST / HTTP/1.1\r\n" H "Content-Length : 5\r\n\r\nhello"),
     MT_E_BAD_REQUEST},
    {"tab before the colon", B("POST / HTTP/1.1\r\n" H "Content-Length\t: 5\r\n\r\nhello"),
     MT_E_BAD_REQUEST},
    {"+5", B("POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\nhello"), MT_E_BAD_REQUEST},
    {"-5", B("POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\nhello"), MT_E_BAD_REQUEST},
    {"0x5", B("POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\nhello"), MT_E_BAD_REQUEST},
    {"5 5", B("POST / HTTP/1.1\r\n" H "Content-Length: 5 5\r\n\r\nhello"), MT_E_BAD_REQUEST},
    {"empty Content-Length", B("POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n"),
     MT_E_BAD_REQUEST},
    {"huge Content-Length",
     B("POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\n"), MT_E_BAD_REQUEST},
    {"xchunked", B("POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
     MT_E_BAD_REQUEST},
    {"gzip, chunked", B("POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n"),
     MT_E_BAD_REQUEST},
    {"chunked, chunked", B("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, chunked\r\n\r\n"),
     MT_E_BAD_REQUEST},
    {"chunked twice",
     B("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
     MT_E_BAD_REQUEST},
    {"identity", B("POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n"),
     MT_E_BAD_REQUEST},
    {"chunked with a vertical tab",
     B("POST / HTTP/1.1\r\n" H "Transfer-Encoding:\x0b"
       "chunked\r\n\r\n"),
     MT_E_BAD_REQUEST},
    {"chunked in HTTP/1.0",
     B("POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), MT_E_BAD_REQUEST},
    {"bare LF", B("GET / HTTP/1.1\nHost: a\n\n"), MT_E_BAD_REQUEST},
    {"bare LF after a field", B("GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"), MT_E_BAD_REQUEST},
    {"bare LF at the end", B("GET / HTTP/1.1\r\nHost: a\r\n\n"), MT_E_BAD_REQUEST},
    {"bare CR", B("GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n"), MT_E_BAD_REQUEST},
    {"CR CR LF", B("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"), MT_E_BAD_REQUEST},
    {"folded field", B("GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n"), MT_E_BAD_REQUEST},
    {"folded with a tab", B("GET / HTTP/1.1\r\n" H "X: a\r\n\tb\r\n\r\n"), MT_E_BAD_REQUEST},
    {"blank before the first field", B("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), MT_E_BAD_REQUEST},
    {"two Host fields", B("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), MT_E_BAD_REQUEST},
    {"no Host", B("GET / HTTP/1.1\r\nX: y\r\n\r\n"), MT_E_BAD_REQUEST},
    {"Host with a path", B("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), MT_E_BAD_REQUEST},
    {"Host with a user", B("GET / HTTP/1.1\r\nHost: me@a\r\n\r\n"), MT_E_BAD_REQUEST},
    {"Host as a list", B("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n"), MT_E_BAD_REQUEST},
    {"NUL in a value", B("GET / HTTP/1.1\r\n" H "X: a\0b\r\n\r\n"), MT_E_BAD_REQUEST},
    {"NUL in a name", B("GET / HTTP/1.1\r\n" H "X\0Y: b\r\n\r\n"), MT_E_BAD_REQUEST},
    {"DEL in a value", B("GET / HTTP/1.1\r\n" H "X: a\x7f\r\n\r\n"), MT_E_BAD_REQUEST},
    {"no colon", B("GET / HTTP/1.1\r\n" H "X\r\n\r\n"), MT_E_BAD_REQUEST},
    {"empty name", B("GET / HTTP/1.1\r\n" H ": x\r\n\r\n"), MT_E_BAD_REQUEST},
    {"blank in a name", B("GET / HTTP/1.1\r\n" H "X Y: x\r\n\r\n"), MT_E_BAD_REQUEST},
    {"parenthesis in a name", B("GET / HTTP/1.1\r\n" H "X(: x\r\n\r\n"), MT_E_BAD_REQUEST},
    {"byte above 127 in a name", B("GET / HTTP/1.1\r\n" H "X\xe9: x\r\n\r\n"), MT_E_BAD_REQUEST},
    // The request line.
    {"no version", B("GET /\r\n\r\n"), MT_E_BAD_REQUEST},
    {"no target", B("GET HTTP/1.1\r\n\r\n"), MT_E_BAD_REQUEST},
    {"two blanks", B("GET  / HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"two blanks before the version", B("GET /  HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"blank in the target", B("GET /a b HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"blank at the end", B("GET / HTTP/1.1 \r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"blank at the start", B(" GET / HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"tab between", B("GET\t/ HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"lower-case version", B("GET / http/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"version of three parts", B("GET / HTTP/1.1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"HTTP/2.0", B("GET / HTTP/2.0\r\n" H "\r\n"), MT_E_HTTP_VERSION},
    {"HTTP/1.2", B("GET / HTTP/1.2\r\n" H "\r\n"), MT_E_HTTP_VERSION},
    {"HTTP/0.9", B("GET / HTTP/0.9\r\n" H "\r\n"), MT_E_HTTP_VERSION},
    {"HTTP/2 preface", B("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), MT_E_HTTP_VERSION},
    {"unknown method", B("BREW / HTTP/1.1\r\n" H "\r\n"), MT_E_NOT_SUPPORTED},
    {"lower-case method", B("get / HTTP/1.1\r\n" H "\r\n"), MT_E_NOT_SUPPORTED},
    {"CONNECT", B("CONNECT a:1 HTTP/1.1\r\n" H "\r\n"), MT_E_NOT_SUPPORTED},
    {"TRACE", B("TRACE / HTTP/1.1\r\n" H "\r\n"), MT_E_NOT_SUPPORTED},
    {"bad method", B("G@T / HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"relative target", B("GET a HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"* with GET", B("GET * HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"fragment", B("GET /a#b HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"backslash", B("GET /a\\b HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"quote", B("GET /\"a HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"byte above 127", B("GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"lone %", B("GET /a% HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"%4", B("GET /a%4 HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"%zz", B("GET /a?b=%zz HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"%00", B("GET /a%00b HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"%00 in the query", B("GET /?a=%00 HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"other scheme", B("GET ftp://a/ HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"no authority", B("GET http:///x HTTP/1.1\r\nHost:\r\n\r\n"), MT_E_BAD_REQUEST},
    {"target and Host differ", B("GET http://b/ HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"user in the target", B("GET http://u@a/ HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"two empty lines first", B("\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n"), MT_E_BAD_REQUEST},
    {"TLS hello", B("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), MT_E_BAD_REQUEST},
    {"odd Connection", B("GET / HTTP/1.1\r\n" H "Connection: a b\r\n\r\n"), MT_E_BAD_REQUEST},
    {"unknown expectation", B("PUT / HTTP/1.1\r\n" H "Expect: 200-ok\r\n\r\n"),
     MT_E_EXPECTATION_FAILED},
    {"two expectations",
     B("PUT / HTTP/1.1\r\n" H "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n"),
     MT_E_EXPECTATION_FAILED},
    {"HTTP/1.0 body without length", B("POST / HTTP/1.0\r\n\r\nhello"), MT_E_LENGTH_REQUIRED},
};

static const struct {
    const char *name, *text;
    size_t len, body; // of the bytes, how many come after the head
} TAKEN[] = {
    {"plain", B("GET / HTTP/1.1\r\n" H "\r\n"), 0},
    {"an empty line first", B("\r\nGET / HTTP/1.1\r\n" H "\r\n"), 0},
    {"no blank after the colon", B("GET / HTTP/1.1\r\nHost:a\r\n\r\n"), 0},
    {"empty Host", B("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 0},
    {"IPv6 Host", B("GET / HTTP/1.1\r\nHost: [::1]:7420\r\n\r\n"), 0},
    {"blanks round a value", B("GET / HTTP/1.1\r\n" H "X: \t a b \t\r\n\r\n"), 0},
    {"empty value", B("GET / HTTP/1.1\r\n" H "X:\r\n\r\n"), 0},
    {"bytes above 127 in a value", B("GET / HTTP/1.1\r\n" H "X: \xe9\r\n\r\n"), 0},
    {"every mark in a name", B("GET / HTTP/1.1\r\n" H "!#$%&'*+-.^_`|~0aZ: x\r\n\r\n"), 0},
    {"length", B("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello"), 5},
    {"length with zeros", B("POST / HTTP/1.1\r\n" H "Content-Length: 005\r\n\r\nhello"), 5},
    {"chunked in capitals", B("POST / HTTP/1.1\r\n" H "transfer-encoding: CHUNKED\r\n\r\n"), 0},
    {"no body", B("POST / HTTP/1.1\r\n" H "\r\n"), 0},
    {"absolute", B("GET http://a/b?c HTTP/1.1\r\n" H "\r\n"), 0},
    {"absolute, Host in capitals", B("GET HTTP://a HTTP/1.1\r\nHost: A\r\n\r\n"), 0},
    {"OPTIONS *", B("OPTIONS * HTTP/1.1\r\n" H "\r\n"), 0},
    {"HTTP/1.0", B("GET / HTTP/1.0\r\n\r\n"), 0},
    {"every mark in a path", B("GET /-._~!$&'()*+,;=:@%41/?/?a=%2F HTTP/1.1\r\n" H "\r\n"), 0},
    {"Connection list", B("GET / HTTP/1.1\r\n" H "Connection: a, ,close,\r\n\r\n"), 0},
};

static void test_refused(void)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(REFUSED); i++)
        if (!CHECK(all_agree(REFUSED[i].text, REFUSED[i].len, MT_HTTP_WRONG, REFUSED[i].wrong)))
            printf("# %s\n", REFUSED[i].name);
}

static void test_taken(void)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(TAKEN); i++) {
        mt_http_head h;

        // Splits within the body say nothing about the head: only up to its end.
        if (!CHECK(all_agree(TAKEN[i].text, TAKEN[i].len, MT_HTTP_WHOLE, MT_E_NONE)))
            printf("# %s\n", TAKEN[i].name);
        (void)parse_split(&h, TAKEN[i].text, TAKEN[i].len, 0);
        CHECK_INT(h.bytes, TAKEN[i].len - TAKEN[i].body);
        // One byte less is not enough.
        CHECK_INT(parse_split(&h, TAKEN[i].text, TAKEN[i].len - TAKEN[i].body - 1, 0),
                  MT_HTTP_MORE);
    }
}

static void test_values(void)
{
    static const char TEXT[] = "PUT /a%20b?x=1 HTTP/1.1\r\nHost: h:1\r\nContent-Length: 12\r\n"
                               "Connection: Close\r\nX-Empty: \r\nExpect: 100-Continue\r\n\r\n";
    mt_http_head h;

    CHECK_INT(parse_split(&h, TEXT, sizeof(TEXT) - 1, 0), MT_HTTP_WHOLE);
    CHECK_INT(h.method, MT_HTTP_PUT);
    CHECK(mt_str_eq(mt_http_at(TEXT, h.target), "/a%20b?x=1"));
    CHECK_INT(h.minor, 1);
    CHECK_INT(h.field_count, 5);
    CHECK(mt_str_eq(mt_http_at(TEXT, h.fields[0].name), "Host"));
    CHECK(mt_str_eq(mt_http_at(TEXT, h.fields[0].value), "h:1"));
    CHECK_INT(h.fields[3].value.len, 0);
    CHECK_INT(h.framing, MT_HTTP_BODY_LENGTH);
    CHECK_INT(h.content_length, 12);
    CHECK(!h.keep_alive);
    CHECK(h.expect_continue);
}

static void test_limits(void)
{
    static char text[128 * 1024];
    mt_http_head h;
    size_t n;

    // The first line: 8 KiB fit, a byte more does not, whole or not.
    n = (size_t)snprintf(text, sizeof(text), "GET /");
    memset(text + n, 'a', 8192 - n - 9);
    (void)snprintf(text + 8192 - 9, 64, " HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK_INT(parse_split(&h, text, strlen(text), 0), MT_HTTP_WHOLE);
    text[8192 - 9] = 'a';
    (void)snprintf(text + 8193 - 9, 64, " HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK_INT(parse_split(&h, text, strlen(text), 0), MT_HTTP_WRONG);
    CHECK_INT(h.wrong, MT_E_URI_TOO_LONG);
    CHECK_INT(parse_split(&h, text, 8193, 0), MT_HTTP_MORE);
    CHECK_INT(parse_split(&h, text, 8194, 0), MT_HTTP_WRONG);
    CHECK_INT(h.wrong, MT_E_URI_TOO_LONG);

    // Fields: 100 fit.
    for (int fields = 100; fields <= 101; fields++) {
        n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n");
        for (int i = 1; i < fields; i++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "X: y\r\n");
        n += (size_t)snprintf(text + n, sizeof(text) - n, "\r\n");
        CHECK_INT(parse_split(&h, text, n, 0), fields == 100 ? MT_HTTP_WHOLE : MT_HTTP_WRONG);
    }
    CHECK_INT(h.wrong, MT_E_HEADERS_TOO_LARGE);

    // One long field.
    n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    memset(text + n, 'a', 40000);
    CHECK_INT(parse_split(&h, text, n + 30000, 0), MT_HTTP_MORE);
    CHECK_INT(parse_split(&h, text, n + 40000, 0), MT_HTTP_WRONG);
    CHECK_INT(h.wrong, MT_E_HEADERS_TOO_LARGE);

    // Smaller limits.
    mt_http_head_init(&h, 20, 30, 2);
    CHECK_INT(mt_http_head_parse(&h, B("GET /12345678 HTTP/1.1\r\n")), MT_HTTP_WRONG);
    mt_http_head_init(&h, 20, 30, 2);
    CHECK_INT(mt_http_head_parse(&h, B("GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nC: d\r\n\r\n")),
              MT_HTTP_WRONG);
    CHECK_STR(mt_code_name(h.wrong), "headersTooLarge");
}

static void test_answers(void)
{
    static const struct {
        const char *text;
        mt_http_progress expect;
        mt_http_framing framing;
        bool keep;
    } T[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", MT_HTTP_WHOLE, MT_HTTP_BODY_LENGTH, true},
        {"HTTP/1.1 200 \r\n\r\n", MT_HTTP_WHOLE, MT_HTTP_BODY_CLOSE, true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
         MT_HTTP_WHOLE, MT_HTTP_BODY_CHUNKED, false},
        {"HTTP/1.1 204 No Content\r\n\r\n", MT_HTTP_WHOLE, MT_HTTP_BODY_NONE, true},
        {"HTTP/1.1 100 Continue\r\n\r\n", MT_HTTP_WHOLE, MT_HTTP_BODY_NONE, true},
        {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", MT_HTTP_WHOLE, MT_HTTP_BODY_LENGTH, false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
         MT_HTTP_WRONG, 0, false},
        {"HTTP/1.1 200 OK\nContent-Length: 3\r\n\r\n", MT_HTTP_WRONG, 0, false},
        {"HTTP/1.1 20 OK\r\n\r\n", MT_HTTP_WRONG, 0, false},
        {"HTTP/1.1 099 OK\r\n\r\n", MT_HTTP_WRONG, 0, false},
        {"HTTP/1.1 600 OK\r\n\r\n", MT_HTTP_WRONG, 0, false},
        {"HTTP/2.0 200 OK\r\n\r\n", MT_HTTP_WRONG, 0, false},
        {"ICY 200 OK        \r\n\r\n", MT_HTTP_WRONG, 0, false},
        {"\r\nHTTP/1.1 200 OK\r\n\r\n", MT_HTTP_WRONG, 0, false},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(T); i++) {
        mt_http_head h;

        mt_http_head_init_answer(&h);
        CHECK_INT(mt_http_head_parse(&h, T[i].text, strlen(T[i].text)), T[i].expect);
        if (T[i].expect != MT_HTTP_WHOLE)
            continue;
        CHECK_INT(h.framing, T[i].framing);
        CHECK_INT(h.keep_alive, T[i].keep);
    }
}

// Runs data through a body decoder in pieces of `step` bytes; the content goes to out.
static mt_http_progress decode(const char *data, size_t len, size_t step, char *out,
                               size_t *ret_used)
{
    mt_http_progress p = MT_HTTP_MORE;
    mt_http_body b;
    size_t at = 0, n = 0;

    mt_http_body_init(&b, MT_HTTP_BODY_CHUNKED, 0);
    while (p == MT_HTTP_MORE && at < len) {
        size_t piece = MT_MIN(step, len - at), used;
        char *copy = malloc(piece);
        mt_str content;

        memcpy(copy, data + at, piece);
        p = mt_http_body_next(&b, copy, piece, &used, &content);
        memcpy(out + n, content.data, content.len);
        n += content.len;
        at += used;
        free(copy);
        if (!used && p == MT_HTTP_MORE)
            abort();
    }
    out[n] = '\0';
    *ret_used = at;
    return p;
}

static void test_chunked(void)
{
    static const struct {
        const char *text;
        mt_http_progress expect;
        const char *content;
    } T[] = {
        {"0\r\n\r\n", MT_HTTP_WHOLE, ""},
        {"5\r\nhello\r\n0\r\n\r\n", MT_HTTP_WHOLE, "hello"},
        {"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", MT_HTTP_WHOLE, "hello world"},
        {"00000000000005\r\nhello\r\n000\r\n\r\n", MT_HTTP_WHOLE, "hello"},
        {"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", MT_HTTP_WHOLE, "01234567890123456789"},
        {"5;a\r\nhello\r\n0;b=c;d=\"e\\\"\xe9 f\";g\r\n\r\n", MT_HTTP_WHOLE, "hello"},
        {"0\r\nX-Sum: abc\r\nY:\r\n\r\n", MT_HTTP_WHOLE, ""},
        {"5\r\nhel", MT_HTTP_MORE, "hel"},
        {"0\r\n\r", MT_HTTP_MORE, ""},
        {"\r\nhello", MT_HTTP_WRONG, ""},
        {"5 \r\nhello\r\n", MT_HTTP_WRONG, ""},
        {" 5\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"+5\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"-1\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"0x5\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"5_\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"g\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"5\nhello\r\n", MT_HTTP_WRONG, ""},
        {"5\r\rhello\r\n", MT_HTTP_WRONG, ""},
        {"5\r\nhello!\r\n", MT_HTTP_WRONG, "hello"},
        {"5\r\nhello\n0\r\n\r\n", MT_HTTP_WRONG, "hello"},
        {"5\r\nhello\r0\r\n\r\n", MT_HTTP_WRONG, "hello"},
        {"5\r\nhello0\r\n\r\n", MT_HTTP_WRONG, "hello"},
        {"00000000000000005\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"8000000000000000\r\n", MT_HTTP_WRONG, ""},
        {"ffffffffffffffff\r\n", MT_HTTP_WRONG, ""},
        {"10000000000000005\r\n", MT_HTTP_WRONG, ""},
        {"5;\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"5;=a\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"5;a=\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"5;a b\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"5;a=\"b\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"5;a=\"b\"c\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"5;a\n5\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"5;a=\"\n\"\r\nhello\r\n", MT_HTTP_WRONG, ""},
        {"0\r\n X: y\r\n\r\n", MT_HTTP_WRONG, ""},
        {"0\r\nX: y\r\n z\r\n\r\n", MT_HTTP_WRONG, ""},
        {"0\r\nX: y\n\r\n", MT_HTTP_WRONG, ""},
        {"0\r\nX : y\r\n\r\n", MT_HTTP_WRONG, ""},
        {"0\r\n: y\r\n\r\n", MT_HTTP_WRONG, ""},
        {"0\r\nX\r\n\r\n", MT_HTTP_WRONG, ""},
        {"0\r\nX: \x01\r\n\r\n", MT_HTTP_WRONG, ""},
        {"0\r\nContent-LENGTH: 5\r\n\r\n", MT_HTTP_WRONG, ""},
        {"0\r\nTransfer-Encoding: chunked\r\n\r\n", MT_HTTP_WRONG, ""},
        {"0\r\nHost: b\r\n\r\n", MT_HTTP_WRONG, ""},
        {"0\r\n\rX", MT_HTTP_WRONG, ""},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(T); i++) {
        size_t len = strlen(T[i].text);
        bool same = true;

        for (size_t step = 1; step <= len; step++) {
            char out[64];
            size_t used;
            mt_http_progress p = decode(T[i].text, len, step, out, &used);

            same = same && p == T[i].expect && mt_streq(out, T[i].content) &&
                   (p != MT_HTTP_WHOLE || used == len);
        }
        if (!CHECK(same))
            printf("# chunked case %zu\n", i);
    }
}

static void test_chunked_limits(void)
{
    static char text[256 * 1024], out[256 * 1024];
    size_t n = 0, used;

    // An extension of 300 bytes.
    n = (size_t)snprintf(text, sizeof(text), "5;");
    memset(text + n, 'a', 300);
    CHECK_INT(decode(text, n + 300, 1000, out, &used), MT_HTTP_WRONG);
    // Many small ones.
    n = 0;
    for (int i = 0; i < 5000; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "1;aaaaaaaa\r\nx\r\n");
    CHECK_INT(decode(text, n, 1000, out, &used), MT_HTTP_WRONG);
    CHECK(strlen(out) > 1000);
    // Trailers without end.
    n = (size_t)snprintf(text, sizeof(text), "0\r\n");
    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "X: y\r\n");
    CHECK_INT(decode(text, n, 1000, out, &used), MT_HTTP_WRONG);
    n = (size_t)snprintf(text, sizeof(text), "0\r\nX: ");
    memset(text + n, 'a', 10000);
    CHECK_INT(decode(text, n + 10000, 1000, out, &used), MT_HTTP_WRONG);
}

static void test_length_body(void)
{
    mt_http_body b;
    mt_str content;
    size_t used;

    mt_http_body_init(&b, MT_HTTP_BODY_LENGTH, 5);
    CHECK_INT(mt_http_body_next(&b, "hel", 3, &used, &content), MT_HTTP_MORE);
    CHECK_INT(content.len, 3);
    CHECK_INT(mt_http_body_next(&b, "loGET", 5, &used, &content), MT_HTTP_WHOLE);
    CHECK_INT(used, 2);
    CHECK(mt_str_eq(content, "lo"));
    mt_http_body_init(&b, MT_HTTP_BODY_LENGTH, 0);
    CHECK_INT(mt_http_body_next(&b, "x", 1, &used, &content), MT_HTTP_WHOLE);
    CHECK_INT(used, 0);
    mt_http_body_init(&b, MT_HTTP_BODY_CLOSE, 0);
    CHECK_INT(mt_http_body_next(&b, "abc", 3, &used, &content), MT_HTTP_MORE);
    CHECK_INT(content.len, 3);
}

static void test_decode(void)
{
    char out[64];

    CHECK_INT(mt_http_percent_decode(MT_STR("a%2Fb+c%ff"), false, out), 6);
    CHECK(memcmp(out, "a/b+c\xff", 6) == 0);
    CHECK_INT(mt_http_percent_decode(MT_STR("a+b%2b"), true, out), 4);
    CHECK(memcmp(out, "a b+", 4) == 0);
    CHECK_INT(mt_http_percent_decode(MT_STR(""), true, out), 0);
    CHECK_INT(mt_http_percent_decode(MT_STR("%"), false, out), -1);
    CHECK_INT(mt_http_percent_decode(MT_STR("%4"), false, out), -1);
    CHECK_INT(mt_http_percent_decode(MT_STR("%4g"), false, out), -1);
    CHECK_INT(mt_http_percent_decode(MT_STR("a%00"), false, out), -1);
    CHECK(mt_http_is_token(MT_STR("X-y")) && !mt_http_is_token(MT_STR("")) &&
          !mt_http_is_token(MT_STR("a b")));
    CHECK(mt_http_is_field_value(MT_STR("")) && !mt_http_is_field_value(MT_STR("a\rb")));
}

int main(void)
{
    test_refused();
    test_taken();
    test_values();
    test_limits();
    test_answers();
    test_chunked();
    test_chunked_limits();
    test_length_body();
    test_decode();
    return TAP_DONE();
}
