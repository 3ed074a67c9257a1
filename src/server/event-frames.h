// SPDX-License-Identifier: Apache-2.0
// Writes the events of GET /v1/events as a client reads them: server-sent events, an id where it is
// one to go on from, a name, and one line of JSON. Pure.
#pragma once

#include "base/buf.h"
#include "store/store.h"

// Failures stand in the buffer.
void mt_frame_hello(mt_buf *b, int64_t after, int64_t heartbeat_seconds);
void mt_frame_change(mt_buf *b, const mt_event *e);
// A piece of what a command printed, from that byte of the stream on (MT_STREAM_…). Bytes that are
// no UTF-8 become U+FFFD in the text.
typedef struct mt_frame_piece {
    const char *run_id, *command_id;
    int stream;
    uint64_t offset;
    mt_str bytes;
} mt_frame_piece;
void mt_frame_output(mt_buf *b, const mt_frame_piece *piece);
// A line of an app run's console, or a piece of a long one: `from` bytes of it were told before.
void mt_frame_console(mt_buf *b, const char *run_id, const mt_app_line_record *line, size_t from,
                      mt_str text);
// More of what a model says.
void mt_frame_text(mt_buf *b, const char *run_id, int64_t stream, size_t from, mt_str text);
void mt_frame_end(mt_buf *b, const char *code, int64_t after, const char *sentence);
void mt_frame_heartbeat(mt_buf *b);

// How many of these bytes can be told without splitting a character: all of them, but for up to
// three at the end with which one begins that is not whole. 0 where there is nothing else.
size_t mt_frame_whole(mt_str bytes);
