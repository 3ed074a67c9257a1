// SPDX-License-Identifier: Apache-2.0
// A fixed pool of worker threads, one job at a time each. For handlers, which block. Each caller
// has a lane: jobs of one lane are begun in order, lanes take turns, and no lane has all threads.
// So whoever asks for much, or for what takes long, is himself who waits for it.
#pragma once

#include "base/err.h"

typedef struct mt_pool mt_pool;

// nice: how much the threads stand back behind others of the process, 0 to 19.
int mt_pool_new(size_t threads, int nice, mt_pool **ret, mt_err **err);
// Lets the jobs under way finish, runs no more of those that wait. Accepts NULL.
void mt_pool_free(mt_pool *pool);
// Any number that stands for the caller; callers may come to share a lane, but runs share none with
// anybody else, and all of them together do not have all threads either.
typedef struct mt_lane {
    uint64_t number;
    bool of_run;
} mt_lane;
// Runs fn(data) on a worker. 0, or -ENOMEM. Any thread.
int mt_pool_run(mt_pool *pool, mt_lane lane, void (*fn)(void *data), void *data);
