// SPDX-License-Identifier: Apache-2.0
#include "capsule/shut.h"

#include "base/tap.h"

#include <arpa/inet.h>

static bool shut(const char *text)
{
    uint8_t a[16];

    if (inet_pton(AF_INET, text, a) == 1)
        return mt_shut4(a);
    return inet_pton(AF_INET6, text, a) == 1 && mt_shut6(a);
}

static void test_shut(void)
{
    static const char *const closed[] = {"0.0.0.0",
                                         "0.1.2.3",
                                         "10.0.0.1",
                                         "10.255.255.255",
                                         "100.64.0.1",
                                         "100.127.255.255",
                                         "127.0.0.1",
                                         "127.0.0.53",
                                         "168.63.129.16",
                                         "169.254.169.254",
                                         "172.16.0.1",
                                         "172.31.255.255",
                                         "192.0.0.192",
                                         "192.168.0.1",
                                         "198.18.0.1",
                                         "198.19.255.255",
                                         "224.0.0.251",
                                         "239.255.255.250",
                                         "240.0.0.1",
                                         "255.255.255.255",
                                         "::",
                                         "::1",
                                         "::ffff:10.0.0.1",
                                         "::ffff:198.51.100.1",
                                         "::10.0.0.1",
                                         "64:ff9b::10.0.0.1",
                                         "64:ff9b::169.254.169.254",
                                         "64:ff9b::127.0.0.1",
                                         "64:ff9b::192.168.1.1",
                                         "64:ff9b::172.31.0.1",
                                         "64:ff9b::100.100.100.200",
                                         "64:ff9b::224.0.0.1",
                                         "64:ff9b::255.255.255.255",
                                         "64:ff9b::168.63.129.16",
                                         "64:ff9b:1::1",
                                         "100::1",
                                         "2001::1",
                                         "2002:a00:1::",
                                         "fc00::1",
                                         "fd00:ec2::254",
                                         "fd20:ce::254",
                                         "fe80::1",
                                         "febf::1",
                                         "fec0::1",
                                         "ff02::1",
                                         "ff05::2"};
    static const char *const open[] = {
        "1.1.1.1",          "9.255.255.255",         "11.0.0.0",           "100.63.255.255",
        "100.128.0.0",      "126.255.255.255",       "128.0.0.1",          "168.63.129.15",
        "168.63.129.17",    "169.253.0.1",           "172.15.255.255",     "172.32.0.0",
        "192.0.2.1",        "192.167.255.255",       "192.169.0.0",        "198.17.255.255",
        "198.20.0.0",       "198.51.100.7",          "203.0.113.80",       "223.255.255.255",
        "2001:db8::1",      "2001:4860:4860::8888",  "2606:4700::1111",    "2a00::1",
        "64:ff9b::8.8.8.8", "64:ff9b::198.51.100.1", "64:ff9b::192.0.2.1", "2003::1",
        "fb00::1"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(closed); i++)
        if (!CHECK(shut(closed[i])))
            printf("# %s\n", closed[i]);
    for (size_t i = 0; i < MT_ARRAY_SIZE(open); i++)
        if (!CHECK(!shut(open[i])))
            printf("# %s\n", open[i]);
}

// Intervals that overlap would be refused by nft; an entry with bits below its mask is a slip.
static void test_table(int family, const mt_shut *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t a[16] = {0};
        unsigned size = family == AF_INET ? 32 : 128;

        CHECK(inet_pton(family, table[i].address, a) == 1 && table[i].bits <= size);
        for (unsigned bit = table[i].bits; bit < size; bit++)
            if (a[bit / 8] & (0x80u >> bit % 8)) {
                CHECK_STR(table[i].address, "an address without bits below its mask");
                break;
            }
    }
}

int main(void)
{
    size_t count;
    const mt_shut *table = mt_shut4_table(&count);

    test_table(AF_INET, table, count);
    table = mt_shut6_table(&count);
    test_table(AF_INET6, table, count);
    test_shut();
    return TAP_DONE();
}
