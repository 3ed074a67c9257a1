// SPDX-License-Identifier: Apache-2.0
#include "server/event-frames.h"

#include "base/utf8.h"
#include "core/run-output.h"
#include "json/json.h"

enum { CHARACTER_MAX = 4 };

static void begin(mt_buf *b, mt_jw *w, const char *event)
{
    (void)mt_buf_addf(b, "event: %s\ndata: ", event);
    mt_jw_init(w, b, 0);
    mt_jw_begin_object(w);
}

static void end(mt_buf *b, mt_jw *w)
{
    mt_jw_end_object(w);
    (void)mt_buf_adds(b, "\n\n");
}

static void id(mt_buf *b, int64_t number)
{
    (void)mt_buf_addf(b, "id: %lld\n", (long long)number);
}

void mt_frame_hello(mt_buf *b, int64_t after, int64_t heartbeat_seconds)
{
    mt_jw w;

    id(b, after);
    begin(b, &w, "hello");
    mt_jw_member_int(&w, "after", after);
    mt_jw_member_int(&w, "heartbeatSeconds", heartbeat_seconds);
    end(b, &w);
}

static void text_or_null(mt_jw *w, const char *name, const char *text)
{
    mt_jw_member_text(w, name, *text ? text : NULL);
}

void mt_frame_change(mt_buf *b, const mt_event *e)
{
    mt_jw w;

    id(b, e->number);
    begin(b, &w, "change");
    mt_jw_member_int(&w, "number", e->number);
    mt_jw_member_time(&w, "date", e->time_us);
    mt_jw_member_text(&w, "kind", e->kind);
    mt_jw_member_text(&w, "change", e->change);
    mt_jw_member_text(&w, "id", e->object_id);
    text_or_null(&w, "namespace", e->namespace_name);
    text_or_null(&w, "runId", e->run_id);
    text_or_null(&w, "name", e->name);
    text_or_null(&w, "status", e->status);
    text_or_null(&w, "endReason", e->end_reason);
    if (e->has_exit_code)
        mt_jw_member_int(&w, "exitCode", e->exit_code);
    else
        mt_jw_member_null(&w, "exitCode");
    end(b, &w);
}

void mt_frame_output(mt_buf *b, const mt_frame_piece *piece)
{
    mt_jw w;

    begin(b, &w, "output");
    mt_jw_member_text(&w, "runId", piece->run_id);
    mt_jw_member_text(&w, "commandId", piece->command_id);
    mt_jw_member_text(&w, "stream", piece->stream == MT_STREAM_ERROR ? "error" : "standard");
    mt_jw_member_int(&w, "offset", (int64_t)piece->offset);
    mt_jw_member_int(&w, "bytes", (int64_t)piece->bytes.len);
    mt_jw_member_str(&w, "text", piece->bytes);
    end(b, &w);
}

void mt_frame_console(mt_buf *b, const char *run_id, const mt_app_line_record *line, size_t from,
                      mt_str text)
{
    mt_jw w;

    begin(b, &w, "console");
    mt_jw_member_text(&w, "runId", run_id);
    mt_jw_member_int(&w, "number", line->number);
    mt_jw_member_int(&w, "from", (int64_t)from);
    mt_jw_member_str(&w, "text", text);
    mt_jw_member_time(&w, "date", line->time_us);
    end(b, &w);
}

void mt_frame_text(mt_buf *b, const char *run_id, int64_t stream, size_t from, mt_str text)
{
    mt_jw w;

    begin(b, &w, "text");
    mt_jw_member_text(&w, "runId", run_id);
    mt_jw_member_int(&w, "stream", stream);
    mt_jw_member_int(&w, "from", (int64_t)from);
    mt_jw_member_str(&w, "text", text);
    end(b, &w);
}

void mt_frame_end(mt_buf *b, const char *code, int64_t after, const char *sentence)
{
    mt_jw w;

    begin(b, &w, "end");
    mt_jw_member_text(&w, "code", code);
    mt_jw_member_int(&w, "after", after);
    mt_jw_member_text(&w, "sentence", sentence);
    end(b, &w);
}

void mt_frame_heartbeat(mt_buf *b)
{
    (void)mt_buf_adds(b, ": \n\n");
}

size_t mt_frame_whole(mt_str bytes)
{
    for (size_t back = 1; back < CHARACTER_MAX && back <= bytes.len; back++) {
        const char *at = bytes.data + bytes.len - back;
        bool cut = false;
        uint32_t c;

        if (((unsigned char)*at & 0xc0) == 0x80)
            continue;
        return mt_utf8_decode(at, back, &c, &cut) == 0 && cut ? bytes.len - back : bytes.len;
    }
    return bytes.len;
}
