// SPDX-License-Identifier: Apache-2.0
// Ends that are told before they are on the disk, with this test for the supervisor.
#include "base/clock.h"
#include "base/id.h"
#include "base/tap.h"
#include "core/runs-internal.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { PATIENCE_MS = 20000 };

static mt_loop *loop;
static mt_store *store;
static mt_runs *runs;
static mt_user user;
static char folder[] = "/tmp/test-runs-synced-XXXXXX";
static char run_id[MT_ID_TEXT], command_id[MT_ID_TEXT];
static int listen_fd, supervisor;
static uint64_t seq;
static int announced;
static char announced_id[MT_ID_TEXT];

static void on_announce(const char *id, void *data)
{
    (void)data;
    announced++;
    (void)snprintf(announced_id, sizeof(announced_id), "%s", id);
}

#define UNTIL(condition)                                           \
    do {                                                           \
        int64_t end_ = mt_boottime_ns() + PATIENCE_MS * 1000000ll; \
        while (!(condition) && mt_boottime_ns() < end_)            \
            (void)mt_loop_once(loop, 20);                          \
        CHECK(condition);                                          \
    } while (0)

static void open_runs(void)
{
    static mt_mtr_server limits;
    _cleanup_err_ mt_err *err = NULL;
    const mt_runs_options options = {.loop = loop,
                                     .store = store,
                                     .runner_socket = "/nowhere",
                                     .runs_dirfd = open("runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                     .vfs_dirfd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                     .limits = &limits,
                                     .max_live_runs = 10,
                                     .announce = on_announce};

    CHECK_INT(mt_runs_new(&options, &runs, &err), 0);
}

static void set_up(void)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK(mkdtemp(folder) && chdir(folder) == 0);
    CHECK_INT(mkdir("runs", 0700), 0);
    loop = mt_loop_new();
    CHECK_INT(mt_store_open(folder, &store, &err), 0);
    CHECK_INT(mt_store_user_create(store, "anna", MT_ROLE_USER, &user, &err), 0);
    open_runs();
}

static void listen_as_supervisor(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char path[128];

    (void)snprintf(path, sizeof(path), "runs/%s", run_id);
    CHECK_INT(mkdir(path, 0700), 0);
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "runs/%s/sock", run_id);
    listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(listen_fd, (struct sockaddr *)&at, sizeof(at)), 0);
    CHECK_INT(listen(listen_fd, 4), 0);
    (void)snprintf(path, sizeof(path), "runs/%s/journal", run_id);
    mt_close_fd(&(int){open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)});
}

// A run with one command, followed by way of this test's socket.
static live *begin(const char *name)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_plan_limits limits = {0};
    mt_namespace ns;
    mt_run run = {0};
    mt_command_record command = {0};
    int64_t number;
    live *l;

    CHECK_INT(mt_store_namespace_create(store, &user, name, &ns, NULL, &err), 0);
    const mt_run_new new = {.namespace_id = ns.id,
                            .capsule = "c",
                            .version = 1,
                            .definition = "{}",
                            .started_by = &user,
                            .max_duration_ms = 600000,
                            .deadline = mt_now_us() + 600000000,
                            .image = "slim",
                            .image_digest = "abcd"};
    CHECK_INT(mt_store_run_create(store, &new, NULL, NULL, &run, &err), 0);
    memcpy(run_id, run.id, sizeof(run_id));
    mt_run_done(&run);
    mt_id_new(command_id);
    const mt_command_new exec = {.id = command_id,
                                 .run_id = run_id,
                                 .command = "true",
                                 .arguments = "[]",
                                 .environment = "{}",
                                 .run_as_user = "maitento",
                                 .by = &user};
    CHECK_INT(mt_store_command_create(store, &exec, NULL, NULL, &number, &command, &err), 0);
    mt_command_record_done(&command);
    listen_as_supervisor();
    l = runs_add(runs, run_id, user.id, &limits);
    CHECK(l != NULL && runs_promised_before(runs, user.id, &limits) == 0);
    runs_follow(l);
    supervisor = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK(supervisor >= 0);
    seq = 0;
    announced = 0;
    return l;
}

static void end(void)
{
    mt_close_fd(&supervisor);
    mt_close_fd(&listen_fd);
}

static void send_all(mt_buf *b)
{
    CHECK_INT(send(supervisor, b->data, b->len, MSG_NOSIGNAL), (ssize_t)b->len);
    mt_buf_clear(b);
}

static void send_record(mt_record *r)
{
    _cleanup_buf_ mt_buf record = MT_BUF_INIT(4096), frame = MT_BUF_INIT(8192);

    r->seq = ++seq;
    r->time_us = mt_now_us();
    CHECK_INT(mt_record_encode(r, &record), 0);
    (void)mt_put_record(&frame, (mt_str){mt_buf_str(&record), record.len});
    send_all(&frame);
}

static void send_end_of(const char *id, uint64_t out_bytes)
{
    mt_record r = {.type = MT_REC_COMMAND_ENDED,
                   .command_ended = {.id = mt_str_of(id),
                                     .status = MT_COMMAND_FINISHED,
                                     .reason = MT_END_EXITED,
                                     .out_bytes = out_bytes}};

    send_record(&r);
}

static void send_command_end(void)
{
    send_end_of(command_id, 0);
}

static void send_synced(uint64_t up_to)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);

    (void)mt_put_synced(&b, up_to);
    send_all(&b);
}

static bool stored_end_of_command(void)
{
    return mt_store_command_is_open(store, run_id, command_id, NULL) == 0;
}

static bool may_tell(void)
{
    return mt_runs_may_tell(runs, run_id, command_id);
}

static void test_sync_is_waited_for(void)
{
    live *l = begin("waits");

    CHECK(may_tell()); // nothing came yet
    send_command_end();
    UNTIL(stored_end_of_command());
    CHECK(!may_tell());
    CHECK(mt_runs_hold_news(runs, command_id));
    CHECK(!mt_runs_hold_news(runs, run_id));               // which has not ended
    CHECK(mt_runs_may_tell(runs, command_id, command_id)); // of another run
    send_synced(seq - 1);                                  // of what came before
    for (int i = 0; i < 5; i++)
        (void)mt_loop_once(loop, 10);
    CHECK(!may_tell() && announced == 0);
    send_synced(seq);
    UNTIL(announced > 0);
    CHECK_STR(announced_id, command_id);
    CHECK(may_tell());
    CHECK(l->conn != NULL);
    runs_forget(l);
    end();
}

// While the long output of one is read, what comes after it is held back, and its SYNCED may be
// older than itself when it is taken.
static void test_sync_while_another_is_read(void)
{
    _cleanup_err_ mt_err *err = NULL;
    live *l = begin("reads");
    mt_command_record command = {0};
    char other[MT_ID_TEXT];
    int64_t number;

    mt_id_new(other);
    const mt_command_new exec = {.id = other,
                                 .run_id = run_id,
                                 .command = "true",
                                 .arguments = "[]",
                                 .environment = "{}",
                                 .run_as_user = "maitento",
                                 .by = &user};
    CHECK_INT(mt_store_command_create(store, &exec, NULL, NULL, &number, &command, &err), 0);
    mt_command_record_done(&command);
    send_end_of(other, 100000);
    send_command_end();
    send_synced(seq);
    UNTIL(stored_end_of_command());
    CHECK(may_tell());
    CHECK(!mt_runs_hold_news(runs, command_id) && !mt_runs_hold_news(runs, other));
    runs_forget(l);
    end();
}

// The usual order: nobody has to look again.
static void test_sync_comes_first(void)
{
    live *l = begin("first");

    send_command_end();
    send_synced(seq);
    UNTIL(stored_end_of_command());
    UNTIL(may_tell());
    CHECK(!mt_runs_hold_news(runs, command_id));
    CHECK_INT(announced, 0);
    runs_forget(l);
    end();
}

// A supervisor that dies between the two: its journal is synced here.
static void test_supervisor_dies(void)
{
    live *l = begin("dies");

    send_command_end();
    UNTIL(stored_end_of_command());
    CHECK(!may_tell());
    end();
    UNTIL(announced > 0);
    CHECK(may_tell());
    CHECK(l->conn == NULL);
    runs_forget(l);
}

// The run is followed until its end is synced.
static void test_end_of_run(void)
{
    mt_record r = {.type = MT_REC_ENDED,
                   .ended = {.status = MT_RUN_FINISHED, .reason = MT_END_EXITED}};
    live *l = begin("ends");

    send_record(&r);
    UNTIL(l->end_stored);
    CHECK(runs_find(runs, run_id) == l);
    CHECK(!mt_runs_may_tell(runs, run_id, run_id));
    send_synced(seq);
    UNTIL(!runs_find(runs, run_id));
    CHECK_INT(announced, 1);
    CHECK_STR(announced_id, run_id);
    CHECK(mt_runs_may_tell(runs, run_id, run_id));
    end();
    l = begin("ends-and-dies");
    send_record(&r);
    UNTIL(l->end_stored);
    end();
    UNTIL(!runs_find(runs, run_id));
    CHECK(mt_runs_may_tell(runs, run_id, run_id));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int main(void)
{
    set_up();
    test_sync_is_waited_for();
    test_sync_comes_first();
    test_sync_while_another_is_read();
    test_supervisor_dies();
    test_end_of_run();
    mt_runs_free(runs);
    mt_store_close(store);
    mt_loop_free(loop);
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return TAP_DONE();
}
