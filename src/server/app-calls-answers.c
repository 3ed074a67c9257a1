// SPDX-License-Identifier: Apache-2.0
// Answers of the requests that a program's calls are, as results.
#include "server/app-calls-internal.h"

#include "base/base64.h"
#include "base/utf8.h"

#include <errno.h>

// What was written to the result, when it fits.
mt_app_outcome app_give(app_request *r)
{
    if (r->call->result.failed == -EMSGSIZE)
        return app_refuse(r, "TooLarge", "%s: the answer is over %zu MiB as JSON",
                          r->call->builtin->name, r->call->result.max >> 20);
    return r->call->result.failed ? app_again(r, "") : MT_APP_DONE;
}

// No string of a program holds a NUL, but what a command prints may: there U+FFFD stands for it.
void app_replace_nul(mt_buf *json)
{
    enum { ESCAPE = 6 }; // \u0000
    char *at = json->data, *end = at + json->len;

    while (at && at < end && (at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
        if (end - at >= ESCAPE && memcmp(at, "\\u0000", ESCAPE) == 0)
            memcpy(at, "\\ufffd", ESCAPE);
        at += 2;
    }
}

static mt_app_outcome not_json(app_request *r)
{
    return app_again(r, "the server's answer is no JSON");
}

static mt_json *read_json(app_request *r)
{
    mt_json *v = NULL;

    if (mt_json_parse(mt_buf_str(&r->answer.body), r->answer.body.len, NULL, &v, NULL) < 0)
        return NULL;
    return v;
}

static mt_app_outcome give_json(app_request *r, const mt_json *v)
{
    (void)mt_json_write(v, &r->call->result, 0);
    return app_give(r);
}

mt_app_outcome app_read_object(app_request *r)
{
    (void)mt_buf_add(&r->call->result, mt_buf_str(&r->answer.body), r->answer.body.len);
    return app_give(r);
}

mt_app_outcome app_read_items(app_request *r)
{
    _cleanup_json_ mt_json *v = read_json(r);

    return v ? give_json(r, mt_json_get(v, "items")) : not_json(r);
}

mt_app_outcome app_read_id(app_request *r)
{
    _cleanup_json_ mt_json *v = read_json(r);

    return v ? give_json(r, mt_json_get(v, "id")) : not_json(r);
}

mt_app_outcome app_read_nothing(app_request *r)
{
    (void)mt_buf_adds(&r->call->result, "null");
    return app_give(r);
}

mt_app_outcome app_read_exists(app_request *r)
{
    (void)mt_buf_adds(&r->call->result, r->answer.status == 404 ? "false" : "true");
    return app_give(r);
}

mt_app_outcome app_read_text(app_request *r)
{
    mt_str text = {mt_buf_str(&r->answer.body), r->answer.body.len};

    if (text.len > APP_TEXT_MAX)
        return app_refuse(r, "TooLarge", "%s: the file has %zu bytes; a string has at most %d MiB",
                          r->call->builtin->name, text.len, APP_TEXT_MAX >> 20);
    if (!mt_utf8_valid(text.data, text.len) || memchr(text.data, '\0', text.len))
        return app_refuse(r, "BadFormat", "%s: '%.*s' holds bytes that are no UTF-8 text",
                          r->call->builtin->name, (int)app_argument(r, 1).len,
                          app_argument(r, 1).data);
    (void)mt_json_write_string(text, &r->call->result);
    return app_give(r);
}

mt_app_outcome app_read_base64(app_request *r)
{
    const mt_buf *body = &r->answer.body;

    if (body->len > APP_TEXT_MAX / 4 * 3)
        return app_refuse(r, "TooLarge",
                          "%s: the file has %zu bytes; a string has at most %d MiB of base64",
                          r->call->builtin->name, body->len, APP_TEXT_MAX >> 20);
    (void)mt_buf_addc(&r->call->result, '"');
    (void)mt_base64_encode((mt_str){mt_buf_str(body), body->len}, &r->call->result);
    (void)mt_buf_addc(&r->call->result, '"');
    return app_give(r);
}

// ---- what is waited for ----

static mt_app_outcome wait_for(app_request *r, size_t argument)
{
    mt_json *topics = mt_json_new_array();

    (void)mt_json_append(topics, mt_json_ref(mt_json_at(r->call->arguments, argument)));
    if (!mt_json_ok(topics)) {
        (void)mt_json_unref(topics);
        return app_again(r, "");
    }
    r->call->own_topics = topics;
    r->call->topics = topics;
    return MT_APP_WAIT;
}

static bool has(const mt_json *record, const char *date)
{
    return mt_json_given(mt_json_get(record, date));
}

mt_app_outcome app_read_ready(app_request *r)
{
    _cleanup_json_ mt_json *v = read_json(r);

    if (!v)
        return not_json(r);
    return has(v, "dateReady") || has(v, "dateEnded") ? give_json(r, v) : wait_for(r, 0);
}

mt_app_outcome app_read_ended(app_request *r)
{
    _cleanup_json_ mt_json *v = read_json(r);

    if (!v)
        return not_json(r);
    return has(v, "dateEnded") ? give_json(r, v) : wait_for(r, 0);
}

// One that was aborted is told when its run's end has said why.
mt_app_outcome app_read_command(app_request *r)
{
    _cleanup_json_ mt_json *v = read_json(r);
    const char *why;

    if (!v)
        return not_json(r);
    if (!has(v, "dateEnded"))
        return wait_for(r, 1);
    if (!mt_str_eq(mt_json_str(mt_json_get(v, "status")), "Aborted"))
        return give_json(r, v);
    why = mt_json_text(mt_json_get(v, "failureDetails"), "");
    return *why ? app_refuse(r, "CapsuleCommandAborted", "%s", why) : wait_for(r, 1);
}
