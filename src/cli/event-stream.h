// SPDX-License-Identifier: Apache-2.0
// GET /v1/events for a command of mt: events as they come, gone on with from the last number after
// a cut or a restart of the server, so that no numbered one is lost or comes twice. Pieces of what
// is printed have no number: they may come again.
#pragma once

#include "base/sse.h"
#include "cli/cli.h"

typedef struct event_stream {
    cli *c;
    const char *query;     // "?kind=vfs&last=10"
    const char *new_query; // the same without last and after: where what they name is gone
    bool for_ever;         // as long as it takes; else a server is waited for a minute
    // Takes an event: "change", "output", "console", "text"; others are this module's, or unknown.
    int (*take)(const char *event, const mt_json *data, void *data_of_take, mt_err **err);
    void *data;
    // The module's.
    int64_t after; // the last number, -1: none yet
    mt_sse sse;
    mt_err *fault; // of an event that cannot be taken
    bool heard;    // something came by this connection
    bool ended;    // an `end` came
} event_stream;

// 0: the server has told all that was asked for (follow=false); -1 with *err set, also when it is
// interrupted.
int event_stream_run(event_stream *s, mt_err **err);
