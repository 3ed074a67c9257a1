// SPDX-License-Identifier: Apache-2.0
// The gateway of an instance: a network namespace of the product's own through which capsules with
// network "internet" reach the world, and the process that holds it (mt-gateway, a fork of the
// runner that lives on without it, as supervisors do).
//
//   capsule          gateway                                the host
//   eth0  ── veth ── mtcN   firewall   uplink ── pasta ── sockets
//   127.0.0.53:53 ──────────────────────────── mt-net ─── the host's resolvers
//
// The holder loads the firewall and reads it back before the first veth is made, watches pasta and
// mt-net and starts them again, and makes capsules' namespaces ahead when the runner asks. Nothing
// is added to the host's own namespace. Each namespace has a *life*: the write end of a pipe, which
// the runner and then the run's supervisor hold. When its last copy is closed, the holder and
// mt-net close the sockets that they have inside, and the kernel takes the namespace with its veth.
//
// The holder listens on /run/maitento-ids/gateway-INSTANCE for the runner (SOCK_SEQPACKET). It
// leaves when there is neither a runner nor a life.
#pragma once

#include "runner/runner.h"

enum { GATEWAY_PROTOCOL = 1, GATEWAY_TEXT = 400 };

typedef enum gateway_state {
    GATEWAY_COMING, // not yet known
    GATEWAY_READY,  // starts may come
    GATEWAY_SHUT,   // they fail, with the sentence
} gateway_state;

typedef enum gateway_kind {
    GATEWAY_TELLS = 1, // holder: its state; the first one comes with the fd of its namespace
    GATEWAY_SPACE,     // holder: fds of a namespace and of its life
    GATEWAY_NO_SPACE,  // holder: one of those asked for could not be made: sentence
    GATEWAY_MAKE,      // runner: make `count` namespaces
} gateway_kind;

typedef struct gateway_message {
    uint32_t protocol;
    uint32_t kind;
    uint32_t state;
    uint32_t count;
    int32_t pid;
    char sentence[GATEWAY_TEXT]; // why starts fail
    char notice[GATEWAY_TEXT];   // for mt doctor, though starts may come
} gateway_message;

// What a holder is given when it is forked.
typedef struct gateway_parts {
    int listen_fd;    // where runners connect
    int mounts_fd;    // the host's mount namespace: programs and resolv.conf are there
    int namespace_fd; // the gateway's namespace, from a holder that died; -1: make one
    int dns_fd;       // the program mt-net; -1: it was not found
    uid_t dns_uid;    // who it runs as
    gid_t dns_gid;
} gateway_parts;

// The holder's whole life. Its process has no fd but those and 0 to 2.
MT_NORETURN void gateway_hold(const gateway_parts *parts);

// One packet, with at most two fds. 1, 0 when there is none now, negative at the end (-EPROTO: the
// other side speaks in another way).
int gateway_send(int fd, const gateway_message *m, const int *fds, size_t count);
int gateway_receive(int fd, gateway_message *m, int fds[2]);
