// SPDX-License-Identifier: Apache-2.0
// Sockets of hostile peers. What a peer sends along with its bytes (SCM_RIGHTS) is closed by who
// reads them, or closes the socket unread, and closing may take long: of files that the peer has
// chosen for it, seconds. Linux 6.16 and newer lets a socket refuse it; on older ones a thread of
// its own does all that closing.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

// Nobody sends descriptors to this socket, nor to those that it accepts from then on. False where
// the kernel has no such thing: then the two below are needed.
bool mt_refuse_fds(int socket);
// recv(2) that does not wait. Where descriptors came along: -1 and EPROTO.
ssize_t mt_recv_aside(int fd, void *data, size_t len);
// Closes *fd by the thread and sets it to -1; accepts -1.
void mt_close_aside(int *fd);
