// SPDX-License-Identifier: Apache-2.0
// Commands of a capsule run: send, look, wait, cancel, read what they print.
#include "base/clock.h"
#include "capsule/journal.h"
#include "core/run-output.h"
#include "core/run-plan.h"
#include "core/runs.h"
#include "server/api.h"

#include <errno.h>
#include <stdio.h>

enum { LIST_BYTES = 8 << 20 }; // a page of a list is ended at this size, too

// ---- a command as JSON ----

static void write_end(mt_jw *w, const mt_command_record *c)
{
    mt_jw_member_text(w, "endReason", c->end_reason[0] ? c->end_reason : NULL);
    if (c->has_exit_code)
        mt_jw_member_int(w, "exitCode", c->exit_code);
    else
        mt_jw_member_null(w, "exitCode");
    if (c->limit_ms)
        mt_jw_member_int(w, "limitMs", c->limit_ms);
    if (c->signal)
        mt_jw_member_int(w, "signal", c->signal);
    mt_jw_member_text(w, "failureDetails", c->failure_details);
    mt_jw_key(w, "limitsReached");
    mt_jw_raw(w, mt_str_of(c->limits_reached));
}

static void write_members(mt_jw *w, const mt_command_record *c)
{
    mt_jw_member_text(w, "id", c->id);
    mt_jw_member_text(w, "runId", c->run_id);
    mt_jw_member_text(w, "command", c->command);
    mt_jw_key(w, "arguments");
    mt_jw_raw(w, mt_str_of(c->arguments));
    mt_jw_member_text(w, "runAsUser", c->run_as_user);
    mt_jw_member_bool(w, "async", c->async);
    mt_jw_member_duration(w, "maxDuration", c->max_duration_ms);
    mt_jw_member_text(w, "workingDirectory", *c->working_directory ? c->working_directory : NULL);
    mt_jw_key(w, "environment");
    mt_jw_raw(w, mt_str_of(c->environment));
    mt_jw_member_text(w, "status", c->status);
    write_end(w, c);
    mt_jw_member_time(w, "dateCreated", c->date_created);
    mt_jw_member_time(w, "dateStarted", c->date_started);
    mt_jw_member_time(w, "dateEnded", c->date_ended);
}

static int reply_command(mt_reply *reply, int status, const mt_command_record *c, mt_err **err)
{
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    write_members(&w, c);
    mt_jw_member_str(&w, "outputStandard", (mt_str){c->standard.data, c->standard.len});
    mt_jw_member_str(&w, "outputError", (mt_str){c->error.data, c->error.len});
    if (c->standard_length)
        mt_jw_member_int(&w, "outputStandardFullLength", c->standard_length);
    if (c->error_length)
        mt_jw_member_int(&w, "outputErrorFullLength", c->error_length);
    mt_jw_end_object(&w);
    reply->status = status;
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

// ---- send ----

static int read_arguments(mt_request *req, mt_command *c, mt_err **err)
{
    const mt_json *list = NULL;
    const char **arguments;
    size_t n;

    if (mt_json_opt_array(req->body, "arguments", &list, err) < 0)
        return -1;
    n = mt_json_count(list);
    c->argument_count = (uint32_t)n;
    if (n > MT_PLAN_ARGUMENTS_MAX)
        return 0; // the check of the whole says so
    arguments = mt_arena_array_of(req->arena, const char *, n + 1);
    if (!arguments)
        return mt_fail_oom(err);
    for (size_t i = 0; i < n; i++) {
        mt_str text;

        if (!mt_json_as_str(mt_json_at(list, i), &text) || memchr(text.data, '\0', text.len))
            return mt_fail_field(err, MT_E_BAD_FIELD, "arguments",
                                 "argument %zu must be a string without NUL", i + 1);
        arguments[i] = text.data;
    }
    c->arguments = arguments;
    return 0;
}

static int read_environment(mt_request *req, mt_command *c, mt_err **err)
{
    const mt_json *map = NULL;
    mt_plan_env *env;
    size_t n;

    if (mt_json_opt_string_map(req->body, "environment", &map, err) < 0)
        return -1;
    n = mt_json_count(map);
    c->environment_count = (uint32_t)n;
    if (n > MT_PLAN_ENV_MAX)
        return 0;
    env = mt_arena_array_of(req->arena, mt_plan_env, n + 1);
    if (!env)
        return mt_fail_oom(err);
    for (size_t i = 0; i < n; i++) {
        mt_str key = mt_json_name_at(map, i);

        if (memchr(key.data, '\0', key.len))
            return mt_fail_field(err, MT_E_BAD_FIELD, "environment", "a name holds a NUL");
        env[i].key = key.data;
        env[i].value = mt_json_text(mt_json_value_at(map, i), "");
    }
    c->environment = env;
    return 0;
}

// Programs of apps give milliseconds.
static int read_milliseconds(const mt_request *req, mt_command *c, mt_err **err)
{
    if (!req->app_run_id)
        return 0;
    return mt_json_opt_int(req->body, "maxMs", (mt_json_range){0, INT64_MAX / 1000000, 0},
                           &c->max_duration_ms, err);
}

static int read_command(mt_request *req, mt_command *c, mt_err **err)
{
    mt_str command = {0}, user = {0}, folder = {0};

    if (mt_json_need_object(req->body, "the request", err) < 0 ||
        read_milliseconds(req, c, err) < 0 ||
        MT_JSON_ONLY(req->body, err, "command", "arguments", "runAsUser", "maxDuration", "async",
                     "workingDirectory", "environment", "stdin",
                     req->app_run_id ? "maxMs" : "stdin") < 0 ||
        mt_json_need_string(req->body, "command", &command, err) < 0 ||
        mt_json_opt_string(req->body, "runAsUser", &user, err) < 0 ||
        mt_json_opt_string(req->body, "workingDirectory", &folder, err) < 0 ||
        mt_json_opt_bytes(req->body, "stdin", &c->input, err) < 0 ||
        mt_json_opt_bool(req->body, "async", false, &c->async, err) < 0 ||
        mt_json_opt_duration(req->body, "maxDuration", c->max_duration_ms, &c->max_duration_ms,
                             err) < 0 ||
        read_arguments(req, c, err) < 0 || read_environment(req, c, err) < 0)
        return -1;
    c->command = command.data;
    c->user = user.data ? user.data : "maitento";
    c->working_directory = folder.data;
    return mt_command_validate(c, err);
}

int mt_check_run_user(const mt_request *req, const mt_run *run, const char *field, const char *user,
                      mt_err **err)
{
    _cleanup_capsule_def_ mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    _cleanup_buf_ mt_buf names = MT_BUF_INIT(65536);

    if (strcmp(user, "maitento") == 0 || strcmp(user, "root") == 0)
        return 0;
    if (mt_run_definition(run, &req->api->limits, &def, err) < 0)
        return -1;
    for (size_t i = 0; i < def.user_count; i++) {
        if (strcmp(def.users[i], user) == 0)
            return 0;
        (void)mt_buf_addf(&names, ", %s", def.users[i]);
    }
    return mt_fail_field(err, MT_E_BAD_FIELD, field,
                         "no user '%s' in capsule run '%s'; there are: maitento, root%s", user,
                         run->id, mt_buf_str(&names));
}

// ---- look, wait ----

// An aborted one is told of when the run's end has said why.
static bool is_over(const mt_command_record *c)
{
    return c->date_ended && (strcmp(c->status, "Aborted") != 0 || *c->failure_details);
}

static int reply_when(mt_request *req, mt_reply *reply, int status, mt_command_record *c,
                      mt_err **err)
{
    char *topic;

    if (is_over(c) && mt_reply_once_synced(req, reply, c->run_id, c->id, err) < 0)
        return -1;
    if (is_over(c) || req->waited_out)
        return reply_command(reply, status, c, err);
    topic = mt_arena_strdup(req->arena, c->id);
    return topic ? mt_reply_not_yet(reply, topic) : mt_fail_oom(err);
}

// The run of the route, when the caller may do verb to it, and its command.
static int find_command(mt_request *req, mt_verb verb, const char *id, mt_command_record *ret,
                        mt_err **err)
{
    _cleanup_(mt_run_done) mt_run run = {0};

    if (access_run(req->api->store, &req->user, verb, mt_param_dup(req, "id"), &run, err) < 0)
        return -1;
    return mt_store_command_get(req->api->store, run.id, id, ret, err);
}

static int send_command(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_command_record_done) mt_command_record record = {0};
    _cleanup_(mt_run_done) mt_run run = {0};
    char digest[MT_REQUEST_DIGEST];
    mt_command command = {.id = req->new_id};
    mt_command_new new = {.by = &req->user, .idempotency_key = req->idempotency_key};
    int r;

    // Sent in the first round; the further ones only look.
    if (req->started) {
        if (find_command(req, MT_MAY_SEE, req->started, &record, err) < 0)
            return -1;
        return reply_when(req, reply, req->started_status, &record, err);
    }
    if (access_run(req->api->store, &req->user, MT_MAY_COMMAND, mt_param_dup(req, "id"), &run,
                   err) < 0 ||
        read_command(req, &command, err) < 0 ||
        mt_check_run_user(req, &run, "runAsUser", command.user, err) < 0)
        return -1;
    mt_request_digest(req, digest);
    new.request_digest = digest;
    new.run_id = run.id;
    r = mt_runs_exec(req->api->runs, &command, &new, &record, err);
    if (r < 0)
        return -1;
    req->started_status = r == 1 ? 200 : 201;
    req->started = mt_arena_strdup(req->arena, record.id);
    if (!req->started)
        return mt_fail_oom(err);
    return reply_when(req, reply, req->started_status, &record, err);
}

static int get_command(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_command_record_done) mt_command_record record = {0};

    if (find_command(req, MT_MAY_SEE, mt_param_dup(req, "command"), &record, err) < 0)
        return -1;
    return reply_when(req, reply, 200, &record, err);
}

// By its id alone. One of a run that the caller may not see is told as one that is not there.
static int get_command_of_any(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_command_record_done) mt_command_record record = {0};
    _cleanup_(mt_run_done) mt_run run = {0};
    const char *id = mt_param_dup(req, "command");
    mt_err *hidden = NULL;

    if (mt_store_command_get(req->api->store, NULL, id, &record, err) < 0)
        return -1;
    if (access_run(req->api->store, &req->user, MT_MAY_SEE, record.run_id, &run, &hidden) == 0)
        return reply_when(req, reply, 200, &record, err);
    if (mt_err_code(hidden) != MT_E_NOT_FOUND) {
        mt_err_move(err, hidden);
        return -1;
    }
    (void)mt_err_free(hidden);
    return mt_fail(err, MT_E_NOT_FOUND, "no command '%.80s'", id);
}

static int cancel_command(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_command_record_done) mt_command_record record = {0};

    if (find_command(req, MT_MAY_COMMAND, mt_param_dup(req, "command"), &record, err) < 0)
        return -1;
    if (!req->started && !record.date_ended &&
        mt_runs_cancel(req->api->runs, &record,
                       record.cancel_requested_by[0] ? record.cancel_requested_by
                                                     : mt_request_by(req),
                       err) < 0)
        return -1;
    req->started = record.date_ended ? NULL : "cancel";
    return reply_when(req, reply, 200, &record, err);
}

// ---- list ----

static int check_status(const char *status, mt_err **err)
{
    if (!status)
        return 0;
    for (int i = 0; i < MT_COMMAND_STATUS_COUNT; i++)
        if (strcmp(status, mt_command_status_word((mt_command_status)i)) == 0)
            return 0;
    return mt_fail_field(err, MT_E_BAD_FIELD, "status",
                         "'status' must be Queued, Running, Finished, Error or Aborted");
}

static void write_list(mt_buf *body, const mt_command_list *list)
{
    char next[MT_STORE_CURSOR] = "";
    mt_jw w;

    mt_jw_init(&w, body, 0);
    mt_jw_begin_object(&w);
    mt_jw_key(&w, "items");
    mt_jw_begin_array(&w);
    for (size_t i = 0; i < list->count; i++) {
        if (body->len > LIST_BYTES) {
            (void)snprintf(next, sizeof(next), "%lld", (long long)list->items[i - 1].number);
            break;
        }
        mt_jw_begin_object(&w);
        write_members(&w, &list->items[i]);
        mt_jw_end_object(&w);
    }
    mt_jw_end_array(&w);
    mt_jw_member_text(&w, "next", next[0] ? next : list->next[0] ? list->next : NULL);
    mt_jw_end_object(&w);
}

static int list_commands(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_command_list_done) mt_command_list list = {0};
    _cleanup_(mt_run_done) mt_run run = {0};
    const char *after, *status = NULL, *ending = NULL;
    int64_t limit;

    if (mt_query_page(req, &limit, &after, err) < 0 ||
        mt_query_text(req, "status", &status, err) < 0 ||
        mt_query_text(req, "idEnding", &ending, err) < 0 || check_status(status, err) < 0 ||
        access_run(req->api->store, &req->user, MT_MAY_SEE, mt_param_dup(req, "id"), &run, err) <
            0 ||
        mt_store_command_list(req->api->store, run.id, status, ending,
                              (mt_page){.after = after, .limit = (size_t)limit}, &list, err) < 0)
        return -1;
    write_list(&reply->body, &list);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

// ---- output ----

static int read_stream(const mt_request *req, int *ret, mt_err **err)
{
    mt_str stream = mt_query(req, "stream");

    *ret = MT_STREAM_STANDARD;
    if (!stream.data || mt_str_eq(stream, "standard"))
        return 0;
    *ret = MT_STREAM_ERROR;
    return mt_str_eq(stream, "error")
               ? 0
               : mt_fail_field(err, MT_E_BAD_FIELD, "stream", "'stream' must be standard or error");
}

// What the record knows of a stream: a spool without a byte has no file.
static bool has_printed(const mt_command_record *c, int stream)
{
    return stream == MT_STREAM_STANDARD ? c->standard.len || c->standard_length
                                        : c->error.len || c->error_length;
}

static int output_is_gone(const mt_request *req, const mt_command_record *c, mt_err **err)
{
    _cleanup_(mt_run_done) mt_run run = {0};
    char when[MT_TIME_TEXT] = "";

    if (mt_store_run_get(req->api->store, NULL, c->run_id, &run, NULL) == 0 &&
        run.date_outputs_removed)
        (void)mt_time_format(run.date_outputs_removed, when);
    return mt_fail(err, MT_E_GONE,
                   "the output of command '%s' was kept for its time and removed%s%s; its record "
                   "has the end of it",
                   c->id, *when ? " at " : "", when);
}

// *ret_fd < 0 when nothing was printed (yet).
static int open_spool(const mt_request *req, const mt_command_record *c, int stream, int *ret_fd,
                      mt_err **err)
{
    int fd = mt_run_spool_open(req->api->runs_dirfd, c->run_id, c->id, stream);

    *ret_fd = fd;
    if (fd >= 0 || (fd == -ENOENT && !has_printed(c, stream)))
        return 0;
    if (fd == -ENOENT)
        return output_is_gone(req, c, err);
    return mt_fail_errno(err, fd, "cannot read the output of command '%s'", c->id);
}

static int spool_from(int fd, int64_t from, uint64_t *ret_begin, uint64_t *ret_size, mt_err **err)
{
    *ret_begin = *ret_size = 0;
    if (fd >= 0 && mt_run_spool_range(fd, (uint64_t)from, ret_begin, ret_size) < 0)
        return mt_fail_errno(err, errno, "cannot read the output");
    if ((uint64_t)from > *ret_size)
        return mt_fail(err, MT_E_BAD_RANGE, "the output has only %llu bytes so far",
                       (unsigned long long)*ret_size);
    return 0;
}

static int get_output(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_command_record_done) mt_command_record record = {0};
    _cleanup_close_ int fd = -1;
    uint64_t begin, size;
    int64_t from;
    char offset[24];
    bool follow;
    int stream;

    if (read_stream(req, &stream, err) < 0 || mt_query_bool(req, "follow", &follow, err) < 0 ||
        mt_query_int(req, "from", 0, INT64_MAX, 0, &from, err) < 0 ||
        find_command(req, MT_MAY_SEE, mt_param_dup(req, "command"), &record, err) < 0 ||
        open_spool(req, &record, stream, &fd, err) < 0 ||
        spool_from(fd, from, &begin, &size, err) < 0)
        return -1;
    (void)snprintf(offset, sizeof(offset), "%llu", (unsigned long long)begin);
    reply->content_type = "application/octet-stream";
    if (mt_reply_header(reply, "X-Maitento-Offset", offset, err) < 0)
        return -1;
    if (follow && strcmp(req->method, "HEAD") != 0) {
        reply->follow = (mt_follow_spec){.run_id = mt_arena_strdup(req->arena, record.run_id),
                                         .command_id = mt_arena_strdup(req->arena, record.id),
                                         .stream = stream,
                                         .from = begin};
        return reply->follow.run_id && reply->follow.command_id ? 0 : mt_fail_oom(err);
    }
    if (fd >= 0)
        mt_reply_fd(reply, MT_TAKE_FD(fd), begin, size - begin);
    return 0;
}

const mt_route mt_routes_commands[] = {
    {.method = "POST",
     .pattern = "/v1/capsule-runs/{id}/commands",
     .handler = send_command,
     .flags = MT_ROUTE_WAIT | MT_ROUTE_MAKES,
     .max_body = MT_BODY_LARGE},
    {.method = "GET",
     .pattern = "/v1/capsule-runs/{id}/commands",
     .handler = list_commands,
     .query = "status idEnding limit after"},
    {.method = "GET",
     .pattern = "/v1/capsule-runs/{id}/commands/{command}",
     .handler = get_command,
     .flags = MT_ROUTE_WAIT},
    {.method = "GET",
     .pattern = "/v1/commands/{command}",
     .handler = get_command_of_any,
     .flags = MT_ROUTE_WAIT},
    {.method = "POST",
     .pattern = "/v1/capsule-runs/{id}/commands/{command}/cancel",
     .handler = cancel_command,
     .flags = MT_ROUTE_WAIT,
     .max_body = MT_BODY_SMALL},
    {.method = "GET",
     .pattern = "/v1/capsule-runs/{id}/commands/{command}/output",
     .handler = get_output,
     .query = "stream from follow"},
    {0},
};
