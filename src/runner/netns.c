// SPDX-License-Identifier: Apache-2.0
// New network namespaces, as every capsule's is to begin with.
#include "runner/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int loopback_up(void)
{
    _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

void netns_set(const char *path, const char *value)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)!write(fd, value, strlen(value));
}

int netns_make(void)
{
    int fd, r;

    if (unshare(CLONE_NEWNET) < 0)
        return -errno;
    r = loopback_up();
    if (r < 0)
        return r;
    // Comforts: ports below 1024 and ping for everybody inside.
    netns_set("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    netns_set("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
    fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}
