// SPDX-License-Identifier: Apache-2.0
#include "server/callers.h"

#include "base/share.h"

#include <pthread.h>
#include <stdio.h>

enum { BUCKETS = 256 };

struct mt_caller {
    struct mt_caller *next;
    char user_id[MT_ID_TEXT], name[MT_STORE_NAME];
    uint64_t requests, body_bytes;
};

struct mt_callers {
    mt_callers_limits limits;
    pthread_mutex_t lock; // a leaf; guards what follows
    uint64_t requests, body_bytes;
    struct mt_caller *buckets[BUCKETS];
};

mt_callers *mt_callers_new(const mt_callers_limits *limits)
{
    mt_callers *callers = calloc(1, sizeof(*callers));

    if (!callers)
        return NULL;
    callers->limits = *limits;
    (void)pthread_mutex_init(&callers->lock, NULL);
    return callers;
}

void mt_callers_free(mt_callers *callers)
{
    if (!callers)
        return;
    (void)pthread_mutex_destroy(&callers->lock);
    free(callers);
}

static struct mt_caller **find(mt_callers *callers, const char *user_id)
{
    uint32_t hash = 2166136261u;
    struct mt_caller **at;

    for (const char *c = user_id; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (at = &callers->buckets[hash % BUCKETS]; *at; at = &(*at)->next)
        if (mt_streq((*at)->user_id, user_id))
            break;
    return at;
}

static struct mt_caller *find_or_add(mt_callers *callers, const mt_user *user)
{
    struct mt_caller **at = find(callers, user->id);

    if (!*at && (*at = calloc(1, sizeof(**at))) != NULL) {
        memcpy((*at)->user_id, user->id, sizeof((*at)->user_id));
        memcpy((*at)->name, user->name, sizeof((*at)->name));
    }
    return *at;
}

static void forget_if_nothing(mt_callers *callers, struct mt_caller *caller)
{
    struct mt_caller **at;

    if (caller->requests)
        return;
    at = find(callers, caller->user_id);
    *at = caller->next;
    free(caller);
}

static int enter(mt_callers *callers, struct mt_caller *caller, mt_err **err)
{
    const mt_callers_limits *l = &callers->limits;

    if (caller->requests >= mt_share(l->requests_each, l->requests, callers->requests))
        return mt_fail(err, MT_E_RATE_LIMITED,
                       "user '%s' has %llu requests under way, which is the share of one user "
                       "now: let some of them end first",
                       caller->name, (unsigned long long)caller->requests);
    callers->requests++;
    caller->requests++;
    return 0;
}

int mt_callers_enter(mt_callers *callers, const mt_user *user, mt_caller_stay *stay, mt_err **err)
{
    struct mt_caller *caller;
    int r;

    (void)pthread_mutex_lock(&callers->lock);
    caller = find_or_add(callers, user);
    r = caller ? enter(callers, caller, err) : mt_fail_oom(err);
    if (r == 0)
        *stay = (mt_caller_stay){.callers = callers, .caller = caller};
    else if (caller)
        forget_if_nothing(callers, caller);
    (void)pthread_mutex_unlock(&callers->lock);
    return r;
}

static int add_body(mt_callers *callers, struct mt_caller *caller, size_t bytes, mt_err **err)
{
    const mt_callers_limits *l = &callers->limits;
    uint64_t share = mt_share(l->body_bytes_each, l->body_bytes, callers->body_bytes);

    if (caller->body_bytes + bytes > share)
        return mt_fail(err, MT_E_RATE_LIMITED,
                       "the request bodies that user '%s' sends at this time are %llu KiB, which "
                       "is the share of one user now: send one after the other",
                       caller->name, (unsigned long long)(caller->body_bytes >> 10));
    callers->body_bytes += bytes;
    caller->body_bytes += bytes;
    return 0;
}

int mt_callers_body(mt_caller_stay *stay, size_t bytes, mt_err **err)
{
    mt_callers *callers = stay->callers;
    int r;

    if (!callers)
        return 0;
    (void)pthread_mutex_lock(&callers->lock);
    r = add_body(callers, stay->caller, bytes, err);
    if (r == 0)
        stay->body_bytes += bytes;
    (void)pthread_mutex_unlock(&callers->lock);
    return r;
}

void mt_callers_leave(mt_caller_stay *stay)
{
    mt_callers *callers = stay->callers;

    if (!callers)
        return;
    (void)pthread_mutex_lock(&callers->lock);
    callers->requests--;
    stay->caller->requests--;
    callers->body_bytes -= stay->body_bytes;
    stay->caller->body_bytes -= stay->body_bytes;
    forget_if_nothing(callers, stay->caller);
    (void)pthread_mutex_unlock(&callers->lock);
    *stay = (mt_caller_stay){0};
}
