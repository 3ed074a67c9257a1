// SPDX-License-Identifier: Apache-2.0
// What concerns the server as a whole: health, images, the doctor, its own description.
#include "base/clock.h"
#include "core/runs.h"
#include "server/api.h"

#include <stdio.h>
#include <sys/statvfs.h>

// api/openapi.yaml as JSON, embedded by the build.
extern const char mt_openapi_json[];
extern const size_t mt_openapi_json_len;

enum { INFO_ARENA = 32 << 20, API_VERSION = 1 };

static int health(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_json *v = mt_json_new_object();

    (void)mt_json_set(v, "status", mt_json_new_text("ok"));
    (void)mt_json_set(v, "version", mt_json_new_text(MT_VERSION));
    return mt_reply_json(reply, 200, v, err);
}

// By this a client knows what answers before it sends a key, and that it speaks its language.
static int about(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_json *v = mt_json_new_object();

    (void)mt_json_set(v, "product", mt_json_new_text("maitento"));
    (void)mt_json_set(v, "version", mt_json_new_text(MT_VERSION));
    (void)mt_json_set(v, "apiVersion", mt_json_new_int(API_VERSION));
    return mt_reply_json(reply, 200, v, err);
}

static int openapi(mt_request *req, mt_reply *reply, mt_err **err)
{
    return mt_buf_add(&reply->body, mt_openapi_json, mt_openapi_json_len) < 0 ? mt_fail_oom(err)
                                                                              : 0;
}

// image.json is root's, written by mt-image: its parts are passed on as they are.
static mt_json *image_json(const mt_info_image *image)
{
    _cleanup_json_ mt_json *built = NULL;
    mt_json *v = mt_json_new_object();
    char digest[MT_DIGEST_LEN + 1];
    static const char *const PARTS[] = {"sizeBytes", "dateBuilt", "components", "missing"};

    if (mt_json_parse(image->json.data, image->json.len, NULL, &built, NULL) < 0)
        built = NULL; // the name and the digest are told all the same
    (void)snprintf(digest, sizeof(digest), "%.*s", (int)image->digest.len, image->digest.data);
    (void)mt_json_set(v, "name", mt_json_new_string(image->name));
    (void)mt_json_set(v, "digest", mt_json_new_text(digest));
    for (size_t i = 0; i < MT_ARRAY_SIZE(PARTS); i++) {
        const mt_json *part = mt_json_get(built, PARTS[i]);

        if (part)
            (void)mt_json_set(v, PARTS[i], mt_json_copy(part));
    }
    return v;
}

static int list_images(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_arena_ mt_arena *arena = mt_arena_new(INFO_ARENA);
    mt_json *items, *v;
    mt_info info;

    if (!arena)
        return mt_fail_oom(err);
    if (mt_runs_info(req->api->runs, arena, &info, err) < 0)
        return -1;
    items = mt_json_new_array();
    for (uint32_t i = 0; i < info.image_count; i++)
        (void)mt_json_append(items, image_json(&info.images[i]));
    v = mt_json_new_object();
    (void)mt_json_set(v, "items", items);
    (void)mt_json_set(v, "next", mt_json_new_null());
    return mt_reply_json(reply, 200, v, err);
}

static int prune_images(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_object object = mt_object_server();
    uint32_t layers;
    uint64_t bytes;
    mt_json *v;

    if (access_check(&req->user, MT_MAY_ADMIN, &object, err) < 0 ||
        mt_runs_prune_layers(req->api->runs, &layers, &bytes, err) < 0)
        return -1;
    v = mt_json_new_object();
    (void)mt_json_set(v, "layersRemoved", mt_json_new_int(layers));
    (void)mt_json_set(v, "bytesFreed", mt_json_new_int((int64_t)bytes));
    return mt_reply_json(reply, 200, v, err);
}

static void add_check(mt_json *checks, const char *name, const char *status, const char *detail,
                      const char *remedy)
{
    mt_json *v = mt_json_new_object();

    (void)mt_json_set(v, "name", mt_json_new_text(name));
    (void)mt_json_set(v, "status", mt_json_new_text(status));
    (void)mt_json_set(v, "detail", mt_json_new_text(detail));
    (void)mt_json_set(v, "remedy", mt_json_new_text(remedy));
    (void)mt_json_append(checks, v);
}

static void check_disk(const mt_request *req, mt_json *checks)
{
    struct statvfs st;
    char detail[128];
    double free_gib, part;

    if (fstatvfs(req->api->vfs_dirfd, &st) < 0)
        return;
    free_gib = (double)st.f_bavail * (double)st.f_frsize / (1 << 30);
    part = st.f_blocks ? (double)st.f_bavail / (double)st.f_blocks : 0;
    (void)snprintf(detail, sizeof(detail), "%.1f GiB free where the state folder is (%.0f %%)",
                   free_gib, part * 100);
    if (free_gib < 2 && part < 0.05)
        add_check(checks, "disk", "failed", detail,
                  "free disk space: no run starts below 5 % or 2 GiB, whichever is less");
    else
        add_check(checks, "disk", "ok", detail, NULL);
}

static void check_runner(const mt_request *req, mt_json *checks)
{
    _cleanup_arena_ mt_arena *arena = mt_arena_new(INFO_ARENA);
    _cleanup_err_ mt_err *err = NULL;
    char detail[256];
    bool has_default = false;
    mt_info info;

    if (!arena || mt_runs_info(req->api->runs, arena, &info, &err) < 0) {
        add_check(checks, "runner", "failed", mt_err_sentence(err),
                  "start mt-runner with the same --state and --instance as maitentod");
        return;
    }
    (void)snprintf(detail, sizeof(detail), "mt-runner %.*s, %u live runs", (int)info.version.len,
                   info.version.data, info.live_runs);
    add_check(checks, "runner", "ok", detail, NULL);
    (void)snprintf(detail, sizeof(detail),
                   "control groups: %.*s; all runs together may use %.1f GiB",
                   (int)info.cgroup_mode.len, info.cgroup_mode.data,
                   (double)info.memory_cap_bytes / (1 << 30));
    add_check(checks, "cgroups", "ok", detail, NULL);
    (void)snprintf(detail, sizeof(detail), "scratch disk: %.*s, %.1f of %.1f GiB free",
                   (int)info.scratch_kind.len, info.scratch_kind.data,
                   (double)info.scratch_free_bytes / (1 << 30),
                   (double)info.scratch_bytes / (1 << 30));
    add_check(checks, "scratch", mt_str_eq(info.scratch_kind, "btrfs") ? "ok" : "warning", detail,
              mt_str_eq(info.scratch_kind, "btrfs")
                  ? NULL
                  : "without a btrfs scratch disk what runs write counts as memory");
    for (uint32_t i = 0; i < info.notice_count; i++) {
        _cleanup_free_ char *text = mt_str_dup(info.notices[i]);

        add_check(checks, "host", "warning", text, NULL);
    }
    for (uint32_t i = 0; i < info.image_count; i++)
        has_default |= mt_str_eq(info.images[i].name, req->api->limits.default_image);
    (void)snprintf(detail, sizeof(detail), "%u images; capsules that name none get '%s'%s",
                   info.image_count, req->api->limits.default_image,
                   has_default ? "" : ", which is not there");
    add_check(checks, "images", has_default ? "ok" : "failed", detail,
              has_default ? NULL : "mt-image build NAME makes it (see docs/guide/operating.md)");
}

static int doctor(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_object object = mt_object_server();
    mt_json *checks, *v;

    if (access_check(&req->user, MT_MAY_ADMIN, &object, err) < 0)
        return -1;
    checks = mt_json_new_array();
    add_check(checks, "server", "ok", "maitentod " MT_VERSION " answers", NULL);
    check_disk(req, checks);
    check_runner(req, checks);
    v = mt_json_new_object();
    (void)mt_json_set(v, "checks", checks);
    (void)mt_json_set(v, "stateFolder", mt_json_new_text(req->api->state));
    return mt_reply_json(reply, 200, v, err);
}

const mt_route mt_routes_system[] = {
    {.method = "GET", .pattern = "/v1/health", .handler = health, .flags = MT_ROUTE_OPEN},
    {.method = "GET", .pattern = "/v1/server", .handler = about, .flags = MT_ROUTE_OPEN},
    {.method = "GET", .pattern = "/openapi.json", .handler = openapi, .flags = MT_ROUTE_OPEN},
    {.method = "GET", .pattern = "/v1/images", .handler = list_images, .query = "limit after"},
    {.method = "POST", .pattern = "/v1/images/prune", .handler = prune_images},
    {.method = "GET", .pattern = "/v1/doctor", .handler = doctor},
    {0},
};
