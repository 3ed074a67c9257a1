// SPDX-License-Identifier: Apache-2.0
// Who is asking, users and keys, namespaces and their members.
#include "base/clock.h"
#include "server/api.h"

#include <sodium.h>

// ---- shared ----

typedef struct page {
    mt_page part;
    mt_jw w;
} page;

static int page_begin(mt_request *req, page *p, mt_err **err)
{
    int64_t limit;

    if (mt_query_page(req, &limit, &p->part.after, err) < 0)
        return -1;
    p->part.limit = (size_t)limit;
    return 0;
}

static int need_admin(const mt_request *req, mt_err **err)
{
    mt_object server = mt_object_server();

    return access_check(&req->user, MT_MAY_ADMIN, &server, err);
}

// Keys and users that are made by way of a run's sign-in end with the run.
static const char *made_in_run(const mt_request *req)
{
    return req->run_id ? req->run_id : "";
}

// The body's "name", as a C string that lives as long as the body.
static int body_name(const mt_request *req, const char **ret, mt_err **err)
{
    mt_str name;

    if (mt_json_need_object(req->body, "the request", err) < 0 ||
        mt_json_need_string(req->body, "name", &name, err) < 0)
        return -1;
    *ret = name.data;
    return 0;
}

// ---- who ----

static int reply_whoami(const mt_request *req, const mt_user *user, mt_reply *reply, mt_err **err)
{
    const char *ns = user->default_namespace[0] ? user->default_namespace : NULL;
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_text(&w, "id", user->id);
    mt_jw_member_text(&w, "name", user->name);
    mt_jw_member_text(&w, "role", mt_role_name(user->role));
    mt_jw_member_text(&w, "via", req->via);
    mt_jw_member_text(&w, "defaultNamespace", req->run_namespace ? req->run_namespace : ns);
    mt_jw_end_object(&w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int whoami(mt_request *req, mt_reply *reply, mt_err **err)
{
    return reply_whoami(req, &req->user, reply, err);
}

static int set_default_namespace(mt_request *req, mt_reply *reply, mt_err **err)
{
    const char *name;
    mt_namespace ns;
    mt_user user;

    if (body_name(req, &name, err) < 0 || MT_JSON_ONLY(req->body, err, "name") < 0 ||
        access_namespace(req->api->store, &req->user, MT_MAY_SEE, name, &ns, err) < 0 ||
        mt_store_user_set_default(req->api->store, req->user.id, ns.id, &user, err) < 0)
        return -1;
    return reply_whoami(req, &user, reply, err);
}

// ---- namespaces ----

static void write_namespace(mt_jw *w, const mt_namespace *ns)
{
    mt_jw_member_text(w, "id", ns->id);
    mt_jw_member_text(w, "name", ns->name);
    mt_jw_member_text(w, "owner", ns->owner);
    mt_jw_member_time(w, "dateCreated", ns->date_created);
}

static int list_namespaces(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_namespace_list_done) mt_namespace_list l = {0};
    page p;

    if (page_begin(req, &p, err) < 0 ||
        mt_store_namespace_list(req->api->store, &req->user, p.part, &l, err) < 0)
        return -1;
    mt_items_begin(reply, &p.w);
    for (size_t i = 0; i < l.count; i++) {
        mt_jw_begin_object(&p.w);
        write_namespace(&p.w, &l.items[i]);
        mt_jw_end_object(&p.w);
    }
    return mt_items_end(reply, &p.w, l.next, err);
}

static int create_namespace(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_object server = mt_object_server();
    bool became_default;
    const char *name;
    mt_namespace ns;
    mt_jw w;

    if (access_check(&req->user, MT_MAY_CREATE, &server, err) < 0 ||
        body_name(req, &name, err) < 0 || MT_JSON_ONLY(req->body, err, "name") < 0 ||
        mt_store_namespace_create(req->api->store, &req->user, name, &ns, &became_default, err) < 0)
        return -1;
    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    write_namespace(&w, &ns);
    if (became_default)
        mt_jw_member_bool(&w, "becameDefault", true);
    else if (req->user.default_namespace[0])
        mt_jw_member_text(&w, "yourDefault", req->user.default_namespace);
    mt_jw_end_object(&w);
    reply->status = 201;
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int get_namespace(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_namespace ns;
    mt_jw w;

    if (mt_request_namespace(req, MT_MAY_SEE, &ns, err) < 0)
        return -1;
    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    write_namespace(&w, &ns);
    mt_jw_end_object(&w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int delete_namespace(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_namespace ns;

    if (mt_request_namespace(req, MT_MAY_DELETE, &ns, err) < 0 ||
        mt_store_namespace_delete(req->api->store, ns.id, err) < 0)
        return -1;
    return mt_reply_empty(reply, 204);
}

// ---- members ----

static int list_members(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_user_list_done) mt_user_list l = {0};
    mt_namespace ns;
    page p;

    if (page_begin(req, &p, err) < 0 || mt_request_namespace(req, MT_MAY_SEE, &ns, err) < 0 ||
        mt_store_member_list(req->api->store, ns.id, p.part, &l, err) < 0)
        return -1;
    mt_items_begin(reply, &p.w);
    for (size_t i = 0; i < l.count; i++) {
        mt_jw_begin_object(&p.w);
        mt_jw_member_text(&p.w, "id", l.items[i].id);
        mt_jw_member_text(&p.w, "name", l.items[i].name);
        mt_jw_member_time(&p.w, "dateCreated", l.items[i].date_created);
        mt_jw_end_object(&p.w);
    }
    return mt_items_end(reply, &p.w, l.next, err);
}

static int add_member(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_namespace ns;
    mt_user user;

    if (mt_request_namespace(req, MT_MAY_CHANGE, &ns, err) < 0 ||
        mt_store_user_by_name(req->api->store, mt_param_dup(req, "user"), &user, err) < 0 ||
        mt_store_member_add(req->api->store, ns.id, user.id, err) < 0)
        return -1;
    return mt_reply_empty(reply, 204);
}

static int remove_member(mt_request *req, mt_reply *reply, mt_err **err)
{
    char *name = mt_param_dup(req, "user");
    mt_namespace ns;
    mt_user user;
    // Anybody may leave.
    mt_verb verb = name && mt_streq(name, req->user.name) ? MT_MAY_SEE : MT_MAY_CHANGE;

    if (mt_request_namespace(req, verb, &ns, err) < 0 ||
        mt_store_user_by_name(req->api->store, name, &user, err) < 0 ||
        mt_store_member_remove(req->api->store, ns.id, user.id, err) < 0)
        return -1;
    return mt_reply_empty(reply, 204);
}

// ---- keys ----

static void write_key(mt_jw *w, const mt_key *key)
{
    mt_jw_member_text(w, "id", key->id);
    mt_jw_member_text(w, "name", key->name);
    mt_jw_member_text(w, "user", key->user);
    mt_jw_member_time(w, "dateCreated", key->date_created);
    mt_jw_member_time(w, "expires", key->date_expires);
    mt_jw_member_time(w, "dateLastUsed", key->date_last_used);
    mt_jw_member_text(w, "runId", key->run_id[0] ? key->run_id : NULL);
}

// Whose keys are meant: the caller's own, or for an administrator those of a named user.
static int whose_keys(mt_request *req, mt_str name, mt_user *ret, mt_err **err)
{
    if (!name.data || mt_str_eq(name, req->user.name)) {
        *ret = req->user;
        return 0;
    }
    if (need_admin(req, err) < 0)
        return -1;
    return mt_store_user_by_name(req->api->store, mt_arena_strndup(req->arena, name.data, name.len),
                                 ret, err);
}

static int list_keys(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_key_list_done) mt_key_list l = {0};
    mt_user user;
    page p;

    if (page_begin(req, &p, err) < 0 || whose_keys(req, mt_query(req, "user"), &user, err) < 0 ||
        mt_store_key_list(req->api->store, user.id, p.part, &l, err) < 0)
        return -1;
    mt_items_begin(reply, &p.w);
    for (size_t i = 0; i < l.count; i++) {
        mt_jw_begin_object(&p.w);
        write_key(&p.w, &l.items[i]);
        mt_jw_end_object(&p.w);
    }
    return mt_items_end(reply, &p.w, l.next, err);
}

static int create_key(mt_request *req, mt_reply *reply, mt_err **err)
{
    char token[MT_STORE_TOKEN];
    int64_t expires = 0;
    const char *name;
    mt_user user;
    mt_str whose;
    mt_key key;
    mt_jw w;

    if (body_name(req, &name, err) < 0 ||
        MT_JSON_ONLY(req->body, err, "name", "expires", "user") < 0 ||
        mt_json_opt_time(req->body, "expires", &expires, err) < 0 ||
        mt_json_opt_string(req->body, "user", &whose, err) < 0 ||
        whose_keys(req, whose, &user, err) < 0 ||
        mt_store_key_create_in_run(req->api->store, user.id, name, expires, made_in_run(req), &key,
                                   token, err) < 0)
        return -1;
    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    write_key(&w, &key);
    mt_jw_member_text(&w, "key", token);
    mt_jw_end_object(&w);
    sodium_memzero(token, sizeof(token));
    reply->status = 201;
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int delete_key(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_object object;
    mt_key key;

    if (mt_store_key_get(req->api->store, mt_param_dup(req, "id"), &key, err) < 0)
        return -1;
    object = mt_object_key(&key);
    if (access_check(&req->user, MT_MAY_DELETE, &object, err) < 0 ||
        mt_store_key_delete(req->api->store, key.id, err) < 0)
        return -1;
    return mt_reply_empty(reply, 204);
}

// ---- users ----

static void write_user(mt_jw *w, const mt_user *user)
{
    mt_jw_member_text(w, "id", user->id);
    mt_jw_member_text(w, "name", user->name);
    mt_jw_member_text(w, "role", mt_role_name(user->role));
    mt_jw_member_time(w, "dateCreated", user->date_created);
    mt_jw_member_text(w, "runId", user->run_id[0] ? user->run_id : NULL);
    mt_jw_member_bool(w, "stopped", user->stopped);
}

static int list_users(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_user_list_done) mt_user_list l = {0};
    page p;

    if (need_admin(req, err) < 0 || page_begin(req, &p, err) < 0 ||
        mt_store_user_list(req->api->store, p.part, &l, err) < 0)
        return -1;
    mt_items_begin(reply, &p.w);
    for (size_t i = 0; i < l.count; i++) {
        mt_jw_begin_object(&p.w);
        write_user(&p.w, &l.items[i]);
        mt_jw_end_object(&p.w);
    }
    return mt_items_end(reply, &p.w, l.next, err);
}

static int read_role(const mt_request *req, mt_role *ret, mt_err **err)
{
    mt_str role;

    if (mt_json_opt_string(req->body, "role", &role, err) < 0)
        return -1;
    if (role.data && !mt_str_eq(role, "user") && !mt_str_eq(role, "admin"))
        return mt_fail_field(err, MT_E_BAD_FIELD, "role", "a role is user or admin, not '%.40s'",
                             role.data);
    *ret = role.data && mt_str_eq(role, "admin") ? MT_ROLE_ADMIN : MT_ROLE_USER;
    return 0;
}

// With a first key, as someone who has no account on this host could not sign in to make one.
static int create_user(mt_request *req, mt_reply *reply, mt_err **err)
{
    char token[MT_STORE_TOKEN];
    const char *name;
    int64_t expires = 0; // of the key
    mt_role role = MT_ROLE_USER;
    mt_user user;
    mt_key key;
    mt_jw w;

    if (need_admin(req, err) < 0 || body_name(req, &name, err) < 0 ||
        MT_JSON_ONLY(req->body, err, "name", "role", "expires") < 0 ||
        read_role(req, &role, err) < 0 || mt_json_opt_time(req->body, "expires", &expires, err) < 0)
        return -1;
    if (expires && expires <= mt_now_us()) // before the user is made
        return mt_fail_field(err, MT_E_BAD_FIELD, "expires", "a key cannot expire in the past");
    if (mt_store_user_create_in_run(req->api->store, name, role, made_in_run(req), &user, err) <
            0 ||
        mt_store_key_create_in_run(req->api->store, user.id, "first", expires, made_in_run(req),
                                   &key, token, err) < 0)
        return -1;
    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    write_user(&w, &user);
    mt_jw_member_text(&w, "key", token);
    mt_jw_end_object(&w);
    sodium_memzero(token, sizeof(token));
    reply->status = 201;
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int delete_user(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_user user;

    if (need_admin(req, err) < 0 ||
        mt_store_user_by_name(req->api->store, mt_param_dup(req, "user"), &user, err) < 0 ||
        mt_store_user_delete(req->api->store, user.id, err) < 0)
        return -1;
    return mt_reply_empty(reply, 204);
}

const mt_route mt_routes_access[] = {
    {.method = "GET", .pattern = "/v1/whoami", .handler = whoami},
    {.method = "PUT",
     .pattern = "/v1/default-namespace",
     .handler = set_default_namespace,
     .max_body = MT_BODY_SMALL},
    {.method = "GET",
     .pattern = "/v1/namespaces",
     .handler = list_namespaces,
     .query = "limit after"},
    {.method = "POST",
     .pattern = "/v1/namespaces",
     .handler = create_namespace,
     .max_body = MT_BODY_SMALL},
    {.method = "GET", .pattern = "/v1/namespaces/{ns}", .handler = get_namespace},
    {.method = "DELETE", .pattern = "/v1/namespaces/{ns}", .handler = delete_namespace},
    {.method = "GET",
     .pattern = "/v1/namespaces/{ns}/members",
     .handler = list_members,
     .query = "limit after"},
    {.method = "PUT", .pattern = "/v1/namespaces/{ns}/members/{user}", .handler = add_member},
    {.method = "DELETE", .pattern = "/v1/namespaces/{ns}/members/{user}", .handler = remove_member},
    {.method = "GET", .pattern = "/v1/keys", .handler = list_keys, .query = "limit after user"},
    {.method = "POST", .pattern = "/v1/keys", .handler = create_key, .max_body = MT_BODY_SMALL},
    {.method = "DELETE", .pattern = "/v1/keys/{id}", .handler = delete_key},
    {.method = "GET", .pattern = "/v1/users", .handler = list_users, .query = "limit after"},
    {.method = "POST", .pattern = "/v1/users", .handler = create_user, .max_body = MT_BODY_SMALL},
    {.method = "DELETE", .pattern = "/v1/users/{user}", .handler = delete_user},
    {0},
};
