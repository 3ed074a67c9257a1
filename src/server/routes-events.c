// SPDX-License-Identifier: Apache-2.0
// The stream of events: what is asked for is checked here, on a worker; the rest is the loop's
// (event-streams.h).
#include "server/event-streams.h"

#include <stdio.h>

enum { LAST_MAX = 1000, KINDS_TEXT = 512 };

// ---- what is asked for ----

typedef struct asked {
    mt_namespace ns;                // of the filter
    char run_namespace[MT_ID_TEXT]; // of the run
    char kinds[KINDS_TEXT];
    mt_event_stream_spec spec;
} asked;

static bool is_kind(mt_str word)
{
    static const char *const KINDS[] = {"capsuleRun", "command", "appRun",    "interactionRun",
                                        "capsule",    "app",     "agent",     "interaction",
                                        "json",       "prompt",  "namespace", "vfs",
                                        "secret",     "user",    "key",       "provider"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(KINDS); i++)
        if (mt_str_eq(word, KINDS[i]))
            return true;
    return false;
}

// "vfs,secret" to " vfs secret ", each once.
static int read_kinds(const mt_request *req, asked *a, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(KINDS_TEXT);
    mt_str list = mt_query(req, "kind");
    size_t at = 0;

    if (!list.data)
        return 0;
    (void)mt_buf_addc(&b, ' ');
    while (at <= list.len) {
        const char *comma = memchr(list.data + at, ',', list.len - at);
        mt_str word = {list.data + at, comma ? (size_t)(comma - list.data) - at : list.len - at};
        char spaced[MT_STORE_WORD + 2];

        if (!is_kind(word))
            return mt_fail_field(
                err, MT_E_BAD_FIELD, "kind",
                "no kind of event '%.*s'; there are, between commas: capsuleRun, command, appRun, "
                "interactionRun, capsule, app, agent, interaction, json, prompt, namespace, vfs, "
                "secret, user, key, provider",
                (int)MT_MIN(word.len, (size_t)64), word.data);
        (void)snprintf(spaced, sizeof(spaced), " %.*s ", (int)word.len, word.data);
        if (!strstr(mt_buf_str(&b), spaced))
            (void)mt_buf_adds(&b, spaced + 1);
        at += word.len + 1;
    }
    (void)snprintf(a->kinds, sizeof(a->kinds), "%s", mt_buf_str(&b));
    a->spec.kinds = a->kinds;
    return 0;
}

// 0, 1: not of this kind; < 0.
static int not_there(int r, mt_err **err)
{
    if (r == 0 || mt_err_code(*err) != MT_E_NOT_FOUND)
        return r;
    *err = mt_err_free(*err);
    return 1;
}

// A run of whatever kind has one id.
static int find_run(const mt_request *req, asked *a, const char *id, mt_err **err)
{
    mt_store *store = req->api->store;
    _cleanup_(mt_run_done) mt_run run = {0};
    _cleanup_(mt_app_run_done) mt_app_run app = {0};
    _cleanup_(mt_interaction_run_done) mt_interaction_run interaction = {0};
    int r = not_there(access_run(store, &req->user, MT_MAY_SEE, id, &run, err), err);

    a->spec.parts = MT_EVENT_RUN_CAPSULE;
    if (r == 0)
        memcpy(a->run_namespace, run.namespace_id, sizeof(a->run_namespace));
    if (r <= 0)
        return r;
    a->spec.parts = MT_EVENT_RUN_APP;
    r = not_there(access_app_run(store, &req->user, MT_MAY_SEE, id, &app, err), err);
    if (r == 0)
        memcpy(a->run_namespace, app.namespace_id, sizeof(a->run_namespace));
    if (r <= 0)
        return r;
    a->spec.parts = MT_EVENT_RUN_INTERACTION;
    r = not_there(access_interaction_run(store, &req->user, MT_MAY_SEE, id, &interaction, err),
                  err);
    if (r == 0)
        memcpy(a->run_namespace, interaction.namespace_id, sizeof(a->run_namespace));
    return r <= 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no run '%.80s', of whatever kind", id);
}

static int read_run(const mt_request *req, asked *a, mt_err **err)
{
    const char *id = NULL;
    bool output;

    if (mt_query_text(req, "run", &id, err) < 0 || mt_query_bool(req, "output", &output, err) < 0)
        return -1;
    if (output && !id)
        return mt_fail_field(err, MT_E_BAD_FIELD, "output", "output=true needs a run (run=ID)");
    if (!id)
        return 0;
    if (find_run(req, a, id, err) < 0)
        return -1;
    a->spec.run_id = id;
    a->spec.watched_id = a->run_namespace;
    if (!output)
        a->spec.parts = MT_EVENT_RUN_NONE;
    return 0;
}

static int read_filter(const mt_request *req, asked *a, mt_err **err)
{
    a->spec.user = req->user;
    if (mt_query_namespace(req, &a->ns, &a->spec.namespace_id, err) < 0 ||
        read_kinds(req, a, err) < 0)
        return -1;
    a->spec.watched_id = a->spec.namespace_id;
    a->spec.follow = true;
    return read_run(req, a, err) < 0 || (mt_query(req, "follow").data &&
                                         mt_query_bool(req, "follow", &a->spec.follow, err) < 0)
               ? -1
               : 0;
}

// ---- where it begins ----

// A number that a client has can be too old, or of a state that was put back by a backup.
static int begin_after(const mt_request *req, asked *a, int64_t after, mt_err **err)
{
    int64_t newest, oldest;

    if (mt_store_event_ends(req->api->store, &newest, &oldest, err) < 0)
        return -1;
    if (after > newest)
        return mt_fail_field(err, MT_E_GONE, "after",
                             "there was no event %lld yet, the newest is %lld: look at what you "
                             "wait for, and go on without a number",
                             (long long)after, (long long)newest);
    if (oldest == 0)
        oldest = newest + 1;
    if (after < oldest - 1)
        return mt_fail_field(err, MT_E_GONE, "after",
                             "events after %lld are not all kept, the oldest is %lld: look at what "
                             "you wait for, and go on with after=%lld or without a number",
                             (long long)after, (long long)oldest, (long long)oldest - 1);
    a->spec.after = after;
    return 0;
}

static int begin_back(const mt_request *req, asked *a, int64_t last, mt_err **err)
{
    mt_event_filter filter = {
        .namespace_id = a->spec.namespace_id, .kinds = a->spec.kinds, .run_id = a->spec.run_id};
    int64_t newest, oldest;

    if (mt_store_event_ends(req->api->store, &newest, &oldest, err) < 0)
        return -1;
    a->spec.after = newest;
    return last == 0 ? 0
                     : mt_store_event_back(req->api->store, &req->user, &filter, (size_t)last,
                                           &a->spec.after, err);
}

static int read_begin(const mt_request *req, asked *a, mt_err **err)
{
    const char *header = req->last_event_id;
    int64_t last, after;
    uint64_t n;

    if (mt_query_int(req, "last", 0, LAST_MAX, 0, &last, err) < 0 ||
        mt_query_int(req, "after", 0, INT64_MAX, -1, &after, err) < 0)
        return -1;
    if (header && !mt_parse_u64(mt_str_of(header), INT64_MAX, &n))
        return mt_fail(err, MT_E_BAD_REQUEST,
                       "Last-Event-ID is no number of an event: send the id of the last one that "
                       "came");
    if (header)
        return begin_after(req, a, (int64_t)n, err);
    if (after >= 0 && mt_query(req, "last").data)
        return mt_fail_field(err, MT_E_BAD_FIELD, "last", "give one of 'after' and 'last'");
    return after >= 0 ? begin_after(req, a, after, err) : begin_back(req, a, last, err);
}

static int get_events(mt_request *req, mt_reply *reply, mt_err **err)
{
    asked a = {0};

    (void)reply;
    if (read_filter(req, &a, err) < 0 || read_begin(req, &a, err) < 0)
        return -1;
    req->taker = mt_event_stream_taker(req->api, &a.spec);
    return req->taker ? 0 : mt_fail_oom(err);
}

const mt_route mt_routes_events[] = {
    {.method = "GET",
     .pattern = "/v1/events",
     .handler = get_events,
     .query = "after last namespace kind run output follow"},
    {0},
};
