// SPDX-License-Identifier: Apache-2.0
// What a capsule asks and what a resolver says, as hostile bytes: the query is behind its length in
// two bytes, the rest is the answer. Every reply must be one that a capsule could read, and hold no
// shut address.
#include "net/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t out[MT_DNS_MESSAGE_MAX];

// A reply is itself an answer to the query, and a good one.
static void check_reply(const mt_dns_query *q, size_t len, size_t max)
{
    mt_dns_answer again;

    if (len > max || len < MT_DNS_HEADER || (out[2] & 0x80) == 0)
        abort();
    if (q->question_len && mt_dns_read_answer(out, len, q, q->id, &again) != MT_DNS_GOOD)
        abort();
}

static void check_answer(const uint8_t *m, size_t len, const mt_dns_query *q)
{
    uint16_t id = len >= 2 ? (uint16_t)(m[0] << 8 | m[1]) : 0;
    mt_dns_answer a;

    if (mt_dns_read_answer(m, len, q, id, &a) != MT_DNS_GOOD)
        return;
    if (a.records_len && (a.records < m || a.records + a.records_len > m + len))
        abort();
    check_reply(q, mt_dns_reply(q, &a, q->udp_max, out), q->udp_max);
    check_reply(q, mt_dns_reply(q, &a, sizeof(out), out), sizeof(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = size < 2 ? 0 : (size_t)data[0] << 8 | data[1];
    uint8_t ask[MT_DNS_ASK_MAX];
    mt_dns_query q;
    int r;

    if (size < 2 || len > size - 2)
        return 0;
    r = mt_dns_read_query(data + 2, len, &q);
    if (r < 0)
        return 0;
    if (q.question_len > MT_DNS_QUESTION_MAX || q.udp_max < 512 || q.udp_max > MT_DNS_UDP_MAX)
        abort();
    check_reply(&q, mt_dns_reply_empty(&q, (mt_dns_rcode)r, true, out), MT_DNS_UDP_MAX);
    if (r > 0)
        return 0;
    if (mt_dns_ask(&q, 7, ask) > sizeof(ask) ||
        mt_dns_read_query(ask, mt_dns_ask(&q, 7, ask), &q) != 0)
        abort();
    check_answer(data + 2 + len, size - 2 - len, &q);
    return 0;
}
