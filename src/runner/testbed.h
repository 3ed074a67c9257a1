// SPDX-License-Identifier: Apache-2.0
// For tests: everything a supervisor is given, made by hand on the real kernel in a private mount
// namespace, without the runner. Needs root and an image.
#pragma once

#include "capsule/idmap.h"
#include "capsule/protocol.h"
#include "runner/supervisor.h"

enum {
    BED_SERVICE_ID = 61234,
    BED_RECORDS_MAX = 256,
    BED_BLOCK = 4000,
    BED_UID_BASE = MT_BLOCK_FIRST + BED_BLOCK * MT_BLOCK_IDS,
};

typedef struct bed bed;

// NULL where it cannot be made, with the reason. The environment's MT_TEST_CGROUP=v1 forces v1,
// TMPDIR is where its folders go.
bed *bed_new(const char *init_path, const char **ret_why);
void bed_free(bed *b);
// A file system of that id, empty; its files on the host are under bed_vfs_path().
const char *bed_vfs_make(bed *b, const char *id);
// A folder on the host that lies as a layer over the image from the next start on; removed with the
// bed. NULL: no layer.
const char *bed_layer(bed *b, const char *name);

typedef struct bed_run {
    pid_t pid; // of the supervisor
    char id[37];
    int run_dir;
    int journal;
    mt_cgroup *cgroup;
    bed *bed;
    char folder[512];
} bed_run;

// Starts a supervisor for the plan, whose run id, image, deadline (from max_duration_ms) and host
// name are filled in.
int bed_start(bed *b, mt_plan *plan, bool tmpfs, bed_run *ret);
int bed_connect(const bed_run *r);
// Waits until the journal has a record of the type: true, or false when the time is over.
bool bed_wait_record(const bed_run *r, mt_record_type type, int timeout_ms);

typedef struct bed_result {
    int exit_code; // of the supervisor; -1: it did not end in time
    bool ended;
    mt_ended end;
    char details[65536];
    char by[256];
    uint32_t ready, started, startup_ended, notes, phases, ending;
    mt_end_reason startup_reason[16];
    int startup_code[16];
    char note[4096];
    char phase_names[512];
    bool swept; // nothing was left in its groups
} bed_result;

// Waits for the supervisor's end, reads its journal and removes what the runner would.
void bed_finish(bed_run *r, int timeout_ms, bed_result *ret);
