// SPDX-License-Identifier: Apache-2.0
// The small files of groups.
#include "capsule/cgroup-find.h"
#include "capsule/cgroup-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

int cg_write(int dirfd, const char *file, const char *text)
{
    _cleanup_close_ int fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -errno;
    do
        n = write(fd, text, strlen(text));
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int cg_write_u64(int dirfd, const char *file, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return cg_write(dirfd, file, text);
}

int cg_read(int dirfd, const char *file, char *out, size_t size)
{
    _cleanup_close_ int fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -errno;
    do
        n = read(fd, out, size - 1);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    out[n] = '\0';
    return (int)n;
}

int cg_copy(int from_dirfd, int to_dirfd, const char *file)
{
    char text[MT_CPUS_TEXT];
    int n = cg_read(from_dirfd, file, text, sizeof(text));

    return n < 0 ? n : cg_write(to_dirfd, file, text);
}

bool cg_number_in(const char *text, const char *key, uint64_t *ret)
{
    size_t key_len = key ? strlen(key) : 0;

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        unsigned long long v;
        char *end;

        line += *line == '\n';
        if (key && (strncmp(line, key, key_len) != 0 || line[key_len] != ' '))
            continue;
        errno = 0;
        v = strtoull(line + key_len, &end, 10);
        if (end == line + key_len || errno)
            break;
        *ret = v;
        return true;
    }
    errno = EBADMSG;
    return false;
}

bool cg_read_number(int dirfd, const char *file, const char *key, uint64_t *ret)
{
    char text[4096] = "";
    int n = cg_read(dirfd, file, text, sizeof(text));

    if (n < 0)
        errno = -n;
    return n >= 0 && cg_number_in(text, key, ret);
}

void cg_read_numbers(int dirfd, const char *file, const cg_number *wanted, size_t count)
{
    char text[8192], *save = NULL;

    if (cg_read(dirfd, file, text, sizeof(text)) < 0)
        return;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *value = strchr(line, ' ');

        for (size_t i = 0; value && i < count; i++)
            if (strncmp(line, wanted[i].key, (size_t)(value - line)) == 0 &&
                wanted[i].key[value - line] == '\0')
                *wanted[i].value = strtoull(value, NULL, 10);
    }
}

static int each_here(int group_fd, int (*fn)(pid_t pid, void *data), void *data)
{
    int fd = openat(group_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC), r = 0;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    int pid;

    if (!f) {
        r = -errno;
        if (fd >= 0)
            (void)close(fd);
        return r;
    }
    // 0 stands for a process that this pid namespace cannot name.
    while (r == 0 && fscanf(f, "%d", &pid) == 1)
        if (pid > 0)
            r = fn((pid_t)pid, data);
    (void)fclose(f);
    return r;
}

int cg_each_process(int group_fd, int (*fn)(pid_t pid, void *data), void *data)
{
    int fd, r = each_here(group_fd, fn, data);
    struct dirent *e;
    DIR *d;

    if (r)
        return r;
    fd = openat(group_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        r = -errno;
        if (fd >= 0)
            (void)close(fd);
        return r;
    }
    // Depth: run, cmds, N and no deeper; capsules see their groups read-only.
    while (r == 0 && (e = readdir(d))) {
        int sub;

        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        sub = openat(group_fd, e->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (sub < 0)
            continue; // removed meanwhile
        r = cg_each_process(sub, fn, data);
        (void)close(sub);
        if (r == -ENOENT || r == -ENODEV)
            r = 0;
    }
    (void)closedir(d);
    return r;
}

int cg_open_dir(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int cg_make_dir(int dirfd, const char *name)
{
    if (mkdirat(dirfd, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    return cg_open_dir(dirfd, name);
}

unsigned cg_pass_on(int group_fd, unsigned wanted)
{
    unsigned done = 0;

    for (unsigned i = 0; i < CG_CONTROLLERS; i++) {
        char text[32];

        if (!(wanted & (1u << i)))
            continue;
        (void)snprintf(text, sizeof(text), "+%s", cg_controller_names[i]);
        if (cg_write(group_fd, "cgroup.subtree_control", text) == 0)
            done |= 1u << i;
    }
    return done;
}

int cg_join_by_file(int group_fd, const char *file, pid_t pid)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%d", (int)pid);
    return cg_write(group_fd, file, text);
}
