// SPDX-License-Identifier: Apache-2.0
// Secrets of a namespace. A value comes in and is never answered, logged or put into a sentence;
// what it lay in on its way is overwritten.
#include "base/base64.h"
#include "server/api.h"

static int find_secret(mt_request *req, mt_verb verb, mt_secret *ret, mt_err **err)
{
    return access_secret(req->api->store, &req->user, verb, mt_param_dup(req, "ns"),
                         mt_param_dup(req, "name"), ret, err);
}

static void write_secret(mt_jw *w, const mt_secret *secret)
{
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "id", secret->id);
    mt_jw_member_text(w, "name", secret->name);
    mt_jw_member_text(w, "namespace", secret->namespace_name);
    mt_jw_member_time(w, "dateCreated", secret->date_created);
    mt_jw_member_time(w, "dateUpdated", secret->date_updated);
    mt_jw_end_object(w);
}

static int reply_secret(mt_reply *reply, int status, const mt_secret *secret, mt_err **err)
{
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    write_secret(&w, secret);
    reply->status = status;
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

// The bytes of value or valueBase64, in a buffer that is wiped.
static int read_value(const mt_request *req, mt_buf *ret, mt_err **err)
{
    const mt_json *plain = mt_json_get(req->body, "value");
    const mt_json *coded = mt_json_get(req->body, "valueBase64");
    char *room;
    mt_str text;
    size_t len;

    if (mt_json_given(plain) == mt_json_given(coded))
        return mt_fail_field(err, MT_E_BAD_FIELD, "value",
                             "a secret takes either value (text) or valueBase64 (bytes)");
    if (!mt_json_as_str(mt_json_given(plain) ? plain : coded, &text))
        return mt_fail_field(err, MT_E_BAD_FIELD, mt_json_given(plain) ? "value" : "valueBase64",
                             "the value of a secret must be a string");
    if (mt_json_given(plain))
        return mt_buf_add(ret, text.data, text.len) < 0 ? mt_fail_oom(err) : 0;
    room = mt_buf_reserve(ret, MT_BASE64_ROOM(text.len));
    if (!room)
        return mt_fail_oom(err);
    if (!mt_base64_decode(text, room, &len))
        return mt_fail_field(err, MT_E_BAD_FIELD, "valueBase64", "'valueBase64' is not base64");
    mt_buf_added(ret, len);
    return 0;
}

static int create(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_buf_ mt_buf value = MT_BUF_SECRET_INIT(MT_BODY_MEDIUM);
    mt_secret secret;
    mt_namespace ns;
    mt_object object;
    mt_str name;

    if (mt_request_namespace(req, MT_MAY_SEE, &ns, err) < 0)
        return -1;
    object = mt_object_secret_in(&ns);
    if (access_check(&req->user, MT_MAY_CREATE, &object, err) < 0 ||
        mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "name", "value", "valueBase64") < 0 ||
        mt_json_need_name(req->body, "name", &name, err) < 0 || read_value(req, &value, err) < 0 ||
        mt_store_secret_create(req->api->store, ns.id, name.data,
                               (mt_str){mt_buf_str(&value), value.len}, &secret, err) < 0)
        return -1;
    return reply_secret(reply, 201, &secret, err);
}

static int set(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_buf_ mt_buf value = MT_BUF_SECRET_INIT(MT_BODY_MEDIUM);
    mt_secret secret, changed;

    if (find_secret(req, MT_MAY_CHANGE, &secret, err) < 0 ||
        mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "value", "valueBase64") < 0 ||
        read_value(req, &value, err) < 0 ||
        mt_store_secret_set(req->api->store, secret.id, (mt_str){mt_buf_str(&value), value.len},
                            &changed, err) < 0)
        return -1;
    return reply_secret(reply, 200, &changed, err);
}

static int create_secret(mt_request *req, mt_reply *reply, mt_err **err)
{
    int r = create(req, reply, err);

    mt_json_wipe(req->body);
    return r;
}

static int set_secret(mt_request *req, mt_reply *reply, mt_err **err)
{
    int r = set(req, reply, err);

    mt_json_wipe(req->body);
    return r;
}

static int get_secret(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_secret secret;

    return find_secret(req, MT_MAY_SEE, &secret, err) < 0 ? -1
                                                          : reply_secret(reply, 200, &secret, err);
}

static int list_secrets(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_secret_list_done) mt_secret_list list = {0};
    mt_namespace ns;
    mt_page page;
    int64_t limit;
    mt_jw w;

    if (mt_request_namespace(req, MT_MAY_SEE, &ns, err) < 0 ||
        mt_query_page(req, &limit, &page.after, err) < 0)
        return -1;
    page.limit = (size_t)limit;
    if (mt_store_secret_list(req->api->store, &req->user, ns.id, page, &list, err) < 0)
        return -1;
    mt_items_begin(reply, &w);
    for (size_t i = 0; i < list.count; i++)
        write_secret(&w, &list.items[i]);
    return mt_items_end(reply, &w, list.next, err);
}

static int delete_secret(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_secret secret;
    bool force = false;

    if (find_secret(req, MT_MAY_DELETE, &secret, err) < 0 ||
        mt_query_bool(req, "force", &force, err) < 0 ||
        mt_store_secret_delete(req->api->store, secret.id, force, err) < 0)
        return -1;
    return mt_reply_empty(reply, 204);
}

const mt_route mt_routes_secrets[] = {
    {.method = "GET",
     .pattern = "/v1/namespaces/{ns}/secrets",
     .handler = list_secrets,
     .query = "limit after"},
    {.method = "POST",
     .pattern = "/v1/namespaces/{ns}/secrets",
     .handler = create_secret,
     .max_body = MT_BODY_MEDIUM},
    {.method = "GET", .pattern = "/v1/namespaces/{ns}/secrets/{name}", .handler = get_secret},
    {.method = "PUT",
     .pattern = "/v1/namespaces/{ns}/secrets/{name}",
     .handler = set_secret,
     .max_body = MT_BODY_MEDIUM},
    {.method = "DELETE",
     .pattern = "/v1/namespaces/{ns}/secrets/{name}",
     .handler = delete_secret,
     .query = "force"},
    {0},
};
