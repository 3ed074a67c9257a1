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

// A journal that cannot be written is said in the log; the run goes on to its end.
static int written(supervisor *s, int result, mt_err *err)
{
    if (result < 0)
        mt_log(MT_LOG_ERROR, "cannot write the journal of a run", {"run", s->res->run_id},
               {"reason", mt_err_sentence(err)});
    return result;
}

void sup_record(supervisor *s, mt_record *r)
{
    _cleanup_err_ mt_err *err = NULL;

    (void)written(s, mt_journal_add(s->res->journal, r, &err), err);
    s->sync_due |=
        r->type == MT_REC_ENDED || r->type == MT_REC_COMMAND_ENDED || r->type == MT_REC_EXTENDED;
    if (r->type == MT_REC_READY || r->type == MT_REC_COMMAND_ENDED)
        sup_tidy_later(s);
    sup_settle_later(s);
}

static int sync_journal(supervisor *s)
{
    _cleanup_err_ mt_err *err = NULL;

    if (written(s, mt_journal_sync(s->res->journal, &err), err) < 0)
        return -1;
    s->sync_due = false;
    s->synced = mt_journal_last_seq(s->res->journal);
    return 0;
}

// An end is on the disk before anybody is told of it, and the server does not sync it again. It
// stores the end meanwhile, and tells when it hears of the sync.
static int flush(supervisor *s)
{
    uint64_t before = mt_journal_last_seq(s->res->journal);
    _cleanup_err_ mt_err *err = NULL;

    if (written(s, mt_journal_flush(s->res->journal, &err), err) < 0)
        return -1;
    if (mt_journal_last_seq(s->res->journal) != before)
        sup_clients_pump(s);
    if (s->sync_due) {
        if (sync_journal(s) < 0)
            return -1;
        sup_clients_pump(s);
    }
    return 0;
}

void sup_note(supervisor *s, const char *text)
{
    mt_record r = {.type = MT_REC_NOTE, .note = {.text = mt_str_of(text)}};

    sup_record(s, &r);
}

void sup_record_phase(supervisor *s, const char *name, uint64_t us)
{
    mt_record r = {.type = MT_REC_PHASE, .phase = {.name = mt_str_of(name), .us = us}};

    sup_record(s, &r);
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
    mt_close_fd(&s->machine.api_fd);
    sup_hold(s, false);
    mt_machine_kill(&s->machine);
    (void)mt_cgroup_kill(s->res->cgroup, MT_CGROUP_ALL);
    sup_record(s, &r);
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
    s->leaving = true;
}

static void finish(supervisor *s)
{
    mt_record r = {.type = MT_REC_ENDED};

    mt_io_remove(s->pid_io);
    mt_io_remove(s->report_io);
    mt_io_remove(s->control_io);
    s->pid_io = s->report_io = s->control_io = NULL;
    sup_startup_abandon(s);
    take_counters(s);
    r.ended = s->ended;
    s->state = SUP_ENDED;
    sup_record(s, &r);
    // Without this record the runner, which sees this process go, writes one of its own.
    if (flush(s) < 0)
        _exit(1);
    sup_clients_last(s);
    if (s->client_count == 0)
        s->leaving = true;
    else
        mt_timer_in_ms(s->linger, LINGER_MS);
}

// PID 1 takes the rest of its namespace with it, so it is waited for first.
static bool all_gone(supervisor *s, int wait_ms)
{
    int64_t until = mt_boottime_ns() + (int64_t)wait_ms * 1000000;
    int status;

    (void)mt_machine_reap(&s->machine, wait_ms, &status);
    return mt_cgroup_wait_gone(s->res->cgroup, until) == 0 && s->machine.pid == 0;
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
        details =
            s->waits ? sup_layer_late(s, limit)
                     : mt_asprintf("out of time while the machine was made: maxDuration %s", limit);
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
    sup_record(s, &r);
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

static void machine_ready(supervisor *s);

// What child and builder have said; where both are through and mt-init is ready, it goes on.
static void look_at_machine(supervisor *s)
{
    mt_err *err = NULL;
    int r;

    if (s->state != SUP_MAKING)
        return;
    r = mt_machine_report(&s->machine, &err);
    sup_clients_give_api(s);
    if (r == 0 || (r > 0 && s->machine.root_fd < 0))
        return;
    mt_io_remove(s->report_io);
    s->report_io = NULL;
    if (r < 0)
        start_failed(s, err);
    else if (s->init_ready)
        machine_ready(s);
}

static void on_report(mt_io *io, uint32_t events, void *data)
{
    (void)io;
    (void)events;
    look_at_machine(data);
}

static void on_pid(mt_io *io, uint32_t events, void *data)
{
    supervisor *s = data;
    int status;

    (void)events;
    s->init_ready = false;
    look_at_machine(s); // what the child has said last comes before its death
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
    for (uint32_t i = 0; i < res->layer_count; i++)
        mt_close_fd(&res->layer_fds[i]);
    mt_close_fd(&res->layers_fd);
    mt_close_fd(&res->conf_fd);
    for (uint32_t i = 0; i < s->plan->mount_count; i++)
        mt_close_fd(&res->vfs_fds[i]);
    mt_close_fd(&res->scratch_fd);
    mt_close_fd(&res->netns_fd);
    mt_close_fd(&res->init_fd);
    mt_close_fd(&res->dev_fd);
    mt_close_fd(&res->mt_fd);
    mt_close_fd(&s->machine.secrets_fd);
}

static void machine_ready(supervisor *s)
{
    mt_machine *m = &s->machine;
    mt_err *err = NULL;

    s->ready_us = mt_monotonic_us();
    for (uint32_t i = 0; i < m->phase_count; i++)
        sup_record_phase(s, m->phases[i].name, m->phases[i].us);
    sup_record_phase(s, "machine", (uint64_t)(s->ready_us - s->began_us));
    s->state = SUP_STARTING;
    // Before anything of the run's happens there is a record of its supervisor's: without one it
    // may be started anew.
    if (flush(s) < 0) {
        (void)mt_fail(&err, MT_E_IO, "the journal of the run cannot be written");
        start_failed(s, err);
        return;
    }
    sup_views_begin(s);
    sup_startup_begin(s);
    // While the first command starts; nothing that it says has been read.
    close_makings(s);
    sup_seal_rights(s);
    mt_journal_keep_room(s->res->journal);
    sup_sessions_go_on(s);
}

void sup_started(supervisor *s)
{
    const mt_ended done = {.status = MT_RUN_FINISHED, .reason = MT_END_EXITED};
    mt_record r = {.type = MT_REC_READY};

    sup_record_phase(s, "startup", (uint64_t)(mt_monotonic_us() - s->ready_us));
    if (s->plan->auto_terminate) {
        sup_end(s, &done, NULL, NULL);
        return;
    }
    s->state = SUP_READY;
    sup_record(s, &r);
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
    if (s->state > SUP_MAKING) {
        sup_reply(s, &r);
    } else if (r.type == MT_INIT_READY) {
        s->init_ready = true;
        look_at_machine(s);
    }
}

static int watch_machine(supervisor *s)
{
    s->report_io = mt_io_add(s->loop, s->machine.report_fd, EPOLLIN, on_report, s);
    s->control_io = mt_io_add(s->loop, s->machine.control_fd, EPOLLIN, on_control, s);
    s->pid_io = mt_io_add(s->loop, s->machine.pidfd, EPOLLIN, on_pid, s);
    return s->report_io && s->control_io && s->pid_io ? 0 : -1;
}

// --- main ----------------------------------------------------------------------------------------

_Alignas(4096) supervisor sup_own;

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
    return sup_asks_init(s) < 0 || sup_startup_init(s) < 0 || sup_commands_init(s) < 0 ||
                   sup_sessions_init(s) < 0 || sup_disk_init(s) < 0 || sup_views_init(s) < 0 ||
                   sup_settle_init(s) < 0 || sup_clients_init(s) < 0
               ? -1
               : 0;
}

static int serve(supervisor *s)
{
    int r = 0;

    for (;;) {
        if (flush(s) < 0 && s->state >= SUP_ENDING)
            return -1;
        if (s->leaving || r < 0)
            return r;
        r = mt_loop_once(s->loop, -1);
    }
}

void sup_run(supervisor *s, mt_err *why_not)
{
    if (init(s) < 0) {
        mt_log(MT_LOG_ERROR, "a supervisor cannot begin", {"run", s->res->run_id});
        _exit(1);
    }
    mt_timer_at(s->deadline, s->plan->deadline_ns);
    if (!why_not && (s->machine.pid > 0 ? watch_machine(s) : sup_layer_wait(s)) < 0)
        (void)mt_fail_oom(&why_not);
    sup_views_look(s); // while the machine is being made
    if (why_not)
        start_failed(s, why_not);
    if (serve(s) < 0)
        _exit(1);
    sup_clients_close(s);
    _exit(0);
}

// The secrets first: what is cloned later never had them in its memory.
static int put_secrets(supervisor *s, mt_plan *plan, mt_err **err)
{
    if (plan->secret_count && mt_machine_secrets_place(&s->machine, err) < 0)
        return -1;
    return mt_machine_secrets(&s->machine, plan, s->res, err);
}

static int begin_machine(supervisor *s, mt_err **err)
{
    if (mt_machine_begin(&s->machine, s->res, err) < 0)
        return -1;
    sup_seal_calls(s);
    return mt_machine_identify(&s->machine, s->plan, s->res, err);
}

void sup_begin_machine(supervisor *s)
{
    mt_err *err = NULL;
    int r = begin_machine(s, &err);

    if (s->machine.pid > 0 && watch_machine(s) < 0)
        r = mt_fail_oom(&err);
    if (r < 0)
        start_failed(s, err);
}

void mt_supervisor_main(mt_plan *plan, mt_run_resources *res)
{
    supervisor *s = &sup_own;
    mt_err *err = NULL;

    *s = (supervisor){.plan = plan, .res = res, .machine = MT_MACHINE_INIT};
    res->tmpfs_bytes = plan->limits.disk_bytes;
    s->began_us = mt_monotonic_us();
    if (put_secrets(s, plan, &err) == 0 && res->layers_fd < 0)
        (void)begin_machine(s, &err);
    sup_run(s, err);
}
