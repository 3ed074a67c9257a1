// SPDX-License-Identifier: Apache-2.0
#include "model/provider.h"
#include "model/model.h"

// In the order of names. What each of them promises of schemas, and where that is said:
// docs/reference/providers.md.
static const mt_model_provider_info PROVIDERS[] = {
    {"anthropic", MT_WIRE_MESSAGES, MT_SCHEMA_TOOL, "https://api.anthropic.com/v1",
     "ANTHROPIC_API_KEY", true},
    // llama.cpp's server, vLLM, a gateway: whoever speaks OpenAI's protocol.
    {"custom", MT_WIRE_CHAT, MT_SCHEMA_SCHEMA, NULL, NULL, false},
    {"deepseek", MT_WIRE_CHAT, MT_SCHEMA_JSON, "https://api.deepseek.com", "DEEPSEEK_API_KEY",
     true},
    {"google", MT_WIRE_CHAT, MT_SCHEMA_SCHEMA,
     "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", true},
    // Some of its models alone take a schema; any JSON object works with all.
    {"groq", MT_WIRE_CHAT, MT_SCHEMA_JSON, "https://api.groq.com/openai/v1", "GROQ_API_KEY", true},
    {"mistral", MT_WIRE_CHAT, MT_SCHEMA_SCHEMA, "https://api.mistral.ai/v1", "MISTRAL_API_KEY",
     true},
    {"ollama", MT_WIRE_CHAT, MT_SCHEMA_SCHEMA, "http://127.0.0.1:11434/v1", NULL, false},
    {"openai", MT_WIRE_CHAT, MT_SCHEMA_SCHEMA, "https://api.openai.com/v1", "OPENAI_API_KEY", true},
    // It hands a schema on only to those that take one, so the task says it, too.
    {"openrouter", MT_WIRE_CHAT, MT_SCHEMA_JSON, "https://openrouter.ai/api/v1",
     "OPENROUTER_API_KEY", true},
};

static const char *const WORDS[] = {
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
    return WORDS[mode];
}

bool mt_model_schema_mode_read(mt_str word, mt_model_schema_mode *ret)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(WORDS); i++) {
        if (mt_str_eq(word, WORDS[i])) {
            *ret = (mt_model_schema_mode)i;
            return true;
        }
    }
    return false;
}

const char *mt_model_end_word(mt_model_end end)
{
    static const char *const words[] = {
        [MT_MODEL_ANSWERED] = "answered",      [MT_MODEL_CUT] = "cut",
        [MT_MODEL_REFUSED] = "refused",        [MT_MODEL_NO_KEY] = "noKey",
        [MT_MODEL_BAD_KEY] = "badKey",         [MT_MODEL_NO_MODEL] = "noModel",
        [MT_MODEL_RATE_LIMIT] = "rateLimited", [MT_MODEL_BAD_REQUEST] = "badRequest",
        [MT_MODEL_FAILED] = "providerFailed",  [MT_MODEL_UNREACHABLE] = "unreachable",
        [MT_MODEL_OUT_OF_TIME] = "timeout",    [MT_MODEL_CANCELLED] = "cancelled",
    };

    return words[end];
}
