// SPDX-License-Identifier: Apache-2.0
// Anthropic's messages:
//
//   request   {"model", "max_tokens", "system", "messages": [{"role", "content"}], "stream": true}
//   stream    message_start, then for each block of content content_block_start,
//             content_block_delta (text_delta, input_json_delta, thinking_delta) and
//             content_block_stop, then message_delta with stop_reason and usage, message_stop;
//             ping and error at any time. Each event's data has its type as "type".
//   else      {"content": [{"type": "text", "text": "…"}], "stop_reason": "end_turn", "usage": {…}}
#include "model/wire.h"

// The protocol wants a limit with each request; every model in service takes this one.
enum { MAX_TOKENS = 8192 };

static void write_system(const mt_model_request *r, mt_jw *w)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(WIRE_BODY_MAX);

    for (size_t i = 0; i < r->message_count; i++) {
        const mt_model_message *m = &r->messages[i];

        if (m->speaker != MT_SPEAKER_SYSTEM || m->text.len == 0)
            continue;
        if (b.len > 0)
            (void)mt_buf_adds(&b, "\n\n");
        (void)mt_buf_add(&b, m->text.data, m->text.len);
    }
    if (b.failed)
        w->buf->failed = b.failed;
    else if (b.len > 0)
        mt_jw_member_str(w, "system", (mt_str){b.data, b.len});
}

static void write_messages(const mt_model_request *r, mt_jw *w)
{
    mt_jw_key(w, "messages");
    mt_jw_begin_array(w);
    for (size_t i = 0; i < r->message_count; i++) {
        const mt_model_message *m = &r->messages[i];

        if (m->speaker == MT_SPEAKER_SYSTEM || m->text.len == 0) // empty ones are refused
            continue;
        mt_jw_begin_object(w);
        mt_jw_member_text(w, "role", m->speaker == MT_SPEAKER_TASK ? "user" : "assistant");
        mt_jw_member_str(w, "content", m->text);
        mt_jw_end_object(w);
    }
    mt_jw_end_array(w);
}

static void write_tool(const mt_model_request *r, const mt_json *schema, mt_jw *w)
{
    char name[WIRE_NAME_MAX + 1];

    (void)wire_schema_name(r->schema_name, name);
    mt_jw_key(w, "tools");
    mt_jw_begin_array(w);
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "name", name);
    mt_jw_member_text(w, "description", "Takes the answer.");
    mt_jw_member_value(w, "input_schema", schema);
    mt_jw_end_object(w);
    mt_jw_end_array(w);
    mt_jw_key(w, "tool_choice");
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "type", "tool");
    mt_jw_member_text(w, "name", name);
    mt_jw_end_object(w);
}

static void write_schema(const mt_json *schema, mt_jw *w)
{
    mt_jw_key(w, "output_config");
    mt_jw_begin_object(w);
    mt_jw_key(w, "format");
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "type", "json_schema");
    mt_jw_member_value(w, "schema", schema);
    mt_jw_end_object(w);
    mt_jw_end_object(w);
}

static void messages_write(const mt_model_request *r, const mt_json *schema, mt_jw *w)
{
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "model", r->model);
    mt_jw_member_int(w, "max_tokens", r->max_tokens > 0 ? r->max_tokens : MAX_TOKENS);
    write_system(r, w);
    write_messages(r, w);
    mt_jw_member_bool(w, "stream", true);
    if (r->temperature >= 0) {
        mt_jw_key(w, "temperature");
        mt_jw_double(w, r->temperature);
    }
    if (schema && r->schema_mode == MT_SCHEMA_TOOL)
        write_tool(r, schema, w);
    else if (schema && r->schema_mode == MT_SCHEMA_SCHEMA)
        write_schema(schema, w);
    mt_jw_end_object(w);
}

// --- the answer ---------------------------------------------------------------------------------

static const finish_name FINISHES[] = {
    {"end_turn", FINISH_STOP},   {"stop_sequence", FINISH_STOP},
    {"tool_use", FINISH_STOP},   {"max_tokens", FINISH_LENGTH},
    {"refusal", FINISH_REFUSAL}, {"model_context_window_exceeded", FINISH_LENGTH},
};

static bool is_type(const mt_json *v, const char *type)
{
    return mt_str_eq(mt_json_str(mt_json_get(v, "type")), type);
}

// What was taken from a cache, or put into one, is counted apart by the provider.
static void read_usage(reading *r, const mt_json *usage)
{
    static const char *const parts[] = {"input_tokens", "cache_creation_input_tokens",
                                        "cache_read_input_tokens"};
    int64_t sum = 0;

    if (mt_json_given(mt_json_get(usage, "input_tokens"))) {
        for (size_t i = 0; i < MT_ARRAY_SIZE(parts); i++) {
            int64_t n = 0;

            reading_tokens(&n, mt_json_get(usage, parts[i]));
            sum += MT_MIN(n, INT64_MAX / 4);
        }
        r->tokens_in = sum;
    }
    reading_tokens(&r->tokens_out, mt_json_get(usage, "output_tokens"));
}

static void read_stop(reading *r, const mt_json *holder)
{
    reading_finish(r, mt_json_get(holder, "stop_reason"), FINISHES, MT_ARRAY_SIZE(FINISHES));
}

static void read_block_start(reading *r, const mt_json *v)
{
    const mt_json *block = mt_json_get(v, "content_block");
    int64_t index = 0;

    reading_say(r, CHANNEL_TEXT, mt_json_get(block, "text"));
    if (!r->tool || !is_type(block, "tool_use") || r->tool_index_ >= 0)
        return;
    (void)mt_json_as_int64(mt_json_get(v, "index"), &index);
    r->tool_index_ = index;
    // A stream starts with {} and sends the input after it; {} is the input where none follows.
    if (mt_json_count(mt_json_get(block, "input")) > 0) {
        r->tool_begun_ = true;
        reading_say_json(r, CHANNEL_TOOL, mt_json_get(block, "input"));
    }
}

static void read_block_delta(reading *r, const mt_json *v)
{
    const mt_json *delta = mt_json_get(v, "delta");
    const mt_json *input = mt_json_get(delta, "partial_json");
    int64_t index = 0;

    (void)mt_json_as_int64(mt_json_get(v, "index"), &index);
    reading_say(r, CHANNEL_TEXT, mt_json_get(delta, "text"));
    reading_say(r, CHANNEL_REASONING, mt_json_get(delta, "thinking"));
    if (r->tool_index_ != index || mt_json_str(input).len == 0)
        return;
    r->tool_begun_ = true;
    reading_say(r, CHANNEL_TOOL, input);
}

static void read_message_end(reading *r)
{
    _cleanup_json_ mt_json *empty = NULL;

    if (!r->tool || r->tool_index_ < 0 || r->tool_begun_)
        return;
    empty = mt_json_new_object();
    r->tool_begun_ = true;
    reading_say_json(r, CHANNEL_TOOL, empty);
}

static void messages_event(reading *r, const mt_json *v)
{
    const mt_json *message = mt_json_get(v, "message");

    r->known++;
    if (is_type(v, "message_start")) {
        reading_model(r, mt_json_get(message, "model"));
        read_usage(r, mt_json_get(message, "usage"));
    } else if (is_type(v, "content_block_start")) {
        read_block_start(r, v);
    } else if (is_type(v, "content_block_delta")) {
        read_block_delta(r, v);
    } else if (is_type(v, "message_delta")) {
        read_usage(r, mt_json_get(v, "usage"));
        read_stop(r, mt_json_get(v, "delta"));
        if (r->finish == FINISH_STOP)
            read_message_end(r);
    } else if (is_type(v, "message_stop")) {
        r->done = true;
    } else if (!is_type(v, "ping") && !is_type(v, "content_block_stop")) {
        r->known--; // of a later version, or of another protocol
    }
}

static void messages_whole(reading *r, const mt_json *v)
{
    const mt_json *content = mt_json_get(v, "content");

    r->known += mt_json_kind_of(content) == MT_JSON_ARRAY;
    reading_model(r, mt_json_get(v, "model"));
    read_usage(r, mt_json_get(v, "usage"));
    for (size_t i = 0; i < mt_json_count(content); i++) {
        const mt_json *block = mt_json_at(content, i);

        reading_say(r, CHANNEL_TEXT, mt_json_get(block, "text"));
        reading_say(r, CHANNEL_REASONING, mt_json_get(block, "thinking"));
        if (r->tool && is_type(block, "tool_use") && !r->tool_begun_) {
            r->tool_begun_ = true;
            reading_say_json(r, CHANNEL_TOOL, mt_json_get(block, "input"));
        }
    }
    read_stop(r, v);
    if (r->finish == FINISH_NONE && !r->problem)
        r->problem = PROBLEM_PROTOCOL;
}

const wire wire_messages = {
    .path = "/messages",
    .key_header = "x-api-key: ",
    .extra_header = "anthropic-version: 2023-06-01",
    .write = messages_write,
    .event = messages_event,
    .whole = messages_whole,
};
