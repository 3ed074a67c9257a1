// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "core/runs.h"
#include "server/callers.h"
#include "server/event-streams.h"
#include "server/follow.h"
#include "server/router.h"

#include <errno.h>
#include <stdio.h>

// VALUES_MAX: of one body. A value that takes two bytes there takes some eighty here.
enum { VALUES_MAX = 256 << 10 };
enum { CONNECTIONS = 4096, BODIES = 256 << 20 }; // of the host's doors
// What one user may have under way of what there is; fewer requests than connections of one
// address.
static const mt_callers_limits HOST_SHARES = {CONNECTIONS, 1536, BODIES, 96 << 20};
static const mt_callers_limits RUN_SHARES = {MT_DOORS_CONNECTIONS, 512, MT_DOORS_BODIES, 48 << 20};
enum { SMALL_BODY = MT_BODY_SMALL, TOPICS = 1024, WAIT_MAX_SECONDS = 60, REQUEST_ARENA = 64 << 20 };
enum { SYNC_MS = 2000 }; // for the disk, before an end is told of that it may not have

typedef struct job {
    mt_server *server;
    struct job *prev, *next; // all of the server's
    mt_http_server *web;     // whose exchange it is
    uint64_t exchange;
    mt_http_request *http; // a reference
    mt_callers *callers;   // at these doors
    mt_caller_stay stay;   // among them, once it is known whose it is
    mt_door door;          // a copy: that of a run goes with the run
    mt_http_peer peer;
    const mt_route *route;
    mt_request req;
    mt_reply reply;
    mt_err *err;
    bool signed_in;
    bool admit;      // this round is sign-in and `begin` alone: the body comes after it
    bool whole;      // an empty body: the request was complete while it was being admitted
    bool running;    // on a worker: the loop does not touch req, reply, err
    bool gone;       // the client left: free when the worker is done
    int write_error; // of an upload
    int64_t written;
    // Waiting.
    const char *topic; // NULL: does not wait
    bool fired;
    bool hears_lines; // what it waits for may be lines that are printed
    bool held;        // the answer is there, and tells of an end that the disk may not have yet
    mt_timer *timer;
    struct job *next_waiting;
    mt_follow *follow; // the answer, where it goes on
} job;

struct mt_server {
    mt_loop *loop;
    mt_pool *pool;
    mt_api *api;
    mt_http_server *http;
    mt_doors *doors;
    mt_app_door *app_door;
    mt_callers *callers, *run_callers; // by the host's doors, and by those of runs and programs
    unsigned to_stop;                  // of the two that have not
    void (*stopped)(void *data);
    void *stopped_data;
    job *jobs;
    job *waiting[TOPICS];
};

// ---- waiting ----

static size_t topic_bucket(const char *topic)
{
    return mt_str_hash(mt_str_of(topic)) % TOPICS;
}

static void look_again(job *j);
static void answer_held(job *j);

static void look_at_clock(job *j)
{
    j->req.waited_out = mt_timer_left_ms(j->timer) == 0;
}

static void on_wait_over(mt_timer *timer, void *data)
{
    job *j = data;

    if (j->held) {
        answer_held(j);
        return;
    }
    j->fired = true;
    // A job on a worker is told by `fired`; what the handler reads is set between two rounds alone.
    if (!j->running) {
        look_at_clock(j);
        look_again(j);
    }
}

static void wait_on(job *j, const char *topic)
{
    size_t b = topic_bucket(topic);

    j->topic = topic;
    j->next_waiting = j->server->waiting[b];
    j->server->waiting[b] = j;
}

static int start_waiting(job *j, int64_t seconds)
{
    bool of_command = mt_param(&j->req, "command").len > 0;
    char *topic = j->route->flags & MT_ROUTE_MAKES
                      ? j->req.new_id
                      : mt_param_dup(&j->req, of_command ? "command" : "id");

    j->timer = mt_timer_new(j->server->loop, on_wait_over, j);
    if (!topic || !j->timer)
        return -ENOMEM;
    mt_timer_in_ms(j->timer, seconds * 1000);
    j->req.waited_out = false;
    if (topic[0])
        wait_on(j, topic);
    return 0;
}

static void leave_topic(job *j)
{
    if (!j->topic)
        return;
    for (job **at = &j->server->waiting[topic_bucket(j->topic)]; *at; at = &(*at)->next_waiting) {
        if (*at == j) {
            *at = j->next_waiting;
            break;
        }
    }
    j->topic = NULL;
}

static bool may_be_told(const job *j)
{
    return !j->reply.run_id_ ||
           mt_runs_may_tell(j->server->api->runs, j->reply.run_id_, j->reply.topic_);
}

// The answer waits for the disk. False without memory for the clock: then it does not.
static bool hold(job *j)
{
    if (!j->timer)
        j->timer = mt_timer_new(j->server->loop, on_wait_over, j);
    if (!j->timer)
        return false;
    mt_timer_in_ms(j->timer, SYNC_MS);
    leave_topic(j);
    wait_on(j, j->reply.topic_);
    j->held = true;
    return true;
}

static void stop_waiting(job *j)
{
    mt_timer_free(j->timer);
    j->timer = NULL;
    leave_topic(j);
}

struct announcement {
    mt_server *server;
    char topic[MT_ID_TEXT];
    mt_news news;
};

static void announced(void *data)
{
    struct announcement *a = data;
    bool unsynced = a->news == MT_NEWS_ALL && mt_runs_hold_news(a->server->api->runs, a->topic);
    job *next;

    for (job *j = a->server->waiting[topic_bucket(a->topic)]; j; j = next) {
        next = j->next_waiting;
        if (strcmp(j->topic, a->topic) != 0)
            continue;
        if (j->follow) {
            if (!unsynced)
                mt_follow_wake(j->follow);
            continue;
        }
        if (a->news == MT_NEWS_BEGUN)
            continue;
        // One on a worker has not said yet what it hears.
        if (a->news == MT_NEWS_PRINTED && !j->hears_lines && !j->running)
            continue;
        if (j->held) {
            if (may_be_told(j))
                answer_held(j);
            continue;
        }
        j->fired = true;
        if (!j->running)
            look_again(j);
    }
    if (a->news != MT_NEWS_BEGUN && !unsynced)
        mt_event_streams_news(a->server->api->events, a->topic);
    free(a);
}

void mt_announce(const mt_api *api, const char *topic, mt_news news)
{
    struct announcement *a = calloc(1, sizeof(*a));

    // Without memory the waiters wake when their time is over.
    if (!a)
        return;
    a->server = api->server;
    a->news = news;
    (void)snprintf(a->topic, sizeof(a->topic), "%s", topic);
    if (mt_loop_post(api->server->loop, announced, a) < 0)
        free(a);
}

// ---- jobs ----

static void reply_done(mt_reply *reply)
{
    mt_buf_done(&reply->body);
    for (size_t i = 0; i < reply->header_count; i++)
        free(reply->headers[i].value);
    mt_close_fd(&reply->fd);
}

static void reply_init(mt_reply *reply)
{
    *reply = (mt_reply){.status = 200, .fd = -1, .body.max = MT_REPLY_BODY_MAX};
}

static void job_free(job *j)
{
    if (j->prev)
        j->prev->next = j->next;
    else
        j->server->jobs = j->next;
    if (j->next)
        j->next->prev = j->prev;
    stop_waiting(j);
    mt_follow_free(j->follow);
    mt_callers_leave(&j->stay);
    if (j->req.taker)
        j->req.taker->ops->free(j->req.taker);
    if (j->req.upload_abort)
        j->req.upload_abort(j->req.upload_data);
    reply_done(&j->reply);
    mt_err_free(j->err);
    mt_json_unref(j->req.body);
    mt_http_request_unref(j->http);
    mt_arena_free(j->req.arena);
    free(j);
}

static int run_handler(job *j)
{
    mt_str body = mt_http_request_body(j->http);

    if (!j->route->begin && body.len && !j->req.body) {
        mt_json_limits limits = MT_JSON_LIMITS_INIT;

        limits.bytes = j->route->max_body;
        limits.values = VALUES_MAX;
        if (mt_json_parse(body.data, body.len, &limits, &j->req.body, &j->err) < 0)
            return -1;
    }
    return j->route->handler(&j->req, &j->reply, &j->err);
}

static void on_worked(void *data);

static int sign_in(job *j)
{
    if (mt_auth_user(&j->door, j->http, &j->peer, &j->req, &j->err) < 0 ||
        mt_callers_enter(j->callers, &j->req.user, &j->stay, &j->err) < 0)
        return -1;
    j->signed_in = true;
    return 0;
}

static void round_of(job *j)
{
    int r = 0;

    if (!j->signed_in && !(j->route->flags & MT_ROUTE_OPEN))
        r = sign_in(j);
    if (r == 0 && j->admit)
        r = j->route->begin ? j->route->begin(&j->req, &j->reply, &j->err) : 0;
    else if (r == 0)
        r = run_handler(j);
    if (r < 0 && !j->err)
        (void)mt_fail(&j->err, MT_E_INTERNAL, "the request failed without a reason");
}

// On a worker.
static void work(void *data)
{
    job *j = data;

    round_of(j);
    // Cannot be refused: without this the exchange would never be answered.
    while (mt_loop_post(j->server->loop, on_worked, j) == -ENOMEM)
        (void)usleep(1000);
}

// A further round of a request that waits: it only looks again, so it needs no worker.
static void look_again(job *j)
{
    j->running = true;
    j->fired = false;
    round_of(j);
    on_worked(j);
}

// Who asks, before that is known for sure: a run, else by the key that is given, else by the peer.
static mt_lane lane_of(const job *j)
{
    mt_str key;

    if (j->door.kind == MT_DOOR_RUN || j->door.kind == MT_DOOR_APP)
        return (mt_lane){.number = mt_str_hash(mt_str_of(j->door.run_id)), .of_run = true};
    if (!mt_http_header(j->http, "Authorization", &key))
        key = j->peer.is_unix ? (mt_str){(const char *)&j->peer.uid, sizeof(j->peer.uid)}
                              : mt_str_of(j->peer.address);
    return (mt_lane){.number = mt_str_hash(key)};
}

static void submit(job *j)
{
    mt_pool *pool = j->server->pool; // NULL when the server is taken down
    mt_http_x *x;

    j->running = true;
    j->fired = false;
    if (pool && mt_pool_run(pool, lane_of(j), work, j) == 0)
        return;
    j->running = false;
    x = mt_http_find(j->web, j->exchange);
    if (x && pool)
        (void)mt_http_respond_problem(x, MT_E_OOM, "the server is short of memory");
    else if (x)
        (void)mt_http_respond_problem(x, MT_E_UNAVAILABLE, "the server stops");
}

// ---- answers ----

static void add_problem(const mt_err *err, mt_buf *body)
{
    mt_code code = mt_err_code(err);
    int status = mt_code_http_status(code);
    mt_jw w;

    mt_jw_init(&w, body, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_text(&w, "type", "about:blank");
    mt_jw_member_text(&w, "title", mt_http_reason(status));
    mt_jw_member_int(&w, "status", status);
    mt_jw_member_text(&w, "code", mt_code_name(code));
    mt_jw_member_text(&w, "detail", mt_err_sentence(err));
    if (mt_err_field(err))
        mt_jw_member_text(&w, "field", mt_err_field(err));
    mt_jw_member_text(&w, "help", mt_code_help(code));
    mt_jw_end_object(&w);
}

static void answer_error(mt_http_x *x, const mt_err *err, const char *allow)
{
    _cleanup_buf_ mt_buf body = MT_BUF_INIT(65536);
    mt_code code = mt_err_code(err);
    const mt_http_header_line headers[] = {
        {"Content-Type", "application/problem+json"},
        {"Allow", allow},
        {"WWW-Authenticate", code == MT_E_UNAUTHENTICATED ? "Bearer" : NULL},
        {"Retry-After", code == MT_E_CAPACITY_EXCEEDED || code == MT_E_RATE_LIMITED ? "1" : NULL},
        {"Cache-Control", "no-store"},
    };

    add_problem(err, &body);
    if (code == MT_E_INTERNAL || code == MT_E_IO)
        mt_log(MT_LOG_ERROR, "a request failed", {"error", mt_err_sentence(err)});
    (void)mt_http_respond(x, mt_code_http_status(code), headers, MT_ARRAY_SIZE(headers),
                          mt_buf_str(&body), body.len);
}

void mt_answer_error(mt_http_x *x, const mt_err *err)
{
    answer_error(x, err, NULL);
}

// An answer that goes on until what it tells of has ended.
static void answer_on(mt_http_x *x, job *j, const mt_http_header_line *headers, size_t n)
{
    const mt_follow_spec *spec = &j->reply.follow;

    j->follow = mt_follow_new(j->server->loop, j->server->api, j->web, x, spec);
    if (!j->follow) {
        (void)mt_http_respond_problem(x, MT_E_OOM, "the server is short of memory");
        return;
    }
    leave_topic(j);
    wait_on(j, spec->command_id);
    if (mt_http_begin(x, j->reply.status, headers, n) < 0)
        (void)mt_http_respond_problem(x, MT_E_INTERNAL, "the answer could not be written");
    else
        mt_follow_wake(j->follow);
}

static void answer(mt_http_x *x, job *j)
{
    mt_http_header_line headers[MT_REPLY_HEADERS_MAX + 2];
    mt_reply *reply = &j->reply;
    size_t n = 0;

    if (j->err) {
        answer_error(x, j->err, NULL);
        return;
    }
    if (j->req.taker) {
        j->req.taker->ops->begin(j->req.taker, x); // j may be gone
        return;
    }
    if (reply->body.failed) {
        (void)mt_http_respond_problem(x, MT_E_OOM, "the answer does not fit in memory");
        return;
    }
    if (reply->body.len || reply->fd >= 0 || reply->follow.command_id)
        headers[n++] = (mt_http_header_line){
            "Content-Type", reply->content_type ? reply->content_type : "application/json"};
    headers[n++] = (mt_http_header_line){"Cache-Control", "no-store"};
    for (size_t i = 0; i < reply->header_count; i++)
        headers[n++] = (mt_http_header_line){reply->headers[i].name, reply->headers[i].value};
    if (reply->follow.command_id) {
        answer_on(x, j, headers, n);
        return;
    }
    if (reply->fd >= 0)
        (void)mt_http_respond_fd(x, reply->status, headers, n, MT_TAKE_FD(reply->fd),
                                 (off_t)reply->fd_offset, reply->fd_length);
    else
        (void)mt_http_respond(x, reply->status, headers, n, mt_buf_str(&reply->body),
                              reply->body.len);
    if (!mt_http_answered(x))
        (void)mt_http_respond_problem(x, MT_E_INTERNAL, "the answer could not be written");
}

static void answer_held(job *j)
{
    mt_http_x *x = mt_http_find(j->web, j->exchange);

    stop_waiting(j);
    j->held = false;
    if (x)
        answer(x, j);
}

// The whole request is there and its sender may send it.
static void handle(mt_http_x *x, job *j)
{
    _cleanup_err_ mt_err *err = NULL;
    int64_t seconds = 0;

    if (j->req.taker) {
        j->req.taker->ops->whole(j->req.taker, x);
        return;
    }
    if ((j->route->flags & MT_ROUTE_WAIT) &&
        mt_query_int(&j->req, "wait", 0, WAIT_MAX_SECONDS, 0, &seconds, &err) < 0) {
        answer_error(x, err, NULL);
        return;
    }
    if (j->route->flags & MT_ROUTE_MAKES)
        mt_id_new(j->req.new_id);
    if (seconds > 0 && start_waiting(j, seconds) < 0) {
        (void)mt_http_respond_problem(x, MT_E_OOM, "the server is short of memory");
        return;
    }
    submit(j);
}

// What goes on for long by way of a run's sign-in was let in while the run lived; as long as it is
// on a worker, mt_server_run_ends() passes it over.
static void check_run_lives(job *j)
{
    bool goes_on = j->reply.not_yet || j->reply.follow.command_id || j->req.taker || j->admit;
    char ns[MT_STORE_NAME];
    mt_user user;

    if (goes_on && !j->err && j->req.run_id)
        (void)mt_store_run_sign_in(j->server->api->store, j->req.run_id, &user, ns, &j->err);
}

// Its sender may send it: the body is let in.
static void admitted(mt_http_x *x, job *j)
{
    uint64_t id = j->exchange;
    mt_http_server *http = j->web;

    j->admit = false;
    if (j->req.taker)
        j->req.taker->ops->begin(j->req.taker, x); // it lets the body in by itself
    else
        mt_http_resume(x);
    if (mt_http_find(http, id) && j->whole && !mt_http_answered(x))
        handle(x, j);
}

// On the loop: a worker is done with j.
static void on_worked(void *data)
{
    job *j = data;
    mt_http_x *x = j->gone ? NULL : mt_http_find(j->web, j->exchange);

    j->running = false;
    if (!x || j->gone) {
        job_free(j);
        return;
    }
    check_run_lives(j);
    if (j->admit && !j->err) {
        admitted(x, j);
        return;
    }
    if (!j->err && !may_be_told(j) && hold(j))
        return;
    if (j->reply.not_yet && !j->err) {
        bool again = j->fired;

        j->hears_lines = j->reply.hears_lines_;
        // What it waits for may have happened before anybody listened: look once more.
        if (j->reply.topic_ && (!j->topic || strcmp(j->topic, j->reply.topic_) != 0)) {
            leave_topic(j);
            wait_on(j, j->reply.topic_);
            again = true;
        }
        reply_done(&j->reply);
        reply_init(&j->reply);
        // Something happened, or the time was over, while the handler looked.
        if (again) {
            if (j->timer)
                look_at_clock(j);
            look_again(j);
        }
        return;
    }
    // The handler took over the upload: what is left is not aborted behind its back.
    answer(x, j);
}

// ---- the exchange ----

static void on_piece(mt_http_x *x, const void *piece, size_t len, void *data)
{
    job *j = data;
    const char *p = piece;
    _cleanup_err_ mt_err *err = NULL;

    if (j->req.taker) {
        j->req.taker->ops->piece(j->req.taker, x, piece, len);
        return;
    }
    if (j->write_error == 0 && j->req.upload_claim)
        j->write_error = j->req.upload_claim(j->req.upload_data, (uint64_t)j->written + len);
    while (len > 0 && j->write_error == 0) {
        ssize_t n = write(j->req.upload_fd, p, len);

        if (n < 0 && errno != EINTR)
            j->write_error = errno;
        if (n > 0) {
            p += n;
            len -= (size_t)n;
            j->written += n;
        }
    }
    if (j->write_error && !mt_http_answered(x)) {
        (void)mt_fail_errno(&err, j->write_error, "cannot store the upload after %lld bytes",
                            (long long)j->written);
        answer_error(x, err, NULL);
    }
}

static int copy_query(job *j, mt_err **err)
{
    size_t count = mt_http_query_count(j->http);
    const char *names = j->route->query ? j->route->query : "";

    j->req.query_ = mt_arena_alloc(j->req.arena, (count + 1) * sizeof(*j->req.query_));
    if (!j->req.query_)
        return mt_fail_oom(err);
    for (size_t i = 0; i < count; i++) {
        mt_str name = mt_http_query_name(j->http, i);
        bool known = false;

        for (const char *p = names; *p; p += strcspn(p, " "), p += strspn(p, " "))
            known = known || (strcspn(p, " ") == name.len && memcmp(p, name.data, name.len) == 0);
        if (!known && !((j->route->flags & MT_ROUTE_WAIT) && mt_str_eq(name, "wait")))
            return mt_fail_field(err, MT_E_BAD_FIELD, "query",
                                 "no query parameter '%.*s' here; there are: %s%s",
                                 (int)MT_MIN(name.len, (size_t)64), name.data, names,
                                 j->route->flags & MT_ROUTE_WAIT ? " wait" : "");
        for (size_t k = 0; k < i; k++)
            if (j->req.query_[k].name.len == name.len &&
                memcmp(j->req.query_[k].name.data, name.data, name.len) == 0)
                return mt_fail_field(err, MT_E_BAD_FIELD, "query",
                                     "the query parameter '%.*s' is given twice", (int)name.len,
                                     name.data);
        j->req.query_[i].name = name;
        j->req.query_[i].value = mt_http_query_value(j->http, i);
    }
    j->req.query_count_ = count;
    return 0;
}

static int copy_header(job *j, const char *name, const char **ret, mt_err **err)
{
    mt_str value;

    if (!mt_http_header(j->http, name, &value))
        return 0;
    if (mt_http_header_count(j->http, name) != 1)
        return mt_fail(err, MT_E_BAD_REQUEST, "the header %s is given twice", name);
    *ret = mt_arena_strndup(j->req.arena, value.data, value.len);
    return *ret ? 0 : mt_fail_oom(err);
}

static int check_body(job *j, mt_err **err)
{
    uint64_t length;
    bool known = mt_http_request_length(j->http, &length);
    mt_str type;

    j->req.upload_length = known ? (int64_t)length : -1;
    if (!mt_http_request_has_body(j->http) || j->route->begin)
        return 0;
    if (!j->route->max_body)
        return mt_fail(err, MT_E_BAD_REQUEST, "%s %s takes no body", j->route->method, j->req.path);
    if (known && length > j->route->max_body)
        return mt_fail(err, MT_E_TOO_LARGE, "the body may have at most %zu bytes here",
                       j->route->max_body);
    if (mt_http_header(j->http, "Content-Type", &type) && type.len &&
        strncasecmp(type.data, "application/json", 16) != 0)
        return mt_fail(err, MT_E_UNSUPPORTED_MEDIA, "send the body as application/json");
    return 0;
}

static int prepare(job *j, char **ret_allow, mt_err **err)
{
    mt_str path = mt_http_request_raw_path(j->http);
    const char *key = NULL;

    j->req.arena = mt_arena_new(REQUEST_ARENA);
    if (!j->req.arena)
        return mt_fail_oom(err);
    j->req.method = mt_http_method_name(mt_http_request_method(j->http));
    j->req.path = mt_arena_strndup(j->req.arena, path.data, path.len);
    j->req.peer = j->peer.is_unix ? mt_arena_printf(j->req.arena, "uid %u", (unsigned)j->peer.uid)
                                  : mt_arena_strdup(j->req.arena, j->peer.address);
    if (!j->req.path || !j->req.peer)
        return mt_fail_oom(err);
    if (mt_auth_check_host(&j->door, j->http, err) < 0 ||
        mt_route_find(j->req.method, j->req.path, j->req.arena, &j->route, &j->req, ret_allow,
                      err) < 0 ||
        copy_query(j, err) < 0 || check_body(j, err) < 0 ||
        copy_header(j, "Range", &j->req.range, err) < 0 ||
        copy_header(j, "If-None-Match", &j->req.if_none_match, err) < 0 ||
        copy_header(j, "Last-Event-ID", &j->req.last_event_id, err) < 0 ||
        copy_header(j, "Idempotency-Key", &key, err) < 0)
        return -1;
    if (j->req.last_event_id && !*j->req.last_event_id)
        j->req.last_event_id = NULL;
    // A range of another version of the file would be mixed into the client's: give it the whole.
    if (mt_http_header_count(j->http, "If-Range") > 0)
        j->req.range = NULL;
    if (key && (!*key || strlen(key) > 255))
        return mt_fail(err, MT_E_BAD_REQUEST, "Idempotency-Key must have 1 to 255 characters");
    if (key && mt_starts_with(key, "app-run ") && j->door.kind != MT_DOOR_APP)
        return mt_fail(err, MT_E_BAD_REQUEST,
                       "an Idempotency-Key that begins with 'app-run ' is for programs of apps");
    j->req.idempotency_key = key;
    return 0;
}

static job *job_new(mt_http_x *x, mt_server *server)
{
    job *j = calloc(1, sizeof(*j));
    mt_str app_run;

    if (!j)
        return NULL;
    j->server = server;
    j->next = server->jobs;
    if (j->next)
        j->next->prev = j;
    server->jobs = j;
    j->web = mt_http_server_of(x);
    j->exchange = mt_http_id(x);
    j->http = mt_http_request_ref(mt_http_req(x));
    j->door = *(const mt_door *)mt_http_tag(x);
    if (j->door.kind == MT_DOOR_APP && mt_http_header(j->http, MT_APP_RUN_HEADER, &app_run))
        (void)snprintf(j->door.run_id, sizeof(j->door.run_id), "%.*s", (int)app_run.len,
                       app_run.data);
    j->callers = j->web == server->http ? server->callers : server->run_callers;
    j->peer = *mt_http_peer_of(x);
    j->req.api = server->api;
    j->req.upload_fd = -1;
    j->req.waited_out = true;
    reply_init(&j->reply);
    return j;
}

static void on_head(mt_http_x *x, void *data)
{
    job *j = job_new(x, data);
    _cleanup_err_ mt_err *err = NULL;
    char *allow = NULL;

    if (!j) {
        (void)mt_http_respond_problem(x, MT_E_OOM, "the server is short of memory");
        return;
    }
    mt_http_set_data(x, j);
    if (prepare(j, &allow, &err) < 0) {
        answer_error(x, err, allow);
        return;
    }
    if (!mt_http_request_has_body(j->http) && !j->route->begin)
        return;
    if (j->route->begin)
        mt_http_stream(x, UINT64_MAX, on_piece, j);
    else
        mt_http_collect(x, j->route->max_body);
    // A body that is not small waits until its sender is known.
    if (!j->route->begin && j->req.upload_length >= 0 && j->req.upload_length <= SMALL_BODY)
        return;
    mt_http_pause(x);
    j->admit = true;
    submit(j);
}

static bool on_collect(mt_http_x *x, size_t len, void *data)
{
    job *j = mt_http_data(x);
    _cleanup_err_ mt_err *err = NULL;

    if (!j || mt_callers_body(&j->stay, len, &err) == 0)
        return true;
    answer_error(x, err, NULL);
    return false;
}

static void on_request(mt_http_x *x, void *data)
{
    job *j = mt_http_data(x);

    if (!j || mt_http_answered(x))
        return;
    // Pausing holds a body back, but not the end of an empty one.
    if (j->admit)
        j->whole = true;
    else
        handle(x, j);
}

static void on_end(mt_http_x *x, void *data)
{
    job *j = mt_http_data(x);

    if (!j)
        return;
    if (j->running)
        j->gone = true;
    else
        job_free(j);
}

int mt_server_new(mt_loop *loop, mt_api *api, mt_server **ret, mt_err **err)
{
    mt_server *server = calloc(1, sizeof(*server));
    const mt_http_limits limits = {
        .connections = CONNECTIONS, .collect_max = MT_BODY_LARGE, .collect_total = BODIES};
    const mt_http_handler handler = {.on_head = on_head,
                                     .on_collect = on_collect,
                                     .on_request = on_request,
                                     .on_end = on_end,
                                     .data = server};

    if (!server)
        return mt_fail_oom(err);
    server->loop = loop;
    server->api = api;
    server->callers = mt_callers_new(&HOST_SHARES);
    server->run_callers = mt_callers_new(&RUN_SHARES);
    server->http = mt_http_server_new(loop, &limits, &handler);
    if (!server->callers || !server->run_callers || !server->http)
        (void)mt_fail_oom(err);
    else if (mt_doors_new(loop, &handler, &server->doors, err) == 0 &&
             mt_app_door_new(loop, &handler, &server->app_door, err) == 0) {
        api->server = server;
        *ret = server;
        return 0;
    }
    mt_server_free(server);
    return -1;
}

int mt_server_start(mt_server *server, size_t workers, mt_err **err)
{
    return mt_pool_new(workers, 0, &server->pool, err);
}

void mt_server_free(mt_server *server)
{
    if (!server)
        return;
    // First the workers: their jobs post to the loop, which runs once more to take them in.
    mt_pool_free(server->pool);
    server->pool = NULL; // a program's last request may still be on its way in
    mt_doors_free(MT_TAKE_PTR(server->doors)); // runs go on, and may still tell of doors
    mt_http_server_free(server->http);
    (void)mt_loop_once(server->loop, 0);
    mt_app_door_free(server->app_door);
    mt_callers_free(server->callers);
    mt_callers_free(server->run_callers);
    free(server);
}

mt_http_server *mt_server_http(mt_server *server)
{
    return server->http;
}

mt_doors *mt_server_doors(mt_server *server)
{
    return server->doors;
}

mt_app_door *mt_server_app_door(mt_server *server)
{
    return server->app_door;
}

void mt_server_run_ends(mt_server *server, const char *run_id)
{
    mt_doors_close(server->doors, run_id);
    for (job *j = server->jobs, *next; j; j = next) {
        mt_http_x *x;

        next = j->next;
        // What is on a worker is asked when it comes back.
        if (j->running || !j->req.run_id || strcmp(j->req.run_id, run_id) != 0)
            continue;
        x = mt_http_find(j->web, j->exchange);
        if (x && !mt_event_stream_run_ended(j->req.taker))
            mt_http_abort(x);
    }
}

static void one_stopped(void *data)
{
    mt_server *server = data;

    if (--server->to_stop == 0)
        server->stopped(server->stopped_data);
}

// Who waits for news is told how it stands, as when his time is over: he asks the next server.
static void end_waits(mt_server *server)
{
    for (job *j = server->jobs; j; j = j->next)
        if (j->timer && !j->held && !j->follow)
            mt_timer_in_ms(j->timer, 0);
}

void mt_server_stop(mt_server *server, int64_t within_ms, void (*done)(void *data), void *data)
{
    if (!server->stopped)
        server->to_stop = 2;
    server->stopped = done;
    server->stopped_data = data;
    end_waits(server);
    mt_event_streams_stop(server->api->events);
    mt_doors_stop(server->doors, within_ms, one_stopped, server);
    mt_http_server_stop(server->http, within_ms, one_stopped, server);
}
