// SPDX-License-Identifier: Apache-2.0
// mt-net's shares: capsules that take all they may, and one more that comes later.
#include "net/net.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

enum { GREEDY = NET_STREAMS_MAX / NET_STREAMS_EACH, PATIENCE_MS = 20000 };

// The other ends of what mt-net has in a capsule.
typedef struct inside {
    int life;
    struct sockaddr_in address;
} inside;

static net n;
static int control;

static int bound(int type, struct sockaddr_in *ret)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = sizeof(a);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)ret, &len) == 0);
    return fd;
}

static inside capsule_new(void)
{
    const mt_net_message m = {.kind = MT_NET_SPACE};
    struct sockaddr_in udp;
    inside c;
    int life[2], fds[3];

    CHECK(pipe(life) == 0);
    fds[0] = life[0];
    fds[1] = bound(SOCK_DGRAM, &udp);
    fds[2] = bound(SOCK_STREAM, &c.address);
    CHECK(listen(fds[2], 64) == 0);
    CHECK_INT(mt_send_fds(control, &m, sizeof(m), fds, 3, 0), 0);
    c.life = life[1];
    for (int i = 0; i < 3; i++)
        (void)close(fds[i]);
    return c;
}

static bool turn_until(bool (*done)(void))
{
    int64_t end = mt_monotonic_us() + PATIENCE_MS * 1000;

    while (mt_monotonic_us() < end) {
        if (done())
            return true;
        (void)mt_loop_once(n.loop, 50);
    }
    return false;
}

static unsigned wanted;

static bool capsules_are_there(void)
{
    return n.capsule_count == wanted;
}

static int client(const inside *c)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (connect(fd, (const struct sockaddr *)&c->address, sizeof(c->address)) < 0 &&
        errno != EINPROGRESS)
        mt_close_fd(&fd);
    return fd;
}

static int clients[GREEDY * NET_STREAMS_EACH];

// Theirs is the kernel's part; what it has connected waits for mt-net.
static bool clients_are_connected(void)
{
    for (int i = 0; i < GREEDY * NET_STREAMS_EACH; i++) {
        struct pollfd p = {.fd = clients[i], .events = POLLOUT};

        if (poll(&p, 1, 0) != 1)
            return false;
    }
    return true;
}

static int asking;
static ssize_t answered;

static bool has_heard(void)
{
    uint8_t answer[512];

    answered = recv(asking, answer, sizeof(answer), MSG_DONTWAIT);
    return answered >= 0 || errno != EAGAIN;
}

// Bytes of the answer to a query; 0 where the connection is closed instead.
static ssize_t ask(const inside *c)
{
    static const char query[] = "\x00\x1d\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
                                "\x07"
                                "example"
                                "\x03"
                                "org"
                                "\x00\x00\x01\x00\x01";

    asking = client(c);
    while (send(asking, query, sizeof(query) - 1, MSG_NOSIGNAL) < 0 && errno == EAGAIN)
        (void)mt_loop_once(n.loop, 10);
    CHECK(turn_until(has_heard));
    mt_close_fd(&asking);
    return answered;
}

static void test_streams(void)
{
    inside greedy[GREEDY], late;

    for (int i = 0; i < GREEDY; i++)
        greedy[i] = capsule_new();
    late = capsule_new();
    wanted = GREEDY + 1;
    CHECK(turn_until(capsules_are_there));
    for (int i = 0; i < GREEDY * NET_STREAMS_EACH; i++) {
        clients[i] = client(&greedy[i / NET_STREAMS_EACH]);
        (void)mt_loop_once(n.loop, 0);
    }
    CHECK(turn_until(clients_are_connected));
    for (int i = 0; i < GREEDY * NET_STREAMS_EACH; i++)
        (void)mt_loop_once(n.loop, 0); // a listener takes one in a turn
    CHECK(n.stream_count > NET_STREAMS_MAX / 2 && n.stream_count < NET_STREAMS_MAX);
    CHECK(ask(&late) > 2);       // it hears that there is no resolver
    CHECK(ask(&greedy[0]) <= 0); // it has its share
    for (int i = 0; i < GREEDY * NET_STREAMS_EACH; i++)
        mt_close_fd(&clients[i]);
    for (int i = 0; i < GREEDY; i++)
        mt_close_fd(&greedy[i].life);
    mt_close_fd(&late.life);
    wanted = 0;
    CHECK(turn_until(capsules_are_there));
    CHECK_INT(n.stream_count, 0);
}

int main(void)
{
    int pair[2];

    mt_allow_many_fds(4096);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    control = fcntl(pair[0], F_DUPFD_CLOEXEC, 10);
    CHECK(dup2(pair[1], MT_NET_CONTROL_FD) == MT_NET_CONTROL_FD);
    n.loop = mt_loop_new();
    n.control = mt_io_add(n.loop, MT_NET_CONTROL_FD, EPOLLIN, net_on_control, &n);
    CHECK(n.loop && n.control);
    test_streams();
    mt_io_remove(n.control);
    mt_loop_free(n.loop);
    return TAP_DONE();
}
