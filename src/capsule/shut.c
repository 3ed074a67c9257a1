// SPDX-License-Identifier: Apache-2.0
#include "capsule/shut.h"

#include <arpa/inet.h>

static const mt_shut SHUT4[] = {
    {"0.0.0.0", 8},        // this host
    {"10.0.0.0", 8},       // private
    {"100.64.0.0", 10},    // of carriers, and the capsules' own
    {"127.0.0.0", 8},      // loopback
    {"168.63.129.16", 32}, // the metadata service of Azure, at a public address
    {"169.254.0.0", 16},   // link-local; metadata services
    {"172.16.0.0", 12},    // private
    {"192.0.0.0", 24},     // of protocols; the metadata service of Oracle
    {"192.168.0.0", 16},   // private
    {"198.18.0.0", 15},    // benchmarks of networks
    {"224.0.0.0", 4},      // multicast
    {"240.0.0.0", 4},      // kept; broadcast
};

// The addresses of a v4 network reached through a translator count as those of that network.
static const mt_shut SHUT6[] = {
    {"::", 96},           // unspecified, loopback, and the old form of v4
    {"::ffff:0:0", 96},   // v4-mapped
    {"::ffff:0:0:0", 96}, // v4-translated
    {"64:ff9b::", 104},   // NAT64 of 0.0.0.0/8
    {"64:ff9b::a00:0", 104},
    {"64:ff9b::6440:0", 106},
    {"64:ff9b::7f00:0", 104},
    {"64:ff9b::a83f:8110", 128},
    {"64:ff9b::a9fe:0", 112},
    {"64:ff9b::ac10:0", 108},
    {"64:ff9b::c000:0", 120},
    {"64:ff9b::c0a8:0", 112},
    {"64:ff9b::c612:0", 111},
    {"64:ff9b::e000:0", 99}, // 224.0.0.0 to the end
    {"64:ff9b:1::", 48},     // NAT64 of somebody's own
    {"100::", 64},           // discarded
    {"2001::", 32},          // Teredo, v4 inside
    {"2002::", 16},          // 6to4, v4 inside
    {"fc00::", 7},           // private
    {"fe80::", 9},           // link-local, and the old site-local
    {"ff00::", 8},           // multicast
};

const mt_shut *mt_shut4_table(size_t *ret_count)
{
    *ret_count = MT_ARRAY_SIZE(SHUT4);
    return SHUT4;
}

const mt_shut *mt_shut6_table(size_t *ret_count)
{
    *ret_count = MT_ARRAY_SIZE(SHUT6);
    return SHUT6;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned rest = bits % 8;

    return memcmp(a, b, bits / 8) == 0 &&
           (!rest || (uint8_t)(a[bits / 8] ^ b[bits / 8]) >> (8 - rest) == 0);
}

static bool in_table(int family, const mt_shut *table, size_t count, const uint8_t *address)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t net[16];

        // One of the table that cannot be read shuts everything: a test would see it.
        if (inet_pton(family, table[i].address, net) != 1 || same_bits(net, address, table[i].bits))
            return true;
    }
    return false;
}

bool mt_shut4(const uint8_t address[4])
{
    return in_table(AF_INET, SHUT4, MT_ARRAY_SIZE(SHUT4), address);
}

bool mt_shut6(const uint8_t address[16])
{
    return in_table(AF_INET6, SHUT6, MT_ARRAY_SIZE(SHUT6), address);
}
