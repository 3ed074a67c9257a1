// SPDX-License-Identifier: Apache-2.0
#include "net/dns.h"

#include "base/tap.h"

#include <arpa/inet.h>

// A message, written piece by piece.
typedef struct message {
    uint8_t bytes[4096];
    size_t len;
} message;

static void add(message *m, const void *data, size_t len)
{
    memcpy(m->bytes + m->len, data, len);
    m->len += len;
}

static void add16(message *m, unsigned v)
{
    add(m, (const uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

static void add_name(message *m, const char *name)
{
    while (*name) {
        size_t n = strcspn(name, ".");

        add(m, (const uint8_t[]){(uint8_t)n}, 1);
        add(m, name, n);
        name += n + (name[n] == '.');
    }
    add(m, "", 1);
}

static void begin(message *m, unsigned id, unsigned flags, unsigned answers, unsigned more)
{
    m->len = 0;
    add16(m, id);
    add16(m, flags);
    add16(m, 1);
    add16(m, answers);
    add16(m, 0);
    add16(m, more);
}

static void add_question(message *m, const char *name, unsigned type)
{
    add_name(m, name);
    add16(m, type);
    add16(m, 1);
}

static void add_record(message *m, unsigned type, const void *data, size_t len)
{
    add16(m, 0xc00c);
    add16(m, type);
    add16(m, 1);
    add16(m, 0);
    add16(m, 60);
    add16(m, (unsigned)len);
    add(m, data, len);
}

static void add_address(message *m, const char *text)
{
    int family = strchr(text, ':') ? AF_INET6 : AF_INET;
    uint8_t a[16];

    CHECK_INT(inet_pton(family, text, a), 1);
    add_record(m, family == AF_INET ? 1 : 28, a, family == AF_INET ? 4 : 16);
}

static mt_dns_query asked(const char *name, unsigned type, unsigned edns)
{
    mt_dns_query q;
    message m;

    begin(&m, 0x1234, 0x0100, 0, edns ? 1 : 0);
    add_question(&m, name, type);
    if (edns) {
        add(&m, "", 1);
        add16(&m, 41);
        add16(&m, edns);
        add16(&m, 0);
        add16(&m, 0x8000);
        add16(&m, 0);
    }
    CHECK_INT(mt_dns_read_query(m.bytes, m.len, &q), 0);
    return q;
}

static void test_query(void)
{
    mt_dns_query q = asked("www.example.org", 1, 0);
    uint8_t out[MT_DNS_ASK_MAX];

    CHECK_INT(q.id, 0x1234);
    CHECK(!q.has_opt && q.udp_max == 512);
    CHECK_INT(mt_dns_ask(&q, 0xabcd, out), 12 + 17 + 4);
    CHECK(out[0] == 0xab && out[1] == 0xcd && memcmp(out + 12, q.question, q.question_len) == 0);
    q = asked("www.example.org", 1, 4096);
    CHECK(q.has_opt && q.dnssec_ok && q.udp_max == MT_DNS_UDP_MAX);
    CHECK_INT(mt_dns_ask(&q, 1, out), 12 + 17 + 4 + 11);
    q = asked("www.example.org", 1, 100);
    CHECK_INT(q.udp_max, 512);
}

static int read_bytes(const char *bytes, size_t len)
{
    mt_dns_query q;

    return mt_dns_read_query((const uint8_t *)bytes, len, &q);
}
#define READ(bytes) read_bytes(bytes, sizeof(bytes) - 1)

static void test_bad_queries(void)
{
    CHECK_INT(READ("\0\1"), -1);
    CHECK_INT(READ("\0\1\x81\x80\0\1\0\0\0\0\0\0\1a\0\0\1\0\1"), -1); // an answer
    CHECK_INT(READ("\0\1\x28\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1"), MT_DNS_NOT_IMPLEMENTED);
    CHECK_INT(READ("\0\1\1\0\0\0\0\0\0\0\0\0"), MT_DNS_FORMAT_ERROR);
    CHECK_INT(READ("\0\1\1\0\0\2\0\0\0\0\0\0\1a\0\0\1\0\1"), MT_DNS_FORMAT_ERROR);
    CHECK_INT(READ("\0\1\1\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1"), MT_DNS_FORMAT_ERROR);
    CHECK_INT(READ("\0\1\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0"), MT_DNS_FORMAT_ERROR);
    CHECK_INT(READ("\0\1\1\0\0\1\0\0\0\0\0\1\1a\0\0\1\0\1"), MT_DNS_FORMAT_ERROR); // no OPT there
    CHECK_INT(READ("\0\1\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\3"), MT_DNS_REFUSED);      // CHAOS
    CHECK_INT(READ("\0\1\1\0\0\1\0\0\0\0\0\0\1a\0\0\xfc\0\1"), MT_DNS_REFUSED);    // AXFR
    CHECK_INT(READ("\0\1\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1"), 0);
}

static mt_dns_verdict verdict_of(const char *name, unsigned type, const char *const *addresses)
{
    mt_dns_query q = asked(name, type, 0);
    mt_dns_answer a;
    unsigned count = 0;
    message m;

    while (addresses[count])
        count++;
    begin(&m, 9, 0x8180, count, 0);
    add_question(&m, name, type);
    for (unsigned i = 0; i < count; i++)
        add_address(&m, addresses[i]);
    return mt_dns_read_answer(m.bytes, m.len, &q, 9, &a);
}
#define VERDICT(type, ...) verdict_of("example.org", type, (const char *const[]){__VA_ARGS__, NULL})

static void test_verdicts(void)
{
    CHECK_INT(VERDICT(1, "198.51.100.7"), MT_DNS_GOOD);
    CHECK_INT(VERDICT(1, "198.51.100.7", "203.0.113.8"), MT_DNS_GOOD);
    CHECK_INT(VERDICT(1, "127.0.0.1"), MT_DNS_SHUT);
    CHECK_INT(VERDICT(1, "198.51.100.7", "10.1.2.3"), MT_DNS_SHUT); // of rebinding
    CHECK_INT(VERDICT(1, "169.254.169.254"), MT_DNS_SHUT);
    CHECK_INT(VERDICT(28, "2001:db8::7"), MT_DNS_GOOD);
    CHECK_INT(VERDICT(28, "fd00:ec2::254"), MT_DNS_SHUT);
    CHECK_INT(VERDICT(28, "::ffff:192.168.0.1"), MT_DNS_SHUT);
    CHECK_INT(VERDICT(255, "198.51.100.7", "fe80::1"), MT_DNS_SHUT);
}

static void test_hints(void)
{
    static const char good[] = "\0\1\0\0\1\0\3\2h2\0\4\0\4\xc6\x33\x64\7",
                      shut[] = "\0\1\0\0\4\0\4\12\0\0\1",
                      shut6[] = "\0\1\0\0\6\0\20\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
                      cut[] = "\0\1\0\0\4\0\10\xc6\x33\x64\7", odd[] = "\0\1\0\0\4\0\3\xc6\x33\x64",
                      short_[] = "\0\1\0\0\4";
    static const struct {
        const char *data;
        size_t len;
        mt_dns_verdict verdict;
    } cases[] = {
        {good, sizeof(good) - 1, MT_DNS_GOOD},   {shut, sizeof(shut) - 1, MT_DNS_SHUT},
        {shut6, sizeof(shut6) - 1, MT_DNS_SHUT}, {cut, sizeof(cut) - 1, MT_DNS_BROKEN},
        {odd, sizeof(odd) - 1, MT_DNS_BROKEN},   {short_, sizeof(short_) - 1, MT_DNS_BROKEN}};

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        mt_dns_query q = asked("example.org", 65, 0);
        mt_dns_answer a;
        message m;

        begin(&m, 9, 0x8180, 1, 0);
        add_question(&m, "example.org", 65);
        add_record(&m, 65, cases[i].data, cases[i].len);
        CHECK_INT(mt_dns_read_answer(m.bytes, m.len, &q, 9, &a), cases[i].verdict);
    }
}

static void test_foreign(void)
{
    mt_dns_query q = asked("example.org", 1, 0);
    mt_dns_answer a;
    message m;

    begin(&m, 9, 0x8180, 1, 0);
    add_question(&m, "eXample.ORG", 1);
    add_address(&m, "198.51.100.7");
    CHECK_INT(mt_dns_read_answer(m.bytes, m.len, &q, 9, &a), MT_DNS_GOOD);
    CHECK_INT(mt_dns_read_answer(m.bytes, m.len, &q, 8, &a), MT_DNS_FOREIGN);
    for (size_t len = 0; len < m.len; len++)
        CHECK(mt_dns_read_answer(m.bytes, len, &q, 9, &a) != MT_DNS_GOOD);
    m.bytes[2] &= 0x7f;
    CHECK_INT(mt_dns_read_answer(m.bytes, m.len, &q, 9, &a), MT_DNS_FOREIGN);
    begin(&m, 9, 0x8180, 1, 0);
    add_question(&m, "example.net", 1);
    add_address(&m, "198.51.100.7");
    CHECK_INT(mt_dns_read_answer(m.bytes, m.len, &q, 9, &a), MT_DNS_FOREIGN);
}

static void test_replies(void)
{
    mt_dns_query q = asked("Example.org", 16, 600);
    uint8_t out[MT_DNS_MESSAGE_MAX];
    static const char text[200] = {0};
    mt_dns_answer a;
    message m;
    size_t n;

    begin(&m, 9, 0x8580, 4, 1); // with an additional record, which does not go through
    add_question(&m, "example.org", 16);
    for (int i = 0; i < 4; i++)
        add_record(&m, 16, text, sizeof(text));
    add_address(&m, "10.0.0.1");
    CHECK_INT(mt_dns_read_answer(m.bytes, m.len, &q, 9, &a), MT_DNS_GOOD);
    n = mt_dns_reply(&q, &a, 65535, out);
    CHECK_INT(n, 12 + 17 + 4 * (12 + sizeof(text)) + 11);
    CHECK(out[0] == 0x12 && out[1] == 0x34 && out[12] == 7 && out[13] == 'E');
    CHECK(out[2] == 0x85 && out[7] == 4 && out[9] == 0 && out[11] == 1);
    n = mt_dns_reply(&q, &a, 600, out); // too much: cut, and told
    CHECK_INT(n, 12 + 17 + 11);
    CHECK(out[2] & 2 && out[7] == 0);
    n = mt_dns_reply_empty(&q, MT_DNS_OK, true, out);
    CHECK_INT(n, 12 + 17 + 11 + 6);
    CHECK(out[3] == 0x80 && out[n - 1] == 17);
    n = mt_dns_reply_empty(&q, MT_DNS_SERVER_FAILED, false, out);
    CHECK(n == 12 + 17 + 11 && (out[3] & 15) == 2);
}

int main(void)
{
    test_query();
    test_bad_queries();
    test_verdicts();
    test_hints();
    test_foreign();
    test_replies();
    return TAP_DONE();
}
