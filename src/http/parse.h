// SPDX-License-Identifier: Apache-2.0
// The strict HTTP/1.1 parser (RFC 9112 grammar only), apart from all I/O: bytes in; whole, more
// needed or wrong (with a reason) out. It allocates nothing and keeps no pointer into the input:
// results are offsets, so a caller's buffer may move between calls. Used by server and client.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum {
    MT_HTTP_MAX_FIELDS = 100,            // hard bound of the table in mt_http_head
    MT_HTTP_MAX_LINE = 8 * 1024,         // default bound of the request or status line
    MT_HTTP_MAX_HEADER_BYTES = 32 * 1024 // default bound of all field lines together
};

typedef enum mt_http_progress {
    MT_HTTP_WRONG = -1, // for good: why and wrong tell; the connection cannot be used on
    MT_HTTP_MORE = 0,
    MT_HTTP_WHOLE = 1,
} mt_http_progress;

typedef struct mt_http_span {
    uint32_t at, len; // into the data that was parsed
} mt_http_span;

typedef struct mt_http_field {
    mt_http_span name, value; // value without the blanks around it
} mt_http_field;

typedef enum mt_http_method {
    MT_HTTP_OTHER, // a well-formed method that the core does not know: 501 in the server
    MT_HTTP_GET,
    MT_HTTP_HEAD,
    MT_HTTP_POST,
    MT_HTTP_PUT,
    MT_HTTP_PATCH,
    MT_HTTP_DELETE,
    MT_HTTP_OPTIONS,
} mt_http_method;
const char *mt_http_method_name(mt_http_method method);

typedef enum mt_http_framing {
    MT_HTTP_BODY_NONE,    // there is no body
    MT_HTTP_BODY_LENGTH,  // Content-Length (may be 0)
    MT_HTTP_BODY_CHUNKED, // Transfer-Encoding: chunked
    MT_HTTP_BODY_CLOSE,   // answers only: until the connection ends
} mt_http_framing;

// One message head, being parsed or whole. Everything up to the private part is valid after
// MT_HTTP_WHOLE.
typedef struct mt_http_head {
    // The request line…
    mt_http_method method;
    mt_http_span method_text, target;
    // …or the status line.
    int status;
    int minor; // 0 or 1: HTTP/1.0, HTTP/1.1
    uint32_t field_count;
    mt_http_field fields[MT_HTTP_MAX_FIELDS];
    mt_http_framing framing;
    uint64_t content_length; // with MT_HTTP_BODY_LENGTH
    bool keep_alive;         // what version and Connection say
    bool expect_continue;    // HTTP/1.1 with Expect: 100-continue
    size_t bytes;            // of the head, its empty line included: the body begins there
    // After MT_HTTP_WRONG: BAD_REQUEST, URI_TOO_LONG, HEADERS_TOO_LARGE, HTTP_VERSION,
    // NOT_SUPPORTED (method), EXPECTATION_FAILED or LENGTH_REQUIRED, and a sentence.
    mt_code wrong;
    const char *why;

    // private
    size_t max_line_, max_header_bytes_, max_fields_;
    size_t line_, scan_, headers_;
    int stage_;
    bool answer_, blank_;
} mt_http_head;

// 0 for a limit takes the default.
void mt_http_head_init(mt_http_head *h, size_t max_line, size_t max_header_bytes,
                       size_t max_fields);
// As that, for the head of an answer. Heads with status 1xx are whole messages of their own.
void mt_http_head_init_answer(mt_http_head *h);
// data holds all bytes of the head received so far, from its first one (the same bytes as in the
// calls before, and more after them). Each byte is looked at once over all calls.
mt_http_progress mt_http_head_parse(mt_http_head *h, const char *data, size_t len);

static inline mt_str mt_http_at(const char *data, mt_http_span span)
{
    return (mt_str){data + span.at, span.len};
}

// A message body, taken apart as it comes.
typedef struct mt_http_body {
    mt_http_framing framing;
    uint64_t left;    // of the body (LENGTH) or of the chunk
    const char *why;  // after MT_HTTP_WRONG
    int state_;       // private from here
    uint32_t digits_; // of the chunk size
    uint32_t ext_, ext_total_;
    uint32_t trailer_, trailer_lines_;
    char name_[24]; // start of the trailer's name, in lower case
    uint32_t name_len_;
} mt_http_body;

void mt_http_body_init(mt_http_body *b, mt_http_framing framing, uint64_t length);
// Reads a piece: *ret_used bytes of data were taken, *ret_content is the content among them (a
// slice of data, may be empty). Call again with the rest while MT_HTTP_MORE and bytes are left.
// WHOLE: the body ended with the last byte used. BODY_CLOSE never says WHOLE: the end is the
// connection's.
mt_http_progress mt_http_body_next(mt_http_body *b, const char *data, size_t len, size_t *ret_used,
                                   mt_str *ret_content);

// Grammar helpers.
bool mt_http_is_token(mt_str s);
bool mt_http_is_field_value(mt_str s); // VCHAR, obs-text, blanks inside: no control bytes at all
// Percent-decodes s to out (s.len bytes are enough); plus: '+' is a space (queries). Returns the
// length, or -1 for a bad escape or a NUL.
ptrdiff_t mt_http_percent_decode(mt_str s, bool plus, char *out);
