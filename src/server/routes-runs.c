// SPDX-License-Identifier: Apache-2.0
// Capsule runs: start, look, wait, terminate.
#include "base/clock.h"
#include "capsule/plan.h"
#include "core/run-plan.h"
#include "core/run-story.h"
#include "core/runs.h"
#include "server/api.h"

#include <stdio.h>

enum { LABELS_MAX = 32, PLAN_ARENA = 64 << 20 };

// ---- a run as JSON ----

static void write_limits_and_end(mt_jw *w, const mt_run *run)
{
    if (run->end_reason[0])
        mt_jw_member_text(w, "endReason", run->end_reason);
    else
        mt_jw_member_null(w, "endReason");
    if (run->limit_ms)
        mt_jw_member_int(w, "limitMs", run->limit_ms);
    if (run->signal)
        mt_jw_member_int(w, "signal", run->signal);
    if (run->terminated_by[0])
        mt_jw_member_text(w, "terminatedBy", run->terminated_by);
    mt_jw_member_text(w, "failureDetails", run->failure_details);
    mt_jw_key(w, "limitsReached");
    mt_jw_raw(w, mt_str_of(run->limits_reached));
}

static void write_run_members(mt_jw *w, const mt_run *run)
{
    int64_t until = run->date_ended ? run->date_ended : mt_now_us();

    mt_jw_member_text(w, "id", run->id);
    mt_jw_member_text(w, "namespace", run->namespace_name);
    mt_jw_member_text(w, "capsule", run->capsule);
    mt_jw_member_int(w, "version", run->version);
    mt_jw_member_text(w, "status", run->status);
    write_limits_and_end(w, run);
    mt_jw_key(w, "labels");
    mt_jw_raw(w, mt_str_of(run->labels));
    mt_starter_write(w, run->started_by, run->parent_id, run->parent_app_id);
    mt_jw_member_time(w, "dateCreated", run->date_created);
    mt_jw_member_time(w, "dateReady", run->date_ready);
    mt_jw_member_time(w, "dateEnded", run->date_ended);
    mt_jw_member_duration(w, "maxDuration", run->max_duration_ms);
    mt_jw_member_time(w, "deadline", run->deadline);
    mt_jw_member_text(w, "image", run->image);
    mt_jw_member_text(w, "imageDigest", run->image_digest);
    mt_jw_key(w, "phases");
    mt_jw_raw(w, mt_str_of(run->phases));
    mt_jw_member_time(w, "dateOutputsRemoved", run->date_outputs_removed);
    mt_jw_member_int(w, "memoryPeakBytes", run->memory_peak_bytes);
    mt_jw_member_int(w, "cpuMicroseconds", run->cpu_us);
    mt_jw_key(w, "runSeconds");
    mt_jw_double(w, (double)(until - run->date_created) / 1e6);
}

// Those that it has, by its definition and this server's options and machine; none where that
// cannot be told any more.
static void write_limits(const mt_api *api, mt_jw *w, const mt_run *run)
{
    _cleanup_capsule_def_ mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    mt_plan_limits limits;
    mt_mtr_limits shown;

    if (mt_run_definition(run, &api->limits, &def, NULL) < 0)
        return;
    limits = mt_run_limits(&def, &api->limits);
    (void)mt_runs_fit(api->runs, &def, &limits, NULL);
    shown = (mt_mtr_limits){.memory_bytes = (int64_t)limits.memory_bytes,
                            .cpu_milli = limits.cpu_milli,
                            .pids = limits.pids,
                            .disk_bytes = (int64_t)limits.disk_bytes};
    mt_jw_key(w, "limits");
    mt_limits_write(w, &shown);
}

static int reply_run(const mt_request *req, mt_reply *reply, int status, const mt_run *run,
                     const mt_buf *story, mt_err **err)
{
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    write_run_members(&w, run);
    write_limits(req->api, &w, run);
    if (story) {
        mt_jw_key(&w, "story");
        mt_jw_raw(&w, (mt_str){mt_buf_str(story), story->len});
    }
    mt_jw_end_object(&w);
    reply->status = status;
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

// ---- start ----

// A start being made: what is looked up and checked before anything is stored.
typedef struct start {
    mt_namespace ns;
    mt_resource capsule;
    mt_capsule_def def;
    mt_buf request; // JSON of the additions that the run keeps
    mt_buf labels;
    char digest[MT_DIGEST_LEN + 1];
    char request_digest[MT_REQUEST_DIGEST];
    const char *image;
    const char **vfs_ids;
    const char **secret_ids;
} start;

static void start_done(start *s)
{
    mt_resource_done(&s->capsule);
    mt_capsule_def_done(&s->def);
    mt_buf_done(&s->request);
    mt_buf_done(&s->labels);
}

static int read_labels(const mt_request *req, start *s, mt_err **err)
{
    const mt_json *labels = NULL;

    if (req->body && mt_json_opt_string_map(req->body, "labels", &labels, err) < 0)
        return -1;
    if (mt_json_count(labels) > LABELS_MAX)
        return mt_fail_field(err, MT_E_BAD_FIELD, "labels", "a run may have at most %d labels",
                             LABELS_MAX);
    for (size_t i = 0; i < mt_json_count(labels); i++)
        if (mt_json_name_at(labels, i).len > 63 ||
            mt_json_str(mt_json_value_at(labels, i)).len > 255)
            return mt_fail_field(err, MT_E_BAD_FIELD, "labels",
                                 "a label's name may have 63 bytes, its value 255");
    if (!labels)
        return mt_buf_adds(&s->labels, "{}") < 0 ? mt_fail_oom(err) : 0;
    return mt_json_write(labels, &s->labels, 0) < 0 ? mt_fail_oom(err) : 0;
}

// Keeps what the start adds to the capsule's definition, so that the plan can be made again.
static int keep_request(const mt_request *req, start *s, mt_err **err)
{
    static const char *const KEPT[] = {"environment", "maxDuration", "startup", "vfs", "secrets"};
    mt_jw w;

    mt_jw_init(&w, &s->request, 0);
    mt_jw_begin_object(&w);
    for (size_t i = 0; i < MT_ARRAY_SIZE(KEPT); i++)
        if (mt_json_given(mt_json_get(req->body, KEPT[i])))
            mt_jw_member_value(&w, KEPT[i], mt_json_get(req->body, KEPT[i]));
    mt_jw_end_object(&w);
    return s->request.failed ? mt_fail_oom(err) : 0;
}

static int find_capsule(mt_request *req, start *s, mt_err **err)
{
    const char *name = mt_param_dup(req, "capsule");
    int64_t version = 0;

    if (!name)
        return mt_fail_oom(err);
    if (mt_request_namespace(req, MT_MAY_SEE, &s->ns, err) < 0)
        return -1;
    mt_object object = mt_object_run_in(&s->ns);
    if (access_check(&req->user, MT_MAY_START, &object, err) < 0)
        return -1;
    if (req->body && (mt_json_need_object(req->body, "the request", err) < 0 ||
                      MT_JSON_ONLY(req->body, err, "version", "environment", "maxDuration",
                                   "startup", "vfs", "secrets", "labels") < 0 ||
                      mt_json_opt_int(req->body, "version", (mt_json_range){1, INT32_MAX, 0},
                                      &version, err) < 0))
        return -1;
    return mt_store_resource_get(req->api->store, s->ns.id, MT_RESOURCE_CAPSULE, name, version,
                                 &s->capsule, err);
}

static int read_definition(mt_request *req, start *s, mt_err **err)
{
    if (mt_capsule_def_read(s->capsule.definition, strlen(s->capsule.definition), &s->def, err) < 0)
        return -1;
    if (req->body && mt_capsule_def_add(&s->def, req->body, &req->api->limits, err) < 0)
        return -1;
    s->image = s->def.image ? s->def.image : req->api->limits.default_image;
    return 0;
}

static int find_mounts(mt_request *req, start *s, mt_err **err)
{
    s->vfs_ids = mt_arena_array_of(req->arena, const char *, s->def.vfs_count + 1);
    if (!s->vfs_ids)
        return mt_fail_oom(err);
    for (size_t i = 0; i < s->def.vfs_count; i++) {
        mt_vfs_record vfs;

        if (mt_store_vfs_get(req->api->store, &req->user, s->ns.id, s->def.vfs[i].name, &vfs, err) <
                0 ||
            mt_runs_check_vfs(req->api->runs, &vfs, err) < 0)
            return -1;
        if (!(s->vfs_ids[i] = mt_arena_strdup(req->arena, vfs.id)))
            return mt_fail_oom(err);
    }
    return 0;
}

// That they are there; their values are read when the plan is made.
static int find_secrets(mt_request *req, start *s, mt_err **err)
{
    s->secret_ids = mt_arena_array_of(req->arena, const char *, s->def.secret_count + 1);
    if (!s->secret_ids)
        return mt_fail_oom(err);
    for (size_t i = 0; i < s->def.secret_count; i++) {
        mt_secret secret;

        if (mt_store_secret_get(req->api->store, &req->user, s->ns.id, s->def.secrets[i].name,
                                &secret, err) < 0)
            return -1;
        if (!(s->secret_ids[i] = mt_arena_strdup(req->arena, secret.id)))
            return mt_fail_oom(err);
    }
    return 0;
}

static int prepare_start(mt_request *req, start *s, mt_err **err)
{
    mt_request_digest(req, s->request_digest);
    if (find_capsule(req, s, err) < 0 || read_definition(req, s, err) < 0 ||
        read_labels(req, s, err) < 0 || keep_request(req, s, err) < 0 ||
        find_mounts(req, s, err) < 0 || find_secrets(req, s, err) < 0)
        return -1;
    return mt_runs_image(req->api->runs, s->image, s->digest, err);
}

// The run as it will be stored; for a dry run as it would be.
static void fill_new(mt_request *req, const start *s, mt_run_new *ret)
{
    int64_t now = mt_now_us();

    *ret = (mt_run_new){
        .namespace_id = s->ns.id,
        .capsule = s->capsule.name,
        .version = s->capsule.version,
        .definition = s->capsule.definition,
        .request = mt_buf_str(&s->request),
        .labels = mt_buf_str(&s->labels),
        .started_by = &req->user,
        .parent_id = req->run_id,
        .parent_app_id = req->app_run_id,
        .max_duration_ms = s->def.max_duration_ms,
        .date_created = now,
        .deadline = now + s->def.max_duration_ms * 1000,
        .image = s->image,
        .image_digest = s->digest,
        .vfs_ids = s->vfs_ids,
        .vfs_count = s->def.vfs_count,
        .secret_ids = s->secret_ids,
        .secret_count = s->def.secret_count,
        .idempotency_key = req->idempotency_key,
        .request_digest = s->request_digest,
    };
}

static int reply_dry_run(mt_request *req, const start *s, mt_reply *reply, mt_err **err)
{
    _cleanup_buf_ mt_buf definition = MT_BUF_INIT(MT_BODY_LARGE);
    mt_jw w;

    if (mt_capsule_def_write(&s->def, &req->api->limits, &definition) < 0)
        return mt_fail_oom(err);
    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_bool(&w, "dryRun", true);
    mt_jw_member_text(&w, "namespace", s->ns.name);
    mt_jw_member_text(&w, "capsule", s->capsule.name);
    mt_jw_member_int(&w, "version", s->capsule.version);
    mt_jw_member_text(&w, "image", s->image);
    mt_jw_member_text(&w, "imageDigest", s->digest);
    mt_jw_key(&w, "mounts");
    mt_jw_begin_array(&w);
    for (size_t i = 0; i < s->def.vfs_count; i++) {
        mt_jw_begin_object(&w);
        mt_jw_member_text(&w, "vfs", s->def.vfs[i].name);
        mt_jw_member_text(&w, "vfsId", s->vfs_ids[i]);
        mt_jw_member_text(&w, "mountName", s->def.vfs[i].mount_name);
        mt_jw_end_object(&w);
    }
    mt_jw_end_array(&w);
    mt_jw_key(&w, "secrets");
    mt_jw_begin_array(&w);
    for (size_t i = 0; i < s->def.secret_count; i++) {
        mt_jw_begin_object(&w);
        mt_jw_member_text(&w, "secret", s->def.secrets[i].name);
        mt_jw_member_text(&w, "secretId", s->secret_ids[i]);
        mt_jw_member_text(&w, "mountName", s->def.secrets[i].mount_name);
        mt_jw_end_object(&w);
    }
    mt_jw_end_array(&w);
    mt_jw_key(&w, "definition");
    mt_jw_raw(&w, (mt_str){mt_buf_str(&definition), definition.len});
    mt_jw_end_object(&w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

// What the plan needs of a run that is not stored yet.
static void fill_run(const start *s, const mt_run_new *from, mt_run *ret)
{
    *ret = (mt_run){.max_duration_ms = from->max_duration_ms,
                    .deadline = from->deadline,
                    .definition = (char *)from->definition,
                    .request = (char *)from->request};
    memcpy(ret->id, from->id, sizeof(ret->id));
    memcpy(ret->started_by_id, from->started_by->id, sizeof(ret->started_by_id));
    memcpy(ret->namespace_id, s->ns.id, sizeof(ret->namespace_id));
    memcpy(ret->namespace_name, s->ns.name, sizeof(ret->namespace_name));
    memcpy(ret->capsule, s->capsule.name, sizeof(ret->capsule));
    (void)snprintf(ret->image_digest, sizeof(ret->image_digest), "%s", s->digest);
}

// 0, 1 for a repeat (the run of the first time), -1.
static int store_and_start(mt_request *req, const start *s, mt_run *run, mt_err **err)
{
    const mt_api *api = req->api;
    mt_plan_limits limits = mt_run_limits(&s->def, &api->limits);
    _cleanup_arena_ mt_arena *arena = mt_arena_new(PLAN_ARENA);
    bool started = false;
    mt_run_new record;
    mt_run planned;
    mt_plan plan;
    int r;

    if (!arena)
        return mt_fail_oom(err);
    fill_new(req, s, &record);
    record.id = req->new_id;
    fill_run(s, &record, &planned);
    if (mt_runs_fit(api->runs, &s->def, &limits, err) < 0 ||
        mt_run_plan(api->store, &planned, &api->limits, arena, &plan, err) < 0)
        return -1;
    plan.limits = limits;
    r = mt_runs_reserve(api->runs, &req->user, &limits, err);
    if (r == 0) {
        r = mt_runs_start(api->runs, &plan, &record, run, &started, err);
        if (!started)
            mt_runs_release(api->runs, req->user.id, &limits);
    }
    mt_plan_forget(&plan);
    return r;
}

// ---- look, wait, end ----

static bool has_ended(const mt_run *run)
{
    return run->end_reason[0] != '\0';
}

// It may be told as it is: what is waited for has happened, or the time for that is over.
static bool is_answer(const mt_request *req, const mt_run *run, bool waits_for_end)
{
    return has_ended(run) || req->waited_out || (!waits_for_end && run->date_ready);
}

static int answer_run(mt_request *req, mt_reply *reply, int status, const mt_run *run,
                      const mt_buf *story, mt_err **err)
{
    if (has_ended(run) && mt_reply_once_synced(req, reply, run->id, run->id, err) < 0)
        return -1;
    return reply_run(req, reply, status, run, story, err);
}

static int check_until(const mt_request *req, mt_err **err)
{
    mt_str until = mt_query(req, "until");

    if (until.data && !mt_str_eq(until, "ready") && !mt_str_eq(until, "ended"))
        return mt_fail_field(err, MT_E_BAD_FIELD, "until", "'until' must be ready or ended");
    return 0;
}

// The run, once it is what ?until= asks for or the time is over.
static int reply_when(mt_request *req, mt_reply *reply, const char *id, int status, mt_err **err)
{
    _cleanup_buf_ mt_buf story = MT_BUF_INIT(8 << 20);
    mt_str until = mt_query(req, "until");
    mt_run run = {0};
    bool with_story;
    int64_t after;
    int r;

    if (mt_query_bool(req, "story", &with_story, err) < 0 ||
        mt_query_int(req, "storyAfter", 0, INT64_MAX, 0, &after, err) < 0 ||
        access_run(req->api->store, &req->user, MT_MAY_SEE, id, &run, err) < 0)
        return -1;
    if (!is_answer(req, &run, !mt_str_eq(until, "ready"))) {
        r = mt_reply_not_yet(reply, mt_arena_strdup(req->arena, run.id));
    } else {
        if (with_story)
            with_story = mt_run_story(req->api->runs_dirfd, &run, (uint64_t)after, &story) == 0;
        r = answer_run(req, reply, status, &run, with_story ? &story : NULL, err);
    }
    mt_run_done(&run);
    return r;
}

static int get_run(mt_request *req, mt_reply *reply, mt_err **err)
{
    if (check_until(req, err) < 0)
        return -1;
    return reply_when(req, reply, mt_param_dup(req, "id"), 200, err);
}

static int start_run(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(start_done) start s = {
        .def = MT_CAPSULE_DEF_INIT, .request.max = MT_BODY_LARGE, .labels.max = MT_BODY_SMALL};
    mt_run run = {0};
    bool dry_run;
    int r;

    if (req->started)
        return reply_when(req, reply, req->started, req->started_status, err);
    if (mt_query_bool(req, "dryRun", &dry_run, err) < 0 || check_until(req, err) < 0 ||
        prepare_start(req, &s, err) < 0)
        return -1;
    if (dry_run)
        return reply_dry_run(req, &s, reply, err);
    // A repeat of a start that was made is answered even when there is no room for another.
    r = req->idempotency_key
            ? mt_store_run_by_idempotency(req->api->store, &req->user, req->idempotency_key,
                                          s.request_digest, &run, err)
            : 1;
    if (r == 1)
        r = store_and_start(req, &s, &run, err);
    else if (r == 0)
        r = 1;
    if (r < 0)
        return -1;
    req->started_status = r == 1 ? 200 : 201;
    if (is_answer(req, &run, true))
        r = answer_run(req, reply, req->started_status, &run, NULL, err);
    else if (!(req->started = mt_arena_strdup(req->arena, run.id)))
        r = mt_fail_oom(err);
    else
        r = mt_reply_not_yet(reply, req->started);
    mt_run_done(&run);
    return r;
}

static int list_runs(mt_request *req, mt_reply *reply, mt_err **err)
{
    const char *after;
    mt_run_filter filter = {0};
    _cleanup_(mt_run_list_done) mt_run_list list = {0};
    mt_namespace ns;
    int64_t limit;
    bool mine;
    mt_jw w;

    if (mt_query_page(req, &limit, &after, err) < 0 ||
        mt_query_text(req, "capsule", &filter.capsule, err) < 0 ||
        mt_query_text(req, "status", &filter.status, err) < 0 ||
        mt_query_text(req, "idEnding", &filter.id_ending, err) < 0 ||
        mt_query_bool(req, "mine", &mine, err) < 0 ||
        mt_query_namespace(req, &ns, &filter.namespace_id, err) < 0)
        return -1;
    if (mine)
        filter.started_by_id = req->user.id;
    if (mt_store_run_list(req->api->store, &req->user, &filter,
                          (mt_page){.after = after, .limit = (size_t)limit}, &list, err) < 0)
        return -1;
    mt_items_begin(reply, &w);
    for (size_t i = 0; i < list.count; i++) {
        mt_jw_begin_object(&w);
        write_run_members(&w, &list.items[i]);
        mt_jw_end_object(&w);
    }
    return mt_items_end(reply, &w, list.next, err);
}

// Noted first, so that a restart between the two does not forget it. The first one's name stays.
static int ask_to_stop(mt_request *req, const mt_run *run, mt_err **err)
{
    const char *me = mt_request_by(req);
    const char *by = run->stop_requested_by[0] ? run->stop_requested_by : me;

    if (mt_store_run_request_stop(req->api->store, run->id, me, err) < 0)
        return -1;
    return mt_runs_terminate(req->api->runs, run->id, by, err);
}

static int terminate_run(mt_request *req, mt_reply *reply, mt_err **err)
{
    char *id = mt_param_dup(req, "id");
    mt_run run = {0};
    int r = 0;

    // Asked in the first round; the further ones only look.
    if (req->started)
        return reply_when(req, reply, id, 200, err);
    if (access_run(req->api->store, &req->user, MT_MAY_TERMINATE, id, &run, err) < 0)
        return -1;
    req->started = id;
    if (!has_ended(&run))
        r = ask_to_stop(req, &run, err);
    if (r >= 0)
        r = is_answer(req, &run, true) ? answer_run(req, reply, 200, &run, NULL, err)
                                       : mt_reply_not_yet(reply, req->started);
    mt_run_done(&run);
    return r;
}

static int run_has_ended(const mt_run *run, mt_err **err)
{
    return mt_fail(err, MT_E_RUN_ENDED, "capsule run '%s' has ended (%s, %s)%s%s", run->id,
                   run->status, run->end_reason, *run->failure_details ? ": " : "",
                   run->failure_details);
}

// From the start, as ever; up to the server's ceiling, and not what is over already.
static int check_extension(const mt_request *req, const mt_run *run, int64_t ms, mt_err **err)
{
    int64_t ceiling = req->api->limits.ceilings.max_duration_ms;
    char text[MT_DURATION_TEXT], most[MT_DURATION_TEXT];

    if (ceiling && ms > ceiling)
        return mt_fail_field(err, MT_E_BAD_FIELD, "maxDuration",
                             "maxDuration %s is above the server's ceiling, %s",
                             mt_duration_format(ms, text), mt_duration_format(ceiling, most));
    if (run->date_created + ms * 1000 <= mt_now_us())
        return mt_fail_field(err, MT_E_BAD_FIELD, "maxDuration",
                             "maxDuration %s counts from the start of the run and is over already",
                             mt_duration_format(ms, text));
    return 0;
}

static int extend_run(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_run_done) mt_run run = {0}, extended = {0};
    int64_t ms = 0;
    int r;

    if (mt_json_need_object(req->body, "the request", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "maxDuration") < 0 ||
        mt_json_opt_duration(req->body, "maxDuration", 0, &ms, err) < 0)
        return -1;
    if (!ms)
        return mt_fail_field(err, MT_E_BAD_FIELD, "maxDuration",
                             "'maxDuration' is missing: " MT_DURATION_GRAMMAR);
    if (access_run(req->api->store, &req->user, MT_MAY_COMMAND, mt_param_dup(req, "id"), &run,
                   err) < 0)
        return -1;
    if (has_ended(&run))
        return run_has_ended(&run, err);
    if (check_extension(req, &run, ms, err) < 0)
        return -1;
    r = mt_runs_extend(req->api->runs, &run, ms, err);
    if (r < 0 || mt_store_run_get(req->api->store, &req->user, run.id, &extended, err) < 0)
        return -1;
    return r == 1 ? run_has_ended(&extended, err)
                  : reply_run(req, reply, 200, &extended, NULL, err);
}

const mt_route mt_routes_runs[] = {
    {.method = "POST",
     .pattern = "/v1/namespaces/{ns}/capsules/{capsule}/runs",
     .handler = start_run,
     .query = "dryRun until",
     .flags = MT_ROUTE_WAIT | MT_ROUTE_MAKES,
     .max_body = MT_BODY_LARGE},
    {.method = "GET",
     .pattern = "/v1/capsule-runs",
     .handler = list_runs,
     .query = "namespace capsule status idEnding mine limit after"},
    {.method = "GET",
     .pattern = "/v1/capsule-runs/{id}",
     .handler = get_run,
     .query = "until story storyAfter",
     .flags = MT_ROUTE_WAIT},
    {.method = "POST",
     .pattern = "/v1/capsule-runs/{id}/terminate",
     .handler = terminate_run,
     .flags = MT_ROUTE_WAIT,
     .max_body = MT_BODY_SMALL},
    {.method = "POST",
     .pattern = "/v1/capsule-runs/{id}/extend",
     .handler = extend_run,
     .max_body = MT_BODY_SMALL},
    {0},
};
