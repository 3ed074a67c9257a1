// SPDX-License-Identifier: Apache-2.0
// Answers: heads, bodies in memory, files, streams, problems. Everything is queued here and sent by
// send.c when the connection settles.
#include "base/utf8.h"
#include "http/server-internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { DETAIL_BYTES = 2048 };

static const struct {
    int status;
    const char *reason;
} REASONS[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

const char *mt_http_reason(int status)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(REASONS); i++)
        if (REASONS[i].status == status)
            return REASONS[i].reason;
    return "Unknown";
}

size_t mt_http_pending_(const mt_http_x *x)
{
    return x->out.len - x->out_off + (size_t)x->file_left;
}

void mt_http_answer_reset_(mt_http_x *x)
{
    x->answering = MT_HTTP_A_NONE;
    x->head_only = x->chunked = x->sized = x->minor0 = x->drain_due = false;
    x->drained = NULL;
    x->patience_ms = x->server->limits.send_idle_timeout_ms;
    mt_close_fd(&x->file);
    x->file_left = 0;
}

// "Sun, 06 Nov 1994 08:49:37 GMT", made once a second. No strftime: its names follow the locale.
static const char *date(mt_http_server *s)
{
    static const char DAYS[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char MONTHS[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = (time_t)(mt_now_us() / 1000000);
    struct tm tm;

    if (now != s->date_sec && gmtime_r(&now, &tm)) {
        s->date_sec = now;
        (void)snprintf(s->date, sizeof(s->date), "%s, %02u %s %04u %02u:%02u:%02u GMT",
                       DAYS[tm.tm_wday % 7], (unsigned)tm.tm_mday % 100, MONTHS[tm.tm_mon % 12],
                       (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100,
                       (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
    }
    return s->date;
}

static bool header_ok(const mt_http_header_line *line)
{
    static const char *const OURS[] = {"date", "connection", "content-length", "transfer-encoding",
                                       "x-content-type-options"};
    mt_str name = mt_str_of(line->name);

    for (size_t i = 0; i < MT_ARRAY_SIZE(OURS); i++)
        if (mt_str_ieq(name, OURS[i]))
            return false;
    return mt_http_is_token(name) && mt_http_is_field_value(mt_str_of(line->value));
}

static bool headers_ok(const mt_http_header_line *headers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (headers[i].value && !header_ok(&headers[i]))
            return false;
    return true;
}

// Whether the connection can carry another request after this answer. Where the body was not read
// to its end, what is left must be short and sure to come: a client that waits for 100 Continue may
// leave its body out.
static bool can_go_on(const mt_http_x *x)
{
    if (x->close_after || x->server->stopping)
        return false;
    if (x->state != MT_HTTP_S_BODY)
        return true;
    return !x->expects && x->body.framing == MT_HTTP_BODY_LENGTH &&
           x->body.left <= MT_HTTP_DRAIN_BYTES;
}

enum { LENGTH_UNKNOWN = -1 };

static bool has_no_body(int status)
{
    return status == 204 || status == 304;
}

static void put_head(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count,
                     int64_t length)
{
    mt_buf *b = &x->out;

    (void)mt_buf_addf(b, "HTTP/1.1 %d %s\r\nDate: %s\r\nX-Content-Type-Options: nosniff\r\n",
                      status, mt_http_reason(status), date(x->server));
    for (size_t i = 0; i < count; i++)
        if (headers[i].value)
            (void)mt_buf_addf(b, "%s: %s\r\n", headers[i].name, headers[i].value);
    if (length >= 0 && !has_no_body(status))
        (void)mt_buf_addf(b, "Content-Length: %lld\r\n", (long long)length);
    if (x->chunked)
        (void)mt_buf_adds(b, "Transfer-Encoding: chunked\r\n");
    if (x->close_after)
        (void)mt_buf_adds(b, "Connection: close\r\n");
    else if (x->minor0)
        (void)mt_buf_adds(b, "Connection: keep-alive\r\n");
    (void)mt_buf_adds(b, "\r\n");
}

// Decides how the connection goes on and queues the head.
static int begin(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count,
                 int64_t length)
{
    if (x->answering != MT_HTTP_A_NONE || x->broken)
        return -EALREADY;
    if (status < 200 || status > 599 || !headers_ok(headers, count))
        return -EINVAL;
    x->head_only = x->head_only || has_no_body(status);
    x->chunked = length == LENGTH_UNKNOWN && !x->minor0 && !has_no_body(status);
    if (!can_go_on(x) || (length == LENGTH_UNKNOWN && x->minor0))
        x->close_after = true;
    x->starting = false;
    if (x->state == MT_HTTP_S_BODY)
        x->state = x->close_after ? MT_HTTP_S_QUIET : MT_HTTP_S_DRAIN;
    put_head(x, status, headers, count, length);
    x->sent_ns = x->answered_ns = mt_boottime_ns();
    return 0;
}

enum { SMALL_ANSWER = 64 * 1024 }; // the number of connections bounds those

// What is held for all clients, x's new answer among it; and for each peer.
static size_t count_held(const mt_http_x *x, size_t len)
{
    const mt_http_server *s = x->server;
    size_t held = len;

    for (const mt_http_x *c = s->connections; c; c = c->next)
        c->peer_count->held = 0;
    x->peer_count->held = len;
    for (const mt_http_x *c = s->connections; c; c = c->next) {
        if (c == x || c->broken)
            continue;
        c->peer_count->held += c->out.len;
        held += c->out.len;
    }
    return held;
}

static bool goes_first(const mt_http_x *a, const mt_http_x *b)
{
    if (a->peer_count->held != b->peer_count->held)
        return a->peer_count->held > b->peer_count->held;
    return a->answered_ns < b->answered_ns;
}

// A client that takes its answer a few bytes at a time may keep it for as long as it likes: when
// many do, the one that has waited longest of the peer that has most goes, not the one that asks
// now.
static void make_room(const mt_http_x *x, size_t len)
{
    const mt_http_server *s = x->server;

    while (len > SMALL_ANSWER && count_held(x, len) > s->limits.answers_total) {
        mt_http_x *first = NULL;

        for (mt_http_x *c = s->connections; c; c = c->next)
            if (c != x && !c->broken && c->answering == MT_HTTP_A_ENDED &&
                c->out.len > SMALL_ANSWER && (!first || goes_first(c, first)))
                first = c;
        if (!first)
            return;
        mt_http_abort(first);
    }
}

// Out of memory in the queue: half an answer is worse than none.
static int queued(mt_http_x *x)
{
    if (x->out.failed)
        x->broken = true;
    mt_http_conn_kick_(x);
    return x->broken ? -ENOMEM : 0;
}

int mt_http_respond(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count,
                    const void *body, size_t len)
{
    int r = begin(x, status, headers, count, (int64_t)len);

    if (r < 0)
        return r;
    if (!x->head_only && len) {
        make_room(x, len);
        (void)mt_buf_add(&x->out, body, len);
    }
    x->answering = MT_HTTP_A_ENDED;
    return queued(x);
}

int mt_http_respond_fd(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count,
                       int fd, off_t offset, uint64_t length)
{
    _cleanup_close_ int file = fd;
    int r = length > INT64_MAX || offset < 0 ? -EINVAL
                                             : begin(x, status, headers, count, (int64_t)length);

    if (r < 0)
        return r;
    if (!x->head_only && length) {
        x->file = MT_TAKE_FD(file);
        x->file_off = offset;
        x->file_left = length;
    }
    x->answering = MT_HTTP_A_ENDED;
    return queued(x);
}

int mt_http_begin(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count)
{
    int r = begin(x, status, headers, count, LENGTH_UNKNOWN);

    if (r < 0)
        return r;
    x->answering = MT_HTTP_A_STREAM;
    return queued(x);
}

int mt_http_begin_sized(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count,
                        uint64_t length)
{
    int r = length > INT64_MAX ? -EINVAL : begin(x, status, headers, count, (int64_t)length);

    if (r < 0)
        return r;
    x->sized = true;
    x->stream_left = length;
    x->answering = MT_HTTP_A_STREAM;
    return queued(x);
}

int mt_http_write(mt_http_x *x, const void *data, size_t len)
{
    if (x->answering != MT_HTTP_A_STREAM || x->broken)
        return -EPIPE;
    if (!len || x->head_only)
        return 0;
    if (mt_http_queued(x) + len > x->server->limits.queue_bytes)
        return -ENOBUFS;
    if (x->sized && len > x->stream_left)
        return -EMSGSIZE;
    if (x->sized)
        x->stream_left -= len;
    if (!mt_http_pending_(x))
        x->sent_ns = mt_boottime_ns();
    if (x->chunked)
        (void)mt_buf_addf(&x->out, "%zx\r\n", len);
    (void)mt_buf_add(&x->out, data, len);
    if (x->chunked)
        (void)mt_buf_adds(&x->out, "\r\n");
    x->drain_due = true;
    return queued(x);
}

size_t mt_http_queued(const mt_http_x *x)
{
    return mt_http_pending_(x);
}

void mt_http_on_drained(mt_http_x *x, void (*fn)(mt_http_x *x, void *data), void *data)
{
    x->drained = fn;
    x->drained_data = data;
}

void mt_http_patience(mt_http_x *x, int64_t send_idle_timeout_ms)
{
    x->patience_ms = send_idle_timeout_ms;
}

int mt_http_end(mt_http_x *x)
{
    if (x->answering != MT_HTTP_A_STREAM || x->broken)
        return -EPIPE;
    if (x->chunked && !x->head_only)
        (void)mt_buf_adds(&x->out, "0\r\n\r\n");
    // Less than was said: only cutting tells the client.
    if (x->sized && !x->head_only && x->stream_left)
        x->broken = true;
    x->answering = MT_HTTP_A_ENDED;
    return queued(x);
}

void mt_http_abort(mt_http_x *x)
{
    x->broken = true;
    mt_http_conn_kick_(x);
}

static void put_json(mt_buf *b, const char *name, const char *text)
{
    (void)mt_buf_addf(b, "\"%s\":\"", name);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            (void)mt_buf_addf(b, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            (void)mt_buf_addf(b, "\\u%04x", (unsigned char)*c);
        else
            (void)mt_buf_addc(b, *c);
    }
    (void)mt_buf_addc(b, '"');
}

void mt_http_problem_body_(mt_buf *b, mt_code code, const char *detail)
{
    int status = mt_code_http_status(code);
    _cleanup_buf_ mt_buf clean = MT_BUF_INIT(4 * DETAIL_BYTES);

    (void)mt_utf8_add_clean(&clean, detail, strlen(detail));
    (void)mt_buf_adds(b, "{\"type\":\"about:blank\",");
    put_json(b, "title", mt_http_reason(status));
    (void)mt_buf_addf(b, ",\"status\":%d,", status);
    put_json(b, "code", mt_code_name(code));
    (void)mt_buf_addc(b, ',');
    put_json(b, "detail", mt_buf_str(&clean));
    (void)mt_buf_addc(b, ',');
    put_json(b, "help", mt_code_help(code));
    (void)mt_buf_adds(b, "}\n");
}

static int MT_PRINTF(3, 0) respond_problem(mt_http_x *x, mt_code code, const char *fmt, va_list ap)
{
    static const mt_http_header_line TYPE = {"Content-Type", "application/problem+json"};
    _cleanup_buf_ mt_buf body = MT_BUF_INIT(16 * DETAIL_BYTES);
    char detail[DETAIL_BYTES];

    (void)vsnprintf(detail, sizeof(detail), fmt, ap);
    mt_http_problem_body_(&body, code, detail);
    if (body.failed)
        return body.failed;
    return mt_http_respond(x, mt_code_http_status(code), &TYPE, 1, body.data, body.len);
}

int mt_http_respond_problem(mt_http_x *x, mt_code code, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = respond_problem(x, code, fmt, ap);
    va_end(ap);
    return r;
}

// An error of the core's own: after it the connection is not read any more.
void mt_http_tell_(mt_http_x *x, mt_code code, const char *fmt, ...)
{
    va_list ap;

    x->close_after = true;
    va_start(ap, fmt);
    if (respond_problem(x, code, fmt, ap) < 0)
        x->broken = true;
    va_end(ap);
    x->state = MT_HTTP_S_QUIET;
}
