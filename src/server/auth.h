// SPDX-License-Identifier: Apache-2.0
// Who asks, and whether a browser page is behind it. The host's socket knows its caller by peer
// credentials, TCP by a key, a run's own socket by the run. Headers never raise trust.
#pragma once

#include "http/server.h"
#include "server/api.h"

// What a listener is, as its tag.
typedef struct mt_door {
    enum { MT_DOOR_SOCKET, MT_DOOR_TCP, MT_DOOR_RUN, MT_DOOR_APP } kind;
    const char *const *hosts; // TCP: names (without port) that a Host header may give; NULL ends
    char run_id[MT_ID_TEXT];  // RUN; APP: the app run, in a job's own copy alone
    uint32_t uid_base;        // RUN: the first id of its block
} mt_door;

// Loop's thread, before anything else is looked at. 0, or misdirected (Host) / forbidden (Origin).
int mt_auth_check_host(const mt_door *door, const mt_http_request *request, mt_err **err);
// Worker's thread. 0 with req->user, req->via and, where it is done by way of a run's sign-in,
// req->run_id set; or unauthenticated.
int mt_auth_user(const mt_door *door, const mt_http_request *request, const mt_http_peer *peer,
                 mt_request *req, mt_err **err);
