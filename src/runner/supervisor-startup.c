// SPDX-License-Identifier: Apache-2.0
// The startup commands of a run, in order. One that is waited for and fails ends the start; one
// that is not leaves a note. Their standard output is thrown away, the tail of their error output
// is kept for the sentence.
#include "base/clock.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "runner/supervisor-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    READ_BYTES = 32 << 10,
    LINE_CHARS_MAX = 4096, // of the command line in a sentence
    TERM_TO_KILL_MS = 1000,
    DETAILS_MAX = 48 << 10,
};

static const mt_plan_command *plan_of(const sup_command *c)
{
    return &c->s->plan->startup[c->index];
}

static uint64_t oom_kills(const supervisor *s)
{
    mt_cgroup_counters now;

    mt_cgroup_limits_met(s->res->cgroup, &now);
    return now.oom_kills;
}

// --- sentences -----------------------------------------------------------------------------------

// "60 s", "1.5 s"
static void add_seconds(mt_buf *b, int64_t ms)
{
    (void)mt_buf_addf(b, "%.10g s", (double)ms / 1000);
}

// The first characters of valid UTF-8, as a length in bytes.
static size_t head_of(const char *s, size_t len, size_t chars)
{
    size_t at = 0;

    for (; at < len && chars > 0; chars--) {
        uint32_t c;

        at += mt_utf8_decode(s + at, len - at, &c, NULL);
    }
    return at;
}

// "COMMAND ARGUMENTS", cut where it is long.
static void add_line(mt_buf *b, const mt_plan_command *p)
{
    const size_t room = LINE_CHARS_MAX * 4 + 4;
    _cleanup_buf_ mt_buf line = MT_BUF_INIT(room + 1), clean = MT_BUF_INIT(3 * room + 4);
    const char *word = p->command;
    size_t head;

    for (uint32_t i = 0; word && line.len < room; i++) {
        if (i > 0)
            (void)mt_buf_addc(&line, ' ');
        (void)mt_buf_add(&line, word, MT_MIN(strlen(word), room - line.len));
        word = i < p->argument_count ? p->arguments[i] : NULL;
    }
    (void)mt_utf8_add_clean(&clean, mt_buf_str(&line), line.len);
    head = head_of(mt_buf_str(&clean), clean.len, LINE_CHARS_MAX);
    (void)mt_buf_add(b, mt_buf_str(&clean), head);
    if (head < clean.len)
        (void)mt_buf_adds(b, "…");
}

// The sentence is a C string: a NUL in it shows as what it is not, too.
static void add_tail(mt_buf *b, const sup_command *c)
{
    _cleanup_buf_ mt_buf tail = MT_BUF_INIT(DETAILS_MAX);
    size_t from = 0;

    (void)mt_tail_get(&c->tail, &tail);
    while (tail.len && (tail.data[tail.len - 1] == '\n' || tail.data[tail.len - 1] == '\r'))
        tail.len--;
    for (size_t i = 0; i < tail.len; i++) {
        if (tail.data[i])
            continue;
        (void)mt_buf_add(b, tail.data + from, i - from);
        (void)mt_buf_adds(b, "\xef\xbf\xbd");
        from = i + 1;
    }
    (void)mt_buf_add(b, mt_buf_str(&tail) + from, tail.len - from);
}

// Startup command failed: LINE - [REASON: ]ERROR OUTPUT
static void compose(const sup_command *c, const char *reason, mt_buf *ret)
{
    _cleanup_buf_ mt_buf tail = MT_BUF_INIT(DETAILS_MAX);

    add_tail(&tail, c);
    (void)mt_buf_adds(ret, "Startup command failed: ");
    add_line(ret, plan_of(c));
    (void)mt_buf_addf(ret, " - %s%s", reason, reason[0] && tail.len ? ": " : "");
    (void)mt_buf_add(ret, mt_buf_str(&tail), tail.len);
}

// --- end of a command ----------------------------------------------------------------------------

static void failed(sup_command *c, const char *reason)
{
    const mt_ended what = {.status = MT_RUN_ERROR, .reason = MT_END_START_FAILED};
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(DETAILS_MAX);

    compose(c, reason, &text);
    if (plan_of(c)->wait)
        sup_end(c->s, &what, NULL, mt_buf_str(&text));
    else
        sup_note(c->s, mt_buf_str(&text));
}

static void over(sup_command *c, mt_end_reason reason, int exit_code, const char *failure)
{
    supervisor *s = c->s;
    mt_record r = {
        .type = MT_REC_STARTUP_ENDED,
        .startup_ended = {.index = c->index, .reason = reason, .exit_code = exit_code},
    };

    c->running = false;
    s->running--;
    if (!c->timed_out) // else it still leads from SIGTERM to SIGKILL for what the command left
        mt_timer_stop(c->timer);
    sup_record(s, &r);
    if (failure)
        failed(c, failure);
    if (plan_of(c)->wait)
        s->waiting = false;
    if (s->state == SUP_STARTING)
        sup_startup_go_on(s);
}

static void explain(const sup_command *c, int status, mt_buf *to, mt_end_reason *ret_reason,
                    int *ret_code)
{
    *ret_reason = MT_END_EXITED;
    *ret_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (c->timed_out) {
        // What a process returns on SIGTERM is not believed: it may be 0.
        *ret_reason = MT_END_TIMEOUT;
        *ret_code = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 137 : 143;
        (void)mt_buf_adds(to, "out of time after ");
        add_seconds(to, plan_of(c)->max_duration_ms);
    } else if (*ret_code != 0 && oom_kills(c->s) > c->oom_before) {
        *ret_reason = MT_END_OUT_OF_MEMORY;
        (void)mt_buf_adds(to, "out of memory (limit ");
        commands_add_size(to, c->s->plan->limits.memory_bytes);
        (void)mt_buf_addc(to, ')');
    } else if (WIFSIGNALED(status)) {
        *ret_reason = MT_END_SIGNALED;
        (void)mt_buf_addf(to, "killed by signal %d", WTERMSIG(status));
    } else if (*ret_code != 0 && c->tail.total == 0) {
        (void)mt_buf_addf(to, "exit code %d", *ret_code);
    }
}

// What the command itself has written is in the pipe by now. A child of its own may go on writing:
// that is not waited for, and not read here.
static void drain(sup_command *c)
{
    char data[READ_BYTES];
    int left = 0;

    if (c->err_fd < 0 || ioctl(c->err_fd, FIONREAD, &left) < 0)
        return;
    while (left > 0) {
        ssize_t n = read(c->err_fd, data, MT_MIN((size_t)left, sizeof(data)));

        if (n <= 0)
            return;
        mt_tail_add(&c->tail, data, (size_t)n);
        left -= (int)n;
    }
}

static void exited(sup_command *c, int status)
{
    _cleanup_buf_ mt_buf why = MT_BUF_INIT(1024);
    mt_end_reason reason;
    int code;

    drain(c);
    explain(c, status, &why, &reason, &code);
    over(c, reason, code, code != 0 ? mt_buf_str(&why) : NULL);
}

static void not_started(sup_command *c, const char *why)
{
    over(c, MT_END_START_FAILED, -1, why);
}

// --- a running command ---------------------------------------------------------------------------

// To the end of the run, so that a child that lives on never meets a closed or a full pipe.
static void on_error_output(mt_io *io, uint32_t events, void *data)
{
    sup_command *c = data;
    char bytes[READ_BYTES];
    ssize_t n = read(c->err_fd, bytes, sizeof(bytes));

    (void)events;
    if (n > 0) {
        if (c->running)
            mt_tail_add(&c->tail, bytes, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        mt_io_remove(io);
        c->err_io = NULL;
        mt_close_fd(&c->err_fd);
    }
}

static void on_command_timer(mt_timer *timer, void *data)
{
    sup_command *c = data;
    mt_cgroup *cg = c->s->res->cgroup;

    if (c->s->state >= SUP_ENDING)
        return;
    if (!c->timed_out) {
        c->timed_out = true;
        (void)mt_cgroup_signal(cg, MT_CGROUP_COMMAND(c->index), SIGTERM);
        mt_timer_in_ms(timer, TERM_TO_KILL_MS);
    } else {
        (void)mt_cgroup_kill(cg, MT_CGROUP_COMMAND(c->index));
    }
}

// The pipe may be opened again through /dev/stderr by whoever the command runs as: its mode, not
// its owner, is what counts there.
static int open_pipe(sup_command *c, int *ret_write_end, mt_err **err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return mt_fail_errno(err, errno, "cannot make a pipe");
    (void)fchmod(ends[1], 0666);
    (void)mt_set_nonblock(ends[0], true);
    c->err_fd = ends[0];
    c->err_io = mt_io_add(c->s->loop, c->err_fd, EPOLLIN, on_error_output, c);
    if (!c->err_io) {
        (void)close(ends[1]);
        return mt_fail_oom(err);
    }
    *ret_write_end = ends[1];
    return 0;
}

static int ask_for(sup_command *c, mt_err **err)
{
    supervisor *s = c->s;
    _cleanup_close_ int write_end = -1;
    const mt_plan_command *p = plan_of(c);
    sup_exec what = {.command = p->command,
                     .arguments = p->arguments,
                     .argument_count = p->argument_count,
                     .user = p->user,
                     .token = c->index,
                     .in_fd = -1,
                     .out_fd = -1,
                     .group = MT_CGROUP_COMMAND(c->index)};

    if (mt_cgroup_make_command(s->res->cgroup, c->index, err) < 0 ||
        open_pipe(c, &write_end, err) < 0)
        return -1;
    what.err_fd = write_end;
    return sup_exec_send(s, &what, err);
}

static void start_command(sup_command *c)
{
    mt_record r = {.type = MT_REC_STARTUP_STARTED, .startup = {.index = c->index}};
    _cleanup_err_ mt_err *err = NULL;
    int asked;

    c->running = true;
    c->s->running++;
    sup_record(c->s, &r);
    asked = ask_for(c, &err);
    // Read after asking: while it takes its time, the process is being made.
    c->oom_before = oom_kills(c->s);
    if (asked < 0) {
        not_started(c, mt_err_sentence(err));
        return;
    }
    if (plan_of(c)->max_duration_ms > 0)
        mt_timer_in_ms(c->timer, plan_of(c)->max_duration_ms);
}

// Starts what may be started now.
void sup_startup_go_on(supervisor *s)
{
    while (s->state == SUP_STARTING && !s->waiting && s->next < s->plan->startup_count &&
           sup_may_ask(s)) {
        sup_command *c = &s->commands[s->next++];

        s->waiting = plan_of(c)->wait;
        start_command(c);
    }
    if (s->state == SUP_STARTING && !s->waiting && s->next == s->plan->startup_count &&
        (s->running == 0 || !s->plan->auto_terminate))
        sup_started(s);
    if (s->state == SUP_READY)
        commands_open(s->sent);
}

// --- the border ----------------------------------------------------------------------------------

int sup_startup_init(supervisor *s)
{
    s->commands = calloc(s->plan->startup_count + 1, sizeof(*s->commands));
    if (!s->commands)
        return -1;
    for (uint32_t i = 0; i < s->plan->startup_count; i++) {
        sup_command *c = &s->commands[i];

        c->s = s;
        c->index = i;
        c->err_fd = -1;
        mt_tail_init(&c->tail, MT_OUTPUT_FAILURE_CHARS);
        c->timer = mt_timer_new(s->loop, on_command_timer, c);
        if (!c->timer)
            return -1;
    }
    return 0;
}

void sup_startup_begin(supervisor *s)
{
    if (!s->path[0])
        sup_exec_paths(s);
    sup_startup_go_on(s);
}

void sup_startup_reply(supervisor *s, const mt_init_reply *r)
{
    sup_command *c = &s->commands[r->token];
    _cleanup_buf_ mt_buf why = MT_BUF_INIT(4096);

    // mt-init is not trusted: about what does not run it has nothing to say.
    if (!c->running)
        return;
    if (r->type == MT_INIT_EXITED) {
        exited(c, r->status);
    } else if (r->type == MT_INIT_FAILED) {
        sup_exec_failure(s, plan_of(c)->user, NULL, r, &why);
        not_started(c, mt_buf_str(&why));
    }
}

void sup_startup_abandon(supervisor *s)
{
    sup_commands_abort(s);
    sup_sessions_abandon(s);
    for (uint32_t i = 0; i < s->plan->startup_count; i++) {
        mt_record r = {
            .type = MT_REC_STARTUP_ENDED,
            .startup_ended = {.index = i, .reason = MT_END_RUN_ENDED, .exit_code = -1},
        };

        if (s->commands[i].running)
            sup_record(s, &r);
        s->commands[i].running = false;
    }
}
