// SPDX-License-Identifier: Apache-2.0
// Who talks to a supervisor, on the real kernel: what it is told, asks for and may not disturb.
#include "base/clock.h"
#include "base/fd.h"
#include "base/tap.h"
#include "runner/testruns.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void test_terminate(void)
{
    bed_result r;
    bed_run run;
    mt_plan_command c = CMD("sleep 30");
    mt_plan plan = plan_of(NULL, 0, false);

    CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
    CHECK(bed_wait_record(&run, MT_REC_READY, 5000));
    CHECK(send_terminate(&run, "ann", 3));
    bed_finish(&run, 5000, &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
    CHECK_INT(r.end.reason, MT_END_TERMINATED);
    CHECK_STR(r.by, "ann");
    CHECK_STR(r.details, "stopped by ann");
    CHECK_INT(r.ending, 1);
    plan = plan_of(&c, 1, false);
    CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
    CHECK(bed_wait_record(&run, MT_REC_STARTUP_STARTED, 5000));
    CHECK(send_terminate(&run, "bob", 1));
    bed_finish(&run, 5000, &r);
    CHECK_INT(r.end.reason, MT_END_TERMINATED);
    CHECK_INT(r.startup_reason[0], MT_END_RUN_ENDED);
    // At any moment of the construction.
    for (int i = 0; i < 12; i++) {
        CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
        (void)usleep((useconds_t)(i * 700));
        CHECK(send_terminate(&run, "eve", 1));
        bed_finish(&run, 5000, &r);
        CHECK(r.end.reason == MT_END_TERMINATED && r.end.status == MT_RUN_FINISHED && r.swept);
    }
}

static off_t size_of(const char *name)
{
    char path[512];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s/%s", data_path, name);
    return stat(path, &st) < 0 ? 0 : st.st_size;
}

static bool grows(const char *name, int wait_ms)
{
    off_t before = size_of(name);

    for (int i = 0; i < wait_ms / 10 && size_of(name) == before; i++)
        (void)usleep(10000);
    return size_of(name) > before;
}

// Whether it stops growing, within less than a hold lasts: v1 freezes a moment after it is asked
// to.
static bool stands(const char *name)
{
    int64_t end = mt_boottime_ns() + 3000000000;

    while (grows(name, 300))
        if (mt_boottime_ns() > end)
            return false;
    return true;
}

// Asks for a hold, on a connection that is then the caller's; the answer says what was written.
static int hold(const bed_run *run)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(256);
    char answer[256];
    mt_usage usage;
    mt_frame f;
    int fd = bed_connect(run);
    ssize_t n;

    (void)mt_put_hold(&b, true);
    CHECK_INT(send(fd, b.data, b.len, MSG_NOSIGNAL), b.len);
    n = recv(fd, answer, sizeof(answer), 0);
    CHECK(n > 0 && mt_frame_parse(answer, (size_t)n, sizeof(answer), &f) == n &&
          f.type == MT_FRAME_USAGE && mt_get_usage(&f, &usage) == 0);
    return fd;
}

// Commands stand still as long as somebody holds them, and a held run ends.
static void test_hold(void)
{
    mt_plan_command c = CMD("while :; do echo x >> /mnt/data/ticks; sleep 0.01; done");
    mt_plan plan = plan_of(&c, 1, false);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(256);
    bed_result r;
    bed_run run;
    int fd;

    CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
    CHECK(bed_wait_record(&run, MT_REC_STARTUP_STARTED, 5000));
    CHECK(grows("ticks", 5000));
    fd = hold(&run);
    CHECK(stands("ticks"));
    mt_close_fd(&fd); // its holder is gone
    CHECK(grows("ticks", 5000));
    fd = hold(&run);
    CHECK(stands("ticks"));
    CHECK(grows("ticks", 15000)); // nobody is held for ever
    mt_close_fd(&fd);
    fd = hold(&run);
    (void)mt_put_disk_full(&b, "the disk is full");
    CHECK_INT(send(fd, b.data, b.len, MSG_NOSIGNAL), b.len);
    bed_finish(&run, 8000, &r);
    mt_close_fd(&fd);
    CHECK_INT(r.end.status, MT_RUN_ERROR);
    CHECK_INT(r.end.reason, MT_END_DISK_FULL);
    CHECK(r.end.limits_reached & MT_LIMIT_DISK);
    CHECK_STR(r.details, "the disk is full");
    CHECK(r.swept);
    (void)output_of("ticks");
}

// recv(2) with the descriptor that may come along; *ret_fd keeps the first one.
static ssize_t receive_with_fd(int fd, void *to, size_t len, int *ret_fd)
{
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
    struct iovec part = {to, len};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *h = n < 0 ? NULL : CMSG_FIRSTHDR(&m);

    if (h && h->cmsg_type == SCM_RIGHTS && *ret_fd < 0)
        memcpy(ret_fd, CMSG_DATA(h), sizeof(int));
    return n;
}

// The socket of the sign-in listens, and is the capsule's own.
static void check_api(const mt_frame *f, int api)
{
    int listening = 0;
    socklen_t len = sizeof(listening);
    uint32_t base = 0;

    CHECK_INT(mt_get_api(f, &base), 0);
    CHECK_INT(base, BED_UID_BASE);
    CHECK_INT(getsockopt(api, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len), 0);
    CHECK_INT(listening, 1);
}

// Attaches and reads to the end: every record, in order; and how often the sign-in's socket came.
static int expect_story(int fd)
{
    _cleanup_buf_ mt_buf in = MT_BUF_INIT(1 << 20), out = MT_BUF_INIT(4096);
    uint64_t last = 0;
    bool ended = false;
    int apis = 0;
    _cleanup_close_ int api = -1;

    (void)mt_put_attach(&out, 0);
    CHECK(mt_write_full(fd, out.data, out.len) == 0);
    while (!ended) {
        mt_frame f;
        mt_record rec;
        ssize_t n = mt_frame_parse(mt_buf_str(&in), in.len, MT_FRAME_SUPERVISOR_MAX, &f);

        if (n == 0) {
            char *p = mt_buf_reserve(&in, 4096);

            n = receive_with_fd(fd, p, 4096, &api);
            if (!CHECK(n > 0))
                break;
            mt_buf_added(&in, (size_t)n);
            continue;
        }
        if (n > 0 && f.type == MT_FRAME_API) {
            check_api(&f, api);
            apis++;
            mt_buf_consume(&in, (size_t)n);
            continue;
        }
        if (!CHECK(n > 0 && f.type == MT_FRAME_RECORD) ||
            !CHECK(mt_record_decode(f.payload, f.payload_len, &rec) == (ssize_t)f.payload_len))
            break;
        CHECK_INT(rec.seq, last + 1);
        last = rec.seq;
        ended = rec.type == MT_REC_ENDED;
        mt_buf_consume(&in, (size_t)n);
    }
    return apis;
}

// Whoever gets in is told the end, however late he comes.
static void test_late_client(void)
{
    mt_plan plan = plan_of(NULL, 0, true);
    bed_result r;
    bed_run run;
    int late = 0;

    for (int i = 0; i < 30; i++) {
        int fd;

        CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
        CHECK(bed_wait_record(&run, i % 2 ? MT_REC_ENDING : MT_REC_ENDED, 10000));
        fd = bed_connect(&run); // -1: it has gone by now
        if (fd >= 0) {
            late++;
            expect_story(fd);
            mt_close_fd(&fd);
        }
        bed_finish(&run, 8000, &r);
        CHECK_INT(r.exit_code, 0);
    }
    printf("# %d of 30 came in late\n", late);
}

// One that attaches, terminates and leaves at once, reading nothing, is heard all the same.
static void test_hasty_client(void)
{
    mt_plan plan = plan_of(NULL, 0, false);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);
    bed_result r;
    bed_run run;

    (void)mt_put_attach(&b, 0);
    (void)mt_put_terminate(&b, "ann");
    for (int i = 0; i < 10; i++) {
        int fd;

        CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
        CHECK(bed_wait_record(&run, MT_REC_READY, 5000));
        // Both frames are there before the supervisor looks, and the client has gone by then.
        (void)kill(run.pid, SIGSTOP);
        fd = bed_connect(&run);
        CHECK(mt_write_full(fd, b.data, i % 2 ? 18 : b.len) == 0);
        if (i % 2) {
            (void)kill(run.pid, SIGCONT);
            (void)usleep(2000);
            (void)kill(run.pid, SIGSTOP);
            CHECK(mt_write_full(fd, b.data + 18, b.len - 18) == 0);
        }
        (void)close(fd);
        (void)kill(run.pid, SIGCONT);
        bed_finish(&run, 8000, &r);
        CHECK_STR(r.by, "ann");
    }
}

// A server that attaches gets every record, then what comes, then the end; and, once, the socket of
// the sign-in.
static void test_attach(void)
{
    mt_plan_command c = CMD("sleep 0.2");
    mt_plan plan = plan_of(&c, 1, true);
    bed_result r;
    bed_run run;
    int fd;

    CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
    CHECK(bed_wait_record(&run, MT_REC_STARTUP_STARTED, 5000));
    fd = bed_connect(&run);
    CHECK_INT(expect_story(fd), 1);
    mt_close_fd(&fd);
    bed_finish(&run, 2000, &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
}

// What is attached and never reads, or says nonsense, holds nothing up.
static void test_bad_clients(void)
{
    mt_plan_command c = CMD("sleep 0.3");
    mt_plan plan = plan_of(&c, 1, true);
    bed_result r;
    bed_run run;
    int fds[24];

    CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
    for (size_t i = 0; i < MT_ARRAY_SIZE(fds); i++) {
        fds[i] = bed_connect(&run);
        if (fds[i] >= 0 && i % 2)
            (void)send(fds[i], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12,
                       MSG_NOSIGNAL);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(fds); i++)
        mt_close_fd(&fds[i]);
    bed_finish(&run, 8000, &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
}

int main(int argc, char **argv)
{
    static void (*const tests[])(void) = {
        test_terminate,   test_attach,      test_hasty_client,
        test_bad_clients, test_late_client, test_hold,
    };
    const char *why;

    if (!runs_begin(argc, argv, &why)) {
        SKIP(why);
        return TAP_DONE();
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(tests); i++) {
        if (argc < 3 || (size_t)atoi(argv[2]) == i)
            tests[i]();
    }
    runs_end();
    return TAP_DONE();
}
