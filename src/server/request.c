// SPDX-License-Identifier: Apache-2.0
// What handlers ask of a request and do with a reply.
#include "server/api.h"

#include "base/clock.h"

#include <sodium.h>
#include <stdio.h>

mt_str mt_param(const mt_request *req, const char *name)
{
    for (size_t i = 0; i < MT_PARAMS_MAX && req->params_[i].name; i++)
        if (strcmp(req->params_[i].name, name) == 0)
            return req->params_[i].value;
    return (mt_str){"", 0};
}

char *mt_param_dup(const mt_request *req, const char *name)
{
    mt_str value = mt_param(req, name);

    return mt_arena_strndup(req->arena, value.data, value.len);
}

mt_str mt_query(const mt_request *req, const char *name)
{
    for (size_t i = 0; i < req->query_count_; i++)
        if (mt_str_eq(req->query_[i].name, name))
            return req->query_[i].value;
    return (mt_str){NULL, 0};
}

void mt_request_digest(const mt_request *req, char out[MT_REQUEST_DIGEST])
{
    crypto_generichash_state state;
    unsigned char hash[crypto_generichash_BYTES];
    _cleanup_buf_ mt_buf body = MT_BUF_INIT(MT_BODY_LARGE);

    if (req->body)
        (void)mt_json_write(req->body, &body, 0);
    (void)crypto_generichash_init(&state, NULL, 0, sizeof(hash));
    (void)crypto_generichash_update(&state, (const unsigned char *)req->path, strlen(req->path));
    (void)crypto_generichash_update(&state, (const unsigned char *)mt_buf_str(&body), body.len);
    (void)crypto_generichash_final(&state, hash, sizeof(hash));
    mt_hex(hash, sizeof(hash), out);
}

const char *mt_request_by(const mt_request *req)
{
    const char *by = NULL;

    if (req->app_run_id)
        by = mt_arena_printf(req->arena, "%s (app run %s)", req->user.name, req->app_run_id);
    else if (req->run_id)
        by = mt_arena_printf(req->arena, "%s (run %s)", req->user.name, req->run_id);
    return by ? by : req->user.name;
}

void mt_starter_write(mt_jw *w, const char *name, const char *run_id, const char *app_run_id)
{
    char by[MT_STORE_BY];

    if (app_run_id[0])
        (void)snprintf(by, sizeof(by), "%s (app run %s)", name, app_run_id);
    else if (run_id[0])
        (void)snprintf(by, sizeof(by), "%s (run %s)", name, run_id);
    else
        (void)snprintf(by, sizeof(by), "%s", name);
    mt_jw_member_text(w, "startedBy", by);
    mt_jw_member_text(w, "parentRunId", run_id[0] ? run_id : NULL);
    mt_jw_member_text(w, "parentAppRunId", app_run_id[0] ? app_run_id : NULL);
}

void mt_word_write(mt_jw *w, const char *name, const char *word)
{
    mt_jw_member_text(w, name, word[0] ? word : NULL);
}

void mt_run_end_write(mt_jw *w, const char *reason, int64_t limit_ms, const char *cancelled_by,
                      const char *details)
{
    mt_word_write(w, "endReason", reason);
    if (limit_ms)
        mt_jw_member_int(w, "limitMs", limit_ms);
    if (cancelled_by[0])
        mt_jw_member_text(w, "cancelledBy", cancelled_by);
    mt_jw_member_text(w, "failureDetails", details);
}

void mt_run_times_write(mt_jw *w, const mt_run_times *t)
{
    int64_t until = t->ended ? t->ended : mt_now_us();

    mt_jw_member_time(w, "dateCreated", t->created);
    mt_jw_member_time(w, "dateEnded", t->ended);
    mt_jw_member_duration(w, "maxDuration", t->max_duration_ms);
    mt_jw_member_time(w, "deadline", t->deadline);
    mt_jw_key(w, "runSeconds");
    mt_jw_double(w, (double)(until - t->created) / 1e6);
}

int mt_query_text(const mt_request *req, const char *name, const char **ret, mt_err **err)
{
    mt_str value = mt_query(req, name);

    if (value.data && memchr(value.data, '\0', value.len))
        return mt_fail_field(err, MT_E_BAD_FIELD, name, "'%s' holds a NUL", name);
    *ret = value.data;
    return 0;
}

int mt_query_namespace(const mt_request *req, mt_namespace *ns, const char **ret_id, mt_err **err)
{
    const char *name = NULL;

    *ret_id = NULL;
    if (mt_query_text(req, "namespace", &name, err) < 0)
        return -1;
    if (!name)
        return 0;
    *ret_id = ns->id;
    return access_namespace(req->api->store, &req->user, MT_MAY_SEE, name, ns, err);
}

int mt_query_bool(const mt_request *req, const char *name, bool *ret, mt_err **err)
{
    mt_str value = mt_query(req, name);

    if (!value.data) {
        *ret = false;
        return 0;
    }
    if (!mt_str_eq(value, "true") && !mt_str_eq(value, "false"))
        return mt_fail_field(err, MT_E_BAD_FIELD, name, "'%s' must be true or false", name);
    *ret = mt_str_eq(value, "true");
    return 0;
}

int mt_query_int(const mt_request *req, const char *name, int64_t min, int64_t max, int64_t def,
                 int64_t *ret, mt_err **err)
{
    mt_str value = mt_query(req, name);
    uint64_t n;

    if (!value.data) {
        *ret = def;
        return 0;
    }
    if (!mt_parse_u64(value, (uint64_t)max, &n) || (int64_t)n < min)
        return mt_fail_field(err, MT_E_BAD_FIELD, name,
                             "'%s' must be a whole number from %lld to %lld", name, (long long)min,
                             (long long)max);
    *ret = (int64_t)n;
    return 0;
}

int mt_query_page(const mt_request *req, int64_t *ret_limit, const char **ret_after, mt_err **err)
{
    mt_str after = mt_query(req, "after");

    if (mt_query_int(req, "limit", 1, 1000, 100, ret_limit, err) < 0)
        return -1;
    if (after.data && memchr(after.data, '\0', after.len))
        return mt_fail_field(err, MT_E_BAD_FIELD, "after", "'after' is not a cursor of this list");
    *ret_after = after.data;
    return 0;
}

int mt_body_nothing(const mt_request *req, mt_err **err)
{
    if (!req->body)
        return 0;
    return mt_json_need_object(req->body, "the request", err) < 0 ||
                   mt_json_only(req->body, NULL, 0, err) < 0
               ? -1
               : 0;
}

int mt_body_start(const mt_request *req, int64_t *ret_version, const mt_json **ret_inputs,
                  mt_err **err)
{
    *ret_version = 0;
    *ret_inputs = NULL;
    if (!req->body)
        return 0;
    return mt_json_need_object(req->body, "the request", err) < 0 ||
                   MT_JSON_ONLY(req->body, err, "version", "inputs") < 0 ||
                   mt_json_opt_int(req->body, "version", (mt_json_range){1, INT32_MAX, 0},
                                   ret_version, err) < 0 ||
                   mt_json_opt_object(req->body, "inputs", ret_inputs, err) < 0
               ? -1
               : 0;
}

void mt_items_begin(mt_reply *reply, mt_jw *w)
{
    mt_jw_init(w, &reply->body, 0);
    mt_jw_begin_object(w);
    mt_jw_key(w, "items");
    mt_jw_begin_array(w);
}

int mt_items_end(mt_reply *reply, mt_jw *w, const char *next, mt_err **err)
{
    mt_jw_end_array(w);
    mt_word_write(w, "next", next);
    mt_jw_end_object(w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

int mt_reply_json(mt_reply *reply, int status, mt_json *value, mt_err **err)
{
    int r = mt_json_ok(value) ? mt_json_write(value, &reply->body, 0) : -1;

    mt_json_unref(value);
    if (r < 0)
        return mt_fail_oom(err);
    reply->status = status;
    return 0;
}

int mt_reply_empty(mt_reply *reply, int status)
{
    reply->status = status;
    return 0;
}

int mt_reply_header(mt_reply *reply, const char *name, const char *value, mt_err **err)
{
    char *copy = strdup(value);

    if (!copy || reply->header_count == MT_REPLY_HEADERS_MAX) {
        free(copy);
        return mt_fail_oom(err);
    }
    reply->headers[reply->header_count].name = name;
    reply->headers[reply->header_count++].value = copy;
    return 0;
}

void mt_reply_fd(mt_reply *reply, int fd, uint64_t offset, uint64_t length)
{
    reply->fd = fd;
    reply->fd_offset = offset;
    reply->fd_length = length;
}

int mt_reply_not_yet(mt_reply *reply, const char *topic)
{
    reply->not_yet = true;
    reply->topic_ = topic;
    return 0;
}

int mt_reply_no_line_yet(mt_reply *reply, const char *topic)
{
    reply->hears_lines_ = true;
    return mt_reply_not_yet(reply, topic);
}

int mt_reply_once_synced(mt_request *req, mt_reply *reply, const char *run_id, const char *id,
                         mt_err **err)
{
    reply->run_id_ = mt_arena_strdup(req->arena, run_id);
    reply->topic_ = mt_arena_strdup(req->arena, id);
    return reply->run_id_ && reply->topic_ ? 0 : mt_fail_oom(err);
}

int mt_request_namespace(mt_request *req, mt_verb verb, mt_namespace *ret, mt_err **err)
{
    return access_namespace(req->api->store, &req->user, verb, mt_param_dup(req, "ns"), ret, err);
}
