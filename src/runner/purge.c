// SPDX-License-Identifier: Apache-2.0
// mt-runner --purge: ends everything of an instance whose runner is stopped, and removes its
// control groups and its scratch disk. The journals stay, closed; the state folder is the caller's.
#include "runner/runner.h"

#include "base/clock.h"
#include "capsule/place.h"
#include "capsule/syscalls.h"

#include <stdio.h>
#include <sys/file.h>

enum { PURGE_MS = 15000 };

static void sweep_group(const char *run_id, void *data)
{
    runner *r = data;

    (void)mt_cgroups_sweep(r->cgroups, run_id, mt_boottime_ns() + PURGE_MS * 1000000LL);
}

static void clean_folder(const char *name, void *data)
{
    _cleanup_close_ int folder = -1;
    runner *r = data;

    if (mt_is_spare(mt_str_of(name)))
        folder_remove(r, name);
    else if (mt_is_id(mt_str_of(name)) && folder_open(r, name, &folder, NULL) == 0 &&
             !folder_closed(folder))
        (void)janitor_clean_run(r, name, LOST_SUPERVISOR);
}

static void remove_file(const char *path)
{
    _cleanup_free_ char *half = mt_asprintf("%s.new", path);

    (void)unlink(path);
    if (half)
        (void)unlink(half);
}

int runner_purge(runner *r, mt_err **err)
{
    mt_scratch_options none = {.force_tmpfs = true};
    char lock[64];
    int e = mt_cgroups_kill_helpers(r->cgroups, mt_boottime_ns() + PURGE_MS * 1000000LL);

    if (e < 0)
        return mt_fail_errno(err, e, "the supervisors of instance '%s' do not end", r->o.instance);
    (void)mt_cgroups_each(r->cgroups, sweep_group, r);
    // The whole disk goes: its folders need no removing one by one.
    if (mt_scratch_open(&none, &r->scratch, err) < 0)
        return -1;
    (void)folder_each(r, clean_folder, r);
    blocks_forget_instance(r->blocks);
    remove_file(r->o.scratch);
    mt_cgroups_remove_parent(r->cgroups);
    (void)unlink(r->o.socket);
    gateway_remove(r);
    (void)snprintf(lock, sizeof(lock), "instance-%s", r->o.instance);
    (void)unlinkat(r->ids_fd, lock, 0);
    return 0;
}
