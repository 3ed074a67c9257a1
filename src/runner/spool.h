// SPDX-License-Identifier: Apache-2.0
// One stream of a command's output as a file: out/<command id>.1 or .2 of the run's folder, made
// with its first byte (a stream that has printed nothing has no file), mode 0640, its group that of
// the folder. The file keeps its last MT_SPOOL_BYTES and a little more: what is older is punched
// out, so that offsets stay true and the file's size is the whole length. Where the spools of a run
// are too much together (spool-room.c), one keeps less.
#pragma once

#include "capsule/command.h"
#include "capsule/output.h"

// The caller places it; members but bytes and error are private.
typedef struct spool {
    uint64_t bytes; // of the stream so far, kept or not
    int error;      // 0, or why nothing more is kept since a write has failed (errno)
    int dir_fd;     // the caller's
    char name[40];
    int fd;           // -1 until the first byte
    uint64_t written; // to the file; less than `bytes` after an error
    uint64_t punched;
    mt_tail counter;
} spool;

void spool_init(spool *s, int dir_fd, const char *command_id, int stream); // stream: 1 or 2
void spool_done(spool *s);                                                 // the file stays
// Never fails: what cannot be kept is counted and thrown away.
void spool_add(spool *s, const void *data, size_t len);
// What the file takes on the disk.
uint64_t spool_held(const spool *s);
// Keeps about the last `keep` bytes. 0 or negative errno.
int spool_shrink(spool *s, uint64_t keep);
// The same for a file that nothing is written to any more, of `written` bytes; 0 keeps nothing but
// its length. What it takes from then on.
uint64_t spool_shrink_file(int dir_fd, const char *name, uint64_t written, uint64_t keep);
uint64_t spool_chars(const spool *s); // bytes that are no UTF-8 count one each
