// SPDX-License-Identifier: Apache-2.0
// Live runs of interactions: who there is, and whose turn comes.
#include "capsule/journal.h"
#include "core/interactions-internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <time.h>

enum {
    WORKERS = 4,
    MAX_LIVE = 5000,
    MAX_OF_USER = 2000,
    TICK_S = 1,
    REST_MOST_S = 30, // between two tries of what the platform could not do
};

static size_t bucket_of(const char *id)
{
    return mt_str_hash(mt_str_of(id)) % INTERACTION_BUCKETS;
}

static interaction_live *find(mt_interactions *x, const char *id)
{
    interaction_live *l = x->lives[bucket_of(id)];

    while (l && strcmp(l->id, id) != 0)
        l = l->next;
    return l;
}

// ---- turns ----

// Under the lock. Without memory for the queue it is tried again at the next tick.
static void queue(interaction_live *l)
{
    if (l->state != INTERACTION_PARKED || l->x->stop)
        return;
    if (mt_pool_run(l->x->pool, l->lane, interaction_turn, l) == 0)
        l->state = INTERACTION_QUEUED;
    else
        l->again_us = mt_monotonic_us();
}

void interaction_poke(interaction_live *l)
{
    l->poked = true;
    queue(l);
}

// What the platform could not do is tried again after a second, and less and less often.
static void *tick(void *data)
{
    mt_interactions *x = data;

    (void)pthread_mutex_lock(&x->lock);
    while (!x->stop) {
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += TICK_S;
        (void)pthread_cond_timedwait(&x->moved, &x->lock, &until);
        for (size_t i = 0; i < INTERACTION_BUCKETS && !x->stop; i++) {
            for (interaction_live *l = x->lives[i]; l; l = l->next) {
                if (!l->again_us || mt_monotonic_us() < l->again_us)
                    continue;
                l->again_us = 0;
                interaction_poke(l);
            }
        }
    }
    (void)pthread_mutex_unlock(&x->lock);
    return NULL;
}

// ---- who there is ----

void interaction_answer_free(interaction_answer *a)
{
    if (!a)
        return;
    free(a->text);
    free(a->reasoning);
    free(a->sentence);
    free(a->model);
    free(a);
}

void interaction_answer_drop(mt_interactions *x, interaction_answer *a)
{
    if (a && a->kept)
        mt_model_keeps(x->options.models, -(int64_t)a->kept);
    interaction_answer_free(a);
}

static interaction_live *live_new(mt_interactions *x, const char *id, const char *user_id)
{
    interaction_live *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->x = x;
    l->lane = (mt_lane){.number = mt_str_hash(mt_str_of(user_id))};
    l->said = (mt_buf)MT_BUF_INIT(INTERACTION_SAID);
    l->stream = mt_now_us(); // so that no text of a server before has its number
    (void)snprintf(l->id, sizeof(l->id), "%s", id);
    return l;
}

static void live_free(interaction_live *l)
{
    if (!l)
        return;
    interaction_answer_free(l->answer);
    mt_buf_done(&l->said);
    free(l);
}
MT_DEFINE_CLEANUP(live_free, interaction_live *)

static void enter(interaction_live *l)
{
    size_t bucket = bucket_of(l->id);

    (void)pthread_mutex_lock(&l->x->lock);
    l->next = l->x->lives[bucket];
    l->x->lives[bucket] = l;
    l->x->live_count++;
    (void)pthread_mutex_unlock(&l->x->lock);
}

static void set_off(interaction_live *l)
{
    (void)pthread_mutex_lock(&l->x->lock);
    queue(l);
    (void)pthread_mutex_unlock(&l->x->lock);
}

// It has ended, or was never stored. A question that is under way is its own from now on.
static void leave(interaction_live *l)
{
    mt_interactions *x = l->x;
    interaction_live **at = &x->lives[bucket_of(l->id)];

    (void)pthread_mutex_lock(&x->lock);
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    x->live_count--;
    if (l->asking)
        l->asking->live = NULL;
    if (!x->stop) // then the models may be gone
        mt_model_keeps(x->options.models,
                       -(int64_t)(l->said.len + (l->answer ? l->answer->kept : 0)));
    (void)pthread_mutex_unlock(&x->lock);
    live_free(l);
}

// Under the lock.
static void rest(interaction_live *l)
{
    int64_t seconds = MT_MIN(1 << l->tries, REST_MOST_S);

    if (seconds < REST_MOST_S)
        l->tries++;
    l->again_us = mt_monotonic_us() + seconds * 1000000;
}

void interaction_turn(void *live)
{
    interaction_live *l = live;
    mt_interactions *x = l->x;
    interaction_step step;

    (void)pthread_mutex_lock(&x->lock);
    l->state = INTERACTION_TURN;
    l->poked = false;
    (void)pthread_mutex_unlock(&x->lock);
    step = interaction_step_of(l);
    if (step == INTERACTION_ENDED) {
        leave(l);
        return;
    }
    (void)pthread_mutex_lock(&x->lock);
    l->state = INTERACTION_PARKED;
    if (step == INTERACTION_LATER)
        rest(l);
    else
        l->tries = 0;
    if (l->poked || step == INTERACTION_GOES_ON)
        queue(l);
    (void)pthread_mutex_unlock(&x->lock);
}

// ---- start ----

static int room_for_one(mt_interactions *x, const mt_user *user, mt_err **err)
{
    int64_t most = x->options.max_live ? x->options.max_live : MAX_LIVE, of_user;
    size_t live;

    if (x->options.may_start && x->options.may_start(x->options.data, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&x->lock);
    live = x->live_count;
    (void)pthread_mutex_unlock(&x->lock);
    if ((int64_t)live >= most)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "%zu interaction runs live, as many as this server takes", live);
    if (mt_store_interaction_run_live_count(x->options.store, user->id, &of_user, err) < 0)
        return -1;
    if (of_user >= MAX_OF_USER && user->role != MT_ROLE_ADMIN)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "%lld interaction runs of user '%s' live, as many as one user may have",
                       (long long)of_user, user->name);
    return 0;
}

static int store_start(interaction_live *l, const mt_interaction_start *start,
                       const interaction_made *made, mt_interaction_run *ret, mt_err **err)
{
    const mt_interaction_run_new record = {
        .id = l->id,
        .namespace_id = start->ns->id,
        .interaction = start->interaction->name,
        .version = start->interaction->version,
        .model = made->model,
        .inputs = mt_buf_str(&made->inputs),
        .plan = mt_buf_str(&made->plan),
        .started_by = start->user,
        .parent_id = start->parent_id,
        .parent_app_id = start->parent_app_id,
        .max_duration_ms = l->max_duration_ms,
        .deadline = l->deadline,
        .idempotency_key = start->idempotency_key,
        .request_digest = start->request_digest,
    };

    return mt_store_interaction_run_create(l->x->options.store, &record, ret, err);
}

int mt_interactions_start(mt_interactions *x, const mt_interaction_start *start,
                          mt_interaction_run *ret, mt_err **err)
{
    _cleanup_(live_free_p) interaction_live *l = live_new(x, start->id, start->user->id);
    _cleanup_(interaction_made_done) interaction_made made = {0};
    int r;

    if (!l)
        return mt_fail_oom(err);
    if (interaction_make(x->options.store, start, &made, err) < 0 ||
        room_for_one(x, start->user, err) < 0)
        return -1;
    l->max_duration_ms = made.max_duration_ms;
    l->deadline = mt_now_us() + made.max_duration_ms * 1000;
    // Before it is stored, so that nothing that is stored is not known here.
    enter(l);
    r = store_start(l, start, &made, ret, err);
    if (r != 0) {
        leave(MT_TAKE_PTR(l));
        return r;
    }
    set_off(MT_TAKE_PTR(l));
    return 0;
}

// ---- cancel, text ----

int mt_interactions_cancel(mt_interactions *x, const char *id, const char *by, bool by_parent,
                           mt_err **err)
{
    interaction_live *l;

    if (mt_store_interaction_run_request_cancel(x->options.store, id, by, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&x->lock);
    l = find(x, id);
    if (l && !l->cancelled) {
        l->cancelled = true;
        l->by_parent = by_parent;
        (void)snprintf(l->by, sizeof(l->by), "%s", by);
    }
    if (l)
        interaction_poke(l);
    (void)pthread_mutex_unlock(&x->lock);
    return 0;
}

// From the beginning of a character on.
static int give_text(const interaction_live *l, mt_interaction_said *at, mt_buf *ret)
{
    const mt_buf *said = &l->said;

    at->from = at->stream == l->stream ? MT_MIN(at->from, said->len) : 0;
    at->stream = l->stream;
    at->attempt = l->attempt;
    while (at->from < said->len && ((unsigned char)said->data[at->from] & 0xc0) == 0x80)
        at->from++;
    return at->from < said->len ? mt_buf_add(ret, said->data + at->from, said->len - at->from) : 0;
}

int mt_interactions_text(mt_interactions *x, const char *id, mt_interaction_said *at, mt_buf *ret,
                         mt_err **err)
{
    interaction_live *l;
    int r = 1;

    (void)pthread_mutex_lock(&x->lock);
    l = find(x, id);
    if (l && l->attempt)
        r = give_text(l, at, ret);
    (void)pthread_mutex_unlock(&x->lock);
    return r < 0 ? mt_fail_oom(err) : r;
}

// ---- the whole ----

static int start_ticker(mt_interactions *x, mt_err **err)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&x->moved, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (pthread_create(&x->ticker, NULL, tick, x) != 0)
        return mt_fail_oom(err);
    x->ticks = true;
    return 0;
}

int mt_interactions_new(const mt_interactions_options *options, mt_interactions **ret, mt_err **err)
{
    mt_interactions *x = calloc(1, sizeof(*x));

    if (!x)
        return mt_fail_oom(err);
    x->options = *options;
    (void)pthread_mutex_init(&x->lock, NULL);
    if (start_ticker(x, err) < 0 || mt_pool_new(WORKERS, 0, &x->pool, err) < 0) {
        mt_interactions_free(x);
        return -1;
    }
    *ret = x;
    return 0;
}

static int adopt(mt_interactions *x, const mt_interaction_run *run, mt_err **err)
{
    interaction_live *l = live_new(x, run->id, run->started_by_id);

    if (!l)
        return mt_fail_oom(err);
    l->max_duration_ms = run->max_duration_ms;
    l->deadline = run->deadline;
    l->cancelled = run->cancel_requested_by[0] != '\0';
    l->by_parent = mt_starts_with(run->cancel_requested_by, MT_BY_APP_RUN);
    memcpy(l->by, run->cancel_requested_by, sizeof(l->by));
    enter(l);
    set_off(l);
    return 0;
}

int mt_interactions_adopt(mt_interactions *x, mt_err **err)
{
    _cleanup_(mt_interaction_run_list_done) mt_interaction_run_list list = {0};

    if (mt_store_interaction_run_live(x->options.store, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++)
        if (adopt(x, &list.items[i], err) < 0)
            return -1;
    return 0;
}

void mt_interactions_stop(mt_interactions *x)
{
    if (!x)
        return;
    (void)pthread_mutex_lock(&x->lock);
    x->stop = true;
    (void)pthread_cond_signal(&x->moved);
    (void)pthread_mutex_unlock(&x->lock);
    if (x->ticks)
        (void)pthread_join(x->ticker, NULL);
    x->ticks = false;
    mt_pool_free(MT_TAKE_PTR(x->pool));
}

void mt_interactions_free(mt_interactions *x)
{
    if (!x)
        return;
    mt_interactions_stop(x);
    for (size_t i = 0; i < INTERACTION_BUCKETS; i++)
        while (x->lives[i])
            leave(x->lives[i]);
    (void)pthread_cond_destroy(&x->moved);
    (void)pthread_mutex_destroy(&x->lock);
    free(x);
}
