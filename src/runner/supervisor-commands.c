// SPDX-License-Identifier: Apache-2.0
// What the commands that are sent to a run need of their supervisor, and what their end has to say
// of the run's.
#include "base/clock.h"
#include "runner/supervisor-internal.h"

#include <errno.h>
#include <inttypes.h>

static int request(void *data, const commands_request *r, mt_err **err)
{
    const mt_command *c = r->command;
    const sup_exec what = {.command = c->command,
                           .arguments = c->arguments,
                           .argument_count = c->argument_count,
                           .user = c->user,
                           .working_directory = c->working_directory,
                           .environment = c->environment,
                           .environment_count = c->environment_count,
                           .token = r->token,
                           .in_fd = r->in_fd,
                           .out_fd = r->out_fd,
                           .err_fd = r->err_fd,
                           .group = r->group};

    return sup_exec_send(data, &what, err);
}

static bool may_ask(void *data)
{
    return sup_may_ask(data);
}

static void explain(void *data, const mt_command *c, const mt_init_reply *r, mt_buf *to)
{
    sup_exec_failure(data, c->user, c->working_directory, r, to);
}

static void record(void *data, mt_record *r)
{
    sup_record(data, r);
}

static void note(void *data, const char *text)
{
    sup_note(data, text);
}

int sup_commands_init(supervisor *s)
{
    const commands_host host = {.loop = s->loop,
                                .cgroup = s->res->cgroup,
                                .run_dir_fd = s->res->run_dir_fd,
                                .first_group = s->plan->startup_count,
                                .limits = &s->plan->limits,
                                .disk_usage_fd = s->res->disk_usage_fd,
                                .may_ask = may_ask,
                                .request = request,
                                .explain = explain,
                                .record = record,
                                .note = note,
                                .data = s};

    s->sent = commands_new(&host);
    return s->sent ? 0 : -1;
}

char *sup_why_ended(const supervisor *s)
{
    const mt_ended *e = &s->ended;
    char limit[MT_DURATION_TEXT];

    switch (e->reason) {
    case MT_END_TERMINATED:
        return mt_asprintf("the run was stopped by %s", s->by ? s->by : "?");
    case MT_END_TIMEOUT:
        return mt_asprintf("the run ran out of time: maxDuration %s",
                           mt_duration_format(e->limit_ms, limit));
    case MT_END_START_FAILED:
        return mt_asprintf("the run failed to start: %s", s->details ? s->details : "");
    default:
        if (e->status == MT_RUN_FINISHED)
            return mt_asprintf("the run finished");
        return mt_asprintf("the run failed: %s", s->details ? s->details : "");
    }
}

void sup_commands_abort(supervisor *s)
{
    _cleanup_free_ char *why = sup_why_ended(s);

    commands_abort(s->sent, why ? why : "the run ended");
}
