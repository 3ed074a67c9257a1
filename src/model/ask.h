// SPDX-License-Identifier: Apache-2.0
// One request of a model, from its place in the queue to its answer. Used within src/model only.
//
//   queued ──turn──> sent ──whole──> answered
//                    │  ^
//              failed│  │wait over
//                    v  │
//                   rests            the deadline and a cancel end it in any of the three
#pragma once

#include "base/buf.h"
#include "model/model.h"
#include "model/reading.h"
#include "model/transfer.h"
#include "model/wire.h"

enum { ASK_TROUBLE_MAX = 64 << 10 }; // bytes kept of an error body; the rest is passed over

typedef struct lane lane;
typedef struct ask ask;

struct mt_models {
    mt_loop *loop;
    transfers *transfers;
    ask *asks;   // all
    lane *lanes; // those that have one
    bool pumping, stopping;
    int64_t held; // bytes of answers under way, see room.c
};

typedef enum ask_state { ASK_NEW, ASK_QUEUED, ASK_SENT, ASK_RESTS } ask_state;

struct ask {
    mt_models *models;
    uint64_t id;
    ask *prev, *next; // of models->asks

    // of the request; not changed
    char *provider, *model, *url, *key;
    const wire *wire;
    bool tool, local;
    unsigned concurrency;
    int64_t deadline_ns;
    mt_buf body;
    mt_model_events events;
    void *data;

    lane *lane;
    ask *queue_next;
    ask_state state;
    mt_timer *timer;
    unsigned tries, crowded; // of these there was no room for so many
    size_t asked;            // bytes of the body, as they are counted
    size_t held;             // of the answer, as they are counted

    // of the last try
    transfer *transfer;
    reading reading;
    mt_buf trouble_body;
    int status;
    bool says_stream;       // by its Content-Type
    int64_t retry_after_ms; // -1: not said
    int64_t heard_ns;       // when something last came
};

// From any thread. NULL with err.
ask *ask_new(mt_models *m, const mt_model_request *request, const mt_model_events *events,
             void *data, mt_err **err);
ask *ask_free(ask *a);

// On the loop's thread. Each but ask_begin() may free it.
void ask_enter(ask *a); // into the queue, or at once to its end
void ask_send(ask *a);  // its turn has come
void ask_cancel(ask *a);

// The lanes: whose requests count together.
int lane_enter(ask *a); // -1: out of memory
void lane_leave(ask *a);
void lane_pump(mt_models *m); // gives turns; calls ask_send()
unsigned lane_limit(const ask *a);

// Room: how much of answers there may be.
bool room_grows(ask *a);          // more of its answer came: false when that is too much
void room_leave(ask *a);          // its answer is gone
bool room_for_more(mt_models *m); // whether another request may be sent
int64_t models_kept(const mt_models *m, bool wake); // wake: a turn waits for less of it
void models_asked(mt_models *m, ask *a, int64_t bytes);
