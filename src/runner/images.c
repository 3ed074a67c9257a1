// SPDX-License-Identifier: Apache-2.0
// What HELLO is answered with.
#include "runner/runner.h"

#include "base/fd.h"
#include "capsule/syscalls.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

static mt_str copy_text(mt_arena *a, const char *s)
{
    char *c = mt_arena_strdup(a, s);

    return c ? mt_str_of(c) : MT_STR("");
}

// A small file below dirfd, links not followed; "" when it cannot be read.
static mt_str read_small(int dirfd, const char *path, size_t max, mt_arena *a, struct stat *st)
{
    _cleanup_close_ int fd = mt_sys_open_beneath(dirfd, path, O_RDONLY, 0);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(max);
    char *c;

    if (fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode) || mt_read_all(fd, &b) < 0)
        return MT_STR("");
    c = mt_arena_strndup(a, mt_buf_str(&b), b.len);
    return c ? (mt_str){c, b.len} : MT_STR("");
}

static bool read_image(runner *r, const char *name, mt_arena *a, mt_info_image *ret)
{
    char path[320];
    struct stat st;
    mt_str digest, json;

    (void)snprintf(path, sizeof(path), "names/%s", name);
    digest = read_small(r->images_fd, path, 128, a, &st);
    while (digest.len &&
           (digest.data[digest.len - 1] == '\n' || digest.data[digest.len - 1] == ' '))
        digest.len--;
    if (!mt_is_digest(digest))
        return false;
    (void)snprintf(path, sizeof(path), "%.64s/image.json", digest.data);
    json = read_small(r->images_fd, path, MT_INFO_JSON_MAX, a, &st);
    if (json.len == 0)
        return false;
    *ret = (mt_info_image){
        .name = copy_text(a, name),
        .digest = digest,
        .json = json,
        .made_us = st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000,
    };
    return true;
}

static void read_images(runner *r, mt_arena *a, mt_info *ret)
{
    mt_info_image *list = mt_arena_array_of(a, mt_info_image, MT_INFO_IMAGES_MAX);
    int fd = mt_sys_open_beneath(r->images_fd, "names", O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d || !list) {
        if (d)
            (void)closedir(d);
        else
            mt_close_fd(&fd);
        return;
    }
    while (ret->image_count < MT_INFO_IMAGES_MAX && (e = readdir(d)))
        if (mt_is_name(mt_str_of(e->d_name)) &&
            read_image(r, e->d_name, a, &list[ret->image_count]))
            ret->image_count++;
    (void)closedir(d);
    ret->images = list;
}

static void read_notices(runner *r, mt_arena *a, mt_info *ret)
{
    mt_str *list = mt_arena_array_of(a, mt_str, RUNNER_NOTICES_MAX);

    if (!list)
        return;
    for (size_t i = 0; i < r->notice_count; i++)
        list[ret->notice_count++] = mt_str_of(r->notices[i]);
    if (*gateway_notice(r) && ret->notice_count < RUNNER_NOTICES_MAX)
        list[ret->notice_count++] = copy_text(a, gateway_notice(r));
    ret->notices = list;
}

int images_info(runner *r, mt_arena *a, mt_info *ret)
{
    *ret = (mt_info){
        .version = MT_STR(MT_VERSION),
        .boot_id = mt_str_of(r->boot_id),
        .cgroup_mode = mt_str_of(mt_cgroups_mode_word(r->cgroups)),
        .scratch_kind = mt_str_of(mt_scratch_is_btrfs(r->scratch) ? "btrfs" : "tmpfs"),
        .memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
        .memory_cap_bytes = mt_cgroups_memory_cap(r->cgroups),
        .cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
        .live_runs = r->live_runs,
    };
    mt_scratch_space(r->scratch, &ret->scratch_bytes, &ret->scratch_free_bytes);
    read_notices(r, a, ret);
    read_images(r, a, ret);
    return 0;
}
