// SPDX-License-Identifier: Apache-2.0
// Files of a run: who asks, for what. The rest is server/run-files.h.
#include "server/run-files.h"

// The run must live, and the caller be one who may do anything in it.
static int check_run(mt_request *req, const char *user, char **ret_id, mt_err **err)
{
    _cleanup_(mt_run_done) mt_run run = {0};

    if (access_run(req->api->store, &req->user, MT_MAY_COMMAND, mt_param_dup(req, "id"), &run,
                   err) < 0 ||
        mt_check_run_user(req, &run, "user", user, err) < 0)
        return -1;
    if (run.date_ended)
        return mt_fail(err, MT_E_RUN_ENDED,
                       "capsule run '%s' has ended (%s), and its files with it", run.id,
                       run.end_reason);
    *ret_id = mt_arena_strdup(req->arena, run.id);
    return *ret_id ? 0 : mt_fail_oom(err);
}

static int check_path(const char *field, mt_str path, mt_err **err)
{
    if (!path.data || path.len == 0)
        return mt_fail_field(err, MT_E_BAD_FIELD, field,
                             "%s is missing: give the path of a file in the run", field);
    if (path.len > MT_SESSION_PATH_MAX)
        return mt_fail_field(err, MT_E_BAD_PATH, field, "%s has more than 4095 bytes: shorten it",
                             field);
    if (memchr(path.data, 0, path.len))
        return mt_fail_field(err, MT_E_BAD_PATH, field, "%s contains a NUL byte, which no name can",
                             field);
    return 0;
}

static int text_of(const mt_request *req, mt_str s, mt_str *ret, mt_err **err)
{
    ret->data = mt_arena_strndup(req->arena, s.data ? s.data : "", s.len);
    ret->len = s.len;
    return ret->data ? 0 : mt_fail_oom(err);
}

static int take(mt_request *req, const mt_session_request *what, mt_str user, mt_err **err)
{
    mt_run_files_request q = {.request = *what,
                              .user = "maitento",
                              .range = req->range,
                              .if_none_match = req->if_none_match,
                              .only_head = mt_streq(req->method, "HEAD")};
    char *id = NULL;

    if (user.data && memchr(user.data, 0, user.len))
        return mt_fail_field(err, MT_E_BAD_FIELD, "user", "user holds a NUL");
    if (user.data && !(q.user = mt_arena_strndup(req->arena, user.data, user.len)))
        return mt_fail_oom(err);
    if (text_of(req, what->path, &q.request.path, err) < 0 ||
        text_of(req, what->second, &q.request.second, err) < 0 ||
        check_run(req, q.user, &id, err) < 0)
        return -1;
    q.run_id = id;
    req->taker = mt_run_files_taker(req->api, &q);
    return req->taker ? 0 : mt_fail_oom(err);
}

static int take_path(mt_request *req, mt_session_request *what, mt_err **err)
{
    mt_str path = mt_query(req, "path");

    if (check_path("path", path, err) < 0)
        return -1;
    what->path = path;
    return take(req, what, mt_query(req, "user"), err);
}

static int get_file(mt_request *req, mt_reply *reply, mt_err **err)
{
    return take_path(req, &(mt_session_request){.op = MT_SESSION_READ}, err);
}

static int begin_put_file(mt_request *req, mt_reply *reply, mt_err **err)
{
    return take_path(req, &(mt_session_request){.op = MT_SESSION_WRITE}, err);
}

static int put_file(mt_request *req, mt_reply *reply, mt_err **err)
{
    return mt_fail(err, MT_E_INTERNAL, "the upload has no taker");
}

static int delete_file(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_session_request what = {.op = MT_SESSION_DELETE};

    return mt_query_bool(req, "recursive", &what.flag, err) < 0 ? -1 : take_path(req, &what, err);
}

static int get_stat(mt_request *req, mt_reply *reply, mt_err **err)
{
    return take_path(req, &(mt_session_request){.op = MT_SESSION_STAT}, err);
}

static int get_list(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_session_request what = {.op = MT_SESSION_LIST, .path = mt_query(req, "path")};
    const char *after;
    int64_t limit;

    if (!what.path.data)
        what.path = MT_STR(".");
    if (mt_query_page(req, &limit, &after, err) < 0 ||
        mt_query_bool(req, "recursive", &what.flag, err) < 0 ||
        check_path("path", what.path, err) < 0)
        return -1;
    what.limit = (uint16_t)limit;
    what.second = mt_str_of(after);
    if (what.second.len > MT_SESSION_CURSOR_MAX)
        return mt_fail_field(err, MT_E_BAD_FIELD, "after", "after is no cursor of this list");
    return take(req, &what, mt_query(req, "user"), err);
}

// A member of the body that names a file; with "nameEscaped": true in the form that lists have.
static int body_bytes(const mt_request *req, const char *name, mt_str *ret, mt_err **err)
{
    _cleanup_buf_ mt_buf bytes = MT_BUF_INIT(3 * MT_SESSION_PATH_MAX);
    bool escaped;

    if (mt_json_opt_bool(req->body, "nameEscaped", false, &escaped, err) < 0 ||
        mt_json_need_bytes(req->body, name, ret, err) < 0)
        return -1;
    if (escaped && !mt_vfs_unescape(&bytes, *ret))
        return mt_fail_field(err, MT_E_BAD_FIELD, name,
                             "%s is not percent-encoded, as nameEscaped says it is", name);
    if (escaped && text_of(req, (mt_str){mt_buf_str(&bytes), bytes.len}, ret, err) < 0)
        return -1;
    return check_path(name, *ret, err);
}

static int body_user(const mt_request *req, mt_str *ret, mt_err **err)
{
    *ret = (mt_str){NULL, 0};
    return mt_json_opt_string(req->body, "user", ret, err);
}

static int post_mkdir(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_session_request what = {.op = MT_SESSION_MKDIR};
    mt_str user;

    if (mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "path", "user", "parents", "nameEscaped") < 0 ||
        body_bytes(req, "path", &what.path, err) < 0 || body_user(req, &user, err) < 0 ||
        mt_json_opt_bool(req->body, "parents", false, &what.flag, err) < 0)
        return -1;
    return take(req, &what, user, err);
}

static int post_move(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_session_request what = {.op = MT_SESSION_MOVE};
    mt_str user;

    if (mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "from", "to", "user", "replace", "nameEscaped") < 0 ||
        body_bytes(req, "from", &what.path, err) < 0 ||
        body_bytes(req, "to", &what.second, err) < 0 || body_user(req, &user, err) < 0 ||
        mt_json_opt_bool(req->body, "replace", false, &what.flag, err) < 0)
        return -1;
    return take(req, &what, user, err);
}

static int post_link(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_session_request what = {.op = MT_SESSION_LINK};
    mt_str user;

    if (mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "path", "target", "user", "nameEscaped") < 0 ||
        body_bytes(req, "path", &what.path, err) < 0 ||
        body_bytes(req, "target", &what.second, err) < 0 || body_user(req, &user, err) < 0)
        return -1;
    return take(req, &what, user, err);
}

const mt_route mt_routes_run_files[] = {
    {.method = "GET",
     .pattern = "/v1/capsule-runs/{id}/files",
     .handler = get_file,
     .query = "path user"},
    {.method = "PUT",
     .pattern = "/v1/capsule-runs/{id}/files",
     .handler = put_file,
     .query = "path user",
     .begin = begin_put_file},
    {.method = "DELETE",
     .pattern = "/v1/capsule-runs/{id}/files",
     .handler = delete_file,
     .query = "path user recursive"},
    {.method = "GET",
     .pattern = "/v1/capsule-runs/{id}/files/stat",
     .handler = get_stat,
     .query = "path user"},
    {.method = "GET",
     .pattern = "/v1/capsule-runs/{id}/files/list",
     .handler = get_list,
     .query = "path user recursive limit after"},
    {.method = "POST",
     .pattern = "/v1/capsule-runs/{id}/files/mkdir",
     .handler = post_mkdir,
     .max_body = MT_BODY_SMALL},
    {.method = "POST",
     .pattern = "/v1/capsule-runs/{id}/files/move",
     .handler = post_move,
     .max_body = MT_BODY_SMALL},
    {.method = "POST",
     .pattern = "/v1/capsule-runs/{id}/files/link",
     .handler = post_link,
     .max_body = MT_BODY_SMALL},
    {0},
};
