// SPDX-License-Identifier: Apache-2.0
// The streams of GET /v1/events, on the loop. Each pulls: when something was committed it reads the
// events after its own number from the store, as its user sees them now, and as far as its client
// takes them. So a slow reader costs nothing but his queue, which is bounded; one who takes nothing
// for long is told where to go on and let go.
#pragma once

#include "base/loop.h"
#include "server/api.h"
#include "server/event-parts.h"

typedef struct mt_event_streams mt_event_streams;

enum {
    MT_EVENT_STREAMS = 1024,     // at a time
    MT_EVENT_STREAMS_EACH = 256, // of one user, less the fewer are left (base/share.h)
};

// NULL when out of memory.
mt_event_streams *mt_event_streams_new(mt_loop *loop, const mt_api *api);
// After the HTTP server and the store: whoever commits wakes them. Accepts NULL.
void mt_event_streams_free(mt_event_streams *streams);
// Something was committed. Any thread.
void mt_event_streams_wake(mt_event_streams *streams);
// There is news of that run or command: something that it printed, or that its end is on the disk.
void mt_event_streams_news(mt_event_streams *streams, const char *topic);
// The server stops: all are told so, and where to go on.
void mt_event_streams_stop(mt_event_streams *streams);

// Checked by who asks. Texts are copied; NULL as in mt_event_filter.
typedef struct mt_event_stream_spec {
    mt_user user;
    const char *namespace_id; // filter
    const char *kinds;        // filter, "": none
    const char *run_id;       // filter
    const char *watched_id;   // namespace that the user has to see for as long as it goes on; NULL
    mt_event_run parts;       // of run_id: told, too
    int64_t after;
    bool follow; // else it ends with the events that were there at its begin
} mt_event_stream_spec;

// What answers. Any thread; NULL when out of memory.
mt_taker *mt_event_stream_taker(const mt_api *api, const mt_event_stream_spec *spec);
// The run has ended by whose sign-in it was opened: it is told so and ends. False: this taker is no
// event stream.
bool mt_event_stream_run_ended(mt_taker *taker);
