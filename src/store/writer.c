// SPDX-License-Identifier: Apache-2.0
// The writer: one at a time, one connection, group commit. An operation whose caller waits for it
// is performed by that caller where nobody is busy and nothing waits: that saves two changes of
// threads. All others are the writer thread's.
//
//   queue ──drain──> BEGIN ( SAVEPOINT fn RELEASE | ROLLBACK TO )* COMMIT ──> answers, listener
//                    BEGIN fn COMMIT | ROLLBACK                               (one alone)
//
// Whom an operation's `done` tells hears of it right after the commit, before the sync that its
// caller waits for: what is committed outlives this process, though not a power loss, and a
// command is on its way to its run meanwhile.
//
// An operation that fails is undone alone. When the machine failed (disk full, I/O, memory) or
// SQLite dropped the whole transaction, or the commit failed, each operation of the group is tried
// once more by itself, so that one that does not fit takes no other with it. Essential operations
// may then spend the reserve file; while it is spent, others are refused.
#include "store/store-internal.h"

#include <sched.h>

enum { REFILL_EVERY_US = 1000000 };

static bool machine_fault(const mt_err *e)
{
    mt_code code = mt_err_code(e);

    return code == MT_E_DISK_FULL || code == MT_E_IO || code == MT_E_OOM;
}

static void op_reset(op *o)
{
    o->err = mt_err_free(o->err);
    o->result = 0;
}

static int op_fail(op *o, mt_err *e)
{
    op_reset(o);
    o->result = -1;
    o->err = e;
    return -1;
}

// 0: done or failed alone; < 0: the transaction is of no use any more.
static int perform_in_savepoint(mt_store *s, op *o)
{
    tx t = {.store = s, .db = s->writer, .now = mt_now_us()};
    size_t mark = s->event_count;

    op_reset(o);
    if (db_do(s->writer, SAVEPOINT, &o->err) < 0)
        return o->result = -1;
    o->result = o->fn(&t, o->arg, &o->err);
    if (!db_in_transaction(s->writer) || (o->result < 0 && machine_fault(o->err)))
        return -1;
    if (o->result < 0 || t.discard) {
        s->event_count = mark;
        if (db_do(s->writer, ROLLBACK_TO, &o->err) < 0)
            return o->result = -1;
    }
    if (db_do(s->writer, RELEASE, &o->err) < 0)
        return o->result = -1;
    s->identities_due |= !t.keeps_identities;
    return 0;
}

static void roll_back(mt_store *s)
{
    s->event_count = 0;
    if (db_in_transaction(s->writer))
        (void)db_do(s->writer, ROLLBACK, NULL);
}

// Nobody is told of it before what is remembered of keys is forgotten.
static int commit(mt_store *s, mt_err **err)
{
    bool done = db_do(s->writer, COMMIT, err) >= 0;

    if (s->identities_due)
        (void)atomic_fetch_add(&s->identities, 1);
    if (!done)
        roll_back(s);
    return done ? 0 : -1;
}

// A group of asynchronous changes alone is not synced at its commit: each of them comes from a
// run's journal, which was synced before and is read again after a power loss. Anything else is.
// (In WAL mode a commit that is lost takes nothing else with it.) Where somebody is told before,
// the sync comes after the commit, in answer().
static int choose_sync(mt_store *s, const op *first, const op *last, mt_err **err)
{
    bool all_async = true, told = false, light;

    for (const op *o = first; o != last; o = o->next) {
        all_async = all_async && o->async;
        told = told || (!o->async && o->done);
    }
    s->sync_due = told;
    light = all_async || told;
    if (light == s->sync_light)
        return 0;
    if ((light ? db_do(s->writer, SYNC_NORMAL, err) : db_do(s->writer, SYNC_FULL, err)) < 0)
        return -1;
    s->sync_light = light;
    return 0;
}

// All in one transaction. 0: each has its result; < 0: none of it happened, and each is to be tried
// by itself, which tells why.
static int perform_group(mt_store *s, op *first)
{
    s->event_count = 0;
    s->identities_due = false;
    if (choose_sync(s, first, NULL, NULL) < 0 || db_do(s->writer, BEGIN, NULL) < 0)
        return -1;
    for (op *o = first; o; o = o->next) {
        if (perform_in_savepoint(s, o) < 0) {
            roll_back(s);
            return -1;
        }
    }
    return commit(s, NULL);
}

// One operation in a transaction of its own. It is undone by undoing all, so it needs no savepoint,
// which would keep a copy of each page that it changes.
static int perform_one(mt_store *s, op *o, mt_err **err)
{
    tx t = {.store = s, .db = s->writer, .now = mt_now_us()};

    s->event_count = 0;
    op_reset(o);
    if (choose_sync(s, o, o->next, err) < 0 || db_do(s->writer, BEGIN, err) < 0)
        return -1;
    o->result = o->fn(&t, o->arg, &o->err);
    if (o->result < 0 || t.discard) {
        roll_back(s);
        s->sync_due = false;
        if (o->result >= 0 || !machine_fault(o->err))
            return 0;
        mt_err_move(err, MT_TAKE_PTR(o->err));
        return -1;
    }
    s->identities_due = !t.keeps_identities;
    return commit(s, err);
}

static void refill_reserve(mt_store *s)
{
    int64_t now = mt_monotonic_us();

    if (!s->reserve_out || now - s->reserve_tried_us < REFILL_EVERY_US)
        return;
    s->reserve_tried_us = now;
    if (store_reserve_make(s, NULL) == 0)
        s->reserve_out = false;
}

static void perform_alone(mt_store *s, op *o)
{
    mt_err *e = NULL;

    refill_reserve(s);
    if (s->reserve_out && !o->essential) {
        (void)mt_fail(&e, MT_E_DISK_FULL,
                      "the disk that holds the store is full: what is left is kept for the ends of "
                      "runs; free space on it and try again");
        (void)op_fail(o, e);
        return;
    }
    if (perform_one(s, o, &e) == 0)
        return;
    if (mt_err_code(e) == MT_E_DISK_FULL && o->essential && !s->reserve_out) {
        store_reserve_drop(s);
        s->reserve_out = true;
        s->reserve_tried_us = mt_monotonic_us();
        e = mt_err_free(e);
        if (perform_one(s, o, &e) == 0)
            return;
    }
    (void)op_fail(o, e);
}

static void finish(mt_store *s, op *o)
{
    if (o->async) {
        (void)mt_err_free(o->err);
        free(o->arg);
        free(o);
        return;
    }
    // Once finished is seen, the op (on its caller's stack) is gone.
    pthread_mutex_lock(&s->lock);
    o->finished = true;
    pthread_cond_signal(&o->cond);
    pthread_mutex_unlock(&s->lock);
}

// Nobody is told that something is stored which the disk may not have.
static void sync_now(mt_store *s, op *first, op *last)
{
    mt_err *e = NULL;

    s->sync_due = false;
    if (db_sync(s->writer, &e) == 0)
        return;
    for (op *o = first; o != last; o = o->next) {
        mt_err *why = NULL;

        if (o->async || o->result < 0)
            continue;
        (void)mt_fail(&why, mt_err_code(e), "%s", mt_err_sentence(e));
        (void)op_fail(o, why);
    }
    (void)mt_err_free(e);
}

// Ends one transaction: answers, then tells the listener what was committed.
static void answer(mt_store *s, op *first, op *last)
{
    for (op *o = first; o != last; o = o->next)
        if (o->done)
            o->done(o->result, o->err, o->data);
    if (s->sync_due) {
        (void)sched_yield(); // to who was told, before the disk is waited for
        sync_now(s, first, last);
    }
    while (first != last) {
        op *next = first->next;

        finish(s, first);
        first = next;
    }
    if (s->event_count > 0 && s->listener)
        s->listener(s->events, s->event_count, s->listener_data);
    s->event_count = 0;
}

static void perform_all(mt_store *s, op *ops)
{
    if (!s->reserve_out && ops->next && perform_group(s, ops) == 0) {
        answer(s, ops, NULL);
        return;
    }
    while (ops) {
        op *next = ops->next;

        perform_alone(s, ops);
        answer(s, ops, next);
        ops = next;
    }
}

// With the lock held, and nobody busy.
static void begin_work(mt_store *s)
{
    s->busy = true;
    s->performer = pthread_self();
}

static void end_work(mt_store *s)
{
    pthread_mutex_lock(&s->lock);
    s->busy = false;
    if (s->head || s->stopping)
        pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

static void *writer_main(void *data)
{
    mt_store *s = data;

    for (;;) {
        op *ops;

        pthread_mutex_lock(&s->lock);
        while (s->busy || (!s->head && !s->stopping))
            pthread_cond_wait(&s->wake, &s->lock);
        ops = s->head;
        s->head = NULL;
        s->tail = &s->head;
        s->queued = 0;
        begin_work(s);
        pthread_mutex_unlock(&s->lock);
        if (ops)
            perform_all(s, ops);
        end_work(s);
        if (!ops)
            return NULL;
    }
}

int store_writer_start(mt_store *s, mt_err **err)
{
    int e = pthread_create(&s->thread, NULL, writer_main, s);

    if (e != 0)
        return mt_fail_errno(err, e, "cannot start the store's writer");
    s->thread_runs = true;
    return 0;
}

void store_writer_stop(mt_store *s)
{
    if (!s->thread_runs)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
    s->thread_runs = false;
}

// With the lock held.
static int enqueue(mt_store *s, op *o, mt_err **err)
{
    if (s->stopping) {
        (void)mt_fail(err, MT_E_UNAVAILABLE, "the store is closing");
        return -1;
    }
    if (s->queued >= STORE_QUEUE && !o->essential) {
        (void)mt_fail(err, MT_E_UNAVAILABLE,
                      "%d changes wait for the disk already: try again in a moment", STORE_QUEUE);
        return -1;
    }
    *s->tail = o;
    s->tail = &o->next;
    s->queued++;
    pthread_cond_signal(&s->wake);
    return 0;
}

// With the lock held, which it leaves.
static void perform_here(mt_store *s, op *o)
{
    begin_work(s);
    pthread_mutex_unlock(&s->lock);
    perform_alone(s, o);
    answer(s, o, NULL);
    end_work(s);
}

// With the lock held, which it leaves.
static void wait_for_writer(mt_store *s, op *o)
{
    bool queued = enqueue(s, o, &o->err) == 0;

    if (!queued)
        o->result = -1;
    while (queued && !o->finished)
        pthread_cond_wait(&o->cond, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (!queued && o->done)
        o->done(o->result, o->err, o->data);
}

static int write_and_wait(mt_store *s, op *o, mt_err **err)
{
    (void)pthread_cond_init(&o->cond, NULL);
    pthread_mutex_lock(&s->lock);
    if (s->busy && pthread_equal(pthread_self(), s->performer)) {
        pthread_mutex_unlock(&s->lock);
        return mt_fail(err, MT_E_INTERNAL, "the store's writer cannot wait for itself");
    }
    if (!s->busy && !s->head && !s->stopping)
        perform_here(s, o);
    else
        wait_for_writer(s, o);
    (void)pthread_cond_destroy(&o->cond);
    if (o->result < 0)
        mt_err_move(err, o->err);
    else
        (void)mt_err_free(o->err);
    return o->result;
}

int store_write(mt_store *s, op_fn *fn, void *arg, mt_err **err)
{
    op o = {.fn = fn, .arg = arg};

    return write_and_wait(s, &o, err);
}

int store_write_then(mt_store *s, op_fn *fn, void *arg, mt_store_done_fn *done, void *data,
                     mt_err **err)
{
    op o = {.fn = fn, .arg = arg, .done = done, .data = data};

    return write_and_wait(s, &o, err);
}

int store_write_essential(mt_store *s, op_fn *fn, void *arg, mt_err **err)
{
    op o = {.fn = fn, .arg = arg, .essential = true};

    return write_and_wait(s, &o, err);
}

int store_write_async(mt_store *s, op_fn *fn, void *arg, bool essential, mt_store_done_fn *done,
                      void *data, mt_err **err)
{
    op *o = calloc(1, sizeof(*o));
    int r;

    if (!o)
        return mt_fail_oom(err);
    *o = (op){
        .fn = fn, .arg = arg, .essential = essential, .done = done, .data = data, .async = true};
    pthread_mutex_lock(&s->lock);
    r = enqueue(s, o, err);
    pthread_mutex_unlock(&s->lock);
    if (r < 0)
        free(o);
    return r;
}

static int nothing_op(tx *t, void *arg, mt_err **err)
{
    (void)t;
    (void)arg;
    (void)err;
    return 0;
}

int mt_store_settle(mt_store *s, mt_err **err)
{
    return store_write_essential(s, nothing_op, NULL, err);
}
