// SPDX-License-Identifier: Apache-2.0
// A fixed pool of worker threads: jobs in order, one at a time each. For handlers, which block.
#pragma once

#include "base/err.h"

typedef struct mt_pool mt_pool;

int mt_pool_new(size_t threads, mt_pool **ret, mt_err **err);
// Lets the jobs under way finish, runs no more of those that wait. Accepts NULL.
void mt_pool_free(mt_pool *pool);
// Runs fn(data) on a worker. 0, or -ENOMEM. Any thread.
int mt_pool_run(mt_pool *pool, void (*fn)(void *data), void *data);
