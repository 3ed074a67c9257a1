// SPDX-License-Identifier: Apache-2.0
// A whole connection's bytes, as the server takes them: head, body, next head. The input is read
// twice, in one piece and in pieces whose sizes its first byte chooses; both must say the same.
// What is inside the results must stay within the input.
#include "http/parse.h"
#include "http/server-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What a connection amounted to.
struct sum {
    uint64_t requests, body_bytes, hash;
    mt_http_progress last;
    size_t used;
};

static void mix(struct sum *s, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        s->hash = (s->hash ^ (unsigned char)data[i]) * UINT64_C(1099511628211);
}

static void mix_str(struct sum *s, mt_str text)
{
    if (text.data[text.len] != '\0')
        abort();
    mix(s, text.data, text.len + 1);
}

static void look_at_head(struct sum *s, const mt_http_head *h, const char *data, size_t len)
{
    mt_http_request *r = NULL;
    mt_str value;

    if (h->bytes > len || h->target.at + h->target.len > h->bytes)
        abort();
    if (mt_http_request_make_(h, data, 64, &r) < 0)
        return;
    if (!mt_http_request_path(r).len ||
        memchr(mt_http_request_path(r).data, 0, mt_http_request_path(r).len))
        abort();
    mix_str(s, mt_http_request_path(r));
    mix_str(s, mt_http_request_raw_path(r));
    mix_str(s, mt_http_request_host(r));
    for (size_t i = 0; i < mt_http_query_count(r); i++) {
        mix_str(s, mt_http_query_name(r, i));
        mix_str(s, mt_http_query_value(r, i));
    }
    if (mt_http_header(r, "content-length", &value))
        mix_str(s, value);
    mt_http_request_unref(r);
}

// Gives `len` bytes at most `step` more at a time to the head parser.
static bool read_head(struct sum *s, const char *data, size_t len, size_t step, mt_http_head *h)
{
    size_t have = 0;

    mt_http_head_init(h, 0, 0, 0);
    s->last = MT_HTTP_MORE;
    while (s->last == MT_HTTP_MORE && have < len) {
        have = MT_MIN(len, have + step);
        s->last = mt_http_head_parse(h, data, have);
    }
    if (s->last == MT_HTTP_WRONG) {
        if (!h->why || !h->wrong)
            abort();
        mix(s, h->why, strlen(h->why));
    }
    return s->last == MT_HTTP_WHOLE;
}

static bool read_body(struct sum *s, const char *data, size_t len, size_t step,
                      const mt_http_head *h)
{
    mt_http_body b;
    size_t off = 0;

    mt_http_body_init(&b, h->framing, h->content_length);
    s->last = h->framing == MT_HTTP_BODY_NONE ? MT_HTTP_WHOLE : MT_HTTP_MORE;
    while (s->last == MT_HTTP_MORE && off < len) {
        size_t piece = MT_MIN(step, len - off), used;
        mt_str content;

        s->last = mt_http_body_next(&b, data + off, piece, &used, &content);
        if (used > piece || content.len > used)
            abort();
        if (s->last == MT_HTTP_MORE && !used)
            abort();
        if (s->last != MT_HTTP_WRONG) {
            mix(s, content.data, content.len);
            s->body_bytes += content.len;
            off += used;
        } else if (!b.why) {
            abort();
        }
    }
    s->used += off;
    return s->last == MT_HTTP_WHOLE;
}

static struct sum read_all(const char *data, size_t len, size_t step)
{
    struct sum s = {.hash = UINT64_C(14695981039346656037)};
    mt_http_head h;

    while (s.used < len && read_head(&s, data + s.used, len - s.used, step, &h)) {
        look_at_head(&s, &h, data + s.used, len - s.used);
        s.requests++;
        s.used += h.bytes;
        if (!read_body(&s, data + s.used, len - s.used, step, &h))
            break;
    }
    return s;
}

// The same bytes as an answer: the client's side.
static void read_answer(const char *data, size_t len)
{
    mt_http_head h;
    struct sum s = {0};

    mt_http_head_init_answer(&h);
    if (mt_http_head_parse(&h, data, len) == MT_HTTP_WHOLE)
        (void)read_body(&s, data + h.bytes, len - h.bytes, len, &h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sum whole, pieces;
    const char *text = (const char *)data + 1;

    if (size < 1 || size > 256 * 1024)
        return 0;
    whole = read_all(text, size - 1, SIZE_MAX / 2);
    pieces = read_all(text, size - 1, 1 + data[0] % 61);
    if (whole.requests != pieces.requests || whole.body_bytes != pieces.body_bytes ||
        whole.hash != pieces.hash || whole.last != pieces.last ||
        (whole.last != MT_HTTP_WRONG && whole.used != pieces.used))
        abort();
    read_answer(text, size - 1);
    return 0;
}
