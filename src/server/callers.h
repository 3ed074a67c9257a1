// SPDX-License-Identifier: Apache-2.0
// What each user of the API has under way: requests that wait, follow, are sent or answered slowly,
// and bodies that are collected. Connections are bounded by where they come from (http/server.h),
// but all users of a proxy come from one address, and all runs of a user from many. Any thread.
#pragma once

#include "store/store.h"

typedef struct mt_callers mt_callers;

// Of all, and the share of one (base/share.h).
typedef struct mt_callers_limits {
    uint64_t requests, requests_each;
    uint64_t body_bytes, body_bytes_each;
} mt_callers_limits;

// What one request holds; {0} before it enters.
typedef struct mt_caller_stay {
    mt_callers *callers;
    struct mt_caller *caller;
    uint64_t body_bytes;
} mt_caller_stay;

// NULL when out of memory.
mt_callers *mt_callers_new(const mt_callers_limits *limits);
void mt_callers_free(mt_callers *callers); // when all have left; accepts NULL
// One more request of user: 0, or rateLimited with the share that the user has.
int mt_callers_enter(mt_callers *callers, const mt_user *user, mt_caller_stay *stay, mt_err **err);
// So much more of its body is collected: 0, or rateLimited. Fine for one that did not enter: small
// bodies come before it is known whose they are.
int mt_callers_body(mt_caller_stay *stay, size_t bytes, mt_err **err);
void mt_callers_leave(mt_caller_stay *stay); // fine for one that did not enter
