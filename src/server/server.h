// SPDX-License-Identifier: Apache-2.0
// The dispatcher: from an HTTP exchange to a route's handler on a worker and back. Everything here
// is the loop's thread's but mt_announce() (api.h).
//
//   on_head ── host, route, query, body rules ──> refused, or
//     no body:  job on a worker: sign-in, handler
//     a body:   paused; job: sign-in, the route's `begin`; resumed; collected or written to a file;
//               job: handler
//   a handler that is "not yet" leaves its exchange parked until its topic is announced, its time
//   is over, or the client is gone
#pragma once

#include "core/pool.h"
#include "server/api.h"
#include "server/app-door.h"
#include "server/auth.h"
#include "server/doors.h"

// No threads yet: listeners may be added while the process still has its rights.
int mt_server_new(mt_loop *loop, mt_api *api, mt_server **ret, mt_err **err);
// Starts the workers. Before the loop runs.
int mt_server_start(mt_server *server, size_t workers, mt_err **err);
void mt_server_free(mt_server *server);             // lets handlers finish; accepts NULL
mt_http_server *mt_server_http(mt_server *server);  // of the host's doors
mt_doors *mt_server_doors(mt_server *server);       // those of runs
mt_app_door *mt_server_app_door(mt_server *server); // that of programs
// A run ends, or its end is stored: its door is shut, and what goes on by way of its sign-in,
// through whatever door, is cut.
void mt_server_run_ends(mt_server *server, const char *run_id);
// Graceful end: as mt_http_server_stop(), for all doors.
void mt_server_stop(mt_server *server, int64_t within_ms, void (*done)(void *data), void *data);
