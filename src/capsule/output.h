// SPDX-License-Identifier: Apache-2.0
// The tail of a stream in bounded memory: the last so many characters of whatever a program prints,
// made clean UTF-8, and how many characters there were in all.
#pragma once

#include "base/buf.h"

enum {
    MT_OUTPUT_FAILURE_CHARS = 4096, // of the error output in failureDetails
    MT_OUTPUT_RECORD_CHARS = 65536, // of a command's record
};

// The caller places it; members are private.
typedef struct mt_tail {
    size_t max_chars;
    char *ring; // the last bytes, made when the first arrive
    size_t cap;
    size_t at;      // where the next byte goes
    uint64_t total; // bytes so far
    uint64_t chars; // characters that are complete
    char carry[4];  // the start of a character that is not yet
    size_t carry_len;
    bool lost; // out of memory: nothing is kept
} mt_tail;

void mt_tail_init(mt_tail *t, size_t max_chars);
void mt_tail_done(mt_tail *t);
void mt_tail_add(mt_tail *t, const void *data, size_t len);
// Characters so far; a byte that belongs to none counts as one, as it is shown as U+FFFD.
uint64_t mt_tail_chars(const mt_tail *t);
// Appends the last max_chars characters. 0 or negative errno.
int mt_tail_get(const mt_tail *t, mt_buf *b);
