// SPDX-License-Identifier: Apache-2.0
// Capsules' namespaces: a veth whose other end is the gateway's, addresses, routes, and the sockets
// that names are asked at. Both ends of a veth have one hardware address and no ARP: there is
// nobody else on the wire, so nobody has to be looked for, and the host's table of neighbours,
// which is one for all namespaces, is not filled by capsules.
#include "runner/gateway-internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>

enum { INNER_INDEX = 2, MTU = 65520, BACKLOG = 16 };

static const unsigned char HARDWARE[6] = {0x02, 'm', 't', 0, 0, 1};

typedef struct addresses {
    in_addr_t own4, gateway4;
    struct in6_addr own6, gateway6;
} addresses;

static struct in6_addr address6(uint32_t slot)
{
    struct in6_addr a = {.s6_addr = {0xfd, 0x4d, 0x61, 0x69, 0x74, 0x65}};
    uint32_t n = htonl(slot);

    memcpy(a.s6_addr + 12, &n, sizeof(n));
    return a;
}

static void fill_addresses(addresses *a, uint32_t slot)
{
    a->own4 = htonl(GATEWAY_NET4 + slot);
    a->gateway4 = htonl(GATEWAY_NET4 + 1);
    a->own6 = address6(slot);
    a->gateway6 = address6(1);
}

static void put_end(nl_batch *b, const char *name)
{
    nl_put_text(b, IFLA_IFNAME, name);
    nl_put(b, IFLA_ADDRESS, HARDWARE, sizeof(HARDWARE));
    nl_put_u32(b, IFLA_MTU, MTU);
}

static void put_veth(nl_batch *b, const char *peer_name, int peer_index, int peer_netns)
{
    struct ifinfomsg link = {
        .ifi_index = INNER_INDEX, .ifi_flags = IFF_NOARP, .ifi_change = IFF_NOARP};
    struct ifinfomsg peer = link;
    struct rtattr *info, *data, *end;

    peer.ifi_index = peer_index;
    nl_begin(b, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &link, sizeof(link));
    put_end(b, "eth0");
    info = nl_nest(b, IFLA_LINKINFO);
    nl_put_text(b, IFLA_INFO_KIND, "veth");
    data = nl_nest(b, IFLA_INFO_DATA);
    end = nl_nest(b, VETH_INFO_PEER);
    nl_put_raw(b, &peer, sizeof(peer));
    put_end(b, peer_name);
    nl_put_u32(b, IFLA_NET_NS_FD, (uint32_t)peer_netns);
    nl_end(b, end);
    nl_end(b, data);
    nl_end(b, info);
}

static void put_up(nl_batch *b, int index)
{
    struct ifinfomsg up = {.ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};

    nl_begin(b, RTM_NEWLINK, 0, &up, sizeof(up));
}

// Point to point: the other end's address is a route of its own.
static void put_address(nl_batch *b, int family, int index, const void *own, const void *other)
{
    unsigned char bits = family == AF_INET ? 32 : 128;
    struct ifaddrmsg m = {.ifa_family = (unsigned char)family,
                          .ifa_prefixlen = bits,
                          .ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0,
                          .ifa_index = (unsigned)index};

    nl_begin(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &m, sizeof(m));
    nl_put(b, IFA_LOCAL, own, bits / 8);
    nl_put(b, IFA_ADDRESS, other, bits / 8);
}

// to: a host (any: NULL) on that link; via: through that host on it, or NULL. The kernel makes the
// route to the other end of an IPv6 address itself, but only later: it is not waited for.
static void put_route(nl_batch *b, int family, int index, const void *to, const void *via)
{
    size_t size = family == AF_INET ? 4 : 16;
    struct rtmsg m = {.rtm_family = (unsigned char)family,
                      .rtm_dst_len = to ? (unsigned char)(size * 8) : 0,
                      .rtm_table = RT_TABLE_MAIN,
                      .rtm_protocol = RTPROT_BOOT,
                      .rtm_scope = via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                      .rtm_type = RTN_UNICAST,
                      .rtm_flags = via ? RTNH_F_ONLINK : 0};

    nl_begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &m, sizeof(m));
    if (to)
        nl_put(b, RTA_DST, to, size);
    if (via)
        nl_put(b, RTA_GATEWAY, via, size);
    nl_put_u32(b, RTA_OIF, (uint32_t)index);
}

static int make_link(int nl, gateway_holder *g, uint32_t slot)
{
    char peer[16];
    nl_batch b;

    (void)snprintf(peer, sizeof(peer), GATEWAY_VETH "%x", slot);
    nl_init(&b);
    put_veth(&b, peer, (int)(slot + GATEWAY_INDEX), g->netns_fd);
    return nl_send(nl, &b);
}

// The end that comes up last finds the other one there: nothing has to wait for a carrier.
static int make_outer(gateway_holder *g, uint32_t slot, const addresses *a, bool has6)
{
    int index = (int)(slot + GATEWAY_INDEX);
    nl_batch b;

    nl_init(&b);
    put_up(&b, index);
    put_address(&b, AF_INET, index, &a->gateway4, &a->own4);
    if (has6) {
        put_address(&b, AF_INET6, index, &a->gateway6, &a->own6);
        put_route(&b, AF_INET6, index, &a->own6, NULL);
    }
    return nl_send(g->netns_nl, &b);
}

static int make_inner(int nl, const addresses *a, bool has6)
{
    nl_batch b;

    nl_init(&b);
    put_up(&b, INNER_INDEX);
    put_address(&b, AF_INET, INNER_INDEX, &a->own4, &a->gateway4);
    put_route(&b, AF_INET, INNER_INDEX, NULL, &a->gateway4);
    if (has6) {
        put_address(&b, AF_INET6, INNER_INDEX, &a->own6, &a->gateway6);
        put_route(&b, AF_INET6, INNER_INDEX, NULL, &a->gateway6);
    }
    return nl_send(nl, &b);
}

static int open_sockets(space *s)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(0x7f000035)};
    const int on = 1;

    s->udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    s->tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->udp_fd < 0 || s->tcp_fd < 0 ||
        setsockopt(s->tcp_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(s->udp_fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
        bind(s->tcp_fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(s->tcp_fd, BACKLOG) < 0)
        return -errno;
    return 0;
}

// In the capsule's namespace, which the caller is in.
static int make_all(gateway_holder *g, space *s)
{
    bool has6 = access("/proc/sys/net/ipv6", F_OK) == 0;
    _cleanup_close_ int nl = nl_open(0);
    addresses a;
    int r = MT_MIN(nl, 0);

    fill_addresses(&a, s->slot);
    // Nothing is advertised on this wire, and no address of it is made up.
    netns_set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "0");
    netns_set("/proc/sys/net/ipv6/conf/default/accept_ra", "0");
    netns_set("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1");
    if (r == 0)
        r = make_link(nl, g, s->slot);
    if (r == 0)
        r = make_outer(g, s->slot, &a, has6);
    if (r == 0)
        r = make_inner(nl, &a, has6);
    return r == 0 ? open_sockets(s) : r;
}

int space_make(gateway_holder *g, space *s, int *ret_netns, int *ret_life)
{
    _cleanup_close_ int netns = -1;
    int life[2], r;

    netns = netns_make();
    r = netns < 0 ? netns : make_all(g, s);
    if (setns(g->host_fd, CLONE_NEWNET) < 0)
        _exit(1); // nothing may be done in a capsule's place
    if (r < 0)
        return r;
    if (pipe2(life, O_CLOEXEC) < 0)
        return -errno;
    s->life_fd = life[0];
    *ret_life = life[1];
    *ret_netns = MT_TAKE_FD(netns);
    return 0;
}
