// SPDX-License-Identifier: Apache-2.0
// Waiting for runs of capsules, and telling how they ended.
#pragma once

#include "cli/cli.h"

typedef struct run_wait {
    const char *id;
    bool ready;         // ready is enough
    int64_t timeout_ms; // 0: none
    bool from_start;    // also when the server was not reached yet
} run_wait;

// 0 with the run as it then is; 1 when the time is over (*ret is the run); -1. Outlives restarts of
// the server.
int run_wait_for(cli *c, const run_wait *w, mt_json **ret, mt_err **err);
bool run_has_ended(const mt_json *run);
// Says on stderr how a run ended; the exit status that fits: 0 only for Finished.
int run_report_end(const cli *c, const mt_json *run);
