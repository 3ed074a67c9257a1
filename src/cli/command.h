// SPDX-License-Identifier: Apache-2.0
// Commands in runs: finding one by what the user wrote, waiting for its end, showing its output as
// it comes, telling how it ended.
#pragma once

#include "cli/cli.h"

typedef struct command_ref {
    char *run, *id;
} command_ref;
void command_ref_done(command_ref *r);
#define _cleanup_command_ _cleanup_(command_ref_done)

// The command that the arguments [RUN] COMMAND name: a whole id, the ending of one, or @last.
int command_find(cli *c, command_ref *ret, mt_err **err);
// The same in a run whose id is known.
int command_find_in(cli *c, const char *run, const char *word, command_ref *ret, mt_err **err);
char *command_url(const command_ref *r, const char *more); // more: "?wait=1", "/cancel", ""

bool command_has_ended(const mt_json *v);
// 0 with the command as it ended; 1 when timeout_ms (0: none) is over (*ret is the command); -1.
// Outlives restarts of the server.
int command_wait(cli *c, const command_ref *r, int64_t timeout_ms, mt_json **ret, mt_err **err);
// Writes both outputs to stdout and stderr as they come, until the command has ended; *ret is the
// command then. Goes on where it stopped when the connection breaks.
int command_follow(cli *c, const command_ref *r, mt_json **ret, mt_err **err);
// Says on stderr what the outputs do not: out of time, out of memory, why it was aborted. The exit
// status that fits: the command's own, CLI_TIME_OUT, CLI_OWN_FAILURE.
int command_report_end(const cli *c, const mt_json *v);

// One output of a command, from the byte that was reached.
typedef struct command_stream {
    cli *c;
    const command_ref *command;
    const char *name;      // "standard" or "error"
    uint64_t offset, lost; // lost: dropped by the server before they could be read
    // Takes what comes; once it has returned 0 the bytes count as reached.
    int (*sink)(struct command_stream *s, const void *piece, size_t len, mt_err **err);
    void *data; // sink's
} command_stream;
// One answer: what there is beyond offset or, with follow, what comes until the server ends it.
// When the connection breaks it is asked for again from where it was, for up to a minute.
int command_stream_read(command_stream *s, bool follow, mt_err **err);
// COMMAND and its arguments on one line.
char *command_line_of(const mt_json *command);

int command_exec(cli *c, mt_err **err); // mt capsule-exec
extern const cli_option command_exec_options[];
