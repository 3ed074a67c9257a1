// SPDX-License-Identifier: Apache-2.0
// Owners seen through idmapped mounts, in a private mount namespace.
#include "base/tap.h"
#include "capsule/idmap.h"
#include "capsule/syscalls.h"

#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BASE = MT_BLOCK_FIRST, S = 61234 };

static void make_file(int dir, const char *name, unsigned owner)
{
    int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && fchown(fd, owner, owner) == 0);
    (void)close(fd);
}

static long owner_at(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -1 : (long)st.st_uid;
}

static void test_image(int dir)
{
    _cleanup_close_ int ns = -1, tree = -1;
    _cleanup_err_ mt_err *err = NULL;

    CHECK_INT(mt_idmap_image(BASE, &ns, &err), 0);
    CHECK_INT(mt_idmap_mount(dir, "", ns, MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY, &tree, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
    CHECK_INT(owner_at(tree, "root"), BASE);
    CHECK_INT(owner_at(tree, "user"), BASE + 1000);
    CHECK_INT(owner_at(tree, "far"), 65534); // out of the map: nobody's
    CHECK(openat(tree, "new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0 && errno == EROFS);
}

static void test_vfs(int dir)
{
    _cleanup_close_ int ns = -1, tree = -1;
    _cleanup_err_ mt_err *err = NULL;

    CHECK_INT(mt_idmap_vfs(BASE, S, S, &ns, &err), 0);
    CHECK_INT(mt_idmap_mount(dir, "", ns, 0, &tree, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
    CHECK_INT(owner_at(tree, "service"), BASE + 1000); // maitento inside
    CHECK_INT(owner_at(tree, "v-root"), BASE);         // root inside
    CHECK_INT(owner_at(tree, "v-other"), BASE + 1001); // the first other user
    CHECK_INT(owner_at(tree, "root"), 65534);          // real root is nobody inside
    // Written as the capsule's maitento: the service user's on the disk.
    if (fork() == 0) {
        if (setresgid(BASE + 1000, BASE + 1000, BASE + 1000) < 0 ||
            setresuid(BASE + 1000, BASE + 1000, BASE + 1000) < 0)
            _exit(1);
        _exit(openat(tree, "made", O_CREAT | O_WRONLY, 0600) < 0);
    }
    {
        int status = 1;

        (void)wait(&status);
        CHECK_INT(status, 0);
    }
    CHECK_INT(owner_at(dir, "made"), S);
}

static void test_errors(void)
{
    mt_id_range overlap[] = {{0, BASE, 10}, {5, BASE + 100, 10}};
    _cleanup_err_ mt_err *err = NULL;
    int fd = -1;

    CHECK_INT(mt_idmap_userns(overlap, 2, &fd, &err), -1);
    CHECK(strstr(mt_err_sentence(err), "id map"));
    CHECK_INT(mt_idmap_userns(overlap, 0, &fd, NULL), -1);
    CHECK_INT(fd, -1);
}

int main(void)
{
    char folder[] = "/var/tmp/test-idmap-XXXXXX", command[64];
    int dir;

    if (geteuid() != 0 || !mkdtemp(folder)) {
        SKIP("needs root");
        return TAP_DONE();
    }
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 1;
    // An owner that the map does not have would make the folder read-only.
    (void)!chown(folder, S, S);
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_file(dir, "root", 0);
    make_file(dir, "user", 1000);
    make_file(dir, "far", 70000);
    make_file(dir, "service", S);
    make_file(dir, "v-root", MT_VFS_FIRST);
    make_file(dir, "v-other", MT_VFS_FIRST + 1001);
    test_image(dir);
    test_vfs(dir);
    test_errors();
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    (void)!system(command);
    return TAP_DONE();
}
