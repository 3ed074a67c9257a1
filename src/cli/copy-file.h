// SPDX-License-Identifier: Apache-2.0
// Single transfers, for cmd-copy.c.
#pragma once

#include "cli/copy.h"

int copy_down_to_fd(cli *c, const vfs_path *from, const char *path, int fd, cli_progress *progress,
                    mt_err **err);
// To name in folder, by a temporary file beside it. A link there is replaced, not followed.
int copy_down(cli *c, const vfs_path *from, const char *path, int folder, const char *name,
              cli_progress *progress, mt_err **err);
// size bytes of fd, -1: until its end.
int copy_up(cli *c, int fd, int64_t size, const vfs_path *to, const char *path,
            cli_progress *progress, mt_err **err);
// By a temporary file here.
int copy_across(cli *c, const vfs_path *from, const char *from_path, const vfs_path *to,
                const char *to_path, cli_progress *progress, mt_err **err);
