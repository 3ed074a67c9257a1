// SPDX-License-Identifier: Apache-2.0
// Runs the programs that build an image (mmdebstrap, npm, dotnet, tar): an argv, never a shell.
// Each runs in a mount and a process namespace of its own, so that nothing of it outlives mt-image,
// whatever ends it. Its output goes to a log; a line that tells how far it is appears every few
// seconds. One thread.
#pragma once

#include "base/buf.h"
#include "base/err.h"

typedef struct mt_program {
    const char *what;        // for progress and errors: "installing packages"
    const char *const *argv; // argv[0] is absolute (inside root, when given)
    const char *const *env;  // "NAME=value" beside the passed-through ones; NULL: none
    const char *cwd;         // NULL: /
    const char *root;        // chroot; NULL: none
    mt_buf *output;          // takes standard output instead of the log; NULL: none
    int timeout_s;           // 0: MT_PROGRAM_TIMEOUT_S
} mt_program;

enum { MT_PROGRAM_TIMEOUT_S = 1800, MT_PROGRAM_MAX_ENV = 256 };

// 0 when it left with 0. Otherwise -1: the sentence holds what was done, how the program ended, and
// its own error lines ("E: Unable to locate package x"), or its last lines where it marked none.
int mt_program_run(const mt_program *p, mt_err **err);

// Blocks the signals that end mt-image (INT, TERM, HUP, QUIT) and collects them instead.
int mt_interrupt_init(mt_err **err);
// True once such a signal came. Long steps ask between two files.
bool mt_interrupted(void);
int mt_fail_interrupted(mt_err **err);

// Where the programs' output goes; -1 (the start): nowhere.
void mt_program_log(int fd);
// Progress lines on stderr are left out.
void mt_program_quiet(bool quiet);
void mt_progress(const char *fmt, ...) MT_PRINTF(1, 2);
void mt_progress_beat(int64_t started_us, int64_t *last_us, const char *what, const char *detail);

// The absolute path of a program of the host's PATH, NULL when there is none.
char *mt_program_find(const char *name);
