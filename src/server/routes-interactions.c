// SPDX-License-Identifier: Apache-2.0
// Runs of interactions: start, look, wait, what was asked and answered, cancel.
#include "core/interactions.h"
#include "server/api.h"

#include <stdio.h>

// Of a start: the task that is made of them has 1 MiB at most, and JSON may write a byte as six.
enum { INPUTS_MAX = 8 << 20 };
enum { SAID_MAX = 4 << 20 }; // bytes of what a model says in an attempt
enum { ATTEMPTS_PAGE = 8 << 20 };

// ---- a run as JSON ----

// What it was given and what it gave: not in lists. The answer is told as a text, whatever its
// form: who asked for an object reads it by the schema that he knows.
static void write_values(mt_jw *w, const mt_interaction_run *run)
{
    if (!run->inputs)
        return;
    mt_jw_member_text(w, "output", run->output);
    mt_jw_key(w, "inputs");
    mt_jw_raw(w, mt_str_of(run->inputs));
}

static void write_tokens(mt_jw *w, int64_t in, int64_t out)
{
    if (in < 0)
        mt_jw_member_null(w, "tokensIn");
    else
        mt_jw_member_int(w, "tokensIn", in);
    if (out < 0)
        mt_jw_member_null(w, "tokensOut");
    else
        mt_jw_member_int(w, "tokensOut", out);
}

static void write_run_members(mt_jw *w, const mt_interaction_run *run)
{
    const mt_run_times times = {.created = run->date_created,
                                .ended = run->date_ended,
                                .deadline = run->deadline,
                                .max_duration_ms = run->max_duration_ms};

    mt_jw_member_text(w, "id", run->id);
    mt_jw_member_text(w, "namespace", run->namespace_name);
    mt_jw_member_text(w, "interaction", run->interaction);
    mt_jw_member_int(w, "version", run->version);
    mt_jw_member_text(w, "model", run->model);
    mt_jw_member_text(w, "status", run->status);
    mt_run_end_write(w, run->end_reason, run->limit_ms, run->cancelled_by, run->failure_details);
    write_values(w, run);
    mt_starter_write(w, run->started_by, run->parent_id, run->parent_app_id);
    mt_run_times_write(w, &times);
    mt_jw_member_int(w, "attemptCount", run->attempt_count);
    write_tokens(w, run->tokens_in, run->tokens_out);
    mt_word_write(w, "cost", run->cost);
}

static int reply_run(mt_reply *reply, int status, const mt_interaction_run *run, mt_err **err)
{
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    write_run_members(&w, run);
    mt_jw_end_object(&w);
    reply->status = status;
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

// ---- look, wait ----

static bool has_ended(const mt_interaction_run *run)
{
    return run->end_reason[0] != '\0';
}

// The run, once it has ended or the time is over. Looked at often; all of it is read to be told.
static int reply_when(mt_request *req, mt_reply *reply, const char *id, int status, mt_err **err)
{
    _cleanup_(mt_interaction_run_done) mt_interaction_run run = {0}, whole = {0};

    if (access_interaction_run(req->api->store, &req->user, MT_MAY_SEE, id, &run, err) < 0)
        return -1;
    if (!has_ended(&run) && !req->waited_out)
        return mt_reply_not_yet(reply, mt_arena_strdup(req->arena, run.id));
    if (mt_store_interaction_run_get(req->api->store, &req->user, run.id, &whole, err) < 0)
        return -1;
    return reply_run(reply, status, &whole, err);
}

static int get_run(mt_request *req, mt_reply *reply, mt_err **err)
{
    return reply_when(req, reply, mt_param_dup(req, "id"), 200, err);
}

// ---- list ----

static int read_filter(mt_request *req, mt_namespace *ns, mt_interaction_run_filter *ret,
                       mt_err **err)
{
    bool mine;

    if (mt_query_text(req, "interaction", &ret->interaction, err) < 0 ||
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
    _cleanup_(mt_interaction_run_list_done) mt_interaction_run_list list = {0};
    mt_interaction_run_filter filter = {0};
    mt_page page = {0};
    mt_namespace ns;
    int64_t limit;
    mt_jw w;

    if (mt_query_page(req, &limit, &page.after, err) < 0 || read_filter(req, &ns, &filter, err) < 0)
        return -1;
    page.limit = (size_t)limit;
    if (mt_store_interaction_run_list(req->api->store, &req->user, &filter, page, &list, err) < 0)
        return -1;
    mt_items_begin(reply, &w);
    for (size_t i = 0; i < list.count; i++) {
        mt_jw_begin_object(&w);
        write_run_members(&w, &list.items[i]);
        mt_jw_end_object(&w);
    }
    return mt_items_end(reply, &w, list.next, err);
}

// ---- attempts ----

// Of the attempt that follows those before it in the list.
static int write_messages(mt_jw *w, const char *plan, const mt_interaction_attempt_list *all,
                          size_t before, mt_err **err)
{
    _cleanup_buf_ mt_buf messages = MT_BUF_INIT(MT_REPLY_BODY_MAX);

    if (mt_interaction_messages(plan, all, before, &messages, err) < 0)
        return -1;
    mt_jw_key(w, "messages");
    mt_jw_raw(w, (mt_str){mt_buf_str(&messages), messages.len});
    return 0;
}

static int write_attempt(mt_jw *w, const char *plan, const mt_interaction_attempt_list *all,
                         size_t i, mt_err **err)
{
    const mt_interaction_attempt *a = &all->items[i];

    mt_jw_begin_object(w);
    mt_jw_member_int(w, "number", a->number);
    mt_word_write(w, "outcome", a->outcome);
    mt_jw_key(w, "faults");
    mt_jw_raw(w, mt_str_of(a->faults));
    if (write_messages(w, plan, all, i, err) < 0)
        return -1;
    mt_jw_member_text(w, "answer", a->answer);
    mt_jw_member_text(w, "reasoning", a->reasoning);
    mt_word_write(w, "model", a->model);
    if (a->http_status)
        mt_jw_member_int(w, "httpStatus", a->http_status);
    else
        mt_jw_member_null(w, "httpStatus");
    mt_jw_member_int(w, "requests", a->requests);
    write_tokens(w, a->tokens_in, a->tokens_out);
    mt_jw_member_time(w, "dateStarted", a->date_started);
    mt_jw_member_time(w, "dateEnded", a->date_ended);
    mt_jw_end_object(w);
    return 0;
}

// A page ends where its answers are long: one may be 4 MiB, its reasoning as much, and JSON writes
// a byte as six where it is a control character.
static int read_page(mt_request *req, mt_interaction_attempt_page *ret, mt_err **err)
{
    int64_t limit;
    const char *after;

    if (mt_query_page(req, &limit, &after, err) < 0)
        return -1;
    *ret = (mt_interaction_attempt_page){.limit = (size_t)limit, .bytes = ATTEMPTS_PAGE};
    return mt_query_int(req, "after", 0, INT64_MAX, 0, &ret->after, err);
}

static int list_attempts(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_interaction_attempt_page page;
    char next[24] = "";
    _cleanup_(mt_interaction_attempt_list_done) mt_interaction_attempt_list list = {0};
    _cleanup_(mt_interaction_run_done) mt_interaction_run seen = {0}, run = {0};
    mt_jw w;

    if (read_page(req, &page, err) < 0 ||
        access_interaction_run(req->api->store, &req->user, MT_MAY_SEE, mt_param_dup(req, "id"),
                               &seen, err) < 0 ||
        mt_store_interaction_run_get(req->api->store, &req->user, seen.id, &run, err) < 0 ||
        mt_store_interaction_attempt_list(req->api->store, run.id, page, &list, err) < 0)
        return -1;
    mt_items_begin(reply, &w);
    for (size_t i = list.first; i < list.count; i++)
        if (write_attempt(&w, run.plan, &list, i, err) < 0)
            return -1;
    if (list.more)
        (void)snprintf(next, sizeof(next), "%lld", (long long)list.items[list.count - 1].number);
    return mt_items_end(reply, &w, next, err);
}

// ---- what a model says ----

static int write_text(mt_reply *reply, const mt_interaction_said *at, const mt_buf *text,
                      bool ended, mt_err **err)
{
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_int(&w, "stream", at->stream);
    mt_jw_member_int(&w, "attempt", at->attempt);
    mt_jw_member_int(&w, "from", (int64_t)at->from);
    mt_jw_member_str(&w, "text", (mt_str){mt_buf_str(text), text->len});
    mt_jw_member_int(&w, "next", (int64_t)(at->from + text->len));
    mt_jw_member_bool(&w, "ended", ended);
    mt_jw_end_object(&w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int get_text(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_interaction_run_done) mt_interaction_run run = {0};
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(SAID_MAX);
    mt_interaction_said at = {0};
    int64_t from, stream;

    if (mt_query_int(req, "stream", 0, INT64_MAX, 0, &stream, err) < 0 ||
        mt_query_int(req, "from", 0, SAID_MAX, 0, &from, err) < 0 ||
        access_interaction_run(req->api->store, &req->user, MT_MAY_SEE, mt_param_dup(req, "id"),
                               &run, err) < 0)
        return -1;
    at.stream = stream;
    at.from = (size_t)from;
    if (!has_ended(&run) &&
        mt_interactions_text(req->api->interactions, run.id, &at, &text, err) < 0)
        return -1;
    if (!has_ended(&run) && text.len == 0 && at.stream == stream && !req->waited_out)
        return mt_reply_no_line_yet(reply, mt_arena_strdup(req->arena, run.id));
    return write_text(reply, &at, &text, has_ended(&run), err);
}

// ---- start ----

// A start being made: what is looked up and checked before anything is stored.
typedef struct start {
    mt_namespace ns;
    mt_resource interaction;
    const mt_json *inputs; // NULL: none
} start;

static void start_done(start *s)
{
    mt_resource_done(&s->interaction);
}

static int read_start(mt_request *req, start *s, mt_err **err)
{
    const char *name = mt_param_dup(req, "interaction");
    int64_t version;

    if (!name)
        return mt_fail_oom(err);
    if (mt_body_start(req, &version, &s->inputs, err) < 0 ||
        mt_request_namespace(req, MT_MAY_START, &s->ns, err) < 0)
        return -1;
    return mt_store_resource_get(req->api->store, s->ns.id, MT_RESOURCE_INTERACTION, name, version,
                                 &s->interaction, err);
}

static int store_and_start(mt_request *req, const start *s, mt_interaction_run *ret, mt_err **err)
{
    char digest[MT_REQUEST_DIGEST];
    int r = 1;

    mt_request_digest(req, digest);
    // A repeat of a start that was made is answered even when there is no room for another.
    if (req->idempotency_key)
        r = mt_store_interaction_run_by_idempotency(req->api->store, &req->user,
                                                    req->idempotency_key, digest, ret, err);
    if (r < 1)
        return r == 0 ? 1 : -1;
    return mt_interactions_start(req->api->interactions,
                                 &(mt_interaction_start){.ns = &s->ns,
                                                         .interaction = &s->interaction,
                                                         .user = &req->user,
                                                         .id = req->new_id,
                                                         .inputs = s->inputs,
                                                         .parent_id = req->run_id,
                                                         .parent_app_id = req->app_run_id,
                                                         .idempotency_key = req->idempotency_key,
                                                         .request_digest = digest},
                                 ret, err);
}

static int start_and_answer(mt_request *req, const start *s, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_interaction_run_done) mt_interaction_run run = {0};
    int r = store_and_start(req, s, &run, err);

    if (r < 0)
        return -1;
    req->started_status = r == 1 ? 200 : 201;
    req->started = mt_arena_strdup(req->arena, run.id);
    if (!req->started)
        return mt_fail_oom(err);
    if (!has_ended(&run) && !req->waited_out)
        return mt_reply_not_yet(reply, req->started);
    return reply_run(reply, req->started_status, &run, err);
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

// ---- cancel ----

static int cancel_run(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_interaction_run_done) mt_interaction_run run = {0};
    char *id = mt_param_dup(req, "id");

    // Asked in the first round; the further ones only look.
    if (!req->started) {
        if (mt_body_nothing(req, err) < 0 ||
            access_interaction_run(req->api->store, &req->user, MT_MAY_TERMINATE, id, &run, err) <
                0 ||
            (!has_ended(&run) && mt_interactions_cancel(req->api->interactions, run.id,
                                                        mt_request_by(req), false, err) < 0))
            return -1;
        req->started = id;
    }
    return reply_when(req, reply, id, 200, err);
}

const mt_route mt_routes_interactions[] = {
    {.method = "POST",
     .pattern = "/v1/namespaces/{ns}/interactions/{interaction}/runs",
     .handler = start_run,
     .flags = MT_ROUTE_WAIT | MT_ROUTE_MAKES,
     .max_body = INPUTS_MAX},
    {.method = "GET",
     .pattern = "/v1/interaction-runs",
     .handler = list_runs,
     .query = "namespace interaction status idEnding mine parent limit after"},
    {.method = "GET",
     .pattern = "/v1/interaction-runs/{id}",
     .handler = get_run,
     .flags = MT_ROUTE_WAIT},
    {.method = "GET",
     .pattern = "/v1/interaction-runs/{id}/attempts",
     .handler = list_attempts,
     .query = "limit after"},
    {.method = "GET",
     .pattern = "/v1/interaction-runs/{id}/text",
     .handler = get_text,
     .query = "stream from",
     .flags = MT_ROUTE_WAIT},
    {.method = "POST",
     .pattern = "/v1/interaction-runs/{id}/cancel",
     .handler = cancel_run,
     .flags = MT_ROUTE_WAIT,
     .max_body = MT_BODY_SMALL},
    {0},
};
