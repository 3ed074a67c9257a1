// SPDX-License-Identifier: Apache-2.0
// What the spools of a run take together: MT_RUN_SPOOL_BYTES, however many commands print. Over it,
// in this order: of commands that nothing is read of any more, the oldest first, what their records
// have no use for; then all of them but that of the last few, in case the server has not read their
// ends yet; then half of the largest that still grow. Each time some more than what is over, as a
// flood would be back at once.
#include "runner/commands-internal.h"

#include <stdio.h>

enum {
    SLACK = 16 << 20,
    // The last characters of a stream at four bytes each, and what a block may cut.
    RECORD_BYTES = 4 * MT_COMMAND_RECORD_CHARS + (64 << 10),
    LATEST = 128, // spools
};

struct spool_left {
    char name[40];
    uint64_t written, held;
};

static void shrink_left(commands *cs, struct spool_left *l, uint64_t keep)
{
    uint64_t held = l->held;

    if (held <= keep)
        return;
    l->held = spool_shrink_file(cs->out_dir_fd, l->name, l->written, keep);
    cs->room.held -= held - MT_MIN(l->held, held);
}

static void drop_first(commands *cs)
{
    spool_room *r = &cs->room;

    shrink_left(cs, &r->left[r->first], 0);
    r->held -= r->left[r->first].held; // what could not be punched is not counted for ever
    r->first++;
    r->count--;
}

static void halve_largest(commands *cs)
{
    spool *largest = NULL;
    uint64_t held;

    for (command *c = cs->live; c; c = c->next)
        for (size_t i = 0; i < MT_ARRAY_SIZE(c->streams); i++)
            if (!c->streams[i].spool.error &&
                (!largest || spool_held(&c->streams[i].spool) > spool_held(largest)))
                largest = &c->streams[i].spool;
    held = largest ? spool_held(largest) : 0;
    if (held <= RECORD_BYTES ||
        spool_shrink(largest, MT_MAX(held / 2, (uint64_t)RECORD_BYTES)) < 0 ||
        spool_held(largest) == held)
        cs->room.stuck = true; // not again before more has come
    else
        cs->room.held -= held - spool_held(largest);
}

static void make_room(commands *cs)
{
    spool_room *r = &cs->room;
    const uint64_t target = MT_RUN_SPOOL_BYTES - SLACK;

    for (; r->held > target && r->shrunk < r->first + r->count; r->shrunk++)
        shrink_left(cs, &r->left[r->shrunk], RECORD_BYTES);
    while (r->held > target && r->count > LATEST)
        drop_first(cs);
    r->stuck = false;
    while (r->held > target && !r->stuck)
        halve_largest(cs);
    r->next = MT_MAX((uint64_t)MT_RUN_SPOOL_BYTES, r->held + SLACK);
}

void room_grew(commands *cs, const spool *s, uint64_t before)
{
    spool_room *r = &cs->room;

    r->held += spool_held(s);
    r->held -= MT_MIN(before, r->held);
    if (r->held > MT_MAX((uint64_t)MT_RUN_SPOOL_BYTES, r->next))
        make_room(cs);
}

static bool reserve(spool_room *r)
{
    struct spool_left *more;

    if (r->first > r->count) { // more than half of it is of no use any more
        memmove(r->left, r->left + r->first, r->count * sizeof(*more));
        r->shrunk -= MT_MIN(r->first, r->shrunk);
        r->first = 0;
    }
    if (r->first + r->count < r->size)
        return true;
    more = realloc(r->left, (r->size * 2 + 16) * sizeof(*more));
    if (!more)
        return false;
    r->left = more;
    r->size = r->size * 2 + 16;
    return true;
}

void room_left(commands *cs, const spool *s)
{
    spool_room *r = &cs->room;
    struct spool_left *l;

    if (spool_held(s) == 0)
        return;
    if (!reserve(r)) {
        r->held -= MT_MIN(spool_held(s), r->held); // it stays as it is, uncounted
        return;
    }
    l = &r->left[r->first + r->count++];
    *l = (struct spool_left){.written = s->written, .held = spool_held(s)};
    memcpy(l->name, s->name, sizeof(l->name));
}

void room_done(commands *cs)
{
    free(cs->room.left);
}
