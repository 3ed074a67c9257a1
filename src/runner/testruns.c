// SPDX-License-Identifier: Apache-2.0
#include "runner/testruns.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>

#define VFS_ID "01932b6c-0000-7000-8000-000000000001"

bed *the_bed;
const char *data_path;
static const mt_plan_mount MOUNT = {VFS_ID, "data"};
static const char *const USERS[] = {"sandbox"};

bool runs_begin(int argc, char **argv, const char **ret_why)
{
    the_bed = bed_new(argc > 1 ? argv[1] : "mt-init", ret_why);
    if (!the_bed)
        return false;
    data_path = strdup(bed_vfs_make(the_bed, VFS_ID));
    return true;
}

void runs_end(void)
{
    bed_free(the_bed);
    free((void *)(uintptr_t)data_path);
}

mt_plan plan_of(const mt_plan_command *commands, uint32_t count, bool auto_terminate)
{
    return (mt_plan){
        .mounts = &MOUNT,
        .mount_count = 1,
        .users = USERS,
        .user_count = 1,
        .startup = commands,
        .startup_count = count,
        .auto_terminate = auto_terminate,
        .max_duration_ms = 20000,
        .limits = {.memory_bytes = 256 << 20, .pids = 128, .disk_bytes = 64 << 20},
    };
}

void say(const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");

        printf("# %.*s\n", (int)len, text);
        text += len + (text[len] ? 1 : 0);
    }
}

const char *output_of(const char *name)
{
    static char text[16384];
    char path[512];
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(sizeof(text) - 1);

    (void)snprintf(path, sizeof(path), "%s/%s", data_path, name);
    if (mt_read_file(AT_FDCWD, path, &b) < 0)
        return "(no file)";
    (void)snprintf(text, sizeof(text), "%s", mt_buf_str(&b));
    (void)unlink(path);
    return text;
}

bool send_terminate(const bed_run *r, const char *by, int times)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);
    _cleanup_close_ int fd = bed_connect(r);

    for (int i = 0; i < times; i++)
        (void)mt_put_terminate(&b, i ? "someone else" : by);
    return fd >= 0 && mt_write_full(fd, b.data, b.len) == 0;
}
