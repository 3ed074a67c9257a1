// SPDX-License-Identifier: Apache-2.0
// What capsules may plant in a file system, and do to it while the server works on it.
#include "vfs/test-vfs.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

static char outside[300]; // a folder of the host, with a file "f" of its own
static int outside_fd = -1;

static const char SECRET[] = "the host's own";

static void open_outside(void)
{
    int fd;

    (void)snprintf(outside, sizeof(outside), "%s/outside", root_path);
    CHECK_INT(mkdir(outside, 0700), 0);
    outside_fd = open(outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = openat(outside_fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK_INT(mt_write_full(fd, SECRET, strlen(SECRET)), 0);
    (void)close(fd);
}

// Nothing but the one file with its content may be there, ever.
static void check_outside(void)
{
    mt_buf content = MT_BUF_INIT(1000);

    CHECK_INT(count_names("outside"), 1);
    CHECK_INT(mt_read_file(outside_fd, "f", &content), 0);
    CHECK_STR(mt_buf_str(&content), SECRET);
    mt_buf_done(&content);
}

static void close_outside(void)
{
    check_outside();
    CHECK_INT(unlinkat(outside_fd, "f", 0), 0);
    mt_close_fd(&outside_fd);
    CHECK_INT(rmdir(outside), 0);
}

static int list_all(const char *path, bool recursive, size_t *ret_count, size_t *ret_left_out)
{
    _cleanup_free_ char *after = NULL;
    int r;

    *ret_count = *ret_left_out = 0;
    do {
        mt_arena *a = mt_arena_new(16 << 20);
        mt_vfs_list_options options = {1000, mt_str_of(after), recursive};
        mt_vfs_page page = {0};

        r = mt_vfs_read_folder(vfs, at(path), &options, a, &page, &error);
        free(after);
        after = page.next ? strdup(page.next) : NULL;
        *ret_count += page.count;
        *ret_left_out += page.left_out;
        mt_arena_free(a);
    } while (r == 0 && after);
    return r;
}

// ---- links ----

static void test_planted_links(void)
{
    static const char *const THROUGH[] = {"/leak",
                                          "/root/etc/hostname",
                                          "/up/etc/hostname",
                                          "/out/f",
                                          "/self/../x",
                                          "/proc/1/root/etc/shadow",
                                          "/loop",
                                          "/chain",
                                          "/out/f/x"};
    size_t count, left_out;

    CHECK_INT(symlinkat("/etc/shadow", inside_fd, "leak"), 0);
    CHECK_INT(symlinkat("/", inside_fd, "root"), 0);
    CHECK_INT(symlinkat("../../../../..", inside_fd, "up"), 0);
    CHECK_INT(symlinkat("a.txt", inside_fd, "fine"), 0);
    CHECK_INT(symlinkat(outside, inside_fd, "out"), 0);
    CHECK_INT(symlinkat("/proc/self/root", inside_fd, "proc"), 0);
    CHECK_INT(symlinkat("loop", inside_fd, "loop"), 0);
    CHECK_INT(symlinkat("leak", inside_fd, "chain"), 0);
    CHECK_INT(put("/a.txt", "harmless"), 0);

    for (size_t i = 0; i < MT_ARRAY_SIZE(THROUGH); i++) {
        mt_vfs_entry e;

        CHECK(mt_streq(get_code(THROUGH[i]), "notRegularFile") ||
              mt_streq(get_code(THROUGH[i]), "notAFolder") ||
              mt_streq(get_code(THROUGH[i]), "notFound"));
        if (strchr(THROUGH[i] + 1, '/') && !strstr(THROUGH[i], "..")) {
            CHECK_STR(code(mt_vfs_stat(vfs, at(THROUGH[i]), arena, &e, &error)), "notAFolder");
            CHECK_STR(code(put(THROUGH[i], "evil")), "notAFolder");
            CHECK_STR(code(mt_vfs_delete(vfs, at(THROUGH[i]), true, &error)), "notAFolder");
            CHECK_STR(code(mt_vfs_mkdir(vfs, at(THROUGH[i]), true, &error)), "notAFolder");
            CHECK_STR(code(mt_vfs_link(vfs, at(THROUGH[i]), MT_STR("x"), &error)), "notAFolder");
            CHECK_STR(code(mt_vfs_move(vfs, at("/a.txt"), at(THROUGH[i]), true, &error)),
                      "notAFolder");
            CHECK_STR(code(mt_vfs_move(vfs, at(THROUGH[i]), at("/stolen"), true, &error)),
                      "notAFolder");
        }
    }
    CHECK_STR(code(list_all("/out", true, &count, &left_out)), "notAFolder");
    CHECK_INT(list_all("/", true, &count, &left_out), 0);
    CHECK_INT(count, 9);
    CHECK_STR(look("/leak").target, "/etc/shadow");
    CHECK_STR(look("/fine").target, "a.txt");

    // an upload takes the place of the link itself
    CHECK_INT(put("/out", "now a file"), 1);
    CHECK_CONTENT("/out", "now a file");
    CHECK_INT(mt_vfs_delete(vfs, at("/root"), true, &error), 0);
    check_outside();
}

// ---- races ----

static atomic_bool stop;

// Swaps the folder "swap" for a link to the host's folder, at a pace that hits each step of a
// lookup.
static void *swapper(void *data)
{
    (void)data;
    for (useconds_t i = 0; !atomic_load(&stop); i++) {
        (void)renameat2(inside_fd, "swap", inside_fd, "swap-link", RENAME_EXCHANGE);
        if (i % 4)
            (void)usleep(i % 32);
    }
    return NULL;
}

static unsigned leaks, through;

static int swap_fd = -1; // of the folder, wherever its name is

static void restore(void)
{
    int fd = openat(swap_fd, "f-new", O_WRONLY | O_CREAT | O_CLOEXEC, 0660);

    (void)!write(fd, "inside", 6);
    (void)close(fd);
    (void)renameat(swap_fd, "f-new", swap_fd, "f");
}

static void work_on_swap(int i)
{
    char *content = get("/swap/f"), name[64];
    size_t count, left_out;
    mt_vfs_entry e;

    through += content != NULL;
    leaks += content && strcmp(content, "inside") != 0;
    free(content);
    error = mt_err_free(error);
    if (mt_vfs_stat(vfs, at("/swap/f"), arena, &e, &error) == 0)
        leaks += e.size != 6;
    error = mt_err_free(error);
    if (i % 10)
        return;
    restore();
    (void)list_all("/swap", true, &count, &left_out);
    error = mt_err_free(error);
    (void)snprintf(name, sizeof(name), "/swap/new-%d/x", i);
    (void)put(name, "uploaded");
    error = mt_err_free(error);
    (void)mt_vfs_delete(vfs, at("/swap/f"), true, &error);
    error = mt_err_free(error);
    (void)put("/swap/f", "inside");
    error = mt_err_free(error);
    (void)mt_vfs_move(vfs, at("/swap/f"), at("/swap/g"), true, &error);
    error = mt_err_free(error);
    (void)mt_vfs_move(vfs, at("/swap/g"), at("/swap/f"), true, &error);
    error = mt_err_free(error);
}

static void test_swap_race(void)
{
    pthread_t thread;

    CHECK_INT(put("/swap/f", "inside"), 0);
    CHECK_INT(symlinkat(outside, inside_fd, "swap-link"), 0);
    swap_fd = openat(inside_fd, "swap", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(pthread_create(&thread, NULL, swapper, NULL), 0);
    for (int i = 0; i < 3000; i++)
        work_on_swap(i);
    atomic_store(&stop, true);
    (void)pthread_join(thread, NULL);
    atomic_store(&stop, false);
    CHECK_INT(leaks, 0);
    CHECK(through > 100); // the race was one: some reads found the folder
    printf("# %u of 3000 reads found the folder\n", through);
    mt_close_fd(&swap_fd);
    check_outside();
    (void)mt_vfs_delete(vfs, at("/swap"), true, &error);
    (void)mt_vfs_delete(vfs, at("/swap-link"), true, &error);
    CHECK(!error);
    check_outside();
    CHECK_INT(count_tmp(), 0);
}

// A file swapped for a pipe: the open must not hang.
static void *pipe_swapper(void *data)
{
    (void)data;
    while (!atomic_load(&stop))
        (void)renameat2(inside_fd, "maybe", inside_fd, "maybe-pipe", RENAME_EXCHANGE);
    return NULL;
}

static void test_pipe_race(void)
{
    pthread_t thread;
    int wrong = 0;
    int64_t start = mt_monotonic_us();

    CHECK_INT(put("/maybe", "file"), 0);
    CHECK_INT(mkfifoat(inside_fd, "maybe-pipe", 0666), 0);
    CHECK_INT(pthread_create(&thread, NULL, pipe_swapper, NULL), 0);
    for (int i = 0; i < 2000; i++) {
        char *content = get("/maybe");

        wrong +=
            content ? strcmp(content, "file") != 0 : mt_err_code(error) != MT_E_NOT_REGULAR_FILE;
        free(content);
        error = mt_err_free(error);
    }
    atomic_store(&stop, true);
    (void)pthread_join(thread, NULL);
    atomic_store(&stop, false);
    CHECK_INT(wrong, 0);
    CHECK(mt_monotonic_us() - start < 20000000);
}

// ---- what is no file ----

static void plant_socket(void)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket",
                   inside_fd);
    CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void test_no_files(void)
{
    static const char *const PATHS[] = {"/pipe", "/zero", "/socket", "/device"};
    size_t count, left_out;
    int64_t start;

    CHECK_INT(mkfifoat(inside_fd, "pipe", 0666), 0);
    CHECK_INT(symlinkat("/dev/zero", inside_fd, "zero"), 0);
    plant_socket();
    if (mknodat(inside_fd, "device", S_IFCHR | 0666, makedev(1, 5)) < 0)
        CHECK_INT(mkfifoat(inside_fd, "device", 0666), 0);
    start = mt_monotonic_us();
    for (int i = 0; i < 100; i++)
        for (size_t p = 0; p < MT_ARRAY_SIZE(PATHS); p++)
            if (!mt_streq(get_code(PATHS[p]), "notRegularFile"))
                CHECK(!"notRegularFile");
    CHECK(mt_monotonic_us() - start < 20000000);
    CHECK(!get("/pipe"));
    CHECK_STR(mt_err_sentence(error), "'/pipe' is not a regular file (fifo)");
    error = mt_err_free(error);
    CHECK(look("/pipe").type == MT_VFS_FIFO && look("/socket").type == MT_VFS_SOCKET);
    CHECK_INT(list_all("/", true, &count, &left_out), 0);
    CHECK_STR(get_code("/pipe/x"), "notAFolder");
    CHECK_INT(put("/socket", "a file now"), 1);
    CHECK_CONTENT("/socket", "a file now");
}

// Someone waits in the pipe: asking for it must not wake him (he would write into nothing).
static void test_pipe_writer_sleeps(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        (void)alarm(60);
        _exit(openat(inside_fd, "pipe", O_WRONLY) < 0 ? 2 : 0);
    }
    for (int i = 0; i < 50; i++) {
        CHECK_STR(get_code("/pipe"), "notRegularFile");
        (void)usleep(1000);
    }
    CHECK_INT(waitpid(pid, &status, WNOHANG), 0);
    (void)kill(pid, SIGKILL);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

// A process with a lease would make a plain open wait for 45 seconds.
static void test_lease(void)
{
    int ready[2], status;
    char c;
    pid_t pid;
    int64_t start;

    CHECK_INT(put("/leased", "x"), 0);
    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        int fd = openat(inside_fd, "leased", O_RDWR);

        (void)alarm(60);
        (void)signal(SIGIO, SIG_IGN);
        c = fcntl(fd, F_SETLEASE, F_WRLCK) == 0 ? 'y' : 'n';
        (void)!write(ready[1], &c, 1);
        for (;;)
            (void)pause();
    }
    CHECK(read(ready[0], &c, 1) == 1);
    start = mt_monotonic_us();
    if (c == 'y') {
        CHECK_STR(get_code("/leased"), "unavailable");
        CHECK_INT(put("/leased", "other"), 1);
        CHECK_CONTENT("/leased", "other");
        CHECK_INT(mt_vfs_delete(vfs, at("/leased"), false, &error), 0);
    } else {
        SKIP("this disk has no leases");
    }
    CHECK(mt_monotonic_us() - start < 20000000);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

// ---- sizes ----

static void *grower(void *data)
{
    static char block[65536];
    int fd = openat(inside_fd, "growing", O_WRONLY | O_APPEND | O_CLOEXEC);

    memset(block, 'g', sizeof(block));
    for (int i = 0; i < 10000 && !atomic_load(&stop); i++)
        (void)!write(fd, block, sizeof(block));
    (void)close(fd);
    return data;
}

static void test_growing_file(void)
{
    int64_t end = mt_monotonic_us() + 10000000;
    pthread_t thread;
    bool grown = false;

    CHECK_INT(put("/growing", "start"), 0);
    CHECK_INT(pthread_create(&thread, NULL, grower, NULL), 0);
    for (int i = 0; i < 200 || (!grown && mt_monotonic_us() < end); i++) {
        _cleanup_close_ int fd = -1;
        mt_vfs_entry e;
        char last;

        if (mt_vfs_open_file(vfs, at("/growing"), arena, &fd, &e, &error) < 0)
            break;
        if (pread(fd, &last, 1, (off_t)e.size - 1) != 1)
            CHECK(!"all of the length at the open is there");
        grown = grown || e.size > 65536;
    }
    atomic_store(&stop, true);
    (void)pthread_join(thread, NULL);
    atomic_store(&stop, false);
    CHECK(!error && grown);
}

static void test_sparse_file(void)
{
    _cleanup_close_ int fd = -1, own = openat(inside_fd, "sparse", O_WRONLY | O_CREAT, 0600);
    uint64_t used = 0, before = 0;
    mt_vfs_entry e;

    CHECK_INT(mt_vfs_used(vfs, 10000, &before, &error), 0);
    CHECK_INT(ftruncate(own, (off_t)1 << 40), 0);
    CHECK_INT(mt_vfs_open_file(vfs, at("/sparse"), arena, &fd, &e, &error), 0);
    CHECK_INT(e.size, (int64_t)1 << 40);
    CHECK_INT(mt_vfs_used(vfs, 10000, &used, &error), 0);
    CHECK(used - before < 1 << 20);
    CHECK_INT(mt_vfs_delete(vfs, at("/sparse"), false, &error), 0);
}

// ---- depth and width ----

// A chain of folders, made as a process inside would: step by step.
static void make_chain(const char *top, int depth, const char *name)
{
    int dir;

    CHECK_INT(mkdirat(inside_fd, top, 0700), 0);
    dir = openat(inside_fd, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < depth; i++) {
        int next;

        (void)mkdirat(dir, name, 0700);
        next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        (void)close(dir);
        dir = next;
    }
    if (!CHECK(dir >= 0))
        return;
    (void)close(dir);
}

static int count_fds(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");

    while (dir && readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

static void test_deep(void)
{
    size_t count, left_out;
    uint64_t used = 0;
    int64_t start = mt_monotonic_us();
    int fds = count_fds();

    make_chain("deep", 2000, "d");
    CHECK_INT(list_all("/deep", true, &count, &left_out), 0);
    CHECK_INT(count, 4000); // 2,000 folders and the file in each but the last, and what is left out
    CHECK_INT(left_out, 0);
    CHECK_INT(mt_vfs_used(vfs, 10000, &used, &error), 0);
    CHECK(used > 2000u * 4096);
    CHECK_INT(mt_vfs_delete(vfs, at("/deep"), true, &error), 0);
    CHECK(!is_there("/deep") && count_tmp() == 0);

    // past what a path can name
    make_chain("deeper", 1500, "folder");
    CHECK_INT(list_all("/", true, &count, &left_out), 0);
    CHECK(count > 1100 && left_out == 2);
    CHECK_INT(mt_vfs_used(vfs, 20000, &used, &error), 0);
    CHECK(used > 1500u * 4096);
    CHECK_INT(mt_vfs_delete(vfs, at("/deeper"), true, &error), 0);
    CHECK(!is_there("/deeper") && count_tmp() == 0);
    CHECK_INT(count_fds(), fds);
    printf("# deep folders took %lld ms\n", (long long)(mt_monotonic_us() - start) / 1000);
}

// Few fds are needed, whatever the depth.
static void test_deep_with_few_fds(void)
{
    struct rlimit few = {64, 64}, old;
    uint64_t used = 0;

    make_chain("few", 500, "d");
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
    few.rlim_max = old.rlim_max;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
    CHECK_INT(mt_vfs_used(vfs, 10000, &used, &error), 0);
    CHECK_INT(mt_vfs_delete(vfs, at("/few"), true, &error), 0);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &old), 0);
    CHECK(!is_there("/few") && !error);
}

static void test_wide(void)
{
    enum { NAMES = 20000 };
    struct rusage before, after;
    size_t count, left_out;
    char name[256];

    CHECK_INT(mkdirat(inside_fd, "wide", 0700), 0);
    memset(name, 'w', sizeof(name));
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(name, sizeof(name), "wide/%0200d", i);
        (void)mknodat(inside_fd, name, S_IFREG | 0600, 0);
    }
    (void)getrusage(RUSAGE_SELF, &before);
    CHECK_INT(list_all("/wide", false, &count, &left_out), 0);
    CHECK_INT(count, NAMES);
    CHECK_INT(list_all("/wide", true, &count, &left_out), 0);
    CHECK_INT(count, NAMES);
    (void)getrusage(RUSAGE_SELF, &after);
#ifndef __SANITIZE_ADDRESS__ // its quarantine keeps what was freed
    CHECK(after.ru_maxrss - before.ru_maxrss < 16 * 1024);
#endif
    CHECK_INT(mt_vfs_delete(vfs, at("/wide"), true, &error), 0);
}

// ---- deleting under fire ----

// Keeps an fd of a folder that is being removed and goes on writing through it, and moves what it
// finds there.
static void *resident(void *data)
{
    int dir = *(int *)data;

    for (unsigned i = 0; !atomic_load(&stop); i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "r%u", i % 1000);
        (void)mkdirat(dir, name, 0700);
        (void)renameat(dir, name, dir, "moved");
    }
    return NULL;
}

static void test_delete_under_fire(void)
{
    int64_t start = mt_monotonic_us();
    pthread_t thread;
    int dir, r;

    make_chain("fire", 40, "d");
    dir = openat(inside_fd, "fire/d/d/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    CHECK_INT(pthread_create(&thread, NULL, resident, &dir), 0);
    r = mt_vfs_delete(vfs, at("/fire"), true, &error);
    // It ends: done, or saying that someone keeps writing. Either way it is out of sight.
    CHECK(r == 0 || mt_err_code(error) == MT_E_CONFLICT);
    printf("# %s\n", r == 0 ? "removed" : mt_err_sentence(error));
    error = mt_err_free(error);
    CHECK(!is_there("/fire"));
    atomic_store(&stop, true);
    (void)pthread_join(thread, NULL);
    atomic_store(&stop, false);
    (void)close(dir);
    CHECK_INT(mt_vfs_sweep(root_fd, NULL, NULL, NULL, &error), 0);
    CHECK_INT(count_tmp(), 0);
    CHECK(mt_monotonic_us() - start < 60000000);
}

// ---- mounts ----

static int with_a_mount(void)
{
    char target[600];
    size_t count, left_out;
    struct stat st;
    int failed = 0, step = 0;

    (void)snprintf(target, sizeof(target), "%s/m/sub/mounted", inside);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount(outside, target, NULL, MS_BIND, NULL) < 0)
        return -1;
    // fds from before still stand in the old namespace
    root_fd = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mt_vfs_open(root_fd, vfs_id, SERVICE, SERVICE, &vfs, &error) < 0)
        return -1;
#define STEP(ok) (failed |= (ok) ? 0 : 1 << step, step++)
    STEP(mt_streq(get_code("/m/sub/mounted/f"), "badPath"));
    STEP(mt_streq(code(put("/m/sub/mounted/g", "x")), "badPath"));
    STEP(list_all("/m", true, &count, &left_out) == 0 && count == 3);
    STEP(mt_streq(code(mt_vfs_delete(vfs, at("/m/sub/mounted"), true, &error)), "conflict"));
    STEP(mt_streq(code(mt_vfs_delete(vfs, at("/m"), true, &error)), "conflict"));
    STEP(fstatat(outside_fd, "f", &st, 0) == 0);
    STEP(mt_streq(code(mt_vfs_sweep(root_fd, NULL, NULL, NULL, &error)), "conflict"));
    STEP(fstatat(outside_fd, "f", &st, 0) == 0);
    STEP(mt_streq(code(mt_vfs_destroy(root_fd, vfs_id, &error)), "conflict"));
    STEP(fstatat(outside_fd, "f", &st, 0) == 0);
#undef STEP
    return failed;
}

// Ends the world: the file system is gone after it but for the mount point.
static void test_mounts(void)
{
    int status = -1;
    pid_t pid;

    if (geteuid() != 0) {
        SKIP("needs root");
        return;
    }
    CHECK_INT(mt_vfs_mkdir(vfs, at("/m/sub/mounted"), true, &error), 0);
    CHECK_INT(put("/m/file", "x"), 0);
    pid = fork();
    if (pid == 0) {
        int failed = with_a_mount();

        if (failed)
            printf("# steps that failed: %#x (errno %d)\n", (unsigned)failed, errno);
        (void)fflush(stdout);
        _exit(failed != 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
    CHECK_INT(mt_vfs_sweep(root_fd, NULL, NULL, NULL, &error), 0);
    check_outside();
    CHECK_INT(count_names("."), 1); // "outside"
    CHECK_INT(mt_vfs_create(root_fd, vfs_id, SERVICE, SERVICE, &error), 0);
}

// ---- two writers and a reader ----

enum { WHOLE = 1 << 20, ROUNDS = 40 };

static void *writer(void *data)
{
    char letter = *(char *)data, *text = malloc(WHOLE);
    static mt_vfs_path paths[2];
    mt_vfs_path *path = &paths[letter - 'A'];

    memset(text, letter, WHOLE);
    if (mt_vfs_path_parse(MT_STR("/shared"), "path", path, NULL) < 0)
        abort();
    for (int i = 0; i < ROUNDS; i++) {
        mt_vfs_upload *up = NULL;

        if (mt_vfs_upload_begin(vfs, path, WHOLE, &up, NULL) < 0 ||
            mt_vfs_upload_write(up, text, WHOLE, NULL) < 0 ||
            mt_vfs_upload_commit(up, NULL, NULL, NULL) < 0)
            (*(char *)data) = '!';
        (void)mt_vfs_upload_free(up);
    }
    free(text);
    return NULL;
}

static bool is_whole(const char *content, size_t len)
{
    if (len != WHOLE || (content[0] != 'A' && content[0] != 'B'))
        return false;
    for (size_t i = 1; i < len; i++)
        if (content[i] != content[0])
            return false;
    return true;
}

static void test_writers_and_reader(void)
{
    char letters[2] = {'A', 'B'}, *first = malloc(WHOLE);
    _cleanup_close_ int held = -1;
    pthread_t threads[2];
    int torn = 0;

    memset(first, 'A', WHOLE);
    CHECK_INT(put_bytes("/shared", first, WHOLE), 0);
    held = openat(inside_fd, "shared", O_RDONLY | O_CLOEXEC); // a process inside has it open
    for (int i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, writer, &letters[i]), 0);
    for (int i = 0; i < ROUNDS; i++) {
        char *content = get("/shared");

        torn += !content || !is_whole(content, strlen(content));
        free(content);
    }
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    CHECK_INT(torn, 0);
    CHECK(letters[0] == 'A' && letters[1] == 'B');
    CHECK(read(held, first, WHOLE) == WHOLE && is_whole(first, WHOLE) && first[0] == 'A');
    free(first);
    CHECK_INT(count_tmp(), 0);
}

// ---- kill -9 ----

static void upload_and_die(int ready)
{
    mt_vfs_upload *up = NULL;
    char block[4096];

    memset(block, 'n', sizeof(block));
    if (mt_vfs_upload_begin(vfs, at("/kept"), -1, &up, NULL) < 0)
        _exit(1);
    for (int i = 0;; i++) {
        if (mt_vfs_upload_write(up, block, sizeof(block), NULL) < 0)
            _exit(1);
        if (i == 100)
            (void)!write(ready, "r", 1);
        (void)usleep(100);
    }
}

static void test_kill_in_mid_upload(void)
{
    int ready[2], status;
    char c;
    pid_t pid;
    size_t count, left_out, before;

    CHECK_INT(put("/kept", "old content"), 0);
    CHECK_INT(list_all("/", true, &before, &left_out), 0);
    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0)
        upload_and_die(ready[1]);
    CHECK(read(ready[0], &c, 1) == 1);
    (void)kill(pid, SIGKILL);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK_CONTENT("/kept", "old content");
    CHECK_INT(list_all("/", true, &count, &left_out), 0);
    CHECK_INT(count, before);
    CHECK_INT(count_tmp(), 1);
    CHECK_INT(mt_vfs_sweep(root_fd, NULL, NULL, NULL, &error), 0);
    CHECK_INT(count_tmp(), 0);
    CHECK_CONTENT("/kept", "old content");
    (void)close(ready[0]);
    (void)close(ready[1]);
}

int main(void)
{
    open_world();
    open_outside();
    test_planted_links();
    test_swap_race();
    test_pipe_race();
    test_no_files();
    test_pipe_writer_sleeps();
    test_lease();
    test_growing_file();
    test_sparse_file();
    test_deep();
    test_deep_with_few_fds();
    test_wide();
    test_delete_under_fire();
    test_writers_and_reader();
    test_kill_in_mid_upload();
    test_mounts();
    close_outside();
    close_world();
    return TAP_DONE();
}
