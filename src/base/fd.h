// SPDX-License-Identifier: Apache-2.0
// File descriptors: whole reads and writes, small files. Every fd is O_CLOEXEC from birth. These
// are plain wrappers: they return 0 or a negative errno.
#pragma once

#include "base/buf.h"

#include <sys/types.h>
#include <sys/uio.h>

int mt_read_full(int fd, void *data, size_t len);        // -ENODATA when the end comes first
int mt_write_full(int fd, const void *data, size_t len); // waits (poll) where fd is non-blocking
// Appends the rest of fd to b; -EMSGSIZE past b->max.
int mt_read_all(int fd, mt_buf *b);
// A file under dirfd (AT_FDCWD for a plain path).
int mt_read_file(int dirfd, const char *path, mt_buf *b);
// Writes a temporary file beside path, syncs it, renames it over path and syncs the folder.
int mt_write_file_atomic(int dirfd, const char *path, const void *data, size_t len, mode_t mode);
int mt_set_nonblock(int fd, bool on);
int mt_mkdir_p(const char *path, mode_t mode); // -EEXIST is not an error
// As many fds as the process may have; root gets at least so many. A shell's 1,024 are not enough.
void mt_allow_many_fds(unsigned wanted);
// One packet (or message of a stream) with at most MT_FDS_MAX fds, over a Unix socket. flags: as of
// sendmsg(2), MSG_NOSIGNAL among them. 0 or negative errno.
enum { MT_FDS_MAX = 80 }; // all file systems of a run, and what goes with them
int mt_send_fds(int socket, const void *data, size_t len, const int *fds, size_t count, int flags);
// Its bytes, at most size of them: their number or negative errno. fds gets `count` fds, -1 where
// there came none; what came beyond that is closed. They are CLOEXEC.
ssize_t mt_receive_fds(int socket, void *data, size_t size, int *fds, size_t count, int flags);
// The same for bytes in several places.
int mt_send_fds_of(int socket, const struct iovec *parts, size_t part_count, const int *fds,
                   size_t count, int flags);
ssize_t mt_receive_fds_of(int socket, const struct iovec *parts, size_t part_count, int *fds,
                          size_t count, int flags);
size_t mt_fds_count(const int *fds, size_t count); // of those that came
