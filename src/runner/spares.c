// SPDX-License-Identifier: Apache-2.0
// Spares: machines made ahead for the images that were asked for last, as far as a machine is the
// same for every run of its image. Each has a supervisor, an id block, groups, a scratch folder, a
// network namespace and a folder with an empty journal; no run, no limits. What must be found again
// after a crash has "spare-…" in its name: a group or a folder of such a name that no journal of a
// run names is removed at the next start; the supervisor leaves when its socket closes, and the
// lock of the block goes with it.
#include "runner/runner.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "capsule/idmap.h"
#include "capsule/place.h"
#include "capsule/syscalls.h"

#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    QUIET_MS = 8,     // without a start: making one takes time from what it was taken for
    STEP_MS = 3,      // between two
    LATEST_MS = 60,   // without such a quiet moment
    POOL_MS = 50,     // until the gateway has made namespaces
    PAUSE_MS = 30000, // after one that died by itself
    IDLE_MS = 600000, // without a start of the image: its spares go
    END_MS = 2000,
};
#define NS_PER_MS 1000000LL

void spares_free(run *u)
{
    spare *s = u->spare;

    if (!s)
        return;
    mt_close_fd(&s->socket);
    mt_close_fd(&s->run_dir_fd);
    mt_close_fd(&s->listen_fd);
    mt_close_fd(&s->journal_read_fd);
    mt_journal_close(s->journal);
    mt_cgroup_close(s->cgroup);
    apart_free(s);
    u->spare = NULL;
}

// --- making one ----------------------------------------------------------------------------------

// Boot and time make the name new, whatever another runner has left.
static void name_spare(runner *r, char out[MT_PLACE_SIZE])
{
    (void)snprintf(out, MT_PLACE_SIZE, "spare-%llx-%x-%u", (unsigned long long)mt_now_us(),
                   (unsigned)getpid(), ++r->spare_number);
}

static int open_image(runner *r, spare *u, mt_run_resources *s, mt_err **err)
{
    char path[MT_DIGEST_LEN + 8];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%.64s/root", u->digest);
    s->image_fd = mt_sys_open_beneath(r->images_fd, path, O_PATH | O_DIRECTORY, 0);
    if (s->image_fd < 0 || fstat(s->image_fd, &st) < 0)
        return mt_fail_errno(err, errno, "cannot open the image %.12s", u->digest);
    u->image_dev = st.st_dev;
    u->image_ino = st.st_ino;
    return 0;
}

static int open_layer(runner *r, const spare *u, mt_run_resources *s, mt_err **err)
{
    mt_layer layer;

    if (!u->layer[0])
        return 0;
    if (mt_layer_open(r->layers_fd, u->layer, &layer) != 0)
        return mt_fail(err, MT_E_NOT_FOUND, "its package layer is gone");
    s->layer_fds[0] = layer.root_fd;
    s->layer_lock_fd = layer.lock_fd;
    s->layer_count = 1;
    return 0;
}

static int take_network(runner *r, mt_network network, mt_run_resources *s, mt_err **err)
{
    if (network == MT_NETWORK_NONE && r->netns_count)
        s->netns_fd = r->netns[--r->netns_count];
    if (network == MT_NETWORK_INTERNET && !gateway_take(r, &s->netns_fd, &s->net_life_fd))
        return mt_fail(err, MT_E_START_FAILED, "there is no network for it now");
    return 0;
}

static int make_resources(runner *r, run *u, mt_run_resources *s, mt_err **err)
{
    if (open_image(r, u->spare, s, err) < 0 || open_layer(r, u->spare, s, err) < 0 ||
        blocks_take(r->blocks, u->place, &s->block, &u->lock_fd, err) < 0)
        return -1;
    u->block = (int)s->block;
    s->block_lock_fd = u->lock_fd;
    s->uid_base = MT_BLOCK_FIRST + s->block * MT_BLOCK_IDS;
    if (blocks_maps(r->blocks, s->block, &s->image_userns_fd, &s->vfs_userns_fd, err) < 0 ||
        mt_cgroup_make(r->cgroups, u->place, NULL, &s->cgroup, err) < 0 ||
        mt_scratch_make(r->scratch, u->place, 0, s->uid_base, &s->scratch_fd, &s->scratch_subvolume,
                        err) < 0)
        return -1;
    s->disk_usage_fd = mt_scratch_usage_fd(r->scratch, s->scratch_subvolume);
    s->service_uid = r->o.service_uid;
    s->service_gid = r->o.service_gid;
    s->seccomp = &r->seccomp;
    s->init_fd = r->init_fd;
    s->dev_fd = r->dev_fd;
    s->mt_fd = r->mt_fd;
    s->sign_in = true;
    s->session_fd = r->session_fd;
    return take_network(r, u->spare->network, s, err);
}

static int launch(runner *r, run *u, mt_run_resources *s, mt_err **err)
{
    _cleanup_close_ int theirs = -1;
    int pair[2], pidfd;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return mt_fail_errno(err, errno, "cannot make a socket pair");
    u->spare->socket = pair[0];
    theirs = pair[1];
    pid = launch_supervisor(r, NULL, s, theirs);
    if (pid < 0)
        return mt_fail_errno(err, pid, "cannot start a supervisor");
    process_name(pid, u->spare->supervisor);
    pidfd = pidfd_open(pid, 0);
    // Without one it leaves by itself, as its socket is closed, and is reaped with the runner.
    if (pidfd < 0 || runs_watch(u, pidfd) < 0)
        return mt_fail_errno(err, EMFILE, "cannot watch a supervisor");
    u->spare->cgroup = MT_TAKE_PTR(s->cgroup);
    u->spare->subvolume = s->scratch_subvolume;
    return 0;
}

// After the fork: no other process has any of it.
static int make_folder(runner *r, run *u, mt_run_resources *s, mt_err **err)
{
    spare *to = u->spare;

    if (start_make_folder(r, u->place, s, err) < 0)
        return -1;
    mt_journal_keep_room(s->journal);
    to->run_dir_fd = MT_TAKE_FD(s->run_dir_fd);
    to->listen_fd = MT_TAKE_FD(s->listen_fd);
    to->journal_read_fd = MT_TAKE_FD(s->journal_read_fd);
    to->journal = MT_TAKE_PTR(s->journal);
    return 0;
}

static int make_one(runner *r, const spare_kind *kind)
{
    char place[MT_PLACE_SIZE];
    _cleanup_err_ mt_err *err = NULL;
    mt_run_resources s;
    run *u;

    name_spare(r, place);
    u = runs_add(r, place, RUN_SPARE);
    if (!u)
        return -ENOMEM;
    resources_init(&s);
    s.place = place; // not of the list, which a fork does not get
    u->spare = apart_new();
    if (u->spare) {
        u->spare->socket = u->spare->run_dir_fd = u->spare->listen_fd = -1;
        u->spare->journal_read_fd = -1;
        memcpy(u->spare->digest, kind->digest, sizeof(u->spare->digest));
        memcpy(u->spare->layer, kind->layer, sizeof(u->spare->layer));
        u->spare->network = kind->network;
    }
    if (!u->spare || make_resources(r, u, &s, &err) < 0 || launch(r, u, &s, &err) < 0 ||
        make_folder(r, u, &s, &err) < 0) {
        mt_log(MT_LOG_WARNING, "no machine could be made ahead", {"reason", mt_err_sentence(err)});
        resources_close(&s);
        spares_drop(u);
        return -EIO;
    }
    resources_close(&s);
    return 0;
}

// --- the pool ------------------------------------------------------------------------------------

static bool is_of(const run *u, const char *digest, const char *layer, mt_network network)
{
    return u->state == RUN_SPARE && u->spare->network == network &&
           mt_streq(u->spare->digest, digest) && mt_streq(u->spare->layer, layer);
}

static bool is_of_kind(const run *u, const spare_kind *kind)
{
    return is_of(u, kind->digest, kind->layer, kind->network);
}

static unsigned count_of(const runner *r, const spare_kind *kind)
{
    unsigned n = 0;

    for (const run *u = r->runs; u; u = u->next)
        n += is_of_kind(u, kind);
    return n;
}

// The kind that has fewer than it should; NULL: none.
static spare_kind *wanted(runner *r)
{
    for (size_t i = 0; i < RUNNER_SPARE_KINDS; i++)
        if (r->spare_kinds[i].digest[0] && count_of(r, &r->spare_kinds[i]) < r->o.spares &&
            (r->spare_kinds[i].network == MT_NETWORK_NONE || gateway_has(r)))
            return &r->spare_kinds[i];
    return NULL;
}

static void arm(runner *r)
{
    int64_t now = mt_boottime_ns();

    if (!r->spares_since_ns)
        r->spares_since_ns = now;
    mt_timer_at(r->spare_timer,
                MT_MIN(now + QUIET_MS * NS_PER_MS, r->spares_since_ns + LATEST_MS * NS_PER_MS));
}

void spares_used(runner *r, const char *digest, const char *layer, mt_network network)
{
    spare_kind *kind = &r->spare_kinds[0];

    if (!r->o.spares || !mt_scratch_is_btrfs(r->scratch))
        return; // a tmpfs has its size from the beginning
    for (size_t i = 0; i < RUNNER_SPARE_KINDS; i++) {
        spare_kind *k = &r->spare_kinds[i];

        if (mt_streq(k->digest, digest) && mt_streq(k->layer, layer) && k->network == network) {
            kind = k;
            break;
        }
        if (k->used_ns < kind->used_ns)
            kind = k;
    }
    (void)snprintf(kind->digest, sizeof(kind->digest), "%s", digest);
    (void)snprintf(kind->layer, sizeof(kind->layer), "%s", layer);
    kind->network = network;
    kind->used_ns = mt_boottime_ns();
    arm(r);
}

// The oldest, which is the likeliest to be ready. An image that was made again is another one.
run *spares_find(runner *r, const char *digest, mt_network network, const mt_run_resources *s)
{
    run *found = NULL;
    struct stat st;

    if (fstat(s->image_fd, &st) < 0)
        return NULL;
    for (run *u = r->runs; u; u = u->next)
        if (is_of(u, digest, s->layer, network) && u->spare->image_dev == st.st_dev &&
            u->spare->image_ino == st.st_ino)
            found = u;
    return found;
}

static bool is_wanted(const runner *r, const run *u)
{
    for (size_t i = 0; i < RUNNER_SPARE_KINDS; i++)
        if (is_of_kind(u, &r->spare_kinds[i]))
            return true;
    return false;
}

static void drop_unwanted(runner *r)
{
    int64_t least = mt_boottime_ns() - IDLE_MS * NS_PER_MS;

    for (size_t i = 0; i < RUNNER_SPARE_KINDS; i++)
        if (r->spare_kinds[i].used_ns < least)
            r->spare_kinds[i].digest[0] = '\0';
    for (run *u = r->runs, *next; u; u = next) {
        next = u->next;
        if (u->state == RUN_SPARE && !is_wanted(r, u))
            spares_drop(u);
    }
}

void spares_on_timer(mt_timer *t, void *data)
{
    runner *r = data;
    spare_kind *kind;

    drop_unwanted(r);
    r->spares_since_ns = 0;
    kind = wanted(r);
    if (kind && mt_boottime_ns() >= r->spares_paused_ns && make_one(r, kind) < 0)
        r->spares_paused_ns = mt_boottime_ns() + PAUSE_MS * NS_PER_MS;
    gateway_fill(r);
    if (kind && wanted(r) && mt_boottime_ns() >= r->spares_paused_ns)
        mt_timer_in_ms(t, STEP_MS);
    else
        mt_timer_in_ms(t, gateway_ready(r) && !gateway_has(r) ? POOL_MS : IDLE_MS);
}

void spares_died(run *u)
{
    u->r->spares_paused_ns = mt_boottime_ns() + PAUSE_MS * NS_PER_MS;
    spares_free(u);
}

// Its supervisor leaves as its socket closes; it is killed so as not to be waited for. What was
// made is the janitor's, once the supervisor's death is seen.
void spares_drop(run *u)
{
    bool watched = u->io != NULL;

    if (u->pidfd >= 0)
        (void)pidfd_send_signal(u->pidfd, SIGKILL, NULL, 0);
    spares_free(u);
    runs_set_state(u, RUN_CLEANING);
    if (!watched)
        runs_clean(u);
}

void spares_drop_layered(runner *r)
{
    for (size_t i = 0; i < RUNNER_SPARE_KINDS; i++)
        if (r->spare_kinds[i].layer[0])
            r->spare_kinds[i].digest[0] = '\0';
    for (run *u = r->runs, *next; u; u = next) {
        next = u->next;
        if (u->state == RUN_SPARE && u->spare->layer[0])
            spares_drop(u);
    }
}

static void end_one(runner *r, run *u)
{
    siginfo_t info;

    if (u->pidfd >= 0)
        (void)waitid(P_PIDFD, (id_t)u->pidfd, &info, WEXITED); // it was killed: not long
    (void)mt_cgroups_sweep(r->cgroups, u->place, mt_boottime_ns() + END_MS * NS_PER_MS);
    (void)mt_scratch_drop(r->scratch, u->place);
    folder_remove(r, u->place);
    blocks_release(MT_TAKE_FD(u->lock_fd));
    runs_remove(u);
}

void spares_end(runner *r)
{
    for (run *u = r->runs; u; u = u->next)
        if (mt_is_spare(mt_str_of(u->id)) && u->pidfd >= 0)
            (void)pidfd_send_signal(u->pidfd, SIGKILL, NULL, 0);
    for (run *u = r->runs, *next; u; u = next) {
        next = u->next;
        if (mt_is_spare(mt_str_of(u->id)))
            end_one(r, u);
    }
}

// --- what another runner left --------------------------------------------------------------------

static void sweep_one(const char *place, void *data)
{
    runner *r = data;
    run *u;

    if (!mt_is_spare(mt_str_of(place)))
        return;
    for (u = r->runs; u; u = u->next)
        if (mt_streq(u->place, place))
            return;
    u = runs_add(r, place, RUN_CLEANING);
    if (u)
        runs_clean(u);
}

void spares_sweep(runner *r)
{
    (void)mt_cgroups_each(r->cgroups, sweep_one, r);
    (void)mt_scratch_each(r->scratch, sweep_one, r);
    folder_each(r, sweep_one, r);
}
