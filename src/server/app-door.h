// SPDX-License-Identifier: Apache-2.0
// The door by which programs of apps call: requests of the API, made by the server itself over
// socket pairs, as the user who started the app run. So a program may what its user may by the API,
// and is answered as he would be. An HTTP server of its own, so that what programs do leaves the
// host's connections alone. Nobody else can come in, so each request says in a header whose it is;
// no part of a program gets into one.
#pragma once

#include "http/client.h"
#include "server/auth.h"

typedef struct mt_app_door mt_app_door;

// handler: the same as of the host's doors. Before the loop runs.
int mt_app_door_new(mt_loop *loop, const mt_http_handler *handler, mt_app_door **ret, mt_err **err);
// A folder for files of no name; stays the caller's.
void mt_app_door_set_folder(mt_app_door *door, int dirfd);
int mt_app_door_scratch(const mt_app_door *door); // such a file, or negative errno
// The end of the server begins: calls under way are cut, and later ones are unreachable. Loop's
// thread; the loop need not run any more.
void mt_app_door_shut(mt_app_door *door);
void mt_app_door_free(mt_app_door *door); // after all who call; accepts NULL
mt_http_server *mt_app_door_http(mt_app_door *door);

// The header that says whose a request is; at every other door it means nothing.
#define MT_APP_RUN_HEADER "X-Maitento-App-Run"

// One call as that app run, from any thread but the loop's. As mt_http_client_call() has it.
int mt_app_door_call(mt_app_door *door, const char *app_run_id, const mt_http_call *call,
                     mt_http_answer *answer, mt_err **err);
