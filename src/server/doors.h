// SPDX-License-Identifier: Apache-2.0
// The doors of runs: a listening socket for each run that has a sign-in, given by its supervisor
// (docs/internals/sign-in.md). Behind them is hostile code, so they have an HTTP server of their
// own, with limits of its own: what all runs together do leaves the host's connections alone.
// Loop's thread.
#pragma once

#include "server/auth.h"

typedef struct mt_doors mt_doors;

// Of all runs together: connections, and bytes of bodies that are collected.
enum { MT_DOORS_CONNECTIONS = 2048, MT_DOORS_BODIES = 128 << 20 };

// handler: the same as of the host's doors.
int mt_doors_new(mt_loop *loop, const mt_http_handler *handler, mt_doors **ret, mt_err **err);
void mt_doors_free(mt_doors *doors); // accepts NULL
// Without doors (NULL), which are gone when the server ends, these do nothing.
// A run's socket, taken over; uid_base: the first id of the run's block. A run has one: another is
// closed, as it is the same.
void mt_doors_open(mt_doors *doors, const char *run_id, int fd, uint32_t uid_base);
// The run ends: its door is shut and who is inside is cut. Fine for a run that has none.
void mt_doors_close(mt_doors *doors, const char *run_id);
// No new ones, and the open ones are left to the next server; clients wait there.
void mt_doors_stop(mt_doors *doors, int64_t within_ms, void (*done)(void *data), void *data);
