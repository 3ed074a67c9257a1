// SPDX-License-Identifier: Apache-2.0
// The scratch disk on a file of 512 MiB, in a private mount namespace.
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/tap.h"
#include "capsule/btrfs.h"
#include "capsule/scratch.h"
#include "capsule/syscalls.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BASE = 0x70000000 };

static char folder[] = "/var/tmp/test-scratch-XXXXXX";
static char file[64], at[64];

static mt_scratch *open_one(void)
{
    mt_scratch_options o = {.file = file, .size_bytes = 512 << 20};
    _cleanup_err_ mt_err *err = NULL;
    mt_scratch *s = NULL;

    CHECK_INT(mt_scratch_open(&o, &s, &err), 0);
    if (!s || !mt_scratch_is_btrfs(s)) {
        printf("# %s\n", s ? mt_scratch_reason(s) : mt_err_sentence(err));
        return s;
    }
    CHECK_INT(move_mount(mt_scratch_mount_fd(s), "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH), 0);
    return s;
}

static void test_file(void)
{
    struct stat st;

    CHECK_INT(stat(file, &st), 0);
    CHECK_INT(st.st_size, 512 << 20);
    CHECK(st.st_blocks * 512 >= 512 << 20); // nothing sparse, also after mkfs and use
    CHECK_INT(st.st_mode & 07777, 0600);
}

// Writes as the capsule's root would, until it is refused. Bytes that went in; *ret_errno why.
static long fill_up(int fd, unsigned owner, int *ret_errno)
{
    static char block[1 << 20];
    int pair[2], status = 0;
    long answer[2] = {-1, 0};
    pid_t pid;

    memset(block, 'x', sizeof(block));
    if (pipe(pair) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        long written = 0;
        int out;

        if (setresgid(owner, owner, owner) < 0 || setresuid(owner, owner, owner) < 0)
            _exit(1);
        out = openat(fd, "upper/big", O_CREAT | O_WRONLY, 0600);
        for (int i = 0; out >= 0 && i < 200; i++) {
            ssize_t n = write(out, block, sizeof(block));

            if (n < 0)
                break;
            written += n;
        }
        answer[1] = errno;
        if (out >= 0 && fsync(out) < 0)
            answer[1] = errno;
        answer[0] = written;
        (void)!write(pair[1], answer, sizeof(answer));
        _exit(0);
    }
    (void)waitpid(pid, &status, 0);
    (void)!read(pair[0], answer, sizeof(answer));
    (void)close(pair[0]);
    (void)close(pair[1]);
    *ret_errno = (int)answer[1];
    return answer[0];
}

static void test_run(mt_scratch *s)
{
    _cleanup_close_ int fd = -1, again = -1;
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    uint64_t subvolume = 0, bytes, free_bytes;
    struct stat st;
    long written;
    int why = 0;

    mt_id_new(id);
    CHECK_INT(mt_scratch_make(s, id, 32 << 20, BASE, &fd, &subvolume, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
    CHECK(subvolume > 255);
    CHECK(fstatat(fd, "upper", &st, 0) == 0 && st.st_uid == BASE && (st.st_mode & 07777) == 0755);
    CHECK(fstatat(fd, "work", &st, 0) == 0 && st.st_gid == BASE);
    CHECK_INT(mt_scratch_make(s, id, 32 << 20, BASE, &again, &bytes, NULL), -1);
    written = fill_up(fd, BASE, &why);
    CHECK(written > (20 << 20) && written <= (32 << 20));
    CHECK_INT(why, EDQUOT);
    {
        _cleanup_close_ int usage = mt_scratch_usage_fd(s, subvolume);

        CHECK(usage >= 0);
        CHECK(mt_scratch_met(usage, 32 << 20));
        CHECK(!mt_scratch_met(usage, 64 << 20));
        CHECK(!mt_scratch_met(-1, 1));
    }
    mt_scratch_space(s, &bytes, &free_bytes);
    CHECK(bytes == 512 << 20 && free_bytes < bytes);
    CHECK_INT(mt_scratch_drop(s, id), 0);
    CHECK_INT(mt_scratch_drop(s, id), 0); // none there is fine
    mt_close_fd(&fd);
    mt_scratch_janitor(s);
}

static int entries(const char *name)
{
    char path[96];
    int n = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "ls -A %s/%s | wc -l", at, name);
    f = popen(path, "r");
    if (!f || fscanf(f, "%d", &n) != 1)
        n = -1;
    if (f)
        (void)pclose(f);
    return n;
}

// What is in memory as yet counts, for the run and for the disk.
static void test_used(mt_scratch *s, int folder_fd)
{
    int fd = openat(folder_fd, "upper/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    static char bytes[1 << 20];
    uint64_t size, before, after;

    mt_scratch_space(s, &size, &before);
    CHECK(mt_scratch_used(s, "spare-1f-2") < sizeof(bytes));
    CHECK_INT(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
    (void)close(fd);
    mt_scratch_space(s, &size, &after);
    CHECK(mt_scratch_used(s, "spare-1f-2") >= sizeof(bytes));
    CHECK(after + sizeof(bytes) <= before);
    CHECK_INT(mt_scratch_used(s, "spare-ff-9"), 0);
    CHECK_INT(mt_scratch_used(s, "../ready"), 0);
    CHECK_INT(mt_scratch_floor(2ull << 30), 128 << 20);
    CHECK_INT(mt_scratch_floor(200ull << 30), 1 << 30);
    CHECK_INT(mt_scratch_floor(0), 0);
}

static void test_ready(mt_scratch *s)
{
    _cleanup_close_ int fd = -1;
    char id[MT_ID_TEXT];
    uint64_t subvolume;
    struct stat st;

    while (mt_scratch_fill(s, 3) > 0)
        ;
    CHECK_INT(entries("ready"), 3);
    mt_id_new(id);
    CHECK_INT(mt_scratch_make(s, id, 32 << 20, BASE + 65536, &fd, &subvolume, NULL), 0);
    CHECK_INT(entries("ready"), 2);
    CHECK(fstatat(fd, "upper", &st, 0) == 0 && st.st_uid == BASE + 65536);
    CHECK_INT(mt_scratch_drop(s, id), 0);
    CHECK_INT(mt_scratch_drop(s, "../ready"), -EINVAL);
    // Made ahead, under a name of its own and without a limit.
    mt_close_fd(&fd);
    CHECK_INT(mt_scratch_make(s, "spare-1f-2", 0, BASE, &fd, &subvolume, NULL), 0);
    CHECK_INT(mt_scratch_limit(s, subvolume, 4 << 20, NULL), 0);
    CHECK_INT(mt_scratch_limit(s, 1 << 20, 4 << 20, NULL), -1);
    test_used(s, fd);
    CHECK_INT(mt_scratch_drop(s, "spare-1f-2"), 0);
    CHECK_INT(mt_scratch_drop(s, "spare-1f/../x"), -EINVAL);
}

// A runner that is started again while runs live: the same loop device, the same file system.
static void test_again(void)
{
    _cleanup_close_ int own = open(file, O_RDWR | O_CLOEXEC), loop = -1;
    mt_scratch *s;
    char path[32];
    bool fresh = true;

    CHECK_INT(mt_loop_attach(own, path, &loop, &fresh), 0);
    CHECK(!fresh);
    s = open_one();
    if (!s)
        return;
    CHECK(mt_scratch_is_btrfs(s));
    CHECK_INT(entries("ready"), 0); // given to the janitor: their limits are not known
    mt_scratch_janitor(s);
    CHECK_INT(entries("dead"), 0);
    mt_scratch_close(s);
}

static void test_two_at_once(void)
{
    mt_scratch_options o = {.file = file};
    _cleanup_err_ mt_err *err = NULL;
    mt_scratch *s = NULL;

    CHECK_INT(mt_scratch_open(&o, &s, &err), -1);
    CHECK_INT(mt_err_code(err), MT_E_CONFLICT);
    mt_scratch_close(s);
}

static void test_fallback(void)
{
    mt_scratch_options o = {.file = "/proc/nowhere/x", .size_bytes = 512 << 20};
    mt_scratch *s = NULL;

    CHECK_INT(mt_scratch_open(&o, &s, NULL), 0);
    CHECK(s && !mt_scratch_is_btrfs(s));
    CHECK(s && strstr(mt_scratch_reason(s), "kept in memory"));
    mt_scratch_close(s);
}

// What cannot be mounted and is nobody's is made anew.
static void test_damaged(void)
{
    int fd = open(file, O_RDWR | O_CLOEXEC);
    static char zeros[1 << 20];
    mt_scratch *s;

    for (off_t where = 0; where < 128 << 20; where += sizeof(zeros))
        (void)!pwrite(fd, zeros, sizeof(zeros), where);
    (void)fsync(fd);
    (void)close(fd);
    s = open_one();
    CHECK(s && mt_scratch_is_btrfs(s));
    test_file();
    mt_scratch_close(s);
}

static void unmount(void)
{
    char path[32];
    bool fresh = false;

    (void)umount2(at, MNT_DETACH);
    // Its loop device goes away by itself, a moment after.
    for (int i = 0; i < 2000 && !fresh; i++) {
        int own = open(file, O_RDWR | O_CLOEXEC), loop = -1;

        (void)mt_loop_attach(own, path, &loop, &fresh);
        mt_close_fd(&loop);
        (void)close(own);
        (void)poll(NULL, 0, 10);
    }
}

int main(void)
{
    char command[96];
    mt_scratch *s;

    if (geteuid() != 0 || !mkdtemp(folder)) {
        SKIP("needs root");
        return TAP_DONE();
    }
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 1;
    (void)snprintf(file, sizeof(file), "%s/scratch.img", folder);
    (void)snprintf(at, sizeof(at), "%s/at", folder);
    (void)mkdir(at, 0700);
    s = open_one();
    if (s && mt_scratch_is_btrfs(s)) {
        test_two_at_once();
        test_file();
        test_run(s);
        test_ready(s);
        mt_scratch_close(s);
        test_again();
        (void)umount2(at, MNT_DETACH); // of the second mount
        unmount();
        test_damaged();
        unmount();
    } else {
        mt_scratch_close(s);
        SKIP("no btrfs on this host");
    }
    test_fallback();
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    (void)!system(command);
    return TAP_DONE();
}
