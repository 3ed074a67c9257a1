// SPDX-License-Identifier: Apache-2.0
// The story of a run for people: what happened and when, from its journal.
#pragma once

#include "base/buf.h"

// Appends a JSON list of {"time", "what"} to out. 0, or < 0 when there is no journal (any more).
int mt_run_story(int runs_dirfd, const char *run_id, mt_buf *out);
