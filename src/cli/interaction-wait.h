// SPDX-License-Identifier: Apache-2.0
// Runs of interactions: waiting for their ends, and what was asked and answered.
#pragma once

#include "cli/cli.h"

// Waits for the end of a run and prints what the model answered on stdout, or why it did not on
// stderr, with --show-attempts after what was asked; with --json the record; with --stream what it
// says while it says it. The exit status that fits, CLI_TIME_OUT when timeout_ms (0: none) are
// over, or -1. Outlives restarts of the server; where it is interrupted it says that the run goes
// on.
int interaction_wait(cli *c, const char *id, int64_t timeout_ms, mt_err **err);

// What a model says to a run, from where it is known.
typedef struct interaction_text {
    int64_t stream, from; // of the text that is known, and its bytes; 0 at first
} interaction_text;
// What came since, at the longest after so many seconds: an answer of the API. *ret_anew: it is
// another text, from its beginning.
int interaction_text_next(cli *c, const char *id, interaction_text *t, int64_t seconds,
                          mt_json **ret, bool *ret_anew, mt_err **err);

// Shows what a model says until the run has ended and all of it is shown, or end_ns (boot time) has
// come; *ret is the run as it then is. Any text that is the answer itself goes to stdout, what has
// to fit a schema (or stands beside --json) to stderr, each attempt under its number.
typedef struct interaction_shown {
    bool answer; // what the model said stands on stdout, whole once the run has ended
    bool spoilt; // and before it the beginning of one that broke off
} interaction_shown;
int interaction_stream(cli *c, const char *id, int64_t end_ns, interaction_shown *shown,
                       mt_json **ret, mt_err **err);

// Its definition, as it was when the run began; NULL where that is not told.
mt_json *interaction_definition(cli *c, const mt_json *run);
// Under a name, its lines beneath each other.
void interaction_print_text(FILE *to, const char *name, const char *text);

// The attempts of a run with a higher number than after, in order.
int interaction_attempts(cli *c, const char *id, int64_t after, mt_json **ret, mt_err **err);

// With --show-attempts: what was asked and answered, printed to `to`, with --json a member of *run.
int interaction_show_attempts(cli *c, mt_json **run, FILE *to, mt_err **err);
