// SPDX-License-Identifier: Apache-2.0
// File systems and their files. The same file routes stand under the name of a file system in its
// namespace and under its id. What a path may be, and all that keeps hostile content harmless, is
// vfs/vfs.h's; here are rights, shapes and HTTP's conditions and ranges.
#include "base/clock.h"
#include "base/log.h"
#include "server/api.h"
#include "server/entries.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum { USED_AGE_MS = 10000, USED_FRESH_MS = 1000 };

// ---- file systems ----

static int find_record(mt_request *req, mt_verb verb, mt_vfs_record *ret, mt_err **err)
{
    if (mt_param(req, "id").len)
        return access_vfs_by_id(req->api->store, &req->user, verb, mt_param_dup(req, "id"), ret,
                                err);
    return access_vfs(req->api->store, &req->user, verb, mt_param_dup(req, "ns"),
                      mt_param_dup(req, "name"), ret, err);
}

static int open_content(const mt_request *req, const mt_vfs_record *record, mt_vfs **ret,
                        mt_err **err)
{
    return mt_vfs_open(req->api->vfs_dirfd, record->id, req->api->service_uid,
                       req->api->service_gid, ret, err);
}

// What nearly every handler of files begins with.
static int open_vfs(mt_request *req, mt_verb verb, mt_vfs **ret, mt_err **err)
{
    mt_vfs_record record;

    return find_record(req, verb, &record, err) < 0 ? -1 : open_content(req, &record, ret, err);
}

static mt_json *record_json(const mt_vfs_record *record)
{
    mt_json *v = mt_json_new_object();
    char date[MT_TIME_TEXT];

    (void)mt_json_set(v, "id", mt_json_new_text(record->id));
    (void)mt_json_set(v, "name", mt_json_new_text(record->name));
    (void)mt_json_set(v, "namespace", mt_json_new_text(record->namespace_name));
    (void)mt_json_set(v, "dateCreated",
                      mt_json_new_text(mt_time_format(record->date_created, date)));
    (void)mt_json_set(v, "limitBytes", mt_json_new_int(record->limit_bytes));
    return v;
}

static int create_vfs(mt_request *req, mt_reply *reply, mt_err **err)
{
    const mt_api *api = req->api;
    mt_vfs_record record;
    mt_namespace ns;
    mt_object object;
    char id[MT_ID_TEXT];
    mt_str name;

    if (mt_request_namespace(req, MT_MAY_SEE, &ns, err) < 0)
        return -1;
    object = mt_object_vfs_in(&ns);
    if (access_check(&req->user, MT_MAY_CREATE, &object, err) < 0 ||
        mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "name") < 0 ||
        mt_json_need_name(req->body, "name", &name, err) < 0)
        return -1;
    // The folder first: a record never lacks its folder.
    mt_id_new(id);
    if (mt_vfs_create(api->vfs_dirfd, id, api->service_uid, api->service_gid, err) < 0)
        return -1;
    if (mt_store_vfs_create(api->store, id, ns.id, name.data, api->vfs_limit, &record, err) < 0) {
        (void)mt_vfs_destroy(api->vfs_dirfd, id, NULL);
        return -1;
    }
    return mt_reply_json(reply, 201, record_json(&record), err);
}

static int list_vfs(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_(mt_vfs_list_done) mt_vfs_list list = {0};
    mt_namespace ns;
    mt_page page;
    int64_t limit;
    mt_json *items, *v;

    if (mt_request_namespace(req, MT_MAY_SEE, &ns, err) < 0 ||
        mt_query_page(req, &limit, &page.after, err) < 0)
        return -1;
    page.limit = (size_t)limit;
    if (mt_store_vfs_list(req->api->store, &req->user, ns.id, page, &list, err) < 0)
        return -1;
    items = mt_json_new_array();
    for (size_t i = 0; i < list.count; i++)
        (void)mt_json_append(items, record_json(&list.items[i]));
    v = mt_json_new_object();
    (void)mt_json_set(v, "items", items);
    (void)mt_json_set(v, "next", mt_json_new_text(list.next[0] ? list.next : NULL));
    return mt_reply_json(reply, 200, v, err);
}

static int get_vfs(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    mt_vfs_record record;
    uint64_t used;
    mt_json *v;
    int r;

    if (find_record(req, MT_MAY_SEE, &record, err) < 0 || open_content(req, &record, &vfs, err) < 0)
        return -1;
    r = mt_vfs_used_lately(vfs, USED_FRESH_MS, &used, err);
    if (r < 0)
        return -1;
    v = record_json(&record);
    // null: too much to be counted in the time there is
    (void)mt_json_set(v, "usedBytes", r == 0 ? mt_json_new_int((int64_t)used) : mt_json_new_null());
    return mt_reply_json(reply, 200, v, err);
}

// The limit keeps the host's disk from tenants, so it is the administrator's.
static int change_vfs(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_object server = mt_object_server();
    mt_vfs_record record;
    int64_t limit;

    if (find_record(req, MT_MAY_SEE, &record, err) < 0 ||
        access_check(&req->user, MT_MAY_ADMIN, &server, err) < 0 ||
        mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "limit") < 0)
        return -1;
    if (!mt_size_parse(mt_json_str(mt_json_get(req->body, "limit")), &limit))
        return mt_fail_field(err, MT_E_BAD_FIELD, "limit", "limit must be " MT_SIZE_GRAMMAR);
    if (mt_store_vfs_set_limit(req->api->store, record.id, limit, &record, err) < 0)
        return -1;
    return mt_reply_json(reply, 200, record_json(&record), err);
}

static int delete_vfs(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_err_ mt_err *left = NULL;
    mt_vfs_record record;
    bool force = false;

    if (find_record(req, MT_MAY_DELETE, &record, err) < 0 ||
        mt_query_bool(req, "force", &force, err) < 0 ||
        mt_store_vfs_delete(req->api->store, record.id, force, err) < 0)
        return -1;
    // It is gone for everybody; what could not be removed from the disk goes at the next start.
    if (mt_vfs_destroy(req->api->vfs_dirfd, record.id, &left) < 0)
        mt_log(MT_LOG_WARNING, "content of a deleted file system is left", {"vfs", record.id},
               {"error", mt_err_sentence(left)});
    return mt_reply_empty(reply, 204);
}

// ---- paths ----

static int parse_path(mt_str raw, const char *field, mt_vfs_path *ret, mt_err **err)
{
    if (!raw.data)
        return mt_fail_field(err, MT_E_BAD_FIELD, field, "%s is missing: give the path of a file",
                             field);
    return mt_vfs_path_parse(raw, field, ret, err);
}

static int query_path(const mt_request *req, mt_vfs_path *ret, mt_err **err)
{
    return parse_path(mt_query(req, "path"), "path", ret, err);
}

// A member of the body that names a file, or is the target of a link: bytes are in the arena.
// With "nameEscaped": true it comes in the escaped form that lists have.
static int body_bytes(const mt_request *req, const char *name, mt_str *ret, mt_err **err)
{
    _cleanup_buf_ mt_buf bytes = MT_BUF_INIT(3 * MT_VFS_PATH_MAX);
    bool escaped;
    mt_str text;

    if (mt_json_opt_bool(req->body, "nameEscaped", false, &escaped, err) < 0 ||
        mt_json_need_bytes(req->body, name, &text, err) < 0)
        return -1;
    if (!escaped) {
        *ret = text;
        return 0;
    }
    if (!mt_vfs_unescape(&bytes, text))
        return mt_fail_field(err, MT_E_BAD_FIELD, name,
                             "%s is not percent-encoded, as nameEscaped says it is", name);
    ret->data = mt_arena_strndup(req->arena, mt_buf_str(&bytes), bytes.len);
    ret->len = bytes.len;
    return ret->data ? 0 : mt_fail_oom(err);
}

static int body_path(const mt_request *req, const char *name, mt_vfs_path *ret, mt_err **err)
{
    mt_str bytes = {0};

    return body_bytes(req, name, &bytes, err) < 0 ? -1 : parse_path(bytes, name, ret, err);
}

// ---- entries as JSON ----

static int reply_entry(mt_reply *reply, int status, const mt_vfs_entry *e, mt_err **err)
{
    mt_jw w;

    mt_jw_init(&w, &reply->body, 0);
    mt_entry_write(&w, e);
    reply->status = status;
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

// ---- reading ----

static int add_file_headers(mt_reply *reply, const mt_vfs_entry *e, const char *etag, mt_err **err)
{
    char date[32];

    if (mt_reply_header(reply, "ETag", etag, err) < 0 ||
        mt_reply_header(reply, "Accept-Ranges", "bytes", err) < 0)
        return -1;
    return mt_http_date(e->modified_us, date) ? mt_reply_header(reply, "Last-Modified", date, err)
                                              : 0;
}

static int get_file(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    _cleanup_close_ int fd = -1;
    char etag[MT_VFS_ETAG_TEXT], text[96];
    mt_vfs_path path;
    mt_vfs_entry e;
    mt_range part;

    if (open_vfs(req, MT_MAY_SEE, &vfs, err) < 0 || query_path(req, &path, err) < 0 ||
        mt_vfs_open_file(vfs, &path, req->arena, &fd, &e, err) < 0 ||
        add_file_headers(reply, &e, mt_vfs_etag(&e, etag), err) < 0)
        return -1;
    if (mt_etag_known(req->if_none_match, etag))
        return mt_reply_empty(reply, 304);
    if (mt_range_parse(req->range, e.size, &part) < 0)
        return mt_fail(err, MT_E_BAD_RANGE,
                       "the file has %llu bytes: the range '%.80s' is not in it",
                       (unsigned long long)e.size, req->range);
    if (part.partial) {
        (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)part.from,
                       (unsigned long long)(part.from + part.length - 1),
                       (unsigned long long)e.size);
        if (mt_reply_header(reply, "Content-Range", text, err) < 0)
            return -1;
        reply->status = 206;
    }
    reply->content_type = "application/octet-stream";
    mt_reply_fd(reply, MT_TAKE_FD(fd), part.from, part.length);
    return 0;
}

static int get_stat(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    mt_vfs_path path;
    mt_vfs_entry e;

    if (open_vfs(req, MT_MAY_SEE, &vfs, err) < 0 || query_path(req, &path, err) < 0 ||
        mt_vfs_stat(vfs, &path, req->arena, &e, err) < 0)
        return -1;
    return reply_entry(reply, 200, &e, err);
}

static int get_list(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    mt_str where = mt_query(req, "path");
    mt_vfs_list_options options;
    mt_vfs_path path;
    mt_vfs_page page;
    const char *after;
    int64_t limit;
    mt_jw w;

    if (open_vfs(req, MT_MAY_SEE, &vfs, err) < 0 ||
        mt_vfs_path_parse(where.data ? where : MT_STR("/"), "path", &path, err) < 0 ||
        mt_query_page(req, &limit, &after, err) < 0 ||
        mt_query_bool(req, "recursive", &options.recursive, err) < 0)
        return -1;
    options.limit = (size_t)limit;
    options.after = mt_str_of(after);
    if (mt_vfs_read_folder(vfs, &path, &options, req->arena, &page, err) < 0)
        return -1;
    mt_jw_init(&w, &reply->body, 0);
    mt_jw_begin_object(&w);
    mt_jw_key(&w, "items");
    mt_jw_begin_array(&w);
    for (size_t i = 0; i < page.count; i++)
        mt_entry_write(&w, &page.items[i]);
    mt_jw_end_array(&w);
    mt_jw_member_text(&w, "next", page.next);
    if (page.left_out)
        mt_jw_member_int(&w, "leftOut", (int64_t)page.left_out);
    mt_jw_end_object(&w);
    return reply->body.failed ? mt_fail_oom(err) : 0;
}

// ---- writing ----

static void abort_upload(void *upload)
{
    (void)mt_vfs_upload_free(upload);
}

static int claim_upload(void *upload, uint64_t bytes)
{
    return -mt_vfs_upload_claim(upload, bytes);
}

// diskFull when the file system is full, or has less room than is announced and than other uploads
// leave.
static int claim_room(mt_vfs_upload *upload, const mt_vfs_record *record, uint64_t used,
                      int64_t announced, mt_err **err)
{
    uint64_t limit_bytes = (uint64_t)record->limit_bytes;
    char limit[MT_SIZE_TEXT];
    int r = mt_vfs_upload_bound(upload, used, limit_bytes);

    if (r == 0)
        r = used < limit_bytes
                ? mt_vfs_upload_claim(upload, announced > 0 ? (uint64_t)announced : 0)
                : -EDQUOT;
    if (r == -ENOMEM)
        return mt_fail_oom(err);
    if (r < 0)
        return mt_fail(err, MT_E_DISK_FULL,
                       "the file system '%s' may hold %s and has room for %lld bytes, less what "
                       "other uploads bring: delete what is not needed",
                       record->name, mt_size_format(record->limit_bytes, limit),
                       used < limit_bytes ? (long long)(limit_bytes - used) : 0LL);
    return 0;
}

static int begin_put_file(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    mt_vfs_upload *upload = NULL;
    mt_vfs_record record;
    mt_vfs_path path;
    uint64_t used = 0;

    if (find_record(req, MT_MAY_CHANGE, &record, err) < 0 || query_path(req, &path, err) < 0 ||
        open_content(req, &record, &vfs, err) < 0 ||
        mt_vfs_used_lately(vfs, USED_AGE_MS, &used, err) < 0 ||
        mt_vfs_upload_begin(vfs, &path, req->upload_length, &upload, err) < 0)
        return -1;
    req->upload_data = upload;
    req->upload_abort = abort_upload;
    req->upload_claim = claim_upload;
    req->upload_fd = mt_vfs_upload_fd(upload);
    return claim_room(upload, &record, used, req->upload_length, err);
}

static int put_file(mt_request *req, mt_reply *reply, mt_err **err)
{
    mt_vfs_entry e;
    int r = mt_vfs_upload_commit(req->upload_data, req->arena, &e, err);

    return r < 0 ? -1 : reply_entry(reply, r == 1 ? 200 : 201, &e, err);
}

static int delete_file(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    mt_vfs_path path;
    bool recursive;

    if (open_vfs(req, MT_MAY_CHANGE, &vfs, err) < 0 || query_path(req, &path, err) < 0 ||
        mt_query_bool(req, "recursive", &recursive, err) < 0 ||
        mt_vfs_delete(vfs, &path, recursive, err) < 0)
        return -1;
    return mt_reply_empty(reply, 204);
}

static int reply_stat(mt_request *req, mt_reply *reply, int status, const mt_vfs *vfs,
                      const mt_vfs_path *path, mt_err **err)
{
    mt_vfs_entry e;

    return mt_vfs_stat(vfs, path, req->arena, &e, err) < 0 ? -1
                                                           : reply_entry(reply, status, &e, err);
}

static int post_mkdir(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    mt_vfs_path path;
    bool parents;
    int r;

    if (open_vfs(req, MT_MAY_CHANGE, &vfs, err) < 0 ||
        mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "path", "parents", "nameEscaped") < 0 ||
        body_path(req, "path", &path, err) < 0 ||
        mt_json_opt_bool(req->body, "parents", false, &parents, err) < 0)
        return -1;
    r = mt_vfs_mkdir(vfs, &path, parents, err);
    return r < 0 ? -1 : reply_stat(req, reply, r == 1 ? 200 : 201, vfs, &path, err);
}

static int post_move(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    mt_vfs_path from, to;
    bool replace;

    if (open_vfs(req, MT_MAY_CHANGE, &vfs, err) < 0 ||
        mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "from", "to", "replace", "nameEscaped") < 0 ||
        body_path(req, "from", &from, err) < 0 || body_path(req, "to", &to, err) < 0 ||
        mt_json_opt_bool(req->body, "replace", false, &replace, err) < 0 ||
        mt_vfs_move(vfs, &from, &to, replace, err) < 0)
        return -1;
    return reply_stat(req, reply, 200, vfs, &to, err);
}

static int post_link(mt_request *req, mt_reply *reply, mt_err **err)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    mt_vfs_path path;
    mt_str target = {0};

    if (open_vfs(req, MT_MAY_CHANGE, &vfs, err) < 0 ||
        mt_json_need_object(req->body, "the body", err) < 0 ||
        MT_JSON_ONLY(req->body, err, "path", "target", "nameEscaped") < 0 ||
        body_path(req, "path", &path, err) < 0 || body_bytes(req, "target", &target, err) < 0 ||
        mt_vfs_link(vfs, &path, target, err) < 0)
        return -1;
    return reply_stat(req, reply, 201, vfs, &path, err);
}

// ---- the table ----

#define FILE_ROUTES(at)                                                                          \
    {.method = "GET", .pattern = at "/files", .handler = get_file, .query = "path"},             \
        {.method = "PUT",                                                                        \
         .pattern = at "/files",                                                                 \
         .handler = put_file,                                                                    \
         .query = "path",                                                                        \
         .begin = begin_put_file},                                                               \
        {.method = "DELETE",                                                                     \
         .pattern = at "/files",                                                                 \
         .handler = delete_file,                                                                 \
         .query = "path recursive"},                                                             \
        {.method = "GET", .pattern = at "/stat", .handler = get_stat, .query = "path"},          \
        {.method = "GET",                                                                        \
         .pattern = at "/list",                                                                  \
         .handler = get_list,                                                                    \
         .query = "path recursive limit after"},                                                 \
        {.method = "POST",                                                                       \
         .pattern = at "/mkdir",                                                                 \
         .handler = post_mkdir,                                                                  \
         .max_body = MT_BODY_SMALL},                                                             \
        {.method = "POST",                                                                       \
         .pattern = at "/move",                                                                  \
         .handler = post_move,                                                                   \
         .max_body = MT_BODY_SMALL},                                                             \
    {                                                                                            \
        .method = "POST", .pattern = at "/link", .handler = post_link, .max_body = MT_BODY_SMALL \
    }

const mt_route mt_routes_vfs[] = {
    {.method = "GET",
     .pattern = "/v1/namespaces/{ns}/vfs",
     .handler = list_vfs,
     .query = "limit after"},
    {.method = "POST",
     .pattern = "/v1/namespaces/{ns}/vfs",
     .handler = create_vfs,
     .max_body = MT_BODY_SMALL},
    {.method = "GET", .pattern = "/v1/namespaces/{ns}/vfs/{name}", .handler = get_vfs},
    {.method = "PATCH",
     .pattern = "/v1/namespaces/{ns}/vfs/{name}",
     .handler = change_vfs,
     .max_body = MT_BODY_SMALL},
    {.method = "DELETE",
     .pattern = "/v1/namespaces/{ns}/vfs/{name}",
     .handler = delete_vfs,
     .query = "force"},
    FILE_ROUTES("/v1/namespaces/{ns}/vfs/{name}"),
    FILE_ROUTES("/v1/vfs/{id}"),
    {0},
};
