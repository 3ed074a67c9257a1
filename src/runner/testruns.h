// SPDX-License-Identifier: Apache-2.0
// For tests of runs: one bed, and the plan that most of them need.
#pragma once

#include "runner/testbed.h"

extern bed *the_bed;
extern const char *data_path; // /mnt/data of every run, on the host

// The bed for the program mt-init that is the first argument. False where it cannot be made.
bool runs_begin(int argc, char **argv, const char **ret_why);
void runs_end(void);

#define CMD(text, ...) \
    ((mt_plan_command){.command = (text), .user = "maitento", .wait = true, ##__VA_ARGS__})

mt_plan plan_of(const mt_plan_command *commands, uint32_t count, bool auto_terminate);
// What a command has printed to /mnt/data/NAME, which is removed.
const char *output_of(const char *name);
void say(const char *text); // lines of their own, so that the output stays TAP
// Asks so often for the end of the run: the first time as by, then as another. False: it did not
// get there.
bool send_terminate(const bed_run *r, const char *by, int times);
