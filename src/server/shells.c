// SPDX-License-Identifier: Apache-2.0
// A shell is a session (core/run-sessions.h) with an id; each request about it is a taker of its
// own. Output that nobody reads waits in the terminal: the program that prints it waits, too. A
// shell that nobody reads for GRACE_MS is hung up.
#include "server/shells.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/share.h"
#include "core/run-sessions.h"
#include "http/server.h"

#include <stdio.h>
#include <sys/wait.h>

enum {
    SHELLS_MAX = 1024, // of the server, those that have ended among them
    SHELLS_EACH = 256, // and of one user of the API (base/share.h)
    GRACE_MS = 15000,  // without a reader
    KEPT_MS = 300000,  // what became of one that has ended can be asked for
    AHEAD = 256 << 10, // bytes that wait for the reader, or for the terminal
};

typedef enum shell_end { NOT_ENDED, EXITED, RUN_ENDED, CLOSED, ABANDONED, BROKEN } shell_end;

typedef struct request request;

typedef struct shell {
    struct shell *next;
    mt_shells *of;
    char id[MT_ID_TEXT], run_id[MT_ID_TEXT];
    char owner[MT_ID_TEXT]; // the user of the API who made it
    char user[33], term[MT_SESSION_TERM_MAX + 1];
    uint16_t columns, rows;
    mt_session *session; // NULL once it has ended
    mt_timer *timer;     // the grace, then how long the end is kept
    request *maker;      // waits for its start
    request *reader;
    request *writers; // may be several
    int64_t created_us, ended_us;
    shell_end end;
    int exit_code;
    char *details;
    mt_code code;
} shell;

struct mt_shells {
    const mt_api *api;
    shell *list;
    unsigned count;
};

// One exchange about a shell.
struct request {
    mt_taker head;
    request *next; // of the shell's writers
    const mt_api *api;
    mt_shell_request what;
    mt_http_x *x;
    shell *s; // that it belongs to: maker, reader, writer
};

// ---- shells ----

mt_shells *mt_shells_new(const mt_api *api)
{
    mt_shells *shells = calloc(1, sizeof(*shells));

    if (shells)
        shells->api = api;
    return shells;
}

static void shell_free(shell *s)
{
    for (shell **at = &s->of->list; *at; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            s->of->count--;
            break;
        }
    }
    if (s->maker)
        s->maker->s = NULL;
    if (s->reader)
        s->reader->s = NULL;
    for (request *w = s->writers; w; w = w->next)
        w->s = NULL;
    mt_session_close(s->session);
    mt_timer_free(s->timer);
    free(s->details);
    free(s);
}

void mt_shells_free(mt_shells *shells)
{
    while (shells && shells->list)
        shell_free(shells->list);
    free(shells);
}

static shell *find(const request *q)
{
    for (shell *s = q->api->shells->list; s; s = s->next)
        if (mt_streq(s->id, q->what.id) && mt_streq(s->run_id, q->what.run_id))
            return s;
    return NULL;
}

// ---- as JSON ----

static const char *end_word(shell_end end)
{
    static const char *const words[] = {
        [EXITED] = "exited",       [RUN_ENDED] = "runEnded", [CLOSED] = "closed",
        [ABANDONED] = "abandoned", [BROKEN] = "failed",
    };

    return words[end];
}

static void write_shell(mt_jw *w, const shell *s)
{
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "id", s->id);
    mt_jw_member_text(w, "runId", s->run_id);
    mt_jw_member_text(w, "user", s->user);
    mt_jw_member_text(w, "term", s->term);
    mt_jw_member_int(w, "columns", s->columns);
    mt_jw_member_int(w, "rows", s->rows);
    mt_jw_member_text(w, "status", s->end ? "Ended" : "Running");
    if (s->end == EXITED)
        mt_jw_member_int(w, "exitCode", s->exit_code);
    else
        mt_jw_member_null(w, "exitCode");
    mt_jw_member_text(w, "endReason", s->end ? end_word(s->end) : NULL);
    mt_jw_member_text(w, "details", s->details);
    mt_jw_member_time(w, "dateCreated", s->created_us);
    mt_jw_member_time(w, "dateEnded", s->ended_us);
    mt_jw_end_object(w);
}

static const mt_http_header_line json_headers[] = {{"Content-Type", "application/json"},
                                                   {"Cache-Control", "no-store"}};

// Each ends the exchange: the request may be gone afterwards.
static void respond_shell(mt_http_x *x, int status, const shell *s)
{
    _cleanup_buf_ mt_buf body = MT_BUF_INIT(65536);
    mt_jw w;

    mt_jw_init(&w, &body, 0);
    write_shell(&w, s);
    (void)mt_http_respond(x, status, json_headers, MT_ARRAY_SIZE(json_headers), mt_buf_str(&body),
                          body.len);
}

static void respond_empty(mt_http_x *x)
{
    (void)mt_http_respond(x, 204, json_headers + 1, 1, NULL, 0);
}

static void respond_error(mt_http_x *x, mt_err *err)
{
    mt_answer_error(x, err);
    (void)mt_err_free(err);
}

static void respond_missing(const request *q)
{
    mt_err *err = NULL;

    (void)mt_fail(&err, MT_E_NOT_FOUND,
                  "no shell '%s' in capsule run '%s': it ended a while ago, or with a restart of "
                  "the server",
                  q->what.id, q->what.run_id);
    respond_error(q->x, err);
}

static void respond_ended(const request *q, const shell *s)
{
    mt_err *err = NULL;

    (void)mt_fail(&err, s->end == RUN_ENDED ? MT_E_RUN_ENDED : MT_E_CONFLICT,
                  "the shell has ended%s%s", s->details ? ": " : "", s->details ? s->details : "");
    respond_error(q->x, err);
}

// ---- ends ----

// Tells whoever waits for it; what has ended can be looked at for a while.
static void ended(shell *s, shell_end end, mt_code code, const char *details)
{
    request *maker = s->maker, *reader = s->reader;

    if (s->end)
        return;
    s->maker = s->reader = NULL;
    s->end = end;
    s->code = code;
    s->details = details && details[0] ? strdup(details) : NULL;
    s->ended_us = mt_now_us();
    mt_session_close(MT_TAKE_PTR(s->session));
    mt_timer_in_ms(s->timer, KEPT_MS);
    // Bodies that are held back are let in, and dropped.
    for (request *w = s->writers; w; w = w->next)
        mt_http_resume(w->x);
    if (reader) {
        reader->s = NULL;
        (void)mt_http_end(reader->x);
    }
    if (maker) {
        mt_err *err = NULL;
        mt_http_x *x = maker->x;

        maker->s = NULL;
        (void)mt_fail(&err, code ? code : MT_E_CONFLICT, "%s",
                      details && details[0] ? details : "the shell ended before it began");
        shell_free(s);
        respond_error(x, err);
    }
}

static void on_timer(mt_timer *timer, void *data)
{
    shell *s = data;

    if (s->end)
        shell_free(s);
    else
        ended(s, ABANDONED, MT_E_CONFLICT, "nobody read what it shows for 15 seconds");
}

// The one that ended first: of that user, or (NULL) of anybody.
static shell *oldest_end(const mt_shells *shells, const char *owner)
{
    shell *oldest = NULL;

    for (shell *s = shells->list; s; s = s->next)
        if (s->end && (!owner || mt_streq(s->owner, owner))) // new ones are put first
            oldest = s;
    return oldest;
}

static unsigned count_of(const mt_shells *shells, const char *owner)
{
    unsigned n = 0;

    for (const shell *s = shells->list; s; s = s->next)
        n += mt_streq(s->owner, owner);
    return n;
}

// What is kept of those that have ended makes room for a new one: the user's own where it is the
// user who has too many.
static int make_room(mt_shells *shells, const mt_shell_request *what, mt_err **err)
{
    unsigned has = count_of(shells, what->owner);
    shell *ended = NULL;

    if (has >= mt_share(SHELLS_EACH, SHELLS_MAX, shells->count)) {
        ended = oldest_end(shells, what->owner);
        if (!ended)
            return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                           "user '%s' has %u shells open, which is the share of one user now that "
                           "the server has %u of at most %d: close some",
                           what->owner_name, has, shells->count, SHELLS_MAX);
    } else if (shells->count >= SHELLS_MAX) {
        ended = oldest_end(shells, NULL);
        if (!ended)
            return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                           "%d shells of all users are open, which is the most of this server",
                           SHELLS_MAX);
    }
    if (ended)
        shell_free(ended);
    return 0;
}

// ---- the session ----

static void on_started(void *data)
{
    shell *s = data;
    request *maker = MT_TAKE_PTR(s->maker);

    mt_timer_in_ms(s->timer, GRACE_MS);
    if (!maker)
        return;
    maker->s = NULL;
    respond_shell(maker->x, 201, s);
}

static void on_frame(const mt_session_frame *f, void *data)
{
    shell *s = data;
    mt_session_failure failure;

    if (f->type == MT_SESSION_DATA && s->reader) {
        mt_http_x *x = s->reader->x;

        if (mt_http_write(x, f->payload, f->len) < 0 || mt_http_queued(x) > AHEAD)
            mt_session_pause(s->session, true);
    } else if (f->type == MT_SESSION_FAILED && mt_session_get_failed(f, &failure) == 0) {
        _cleanup_free_ char *why =
            mt_asprintf("a terminal cannot be made in the run: %s", strerror(failure.detail));

        ended(s, BROKEN, MT_E_CONFLICT, why);
    } else {
        ended(s, BROKEN, MT_E_UNAVAILABLE, "what answered in the run is not its terminal");
    }
}

static void on_typed(void *data)
{
    shell *s = data;

    for (request *w = s->writers, *next; w; w = next) {
        next = w->next;
        mt_http_resume(w->x);
    }
}

static void on_over(const mt_session_over *over, void *data)
{
    shell *s = data;

    if (over->how == MT_SESSION_EXITED) {
        s->exit_code =
            WIFEXITED(over->status) ? WEXITSTATUS(over->status) : 128 + WTERMSIG(over->status);
        ended(s, EXITED, MT_E_NONE, NULL);
    } else {
        ended(s, over->how == MT_SESSION_RUN_ENDED ? RUN_ENDED : BROKEN, over->code,
              over->sentence);
    }
}

// ---- requests ----

static int open_session(shell *s, mt_err **err)
{
    static const mt_session_events events = {on_started, on_frame, on_typed, on_over};
    const mt_session_request what = {
        .op = MT_SESSION_SHELL, .columns = s->columns, .rows = s->rows};
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);

    if (mt_session_open(s->of->api->runs, s->run_id, s->user, s->term, &events, s, &s->session,
                        err) < 0)
        return -1;
    mt_session_pause(s->session, true); // until somebody reads
    (void)mt_session_put_request(&b, &what);
    return mt_session_send(s->session, &b) < 0 ? mt_fail_oom(err) : 0;
}

static shell *shell_new(request *q, mt_err **err)
{
    mt_shells *shells = q->api->shells;
    shell *s;

    if (make_room(shells, &q->what, err) < 0)
        return NULL;
    s = calloc(1, sizeof(*s));
    if (!s) {
        (void)mt_fail_oom(err);
        return NULL;
    }
    *s = (shell){
        .of = shells, .columns = q->what.columns, .rows = q->what.rows, .created_us = mt_now_us()};
    mt_id_new(s->id);
    memcpy(s->run_id, q->what.run_id, sizeof(s->run_id));
    memcpy(s->owner, q->what.owner, sizeof(s->owner));
    memcpy(s->user, q->what.user, sizeof(s->user));
    memcpy(s->term, q->what.term, sizeof(s->term));
    s->next = shells->list;
    shells->list = s;
    shells->count++;
    s->timer = mt_timer_new(mt_runs_loop(q->api->runs), on_timer, s);
    if (s->timer && open_session(s, err) == 0)
        return s;
    if (!s->timer)
        (void)mt_fail_oom(err);
    shell_free(s);
    return NULL;
}

static void make(request *q)
{
    mt_err *err = NULL;
    shell *s = shell_new(q, &err);

    if (!s) {
        respond_error(q->x, err);
        return;
    }
    q->s = s;
    s->maker = q;
}

static void on_reader_drained(mt_http_x *x, void *data)
{
    request *q = data;

    if (q->s && q->s->session)
        mt_session_pause(q->s->session, false);
}

// A second reader takes the place of the first: a client that comes back after its connection broke
// need not wait until the server has noticed.
static void begin_reading(request *q, shell *s)
{
    static const mt_http_header_line headers[] = {{"Content-Type", "application/octet-stream"},
                                                  {"Cache-Control", "no-store"}};
    request *before = MT_TAKE_PTR(s->reader);

    if (before) {
        before->s = NULL;
        (void)mt_http_end(before->x);
    }
    if (mt_http_begin(q->x, 200, headers, MT_ARRAY_SIZE(headers)) < 0)
        return;
    mt_timer_stop(s->timer);
    q->s = s;
    s->reader = q;
    mt_http_on_drained(q->x, on_reader_drained, q);
    mt_session_pause(s->session, false);
}

static void read_output(request *q, shell *s)
{
    static const mt_http_header_line headers[] = {{"Content-Type", "application/octet-stream"},
                                                  {"Cache-Control", "no-store"}};

    if (s->end) // all that it showed was read, or never will be
        (void)mt_http_respond(q->x, 200, headers, MT_ARRAY_SIZE(headers), NULL, 0);
    else
        begin_reading(q, s);
}

static void begin_typing(request *q, shell *s)
{
    q->s = s;
    q->next = s->writers;
    s->writers = q;
    mt_http_resume(q->x);
}

static void resize(const request *q, shell *s)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);

    s->columns = q->what.columns;
    s->rows = q->what.rows;
    (void)mt_session_put_size(&b, q->what.columns, q->what.rows);
    (void)mt_session_send(s->session, &b);
    respond_empty(q->x);
}

static void respond_list(const request *q)
{
    _cleanup_buf_ mt_buf body = MT_BUF_INIT(4 << 20);
    mt_jw w;

    mt_jw_init(&w, &body, 0);
    mt_jw_begin_object(&w);
    mt_jw_key(&w, "items");
    mt_jw_begin_array(&w);
    for (const shell *s = q->api->shells->list; s; s = s->next)
        if (mt_streq(s->run_id, q->what.run_id))
            write_shell(&w, s);
    mt_jw_end_array(&w);
    mt_jw_end_object(&w);
    (void)mt_http_respond(q->x, 200, json_headers, MT_ARRAY_SIZE(json_headers), mt_buf_str(&body),
                          body.len);
}

static void on_begin(mt_taker *t, mt_http_x *x)
{
    request *q = MT_CONTAINER_OF(t, request, head);
    shell *s = q->what.id[0] ? find(q) : NULL;
    bool needs_life = q->what.kind == MT_SHELL_TYPE || q->what.kind == MT_SHELL_RESIZE;

    q->x = x;
    if (q->what.kind == MT_SHELL_MAKE)
        make(q);
    else if (q->what.kind == MT_SHELL_LIST)
        respond_list(q);
    else if (!s)
        respond_missing(q);
    else if (needs_life && (s->end || !s->session))
        respond_ended(q, s);
    else if (q->what.kind == MT_SHELL_READ)
        read_output(q, s);
    else if (q->what.kind == MT_SHELL_TYPE)
        begin_typing(q, s);
    else if (q->what.kind == MT_SHELL_RESIZE)
        resize(q, s);
    else if (q->what.kind == MT_SHELL_LOOK)
        respond_shell(x, 200, s);
    else {
        if (!s->end)
            ended(s, CLOSED, MT_E_CONFLICT, "it was closed");
        respond_empty(x);
    }
}

static void on_piece(mt_taker *t, mt_http_x *x, const void *data, size_t len)
{
    request *q = MT_CONTAINER_OF(t, request, head);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);
    const char *p = data;

    if (!q->s || !q->s->session)
        return;
    while (len > 0) {
        size_t n = MT_MIN(len, (size_t)MT_SESSION_DATA_MAX);

        (void)mt_session_put_data(&b, p, n);
        p += n;
        len -= n;
    }
    if (mt_session_send(q->s->session, &b) < 0) {
        mt_err *err = NULL;

        (void)mt_fail(&err, MT_E_OOM, "the server is short of memory");
        respond_error(x, err);
        return;
    }
    if (mt_session_queued(q->s->session) > AHEAD)
        mt_http_pause(x);
}

static void on_whole(mt_taker *t, mt_http_x *x)
{
    request *q = MT_CONTAINER_OF(t, request, head);

    if (q->s && q->s->end)
        respond_ended(q, q->s);
    else if (q->s)
        respond_empty(x);
    else
        respond_missing(q);
}

// A reader that leaves begins the grace; a maker that leaves takes its shell along.
static void on_free(mt_taker *t)
{
    request *q = MT_CONTAINER_OF(t, request, head);
    shell *s = q->s;

    if (s && q->what.kind == MT_SHELL_READ && s->reader == q) {
        s->reader = NULL;
        if (s->session) {
            mt_session_pause(s->session, true);
            mt_timer_in_ms(s->timer, GRACE_MS);
        }
    }
    for (request **at = s ? &s->writers : NULL; at && *at; at = &(*at)->next) {
        if (*at == q) {
            *at = q->next;
            break;
        }
    }
    if (s && s->maker == q) {
        s->maker = NULL;
        shell_free(s);
    }
    free(q);
}

mt_taker *mt_shell_taker(const mt_api *api, const mt_shell_request *what)
{
    static const mt_taker_ops ops = {on_begin, on_piece, on_whole, on_free};
    request *q = calloc(1, sizeof(*q));

    if (!q)
        return NULL;
    q->head.ops = &ops;
    q->api = api;
    q->what = *what;
    return &q->head;
}
