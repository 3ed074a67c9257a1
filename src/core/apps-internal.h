// SPDX-License-Identifier: Apache-2.0
// Live app runs, for the apps-*.c files.
//
// A run is parked (something has to happen first), queued, or in a turn on a worker. What its turn
// uses is its own; what other threads may touch is guarded by apps->lock.
#pragma once

#include "base/heap.h"
#include "capsule/journal.h"
#include "core/apps.h"
#include "core/pool.h"
#include "mtc/vm.h"

#include <pthread.h>
#include <sodium.h>

enum {
    APP_BUCKETS = 4096,
    APP_USER_BUCKETS = 256,
    APP_DIGEST = 65, // of a call's arguments, hex
    APP_JSON_MAX =
        3 * MT_VM_STRING, // bytes of a call's arguments, of its answer, of what is returned
};

// A program that runs, shared by all runs of one version of an app.
typedef struct app_program {
    struct app_program *next;
    size_t refs;
    size_t bytes;    // of memory, about
    mt_resource app; // its sources; the program points into them
    mt_mtc_program *program;
    int64_t max_duration_ms;
} app_program;

// Whose runs live, and what memory they take.
typedef struct app_user {
    struct app_user *next; // of a bucket
    char id[MT_ID_TEXT];
    size_t runs, bytes;
} app_user;

typedef struct app_subscription {
    struct app_subscription *next; // of a bucket
    struct app_live *live;
    char topic[MT_ID_TEXT];
} app_subscription;

// What was printed and set, and is not with the store yet.
typedef struct app_notes {
    mt_app_line *lines;
    mt_app_output *outputs;
    size_t line_count, line_cap, output_count, output_cap;
    size_t bytes;
    int64_t printed, set;   // so many in all
    unsigned since_settled; // handed over without waiting for the store
} app_notes;

// That the store refused notes, told by whatever thread wrote; its later ones are refused as well.
typedef struct app_notes_refused {
    pthread_mutex_t lock; // a leaf
    mt_code code;         // MT_E_NONE: nothing was refused
    char sentence[256];
} app_notes_refused;

typedef enum app_state { APP_PARKED, APP_QUEUED, APP_TURN } app_state;

// Where a turn takes place. Machines have few workers, so that processors are left for who waits
// for an answer; who calls waits most of the time.
typedef enum app_place { APP_MACHINES, APP_CALLS, APP_PLACES } app_place;

typedef struct app_live {
    mt_apps *apps;
    struct app_live *next; // of a bucket
    char id[MT_ID_TEXT];
    char namespace_id[MT_ID_TEXT], namespace_name[MT_STORE_NAME];
    char user_id[MT_ID_TEXT];
    char app[MT_STORE_NAME];
    int64_t version;
    int64_t deadline, max_duration_ms; // 0: none
    mt_lane lane;

    // Guarded by apps->lock.
    app_state state;
    app_place place; // of its next turn
    bool poked;      // something happened during its turn
    bool cancelled;
    bool by_parent; // …as the app run that started it has ended
    char by[MT_STORE_BY];
    int64_t wake_at;  // when it is queued by itself, 0: never
    mt_heap_item due; // in apps->heap: when that is, or its deadline
    app_subscription *subscriptions;
    size_t subscription_count;
    app_user *user;
    size_t bytes; // of memory that it takes, as it was after its last turn

    // Its turn's.
    app_program *program;
    mt_vm *vm;        // NULL: not loaded, or to be done again from the journal
    bool calling;     // `call` is being made
    mt_app_call call; // its arguments are `arguments`
    mt_json *arguments;
    char digest[APP_DIGEST];
    bool open;        // the journal has it, without an answer
    bool waits_shown; // the store was told what it waits for
    int64_t calls;    // that were answered
    mt_app_call_list replay;
    size_t replay_at;
    bool replayed; // the journal has no more
    app_notes notes;
    app_notes_refused refused;
} app_live;

struct mt_apps {
    mt_apps_options options;
    mt_pool *pools[APP_PLACES];
    pthread_mutex_t lock; // guards what follows, and what app_live says; a leaf
    pthread_cond_t clock_moved;
    pthread_t clock;
    bool clock_runs, stop;
    app_live *lives[APP_BUCKETS];
    size_t live_count;
    app_subscription *topics[APP_BUCKETS];
    app_user *users[APP_USER_BUCKETS];
    size_t bytes; // that all of them take
    mt_heap heap; // of the clocks that run, wall clock, us

    pthread_mutex_t programs_lock; // guards the list; a leaf
    app_program *programs;
};

size_t app_bucket(const char *id);

// ---- apps-clock.c; under apps->lock ----

int app_clock_start(mt_apps *apps, mt_err **err);
void app_clock_stop(mt_apps *apps); // not under the lock
// Room for one more run's clock: 0 or -ENOMEM.
int app_clock_room(mt_apps *apps);
// Queues it at that moment, or at its deadline, whichever comes first; 0: at its deadline alone.
void app_clock_set(app_live *l, int64_t wake_at);
void app_clock_clear(app_live *l);

// ---- apps-memory.c; under apps->lock but where said ----

// Among the runs of its user: 0 or -ENOMEM.
int app_memory_join(app_live *l);
void app_memory_leave(app_live *l);
size_t app_memory_of(const app_live *l); // that it takes now; its turn's, not under the lock

typedef enum app_verdict {
    APP_MEMORY_FITS,
    APP_MEMORY_SHED, // it waits, and is to wait without its machine
    APP_MEMORY_OVER, // it computes, and is what its user has too much of
} app_verdict;
// After a turn: it takes so much, and what becomes of it.
app_verdict app_memory_judge(app_live *l, size_t bytes, bool waits);
uint64_t app_memory_share(const mt_apps *apps); // of a user, now
// capacityExceeded where the user's runs take their share already.
int app_memory_check(mt_apps *apps, const char *user_id, mt_err **err);

// ---- apps.c ----

// Under apps->lock: its turn comes, soon.
void app_queue(app_live *l);
void app_poke(app_live *l); // the same, whatever it does
// Topics that it waits for, over those of before. 0 or -ENOMEM.
int app_subscribe(app_live *l, const mt_json *topics);
void app_unsubscribe(app_live *l);
void app_forget(app_live *l); // nobody can find it any more
// Not under the lock:
void app_live_free(app_live *l);
// by_parent: as the app run that started it ("app run ID" is `by`) has ended.
int app_cancel(mt_apps *apps, const char *id, const char *by, bool by_parent, mt_err **err);

// ---- apps-programs.c ----

// The program of a version, compiled where no run has it. Released by app_program_unref().
int app_program_get(mt_apps *apps, const char *namespace_id, const char *app, int64_t version,
                    app_program **ret, mt_err **err);
// That of a resource, where a run has it: a reference, or NULL.
app_program *app_program_find(mt_apps *apps, const mt_resource *app);
// From a resource that is there; takes it over only on success.
int app_program_of(mt_apps *apps, mt_resource *app, app_program **ret, mt_err **err);
void app_program_unref(mt_apps *apps, app_program *p); // accepts NULL
// A machine with the inputs, which are a JSON object by main's names. badField: inputs.NAME.
int app_machine(const app_live *l, const mt_json *inputs, mt_vm **ret, mt_err **err);
// Inputs as they are kept: by main's own names, in its order.
int app_inputs(const app_program *p, const mt_json *given, mt_json **ret, mt_err **err);

// ---- apps-notes.c ----

// 1: the built-in is one that only notes, and it was noted; 0: it is another; -1.
int app_note(app_live *l, const mt_mtc_builtin *b, const mt_json *arguments, mt_err **err);
// Hands all to the store, which takes them in its time.
int app_notes_flush(app_live *l, mt_err **err);
// Waits for it. 0, or what was refused: then the run is to be done again, as a note is missing.
int app_notes_settle(app_live *l, mt_err **err);
// The same without waiting: what was refused up to now; that is forgotten.
int app_notes_check(app_live *l, mt_err **err);
void app_notes_done(app_notes *n);

// ---- apps-calls.c ----

typedef enum app_step {
    APP_STEP_ON,    // go on
    APP_STEP_MOVE,  // go on at the other place
    APP_STEP_PARK,  // something has to happen first
    APP_STEP_LATER, // the platform cannot do it now: once more in a while
    APP_STEP_ENDED,
} app_step;

// The call that the machine waits with, or that the journal has open.
app_step app_call_go_on(app_live *l);
void app_call_done(app_live *l); // forgets it
// The open call of the journal, where there is one, as the one being made; for a run without a
// machine.
int app_call_take_up(app_live *l, mt_err **err);

// Where its next turn takes place.
static inline app_place app_place_of(const app_live *l)
{
    return l->calling ? APP_CALLS : APP_MACHINES;
}

// ---- apps-turn.c ----

void app_turn(void *live); // on a worker
app_step app_end(app_live *l, const mt_app_end *end);
// Ends with Error and that reason and sentence.
app_step app_end_error(app_live *l, const char *reason, const char *sentence);
// What was printed or set was not taken.
app_step app_notes_lost(app_live *l, const mt_err *err);
// Forgets the machine: the run is done again from its journal.
void app_unload(app_live *l);
// A fault of the platform: logged; the run goes on later.
app_step app_later(app_live *l, const char *what, const mt_err *err);
