// SPDX-License-Identifier: Apache-2.0
// Starting a run: with a spare (spares.c) where there is one for the image; else everything a
// supervisor needs is found or made, journalled before it is made, and handed over by fork.
#include "runner/runner.h"

#include "base/clock.h"
#include "base/fd.h"
#include "capsule/idmap.h"
#include "capsule/syscalls.h"

#include <stdio.h>
#include <sys/pidfd.h>

enum { REFILL_MS = 50, REFILL_LOW_MS = 4 };

static int check_ceilings(runner *r, const mt_plan *p, mt_err **err)
{
    char text[MT_SIZE_TEXT];
    uint64_t memory = mt_cgroups_memory_cap(r->cgroups), disk = 0, free_disk;

    if (p->limits.memory_bytes > memory)
        return mt_fail_field(err, MT_E_CAPACITY_EXCEEDED, "limits.memory",
                             "limits.memory is over what this machine has for all runs (%s)",
                             mt_size_format((int64_t)memory, text));
    if (p->limits.pids > RUNNER_PIDS_MAX)
        return mt_fail_field(err, MT_E_BAD_FIELD, "limits.pids", "limits.pids is over %d",
                             RUNNER_PIDS_MAX);
    mt_scratch_space(r->scratch, &disk, &free_disk);
    if (mt_scratch_is_btrfs(r->scratch) && p->limits.disk_bytes > disk)
        return mt_fail_field(err, MT_E_CAPACITY_EXCEEDED, "limits.disk",
                             "limits.disk is over the size of the scratch disk (%s)",
                             mt_size_format((int64_t)disk, text));
    if (p->deadline_ns > mt_boottime_ns() + MT_DURATION_MS_MAX * 1000000)
        return mt_fail_field(err, MT_E_BAD_FIELD, "deadline",
                             "the run's end is over 366 days away");
    if (p->deadline_ns <= mt_boottime_ns())
        return mt_fail(err, MT_E_START_FAILED, "the run's time was over before it began");
    return 0;
}

static int open_image(runner *r, const char *digest, int *ret_fd, mt_err **err)
{
    char path[MT_DIGEST_LEN + 8];

    (void)snprintf(path, sizeof(path), "%.64s/root", digest);
    *ret_fd = mt_sys_open_beneath(r->images_fd, path, O_PATH | O_DIRECTORY, 0);
    if (*ret_fd < 0 && errno == ENOENT)
        return mt_fail(err, MT_E_NOT_FOUND,
                       "the image %.12s is not on this machine: mt-image build makes it", digest);
    return *ret_fd < 0 ? mt_fail_errno(err, errno, "cannot open the image %.12s", digest) : 0;
}

static int use_layer(runner *r, const char *digest, mt_run_resources *s)
{
    mt_layer layer;
    int there = mt_layer_open(r->layers_fd, digest, &layer);

    if (there != 0)
        return there;
    s->layer_fds[0] = layer.root_fd;
    s->layer_lock_fd = layer.lock_fd;
    s->layer_count = 1;
    return 0;
}

// The layer of the plan's packages. Where there is none yet it is going to be built, and the run's
// supervisor waits for it.
static int open_layer(runner *r, const mt_plan *p, mt_run_resources *s, mt_err **err)
{
    int there;

    if (p->package_count == 0)
        return 0;
    mt_layer_digest(p->image_digest, p->packages, p->package_count, s->layer);
    there = use_layer(r, s->layer, s);
    if (there < 0)
        return mt_fail_errno(err, there, "cannot open the layer of the packages");
    if (there == 0)
        return 0;
    s->layers_fd = r->layers_fd;
    return layers_want(r, p, s->layer, err);
}

static int open_names(runner *r, const mt_plan *p, mt_run_resources *s, mt_err **err)
{
    if (open_image(r, p->image_digest, &s->image_fd, err) < 0)
        return -1;
    if (open_layer(r, p, s, err) < 0)
        return -1;
    for (uint32_t i = 0; i < p->mount_count; i++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "%.36s/files", p->mounts[i].vfs_id);
        s->vfs_fds[i] = mt_sys_open_beneath(r->vfs_fd, path, O_PATH | O_DIRECTORY, 0);
        if (s->vfs_fds[i] < 0)
            return mt_fail_errno(err, errno, "cannot open the file system mounted as '%s'",
                                 p->mounts[i].mount_name);
    }
    return 0;
}

static int add_boot(runner *r, mt_journal *j, mt_err **err)
{
    mt_record record = {.type = MT_REC_BOOT, .boot = {.id = mt_str_of(r->boot_id)}};

    return mt_journal_add(j, &record, err);
}

static int add_resource(mt_journal *j, mt_run_resource kind, const char *name, mt_err **err)
{
    mt_record record = {
        .type = MT_REC_RESOURCE_MADE,
        .resource = {.kind = kind, .name = mt_str_of(name)},
    };

    return mt_journal_add(j, &record, err);
}

// For the next runner, which has to know who waits.
static int add_waited(mt_journal *j, const char *layer, const char *starter, mt_err **err)
{
    char name[MT_LAYER_TEXT + MT_ID_TEXT];

    (void)snprintf(name, sizeof(name), "%s %s", layer, starter);
    return add_resource(j, MT_RESOURCE_WAITED, name, err);
}

// What a spare has is named before the run gets it; for others it is only going to be made.
static int add_places(runner *r, const mt_plan *p, mt_run_resources *s, const char *supervisor,
                      mt_err **err)
{
    char number[16];

    (void)snprintf(number, sizeof(number), "%u", s->block);
    if (add_boot(r, s->journal, err) < 0 ||
        add_resource(s->journal, MT_RESOURCE_BLOCK, number, err) < 0 ||
        add_resource(s->journal, MT_RESOURCE_CGROUP, s->place, err) < 0)
        return -1;
    if (mt_scratch_is_btrfs(r->scratch) && !s->builds &&
        add_resource(s->journal, MT_RESOURCE_SCRATCH, s->place, err) < 0)
        return -1;
    if (supervisor && add_resource(s->journal, MT_RESOURCE_SUPERVISOR, supervisor, err) < 0)
        return -1;
    if (s->builds && add_resource(s->journal, MT_RESOURCE_LAYER, s->builds, err) < 0)
        return -1;
    if (s->layers_fd >= 0 && add_waited(s->journal, s->layer, p->starter, err) < 0)
        return -1;
    return mt_journal_flush(s->journal, err);
}

int start_make_folder(runner *r, const char *name, mt_run_resources *s, mt_err **err)
{
    if (folder_make(r, name, &s->run_dir_fd, err) < 0 ||
        mt_journal_create(s->run_dir_fd, "journal", 0640, 0, r->o.service_gid, &s->journal, err) <
            0)
        return -1;
    s->journal_read_fd = mt_sys_open_beneath(s->run_dir_fd, "journal", O_RDONLY, 0);
    if (s->journal_read_fd < 0)
        return mt_fail_errno(err, errno, "cannot open the journal of the run");
    return folder_listen(r, s->run_dir_fd, &s->listen_fd, err);
}

static int open_build(runner *r, mt_run_resources *s, mt_err **err)
{
    s->scratch_fd = mt_layer_build_open(r->layers_fd, s->builds, "disk");
    s->conf_fd = mt_layer_build_open(r->layers_fd, s->builds, "conf");
    if (s->scratch_fd < 0 || s->conf_fd < 0)
        return mt_fail_errno(err, MT_MIN(s->scratch_fd, s->conf_fd),
                             "cannot open the folder of a package layer");
    return 0;
}

static int make_places(runner *r, const mt_plan *p, mt_run_resources *s, mt_err **err)
{
    if (mt_cgroup_make(r->cgroups, p->run_id, &p->limits, &s->cgroup, err) < 0 ||
        cpus_bind(r, &p->limits, s->cgroup, &s->cpus, err) < 0)
        return -1;
    if (s->builds)
        return open_build(r, s, err);
    if (!mt_scratch_is_btrfs(r->scratch))
        return 0;
    if (mt_scratch_make(r->scratch, p->run_id, p->limits.disk_bytes, s->uid_base, &s->scratch_fd,
                        &s->scratch_subvolume, err) < 0)
        return -1;
    s->disk_usage_fd = mt_scratch_usage_fd(r->scratch, s->scratch_subvolume);
    return 0;
}

static int make_all(runner *r, const mt_plan *p, mt_run_resources *s, mt_err **err)
{
    s->uid_base = MT_BLOCK_FIRST + s->block * MT_BLOCK_IDS;
    s->run_id = s->place = p->run_id;
    if (blocks_maps(r->blocks, s->block, &s->image_userns_fd, &s->vfs_userns_fd, err) < 0 ||
        start_make_folder(r, p->run_id, s, err) < 0 || add_places(r, p, s, NULL, err) < 0 ||
        make_places(r, p, s, err) < 0)
        return -1;
    s->service_uid = r->o.service_uid;
    s->service_gid = r->o.service_gid;
    s->seccomp = &r->seccomp;
    s->init_fd = r->init_fd;
    s->dev_fd = r->dev_fd;
    if (s->builds) // a layer: nobody's machine
        return 0;
    s->mt_fd = r->mt_fd;
    s->sign_in = true;
    s->session_fd = r->session_fd;
    return 0;
}

// Without one made ahead, the machine makes what network = "none" needs.
static int take_network(runner *r, const mt_plan *p, mt_run_resources *s, mt_err **err)
{
    if (p->network == MT_NETWORK_INTERNET)
        return gateway_wait(r, &s->netns_fd, &s->net_life_fd, err);
    if (r->netns_count)
        s->netns_fd = r->netns[--r->netns_count];
    return 0;
}

// What was made for a run that could not be started: nobody has seen it yet, so all of it goes.
static void undo(runner *r, const char *run_id, mt_run_resources *s, bool made_folder)
{
    mt_cgroup_close(MT_TAKE_PTR(s->cgroup));
    if (made_folder) {
        (void)mt_cgroups_sweep(r->cgroups, run_id, 0);
        (void)mt_scratch_drop(r->scratch, run_id);
        janitor_ask_scratch(r->janitor);
    }
    resources_close(s);
    if (made_folder)
        folder_remove(r, run_id);
    if (s->block_lock_fd >= 0)
        blocks_release(MT_TAKE_FD(s->block_lock_fd));
}

static int launch(runner *r, mt_plan *p, mt_run_resources *s, mt_err **err)
{
    run *u = runs_add(r, p->run_id, RUN_LIVE);
    pid_t pid;
    int pidfd;

    if (!u)
        return mt_fail_oom(err);
    pid = launch_supervisor(r, p, s, -1);
    if (pid < 0) {
        runs_remove(u);
        return mt_fail_errno(err, pid, "cannot start a supervisor");
    }
    u->block = (int)s->block;
    u->cpus = s->cpus;
    u->cpu_milli = p->limits.cpu_milli;
    u->lock_fd = MT_TAKE_FD(s->block_lock_fd);
    if (s->builds) {
        (void)snprintf(u->layer, sizeof(u->layer), "%s", s->builds);
        u->forget = true;
    }
    if (s->layers_fd >= 0) {
        (void)snprintf(u->waited, sizeof(u->waited), "%s", s->layer);
        (void)snprintf(u->starter, sizeof(u->starter), "%s", p->starter);
    }
    pidfd = pidfd_open(pid, 0);
    // Without a pidfd the periodic look finds it by its journal.
    if (pidfd < 0 || runs_watch(u, pidfd) < 0)
        runs_set_state(u, RUN_UNKNOWN);
    return 0;
}

// --- with a spare --------------------------------------------------------------------------------

// The folder becomes the run's once its journal names all that the spare has.
static int take_folder(runner *r, const mt_plan *p, run *u, mt_run_resources *s, mt_err **err)
{
    s->run_dir_fd = MT_TAKE_FD(u->spare->run_dir_fd);
    s->listen_fd = MT_TAKE_FD(u->spare->listen_fd);
    s->journal_read_fd = MT_TAKE_FD(u->spare->journal_read_fd);
    s->journal = MT_TAKE_PTR(u->spare->journal);
    return add_places(r, p, s, u->spare->supervisor, err) < 0
               ? -1
               : folder_rename(r, u->place, p->run_id, err);
}

static int complete(runner *r, const mt_plan *p, run *u, mt_run_resources *s, mt_err **err)
{
    s->run_id = p->run_id;
    s->place = u->place;
    s->block = (uint32_t)u->block;
    if (take_folder(r, p, u, s, err) < 0)
        return -1;
    u->spare->renamed = true;
    if (mt_cgroup_limit(u->spare->cgroup, &p->limits, err) < 0 ||
        cpus_bind(r, &p->limits, u->spare->cgroup, &u->cpus, err) < 0)
        return -1;
    u->cpu_milli = p->limits.cpu_milli;
    return mt_scratch_limit(r->scratch, u->spare->subvolume, p->limits.disk_bytes, err);
}

// 0: the run is the spare's; 1: it has to be made.
static int start_spare(runner *r, const mt_plan *p, const void *bytes, size_t len,
                       mt_run_resources *s)
{
    run *u = NULL;
    _cleanup_err_ mt_err *err = NULL;
    int e = 0;

    if (len <= MT_HANDOVER_PLAN_MAX && s->layers_fd < 0 &&
        (p->network == MT_NETWORK_NONE || gateway_ready(r)))
        u = spares_find(r, p->image_digest, p->network, s);
    if (!u)
        return 1;
    if (complete(r, p, u, s, &err) == 0 &&
        (e = mt_supervisor_hand_over(u->spare->socket, bytes, len, s, p->mount_count)) == 0) {
        memcpy(u->id, p->run_id, sizeof(u->id));
        runs_set_state(u, RUN_LIVE);
        spares_free(u);
        return 0;
    }
    mt_log(MT_LOG_WARNING, "a machine made ahead could not be used", {"run", p->run_id},
           {"reason", err ? mt_err_sentence(err) : strerror(-e)});
    mt_close_fd(&s->run_dir_fd);
    mt_close_fd(&s->listen_fd);
    mt_close_fd(&s->journal_read_fd);
    mt_journal_close(MT_TAKE_PTR(s->journal));
    if (u->spare->renamed)
        folder_remove(r, p->run_id);
    spares_drop(u);
    return 1;
}

// --- without -------------------------------------------------------------------------------------

void start_on_refill(mt_timer *t, void *data)
{
    runner *r = data;
    unsigned have = r->netns_count + r->netns_asked;

    r->refill_armed = false;
    if (have < RUNNER_NETNS_POOL)
        janitor_ask_netns(r->janitor, RUNNER_NETNS_POOL - have);
    gateway_fill(r);
    janitor_ask_scratch(r->janitor);
}

// Not at once: what is made ahead would compete with the start for which it was taken. A pool that
// is half empty waits less.
void start_refill_later(runner *r)
{
    bool low = r->netns_count < RUNNER_NETNS_POOL / 2 || gateway_is_low(r);

    if (r->refill_armed)
        return;
    r->refill_armed = true;
    mt_timer_in_ms(r->refill_timer, low ? REFILL_LOW_MS : REFILL_MS);
}

static int start_new(runner *r, mt_plan *p, mt_run_resources *s, mt_err **err)
{
    int result = take_network(r, p, s, err);
    bool folder = false;

    if (result == 0)
        result = blocks_take(r->blocks, p->run_id, &s->block, &s->block_lock_fd, err);
    if (result == 0) {
        result = make_all(r, p, s, err);
        folder = s->run_dir_fd >= 0;
    }
    if (result == 0)
        result = launch(r, p, s, err);
    if (result < 0)
        undo(r, p->run_id, s, folder);
    return result;
}

int start_run(runner *r, const void *bytes, size_t len, char ret_id[37], mt_err **err)
{
    _cleanup_(mt_plan_free_p) mt_plan *p = NULL;
    mt_run_resources s;
    bool waits;
    int result;

    resources_init(&s);
    if (mt_plan_decode(bytes, len, &p, err) < 0)
        return -1;
    if (runs_find(r, p->run_id))
        return mt_fail(err, MT_E_ALREADY_EXISTS, "there is a run '%s' already", p->run_id);
    result = check_ceilings(r, p, err);
    if (result == 0)
        result = scratch_has_room(r, err);
    if (result == 0)
        result = open_names(r, p, &s, err);
    if (result == 0 && start_spare(r, p, bytes, len, &s) != 0)
        result = start_new(r, p, &s, err);
    waits = s.layers_fd >= 0;
    resources_close(&s);
    if (result < 0)
        return -1;
    memcpy(ret_id, p->run_id, 37);
    if (!waits) // else when the layer is there
        spares_used(r, p->image_digest, s.layer, p->network);
    scratch_watch(r);
    start_refill_later(r);
    return 0;
}

int start_build(runner *r, mt_plan *p, const char *layer, const char *below, mt_err **err)
{
    mt_run_resources s;
    int result;

    resources_init(&s);
    s.builds = layer;
    result = mt_plan_validate(p, err);
    if (result == 0)
        result = open_image(r, p->image_digest, &s.image_fd, err);
    if (result == 0 && below && use_layer(r, below, &s) != 0)
        result = mt_fail(err, MT_E_NOT_FOUND, "the package lists are gone");
    if (result == 0)
        result = start_new(r, p, &s, err);
    resources_close(&s);
    return result;
}
