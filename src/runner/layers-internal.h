// SPDX-License-Identifier: Apache-2.0
// Builds of package layers: what layers.c, which makes them, and layer-queue.c, which decides which
// goes on, share.
#pragma once

#include "runner/runner.h"

enum { BUILDS_WATCH_MS = 1000 };

typedef struct build {
    struct build *next;
    char digest[MT_LAYER_TEXT];
    char image[MT_LAYER_TEXT];
    char lists[MT_LAYER_TEXT]; // the layer of its image's lists; of lists, its own
    char **packages;
    uint32_t package_count;
    char run_id[MT_ID_TEXT]; // ""; it waits
    uint64_t number;         // grows in the order in which they were wanted
    bool wanted;             // somebody waits for it; as of the last look
    bool ready;              // it could begin; as of the last look
    bool left;               // it was stopped, as nobody waited any more
    int64_t asked_ns;        // when the janitor was to measure it last; 0: never
    bool answered;           // it did
} build;

// In layers.c.
bool builds_is_lists(const build *b);
build *builds_find(const runner *r, const char *digest);
// One more, of packages or (count 0) of lists; NULL: out of memory.
build *builds_add(runner *r, const char *image, const char *const *packages, uint32_t count);
void builds_forget(runner *r, build *b);
// Its folder with its request, by which another runner knows it; those who wait see it.
int builds_promise(runner *r, const build *b, mt_err **err);
// Forgets it; the reason is kept for those who wait.
void builds_give_up(runner *r, build *b, const char *why);
void builds_start(runner *r, build *b); // or gives it up
// Its machine ends with the supervisor. One whose process is not known yet is killed by a later
// look.
void builds_kill(runner *r, const build *b);

// In layer-queue.c.
bool builds_lists_are_fresh(runner *r, const char *digest);
// Drops and stops what nobody waits for, and begins what may begin.
void builds_go_on(runner *r);
