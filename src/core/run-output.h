// SPDX-License-Identifier: Apache-2.0
// What commands printed: the spool files of a run's folder (capsule/command.h), read only.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"

enum { MT_STREAM_STANDARD = 1, MT_STREAM_ERROR = 2 };

// Opens the spool of one stream. -ENOENT where there is none (not started yet, or removed).
int mt_run_spool_open(int runs_dirfd, const char *run_id, const char *command_id, int stream);
// Where the bytes from `from` on really begin (older ones may be gone), and the spool's size.
int mt_run_spool_range(int fd, uint64_t from, uint64_t *ret_begin, uint64_t *ret_size);

typedef struct mt_run_tail {
    mt_buf text;    // UTF-8, at most MT_COMMAND_RECORD_CHARS characters
    int64_t length; // characters in all, 0 when text is all of it
} mt_run_tail;
// The end of the first `bytes` bytes (which are `chars` characters) of a stream, for the record:
// bytes that are no UTF-8 become U+FFFD.
void mt_run_tail_read(int runs_dirfd, const char *run_id, const char *command_id, int stream,
                      uint64_t bytes, uint64_t chars, mt_run_tail *ret);
void mt_run_tail_done(mt_run_tail *t);

// A thread that reads tails, one after another, and posts done(data, standard, error) to the loop;
// the tails are done's to release. At most so many read ones wait for the loop at a time.
typedef struct mt_tail_reader mt_tail_reader;
typedef void mt_tail_done_fn(void *data, mt_run_tail *standard, mt_run_tail *error);

typedef struct mt_tail_request {
    char run_id[37];
    char command_id[37];
    uint64_t bytes[2], chars[2]; // standard, error
    mt_tail_done_fn *done;
    void *data;
} mt_tail_request;

int mt_tail_reader_new(mt_loop *loop, int runs_dirfd, mt_tail_reader **ret, mt_err **err);
// Ends the thread; what was not read is dropped, its done never called. Accepts NULL.
void mt_tail_reader_free(mt_tail_reader *r);
int mt_tail_reader_add(mt_tail_reader *r, const mt_tail_request *request); // 0, -ENOMEM
