// SPDX-License-Identifier: Apache-2.0
// What lists of runs' files hold while they are being read. A capsule may begin as many as it has
// sessions, answer each with some megabytes, and end none. All of it on the loop.
#pragma once

#include <stddef.h>

typedef struct mt_listing {
    struct mt_listing *next, **link; // link NULL: not among them
    size_t held;
} mt_listing;

void mt_listing_join(mt_listing *l);
void mt_listing_leave(mt_listing *l); // may not have joined
void mt_listing_grew(mt_listing *l, size_t now);
// The largest, as long as they hold too much together: it has to leave. Else NULL.
mt_listing *mt_listing_too_many(void);
