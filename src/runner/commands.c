// SPDX-License-Identifier: Apache-2.0
// Queue and life of the commands of a run. See commands.h for the states.
#include "runner/commands-internal.h"

#include "base/clock.h"
#include "base/id.h"

#include <stdio.h>
#include <sys/wait.h>

enum {
    RUNNING_MAX = 512,      // at once, async ones; more wait in the queue
    ENDED_MAX = 512,        // whose children still print; of more, the oldest are not read any more
    SPILL_BYTES = 16 << 10, // a command of more waits in a file
    BYTES_MAX = 256 << 20,  // of commands that wait or run
    TERM_TO_KILL_MS = 1000,
    STOP_GIVE_UP_MS = 3000, // after SIGTERM: what the kernel has not ended by then is left to it
    STOP_STEP_MS = 10,
    LEFT_EACH = 2, // groups looked at again after the end of a command
    DETAILS_MAX = 4096,
    WHY_MAX = 1024, // of an abort, which may be recorded 10,000 times
};

static void move_queue(commands *cs);

// --- objects -------------------------------------------------------------------------------------

static void command_free(command *c)
{
    if (!c)
        return;
    command_streams_close(c);
    mt_timer_free(c->timer);
    mt_command_free(c->what);
    free(c->bytes);
    free(c->by);
    free(c);
}

static void free_list(command *c)
{
    for (command *next; c; c = next) {
        next = c->next;
        command_free(c);
    }
}

commands *commands_new(const commands_host *host)
{
    commands *cs = calloc(1, sizeof(*cs));

    if (!cs)
        return NULL;
    cs->host = *host;
    cs->queue_end = &cs->queue;
    cs->next_number = host->first_group;
    cs->pipes[0] = cs->pipes[1] = COMMAND_NO_PIPE;
    cs->out_dir_fd = -1;
    cs->seen = seen_new();
    if (!cs->seen) {
        free(cs);
        return NULL;
    }
    return cs;
}

void commands_free(commands *cs)
{
    if (!cs)
        return;
    free_list(cs->queue);
    free_list(cs->live);
    seen_free(cs->seen);
    free(cs->left);
    room_done(cs);
    mt_close_fd(&cs->out_dir_fd);
    command_pipes_close(cs);
    free(cs);
}

static void unlink_live(command *c)
{
    for (command **at = &c->of->live; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            return;
        }
    }
}

static void unlink_queued(command *c)
{
    commands *cs = c->of;

    for (command **at = &cs->queue; *at; at = &(*at)->next) {
        if (*at != c)
            continue;
        *at = c->next;
        if (!c->next)
            cs->queue_end = at;
        cs->queued--;
        c->next = NULL;
        return;
    }
}

static void append_live(command *c)
{
    command **at = &c->of->live;

    while (*at)
        at = &(*at)->next;
    *at = c;
}

static mt_cgroup_counters counters(const commands *cs)
{
    mt_cgroup_counters now;

    mt_cgroup_limits_met(cs->host.cgroup, &now);
    return now;
}

// --- the end of a command ------------------------------------------------------------------------

static void record_end(command *c, mt_command_ended *e, const char *details)
{
    commands *cs = c->of;
    mt_record r = {.type = MT_REC_COMMAND_ENDED};

    e->id = mt_str_of(c->id);
    e->out_bytes = c->streams[0].spool.bytes;
    e->err_bytes = c->streams[1].spool.bytes;
    e->out_chars = spool_chars(&c->streams[0].spool);
    e->err_chars = spool_chars(&c->streams[1].spool);
    e->details = mt_str_of(details);
    r.command_ended = *e;
    cs->host.record(cs->host.data, &r);
}

// Nobody waits for its removal: commands_tidy().
static void leave_group(commands *cs, uint32_t number)
{
    uint32_t *more = reallocarray(cs->left, cs->left_count + 1, sizeof(*more));

    if (!more)
        return; // the end of the run takes it
    cs->left = more;
    cs->left[cs->left_count++] = number;
    cs->left_new++;
}

static void try_left(commands *cs, size_t at)
{
    if (mt_cgroup_remove_command(cs->host.cgroup, cs->left[at]) == 0)
        cs->left[at] = cs->left[--cs->left_count];
}

// Those that were left just now; of the others, in which ended commands have left processes that
// print nothing, a few, so that they do not gather.
static void remove_left(commands *cs)
{
    for (; cs->left_new; cs->left_new--)
        try_left(cs, cs->left_count - cs->left_new);
    for (int i = 0; i < LEFT_EACH && cs->left_count; i++)
        try_left(cs, cs->left_at++ % cs->left_count);
}

// An ended command of which nothing is read any more.
static void forget(command *c)
{
    unlink_live(c);
    c->of->ended--;
    for (size_t i = 0; i < MT_ARRAY_SIZE(c->streams); i++)
        room_left(c->of, &c->streams[i].spool);
    if (c->has_group)
        leave_group(c->of, c->number);
    command_free(c);
}

void command_streams_ended(command *c)
{
    forget(c);
}

static void forget_oldest_ended(commands *cs)
{
    for (command *c = cs->live; c && cs->ended > ENDED_MAX; c = c->next) {
        if (c->state != CMD_ENDED)
            continue;
        if (!cs->told)
            cs->host.note(cs->host.data,
                          "more than 512 commands have left processes that hold their output open: "
                          "that of the oldest is not read any more");
        cs->told = true;
        forget(c);
        return;
    }
}

// The end of one that was started, or was about to be.
static void over(command *c, mt_command_ended *e, const char *details)
{
    commands *cs = c->of;

    mt_timer_free(c->timer);
    c->timer = NULL;
    record_end(c, e, details);
    c->state = CMD_ENDED;
    cs->running--;
    cs->ended++;
    cs->bytes -= c->len;
    if (!c->async)
        cs->blocked = false;
    command_input_close(c);
    mt_command_free(c->what);
    c->what = NULL;
    if (command_streams_finish(c))
        forget(c);
    else
        forget_oldest_ended(cs);
    move_queue(cs);
}

static void not_started(command *c, const char *why)
{
    mt_command_ended e = {
        .status = MT_COMMAND_ERROR, .reason = MT_END_START_FAILED, .exit_code = -1};

    if (c->stop == STOP_CANCEL)
        e.reason = MT_END_TERMINATED;
    if (counters(c->of).pids_refused > c->pids_before)
        e.limits_reached = MT_LIMIT_PIDS;
    over(c, &e, why);
}

static void finish(command *c)
{
    _cleanup_buf_ mt_buf why = MT_BUF_INIT(DETAILS_MAX);
    mt_cgroup_counters now = counters(c->of);
    mt_command_ended e;

    command_result(c, &now, &e, &why);
    over(c, &e, mt_buf_str(&why));
}

// --- stopping ------------------------------------------------------------------------------------

static bool group_empty(const command *c)
{
    return mt_cgroup_populated(c->of->host.cgroup, MT_CGROUP_COMMAND(c->number)) <= 0;
}

static void signal_group(command *c)
{
    c->kill_ns = mt_boottime_ns() + TERM_TO_KILL_MS * 1000000ll;
    c->give_up_ns = mt_boottime_ns() + STOP_GIVE_UP_MS * 1000000ll;
    (void)mt_cgroup_signal(c->of->host.cgroup, MT_CGROUP_COMMAND(c->number), SIGTERM);
    mt_timer_at(c->timer, c->kill_ns);
}

static void begin_stop(command *c, command_stop why)
{
    c->stop = why;
    // One that was asked for has no process yet, or one that nothing is known of: STARTED will
    // tell.
    if (c->state == CMD_RUNNING)
        signal_group(c);
}

// Out of its own time; then at kill_ns; then every few milliseconds, while the kernel ends what was
// killed.
static void on_timer(mt_timer *timer, void *data)
{
    command *c = data;
    int64_t now = mt_boottime_ns();

    if (c->stop == STOP_NONE) {
        begin_stop(c, STOP_TIMEOUT);
        return;
    }
    if (now >= c->kill_ns) {
        (void)mt_cgroup_kill(c->of->host.cgroup, MT_CGROUP_COMMAND(c->number));
        // Again, should it have missed somebody (v1).
        c->kill_ns = now + TERM_TO_KILL_MS * 1000000ll;
    }
    if (c->state == CMD_STOPPING && (group_empty(c) || now >= c->give_up_ns))
        finish(c);
    else
        mt_timer_in_ms(timer, c->state == CMD_STOPPING ? STOP_STEP_MS : TERM_TO_KILL_MS);
}

static void exited(command *c, int status)
{
    c->status = status;
    command_streams_drain(c);
    if (c->stop == STOP_NONE || group_empty(c)) {
        finish(c);
        return;
    }
    c->state = CMD_STOPPING;
    mt_timer_in_ms(c->timer, STOP_STEP_MS);
}

static void started(command *c)
{
    commands *cs = c->of;
    mt_record r = {.type = MT_REC_COMMAND_STARTED, .command_started = {.id = mt_str_of(c->id)}};

    c->state = CMD_RUNNING;
    cs->host.record(cs->host.data, &r);
    if (c->stop != STOP_NONE)
        signal_group(c);
    else if (c->what->max_duration_ms > 0)
        mt_timer_in_ms(c->timer, c->what->max_duration_ms);
}

// --- the start of a command ----------------------------------------------------------------------

static int ask_for(command *c, mt_err **err)
{
    commands *cs = c->of;
    int ends[3] = {-1, -1, -1}, r;

    r = command_file_load(c, err);
    if (r == 0)
        r = mt_command_decode(c->bytes, c->len, &c->what, err);
    free(c->bytes);
    c->bytes = NULL;
    if (r < 0 || commands_open_out(cs, err) < 0)
        return -1;
    c->timer = mt_timer_new(cs->host.loop, on_timer, c);
    if (!c->timer)
        return mt_fail_oom(err);
    for (int i = 0; i < 2; i++)
        spool_init(&c->streams[i].spool, cs->out_dir_fd, c->id, i + 1);
    if (mt_cgroup_make_command(cs->host.cgroup, c->number, err) < 0)
        return -1;
    c->has_group = true;
    r = command_streams_open(c, ends, err);
    if (r == 0) {
        const commands_request what = {.command = c->what,
                                       .token = c->number,
                                       .group = MT_CGROUP_COMMAND(c->number),
                                       .in_fd = ends[0],
                                       .out_fd = ends[1],
                                       .err_fd = ends[2]};

        r = cs->host.request(cs->host.data, &what, err);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(ends); i++)
        mt_close_fd(&ends[i]);
    return r;
}

static void start(command *c)
{
    _cleanup_err_ mt_err *err = NULL;
    commands *cs = c->of;
    mt_cgroup_counters now;
    int r;

    c->number = cs->next_number++;
    c->state = CMD_ASKED;
    cs->running++;
    if (!c->async)
        cs->blocked = true;
    append_live(c);
    // Before mt-init is asked: it may meet a limit sooner than this process runs again.
    now = counters(cs);
    c->oom_before = now.oom_kills;
    c->pids_before = now.pids_refused;
    r = ask_for(c, &err);
    if (r < 0)
        not_started(c, mt_err_sentence(err));
}

static void move_queue(commands *cs)
{
    if (cs->moving)
        return;
    cs->moving = true;
    while (cs->is_open && !cs->aborted && !cs->blocked && cs->queue &&
           (cs->running == 0 || (cs->running < RUNNING_MAX && cs->bytes < BYTES_MAX)) &&
           cs->host.may_ask(cs->host.data)) {
        command *c = cs->queue;

        unlink_queued(c);
        start(c);
    }
    cs->moving = false;
}

// --- the border ----------------------------------------------------------------------------------

static command *find(command *list, const char *id)
{
    while (list && !mt_streq(list->id, id))
        list = list->next;
    return list;
}

// One that never starts.
static void end_queued(command *c, mt_command_status status, mt_end_reason reason, const char *why)
{
    mt_command_ended e = {.status = status, .reason = reason, .exit_code = -1};

    record_end(c, &e, why);
    if (!c->spilled)
        c->of->bytes -= c->len;
    command_file_remove(c);
    command_free(c);
}

// One that does not even wait.
static void refuse(commands *cs, const char *id, const char *why)
{
    mt_record r = {.type = MT_REC_COMMAND_ENDED,
                   .command_ended = {.id = mt_str_of(id),
                                     .status = MT_COMMAND_ERROR,
                                     .reason = MT_END_START_FAILED,
                                     .exit_code = -1,
                                     .details = mt_str_of(why)}};

    cs->host.record(cs->host.data, &r);
}

static command *command_new(commands *cs, const mt_command *what, const void *data, size_t len)
{
    command *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    *c = (command){.of = cs, .async = what->async, .len = len, .in_fd = -1};
    for (int i = 0; i < 2; i++) {
        c->streams[i] = (command_stream){.c = c, .fd = -1};
        spool_init(&c->streams[i].spool, -1, what->id, i + 1);
    }
    (void)snprintf(c->id, sizeof(c->id), "%s", what->id);
    if (len > SPILL_BYTES)
        command_file_write(c, data);
    if (!c->spilled && cs->bytes + len <= BYTES_MAX)
        c->bytes = malloc(len);
    if (!c->bytes && !c->spilled) {
        command_free(c);
        return NULL;
    }
    if (c->bytes) {
        memcpy(c->bytes, data, len);
        cs->bytes += len;
    }
    return c;
}

int commands_take(commands *cs, const void *data, size_t len)
{
    _cleanup_(mt_command_free_p) mt_command *what = NULL;
    command *c = NULL;
    int fresh;

    if (mt_command_decode(data, len, &what, NULL) < 0)
        return -1;
    // What comes after the run's end the server ends by itself.
    if (cs->aborted || (fresh = seen_add(cs->seen, what->id)) == 0)
        return 0;
    if (cs->queued >= MT_COMMAND_QUEUE_MAX) {
        refuse(cs, what->id,
               "10,000 commands wait in this run, which is the most: wait for some "
               "to end");
        return 0;
    }
    if (fresh > 0)
        c = command_new(cs, what, data, len);
    if (!c) {
        refuse(cs, what->id, "out of memory for the commands that wait");
        return 0;
    }
    *cs->queue_end = c;
    cs->queue_end = &c->next;
    cs->queued++;
    move_queue(cs);
    return 0;
}

void commands_cancel(commands *cs, const char *id, mt_str by)
{
    command *c = find(cs->queue, id);

    if (c) {
        _cleanup_free_ char *why = mt_asprintf("cancelled by %.*s", (int)by.len, by.data);

        unlink_queued(c);
        end_queued(c, MT_COMMAND_ERROR, MT_END_TERMINATED, why ? why : "cancelled");
        return;
    }
    c = find(cs->live, id);
    if (!c || c->state > CMD_RUNNING || c->stop != STOP_NONE)
        return;
    c->by = mt_str_dup(by);
    begin_stop(c, STOP_CANCEL);
}

void commands_open(commands *cs)
{
    cs->is_open = true;
    move_queue(cs);
}

void commands_go_on(commands *cs)
{
    move_queue(cs);
}

void commands_tidy(commands *cs)
{
    if (!cs->is_open || cs->aborted)
        return;
    remove_left(cs);
    mt_cgroup_make_ahead(cs->host.cgroup, cs->next_number);
    command_pipes_ahead(cs);
}

void commands_reply(commands *cs, const mt_init_reply *r)
{
    _cleanup_buf_ mt_buf why = MT_BUF_INIT(DETAILS_MAX);
    command *c = cs->live;

    while (c && c->number != r->token)
        c = c->next;
    if (!c || cs->aborted)
        return;
    if (r->type == MT_INIT_STARTED && c->state == CMD_ASKED) {
        started(c);
    } else if (r->type == MT_INIT_FAILED && c->state == CMD_ASKED) {
        cs->host.explain(cs->host.data, c->what, r, &why);
        not_started(c, mt_buf_str(&why));
    } else if (r->type == MT_INIT_EXITED && c->state == CMD_RUNNING) {
        exited(c, r->status);
    }
}

void commands_abort(commands *cs, const char *why)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(WHY_MAX + 1);
    size_t len = strlen(why);

    if (cs->aborted)
        return;
    cs->aborted = true;
    if (len > WHY_MAX) // at a character
        for (len = WHY_MAX; len && ((unsigned char)why[len] & 0xc0) == 0x80; len--)
            ;
    (void)mt_buf_add(&text, why, len);
    while (cs->live) {
        command *c = cs->live;
        mt_command_ended e = {
            .status = MT_COMMAND_ABORTED, .reason = MT_END_RUN_ENDED, .exit_code = -1};

        command_streams_drain(c);
        cs->live = c->next;
        if (c->state != CMD_ENDED)
            record_end(c, &e, mt_buf_str(&text));
        command_free(c);
    }
    while (cs->queue) {
        command *c = cs->queue;

        unlink_queued(c);
        end_queued(c, MT_COMMAND_ABORTED, MT_END_RUN_ENDED, mt_buf_str(&text));
    }
}
