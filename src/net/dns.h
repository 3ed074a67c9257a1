// SPDX-License-Identifier: Apache-2.0
// DNS messages, as far as a forwarder has to understand them: bytes in, verdicts and bytes out. No
// I/O. What capsules ask and what comes back is hostile: everything is checked against its length,
// and nothing but the question and the answer section goes through.
#pragma once

#include "base/macros.h"

enum {
    MT_DNS_HEADER = 12,
    MT_DNS_QUESTION_MAX = 255 + 4, // a name, type, class
    MT_DNS_QUERY_MAX = 2048,       // that is read of a capsule
    MT_DNS_ASK_MAX = MT_DNS_HEADER + MT_DNS_QUESTION_MAX + 11,
    MT_DNS_UDP_MAX = 1232, // sent by UDP, at most: fits in every network's packets
    MT_DNS_MESSAGE_MAX = 65535,
};

typedef enum mt_dns_rcode {
    MT_DNS_OK = 0,
    MT_DNS_FORMAT_ERROR = 1,
    MT_DNS_SERVER_FAILED = 2,
    MT_DNS_NOT_IMPLEMENTED = 4,
    MT_DNS_REFUSED = 5,
} mt_dns_rcode;

typedef struct mt_dns_query {
    uint16_t id;    // of the capsule
    uint16_t flags; // of the header, as they came
    uint16_t type;
    uint16_t question_len;
    uint8_t question[MT_DNS_QUESTION_MAX]; // name, type and class, as they came
    bool has_opt;                          // the capsule speaks EDNS
    bool dnssec_ok;
    uint16_t udp_max; // that it can take by UDP
} mt_dns_query;

// 0: to be asked; > 0: to be answered with that mt_dns_rcode (q has what an answer needs); -1: not
// a query at all, to be dropped.
int mt_dns_read_query(const uint8_t *m, size_t len, mt_dns_query *q);
// The same question to a resolver, with that id. Its length.
size_t mt_dns_ask(const mt_dns_query *q, uint16_t id, uint8_t out[MT_DNS_ASK_MAX]);

typedef enum mt_dns_verdict {
    MT_DNS_GOOD,
    MT_DNS_SHUT,    // holds an address that capsules may not reach
    MT_DNS_BROKEN,  // to our question, but not what an answer may be
    MT_DNS_FOREIGN, // not to this question: to be ignored
} mt_dns_verdict;

typedef struct mt_dns_answer {
    const uint8_t *records; // its answer section
    size_t records_len;
    uint16_t record_count;
    uint16_t flags;
    mt_dns_rcode rcode;
    bool truncated;
} mt_dns_answer;

// A resolver's message. ret is set with MT_DNS_GOOD and points into it.
mt_dns_verdict mt_dns_read_answer(const uint8_t *m, size_t len, const mt_dns_query *q, uint16_t id,
                                  mt_dns_answer *ret);
// The reply to the capsule: its length, at most `max` and MT_DNS_MESSAGE_MAX. What does not fit is
// left out and the reply says so (TC).
size_t mt_dns_reply(const mt_dns_query *q, const mt_dns_answer *a, size_t max, uint8_t *out);
// One without records. shut: it tells why (EDNS: filtered).
size_t mt_dns_reply_empty(const mt_dns_query *q, mt_dns_rcode rcode, bool shut,
                          uint8_t out[MT_DNS_UDP_MAX]);
