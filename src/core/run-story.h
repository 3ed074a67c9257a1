// SPDX-License-Identifier: Apache-2.0
// The story of a run for people: what happened and when, from its journal.
#pragma once

#include "base/buf.h"
#include "store/store.h"

enum { MT_STORY_BYTES = 4 << 20 }; // of one list, about: the rest is asked for with `after`

// Appends a JSON list of {"number", "time", "kind", "what"[, "commandId"]} to out: what has a
// number above after, oldest first, as far as MT_STORY_BYTES go. 0, or < 0 when there is no journal
// (any more). The run is one with its definition: startup commands are told by their words.
int mt_run_story(int runs_dirfd, const mt_run *run, uint64_t after, mt_buf *out);
