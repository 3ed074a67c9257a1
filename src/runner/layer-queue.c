// SPDX-License-Identifier: Apache-2.0
// Which builds of package layers go on. A build belongs to those who wait for it. Who they are is
// known by their supervisors, which the runner watches, and to another runner by their journals; so
// there is nothing that somebody who may be killed would have to give back. When the last one is
// gone, what waits for its turn is dropped and what goes on is stopped.
//
// The users who wait are served in turn (layer-turns.h).
#include "runner/layers-internal.h"

#include "base/clock.h"

#include <errno.h>

enum {
    LISTS_FRESH_S = 12 * 3600,
    WANTED_MAX = 256, // builds that go on or wait for their turn
    WANTED_EACH = 64, // of them, those that one user's runs wait for
};

// --- package lists -------------------------------------------------------------------------------

bool builds_lists_are_fresh(runner *r, const char *digest)
{
    mt_layer layer;
    int64_t age_us;

    if (mt_layer_open(r->layers_fd, digest, &layer) != 0)
        return false;
    age_us = mt_now_us() - layer.made_us;
    mt_close_fd(&layer.root_fd);
    mt_close_fd(&layer.lock_fd);
    return age_us >= 0 && age_us < LISTS_FRESH_S * 1000000LL;
}

// --- who waits -----------------------------------------------------------------------------------

static bool may_wait(const run *u)
{
    return u->waited[0] && (u->state == RUN_LIVE || u->state == RUN_UNKNOWN);
}

// Packages are wanted by runs, lists by packages that wait for their turn.
static void look_who_waits(runner *r)
{
    build *b;

    for (b = r->builds; b; b = b->next)
        b->wanted = false;
    for (const run *u = r->runs; u; u = u->next)
        if (may_wait(u) && (b = builds_find(r, u->waited)))
            b->wanted = true;
    for (const build *p = r->builds; p; p = p->next)
        if (p->wanted && !p->run_id[0] && !builds_is_lists(p) && (b = builds_find(r, p->lists)))
            b->wanted = true;
}

// What a run waits for right now: the build of its packages, or the lists that are read before it.
static const build *waits_for(const runner *r, const run *u)
{
    const build *b = may_wait(u) ? builds_find(r, u->waited) : NULL;
    const build *lists = b && !b->run_id[0] ? builds_find(r, b->lists) : NULL;

    return lists ? lists : b;
}

static int list_waits(const runner *r, turns_wait **ret, size_t *ret_count)
{
    turns_wait *list;
    size_t count = 0;

    for (const run *u = r->runs; u; u = u->next)
        count++;
    list = calloc(count + 1, sizeof(*list));
    if (!list)
        return -ENOMEM;
    count = 0;
    for (const run *u = r->runs; u; u = u->next) {
        const build *b = waits_for(r, u);

        if (b)
            list[count++] = (turns_wait){.who = u->starter,
                                         .what = b,
                                         .number = b->number,
                                         .ready = b->ready,
                                         .running = b->run_id[0] != '\0'};
    }
    *ret = list;
    *ret_count = count;
    return 0;
}

static void drop(runner *r, build *b)
{
    mt_layer_build_drop(r->layers_fd, b->digest);
    builds_forget(r, b);
    janitor_prune(r->janitor, r->o.layers_size);
}

// Nobody waits for it. What is running is dropped when its builder is gone, unless somebody wants
// it again by then.
static void leave(runner *r, build *b)
{
    if (!b->run_id[0]) {
        drop(r, b);
        return;
    }
    if (!b->left)
        mt_log(MT_LOG_INFO, "no run waits for these packages any more", {"layer", b->digest},
               {"run", b->run_id});
    b->left = true;
    mt_layer_build_leave(r->layers_fd, b->digest);
    builds_kill(r, b);
}

// --- whose turn it is ----------------------------------------------------------------------------

static unsigned running(const runner *r)
{
    unsigned n = 0;

    for (const build *b = r->builds; b; b = b->next)
        n += b->run_id[0] != '\0';
    return n;
}

// They are missing or old and not being read already.
static void want_lists(runner *r, build *b)
{
    build *lists = builds_add(r, b->image, NULL, 0);
    _cleanup_err_ mt_err *err = NULL;

    if (!lists)
        return; // out of memory: tried again with the timer
    if (builds_promise(r, lists, &err) == 0)
        return;
    builds_forget(r, lists);
    builds_give_up(r, b, mt_err_sentence(err));
}

static build *first_over(const runner *r, const char *lists)
{
    build *b = r->builds;

    while (b && (b->run_id[0] || builds_is_lists(b) || !mt_streq(b->lists, lists)))
        b = b->next;
    return b;
}

// Of all that wait and lie over the same lists the first one asks for them.
static void look_at_lists(runner *r)
{
    for (build *b = r->builds, *next; b; b = next) {
        build *first;

        next = b->next;
        if (b->run_id[0] || builds_is_lists(b))
            continue;
        first = first_over(r, b->lists);
        if (first && first != b) {
            b->ready = first->ready;
            continue;
        }
        b->ready = !builds_find(r, b->lists) && builds_lists_are_fresh(r, b->lists);
        if (!b->ready && !builds_find(r, b->lists))
            want_lists(r, b);
    }
}

static build *by_number(const runner *r, uint64_t number)
{
    build *b = r->builds;

    while (b && b->number != number)
        b = b->next;
    return b;
}

static void begin_in_turn(runner *r)
{
    while (running(r) < RUNNER_BUILDS_MAX) {
        _cleanup_free_ turns_wait *waits = NULL;
        const turns_wait *next;
        size_t count;

        if (list_waits(r, &waits, &count) < 0)
            return; // tried again with the timer
        next = turns_next(&r->build_turns, waits, count);
        if (!next)
            return;
        turns_served(&r->build_turns, next->who);
        builds_start(r, by_number(r, next->number));
    }
}

void builds_go_on(runner *r)
{
    look_who_waits(r);
    for (build *b = r->builds, *next; b; b = next) {
        next = b->next;
        if (!b->wanted)
            leave(r, b);
    }
    look_at_lists(r);
    begin_in_turn(r);
    if (r->builds)
        mt_timer_in_ms(r->layers_timer, BUILDS_WATCH_MS);
}

static bool has_waiting(const runner *r, const char *starter, const build *b)
{
    for (const run *u = r->runs; u; u = u->next)
        if (may_wait(u) && mt_streq(u->starter, starter) && mt_streq(u->waited, b->digest))
            return true;
    return false;
}

static int has_room(const runner *r, const char *starter, mt_err **err)
{
    unsigned all = 0, own = 0;

    for (const build *b = r->builds; b; b = b->next) {
        all++;
        own += has_waiting(r, starter, b);
    }
    if (own >= WANTED_EACH)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "packages are being installed for %u other capsules that you started: "
                       "terminate some, or try again when some are ready",
                       own);
    if (all >= WANTED_MAX)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "packages are being installed for %u other capsules: try again later", all);
    return 0;
}

int layers_want(runner *r, const mt_plan *p, const char *digest, mt_err **err)
{
    build *b;

    // Not before the run is there to wait: nothing is built for one that could not be started.
    mt_timer_at(r->layers_timer, 0);
    if (builds_find(r, digest))
        return 0;
    if (has_room(r, p->starter, err) < 0)
        return -1;
    b = builds_add(r, p->image_digest, p->packages, p->package_count);
    if (!b)
        return mt_fail_oom(err);
    if (builds_promise(r, b, err) < 0) {
        builds_forget(r, b);
        return -1;
    }
    return 0;
}

void layers_left(runner *r)
{
    if (r->builds)
        mt_timer_at(r->layers_timer, 0);
}
