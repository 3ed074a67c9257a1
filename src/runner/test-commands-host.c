// SPDX-License-Identifier: Apache-2.0
// What keeps the commands of a run (commands.h), with a host of the test's own in the supervisor's
// place: an mt-init that is quicker than it.
#include "base/fd.h"
#include "base/id.h"
#include "base/tap.h"
#include "capsule/command.h"
#include "runner/commands.h"
#include "runner/testbed.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

static bed *the_bed;
static bed_run run;
static bool asked;
static uint32_t limits_met;

static bool host_may_ask(void *data)
{
    (void)data;
    return true;
}

// All processes that the run may have, before the answer of mt-init.
static int host_request(void *data, const commands_request *what, mt_err **err)
{
    int pair[2], status = 0;
    char byte;
    pid_t pid;

    (void)data;
    (void)what;
    (void)err;
    asked = pipe2(pair, O_CLOEXEC) == 0;
    pid = fork();
    if (pid == 0) {
        (void)close(pair[1]);
        (void)!read(pair[0], &byte, 1); // until it is in the group
        while ((pid = fork()) > 0)
            ;
        if (pid == 0)
            (void)pause();
        _exit(0);
    }
    (void)close(pair[0]);
    CHECK_INT(mt_cgroup_join(run.cgroup, MT_CGROUP_CMDS, pid, NULL), 0);
    (void)close(pair[1]);
    CHECK(waitpid(pid, &status, 0) == pid);
    return 0;
}

static void host_explain(void *data, const mt_command *c, const mt_init_reply *r, mt_buf *to)
{
    (void)data;
    (void)c;
    (void)r;
    (void)mt_buf_adds(to, "no process");
}

static void host_record(void *data, mt_record *r)
{
    (void)data;
    if (r->type == MT_REC_COMMAND_ENDED)
        limits_met = r->command_ended.limits_reached;
}

static void host_note(void *data, const char *text)
{
    (void)data;
    (void)text;
}

static void end_run(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(256);
    int fd = bed_connect(&run);
    bed_result result;

    (void)mt_put_terminate(&b, "ann");
    CHECK_INT(mt_write_full(fd, b.data, b.len), 0);
    mt_close_fd(&fd);
    bed_finish(&run, 15000, &result);
    CHECK_INT(result.exit_code, 0);
    CHECK(result.ended && result.swept);
}

// What a command meets before the supervisor runs again is the command's all the same.
static void test_met_at_once(void)
{
    mt_plan plan = {
        .max_duration_ms = 60000,
        .limits = {.memory_bytes = 256 << 20, .pids = 16, .disk_bytes = 64 << 20},
    };
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_FRAME_EXEC_MAX);
    mt_command what = {.command = "true", .user = "maitento"};
    commands_host host = {.first_group = 1000,
                          .limits = &plan.limits,
                          .disk_usage_fd = -1,
                          .may_ask = host_may_ask,
                          .request = host_request,
                          .explain = host_explain,
                          .record = host_record,
                          .note = host_note};
    mt_cgroup_counters counters;
    char id[37];
    commands *cs;

    if (!CHECK(bed_start(the_bed, &plan, false, &run) == 0))
        return;
    CHECK(bed_wait_record(&run, MT_REC_READY, 10000));
    host.loop = mt_loop_new();
    host.cgroup = run.cgroup;
    host.run_dir_fd = run.run_dir;
    cs = commands_new(&host);
    mt_id_new(id);
    what.id = id;
    CHECK(mt_command_encode(&what, &b, NULL) == 0);
    commands_open(cs);
    CHECK_INT(commands_take(cs, b.data, b.len), 0);
    CHECK(asked);
    commands_reply(cs, &(mt_init_reply){.type = MT_INIT_FAILED, .token = host.first_group});
    mt_cgroup_limits_met(run.cgroup, &counters);
    if (counters.pids_refused > 0)
        CHECK_INT(limits_met, MT_LIMIT_PIDS);
    else
        SKIP("no pids controller in this form");
    commands_free(cs);
    mt_loop_free(host.loop);
    end_run();
}

int main(int argc, char **argv)
{
    const char *why;

    the_bed = bed_new(argc > 1 ? argv[1] : "mt-init", &why);
    if (!the_bed) {
        SKIP(why);
        return TAP_DONE();
    }
    test_met_at_once();
    bed_free(the_bed);
    return TAP_DONE();
}
