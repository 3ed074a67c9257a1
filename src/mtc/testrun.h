// SPDX-License-Identifier: Apache-2.0
// For the tests of src/mtc: programs that run to their end in a small world, which is the same each
// time. What they print is collected, the clock goes on by one with each look, guids are counted,
// nobody sleeps, and nothing else is there (notSupported).
#pragma once

#include "mtc/vm.h"

enum { TESTRUN_STEPS = 100 * 1000 * 1000 }; // a program that takes more is stopped

typedef struct testrun {
    const mt_mtc_program *program; // ready
    mt_str inputs;                 // a line "name=value" each; what is not named is ""
    uint64_t slice;                // steps of a turn
    uint64_t fail_allocation;      // of the machine's
    size_t heap;                   // 0: as usual
} testrun;

// The program of one file, a.mtc. One that is wrong ends the test.
mt_mtc_program *testrun_ready(const char *text);

// Appends what was printed, and last a line: "= JSON" of what main returned, or "! CODE: message",
// followed by a line "  at FUNCTION (PLACE)" for each function that was under way. Ends other than
// errors have the codes memory, depth, system and steps. Returns how many steps it took.
uint64_t testrun_run(const testrun *run, mt_buf *out);
