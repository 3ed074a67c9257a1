// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"
#include "base/tap.h"
#include "capsule/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static char folder[] = "/tmp/test-journal-XXXXXX";
static int dir = -1;

static mt_record note(const char *text)
{
    return (mt_record){.type = MT_REC_NOTE, .note = {.text = mt_str_of(text)}};
}

static mt_record ended(void)
{
    return (mt_record){
        .type = MT_REC_ENDED,
        .ended = {.status = MT_RUN_ERROR,
                  .reason = MT_END_TIMEOUT,
                  .limit_ms = 600000,
                  .failure_details = MT_STR("out of time"),
                  .limits_reached = MT_LIMIT_PIDS,
                  .terminated_by = MT_STR("ada"),
                  .memory_peak = 1ull << 33,
                  .cpu_us = 5},
    };
}

static int count(const char *name, uint64_t after, mt_record *last)
{
    _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    _cleanup_(mt_journal_reader_free_p) mt_journal_reader *r = NULL;
    mt_record record;
    int n = 0;

    if (mt_journal_reader_new(fd, &r, NULL) < 0)
        return -1;
    while (mt_journal_next(r, after, &record, NULL, NULL) > 0) {
        n++;
        if (last)
            *last = record; // its texts die with the reader: numbers only
    }
    return n;
}

static void test_append_and_read(void)
{
    _cleanup_(mt_journal_close_p) mt_journal *j = NULL;
    _cleanup_err_ mt_err *err = NULL;
    mt_record last, r = note("one"), e = ended();
    struct stat st;

    CHECK_INT(mt_journal_create(dir, "a", 0640, (uid_t)-1, (gid_t)-1, &j, &err), 0);
    CHECK(fstatat(dir, "a", &st, 0) == 0 && (st.st_mode & 07777) == 0640);
    CHECK_INT(mt_journal_append(j, &r, false, &err), 0);
    CHECK_INT(r.seq, 1);
    CHECK(r.time_us > 0);
    CHECK_INT(mt_journal_append(j, &e, true, &err), 0);
    CHECK_INT(mt_journal_last_seq(j), 2);
    CHECK_INT(count("a", 0, &last), 2);
    CHECK_INT(count("a", 1, &last), 1);
    CHECK_INT(count("a", 2, NULL), 0);
    CHECK_INT(last.type, MT_REC_ENDED);
    CHECK_INT(last.ended.limit_ms, 600000);
    CHECK_INT(last.ended.memory_peak, 1ll << 33);
    CHECK_INT(mt_journal_create(dir, "a", 0640, (uid_t)-1, (gid_t)-1, &j, NULL), -1);
}

// Records that were added are there after the flush, in order; what a flush has lost takes no
// number.
static void test_batch(void)
{
    _cleanup_(mt_journal_close_p) mt_journal *j = NULL, *other = NULL;
    mt_record n = note("n"), last = {0};

    (void)mt_journal_create(dir, "h", 0600, (uid_t)-1, (gid_t)-1, &j, NULL);
    CHECK_INT(mt_journal_flush(j, NULL), 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(mt_journal_add(j, &n, NULL), 0);
    CHECK_INT(n.seq, 3);
    CHECK_INT(mt_journal_last_seq(j), 0);
    CHECK_INT(count("h", 0, NULL), 0);
    CHECK_INT(mt_journal_append(j, &n, true, NULL), 0);
    CHECK_INT(mt_journal_last_seq(j), 4);
    CHECK_INT(count("h", 0, &last), 4);
    CHECK_INT(last.seq, 4);
    for (int i = 0; i < 5000; i++) // more than is kept
        (void)mt_journal_add(j, &n, NULL);
    CHECK(mt_journal_last_seq(j) > 4);
    CHECK_INT(mt_journal_flush(j, NULL), 0);
    CHECK_INT(count("h", 0, NULL), 5004);
    // Another process goes on with it.
    CHECK_INT(mt_journal_adopt(fcntl(mt_journal_fd(j), F_DUPFD_CLOEXEC, 3), mt_journal_last_seq(j),
                               &other, NULL),
              0);
    CHECK_INT(mt_journal_append(other, &n, false, NULL), 0);
    CHECK_INT(count("h", 0, &last), 5005);
    CHECK_INT(last.seq, 5005);
}

static void test_follow(void)
{
    _cleanup_(mt_journal_close_p) mt_journal *j = NULL;
    _cleanup_(mt_journal_reader_free_p) mt_journal_reader *r = NULL;
    mt_record record, n = note("later");
    mt_str frame;

    (void)mt_journal_create(dir, "b", 0600, (uid_t)-1, (gid_t)-1, &j, NULL);
    CHECK_INT(mt_journal_reader_new(mt_journal_fd(j), &r, NULL), 0);
    CHECK_INT(mt_journal_next(r, 0, &record, &frame, NULL), 0);
    (void)mt_journal_append(j, &n, false, NULL);
    CHECK_INT(mt_journal_next(r, 0, &record, &frame, NULL), 1);
    CHECK(mt_str_eq(record.note.text, "later"));
    // What is passed on is what stands in the file.
    CHECK_INT(mt_record_decode(frame.data, frame.len, &record), frame.len);
    CHECK_INT(mt_journal_next(r, 0, &record, &frame, NULL), 0);
}

// A reader without its memory goes on where it was; one that has something to tell keeps it.
static void test_settled_reader(void)
{
    _cleanup_(mt_journal_close_p) mt_journal *j = NULL;
    _cleanup_(mt_journal_reader_free_p) mt_journal_reader *r = NULL;
    mt_record record, n = note("settled");

    (void)mt_journal_create(dir, "settled", 0600, (uid_t)-1, (gid_t)-1, &j, NULL);
    CHECK_INT(mt_journal_reader_new(mt_journal_fd(j), &r, NULL), 0);
    mt_journal_reader_settle(r); // nothing was read
    for (int i = 0; i < 3; i++)
        (void)mt_journal_append(j, &n, false, NULL);
    for (int i = 1; i <= 3; i++) {
        CHECK_INT(mt_journal_next(r, 0, &record, NULL, NULL), 1);
        CHECK_INT(record.seq, i);
        mt_journal_reader_settle(r); // the first of three, then the last
    }
    CHECK_INT(mt_journal_next(r, 0, &record, NULL, NULL), 0);
    mt_journal_reader_settle(r);
    (void)mt_journal_append(j, &n, false, NULL);
    CHECK_INT(mt_journal_next(r, 0, &record, NULL, NULL), 1);
    CHECK_INT(record.seq, 4);
}

// Every possible tear of the last record: what was whole stays, and the journal goes on behind it.
static void test_torn_tail(void)
{
    _cleanup_buf_ mt_buf whole = MT_BUF_INIT(1 << 20);
    mt_journal *j = NULL;
    mt_record one = note("one"), two = note("two");
    size_t first_end;
    int bad = 0;

    (void)mt_journal_create(dir, "c", 0600, (uid_t)-1, (gid_t)-1, &j, NULL);
    (void)mt_journal_append(j, &one, false, NULL);
    first_end = (size_t)lseek(mt_journal_fd(j), 0, SEEK_END);
    (void)mt_journal_append(j, &two, false, NULL);
    mt_journal_close(j);
    (void)mt_read_file(dir, "c", &whole);
    for (size_t len = 0; len < whole.len; len++) {
        _cleanup_(mt_journal_close_p) mt_journal *again = NULL;
        mt_record three = note("three"), last = {0};
        int expect = len < first_end ? 0 : 1;

        (void)mt_write_file_atomic(dir, "d", whole.data, len, 0600);
        bad += count("d", 0, NULL) != expect;
        bad += mt_journal_open(dir, "d", &again, NULL) != 0;
        bad += !again || mt_journal_append(again, &three, false, NULL) != 0;
        bad += count("d", 0, &last) != expect + 1 || last.seq != (uint64_t)expect + 1;
    }
    CHECK_INT(bad, 0);
}

// Every flipped byte ends reading at that record, at the latest; nothing crashes.
static void test_damage(void)
{
    _cleanup_buf_ mt_buf whole = MT_BUF_INIT(1 << 20);
    int more = 0;

    (void)mt_read_file(dir, "a", &whole);
    for (size_t i = 8; i < whole.len; i++) {
        whole.data[i] ^= 0x41;
        (void)mt_write_file_atomic(dir, "e", whole.data, whole.len, 0600);
        more += count("e", 0, NULL) >= 2;
        whole.data[i] ^= 0x41;
    }
    CHECK_INT(more, 0);
    (void)mt_write_file_atomic(dir, "f", "something else", 14, 0600);
    CHECK_INT(count("f", 0, NULL), 0);
    {
        mt_journal *j = NULL;

        CHECK_INT(mt_journal_open(dir, "f", &j, NULL), -1); // not ours: never cut
    }
}

static void test_long_text(void)
{
    _cleanup_free_ char *text = malloc(200001);
    _cleanup_(mt_journal_close_p) mt_journal *j = NULL;
    _cleanup_(mt_journal_reader_free_p) mt_journal_reader *r = NULL;
    mt_record n, back;

    for (size_t i = 0; i < 200000; i += 2)
        memcpy(text + i, "ä", 2);
    text[200000] = '\0';
    n = note(text);
    (void)mt_journal_create(dir, "g", 0600, (uid_t)-1, (gid_t)-1, &j, NULL);
    for (int i = 0; i < 20; i++)
        CHECK_INT(mt_journal_append(j, &n, false, NULL), 0);
    CHECK_INT(count("g", 0, NULL), 20);
    (void)mt_journal_reader_new(mt_journal_fd(j), &r, NULL);
    CHECK_INT(mt_journal_next(r, 0, &back, NULL, NULL), 1);
    CHECK_INT(back.note.text.len % 2, 0); // cut between characters
    CHECK_INT(back.note.text.len, MT_RECORD_TEXT_MAX);
}

static void test_unknown_type(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1024);
    mt_record r = {.seq = 1, .time_us = 2, .type = (mt_record_type)999}, back;

    CHECK_INT(mt_record_encode(&r, &b), 0);
    CHECK_INT(mt_record_decode(b.data, b.len, &back), b.len);
    CHECK_INT(back.type, 999);
    CHECK_INT(mt_record_decode(b.data, b.len - 1, &back), 0);
}

static void test_command_records(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);
    mt_record r = {.seq = 1,
                   .time_us = 2,
                   .type = MT_REC_COMMAND_ENDED,
                   .command_ended = {.id = MT_STR("0192f3a1-0000-7000-8000-000000000001"),
                                     .status = MT_COMMAND_ERROR,
                                     .reason = MT_END_TIMEOUT,
                                     .exit_code = -1,
                                     .limit_ms = 60000,
                                     .limits_reached = MT_LIMIT_MEMORY,
                                     .out_bytes = 1ull << 40,
                                     .err_chars = 7,
                                     .details = MT_STR("out of time after 60 s")}};
    mt_record back;

    CHECK_INT(mt_record_encode(&r, &b), 0);
    CHECK_INT(mt_record_decode(b.data, b.len, &back), b.len);
    CHECK(mt_str_eq(back.command_ended.id, "0192f3a1-0000-7000-8000-000000000001"));
    CHECK_INT(back.command_ended.status, MT_COMMAND_ERROR);
    CHECK_INT(back.command_ended.exit_code, -1);
    CHECK_INT(back.command_ended.limit_ms, 60000);
    CHECK_INT(back.command_ended.out_bytes, 1ll << 40);
    CHECK_INT(back.command_ended.err_chars, 7);
    CHECK(mt_str_eq(back.command_ended.details, "out of time after 60 s"));
    // A command that runs has no end.
    r.command_ended.status = MT_COMMAND_RUNNING;
    mt_buf_clear(&b);
    (void)mt_record_encode(&r, &b);
    CHECK_INT(mt_record_decode(b.data, b.len, &back), -EBADMSG);
    r = (mt_record){.seq = 1,
                    .time_us = 2,
                    .type = MT_REC_EXTENDED,
                    .extended = {.max_duration_ms = 5, .deadline_ns = -6}};
    mt_buf_clear(&b);
    (void)mt_record_encode(&r, &b);
    CHECK_INT(mt_record_decode(b.data, b.len, &back), b.len);
    CHECK_INT(back.extended.deadline_ns, -6);
}

static void test_room(void)
{
    _cleanup_(mt_journal_close_p) mt_journal *j = NULL;
    mt_record r = {.type = MT_REC_NOTE, .note = {.text = MT_STR("x")}};
    struct stat st;
    int short_of = 0;
    off_t size;

    CHECK_INT(mt_journal_create(dir, "room", 0600, (uid_t)-1, (gid_t)-1, &j, NULL), 0);
    mt_journal_keep_room(j);
    CHECK_INT(fstat(mt_journal_fd(j), &st), 0);
    CHECK(st.st_size < 100 && st.st_blocks * 512 >= 64 << 10);
    for (int i = 0; i < 3000; i++) // some 100 KiB: there is always something behind the end
        short_of += mt_journal_append(j, &r, false, NULL) < 0 || fstat(mt_journal_fd(j), &st) < 0 ||
                    st.st_blocks * 512 < st.st_size + (30 << 10);
    CHECK_INT(short_of, 0);
    size = st.st_size;
    mt_journal_give_room(j);
    CHECK_INT(fstat(mt_journal_fd(j), &st), 0);
    CHECK(st.st_size == size && st.st_blocks * 512 < size + (8 << 10));
}

static void test_words(void)
{
    mt_end_reason reason;
    mt_run_status status;

    CHECK_STR(mt_end_reason_word(MT_END_SUPERVISOR_LOST), "supervisorLost");
    CHECK_STR(mt_run_status_word(MT_RUN_FINISHED), "Finished");
    CHECK_STR(mt_run_status_word((mt_run_status)77), "?");
    CHECK(mt_end_reason_parse(MT_STR("nodeLost"), &reason) && reason == MT_END_NODE_LOST);
    CHECK(mt_run_status_parse(MT_STR("Error"), &status) && status == MT_RUN_ERROR);
    CHECK(!mt_run_status_parse(MT_STR("error"), &status));
    CHECK_STR(mt_command_status_word(MT_COMMAND_ABORTED), "Aborted");
    CHECK_STR(mt_command_status_word(MT_COMMAND_STATUS_COUNT), "?");
}

int main(void)
{
    char command[64];

    if (!mkdtemp(folder))
        return 1;
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    test_append_and_read();
    test_batch();
    test_follow();
    test_settled_reader();
    test_torn_tail();
    test_damage();
    test_long_text();
    test_unknown_type();
    test_command_records();
    test_room();
    test_words();
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    (void)!system(command);
    return TAP_DONE();
}
