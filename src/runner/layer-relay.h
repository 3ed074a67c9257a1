// SPDX-License-Identifier: Apache-2.0
// The way of a builder to mirrors and proxies of the operator's that capsules may not reach.
#pragma once

#include "runner/runner.h"

enum { RELAY_TARGETS_MAX = 24 };

typedef struct relay_target {
    char host[254]; // as the text has it: a name or an address
    uint16_t port;
    int family;          // 0: its address is not known
    uint8_t address[16]; // in network order
    int listen_fd;
} relay_target;

typedef struct relay_targets {
    relay_target targets[RELAY_TARGETS_MAX];
    size_t count;
} relay_targets;

// Adds host and port of every http or https URL in the text. proxy_port: of those that name none;
// 0: the scheme's.
void relay_find(relay_targets *list, const char *text, unsigned proxy_port);
// The text form of its address: false, it is none.
bool relay_set_address(relay_target *t, const char *text);
// Leaves in the list those whose address capsules may not reach, and starts a process that relays
// to them from the namespace. It dies with the caller. 0 or negative errno.
int relay_start(relay_targets *list, int netns_fd, uid_t uid);
