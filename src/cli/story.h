// SPDX-License-Identifier: Apache-2.0
// What happened in a run, entry by entry, as the server tells it.
#pragma once

#include "cli/cli.h"

// The run with those entries of its story that have a number above after, all of them. Outlives
// restarts of the server.
int story_get(cli *c, const char *run_id, int64_t after, mt_json **ret, mt_err **err);
char *story_begin(const mt_json *run); // "started by ada: capsule …"
char *story_end(const mt_json *run);   // "ended: Finished, exited"
