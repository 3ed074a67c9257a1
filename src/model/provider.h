// SPDX-License-Identifier: Apache-2.0
// The providers of models that the server knows by itself, and what an operator may set of each.
#pragma once

#include "base/str.h"

typedef enum mt_model_wire {
    MT_WIRE_CHAT,     // POST BASE/chat/completions, as OpenAI's: most others speak it, too
    MT_WIRE_MESSAGES, // POST BASE/messages, as Anthropic's
} mt_model_wire;

// How a provider is told that the answer has to fit a JSON schema. The answer is checked here
// whatever it promises.
typedef enum mt_model_schema_mode {
    MT_SCHEMA_NONE,   // not: a paragraph of the task says so
    MT_SCHEMA_JSON,   // any JSON object; a paragraph of the task has the schema
    MT_SCHEMA_TOOL,   // as the input of a tool that it must call
    MT_SCHEMA_SCHEMA, // as response_format json_schema
} mt_model_schema_mode;

enum {
    MT_MODEL_CONCURRENCY = 8, // requests of a provider at once unless set
    MT_MODEL_CONCURRENCY_MAX = 512,
};

// What the server knows of a provider without being told.
typedef struct mt_model_provider_info {
    const char *name; // as in `model = @ref("deepseek.deepseek-v4-flash")`
    mt_model_wire wire;
    mt_model_schema_mode schema_mode;
    const char *base_url; // without a slash at its end; NULL: has to be set
    const char *key_env;  // of the key, read at the server's start; NULL: none
    bool needs_key;
} mt_model_provider_info;

const mt_model_provider_info *mt_model_provider_at(
    size_t i); // in the order of names; NULL behind the last
const mt_model_provider_info *mt_model_provider_by_name(mt_str name); // NULL: unknown

const char *mt_model_schema_mode_word(
    mt_model_schema_mode mode); // "schema", "tool", "json", "none"
bool mt_model_schema_mode_read(mt_str word, mt_model_schema_mode *ret);
