// SPDX-License-Identifier: Apache-2.0
// A server that shows what src/http does, for tests/http: not part of the product.
//   testd [--header-ms N] [--body-ms N] [--idle-ms N] [--send-ms N] [--connections N] [--per-peer
//   N]
//         [--collect-total N] [--answers-total N] [--file PATH] [--unix PATH]
// Listens on 127.0.0.1 (and PATH), prints "port N" and ends on SIGTERM or when its stdin is closed.
#include "base/buf.h"
#include "base/macros.h"
#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

static struct {
    mt_loop *loop;
    mt_http_server *server;
    mt_http_listener *extra;
    const char *file;
    uint64_t parked; // id of the last request to /park
    unsigned heads, requests, gone, ended;
    mt_timer *timer;
    uint64_t slow[1024]; // paused uploads
    size_t slow_count;
} g;

static bool is_path(mt_http_x *x, const char *path)
{
    return mt_str_eq(mt_http_request_path(mt_http_req(x)), path);
}

static void put_text(mt_buf *b, mt_str s)
{
    (void)mt_buf_addc(b, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];

        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
            (void)mt_buf_addf(b, "\\u%04x", c);
        else
            (void)mt_buf_addc(b, (char)c);
    }
    (void)mt_buf_addc(b, '"');
}

// All that the request says, as JSON with each byte as one character.
static void echo(mt_http_x *x)
{
    static const mt_http_header_line TYPE = {"Content-Type", "application/json"};
    const mt_http_request *r = mt_http_req(x);
    const mt_http_peer *peer = mt_http_peer_of(x);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(16 * 1024 * 1024);

    (void)mt_buf_addf(
        &b, "{\"method\":\"%s\",\"target\":", mt_http_method_name(mt_http_request_method(r)));
    put_text(&b, mt_http_request_target(r));
    (void)mt_buf_adds(&b, ",\"path\":");
    put_text(&b, mt_http_request_path(r));
    (void)mt_buf_adds(&b, ",\"rawPath\":");
    put_text(&b, mt_http_request_raw_path(r));
    (void)mt_buf_adds(&b, ",\"host\":");
    put_text(&b, mt_http_request_host(r));
    (void)mt_buf_adds(&b, ",\"query\":[");
    for (size_t i = 0; i < mt_http_query_count(r); i++) {
        (void)mt_buf_adds(&b, i ? ",[" : "[");
        put_text(&b, mt_http_query_name(r, i));
        (void)mt_buf_addc(&b, ',');
        put_text(&b, mt_http_query_value(r, i));
        (void)mt_buf_addc(&b, ']');
    }
    (void)mt_buf_addf(&b, "],\"unix\":%s,\"uid\":%d,\"pid\":%d,\"address\":\"%s\",\"tag\":\"%s\",",
                      peer->is_unix ? "true" : "false", (int)peer->uid, (int)peer->pid,
                      peer->address, (const char *)mt_http_tag(x));
    (void)mt_buf_adds(&b, "\"body\":");
    put_text(&b, mt_http_request_body(r));
    (void)mt_buf_adds(&b, "}\n");
    (void)mt_http_respond(x, 200, &TYPE, 1, b.data, b.len);
}

static void stats(mt_http_x *x)
{
    char text[160];
    int n =
        snprintf(text, sizeof(text),
                 "{\"heads\":%u,\"requests\":%u,\"gone\":%u,\"ended\":%u,\"connections\":%zu}\n",
                 g.heads, g.requests, g.gone, g.ended, mt_http_connections(g.server));

    (void)mt_http_respond(x, 200, NULL, 0, text, (size_t)n);
}

// Answers what was parked, as another thread's answer would come.
static void answer_parked(void *data)
{
    mt_http_x *x = mt_http_find(g.server, g.parked);

    if (x)
        (void)mt_http_respond(x, 200, NULL, 0, "woken\n", 6);
}

static void send_file(mt_http_x *x)
{
    int fd = open(g.file ? g.file : "/dev/null", O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        (void)mt_http_respond_problem(x, MT_E_NOT_FOUND, "no file");
        mt_close_fd(&fd);
        return;
    }
    (void)mt_http_respond_fd(x, 200, NULL, 0, fd, 0, (uint64_t)st.st_size);
}

// ?bytes=N: a stream of that many, as fast as the client takes them.
struct pour {
    uint64_t left;
};

static void pour(mt_http_x *x, void *data)
{
    static const char PIECE[8192] = {0};
    struct pour *p = data;

    while (p->left) {
        size_t n = MT_MIN(p->left, (uint64_t)sizeof(PIECE));

        if (mt_http_write(x, PIECE, n) < 0)
            return;
        p->left -= n;
    }
    (void)mt_http_end(x);
}

static void begin_pour(mt_http_x *x)
{
    struct pour *p = calloc(1, sizeof(*p));
    mt_str bytes, patience;
    uint64_t ms;

    if (!p || !mt_http_query(mt_http_req(x), "bytes", 0, &bytes) ||
        !mt_parse_u64(bytes, UINT64_MAX, &p->left)) {
        free(p);
        (void)mt_http_respond_problem(x, MT_E_BAD_REQUEST, "bytes?");
        return;
    }
    mt_http_set_data(x, p);
    if (mt_http_begin(x, 200, NULL, 0) < 0)
        return;
    if (mt_http_query(mt_http_req(x), "patience", 0, &patience) &&
        mt_parse_u64(patience, 600000, &ms))
        mt_http_patience(x, (int64_t)ms);
    mt_http_on_drained(x, pour, p);
    pour(x, p);
}

static void bad_headers(mt_http_x *x)
{
    static const mt_http_header_line BAD[] = {
        {"X-A", "a\r\nSet-Cookie: b"}, {"X-B", "a\nb"}, {"X C", "d"},  {"Content-Length", "3"},
        {"connection", "close"},       {"", "a"},       {"X-D:", "e"},
    };
    char text[64];
    unsigned refused = 0;
    int n;

    for (size_t i = 0; i < MT_ARRAY_SIZE(BAD); i++)
        refused += mt_http_respond(x, 200, &BAD[i], 1, "x", 1) == -EINVAL;
    refused += mt_http_respond(x, 100, NULL, 0, "x", 1) == -EINVAL;
    n = snprintf(text, sizeof(text), "%u of %zu\n", refused, MT_ARRAY_SIZE(BAD) + 1);
    (void)mt_http_respond(x, 200, NULL, 0, text, (size_t)n);
}

static void on_request(mt_http_x *x, void *data)
{
    char text[64];
    int n;

    g.requests++;
    if (is_path(x, "/hello")) {
        (void)mt_http_respond(x, 200, NULL, 0, "hello\n", 6);
    } else if (is_path(x, "/stats")) {
        stats(x);
    } else if (is_path(x, "/park")) {
        g.parked = mt_http_id(x);
    } else if (is_path(x, "/wake")) {
        (void)mt_loop_post(g.loop, answer_parked, NULL);
        (void)mt_http_respond(x, 204, NULL, 0, NULL, 0);
    } else if (is_path(x, "/file")) {
        send_file(x);
    } else if (is_path(x, "/pour")) {
        begin_pour(x);
    } else if (is_path(x, "/abort")) {
        mt_http_abort(x);
    } else if (is_path(x, "/bad-headers")) {
        bad_headers(x);
    } else if (is_path(x, "/drop-listener")) {
        mt_http_listener_remove(MT_TAKE_PTR(g.extra));
        (void)mt_http_respond(x, 204, NULL, 0, NULL, 0);
    } else if (is_path(x, "/upload") || is_path(x, "/slow-upload") || is_path(x, "/late")) {
        n = snprintf(text, sizeof(text), "%" PRIu64 "\n", mt_http_body_received(x));
        (void)mt_http_respond(x, 200, NULL, 0, text, (size_t)n);
    } else if (is_path(x, "/missing")) {
        (void)mt_http_respond_problem(x, MT_E_NOT_FOUND, "nothing named \"%s\"", "x\\y\n\xff");
    } else {
        echo(x);
    }
}

static void on_piece(mt_http_x *x, const void *piece, size_t len, void *data)
{
}

// Takes a piece every 10 ms.
static void on_slow_piece(mt_http_x *x, const void *piece, size_t len, void *data)
{
    if (g.slow_count == MT_ARRAY_SIZE(g.slow))
        return;
    mt_http_pause(x);
    g.slow[g.slow_count++] = mt_http_id(x);
    if (g.slow_count == 1)
        mt_timer_in_ms(g.timer, 10);
}

static void on_resume(mt_timer *timer, void *data)
{
    for (size_t i = 0; i < g.slow_count; i++) {
        mt_http_x *x = mt_http_find(g.server, g.slow[i]);

        if (x)
            mt_http_resume(x);
    }
    g.slow_count = 0;
}

// Decides only later, as a handler that asks another thread does.
static void on_decided(void *data)
{
    uint64_t *id = data;
    mt_http_x *x = mt_http_find(g.server, *id);

    free(id);
    if (x && is_path(x, "/late-refuse")) {
        (void)mt_http_respond_problem(x, MT_E_FORBIDDEN, "not here");
    } else if (x) {
        mt_http_stream(x, UINT64_MAX, on_piece, NULL);
        mt_http_resume(x);
    }
}

static void decide_later(mt_http_x *x)
{
    uint64_t *id = malloc(sizeof(*id));

    if (!id)
        abort();
    *id = mt_http_id(x);
    mt_http_pause(x);
    (void)mt_loop_post(g.loop, on_decided, id);
}

static void refuse_late(mt_http_x *x, const void *piece, size_t len, void *data)
{
    if (mt_http_body_received(x) > 100000 && !mt_http_answered(x))
        (void)mt_http_respond_problem(x, MT_E_DISK_FULL, "no room");
}

static void on_head(mt_http_x *x, void *data)
{
    g.heads++;
    if (is_path(x, "/upload"))
        mt_http_stream(x, UINT64_MAX, on_piece, NULL);
    else if (is_path(x, "/slow-upload"))
        mt_http_stream(x, UINT64_MAX, on_slow_piece, NULL);
    else if (is_path(x, "/refuse-late"))
        mt_http_stream(x, UINT64_MAX, refuse_late, NULL);
    else if (is_path(x, "/refuse"))
        (void)mt_http_respond_problem(x, MT_E_FORBIDDEN, "not here");
    else if (is_path(x, "/small"))
        mt_http_collect(x, 10);
    if (is_path(x, "/late") || is_path(x, "/late-refuse"))
        decide_later(x);
}

static void on_gone(mt_http_x *x, void *data)
{
    g.gone++;
}

static void on_end(mt_http_x *x, void *data)
{
    g.ended++;
    free(mt_http_data(x));
}

static void on_stopped(void *data)
{
    mt_loop_stop(g.loop);
}

static void on_stdin(mt_io *io, uint32_t events, void *data)
{
    char c;

    if (read(STDIN_FILENO, &c, 1) > 0)
        return;
    mt_io_remove(io);
    mt_http_server_stop(g.server, 1000, on_stopped, NULL);
}

static int fail(const char *what, mt_err *err)
{
    (void)fprintf(stderr, "testd: %s: %s\n", what, mt_err_sentence(err));
    (void)mt_err_free(err);
    return 1;
}

static int listen_all(const char *unix_path)
{
    mt_err *err = NULL;
    mt_http_listener *l = mt_http_listen_tcp(g.server, "127.0.0.1", 0, "tcp", &err);

    if (!l)
        return fail("tcp", err);
    g.extra = mt_http_listen_tcp(g.server, "127.0.0.1", 0, "extra", &err);
    if (!g.extra)
        return fail("extra", err);
    if (unix_path && !mt_http_listen_unix(g.server, unix_path, 0600, "unix", &err))
        return fail("unix", err);
    (void)printf("port %u\nextra %u\n", mt_http_listener_port(l), mt_http_listener_port(g.extra));
    (void)fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    static const mt_http_handler HANDLER = {
        .on_head = on_head, .on_request = on_request, .on_gone = on_gone, .on_end = on_end};
    const char *unix_path = NULL;
    mt_http_limits l = {0};
    mt_io *in;

    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        long long n = atoll(value);

        if (mt_streq(argv[i], "--file"))
            g.file = value;
        else if (mt_streq(argv[i], "--unix"))
            unix_path = value;
        else if (mt_streq(argv[i], "--header-ms"))
            l.header_timeout_ms = n;
        else if (mt_streq(argv[i], "--body-ms"))
            l.body_idle_timeout_ms = n;
        else if (mt_streq(argv[i], "--idle-ms"))
            l.keepalive_idle_ms = n;
        else if (mt_streq(argv[i], "--send-ms"))
            l.send_idle_timeout_ms = n;
        else if (mt_streq(argv[i], "--connections"))
            l.connections = (size_t)n;
        else if (mt_streq(argv[i], "--per-peer"))
            l.connections_per_peer = (size_t)n;
        else if (mt_streq(argv[i], "--answers-total"))
            l.answers_total = (size_t)n;
        else if (mt_streq(argv[i], "--collect-total"))
            l.collect_total = (size_t)n;
    }
    g.loop = mt_loop_new();
    if (!g.loop)
        return 1;
    g.server = mt_http_server_new(g.loop, &l, &HANDLER);
    g.timer = mt_timer_new(g.loop, on_resume, NULL);
    in = mt_io_add(g.loop, STDIN_FILENO, EPOLLIN, on_stdin, NULL);
    if (!g.server || !g.timer || !in || listen_all(unix_path))
        return 1;
    (void)mt_loop_run(g.loop);
    (void)fprintf(stderr, "testd: heads %u ended %u\n", g.heads, g.ended);
    mt_http_server_free(g.server);
    mt_timer_free(g.timer);
    mt_loop_free(g.loop);
    return g.heads == g.ended ? 0 : 3;
}
