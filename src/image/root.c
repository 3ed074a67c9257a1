// SPDX-License-Identifier: Apache-2.0
#include "image/root.h"

#include "base/fd.h"
#include "base/str.h"
#include "image/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <sys/stat.h>

enum { USER_ID = 1000, ACCOUNTS_MAX_BYTES = 1024 * 1024 };

// ---- single files ----

static int make_parents(const char *full, mt_err **err)
{
    _cleanup_free_ char *folder = strdup(full);
    int r;

    if (!folder)
        return mt_fail_oom(err);
    *strrchr(folder, '/') = '\0';
    r = mt_mkdir_p(folder, 0755);
    return r < 0 ? mt_fail_errno(err, r, "cannot make '%s'", folder) : 0;
}

int mt_root_write(const char *root, const char *path, const char *text, mode_t mode, mt_err **err)
{
    _cleanup_free_ char *full = mt_asprintf("%s/%s", root, path);
    _cleanup_close_ int fd = -1;
    int r;

    if (!full)
        return mt_fail_oom(err);
    if (make_parents(full, err) < 0)
        return -1;
    (void)unlink(full); // a link there would lead the write elsewhere
    fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot make '%s'", full);
    r = mt_write_full(fd, text, strlen(text));
    if (r < 0 || fchmod(fd, mode) < 0)
        return mt_fail_errno(err, r < 0 ? r : errno, "cannot write '%s'", full);
    return 0;
}

int mt_root_remove(const char *root, const char *path, mt_err **err)
{
    _cleanup_free_ char *full = mt_asprintf("%s/%s", root, path);

    return full ? mt_tree_remove(full, err) : mt_fail_oom(err);
}

int mt_root_empty(const char *root, const char *path, mt_err **err)
{
    _cleanup_free_ char *full = mt_asprintf("%s/%s", root, path);
    struct dirent *e;
    DIR *dir;
    int r = 0;

    if (!full)
        return mt_fail_oom(err);
    dir = opendir(full);
    if (!dir)
        return errno == ENOENT ? 0 : mt_fail_errno(err, errno, "cannot open '%s'", full);
    while (r == 0 && (e = readdir(dir)))
        if (!mt_streq(e->d_name, ".") && !mt_streq(e->d_name, ".."))
            r = mt_root_remove(full, e->d_name, err);
    (void)closedir(dir);
    return r;
}

int mt_root_folder(const char *root, const char *path, mode_t mode, mt_err **err)
{
    _cleanup_free_ char *full = mt_asprintf("%s/%s", root, path);
    int r;

    if (!full)
        return mt_fail_oom(err);
    r = mt_mkdir_p(full, mode);
    if (r < 0 || chmod(full, mode) < 0)
        return mt_fail_errno(err, r < 0 ? r : errno, "cannot make '%s'", full);
    return 0;
}

int mt_root_link(const char *root, const char *path, const char *target, mt_err **err)
{
    _cleanup_free_ char *full = mt_asprintf("%s/%s", root, path);

    if (!full)
        return mt_fail_oom(err);
    if (make_parents(full, err) < 0)
        return -1;
    (void)unlink(full);
    if (symlink(target, full) < 0)
        return mt_fail_errno(err, errno, "cannot make the link '%s'", full);
    return 0;
}

// ---- the default user ----

typedef struct account {
    const char *path, *line;
} account;

static const account accounts[] = {
    {"etc/passwd", "maitento:x:1000:1000::/home/maitento:/bin/bash\n"},
    {"etc/group", "maitento:x:1000:\n"},
    {"etc/shadow", "maitento:!:19700:0:99999:7:::\n"},
    {"etc/gshadow", "maitento:!::\n"},
};

// Owner and mode of the file stay: shadow is root:shadow.
static int append_account(const char *root, const account *a, mt_err **err)
{
    _cleanup_free_ char *full = mt_asprintf("%s/%s", root, a->path);
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(ACCOUNTS_MAX_BYTES);
    _cleanup_close_ int fd = -1;
    int r;

    if (!full)
        return mt_fail_oom(err);
    fd = open(full, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", full);
    r = mt_read_all(fd, &text);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read '%s'", full);
    if (strstr(mt_buf_str(&text), "\nmaitento:") || strstr(mt_buf_str(&text), ":1000:"))
        return mt_fail(
            err, MT_E_CONFLICT,
            "a package made a user maitento or the id 1000, which are the default user's");
    r = mt_write_full(fd, a->line, strlen(a->line));
    return r < 0 ? mt_fail_errno(err, r, "cannot write '%s'", full) : 0;
}

int mt_root_own(const char *path, mt_err **err)
{
    char *const roots[] = {(char *)path, NULL};
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
    FTSENT *e;
    int r = 0;

    if (!fts)
        return mt_fail_errno(err, errno, "cannot walk '%s'", path);
    while (r == 0 && (e = fts_read(fts)))
        if (lchown(e->fts_accpath, USER_ID, USER_ID) < 0)
            r = mt_fail_errno(err, errno, "cannot change the owner of '%s'", e->fts_path);
    (void)fts_close(fts);
    return r;
}

static int make_user(const char *root, mt_err **err)
{
    _cleanup_free_ char *skel = mt_asprintf("%s/etc/skel", root);
    _cleanup_free_ char *home = mt_asprintf("%s/home/maitento", root);

    if (!skel || !home)
        return mt_fail_oom(err);
    for (size_t i = 0; i < MT_ARRAY_SIZE(accounts); i++)
        if (append_account(root, &accounts[i], err) < 0)
            return -1;
    if (mt_root_folder(root, "home", 0755, err) < 0 || mt_tree_copy(skel, home, err) < 0 ||
        mt_root_own(home, err) < 0)
        return -1;
    if (chmod(home, 0755) < 0)
        return mt_fail_errno(err, errno, "cannot set the mode of '%s'", home);
    return 0;
}

// ---- the rest ----

static const char profile[] =
    "# Login profile: sets only what is not set, so that a given environment wins, and starts no\n"
    "# program, so that a command costs no more than its shell.\n"
    "export PATH\n"
    "export LANG=\"${LANG:-C.UTF-8}\"\n"
    "for profile_part in /etc/profile.d/*.sh; do\n"
    "    if [ -r \"$profile_part\" ]; then\n"
    "        . \"$profile_part\"\n"
    "    fi\n"
    "done\n"
    "unset profile_part\n";

static const char hosts[] = "127.0.0.1\tlocalhost\n"
                            "::1\tlocalhost ip6-localhost ip6-loopback\n";

typedef struct root_file {
    const char *path;
    const char *text; // NULL: removed
    mode_t mode;
} root_file;

// .bash_logout: bash runs it on "exit N" of a login shell, and what it prints would land in the
// record of a command.
static const root_file files[] = {
    {"etc/profile", profile, 0644},      {"etc/hosts", hosts, 0644},
    {"etc/hostname", "capsule\n", 0644}, {"etc/resolv.conf", "", 0644},
    {"etc/machine-id", "", 0444},        {"etc/default/locale", "LANG=C.UTF-8\n", 0644},
    {"etc/skel/.bash_logout", NULL, 0},  {"root/.bash_logout", NULL, 0},
    {"etc/bash.bash_logout", NULL, 0},
};

// What capsules mount over, or expect: all plain folders, whatever a package left there.
static const struct {
    const char *path;
    mode_t mode;
} folders[] = {{"", 0755},         {"mnt", 0755},  {"run", 0755},          {"run/maitento", 0755},
               {"run/lock", 0755}, {"tmp", 01777}, {"var/tmp", 01777},     {"proc", 0555},
               {"sys", 0555},      {"dev", 0755},  {"etc/profile.d", 0755}};

int mt_root_finish(const char *root, mt_err **err)
{
    if (mt_root_empty(root, "run", err) < 0 || mt_root_empty(root, "dev", err) < 0 ||
        mt_root_empty(root, "etc/profile.d", err) < 0)
        return -1;
    for (size_t i = 0; i < MT_ARRAY_SIZE(folders); i++)
        if (mt_root_folder(root, folders[i].path, folders[i].mode, err) < 0)
            return -1;
    for (size_t i = 0; i < MT_ARRAY_SIZE(files); i++) {
        const root_file *f = &files[i];
        int r = f->text ? mt_root_write(root, f->path, f->text, f->mode, err)
                        : mt_root_remove(root, f->path, err);

        if (r < 0)
            return -1;
    }
    return make_user(root, err);
}
