// SPDX-License-Identifier: Apache-2.0
// Commands between the store and a supervisor, which is this test.
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/tap.h"
#include "base/utf8.h"
#include "core/run-commands.h"
#include "core/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

#define CHECK_OK(call) check_ok((call), &err, __FILE__, __LINE__, #call)

static void check_ok(int r, mt_err **err, const char *file, int line, const char *what)
{
    if (!tap_ok_(r == 0, file, line, what))
        printf("# got %d %s\n", r, mt_err_sentence(*err));
    *err = mt_err_free(*err);
}

static char top[64];
static int runs_dir;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void make_top(void)
{
    (void)snprintf(top, sizeof(top), "/tmp/test-commands-XXXXXX");
    if (!mkdtemp(top) || chdir(top) < 0 || mkdir("runs", 0700) < 0) {
        printf("Bail out! no temporary folder\n");
        exit(2);
    }
    runs_dir = open("runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void make_run_folder(const char *id)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "runs/%s", id);
    CHECK_INT(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "runs/%s/out", id);
    CHECK_INT(mkdir(path, 0700), 0);
}

static void write_spool(const char *run, const char *command, int stream, const void *data,
                        size_t len)
{
    char path[192];
    _cleanup_close_ int fd = -1;

    (void)snprintf(path, sizeof(path), "runs/%s/out/%s.%d", run, command, stream);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK_INT(mt_write_full(fd, data, len), 0);
}

// ---- tails ----

// The record of what was printed, the long way: all of it clean, then its end.
static void check_tail(const char *what, const char *data, size_t len, size_t later)
{
    char run[MT_ID_TEXT], command[MT_ID_TEXT];
    _cleanup_buf_ mt_buf clean = MT_BUF_INIT(16 << 20);
    size_t chars = mt_utf8_count(data, len), at;
    mt_run_tail tail;

    mt_id_new(run);
    mt_id_new(command);
    make_run_folder(run);
    if (len + later)
        write_spool(run, command, 1, data, len + later);
    mt_run_tail_read(runs_dir, run, command, 1, len, chars, &tail);
    (void)mt_utf8_add_clean(&clean, data, len);
    at = mt_utf8_tail(mt_buf_str(&clean), clean.len, MT_COMMAND_RECORD_CHARS);
    printf("# %s: %zu bytes, %zu characters\n", what, len, chars);
    CHECK_INT(tail.text.len, clean.len - at);
    CHECK(memcmp(mt_buf_str(&tail.text), mt_buf_str(&clean) + at, clean.len - at) == 0);
    CHECK_INT(tail.length, chars > MT_COMMAND_RECORD_CHARS ? chars : 0);
    mt_run_tail_done(&tail);
}

static void test_tails(void)
{
    _cleanup_free_ char *data = malloc(1 << 20);
    static const char *const CHARS[] = {"a", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xff"};
    mt_run_tail none;

    check_tail("nothing", "", 0, 0);
    check_tail("a NUL", "a\0b\n", 4, 0);
    check_tail("cut by its end", "ab\xe2\x82\xac", 4, 1);
    for (size_t lead = 0; lead < 4; lead++) {
        for (size_t k = 0; k < MT_ARRAY_SIZE(CHARS); k++) {
            size_t n = strlen(CHARS[k]), len = lead;

            memset(data, 'x', lead);
            for (int i = 0; i < 70000; i++, len += n)
                memcpy(data + len, CHARS[k], n);
            check_tail("70,000 of one", data, len, 0);
            check_tail("65,536 less a byte", data, lead + 65536 * n - 1, n);
        }
    }
    mt_random_bytes(data, 1 << 20);
    check_tail("random bytes", data, 900000, 1000);
    mt_run_tail_read(runs_dir, "no-run", "no-command", 1, 10, 5, &none);
    CHECK_INT(none.text.len, 0);
    CHECK_INT(none.length, 5);
}

static void test_range(void)
{
    _cleanup_close_ int fd = open("holes", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char block[4096] = {1};
    uint64_t begin, size;

    for (int i = 0; i < 16; i++)
        CHECK_INT(mt_write_full(fd, block, sizeof(block)), 0);
    CHECK_INT(mt_run_spool_range(fd, 5, &begin, &size), 0);
    CHECK_INT(begin, 5);
    CHECK_INT(size, 65536);
    CHECK_INT(mt_run_spool_range(fd, 70000, &begin, &size), 0);
    CHECK_INT(begin, 65536);
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 32768) == 0) {
        CHECK_INT(mt_run_spool_range(fd, 5, &begin, &size), 0);
        CHECK_INT(begin, 32768);
        CHECK_INT(size, 65536);
    }
}

// ---- the supervisor's part ----

typedef struct peer {
    int listen_fd, fd;
    mt_buf in;
    uint64_t seq;
} peer;

static void peer_listen(peer *p, const char *run)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "runs/%s/sock", run);
    *p = (peer){.fd = -1, .in = MT_BUF_INIT(64 << 20)};
    p->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(p->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(listen(p->listen_fd, 8), 0);
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, PATIENCE_MS) == 1;
}

static void peer_accept(peer *p)
{
    mt_close_fd(&p->fd);
    mt_buf_clear(&p->in);
    CHECK(readable(p->listen_fd));
    p->fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
}

// The next frame; its bytes stay until the one after.
static mt_frame peer_next(peer *p)
{
    static size_t used;
    mt_frame frame = {0};
    ssize_t n;

    mt_buf_consume(&p->in, MT_MIN(used, p->in.len));
    used = 0;
    while ((n = mt_frame_parse(mt_buf_str(&p->in), p->in.len, MT_FRAME_EXEC_MAX, &frame)) == 0) {
        void *to = mt_buf_reserve(&p->in, 65536);
        ssize_t got = readable(p->fd) ? recv(p->fd, to, 65536, 0) : -1;

        if (got <= 0)
            return (mt_frame){0};
        mt_buf_added(&p->in, (size_t)got);
    }
    used = n > 0 ? (size_t)n : 0;
    return frame;
}

static void expect_exec(peer *p, const char *id, const char *command, const char *input)
{
    mt_frame frame = peer_next(p);
    _cleanup_err_ mt_err *err = NULL;
    mt_command *c = NULL;

    CHECK_INT(frame.type, MT_FRAME_EXEC);
    if (frame.type != MT_FRAME_EXEC ||
        mt_command_decode(frame.payload, frame.payload_len, &c, &err) < 0)
        return;
    CHECK_STR(c->id, id);
    CHECK_STR(c->command, command);
    CHECK_INT(c->input.len, strlen(input));
    CHECK(!*input || mt_str_eq(c->input, input));
    CHECK_INT(c->argument_count, 2);
    CHECK_STR(c->arguments[1], "\xe2\x82\xac \"b\\");
    CHECK_STR(c->environment[0].value, "w x");
    mt_command_free(c);
}

static void expect_attach(peer *p)
{
    CHECK_INT(peer_next(p).type, MT_FRAME_ATTACH);
}

static void tell(peer *p, mt_record r)
{
    _cleanup_buf_ mt_buf record = MT_BUF_INIT(MT_RECORD_BYTES_MAX), frame = MT_BUF_INIT(1 << 20);

    r.seq = ++p->seq;
    r.time_us = 1000000 + (int64_t)r.seq;
    CHECK_INT(mt_record_encode(&r, &record), 0);
    (void)mt_put_record(&frame, (mt_str){mt_buf_str(&record), record.len});
    CHECK_INT(mt_write_full(p->fd, frame.data, frame.len), 0);
}

static void tell_started(peer *p, const char *id)
{
    tell(p, (mt_record){.type = MT_REC_COMMAND_STARTED, .command_started = {mt_str_of(id)}});
}

static void tell_ended(peer *p, const char *id, int code, size_t bytes)
{
    tell(p, (mt_record){.type = MT_REC_COMMAND_ENDED,
                        .command_ended = {.id = mt_str_of(id),
                                          .status = code ? MT_COMMAND_ERROR : MT_COMMAND_FINISHED,
                                          .reason = MT_END_EXITED,
                                          .exit_code = code,
                                          .out_bytes = bytes,
                                          .out_chars = bytes}});
}

// ---- the server's part ----

static mt_loop *loop;
static mt_store *store;
static mt_runs *runs;
static mt_user anna;
static pthread_t loop_thread;
static const mt_mtr_server LIMITS;

static void *run_loop(void *data)
{
    (void)mt_loop_run(loop);
    return NULL;
}

static void stop_loop(void *data)
{
    mt_loop_stop(loop);
}

static void server_start(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_runs_options options = {.runner_socket = "no-runner",
                               .runs_dirfd = runs_dir,
                               .limits = &LIMITS,
                               .max_live_runs = 10};

    loop = mt_loop_new();
    CHECK_OK(mt_store_open("store", &store, &err));
    options.loop = loop;
    options.store = store;
    CHECK_OK(mt_runs_new(&options, &runs, &err));
    CHECK_OK(mt_runs_adopt(runs, &err));
    CHECK_INT(pthread_create(&loop_thread, NULL, run_loop, NULL), 0);
}

static void server_stop(void)
{
    CHECK_INT(mt_loop_post(loop, stop_loop, NULL), 0);
    CHECK_INT(pthread_join(loop_thread, NULL), 0);
    mt_runs_free(runs);
    store = mt_store_close(store);
    mt_loop_free(loop);
}

static void make_run(char id[MT_ID_TEXT])
{
    _cleanup_err_ mt_err *err = NULL;
    mt_namespace ns;
    mt_run run = {0};
    mt_run_new new = {.capsule = "c", .version = 1, .definition = "{}", .started_by = &anna};

    mkdir("store", 0700);
    CHECK_OK(mt_store_open("store", &store, &err));
    CHECK_OK(mt_store_user_create(store, "anna", MT_ROLE_USER, &anna, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "work", &ns, NULL, &err));
    new.namespace_id = ns.id;
    CHECK_OK(mt_store_run_create(store, &new, NULL, NULL, &run, &err));
    (void)snprintf(id, MT_ID_TEXT, "%s", run.id);
    mt_run_done(&run);
    store = mt_store_close(store);
    make_run_folder(id);
}

static void send_one(const char *run, char id[MT_ID_TEXT], const char *command, mt_str input,
                     mt_command_record *ret)
{
    static const char *const ARGUMENTS[] = {"a", "\xe2\x82\xac \"b\\"};
    static const mt_plan_env ENV[] = {{"V", "w x"}};
    _cleanup_err_ mt_err *err = NULL;
    mt_command c = {.id = id,
                    .command = command,
                    .arguments = ARGUMENTS,
                    .argument_count = 2,
                    .environment = ENV,
                    .environment_count = 1,
                    .user = "maitento",
                    .input = input};
    mt_command_new new = {.run_id = run, .by = &anna};

    mt_id_new(id);
    mt_command_record_done(ret);
    CHECK_OK(mt_runs_exec(runs, &c, &new, ret, &err));
}

// Waits until the command has ended and gives its record.
static void ended(const char *run, const char *id, mt_command_record *ret)
{
    _cleanup_err_ mt_err *err = NULL;
    int64_t until = mt_monotonic_us() + (int64_t)PATIENCE_MS * 1000;

    do {
        mt_command_record_done(ret);
        CHECK_OK(mt_store_command_get(store, run, id, ret, &err));
        (void)poll(NULL, 0, 2);
    } while (!ret->date_ended && mt_monotonic_us() < until);
    CHECK(ret->date_ended);
}

static void test_sending(void)
{
    char run[MT_ID_TEXT], a[MT_ID_TEXT], b[MT_ID_TEXT], d[MT_ID_TEXT];
    _cleanup_free_ char *big = malloc(300000);
    _cleanup_err_ mt_err *err = NULL;
    mt_command_record c = {0};
    mt_frame frame;
    mt_str by;
    char id[MT_ID_TEXT];
    peer p;

    memset(big, 'b', 300000);
    make_run(run);
    peer_listen(&p, run);
    server_start();
    peer_accept(&p);
    expect_attach(&p);
    send_one(run, a, "first", MT_STR("in"), &c);
    send_one(run, b, "second", (mt_str){0}, &c);
    expect_exec(&p, a, "first", "in");
    expect_exec(&p, b, "second", "");
    // A long output, whose reading takes a while, holds back nothing but the order.
    write_spool(run, a, 1, big, 300000);
    write_spool(run, b, 1, "ok\n", 3);
    tell_started(&p, a);
    tell_ended(&p, a, 3, 300000);
    tell_started(&p, b);
    tell_ended(&p, b, 0, 3);
    ended(run, b, &c);
    CHECK_STR(c.status, "Finished");
    CHECK_STR(c.standard.data, "ok\n");
    CHECK_INT(c.standard_length, 0);
    ended(run, a, &c);
    CHECK_STR(c.status, "Error");
    CHECK_INT(c.exit_code, 3);
    CHECK_INT(c.standard.len, MT_COMMAND_RECORD_CHARS);
    CHECK_INT(c.standard_length, 300000);

    // The connection breaks, and the server goes and comes: what has not ended is sent again.
    send_one(run, a, "third", (mt_str){0}, &c);
    expect_exec(&p, a, "third", "");
    mt_close_fd(&p.fd);
    peer_accept(&p);
    expect_attach(&p);
    expect_exec(&p, a, "third", "");
    server_stop();
    server_start();
    peer_accept(&p);
    expect_attach(&p);
    expect_exec(&p, a, "third", "");
    mt_command_record_done(&c);
    CHECK_OK(mt_store_command_get(store, run, a, &c, &err));
    CHECK_OK(mt_runs_cancel(runs, &c, "anna", &err));
    frame = peer_next(&p);
    CHECK_INT(frame.type, MT_FRAME_CANCEL);
    CHECK_INT(mt_get_cancel(&frame, id, &by), 0);
    CHECK_STR(id, a);
    CHECK(mt_str_eq(by, "anna"));
    send_one(run, b, "fourth", (mt_str){0}, &c);
    send_one(run, d, "fifth", (mt_str){0}, &c);
    server_stop();
    server_start();
    peer_accept(&p);
    expect_attach(&p);
    expect_exec(&p, a, "third", "");
    CHECK_INT(peer_next(&p).type, MT_FRAME_CANCEL);
    expect_exec(&p, b, "fourth", "");
    expect_exec(&p, d, "fifth", "");

    // All over again what was told before: it changes nothing. Then the run's end, while a long
    // output is being read.
    p.seq = 0;
    tell_started(&p, a);
    tell_ended(&p, a, 0, 0);
    p.seq = 4;
    write_spool(run, b, 1, big, 300000);
    tell_started(&p, b);
    tell_ended(&p, b, 7, 300000);
    tell(&p, (mt_record){.type = MT_REC_ENDED,
                         .ended = {.status = MT_RUN_FINISHED,
                                   .reason = MT_END_TERMINATED,
                                   .terminated_by = MT_STR("anna"),
                                   .failure_details = MT_STR("stopped by anna")}});
    ended(run, d, &c);
    CHECK_STR(c.status, "Aborted");
    CHECK_STR(c.failure_details, "the run was stopped by anna");
    ended(run, b, &c);
    CHECK_INT(c.exit_code, 7);
    CHECK_INT(c.standard_length, 300000);
    ended(run, a, &c);
    CHECK_STR(c.status, "Aborted");
    server_stop();
    mt_command_record_done(&c);
    mt_close_fd(&p.fd);
    mt_close_fd(&p.listen_fd);
    mt_buf_done(&p.in);
}

int main(void)
{
    make_top();
    test_tails();
    test_range();
    test_sending();
    CHECK_INT(chdir("/"), 0);
    (void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return TAP_DONE();
}
