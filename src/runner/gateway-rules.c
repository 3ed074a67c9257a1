// SPDX-License-Identifier: Apache-2.0
// The firewall of the gateway: one table, the same for every capsule, that tells capsules apart by
// interface and source. It is loaded and read back before there is a capsule, and never touched for
// one. Only the host's own addresses are put in anew, when they change.
#include "runner/gateway-internal.h"

#include "base/clock.h"
#include "capsule/shut.h"

#include <arpa/inet.h>
#include <stdio.h>

enum { TEXT_MAX = 256 << 10, ADDRESSES_MAX = 4096 };

typedef struct rule {
    const char *chain;
    const char *text;
} rule;

// Everything from capsules is judged in `capsules`, wherever it is going: a shut address fails at
// once, by a reset or an ICMP answer, and so does one that no route leads to.
static const rule RULES[] = {
    {"capsules", "iifname != \"" GATEWAY_VETH "*\" accept"},
    // The route back to the source must lead through the very interface.
    {"capsules", "fib saddr . iif oif missing drop"},
    {"capsules", "ip saddr != " GATEWAY_NET4_TXT " drop"},
    {"capsules", "ip6 saddr != " GATEWAY_NET6_TXT " drop"},
    {"capsules", "ct state established,related accept"},
    {"capsules", "ct state invalid drop"},
    {"capsules", "ip daddr @shut4 goto shut"},
    {"capsules", "ip6 daddr @shut6 goto shut"},
    {"capsules", "ip daddr @host4 goto shut"},
    {"capsules", "ip6 daddr @host6 goto shut"},
    {"capsules", "fib daddr type != unicast goto shut"},
    {"capsules", "fib daddr oif missing goto shut"},
    {"capsules", "tcp dport 25 goto shut"},
    // The kernel's table of connections is one for all capsules.
    {"capsules", "add @busy4 { ip saddr ct count over 4096 } goto shut"},
    {"capsules", "add @busy6 { ip6 saddr ct count over 4096 } goto shut"},
    {"shut", "meta l4proto tcp reject with tcp reset"},
    {"shut", "reject with icmpx type admin-prohibited"},
    // Of a port that nobody listens on pasta tells by a reset without ACK, which the kernel of a
    // capsule would not take (RFC 9293, 3.10.7.3), though the number that it acknowledges is there:
    // connections would hang until they are given up.
    {"mend", "iifname \"" GATEWAY_UPLINK "\" tcp flags & (rst | ack) == rst tcp flags set 0x14"},
    // pasta sends TCP segments without any flag. The kernel takes them for invalid, does not
    // translate their address back, and would answer them with a reset of its own: connections that
    // hang.
    {"input", "iifname \"" GATEWAY_UPLINK "\" ct state invalid drop"},
    {"input", "iifname \"" GATEWAY_VETH "*\" drop"},
    {"forward", "iifname \"" GATEWAY_UPLINK "\" oifname \"" GATEWAY_VETH
                "*\" ct state established,related accept"},
    {"forward", "iifname \"" GATEWAY_VETH "*\" oifname \"" GATEWAY_UPLINK "\" accept"},
    {"translate", "oifname \"" GATEWAY_UPLINK "\" masquerade"},
};

// In this order: a jump needs its chain.
static const rule CHAINS[] = {
    {"shut", ""},
    {"capsules", "type filter hook prerouting priority -150; policy accept;"},
    {"mend", "type filter hook prerouting priority -300; policy accept;"},
    {"input", "type filter hook input priority 0; policy accept;"},
    {"forward", "type filter hook forward priority 0; policy drop;"},
    {"translate", "type nat hook postrouting priority 100; policy accept;"},
};

static void put_shut(mt_buf *b, const char *name, const char *type, const mt_shut *table,
                     size_t count)
{
    (void)mt_buf_addf(b, "set %s { type %s; flags interval; elements = {", name, type);
    for (size_t i = 0; i < count; i++)
        (void)mt_buf_addf(b, "%s %s/%u", i ? "," : "", table[i].address, table[i].bits);
    (void)mt_buf_adds(b, " }; }\n");
}

static void put_table(mt_buf *b)
{
    const mt_shut *table;
    size_t count;

    // Whatever is there, of a holder before this one, is replaced at once.
    (void)mt_buf_adds(b, "table inet " GATEWAY_TABLE "\ndelete table inet " GATEWAY_TABLE
                         "\ntable inet " GATEWAY_TABLE " {\n");
    table = mt_shut4_table(&count);
    put_shut(b, "shut4", "ipv4_addr", table, count);
    table = mt_shut6_table(&count);
    put_shut(b, "shut6", "ipv6_addr", table, count);
    (void)mt_buf_adds(b, "set host4 { type ipv4_addr; }\nset host6 { type ipv6_addr; }\n"
                         "set busy4 { type ipv4_addr; size 65535; flags dynamic; }\n"
                         "set busy6 { type ipv6_addr; size 65535; flags dynamic; }\n");
    for (size_t c = 0; c < MT_ARRAY_SIZE(CHAINS); c++) {
        (void)mt_buf_addf(b, "chain %s { %s\n", CHAINS[c].chain, CHAINS[c].text);
        for (size_t i = 0; i < MT_ARRAY_SIZE(RULES); i++)
            if (mt_streq(RULES[i].chain, CHAINS[c].chain))
                (void)mt_buf_addf(b, "%s comment \"mt-%zu\"\n", RULES[i].text, i);
        (void)mt_buf_adds(b, "}\n");
    }
    (void)mt_buf_adds(b, "}\n");
}

// --- the host's addresses ------------------------------------------------------------------------

typedef struct host_addresses {
    mt_buf list4, list6;
} host_addresses;

static void add_address(int family, const void *address, void *data)
{
    host_addresses *h = data;
    mt_buf *b = family == AF_INET ? &h->list4 : &h->list6;
    char text[INET6_ADDRSTRLEN];

    if (inet_ntop(family, address, text, sizeof(text)))
        (void)mt_buf_addf(b, "%s %s", b->len ? "," : "", text);
}

static void put_host(gateway_holder *g, mt_buf *b)
{
    host_addresses h = {.list4 = MT_BUF_INIT(ADDRESSES_MAX * 48),
                        .list6 = MT_BUF_INIT(ADDRESSES_MAX * 48)};
    const char *names[] = {"host4", "host6"};
    mt_buf *lists[] = {&h.list4, &h.list6};

    (void)nl_addresses(g->host_nl, add_address, &h);
    for (size_t i = 0; i < MT_ARRAY_SIZE(names); i++) {
        (void)mt_buf_addf(b, "flush set inet " GATEWAY_TABLE " %s\n", names[i]);
        if (lists[i]->len && !lists[i]->failed)
            (void)mt_buf_addf(b, "add element inet " GATEWAY_TABLE " %s {%s }\n", names[i],
                              mt_buf_str(lists[i]));
    }
    mt_buf_done(&h.list4);
    mt_buf_done(&h.list6);
}

// --- nft -----------------------------------------------------------------------------------------

// The first line of what nft had to say.
static int refuse(gateway_holder *g, const char *what, mt_buf *said)
{
    const char *text = mt_buf_str(said);

    (void)snprintf(g->rules_sentence, sizeof(g->rules_sentence), "%s: %.*s", what,
                   (int)MT_MIN(strcspn(text, "\n"), 240u), *text ? text : "it said nothing");
    return -1;
}

static bool find_nft(gateway_holder *g, char *path, size_t size)
{
    if (gateway_find_program("nft", path, size))
        return true;
    (void)snprintf(g->rules_sentence, sizeof(g->rules_sentence),
                   "nft is not installed on this host (Debian package nftables), and without its "
                   "firewall no capsule gets a network");
    return false;
}

static size_t count_in_set(const char *listed, const char *set)
{
    char head[32];
    const char *at, *end;
    size_t n = 1;

    (void)snprintf(head, sizeof(head), "set %s {", set);
    at = strstr(listed, head);
    at = at ? strstr(at, "elements = {") : NULL;
    end = at ? strchr(at + strlen("elements = {"), '}') : NULL;
    if (!end)
        return 0;
    for (; at < end; at++)
        n += *at == ',';
    return n;
}

// Every rule and every shut network, as the kernel says it has them.
static bool read_back(const char *listed)
{
    size_t count4, count6;
    char mark[32];

    (void)mt_shut4_table(&count4);
    (void)mt_shut6_table(&count6);
    for (size_t i = 0; i < MT_ARRAY_SIZE(RULES); i++) {
        (void)snprintf(mark, sizeof(mark), "comment \"mt-%zu\"", i);
        if (!strstr(listed, mark))
            return false;
    }
    return strstr(listed, "policy drop;") && count_in_set(listed, "shut4") == count4 &&
           count_in_set(listed, "shut6") == count6;
}

static int load(gateway_holder *g, const char *nft)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(TEXT_MAX), said = MT_BUF_INIT(TEXT_MAX);

    put_table(&text);
    put_host(g, &text);
    if (text.failed || gateway_run(g, (const char *const[]){nft, "-f", "-", NULL},
                                   (mt_str){mt_buf_str(&text), text.len}, &said) != 0)
        return refuse(g, "nft could not load the firewall of capsules", &said);
    mt_buf_clear(&said);
    if (gateway_run(g, (const char *const[]){nft, "list", "table", "inet", GATEWAY_TABLE, NULL},
                    MT_STR(""), &said) != 0)
        return refuse(g, "nft could not read the firewall of capsules back", &said);
    if (!read_back(mt_buf_str(&said)))
        return refuse(g, "the firewall of capsules is not what was loaded", &said);
    return 0;
}

int rules_load(gateway_holder *g)
{
    char nft[256];

    g->rules_tried_ns = mt_boottime_ns();
    if (!find_nft(g, nft, sizeof(nft)) || load(g, nft) < 0) {
        mt_log(MT_LOG_ERROR, "no network for capsules", {"error", g->rules_sentence});
        return -1;
    }
    // Connections that have ended are remembered for a shorter time than usual: they count.
    g->rules_loaded = true;
    g->rules_sentence[0] = '\0';
    return 0;
}

void rules_set_host(gateway_holder *g)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(TEXT_MAX), said = MT_BUF_INIT(TEXT_MAX);
    char nft[256];

    if (!g->rules_loaded)
        return;
    put_host(g, &text);
    // What cannot be kept up to date is not kept open.
    if (!find_nft(g, nft, sizeof(nft)) ||
        gateway_run(g, (const char *const[]){nft, "-f", "-", NULL},
                    (mt_str){mt_buf_str(&text), text.len}, &said) != 0) {
        (void)refuse(g, "nft could not take in the host's addresses", &said);
        mt_log(MT_LOG_ERROR, "no network for capsules", {"error", g->rules_sentence});
        g->rules_loaded = false;
    }
}
