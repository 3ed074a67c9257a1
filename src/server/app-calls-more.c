// SPDX-License-Identifier: Apache-2.0
// Calls of programs that are more than one request.
#include "server/app-calls-internal.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { ITEMS_MAX = 100000, AWAIT_MAX = 1000, PAGE_MAX = 1 << 20 };

// ---- lists: all of their pages ----

static int add_page(mt_json *all, const mt_json *page)
{
    const mt_json *items = mt_json_get(page, "items");

    for (size_t i = 0; i < mt_json_count(items); i++)
        if (mt_json_append(all, mt_json_ref(mt_json_at(items, i))) < 0)
            return -1;
    return 0;
}

// 1: there is another page, whose address is in target.
static int next_page(app_request *r, const mt_json *page)
{
    mt_str next = mt_json_str(mt_json_get(page, "next"));

    if (!next.len)
        return 0;
    if (app_request_target(r, r->row->target, NULL) < 0 || mt_buf_adds(&r->target, "&after=") < 0 ||
        mt_http_escape(&r->target, next, false) < 0)
        return -1;
    return 1;
}

mt_app_outcome app_make_items(app_request *r)
{
    _cleanup_json_ mt_json *all = mt_json_new_array();
    mt_http_call call = {.method = "GET"};
    _cleanup_err_ mt_err *err = NULL;
    int more = 1;

    if (app_request_target(r, r->row->target, &err) < 0)
        return app_refuse(r, "BadArgument", "%s", mt_err_sentence(err));
    while (more == 1) {
        _cleanup_json_ mt_json *page = NULL;
        bool done;
        mt_app_outcome outcome = app_request_send(r, &call, &done);

        if (!done)
            return outcome;
        if (mt_json_parse(mt_buf_str(&r->answer.body), r->answer.body.len, NULL, &page, NULL) < 0 ||
            add_page(all, page) < 0 || (more = next_page(r, page)) < 0)
            return app_again(r, "");
        if (mt_json_count(all) > ITEMS_MAX)
            return app_refuse(r, "TooLarge", "%s: there are more than %d", r->call->builtin->name,
                              ITEMS_MAX);
        app_request_reset(r);
    }
    (void)mt_json_write(all, &r->call->result, 0);
    return app_give(r);
}

// ---- AwaitAny ----

typedef struct first {
    char id[MT_ID_TEXT];
    char date[40];
} first;

static const char *const KINDS[] = {"/v1/capsule-runs/", "/v1/commands/", "/v1/interaction-runs/",
                                    "/v1/app-runs/"};

// One of the ids, of whatever kind it is: MT_APP_DONE with *ret_date, "" while it lives.
static mt_app_outcome look_at(app_request *r, mt_str id, char ret_date[40])
{
    mt_http_call call = {.method = "GET"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(KINDS); i++) {
        _cleanup_json_ mt_json *v = NULL;
        mt_app_outcome outcome;
        bool done;

        app_request_reset(r);
        mt_buf_clear(&r->target);
        (void)mt_buf_adds(&r->target, KINDS[i]);
        (void)mt_http_escape(&r->target, id, false);
        outcome = app_request_send(r, &call, &done);
        if (!done && outcome == MT_APP_REFUSED && r->answer.status == 404) {
            mt_buf_clear(&r->call->message);
            continue;
        }
        if (!done)
            return outcome;
        if (mt_json_parse(mt_buf_str(&r->answer.body), r->answer.body.len, NULL, &v, NULL) < 0)
            return app_again(r, "");
        (void)snprintf(ret_date, 40, "%s", mt_json_text(mt_json_get(v, "dateEnded"), ""));
        return MT_APP_DONE;
    }
    return app_refuse(r, "notFound", "AwaitAny: there is no run or command '%.*s'", (int)id.len,
                      id.data);
}

static mt_app_outcome check_ids(app_request *r, const mt_json *ids)
{
    if (mt_json_count(ids) == 0 || mt_json_count(ids) > AWAIT_MAX)
        return app_refuse(r, "BadArgument", "AwaitAny takes 1 to %d ids; there are %zu", AWAIT_MAX,
                          mt_json_count(ids));
    for (size_t i = 0; i < mt_json_count(ids); i++)
        if (!mt_is_id(mt_json_str(mt_json_at(ids, i))))
            return app_refuse(r, "BadArgument", "AwaitAny: item %zu is no id", i);
    return MT_APP_DONE;
}

mt_app_outcome app_make_await_any(app_request *r)
{
    const mt_json *ids = mt_json_at(r->call->arguments, 0);
    mt_app_outcome outcome = check_ids(r, ids);
    first best = {.id = ""};

    if (outcome != MT_APP_DONE)
        return outcome;
    for (size_t i = 0; i < mt_json_count(ids); i++) {
        mt_str id = mt_json_str(mt_json_at(ids, i));
        char date[40] = "";

        outcome = look_at(r, id, date);
        if (outcome != MT_APP_DONE)
            return outcome;
        // Dates of one form: the earlier one is the lesser text.
        if (!*date || (best.id[0] && strcmp(date, best.date) >= 0))
            continue;
        (void)snprintf(best.id, sizeof(best.id), "%.*s", (int)id.len, id.data);
        memcpy(best.date, date, sizeof(date));
    }
    if (!best.id[0]) {
        r->call->topics = ids;
        return MT_APP_WAIT;
    }
    (void)mt_buf_addf(&r->call->result, "\"%s\"", best.id);
    return app_give(r);
}

// ---- a page of output ----

typedef struct page {
    mt_buf text;
    bool full;
} page;

// Up to the page's size; then the rest is not wanted.
static int take_piece(const void *piece, size_t len, void *data, mt_err **err)
{
    page *p = data;
    size_t room = p->text.max - p->text.len;

    if (mt_buf_add(&p->text, piece, MT_MIN(len, room)) < 0)
        return mt_fail_oom(err);
    p->full = len > room;
    return p->full ? mt_fail(err, MT_E_IO, "the page is full") : 0;
}

// Without half of a character at its end, where more comes.
static size_t whole_characters(const page *p)
{
    size_t len = p->text.len;
    const char *s = mt_buf_str(&p->text);
    bool cut = false;
    uint32_t c;

    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const char *at = s + len - back;

        if (((unsigned char)*at & 0xc0) == 0x80)
            continue;
        if (mt_utf8_decode(at, back, &c, &cut) == 0 && cut)
            return len - back;
        break;
    }
    return len;
}

static mt_app_outcome command_ended(app_request *r, bool *ret)
{
    mt_http_call call = {.method = "GET"};
    _cleanup_json_ mt_json *v = NULL;
    mt_app_outcome outcome;
    bool done;

    if (app_request_target(r, "/v1/capsule-runs/{0}/commands/{1}", NULL) < 0)
        return app_again(r, "");
    outcome = app_request_send(r, &call, &done);
    if (!done)
        return outcome;
    if (mt_json_parse(mt_buf_str(&r->answer.body), r->answer.body.len, NULL, &v, NULL) < 0)
        return app_again(r, "");
    *ret = mt_json_given(mt_json_get(v, "dateEnded"));
    app_request_reset(r);
    return MT_APP_DONE;
}

static int64_t offset_of(const app_request *r)
{
    uint64_t offset = (uint64_t)app_argument_int(r, 3);
    const char *says = mt_http_answer_header(&r->answer, "X-Maitento-Offset");

    if (says)
        (void)mt_parse_u64(mt_str_of(says), INT64_MAX, &offset);
    return (int64_t)offset;
}

static int write_page(app_request *r, const page *p, bool ended)
{
    size_t len = p->full || !ended ? whole_characters(p) : p->text.len;
    _cleanup_buf_ mt_buf clean = MT_BUF_INIT(4 * (size_t)PAGE_MAX);
    mt_jw w;

    // NULs, too, are no characters of a string.
    (void)mt_utf8_add_clean(&clean, mt_buf_str(&p->text), len);
    for (size_t i = 0; i < clean.len; i++)
        if (!clean.data[i])
            clean.data[i] = '?';
    mt_jw_init(&w, &r->call->result, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_str(&w, "text", (mt_str){mt_buf_str(&clean), clean.len});
    mt_jw_member_int(&w, "nextOffset", offset_of(r) + (int64_t)len);
    mt_jw_member_bool(&w, "ended", ended && !p->full);
    mt_jw_end_object(&w);
    return clean.failed || r->call->result.failed ? -1 : 0;
}

static mt_app_outcome check_page(app_request *r)
{
    int64_t from = app_argument_int(r, 3), most = app_argument_int(r, 4);
    mt_str stream = app_argument(r, 2);

    if (!mt_str_eq(stream, "standard") && !mt_str_eq(stream, "error"))
        return app_refuse(r, "BadArgument",
                          "CapsuleCommandReadOutput: `stream` must be standard or error");
    if (from < 0 || most < 4 || most > PAGE_MAX)
        return app_refuse(r, "BadArgument",
                          "CapsuleCommandReadOutput: `offset` counts from 0 and `maxBytes` is 4 to "
                          "%d",
                          PAGE_MAX);
    return MT_APP_DONE;
}

static int page_target(app_request *r)
{
    if (app_request_target(r, "/v1/capsule-runs/{0}/commands/{1}/output?stream={2}", NULL) < 0)
        return -1;
    return mt_buf_addf(&r->target, "&from=%lld", (long long)app_argument_int(r, 3));
}

mt_app_outcome app_make_output(app_request *r)
{
    page p = {.text.max = (size_t)MT_MAX(app_argument_int(r, 4), 1)};
    mt_http_call call = {.method = "GET", .on_data = take_piece, .only_success = true, .data = &p};
    mt_app_outcome outcome = check_page(r);
    bool ended = false, done;

    // First whether it has ended: then what is read is all of it.
    if (outcome == MT_APP_DONE)
        outcome = command_ended(r, &ended);
    if (outcome != MT_APP_DONE)
        return outcome;
    if (page_target(r) < 0)
        return app_again(r, "");
    outcome = app_request_send(r, &call, &done);
    if (done || p.full)
        outcome = write_page(r, &p, ended) < 0 ? app_again(r, "") : MT_APP_DONE;
    mt_buf_done(&p.text);
    return outcome;
}

// ---- VfsCopy: by way of a file of no name, so that what is copied may be of any size ----

static int put_piece(const void *piece, size_t len, void *data, mt_err **err)
{
    int r = mt_write_full(*(int *)data, piece, len);

    return r < 0 ? mt_fail_errno(err, r, "cannot copy") : 0;
}

static ptrdiff_t get_piece(void *buf, size_t cap, void *data, mt_err **err)
{
    ssize_t n = read(*(int *)data, buf, cap);

    return n < 0 ? mt_fail_errno(err, errno, "cannot copy") : n;
}

static mt_app_outcome copy_out(app_request *r, int fd)
{
    mt_http_call call = {.method = "GET", .on_data = put_piece, .only_success = true, .data = &fd};
    _cleanup_err_ mt_err *err = NULL;
    bool done;

    if (app_request_target(r, r->row->target, &err) < 0)
        return app_refuse(r, "BadArgument", "%s", mt_err_sentence(err));
    return app_request_send(r, &call, &done);
}

static mt_app_outcome copy_in(app_request *r, int fd)
{
    mt_http_call call = {.method = "PUT", .read_body = get_piece, .data = &fd};
    _cleanup_err_ mt_err *err = NULL;
    bool done;

    call.body_length = lseek(fd, 0, SEEK_END);
    if (call.body_length < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return app_again(r, "");
    app_request_reset(r);
    r->type = "application/octet-stream";
    r->has_body = true;
    if (app_request_target(r, "/v1/{2v}/files?path={3}", &err) < 0)
        return app_refuse(r, "BadArgument", "%s", mt_err_sentence(err));
    return app_request_send(r, &call, &done);
}

mt_app_outcome app_make_copy(app_request *r)
{
    _cleanup_close_ int fd = mt_app_door_scratch(r->door);
    mt_app_outcome outcome;

    if (fd < 0)
        return app_again(r, "no room for a copy");
    outcome = copy_out(r, fd);
    if (outcome == MT_APP_DONE)
        outcome = copy_in(r, fd);
    return outcome == MT_APP_DONE ? app_read_nothing(r) : outcome;
}
