// SPDX-License-Identifier: Apache-2.0
// Interactive shells in a run (server/shells.h).
#include "server/shells.h"

#include <stdio.h>

enum { DEFAULT_COLUMNS = 80, DEFAULT_ROWS = 24 };

// user: NULL where it is not asked for.
static int take(mt_request *req, mt_shell_request *what, const char *user, mt_err **err)
{
    _cleanup_(mt_run_done) mt_run run = {0};
    mt_str id = mt_param(req, "shell");

    if (access_run(req->api->store, &req->user, MT_MAY_COMMAND, mt_param_dup(req, "id"), &run,
                   err) < 0 ||
        (user && mt_check_run_user(req, &run, "user", user, err) < 0))
        return -1;
    if (what->kind == MT_SHELL_MAKE && run.date_ended)
        return mt_fail(err, MT_E_RUN_ENDED, "capsule run '%s' has ended (%s): start another",
                       run.id, run.end_reason);
    (void)snprintf(what->run_id, sizeof(what->run_id), "%s", run.id);
    (void)snprintf(what->id, sizeof(what->id), "%.*s", (int)MT_MIN(id.len, (size_t)MT_ID_LEN),
                   id.data);
    (void)snprintf(what->owner, sizeof(what->owner), "%s", req->user.id);
    (void)snprintf(what->owner_name, sizeof(what->owner_name), "%s", req->user.name);
    (void)snprintf(what->user, sizeof(what->user), "%s", user ? user : "");
    req->taker = mt_shell_taker(req->api, what);
    return req->taker ? 0 : mt_fail_oom(err);
}

static int take_kind(mt_request *req, mt_shell_kind kind, mt_err **err)
{
    return take(req, &(mt_shell_request){.kind = kind}, NULL, err);
}

static int read_side(const mt_request *req, const char *name, bool needed, uint16_t def,
                     uint16_t *ret, mt_err **err)
{
    const mt_json_range range = {1, MT_SESSION_SIDE_MAX, def};
    int64_t n;

    if (needed && !mt_json_get(req->body, name))
        return mt_fail_field(err, MT_E_BAD_FIELD, name, "%s is missing", name);
    if (mt_json_opt_int(req->body, name, range, &n, err) < 0)
        return -1;
    *ret = (uint16_t)n;
    return 0;
}

static int post_shell(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_str user = {0}, term = {0};
    mt_shell_request what = {.kind = MT_SHELL_MAKE};

    if (mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "user", "term", "columns", "rows") < 0 ||
        mt_json_opt_string(req->body, "user", &user, err) < 0 ||
        mt_json_opt_string(req->body, "term", &term, err) < 0 ||
        read_side(req, "columns", false, DEFAULT_COLUMNS, &what.columns, err) < 0 ||
        read_side(req, "rows", false, DEFAULT_ROWS, &what.rows, err) < 0)
        return -1;
    if (!user.data)
        user = MT_STR("maitento");
    if (!term.data)
        term = MT_STR("xterm");
    if (!mt_session_is_term(term))
        return mt_fail_field(err, MT_E_BAD_FIELD, "term",
                             "term is the name of a terminal, such as xterm-256color: letters, "
                             "digits, '+', '-', '.' and '_', at most %d",
                             MT_SESSION_TERM_MAX);
    (void)snprintf(what.term, sizeof(what.term), "%s", term.data);
    return take(req, &what, user.data, err);
}

static int list_shells(mt_request *req, mt_reply *reply, mt_err **err)
{
    return take_kind(req, MT_SHELL_LIST, err);
}

static int get_shell(mt_request *req, mt_reply *reply, mt_err **err)
{
    return take_kind(req, MT_SHELL_LOOK, err);
}

static int delete_shell(mt_request *req, mt_reply *reply, mt_err **err)
{
    return take_kind(req, MT_SHELL_CLOSE, err);
}

static int get_output(mt_request *req, mt_reply *reply, mt_err **err)
{
    return take_kind(req, MT_SHELL_READ, err);
}

static int begin_input(mt_request *req, mt_reply *reply, mt_err **err)
{
    return take_kind(req, MT_SHELL_TYPE, err);
}

static int post_input(mt_request *req, mt_reply *reply, mt_err **err)
{
    return mt_fail(err, MT_E_INTERNAL, "the input has no taker");
}

static int put_size(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_shell_request what = {.kind = MT_SHELL_RESIZE};

    if (mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "columns", "rows") < 0 ||
        read_side(req, "columns", true, 0, &what.columns, err) < 0 ||
        read_side(req, "rows", true, 0, &what.rows, err) < 0)
        return -1;
    return take(req, &what, NULL, err);
}

const mt_route mt_routes_shells[] = {
    {.method = "POST",
     .pattern = "/v1/capsule-runs/{id}/shells",
     .handler = post_shell,
     .max_body = MT_BODY_SMALL},
    {.method = "GET", .pattern = "/v1/capsule-runs/{id}/shells", .handler = list_shells},
    {.method = "GET", .pattern = "/v1/capsule-runs/{id}/shells/{shell}", .handler = get_shell},
    {.method = "DELETE",
     .pattern = "/v1/capsule-runs/{id}/shells/{shell}",
     .handler = delete_shell},
    {.method = "GET",
     .pattern = "/v1/capsule-runs/{id}/shells/{shell}/output",
     .handler = get_output},
    {.method = "POST",
     .pattern = "/v1/capsule-runs/{id}/shells/{shell}/input",
     .handler = post_input,
     .begin = begin_input},
    {.method = "PUT",
     .pattern = "/v1/capsule-runs/{id}/shells/{shell}/size",
     .handler = put_size,
     .max_body = MT_BODY_SMALL},
    {0},
};
