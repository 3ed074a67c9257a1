// SPDX-License-Identifier: Apache-2.0
// Bodies of the requests that a program's calls are.
#include "server/app-calls-internal.h"

#include "base/base64.h"

#include <errno.h>

static int write_body(app_request *r, const mt_json *v, mt_err **err)
{
    if (!mt_json_ok(v) || mt_json_write(v, &r->body, 0) < 0)
        return r->body.failed == -EMSGSIZE
                   ? mt_fail(err, MT_E_TOO_LARGE, "%s: the arguments are over %d MiB",
                             r->call->builtin->name, APP_ANSWER_MAX >> 20)
                   : mt_fail_oom(err);
    r->has_body = true;
    return 0;
}

// An argument that is a JSON list as text.
static int read_list(app_request *r, size_t i, mt_json **ret, mt_err **err)
{
    const char *name = r->call->builtin->parameters[i].name;
    _cleanup_json_ mt_json *list = NULL;
    _cleanup_err_ mt_err *why = NULL;
    mt_str text = app_argument(r, i);

    if (mt_json_parse(text.data, text.len, NULL, &list, &why) < 0)
        return mt_fail(err, MT_E_BAD_JSON, "%s: `%s` is no JSON: %s", r->call->builtin->name, name,
                       mt_err_sentence(why));
    if (mt_json_kind_of(list) != MT_JSON_ARRAY)
        return mt_fail(err, MT_E_BAD_JSON,
                       "%s: `%s` must be a JSON list, such as \"[]\" where there is nothing",
                       r->call->builtin->name, name);
    *ret = MT_TAKE_PTR(list);
    return 0;
}

static int add_list(app_request *r, mt_json *body, const char *member, size_t i, mt_err **err)
{
    mt_json *list = NULL;

    if (read_list(r, i, &list, err) < 0)
        return -1;
    if (mt_json_count(list) == 0)
        (void)mt_json_unref(list);
    else
        (void)mt_json_set(body, member, list);
    return 0;
}

static int need_empty_list(app_request *r, size_t i, mt_err **err)
{
    _cleanup_json_ mt_json *list = NULL;

    if (read_list(r, i, &list, err) < 0)
        return -1;
    if (mt_json_count(list) == 0)
        return 0;
    return mt_fail(err, MT_E_BAD_REQUEST,
                   "%s: `%s` must be \"[]\": models are given no file systems and no tools here",
                   r->call->builtin->name, r->call->builtin->parameters[i].name);
}

int app_body_start(app_request *r, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object();

    if (add_list(r, body, "startup", 2, err) < 0 || add_list(r, body, "vfs", 3, err) < 0 ||
        add_list(r, body, "secrets", 4, err) < 0)
        return -1;
    return write_body(r, body, err);
}

int app_body_exec(app_request *r, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object();
    int64_t ms = app_argument_int(r, 4);

    if (ms < 0)
        return mt_fail(err, MT_E_BAD_REQUEST, "CapsuleExec: `maxMs` is %lld; 0 is no limit",
                       (long long)ms);
    (void)mt_json_set(body, "command", mt_json_ref(mt_json_at(r->call->arguments, 1)));
    if (app_argument(r, 3).len)
        (void)mt_json_set(body, "runAsUser", mt_json_ref(mt_json_at(r->call->arguments, 3)));
    if (ms > 0)
        (void)mt_json_set(body, "maxMs", mt_json_new_int(ms));
    (void)mt_json_set(body, "async", mt_json_ref(mt_json_at(r->call->arguments, 5)));
    if (add_list(r, body, "arguments", 2, err) < 0)
        return -1;
    return write_body(r, body, err);
}

int app_body_exec_with(app_request *r, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_copy(mt_json_at(r->call->arguments, 3));

    (void)mt_json_set(body, "command", mt_json_ref(mt_json_at(r->call->arguments, 1)));
    (void)mt_json_set(body, "arguments", mt_json_ref(mt_json_at(r->call->arguments, 2)));
    return write_body(r, body, err);
}

int app_body_text(app_request *r, mt_err **err)
{
    mt_str text = app_argument(r, r->call->builtin->count - 1);

    r->type = "application/octet-stream";
    r->has_body = true;
    return mt_buf_add(&r->body, text.data, text.len) < 0 ? mt_fail_oom(err) : 0;
}

int app_body_base64(app_request *r, mt_err **err)
{
    mt_str text = app_argument(r, r->call->builtin->count - 1);
    char *bytes = mt_buf_reserve(&r->body, text.len + 4);
    size_t len;

    if (!bytes)
        return mt_fail_oom(err);
    if (!mt_base64_decode(text, bytes, &len))
        return mt_fail(err, MT_E_BAD_REQUEST, "%s: `base64` is no base64", r->call->builtin->name);
    mt_buf_added(&r->body, len);
    r->type = "application/octet-stream";
    r->has_body = true;
    return 0;
}

int app_body_mkdir(app_request *r, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object();

    (void)mt_json_set(body, "path", mt_json_ref(mt_json_at(r->call->arguments, 1)));
    (void)mt_json_set(body, "parents", mt_json_new_bool(true));
    return write_body(r, body, err);
}

int app_body_interaction(app_request *r, mt_err **err)
{
    if (need_empty_list(r, 2, err) < 0 || need_empty_list(r, 3, err) < 0)
        return -1;
    return app_body_inputs(r, err);
}

int app_body_inputs(app_request *r, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object();

    (void)mt_json_set(body, "inputs", mt_json_ref(mt_json_at(r->call->arguments, 1)));
    return write_body(r, body, err);
}
