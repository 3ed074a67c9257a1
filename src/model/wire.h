// SPDX-License-Identifier: Apache-2.0
// The protocols that providers speak, as a table each: how a request is written, and what the
// events of its answer mean. No I/O. Used within src/model only.
#pragma once

#include "model/model.h"
#include "model/reading.h"
#include "json/json.h"

typedef struct wire {
    const char *path;         // behind the base URL
    const char *key_header;   // up to the key
    const char *extra_header; // NULL: none
    // Appends the body of a request. schema is r->schema, parsed, or NULL.
    void (*write)(const mt_model_request *r, const mt_json *schema, mt_jw *w);
    void (*event)(reading *r, const mt_json *v); // one event of a stream
    void (*whole)(reading *r, const mt_json *v); // an answer that is no stream
} wire;

extern const wire wire_chat, wire_messages;

static inline const wire *wire_of(mt_model_wire w)
{
    return w == MT_WIRE_MESSAGES ? &wire_messages : &wire_chat;
}

enum { WIRE_BODY_MAX = 32 << 20 }; // of a request: a prompt and two whole answers before it

// The whole body into b. -1 where the schema is no JSON, or it is too long.
int wire_write(const mt_model_request *r, mt_buf *b, mt_err **err);

enum { WIRE_NAME_MAX = 64 };
// schema_name as providers take it: [A-Za-z0-9_-]{1,64}.
const char *wire_schema_name(const char *name, char out[WIRE_NAME_MAX + 1]);
// Whether a schema keeps to the part of JSON Schema that `"strict": true` is refused without.
bool wire_schema_is_strict(const mt_json *schema);
