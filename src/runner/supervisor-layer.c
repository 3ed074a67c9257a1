// SPDX-License-Identifier: Apache-2.0
// A run whose package layer is not there yet: its supervisor waits, serves its clients, keeps the
// deadline and can be terminated like any other; only its machine is not begun. It looks at the
// folder of layers by itself, some times a second. So nobody has to tell it anything, and whoever
// dies meanwhile, the answer is found: a layer, a reason, or neither and no build. That it is there
// is what keeps the build going (layer-queue.c).
#include "base/clock.h"
#include "capsule/layers.h"
#include "runner/supervisor-internal.h"

enum {
    LOOK_MS = 40,
    LOST_LOOKS = 50, // of a build's folder in a row that find none: a rename falls between two
};

static void add_names(supervisor *s, mt_buf *b)
{
    for (uint32_t i = 0; i < s->plan->package_count; i++)
        (void)mt_buf_addf(b, "%s%s", i ? ", " : "", s->plan->packages[i]);
}

static void say_begin(supervisor *s)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_RECORD_TEXT_MAX);

    (void)mt_buf_adds(&text, "installing packages: ");
    add_names(s, &text);
    sup_note(s, mt_buf_str(&text));
}

// What a first start is busy with before anything else.
static void look_at_lists(supervisor *s)
{
    char lists[MT_LAYER_TEXT];

    if (s->lists_told)
        return;
    mt_layer_digest(s->plan->image_digest, NULL, 0, lists);
    s->lists_told = mt_layer_is_building(s->res->layers_fd, lists);
    if (s->lists_told)
        sup_note(s, "the package lists of the image are read first");
}

static void fail(supervisor *s, const char *sentence)
{
    const mt_ended what = {.status = MT_RUN_ERROR, .reason = MT_END_START_FAILED};

    s->waits = false;
    sup_end(s, &what, NULL, sentence);
}

static void take(supervisor *s, mt_layer *layer)
{
    int64_t now = mt_monotonic_us();

    s->waits = false;
    s->res->layer_fds[0] = layer->root_fd;
    s->res->layer_lock_fd = layer->lock_fd;
    s->res->layer_count = 1;
    sup_record_phase(s, "packages", (uint64_t)(now - s->began_us));
    s->began_us = now;
    sup_begin_machine(s);
}

static void on_look(mt_timer *timer, void *data)
{
    supervisor *s = data;
    _cleanup_buf_ mt_buf why = MT_BUF_INIT(MT_LAYER_WHY_MAX);
    const char *digest = s->res->layer;
    mt_layer layer;

    if (s->state != SUP_MAKING)
        return;
    if (mt_layer_open(s->res->layers_fd, digest, &layer) == 0) {
        take(s, &layer);
        return;
    }
    if (mt_layer_failure(s->res->layers_fd, digest, &why) == 0) {
        fail(s, mt_buf_str(&why));
        return;
    }
    look_at_lists(s);
    s->lost_looks = mt_layer_is_building(s->res->layers_fd, digest) ? 0 : s->lost_looks + 1;
    if (s->lost_looks > LOST_LOOKS)
        fail(s, "the packages could not be installed: what installs them is gone");
    else
        mt_timer_in_ms(timer, LOOK_MS);
}

int sup_layer_wait(supervisor *s)
{
    s->waits = true;
    s->layer_timer = mt_timer_new(s->loop, on_look, s);
    if (!s->layer_timer)
        return -1;
    say_begin(s);
    mt_timer_at(s->layer_timer, 0);
    return 0;
}

char *sup_layer_late(supervisor *s, const char *limit)
{
    _cleanup_buf_ mt_buf names = MT_BUF_INIT(MT_RECORD_TEXT_MAX);

    add_names(s, &names);
    return mt_asprintf("out of time while packages were installed: maxDuration %s; packages: %s",
                       limit, mt_buf_str(&names));
}
