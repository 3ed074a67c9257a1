// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"
#include "base/tap.h"
#include "capsule/layers.h"
#include "capsule/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define IMAGE "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static char folder[] = "/tmp/test-layers-XXXXXX";
static int at;

static void put(const char *path, const char *text)
{
    char copy[4096];

    (void)snprintf(copy, sizeof(copy), "%s", path);
    for (char *p = strchr(copy, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdirat(at, copy, 0755);
        *p = '/';
    }
    CHECK_INT(mt_write_file_atomic(at, path, text, strlen(text), 0644), 0);
}

static bool there(const char *path)
{
    return faccessat(at, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_digests(void)
{
    static const char *const one[] = {"jq", "sqlite3"}, *const two[] = {"sqlite3", "jq", "jq"},
                             *const joined[] = {"jqsqlite3"}, *const less[] = {"jq"};
    char a[MT_LAYER_TEXT], b[MT_LAYER_TEXT];

    mt_layer_digest(IMAGE, one, 2, a);
    mt_layer_digest(IMAGE, two, 3, b);
    CHECK_STR(a, b);
    mt_layer_digest(OTHER, one, 2, b);
    CHECK(strcmp(a, b) != 0);
    mt_layer_digest(IMAGE, joined, 1, b);
    CHECK(strcmp(a, b) != 0);
    mt_layer_digest(IMAGE, less, 1, b);
    CHECK(strcmp(a, b) != 0);
    mt_layer_digest(IMAGE, NULL, 0, b);
    CHECK(strcmp(a, b) != 0);
}

static void close_layer(mt_layer *l)
{
    mt_close_fd(&l->root_fd);
    mt_close_fd(&l->lock_fd);
}

static void build(const char *digest, const char *file, const char *content)
{
    mt_err *err = NULL;
    char path[256];

    CHECK_INT(mt_layer_build_begin(at, digest, MT_STR("boot\nimage\n"), &err), 0);
    (void)snprintf(path, sizeof(path), "build-%s/disk/upper/%s", digest, file);
    put(path, content);
    CHECK_INT(mt_layer_build_commit(at, digest, false, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
}

static void test_build(void)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(1024);
    mt_layer layer;

    CHECK_INT(mt_layer_open(at, IMAGE, &layer), 1);
    CHECK_INT(mt_layer_build_begin(at, IMAGE, MT_STR("boot\nimage\njq\n"), NULL), 0);
    CHECK(mt_layer_is_building(at, IMAGE) && !mt_layer_is_building(at, OTHER));
    CHECK_INT(mt_layer_build_request(at, IMAGE, &text), 0);
    CHECK_STR(mt_buf_str(&text), "boot\nimage\njq\n");
    CHECK_INT(mt_layer_open(at, IMAGE, &layer), 1);
    put("build-" IMAGE "/disk/upper/usr/bin/jq", "program");
    put("build-" IMAGE "/disk/upper/var/lib/apt/lists/x", "list");
    put("build-" IMAGE "/disk/upper/tmp/deep/er/x", "rubbish");
    put("build-" IMAGE "/disk/upper/etc/resolv.conf", "rubbish");
    put("build-" IMAGE "/conf/apt.conf", "secret of a proxy");
    CHECK_INT(mt_layer_build_commit(at, IMAGE, false, NULL), 0);
    CHECK_INT(mt_layer_open(at, IMAGE, &layer), 0);
    CHECK(there(IMAGE "/root/usr/bin/jq") && !there(IMAGE "/root/var/lib/apt/lists"));
    CHECK(!there(IMAGE "/root/tmp") && !there(IMAGE "/root/etc/resolv.conf"));
    CHECK(!there(IMAGE "/conf") && !there(IMAGE "/disk") && !mt_layer_is_building(at, IMAGE));
    close_layer(&layer);
}

// Whoever completes it may die at any moment; another goes on from there.
static void test_completed_twice(void)
{
    mt_layer layer;

    CHECK_INT(mt_layer_build_begin(at, OTHER, MT_STR("x"), NULL), 0);
    put("build-" OTHER "/disk/upper/file", "x");
    CHECK_INT(renameat(at, "build-" OTHER "/disk/upper", at, "build-" OTHER "/root"), 0);
    CHECK_INT(mt_tree_remove(at, "build-" OTHER "/disk"), 0);
    CHECK_INT(mt_layer_build_commit(at, OTHER, false, NULL), 0);
    CHECK_INT(mt_layer_build_commit(at, OTHER, false, NULL), 0);
    CHECK_INT(mt_layer_open(at, OTHER, &layer), 0);
    CHECK_INT(faccessat(layer.root_fd, "file", F_OK, 0), 0);
    close_layer(&layer);
}

// One that is replaced or removed stays where it is as long as somebody uses it.
static void test_use(void)
{
    mt_layers_pruned pruned;
    mt_layer used, layer;
    struct stat before, after;

    build(OTHER, "first", "1");
    CHECK_INT(mt_layer_open(at, OTHER, &used), 0);
    CHECK_INT(fstat(used.lock_fd, &before), 0);
    build(OTHER, "second", "2");
    CHECK_INT(mt_layers_prune(at, UINT64_MAX, 0, &pruned), 0);
    CHECK_INT(pruned.layers, 0);
    CHECK_INT(faccessat(used.root_fd, "first", F_OK, 0), 0);
    CHECK_INT(mt_layer_open(at, OTHER, &layer), 0);
    CHECK_INT(faccessat(layer.root_fd, "second", F_OK, 0), 0);
    CHECK_INT(fstat(layer.lock_fd, &after), 0);
    CHECK(before.st_ino != after.st_ino);
    close_layer(&used);
    CHECK_INT(mt_layers_prune(at, 0, 0, &pruned), 0); // IMAGE goes, and what was replaced
    CHECK_INT(pruned.layers, 1);
    CHECK(!there(IMAGE) && there(OTHER "/root/second"));
    close_layer(&layer);
    CHECK_INT(mt_layers_prune(at, 0, 0, &pruned), 0);
    CHECK(pruned.layers == 1 && pruned.bytes > 0 && !there(OTHER));
}

static void test_least_used_goes_first(void)
{
    char big[64 << 10];
    mt_layers_pruned pruned;
    mt_layer layer;

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    build(IMAGE, "a", big);
    build(OTHER, "b", big);
    CHECK_INT(usleep(20000), 0); // times of files are coarse
    CHECK_INT(mt_layer_open(at, IMAGE, &layer), 0);
    close_layer(&layer);
    CHECK_INT(mt_layers_prune(at, 100 << 10, 60, &pruned), 0);
    CHECK_INT(pruned.layers, 0);
    CHECK_INT(mt_layers_prune(at, 100 << 10, 0, &pruned), 0);
    CHECK(pruned.layers == 1 && there(IMAGE) && !there(OTHER));
}

static void test_failures(void)
{
    mt_layers_pruned pruned;
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(1024), why = MT_BUF_INIT(1024);

    CHECK_INT(mt_layer_failure(at, OTHER, &text), -ENOENT);
    CHECK_INT(mt_layer_build_begin(at, OTHER, MT_STR("x"), NULL), 0);
    CHECK(!mt_layer_build_stopped(at, OTHER, &why));
    mt_layer_build_stop(at, OTHER, "too large");
    mt_layer_build_stop(at, OTHER, "second");
    CHECK(mt_layer_build_stopped(at, OTHER, &why));
    CHECK_STR(mt_buf_str(&why), "too large");
    mt_layer_build_fail(at, OTHER, MT_STR("E: no such thing"));
    CHECK_INT(mt_layer_failure(at, OTHER, &text), 0);
    CHECK_STR(mt_buf_str(&text), "E: no such thing");
    CHECK(!mt_layer_is_building(at, OTHER));
    CHECK_INT(mt_layers_prune(at, 0, 0, &pruned), 0);
    CHECK(there("failed-" OTHER));
    CHECK_INT(utimensat(at, "failed-" OTHER, (struct timespec[]){{1, 0}, {1, 0}}, 0), 0);
    CHECK_INT(mt_layers_prune(at, 0, 0, &pruned), 0);
    CHECK(!there("failed-" OTHER));
    mt_layer_build_fail(at, OTHER, MT_STR("again"));
    CHECK_INT(mt_layer_build_begin(at, OTHER, MT_STR("x"), NULL), 0);
    CHECK_INT(mt_layer_failure(at, OTHER, &text), -ENOENT);
}

// What runs as root of a builder leaves what it likes.
static void test_hostile(void)
{
    mt_tree_sum sum = {0};
    char path[256];

    put("outside/kept", "x");
    CHECK_INT(mt_layer_build_begin(at, OTHER, MT_STR("x"), NULL), 0);
    (void)snprintf(path, sizeof(path), "%s/outside", folder);
    CHECK_INT(symlinkat(path, at, "build-" OTHER "/disk/upper/tmp"), 0);
    CHECK_INT(symlinkat(path, at, "build-" OTHER "/disk/upper/etc"), 0); // etc/resolv.conf …
    CHECK_INT(symlinkat(path, at, "build-" OTHER "/disk/upper/var"), 0);
    CHECK_INT(mt_layer_build_commit(at, OTHER, false, NULL), 0);
    CHECK(there("outside/kept") && !there(OTHER "/root/tmp"));

    if (geteuid() != 0)
        return;
    CHECK_INT(mt_layer_build_begin(at, OTHER, MT_STR("x"), NULL), 0);
    put("build-" OTHER "/disk/upper/file", "x");
    CHECK_INT(fchownat(at, "build-" OTHER "/disk/upper/file", 70000, 0, 0), 0);
    CHECK_INT(mt_layer_build_commit(at, OTHER, false, NULL), -1);
    CHECK_INT(mt_tree_sum_up(at, "build-" OTHER "/disk", MT_TREE_AS_IMAGE, &sum), -EPERM);
    CHECK_INT(mknodat(at, "build-" OTHER "/disk/upper/file2", S_IFCHR | 0600, 0), 0);
    CHECK_INT(unlinkat(at, "build-" OTHER "/disk/upper/file", 0), 0);
    CHECK_INT(mt_tree_sum_up(at, "build-" OTHER "/disk", MT_TREE_AS_IMAGE, &sum), 0); // a whiteout
    CHECK(there(OTHER "/root")); // the one before
}

static void test_deep(void)
{
    int dir = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mt_tree_sum sum = {0};

    for (int i = 0; i < 300 && dir >= 0; i++) {
        int next;

        CHECK_INT(mkdirat(dir, "d", 0755), 0);
        next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(dir);
        dir = next;
    }
    mt_close_fd(&dir);
    CHECK_INT(mt_tree_sum_up(at, "d", 0, &sum), 0);
    CHECK_INT(sum.entries, 299);
    CHECK_INT(mt_tree_remove(at, "d"), 0);
    CHECK(!there("d"));
    CHECK_INT(mt_tree_remove(at, "no/such/thing"), 0);
}

// What nobody waits for leaves a folder for whoever decides, and then nothing.
static void test_left(void)
{
    _cleanup_buf_ mt_buf why = MT_BUF_INIT(MT_LAYER_WHY_MAX);
    mt_layer layer;

    CHECK_INT(mt_layer_build_begin(at, IMAGE, MT_STR("x"), NULL), 0);
    CHECK(!mt_layer_build_is_left(at, IMAGE));
    mt_layer_build_leave(at, IMAGE);
    mt_layer_build_leave(at, IMAGE);
    CHECK(mt_layer_build_is_left(at, IMAGE) && mt_layer_is_building(at, IMAGE));
    CHECK_INT(mt_layer_build_begin(at, IMAGE, MT_STR("x"), NULL), 0); // wanted again
    CHECK(!mt_layer_build_is_left(at, IMAGE));
    mt_layer_build_leave(at, IMAGE);
    mt_layer_build_drop(at, IMAGE);
    mt_layer_build_drop(at, IMAGE);
    CHECK(!mt_layer_is_building(at, IMAGE) && !mt_layer_build_is_left(at, IMAGE));
    CHECK_INT(mt_layer_failure(at, IMAGE, &why), -ENOENT);
    // One that was done before it could be stopped is a layer like any other.
    CHECK_INT(mt_layer_build_begin(at, IMAGE, MT_STR("x"), NULL), 0);
    mt_layer_build_leave(at, IMAGE);
    CHECK_INT(mt_layer_build_commit(at, IMAGE, false, NULL), 0);
    CHECK(there(IMAGE "/root") && !there(IMAGE "/left"));
    CHECK_INT(mt_layer_open(at, IMAGE, &layer), 0);
    close_layer(&layer);
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    test_digests();
    test_build();
    test_completed_twice();
    test_use();
    test_least_used_goes_first();
    test_failures();
    test_left();
    test_hostile();
    test_deep();
    CHECK_INT(chdir("/tmp"), 0);
    CHECK_INT(mt_tree_remove(AT_FDCWD, folder + 5), 0);
    (void)close(at);
    return TAP_DONE();
}
