// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/fd.h"
#include "capsule/journal-internal.h"
#include "capsule/syscalls.h"

#include <stdio.h>
#include <sys/stat.h>

enum {
    PENDING_MAX = 32 << 10, // written by itself when more has been added
    ROOM = 64 << 10,        // blocks that are kept behind the end, and when they are made again
    ROOM_LOW = 32 << 10,
};

struct mt_journal {
    int fd;
    uint64_t last_seq; // written
    uint64_t added_seq;
    mt_buf pending; // added and not written
    bool keeps_room;
    off_t room_end;
};

static mt_journal *journal_of(int fd)
{
    mt_journal *j = calloc(1, sizeof(*j));

    if (j) {
        j->fd = fd;
        j->pending = (mt_buf)MT_BUF_INIT(PENDING_MAX + MT_RECORD_BYTES_MAX);
    }
    return j;
}

int mt_journal_create(int dirfd, const char *name, mode_t mode, uid_t uid, gid_t gid,
                      mt_journal **ret, mt_err **err)
{
    _cleanup_close_ int fd =
        mt_sys_open_beneath(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_APPEND, 0600);
    mt_journal *j;

    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot make the journal '%s'", name);
    if (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
        return mt_fail_errno(err, errno, "cannot hand over the journal '%s'", name);
    if (mt_write_full(fd, MT_JOURNAL_MAGIC, MT_JOURNAL_MAGIC_LEN) < 0)
        return mt_fail_errno(err, errno, "cannot write the journal '%s'", name);
    j = journal_of(fd);
    if (!j)
        return mt_fail_oom(err);
    (void)MT_TAKE_FD(fd);
    *ret = j;
    return 0;
}

int mt_journal_adopt(int fd, uint64_t last_seq, mt_journal **ret, mt_err **err)
{
    mt_journal *j = journal_of(fd);

    if (!j)
        return mt_fail_oom(err);
    j->last_seq = j->added_seq = last_seq;
    *ret = j;
    return 0;
}

struct mt_journal_reader {
    int fd;
    off_t at; // of the first byte in buf
    mt_buf buf;
    size_t pos; // in buf: of the next record
    uint64_t last_seq;
    bool begun;
};

int mt_journal_reader_new(int fd, mt_journal_reader **ret, mt_err **err)
{
    mt_journal_reader *r = calloc(1, sizeof(*r));

    if (!r)
        return mt_fail_oom(err);
    r->fd = fd;
    r->buf = (mt_buf)MT_BUF_INIT(2 * MT_RECORD_BYTES_MAX);
    *ret = r;
    return 0;
}

void mt_journal_reader_free(mt_journal_reader *r)
{
    if (!r)
        return;
    mt_buf_done(&r->buf);
    free(r);
}

void mt_journal_reader_settle(mt_journal_reader *r)
{
    mt_buf_consume(&r->buf, r->pos);
    r->at += (off_t)r->pos;
    r->pos = 0;
    mt_buf_settle(&r->buf);
}

// Reads on from the end of what is there. 1 with more bytes, 0 at the end of the file.
static int fill(mt_journal_reader *r, mt_err **err)
{
    char *room;
    ssize_t n;

    if (r->pos) {
        mt_buf_consume(&r->buf, r->pos);
        r->at += (off_t)r->pos;
        r->pos = 0;
    }
    room = mt_buf_reserve(&r->buf, MT_RECORD_BYTES_MAX);
    if (!room)
        return mt_fail_oom(err);
    do
        n = pread(r->fd, room, MT_RECORD_BYTES_MAX, r->at + (off_t)r->buf.len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return mt_fail_errno(err, errno, "cannot read the journal");
    mt_buf_added(&r->buf, (size_t)n);
    return n > 0;
}

static int begin(mt_journal_reader *r, mt_err **err)
{
    while (r->buf.len < MT_JOURNAL_MAGIC_LEN) {
        int more = fill(r, err);

        if (more <= 0)
            return more;
    }
    if (memcmp(r->buf.data, MT_JOURNAL_MAGIC, MT_JOURNAL_MAGIC_LEN) != 0)
        return mt_fail(err, MT_E_IO, "this file is no journal of a run");
    r->pos = MT_JOURNAL_MAGIC_LEN;
    r->begun = true;
    return 1;
}

// 1 with the record that follows, whatever its number; *ret_len its bytes at buf.data + pos.
static int next_any(mt_journal_reader *r, mt_record *ret, size_t *ret_len, mt_err **err)
{
    for (;;) {
        ssize_t len =
            mt_record_decode(r->buf.len ? r->buf.data + r->pos : "", r->buf.len - r->pos, ret);
        int more;

        // A record out of its order is damage as well.
        if (len > 0 && ret->seq == r->last_seq + 1) {
            *ret_len = (size_t)len;
            return 1;
        }
        // A damaged tail may be a record that is just being written: what was read of it is
        // forgotten, so that the next call looks again.
        if (len != 0) {
            r->buf.len = r->pos;
            return 0;
        }
        more = fill(r, err);
        if (more <= 0)
            return more;
    }
}

int mt_journal_next(mt_journal_reader *r, uint64_t after, mt_record *ret, mt_str *ret_frame,
                    mt_err **err)
{
    int found = r->begun ? 1 : begin(r, err);

    while (found > 0) {
        mt_record record;
        size_t len = 0;

        found = next_any(r, &record, &len, err);
        if (found <= 0)
            break;
        r->last_seq = record.seq;
        r->pos += len;
        if (record.seq > after) {
            *ret = record;
            if (ret_frame)
                *ret_frame = (mt_str){r->buf.data + r->pos - len, len};
            return 1;
        }
    }
    return found;
}

int mt_journal_open(int dirfd, const char *name, mt_journal **ret, mt_err **err)
{
    _cleanup_close_ int fd = mt_sys_open_beneath(dirfd, name, O_RDWR | O_APPEND | O_NOCTTY, 0);
    _cleanup_(mt_journal_reader_free_p) mt_journal_reader *r = NULL;
    mt_record record;
    mt_journal *j;
    struct stat st;
    int more;

    if (fd < 0 || fstat(fd, &st) < 0)
        return mt_fail_errno(err, errno, "cannot open the journal '%s'", name);
    if (!S_ISREG(st.st_mode))
        return mt_fail(err, MT_E_IO, "the journal '%s' is no regular file", name);
    if (mt_journal_reader_new(fd, &r, err) < 0 || !r)
        return -1;
    do
        more = mt_journal_next(r, 0, &record, NULL, err);
    while (more > 0);
    if (more < 0)
        return mt_wrap(err, "opening the journal '%s'", name);
    // A crash right after the file was made leaves it without its whole header.
    if (!r->begun &&
        (ftruncate(fd, 0) < 0 || mt_write_full(fd, MT_JOURNAL_MAGIC, MT_JOURNAL_MAGIC_LEN) < 0))
        return mt_fail_errno(err, errno, "cannot write the journal '%s'", name);
    if (r->begun && ftruncate(fd, r->at + (off_t)r->pos) < 0)
        return mt_fail_errno(err, errno, "cannot cut the torn end of the journal '%s'", name);
    j = journal_of(fd);
    if (!j)
        return mt_fail_oom(err);
    j->last_seq = j->added_seq = r->last_seq;
    (void)MT_TAKE_FD(fd);
    *ret = j;
    return 0;
}

void mt_journal_close(mt_journal *j)
{
    if (!j)
        return;
    mt_close_fd(&j->fd);
    mt_buf_done(&j->pending);
    free(j);
}

// Without room the journal is written as any file is.
static void keep_room(mt_journal *j, off_t end)
{
    if (j->keeps_room && end + ROOM_LOW > j->room_end &&
        fallocate(j->fd, FALLOC_FL_KEEP_SIZE, end, ROOM) == 0)
        j->room_end = end + ROOM;
}

void mt_journal_keep_room(mt_journal *j)
{
    struct stat st;

    j->keeps_room = true;
    if (fstat(j->fd, &st) < 0)
        return;
    j->room_end = st.st_blocks * 512; // somebody may have kept some before
    keep_room(j, st.st_size);
}

void mt_journal_give_room(mt_journal *j)
{
    struct stat st;

    j->keeps_room = false;
    if (fstat(j->fd, &st) == 0)
        (void)!ftruncate(j->fd, st.st_size); // frees what lies behind, though the size stays
}

// What a failed append may have left would hide all that comes after it.
static int write_pending(mt_journal *j, mt_err **err)
{
    struct stat before;
    int r;

    if (fstat(j->fd, &before) < 0)
        return mt_fail_errno(err, errno, "cannot examine the journal");
    r = mt_write_full(j->fd, j->pending.data, j->pending.len);
    if (r < 0) {
        (void)!ftruncate(j->fd, before.st_size);
        return mt_fail_errno(err, -r, "cannot write the journal");
    }
    keep_room(j, before.st_size + (off_t)j->pending.len);
    return 0;
}

int mt_journal_flush(mt_journal *j, mt_err **err)
{
    int r = j->pending.len ? write_pending(j, err) : 0;

    if (r == 0)
        j->last_seq = j->added_seq;
    else
        j->added_seq = j->last_seq; // what was added is lost, its numbers are not
    mt_buf_clear(&j->pending);
    return r;
}

int mt_journal_add(mt_journal *j, mt_record *r, mt_err **err)
{
    size_t before;

    if (j->pending.len >= PENDING_MAX && mt_journal_flush(j, err) < 0)
        return -1;
    before = j->pending.len;
    r->seq = j->added_seq + 1;
    if (r->time_us == 0)
        r->time_us = mt_now_us();
    if (mt_record_encode(r, &j->pending) < 0) {
        j->pending.len = before;
        j->pending.failed = 0;
        return mt_fail_oom(err);
    }
    j->added_seq = r->seq;
    return 0;
}

int mt_journal_sync(mt_journal *j, mt_err **err)
{
    return fdatasync(j->fd) < 0 ? mt_fail_errno(err, errno, "cannot sync the journal") : 0;
}

int mt_journal_append(mt_journal *j, mt_record *r, bool sync, mt_err **err)
{
    if (mt_journal_add(j, r, err) < 0 || mt_journal_flush(j, err) < 0)
        return -1;
    return sync ? mt_journal_sync(j, err) : 0;
}

uint64_t mt_journal_last_seq(const mt_journal *j)
{
    return j->last_seq;
}

int mt_journal_fd(const mt_journal *j)
{
    return j->fd;
}
