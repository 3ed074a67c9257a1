// SPDX-License-Identifier: Apache-2.0
// Waiting for runs, stopping them, and telling how they ended.
#pragma once

#include "cli/cli.h"

typedef struct run_wait {
    const cli_runs *kind;
    const char *id;
    bool ready;         // of a capsule: ready is enough
    int64_t timeout_ms; // 0: none
    bool from_start;    // also when the server was not reached yet
    // What goes on, for the line that shows it on a terminal; freed by the caller.
    char *(*says)(cli *c, const mt_json *run, void *data);
    void *data;
} run_wait;

// 0 with the run as it then is; 1 when the time is over (*ret is the run); -1. Outlives restarts of
// the server.
int run_wait_for(cli *c, const run_wait *w, mt_json **ret, mt_err **err);
bool run_has_ended(const mt_json *run);
// --timeout TIME, 0 without it.
int run_timeout(cli *c, int64_t *ret_ms, mt_err **err);
int run_still_there(const cli *c, const run_wait *w, const mt_json *run); // says so; CLI_TIME_OUT
// Asks for the end of all runs that the arguments name, and prints what became of them.
int run_stop_each(cli *c, const cli_runs *kind, mt_err **err);
void run_print_details(const cli *c, const mt_json *run); // failureDetails, on stderr
// Says on stderr how a capsule's run ended; the exit status that fits: 0 only for Finished.
int run_report_end(const cli *c, const mt_json *run);
