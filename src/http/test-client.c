// SPDX-License-Identifier: Apache-2.0
// The client against servers that follow a script, one thread each, and against src/http's own.
#include "base/fd.h"
#include "base/tap.h"
#include "http/client.h"
#include "http/server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { WAIT_MS = 20000 };

static char folder[] = "/tmp/test-http-client-XXXXXX";
static char path[128];

// The scripted side.

typedef void script_fn(int listener);

static int take(int listener)
{
    struct pollfd p = {listener, POLLIN, 0};

    return poll(&p, 1, WAIT_MS) == 1 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

// Reads until the text `end` has come, or the other side closes. False then.
static bool read_until(int fd, const char *end, mt_buf *b)
{
    struct pollfd p = {fd, POLLIN, 0};

    while (!b->len || !memmem(b->data, b->len, end, strlen(end))) {
        char *to = mt_buf_reserve(b, 65536);
        ssize_t n = to && poll(&p, 1, WAIT_MS) == 1 ? read(fd, to, 65536) : -1;

        if (n <= 0)
            return false;
        mt_buf_added(b, (size_t)n);
    }
    return true;
}

// Reads one request whose last bytes are `end` and answers with text.
static void answer(int fd, const char *end, const char *text)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(16 << 20);

    if (read_until(fd, end, &b))
        (void)mt_write_full(fd, text, strlen(text));
}

static void answer_and_close(int listener, const char *text)
{
    _cleanup_close_ int fd = take(listener);

    answer(fd, "\r\n\r\n", text);
}

static struct {
    int listener;
    script_fn *fn;
    pthread_t thread;
} scripted = {-1, NULL, 0};

static void *run_script(void *data)
{
    scripted.fn(scripted.listener);
    return NULL;
}

static void begin_script(script_fn *fn)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    (void)unlink(path);
    memcpy(un.sun_path, path, strlen(path));
    scripted.fn = fn;
    scripted.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(scripted.listener, (struct sockaddr *)&un, sizeof(un)) < 0 ||
        listen(scripted.listener, 8) < 0 ||
        pthread_create(&scripted.thread, NULL, run_script, NULL) != 0)
        abort();
}

static void end_script(void)
{
    (void)pthread_join(scripted.thread, NULL);
    mt_close_fd(&scripted.listener);
}

static mt_http_client *new_client(void)
{
    mt_http_client_options o = {.unix_path = path, .idle_timeout_ms = WAIT_MS};

    return mt_http_client_new(&o, NULL);
}

// One call against a script; the code of its error.
static mt_code call_once(script_fn *fn, const mt_http_call *call, mt_http_answer *a)
{
    mt_http_client *c = new_client();
    _cleanup_err_ mt_err *err = NULL;
    int r;

    begin_script(fn);
    r = mt_http_client_call(c, call, a, &err);
    (void)mt_http_client_free(c);
    end_script();
    if (r < 0)
        printf("# %s\n", mt_err_sentence(err));
    return r < 0 ? mt_err_code(err) : MT_E_NONE;
}

static const mt_http_call GET = {.method = "GET", .target = "/x"};
static const mt_http_call POST = {.method = "POST", .target = "/x", .body = "hello", .body_len = 5};

// Answers.

static void script_plain(int listener)
{
    _cleanup_close_ int fd = take(listener);

    answer(fd, "\r\n\r\n", "HTTP/1.1 200 OK\r\nX-A:  b c \r\nContent-Length: 5\r\n\r\nhello");
    answer(fd, "\r\n\r\n",
           "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    answer(fd, "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
    answer(fd, "\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
    answer(fd, "\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nup to the end");
}

// Five calls over one connection.
static void test_plain(void)
{
    _cleanup_http_client_ mt_http_client *c = new_client();
    _cleanup_http_answer_ mt_http_answer a = MT_HTTP_ANSWER_INIT;
    mt_http_call head = {.method = "HEAD", .target = "/x"};
    uint64_t n;

    begin_script(script_plain);
    CHECK_INT(mt_http_client_call(c, &GET, &a, NULL), 0);
    CHECK_INT(a.status, 200);
    CHECK_STR(mt_buf_str(&a.body), "hello");
    CHECK_STR(mt_http_answer_header(&a, "x-a"), "b c");
    CHECK(!mt_http_answer_header(&a, "X-B"));
    CHECK(mt_http_answer_length(&a, &n) && n == 5);
    CHECK_INT(mt_http_client_call(c, &GET, &a, NULL), 0);
    CHECK_INT(a.status, 404);
    CHECK_STR(mt_buf_str(&a.body), "abc");
    CHECK(!mt_http_answer_length(&a, &n));
    CHECK_INT(mt_http_client_call(c, &head, &a, NULL), 0);
    CHECK_INT(a.body.len, 0);
    CHECK(mt_http_answer_length(&a, &n) && n == 500);
    CHECK_INT(mt_http_client_call(c, &GET, &a, NULL), 0);
    CHECK_INT(a.status, 204);
    CHECK_INT(mt_http_client_call(c, &GET, &a, NULL), 0);
    CHECK_STR(mt_buf_str(&a.body), "up to the end");
    end_script();
}

static void script_cut(int listener)
{
    answer_and_close(listener, "");
}

static void script_cut_body(int listener)
{
    answer_and_close(listener, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
}

static void script_cut_chunk(int listener)
{
    answer_and_close(listener,
                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
}

static void script_garbage(int listener)
{
    answer_and_close(listener, "SSH-2.0-OpenSSH_9.2\r\n");
}

static void script_bad_chunk(int listener)
{
    answer_and_close(listener,
                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n");
}

static void script_switch(int listener)
{
    answer_and_close(listener, "HTTP/1.1 101 Switching Protocols\r\n\r\n");
}

static void script_many_interim(int listener)
{
    _cleanup_close_ int fd = take(listener);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(65536);

    if (read_until(fd, "\r\n\r\n", &b))
        for (int i = 0; i < 20; i++)
            (void)send(fd, "HTTP/1.1 102 Processing\r\n\r\n", 27, MSG_NOSIGNAL);
}

static void script_silent(int listener)
{
    _cleanup_close_ int fd = take(listener);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(65536);

    (void)read_until(fd, "never", &b);
}

static void test_failures(void)
{
    static const struct {
        script_fn *fn;
        const mt_http_call *call;
        mt_code code;
    } T[] = {
        {script_cut, &GET, MT_E_UNREACHABLE},
        {script_cut, &POST, MT_E_OUTCOME_UNKNOWN},
        {script_cut_body, &GET, MT_E_UNREACHABLE},
        {script_cut_body, &POST, MT_E_OUTCOME_UNKNOWN},
        {script_cut_chunk, &GET, MT_E_UNREACHABLE},
        {script_garbage, &GET, MT_E_INTERNAL},
        {script_garbage, &POST, MT_E_OUTCOME_UNKNOWN},
        {script_bad_chunk, &GET, MT_E_INTERNAL},
        {script_switch, &GET, MT_E_INTERNAL},
        {script_many_interim, &GET, MT_E_INTERNAL},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(T); i++) {
        _cleanup_http_answer_ mt_http_answer a = MT_HTTP_ANSWER_INIT;

        CHECK_STR(mt_code_name(call_once(T[i].fn, T[i].call, &a)), mt_code_name(T[i].code));
    }
}

static void test_timeouts(void)
{
    _cleanup_http_answer_ mt_http_answer a = MT_HTTP_ANSWER_INIT;
    mt_http_call get = GET, post = POST;

    get.idle_timeout_ms = 50;
    CHECK_INT(call_once(script_silent, &get, &a), MT_E_UNREACHABLE);
    get.idle_timeout_ms = 0;
    get.total_timeout_ms = 50;
    CHECK_INT(call_once(script_silent, &get, &a), MT_E_UNREACHABLE);
    post.idle_timeout_ms = 50;
    CHECK_INT(call_once(script_silent, &post, &a), MT_E_OUTCOME_UNKNOWN);
}

static void test_unreachable(void)
{
    _cleanup_http_client_ mt_http_client *c = new_client();
    mt_http_client_options tcp = {.host = "localhost", .port = 1}, bad = {0};
    _cleanup_http_client_ mt_http_client *t = mt_http_client_new(&tcp, NULL);
    _cleanup_http_answer_ mt_http_answer a = MT_HTTP_ANSWER_INIT;
    mt_err *err = NULL;

    (void)unlink(path);
    CHECK_INT(mt_http_client_call(c, &GET, &a, &err), -1);
    CHECK_STR(mt_code_name(mt_err_code(err)), "unreachable");
    CHECK(strstr(mt_err_sentence(err), path) && strstr(mt_err_sentence(err), "No such file"));
    err = mt_err_free(err);
    // Not outcomeUnknown: nothing was sent.
    CHECK_INT(mt_http_client_call(t, &POST, &a, &err), -1);
    CHECK_STR(mt_err_sentence(err), "cannot reach localhost port 1: Connection refused");
    err = mt_err_free(err);
    tcp.host = "no-such-host.invalid";
    (void)mt_http_client_free(t);
    t = mt_http_client_new(&tcp, NULL);
    CHECK_INT(mt_http_client_call(t, &GET, &a, &err), -1);
    CHECK_STR(mt_code_name(mt_err_code(err)), "unreachable");
    err = mt_err_free(err);
    CHECK(!mt_http_client_new(&bad, NULL));
}

// Connections that were kept.

static sem_t closed;

static void script_close_after_first(int listener)
{
    answer_and_close(listener, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
    (void)sem_post(&closed);
    answer_and_close(listener, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
}

// Takes the second request and closes without a word.
static void script_close_on_second(int listener)
{
    int fd = take(listener);
    mt_buf b = MT_BUF_INIT(65536);

    answer(fd, "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
    (void)read_until(fd, "\r\n\r\n", &b);
    mt_close_fd(&fd);
    mt_buf_done(&b);
    // A repeated request comes here; for one that is not repeated the test connects and leaves.
    answer_and_close(listener, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
}

static void knock(void)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(un.sun_path, path, strlen(path));
    (void)connect(fd, (struct sockaddr *)&un, sizeof(un));
}

static void test_kept(void)
{
    _cleanup_http_client_ mt_http_client *c = new_client();
    _cleanup_http_answer_ mt_http_answer a = MT_HTTP_ANSWER_INIT;
    mt_err *err = NULL;

    begin_script(script_close_after_first);
    (void)sem_init(&closed, 0, 0);
    CHECK_INT(mt_http_client_call(c, &POST, &a, NULL), 0);
    while (sem_wait(&closed) < 0)
        ;
    CHECK_INT(mt_http_client_call(c, &POST, &a, NULL), 0);
    CHECK_STR(mt_buf_str(&a.body), "2");
    end_script();
    (void)mt_http_client_free(c);

    c = new_client();
    begin_script(script_close_on_second);
    CHECK_INT(mt_http_client_call(c, &GET, &a, NULL), 0);
    CHECK_INT(mt_http_client_call(c, &GET, &a, NULL), 0);
    CHECK_STR(mt_buf_str(&a.body), "2");
    end_script();
    (void)mt_http_client_free(c);

    c = new_client();
    begin_script(script_close_on_second);
    CHECK_INT(mt_http_client_call(c, &GET, &a, NULL), 0);
    CHECK_INT(mt_http_client_call(c, &POST, &a, &err), -1);
    CHECK_STR(mt_code_name(mt_err_code(err)), "outcomeUnknown");
    CHECK_STR(mt_err_sentence(err),
              "it is not known whether POST /x was carried out: the connection was closed");
    err = mt_err_free(err);
    knock();
    end_script();
}

// Bodies out.

static void script_early(int listener)
{
    _cleanup_close_ int fd = take(listener);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);
    static const char TEXT[] = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n"
                               "Content-Length: 3\r\n\r\nno\n";

    (void)read_until(fd, "\r\n\r\n", &b);
    (void)mt_write_full(fd, TEXT, sizeof(TEXT) - 1);
    (void)shutdown(fd, SHUT_WR);
    // Like a server that lingers: until the client closes.
    mt_buf_clear(&b);
    (void)read_until(fd, "never", &b);
}

static ptrdiff_t endless(void *buf, size_t cap, void *data, mt_err **err)
{
    memset(buf, 'x', cap);
    return (ptrdiff_t)cap;
}

static ptrdiff_t failing(void *buf, size_t cap, void *data, mt_err **err)
{
    return mt_fail(err, MT_E_NOT_REGULAR_FILE, "my own words");
}

static ptrdiff_t nothing(void *buf, size_t cap, void *data, mt_err **err)
{
    return 0;
}

static void script_sink(int listener)
{
    _cleanup_close_ int fd = take(listener);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);

    (void)read_until(fd, "never", &b);
}

static void test_bodies_out(void)
{
    _cleanup_http_answer_ mt_http_answer a = MT_HTTP_ANSWER_INIT;
    mt_http_call put = {.method = "PUT", .target = "/x", .read_body = endless, .body_length = -1};
    char *big = calloc(1, 8 << 20);

    CHECK_INT(call_once(script_early, &put, &a), MT_E_NONE);
    CHECK_INT(a.status, 413);
    CHECK_STR(mt_buf_str(&a.body), "no\n");
    put.read_body = NULL;
    put.body = big;
    put.body_len = 8 << 20;
    CHECK_INT(call_once(script_early, &put, &a), MT_E_NONE);
    CHECK_INT(a.status, 413);
    put.body_len = 0;
    put.read_body = failing;
    CHECK_INT(call_once(script_sink, &put, &a), MT_E_NOT_REGULAR_FILE);
    put.read_body = nothing;
    put.body_length = 10;
    CHECK_INT(call_once(script_sink, &put, &a), MT_E_IO);
    put.read_body = endless;
    CHECK_INT(call_once(script_sink, &put, &a), MT_E_IO);
    free(big);
}

static int no_thanks(const void *piece, size_t len, void *data, mt_err **err)
{
    return mt_fail(err, MT_E_DISK_FULL, "no room");
}

static int count_data(const void *piece, size_t len, void *data, mt_err **err)
{
    *(size_t *)data += len;
    return 0;
}

static int not_this(mt_http_answer *a, void *data, mt_err **err)
{
    return mt_fail(err, MT_E_CONFLICT, "status %d", a->status);
}

static void script_hello(int listener)
{
    answer_and_close(listener, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

static void script_missing(int listener)
{
    answer_and_close(listener, "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello");
}

static void test_bodies_in(void)
{
    _cleanup_http_answer_ mt_http_answer a = MT_HTTP_ANSWER_INIT;
    mt_http_call get = GET;
    size_t n = 0;

    get.max_collect = 4;
    CHECK_INT(call_once(script_hello, &get, &a), MT_E_TOO_LARGE);
    get.on_data = no_thanks;
    CHECK_INT(call_once(script_hello, &get, &a), MT_E_DISK_FULL);
    get.max_collect = 0;
    get.on_data = count_data;
    get.data = &n;
    get.only_success = true;
    CHECK_INT(call_once(script_hello, &get, &a), MT_E_NONE);
    CHECK_INT(n, 5);
    CHECK_INT(a.body_bytes, 5);
    CHECK_INT(call_once(script_missing, &get, &a), MT_E_NONE);
    CHECK_INT(n, 5);
    CHECK_STR(mt_buf_str(&a.body), "hello");
    get.on_head = not_this;
    CHECK_INT(call_once(script_hello, &get, &a), MT_E_CONFLICT);
}

static void test_arguments(void)
{
    static const char *const BAD[][2] = {
        {"X-A", "b\r\nX-C: d"}, {"Host", "a"}, {"content-length", "5"}, {"X A", "b"}};
    static const char *const TARGETS[] = {"", "x", "/a b", "/a\r\nX: y", "http://a/"};
    _cleanup_http_client_ mt_http_client *c = new_client();
    _cleanup_http_answer_ mt_http_answer a = MT_HTTP_ANSWER_INIT;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1000);

    for (size_t i = 0; i < MT_ARRAY_SIZE(BAD); i++) {
        mt_http_call call = {.method = "GET", .target = "/", .headers = &BAD[i], .header_count = 1};
        _cleanup_err_ mt_err *err = NULL;

        CHECK_INT(mt_http_client_call(c, &call, &a, &err), -1);
        CHECK_INT(mt_err_code(err), MT_E_BAD_REQUEST);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(TARGETS); i++) {
        mt_http_call call = {.method = "GET", .target = TARGETS[i]};
        _cleanup_err_ mt_err *err = NULL;

        CHECK_INT(mt_http_client_call(c, &call, &a, &err), -1);
        CHECK_INT(mt_err_code(err), MT_E_BAD_REQUEST);
    }
    CHECK_INT(mt_http_escape(&b, MT_STR("/a b+c%\xc3\xa9~"), false), 0);
    CHECK_STR(mt_buf_str(&b), "%2Fa%20b%2Bc%25%C3%A9~");
    mt_buf_clear(&b);
    CHECK_INT(mt_http_escape(&b, MT_STR("/a/b?"), true), 0);
    CHECK_STR(mt_buf_str(&b), "/a/b%3F");
}

static volatile int interrupted;

static void script_interrupt(int listener)
{
    _cleanup_close_ int fd = take(listener);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(65536);

    (void)read_until(fd, "\r\n\r\n", &b);
    interrupted = 1;
    // Wakes the client, which then sees the flag.
    (void)send(fd, "HTTP/1.1 ", 9, MSG_NOSIGNAL);
    mt_buf_clear(&b);
    (void)read_until(fd, "never", &b);
}

static void test_interrupt(void)
{
    _cleanup_http_client_ mt_http_client *c = new_client();
    _cleanup_http_answer_ mt_http_answer a = MT_HTTP_ANSWER_INIT;
    _cleanup_err_ mt_err *err = NULL;

    mt_http_client_interrupt_flag(c, &interrupted);
    begin_script(script_interrupt);
    CHECK_INT(mt_http_client_call(c, &GET, &a, &err), -1);
    CHECK(strstr(mt_err_sentence(err), "interrupted"));
    end_script();
}

// Against the server of this library.

static struct {
    mt_loop *loop;
    mt_http_server *server;
    uint64_t sum;
} own;

static void own_piece(mt_http_x *x, const void *piece, size_t len, void *data)
{
    for (size_t i = 0; i < len; i++)
        own.sum += ((const unsigned char *)piece)[i];
}

static void own_head(mt_http_x *x, void *data)
{
    own.sum = 0;
    mt_http_stream(x, UINT64_MAX, own_piece, NULL);
}

static void own_request(mt_http_x *x, void *data)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, mt_http_body_received(x), own.sum);

    (void)mt_http_respond(x, 200, NULL, 0, text, (size_t)n);
}

static void *own_run(void *data)
{
    (void)mt_loop_run(own.loop);
    return NULL;
}

static void own_stop(void *data)
{
    mt_loop_stop(own.loop);
}

struct source {
    uint64_t left;
};

static ptrdiff_t read_source(void *buf, size_t cap, void *data, mt_err **err)
{
    struct source *s = data;
    size_t n = MT_MIN(s->left, (uint64_t)cap);

    memset(buf, 1, n);
    s->left -= n;
    return (ptrdiff_t)n;
}

static void own_upload(mt_http_client *c, bool chunked, uint64_t bytes)
{
    _cleanup_http_answer_ mt_http_answer a = MT_HTTP_ANSWER_INIT;
    _cleanup_err_ mt_err *err = NULL;
    struct source s = {bytes};
    mt_http_call put = {.method = "PUT",
                        .target = "/x",
                        .read_body = read_source,
                        .body_length = chunked ? -1 : (int64_t)bytes,
                        .data = &s};
    char text[64];

    (void)snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, bytes, bytes);
    CHECK_INT(mt_http_client_call(c, &put, &a, &err), 0);
    CHECK_STR(mt_buf_str(&a.body), text);
}

static void test_own_server(void)
{
    static const mt_http_handler HANDLER = {.on_head = own_head, .on_request = own_request};
    mt_http_client_options o = {.host = "127.0.0.1"};
    _cleanup_http_client_ mt_http_client *c = NULL;
    mt_http_listener *l;
    pthread_t thread;

    own.loop = mt_loop_new();
    own.server = mt_http_server_new(own.loop, NULL, &HANDLER);
    l = mt_http_listen_tcp(own.server, "127.0.0.1", 0, NULL, NULL);
    o.port = mt_http_listener_port(l);
    CHECK(pthread_create(&thread, NULL, own_run, NULL) == 0);
    c = mt_http_client_new(&o, NULL);
    own_upload(c, true, 20 << 20);
    own_upload(c, false, 20 << 20);
    own_upload(c, true, 0);
    own_upload(c, false, 0);
    own_upload(c, false, 65536);
    own_upload(c, true, 65537);
    (void)mt_loop_post(own.loop, own_stop, NULL);
    (void)pthread_join(thread, NULL);
    mt_http_server_free(own.server);
    mt_loop_free(own.loop);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    (void)snprintf(path, sizeof(path), "%s/s", folder);
    test_plain();
    test_failures();
    test_timeouts();
    test_unreachable();
    test_kept();
    test_bodies_out();
    test_bodies_in();
    test_arguments();
    test_interrupt();
    test_own_server();
    (void)unlink(path);
    (void)rmdir(folder);
    return TAP_DONE();
}
