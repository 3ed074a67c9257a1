// SPDX-License-Identifier: Apache-2.0
// For the files of interactions alone.
#pragma once

#include "core/interactions.h"
#include "core/pool.h"
#include "schema/schema.h"

#include <pthread.h>

// ---- plans ----

// What is asked, as it was made at the start: all that a run needs from then on but the provider's
// own settings.
typedef struct interaction_plan {
    mt_json *json; // holds the texts below
    char provider[MT_STORE_NAME];
    const char *model; // as its provider calls it
    mt_str system, task;
    const mt_json *schema; // NULL: any text
    mt_schema *compiled;   // of it
    mt_model_schema_mode schema_mode;
    double temperature; // < 0: the provider's
    int64_t max_tokens; // 0: the provider's
    int64_t attempts;
} interaction_plan;

// The plan of a start as JSON text, the inputs that it takes, the model, and the time that it has.
typedef struct interaction_made {
    mt_buf plan, inputs;
    char model[MT_STORE_MODEL];
    int64_t max_duration_ms;
} interaction_made;

int interaction_make(mt_store *store, const mt_interaction_start *start, interaction_made *ret,
                     mt_err **err);
void interaction_made_done(interaction_made *m);

int interaction_plan_read(const char *text, interaction_plan *ret, mt_err **err);
int interaction_plan_compile(interaction_plan *p, mt_err **err); // its schema, when it has one
void interaction_plan_done(interaction_plan *p);

// ---- messages ----

// What the model is asked after these attempts, at most 2 + 2 * MESSAGES_CARRIED of them. Texts
// live as long as *ret_texts, which the caller frees (mt_json_unref).
enum { INTERACTION_CARRIED = 2, INTERACTION_MESSAGES = 2 + 2 * INTERACTION_CARRIED };
size_t interaction_messages(const interaction_plan *p, const mt_interaction_attempt_list *before,
                            size_t count, mt_model_message ret[INTERACTION_MESSAGES],
                            mt_json **ret_texts, mt_err **err);

// ---- runs that live ----

typedef enum interaction_state {
    INTERACTION_PARKED, // the model is asked, or it is to be tried again in a while
    INTERACTION_QUEUED,
    INTERACTION_TURN,
} interaction_state;

// A question that was put to the models. It outlives its run, which may end before the answer
// comes.
typedef struct interaction_asking {
    struct mt_interactions *x;
    struct interaction_live *live; // NULL: nobody waits for it any more
} interaction_asking;

// What a model answered, copied.
typedef struct interaction_answer {
    mt_model_end end;
    int status;
    char *text, *reasoning, *sentence, *model;
    int64_t tokens_in, tokens_out;
    unsigned tries;
    size_t kept; // bytes of it that the models were told of
} interaction_answer;

typedef struct interaction_live {
    struct interaction_live *next; // of its bucket
    struct mt_interactions *x;
    char id[MT_ID_TEXT];
    mt_lane lane;
    int64_t deadline, max_duration_ms;
    // Under the lock of all.
    interaction_state state;
    bool poked;       // something happened since its turn began
    int64_t again_us; // when it is to be tried again, 0: not
    unsigned tries;   // that came to nothing, one after the other
    bool cancelled, by_parent;
    char by[MT_STORE_BY];
    interaction_asking *asking; // NULL: nothing is asked
    uint64_t question;
    interaction_answer *answer; // came, and no turn has seen it
    mt_buf said;                // of the attempt under way
    int64_t stream, told_us;    // which text that is; when others were told of it last (monotonic)
    int64_t attempt;            // its number, 0: none
} interaction_live;

// What is said is kept by its whole characters and may be no longer than an answer. Together with
// answers that wait for their turns it counts as kept (mt_model_keeps).
enum { INTERACTION_BUCKETS = 4096, INTERACTION_SAID = 4 << 20 };

struct mt_interactions {
    mt_interactions_options options;
    mt_pool *pool;
    pthread_mutex_t lock;
    pthread_cond_t moved; // for the ticker: stop
    pthread_t ticker;
    bool ticks, stop;
    size_t live_count;
    interaction_live *lives[INTERACTION_BUCKETS];
};

// What comes of a turn.
typedef enum interaction_step {
    INTERACTION_WAITS,   // for the model
    INTERACTION_GOES_ON, // another turn, now
    INTERACTION_LATER,   // the platform could not: in a while
    INTERACTION_ENDED,
} interaction_step;

interaction_step interaction_step_of(interaction_live *l);
void interaction_turn(void *live);                                     // on a worker
void interaction_poke(interaction_live *l);                            // under the lock
interaction_answer *interaction_answer_copy(const mt_model_answer *a); // NULL when out of memory
void interaction_answer_free(interaction_answer *a);                   // accepts NULL
// One that was kept for its turn. Accepts NULL.
void interaction_answer_drop(mt_interactions *x, interaction_answer *a);
