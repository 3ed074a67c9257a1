// SPDX-License-Identifier: Apache-2.0
// The table of calls.
#include "server/app-calls-internal.h"

#define RUN         "/v1/capsule-runs/{0}"
#define COMMAND     "/v1/capsule-runs/{0}/commands/{1}"
#define FILES       "/v1/{0v}"
#define INTERACTION "/v1/interaction-runs/{0}"

const app_row app_rows[] = {
    {"CapsuleList", "GET", "/v1/namespaces/{0n}/capsules?limit=1000", .make = app_make_items},
    {"CapsuleGet", "GET", "/v1/namespaces/{1n}/capsules/{0}", .read = app_read_object},
    {"CapsuleStart", "POST", "/v1/namespaces/{1n}/capsules/{0}/runs", app_body_start, app_read_id},
    {"CapsuleWaitUntilStarted", "GET", RUN, .read = app_read_ready},
    {"CapsuleWaitUntilEnded", "GET", RUN, .read = app_read_ended},
    {"CapsuleRunGet", "GET", RUN, .read = app_read_object},
    {"CapsuleRunList", "GET", "/v1/capsule-runs?namespace={1n}&capsule={0}&limit=100",
     .read = app_read_items},
    {"CapsuleTerminate", "POST", RUN "/terminate", .read = app_read_nothing},

    {"CapsuleExec", "POST", RUN "/commands", app_body_exec, app_read_id},
    {"CapsuleExecWith", "POST", RUN "/commands", app_body_exec_with, app_read_id},
    {"CapsuleCommandAwait", "GET", COMMAND, .read = app_read_command},
    {"CapsuleCommandGet", "GET", COMMAND, .read = app_read_object},
    {"CapsuleCommandList", "GET", RUN "/commands?limit=1000", .make = app_make_items},
    {"CapsuleCommandCancel", "POST", COMMAND "/cancel", .read = app_read_nothing},
    {"CapsuleCommandReadOutput", "GET", COMMAND "/output?stream={2}&from={3}",
     .make = app_make_output},

    {"CapsuleFileReadText", "GET", RUN "/files?path={1}", .read = app_read_text},
    {"CapsuleFileWriteText", "PUT", RUN "/files?path={1}", app_body_text, app_read_nothing},
    {"CapsuleFileExists", "GET", RUN "/files/stat?path={1}", .read = app_read_exists,
     .missing_is_fine = true},
    {"CapsuleFileGet", "GET", RUN "/files/stat?path={1}", .read = app_read_object},
    {"CapsuleFileList", "GET", RUN "/files/list?path={1}&limit=1000", .make = app_make_items},
    {"CapsuleFileMakeFolder", "POST", RUN "/files/mkdir", app_body_mkdir, app_read_nothing},
    {"CapsuleFileDelete", "DELETE", RUN "/files?path={1}&recursive=true", .read = app_read_nothing,
     .missing_is_fine = true},

    {"VfsList", "GET", "/v1/namespaces/{0n}/vfs?limit=1000", .make = app_make_items},
    {"VfsReadText", "GET", FILES "/files?path={1}", .read = app_read_text},
    {"VfsReadBase64", "GET", FILES "/files?path={1}", .read = app_read_base64},
    {"VfsWriteText", "PUT", FILES "/files?path={1}", app_body_text, app_read_nothing},
    {"VfsWriteBase64", "PUT", FILES "/files?path={1}", app_body_base64, app_read_nothing},
    {"VfsExists", "GET", FILES "/stat?path={1}", .read = app_read_exists, .missing_is_fine = true},
    {"VfsGet", "GET", FILES "/stat?path={1}", .read = app_read_object},
    {"VfsListFolder", "GET", FILES "/list?path={1}&limit=1000", .make = app_make_items},
    {"VfsMakeFolder", "POST", FILES "/mkdir", app_body_mkdir, app_read_nothing},
    {"VfsCopy", "GET", FILES "/files?path={1}", .make = app_make_copy},
    {"VfsDelete", "DELETE", FILES "/files?path={1}&recursive=true", .read = app_read_nothing,
     .missing_is_fine = true},

    {"SecretExists", "GET", "/v1/namespaces/{1n}/secrets/{0}", .read = app_read_exists,
     .missing_is_fine = true},

    {"InteractionStart", "POST", "/v1/namespaces/{4n}/interactions/{0}/runs", app_body_interaction,
     app_read_id},
    {"InteractionAwait", "GET", INTERACTION, .read = app_read_ended},
    {"InteractionGet", "GET", INTERACTION, .read = app_read_object},
    {"InteractionCancel", "POST", INTERACTION "/cancel", .read = app_read_nothing},

    {"AppStart", "POST", "/v1/namespaces/{2n}/apps/{0}/runs", app_body_inputs, app_read_id},
    {"AppAwait", "GET", "/v1/app-runs/{0}?console=true", .read = app_read_ended},
    {"AppGet", "GET", "/v1/app-runs/{0}?console=true", .read = app_read_object},
    {"AppCancel", "POST", "/v1/app-runs/{0}/cancel", .read = app_read_nothing},
    {"AwaitAny", .make = app_make_await_any},
    {0},
};

static const app_row *find_row(const char *name)
{
    for (const app_row *row = app_rows; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

mt_app_outcome mt_app_call_perform(mt_app_call *call, void *data)
{
    app_request r = {
        .call = call,
        .door = data,
        .row = find_row(call->builtin->name),
        .target.max = 1 << 20,
        .body.max = APP_ANSWER_MAX,
    };
    mt_app_outcome outcome;
    bool done = false;

    if (!r.row)
        return app_refuse(&r, "notSupported", "%s is not there in this version",
                          call->builtin->name);
    if (r.row->make) {
        outcome = r.row->make(&r);
    } else {
        outcome = app_request_make(&r, &done);
        if (done)
            outcome = r.row->read(&r);
    }
    app_replace_nul(&call->result);
    mt_http_answer_done(&r.answer);
    mt_buf_done(&r.target);
    mt_buf_done(&r.body);
    return outcome;
}
