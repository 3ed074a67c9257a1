// SPDX-License-Identifier: Apache-2.0
// The watch of file systems, on real ones; this test is the runs that mount them.
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/tap.h"
#include "core/vfs-watch.h"
#include "vfs/vfs.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, CALM_MS = 1500, MIB = 1 << 20 };

#define A "0192f3a1-0000-7000-8000-00000000000a"
#define B "0192f3a1-0000-7000-8000-00000000000b"

static char top[64], disk[MT_ID_TEXT];
static int vfs_dir;
static mt_loop *loop;
static mt_store *store;
static mt_vfs_watch *watch;

// What was asked of the runs.
static struct {
    int asked, held, let_go, ended;
    char last_let_go[MT_ID_TEXT], last_ended[MT_ID_TEXT], sentence[512];
    bool deaf; // nobody answers
    uint64_t written_a, written_b;
} seen;

static void ask(void *data, const char *run_id, bool hold)
{
    seen.asked += !hold;
    seen.held += hold;
    if (!seen.deaf)
        mt_vfs_watch_usage(watch, run_id, strcmp(run_id, A) == 0 ? seen.written_a : seen.written_b,
                           0);
}

static void let_go(void *data, const char *run_id)
{
    seen.let_go++;
    (void)snprintf(seen.last_let_go, sizeof(seen.last_let_go), "%s", run_id);
}

static bool end(void *data, const char *run_id, const char *sentence)
{
    seen.ended++;
    (void)snprintf(seen.last_ended, sizeof(seen.last_ended), "%s", run_id);
    (void)snprintf(seen.sentence, sizeof(seen.sentence), "%s", sentence);
    return true;
}

// At once: a thread may be measuring just now.
static void grow(size_t bytes)
{
    static char zeros[MIB];
    static int number;
    char path[128];
    int fd = open("new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    for (; bytes; bytes -= MT_MIN(bytes, sizeof(zeros)))
        CHECK_INT(mt_write_full(fd, zeros, MT_MIN(bytes, sizeof(zeros))), 0);
    (void)close(fd);
    (void)snprintf(path, sizeof(path), "vfs/%s/files/x%d", disk, ++number);
    CHECK_INT(rename("new", path), 0);
}

// Until *count is at least wanted, or for so long.
static bool wait_for(const int *count, int wanted, int64_t ms)
{
    int64_t until = mt_boottime_ns() + ms * 1000000;

    while (*count < wanted && mt_boottime_ns() < until)
        (void)mt_loop_once(loop, 50);
    return *count >= wanted;
}

static void calm(void)
{
    int never = 0;

    (void)wait_for(&never, 1, CALM_MS);
}

static void make_disk(int64_t limit)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_vfs_record record;
    mt_user user = {0};
    mt_namespace ns;
    static int number;
    char name[16];

    (void)snprintf(name, sizeof(name), "n%d", ++number);
    mt_id_new(disk);
    CHECK_INT(mt_store_user_create(store, name, MT_ROLE_ADMIN, &user, &err), 0);
    CHECK_INT(mt_store_namespace_create(store, &user, name, &ns, NULL, &err), 0);
    CHECK_INT(mt_vfs_create(vfs_dir, disk, geteuid(), getegid(), &err), 0);
    CHECK_INT(mt_store_vfs_create(store, disk, ns.id, "work", limit, &record, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
    memset(&seen, 0, sizeof(seen));
}

static void test_one(void)
{
    make_disk(4 * MIB);
    mt_vfs_watch_join(watch, A, disk);
    calm();
    grow(2 * MIB);
    calm();
    CHECK_INT(seen.ended, 0);
    CHECK(!mt_vfs_watch_is_over(watch, disk));
    grow(4 * MIB);
    CHECK(wait_for(&seen.ended, 1, PATIENCE_MS));
    CHECK_STR(seen.last_ended, A);
    CHECK(strstr(seen.sentence, "file system 'work' holds 6.0 MiB, its limit is 4MiB") != NULL);
    CHECK_INT(seen.held, 0); // there is nobody else
    CHECK(mt_vfs_watch_is_over(watch, disk));
    // It is ending: what it still writes is nobody's.
    grow(2 * MIB);
    calm();
    CHECK_INT(seen.ended, 1);
    mt_vfs_watch_leave(watch, A);
    calm();
    // Another one that does not grow it may be there.
    mt_vfs_watch_join(watch, B, disk);
    calm();
    CHECK_INT(seen.ended, 1);
    grow(2 * MIB);
    CHECK(wait_for(&seen.ended, 2, PATIENCE_MS));
    CHECK_STR(seen.last_ended, B);
    mt_vfs_watch_leave(watch, B);
    mt_vfs_watch_forgive(watch, disk);
    CHECK(!mt_vfs_watch_is_over(watch, disk));
}

static void test_who(void)
{
    make_disk(4 * MIB);
    seen.written_b = 100 * MIB; // long ago
    mt_vfs_watch_join(watch, A, disk);
    mt_vfs_watch_join(watch, B, disk);
    CHECK(wait_for(&seen.asked, 2, PATIENCE_MS));
    seen.written_a = 5 * MIB;
    seen.written_b += MIB;
    grow(6 * MIB);
    CHECK(wait_for(&seen.ended, 1, PATIENCE_MS));
    CHECK_STR(seen.last_ended, A);
    CHECK_INT(seen.held, 2);
    CHECK_INT(seen.let_go, 1);
    CHECK_STR(seen.last_let_go, B);
    mt_vfs_watch_leave(watch, A);
    mt_vfs_watch_leave(watch, B);
}

// Runs that say nothing hold up no verdict; the last one that came is to blame.
static void test_silence(void)
{
    make_disk(4 * MIB);
    seen.deaf = true;
    mt_vfs_watch_join(watch, A, disk);
    mt_vfs_watch_join(watch, B, disk);
    CHECK(wait_for(&seen.asked, 2, PATIENCE_MS));
    grow(6 * MIB);
    CHECK(wait_for(&seen.ended, 1, PATIENCE_MS));
    CHECK_STR(seen.last_ended, B);
    CHECK_STR(seen.last_let_go, A);
    mt_vfs_watch_leave(watch, A);
    mt_vfs_watch_leave(watch, B);
}

// One that came, wrote and went before anybody looked.
static void test_quick(void)
{
    int over = 0;

    make_disk(4 * MIB);
    mt_vfs_watch_join(watch, A, disk);
    calm();
    grow(6 * MIB);
    mt_vfs_watch_leave(watch, A);
    for (int i = 0; i < PATIENCE_MS / 50 && !over; i++) {
        (void)mt_loop_once(loop, 50);
        over = mt_vfs_watch_is_over(watch, disk);
    }
    CHECK(over);
    CHECK_INT(seen.ended, 0);
}

// What was there before is nobody's fault, nor is a limit that was lowered.
static void test_innocent(void)
{
    mt_vfs_record record;

    make_disk(16 * MIB);
    grow(8 * MIB);
    mt_vfs_watch_join(watch, A, disk);
    calm();
    CHECK_INT(mt_store_vfs_set_limit(store, disk, 4 * MIB, &record, NULL), 0);
    for (int i = 0; i < 3; i++) { // elsewhere, so that it is looked at
        char path[32];
        int fd;

        (void)snprintf(path, sizeof(path), "other-%d", i);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(posix_fallocate(fd, 0, MIB) == 0);
        (void)close(fd);
        calm();
    }
    CHECK_INT(seen.ended, 0);
    grow(MIB);
    CHECK(wait_for(&seen.ended, 1, PATIENCE_MS));
    mt_vfs_watch_leave(watch, A);
}

static void test_floor(void)
{
    CHECK_INT(mt_disk_floor((uint64_t)10 << 30), (10ll << 30) / 20);
    CHECK_INT(mt_disk_floor((uint64_t)1000 << 30), 2ll << 30);
    CHECK_INT(mt_disk_floor(0), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

int main(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_vfs_watch_options options = {.ask = ask, .let_go = let_go, .end = end};

    (void)snprintf(top, sizeof(top), "/tmp/test-watch-XXXXXX");
    if (!mkdtemp(top) || chdir(top) < 0 || mkdir("vfs", 0700) < 0) {
        printf("Bail out! no temporary folder\n");
        return 2;
    }
    vfs_dir = open("vfs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    loop = mt_loop_new();
    CHECK_INT(mt_store_open("store", &store, &err), 0);
    options.loop = loop;
    options.store = store;
    options.vfs_dirfd = vfs_dir;
    CHECK_INT(mt_vfs_watch_new(&options, &watch, &err), 0);
    test_floor();
    test_one();
    test_who();
    test_silence();
    test_quick();
    test_innocent();
    mt_vfs_watch_free(watch);
    mt_store_close(store);
    mt_loop_free(loop);
    mt_close_fd(&vfs_dir);
    (void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return TAP_DONE();
}
