// SPDX-License-Identifier: Apache-2.0
// A fixed pool of worker threads, one job at a time each. For handlers, which block. Each caller
// has a lane: jobs of one lane are begun in order, lanes take turns, and no lane has all threads.
// So whoever asks for much, or for what takes long, is himself who waits for it.
#pragma once

#include "base/err.h"

typedef struct mt_pool mt_pool;

int mt_pool_new(size_t threads, mt_pool **ret, mt_err **err);
// Lets the jobs under way finish, runs no more of those that wait. Accepts NULL.
void mt_pool_free(mt_pool *pool);
// Runs fn(data) on a worker. lane: any number that stands for the caller; callers may come to share
// one. 0, or -ENOMEM. Any thread.
int mt_pool_run(mt_pool *pool, uint64_t lane, void (*fn)(void *data), void *data);
