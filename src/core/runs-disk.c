// SPDX-License-Identifier: Apache-2.0
// Between live runs and the watch of file systems (vfs-watch.h).
#include "core/runs-internal.h"

#include "base/clock.h"
#include "vfs/vfs.h"

enum { LOOK_MS = 2000 };

// A run that cannot be reached now is asked again by the next look.
static bool send_to(mt_runs *runs, const char *run_id, mt_buf *b)
{
    live *l = runs_find(runs, run_id);

    return l && l->conn && !l->ending && !b->failed && mt_frame_conn_send(l->conn, b) == 0;
}

static void ask(void *data, const char *run_id, bool hold)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);

    (void)(hold ? mt_put_hold(&b, true) : mt_put_ask_usage(&b));
    (void)send_to(data, run_id, &b);
}

static void let_go(void *data, const char *run_id)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);

    (void)mt_put_hold(&b, false);
    (void)send_to(data, run_id, &b);
}

static bool end(void *data, const char *run_id, const char *sentence)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);

    (void)mt_put_disk_full(&b, sentence);
    return send_to(data, run_id, &b);
}

int runs_watch_disk(mt_runs *runs, mt_err **err)
{
    const mt_vfs_watch_options options = {
        .loop = runs->options.loop,
        .store = runs->options.store,
        .vfs_dirfd = runs->options.vfs_dirfd,
        .ask = ask,
        .let_go = let_go,
        .end = end,
        .data = runs,
    };

    return mt_vfs_watch_new(&options, &runs->watch, err);
}

void runs_told_usage(live *l, const mt_frame *frame)
{
    mt_usage usage;

    if (mt_get_usage(frame, &usage) == 0)
        mt_vfs_watch_usage(l->runs->watch, l->id, usage.file_bytes, usage.dirty_bytes);
}

void runs_watch_mounts(live *l, const mt_run *run, const mt_capsule_def *def)
{
    mt_vfs_record vfs;

    for (size_t i = 0; i < def->vfs_count; i++)
        if (mt_store_vfs_get(l->runs->options.store, NULL, run->namespace_id, def->vfs[i].name,
                             &vfs, NULL) == 0)
            mt_vfs_watch_join(l->runs->watch, l->id, vfs.id);
}

int mt_runs_check_vfs(mt_runs *runs, const mt_vfs_record *record, mt_err **err)
{
    _cleanup_vfs_ mt_vfs *vfs = NULL;
    char limit[MT_SIZE_TEXT];
    uint64_t used = 0;

    if (!mt_vfs_watch_is_over(runs->watch, record->id))
        return 0;
    if (mt_vfs_open(runs->options.vfs_dirfd, record->id, geteuid(), getegid(), &vfs, err) < 0 ||
        mt_vfs_used_now(vfs, LOOK_MS, NULL, &used, err) < 0)
        return -1;
    if (used <= (uint64_t)record->limit_bytes) {
        mt_vfs_watch_forgive(runs->watch, record->id);
        return 0;
    }
    return mt_fail(err, MT_E_DISK_FULL,
                   "file system '%s' holds %.1f MiB, more than its limit of %s: no run that mounts "
                   "it starts until files of it are deleted",
                   record->name, (double)used / (1 << 20),
                   mt_size_format(record->limit_bytes, limit));
}
