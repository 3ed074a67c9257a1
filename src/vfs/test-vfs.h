// SPDX-License-Identifier: Apache-2.0
// What the test programs of this folder share: a fresh file system in a folder of its own, and
// short forms of the calls. "inside" is what a capsule would do: plain calls on the mounted folder.
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/tap.h"
#include "vfs/vfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { SERVICE = 61234, BLOCK_V = 0x6fff0000 };

static char root_path[256], inside[512];
static int root_fd = -1, inside_fd = -1;
static char vfs_id[MT_ID_TEXT];
static mt_vfs *vfs;
static mt_arena *arena;
static mt_err *error;

static inline void open_world(void)
{
    const char *base = getenv("TMPDIR");

    (void)snprintf(root_path, sizeof(root_path), "%s/mt-vfs-XXXXXX", base ? base : "/var/tmp");
    if (!mkdtemp(root_path))
        abort();
    root_fd = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mt_id_new(vfs_id);
    arena = mt_arena_new(64 << 20);
    if (!CHECK(mt_vfs_create(root_fd, vfs_id, SERVICE, SERVICE, &error) == 0) ||
        !CHECK(mt_vfs_open(root_fd, vfs_id, SERVICE, SERVICE, &vfs, &error) == 0)) {
        printf("Bail out! %s\n", mt_err_sentence(error));
        exit(1);
    }
    (void)snprintf(inside, sizeof(inside), "%s/%s/files", root_path, vfs_id);
    inside_fd = open(inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline void close_world(void)
{
    CHECK_INT(mt_vfs_destroy(root_fd, vfs_id, &error), 0);
    CHECK_STR(mt_err_sentence(error), "");
    vfs = mt_vfs_free(vfs);
    mt_close_fd(&inside_fd);
    mt_close_fd(&root_fd);
    CHECK_INT(rmdir(root_path), 0);
    mt_arena_free(arena);
    error = mt_err_free(error);
}

static inline const mt_vfs_path *at(const char *text)
{
    static mt_vfs_path paths[4];
    static unsigned next;
    mt_vfs_path *p = &paths[next++ % 4];

    if (mt_vfs_path_parse(mt_str_of(text), "path", p, NULL) < 0) {
        printf("Bail out! bad path in a test: %s\n", text);
        exit(1);
    }
    return p;
}

// The name of the error that a call left, "" when it left none; forgets it.
static inline const char *code(int r)
{
    const char *name = r < 0 ? mt_code_name(mt_err_code(error)) : "";

    error = mt_err_free(error);
    return name;
}

static inline int put_bytes(const char *path, const void *data, size_t len)
{
    _cleanup_vfs_upload_ mt_vfs_upload *up = NULL;

    if (mt_vfs_upload_begin(vfs, at(path), (int64_t)len, &up, &error) < 0 ||
        mt_vfs_upload_write(up, data, len, &error) < 0)
        return -1;
    return mt_vfs_upload_commit(up, NULL, NULL, &error);
}

static inline int put(const char *path, const char *text)
{
    return put_bytes(path, text, strlen(text));
}

// The content of a file, malloc'd; NULL with error set.
static inline char *get(const char *path)
{
    _cleanup_close_ int fd = -1;
    mt_vfs_entry entry;
    mt_arena *a = mt_arena_new(1 << 16);
    mt_buf content = MT_BUF_INIT(64 << 20);
    int r = mt_vfs_open_file(vfs, at(path), a, &fd, &entry, &error);

    mt_arena_free(a);
    if (r < 0)
        return NULL;
    if (mt_read_all(fd, &content) < 0 || content.len != entry.size) {
        mt_buf_done(&content);
        return strdup("(short or long)");
    }
    if (content.len)
        return mt_buf_take(&content);
    mt_buf_done(&content);
    return strdup("");
}

static inline const char *get_code(const char *path)
{
    char *content = get(path);
    bool ok = content != NULL;

    free(content);
    return code(ok ? 0 : -1);
}

#define CHECK_CONTENT(path, expect)          \
    do {                                     \
        _cleanup_free_ char *c_ = get(path); \
        CHECK_STR(c_, expect);               \
        error = mt_err_free(error);          \
    } while (0)

static inline mt_vfs_entry look(const char *path)
{
    mt_vfs_entry entry = {.name = "(none)"};

    if (mt_vfs_stat(vfs, at(path), arena, &entry, &error) < 0)
        error = mt_err_free(error);
    return entry;
}

static inline bool is_there(const char *path)
{
    return look(path).path != NULL;
}

// How many names tmp holds.
static inline int count_names(const char *sub)
{
    char path[600];
    int n = 0;

    (void)snprintf(path, sizeof(path), "%s/%s", root_path, sub);
    DIR *dir = opendir(path);

    if (!dir)
        return -1;
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.' || e->d_name[1] > '.';
    (void)closedir(dir);
    return n;
}

static inline int count_tmp(void)
{
    char sub[64];

    (void)snprintf(sub, sizeof(sub), "%s/tmp", vfs_id);
    return count_names(sub);
}
