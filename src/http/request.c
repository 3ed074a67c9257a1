// SPDX-License-Identifier: Apache-2.0
// The request as handlers see it: one block of memory with everything decoded, immutable and
// reference counted, so that a worker may read on after the exchange is over.
#include "http/server-internal.h"

#include <stdatomic.h>

struct pair {
    mt_str name, value;
};

struct mt_http_request {
    atomic_uint refs;
    mt_http_method method;
    mt_http_framing framing;
    uint64_t content_length;
    mt_str target, raw_path, path, host;
    struct pair *fields, *query;
    size_t field_count, query_count;
    mt_buf body; // written on the loop's thread only, before on_request
};

// Copies into the block at *at and puts a NUL behind.
static mt_str put(char **at, mt_str s)
{
    mt_str out = {*at, s.len};

    if (s.len)
        memcpy(*at, s.data, s.len);
    (*at)[s.len] = '\0';
    *at += s.len + 1;
    return out;
}

static mt_str put_decoded(char **at, mt_str s, bool plus)
{
    mt_str out = {*at, 0};
    ptrdiff_t n = mt_http_percent_decode(s, plus, *at);

    // The parser has refused what cannot be decoded.
    out.len = n < 0 ? 0 : (size_t)n;
    (*at)[out.len] = '\0';
    *at += out.len + 1;
    return out;
}

struct parts {
    mt_str host, path, query;
    bool absolute;
};

// The target in its parts; the parser has checked its form.
static struct parts split_target(mt_str target)
{
    struct parts p = {.path = target};
    const char *q;

    if (target.len && target.data[0] != '/' && target.data[0] != '*') {
        const char *host = memchr(target.data, ':', target.len);
        size_t n = 0, rest;

        host += 3;
        rest = target.len - (size_t)(host - target.data);
        while (n < rest && host[n] != '/' && host[n] != '?')
            n++;
        p.absolute = true;
        p.host = (mt_str){host, n};
        p.path = (mt_str){host + n, rest - n};
    }
    q = memchr(p.path.data, '?', p.path.len);
    if (q) {
        p.query = (mt_str){q + 1, p.path.len - (size_t)(q + 1 - p.path.data)};
        p.path.len = (size_t)(q - p.path.data);
    }
    if (!p.path.len)
        p.path = MT_STR("/");
    return p;
}

static size_t count_parameters(mt_str query)
{
    size_t n = query.len ? 1 : 0;

    for (size_t i = 0; i < query.len; i++)
        n += query.data[i] == '&';
    return n;
}

static void put_query(mt_http_request *r, char **at, mt_str query)
{
    size_t from = 0;

    while (from < query.len) {
        const char *amp = memchr(query.data + from, '&', query.len - from);
        size_t end = amp ? (size_t)(amp - query.data) : query.len;
        mt_str name = {query.data + from, end - from}, value = {"", 0};
        const char *eq = memchr(name.data, '=', name.len);

        from = end + 1;
        if (!name.len)
            continue;
        if (eq) {
            value = (mt_str){eq + 1, name.len - (size_t)(eq + 1 - name.data)};
            name.len = (size_t)(eq - name.data);
        }
        r->query[r->query_count].name = put_decoded(at, name, true);
        r->query[r->query_count++].value = put_decoded(at, value, true);
    }
}

static void put_fields(mt_http_request *r, char **at, const mt_http_head *h, const char *data)
{
    for (uint32_t i = 0; i < h->field_count; i++) {
        struct pair *f = &r->fields[r->field_count++];

        f->name = put(at, mt_http_at(data, h->fields[i].name));
        f->value = put(at, mt_http_at(data, h->fields[i].value));
    }
}

int mt_http_request_make_(const mt_http_head *h, const char *data, size_t max_parameters,
                          mt_http_request **ret)
{
    mt_str target = mt_http_at(data, h->target);
    struct parts p = split_target(target);
    size_t parameters = count_parameters(p.query), text;
    mt_http_request *r;
    char *at;

    if (parameters > max_parameters)
        return -E2BIG;
    // Every part is copied once with a NUL behind: head bytes, and the target's parts once more.
    text = h->bytes + 3 * target.len + 2 * h->field_count + 2 * parameters + 16;
    r = calloc(1, sizeof(*r) + sizeof(struct pair) * (h->field_count + parameters) + text);
    if (!r)
        return -ENOMEM;
    atomic_init(&r->refs, 1);
    r->body = (mt_buf)MT_BUF_SECRET_INIT(SIZE_MAX / 4); // the connection counts
    r->method = h->method;
    r->framing = h->framing;
    r->content_length = h->content_length;
    r->fields = (struct pair *)(r + 1);
    r->query = r->fields + h->field_count;
    at = (char *)(r->query + parameters);
    put_fields(r, &at, h, data);
    r->target = put(&at, target);
    r->raw_path = put(&at, p.path);
    r->path = put_decoded(&at, p.path, false);
    put_query(r, &at, p.query);
    if (p.absolute)
        r->host = put(&at, p.host);
    else if (!mt_http_header(r, "host", &r->host))
        r->host = (mt_str){"", 0};
    *ret = r;
    return 0;
}

mt_buf *mt_http_request_buf_(mt_http_request *r)
{
    return &r->body;
}

mt_http_request *mt_http_request_ref(const mt_http_request *r)
{
    mt_http_request *mine = (mt_http_request *)r; // only the count changes

    (void)atomic_fetch_add_explicit(&mine->refs, 1, memory_order_relaxed);
    return mine;
}

void mt_http_request_unref(mt_http_request *r)
{
    if (!r || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    mt_buf_done(&r->body);
    free(r);
}

mt_http_method mt_http_request_method(const mt_http_request *r)
{
    return r->method;
}

mt_str mt_http_request_target(const mt_http_request *r)
{
    return r->target;
}

mt_str mt_http_request_path(const mt_http_request *r)
{
    return r->path;
}

mt_str mt_http_request_raw_path(const mt_http_request *r)
{
    return r->raw_path;
}

mt_str mt_http_request_host(const mt_http_request *r)
{
    return r->host;
}

bool mt_http_query(const mt_http_request *r, const char *name, size_t n, mt_str *ret_value)
{
    for (size_t i = 0; i < r->query_count; i++) {
        if (!mt_str_eq(r->query[i].name, name) || n-- > 0)
            continue;
        *ret_value = r->query[i].value;
        return true;
    }
    return false;
}

size_t mt_http_query_count(const mt_http_request *r)
{
    return r->query_count;
}

mt_str mt_http_query_name(const mt_http_request *r, size_t i)
{
    return i < r->query_count ? r->query[i].name : (mt_str){"", 0};
}

mt_str mt_http_query_value(const mt_http_request *r, size_t i)
{
    return i < r->query_count ? r->query[i].value : (mt_str){"", 0};
}

bool mt_http_header(const mt_http_request *r, const char *name, mt_str *ret_value)
{
    for (size_t i = 0; i < r->field_count; i++) {
        if (mt_str_ieq(r->fields[i].name, name)) {
            *ret_value = r->fields[i].value;
            return true;
        }
    }
    return false;
}

size_t mt_http_header_count(const mt_http_request *r, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < r->field_count; i++)
        n += mt_str_ieq(r->fields[i].name, name);
    return n;
}

bool mt_http_request_has_body(const mt_http_request *r)
{
    return r->framing == MT_HTTP_BODY_CHUNKED ||
           (r->framing == MT_HTTP_BODY_LENGTH && r->content_length > 0);
}

bool mt_http_request_length(const mt_http_request *r, uint64_t *ret)
{
    if (r->framing != MT_HTTP_BODY_LENGTH)
        return false;
    *ret = r->content_length;
    return true;
}

mt_str mt_http_request_body(const mt_http_request *r)
{
    return (mt_str){mt_buf_str(&r->body), r->body.len};
}
