// SPDX-License-Identifier: Apache-2.0
// Asking models: one request, its answer as it comes, and why there was none. All requests of a
// server share one thread and one libcurl multi handle.
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "model/provider.h"

typedef struct mt_models mt_models;

typedef enum mt_model_speaker {
    MT_SPEAKER_SYSTEM,
    MT_SPEAKER_TASK,  // the user's side
    MT_SPEAKER_MODEL, // what the model said before
} mt_model_speaker;

typedef struct mt_model_message {
    mt_model_speaker speaker;
    mt_str text; // UTF-8
} mt_model_message;

// What is asked. Nothing of it has to stay after mt_model_ask().
typedef struct mt_model_request {
    const char *provider; // its name: for sentences, and whose requests count together
    mt_model_wire wire;
    const char *base_url;
    const char *model;    // "deepseek-v4-flash"
    const char *key;      // NULL or "": none is sent
    unsigned concurrency; // requests of that provider at once; more wait their turn
    const mt_model_message *messages;
    size_t message_count;
    mt_model_schema_mode schema_mode; // of the answer; ignored without a schema
    mt_str schema;                    // JSON text; empty: any text
    const char *schema_name;
    double temperature;  // < 0: the provider's
    int64_t max_tokens;  // 0: the provider's
    int64_t deadline_ms; // on CLOCK_BOOTTIME, waiting and tries included
} mt_model_request;

typedef enum mt_model_end {
    MT_MODEL_ANSWERED,    // finish reason stop
    MT_MODEL_CUT,         // the token limit
    MT_MODEL_REFUSED,     // refusal, or the content filter; text says what the model said of it
    MT_MODEL_NO_KEY,      // none given, though it needs one
    MT_MODEL_BAD_KEY,     // 401, 403
    MT_MODEL_NO_MODEL,    // 404, or an error that says so
    MT_MODEL_RATE_LIMIT,  // 429 to the last
    MT_MODEL_BAD_REQUEST, // any other 4xx
    MT_MODEL_FAILED,      // 5xx to the last, or an answer that is none of its protocol
    MT_MODEL_UNREACHABLE, // no connection
    MT_MODEL_OUT_OF_TIME, // the deadline, or a Retry-After beyond it
    MT_MODEL_CANCELLED,
} mt_model_end;

const char *mt_model_end_word(mt_model_end end); // "answered", "cut", "noKey", …

typedef struct mt_model_answer {
    mt_model_end end;
    int status;       // of HTTP, the last one's; 0: none
    mt_str text;      // what the model said: the text, or with MT_SCHEMA_TOOL the tool's input
    mt_str reasoning; // where the provider sends it apart
    const char *
        sentence; // why it did not answer, for people: with what the provider said, and the way out
    const char *model;             // as the provider calls it
    int64_t tokens_in, tokens_out; // -1: it did not say
    unsigned tries;                // requests that were sent
} mt_model_answer;

// All on the models' thread; must not block. `text` gets pieces as they come, whole characters,
// until answer is called once. When a try failed after pieces came, `again` says that they do not
// count.
typedef struct mt_model_events {
    void (*text)(mt_str piece, void *data); // NULL: not wanted
    void (*again)(void *data);              // NULL: not wanted
    void (*answer)(const mt_model_answer *a, void *data);
} mt_model_events;

mt_models *mt_models_new(mt_err **err);
mt_models *mt_models_free(mt_models *m); // requests under way end CANCELLED; returns NULL

// From any thread. 0 and a number for mt_model_cancel(), or -1: then no event comes (badField,
// unavailable for now, outOfMemory).
int mt_model_ask(mt_models *m, const mt_model_request *request, const mt_model_events *events,
                 void *data, uint64_t *ret_id, mt_err **err);
void mt_model_cancel(mt_models *m,
                     uint64_t id); // answer() comes with CANCELLED, unless it came already

// What all requests of a server may take of its memory, whatever providers there are and however
// many at once each gets.
#ifndef MT_MODEL_HELD_MAX
#define MT_MODEL_HELD_MAX (256 << 20)
#endif
#ifndef MT_MODEL_ASKED_MAX
#define MT_MODEL_ASKED_MAX (256 << 20)
#endif
// - Answers: MT_MODEL_HELD_MAX bytes, those under way and those that callers keep. From half of it
//   on, requests wait for their turn, inside their deadline. A try that grows past all of it ends;
//   it is made again once there is room, as often as it takes, and counts for none.
// - Requests: MT_MODEL_ASKED_MAX bytes of bodies that were not answered yet. mt_model_ask() is then
//   refused, unavailable.

// The caller keeps so many bytes more of answers or, below 0, less. Any thread; takes no lock.
void mt_model_keeps(mt_models *m, int64_t bytes);
