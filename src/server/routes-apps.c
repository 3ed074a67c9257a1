// SPDX-License-Identifier: Apache-2.0
// Runs of apps: start, look, wait, what they print, cancel, run again.
#include "core/apps.h"
#include "server/api.h"

enum { LINES = 1000 }; // of an answer, unless it is asked for others

// ---- a run as JSON ----

static void write_end(mt_jw *w, const mt_app_run *run)
{
    mt_run_end_write(w, run->end_reason, run->limit_ms, run->cancelled_by, run->failure_details);
    mt_word_write(w, "failureCode", run->failure_code);
    mt_word_write(w, "failurePlace", run->failure_place);
    mt_jw_key(w, "failureStack");
    mt_jw_raw(w, mt_str_of(run->failure_stack));
}

// What it was given and what it gave: not in lists.
static void write_values(mt_jw *w, const mt_app_run *run)
{
    if (!run->inputs)
        return;
    mt_jw_key(w, "inputs");
    mt_jw_raw(w, mt_str_of(run->inputs));
    mt_jw_key(w, "outputs");
    mt_jw_raw(w, mt_str_of(run->outputs));
    mt_jw_key(w, "returnValue");
    mt_jw_raw(w, mt_str_of(run->return_value));
}

static void write_run_members(mt_jw *w, const mt_app_run *run)
{
    const mt_run_times times = {.created = run->date_created,
                                .ended = run->date_ended,
                                .deadline = run->deadline,
                                .max_duration_ms = run->max_duration_ms};

    mt_jw_member_text(w, "id", run->id);
    mt_jw_member_text(w, "namespace", run->namespace_name);
    mt_jw_member_text(w, "app", run->app);
    mt_jw_member_int(w, "version", run->version);
    mt_jw_member_text(w, "status", run->status);
    write_end(w, run);
    mt_word_write(w, "waitingFor", run->waiting_for);
    write_values(w, run);
    mt_starter_write(w, run->started_by, run->parent_id, run->parent_app_id);
    mt_word_write(w, "rerunOf", run->rerun_of);
    mt_run_times_write(w, &times);
    mt_jw_member_int(w, "consoleOutputsFullCount", run->console_count);
    mt_jw_member_int(w, "callCount", run->call_count);
}

// ---- lines ----

static const char *level_word(char level)
{
    switch (level) {
    case 'w':
        return "warning";
    case 'e':
        return "error";
    default:
        return "info";
    }
}

static void write_lines(mt_jw *w, const mt_app_line_list *lines)
{
    mt_jw_begin_array(w);
    for (size_t i = 0; i < lines->count; i++) {
        const mt_app_line_record *line = &lines->items[i];

        mt_jw_begin_object(w);
        mt_jw_member_int(w, "number", line->number);
        if (line->level != 'o')
            mt_jw_member_text(w, "level", level_word(line->level));
        mt_jw_member_str(w, "text", (mt_str){line->text, line->len});
        mt_jw_member_time(w, "date", line->time_us);
        mt_jw_end_object(w);
    }
    mt_jw_end_array(w);
}

static int reply_run(const mt_request *req, mt_reply *reply, int status, const mt_app_run *run,
                     bool with_console, mt_err **err)
{
    _cleanup_(mt_app_line_list_done) mt_app_line_list lines = {0};
    mt_jw w;

    if (with_console && mt_store_app_line_list(req->api->store, run->id, "o", 0, MT_STORE_APP_LINES,
                                               &lines, err) < 0)
        return -1;
    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    write_run_members(&w, run);
    if (with_console) {
        mt_jw_key(&w, "consoleOutputs");
        write_lines(&w, &lines);
    }
    mt_jw_end_object(&w);
    reply->status = status;
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

// ---- look, wait ----

static bool has_ended(const mt_app_run *run)
{
    return run->end_reason[0] != '\0';
}

// The run, once it has ended or the time is over. Looked at often; all of it is read to be told.
static int reply_when(mt_request *req, mt_reply *reply, const char *id, int status, mt_err **err)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0}, whole = {0};
    bool with_console;

    if (mt_query_bool(req, "console", &with_console, err) < 0 ||
        access_app_run(req->api->store, &req->user, MT_MAY_SEE, id, &run, err) < 0)
        return -1;
    if (!has_ended(&run) && !req->waited_out)
        return mt_reply_not_yet(reply, mt_arena_strdup(req->arena, run.id));
    if (mt_store_app_run_get(req->api->store, &req->user, run.id, &whole, err) < 0)
        return -1;
    return reply_run(req, reply, status, &whole, with_console, err);
}

static int get_run(mt_request *req, mt_reply *reply, mt_err **err)
{
    return reply_when(req, reply, mt_param_dup(req, "id"), 200, err);
}

// The run is looked at before its lines: of one that had ended by then they are all there.
static int get_lines(mt_request *req, mt_reply *reply, const char *levels, mt_err **err)
{
    _cleanup_(mt_app_line_list_done) mt_app_line_list lines = {0};
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    int64_t after, limit;
    mt_jw w;

    if (mt_query_int(req, "after", 0, INT64_MAX, 0, &after, err) < 0 ||
        mt_query_int(req, "limit", 1, MT_STORE_APP_LINES, LINES, &limit, err) < 0 ||
        access_app_run(req->api->store, &req->user, MT_MAY_SEE, mt_param_dup(req, "id"), &run,
                       err) < 0 ||
        mt_store_app_line_list(req->api->store, run.id, levels, after, (size_t)limit, &lines, err) <
            0)
        return -1;
    if (lines.count == 0 && !has_ended(&run) && !req->waited_out)
        return mt_reply_no_line_yet(reply, mt_arena_strdup(req->arena, run.id));
    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    mt_jw_key(&w, "items");
    write_lines(&w, &lines);
    mt_jw_member_bool(&w, "ended", has_ended(&run) && lines.count < (size_t)limit);
    mt_jw_member_int(&w, "next", lines.count ? lines.items[lines.count - 1].number : after);
    if (levels[0] == 'o')
        mt_jw_member_int(&w, "fullCount", run.console_count);
    mt_jw_end_object(&w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int get_console(mt_request *req, mt_reply *reply, mt_err **err)
{
    return get_lines(req, reply, "o", err);
}

static int get_log(mt_request *req, mt_reply *reply, mt_err **err)
{
    return get_lines(req, reply, "iwe", err);
}

// ---- list ----

static int read_filter(mt_request *req, mt_namespace *ns, mt_app_run_filter *ret, mt_err **err)
{
    bool mine;

    if (mt_query_text(req, "app", &ret->app, err) < 0 ||
        mt_query_text(req, "status", &ret->status, err) < 0 ||
        mt_query_text(req, "idEnding", &ret->id_ending, err) < 0 ||
        mt_query_text(req, "parent", &ret->parent_app_id, err) < 0 ||
        mt_query_bool(req, "mine", &mine, err) < 0 ||
        mt_query_namespace(req, ns, &ret->namespace_id, err) < 0)
        return -1;
    if (mine)
        ret->started_by_id = req->user.id;
    return 0;
}

static int list_runs(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_app_run_list_done) mt_app_run_list list = {0};
    mt_app_run_filter filter = {0};
    mt_page page = {0};
    mt_namespace ns;
    int64_t limit;
    mt_jw w;

    if (mt_query_page(req, &limit, &page.after, err) < 0 || read_filter(req, &ns, &filter, err) < 0)
        return -1;
    page.limit = (size_t)limit;
    if (mt_store_app_run_list(req->api->store, &req->user, &filter, page, &list, err) < 0)
        return -1;
    mt_items_begin(reply, &w);
    for (size_t i = 0; i < list.count; i++) {
        mt_jw_begin_object(&w);
        write_run_members(&w, &list.items[i]);
        mt_jw_end_object(&w);
    }
    return mt_items_end(reply, &w, list.next, err);
}

// ---- start ----

// A start being made: what is looked up and checked before anything is stored.
typedef struct start {
    mt_namespace ns;
    mt_resource app;
    const mt_json *inputs; // NULL: none
    mt_json *old_inputs;   // of a run that is run again
    const char *rerun_of;
} start;

static void start_done(start *s)
{
    mt_resource_done(&s->app);
    s->old_inputs = mt_json_unref(s->old_inputs);
}

static int find_app(mt_request *req, start *s, const char *ns_name, const char *name,
                    int64_t version, mt_err **err)
{
    if (access_namespace(req->api->store, &req->user, MT_MAY_START, ns_name, &s->ns, err) < 0)
        return -1;
    return mt_store_resource_get(req->api->store, s->ns.id, MT_RESOURCE_APP, name, version, &s->app,
                                 err);
}

static int read_start(mt_request *req, start *s, mt_err **err)
{
    const char *ns = mt_param_dup(req, "ns"), *name = mt_param_dup(req, "app");
    int64_t version;

    if (!ns || !name)
        return mt_fail_oom(err);
    if (mt_body_start(req, &version, &s->inputs, err) < 0)
        return -1;
    return find_app(req, s, ns, name, version, err);
}

static int store_and_start(mt_request *req, const start *s, mt_app_run *ret, mt_err **err)
{
    char digest[MT_REQUEST_DIGEST];
    int r = 1;

    mt_request_digest(req, digest);
    // A repeat of a start that was made is answered even when there is no room for another.
    if (req->idempotency_key)
        r = mt_store_app_run_by_idempotency(req->api->store, &req->user, req->idempotency_key,
                                            digest, ret, err);
    if (r < 1)
        return r == 0 ? 1 : -1;
    return mt_apps_start(req->api->apps,
                         &(mt_app_start){.ns = &s->ns,
                                         .app = &s->app,
                                         .user = &req->user,
                                         .id = req->new_id,
                                         .inputs = s->inputs,
                                         .parent_id = req->run_id,
                                         .parent_app_id = req->app_run_id,
                                         .rerun_of = s->rerun_of,
                                         .idempotency_key = req->idempotency_key,
                                         .request_digest = digest},
                         ret, err);
}

static int start_and_answer(mt_request *req, const start *s, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    int r = store_and_start(req, s, &run, err);

    if (r < 0)
        return -1;
    req->started_status = r == 1 ? 200 : 201;
    req->started = mt_arena_strdup(req->arena, run.id);
    if (!req->started)
        return mt_fail_oom(err);
    if (!has_ended(&run) && !req->waited_out)
        return mt_reply_not_yet(reply, req->started);
    return reply_run(req, reply, req->started_status, &run, false, err);
}

static int start_run(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(start_done) start s = {0};

    if (req->started)
        return reply_when(req, reply, req->started, req->started_status, err);
    if (read_start(req, &s, err) < 0)
        return -1;
    return start_and_answer(req, &s, reply, err);
}

static int rerun(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_app_run_done) mt_app_run seen = {0}, run = {0};
    _cleanup_(start_done) start s = {0};

    if (req->started)
        return reply_when(req, reply, req->started, req->started_status, err);
    if (mt_body_nothing(req, err) < 0 ||
        access_app_run(req->api->store, &req->user, MT_MAY_SEE, mt_param_dup(req, "id"), &seen,
                       err) < 0 ||
        mt_store_app_run_get(req->api->store, &req->user, seen.id, &run, err) < 0 ||
        find_app(req, &s, run.namespace_name, run.app, run.version, err) < 0 ||
        mt_json_parse(run.inputs, strlen(run.inputs), NULL, &s.old_inputs, err) < 0)
        return -1;
    s.inputs = s.old_inputs;
    s.rerun_of = run.id;
    return start_and_answer(req, &s, reply, err);
}

// ---- cancel ----

// Noted first, so that a restart between the two does not forget it. The first one's name stays.
static int ask_to_end(mt_request *req, const mt_app_run *run, mt_err **err)
{
    const char *me = mt_request_by(req);
    const char *by = run->cancel_requested_by[0] ? run->cancel_requested_by : me;

    if (mt_store_app_run_request_cancel(req->api->store, run->id, me, err) < 0)
        return -1;
    return mt_apps_cancel(req->api->apps, run->id, by, err);
}

static int cancel_run(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    char *id = mt_param_dup(req, "id");

    // Asked in the first round; the further ones only look.
    if (!req->started) {
        if (mt_body_nothing(req, err) < 0 ||
            access_app_run(req->api->store, &req->user, MT_MAY_TERMINATE, id, &run, err) < 0 ||
            (!has_ended(&run) && ask_to_end(req, &run, err) < 0))
            return -1;
        req->started = id;
    }
    return reply_when(req, reply, id, 200, err);
}

const mt_route mt_routes_apps[] = {
    {.method = "POST",
     .pattern = "/v1/namespaces/{ns}/apps/{app}/runs",
     .handler = start_run,
     .flags = MT_ROUTE_WAIT | MT_ROUTE_MAKES,
     .max_body = MT_BODY_LARGE},
    {.method = "GET",
     .pattern = "/v1/app-runs",
     .handler = list_runs,
     .query = "namespace app status idEnding mine parent limit after"},
    {.method = "GET",
     .pattern = "/v1/app-runs/{id}",
     .handler = get_run,
     .query = "console",
     .flags = MT_ROUTE_WAIT},
    {.method = "GET",
     .pattern = "/v1/app-runs/{id}/console",
     .handler = get_console,
     .query = "after limit",
     .flags = MT_ROUTE_WAIT},
    {.method = "GET",
     .pattern = "/v1/app-runs/{id}/log",
     .handler = get_log,
     .query = "after limit",
     .flags = MT_ROUTE_WAIT},
    {.method = "POST",
     .pattern = "/v1/app-runs/{id}/cancel",
     .handler = cancel_run,
     .flags = MT_ROUTE_WAIT,
     .max_body = MT_BODY_SMALL},
    {.method = "POST",
     .pattern = "/v1/app-runs/{id}/rerun",
     .handler = rerun,
     .flags = MT_ROUTE_WAIT | MT_ROUTE_MAKES,
     .max_body = MT_BODY_SMALL},
    {0},
};
