// SPDX-License-Identifier: Apache-2.0
// The commands that are sent to a run: their queue, and the life of each.
//
//   QUEUED ──> ASKED ──> RUNNING ──> STOPPING ──> ENDED ──> (freed)
//     │          │          └───────────────────────^
//     └──────────┴──────────────────────────────────┘
//
//   QUEUED    waits for its turn: one at a time, in order; nothing waits for an async one
//   ASKED     mt-init has been asked for its process
//   RUNNING   its program runs: COMMAND_STARTED is recorded, its own time counts
//   STOPPING  out of its time or cancelled, and its process has ended: what it has left is killed
//   ENDED     COMMAND_ENDED is recorded. What it left in the background lives on; what that prints
//             goes to the spools
//
// Each command that was taken gets exactly one COMMAND_ENDED. One thread, the loop's. Knows neither
// sockets nor the run's own life: those are the host's.
#pragma once

#include "base/loop.h"
#include "capsule/cgroup.h"
#include "capsule/command.h"
#include "capsule/initwire.h"
#include "capsule/journal.h"

// A process for a command. The fds stay the module's.
typedef struct commands_request {
    const mt_command *command;
    uint64_t token;
    int group; // MT_CGROUP_COMMAND(n)
    int in_fd; // -1: /dev/null
    int out_fd;
    int err_fd;
} commands_request;

typedef struct commands_host {
    mt_loop *loop;
    mt_cgroup *cgroup;
    int run_dir_fd;       // its folder `out` is made when the first command begins
    uint32_t first_group; // groups (and tokens) from this number on are the module's
    const mt_plan_limits *limits;
    int disk_usage_fd; // for mt_scratch_met()
    // Whether mt-init may be asked now. Where not, commands_go_on() is called when it may.
    bool (*may_ask)(void *data);
    // Asks mt-init; a failure's sentence goes into the command's details.
    int (*request)(void *data, const commands_request *what, mt_err **err);
    // The sentence for a FAILED reply.
    void (*explain)(void *data, const mt_command *c, const mt_init_reply *r, mt_buf *to);
    void (*record)(void *data, mt_record *r);
    void (*note)(void *data, const char *text);
    void *data;
} commands_host;

typedef struct commands commands;

commands *commands_new(const commands_host *host); // NULL when out of memory
void commands_free(commands *cs);                  // accepts NULL
// The payload of an EXEC frame: 0 (taken, or dropped as its id was seen), -1 when it is malformed.
int commands_take(commands *cs, const void *data, size_t len);
void commands_cancel(commands *cs, const char *id, mt_str by);
void commands_open(commands *cs);  // the run is ready: the queue begins to move
void commands_go_on(commands *cs); // mt-init may be asked again
// When nobody waits for anything, after the end of a command: removes the groups of those that are
// over and makes the next one's ahead.
void commands_tidy(commands *cs);
// A reply of mt-init about a token of first_group or above. It is not trusted: what it says of
// commands that do not run is passed over.
void commands_reply(commands *cs, const mt_init_reply *r);
// The run is over and its processes are gone: whatever has not ended is recorded as aborted.
void commands_abort(commands *cs, const char *why);
// Gives back the memory that only the reading of output needs.
void commands_settle(commands *cs);
// "2 GiB"
void commands_add_size(mt_buf *b, uint64_t bytes);
