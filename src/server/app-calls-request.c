// SPDX-License-Identifier: Apache-2.0
// One request of a program's call, and what becomes of an answer that is an error: what was asked
// has refused it (the program hears of it), or the platform cannot do it now (asked again).
#include "server/app-calls-internal.h"

#include "base/utf8.h"

#include <stdio.h>

enum { AGAIN_MOST_MS = 5000, FAULTS_MOST = 20, SENTENCE_MAX = 8192 };

mt_str app_argument(const app_request *r, size_t i)
{
    return mt_json_str(mt_json_at(r->call->arguments, i));
}

int64_t app_argument_int(const app_request *r, size_t i)
{
    int64_t n = 0;

    (void)mt_json_as_int64(mt_json_at(r->call->arguments, i), &n);
    return n;
}

mt_app_outcome app_refuse(app_request *r, const char *code, const char *fmt, ...)
{
    char text[SENTENCE_MAX]; // the rest is cut off
    va_list ap;

    (void)snprintf(r->call->code, sizeof(r->call->code), "%s", code);
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)mt_utf8_add_clean(&r->call->message, text, strlen(text));
    return MT_APP_REFUSED;
}

// An error of our own parts: without memory it is not the program's.
mt_app_outcome app_refuse_err(app_request *r, const mt_err *err)
{
    if (mt_err_code(err) == MT_E_OOM)
        return app_again(r, "");
    return app_refuse(r, mt_code_name(mt_err_code(err)), "%s", mt_err_sentence(err));
}

// Longer and longer, up to some seconds.
mt_app_outcome app_again(app_request *r, const char *why)
{
    unsigned doubled = MT_MIN(r->call->tries, 6u);

    r->call->again_ms = MT_MIN(100 << doubled, (int)AGAIN_MOST_MS);
    (void)snprintf(r->call->waiting_for, sizeof(r->call->waiting_for), "%s", why);
    return MT_APP_AGAIN;
}

// ---- the address ----

static int add_namespace(app_request *r, mt_str name)
{
    if (!name.len)
        name = mt_str_of(r->call->namespace_name);
    return mt_http_escape(&r->target, name, false);
}

// "name" or "name@namespace".
static int add_vfs(app_request *r, mt_str spec)
{
    const char *at = memrchr(spec.data, '@', spec.len);
    mt_str name = spec, in = {"", 0};

    if (at) {
        name.len = (size_t)(at - spec.data);
        in = (mt_str){at + 1, spec.len - name.len - 1};
    }
    (void)mt_buf_adds(&r->target, "namespaces/");
    (void)add_namespace(r, in);
    (void)mt_buf_adds(&r->target, "/vfs/");
    return mt_http_escape(&r->target, name, false);
}

// What is empty would be another address.
static int check_part(const app_request *r, size_t i, mt_str text, mt_err **err)
{
    if (text.len)
        return 0;
    return mt_fail(err, MT_E_BAD_REQUEST, "%s: `%s` is empty", r->call->builtin->name,
                   r->call->builtin->parameters[i].name);
}

static int add_argument(app_request *r, size_t i, char how, mt_err **err)
{
    mt_str text = app_argument(r, i);

    if (how == 'n')
        return add_namespace(r, text);
    if (check_part(r, i, text, err) < 0)
        return -1;
    return how == 'v' ? add_vfs(r, text) : mt_http_escape(&r->target, text, false);
}

int app_request_target(app_request *r, const char *pattern, mt_err **err)
{
    mt_buf_clear(&r->target);
    for (const char *p = pattern; *p; p++) {
        if (*p != '{') {
            (void)mt_buf_addc(&r->target, *p);
            continue;
        }
        if (add_argument(r, (size_t)(p[1] - '0'), p[2], err) < 0)
            return -1;
        p = strchr(p, '}');
    }
    return r->target.failed ? mt_fail(err, MT_E_URI_TOO_LONG, "%s: the arguments are too long",
                                      r->call->builtin->name)
                            : 0;
}

// ---- the answer ----

// Says nothing of what was asked: it is asked again.
static bool is_platform(const char *code, unsigned tries)
{
    static const char *const CODES[] = {"outOfMemory", "unavailable",    "rateLimited",
                                        "unreachable", "outcomeUnknown", "requestTimeout"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(CODES); i++)
        if (strcmp(code, CODES[i]) == 0)
            return true;
    // A fault of ours may pass, or not.
    return (strcmp(code, "internal") == 0 || strcmp(code, "io") == 0) && tries < FAULTS_MOST;
}

// Room that others may give back is waited for. What one run's own app runs take is not: it might
// wait for ever.
static bool may_wait_for_room(const app_request *r)
{
    return r->call->builtin->kind == MT_MTC_START &&
           strcmp(r->call->builtin->name, "AppStart") != 0;
}

static mt_app_outcome no_room(app_request *r, const char *detail)
{
    char why[128];

    (void)snprintf(why, sizeof(why), "room: %s", detail);
    return app_again(r, why);
}

static mt_app_outcome failed(app_request *r, const char *code, const char *detail)
{
    if (strcmp(code, "capacityExceeded") == 0 && may_wait_for_room(r))
        return no_room(r, detail);
    if (is_platform(code, r->call->tries))
        return app_again(r, detail);
    return app_refuse(r, code, "%s", detail);
}

static mt_app_outcome read_problem(app_request *r)
{
    const mt_buf *body = &r->answer.body;
    _cleanup_json_ mt_json *problem = NULL;
    _cleanup_err_ mt_err *err = NULL;

    if (mt_json_parse(mt_buf_str(body), body->len, NULL, &problem, &err) < 0)
        return app_again(r, "the server's answer is no JSON");
    return failed(r, mt_json_text(mt_json_get(problem, "code"), "internal"),
                  mt_json_text(mt_json_get(problem, "detail"), "the request failed"));
}

static bool is_missing(const app_request *r)
{
    return r->answer.status == 404 && r->row->missing_is_fine;
}

void app_request_reset(app_request *r)
{
    mt_http_answer_done(&r->answer);
    mt_buf_clear(&r->body);
    r->has_body = false;
    r->type = NULL;
}

mt_app_outcome app_request_send(app_request *r, const mt_http_call *more, bool *ret_done)
{
    const char *const headers[][2] = {
        {"Content-Type", r->has_body ? (r->type ? r->type : "application/json") : NULL},
        {"Idempotency-Key", r->key[0] ? r->key : NULL},
    };
    _cleanup_err_ mt_err *err = NULL;
    mt_http_call call = *more;

    *ret_done = false;
    call.target = mt_buf_str(&r->target);
    call.headers = headers;
    call.header_count = MT_ARRAY_SIZE(headers);
    call.max_collect = APP_ANSWER_MAX;
    if (mt_app_door_call(r->door, r->call->run_id, &call, &r->answer, &err) < 0) {
        if (mt_err_code(err) == MT_E_TOO_LARGE)
            return app_refuse(r, "TooLarge", "%s: the answer is over %d MiB",
                              r->call->builtin->name, APP_ANSWER_MAX >> 20);
        // Cut off: again. Anything else is ours (a disk that is full), and would be so again.
        return is_platform(mt_code_name(mt_err_code(err)), r->call->tries) ? app_again(r, "")
                                                                           : app_refuse_err(r, err);
    }
    if (r->answer.status >= 300 && !is_missing(r))
        return read_problem(r);
    *ret_done = true;
    return MT_APP_DONE;
}

mt_app_outcome app_request_make(app_request *r, bool *ret_done)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_http_call call = {.method = r->row->method};

    *ret_done = false;
    if (app_request_target(r, r->row->target, &err) < 0 ||
        (r->row->body && r->row->body(r, &err) < 0)) {
        if (mt_err_code(err) == MT_E_OOM)
            return app_again(r, "");
        return app_refuse(r, "BadArgument", "%s", mt_err_sentence(err));
    }
    if (r->call->builtin->kind == MT_MTC_START)
        (void)snprintf(r->key, sizeof(r->key), "app-run %s %lld", r->call->run_id,
                       (long long)r->call->number);
    call.body = mt_buf_str(&r->body);
    call.body_len = r->body.len;
    call.has_body = r->has_body;
    return app_request_send(r, &call, ret_done);
}
