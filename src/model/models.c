// SPDX-License-Identifier: Apache-2.0
#include "model/ask.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

// What other threads touch stands apart from what the loop's thread owns.
typedef struct shared {
    mt_models loop_side;
    pthread_t thread;
    bool started;
    _Atomic uint64_t last_id;
    _Atomic int64_t kept, asked; // bytes: of answers that callers keep, of bodies
    atomic_bool wanted;          // a turn waits for callers to keep less
    atomic_bool closed;          // nothing more may be posted
} shared;

typedef struct cancel {
    mt_models *models;
    uint64_t id;
} cancel;

static shared *shared_of(mt_models *m)
{
    return MT_CONTAINER_OF(m, shared, loop_side);
}

static void *run(void *data)
{
    mt_models *m = data;

    (void)mt_loop_run(m->loop);
    while (m->asks)
        ask_cancel(m->asks);
    return NULL;
}

// Signals are for the main thread; a broken TLS connection may raise SIGPIPE here.
static int start_thread(shared *s)
{
    sigset_t all, before;
    int r;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&s->thread, NULL, run, &s->loop_side);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->started = r == 0;
    return r;
}

mt_models *mt_models_new(mt_err **err)
{
    shared *s = calloc(1, sizeof(*s));
    mt_models *m;
    int r;

    if (!s) {
        (void)mt_fail_oom(err);
        return NULL;
    }
    m = &s->loop_side;
    m->loop = mt_loop_new();
    if (!m->loop) {
        (void)mt_fail_errno(err, errno, "cannot make the loop of models");
        return mt_models_free(m);
    }
    m->transfers = transfers_new(m->loop, err);
    if (!m->transfers)
        return mt_models_free(m);
    r = start_thread(s);
    if (r != 0) {
        (void)mt_fail_errno(err, r, "cannot start the thread of models");
        return mt_models_free(m);
    }
    return m;
}

static void stop(void *data)
{
    mt_models *m = data;

    m->stopping = true;
    mt_loop_stop(m->loop);
}

mt_models *mt_models_free(mt_models *m)
{
    shared *s;

    if (!m)
        return NULL;
    s = shared_of(m);
    atomic_store(&s->closed, true);
    if (s->started) {
        while (mt_loop_post(m->loop, stop, m) < 0)
            (void)usleep(1000); // short of memory: it has to get there
        (void)pthread_join(s->thread, NULL);
    }
    (void)transfers_free(m->transfers);
    mt_loop_free(m->loop);
    free(s);
    return NULL;
}

static void enter(void *data)
{
    ask_enter(data);
}

static void pump(void *data)
{
    lane_pump(data);
}

int64_t models_kept(const mt_models *m, bool wake)
{
    shared *s = shared_of((mt_models *)m);

    // Said before it is looked: what is given back after that wakes.
    if (wake)
        atomic_store(&s->wanted, true);
    return atomic_load(&s->kept);
}

// Where there is no memory for the message, the next end of a request looks again.
void mt_model_keeps(mt_models *m, int64_t bytes)
{
    shared *s = shared_of(m);

    (void)atomic_fetch_add(&s->kept, bytes);
    if (bytes < 0 && atomic_exchange(&s->wanted, false) && !atomic_load(&s->closed))
        (void)mt_loop_post(m->loop, pump, m);
}

void models_asked(mt_models *m, ask *a, int64_t bytes)
{
    (void)atomic_fetch_add(&shared_of(m)->asked, bytes);
    a->asked = (size_t)((int64_t)a->asked + bytes);
}

static int take_room(shared *s, ask *a, mt_err **err)
{
    models_asked(&s->loop_side, a, (int64_t)a->body.len);
    if (atomic_load(&s->asked) <= MT_MODEL_ASKED_MAX)
        return 0;
    return mt_fail(err, MT_E_UNAVAILABLE,
                   "%d MiB of requests to models wait for their turn, as much as this server takes",
                   MT_MODEL_ASKED_MAX >> 20);
}

int mt_model_ask(mt_models *m, const mt_model_request *request, const mt_model_events *events,
                 void *data, uint64_t *ret_id, mt_err **err)
{
    shared *s = shared_of(m);
    ask *a;

    if (atomic_load(&s->closed))
        return mt_fail(err, MT_E_UNAVAILABLE, "no more models are asked: the server stops");
    a = ask_new(m, request, events, data, err);
    if (!a)
        return -1;
    if (take_room(s, a, err) < 0) {
        (void)ask_free(a);
        return -1;
    }
    *ret_id = a->id = atomic_fetch_add(&s->last_id, 1) + 1; // events may come from here on
    if (mt_loop_post(m->loop, enter, a) < 0) {
        (void)ask_free(a);
        return mt_fail_oom(err);
    }
    return 0;
}

static void do_cancel(void *data)
{
    cancel *c = data;
    ask *a = c->models->asks;

    while (a && a->id != c->id)
        a = a->next;
    free(c);
    if (a)
        ask_cancel(a);
}

// Out of memory leaves the request to its deadline.
void mt_model_cancel(mt_models *m, uint64_t id)
{
    cancel *c;

    if (atomic_load(&shared_of(m)->closed))
        return;
    c = malloc(sizeof(*c));
    if (!c)
        return;
    *c = (cancel){m, id};
    if (mt_loop_post(m->loop, do_cancel, c) < 0)
        free(c);
}
