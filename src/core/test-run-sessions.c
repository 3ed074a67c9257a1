// SPDX-License-Identifier: Apache-2.0
// Sessions, with this test for the supervisor and for mt-session.
#include "base/clock.h"
#include "base/tap.h"
#include "core/run-sessions.h"
#include "core/runs-internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { PATIENCE_MS = 20000 };
#define RUN "01a22bb3-efe3-712e-8b46-3cc64e31782f"

// What a session has told.
typedef struct heard {
    mt_session *s;
    int started, drained, over;
    size_t frames, bytes;
    bool pause_next, close_next;
    mt_session_over how;
    char sentence[256];
} heard;

static mt_loop *loop;
static mt_runs runs;
static live *l;
static int listen_fd, supervisor;
static char address_path[64];

static void on_started(void *data)
{
    ((heard *)data)->started++;
}

static void on_frame(const mt_session_frame *f, void *data)
{
    heard *h = data;

    h->frames++;
    h->bytes += f->len;
    if (h->pause_next)
        mt_session_pause(h->s, true);
    if (h->close_next)
        mt_session_close(MT_TAKE_PTR(h->s));
}

static void on_drained(void *data)
{
    ((heard *)data)->drained++;
}

static void on_over(const mt_session_over *over, void *data)
{
    heard *h = data;

    h->over++;
    h->how = *over;
    (void)snprintf(h->sentence, sizeof(h->sentence), "%s", over->sentence);
    mt_session_close(MT_TAKE_PTR(h->s));
}

static const mt_session_events EVENTS = {on_started, on_frame, on_drained, on_over};

static void on_run_frame(const mt_frame *frame, void *data)
{
    runs_session_frame(data, frame);
}

static void on_run_closed(void *data)
{
    l->conn = NULL;
    runs_sessions_lost(l);
}

static void connect_run(void)
{
    static const mt_frame_conn_events events = {on_run_frame, on_run_closed, NULL};

    CHECK_INT(mt_frame_conn_open(loop, address_path, MT_FRAME_SUPERVISOR_MAX, &events, l, &l->conn),
              0);
    supervisor = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK(supervisor >= 0);
}

static void set_up(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    mt_plan_limits limits = {0};

    loop = mt_loop_new();
    runs.options.loop = loop;
    (void)snprintf(address_path, sizeof(address_path), "/tmp/test-sessions-%d", (int)getpid());
    memcpy(address.sun_path, address_path, strlen(address_path));
    listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(listen(listen_fd, 8), 0);
    l = runs_add(&runs, RUN, "", &limits);
    CHECK(l != NULL);
}

#define UNTIL(condition)                                           \
    do {                                                           \
        int64_t end_ = mt_boottime_ns() + PATIENCE_MS * 1000000ll; \
        while (!(condition) && mt_boottime_ns() < end_)            \
            (void)mt_loop_once(loop, 50);                          \
        CHECK(condition);                                          \
    } while (0)

// Some rounds in which nothing is to happen.
static void rounds(void)
{
    for (int i = 0; i < 5; i++)
        (void)mt_loop_once(loop, 10);
}

// --- the supervisor ------------------------------------------------------------------------------

static mt_frame next_frame(void)
{
    static char bytes[4096];
    mt_frame f = {0};
    ssize_t n = recv(supervisor, bytes, sizeof(bytes), MSG_PEEK);

    n = n > 0 ? mt_frame_parse(bytes, (size_t)n, sizeof(bytes), &f) : 0;
    CHECK(n > 0);
    if (n > 0)
        CHECK_INT(recv(supervisor, bytes, (size_t)n, 0), n);
    return f;
}

static void send_with(mt_buf *b, int fd)
{
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
    struct iovec vec = {b->data, b->len};
    struct msghdr msg = {.msg_iov = &vec, .msg_iovlen = 1};
    struct cmsghdr *c;

    if (fd >= 0) {
        msg.msg_control = control;
        msg.msg_controllen = sizeof(control);
        c = CMSG_FIRSTHDR(&msg);
        *c = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
    }
    CHECK_INT(sendmsg(supervisor, &msg, MSG_NOSIGNAL), b->len);
    mt_buf_clear(b);
}

static void send_ended(uint32_t tag, bool run_ended, int status, const char *sentence)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    (void)mt_put_session_ended(&b, tag, run_ended, status, sentence);
    send_with(&b, -1);
}

// Starts the session that was asked for last: the end of mt-session.
static int start(uint32_t *ret_tag)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);
    mt_frame f = next_frame();
    int pair[2];

    CHECK_INT(f.type, MT_FRAME_SESSION);
    *ret_tag = f.tag;
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    (void)mt_put_session_started(&b, f.tag);
    send_with(&b, pair[0]);
    (void)close(pair[0]);
    return pair[1];
}

static int open_started(heard *h, uint32_t *ret_tag)
{
    int fd;

    *h = (heard){0};
    CHECK_INT(mt_session_open(&runs, RUN, "sandbox", "", &EVENTS, h, &h->s, NULL), 0);
    fd = start(ret_tag);
    UNTIL(h->started == 1);
    return fd;
}

static void say(int fd, size_t frames)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);

    for (size_t i = 0; i < frames; i++)
        (void)mt_session_put_data(&b, "12345", 5);
    CHECK_INT(send(fd, b.data, b.len, MSG_NOSIGNAL), b.len);
}

// --- the tests -----------------------------------------------------------------------------------

static void test_before_the_connection(void)
{
    char user[33], term[65];
    mt_frame f;
    heard h = {0};
    mt_err *err = NULL;

    CHECK_INT(mt_session_open(&runs, "no-such-run", "x", "", &EVENTS, &h, &h.s, &err), -1);
    CHECK_INT(mt_err_code(err), MT_E_RUN_ENDED);
    err = mt_err_free(err);
    CHECK_INT(mt_session_open(&runs, RUN, "sandbox", "xterm", &EVENTS, &h, &h.s, NULL), 0);
    connect_run();
    runs_sessions_begin(l);
    f = next_frame();
    CHECK_INT(mt_get_session(&f, user, term), 0);
    CHECK_STR(user, "sandbox");
    CHECK_STR(term, "xterm");
    send_ended(f.tag, true, 0, "the run was stopped by me");
    UNTIL(h.over == 1);
    CHECK_INT(h.how.how, MT_SESSION_RUN_ENDED);
    CHECK_INT(h.how.code, MT_E_RUN_ENDED);
    CHECK_STR(h.sentence, "the run was stopped by me");
}

static void test_a_life(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);
    char bytes[64];
    uint32_t tag;
    heard h;
    int fd = open_started(&h, &tag);

    (void)mt_session_put_end(&b, true);
    CHECK_INT(mt_session_send(h.s, &b), 0);
    UNTIL(h.drained == 1);
    CHECK_INT(recv(fd, bytes, sizeof(bytes), 0), MT_SESSION_HEADER + 1);
    say(fd, 3);
    UNTIL(h.frames == 3);
    // The word of its end overtakes what it said last.
    say(fd, 2);
    send_ended(tag, false, 0x300, "");
    (void)close(fd);
    UNTIL(h.over == 1);
    CHECK_INT(h.frames, 5);
    CHECK_INT(h.how.how, MT_SESSION_EXITED);
    CHECK_INT(h.how.status, 0x300);
}

static void test_pauses(void)
{
    uint32_t tag;
    heard h;
    int fd = open_started(&h, &tag);

    h.pause_next = true;
    say(fd, 3);
    send_ended(tag, false, 0, "");
    (void)close(fd);
    UNTIL(h.frames == 1);
    rounds();
    CHECK_INT(h.frames, 1);
    CHECK_INT(h.over, 0);
    mt_session_pause(h.s, false);
    CHECK_INT(h.frames, 2);
    h.pause_next = false;
    mt_session_pause(h.s, false);
    CHECK_INT(h.frames, 3);
    UNTIL(h.over == 1);
}

static void test_what_cannot_be(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);
    uint32_t tag;
    heard h;
    int fd = open_started(&h, &tag), pair[2];

    CHECK_INT(send(fd, "\xff\xff\xff\xff\xff", 5, MSG_NOSIGNAL), 5);
    UNTIL(h.over == 1);
    CHECK_INT(h.how.how, MT_SESSION_BROKEN);
    CHECK_INT(next_frame().type, MT_FRAME_SESSION_KILL);
    (void)close(fd);
    // A start without a descriptor, and one of nobody's.
    h = (heard){0};
    CHECK_INT(mt_session_open(&runs, RUN, "x", "", &EVENTS, &h, &h.s, NULL), 0);
    tag = next_frame().tag;
    (void)mt_put_session_started(&b, tag);
    send_with(&b, -1);
    rounds();
    CHECK_INT(h.started, 0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    (void)mt_put_session_started(&b, tag + 1000);
    send_with(&b, pair[0]);
    (void)close(pair[0]);
    rounds();
    CHECK_INT(recv(pair[1], &tag, 1, 0), 0); // closed
    (void)close(pair[1]);
    (void)mt_put_session_failed(&b, 0, MT_E_CONFLICT, "nobody");
    send_with(&b, -1);
    rounds();
    CHECK_INT(h.over, 0);
    mt_session_close(MT_TAKE_PTR(h.s));
    CHECK_INT(next_frame().type, MT_FRAME_SESSION_KILL);
}

static void test_refusals_and_closes(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);
    heard h = {0};
    uint32_t tag;
    int fd;

    CHECK_INT(mt_session_open(&runs, RUN, "x", "", &EVENTS, &h, &h.s, NULL), 0);
    (void)mt_put_session_failed(&b, next_frame().tag, MT_E_CAPACITY_EXCEEDED, "32 are enough");
    send_with(&b, -1);
    UNTIL(h.over == 1);
    CHECK(h.how.how == MT_SESSION_BROKEN && h.how.code == MT_E_CAPACITY_EXCEEDED);
    CHECK_STR(h.sentence, "32 are enough");
    CHECK_INT(next_frame().type, MT_FRAME_SESSION_KILL); // harmless where there is none
    fd = open_started(&h, &tag);
    h.close_next = true;
    say(fd, 3);
    UNTIL(h.frames == 1 && !h.s);
    CHECK_INT(recv(fd, &tag, 1, 0), 0);
    CHECK_INT(next_frame().type, MT_FRAME_SESSION_KILL);
    rounds();
    CHECK(h.frames == 1 && h.over == 0);
    (void)close(fd);
}

static void test_losses(void)
{
    heard a, b = {0};
    uint32_t tag;
    int fd = open_started(&a, &tag);

    (void)close(supervisor);
    UNTIL(a.over == 1);
    CHECK(a.how.how == MT_SESSION_BROKEN && a.how.code == MT_E_UNAVAILABLE);
    CHECK(l->sessions == NULL);
    (void)close(fd);
    // One that waits for the connection waits on, until the run has ended.
    CHECK_INT(mt_session_open(&runs, RUN, "x", "", &EVENTS, &b, &b.s, NULL), 0);
    runs_sessions_lost(l);
    CHECK_INT(b.over, 0);
    l->ending = true;
    runs_sessions_lost(l);
    CHECK_INT(b.over, 1);
    CHECK_INT(b.how.how, MT_SESSION_RUN_ENDED);
    CHECK_INT(mt_session_open(&runs, RUN, "x", "", &EVENTS, &b, &b.s, NULL), -1);
}

int main(void)
{
    set_up();
    test_before_the_connection();
    test_a_life();
    test_pauses();
    test_what_cannot_be();
    test_refusals_and_closes();
    test_losses();
    (void)unlink(address_path);
    return TAP_DONE();
}
