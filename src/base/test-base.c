// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"
#include "base/aside.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/heap.h"
#include "base/id.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/pages.h"
#include "base/sha256.h"
#include "base/share.h"
#include "base/tap.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

static void test_err(void)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_err_ mt_err *second = NULL;

    CHECK_INT(mt_fail(&err, MT_E_NOT_FOUND, "no namespace '%s'", "x"), -1);
    CHECK_INT(mt_fail(&err, MT_E_CONFLICT, "a later one changes nothing"), -1);
    CHECK_INT(mt_err_code(err), MT_E_NOT_FOUND);
    (void)mt_wrap(&err, "starting '%s'", "run");
    CHECK_STR(mt_err_sentence(err), "starting 'run': no namespace 'x'");
    CHECK_STR(mt_err_field(err), NULL);
    (void)mt_fail_field(&second, MT_E_BAD_FIELD, "name", "bad");
    CHECK_STR(mt_err_field(second), "name");
    CHECK_INT(mt_fail(NULL, MT_E_IO, "no place to put it"), -1);
    CHECK_INT(mt_code_http_status(MT_E_NOT_FOUND), 404);
    CHECK_INT(mt_code_by_name("capacityExceeded"), MT_E_CAPACITY_EXCEEDED);
    CHECK_INT(mt_code_by_name("nothingLikeIt"), MT_E_NONE);
    second = mt_err_free(second);
    (void)mt_fail_errno(&second, EDQUOT, "cannot write '%s'", "f");
    CHECK_INT(mt_err_code(second), MT_E_DISK_FULL);
    second = mt_err_free(second);
    (void)mt_fail_oom(&second);
    CHECK_STR(mt_err_sentence(second), "out of memory");
}

static void test_buf(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(10);

    CHECK_STR(mt_buf_str(&b), "");
    CHECK_INT(mt_buf_adds(&b, "0123456789"), 0);
    CHECK_STR(mt_buf_str(&b), "0123456789");
    CHECK_INT(mt_buf_addc(&b, 'x'), -EMSGSIZE);
    CHECK_STR(mt_buf_str(&b), "0123456789");
    CHECK(mt_buf_take(&b) == NULL);
    mt_buf_clear(&b);
    CHECK_INT(mt_buf_addf(&b, "%d-%s", 12, "abc"), 0);
    mt_buf_consume(&b, 3);
    CHECK_STR(mt_buf_str(&b), "abc");
}

// No byte of what it held is left in memory that it has given back, or moved out of.
static void test_wiped(void)
{
    static const char MARK[] = "mark-of-a-secret";
    mt_buf b = MT_BUF_SECRET_INIT(1 << 20);
    char *seen;

    CHECK_INT(mt_buf_adds(&b, MARK), 0);
    seen = b.data;
    mt_buf_consume(&b, 5);
    CHECK_STR(mt_buf_str(&b), MARK + 5);
    CHECK(memchr(seen + b.len, 'e', sizeof(MARK) - b.len) == NULL);
    mt_buf_clear(&b);
    CHECK(memchr(seen, 'e', sizeof(MARK)) == NULL);
    for (int i = 0; i < 1000; i++)
        (void)mt_buf_adds(&b, MARK);
    CHECK_INT(b.len, 1000 * strlen(MARK));
    CHECK(memcmp(b.data + 999 * strlen(MARK), MARK, sizeof(MARK)) == 0);
    mt_buf_done(&b);
    CHECK(b.data == NULL && b.wipe);
}

static void test_base64(void)
{
    static const char *const BAD[] = {"a", "ab=", "ab==x", "a===", "ab cd", "aQ=", "aR==", "ab=c"};
    mt_str bytes = MT_STR("\0\xff\020ab\n");
    char out[64];
    size_t len = 0;

    for (size_t n = 0; n <= bytes.len; n++) {
        _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);

        CHECK_INT(mt_base64_encode((mt_str){bytes.data, n}, &b), 0);
        CHECK(mt_base64_decode((mt_str){mt_buf_str(&b), b.len}, out, &len) && len == n);
        CHECK(memcmp(out, bytes.data, n) == 0);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(BAD); i++)
        CHECK(!mt_base64_decode(mt_str_of(BAD[i]), out, &len));
}

static void test_arena(void)
{
    _cleanup_arena_ mt_arena *a = mt_arena_new(100000);
    char *s = mt_arena_strdup(a, "hello");
    char *big = mt_arena_alloc(a, 50000);

    CHECK_STR(s, "hello");
    CHECK(big != NULL && big[49999] == 0);
    CHECK_STR(mt_arena_printf(a, "%s-%d", s, 7), "hello-7");
    CHECK(mt_arena_alloc(a, 60000) == NULL);
    CHECK(mt_arena_alloc(a, SIZE_MAX) == NULL);
}

static void test_str(void)
{
    static const char *const names[] = {"capsule-start", "capsule-list", "deploy"};
    char digits[MT_I64_TEXT];
    uint64_t n;

    CHECK(mt_str_eq(mt_i64_text(INT64_MIN, digits), "-9223372036854775808"));
    CHECK(mt_str_eq(mt_i64_text(INT64_MAX, digits), "9223372036854775807"));
    CHECK(mt_str_eq(mt_i64_text(0, digits), "0") && mt_str_eq(mt_i64_text(-1, digits), "-1"));
    CHECK(mt_parse_u64(MT_STR("18446744073709551615"), UINT64_MAX, &n) && n == UINT64_MAX);
    CHECK(!mt_parse_u64(MT_STR("18446744073709551616"), UINT64_MAX, &n));
    CHECK(!mt_parse_u64(MT_STR("+1"), 10, &n) && !mt_parse_u64(MT_STR(""), 10, &n));
    CHECK(!mt_parse_u64(MT_STR("11"), 10, &n));
    CHECK(mt_str_eq((mt_str){NULL, 0}, "") && mt_str_ieq((mt_str){NULL, 0}, ""));
    CHECK(mt_is_name(MT_STR("sales-data")) && mt_is_name(MT_STR("0a.b_c")));
    CHECK(!mt_is_name(MT_STR("..")) && !mt_is_name(MT_STR("")) && !mt_is_name(MT_STR("a/b")));
    CHECK(!mt_is_name(MT_STR("Jq")) && !mt_is_name((mt_str){"a\0b", 3}));
    CHECK(mt_is_user_name(MT_STR("_svc-1")) && !mt_is_user_name(MT_STR("1a")));
    CHECK_STR(mt_nearest_of(MT_STR("capsule-strat"), names, 3), "capsule-start");
    CHECK_STR(mt_nearest_of(MT_STR("zzzzzz"), names, 3), NULL);
    CHECK_STR(mt_nearest_of(MT_STR("mtuoh"), (const char *const[]){"mouth", "mutoh"}, 2), "mutoh");
}

static void test_utf8(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(100);
    char out[4];
    uint32_t c = 0;
    bool cut;

    CHECK_INT(mt_utf8_decode("\xe2\x82\xac", 3, &c, NULL), 3);
    CHECK_INT(c, 0x20ac);
    CHECK(mt_utf8_decode("\xe2\x82", 2, &c, &cut) == 0 && cut);
    CHECK(!mt_utf8_valid("\xed\xa0\x80", 3)); // a surrogate
    CHECK(!mt_utf8_valid("\xc0\xaf", 2));     // overlong
    CHECK(!mt_utf8_valid("\xf4\x90\x80\x80", 4));
    CHECK_INT(mt_utf8_encode(0x1f600, out), 4);
    CHECK_INT(mt_utf8_count("a\xff\xe2\x82\xac", 5), 3);
    CHECK_INT(mt_utf8_add_clean(&b,
                                "\xff\xfe"
                                "abc\n",
                                6),
              0);
    CHECK_STR(mt_buf_str(&b), "\xef\xbf\xbd\xef\xbf\xbd"
                              "abc\n");
    CHECK_INT(mt_utf8_tail("a\xe2\x82\xac"
                           "b",
                           5, 2),
              1);
}

static void test_durations(void)
{
    static const struct {
        const char *text;
        int64_t seconds; // 0: refused
    } CASES[] = {
        {"00:10:00", 600},
        {"24:00:00", 86400},
        {"48:00:00", 172800},
        {"00:60:00", 0},
        {"00:90:00", 0},
        {"1.00:00:00", 86400},
        {"1.23:59:59", 172799},
        {"0", 0},
        {"00:00:00", 0},
        {"-00:01:00", 0},
        {"90", 0},
        {"1h30m", 0},
        {"01:00", 0},
        {" 01:00:00 ", 0},
        {"00:00:00.5", 0},
        {"99999999.00:00:00", 0},
        {"", 0},
        {"1.24:00:00", 0},
        {"1:00:00", 0},
        {"100:00:00", 360000},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(CASES); i++) {
        int64_t ms = 0;
        bool ok = mt_duration_parse(mt_str_of(CASES[i].text), &ms);

        if (!CHECK(ok == (CASES[i].seconds != 0) && ms == CASES[i].seconds * 1000))
            printf("# '%s' -> %d, %" PRId64 "\n", CASES[i].text, ok, ms);
    }
    char out[MT_DURATION_TEXT];
    CHECK_STR(mt_duration_format(86400000, out), "1.00:00:00");
    CHECK_STR(mt_duration_format(600000, out), "00:10:00");
}

static void test_sizes_and_times(void)
{
    int64_t n = 0;
    char out[MT_TIME_TEXT];

    CHECK(mt_size_parse(MT_STR("2GiB"), &n) && n == 2147483648);
    CHECK(!mt_size_parse(MT_STR("0MiB"), &n) && !mt_size_parse(MT_STR("2GB"), &n));
    CHECK(!mt_size_parse(MT_STR("9223372036854775807TiB"), &n) && !mt_size_parse(MT_STR("1"), &n));
    CHECK_STR(mt_size_format(1536 * 1024, out), "1536KiB");
    CHECK_STR(mt_time_format(1764478277123456, out), "2025-11-30T04:51:17.123456Z");
    CHECK(mt_time_parse(mt_str_of(out), &n) && n == 1764478277123456);
    CHECK(!mt_time_parse(MT_STR("2026-13-01T00:00:00Z"), &n));
    CHECK(!mt_time_parse(MT_STR("2026-11-30T04:51:17"), &n));
}

static void test_id(void)
{
    char a[MT_ID_TEXT], b[MT_ID_TEXT];

    mt_id_new(a);
    for (int i = 0; i < 10000; i++) {
        mt_id_new(b);
        if (!(strcmp(a, b) < 0))
            break;
        memcpy(a, b, sizeof(a));
    }
    CHECK_STR(a, b); // every one was greater than the one before
    CHECK(mt_is_id(mt_str_of(b)) && b[14] == '7');
    CHECK(!mt_is_id(MT_STR("no-such-id")));
}

static void count_timer(mt_timer *t, void *data)
{
    char *order = data;

    order[strlen(order)] = (char)('0' + (int)strlen(order));
    (void)t;
}

struct posted {
    mt_loop *loop;
    pthread_t by;
    int count;
};

static void on_post(void *data)
{
    struct posted *p = data;

    if (++p->count == 1000)
        mt_loop_stop(p->loop);
}

static void *post_many(void *data)
{
    struct posted *p = data;

    for (int i = 0; i < 1000; i++)
        if (mt_loop_post(p->loop, on_post, p) < 0)
            break;
    return NULL;
}

static void on_pipe(mt_io *io, uint32_t events, void *data)
{
    *(uint32_t *)data |= events;
    mt_io_remove(io);
}

static void test_loop(void)
{
    mt_loop *loop = mt_loop_new();
    struct posted posted = {.loop = loop};
    char order[8] = "";
    mt_timer *timers[3];
    int fds[2];
    uint32_t seen = 0;

    for (int i = 0; i < 3; i++)
        timers[i] = mt_timer_new(loop, count_timer, order);
    for (int i = 0; i < 3; i++)
        mt_timer_at(timers[i], mt_boottime_ns() - i);
    mt_timer_stop(timers[1]);
    CHECK_INT(mt_loop_once(loop, 0), 0);
    CHECK_STR(order, "01");
    CHECK(pipe2(fds, O_CLOEXEC) == 0 && write(fds[1], "x", 1) == 1);
    CHECK(mt_io_add(loop, fds[0], EPOLLIN, on_pipe, &seen) != NULL);
    CHECK_INT(mt_loop_once(loop, 1000), 0);
    CHECK_INT(seen, EPOLLIN);
    CHECK_INT(pthread_create(&posted.by, NULL, post_many, &posted), 0);
    CHECK_INT(mt_loop_run(loop), 0);
    CHECK_INT(posted.count, 1000);
    (void)pthread_join(posted.by, NULL);
    for (int i = 0; i < 3; i++)
        mt_timer_free(timers[i]);
    mt_loop_free(loop);
    mt_close_fd(&fds[0]);
    mt_close_fd(&fds[1]);
}

// FIPS 180-4's examples, and lengths around a block.
static void test_sha256(void)
{
    static const struct {
        const char *unit;
        size_t times;
        const char *digest;
    } cases[] = {
        {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
        {"a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {"a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        char digest[MT_SHA256_TEXT];
        mt_sha256 s;

        mt_sha256_init(&s);
        for (size_t n = 0; n < cases[i].times; n++)
            mt_sha256_add(&s, cases[i].unit, strlen(cases[i].unit));
        mt_sha256_hex(&s, digest);
        CHECK_STR(digest, cases[i].digest);
    }
}

static void test_packages(void)
{
    static const char *const good[] = {"sqlite3",    "g++",        "0ad",
                                       "libstdc++6", "jq=1.6-2.1", "a.b=1:2~rc1+b1"};
    static const char *const bad[] = {
        "", "a", "Jq", "-oX=Y", "jq;id", "jq=", "jq=-1", "jq=1 2", "jq/x", "../x", "jq jq"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(good); i++)
        CHECK(mt_is_package(mt_str_of(good[i])));
    for (size_t i = 0; i < MT_ARRAY_SIZE(bad); i++)
        CHECK(!mt_is_package(mt_str_of(bad[i])));
}

static void test_files(void)
{
    char dir[] = "/tmp/test-base-XXXXXX", path[64];
    _cleanup_buf_ mt_buf small = MT_BUF_INIT(4);
    _cleanup_buf_ mt_buf exact = MT_BUF_INIT(5);

    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof(path), "%s/f", dir);
    CHECK_INT(mt_write_file_atomic(AT_FDCWD, path, "hello", 5, 0600), 0);
    CHECK_INT(mt_read_file(AT_FDCWD, path, &exact), 0);
    CHECK_STR(mt_buf_str(&exact), "hello");
    CHECK_INT(mt_read_file(AT_FDCWD, path, &small), -EMSGSIZE);
    (void)unlink(path);
    (void)rmdir(dir);
}

static int count_open(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void test_pass_fds(void)
{
    int pair[2], sent[3], got[3], open_before;
    char text[8];

    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    for (int i = 0; i < 3; i++)
        sent[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    open_before = count_open();
    CHECK_INT(mt_send_fds(pair[0], "abc", 3, sent, 3, 0), 0);
    CHECK_INT(mt_receive_fds(pair[1], text, sizeof(text), got, 2, 0), 3); // the third is closed
    CHECK_INT(mt_fds_count(got, 2), 2);
    CHECK_INT(count_open(), open_before + 2);
    CHECK_INT(fcntl(got[0], F_GETFD), FD_CLOEXEC);
    CHECK_INT(mt_send_fds(pair[0], "d", 1, NULL, 0, 0), 0);
    CHECK_INT(mt_receive_fds(pair[1], text, sizeof(text), got + 2, 1, 0), 1);
    CHECK_INT(got[2], -1);
    CHECK_INT(mt_fds_count(got, 3), 2);
    CHECK_INT(mt_receive_fds(pair[1], text, sizeof(text), got + 2, 1, MSG_DONTWAIT), -EAGAIN);
    CHECK_INT(mt_send_fds(pair[0], "e", 1, sent, MT_FDS_MAX + 1, 0), -EINVAL);
    (void)close(pair[0]);
    CHECK_INT(mt_receive_fds(pair[1], text, sizeof(text), got + 2, 1, 0), 0);
    (void)close(pair[1]);
    for (int i = 0; i < 3; i++)
        (void)close(sent[i]);
    (void)close(got[0]);
    (void)close(got[1]);
}

// --- aside ---

static void send_fd(int socket, int fd)
{
    CHECK_INT(mt_send_fds(socket, "x", 1, &fd, 1, 0), 0);
}

// Whether all ends that can write to the pipe are closed before long.
static bool ends(int pipe_fd)
{
    struct pollfd p = {.fd = pipe_fd};

    return poll(&p, 1, 20000) == 1 && (p.revents & POLLHUP);
}

// What has a peer that takes nothing, and lingers: whoever closes it last waits for an hour.
static int lingering(int *ret_peer)
{
    const struct linger hour = {1, 3600};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static const char zeros[65536];

    CHECK(bind(listener, (struct sockaddr *)&at, len) == 0 && listen(listener, 1) == 0 &&
          getsockname(listener, (struct sockaddr *)&at, &len) == 0 &&
          connect(fd, (struct sockaddr *)&at, len) == 0);
    *ret_peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)close(listener);
    while (send(fd, zeros, sizeof(zeros), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
    return fd;
}

static void test_aside(void)
{
    int pair[2], ends_of_pipe[2];
    char text[16];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(send(pair[0], "plain", 5, 0) == 5);
    CHECK_INT(mt_recv_aside(pair[1], text, sizeof(text)), 5);
    errno = 0;
    CHECK(mt_recv_aside(pair[1], text, sizeof(text)) == -1 && errno == EAGAIN);
    // One that is read, and one that stays in a socket which is closed.
    for (int i = 0; i < 2; i++) {
        CHECK(pipe2(ends_of_pipe, O_CLOEXEC) == 0);
        send_fd(pair[0], ends_of_pipe[1]);
        (void)close(ends_of_pipe[1]);
        if (i == 0) {
            CHECK(mt_recv_aside(pair[1], text, sizeof(text)) == -1 && errno == EPROTO);
        } else {
            mt_close_aside(&pair[1]);
            CHECK_INT(pair[1], -1);
        }
        CHECK(ends(ends_of_pipe[0]));
        (void)close(ends_of_pipe[0]);
    }
    (void)close(pair[0]);
}

// Whoever reads, or closes, is not held up. Last: the thread is.
static void test_aside_lingering(void)
{
    int pair[2], peer, fd = lingering(&peer);
    char text[16];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    (void)alarm(60);
    send_fd(pair[0], fd);
    mt_close_aside(&fd);
    CHECK(mt_recv_aside(pair[1], text, sizeof(text)) == -1 && errno == EPROTO);
    if (mt_refuse_fds(pair[1])) // Linux 6.16
        CHECK_INT(mt_send_fds(pair[0], "x", 1, &peer, 1, 0), -EPERM);
    mt_close_aside(&pair[1]);
    (void)alarm(0);
    (void)close(pair[0]);
    (void)close(peer);
}

// Callers that take all they may, one after another: what each of them gets.
static uint64_t take_share(uint64_t each, uint64_t all, uint64_t *used)
{
    uint64_t has = 0;

    while (*used < all && has < mt_share(each, all, *used)) {
        has++;
        ++*used;
    }
    return has;
}

static void test_share(void)
{
    uint64_t used = 0;

    CHECK_INT(take_share(8, 512, &used), 8);
    CHECK_INT(take_share(8, 512, &used), 7);
    for (int i = 0; i < 62; i++) // together they would have had everything
        CHECK(take_share(8, 512, &used) > 2);
    CHECK(used < 350);
    for (int i = 0; i < 300; i++)
        CHECK(take_share(8, 512, &used) > 0 || used == 512);
    used = 0;
    CHECK_INT(take_share(2048, 4096, &used), 2048);
    CHECK_INT(take_share(2048, 4096, &used), 1024);
    CHECK_INT(take_share(2048, 4096, &used), 512);
    used = 0;
    CHECK_INT(take_share(20, 10, &used), 10); // a share that is none
    CHECK_INT(mt_share(3, 4, 4), 1);
    CHECK_INT(mt_share(3, 4, 9), 1);
    CHECK_INT(mt_share(1ull << 40, 1ull << 62, 1ull << 61) >> 39, 1); // without overflow
}

static void test_settled_buf(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(10);

    (void)mt_buf_adds(&b, "abc");
    mt_buf_settle(&b);
    CHECK_STR(mt_buf_str(&b), "abc");
    mt_buf_clear(&b);
    mt_buf_settle(&b);
    CHECK(b.data == NULL);
    CHECK_INT(mt_buf_adds(&b, "0123456789"), 0);
    CHECK_INT(mt_buf_addc(&b, 'x'), -EMSGSIZE); // its maximum is what it was
}

static void test_pages(void)
{
    enum { PAGE = 4096 };
    static _Alignas(4096) char area[4 * PAGE];

    memset(area, 'x', sizeof(area));
    mt_pages_drop(area + 1, sizeof(area) - 2);
    CHECK_INT(area[0], 'x');
    CHECK_INT(area[PAGE - 1], 'x');
    CHECK_INT(area[PAGE], 0);
    CHECK_INT(area[3 * PAGE - 1], 0);
    CHECK_INT(area[3 * PAGE], 'x');
    mt_pages_drop(area + 1, 10); // no whole page
    CHECK_INT(area[1], 'x');
}

static uintptr_t left_at;

__attribute__((noinline)) static void leave_on_stack(void)
{
    volatile char bytes[64 << 10];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = 'x';
    left_at = (uintptr_t)&bytes[sizeof(bytes) / 4];
}

__attribute__((noinline, no_sanitize("address"))) static char what_was_left(void)
{
    return *(volatile char *)left_at;
}

static void test_dropped_stack(void)
{
    char mine[8192];

    memset(mine, 'm', sizeof(mine));
    leave_on_stack();
    CHECK_INT(what_was_left(), 'x');
    mt_pages_drop_stack();
    CHECK_INT(what_was_left(), 0);
    CHECK(mine[0] == 'm' && memcmp(mine, mine + 1, sizeof(mine) - 1) == 0);
}

static void test_heap(void)
{
    enum { ITEMS = 500 };
    static mt_heap_item items[ITEMS];
    mt_heap h = {0};
    int64_t last = INT64_MIN;
    size_t left = 0;
    uint32_t n = 1;

    CHECK_INT(mt_heap_reserve(&h, ITEMS), 0);
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < ITEMS; i++) {
            n = n * 1664525 + 1013904223;
            if (n >> 30 == 0)
                mt_heap_remove(&h, &items[i]);
            else
                mt_heap_put(&h, &items[i], n >> 8 & 0x3ff);
        }
    for (int i = 0; i < ITEMS; i++)
        left += mt_heap_has(&items[i]);
    CHECK_INT(h.count, left);
    while (mt_heap_first(&h)) {
        mt_heap_item *first = mt_heap_first(&h);

        if (first->key < last)
            break;
        last = first->key;
        mt_heap_remove(&h, first);
        left--;
    }
    CHECK(left == 0 && h.count == 0);
    mt_heap_done(&h);
}

int main(void)
{
    test_pass_fds();
    mt_log_init("test-base", MT_LOG_WARNING);
    test_err();
    test_buf();
    test_wiped();
    test_base64();
    test_arena();
    test_str();
    test_utf8();
    test_durations();
    test_sizes_and_times();
    test_id();
    test_loop();
    test_files();
    test_sha256();
    test_packages();
    test_aside();
    test_aside_lingering();
    test_share();
    test_settled_buf();
    test_pages();
    test_dropped_stack();
    mt_pages_drop_heap();
    test_heap();
    return TAP_DONE();
}
