// SPDX-License-Identifier: Apache-2.0
#include "model/provider.h"

// In the order of names. Schema modes are what a provider's own documents promise for all its
// models; an operator who knows better sets another one.
static const mt_model_provider_info PROVIDERS[] = {
    {"anthropic", MT_WIRE_MESSAGES, MT_SCHEMA_TOOL, "https://api.anthropic.com/v1",
     "ANTHROPIC_API_KEY", true},
    {"custom", MT_WIRE_CHAT, MT_SCHEMA_JSON, NULL, NULL, false},
    {"deepseek", MT_WIRE_CHAT, MT_SCHEMA_JSON, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY",
     true},
    {"google", MT_WIRE_CHAT, MT_SCHEMA_SCHEMA,
     "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", true},
    {"groq", MT_WIRE_CHAT, MT_SCHEMA_JSON, "https://api.groq.com/openai/v1", "GROQ_API_KEY", true},
    {"mistral", MT_WIRE_CHAT, MT_SCHEMA_SCHEMA, "https://api.mistral.ai/v1", "MISTRAL_API_KEY",
     true},
    {"ollama", MT_WIRE_CHAT, MT_SCHEMA_SCHEMA, "http://127.0.0.1:11434/v1", NULL, false},
    {"openai", MT_WIRE_CHAT, MT_SCHEMA_SCHEMA, "https://api.openai.com/v1", "OPENAI_API_KEY", true},
    {"openrouter", MT_WIRE_CHAT, MT_SCHEMA_JSON, "https://openrouter.ai/api/v1",
     "OPENROUTER_API_KEY", true},
};

static const char *const MODES[] = {
    [MT_SCHEMA_NONE] = "none",
    [MT_SCHEMA_JSON] = "json",
    [MT_SCHEMA_TOOL] = "tool",
    [MT_SCHEMA_SCHEMA] = "schema",
};

const mt_model_provider_info *mt_model_provider_at(size_t i)
{
    return i < MT_ARRAY_SIZE(PROVIDERS) ? &PROVIDERS[i] : NULL;
}

const mt_model_provider_info *mt_model_provider_by_name(mt_str name)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(PROVIDERS); i++)
        if (mt_str_eq(name, PROVIDERS[i].name))
            return &PROVIDERS[i];
    return NULL;
}

const char *mt_model_schema_mode_word(mt_model_schema_mode mode)
{
    return MODES[mode];
}

bool mt_model_schema_mode_read(mt_str word, mt_model_schema_mode *ret)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(MODES); i++) {
        if (mt_str_eq(word, MODES[i])) {
            *ret = (mt_model_schema_mode)i;
            return true;
        }
    }
    return false;
}
