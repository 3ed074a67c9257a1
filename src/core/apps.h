// SPDX-License-Identifier: Apache-2.0
// Live runs of apps: each has a machine (mtc/vm.h) that is given turns, and whose calls to the
// outside are made, written to the run's journal, and answered, in this order. A run that lives
// when the server starts is done again from its journal (docs/internals/apps.md).
//
// Threads: machines run on workers of their own, one at a time for each run; users take turns.
// Functions here may be called from any thread, but not from `perform`.
#pragma once

#include "mtc/mtc.h"
#include "store/store.h"
#include "json/json.h"

typedef struct mt_apps mt_apps;

enum { MT_APP_LANGUAGE = 1 }; // the version of the language that this server speaks

typedef enum mt_app_outcome {
    MT_APP_DONE,    // result holds the answer
    MT_APP_REFUSED, // code and message: an error for the program
    MT_APP_WAIT,    // what it waits for is not there: ask again when one of topics is announced, or
                    // again_ms are over (0: never by itself)
    MT_APP_AGAIN, // not now (the platform's fault): ask again after again_ms; waiting_for says why
} mt_app_outcome;

// A call to the outside being made. It is made again as often as it takes, with the same number.
typedef struct mt_app_call {
    const char *run_id;
    const char *namespace_id, *namespace_name;
    const char *user_id; // for whom
    int64_t number;      // of the run's calls, from 1
    const mt_mtc_builtin *builtin;
    const mt_json *arguments; // list
    int64_t begun_us;         // when it was first made by this server
    unsigned tries;           // before this one
    // The answer.
    mt_buf result; // JSON
    char code[MT_STORE_WORD];
    mt_buf message;
    const mt_json *topics; // list of ids; lives as long as arguments, or is own_topics
    mt_json *own_topics;   // freed by the caller
    int64_t again_ms;
    int64_t until; // of MT_APP_WAIT: the moment after which it is to be asked again, 0 none; kept
                   // when the call is made again, by another server as well
    char waiting_for[128];
} mt_app_call;

typedef struct mt_apps_options {
    mt_store *store;
    size_t workers;   // that run machines; 0: half of the processors
    int64_t max_live; // app runs of the whole server, 0: 20,000
    uint64_t memory;  // that all of them may take, 0: an eighth of the machine's
    // Whether another run may start at all: 0, or < 0 and *err. NULL: it may.
    int (*may_start)(void *data, mt_err **err);
    // Makes a call; on a worker, may block for a short while.
    mt_app_outcome (*perform)(mt_app_call *call, void *data);
    // Stop a run that an app run leaves behind (parentEnded). 0 when it is asked for, or not needed
    // any more.
    int (*stop_capsule_run)(const char *id, const char *app_run_id, void *data, mt_err **err);
    int (*stop_interaction_run)(const char *id, const char *app_run_id, void *data, mt_err **err);
    void *data;
} mt_apps_options;

int mt_apps_new(const mt_apps_options *options, mt_apps **ret, mt_err **err);
// Takes up every run that the store says has not ended. Fails when one of them speaks a version of
// the language that this server does not: the sentence names it. Once, before requests are served.
int mt_apps_adopt(mt_apps *apps, mt_err **err);
// No run gets a turn any more; those that have one come to its end. Accepts NULL.
void mt_apps_stop(mt_apps *apps);
void mt_apps_free(mt_apps *apps); // stops; accepts NULL; runs go on with the next server

typedef struct mt_app_start {
    const mt_namespace *ns;
    const mt_resource *app; // with its sources
    const mt_user *user;
    const char *id;        // of mt_id_new()
    const mt_json *inputs; // object, or NULL; names without regard to case
    const char *parent_id, *parent_app_id, *rerun_of; // NULL: none
    const char *idempotency_key, *request_digest;     // NULL: none
} mt_app_start;
// 0: stored and under way. 1: *ret is that of an earlier start with the key. badField
// ("inputs.NAME", with what there is) for inputs that are unknown, missing, given twice or of the
// wrong type.
int mt_apps_start(mt_apps *apps, const mt_app_start *start, mt_app_run *ret, mt_err **err);
// What an app takes, as JSON: a list of {"name","type"}; and the type of what it returns.
int mt_apps_describe(mt_apps *apps, const char *namespace_id, const mt_resource *app,
                     mt_buf *inputs, const char **ret_type, mt_err **err);
// Asks for the end of a run. What comes of it is told by the run.
int mt_apps_cancel(mt_apps *apps, const char *id, const char *by, mt_err **err);
// Something happened to what has that id (a run of any kind, or a command). Any thread; short.
void mt_apps_announce(mt_apps *apps, const char *topic);
