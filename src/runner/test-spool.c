// SPDX-License-Identifier: Apache-2.0
// Spools on a file system of the host, and the set of ids.
#include "base/fd.h"
#include "base/id.h"
#include "base/tap.h"
#include "runner/commands-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define ID "0192f3a1-0000-7000-8000-000000000001"

static char folder[] = "/tmp/test-spool-XXXXXX";
static int dir = -1;

static void test_small(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(100);
    struct stat st;
    spool s;

    spool_init(&s, dir, ID, 1);
    CHECK(fstatat(dir, ID ".1", &st, 0) < 0); // no file before the first byte
    spool_add(&s, "a\xe2\x82", 3);
    spool_add(&s, "\xac\xff", 2);
    CHECK_INT(s.bytes, 5);
    CHECK_INT(spool_chars(&s), 3);
    spool_done(&s);
    CHECK_INT(mt_read_file(dir, ID ".1", &b), 0);
    CHECK_STR(mt_buf_str(&b), "a\xe2\x82\xac\xff");
    // What is there is nobody's to write over.
    spool_init(&s, dir, ID, 1);
    spool_add(&s, "x", 1);
    CHECK_INT(s.error, EEXIST);
    CHECK_INT(s.bytes, 1);
    spool_done(&s);
}

// The size is the whole length; the last 64 MiB are true bytes; the rest takes no room.
static void test_holes(void)
{
    static uint64_t block[8192];
    uint64_t n = 0, word = 0, size = 150 << 20;
    struct stat st;
    spool s;
    int bad = 0, fd;

    spool_init(&s, dir, ID, 2);
    while (s.bytes < size) {
        for (size_t i = 0; i < MT_ARRAY_SIZE(block); i++)
            block[i] = n++;
        spool_add(&s, block, sizeof(block) - (s.bytes % 3 ? 0 : 8)); // out of step with the blocks
        n = s.bytes / 8;
    }
    CHECK_INT(s.error, 0);
    fd = openat(dir, ID ".2", O_RDONLY | O_CLOEXEC);
    CHECK(fstat(fd, &st) == 0 && st.st_size == (off_t)s.bytes);
    CHECK(st.st_blocks * 512 <= (MT_SPOOL_BYTES + (9 << 20)));
    for (uint64_t at = (s.bytes - MT_SPOOL_BYTES) / 8 + 1; at < s.bytes / 8; at += 511)
        bad += pread(fd, &word, 8, (off_t)(at * 8)) != 8 || word != at;
    CHECK_INT(bad, 0);
    CHECK(pread(fd, &word, 8, 4096) == 8 && word == 0);
    (void)close(fd);
    spool_done(&s);
}

static void test_full(void)
{
    struct rlimit old, small;
    struct stat st;
    spool s;

    (void)getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 100000;
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &small);
    spool_init(&s, dir, ID, 3);
    for (int i = 0; i < 30; i++)
        spool_add(&s, (char[10000]){0}, 10000);
    (void)setrlimit(RLIMIT_FSIZE, &old);
    CHECK_INT(s.error, EFBIG);
    CHECK_INT(s.bytes, 300000); // counted all the same
    CHECK_INT(spool_chars(&s), 300000);
    CHECK(fstatat(dir, ID ".3", &st, 0) == 0 && st.st_size == 100000);
    spool_done(&s);
}

static void test_seen(void)
{
    static char ids[5000][MT_ID_TEXT];
    seen *s = seen_new();
    int fresh = 0, again = 0;

    for (size_t i = 0; i < MT_ARRAY_SIZE(ids); i++) {
        mt_id_new(ids[i]);
        fresh += seen_add(s, ids[i]) == 1;
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(ids); i++)
        again += seen_add(s, ids[i]) == 0;
    CHECK_INT(fresh, 5000);
    CHECK_INT(again, 5000);
    CHECK_INT(seen_add(s, "00000000-0000-0000-0000-000000000000"), 1);
    CHECK_INT(seen_add(s, "00000000-0000-0000-0000-000000000000"), 0);
    seen_free(s);
}

int main(void)
{
    char line[64];

    if (!mkdtemp(folder))
        return 1;
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    test_small();
    test_holes();
    test_full();
    test_seen();
    (void)snprintf(line, sizeof(line), "rm -r %s", folder);
    (void)!system(line);
    return TAP_DONE();
}
