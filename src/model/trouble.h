// SPDX-License-Identifier: Apache-2.0
// What a provider says of a failure, in the shapes that error bodies have, and what kind of failure
// it is. No I/O. Used within src/model only.
#pragma once

#include "model/model.h"
#include "json/json.h"

enum {
    TROUBLE_MESSAGE_MAX = 4096, // bytes kept of a message
    TROUBLE_QUOTE_MAX = 300,    // characters of it in a sentence
};

typedef struct trouble {
    bool given;
    int status;    // as HTTP says it, of a number or a type in the body; 0: not said
    char code[64]; // its code, or else its type: "model_not_found"
    bool filtered; // the request was refused for what it says
    bool spent;    // the quota is used up: waiting for minutes does not help
    char *message; // as it came: not masked, any characters, NULs too; NULL: none
    size_t message_len;
} trouble;

void trouble_done(trouble *t);
// body: an error body, or an event of a stream that has an "error". Leaves t->given false where it
// says nothing of an error. -1: out of memory.
int trouble_read(trouble *t, const mt_json *body);

// Takes a copy of what was said instead of an error body.
int trouble_keep(trouble *t, mt_str message);

typedef struct trouble_kind {
    mt_model_end end;
    bool again; // it can work at another time
} trouble_kind;
// status: of HTTP, or t->status where the body came with 200.
trouble_kind trouble_kind_of(int status, const trouble *t);

// The message as a sentence may hold it: the key masked, controls left out, at most
// TROUBLE_QUOTE_MAX characters.
int trouble_quote(mt_str message, const char *key, mt_buf *out);

// Masks every occurrence of key from offset `from` on. Keys below TROUBLE_KEY_MIN bytes are none
// that a stranger could not guess, and would make holes in any text.
enum { TROUBLE_KEY_MIN = 8 };
void trouble_mask(mt_buf *b, size_t from, const char *key);
