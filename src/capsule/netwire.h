// SPDX-License-Identifier: Apache-2.0
// What the gateway's holder tells mt-net, over a SOCK_SEQPACKET pair whose end is fd 3 of mt-net.
// mt-net says nothing. When the holder's end closes, mt-net goes on for the namespaces that it has,
// and leaves with the last of them.
#pragma once

#include "base/macros.h"

enum { MT_NET_CONTROL_FD = 3, MT_NET_RESOLVERS_MAX = 3 };

typedef enum mt_net_kind {
    MT_NET_RESOLVERS = 1, // whom to ask from now on
    MT_NET_SPACE,         // a namespace: fds of its life, and of its sockets for UDP and for TCP
} mt_net_kind;

typedef struct mt_net_resolver {
    uint32_t family; // AF_INET or AF_INET6
    uint32_t scope;  // interface of a link-local address
    uint8_t address[16];
} mt_net_resolver;

typedef struct mt_net_message {
    uint32_t kind;
    uint32_t count;
    mt_net_resolver resolvers[MT_NET_RESOLVERS_MAX];
} mt_net_message;
