// SPDX-License-Identifier: Apache-2.0
// mt-net: looks up names for capsules. It answers at sockets that were made inside capsules'
// namespaces and asks the host's resolvers from where it is, the host's own network. Capsules are
// hostile: each has its share of what may be under way, whoever else asks how much.
//
// One thread, one loop. It opens no file; everything but a few calls on sockets is shut (seal.c).
#pragma once

#include "base/log.h"
#include "base/loop.h"
#include "capsule/netwire.h"
#include "net/dns.h"

#include <netinet/in.h>

enum {
    NET_SPACES_MAX = 16384,
    NET_QUERIES_MAX = 8192, // by UDP, under way
    NET_QUERIES_EACH = 64,  // of one capsule
    NET_STREAMS_MAX = 512,  // connections of capsules
    NET_STREAMS_EACH = 8,
    NET_RATE = 500,    // queries a second of one capsule
    NET_BURST = 1000,  // and at once
    NET_TRY_MS = 1500, // for one resolver
    NET_TRIES = 4,     // in all: before a capsule's own patience (5 s) is over
};

typedef struct net {
    mt_loop *loop;
    mt_io *control;
    mt_net_message resolvers;
    struct capsule *capsules;
    unsigned capsule_count, query_count, stream_count;
    bool alone; // whoever held the other end of the control socket is gone
} net;

// What mt-net has in one capsule.
typedef struct capsule {
    struct capsule *next;
    net *n;
    int life_fd, udp_fd, tcp_fd;
    mt_io *life_io, *udp_io, *tcp_io;
    struct query *queries;
    struct stream *streams;
    unsigned query_count, stream_count;
    int64_t budget; // queries it may send, in thousandths
    int64_t budget_us;
} capsule;

// space.c
void net_on_control(mt_io *io, uint32_t events, void *data);
bool capsule_may_ask(capsule *c); // takes one from its budget
// One more of what all capsules share (base/share.h): a query by UDP under way, a connection.
bool capsule_may_wait(const capsule *c);
bool capsule_may_connect(const capsule *c);

// query.c: what came by UDP.
void query_on_udp(mt_io *io, uint32_t events, void *data);
void query_drop_all(capsule *c);
// The address of the i-th try's resolver.
socklen_t net_resolver(const net *n, unsigned i, struct sockaddr_storage *ret);
uint16_t net_random16(void);

// stream.c: what came by TCP.
void stream_on_listen(mt_io *io, uint32_t events, void *data);
void stream_drop_all(capsule *c);

// seal.c: only calls on what is open, and new sockets for the internet protocols. 0 or -errno.
int net_seal(void);
