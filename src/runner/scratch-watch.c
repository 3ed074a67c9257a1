// SPDX-License-Identifier: Apache-2.0
// The floor of the scratch disk. Runs may be promised more of it than there is; before it is full
// for all of them, the one that uses most ends. No run starts below twice the floor, so that those
// that live have the rest.
#include "runner/runner.h"

#include "base/clock.h"
#include "capsule/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    LOOK_MS = 250,
    LOOK_OFTEN_MS = 50, // below four times the floor
    // After one was told to end: for its folder to be deleted. Where what is left is halved
    // meanwhile, the next one goes sooner.
    AGAIN_MS = 10000,
    AGAIN_SOON_MS = 2000,
};
#define NS_PER_MS 1000000LL

static int connect_to(runner *r, const char *run_id)
{
    _cleanup_close_ int folder = -1, fd = -1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (folder_open(r, run_id, &folder, NULL) != 0)
        return -ENOENT;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/sock", folder);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return MT_TAKE_FD(fd);
}

// A few bytes for a socket that nobody else has written to: they fit.
static int tell(runner *r, const char *run_id, const char *sentence)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);
    _cleanup_close_ int fd = connect_to(r, run_id);

    if (fd < 0)
        return fd;
    if (mt_put_disk_full(&b, sentence) < 0)
        return -ENOMEM;
    return send(fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)b.len ? 0 : -EIO;
}

static run *find_worst(runner *r, uint64_t *ret_used)
{
    run *worst = NULL;
    uint64_t most = 0;

    for (run *u = r->runs; u; u = u->next) {
        uint64_t used = u->state == RUN_LIVE ? mt_scratch_used(r->scratch, u->place) : 0;

        if (used > most) {
            most = used;
            worst = u;
        }
    }
    *ret_used = most;
    return worst;
}

static void end_worst(runner *r, uint64_t bytes, uint64_t left)
{
    char size[MT_SIZE_TEXT], text[320];
    uint64_t used;
    run *u = find_worst(r, &used);
    int e;

    if (!u)
        return;
    (void)snprintf(text, sizeof(text),
                   "disk full: only %llu MiB of the server's scratch disk (%s) are free, and this "
                   "run uses most of it: %llu MiB",
                   (unsigned long long)(left >> 20), mt_size_format((int64_t)bytes, size),
                   (unsigned long long)(used >> 20));
    e = tell(r, u->id, text);
    mt_log(MT_LOG_WARNING, "the scratch disk is nearly full: a run is ended", {"run", u->id},
           {"reason", text}, {"error", e < 0 ? strerror(-e) : NULL});
}

// Servers are told when starts are refused, and when they are taken again.
static void set_low(runner *r, bool low)
{
    if (low == r->scratch_low)
        return;
    r->scratch_low = low;
    server_tell_info(r);
}

static void look(runner *r, uint64_t bytes, uint64_t left)
{
    uint64_t floor = mt_scratch_floor(bytes);
    int64_t now = mt_boottime_ns();

    set_low(r, left < 2 * floor);
    if (left >= floor || now < r->scratch_soon_ns ||
        (now < r->scratch_again_ns && left >= r->scratch_left / 2))
        return;
    end_worst(r, bytes, left);
    r->scratch_left = left;
    r->scratch_soon_ns = now + AGAIN_SOON_MS * NS_PER_MS;
    r->scratch_again_ns = now + AGAIN_MS * NS_PER_MS;
}

void scratch_watch_on_timer(mt_timer *t, void *data)
{
    runner *r = data;
    uint64_t bytes, left;

    r->scratch_watched = r->live_runs > 0 || r->scratch_low;
    if (!r->scratch_watched)
        return;
    mt_scratch_space(r->scratch, &bytes, &left);
    look(r, bytes, left);
    mt_timer_in_ms(t, left < 4 * mt_scratch_floor(bytes) ? LOOK_OFTEN_MS : LOOK_MS);
}

void scratch_watch(runner *r)
{
    if (r->scratch_watched || !mt_scratch_is_btrfs(r->scratch))
        return;
    r->scratch_watched = true;
    mt_timer_in_ms(r->scratch_timer, LOOK_OFTEN_MS);
}

void scratch_told(runner *r, uint64_t bytes, uint64_t left)
{
    if (left >= 2 * mt_scratch_floor(bytes))
        return;
    r->scratch_low = true;
    scratch_watch(r);
}

int scratch_has_room(runner *r, mt_err **err)
{
    char size[MT_SIZE_TEXT];
    uint64_t bytes, left;

    mt_scratch_space(r->scratch, &bytes, &left);
    if (!mt_scratch_is_btrfs(r->scratch) || left >= 2 * mt_scratch_floor(bytes))
        return 0;
    return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                   "only %llu MiB of the server's scratch disk (%s) are free: what is left is for "
                   "the runs that live",
                   (unsigned long long)(left >> 20), mt_size_format((int64_t)bytes, size));
}
