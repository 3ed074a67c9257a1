// SPDX-License-Identifier: Apache-2.0
// The answer of one try, put together from the body's bytes as they come: a stream of server-sent
// events, or one JSON document. No I/O. Used within src/model only.
//
// What a provider says passes two things before anyone sees it: text is joined to whole characters
// (text-join.h), and the key that was sent is masked, should it come back.
#pragma once

#include "base/sse.h"
#include "model/text-join.h"
#include "model/trouble.h"
#include "json/json.h"

enum {
    READING_TEXT_MAX = 4 << 20,   // of the text, of a tool's input
    READING_ASIDE_MAX = 4 << 20,  // of reasoning; what is beyond is dropped
    READING_WHOLE_MAX = 12 << 20, // of an answer that is no stream
    READING_START_MAX = 1024,     // kept of what is no answer at all
    READING_MODEL_MAX = 200,      // of the model's name
};

typedef enum finish {
    FINISH_NONE, // it was not said: the answer is not whole
    FINISH_STOP,
    FINISH_LENGTH,
    FINISH_FILTER,  // a filter stopped it
    FINISH_REFUSAL, // the model would not
    FINISH_BROKEN,  // the provider gave up
    FINISH_OTHER,   // finish_word says what
} finish;

typedef enum channel { CHANNEL_TEXT, CHANNEL_TOOL, CHANNEL_REFUSAL, CHANNEL_REASONING } channel;
enum { CHANNELS = 4 };

typedef enum problem {
    PROBLEM_NONE,
    PROBLEM_MEMORY,
    PROBLEM_TOO_LARGE,
    PROBLEM_PROTOCOL, // this is no answer of the protocol
    PROBLEM_SAID,     // an error instead of the rest: see said
    PROBLEM_NO_ROOM,  // for it, beside the others: set by who reads
} problem;

struct wire;
typedef struct reading {
    const struct wire *wire;
    const char *key; // to be masked; "": none
    bool tool;       // the answer is a tool's input
    void (*piece)(mt_str piece, void *user);
    void *user;

    finish finish;
    char finish_word[32];
    bool done; // the stream said that it is over
    problem problem;
    trouble said;
    int64_t tokens_in, tokens_out; // -1: not said
    char model[READING_MODEL_MAX + 1];
    mt_buf start;    // its first bytes
    size_t events;   // that came
    size_t known;    // of these the protocol's
    bool piece_came; // piece() was called

    // private
    enum { BODY_UNDECIDED, BODY_STREAM, BODY_WHOLE } body_;
    mt_sse sse_;
    mt_buf whole_;
    struct {
        text_join join;
        mt_buf buf;
        size_t given; // up to there it is masked, and was given to piece()
        bool full;
    } channels_[CHANNELS];
    bool tamed_; // the event that is being read, see text-join.h
    int64_t tool_index_;
    bool tool_begun_, ended_;
} reading;

void reading_init(reading *r, const struct wire *wire, const char *key, bool tool);
void reading_done(reading *r);
int reading_feed(reading *r, const char *bytes, size_t len); // -1: enough, see problem and said
void reading_end(reading *r);                                // after the last byte
mt_str reading_text(const reading *r);                       // after reading_end()
mt_str reading_reasoning(const reading *r);
bool reading_refused(const reading *r); // it said so, however it finished
size_t reading_held(const reading *r);  // bytes of the body that it keeps

// For the wires. Each may be given a value of any kind; what is no string or number is ignored.
void reading_say(reading *r, channel c, const mt_json *text);
void reading_say_json(reading *r, channel c, const mt_json *v); // v as JSON text
void reading_tokens(int64_t *slot, const mt_json *n);
void reading_model(reading *r, const mt_json *name);
typedef struct finish_name {
    const char *word;
    finish finish;
} finish_name;
void reading_finish(reading *r, const mt_json *word, const finish_name *names, size_t count);
