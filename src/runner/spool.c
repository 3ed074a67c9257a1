// SPDX-License-Identifier: Apache-2.0
#include "runner/spool.h"

#include "base/fd.h"
#include "capsule/syscalls.h"

#include <stdio.h>

enum {
    PUNCH_STEP = 4 << 20, // a system call for each so many bytes; a whole number of blocks
    BLOCK = 64 << 10,     // never less than a whole one of any file system's
    PAGE = 4 << 10,
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

static int punch_file(int fd, uint64_t from, uint64_t to)
{
    int r = from < to ? fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                                  (off_t)(to - from))
                      : 0;

    return r < 0 ? -errno : 0;
}

static int punch_to(spool *s, uint64_t to)
{
    int r = punch_file(s->fd, s->punched, to);

    if (r == 0)
        s->punched = MT_MAX(s->punched, to);
    return r;
}

// Whole steps only, so that the last MT_SPOOL_BYTES are there at any moment.
static int punch(spool *s)
{
    if (s->bytes < s->punched + MT_SPOOL_BYTES + PUNCH_STEP)
        return 0;
    return punch_to(s, (s->bytes - MT_SPOOL_BYTES) / PUNCH_STEP * PUNCH_STEP);
}

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

uint64_t spool_held(const spool *s)
{
    return whole_pages(s->written - s->punched);
}

int spool_shrink(spool *s, uint64_t keep)
{
    if (s->fd < 0 || s->written < s->punched + keep)
        return 0;
    return punch_to(s, (s->written - keep) / BLOCK * BLOCK);
}

uint64_t spool_shrink_file(int dir_fd, const char *name, uint64_t written, uint64_t keep)
{
    // Past its end where nothing is kept: the last block goes as a whole.
    uint64_t to = keep ? (written - MT_MIN(keep, written)) / BLOCK * BLOCK
                       : (written + BLOCK - 1) / BLOCK * BLOCK;
    _cleanup_close_ int fd = mt_sys_open_beneath(dir_fd, name, O_WRONLY | O_NOCTTY, 0);

    if (fd < 0)
        return 0; // nothing is there
    return punch_file(fd, 0, to) < 0 ? whole_pages(written)
                                     : whole_pages(written - MT_MIN(to, written));
}

static int keep(spool *s, const void *data, size_t len)
{
    int r = s->fd < 0 ? open_file(s) : 0;

    if (r == 0)
        r = mt_write_full(s->fd, data, len);
    if (r == 0)
        s->written += len;
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
