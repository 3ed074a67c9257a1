// SPDX-License-Identifier: Apache-2.0
// Chat completions, as OpenAI defined them and most others speak them:
//
//   request   {"model", "messages": [{"role", "content"}], "stream": true, …}
//   stream    data: {"choices": [{"index": 0, "delta": {"content": "…"}, "finish_reason": null}]}
//             data: {"choices": [], "usage": {…}}
//             data: [DONE]
//   else      {"choices": [{"message": {"content": "…"}, "finish_reason": "stop"}], "usage": {…}}
#include "model/wire.h"

// Where a provider that speaks the protocol differs.
typedef struct habit {
    const char *provider;
    bool new_limit;           // "max_completion_tokens"; the old word is refused by newer models
    bool no_stream_options;   // refused as unknown; it counts tokens without being asked
    bool format_stops_stream; // response_format and stream exclude each other
} habit;

static const habit HABITS[] = {
    {.provider = "groq", .format_stops_stream = true},
    {.provider = "mistral", .no_stream_options = true},
    {.provider = "openai", .new_limit = true},
};

static const habit *habit_of(const char *provider)
{
    static const habit none = {0};

    for (size_t i = 0; i < MT_ARRAY_SIZE(HABITS); i++)
        if (mt_streq(HABITS[i].provider, provider))
            return &HABITS[i];
    return &none;
}

static void write_messages(const mt_model_request *r, mt_jw *w)
{
    static const char *const roles[] = {
        [MT_SPEAKER_SYSTEM] = "system",
        [MT_SPEAKER_TASK] = "user",
        [MT_SPEAKER_MODEL] = "assistant",
    };

    mt_jw_key(w, "messages");
    mt_jw_begin_array(w);
    for (size_t i = 0; i < r->message_count; i++) {
        mt_jw_begin_object(w);
        mt_jw_member_text(w, "role", roles[r->messages[i].speaker]);
        mt_jw_member_str(w, "content", r->messages[i].text);
        mt_jw_end_object(w);
    }
    mt_jw_end_array(w);
}

static void write_schema(const mt_model_request *r, const mt_json *schema, mt_jw *w)
{
    char name[WIRE_NAME_MAX + 1];

    mt_jw_key(w, "response_format");
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "type", "json_schema");
    mt_jw_key(w, "json_schema");
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "name", wire_schema_name(r->schema_name, name));
    // Asked for beyond what strict takes, providers refuse the request instead of the keyword.
    mt_jw_member_bool(w, "strict", wire_schema_is_strict(schema));
    mt_jw_member_value(w, "schema", schema);
    mt_jw_end_object(w);
    mt_jw_end_object(w);
}

static void write_json_mode(mt_jw *w)
{
    mt_jw_key(w, "response_format");
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "type", "json_object");
    mt_jw_end_object(w);
}

static void write_function_name(const char *name, mt_jw *w)
{
    mt_jw_member_text(w, "type", "function");
    mt_jw_key(w, "function");
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "name", name);
}

static void write_tool(const mt_model_request *r, const mt_json *schema, mt_jw *w)
{
    char name[WIRE_NAME_MAX + 1];

    (void)wire_schema_name(r->schema_name, name);
    mt_jw_key(w, "tools");
    mt_jw_begin_array(w);
    mt_jw_begin_object(w);
    write_function_name(name, w);
    mt_jw_member_text(w, "description", "Takes the answer.");
    mt_jw_member_value(w, "parameters", schema);
    mt_jw_end_object(w);
    mt_jw_end_object(w);
    mt_jw_end_array(w);
    mt_jw_key(w, "tool_choice");
    mt_jw_begin_object(w);
    write_function_name(name, w);
    mt_jw_end_object(w);
    mt_jw_end_object(w);
}

static void write_stream(const habit *h, bool formatted, mt_jw *w)
{
    bool stream = !(formatted && h->format_stops_stream);

    mt_jw_member_bool(w, "stream", stream);
    if (!stream || h->no_stream_options)
        return;
    mt_jw_key(w, "stream_options");
    mt_jw_begin_object(w);
    mt_jw_member_bool(w, "include_usage", true);
    mt_jw_end_object(w);
}

static void chat_write(const mt_model_request *r, const mt_json *schema, mt_jw *w)
{
    const habit *h = habit_of(r->provider);
    mt_model_schema_mode mode = schema ? r->schema_mode : MT_SCHEMA_NONE;

    mt_jw_begin_object(w);
    mt_jw_member_text(w, "model", r->model);
    write_messages(r, w);
    write_stream(h, mode == MT_SCHEMA_SCHEMA || mode == MT_SCHEMA_JSON, w);
    if (r->temperature >= 0) {
        mt_jw_key(w, "temperature");
        mt_jw_double(w, r->temperature);
    }
    if (r->max_tokens > 0)
        mt_jw_member_int(w, h->new_limit ? "max_completion_tokens" : "max_tokens", r->max_tokens);
    if (mode == MT_SCHEMA_SCHEMA)
        write_schema(r, schema, w);
    else if (mode == MT_SCHEMA_JSON)
        write_json_mode(w);
    else if (mode == MT_SCHEMA_TOOL)
        write_tool(r, schema, w);
    mt_jw_end_object(w);
}

// --- the answer ---------------------------------------------------------------------------------

static const finish_name FINISHES[] = {
    {"stop", FINISH_STOP},
    {"tool_calls", FINISH_STOP},
    {"function_call", FINISH_STOP},
    {"length", FINISH_LENGTH},
    {"max_tokens", FINISH_LENGTH},
    {"model_length", FINISH_LENGTH}, // Mistral: the model's window
    {"content_filter", FINISH_FILTER},
    {"refusal", FINISH_REFUSAL},
    {"error", FINISH_BROKEN},                        // Mistral, OpenRouter
    {"insufficient_system_resource", FINISH_BROKEN}, // DeepSeek
};

// Content that is a list of parts: text, and what a model thought (Mistral).
static void read_parts(reading *r, const mt_json *parts)
{
    for (size_t i = 0; i < mt_json_count(parts); i++) {
        const mt_json *part = mt_json_at(parts, i), *thought = mt_json_get(part, "thinking");

        reading_say(r, CHANNEL_TEXT, mt_json_get(part, "text"));
        reading_say(r, CHANNEL_REASONING, thought);
        for (size_t j = 0; j < mt_json_count(thought); j++)
            reading_say(r, CHANNEL_REASONING, mt_json_get(mt_json_at(thought, j), "text"));
    }
}

// Only the first call is the answer; pieces of it may come without their index.
static void read_call(reading *r, const mt_json *call)
{
    const mt_json *input = mt_json_pointer(call, MT_STR("/function/arguments"));
    int64_t index = r->tool_index_ < 0 ? 0 : r->tool_index_;

    (void)mt_json_as_int64(mt_json_get(call, "index"), &index);
    if (r->tool_index_ < 0)
        r->tool_index_ = index;
    if (index != r->tool_index_)
        return;
    if (mt_json_kind_of(input) == MT_JSON_OBJECT)
        reading_say_json(r, CHANNEL_TOOL, input);
    else
        reading_say(r, CHANNEL_TOOL, input);
}

// delta of a stream's choice, or message of a whole one.
static void read_message(reading *r, const mt_json *m)
{
    const mt_json *content = mt_json_get(m, "content"), *calls = mt_json_get(m, "tool_calls");
    const mt_json *thought = mt_json_get(m, "reasoning_content"); // DeepSeek, vLLM, llama.cpp

    if (!mt_json_given(thought))
        thought = mt_json_get(m, "reasoning"); // OpenRouter, Groq, Ollama
    reading_say(r, CHANNEL_REASONING, thought);
    reading_say(r, CHANNEL_TEXT, content);
    read_parts(r, content);
    reading_say(r, CHANNEL_REFUSAL, mt_json_get(m, "refusal"));
    if (r->tool && mt_json_kind_of(calls) == MT_JSON_ARRAY)
        read_call(r, mt_json_at(calls, 0));
}

static void read_usage(reading *r, const mt_json *usage)
{
    reading_tokens(&r->tokens_in, mt_json_get(usage, "prompt_tokens"));
    reading_tokens(&r->tokens_out, mt_json_get(usage, "completion_tokens"));
}

static bool is_first(const mt_json *choice)
{
    int64_t index = 0;

    (void)mt_json_as_int64(mt_json_get(choice, "index"), &index);
    return index == 0;
}

static void read_choices(reading *r, const mt_json *v, const char *message)
{
    const mt_json *choices = mt_json_get(v, "choices");

    reading_model(r, mt_json_get(v, "model"));
    read_usage(r, mt_json_get(v, "usage"));
    read_usage(r, mt_json_pointer(v, MT_STR("/x_groq/usage")));
    r->known += mt_json_kind_of(choices) == MT_JSON_ARRAY;
    for (size_t i = 0; i < mt_json_count(choices); i++) {
        const mt_json *choice = mt_json_at(choices, i);

        if (!is_first(choice))
            continue;
        read_message(r, mt_json_get(choice, message));
        reading_finish(r, mt_json_get(choice, "finish_reason"), FINISHES, MT_ARRAY_SIZE(FINISHES));
        return;
    }
}

static void chat_event(reading *r, const mt_json *v)
{
    read_choices(r, v, "delta");
}

static void chat_whole(reading *r, const mt_json *v)
{
    read_choices(r, v, "message");
    if (r->finish == FINISH_NONE && !r->problem)
        r->problem = PROBLEM_PROTOCOL;
}

const wire wire_chat = {
    .path = "/chat/completions",
    .key_header = "Authorization: Bearer ",
    .write = chat_write,
    .event = chat_event,
    .whole = chat_whole,
};
