// SPDX-License-Identifier: Apache-2.0
// The supervisor of a run: makes the machine, runs the startup commands, keeps the deadline, and
// writes how the run ended. It survives the server and the runner; nothing it waits for is without
// a deadline.
#include "runner/supervisor.h"

#include "base/clock.h"
#include "base/log.h"
#include "capsule/scratch.h"
#include "runner/supervisor-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    TEARDOWN_MS = 10000, // for the kernel to end what was killed
    TEARDOWN_FIRST_MS = 30,
    TEARDOWN_EACH_MS = 20,
    LINGER_MS = 5000, // for attached servers to read the end
};

static void on_teardown(mt_timer *timer, void *data);

// --- journal -------------------------------------------------------------------------------------

// A journal that cannot be written is said once a record, in the log; the run goes on to its end.
static int append(supervisor *s, mt_record *r, bool sync)
{
    _cleanup_err_ mt_err *err = NULL;

    if (mt_journal_append(s->res->journal, r, sync, &err) < 0) {
        mt_log(MT_LOG_ERROR, "cannot write the journal of a run", {"run", s->res->run_id},
               {"reason", mt_err_sentence(err)});
        return -1;
    }
    return 0;
}

void sup_record(supervisor *s, mt_record *r, bool sync)
{
    if (append(s, r, sync) == 0)
        sup_clients_pump(s);
}

void sup_note(supervisor *s, const char *text)
{
    mt_record r = {.type = MT_REC_NOTE, .note = {.text = mt_str_of(text)}};

    sup_record(s, &r, false);
}

static void record_phase(supervisor *s, const char *name, uint64_t us)
{
    mt_record r = {.type = MT_REC_PHASE, .phase = {.name = mt_str_of(name), .us = us}};

    (void)append(s, &r, false);
}

// --- the end -------------------------------------------------------------------------------------

void sup_end(supervisor *s, const mt_ended *what, const char *by, const char *details)
{
    mt_record r = {.type = MT_REC_ENDING, .ending = {.reason = what->reason}};

    if (s->state >= SUP_ENDING)
        return;
    s->state = SUP_ENDING;
    s->ended = *what;
    s->by = by ? strdup(by) : NULL;
    s->details = details ? strdup(details) : NULL;
    s->ended.terminated_by = mt_str_of(s->by ? s->by : "");
    s->ended.failure_details = mt_str_of(s->details ? s->details : "");
    mt_timer_stop(s->deadline);
    mt_machine_kill(&s->machine);
    (void)mt_cgroup_kill(s->res->cgroup, MT_CGROUP_ALL);
    sup_record(s, &r, false);
    // The rest in a round of its own: the caller may be in the middle of a command or a client.
    s->teardown_end_ns = mt_boottime_ns() + (int64_t)TEARDOWN_MS * 1000000;
    mt_timer_at(s->teardown, 0);
}

static void take_counters(supervisor *s)
{
    mt_cgroup_counters c;

    mt_cgroup_counters_get(s->res->cgroup, &c);
    if (c.oom_kills > 0)
        s->ended.limits_reached |= MT_LIMIT_MEMORY;
    if (c.pids_refused > 0)
        s->ended.limits_reached |= MT_LIMIT_PIDS;
    if (mt_scratch_met(s->res->disk_usage_fd, s->plan->limits.disk_bytes))
        s->ended.limits_reached |= MT_LIMIT_DISK;
    s->ended.memory_peak = c.memory_peak;
    s->ended.cpu_us = c.cpu_us;
}

static void on_linger(mt_timer *timer, void *data)
{
    supervisor *s = data;

    (void)timer;
    mt_loop_stop(s->loop);
}

static void finish(supervisor *s)
{
    mt_record r = {.type = MT_REC_ENDED};

    mt_io_remove(s->pid_io);
    mt_io_remove(s->report_io);
    mt_io_remove(s->control_io);
    s->pid_io = s->report_io = s->control_io = NULL;
    mt_machine_done(&s->machine);
    sup_startup_abandon(s);
    take_counters(s);
    r.ended = s->ended;
    s->state = SUP_ENDED;
    // Without this record the runner, which sees this process go, writes one of its own.
    if (append(s, &r, true) < 0)
        _exit(1);
    sup_clients_pump(s);
    if (s->client_count == 0)
        mt_loop_stop(s->loop);
    else
        mt_timer_in_ms(s->linger, LINGER_MS);
}

// PID 1 takes the rest of its namespace with it, so it is waited for first.
static bool all_gone(supervisor *s, int wait_ms)
{
    int64_t until = mt_boottime_ns() + (int64_t)wait_ms * 1000000;
    int status;

    (void)mt_machine_reap(&s->machine, wait_ms, &status);
    return mt_cgroup_wait_empty(s->res->cgroup, MT_CGROUP_ALL, true, until) == 0 &&
           s->machine.pid == 0;
}

static void on_teardown(mt_timer *timer, void *data)
{
    supervisor *s = data;
    bool first = s->pid_io != NULL;

    // From here on this timer looks at PID 1, not the loop, which would be told of it for ever.
    mt_io_remove(s->pid_io);
    s->pid_io = NULL;
    if (all_gone(s, first ? TEARDOWN_FIRST_MS : 1)) {
        finish(s);
    } else if (mt_boottime_ns() > s->teardown_end_ns) {
        sup_note(s, "processes of the capsule did not end within 10 s of being killed; the runner "
                    "goes on trying");
        finish(s);
    } else {
        mt_timer_in_ms(timer, TEARDOWN_EACH_MS);
    }
}

static void on_deadline(mt_timer *timer, void *data)
{
    supervisor *s = data;
    mt_ended what = {
        .status = MT_RUN_FINISHED, .reason = MT_END_TIMEOUT, .limit_ms = s->max_duration_ms};
    char limit[MT_DURATION_TEXT];
    _cleanup_free_ char *details = NULL;

    (void)timer;
    (void)mt_duration_format(s->max_duration_ms, limit);
    if (s->state == SUP_READY) {
        details = mt_asprintf("out of time: maxDuration %s", limit);
    } else if (s->state == SUP_STARTING && s->next > 0) {
        what.status = MT_RUN_ERROR;
        details = mt_asprintf("out of time while starting: maxDuration %s; startup command %" PRIu32
                              " of %" PRIu32 " was running: %.256s",
                              limit, s->next, s->plan->startup_count,
                              s->plan->startup[s->next - 1].command);
    } else {
        what.status = MT_RUN_ERROR;
        details = mt_asprintf("out of time while the machine was made: maxDuration %s", limit);
    }
    sup_end(s, &what, NULL, details);
}

void sup_extend(supervisor *s, int64_t max_duration_ms, int64_t deadline_ns)
{
    mt_record r = {.type = MT_REC_EXTENDED,
                   .extended = {.max_duration_ms = max_duration_ms, .deadline_ns = deadline_ns}};

    if (s->state >= SUP_ENDING || max_duration_ms <= 0 || max_duration_ms > MT_DURATION_MS_MAX ||
        deadline_ns <= 0)
        return;
    s->max_duration_ms = max_duration_ms;
    mt_timer_at(s->deadline, deadline_ns);
    sup_record(s, &r, false);
}

// --- the machine ---------------------------------------------------------------------------------

static void start_failed(supervisor *s, mt_err *err)
{
    const mt_ended what = {.status = MT_RUN_ERROR, .reason = MT_END_START_FAILED};

    sup_end(s, &what, NULL, mt_err_sentence(err));
    (void)mt_err_free(err);
}

// PID 1 is gone without having been told to go.
static void machine_died(supervisor *s, int status)
{
    mt_ended what = {.status = MT_RUN_ERROR, .reason = MT_END_SIGNALED};
    mt_cgroup_counters c;
    _cleanup_free_ char *details = NULL;

    mt_cgroup_counters_get(s->res->cgroup, &c);
    if (WIFSIGNALED(status))
        what.signal = (uint32_t)WTERMSIG(status);
    if (s->state == SUP_MAKING) {
        what.reason = MT_END_START_FAILED;
        details = mt_asprintf("the machine could not be made: its first process ended (%s %d)",
                              WIFSIGNALED(status) ? "signal" : "exit code",
                              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    } else if (c.oom_kills > 0 && what.signal == SIGKILL) {
        what.reason = MT_END_OUT_OF_MEMORY;
        details = mt_asprintf("the machine died: out of memory");
    } else if (WIFSIGNALED(status)) {
        details = mt_asprintf("the machine died: its first process was killed by signal %d",
                              WTERMSIG(status));
    } else {
        what.reason = MT_END_EXITED;
        details = mt_asprintf("the machine died: its first process left with exit code %d",
                              WEXITSTATUS(status));
    }
    sup_end(s, &what, NULL, details);
}

static void on_report(mt_io *io, uint32_t events, void *data)
{
    supervisor *s = data;
    mt_err *err = NULL;
    int r;

    (void)events;
    if (s->state >= SUP_ENDING)
        return;
    r = mt_machine_report(&s->machine, &err);
    if (r == 0)
        return;
    mt_io_remove(io);
    s->report_io = NULL;
    s->executed_us = mt_monotonic_us();
    if (r < 0)
        start_failed(s, err);
}

static void on_pid(mt_io *io, uint32_t events, void *data)
{
    supervisor *s = data;
    mt_err *err = NULL;
    int status;

    (void)events;
    // What the child has said last comes before its death.
    if (s->state == SUP_MAKING && s->report_io && mt_machine_report(&s->machine, &err) < 0)
        start_failed(s, err);
    if (!mt_machine_reap(&s->machine, 0, &status))
        return;
    mt_io_remove(io);
    s->pid_io = NULL;
    if (s->state < SUP_ENDING)
        machine_died(s, status);
}

static void close_makings(supervisor *s)
{
    mt_run_resources *res = s->res;

    mt_close_fd(&res->image_userns_fd);
    mt_close_fd(&res->vfs_userns_fd);
    mt_close_fd(&res->image_fd);
    for (uint32_t i = 0; i < s->plan->layer_count; i++)
        mt_close_fd(&res->layer_fds[i]);
    for (uint32_t i = 0; i < s->plan->mount_count; i++)
        mt_close_fd(&res->vfs_fds[i]);
    mt_close_fd(&res->scratch_fd);
    mt_close_fd(&res->netns_fd);
    mt_close_fd(&res->init_fd);
    mt_close_fd(&res->dev_fd);
}

static void machine_ready(supervisor *s)
{
    mt_machine *m = &s->machine;
    mt_err *err = NULL;

    // Phases and root were sent before mt-init was executed: they are there.
    if (s->report_io && mt_machine_report(m, &err) < 0) {
        start_failed(s, err);
        return;
    }
    mt_io_remove(s->report_io);
    s->report_io = NULL;
    s->ready_us = mt_monotonic_us();
    for (uint32_t i = 0; i < m->phase_count; i++)
        record_phase(s, m->phases[i].name, m->phases[i].us);
    if (s->executed_us)
        record_phase(s, "init", (uint64_t)(s->ready_us - s->executed_us));
    record_phase(s, "machine", (uint64_t)(s->ready_us - m->began_us));
    s->state = SUP_STARTING;
    close_makings(s);
    sup_seal(s);
    sup_clients_pump(s);
    sup_startup_begin(s);
}

void sup_started(supervisor *s)
{
    const mt_ended done = {.status = MT_RUN_FINISHED, .reason = MT_END_EXITED};
    mt_record r = {.type = MT_REC_READY};

    record_phase(s, "startup", (uint64_t)(mt_monotonic_us() - s->ready_us));
    if (s->plan->auto_terminate) {
        sup_end(s, &done, NULL, NULL);
        return;
    }
    s->state = SUP_READY;
    sup_record(s, &r, false);
}

// One packet a turn: commands, clients and the deadline are not held up by a flood of them.
static void on_control(mt_io *io, uint32_t events, void *data)
{
    supervisor *s = data;
    mt_init_reply r;
    ssize_t n = recv(s->machine.control_fd, &r, sizeof(r), MSG_DONTWAIT | MSG_TRUNC);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { // its death is told by the pidfd
        mt_io_remove(io);
        s->control_io = NULL;
        return;
    }
    if (n != (ssize_t)sizeof(r) || s->state >= SUP_ENDING)
        return;
    if (r.type == MT_INIT_READY && s->state == SUP_MAKING)
        machine_ready(s);
    else if (s->state > SUP_MAKING)
        sup_startup_reply(s, &r);
}

static int watch_machine(supervisor *s)
{
    s->report_io = mt_io_add(s->loop, s->machine.report_fd, EPOLLIN, on_report, s);
    s->control_io = mt_io_add(s->loop, s->machine.control_fd, EPOLLIN, on_control, s);
    s->pid_io = mt_io_add(s->loop, s->machine.pidfd, EPOLLIN, on_pid, s);
    return s->report_io && s->control_io && s->pid_io ? 0 : -1;
}

// --- main ----------------------------------------------------------------------------------------

static int init(supervisor *s)
{
    s->loop = mt_loop_new();
    if (!s->loop)
        return -1;
    s->deadline = mt_timer_new(s->loop, on_deadline, s);
    s->teardown = mt_timer_new(s->loop, on_teardown, s);
    s->linger = mt_timer_new(s->loop, on_linger, s);
    if (!s->deadline || !s->teardown || !s->linger)
        return -1;
    s->max_duration_ms = s->plan->max_duration_ms;
    return sup_startup_init(s) < 0 || sup_commands_init(s) < 0 || sup_clients_init(s) < 0 ? -1 : 0;
}

void mt_supervisor_main(const mt_plan *plan, mt_run_resources *res)
{
    static supervisor s; // of this process, which has one run
    mt_err *err = NULL;

    s = (supervisor){.plan = plan, .res = res, .machine = MT_MACHINE_INIT};
    (void)signal(SIGPIPE, SIG_IGN);
    if (init(&s) < 0) {
        mt_log(MT_LOG_ERROR, "a supervisor cannot begin", {"run", res->run_id});
        _exit(1);
    }
    mt_timer_at(s.deadline, plan->deadline_ns);
    if (mt_machine_begin(&s.machine, plan, res, &err) < 0) {
        start_failed(&s, err);
    } else if (watch_machine(&s) < 0) {
        (void)mt_fail_oom(&err);
        start_failed(&s, err);
    }
    if (mt_loop_run(s.loop) < 0)
        _exit(1);
    sup_clients_close(&s);
    _exit(0);
}
