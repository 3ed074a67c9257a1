// SPDX-License-Identifier: Apache-2.0
// Room in memory for answers, of all requests together. One answer has its own bounds (reading.h);
// with hundreds at once these alone would come to gigabytes.
//
//   below half      requests get their turns
//   half and more   no further request is sent: those under way come to their ends
//   past all of it  the try that grows is given up, and made again when there is room
//
// As an answer that is given up leaves its memory, and none begins meanwhile, the others end: it
// cannot come to a standstill.
#include "model/ask.h"

void room_leave(ask *a)
{
    a->models->held -= (int64_t)a->held;
    a->held = 0;
}

bool room_grows(ask *a)
{
    mt_models *m = a->models;

    room_leave(a);
    a->held = reading_held(&a->reading);
    m->held += (int64_t)a->held;
    return m->held + models_kept(m, false) <= MT_MODEL_HELD_MAX;
}

bool room_for_more(mt_models *m)
{
    return m->held + models_kept(m, true) < MT_MODEL_HELD_MAX / 2;
}
