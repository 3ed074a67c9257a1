// SPDX-License-Identifier: Apache-2.0
// A large command waits in a file beside the spools, out/<command id>.queued.
#include "base/fd.h"
#include "capsule/syscalls.h"
#include "runner/commands-internal.h"

#include <stdio.h>
#include <sys/stat.h>

enum { NAME_BYTES = 48 };

// The folder of the run hands its group on (setgid), so that the service may read what is made in
// it.
int commands_open_out(commands *cs, mt_err **err)
{
    if (cs->out_dir_fd >= 0)
        return 0;
    if (mkdirat(cs->host.run_dir_fd, "out", 0750) < 0 && errno != EEXIST)
        return mt_fail_errno(err, errno, "cannot make the folder of the commands' output");
    cs->out_dir_fd = mt_sys_open_beneath(cs->host.run_dir_fd, "out", O_RDONLY | O_DIRECTORY, 0);
    if (cs->out_dir_fd < 0)
        return mt_fail_errno(err, errno, "cannot open the folder of the commands' output");
    return 0;
}

static const char *name_of(const command *c, char name[NAME_BYTES])
{
    (void)snprintf(name, NAME_BYTES, "%s.queued", c->id);
    return name;
}

void command_file_remove(command *c)
{
    char name[NAME_BYTES];

    if (c->spilled)
        (void)unlinkat(c->of->out_dir_fd, name_of(c, name), 0);
    c->spilled = false;
}

// So that 10,000 commands with 8 MiB of standard input each take no memory. Where there is no room
// for the file it stays in memory.
void command_file_write(command *c, const void *data)
{
    _cleanup_close_ int fd = -1;
    char name[NAME_BYTES];

    if (commands_open_out(c->of, NULL) < 0)
        return;
    fd =
        mt_sys_open_beneath(c->of->out_dir_fd, name_of(c, name), O_WRONLY | O_CREAT | O_EXCL, 0600);
    c->spilled = fd >= 0;
    if (fd >= 0 && mt_write_full(fd, data, c->len) < 0)
        command_file_remove(c);
}

int command_file_load(command *c, mt_err **err)
{
    char name[NAME_BYTES];
    _cleanup_close_ int fd = -1;

    if (!c->spilled)
        return 0;
    c->of->bytes += c->len;
    c->bytes = malloc(c->len);
    if (!c->bytes)
        return mt_fail_oom(err);
    fd = mt_sys_open_beneath(c->of->out_dir_fd, name_of(c, name), O_RDONLY, 0);
    if (fd < 0 || mt_read_full(fd, c->bytes, c->len) < 0)
        return mt_fail(err, MT_E_IO, "the file in which the command waited cannot be read");
    command_file_remove(c);
    return 0;
}
