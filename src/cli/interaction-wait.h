// SPDX-License-Identifier: Apache-2.0
// Runs of interactions: waiting for their ends, and what was asked and answered.
#pragma once

#include "cli/cli.h"

// Waits for the end of a run and prints what the model answered on stdout, or why it did not on
// stderr, with --show-attempts after what was asked; with --json the record. The exit status that
// fits, CLI_TIME_OUT when timeout_ms (0: none) are over, or -1. Outlives restarts of the server;
// where it is interrupted it says that the run goes on.
int interaction_wait(cli *c, const char *id, int64_t timeout_ms, mt_err **err);

// The attempts of a run with a higher number than after, in order.
int interaction_attempts(cli *c, const char *id, int64_t after, mt_json **ret, mt_err **err);

// With --show-attempts: what was asked and answered, printed to `to`, with --json a member of *run.
int interaction_show_attempts(cli *c, mt_json **run, FILE *to, mt_err **err);
