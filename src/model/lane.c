// SPDX-License-Identifier: Apache-2.0
// Turns of a provider's requests: so many at once, the others in the order in which they came. A
// request that waits to be tried again keeps its place among those at once: a provider that is
// short of breath gets fewer of them.
#include "model/ask.h"

struct lane {
    lane *next;
    char *provider;
    unsigned limit, running;
    ask *first, **last; // that wait
};

static lane *lane_of(mt_models *m, const char *provider)
{
    lane *l;

    for (l = m->lanes; l; l = l->next)
        if (mt_streq(l->provider, provider))
            return l;
    l = calloc(1, sizeof(*l));
    if (!l || !(l->provider = strdup(provider))) {
        free(l);
        return NULL;
    }
    l->last = &l->first;
    l->next = m->lanes;
    m->lanes = l;
    return l;
}

int lane_enter(ask *a)
{
    lane *l = lane_of(a->models, a->provider);

    if (!l)
        return -1;
    l->limit = a->concurrency; // what the operator set last
    a->lane = l;
    a->state = ASK_QUEUED;
    a->queue_next = NULL;
    *l->last = a;
    l->last = &a->queue_next;
    return 0;
}

static void leave_queue(lane *l, ask *a)
{
    ask **at = &l->first;

    while (*at && *at != a)
        at = &(*at)->queue_next;
    if (!*at)
        return;
    *at = a->queue_next;
    if (!a->queue_next)
        l->last = at;
}

static void free_if_empty(mt_models *m, lane *l)
{
    lane **at = &m->lanes;

    if (l->running > 0 || l->first)
        return;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    free(l->provider);
    free(l);
}

void lane_leave(ask *a)
{
    lane *l = a->lane;

    if (!l)
        return;
    if (a->state == ASK_QUEUED)
        leave_queue(l, a);
    else
        l->running--;
    a->lane = NULL;
    free_if_empty(a->models, l);
}

unsigned lane_limit(const ask *a)
{
    return a->lane ? a->lane->limit : a->concurrency;
}

static ask *take_turn(mt_models *m)
{
    if (!m->lanes || !room_for_more(m))
        return NULL;
    for (lane *l = m->lanes; l; l = l->next) {
        ask *a = l->first;

        if (!a || l->running >= l->limit)
            continue;
        leave_queue(l, a);
        l->running++;
        return a;
    }
    return NULL;
}

// ask_send() may end an ask at once, and so come here again: its turns are given by the loop that
// runs already.
void lane_pump(mt_models *m)
{
    ask *a;

    if (m->pumping)
        return;
    m->pumping = true;
    while (!m->stopping && (a = take_turn(m)))
        ask_send(a);
    m->pumping = false;
}
