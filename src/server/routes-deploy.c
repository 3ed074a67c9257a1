// SPDX-License-Identifier: Apache-2.0
// Deploy, and what is deployed: lists and objects of every kind of resource.
#include "base/base64.h"
#include "core/apps.h"
#include "core/deploy.h"
#include "http/server.h"
#include "mtr/capsule-def.h"
#include "server/api.h"

#include <stdio.h>

// ---- reading a project ----

static int file_fault(mt_err **err, size_t i, const char *member, const char *message)
{
    char field[64];

    (void)snprintf(field, sizeof(field), "files[%zu]%s%s", i, member[0] ? "." : "", member);
    return mt_fail_field(err, MT_E_BAD_FIELD, field, "%s %s", field, message);
}

static int read_content(mt_request *req, const mt_json *v, size_t i, mt_str *ret, mt_err **err)
{
    const mt_json *plain = mt_json_get(v, "content"), *coded = mt_json_get(v, "contentBase64");
    mt_str text;
    char *bytes;

    if (mt_json_given(plain) == mt_json_given(coded))
        return file_fault(err, i, "", "takes either content or contentBase64");
    if (mt_json_given(plain))
        return mt_json_as_str(plain, ret) ? 0 : file_fault(err, i, "content", "must be a string");
    if (!mt_json_as_str(coded, &text))
        return file_fault(err, i, "contentBase64", "must be a string");
    bytes = mt_arena_alloc(req->arena, MT_BASE64_ROOM(text.len));
    if (!bytes)
        return mt_fail_oom(err);
    if (!mt_base64_decode(text, bytes, &ret->len))
        return file_fault(err, i, "contentBase64", "is not base64");
    ret->data = bytes;
    return 0;
}

static int read_file(mt_request *req, const mt_json *v, size_t i, mt_deploy_file *ret, mt_err **err)
{
    if (mt_json_kind_of(v) != MT_JSON_OBJECT)
        return file_fault(err, i, "", "must be an object");
    if (MT_JSON_ONLY(v, err, "path", "content", "contentBase64") < 0)
        return mt_wrap(err, "files[%zu]", i);
    if (!mt_json_as_str(mt_json_get(v, "path"), &ret->path))
        return file_fault(err, i, "path", "must be a string");
    return read_content(req, v, i, &ret->content, err);
}

static int read_request(mt_request *req, mt_deploy_request *ret, mt_err **err)
{
    const mt_json *list = mt_json_get(req->body, "files");
    mt_deploy_file *files;

    if (mt_json_need_object(req->body, "a deploy", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "files", "dryRun", "prune") < 0 ||
        mt_json_opt_bool(req->body, "dryRun", false, &ret->dry_run, err) < 0 ||
        mt_json_opt_bool(req->body, "prune", false, &ret->prune, err) < 0)
        return -1;
    if (mt_json_kind_of(list) != MT_JSON_ARRAY)
        return mt_fail_field(err, MT_E_BAD_FIELD, "files", "'files' must be a list of files");
    ret->count = mt_json_count(list);
    if (ret->count > MT_DEPLOY_MAX_FILES)
        return mt_fail_field(err, MT_E_TOO_LARGE, "files", "%zu files; the limit of a deploy is %d",
                             ret->count, MT_DEPLOY_MAX_FILES);
    files = mt_arena_array_of(req->arena, mt_deploy_file, ret->count + 1);
    if (!files)
        return mt_fail_oom(err);
    for (size_t i = 0; i < ret->count; i++)
        if (read_file(req, mt_json_at(list, i), i, &files[i], err) < 0)
            return -1;
    ret->files = files;
    return 0;
}

// ---- answers of a deploy ----

static void write_diagnostics(mt_jw *w, const mt_mtr_diags *diags, mt_mtr_severity severity)
{
    mt_jw_begin_array(w);
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++) {
        const mt_mtr_diag *d = mt_mtr_diags_at(diags, i);

        if (d->severity != severity)
            continue;
        mt_jw_begin_object(w);
        mt_jw_member_text(w, "file", d->file);
        mt_jw_member_int(w, "line", d->line);
        mt_jw_member_int(w, "column", d->column);
        mt_jw_member_text(w, "message", d->message);
        if (d->hint)
            mt_jw_member_text(w, "hint", d->hint);
        if (d->source_line)
            mt_jw_member_text(w, "sourceLine", d->source_line);
        mt_jw_end_object(w);
    }
    mt_jw_end_array(w);
}

static void write_entries(mt_jw *w, const char *name, const mt_deploy_list *list)
{
    mt_jw_key(w, name);
    mt_jw_begin_array(w);
    for (size_t i = 0; i < list->count; i++) {
        mt_jw_begin_object(w);
        mt_jw_member_text(w, "kind", mt_resource_kind_name(list->items[i].kind));
        mt_jw_member_text(w, "name", list->items[i].name);
        mt_jw_member_int(w, "version", list->items[i].version);
        mt_jw_end_object(w);
    }
    mt_jw_end_array(w);
}

// The problem of a project with faults: the error's own members and the places.
static int reply_faults(mt_reply *reply, const mt_err *why, const mt_mtr_diags *diags, mt_err **err)
{
    int status = mt_code_http_status(MT_E_DEPLOY_FAILED);
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_text(&w, "type", "about:blank");
    mt_jw_member_text(&w, "title", mt_http_reason(status));
    mt_jw_member_int(&w, "status", status);
    mt_jw_member_text(&w, "code", mt_code_name(MT_E_DEPLOY_FAILED));
    mt_jw_member_text(&w, "detail", mt_err_sentence(why));
    mt_jw_member_text(&w, "help", mt_code_help(MT_E_DEPLOY_FAILED));
    mt_jw_key(&w, "diagnostics");
    write_diagnostics(&w, diags, MT_MTR_ERROR);
    mt_jw_end_object(&w);
    reply->status = status;
    reply->content_type = "application/problem+json";
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int reply_result(mt_reply *reply, const mt_deploy_request *request,
                        const mt_deploy_result *result, const mt_mtr_diags *diags, mt_err **err)
{
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_bool(&w, "dryRun", request->dry_run);
    write_entries(&w, "created", &result->created);
    write_entries(&w, "updated", &result->updated);
    write_entries(&w, "unchanged", &result->unchanged);
    write_entries(&w, "removed", &result->removed);
    mt_jw_key(&w, "warnings");
    write_diagnostics(&w, diags, MT_MTR_WARNING);
    mt_jw_end_object(&w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int deploy(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_mtr_diags_free_p) mt_mtr_diags *diags = mt_mtr_diags_new();
    _cleanup_(mt_deploy_result_done) mt_deploy_result result = {0};
    _cleanup_err_ mt_err *why = NULL;
    mt_deploy_request request = {0};
    mt_namespace ns;

    if (!diags)
        return mt_fail_oom(err);
    if (mt_request_namespace(req, MT_MAY_SEE, &ns, err) < 0)
        return -1;
    mt_object object = mt_object_resource(&ns, NULL);

    if (access_check(&req->user, MT_MAY_CREATE, &object, err) < 0 ||
        read_request(req, &request, err) < 0)
        return -1;
    if (mt_deploy(req->api->store, &ns, &request, &req->api->limits, diags, &result, &why) == 0)
        return reply_result(reply, &request, &result, diags, err);
    if (mt_err_code(why) == MT_E_DEPLOY_FAILED && mt_mtr_diags_errors(diags) > 0)
        return reply_faults(reply, why, diags, err);
    mt_err_move(err, MT_TAKE_PTR(why));
    return -1;
}

// ---- what is deployed ----

static void write_head(mt_jw *w, const mt_resource *r, const mt_namespace *ns)
{
    mt_jw_member_text(w, "name", r->name);
    mt_jw_member_text(w, "namespace", ns->name);
    mt_jw_member_int(w, "version", r->version);
}

static void write_versions(mt_jw *w, const mt_resource *r)
{
    mt_jw_key(w, "versions");
    mt_jw_begin_array(w);
    for (size_t i = 0; i < r->version_count; i++) {
        mt_jw_begin_object(w);
        mt_jw_member_int(w, "version", r->versions[i].version);
        mt_jw_member_time(w, "dateCreated", r->versions[i].date_created);
        mt_jw_end_object(w);
    }
    mt_jw_end_array(w);
}

// A capsule is shown with the server's defaults for what it leaves open.
static int write_definition(mt_jw *w, const mt_resource *r, const mt_api *api, mt_err **err)
{
    _cleanup_capsule_def_ mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_REPLY_BODY_MAX);

    mt_jw_key(w, "definition");
    if (r->kind != MT_RESOURCE_CAPSULE) {
        mt_jw_raw(w, mt_str_of(r->definition));
        return 0;
    }
    if (mt_capsule_def_read(r->definition, strlen(r->definition), &def, err) < 0)
        return -1;
    if (mt_capsule_def_write(&def, &api->limits, &text) < 0)
        return mt_fail_oom(err);
    mt_jw_raw(w, (mt_str){mt_buf_str(&text), text.len});
    return 0;
}

// What it takes and gives; null of one that this server does not understand any more.
static void write_signature(mt_jw *w, const mt_resource *r, const mt_namespace *ns,
                            const mt_api *api)
{
    _cleanup_buf_ mt_buf inputs = MT_BUF_INIT(MT_REPLY_BODY_MAX);
    const char *returns = NULL;

    if (mt_apps_describe(api->apps, ns->id, r, &inputs, &returns, NULL) == 0) {
        mt_jw_key(w, "inputs");
        mt_jw_raw(w, (mt_str){mt_buf_str(&inputs), inputs.len});
    } else {
        mt_jw_member_null(w, "inputs");
    }
    mt_jw_member_text(w, "returns", returns);
}

static int get_resource(mt_request *req, mt_reply *reply, mt_resource_kind kind, mt_err **err)
{
    _cleanup_(mt_resource_done) mt_resource r = {0};
    _cleanup_err_ mt_err *why = NULL;
    const char *name = mt_param_dup(req, "name");
    mt_namespace ns;
    int64_t version;
    mt_jw w;

    if (!name)
        return mt_fail_oom(err);
    if (mt_request_namespace(req, MT_MAY_SEE, &ns, err) < 0 ||
        mt_query_int(req, "version", 1, INT64_MAX, 0, &version, err) < 0)
        return -1;
    if (mt_store_resource_get(req->api->store, ns.id, kind, name, version, &r, &why) < 0) {
        if (mt_err_code(why) != MT_E_NOT_FOUND || version > 0) {
            mt_err_move(err, MT_TAKE_PTR(why));
            return -1;
        }
        return mt_fail(err, MT_E_NOT_FOUND, "no %s '%s' in namespace '%s'",
                       mt_resource_kind_name(kind), name, ns.name);
    }
    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    write_head(&w, &r, &ns);
    write_versions(&w, &r);
    mt_jw_member_time(&w, "dateCreated", r.date_created);
    mt_jw_member_time(&w, "dateUpdated", r.date_updated);
    if (write_definition(&w, &r, req->api, err) < 0)
        return -1;
    if (kind == MT_RESOURCE_APP)
        write_signature(&w, &r, &ns, req->api);
    mt_jw_end_object(&w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int list_resources(mt_request *req, mt_reply *reply, mt_resource_kind kind, mt_err **err)
{
    _cleanup_(mt_resource_list_done) mt_resource_list list = {0};
    mt_page page = {0};
    mt_namespace ns;
    int64_t limit;
    mt_jw w;

    if (mt_request_namespace(req, MT_MAY_SEE, &ns, err) < 0 ||
        mt_query_page(req, &limit, &page.after, err) < 0)
        return -1;
    page.limit = (size_t)limit;
    if (mt_store_resource_list(req->api->store, ns.id, kind, page, &list, err) < 0)
        return -1;
    mt_items_begin(reply, &w);
    for (size_t i = 0; i < list.count; i++) {
        mt_jw_begin_object(&w);
        write_head(&w, &list.items[i], &ns);
        mt_jw_member_time(&w, "dateCreated", list.items[i].date_created);
        mt_jw_member_time(&w, "dateUpdated", list.items[i].date_updated);
        mt_jw_end_object(&w);
    }
    return mt_items_end(reply, &w, list.next, err);
}

// Two handlers a kind: handlers carry no data of their own.
#define HANDLERS(word, kind)                                               \
    static int get_##word(mt_request *req, mt_reply *reply, mt_err **err)  \
    {                                                                      \
        return get_resource(req, reply, kind, err);                        \
    }                                                                      \
    static int list_##word(mt_request *req, mt_reply *reply, mt_err **err) \
    {                                                                      \
        return list_resources(req, reply, kind, err);                      \
    }
HANDLERS(agents, MT_RESOURCE_AGENT)
HANDLERS(apps, MT_RESOURCE_APP)
HANDLERS(capsules, MT_RESOURCE_CAPSULE)
HANDLERS(interactions, MT_RESOURCE_INTERACTION)
HANDLERS(json, MT_RESOURCE_JSON)
HANDLERS(prompts, MT_RESOURCE_PROMPT)

#define ROUTES(word)                                                                               \
    {.method = "GET",                                                                              \
     .pattern = "/v1/namespaces/{ns}/" #word,                                                      \
     .handler = list_##word,                                                                       \
     .query = "limit after"},                                                                      \
    {                                                                                              \
        .method = "GET", .pattern = "/v1/namespaces/{ns}/" #word "/{name}", .handler = get_##word, \
        .query = "version"                                                                         \
    }

const mt_route mt_routes_deploy[] = {
    {.method = "POST",
     .pattern = "/v1/namespaces/{ns}/deploy",
     .handler = deploy,
     .max_body = MT_BODY_LARGE},
    ROUTES(agents),
    ROUTES(apps),
    ROUTES(capsules),
    ROUTES(interactions),
    ROUTES(json),
    ROUTES(prompts),
    {0},
};
