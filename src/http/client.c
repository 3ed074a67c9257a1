// SPDX-License-Identifier: Apache-2.0
// Calls: the request out, the answer in. See client.h for what each failure is called.
#include "http/client.h"

#include "base/fd.h"
#include "http/client-internal.h"

#include <poll.h>
#include <stdio.h>

enum {
    IO_BYTES = 64 * 1024,
    HEAD_BYTES = 64 * 1024, // of an answer, 1xx ones before it included
    CONNECT_MS = 10 * 1000,
    IDLE_MS = 90 * 1000,
    COLLECT_BYTES = 16 * 1024 * 1024,
    MAX_INTERIM = 8, // answers 1xx
};

struct mt_http_answer_head {
    mt_http_head head;
    char *text; // each name and value ends with a NUL
};

struct mt_http_client {
    mt_http_client_options o;
    char *unix_path, *host, *host_header;
    mt_http_wire_ wire;
    mt_buf in;     // received, not used yet
    char *scratch; // IO_BYTES
};

// One attempt of a call.
struct attempt {
    mt_http_client *c;
    const mt_http_call *call;
    mt_http_answer *a;
    mt_buf out; // head, and each piece of the body in its turn
    size_t out_off;
    bool reused, sent_any, received_any;
    bool body_done; // all of it is in `out`
    bool early;     // the answer came before the request was whole
    uint64_t body_sent;
    int broken;     // negative errno that ended it
    bool own_error; // *err has the reason already
    mt_err **err;
};

// Retry is the third outcome of an attempt.
enum { RETRY = 1 };

mt_http_client *mt_http_client_new(const mt_http_client_options *options, mt_err **err)
{
    _cleanup_http_client_ mt_http_client *c = calloc(1, sizeof(*c));

    if (!!options->unix_path + !!options->host + !!options->connect != 1) {
        (void)mt_fail(err, MT_E_BAD_REQUEST, "give either a socket path or a host");
        return NULL;
    }
    if (!c) {
        (void)mt_fail_oom(err);
        return NULL;
    }
    c->wire.fd = -1;
    c->in = (mt_buf)MT_BUF_INIT(HEAD_BYTES + IO_BYTES);
    c->o = *options;
    c->o.connect_timeout_ms = c->o.connect_timeout_ms ? c->o.connect_timeout_ms : CONNECT_MS;
    c->o.idle_timeout_ms = c->o.idle_timeout_ms ? c->o.idle_timeout_ms : IDLE_MS;
    c->scratch = malloc(IO_BYTES);
    c->o.unix_path = c->unix_path = options->unix_path ? strdup(options->unix_path) : NULL;
    c->o.host = c->host = options->host ? strdup(options->host) : NULL;
    if (options->host_header)
        c->host_header = strdup(options->host_header);
    else if (!options->host)
        c->host_header = strdup("localhost");
    else
        c->host_header = mt_asprintf(strchr(options->host, ':') ? "[%s]:%u" : "%s:%u",
                                     options->host, options->port);
    c->o.host_header = c->host_header;
    if (!c->scratch || !c->host_header || (options->unix_path && !c->unix_path) ||
        (options->host && !c->host)) {
        (void)mt_fail_oom(err);
        return NULL;
    }
    return MT_TAKE_PTR(c);
}

static void disconnect(mt_http_client *c)
{
    mt_close_fd(&c->wire.fd);
    mt_buf_clear(&c->in);
}

mt_http_client *mt_http_client_free(mt_http_client *c)
{
    if (!c)
        return NULL;
    disconnect(c);
    mt_buf_done(&c->in);
    free(c->scratch);
    free(c->unix_path);
    free(c->host);
    free(c->host_header);
    free(c);
    return NULL;
}

void mt_http_client_interrupt_flag(mt_http_client *client, const volatile int *flag)
{
    client->wire.interrupt = flag;
}

// Answers.

void mt_http_answer_done(mt_http_answer *a)
{
    if (a->head_)
        free(a->head_->text);
    free(a->head_);
    mt_buf_done(&a->body);
    memset(a, 0, sizeof(*a));
}

const char *mt_http_answer_header(const mt_http_answer *a, const char *name)
{
    const struct mt_http_answer_head *h = a->head_;

    for (uint32_t i = 0; h && i < h->head.field_count; i++)
        if (mt_str_ieq(mt_http_at(h->text, h->head.fields[i].name), name))
            return h->text + h->head.fields[i].value.at;
    return NULL;
}

bool mt_http_answer_length(const mt_http_answer *a, uint64_t *ret)
{
    const char *text = mt_http_answer_header(a, "Content-Length");

    return text && mt_parse_u64(mt_str_of(text), INT64_MAX, ret);
}

static int keep_head(struct attempt *t, const mt_http_head *head)
{
    struct mt_http_answer_head *h = malloc(sizeof(*h));
    char *text = malloc(head->bytes + 1);

    if (!h || !text) {
        free(h);
        free(text);
        t->own_error = true;
        return mt_fail_oom(t->err);
    }
    memcpy(text, t->c->in.data, head->bytes);
    // Behind a name stands a colon, behind a value a blank or CR: both may go.
    for (uint32_t i = 0; i < head->field_count; i++) {
        const mt_http_field *f = &head->fields[i];

        text[f->name.at + f->name.len] = '\0';
        text[f->value.at + f->value.len] = '\0';
    }
    h->head = *head;
    h->text = text;
    t->a->head_ = h;
    t->a->status = head->status;
    return 0;
}

// The request.

static bool is_safe(const mt_http_call *call)
{
    return mt_streq(call->method, "GET") || mt_streq(call->method, "HEAD") ||
           mt_streq(call->method, "OPTIONS");
}

static bool may_repeat(const mt_http_call *call)
{
    return !call->read_body &&
           (is_safe(call) || mt_streq(call->method, "PUT") || mt_streq(call->method, "DELETE"));
}

static int check_call(const mt_http_call *call, mt_err **err)
{
    static const char *const OURS[] = {"host", "content-length", "transfer-encoding", "connection",
                                       "expect"};
    mt_str target = mt_str_of(call->target);

    if (!mt_http_is_token(mt_str_of(call->method)))
        return mt_fail(err, MT_E_BAD_REQUEST, "the method is not a word");
    if (!target.len || target.data[0] != '/' || !mt_http_is_field_value(target) ||
        strpbrk(target.data, " \t"))
        return mt_fail(err, MT_E_BAD_REQUEST, "the target is not an encoded path");
    for (size_t i = 0; i < call->header_count; i++) {
        const char *name = call->headers[i][0], *value = call->headers[i][1];
        bool ours = false;

        for (size_t j = 0; j < MT_ARRAY_SIZE(OURS); j++)
            ours = ours || mt_str_ieq(mt_str_of(name), OURS[j]);
        // Not the value: it may be a key.
        if (value && (ours || !mt_http_is_token(mt_str_of(name)) ||
                      !mt_http_is_field_value(mt_str_of(value))))
            return mt_fail(err, MT_E_BAD_REQUEST, "the header '%s' cannot be sent", name);
    }
    return 0;
}

static void put_request_head(struct attempt *t)
{
    const mt_http_call *call = t->call;
    mt_buf *b = &t->out;

    (void)mt_buf_addf(b, "%s %s HTTP/1.1\r\nHost: %s\r\n", call->method, call->target,
                      t->c->host_header);
    for (size_t i = 0; i < call->header_count; i++)
        if (call->headers[i][1])
            (void)mt_buf_addf(b, "%s: %s\r\n", call->headers[i][0], call->headers[i][1]);
    if (call->read_body && call->body_length < 0)
        (void)mt_buf_adds(b, "Transfer-Encoding: chunked\r\n");
    else if (call->read_body)
        (void)mt_buf_addf(b, "Content-Length: %lld\r\n", (long long)call->body_length);
    else if (call->has_body || call->body_len)
        (void)mt_buf_addf(b, "Content-Length: %zu\r\n", call->body_len);
    (void)mt_buf_adds(b, "\r\n");
    t->body_done = !call->read_body;
    // A small body travels with the head; a big one is sent from where it is.
    if (!call->read_body && call->body_len <= IO_BYTES)
        (void)mt_buf_add(b, call->body, call->body_len);
}

// The next piece of a body that a function gives, into `out`.
static int next_piece(struct attempt *t)
{
    const mt_http_call *call = t->call;
    ptrdiff_t n = call->read_body(t->c->scratch, IO_BYTES, call->data, t->err);
    bool chunked = call->body_length < 0;

    mt_buf_clear(&t->out);
    t->out_off = 0;
    if (n < 0) {
        t->own_error = true;
        return mt_fail(t->err, MT_E_IO, "cannot read what is to be sent");
    }
    t->body_sent += (uint64_t)n;
    if (!chunked && (t->body_sent > (uint64_t)call->body_length ||
                     (n == 0 && t->body_sent < (uint64_t)call->body_length))) {
        t->own_error = true;
        return mt_fail(t->err, MT_E_IO,
                       "what is to be sent changed its length: %lld bytes were announced",
                       (long long)call->body_length);
    }
    if (chunked)
        (void)mt_buf_addf(&t->out, "%zx\r\n", (size_t)n);
    (void)mt_buf_add(&t->out, t->c->scratch, (size_t)n);
    if (chunked)
        (void)mt_buf_adds(&t->out, "\r\n");
    t->body_done = n == 0 || (!chunked && t->body_sent == (uint64_t)call->body_length);
    if (t->out.failed) {
        t->own_error = true;
        return mt_fail_oom(t->err);
    }
    return 0;
}

static int broke(struct attempt *t, int r)
{
    t->broken = r;
    return -1;
}

// Something came while the request is still being sent: 0 to go on sending, 1 for an early answer.
static int look_at_input(struct attempt *t)
{
    mt_http_head head;
    ssize_t n = recv(t->c->wire.fd, t->c->scratch, IO_BYTES, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return broke(t, n < 0 ? -errno : -ECONNRESET);
    t->received_any = true;
    if (mt_buf_add(&t->c->in, t->c->scratch, (size_t)n) < 0)
        return broke(t, -EBADMSG);
    for (;;) {
        mt_http_progress p;

        mt_http_head_init_answer(&head);
        p = mt_http_head_parse(&head, mt_buf_str(&t->c->in), t->c->in.len);
        if (p == MT_HTTP_MORE)
            return 0;
        if (p == MT_HTTP_WRONG || head.status >= 200)
            return 1;
        mt_buf_consume(&t->c->in, head.bytes);
    }
}

// Sends len bytes. 0, 1 for an early answer, -1 broken.
static int send_all(struct attempt *t, const char *data, size_t len)
{
    size_t off = 0;

    while (off < len) {
        ssize_t n = send(t->c->wire.fd, data + off, len - off, MSG_NOSIGNAL | MSG_DONTWAIT);
        int r;

        if (n >= 0) {
            t->sent_any = t->sent_any || n > 0;
            off += (size_t)n;
            continue;
        }
        if (errno == EINTR)
            continue;
        // The server may have answered before it closed: that answer counts.
        if (errno == EPIPE || errno == ECONNRESET)
            return 1;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return broke(t, -errno);
        r = mt_http_wire_wait_(&t->c->wire, POLLIN | POLLOUT);
        if (r < 0)
            return broke(t, r);
        if (r & POLLIN) {
            r = look_at_input(t);
            if (r != 0)
                return r;
        }
    }
    return 0;
}

static int send_request(struct attempt *t)
{
    const mt_http_call *call = t->call;
    int r;

    put_request_head(t);
    if (t->out.failed) {
        t->own_error = true;
        return mt_fail(t->err, MT_E_BAD_REQUEST, "the head of the request is too long");
    }
    r = send_all(t, t->out.data, t->out.len);
    if (r == 0 && !call->read_body && call->body_len > IO_BYTES)
        r = send_all(t, call->body, call->body_len);
    while (r == 0 && !t->body_done) {
        r = next_piece(t);
        if (r == 0)
            r = send_all(t, t->out.data, t->out.len);
        if (r == 0 && !t->body_done && poll(&(struct pollfd){t->c->wire.fd, POLLIN, 0}, 1, 0) == 1)
            r = look_at_input(t);
    }
    t->early = r == 1;
    return r < 0 ? -1 : 0;
}

// The answer.

static int receive(struct attempt *t)
{
    ssize_t n = mt_http_wire_recv_(&t->c->wire, t->c->scratch, IO_BYTES);

    if (n <= 0)
        return broke(t, n < 0 ? (int)n : -ECONNRESET);
    t->received_any = true;
    return mt_buf_add(&t->c->in, t->c->scratch, (size_t)n) < 0 ? broke(t, -EBADMSG) : 0;
}

static int receive_head(struct attempt *t, mt_http_head *head)
{
    int interim = 0;

    for (;;) {
        mt_http_progress p;

        mt_http_head_init_answer(head);
        while ((p = mt_http_head_parse(head, mt_buf_str(&t->c->in), t->c->in.len)) == MT_HTTP_MORE)
            if (receive(t) < 0)
                return -1;
        if (p == MT_HTTP_WRONG || head->status == 101 || interim > MAX_INTERIM)
            return broke(t, -EBADMSG);
        if (head->status >= 200)
            return 0;
        interim++;
        mt_buf_consume(&t->c->in, head->bytes);
    }
}

static int deliver(struct attempt *t, mt_str piece)
{
    const mt_http_call *call = t->call;
    bool streamed = call->on_data && (!call->only_success || t->a->status / 100 == 2);

    t->a->body_bytes += piece.len;
    if (!piece.len)
        return 0;
    if (streamed && call->on_data(piece.data, piece.len, call->data, t->err) < 0) {
        t->own_error = true;
        return mt_fail(t->err, MT_E_IO, "cannot use what was received");
    }
    if (!streamed && mt_buf_add(&t->a->body, piece.data, piece.len) < 0) {
        t->own_error = true;
        return t->a->body.failed == -ENOMEM
                   ? mt_fail_oom(t->err)
                   : mt_fail(t->err, MT_E_TOO_LARGE,
                             "the answer is too large to be collected: the limit is %zu bytes",
                             t->a->body.max);
    }
    return 0;
}

static int receive_body(struct attempt *t, mt_http_body *body)
{
    mt_http_progress p = MT_HTTP_MORE;

    while (p == MT_HTTP_MORE) {
        size_t off = 0, used;
        mt_str piece;

        // A body of no bytes is whole before anything comes.
        do {
            p = mt_http_body_next(body, mt_buf_str(&t->c->in) + off, t->c->in.len - off, &used,
                                  &piece);
            off += used;
            if (p == MT_HTTP_WRONG)
                return broke(t, -EBADMSG);
            if (deliver(t, piece) < 0)
                return -1;
        } while (p == MT_HTTP_MORE && off < t->c->in.len);
        mt_buf_consume(&t->c->in, off);
        if (p == MT_HTTP_WHOLE)
            return 0;
        if (receive(t) < 0) {
            if (body->framing == MT_HTTP_BODY_CLOSE && t->broken == -ECONNRESET)
                return 0;
            return -1;
        }
    }
    return 0;
}

static int receive_answer(struct attempt *t)
{
    mt_http_head head;
    mt_http_body body;
    bool reusable;

    if (receive_head(t, &head) < 0 || keep_head(t, &head) < 0)
        return -1;
    if (mt_streq(t->call->method, "HEAD"))
        head.framing = MT_HTTP_BODY_NONE;
    mt_buf_consume(&t->c->in, head.bytes);
    if (t->call->on_head && t->call->on_head(t->a, t->call->data, t->err) < 0) {
        t->own_error = true;
        return mt_fail(t->err, MT_E_IO, "the answer was not wanted");
    }
    t->a->body = (mt_buf)MT_BUF_INIT(t->call->max_collect ? t->call->max_collect : COLLECT_BYTES);
    mt_http_body_init(&body, head.framing, head.content_length);
    if (receive_body(t, &body) < 0)
        return -1;
    reusable = head.keep_alive && !t->early && head.framing != MT_HTTP_BODY_CLOSE && !t->c->in.len;
    if (!reusable)
        disconnect(t->c);
    return 0;
}

// Attempts.

// A kept connection that the server has closed, or on which it spoke unasked, is of no use.
static void drop_stale(mt_http_client *c)
{
    struct pollfd p = {c->wire.fd, POLLIN | POLLRDHUP, 0};

    if (c->wire.fd >= 0 && poll(&p, 1, 0) != 0)
        disconnect(c);
}

static const char *what_broke(int r)
{
    switch (r) {
    case -ETIMEDOUT:
        return "nothing came from the server in time";
    case -ECANCELED:
        return "interrupted";
    case -EBADMSG:
        return "the server did not answer in HTTP/1.1";
    case -ECONNRESET:
    case -EPIPE:
        return "the connection was closed";
    default:
        return strerrordesc_np(-r);
    }
}

static int explain(struct attempt *t)
{
    const mt_http_call *call = t->call;

    if (t->own_error)
        return -1;
    if (t->sent_any && !is_safe(call))
        return mt_fail(t->err, MT_E_OUTCOME_UNKNOWN,
                       "it is not known whether %s %s was carried out: %s", call->method,
                       call->target, what_broke(t->broken));
    if (t->broken == -EBADMSG)
        return mt_fail(t->err, MT_E_INTERNAL, "%s", what_broke(t->broken));
    return mt_fail(t->err, MT_E_UNREACHABLE, "%s before the answer was whole",
                   what_broke(t->broken));
}

static int attempt_call(struct attempt *t)
{
    mt_http_client *c = t->c;
    int r;

    drop_stale(c);
    t->reused = c->wire.fd >= 0;
    if (!t->reused && mt_http_wire_connect_(&c->wire, &c->o, t->err) < 0)
        return -1;
    r = send_request(t);
    if (r == 0)
        r = receive_answer(t);
    mt_buf_done(&t->out);
    if (r == 0)
        return 0;
    disconnect(c);
    if (!t->own_error && t->reused && !t->received_any && (may_repeat(t->call) || !t->sent_any) &&
        (t->broken == -ECONNRESET || t->broken == -EPIPE))
        return RETRY;
    return explain(t);
}

int mt_http_client_call(mt_http_client *client, const mt_http_call *call, mt_http_answer *a,
                        mt_err **err)
{
    int r = RETRY;

    if (check_call(call, err) < 0)
        return -1;
    client->wire.idle_ms =
        call->idle_timeout_ms ? call->idle_timeout_ms : client->o.idle_timeout_ms;
    client->wire.total_ns =
        call->total_timeout_ms ? mt_boottime_ns() + call->total_timeout_ms * 1000000 : INT64_MAX;
    // The second attempt runs on a new connection and so never asks for a third.
    while (r == RETRY) {
        struct attempt t = {.c = client, .call = call, .a = a, .err = err};

        t.out = (mt_buf)MT_BUF_INIT(4 * IO_BYTES);
        mt_http_answer_done(a);
        r = attempt_call(&t);
    }
    return r;
}

int mt_http_escape(mt_buf *b, mt_str text, bool keep_slash)
{
    static const char HEX[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '.' || c == '_' || c == '~' || (keep_slash && c == '/');

        if (plain) {
            (void)mt_buf_addc(b, (char)c);
        } else {
            char hex[3] = {'%', HEX[c >> 4], HEX[c & 15]};

            (void)mt_buf_add(b, hex, sizeof(hex));
        }
    }
    return b->failed;
}
