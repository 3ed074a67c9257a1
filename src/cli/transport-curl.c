// SPDX-License-Identifier: Apache-2.0
// https, and proxies for http, by libcurl: the only file that sees it.
#include "cli/cli.h"

#include "base/clock.h"

#include <curl/curl.h>
#include <strings.h>

typedef struct curled {
    transport head;
    CURL *easy;
    char *base; // "https://host:port", no slash at its end
} curled;

typedef struct call_state {
    const transport_request *request;
    transport_answer *answer;
    mt_err *error; // of a callback
    bool head_seen, sent;
    curl_off_t moved; // bytes both ways when something last moved
    int64_t moved_us;
} call_state;

bool transport_curl_wanted(const transport_url *url)
{
    static const char *const variables[] = {"http_proxy", "all_proxy", "ALL_PROXY"};

    if (url->scheme != TRANSPORT_HTTP)
        return url->scheme == TRANSPORT_HTTPS;
    for (size_t i = 0; i < MT_ARRAY_SIZE(variables); i++) {
        const char *value = getenv(variables[i]);

        // libcurl judges no_proxy; what is on this machine never goes through a proxy.
        if (value && value[0] && !transport_url_is_local(url))
            return true;
    }
    return false;
}

static bool header_is(const char *line, size_t len, const char *name, mt_str *value)
{
    size_t n = strlen(name);

    if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
        return false;
    line += n + 1;
    len -= n + 1;
    while (len > 0 && (*line == ' ' || *line == '\t'))
        line++, len--;
    while (len > 0 && strchr("\r\n \t", line[len - 1]))
        len--;
    *value = (mt_str){line, len};
    return true;
}

static void keep(char **slot, mt_str value)
{
    free(*slot);
    *slot = mt_str_dup(value);
}

static size_t on_header(char *line, size_t size, size_t count, void *data)
{
    call_state *s = data;
    transport_answer *a = s->answer;
    size_t len = size * count;
    mt_str value;

    if (len > 5 && strncmp(line, "HTTP/", 5) == 0) { // of a proxy's or interim answer: again
        a->has_length = a->has_offset = false;
        keep(&a->content_type, MT_STR(""));
        keep(&a->retry_after, MT_STR(""));
    } else if (header_is(line, len, "Content-Type", &value)) {
        keep(&a->content_type, value);
    } else if (header_is(line, len, "Retry-After", &value)) {
        keep(&a->retry_after, value);
    } else if (header_is(line, len, "Content-Length", &value)) {
        a->has_length = mt_parse_u64(value, UINT64_MAX, &a->length);
    } else if (header_is(line, len, "X-Maitento-Offset", &value)) {
        a->has_offset = mt_parse_u64(value, INT64_MAX, &a->offset);
    }
    return len;
}

// The first piece, or the end of an answer without one.
static int head_once(call_state *s, const curled *c)
{
    const transport_request *r = s->request;
    long status = 0;

    if (s->head_seen)
        return 0;
    s->head_seen = true;
    (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    s->answer->status = (int)status;
    return status >= 200 && status <= 299 && r->on_head ? r->on_head(s->answer, r->data, &s->error)
                                                        : 0;
}

typedef struct sink {
    call_state *state;
    const curled *curled;
} sink;

static size_t on_body(char *piece, size_t size, size_t count, void *data)
{
    sink *k = data;
    call_state *s = k->state;
    size_t len = size * count;

    if (head_once(s, k->curled) < 0)
        return 0;
    if (s->request->on_data && s->answer->status >= 200 && s->answer->status <= 299)
        return s->request->on_data(piece, len, s->request->data, &s->error) < 0 ? 0 : len;
    if (mt_buf_add(&s->answer->body, piece, len) < 0) {
        (void)mt_fail(&s->error, MT_E_TOO_LARGE, "the answer is larger than %d MiB",
                      TRANSPORT_COLLECT_MAX >> 20);
        return 0;
    }
    return len;
}

static size_t on_read(char *buf, size_t size, size_t count, void *data)
{
    call_state *s = data;
    ptrdiff_t n = s->request->read_body(buf, size * count, s->request->data, &s->error);

    return n < 0 ? CURL_READFUNC_ABORT : (size_t)n;
}

// Called at least once a second: stops on a signal, and when nothing moved for too long.
static int on_progress(void *data, curl_off_t dltotal, curl_off_t dlnow, curl_off_t ultotal,
                       curl_off_t ulnow)
{
    call_state *s = data;
    int64_t limit = s->request->idle_timeout_ms ? s->request->idle_timeout_ms : 90000;
    int64_t now = mt_monotonic_us();

    (void)dltotal;
    (void)ultotal;
    if (dlnow + ulnow != s->moved || s->moved_us == 0) {
        s->moved = dlnow + ulnow;
        s->moved_us = now;
    }
    return cli_interrupted || now - s->moved_us > limit * 1000;
}

static void set_up(CURL *e, call_state *s, sink *k, struct curl_slist *headers, const char *url)
{
    const transport_request *r = s->request;

    curl_easy_reset(e);
    (void)curl_easy_setopt(e, CURLOPT_URL, url);
    (void)curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, 10L);
    (void)curl_easy_setopt(e, CURLOPT_USERAGENT, "mt/" MT_VERSION);
    (void)curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(e, CURLOPT_HEADERDATA, s);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, k);
    (void)curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(e, CURLOPT_XFERINFODATA, s);
    if (getenv("SSL_CERT_FILE")) // a CA of one's own; Debian's libcurl does not look by itself
        (void)curl_easy_setopt(e, CURLOPT_CAINFO, getenv("SSL_CERT_FILE"));
    if (r->read_body) {
        (void)curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
        (void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
        (void)curl_easy_setopt(e, CURLOPT_READDATA, s);
        (void)curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->body_length);
    } else if (r->has_body) {
        (void)curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
        (void)curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->body_len > 0 ? r->body : "");
    } else if (mt_streq(r->method, "HEAD")) {
        (void)curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    }
    (void)curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r->method);
}

static int failure(const curled *c, const call_state *s, CURLcode code, const char *text,
                   mt_err **err)
{
    bool harmless = !mt_streq(s->request->method, "POST");
    long sent = 0;

    (void)curl_easy_getinfo(c->easy, CURLINFO_REQUEST_SIZE, &sent);
    if (code == CURLE_ABORTED_BY_CALLBACK)
        text = cli_interrupted ? "interrupted" : "nothing came for too long";
    return mt_fail(err, harmless || sent == 0 ? MT_E_UNREACHABLE : MT_E_OUTCOME_UNKNOWN,
                   "the server at %s: %s", c->base, text[0] ? text : curl_easy_strerror(code));
}

static struct curl_slist *header_list(const transport_request *r)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");

    for (size_t i = 0; i < r->header_count; i++) {
        _cleanup_free_ char *line = NULL;

        if (!r->headers[i][1])
            continue;
        line = xprintf("%s: %s", r->headers[i][0], r->headers[i][1]);
        list = curl_slist_append(list, line);
    }
    return list;
}

static int curl_call(transport *t, const transport_request *request, transport_answer *a,
                     mt_err **err)
{
    curled *c = MT_CONTAINER_OF(t, curled, head);
    call_state s = {.request = request, .answer = a};
    sink k = {&s, c};
    struct curl_slist *headers = header_list(request);
    _cleanup_free_ char *url = xprintf("%s%s", c->base, request->target);
    char text[CURL_ERROR_SIZE] = "";
    CURLcode code;

    a->body = (mt_buf)MT_BUF_INIT(TRANSPORT_COLLECT_MAX);
    set_up(c->easy, &s, &k, headers, url);
    (void)curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, text);
    code = curl_easy_perform(c->easy);
    (void)curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, NULL);
    curl_slist_free_all(headers);
    if (code == CURLE_OK && !s.error)
        (void)head_once(&s, c);
    if (s.error) {
        mt_err_move(err, s.error);
        return -1;
    }
    return code == CURLE_OK ? 0 : failure(c, &s, code, text, err);
}

static void curl_free_transport(transport *t)
{
    curled *c = MT_CONTAINER_OF(t, curled, head);

    if (c->easy)
        curl_easy_cleanup(c->easy);
    free(c->base);
    free(c);
    curl_global_cleanup();
}

transport *transport_curl_new(const char *url, mt_err **err)
{
    static const transport_ops ops = {curl_call, curl_free_transport};
    curled *c = xalloc(sizeof(*c));
    size_t len = strlen(url);

    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    c->head.ops = &ops;
    c->base = xstrdup(url);
    if (len > 0 && url[len - 1] == '/')
        c->base[len - 1] = '\0';
    c->easy = curl_easy_init();
    if (!c->easy) {
        (void)mt_fail(err, MT_E_INTERNAL, "libcurl cannot be set up");
        curl_free_transport(&c->head);
        return NULL;
    }
    return &c->head;
}
