// SPDX-License-Identifier: Apache-2.0
// What is kept of ended runs, and for how long. A thread of its own looks at it from time to time,
// a bounded step each time, and never at a run that lives:
//
//   outputs   what commands printed, byte for byte: so long after the run's end, and so much in all
//             (the longest ended go first). The runner removes the files; that they are gone is
//             seen before the store is told.
//   records   runs with their commands: then the rest of the run's folder goes, too. And app runs
//             with what they printed.
//   events    so old, and so many.
//   folders   of runs that the store knows nothing of (their namespace was deleted).
#pragma once

#include "core/runs.h"

typedef struct mt_retention mt_retention;

typedef struct mt_retention_limits {
    int64_t outputs_ms, outputs_bytes;
    int64_t runs_ms;
    int64_t events_ms, events_most;
} mt_retention_limits;

typedef struct mt_retention_options {
    mt_store *store;
    mt_runs *runs;
    int runs_dirfd; // stays the caller's
    mt_retention_limits limits;
} mt_retention_options;

int mt_retention_start(const mt_retention_options *options, mt_retention **ret, mt_err **err);
void mt_retention_stop(mt_retention *r); // accepts NULL; waits for a step under way
