// SPDX-License-Identifier: Apache-2.0
// The runs that are not closed: watched, cleaned, swept. The list is not the truth (journals and
// locks are): it is rebuilt from the run folders at every start.
#include "runner/runner.h"

#include "base/str.h"
#include "capsule/place.h"
#include "capsule/syscalls.h"

#include <stdio.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

run *runs_find(runner *r, const char *run_id)
{
    for (run *u = r->runs; u; u = u->next)
        if (mt_streq(u->id, run_id))
            return u;
    return NULL;
}

run *runs_add(runner *r, const char *run_id, run_state state)
{
    run *u = apart_new();

    if (!u)
        return NULL;
    u->r = r;
    (void)snprintf(u->id, sizeof(u->id), "%s", run_id);
    (void)snprintf(u->place, sizeof(u->place), "%s", run_id);
    u->state = state;
    u->pidfd = u->lock_fd = u->block = -1;
    u->next = r->runs;
    r->runs = u;
    r->live_runs += state == RUN_LIVE;
    return u;
}

void runs_set_state(run *u, run_state state)
{
    u->r->live_runs -= u->state == RUN_LIVE;
    u->r->live_runs += state == RUN_LIVE;
    u->state = state;
}

void runs_remove(run *u)
{
    run **at = &u->r->runs;

    while (*at != u)
        at = &(*at)->next;
    *at = u->next;
    u->r->live_runs -= u->state == RUN_LIVE;
    spares_free(u);
    mt_io_remove(u->io);
    mt_close_fd(&u->pidfd);
    mt_close_fd(&u->lock_fd);
    apart_free(u);
}

void runs_clean(run *u)
{
    runs_set_state(u, janitor_clean(u->r->janitor, u) < 0 ? RUN_STUCK : RUN_CLEANING);
}

// The supervisor is gone, whatever the reason: the journal tells the janitor whether it had come to
// its end.
static void on_death(mt_io *io, uint32_t events, void *data)
{
    run *u = data;
    siginfo_t info = {0};
    char status[16];

    if (waitid(P_PIDFD, (id_t)u->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid &&
        u->state == RUN_LIVE && !u->stopped &&
        (info.si_code != CLD_EXITED || info.si_status != 0)) {
        (void)snprintf(status, sizeof(status), "%d", info.si_status);
        mt_log(MT_LOG_ERROR, "a supervisor died", {"run", u->id},
               {info.si_code == CLD_EXITED ? "exit" : "signal", status});
    }
    mt_io_remove(u->io);
    u->io = NULL;
    mt_close_fd(&u->pidfd);
    u->lost = u->inherited ? LOST_RUNNER : LOST_SUPERVISOR;
    if (u->state == RUN_SPARE)
        spares_died(u);
    runs_clean(u);
    if (u->waited[0])
        layers_left(u->r);
}

int runs_watch(run *u, int pidfd)
{
    u->pidfd = pidfd;
    u->io = mt_io_add(u->r->loop, pidfd, EPOLLIN, on_death, u);
    return u->io ? 0 : -ENOMEM;
}

void runs_remove_closed(runner *r)
{
    for (run *u = r->runs, *next; u; u = next) {
        _cleanup_close_ int folder = -1;

        next = u->next;
        if (u->state != RUN_CLEANING || folder_open(r, u->id, &folder, NULL) != 0 ||
            !folder_closed(folder))
            continue;
        blocks_release(MT_TAKE_FD(u->lock_fd));
        runs_remove(u);
    }
}

// Nothing of it is left.
static void gone(run *u)
{
    runner *r = u->r;
    char layer[MT_LAYER_TEXT];

    blocks_release(MT_TAKE_FD(u->lock_fd));
    memcpy(layer, u->layer, sizeof(layer));
    runs_remove(u);
    if (layer[0])
        layers_ended(r, layer);
}

void runs_cleaned(runner *r, const char *run_id, clean_result result)
{
    run *u = runs_find(r, run_id);

    if (!u)
        return;
    if (result.result == -ENOENT && u->layer[0]) // a janitor that died had come to its end with it
        result.result = 0;
    if (result.result < 0) {
        mt_log(MT_LOG_ERROR, "a run could not be removed; it is tried again", {"run", run_id},
               {"error", strerror(-result.result)});
        runs_set_state(u, RUN_STUCK);
    }
    if (result.was_lost && !u->stopped)
        mt_log(MT_LOG_WARNING, "a run had no end written; it is now an error", {"run", run_id},
               {"reason", u->lost == LOST_NODE ? "nodeLost" : "supervisorLost"});
    if (result.was_lost)
        server_gone(r, run_id);
    if (result.unbegun) {
        mt_log(MT_LOG_WARNING, "a run had not begun when its runner died; it may be sent again",
               {"run", run_id});
        server_gone(r, run_id);
    }
    if (u->sweeper)
        server_swept(u->sweeper, u->sweep_tag, run_id, result.result);
    u->sweeper = NULL;
    if (result.result < 0)
        return;
    if (u->forget)
        (void)janitor_forget(r->janitor, run_id, MT_FORGET_ALL);
    gone(u);
}

// What the journal of an open run says about who looks after it.
typedef struct owner {
    char boot_id[64];
    pid_t pid;
    uint64_t start_time;
    int block;
    char place[MT_PLACE_SIZE];  // "": none was named
    char layer[MT_LAYER_TEXT];  // that it builds; "": none
    char waited[MT_LAYER_TEXT]; // that it waits for; "": none
    char starter[MT_ID_TEXT];
} owner;

// "DIGEST STARTER"; the starter may be missing.
static void read_waited(mt_str name, owner *ret)
{
    const size_t digest = MT_LAYER_TEXT - 1;
    mt_str rest;

    if (name.len <= digest || !mt_is_digest((mt_str){name.data, digest}))
        return;
    rest = (mt_str){name.data + digest + 1, name.len - digest - 1};
    (void)snprintf(ret->waited, sizeof(ret->waited), "%.64s", name.data);
    if (mt_is_id(rest))
        (void)snprintf(ret->starter, sizeof(ret->starter), "%.36s", rest.data);
}

static void read_resource(const mt_record *record, owner *ret)
{
    char text[MT_LAYER_TEXT];
    int pid = 0;
    unsigned long long start = 0;

    (void)snprintf(text, sizeof(text), "%.*s", (int)record->resource.name.len,
                   record->resource.name.data);
    if (record->resource.kind == MT_RESOURCE_BLOCK)
        ret->block = atoi(text);
    if (record->resource.kind == MT_RESOURCE_CGROUP && mt_is_place(record->resource.name))
        (void)snprintf(ret->place, sizeof(ret->place), "%.36s", text);
    if (record->resource.kind == MT_RESOURCE_LAYER && mt_is_digest(record->resource.name))
        (void)snprintf(ret->layer, sizeof(ret->layer), "%.64s", text);
    if (record->resource.kind == MT_RESOURCE_WAITED)
        read_waited(record->resource.name, ret);
    if (record->resource.kind == MT_RESOURCE_SUPERVISOR &&
        sscanf(text, "%d %llu", &pid, &start) == 2) {
        ret->pid = pid;
        ret->start_time = start;
    }
}

static int read_owner(int folder_fd, owner *ret)
{
    _cleanup_close_ int fd = mt_sys_open_beneath(folder_fd, "journal", O_RDONLY, 0);
    _cleanup_(mt_journal_reader_free_p) mt_journal_reader *reader = NULL;
    mt_record record;

    *ret = (owner){.block = -1};
    if (fd < 0 || mt_journal_reader_new(fd, &reader, NULL) < 0)
        return -EIO;
    while (mt_journal_next(reader, 0, &record, NULL, NULL) > 0) {
        if (record.type == MT_REC_BOOT)
            (void)snprintf(ret->boot_id, sizeof(ret->boot_id), "%.*s", (int)record.boot.id.len,
                           record.boot.id.data);
        if (record.type == MT_REC_RESOURCE_MADE)
            read_resource(&record, ret);
    }
    return 0;
}

// A pidfd of exactly that process, or -1. Opened first: a number that was given to another one
// meanwhile has another start time.
static int supervisor_pidfd(const owner *o)
{
    int fd = o->pid > 0 ? pidfd_open(o->pid, 0) : -1;

    if (fd >= 0 && process_start_time(o->pid) != o->start_time)
        mt_close_fd(&fd);
    return fd;
}

// Decides what becomes of an open run that nobody watches.
static void take_on(run *u, const owner *o)
{
    int pidfd;

    u->block = o->block;
    memcpy(u->layer, o->layer, sizeof(u->layer));
    memcpy(u->waited, o->waited, sizeof(u->waited));
    memcpy(u->starter, o->starter, sizeof(u->starter));
    u->forget |= u->layer[0] != '\0';
    if (o->place[0])
        memcpy(u->place, o->place, sizeof(u->place));
    if (!mt_streq(o->boot_id, u->r->boot_id)) {
        u->block = -1; // its lock was in memory, and is another's now
        u->lost = LOST_NODE;
        runs_clean(u);
        return;
    }
    pidfd = supervisor_pidfd(o);
    if (pidfd >= 0) {
        cpus_adopt(u);
        if (runs_watch(u, pidfd) == 0)
            runs_set_state(u, RUN_LIVE);
        return;
    }
    u->lost = u->inherited ? LOST_RUNNER : LOST_SUPERVISOR;
    if (u->block >= 0 && u->lock_fd < 0) {
        u->lock_fd = blocks_relock(u->r->blocks, (uint32_t)u->block);
        if (u->lock_fd == -EWOULDBLOCK &&
            blocks_is_of(u->r->blocks, (uint32_t)u->block, u->place)) {
            // Somebody lives who has not written his name yet.
            u->lock_fd = -1;
            runs_set_state(u, RUN_UNKNOWN);
            return;
        }
        if (u->lock_fd < 0) // it was given away again
            u->lock_fd = u->block = -1;
    }
    runs_clean(u);
}

static void adopt_one(runner *r, const char *run_id)
{
    _cleanup_close_ int folder = -1;
    _cleanup_err_ mt_err *err = NULL;
    owner o;
    run *u;

    if (folder_open(r, run_id, &folder, &err) != 0) {
        if (err)
            mt_log(MT_LOG_WARNING, "a run folder is passed over", {"error", mt_err_sentence(err)});
        return;
    }
    if (folder_closed(folder))
        return;
    if (read_owner(folder, &o) < 0 || !o.boot_id[0]) {
        // A crash came before its first record: nothing else of it was made. Here and now, for the
        // janitor would not tell it from one that is just being made.
        folder_remove(r, run_id);
        return;
    }
    u = runs_add(r, run_id, RUN_UNKNOWN);
    if (!u)
        return;
    u->inherited = true;
    take_on(u, &o);
}

static void adopt_named(const char *name, void *data)
{
    runner *r = data;

    if (mt_is_id(mt_str_of(name)) && !runs_find(r, name))
        adopt_one(r, name);
}

int runs_adopt(runner *r, mt_err **err)
{
    int e = folder_each(r, adopt_named, r);

    return e < 0 ? mt_fail_errno(err, e, "cannot list the run folders") : 0;
}

static void look_again(run *u)
{
    _cleanup_close_ int folder = -1;
    owner o;
    int there;

    if (u->state == RUN_STUCK) {
        runs_clean(u);
        return;
    }
    there = folder_open(u->r, u->id, &folder, NULL);
    if (there > 0) // the janitor of a runner that was killed came to its end with it
        gone(u);
    else if (there == 0 && read_owner(folder, &o) == 0)
        take_on(u, &o);
}

void runs_look_again(runner *r)
{
    for (run *u = r->runs, *next; u; u = next) {
        next = u->next;
        if (u->state == RUN_STUCK || u->state == RUN_UNKNOWN)
            look_again(u);
    }
}

static int sweep_known(run *u, mt_forget forget, conn *asker, uint32_t tag, mt_err **err)
{
    if (u->state == RUN_LIVE || u->state == RUN_UNKNOWN)
        return mt_fail(err, MT_E_CONFLICT, "run '%s' is alive: terminate it first", u->id);
    if (u->sweeper)
        return mt_fail(err, MT_E_CONFLICT, "run '%s' is being swept already", u->id);
    u->sweeper = asker;
    u->sweep_tag = tag;
    u->forget |= forget == MT_FORGET_ALL; // outputs only: asked again when it is closed
    if (u->state == RUN_STUCK)
        runs_clean(u);
    return 0;
}

int runs_sweep(runner *r, const char *run_id, mt_forget forget, conn *asker, uint32_t tag,
               mt_err **err)
{
    _cleanup_close_ int folder = -1;
    run *u = runs_find(r, run_id);
    int there;

    if (u)
        return sweep_known(u, forget, asker, tag, err);
    there = folder_open(r, run_id, &folder, err);
    if (there < 0)
        return -1;
    if (there == 0 && !folder_closed(folder)) {
        adopt_one(r, run_id);
        u = runs_find(r, run_id);
        if (u)
            return sweep_known(u, forget, asker, tag, err);
    }
    if (there == 0 && forget != MT_FORGET_NOTHING)
        (void)janitor_forget(r->janitor, run_id, forget);
    server_swept(asker, tag, run_id, 0);
    return 0;
}
