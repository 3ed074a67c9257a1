// SPDX-License-Identifier: Apache-2.0
// Commands sent to runs, on the real kernel: how they end, what they print, and what is left.
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/tap.h"
#include "capsule/command.h"
#include "runner/commands.h"
#include "runner/testbed.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { COMMANDS_MAX = 10200 };

static bed *the_bed;
static const char *const USERS[] = {"sandbox"};

// A run under test, and what its journal has said of its commands.
typedef struct ended {
    mt_command_ended e;
    char id[37], details[512];
    int order; // among the ends
    int64_t us;
    bool started;
} ended;

static struct {
    bed_run run;
    int fd;
    mt_journal_reader *reader;
    uint64_t after;
    ended all[COMMANDS_MAX];
    int count, ends, notes, extended;
} now;

static mt_plan plan_of(const mt_plan_command *startup, uint32_t count)
{
    return (mt_plan){
        .users = USERS,
        .user_count = 1,
        .startup = startup,
        .startup_count = count,
        .max_duration_ms = 60000,
        .limits = {.memory_bytes = 256 << 20, .pids = 128, .disk_bytes = 64 << 20},
    };
}

static void begin(mt_plan *plan, bool wait_ready)
{
    memset(&now, 0, sizeof(now));
    if (!CHECK(bed_start(the_bed, plan, false, &now.run) == 0))
        exit(1);
    if (wait_ready)
        CHECK(bed_wait_record(&now.run, MT_REC_READY, 10000));
    now.fd = bed_connect(&now.run);
    CHECK(mt_journal_reader_new(now.run.journal, &now.reader, NULL) == 0);
}

static void begin_plain(void)
{
    mt_plan plan = plan_of(NULL, 0);

    begin(&plan, true);
}

static ended *slot(mt_str id)
{
    for (int i = 0; i < now.count; i++)
        if (mt_str_eq(id, now.all[i].id))
            return &now.all[i];
    if (now.count == COMMANDS_MAX)
        exit(1);
    (void)snprintf(now.all[now.count].id, 37, "%.*s", (int)id.len, id.data);
    now.all[now.count].order = -1;
    return &now.all[now.count++];
}

static void read_journal(void)
{
    mt_record r;

    while (mt_journal_next(now.reader, now.after, &r, NULL, NULL) == 1) {
        ended *e;

        now.after = r.seq;
        now.notes += r.type == MT_REC_NOTE;
        now.extended += r.type == MT_REC_EXTENDED;
        if (r.type == MT_REC_COMMAND_STARTED) {
            slot(r.command_started.id)->started = true;
        } else if (r.type == MT_REC_COMMAND_ENDED) {
            e = slot(r.command_ended.id);
            if (e->order >= 0)
                CHECK(!"a command has ended twice");
            e->e = r.command_ended;
            e->order = now.ends++;
            e->us = r.time_us;
            (void)snprintf(e->details, sizeof(e->details), "%.*s", (int)r.command_ended.details.len,
                           r.command_ended.details.data);
        }
    }
}

// Sends a command and gives its id.
static const char *exec_it(mt_command c)
{
    static char ids[8][37];
    static unsigned at;
    char *id = ids[at++ % 8];
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_FRAME_EXEC_MAX), frame = MT_BUF_INIT(MT_FRAME_EXEC_MAX);
    _cleanup_err_ mt_err *err = NULL;

    if (c.id)
        (void)snprintf(id, 37, "%s", c.id);
    else
        mt_id_new(id);
    c.id = id;
    c.user = c.user ? c.user : "maitento";
    if (mt_command_encode(&c, &b, &err) < 0)
        printf("# %s\n", mt_err_sentence(err));
    if (mt_put_exec(&frame, (mt_str){b.data, b.len}) < 0 ||
        mt_write_full(now.fd, frame.data, frame.len) < 0)
        CHECK(!"a command could not be sent");
    return id;
}

static const char *sh(const char *text)
{
    return exec_it((mt_command){.command = text});
}

static ended *await(const char *id, int timeout_ms)
{
    static ended none = {.order = -1};
    int64_t until = mt_monotonic_us() + timeout_ms * 1000ll;

    do {
        ended *e;

        read_journal();
        e = slot(mt_str_of(id));
        if (e->order >= 0)
            return e;
        (void)poll(NULL, 0, 2);
    } while (mt_monotonic_us() < until);
    CHECK(!"a command did not end in time");
    return &none;
}

static const char *text_of(const char *id, int stream)
{
    static char text[2][1 << 16];
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(sizeof(text[0]) - 1);
    char name[64];
    char *to = text[stream - 1];

    (void)snprintf(name, sizeof(name), "out/%s.%d", id, stream);
    if (mt_read_file(now.run.run_dir, name, &b) < 0)
        return "(no file)";
    memcpy(to, mt_buf_str(&b), b.len + 1);
    return to;
}

static void stop(bed_result *r)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(256);

    (void)mt_put_terminate(&b, "ann");
    (void)!mt_write_full(now.fd, b.data, b.len);
    mt_close_fd(&now.fd);
    read_journal();
    mt_journal_reader_free(now.reader);
    bed_finish(&now.run, 15000, r);
    CHECK_INT(r->exit_code, 0);
    CHECK(r->ended && r->swept);
}

static void finish(void)
{
    bed_result r;

    stop(&r);
}

static void expect(const char *text, int code, const char *out, const char *err)
{
    const char *id = sh(text);
    ended *e = await(id, 10000);

    CHECK_INT(e->e.exit_code, code);
    CHECK_INT(e->e.status, code ? MT_COMMAND_ERROR : MT_COMMAND_FINISHED);
    CHECK_INT(e->e.reason, MT_END_EXITED);
    CHECK(e->started);
    CHECK_STR(text_of(id, 1), out);
    CHECK_STR(text_of(id, 2), err);
    CHECK_INT(e->e.out_bytes, strcmp(out, "(no file)") ? strlen(out) : 0);
}

static void test_results(void)
{
    static const char *const args[] = {"[%s]\\n", "a b", "$HOME", "", "l1\nl2", "*", "é"};
    struct stat st;
    const char *id;
    char name[64];

    begin_plain();
    expect("echo out; echo err >&2", 0, "out\n", "err\n");
    expect("true", 0, "(no file)", "(no file)");
    expect("exit 124", 124, "(no file)", "(no file)");
    expect("sqlite3x", 127, "(no file)", "-bash: line 1: sqlite3x: command not found\n");
    expect("/tmp", 126, "(no file)", "-bash: line 1: /tmp: Is a directory\n");
    expect("echo \"a  b\" | tr a-z A-Z; false", 1, "A  B\n", "(no file)");
    expect("cat; wc -c; read x; echo $?; test -t 0; echo $?; cat /dev/stdin; echo after", 0,
           "0\n1\n1\nafter\n", "(no file)");
    id = exec_it((mt_command){.command = "printf", .arguments = args, .argument_count = 7});
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    CHECK_STR(text_of(id, 1), "[a b]\n[$HOME]\n[]\n[l1\nl2]\n[*]\n[é]\n");
    (void)snprintf(name, sizeof(name), "out/%s.1", id);
    CHECK(fstatat(now.run.run_dir, name, &st, 0) == 0 && (st.st_mode & 07777) == 0640);
    CHECK_INT(st.st_gid, BED_SERVICE_ID);
    CHECK(fstatat(now.run.run_dir, "out", &st, 0) == 0 && (st.st_mode & 07777) == 02750);
    finish();
}

static void test_settings(void)
{
    static const mt_plan_env env[] = {{"A", "1 2"}, {"PATH", "/bin"}};
    const char *id;

    begin_plain();
    id = exec_it((mt_command){.command = "id -un; pwd; echo $A $PATH $HOME",
                              .user = "sandbox",
                              .working_directory = "/usr",
                              .environment = env,
                              .environment_count = 2});
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    CHECK_STR(text_of(id, 1), "sandbox\n/usr\n1 2 /bin /home/sandbox\n");
    id = exec_it((mt_command){.command = "true", .user = "nobody-here"});
    CHECK_INT(await(id, 20000)->e.reason, MT_END_START_FAILED);
    CHECK_INT(await(id, 0)->e.exit_code, -1);
    CHECK_INT(await(id, 0)->e.status, MT_COMMAND_ERROR);
    CHECK_STR(await(id, 0)->details, "the capsule has no user 'nobody-here' in its /etc/passwd");
    id = exec_it((mt_command){.command = "true", .working_directory = "/no/such"});
    CHECK_INT(await(id, 20000)->e.reason, MT_END_START_FAILED);
    CHECK_STR(await(id, 0)->details,
              "cannot enter the working directory /no/such: No such file or directory");
    CHECK(!await(id, 0)->started);
    id = exec_it((mt_command){.command = "cat; echo -n after", .input = MT_STR("two\nlines")});
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    CHECK_STR(text_of(id, 1), "two\nlinesafter");
    finish();
}

static void test_input(void)
{
    _cleanup_free_ char *big = malloc(8 << 20);
    const char *id;

    memset(big, 'x', 8 << 20);
    begin_plain();
    id = exec_it((mt_command){.command = "wc -c", .input = {big, 8 << 20}});
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    CHECK_STR(text_of(id, 1), "8388608\n");
    // Nobody need read it.
    id = exec_it((mt_command){.command = "head -c 3 /dev/stdin", .input = {big, 8 << 20}});
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    CHECK_STR(text_of(id, 1), "xxx");
    id = exec_it((mt_command){.command = "true", .input = {big, 8 << 20}});
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    finish();
}

static int entries(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        (void)closedir(d);
    return n;
}

// Large commands wait in files, which are gone when they have begun, were cancelled or aborted.
static void test_large_queue(void)
{
    _cleanup_free_ char *big = malloc(4 << 20);
    char first[37], cancelled[37], path[64];
    const char *id = NULL;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    memset(big, 'x', 4 << 20);
    begin_plain();
    (void)strcpy(first, sh("sleep 1"));
    (void)strcpy(cancelled, exec_it((mt_command){.command = "cat", .input = {big, 4 << 20}}));
    for (int i = 0; i < 12; i++)
        id = exec_it((mt_command){.command = "wc -c", .input = {big, 4 << 20}});
    (void)mt_put_cancel(&b, cancelled, "bob");
    CHECK(mt_write_full(now.fd, b.data, b.len) == 0);
    CHECK_INT(await(cancelled, 20000)->e.reason, MT_END_TERMINATED);
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    CHECK_STR(text_of(id, 1), "4194304\n");
    (void)sh("sleep 30");
    for (int i = 0; i < 3; i++)
        id = exec_it((mt_command){.command = "wc -c", .input = {big, 4 << 20}});
    mt_buf_clear(&b);
    (void)mt_put_terminate(&b, "ann");
    CHECK(mt_write_full(now.fd, b.data, b.len) == 0);
    CHECK_INT(await(id, 20000)->e.status, MT_COMMAND_ABORTED);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/out", now.run.run_dir);
    CHECK_INT(entries(path), 2 + 12); // . and ..
    finish();
}

static void test_signals(void)
{
    static const struct {
        const char *text;
        int code, signal;
    } list[] = {{"kill -9 $$", 137, 9},
                {"sh -c 'kill -11 $$'", 139, 11},
                {"kill -15 $$", 143, 15},
                {"sh -c 'kill -6 $$'", 134, 6},
                {"exit 137", 137, 0}};

    begin_plain();
    for (size_t i = 0; i < MT_ARRAY_SIZE(list); i++) {
        const char *id = sh(list[i].text);
        ended *e = await(id, 5000);

        CHECK_INT(e->e.exit_code, list[i].code);
        CHECK_INT(e->e.status, MT_COMMAND_ERROR);
        CHECK_INT(e->e.signal, list[i].signal);
        CHECK_INT(e->e.reason, list[i].signal ? MT_END_SIGNALED : MT_END_EXITED);
        CHECK_STR(text_of(id, 2), "(no file)");
    }
    finish();
}

// Field case O-01: a child that holds the output open holds nothing up, and lives on.
static void test_background(void)
{
    const char *id, *second;

    begin_plain();
    id = sh("sleep 100 & echo hi");
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    CHECK_STR(text_of(id, 1), "hi\n");
    id = sh("(until [ -e /tmp/go ]; do sleep 0.05; done; echo late) & echo hi");
    second = sh("echo second");
    CHECK_INT(await(second, 20000)->e.exit_code, 0);
    CHECK_STR(text_of(second, 1), "second\n");
    CHECK_INT(await(id, 0)->e.out_bytes, 3);
    CHECK_INT(await(id, 0)->e.out_chars, 3);
    CHECK_INT(await(sh("touch /tmp/go"), 20000)->e.exit_code, 0);
    for (int i = 0; i < 2000 && strcmp(text_of(id, 1), "hi\nlate\n") != 0; i++)
        (void)poll(NULL, 0, 10);
    CHECK_STR(text_of(id, 1), "hi\nlate\n"); // in the spool, not in the record
    CHECK_INT(await(id, 0)->e.out_bytes, 3);
    finish();
}

// An end is told of before the supervisor has tidied up after it: the count that stays.
static int settled(const char *path)
{
    int last = entries(path), same = 0;

    for (int i = 0; i < 250 && same < 10; i++) {
        int now_there;

        (void)poll(NULL, 0, 20);
        now_there = entries(path);
        same = now_there == last ? same + 1 : 0;
        last = now_there;
    }
    return last;
}

static void test_nothing_gathers(void)
{
    char path[64];
    const char *id;
    int before;

    begin_plain();
    (void)await(sh("true"), 5000);
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)now.run.pid);
    before = settled(path);
    for (int i = 0; i < 100; i++) {
        id = sh("(sleep 0.05; echo x) & (sleep 0.1 >/dev/null 2>&1 &); echo hi");
        (void)await(id, 20000);
    }
    id = sh("sleep 0.5; grep -l State:.Z /proc/[0-9]*/status | wc -l");
    (void)await(id, 20000);
    CHECK_STR(text_of(id, 1), "0\n");
    for (int i = 0; i < 120; i++)
        (void)await(sh("true"), 5000);
    CHECK_INT(settled(path), before);
    CHECK_INT(now.notes, 0);
    finish();
}

// Field cases O-02, O-09: what is out of its time leaves nothing behind, and says so.
static void test_timeout(void)
{
    static const char *const texts[] = {
        "(sleep 4; echo late > /tmp/late) & wait",
        "setsid sh -c 'sleep 4; echo late > /tmp/late' & wait",
        "setsid sh -c 'trap \"\" TERM; sleep 4; echo late > /tmp/late' & sleep 30",
        "(setsid sh -c 'sleep 4; echo late > /tmp/late' &); sleep 30",
    };
    const char *async = NULL, *id;

    begin_plain();
    async = exec_it((mt_command){.command = "sleep 6; echo $?", .async = true});
    for (size_t i = 0; i < MT_ARRAY_SIZE(texts); i++) {
        int64_t began = mt_monotonic_us();
        ended *e;

        id = exec_it((mt_command){.command = texts[i], .max_duration_ms = 400});
        e = await(id, 5000);
        CHECK(mt_monotonic_us() - began < 2400000 && mt_monotonic_us() - began > 350000);
        CHECK_INT(e->e.status, MT_COMMAND_ERROR);
        CHECK_INT(e->e.reason, MT_END_TIMEOUT);
        CHECK_INT(e->e.limit_ms, 400);
        CHECK_INT(e->e.exit_code, 143);
        CHECK_STR(e->details, "out of time after 0.4 s");
        id = sh("pgrep -fc 'sleep (4|30)' ; ls /tmp");
        (void)await(id, 20000);
    }
    id = exec_it(
        (mt_command){.command = "trap '' TERM; sleep 20; sleep 20", .max_duration_ms = 300});
    CHECK_INT(await(id, 20000)->e.exit_code, 137);
    CHECK_INT(await(id, 0)->e.reason, MT_END_TIMEOUT);
    id = exec_it(
        (mt_command){.command = "trap 'exit 0' TERM; sleep 9 & wait", .max_duration_ms = 300});
    CHECK_INT(await(id, 20000)->e.exit_code, 143);
    CHECK_INT(await(id, 0)->e.status, MT_COMMAND_ERROR);
    CHECK_INT(await(async, 20000)->e.exit_code, 0);
    CHECK_STR(text_of(async, 1), "0\n");
    id = sh("ls /tmp");
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    CHECK_STR(text_of(id, 1), "(no file)");
    finish();
}

static void test_memory(void)
{
    const char *id;

    begin_plain();
    id = sh("python3 -c 'x=bytearray(10**9)'");
    CHECK_INT(await(id, 20000)->e.reason, MT_END_OUT_OF_MEMORY);
    CHECK_INT(await(id, 0)->e.exit_code, 137);
    CHECK_STR(await(id, 0)->details, "out of memory (limit 256 MiB)");
    CHECK(await(id, 0)->e.limits_reached & MT_LIMIT_MEMORY);
    id = sh("echo ok");
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    CHECK_INT(await(id, 0)->e.limits_reached, 0);
    id = sh("python3 -c 'x=bytearray(10**9)'; true");
    CHECK_INT(await(id, 20000)->e.status, MT_COMMAND_FINISHED);
    CHECK(await(id, 0)->e.limits_reached & MT_LIMIT_MEMORY);
    finish();
}

// One at a time and in order; nothing waits for an async one; what was seen is dropped.
static void test_queue(void)
{
    char ids[6][37];
    mt_plan_command slow = {.command = "sleep 0.5", .user = "maitento", .wait = true};
    mt_plan plan = plan_of(&slow, 1);
    const char *id;

    plan.limits.pids = 512;
    begin(&plan, false);
    for (int i = 0; i < 6; i++)
        mt_id_new(ids[i]);
    // Sent while it starts.
    (void)exec_it((mt_command){.id = ids[0], .command = "sleep 0.3; echo 0 >> /tmp/l"});
    (void)exec_it(
        (mt_command){.id = ids[1], .command = "sleep 1; echo 1 >> /tmp/l", .async = true});
    (void)exec_it((mt_command){.id = ids[2], .command = "sleep 0.2; echo 2 >> /tmp/l"});
    (void)exec_it((mt_command){.id = ids[3], .command = "echo 3 >> /tmp/l"});
    (void)exec_it((mt_command){.id = ids[3], .command = "echo again >> /tmp/l"});
    (void)exec_it((mt_command){.id = ids[0], .command = "echo again >> /tmp/l"});
    CHECK_INT(await(ids[3], 8000)->e.status, MT_COMMAND_FINISHED);
    CHECK(await(ids[0], 0)->order < await(ids[2], 0)->order);
    CHECK(await(ids[2], 0)->order < await(ids[3], 0)->order);
    CHECK_INT(await(ids[1], 8000)->e.status, MT_COMMAND_FINISHED);
    CHECK(await(ids[1], 0)->order > await(ids[3], 0)->order);
    id = sh("cat /tmp/l");
    (void)await(id, 20000);
    CHECK_STR(text_of(id, 1), "0\n2\n3\n1\n");
    for (int i = 0; i < 100; i++)
        id = exec_it((mt_command){.command = "sleep 0.1; exit 7", .async = true});
    (void)await(id, 20000);
    id = sh("sleep 0.5");
    (void)await(id, 20000);
    int sevens = 0;
    for (int i = 0; i < now.count; i++)
        sevens += now.all[i].e.exit_code == 7;
    CHECK_INT(sevens, 100);
    finish();
}

static void cancel(const char *id)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    (void)mt_put_cancel(&b, id, "bob");
    CHECK(mt_write_full(now.fd, b.data, b.len) == 0);
}

static void test_cancel(void)
{
    char running[37], queued[37], after[37];

    begin_plain();
    (void)strcpy(running, sh("(sleep 50 &); sleep 40"));
    (void)strcpy(queued, sh("echo never"));
    (void)strcpy(after, sh("pgrep -c sleep"));
    cancel(queued);
    CHECK_INT(await(queued, 3000)->e.reason, MT_END_TERMINATED);
    CHECK_INT(await(queued, 0)->e.exit_code, -1);
    CHECK_INT(await(queued, 0)->e.status, MT_COMMAND_ERROR);
    CHECK_STR(await(queued, 0)->details, "cancelled by bob");
    CHECK(!await(queued, 0)->started);
    cancel(running);
    cancel(running);
    cancel("0192f3a1-0000-7000-8000-000000000001");
    CHECK_INT(await(running, 3000)->e.reason, MT_END_TERMINATED);
    CHECK_INT(await(running, 0)->e.exit_code, 143);
    CHECK_STR(await(running, 0)->details, "cancelled by bob");
    (void)await(after, 3000);
    CHECK_STR(text_of(after, 1), "0\n");
    // At once, before it can be running.
    (void)strcpy(running, sh("trap '' TERM; sleep 40; sleep 40"));
    cancel(running);
    CHECK_INT(await(running, 20000)->e.reason, MT_END_TERMINATED);
    finish();
}

static void test_output(void)
{
    const char *id;
    char name[64];
    struct stat st;
    ended *e;

    begin_plain();
    // Field case O-06: both streams full, in turn.
    id = sh("for i in $(seq 256); do head -c 4096 /dev/zero | tr '\\0' a; head -c 4096 /dev/zero | "
            "tr '\\0' b >&2; done");
    e = await(id, 20000);
    CHECK_INT(e->e.out_bytes, 1 << 20);
    CHECK_INT(e->e.err_bytes, 1 << 20);
    CHECK_INT(e->e.out_chars, 1 << 20);
    // O-04, O-05: any bytes; characters are code points.
    id = sh("printf '\\377\\376abc\\n'; printf '\\360\\237\\230' >&2");
    e = await(id, 5000);
    CHECK_INT(e->e.out_bytes, 6);
    CHECK_INT(e->e.out_chars, 6);
    CHECK_INT(e->e.err_chars, 3);
    id = sh("printf x; for i in $(seq 20000); do printf '\\342\\202\\254'; done");
    e = await(id, 10000);
    CHECK_INT(e->e.out_bytes, 60001);
    CHECK_INT(e->e.out_chars, 20001);
    // A spool keeps its last 64 MiB, and its size is the whole length.
    id = sh("head -c 200M /dev/zero; echo end");
    e = await(id, 30000);
    CHECK_INT(e->e.out_bytes, (200 << 20) + 4);
    (void)snprintf(name, sizeof(name), "out/%s.1", id);
    CHECK(fstatat(now.run.run_dir, name, &st, 0) == 0 && st.st_size == (200 << 20) + 4);
    CHECK(st.st_blocks * 512 <= 70 << 20 && st.st_blocks * 512 >= 64 << 20);
    CHECK_INT(now.notes, 0);
    finish();
}

static void check_aborted(const char *id, const char *why)
{
    ended *e = await(id, 8000);

    CHECK_INT(e->e.status, MT_COMMAND_ABORTED);
    CHECK_INT(e->e.reason, MT_END_RUN_ENDED);
    CHECK_INT(e->e.exit_code, -1);
    CHECK_STR(e->details, why);
}

static void terminate(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(256);

    (void)mt_put_terminate(&b, "ann");
    CHECK(mt_write_full(now.fd, b.data, b.len) == 0);
}

static void test_aborted(void)
{
    mt_plan_command c = {.command = "sleep 0.4", .user = "maitento", .wait = true};
    mt_plan plan = plan_of(&c, 1);
    char running[37], queued[37];

    begin_plain();
    (void)strcpy(running, sh("echo before; sleep 40"));
    (void)strcpy(queued, sh("echo never"));
    for (int i = 0; i < 500 && strcmp(text_of(running, 1), "before\n"); i++)
        (void)poll(NULL, 0, 5);
    terminate();
    check_aborted(running, "the run was stopped by ann");
    check_aborted(queued, "the run was stopped by ann");
    CHECK_INT(await(running, 0)->e.out_bytes, 7);
    CHECK(await(running, 0)->started && !await(queued, 0)->started);
    finish();
    plan.auto_terminate = true;
    begin(&plan, false);
    (void)strcpy(queued, sh("echo never"));
    check_aborted(queued, "the run finished");
    finish();
    c.command = "sleep 0.3; exit 3";
    begin(&plan, false);
    (void)strcpy(queued, sh("echo never"));
    check_aborted(queued, "the run failed to start: Startup command failed: sleep 0.3; exit 3 - "
                          "exit code 3");
    finish();
    c.command = "true";
    plan.auto_terminate = false;
    plan.max_duration_ms = 1000;
    begin(&plan, true);
    (void)strcpy(running, sh("sleep 40"));
    check_aborted(running, "the run ran out of time: maxDuration 00:00:01");
    finish();
}

static void test_extend(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(256);
    mt_plan plan = plan_of(NULL, 0);
    bed_result r;
    const char *id;

    plan.max_duration_ms = 1500;
    begin(&plan, true);
    (void)mt_put_extend(&b, 3000, plan.deadline_ns + 1500000000);
    CHECK(mt_write_full(now.fd, b.data, b.len) == 0);
    id = sh("sleep 2");
    CHECK_INT(await(id, 4000)->e.status, MT_COMMAND_FINISHED);
    CHECK_INT(now.extended, 1);
    id = sh("sleep 40");
    check_aborted(id, "the run ran out of time: maxDuration 00:00:03");
    stop(&r);
    CHECK_INT(r.end.reason, MT_END_TIMEOUT);
    CHECK_INT(r.end.limit_ms, 3000);
    CHECK_STR(r.details, "out of time: maxDuration 00:00:03");
}

static void test_full_queue(void)
{
    _cleanup_free_ char(*ids)[37] = calloc(10010, 37);
    int refused = 0, aborted = 0;
    int64_t began;

    begin_plain();
    (void)sh("sleep 30");
    for (int i = 0; i < 10010; i++)
        (void)strcpy(ids[i], sh("true"));
    CHECK_INT(await(ids[10009], 20000)->e.reason, MT_END_START_FAILED);
    CHECK(strstr(await(ids[10009], 0)->details, "10,000 commands wait in this run"));
    began = mt_monotonic_us();
    terminate();
    check_aborted(ids[0], "the run was stopped by ann");
    check_aborted(ids[9000], "the run was stopped by ann");
    CHECK(mt_monotonic_us() - began < 5000000);
    finish();
    for (int i = 0; i < now.count; i++) {
        refused += now.all[i].e.reason == MT_END_START_FAILED;
        aborted += now.all[i].e.status == MT_COMMAND_ABORTED;
    }
    CHECK(refused >= 9 && refused <= 11); // the first may have begun, or not
    CHECK_INT(refused + aborted, 10011);
}

// Frames that are no commands end the connection, not the run.
static void test_malformed(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(256);
    const char *id;
    char byte;

    begin_plain();
    (void)mt_put_exec(&b, MT_STR("nonsense"));
    CHECK(mt_write_full(now.fd, b.data, b.len) == 0);
    CHECK_INT(recv(now.fd, &byte, 1, 0), 0);
    mt_close_fd(&now.fd);
    now.fd = bed_connect(&now.run);
    id = sh("echo ok");
    CHECK_INT(await(id, 20000)->e.exit_code, 0);
    finish();
}

static void test_forks(void)
{
    const char *id;

    begin_plain();
    id = exec_it(
        (mt_command){.command = "i=0; while [ $i -lt 20000 ]; do sleep 60 & i=$((i+1)); done",
                     .user = "sandbox",
                     .async = true,
                     .max_duration_ms = 3000});
    (void)poll(NULL, 0, 1000);
    CHECK_INT(await(sh("echo ok"), 20000)->e.exit_code, 0);
    CHECK_INT(await(id, 20000)->e.reason, MT_END_TIMEOUT);
    CHECK(await(id, 0)->e.limits_reached & MT_LIMIT_PIDS);
    finish();
}

// More than the way to mt-init holds.
static void test_many_at_once(void)
{
    mt_plan plan = plan_of(NULL, 0);
    static char ids[600][37];

    plan.limits.pids = 1024;
    begin(&plan, true);
    for (size_t i = 0; i < MT_ARRAY_SIZE(ids); i++)
        memcpy(ids[i], exec_it((mt_command){.command = "echo $0; exit 7", .async = true}), 37);
    for (size_t i = 0; i < MT_ARRAY_SIZE(ids); i++)
        CHECK_INT(await(ids[i], 60000)->e.exit_code, 7);
    CHECK_INT(now.notes, 0);
    finish();
}

static uint64_t spools_held(bool ends_too)
{
    struct dirent *e;
    uint64_t sum = 0;
    DIR *d = fdopendir(openat(now.run.run_dir, "out", O_RDONLY | O_DIRECTORY));

    while (d && (e = readdir(d))) {
        struct stat st;

        if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, 0) < 0)
            continue;
        sum += (uint64_t)st.st_blocks * 512;
        if (ends_too) { // what a record takes is there
            _cleanup_close_ int fd = openat(dirfd(d), e->d_name, O_RDONLY);
            off_t at = st.st_size - 4 * MT_COMMAND_RECORD_CHARS;

            CHECK_INT(lseek(fd, at, SEEK_DATA), at);
            CHECK_INT(lseek(fd, at, SEEK_HOLE), st.st_size);
        }
    }
    (void)closedir(d);
    return sum;
}

// All spools of a run take 256 MiB together: the oldest give way, then those that grow.
static void test_spools_of_a_run(void)
{
    char ids[9][37];
    const uint64_t most = (MT_RUN_SPOOL_BYTES) + (12 << 20); // and what the file system adds

    begin_plain();
    for (size_t i = 0; i < MT_ARRAY_SIZE(ids); i++)
        memcpy(ids[i],
               exec_it((mt_command){.command = "yes a | head -c 60M; yes 1 | head -c 1M >&2",
                                    .async = i >= 5}),
               37);
    for (size_t i = 0; i < MT_ARRAY_SIZE(ids); i++) {
        CHECK_INT(await(ids[i], 60000)->e.exit_code, 0);
        CHECK_INT(await(ids[i], 0)->e.out_bytes, 60 << 20);
        CHECK(spools_held(false) <= most);
    }
    CHECK(spools_held(true) <= most);
    CHECK(spools_held(false) > most / 2);
    // Floods, at the same time: each has less than it may have alone.
    for (int i = 0; i < 8; i++)
        memcpy(ids[i],
               exec_it((mt_command){.command = "yes", .async = true, .max_duration_ms = 3000}), 37);
    for (int i = 0; i < 8; i++) {
        CHECK_INT(await(ids[i], 60000)->e.reason, MT_END_TIMEOUT);
        CHECK(spools_held(false) <= most);
    }
    printf("# %llu MiB of spools\n", (unsigned long long)spools_held(true) >> 20);
    CHECK_INT(now.notes, 0);
    finish();
}

// A process is its user's from a moment before it executes: whoever of that user's stops it there
// stops its command, and no other.
static void test_stopped_at_birth(void)
{
    char ids[10][37];

    begin_plain();
    // A folder that takes long to enter, for there is when it can be stopped.
    CHECK_INT(await(exec_it((mt_command){.command =
                                             "mkdir -p /tmp/x/d /tmp/x/L31; cd /tmp/x;"
                                             "p=$(printf 'd/../%.0s' $(seq 780));"
                                             "for i in $(seq 30); do ln -s ${p}L$((i+1)) L$i; done",
                                         .user = "sandbox"}),
                    10000)
                  ->e.exit_code,
              0);
    (void)exec_it((mt_command){.command = "while :; do kill -STOP -1; done 2>/dev/null",
                               .user = "sandbox",
                               .async = true});
    for (size_t i = 0; i < MT_ARRAY_SIZE(ids); i++)
        memcpy(ids[i],
               exec_it((mt_command){.command = "true",
                                    .user = "sandbox",
                                    .working_directory = "/tmp/x/L1",
                                    .async = true,
                                    .max_duration_ms = 500}),
               37);
    CHECK_INT(await(sh("echo ok"), 90000)->e.exit_code, 0);
    for (size_t i = 0; i < MT_ARRAY_SIZE(ids); i++)
        CHECK(await(ids[i], 90000)->started);
    finish();
}

static void test_speed(void)
{
    int64_t began, each[200];
    int64_t sum = 0;

    begin_plain();
    for (int i = 0; i < 200; i++) {
        began = mt_now_us();
        each[i] = await(sh("/bin/true"), 20000)->us - began;
        sum += each[i];
    }
    printf("# a command that is /bin/true: %d us\n", (int)(sum / 200));
    finish();
}

int main(int argc, char **argv)
{
    static void (*const tests[])(void) = {
        test_results,         test_settings,   test_input,           test_large_queue,
        test_signals,         test_background, test_nothing_gathers, test_timeout,
        test_memory,          test_queue,      test_cancel,          test_output,
        test_aborted,         test_extend,     test_full_queue,      test_malformed,
        test_forks,           test_speed,      test_many_at_once,    test_stopped_at_birth,
        test_spools_of_a_run,
    };
    const char *why;

    the_bed = bed_new(argc > 1 ? argv[1] : "mt-init", &why);
    if (!the_bed) {
        SKIP(why);
        return TAP_DONE();
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(tests); i++) {
        if (argc < 3 || (size_t)atoi(argv[2]) == i)
            tests[i]();
    }
    bed_free(the_bed);
    return TAP_DONE();
}
