// SPDX-License-Identifier: Apache-2.0
// What a supervisor does when nobody waits for it.
//
// The next command's group and pipes are made ahead, and the last one's group goes, a moment after
// its end: the server that is to tell of that end may want this very processor.
//
// A run that nothing happens in costs little memory: some time after the last record its supervisor
// gives back what making the machine, and commands since, have left behind. Not at once: a run that
// is busy, or over soon, would only ask for it again.
#include "base/pages.h"
#include "runner/supervisor-internal.h"

enum { TIDY_MS = 1, QUIET_MS = 500 };

static void on_tidy(mt_timer *timer, void *data)
{
    supervisor *s = data;

    (void)timer;
    commands_tidy(s->sent);
}

void sup_tidy_later(supervisor *s)
{
    mt_timer_in_ms(s->tidy_timer, TIDY_MS);
}

static void settle(supervisor *s)
{
    commands_settle(s->sent);
    sup_clients_settle(s);
    mt_pages_drop_heap();
    mt_pages_drop_stack();
}

static void on_quiet(mt_timer *timer, void *data)
{
    supervisor *s = data;

    (void)timer;
    if (s->state != SUP_READY)
        return;
    s->quiet = true;
    settle(s);
}

int sup_settle_init(supervisor *s)
{
    s->settle_timer = mt_timer_new(s->loop, on_quiet, s);
    s->tidy_timer = mt_timer_new(s->loop, on_tidy, s);
    return s->settle_timer && s->tidy_timer ? 0 : -1;
}

void sup_settle_later(supervisor *s)
{
    s->quiet = false;
    if (s->state == SUP_READY)
        mt_timer_in_ms(s->settle_timer, QUIET_MS);
}

void sup_settle_again(supervisor *s)
{
    if (s->quiet)
        settle(s);
}
