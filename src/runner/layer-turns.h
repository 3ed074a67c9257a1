// SPDX-License-Identifier: Apache-2.0
// Whose turn it is to have packages installed: of the users who wait, the one who was not served
// for longest; and how much of what is there one user may take. Data only: nothing is started here.
#pragma once

#include "base/id.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TURNS_RUNNING_EACH = 2, // that a user waits for and that go on; fewer than there are builders
    TURNS_KEPT = 64,        // users; one who was served before all these comes as if never
};

// One run that waits.
typedef struct turns_wait {
    const char *who;  // the id of its starter; "": nobody's, who are all one
    const void *what; // the build that it waits for; others may, too
    uint64_t number;  // of the build: the smaller the earlier it was wanted
    bool ready;       // the build could begin
    bool running;     // the build goes on
} turns_wait;

typedef struct turns {
    char served[TURNS_KEPT][MT_ID_TEXT]; // the last one first
    size_t count;
} turns;

// Whose build is to begin next; NULL: nobody's, though there be a free builder.
const turns_wait *turns_next(const turns *t, const turns_wait *waits, size_t count);
// It was that one's turn.
void turns_served(turns *t, const char *who);
