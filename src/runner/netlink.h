// SPDX-License-Identifier: Apache-2.0
// Just enough of rtnetlink: links, addresses, routes. Messages are built one behind the other in
// one buffer and sent with one call; the kernel does them in order.
#pragma once

#include "base/macros.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

enum { NL_BATCH_BYTES = 2048, NL_BATCH_MAX = 16 };

typedef struct nl_batch {
    // private
    _Alignas(8) char data_[NL_BATCH_BYTES];
    size_t len_;
    struct nlmsghdr *last_;
    unsigned count_;
    bool full_;
} nl_batch;

// A socket in the caller's network namespace; it stays there. groups: RTMGRP_…. fd or -errno.
int nl_open(unsigned groups);

void nl_init(nl_batch *b);
// Begins another message; an acknowledgement is asked for.
void nl_begin(nl_batch *b, uint16_t type, uint16_t flags, const void *head, size_t size);
void nl_put(nl_batch *b, uint16_t type, const void *data, size_t size);
void nl_put_u32(nl_batch *b, uint16_t type, uint32_t value);
void nl_put_text(nl_batch *b, uint16_t type, const char *text);
struct rtattr *nl_nest(nl_batch *b, uint16_t type);
// The head of a nested message, as of VETH_INFO_PEER.
void nl_put_raw(nl_batch *b, const void *data, size_t size);
void nl_end(nl_batch *b, struct rtattr *nest);
// Sends all and takes every acknowledgement: 0, or the first error.
int nl_send(int fd, nl_batch *b);

// The index of the interface that packets to the address (4 or 16 bytes) leave by; 0: no route.
int nl_route_to(int fd, int family, const void *address);
bool nl_has_link(int fd, int index);
// Calls fn for each address of each interface. 0 or -errno.
typedef void nl_address_fn(int family, const void *address, void *data);
int nl_addresses(int fd, nl_address_fn *fn, void *data);
// Drops what has come from the groups: whether there was something.
bool nl_drain(int fd);
