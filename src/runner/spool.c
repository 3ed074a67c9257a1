// SPDX-License-Identifier: Apache-2.0
#include "runner/spool.h"

#include "base/fd.h"
#include "capsule/syscalls.h"

#include <stdio.h>

enum {
    PUNCH_STEP = 4 << 20, // a system call for each so many bytes; a whole number of blocks
};

void spool_init(spool *s, int dir_fd, const char *command_id, int stream)
{
    *s = (spool){.dir_fd = dir_fd, .fd = -1};
    (void)snprintf(s->name, sizeof(s->name), "%.36s.%d", command_id, stream & 7);
    mt_tail_init(&s->counter, 0); // it only counts
}

void spool_done(spool *s)
{
    mt_close_fd(&s->fd);
    mt_tail_done(&s->counter);
}

static int open_file(spool *s)
{
    s->fd = mt_sys_open_beneath(s->dir_fd, s->name, O_WRONLY | O_CREAT | O_EXCL | O_NOCTTY, 0640);
    return s->fd < 0 ? -errno : 0;
}

// Whole steps only, so that the last MT_SPOOL_BYTES are there at any moment.
static int punch(spool *s)
{
    uint64_t to;

    if (s->bytes < s->punched + MT_SPOOL_BYTES + PUNCH_STEP)
        return 0;
    to = (s->bytes - MT_SPOOL_BYTES) / PUNCH_STEP * PUNCH_STEP;
    if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)s->punched,
                  (off_t)(to - s->punched)) < 0)
        return -errno;
    s->punched = to;
    return 0;
}

static int keep(spool *s, const void *data, size_t len)
{
    int r = s->fd < 0 ? open_file(s) : 0;

    if (r == 0)
        r = mt_write_full(s->fd, data, len);
    return r;
}

void spool_add(spool *s, const void *data, size_t len)
{
    int r = 0;

    if (len == 0)
        return;
    mt_tail_add(&s->counter, data, len);
    if (!s->error)
        r = keep(s, data, len);
    s->bytes += len;
    if (!s->error && r == 0)
        r = punch(s);
    if (r < 0) { // what follows a gap would stand at a wrong place
        s->error = -r;
        mt_close_fd(&s->fd);
    }
}

uint64_t spool_chars(const spool *s)
{
    return mt_tail_chars(&s->counter);
}
