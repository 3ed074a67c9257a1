// SPDX-License-Identifier: Apache-2.0
// When a disk or a file system is full, others decide which run has to end (the server for file
// systems and its own disk, the runner for the scratch disk). While they look, the commands of the
// runs that may have done it stand still.
#include "base/clock.h"
#include "runner/supervisor-internal.h"

enum { HOLD_MS = 5000 }; // whoever asked for it has died or forgotten

static void on_hold_over(mt_timer *timer, void *data)
{
    (void)timer;
    sup_hold(data, false);
}

int sup_disk_init(supervisor *s)
{
    s->hold_timer = mt_timer_new(s->loop, on_hold_over, s);
    return s->hold_timer ? 0 : -1;
}

// On v1 what is frozen cannot die: sup_end() lets go first.
void sup_hold(supervisor *s, bool on)
{
    if (on && s->state >= SUP_ENDING)
        return;
    if (on)
        mt_timer_in_ms(s->hold_timer, HOLD_MS);
    else
        mt_timer_stop(s->hold_timer);
    if (on != s->held)
        (void)mt_cgroup_freeze(s->res->cgroup, on);
    s->held = on;
}

void sup_disk_full(supervisor *s, const char *sentence)
{
    const mt_ended what = {
        .status = MT_RUN_ERROR, .reason = MT_END_DISK_FULL, .limits_reached = MT_LIMIT_DISK};

    sup_end(s, &what, NULL, sentence);
}
