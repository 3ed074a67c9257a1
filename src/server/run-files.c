// SPDX-License-Identifier: Apache-2.0
// The conversation with the process that does it (capsule/session.h), byte by byte as fast as both
// sides are. What it answers is a capsule's word: it can be wrong about that capsule, and can be
// nothing else.
#include "server/run-files.h"

#include "core/run-sessions.h"
#include "core/runs.h"
#include "http/server.h"
#include "server/entries.h"
#include "server/listings.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

enum {
    AHEAD = 256 << 10,       // bytes that wait for the client, or for the run
    QUIET_MS = 60000,        // without a sign of the process that it is at work
    QUIET_LONG_MS = 600000,  // of one that deletes or lists much
    ANSWER_BYTES = 16 << 20, // of a list
};

typedef struct files {
    mt_taker head;
    const mt_api *api;
    mt_http_x *x;
    mt_session *session;
    mt_timer *timer;
    mt_run_files_request q;
    bool writing;  // GO was heard: content may come
    bool whole;    // all of the content came
    bool begun;    // of a streamed answer
    uint64_t left; // of it, that may still come
    size_t count;  // entries in `body`
    mt_vfs_entry entry;
    bool has_entry;
    mt_buf body;
    mt_jw w;
    mt_listing held; // of a list that is being read
} files;

// ---- the end ----

// Afterwards f may be gone.
static void refuse(files *f, mt_err *err)
{
    mt_http_x *x = f->x;

    mt_timer_stop(f->timer);
    mt_session_close(MT_TAKE_PTR(f->session));
    mt_listing_leave(&f->held);
    mt_buf_done(&f->body);
    if (f->begun)
        mt_http_abort(x);
    else if (!mt_http_answered(x))
        mt_answer_error(x, err);
    (void)mt_err_free(err);
}

static void out_of_rules(files *f)
{
    mt_err *err = NULL;

    (void)mt_fail(&err, MT_E_UNAVAILABLE,
                  "what answered in the run is not what was started there: a process of the run "
                  "interferes");
    refuse(f, err);
}

static void on_quiet(mt_timer *timer, void *data)
{
    files *f = data;
    mt_err *err = NULL;

    (void)mt_fail(&err, MT_E_UNAVAILABLE, "the run has not answered for too long");
    refuse(f, err);
}

static void at_work(files *f)
{
    bool is_long = f->q.request.op == MT_SESSION_DELETE || f->q.request.op == MT_SESSION_LIST;

    mt_timer_in_ms(f->timer, is_long ? QUIET_LONG_MS : QUIET_MS);
}

// It waits for the client, who has time-outs of his own.
static void at_rest(files *f)
{
    mt_timer_stop(f->timer);
}

// The largest lists go, whoever they are of: f, too.
static void count_list(files *f)
{
    mt_listing *largest;
    mt_err *err = NULL;

    mt_listing_grew(&f->held, f->body.len);
    while ((largest = mt_listing_too_many()) != NULL) {
        (void)mt_fail(&err, MT_E_UNAVAILABLE,
                      "too many long lists of files are being read: try again later");
        refuse(MT_CONTAINER_OF(largest, files, held), MT_TAKE_PTR(err));
    }
}

static void respond(files *f, int status)
{
    static const mt_http_header_line headers[] = {{"Content-Type", "application/json"},
                                                  {"Cache-Control", "no-store"}};
    mt_http_x *x = f->x;

    mt_timer_stop(f->timer);
    mt_session_close(MT_TAKE_PTR(f->session));
    mt_listing_leave(&f->held);
    if (f->body.failed)
        (void)mt_http_respond_problem(x, MT_E_TOO_LARGE, "the answer does not fit in memory");
    else
        (void)mt_http_respond(x, status, headers, status == 204 ? 0 : MT_ARRAY_SIZE(headers),
                              mt_buf_str(&f->body), status == 204 ? 0 : f->body.len);
}

// ---- reading ----

static void on_client_drained(mt_http_x *x, void *data)
{
    files *f = data;

    if (!f->session)
        return;
    at_work(f);
    mt_session_pause(f->session, false); // f may be gone
}

// What is announced about the file, and what of it is asked for.
static int choose_part(files *f, const mt_vfs_entry *e, mt_range *part, mt_err **err)
{
    if (mt_range_parse(f->q.range, e->size, part) < 0)
        return mt_fail(err, MT_E_BAD_RANGE,
                       "the file has %llu bytes: the range '%.80s' is not in it",
                       (unsigned long long)e->size, f->q.range);
    return 0;
}

static int begin_content(files *f, const mt_vfs_entry *e, const mt_range *part, const char *etag)
{
    char range[96], date[32];
    const mt_http_header_line headers[] = {
        {"Content-Type", "application/octet-stream"},
        {"Cache-Control", "no-store"},
        {"ETag", etag},
        {"Accept-Ranges", "bytes"},
        {"Last-Modified", mt_http_date(e->modified_us, date) ? date : NULL},
        {"Content-Range", part->partial ? range : NULL},
    };

    (void)snprintf(range, sizeof(range), "bytes %llu-%llu/%llu", (unsigned long long)part->from,
                   (unsigned long long)(part->from + part->length - 1),
                   (unsigned long long)e->size);
    if (e->size == 0)
        return mt_http_begin(f->x, 200, headers, MT_ARRAY_SIZE(headers));
    return mt_http_begin_sized(f->x, part->partial ? 206 : 200, headers, MT_ARRAY_SIZE(headers),
                               part->length);
}

static void not_modified(files *f, const char *etag)
{
    const mt_http_header_line headers[] = {{"ETag", etag}, {"Cache-Control", "no-store"}};
    mt_http_x *x = f->x;

    mt_timer_stop(f->timer);
    mt_session_close(MT_TAKE_PTR(f->session));
    (void)mt_http_respond(x, 304, headers, MT_ARRAY_SIZE(headers), NULL, 0);
}

// Files of the kernel have no size until they are read: those are sent to their end.
static void found(files *f, const mt_vfs_entry *e)
{
    _cleanup_buf_ mt_buf go = MT_BUF_INIT(64);
    char etag[MT_VFS_ETAG_TEXT];
    mt_err *err = NULL;
    mt_range part;

    if (e->type != MT_VFS_FILE || f->begun) {
        out_of_rules(f);
        return;
    }
    (void)mt_vfs_etag(e, etag);
    if (e->size > 0 && mt_etag_known(f->q.if_none_match, etag)) {
        not_modified(f, etag);
        return;
    }
    if (choose_part(f, e, &part, &err) < 0) {
        refuse(f, err);
        return;
    }
    f->left = e->size > 0 ? part.length : UINT64_MAX;
    f->begun = begin_content(f, e, &part, etag) == 0;
    if (!f->begun) {
        out_of_rules(f);
        return;
    }
    if (f->q.only_head) {
        mt_session_close(MT_TAKE_PTR(f->session));
        at_rest(f);
        (void)mt_http_end(f->x); // f may be gone
        return;
    }
    mt_http_on_drained(f->x, on_client_drained, f);
    (void)mt_session_put_go(&go, part.from, f->left);
    (void)mt_session_send(f->session, &go);
}

static void pass_on(files *f, const mt_session_frame *frame)
{
    if (!f->begun || frame->len > f->left) {
        out_of_rules(f);
        return;
    }
    f->left -= frame->len;
    if (mt_http_write(f->x, frame->payload, frame->len) < 0) {
        mt_session_close(MT_TAKE_PTR(f->session));
        mt_http_abort(f->x);
        return;
    }
    if (mt_http_queued(f->x) > AHEAD) {
        at_rest(f);
        mt_session_pause(f->session, true);
    }
}

// A file that has become shorter meanwhile is not passed off as whole.
static void content_over(files *f)
{
    bool whole = f->left == 0 || f->left > INT64_MAX;

    mt_timer_stop(f->timer);
    mt_session_close(MT_TAKE_PTR(f->session));
    if (f->begun && whole)
        (void)mt_http_end(f->x);
    else
        mt_http_abort(f->x);
}

// ---- writing ----

static void let_in(files *f)
{
    f->writing = true;
    at_rest(f);
    mt_http_resume(f->x);
}

static void on_session_drained(void *data)
{
    files *f = data;

    if (!f->writing || f->whole)
        return;
    at_rest(f);
    mt_http_resume(f->x);
}

static void content_whole(files *f)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);

    at_work(f);
    (void)mt_session_put_end(&b, false);
    (void)mt_session_send(f->session, &b);
}

static void on_piece(mt_taker *t, mt_http_x *x, const void *data, size_t len)
{
    files *f = MT_CONTAINER_OF(t, files, head);
    const char *p = data;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);
    mt_err *err = NULL;

    if (!f->session || mt_http_answered(x))
        return;
    while (len > 0) {
        size_t n = MT_MIN(len, (size_t)MT_SESSION_DATA_MAX);

        (void)mt_session_put_data(&b, p, n);
        p += n;
        len -= n;
    }
    if (mt_session_send(f->session, &b) < 0) {
        (void)mt_fail_oom(&err);
        refuse(f, err);
        return;
    }
    if (mt_session_queued(f->session) > AHEAD) {
        at_work(f);
        mt_http_pause(x);
    }
}

static void on_whole(mt_taker *t, mt_http_x *x)
{
    files *f = MT_CONTAINER_OF(t, files, head);

    f->whole = true;
    if (f->session && f->writing)
        content_whole(f);
}

// ---- entries ----

static void to_vfs_entry(const mt_session_entry *e, mt_arena *arena, mt_vfs_entry *ret)
{
    *ret = (mt_vfs_entry){
        .path = mt_arena_strndup(arena, e->path.data, e->path.len),
        .target = e->is_link ? mt_arena_strndup(arena, e->target.data, e->target.len) : NULL,
        .type = (mt_vfs_type)e->type,
        .size = e->size,
        .mode = e->mode,
        .modified_us = e->modified_ns / 1000,
        .modified_ns_ = e->modified_ns,
        .changed_ns_ = e->changed_ns,
        .inode_ = e->inode,
    };
    ret->name = ret->path ? strrchr(ret->path, '/') + 1 : NULL;
}

static void on_entry(files *f, const mt_session_frame *frame)
{
    _cleanup_arena_ mt_arena *arena = mt_arena_new(64 << 10);
    mt_session_entry e;
    mt_vfs_entry entry;
    bool is_list = f->q.request.op == MT_SESSION_LIST;

    if (mt_session_get_entry(frame, &e) < 0 || f->q.request.op == MT_SESSION_DELETE ||
        f->has_entry || f->count >= (is_list ? f->q.request.limit : 1u)) {
        out_of_rules(f);
        return;
    }
    if (arena)
        to_vfs_entry(&e, arena, &entry);
    if (!arena || !entry.path || (e.is_link && !entry.target)) {
        f->body.failed = -ENOMEM;
        return;
    }
    f->count++;
    if (f->q.request.op == MT_SESSION_READ)
        found(f, &entry);
    else
        mt_entry_write(&f->w, &entry);
    if (is_list)
        count_list(f); // f may have been refused
}

static void on_next(files *f, const mt_session_frame *frame)
{
    _cleanup_free_ char *text = NULL;
    uint64_t left_out;
    mt_str cursor;

    if (f->q.request.op != MT_SESSION_LIST || f->has_entry ||
        mt_session_get_next(frame, &cursor, &left_out) < 0) {
        out_of_rules(f);
        return;
    }
    f->has_entry = true; // the list is whole
    text = mt_str_dup(cursor);
    mt_jw_end_array(&f->w);
    mt_jw_member_text(&f->w, "next", cursor.len && text ? text : NULL);
    if (left_out)
        mt_jw_member_int(&f->w, "leftOut", (int64_t)left_out);
    mt_jw_end_object(&f->w);
}

static void on_end(files *f, const mt_session_frame *frame)
{
    bool flag = false;

    if (mt_session_get_end(frame, &flag) < 0) {
        out_of_rules(f);
        return;
    }
    switch (f->q.request.op) {
    case MT_SESSION_READ:
        content_over(f);
        return;
    case MT_SESSION_DELETE:
        respond(f, 204);
        return;
    case MT_SESSION_LIST:
        if (f->has_entry)
            respond(f, 200);
        else
            out_of_rules(f);
        return;
    default:
        if (f->count != 1 || (f->q.request.op == MT_SESSION_WRITE && !f->whole))
            out_of_rules(f);
        else if (f->q.request.op == MT_SESSION_WRITE || f->q.request.op == MT_SESSION_MKDIR)
            respond(f, flag ? 200 : 201);
        else
            respond(f, f->q.request.op == MT_SESSION_LINK ? 201 : 200);
    }
}

static void on_failed(files *f, const mt_session_frame *frame)
{
    mt_session_failure failure;
    mt_err *err = NULL;

    if (mt_session_get_failed(frame, &failure) < 0) {
        out_of_rules(f);
        return;
    }
    (void)mt_run_files_fail(&f->q, &failure, &err);
    refuse(f, err);
}

// ---- the conversation ----

static void on_go(files *f)
{
    if (f->q.request.op != MT_SESSION_WRITE || f->writing) {
        out_of_rules(f);
        return;
    }
    let_in(f);
    if (f->whole)
        content_whole(f);
}

static void on_frame(const mt_session_frame *frame, void *data)
{
    files *f = data;

    at_work(f);
    switch (frame->type) {
    case MT_SESSION_ENTRY:
        on_entry(f, frame);
        break;
    case MT_SESSION_DATA:
        pass_on(f, frame);
        break;
    case MT_SESSION_NEXT:
        on_next(f, frame);
        break;
    case MT_SESSION_END:
        on_end(f, frame);
        break;
    case MT_SESSION_FAILED:
        on_failed(f, frame);
        break;
    case MT_SESSION_GO:
        on_go(f);
        break;
    default:
        out_of_rules(f);
    }
}

static void on_over(const mt_session_over *over, void *data)
{
    files *f = data;
    mt_err *err = NULL;

    if (over->how == MT_SESSION_EXITED)
        (void)mt_fail(&err, MT_E_UNAVAILABLE,
                      "the process that did this in the run was ended before it was done (%s %d)",
                      WIFSIGNALED(over->status) ? "signal" : "exit code",
                      WIFSIGNALED(over->status) ? WTERMSIG(over->status)
                                                : WEXITSTATUS(over->status));
    else
        (void)mt_fail(&err, over->code, "%s", over->sentence);
    refuse(f, err);
}

static void on_begin(mt_taker *t, mt_http_x *x)
{
    static const mt_session_events events = {
        .frame = on_frame, .drained = on_session_drained, .over = on_over};
    files *f = MT_CONTAINER_OF(t, files, head);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_SESSION_FRAME_MAX);
    mt_err *err = NULL;

    f->x = x;
    if (f->q.request.op == MT_SESSION_LIST)
        mt_listing_join(&f->held);
    f->timer = mt_timer_new(mt_runs_loop(f->api->runs), on_quiet, f);
    if (!f->timer)
        (void)mt_fail_oom(&err);
    else if (mt_session_open(f->api->runs, f->q.run_id, f->q.user, "", &events, f, &f->session,
                             &err) == 0) {
        (void)mt_session_put_request(&b, &f->q.request);
        (void)mt_session_send(f->session, &b);
    }
    if (err)
        refuse(f, err);
    else
        at_work(f);
}

static void on_free(mt_taker *t)
{
    files *f = MT_CONTAINER_OF(t, files, head);

    mt_listing_leave(&f->held);
    mt_session_close(f->session);
    mt_timer_free(f->timer);
    mt_buf_done(&f->body);
    free(f);
}

mt_taker *mt_run_files_taker(const mt_api *api, const mt_run_files_request *q)
{
    static const mt_taker_ops ops = {on_begin, on_piece, on_whole, on_free};
    files *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    *f = (files){.head.ops = &ops, .api = api, .q = *q, .body = MT_BUF_INIT(ANSWER_BYTES)};
    mt_jw_init(&f->w, &f->body, 0);
    if (q->request.op == MT_SESSION_LIST) {
        mt_jw_begin_object(&f->w);
        mt_jw_key(&f->w, "items");
        mt_jw_begin_array(&f->w);
    }
    return &f->head;
}
