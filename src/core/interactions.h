// SPDX-License-Identifier: Apache-2.0
// Live runs of interactions: a model is asked, its answer is read and checked, and it is asked
// again where it does not fit (docs/internals/interactions.md). What is asked stands in the run's
// plan, so a deploy meanwhile changes nothing; a run that lives when the server starts asks again
// at most where an answer had not come.
//
// Functions here may be called from any thread and may block on the store.
#pragma once

#include "model/model.h"
#include "store/store.h"
#include "json/json.h"

typedef struct mt_interactions mt_interactions;

typedef struct mt_interactions_options {
    mt_store *store;
    mt_models *models;
    int64_t max_live; // of the whole server, 0: 5,000
    // Whether another run may start at all: 0, or < 0 and *err. NULL: it may.
    int (*may_start)(void *data, mt_err **err);
    // A model said more to the run with that id; not told of every piece. Short, any thread. NULL:
    // nobody wants to know.
    void (*said)(const char *id, void *data);
    void *data;
} mt_interactions_options;

int mt_interactions_new(const mt_interactions_options *options, mt_interactions **ret,
                        mt_err **err);
// Takes up every run that the store says has not ended. Once, before requests are served.
int mt_interactions_adopt(mt_interactions *x, mt_err **err);
// Nobody is asked any more. Accepts NULL. The models are freed after this, and before free.
void mt_interactions_stop(mt_interactions *x);
void mt_interactions_free(
    mt_interactions *x); // stops; accepts NULL; runs go on with the next server

typedef struct mt_interaction_start {
    const mt_namespace *ns;
    const mt_resource *interaction; // with its definition
    const mt_user *user;
    const char *id;                               // of mt_id_new()
    const mt_json *inputs;                        // object, or NULL; names without regard to case
    const char *parent_id, *parent_app_id;        // NULL: none
    const char *idempotency_key, *request_digest; // NULL: none
} mt_interaction_start;
// 0: stored and under way. 1: *ret is that of an earlier start with the key. badField
// ("inputs.NAME", with what there is) for inputs that are unknown, missing or given twice; conflict
// where its agent, prompt or schema was removed; tooLarge where the task comes to more than 1 MiB.
int mt_interactions_start(mt_interactions *x, const mt_interaction_start *start,
                          mt_interaction_run *ret, mt_err **err);
// Asks for the end of a run. What comes of it is told by the run. by_parent: of the app run that
// started it and has ended.
int mt_interactions_cancel(mt_interactions *x, const char *id, const char *by, bool by_parent,
                           mt_err **err);

// A text that a model says: that of one attempt, until it has to be begun anew.
typedef struct mt_interaction_said {
    int64_t stream;  // which text of the run it is, and whether it is one: another number, another
                     // text, whatever server it was told by; 0: none
    int64_t attempt; // that it is the answer of
    size_t from;     // bytes of it before what is given: where its caller was, 0 in another text
} mt_interaction_said;

// What a model has said so far, from where the caller is: *at. Whole characters. 0; 1: nothing is
// under way here.
int mt_interactions_text(mt_interactions *x, const char *id, mt_interaction_said *at, mt_buf *ret,
                         mt_err **err);

// What came of a question that an operator puts to a model.
typedef struct mt_interaction_trial {
    const char *outcome;             // "answered", or as an end reason
    char *answer, *sentence, *model; // sentence: why there was none
    int http_status;                 // of the last request, 0: none
    unsigned requests;
    int64_t tokens_in, tokens_out; // -1: not told
    int64_t took_ms;
} mt_interaction_trial;
void mt_interaction_trial_done(mt_interaction_trial *t);

// Asks it for a word, within 15 seconds. -1: it could not be asked at all (notFound, conflict,
// unavailable).
int mt_interactions_try(mt_interactions *x, mt_str provider, const char *model,
                        mt_interaction_trial *ret, mt_err **err);

// The messages of an attempt, from its run's plan and the attempts before it, as a JSON list of
// {"role": "system", "user" or "assistant", "content"}. For records; the model gets the same. Those
// before may be without what mt_store_interaction_attempt_list() leaves out.
int mt_interaction_messages(const char *plan, const mt_interaction_attempt_list *before,
                            size_t count, mt_buf *ret, mt_err **err);
