// SPDX-License-Identifier: Apache-2.0
// Between commands.c (queue and life) and command-streams.c (what a command reads and prints).
#pragma once

#include "runner/commands.h"
#include "runner/spool.h"

typedef enum command_state {
    CMD_QUEUED,
    CMD_ASKED,
    CMD_RUNNING,
    CMD_STOPPING,
    CMD_ENDED,
} command_state;

typedef enum command_stop { STOP_NONE, STOP_TIMEOUT, STOP_CANCEL } command_stop;

typedef struct command command;

typedef struct command_stream { // standard output or error output
    command *c;
    int fd; // read end; -1 when it is at its end
    mt_io *io;
    spool spool;
    bool noted; // that its spool has failed
} command_stream;

typedef struct command_pipe {
    int from, to;
} command_pipe;
#define COMMAND_NO_PIPE ((command_pipe){-1, -1})

struct command {
    commands *of;
    command *next; // in the queue, or in `live`
    command_state state;
    char id[37];
    bool async;
    char *bytes; // encoded, while it is queued; NULL when they lie in a file
    size_t len;
    bool spilled;     // they do
    mt_command *what; // from its start to its end
    uint32_t number;  // group and token
    bool has_group;
    command_stream streams[2];
    int in_fd; // write end of its standard input; -1: nothing is left to write
    mt_io *in_io;
    size_t in_at;

    mt_timer *timer;
    command_stop stop;
    bool killed;
    char *by;                    // who cancelled it
    int64_t kill_ns, give_up_ns; // once it is being stopped
    int status;                  // wait(2)'s, once it has exited
    uint64_t oom_before, pids_before;
};

// spool-room.c
typedef struct spool_room {
    uint64_t held;           // by all spools of the run
    uint64_t next;           // nothing is done before so much is held
    struct spool_left *left; // those that nothing is written to any more, the oldest first
    size_t first, count, size;
    size_t shrunk; // all before it keep no more than their records need
    bool stuck;
} spool_room;

struct commands {
    commands_host host;
    spool_room room;
    bool is_open;
    bool aborted;
    bool moving;  // the queue is being moved: not again from inside
    bool blocked; // by a command that is waited for
    command *queue, **queue_end;
    uint32_t queued;
    size_t bytes;  // encoded, in memory: of those that have not ended
    command *live; // in the order of their starts, to ENDED
    uint32_t running;
    uint32_t ended; // of live, those that have ended
    uint32_t next_number;
    command_pipe pipes[2]; // for the next one's output, where they were made ahead
    int out_dir_fd;
    struct seen *seen;
    uint32_t *left; // groups of forgotten commands that are there still
    size_t left_count, left_at;
    size_t left_new; // at its end, those that were not tried yet
    bool told;       // that there are too many ended ones
};

// command-file.c
int commands_open_out(commands *cs, mt_err **err); // the folder of spools; makes it where it is not
// Sets `spilled` where there was room for the file; else it stays in memory.
void command_file_write(command *c, const void *data);
int command_file_load(command *c, mt_err **err); // where it is spilled: into `bytes`
void command_file_remove(command *c);

// command-result.c: of one whose process has ended, with a sentence where one is due.
void command_result(const command *c, const mt_cgroup_counters *now, mt_command_ended *ret,
                    mt_buf *why);

// command-streams.c
// Makes pipes and, for what there is to read, standard input. ends: what the process gets as 0 (or
// -1), 1 and 2; the caller's.
int command_streams_open(command *c, int ends[3], mt_err **err);
// What the command itself has written is in the pipes when its process has ended: takes that much,
// and no more.
void command_streams_drain(command *c);
// Looks once more, for the end above all; true when both are at their end.
bool command_streams_finish(command *c);
void command_input_close(command *c);
void command_streams_close(command *c);
void command_pipes_ahead(commands *cs);
void command_pipes_close(commands *cs);
void command_streams_ended(command *c); // in commands.c: both of an ended command are at their end

// spool-room.c: how much the spools of a run take together.
void room_grew(commands *cs, const spool *s, uint64_t before); // before: what it held
void room_left(commands *cs, const spool *s);                  // nothing is written to it any more
void room_done(commands *cs);

// seen.c: ids that were taken, for good
typedef struct seen seen;
seen *seen_new(void);
void seen_free(seen *s);
// 1 when the id (a GUID) was not there and is now, 0 when it was, -1 out of memory.
int seen_add(seen *s, const char *id);
