// SPDX-License-Identifier: Apache-2.0
// Runs of apps: what they print, and showing them to their ends.
#pragma once

#include "cli/cli.h"

// Lines of a run, from the last number that was reached on: neither a break nor a restart of the
// server loses or repeats any.
typedef struct app_lines {
    cli *c;
    const char *id;
    const char *what; // "console" or "log"
    int64_t after;    // number of the last one that was given
    bool ended;       // the run has ended, and all of its lines were given
} app_lines;

// The lines that follow, as a list in *ret; waits at most so long for one or the run's end.
int app_lines_next(app_lines *l, int64_t seconds, mt_json **ret, mt_err **err);

// Shows a run to its end: what it prints and then what it returned on stdout, or why it failed on
// stderr. With --quiet what it returned is alone, with --json the record. The exit status that
// fits, CLI_TIME_OUT when timeout_ms (0: none) are over, or -1. Outlives restarts of the server;
// where it is interrupted it says that the run goes on.
int app_show_to_end(cli *c, const char *id, int64_t timeout_ms, mt_err **err);
