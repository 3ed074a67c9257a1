// SPDX-License-Identifier: Apache-2.0
// Server-sent events, as browsers read them (WHATWG HTML, 9.2.6): bytes in pieces of any size come
// in, events go out. No I/O. Lines end with CR, LF or CRLF; a byte order mark in front and comments
// are passed over; several data lines of an event are joined by LF; "id" and "retry" are not
// needed. An event that the end cuts off is none.
#pragma once

#include "base/buf.h"
#include "base/str.h"

enum {
    MT_SSE_EVENT_MAX = 5 << 20, // bytes of a line, and of an event's data
    MT_SSE_NAME_MAX = 64,       // of an event; a longer one is cut
};

// name is "" where the stream gives none. Both end with a NUL, and last until it returns. < 0 stops
// the reading.
typedef int mt_sse_fn(mt_str name, mt_str data, void *user);

typedef struct mt_sse { // all private
    mt_sse_fn *fn_;
    void *user_;
    mt_buf line_, data_, name_;
    unsigned bom_; // bytes of the mark that were seen; past it: 4
    bool after_cr_, has_data_;
} mt_sse;

void mt_sse_init(mt_sse *s, mt_sse_fn *fn, void *user);
void mt_sse_done(mt_sse *s);
size_t mt_sse_held(const mt_sse *s); // bytes of an event that is not whole yet
// 0, what fn returned below 0, -EMSGSIZE where a line or event is too long, or -ENOMEM; then no
// more may be fed.
MT_MUST_USE int mt_sse_feed(mt_sse *s, const char *bytes, size_t len);
