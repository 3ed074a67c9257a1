// SPDX-License-Identifier: Apache-2.0
// Commands on their way from the store to the supervisor of their run.
#pragma once

#include "capsule/command.h"
#include "capsule/journal.h"
#include "core/frame-conn.h"
#include "core/run-output.h"
#include "store/store.h"

// Texts of a command for the store: JSON.
int mt_command_texts(const mt_command *c, mt_buf *arguments, mt_buf *environment);
// A stored command as data again. Everything goes into arena, or stays record's.
int mt_command_of_record(const mt_command_record *record, mt_arena *arena, mt_command *ret,
                         mt_err **err);

// What of a run's commands its supervisor was sent on this connection: all up to number `sent`, in
// the order of their numbers. behind: there may be more in the store.
typedef struct mt_command_feed {
    int64_t sent;
    bool behind;
} mt_command_feed;

// From the store, as far as the connection takes it. < 0: close the connection and try again.
int mt_command_feed_pump(mt_command_feed *feed, mt_store *store, const char *run_id,
                         mt_frame_conn *conn);
// One that was stored just now, with its EXEC frame; conn may be NULL (it is pumped later).
int mt_command_feed_add(mt_command_feed *feed, mt_frame_conn *conn, int64_t number, mt_buf *frame);

// How a command ended, for the store: texts of the record and of the tails, which must outlive it.
typedef struct mt_command_end {
    char id[37];
    char *details;
    mt_buf limits;
    mt_command_change change;
} mt_command_end;
void mt_command_end_fill(mt_command_end *e, const mt_record *r, const mt_run_tail *standard,
                         const mt_run_tail *error);
void mt_command_end_done(mt_command_end *e);

// "["memory","pids"]" of MT_LIMIT_… bits.
const char *mt_limits_list(uint32_t bits, mt_buf *b);
