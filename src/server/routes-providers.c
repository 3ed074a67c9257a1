// SPDX-License-Identifier: Apache-2.0
// Providers of models: what holds for each, and what an administrator sets. A key comes in and is
// never answered, logged or put into a sentence; what it lay in on its way is overwritten.
#include "core/interactions.h"
#include "core/providers.h"
#include "server/api.h"

enum { MODEL_MAX = 180 }; // bytes of a model's name

static int find(mt_request *req, mt_verb verb, mt_provider *ret, mt_err **err)
{
    mt_object server = mt_object_server();

    if (access_check(&req->user, verb, &server, err) < 0)
        return -1;
    return mt_provider_get(req->api->store, mt_param(req, "name"), ret, err);
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static const char *wire_word(mt_model_wire wire)
{
    return wire == MT_WIRE_MESSAGES ? "messages" : "chat";
}

static void write_provider(mt_jw *w, const mt_provider *p)
{
    const mt_provider_record *set = &p->set;

    mt_jw_begin_object(w);
    mt_jw_member_text(w, "name", p->info->name);
    mt_jw_member_text(w, "wire", wire_word(p->info->wire));
    mt_jw_member_text(w, "baseUrl", mt_provider_base_url(p));
    mt_jw_member_text(w, "schemaMode", mt_model_schema_mode_word(mt_provider_schema_mode(p)));
    mt_jw_member_int(w, "concurrency", mt_provider_concurrency(p));
    mt_jw_member_text(w, "pricePerMillionTokensIn", or_null(set->price_in));
    mt_jw_member_text(w, "pricePerMillionTokensOut", or_null(set->price_out));
    mt_jw_member_bool(w, "hasKey", set->has_key);
    mt_jw_member_bool(w, "needsKey", p->info->needs_key);
    mt_jw_member_bool(w, "ready", mt_provider_is_ready(p));
    mt_jw_member_bool(w, "isSet", set->date_created != 0);
    mt_jw_member_time(w, "dateCreated", set->date_created);
    mt_jw_member_time(w, "dateUpdated", set->date_updated);
    mt_jw_end_object(w);
}

static int reply_provider(mt_reply *reply, const mt_provider *p, mt_err **err)
{
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    write_provider(&w, p);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int get_provider(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_provider p;

    return find(req, MT_MAY_SEE, &p, err) < 0 ? -1 : reply_provider(reply, &p, err);
}

static int list_providers(mt_request *req, mt_reply *reply, mt_err **err)
{
    const mt_model_provider_info *info;
    mt_object server = mt_object_server();
    const char *after, *last = NULL;
    int64_t limit;
    mt_jw w;

    if (access_check(&req->user, MT_MAY_SEE, &server, err) < 0 ||
        mt_query_page(req, &limit, &after, err) < 0)
        return -1;
    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    mt_jw_key(&w, "items");
    mt_jw_begin_array(&w);
    for (size_t i = 0; (info = mt_model_provider_at(i)) != NULL && limit > 0; i++) {
        mt_provider p;

        if (after && strcmp(info->name, after) <= 0)
            continue;
        if (mt_provider_get(req->api->store, mt_str_of(info->name), &p, err) < 0)
            return -1;
        write_provider(&w, &p);
        last = info->name;
        limit--;
    }
    mt_jw_end_array(&w);
    mt_jw_member_text(&w, "next", info ? last : NULL);
    mt_jw_end_object(&w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

// A text that is to be set, "" for null, which takes it away; *ret stays where it is not given.
static int read_text(const mt_json *body, const char *name, const char **ret, mt_err **err)
{
    mt_str text;

    if (!mt_json_get(body, name))
        return 0;
    if (mt_json_opt_string(body, name, &text, err) < 0)
        return -1;
    if (text.data && text.len == 0)
        return mt_fail_field(err, MT_E_BAD_FIELD, name, "'%s' may not be empty: null takes it away",
                             name);
    *ret = text.data ? text.data : "";
    return 0;
}

static int read_change(const mt_json *body, mt_provider_change *ret, mt_err **err)
{
    const char *key = NULL;

    if (mt_json_need_object(body, "the body", err) < 0 ||
        MT_JSON_ONLY(body, err, "key", "baseUrl", "schemaMode", "concurrency",
                     "pricePerMillionTokensIn", "pricePerMillionTokensOut") < 0 ||
        read_text(body, "key", &key, err) < 0 ||
        read_text(body, "baseUrl", &ret->base_url, err) < 0 ||
        read_text(body, "schemaMode", &ret->schema_mode, err) < 0 ||
        read_text(body, "pricePerMillionTokensIn", &ret->price_in, err) < 0 ||
        read_text(body, "pricePerMillionTokensOut", &ret->price_out, err) < 0)
        return -1;
    ret->key = mt_str_of(key);
    if (!mt_json_get(body, "concurrency"))
        return 0;
    return mt_json_opt_int(body, "concurrency", (mt_json_range){1, MT_MODEL_CONCURRENCY_MAX, 0},
                           &ret->concurrency, err);
}

static int set(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_provider_change change = MT_PROVIDER_CHANGE_INIT;
    mt_provider p, changed;

    if (find(req, MT_MAY_ADMIN, &p, err) < 0 || read_change(req->body, &change, err) < 0 ||
        mt_provider_set(req->api->store, p.info, &change, &changed, err) < 0)
        return -1;
    return reply_provider(reply, &changed, err);
}

static int set_provider(mt_request *req, mt_reply *reply, mt_err **err)
{
    int r = set(req, reply, err);

    mt_json_wipe(req->body);
    return r;
}

static int delete_provider(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_provider p;

    if (find(req, MT_MAY_ADMIN, &p, err) < 0 ||
        mt_store_provider_delete(req->api->store, p.info->name, err) < 0)
        return -1;
    return mt_reply_empty(reply, 204);
}

// ---- trying ----

static void write_tokens(mt_jw *w, const char *name, int64_t tokens)
{
    if (tokens < 0)
        mt_jw_member_null(w, name);
    else
        mt_jw_member_int(w, name, tokens);
}

static int reply_trial(mt_reply *reply, const mt_interaction_trial *t, mt_err **err)
{
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_text(&w, "outcome", t->outcome);
    mt_jw_member_text(&w, "failureDetails", t->sentence);
    mt_jw_member_text(&w, "answer", t->answer);
    mt_jw_member_text(&w, "model", or_null(t->model));
    if (t->http_status)
        mt_jw_member_int(&w, "httpStatus", t->http_status);
    else
        mt_jw_member_null(&w, "httpStatus");
    mt_jw_member_int(&w, "requests", t->requests);
    write_tokens(&w, "tokensIn", t->tokens_in);
    write_tokens(&w, "tokensOut", t->tokens_out);
    mt_jw_member_int(&w, "milliseconds", t->took_ms);
    mt_jw_end_object(&w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

static int test_provider(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_interaction_trial_done) mt_interaction_trial t = {0};
    mt_provider p;
    mt_str model;

    if (find(req, MT_MAY_ADMIN, &p, err) < 0 ||
        mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "model") < 0 ||
        mt_json_need_string(req->body, "model", &model, err) < 0)
        return -1;
    if (model.len == 0 || model.len > MODEL_MAX)
        return mt_fail_field(err, MT_E_BAD_FIELD, "model", "'model' has 1 to %d bytes", MODEL_MAX);
    return mt_interactions_try(req->api->interactions, mt_str_of(p.info->name), model.data, &t,
                               err) < 0
               ? -1
               : reply_trial(reply, &t, err);
}

const mt_route mt_routes_providers[] = {
    {.method = "GET",
     .pattern = "/v1/providers",
     .handler = list_providers,
     .query = "limit after"},
    {.method = "GET", .pattern = "/v1/providers/{name}", .handler = get_provider},
    {.method = "PUT",
     .pattern = "/v1/providers/{name}",
     .handler = set_provider,
     .max_body = MT_BODY_SMALL},
    {.method = "DELETE", .pattern = "/v1/providers/{name}", .handler = delete_provider},
    {.method = "POST",
     .pattern = "/v1/providers/{name}/test",
     .handler = test_provider,
     .max_body = MT_BODY_SMALL},
    {0},
};
