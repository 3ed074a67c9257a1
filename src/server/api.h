// SPDX-License-Identifier: Apache-2.0
// What a route sees: the request (already authenticated, its body collected and parsed), the reply
// to fill, and the server's parts. Handlers run on worker threads, straight-line and blocking; they
// never see a connection. Waiting (?wait=) is done by the dispatcher: a handler that says "not yet"
// is called again when its topic is announced or the time is over, no thread held meanwhile. Those
// further rounds run on the loop: they read and answer, no more.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "core/access.h"
#include "mtr/kinds.h"
#include "store/store.h"
#include "json/json.h"

typedef struct mt_apps mt_apps;                 // core/apps.h
typedef struct mt_interactions mt_interactions; // core/interactions.h
typedef struct mt_runs mt_runs;                 // core/runs.h
typedef struct mt_shells mt_shells;             // server/shells.h
typedef struct mt_http_x mt_http_x;             // http/server.h
typedef struct mt_server mt_server;
typedef struct mt_event_streams mt_event_streams; // server/event-streams.h

// The server's parts, made once at start, read-only for handlers.
typedef struct mt_api {
    mt_store *store;
    mt_runs *runs;
    mt_apps *apps;
    mt_interactions *interactions;
    int vfs_dirfd;        // STATE/vfs
    int runs_dirfd;       // STATE/runs: journals, read only
    uint32_t service_uid; // S: owner of what the server writes into a VFS
    uint32_t service_gid;
    const char *instance;
    const char *state;     // the folder, for people
    mt_mtr_server limits;  // what a capsule may ask for, what it gets unasked, the default image
    int64_t max_live_runs; // of the whole server
    int64_t vfs_limit;     // bytes of a new file system
    mt_server *server;     // for mt_announce()
    mt_shells *shells;     // the loop's thread alone
    mt_event_streams *events;
    int64_t event_heartbeat_s; // a stream of events says something at least so often
    int64_t event_patience_s;  // its client takes something at least so often
} mt_api;

// Answers an exchange by itself, on the loop, where a worker and a whole answer will not do. A
// handler (or the `begin` of an upload) that has checked everything makes one and sets req->taker.
typedef struct mt_taker mt_taker;
typedef struct mt_taker_ops {
    // The exchange is its own from now on. An upload's body is paused: mt_http_resume() lets it in.
    void (*begin)(mt_taker *t, mt_http_x *x);
    void (*piece)(mt_taker *t, mt_http_x *x, const void *data, size_t len); // of the body
    void (*whole)(mt_taker *t, mt_http_x *x);                               // all of the body came
    void (*free)(mt_taker *t); // the exchange is over, or never was begun
} mt_taker_ops;
struct mt_taker {
    const mt_taker_ops *ops;
};
// For takers: an error as every handler's is told.
void mt_answer_error(mt_http_x *x, const mt_err *err);

enum { MT_PARAMS_MAX = 4, MT_REQUEST_DIGEST = 65 };

typedef struct mt_request {
    const mt_api *api;
    mt_arena *arena; // dies with the request
    const char *method;
    const char *path;
    struct {
        const char *name;
        mt_str value;
    } params_[MT_PARAMS_MAX];
    struct mt_query_pair {
        mt_str name, value;
    } * query_;
    size_t query_count_;
    mt_user user;                // who asks; undefined on MT_ROUTE_OPEN routes
    const char *run_id;          // the run by way of whose sign-in this is done, or NULL
    const char *app_run_id;      // the app run whose program does it, or NULL
    const char *run_namespace;   // of either, when `via` is "run" or "app": the default there
    const char *via;             // "key", "socket", "run" or "app"
    const char *peer;            // for logs: "uid 0", "127.0.0.1"
    mt_json *body;               // parsed JSON body, NULL when there was none
    const char *idempotency_key; // NULL when not given
    const char *range;           // Range and If-None-Match headers, NULL when not given
    const char *if_none_match;
    const char *last_event_id; // Last-Event-ID header; NULL when not given, or empty
    char new_id[MT_ID_TEXT];   // MT_ROUTE_MAKES: for what it makes
    bool waited_out;     // the ?wait= time is over (or none was asked): answer with what is there
    const char *started; // the run that an earlier round of this request started or stopped; arena
    int started_status;  // how a start is answered
    // Uploads: `begin` of the route sets these; the dispatcher writes the body to upload_fd, then
    // calls the handler; upload_abort is called instead when the client leaves or writing fails.
    int upload_fd;
    // Asked on the loop before the body is let grow to so many bytes: 0, or the errno that refuses.
    int (*upload_claim)(void *upload_data, uint64_t bytes);
    int64_t upload_length; // Content-Length, or -1 when chunked
    void *upload_data;
    void (*upload_abort)(void *upload_data);
    mt_taker *taker; // set by a handler; the dispatcher's
} mt_request;

// The {name} of the route's pattern, percent-decoded; never empty.
mt_str mt_param(const mt_request *req, const char *name);
char *mt_param_dup(const mt_request *req, const char *name); // in the arena, NUL-terminated
// A query parameter, percent-decoded (may hold any byte); .data is NULL when it was not given.
mt_str mt_query(const mt_request *req, const char *name);
// Of the path and the body, for an Idempotency-Key.
void mt_request_digest(const mt_request *req, char out[MT_REQUEST_DIGEST]);
// Who does it, for records: "NAME", "NAME (run ID)" by way of a run's sign-in, "NAME (app run ID)"
// where a program of an app does.
const char *mt_request_by(const mt_request *req);
// Typed: the default when not given, badField with the parameter's name when malformed.
int mt_query_bool(const mt_request *req, const char *name, bool *ret, mt_err **err);
int mt_query_int(const mt_request *req, const char *name, int64_t min, int64_t max, int64_t def,
                 int64_t *ret, mt_err **err);
// limit (1..1000, default 100) and after (cursor text or NULL).
int mt_query_page(const mt_request *req, int64_t *ret_limit, const char **ret_after, mt_err **err);
int mt_query_text(const mt_request *req, const char *name, const char **ret,
                  mt_err **err); // no NUL
// ?namespace=NAME as *ret_id, which is of *ns; NULL when it was not given. One that the caller does
// not see is not there.
int mt_query_namespace(const mt_request *req, mt_namespace *ns, const char **ret_id, mt_err **err);
int mt_body_nothing(const mt_request *req, mt_err **err); // none, or an object without members
// All that a start of an app or an interaction takes; 0 and NULL where it is not given.
int mt_body_start(const mt_request *req, int64_t *ret_version, const mt_json **ret_inputs,
                  mt_err **err);

// A body that goes on: what a command prints, from a byte on, until the command has ended.
typedef struct mt_follow_spec {
    const char *run_id, *command_id; // in the request's arena
    int stream;                      // MT_STREAM_… of core/run-output.h
    uint64_t from;
} mt_follow_spec;

enum { MT_REPLY_HEADERS_MAX = 8, MT_REPLY_BODY_MAX = 64 << 20 };

typedef struct mt_reply {
    int status;  // 200 unless set
    mt_buf body; // what the handler wrote; JSON unless content_type is set
    const char *content_type;
    struct {
        const char *name;
        char *value; // malloc'd, freed by the dispatcher
    } headers[MT_REPLY_HEADERS_MAX];
    size_t header_count;
    int fd; // >= 0: the body is this range of a file (owned by the reply)
    uint64_t fd_offset, fd_length;
    mt_follow_spec follow; // command_id not NULL: the body is this
    bool not_yet;          // set by mt_reply_not_yet(), as the next one
    const char *topic_;
    bool hears_lines_;   // set by mt_reply_no_line_yet()
    const char *run_id_; // set by mt_reply_once_synced()
} mt_reply;

// The usual ends of a handler. Each returns 0, or < 0 with *err set.
int mt_reply_json(mt_reply *reply, int status, mt_json *value, mt_err **err); // takes value
int mt_reply_empty(mt_reply *reply, int status);                              // 204
// A page of a list: its items are written in between. next: cursor of the page that follows, or "".
void mt_items_begin(mt_reply *reply, mt_jw *w);
int mt_items_end(mt_reply *reply, mt_jw *w, const char *next, mt_err **err);
int mt_reply_header(mt_reply *reply, const char *name, const char *value, mt_err **err);
void mt_reply_fd(mt_reply *reply, int fd, uint64_t offset, uint64_t length); // takes fd
// Only on MT_ROUTE_WAIT routes, while !req->waited_out: call me again when something happened.
// topic: the id of the run or command that something has to happen to; lives in the arena.
int mt_reply_not_yet(mt_reply *reply, const char *topic);
// The same for who waits for lines of an app's run: call me also when it printed.
int mt_reply_no_line_yet(mt_reply *reply, const char *topic);
// The answer tells of an end, of a run or of a command of it, that the store has: it goes out when
// the disk has it, too.
int mt_reply_once_synced(mt_request *req, mt_reply *reply, const char *run_id, const char *id,
                         mt_err **err);

typedef int mt_handler(mt_request *req, mt_reply *reply, mt_err **err);

enum {
    MT_ROUTE_OPEN = 1u << 0, // answers without sign-in; must tell nothing
    MT_ROUTE_WAIT = 1u << 1, // takes ?wait=SECONDS; its topic is {command}, else {id}, if any
    // Makes a run or a command, with the id that is given: that is the topic.
    MT_ROUTE_MAKES = 1u << 2,
};

typedef struct mt_route {
    const char *method;  // HEAD is answered by GET's row, OPTIONS and 405 by the table
    const char *pattern; // "/v1/namespaces/{ns}/vfs/{vfs}"
    mt_handler *handler;
    const char *query; // names of the parameters it takes, separated by blanks; others are refused
    unsigned flags;
    size_t max_body;   // JSON body: its largest size; 0: a body is refused
    mt_handler *begin; // uploads: called when the head is there, before any of the body
} mt_route;

enum { MT_BODY_SMALL = 64 << 10, MT_BODY_MEDIUM = 1 << 20, MT_BODY_LARGE = 48 << 20 };

// Each routes-*.c has one table, ended by a row without method.
extern const mt_route mt_routes_access[], mt_routes_vfs[], mt_routes_secrets[], mt_routes_deploy[],
    mt_routes_runs[], mt_routes_commands[], mt_routes_run_files[], mt_routes_shells[],
    mt_routes_apps[], mt_routes_interactions[], mt_routes_providers[], mt_routes_system[],
    mt_routes_events[];

void mt_word_write(mt_jw *w, const char *name, const char *word); // null where it is ""
// The members of a run of whatever kind that tell who started it: startedBy, parentRunId,
// parentAppRunId. The ids are "" where there is none.
void mt_starter_write(mt_jw *w, const char *name, const char *run_id, const char *app_run_id);

// Of a run of an app or an interaction: endReason to failureDetails, and dateCreated to runSeconds.
void mt_run_end_write(mt_jw *w, const char *reason, int64_t limit_ms, const char *cancelled_by,
                      const char *details);
typedef struct mt_run_times {
    int64_t created, ended, deadline; // 0: none
    int64_t max_duration_ms;
} mt_run_times;
void mt_run_times_write(mt_jw *w, const mt_run_times *t);

// badField (of that name) unless the run has the user.
int mt_check_run_user(const mt_request *req, const mt_run *run, const char *field, const char *user,
                      mt_err **err);

typedef enum mt_news {
    MT_NEWS_BEGUN,   // a command: for who follows its output alone
    MT_NEWS_PRINTED, // a run of an app: for who waits for its lines alone
    MT_NEWS_ALL,
} mt_news;
// Wakes the requests that wait for topic (the id of a run or command). Any thread.
void mt_announce(const mt_api *api, const char *topic, mt_news news);

// The namespace {ns} of the route, when the caller may do verb in it: else notFound or forbidden
// with the sentence that names it.
int mt_request_namespace(mt_request *req, mt_verb verb, mt_namespace *ret, mt_err **err);
