// SPDX-License-Identifier: Apache-2.0
// The parts of an event stream that are not numbered: what the commands of a run print, the console
// of an app run, what a model says. Read from where they are kept, from where this stream has come
// to, so that a slow reader holds no memory. On the loop.
#pragma once

#include "core/interactions.h"
#include "server/api.h"

typedef enum mt_event_run {
    MT_EVENT_RUN_NONE,
    MT_EVENT_RUN_CAPSULE,
    MT_EVENT_RUN_APP,
    MT_EVENT_RUN_INTERACTION,
} mt_event_run;

struct mt_followed;

// {.kind, .run_id} before its first use; other members are private.
typedef struct mt_event_parts {
    mt_event_run kind;
    const char *run_id;
    struct mt_followed *commands; // under way, or ended and not yet told of whole
    size_t command_count, command_cap, turn;
    int64_t line; // told of the console up to this one
    size_t line_from;
    mt_interaction_said said;
    bool answered, told; // the interaction has ended; and all that its model said was told
} mt_event_parts;

// Begins with the commands that are under way.
int mt_event_parts_begin(mt_event_parts *p, const mt_api *api, mt_err **err);
void mt_event_parts_done(mt_event_parts *p);
// Appends some of what is new, not much more than `most` bytes. 1: there may be more; 0: that is
// all for now.
int mt_event_parts_put(mt_event_parts *p, const mt_api *api, size_t most, mt_buf *b, mt_err **err);
// A numbered event comes. 1: it may be told; 0: first what it ends (mt_event_parts_put()).
int mt_event_parts_meet(mt_event_parts *p, const mt_api *api, const mt_event *e, mt_err **err);
// Something may be printed that nobody announces: look now and then.
bool mt_event_parts_print(const mt_event_parts *p);
