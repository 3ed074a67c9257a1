// SPDX-License-Identifier: Apache-2.0
// A command sent to a run, as data: what the server stores, the supervisor runs. Encoded for the
// EXEC frame; decoded with every limit checked, as a plan is.
//
// Its output goes, byte for byte, to two spool files of the run's folder: out/<command id>.1 and
// out/<command id>.2 (made by the supervisor, group of the service user, 0640). A spool keeps its
// last 64 MiB: what is older is punched out, so offsets stay true and the file's size is the whole
// length. Where all of a run's are 256 MiB, the oldest keep less, or nothing. It grows on after the
// command's end while a process that it left behind prints.
#pragma once

#include "base/err.h"
#include "capsule/plan.h"

enum {
    MT_COMMAND_STDIN_MAX = 8 << 20,
    MT_COMMAND_QUEUE_MAX = 10000,    // waiting in one run
    MT_SPOOL_BYTES = 64 << 20,       // of one stream
    MT_RUN_SPOOL_BYTES = 256 << 20,  // of all of a run, and a little more
    MT_COMMAND_RECORD_CHARS = 65536, // of each stream, in the record
};

typedef struct mt_command {
    const char *id; // a GUID
    const char *command;
    const char *const *arguments;
    uint32_t argument_count;
    const char *user;              // never NULL
    bool async;                    // the queue goes on without waiting for it
    int64_t max_duration_ms;       // of its own, counted from its start; 0: none
    const char *working_directory; // absolute; NULL: the user's home
    const mt_plan_env *environment;
    uint32_t environment_count;
    mt_str input;     // standard input; empty: at its end at once
    mt_arena *arena_; // private: owns a decoded one
} mt_command;

// Appends the encoded command to b. Fails (badRequest, tooLarge) where it does not validate.
int mt_command_encode(const mt_command *c, mt_buf *b, mt_err **err);
int mt_command_decode(const void *data, size_t len, mt_command **ret, mt_err **err);
void mt_command_free(mt_command *c); // only for decoded ones; accepts NULL
MT_DEFINE_CLEANUP(mt_command_free, mt_command *)
int mt_command_validate(const mt_command *c, mt_err **err); // names the member at fault
