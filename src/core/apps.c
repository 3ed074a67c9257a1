// SPDX-License-Identifier: Apache-2.0
// Live app runs: who there is, who waits for what, and whose turn comes.
#include "core/apps-internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum {
    CALLERS = 4,
    NICE = 10, // programs that compute stand back behind the server's own work
    MAX_LIVE = 20000,
    MAX_OF_USER = 12000,
    TOPICS_MAX = 1000,
};

size_t app_bucket(const char *id)
{
    return mt_str_hash(mt_str_of(id)) % APP_BUCKETS;
}

// ---- turns ----

void app_queue(app_live *l)
{
    if (l->state != APP_PARKED || l->apps->stop)
        return;
    app_clock_clear(l);
    if (mt_pool_run(l->apps->pools[l->place], l->lane, app_turn, l) == 0)
        l->state = APP_QUEUED;
    else // without memory: in a while
        app_clock_set(l, mt_now_us() + 100000);
}

void app_poke(app_live *l)
{
    l->poked = true;
    app_queue(l);
}

// ---- topics ----

static app_subscription **subscription_at(mt_apps *apps, const app_subscription *s)
{
    app_subscription **at = &apps->topics[app_bucket(s->topic)];

    while (*at != s)
        at = &(*at)->next;
    return at;
}

void app_unsubscribe(app_live *l)
{
    for (size_t i = 0; i < l->subscription_count; i++)
        *subscription_at(l->apps, &l->subscriptions[i]) = l->subscriptions[i].next;
    free(l->subscriptions);
    l->subscriptions = NULL;
    l->subscription_count = 0;
}

int app_subscribe(app_live *l, const mt_json *topics)
{
    size_t count = MT_MIN(mt_json_count(topics), (size_t)TOPICS_MAX);

    app_unsubscribe(l);
    l->subscriptions = calloc(count + 1, sizeof(*l->subscriptions));
    if (!l->subscriptions)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        app_subscription *s = &l->subscriptions[i];
        size_t bucket;

        s->live = l;
        (void)snprintf(s->topic, sizeof(s->topic), "%s", mt_json_text(mt_json_at(topics, i), ""));
        bucket = app_bucket(s->topic);
        s->next = l->apps->topics[bucket];
        l->apps->topics[bucket] = s;
    }
    l->subscription_count = count;
    return 0;
}

void mt_apps_announce(mt_apps *apps, const char *topic)
{
    (void)pthread_mutex_lock(&apps->lock);
    for (app_subscription *s = apps->topics[app_bucket(topic)]; s; s = s->next)
        if (strcmp(s->topic, topic) == 0)
            app_poke(s->live);
    (void)pthread_mutex_unlock(&apps->lock);
}

// ---- who there is ----

static app_live *find(mt_apps *apps, const char *id)
{
    app_live *l = apps->lives[app_bucket(id)];

    while (l && strcmp(l->id, id) != 0)
        l = l->next;
    return l;
}

void app_forget(app_live *l)
{
    app_live **at = &l->apps->lives[app_bucket(l->id)];

    app_clock_clear(l);
    app_unsubscribe(l);
    app_memory_leave(l);
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->apps->live_count--;
}

void app_live_free(app_live *l)
{
    if (!l)
        return;
    app_call_done(l);
    app_notes_done(&l->notes);
    mt_app_call_list_done(&l->replay);
    mt_vm_free(l->vm);
    app_program_unref(l->apps, l->program);
    (void)pthread_mutex_destroy(&l->refused.lock);
    free(l);
}
MT_DEFINE_CLEANUP(app_live_free, app_live *)

// 0, or -ENOMEM.
static int add(mt_apps *apps, app_live *l)
{
    size_t bucket = app_bucket(l->id), bytes = app_memory_of(l);
    int r;

    (void)pthread_mutex_lock(&apps->lock);
    r = app_clock_room(apps);
    if (r == 0)
        r = app_memory_join(l);
    if (r == 0) {
        (void)app_memory_judge(l, bytes, false);
        l->next = apps->lives[bucket];
        apps->lives[bucket] = l;
        apps->live_count++;
    }
    (void)pthread_mutex_unlock(&apps->lock);
    return r;
}

static void set_off(app_live *l)
{
    (void)pthread_mutex_lock(&l->apps->lock);
    app_queue(l);
    (void)pthread_mutex_unlock(&l->apps->lock);
}

static app_live *live_new(mt_apps *apps, const char *id)
{
    app_live *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->apps = apps;
    (void)pthread_mutex_init(&l->refused.lock, NULL);
    (void)snprintf(l->id, sizeof(l->id), "%s", id);
    return l;
}

// ---- start ----

static int room_for_one(mt_apps *apps, const mt_user *user, mt_err **err)
{
    int64_t most = apps->options.max_live ? apps->options.max_live : MAX_LIVE, of_user;
    size_t live;
    int r;

    if (apps->options.may_start && apps->options.may_start(apps->options.data, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&apps->lock);
    live = apps->live_count;
    r = app_memory_check(apps, user->id, err);
    (void)pthread_mutex_unlock(&apps->lock);
    if (r < 0)
        return -1;
    if ((int64_t)live >= most)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "%zu app runs live, as many as this server takes", live);
    if (mt_store_app_run_live_count(apps->options.store, user->id, &of_user, err) < 0)
        return -1;
    if (of_user >= MAX_OF_USER && user->role != MT_ROLE_ADMIN)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "%lld app runs of user '%s' live, as many as one user may have",
                       (long long)of_user, user->name);
    return 0;
}

static void fill_start(app_live *l, const mt_app_start *start)
{
    memcpy(l->namespace_id, start->ns->id, sizeof(l->namespace_id));
    memcpy(l->namespace_name, start->ns->name, sizeof(l->namespace_name));
    memcpy(l->user_id, start->user->id, sizeof(l->user_id));
    memcpy(l->app, start->app->name, sizeof(l->app));
    l->version = start->app->version;
    l->lane = (mt_lane){.number = mt_str_hash(mt_str_of(l->user_id))};
    l->max_duration_ms = l->program->max_duration_ms;
}

static int load_program(app_live *l, const mt_app_start *start, mt_err **err)
{
    l->program = app_program_find(l->apps, start->app);
    if (l->program)
        return 0;
    return app_program_get(l->apps, start->ns->id, start->app->name, start->app->version,
                           &l->program, err);
}

// The machine, so that inputs which are wrong are told before anything is stored.
static int prepare(app_live *l, const mt_app_start *start, mt_buf *text, mt_err **err)
{
    _cleanup_json_ mt_json *inputs = NULL;

    if (load_program(l, start, err) < 0)
        return -1;
    fill_start(l, start);
    if (app_inputs(l->program, start->inputs, &inputs, err) < 0 ||
        app_machine(l, inputs, &l->vm, err) < 0)
        return -1;
    if (mt_json_write(inputs, text, 0) < 0)
        return mt_fail_oom(err);
    l->replayed = true;
    return 0;
}

static int store_start(app_live *l, const mt_app_start *start, const char *inputs, mt_app_run *ret,
                       mt_err **err)
{
    int64_t now = mt_now_us();
    mt_app_run_new record = {
        .id = l->id,
        .namespace_id = l->namespace_id,
        .app = l->app,
        .version = l->version,
        .inputs = inputs,
        .started_by = start->user,
        .parent_id = start->parent_id,
        .parent_app_id = start->parent_app_id,
        .rerun_of = start->rerun_of,
        .language = MT_APP_LANGUAGE,
        .max_duration_ms = l->max_duration_ms,
        .date_created = now,
        .idempotency_key = start->idempotency_key,
        .request_digest = start->request_digest,
    };

    if (l->max_duration_ms)
        record.deadline = now + l->max_duration_ms * 1000;
    l->deadline = record.deadline;
    return mt_store_app_run_create(l->apps->options.store, &record, ret, err);
}

static void take_away(app_live *l)
{
    (void)pthread_mutex_lock(&l->apps->lock);
    app_forget(l);
    (void)pthread_mutex_unlock(&l->apps->lock);
    app_live_free(l);
}

int mt_apps_start(mt_apps *apps, const mt_app_start *start, mt_app_run *ret, mt_err **err)
{
    _cleanup_(app_live_free_p) app_live *l = live_new(apps, start->id);
    _cleanup_buf_ mt_buf inputs = MT_BUF_INIT(64 << 20);
    int r;

    if (!l)
        return mt_fail_oom(err);
    if (prepare(l, start, &inputs, err) < 0 || room_for_one(apps, start->user, err) < 0)
        return -1;
    // Before it is stored, so that nothing that is stored is not known here.
    if (add(apps, l) < 0)
        return mt_fail_oom(err);
    r = store_start(l, start, mt_buf_str(&inputs), ret, err);
    if (r != 0) {
        take_away(MT_TAKE_PTR(l));
        return r;
    }
    set_off(MT_TAKE_PTR(l));
    return 0;
}

// ---- cancel ----

int app_cancel(mt_apps *apps, const char *id, const char *by, bool by_parent, mt_err **err)
{
    int r = mt_store_app_run_request_cancel(apps->options.store, id, by, err);
    app_live *l;

    if (r < 0)
        return -1;
    (void)pthread_mutex_lock(&apps->lock);
    l = find(apps, id);
    if (l && !l->cancelled) {
        l->cancelled = true;
        l->by_parent = by_parent;
        (void)snprintf(l->by, sizeof(l->by), "%s", by);
    }
    if (l)
        app_poke(l);
    (void)pthread_mutex_unlock(&apps->lock);
    return 0;
}

int mt_apps_cancel(mt_apps *apps, const char *id, const char *by, mt_err **err)
{
    return app_cancel(apps, id, by, false, err);
}

// ---- the whole ----

// Half of the processors, at least one: the others are for who waits for answers.
static size_t machines(const mt_apps_options *options)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    return options->workers ? options->workers : (size_t)MT_MAX(processors / 2, 1L);
}

int mt_apps_new(const mt_apps_options *options, mt_apps **ret, mt_err **err)
{
    mt_apps *apps = calloc(1, sizeof(*apps));

    if (!apps)
        return mt_fail_oom(err);
    apps->options = *options;
    (void)pthread_mutex_init(&apps->lock, NULL);
    (void)pthread_mutex_init(&apps->programs_lock, NULL);
    if (mt_pool_new(machines(options), NICE, &apps->pools[APP_MACHINES], err) < 0 ||
        mt_pool_new(CALLERS, 0, &apps->pools[APP_CALLS], err) < 0 ||
        app_clock_start(apps, err) < 0) {
        mt_apps_free(apps);
        return -1;
    }
    *ret = apps;
    return 0;
}

static void fill_adopted(app_live *l, const mt_app_run *run)
{
    memcpy(l->namespace_id, run->namespace_id, sizeof(l->namespace_id));
    memcpy(l->namespace_name, run->namespace_name, sizeof(l->namespace_name));
    memcpy(l->user_id, run->started_by_id, sizeof(l->user_id));
    memcpy(l->app, run->app, sizeof(l->app));
    l->version = run->version;
    l->lane = (mt_lane){.number = mt_str_hash(mt_str_of(l->user_id))};
    l->max_duration_ms = run->max_duration_ms;
    l->deadline = run->deadline;
    l->cancelled = run->cancel_requested_by[0] != '\0';
    l->by_parent = mt_starts_with(run->cancel_requested_by, MT_BY_APP_RUN);
    memcpy(l->by, run->cancel_requested_by, sizeof(l->by));
}

static int adopt(mt_apps *apps, const mt_app_run *run, mt_err **err)
{
    _cleanup_(app_live_free_p) app_live *l = live_new(apps, run->id);

    if (run->language != MT_APP_LANGUAGE)
        return mt_fail(err, MT_E_CONFLICT,
                       "app run '%s' of app '%s' speaks version %lld of the app language, and this "
                       "server %d: let it end under the server that it was started by, or cancel "
                       "it there",
                       run->id, run->app, (long long)run->language, MT_APP_LANGUAGE);
    if (!l)
        return mt_fail_oom(err);
    fill_adopted(l, run);
    if (app_call_take_up(l, err) < 0)
        return -1;
    if (add(apps, l) < 0)
        return mt_fail_oom(err);
    (void)pthread_mutex_lock(&apps->lock);
    l->place = app_place_of(l);
    // One that sleeps is left alone until its time has come.
    if (l->wake_at > mt_now_us() && !l->cancelled)
        app_clock_set(l, l->wake_at);
    else
        app_queue(l);
    (void)pthread_mutex_unlock(&apps->lock);
    (void)MT_TAKE_PTR(l);
    return 0;
}

int mt_apps_adopt(mt_apps *apps, mt_err **err)
{
    _cleanup_(mt_app_run_list_done) mt_app_run_list list = {0};

    if (mt_store_app_run_live(apps->options.store, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++)
        if (adopt(apps, &list.items[i], err) < 0)
            return -1;
    return 0;
}

void mt_apps_stop(mt_apps *apps)
{
    if (!apps)
        return;
    app_clock_stop(apps); // from now on nobody is queued
    for (size_t i = 0; i < APP_PLACES; i++)
        mt_pool_free(MT_TAKE_PTR(apps->pools[i]));
    (void)mt_store_settle(apps->options.store, NULL); // what was noted tells its run
}

void mt_apps_free(mt_apps *apps)
{
    if (!apps)
        return;
    mt_apps_stop(apps);
    for (size_t i = 0; i < APP_BUCKETS; i++)
        while (apps->lives[i])
            take_away(apps->lives[i]);
    mt_heap_done(&apps->heap);
    (void)pthread_cond_destroy(&apps->clock_moved);
    (void)pthread_mutex_destroy(&apps->lock);
    (void)pthread_mutex_destroy(&apps->programs_lock);
    free(apps);
}
