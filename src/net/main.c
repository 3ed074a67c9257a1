// SPDX-License-Identifier: Apache-2.0
// Started by the gateway's holder with its control socket as fd 3, as a user of its own.
#include "net/net.h"

#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

static bool is_control(int fd)
{
    int type = 0;
    socklen_t len = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

static int begin(net *n)
{
    n->loop = mt_loop_new();
    if (!n->loop)
        return -ENOMEM;
    n->control = mt_io_add(n->loop, MT_NET_CONTROL_FD, EPOLLIN, net_on_control, n);
    if (!n->control)
        return -ENOMEM;
    (void)mt_set_nonblock(MT_NET_CONTROL_FD, true);
    return net_seal();
}

int main(int argc, char **argv)
{
    net n = {0};
    int r;

    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        (void)printf("mt-net %s\n", MT_VERSION);
        return 0;
    }
    if (argc > 1 || !is_control(MT_NET_CONTROL_FD)) {
        (void)fprintf(stderr, "mt-net: mt-runner starts it; it is of no use by hand\n");
        return 2;
    }
    mt_log_init("mt-net", MT_LOG_INFO);
    if (geteuid() == 0) {
        mt_log_plain(MT_LOG_ERROR, "mt-net does not run as root");
        return 1;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    r = begin(&n);
    if (r == 0)
        r = mt_loop_run(n.loop);
    if (r < 0)
        mt_log(MT_LOG_ERROR, "mt-net cannot go on", {"reason", strerror(-r)});
    return r < 0;
}
