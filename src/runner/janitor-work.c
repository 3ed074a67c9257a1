// SPDX-License-Identifier: Apache-2.0
// What the janitor's process does: everything that may take a while.
#include "runner/runner.h"

#include "base/clock.h"
#include "capsule/place.h"
#include "capsule/syscalls.h"

#include <stdio.h>

enum { EMPTY_MS = 10000 };

typedef struct story {
    bool begun; // its supervisor has written something of its own
    bool ended, closed;
    char scratch[MT_PLACE_SIZE], cgroup[MT_PLACE_SIZE]; // names; "": none
    int block;
    char layer[MT_LAYER_TEXT]; // that it was to build; "": none
    bool built;
    mt_end_reason reason;
    char why[MT_LAYER_WHY_MAX]; // how it ended, as the journal has it
} story;

static void take_place(mt_str name, char out[MT_PLACE_SIZE])
{
    if (mt_is_place(name))
        (void)snprintf(out, MT_PLACE_SIZE, "%.*s", (int)name.len, name.data);
}

static void take_end(const mt_ended *ended, story *ret)
{
    ret->ended = true;
    ret->built = ended->status == MT_RUN_FINISHED && ended->reason == MT_END_EXITED;
    ret->reason = ended->reason;
    (void)snprintf(ret->why, sizeof(ret->why), "%.*s", (int)ended->failure_details.len,
                   ended->failure_details.data);
}

static int read_story(int folder_fd, story *ret)
{
    _cleanup_close_ int fd = mt_sys_open_beneath(folder_fd, "journal", O_RDONLY, 0);
    _cleanup_(mt_journal_reader_free_p) mt_journal_reader *reader = NULL;
    mt_record record;

    *ret = (story){.block = -1};
    if (fd < 0)
        return -errno;
    if (mt_journal_reader_new(fd, &reader, NULL) < 0)
        return -ENOMEM;
    while (mt_journal_next(reader, 0, &record, NULL, NULL) > 0) {
        if (record.type == MT_REC_ENDED)
            take_end(&record.ended, ret);
        ret->begun |= record.type != MT_REC_BOOT && record.type != MT_REC_RESOURCE_MADE;
        ret->closed |= record.type == MT_REC_CLOSED;
        if (record.type != MT_REC_RESOURCE_MADE)
            continue;
        if (record.resource.kind == MT_RESOURCE_CGROUP)
            take_place(record.resource.name, ret->cgroup);
        if (record.resource.kind == MT_RESOURCE_SCRATCH)
            take_place(record.resource.name, ret->scratch);
        if (record.resource.kind == MT_RESOURCE_LAYER && mt_is_digest(record.resource.name))
            (void)snprintf(ret->layer, sizeof(ret->layer), "%.64s", record.resource.name.data);
        if (record.resource.kind == MT_RESOURCE_BLOCK) {
            uint64_t n;

            if (mt_parse_u64(record.resource.name, 65535, &n))
                ret->block = (int)n;
        }
    }
    return 0;
}

static void put_lost(mt_journal *j, lost_as lost)
{
    mt_record record = {
        .type = MT_REC_ENDED,
        .ended = {.status = MT_RUN_ERROR, .terminated_by = MT_STR("")},
    };

    if (lost == LOST_NODE) {
        record.ended.reason = MT_END_NODE_LOST;
        record.ended.failure_details = MT_STR("the machine was restarted while the run was alive");
    } else {
        record.ended.reason = MT_END_SUPERVISOR_LOST;
        record.ended.failure_details =
            MT_STR("the supervisor of the run died, so the run was stopped");
    }
    (void)mt_journal_append(j, &record, true, NULL);
}

static void put_gone(mt_journal *j, mt_run_resource kind, const char *name)
{
    mt_record record = {
        .type = MT_REC_RESOURCE_GONE,
        .resource = {.kind = kind, .name = mt_str_of(name)},
    };

    (void)mt_journal_append(j, &record, false, NULL);
}

static void write_end(int folder_fd, const story *s, lost_as lost, clean_result *ret)
{
    _cleanup_(mt_journal_close_p) mt_journal *j = NULL;
    mt_record closed = {.type = MT_REC_CLOSED};
    char number[16];

    if (mt_journal_open(folder_fd, "journal", &j, NULL) < 0) {
        ret->result = -EIO;
        return;
    }
    if (!s->ended) {
        put_lost(j, lost);
        ret->was_lost = true;
    }
    if (s->cgroup[0])
        put_gone(j, MT_RESOURCE_CGROUP, s->cgroup);
    if (s->scratch[0])
        put_gone(j, MT_RESOURCE_SCRATCH, s->scratch);
    if (s->block >= 0) {
        (void)snprintf(number, sizeof(number), "%d", s->block);
        put_gone(j, MT_RESOURCE_BLOCK, number);
    }
    if (mt_journal_append(j, &closed, false, NULL) < 0)
        ret->result = -EIO;
    mt_journal_give_room(j);
}

static int sweep_group(runner *r, const char *place)
{
    return mt_cgroups_sweep(r->cgroups, place, mt_boottime_ns() + EMPTY_MS * 1000000LL);
}

int janitor_clean_place(runner *r, const char *place)
{
    int e = sweep_group(r, place);

    if (e < 0)
        return e;
    folder_remove(r, place);
    return mt_scratch_drop(r->scratch, place);
}

// Whatever a crash left half done is done again: each step is fine where there is nothing.
clean_result janitor_clean_run(runner *r, const char *run_id, lost_as lost)
{
    clean_result ret = {0};
    _cleanup_close_ int folder = -1;
    story s;

    if (folder_open(r, run_id, &folder, NULL) != 0 || read_story(folder, &s) < 0) {
        ret.result = -ENOENT; // no journal names anything: nothing may be touched
        return ret;
    }
    if (s.cgroup[0])
        ret.result = sweep_group(r, s.cgroup);
    if (ret.result < 0)
        return ret;
    if (s.scratch[0])
        (void)mt_scratch_drop(r->scratch, s.scratch);
    (void)unlinkat(folder, "sock", 0);
    if (s.layer[0] && !s.closed && r->layers_fd >= 0) // a purge has none
        janitor_conclude_layer(r, s.layer, s.built, s.ended ? s.reason : MT_END_SUPERVISOR_LOST,
                               s.why);
    ret.unbegun = lost == LOST_RUNNER && !s.begun;
    if (ret.unbegun)
        folder_remove(r, run_id);
    else if (!s.closed)
        write_end(folder, &s, lost, &ret);
    // A builder's is nobody's to look at, and its runner may be gone before the answer.
    if (s.layer[0])
        folder_remove(r, run_id);
    return ret;
}

// Asked twice it may come to the second when a new run has taken the name: only what is closed
// goes.
void janitor_forget_run(runner *r, const char *run_id, mt_forget what)
{
    _cleanup_close_ int folder = -1;

    if (folder_open(r, run_id, &folder, NULL) != 0 || !folder_closed(folder))
        return;
    if (what == MT_FORGET_OUTPUTS)
        folder_remove_outputs(folder);
    else
        folder_remove(r, run_id);
}
