// SPDX-License-Identifier: Apache-2.0
// Between the files of the gateway's holder (gateway.h). One process, one loop.
#pragma once

#include "capsule/netwire.h"
#include "runner/gateway.h"
#include "runner/netlink.h"

#define GATEWAY_UPLINK "uplink"
#define GATEWAY_VETH   "mtc"
#define GATEWAY_TABLE  "maitento"

// The capsules' own addresses: 100.126.0.1 and fd4d:6169:7465::1 are the gateway's, the slot is
// added to the network. None of them is seen outside the gateway. They are of the range that
// carriers use, as no service is there, and of a part of it that a carrier's own gateway is not
// likely to be in.
#define GATEWAY_NET4     0x647e0000u
#define GATEWAY_NET4_TXT "100.126.0.0/15"
#define GATEWAY_NET6_TXT "fd4d:6169:7465::/64"
enum {
    GATEWAY_SLOT_FIRST = 16,
    GATEWAY_SLOT_LAST = (1 << 17) - 16,
    GATEWAY_INDEX = 1000,       // slot + this: the number of the gateway's end
    GATEWAY_SPACES_MAX = 16384, // alive at a time
};

typedef struct space {
    struct space *next;
    struct gateway_holder *g;
    uint32_t slot;
    int life_fd; // read end: its end is the end of the space
    int udp_fd, tcp_fd;
    mt_io *io;
    bool told; // mt-net has it
} space;

// A program that is watched and started again.
typedef struct tool {
    struct gateway_holder *g;
    pid_t pid; // 0: it does not run
    int pidfd;
    mt_io *io;
    int64_t began_ns;
    unsigned failures;           // one after the other, none in between lasting
    char sentence[GATEWAY_TEXT]; // of the last failure
    mt_timer *again;
    void (*ended)(struct tool *t, int status);
} tool;

typedef struct gateway_holder {
    gateway_parts parts;
    pid_t pid;
    mt_loop *loop;
    mt_io *listen_io;
    int conn_fd; // the runner; -1: none
    mt_io *conn_io;
    int host_fd, netns_fd;       // network namespaces: the host's (where we are), and the gateway's
    int host_nl, host_events_nl; // rtnetlink in the host's: questions; what changes
    int netns_nl;                // and in the gateway's
    mt_timer *look;              // something changed on the host
    mt_timer *resolver_timer;
    space *spaces;
    unsigned space_count;
    uint32_t slot; // the last one given away
    bool rules_loaded;
    char rules_sentence[GATEWAY_TEXT];
    int64_t rules_tried_ns;
    tool uplink;
    mt_timer *uplink_timer; // waits for the interface
    bool uplink_up, uplink_was_up;
    bool uplink_waits; // the host has no route
    int uplink_log_fd;
    int uplink_via4, uplink_via6; // interfaces of the host that it was started for
    tool dns;
    int dns_fd; // control socket to mt-net
    mt_io *dns_io;
    mt_net_message resolvers;
    bool resolvers_told;
    gateway_message told;
} gateway_holder;

// gateway-hold.c
void gateway_tell(gateway_holder *g); // the runner, when something is new
bool gateway_find_program(const char *name, char *out, size_t size);
// Runs a program in the gateway's namespace with that input; what it printed on either output goes
// to out. Its wait status, or -errno.
int gateway_run(gateway_holder *g, const char *const argv[], mt_str input, mt_buf *out);
// After a fork. parent: its death is the end; 0: it is not.
void gateway_begin_child(pid_t parent);

// gateway-tool.c
int tool_init(tool *t, gateway_holder *g, mt_timer_fn *again);
// Watches a child. ended: called when it has ended and was reaped.
int tool_watch(tool *t, pid_t pid, void (*ended)(tool *t, int status));
void tool_again(tool *t); // arms its timer, later with every failure
void tool_end(tool *t);   // kills it and waits for that

// gateway-rules.c: the firewall.
int rules_load(gateway_holder *g); // 0 or -1 with rules_sentence
void rules_set_host(gateway_holder *g);

// gateway-uplink.c: pasta.
int uplink_init(gateway_holder *g);
void uplink_look(gateway_holder *g); // the host's routes may have changed

// gateway-dns.c: mt-net.
int dns_init(gateway_holder *g);
void dns_add(gateway_holder *g, const space *s);
void dns_look(gateway_holder *g); // the host's resolvers may have changed

// gateway-space.c
// Makes the namespace of that slot: fds of it and of its life. 0 or -errno (-EEXIST: a slot in
// use).
int space_make(gateway_holder *g, space *s, int *ret_netns, int *ret_life);
