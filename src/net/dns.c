// SPDX-License-Identifier: Apache-2.0
//   header      id | flags | questions | answers | authorities | additionals, 16 bits each
//   question    name | type | class
//   record      name | type | class | ttl (32) | length of data | data
// A name is labels, each behind its length, up to an empty one; or ends in a pointer back (RFC
// 1035).
#include "net/dns.h"

#include "capsule/shut.h"

enum {
    FLAG_REPLY = 0x8000,
    OPCODE_MASK = 0x7800,
    FLAG_AUTHORITY = 0x0400,
    FLAG_TRUNCATED = 0x0200,
    FLAG_RECURSION = 0x0100, // desired
    FLAG_RECURSES = 0x0080,  // available
    FLAG_CHECKED = 0x0020,
    FLAG_UNCHECKED = 0x0010, // checking disabled
    RCODE_MASK = 0x000f,

    TYPE_A = 1,
    TYPE_AAAA = 28,
    TYPE_OPT = 41,
    TYPE_SVCB = 64,
    TYPE_HTTPS = 65,
    TYPE_IXFR = 251,
    TYPE_AXFR = 252,
    CLASS_IN = 1,
    DNSSEC_OK = 0x8000,
    HINT4 = 4, // of SVCB
    HINT6 = 6,

    OPT_BYTES = 11,
    EDE_BYTES = 6,
    EDE_OPTION = 15,
    EDE_FILTERED = 17,
    UDP_LEAST = 512,
};

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static size_t put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
    return 2;
}

// Where what follows the name begins; 0: it is no name. Pointers are looked at, not followed.
static size_t skip_name(const uint8_t *m, size_t len, size_t at, bool pointers)
{
    size_t begin = at;

    while (at < len && at - begin < 255) {
        unsigned n = m[at];

        if (n == 0)
            return at + 1;
        if ((n & 0xc0) == 0xc0)
            return pointers && at + 2 <= len && (get16(m + at) & 0x3fff) < begin ? at + 2 : 0;
        if (n > 63)
            return 0;
        at += 1 + n;
    }
    return 0;
}

typedef struct record {
    uint16_t type, class;
    uint32_t ttl;
    const uint8_t *data;
    size_t data_at, data_len;
    size_t end;
} record;

static bool read_record(const uint8_t *m, size_t len, size_t at, record *r)
{
    at = skip_name(m, len, at, true);
    if (!at || len - at < 10)
        return false;
    r->type = get16(m + at);
    r->class = get16(m + at + 2);
    r->ttl = (uint32_t)get16(m + at + 4) << 16 | get16(m + at + 6);
    r->data_len = get16(m + at + 8);
    r->data_at = at + 10;
    r->data = m + r->data_at;
    r->end = r->data_at + r->data_len;
    return r->end <= len;
}

// --- what a capsule asks -------------------------------------------------------------------------

// What comes behind the question: only EDNS is looked for.
static bool read_options(const uint8_t *m, size_t len, size_t at, mt_dns_query *q)
{
    unsigned count = get16(m + 6) + get16(m + 8) + get16(m + 10);
    record r;

    for (; count > 0; count--, at = r.end) {
        if (!read_record(m, len, at, &r))
            return false;
        if (r.type != TYPE_OPT)
            continue;
        q->has_opt = true;
        q->dnssec_ok = r.ttl & DNSSEC_OK;
        q->udp_max = MT_MIN(MT_MAX(r.class, (uint16_t)UDP_LEAST), (uint16_t)MT_DNS_UDP_MAX);
    }
    return true;
}

int mt_dns_read_query(const uint8_t *m, size_t len, mt_dns_query *q)
{
    size_t at;

    *q = (mt_dns_query){.udp_max = UDP_LEAST};
    if (len < MT_DNS_HEADER || get16(m + 2) & FLAG_REPLY)
        return -1;
    q->id = get16(m);
    q->flags = get16(m + 2);
    if (q->flags & OPCODE_MASK)
        return MT_DNS_NOT_IMPLEMENTED;
    at = get16(m + 4) == 1 ? skip_name(m, len, MT_DNS_HEADER, false) : 0;
    if (!at || len - at < 4)
        return MT_DNS_FORMAT_ERROR;
    q->type = get16(m + at);
    q->question_len = (uint16_t)(at + 4 - MT_DNS_HEADER);
    memcpy(q->question, m + MT_DNS_HEADER, q->question_len);
    if (!read_options(m, len, at + 4, q))
        return MT_DNS_FORMAT_ERROR;
    if (get16(m + at + 2) != CLASS_IN || q->type == TYPE_AXFR || q->type == TYPE_IXFR ||
        q->type == TYPE_OPT)
        return MT_DNS_REFUSED;
    return 0;
}

static size_t put_opt(const mt_dns_query *q, bool shut, uint8_t *out)
{
    size_t n = 0;

    out[n++] = 0; // the root
    n += put16(out + n, TYPE_OPT);
    n += put16(out + n, MT_DNS_UDP_MAX);
    n += put16(out + n, 0);
    n += put16(out + n, q->dnssec_ok ? DNSSEC_OK : 0);
    n += put16(out + n, shut ? EDE_BYTES : 0);
    if (shut) {
        n += put16(out + n, EDE_OPTION);
        n += put16(out + n, 2);
        n += put16(out + n, EDE_FILTERED);
    }
    return n;
}

static size_t put_header(uint8_t *out, unsigned id, unsigned flags, bool question, unsigned answers,
                         bool opt)
{
    size_t n = 0;

    n += put16(out + n, id);
    n += put16(out + n, flags);
    n += put16(out + n, question);
    n += put16(out + n, answers);
    n += put16(out + n, 0);
    return n + put16(out + n, opt);
}

size_t mt_dns_ask(const mt_dns_query *q, uint16_t id, uint8_t out[MT_DNS_ASK_MAX])
{
    unsigned flags = q->flags & (FLAG_RECURSION | FLAG_CHECKED | FLAG_UNCHECKED);
    size_t n = put_header(out, id, flags, true, 0, q->has_opt);

    memcpy(out + n, q->question, q->question_len);
    n += q->question_len;
    return q->has_opt ? n + put_opt(q, false, out + n) : n;
}

// --- what a resolver says ------------------------------------------------------------------------

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

// Names are the same whatever their case; lengths of labels are below any letter.
static bool same_question(const uint8_t *m, const mt_dns_query *q)
{
    for (size_t i = 0; i < q->question_len; i++)
        if (lower(m[i]) != lower(q->question[i]))
            return false;
    return true;
}

static mt_dns_verdict judge_list(const uint8_t *p, size_t len, size_t size)
{
    bool shut = false;

    for (size_t at = 0; at + size <= len; at += size)
        shut |= size == 4 ? mt_shut4(p + at) : mt_shut6(p + at);
    return len == 0 || len % size ? MT_DNS_BROKEN : shut ? MT_DNS_SHUT : MT_DNS_GOOD;
}

// priority | name | parameters: key, length, value
static mt_dns_verdict judge_service(const uint8_t *m, const record *r)
{
    size_t at = r->data_len < 3 ? 0 : skip_name(m, r->end, r->data_at + 2, true);
    mt_dns_verdict verdict = MT_DNS_GOOD;

    if (!at)
        return MT_DNS_BROKEN;
    while (at < r->end && verdict == MT_DNS_GOOD) {
        size_t n;

        if (r->end - at < 4 || get16(m + at + 2) > r->end - at - 4)
            return MT_DNS_BROKEN;
        n = get16(m + at + 2);
        if (get16(m + at) == HINT4)
            verdict = judge_list(m + at + 4, n, 4);
        if (get16(m + at) == HINT6)
            verdict = judge_list(m + at + 4, n, 16);
        at += 4 + n;
    }
    return verdict;
}

static mt_dns_verdict judge(const uint8_t *m, const record *r)
{
    switch (r->type) {
    case TYPE_A:
        return r->data_len == 4 ? judge_list(r->data, 4, 4) : MT_DNS_BROKEN;
    case TYPE_AAAA:
        return r->data_len == 16 ? judge_list(r->data, 16, 16) : MT_DNS_BROKEN;
    case TYPE_SVCB:
    case TYPE_HTTPS:
        return judge_service(m, r);
    default:
        return MT_DNS_GOOD;
    }
}

mt_dns_verdict mt_dns_read_answer(const uint8_t *m, size_t len, const mt_dns_query *q, uint16_t id,
                                  mt_dns_answer *ret)
{
    size_t at = MT_DNS_HEADER + q->question_len, begin = at;
    mt_dns_verdict verdict = MT_DNS_GOOD;
    unsigned flags, count;

    if (len < MT_DNS_HEADER || get16(m) != id || !(get16(m + 2) & FLAG_REPLY))
        return MT_DNS_FOREIGN;
    flags = get16(m + 2);
    // Some refuse without repeating the question.
    if (get16(m + 4) == 0 && len == MT_DNS_HEADER && flags & RCODE_MASK) {
        *ret = (mt_dns_answer){.flags = (uint16_t)flags, .rcode = flags & RCODE_MASK};
        return MT_DNS_GOOD;
    }
    if (get16(m + 4) != 1 || len < at || !same_question(m + MT_DNS_HEADER, q))
        return MT_DNS_FOREIGN;
    *ret = (mt_dns_answer){
        .flags = (uint16_t)flags, .rcode = flags & RCODE_MASK, .truncated = flags & FLAG_TRUNCATED};
    if (ret->truncated)
        return MT_DNS_GOOD; // nothing of it is used
    count = get16(m + 6);
    for (unsigned i = 0; i < count && verdict == MT_DNS_GOOD; i++) {
        record r;

        if (!read_record(m, len, at, &r))
            return MT_DNS_BROKEN;
        verdict = judge(m, &r);
        at = r.end;
    }
    ret->records = m + begin;
    ret->records_len = at - begin;
    ret->record_count = (uint16_t)count;
    return verdict;
}

// --- what the capsule is told --------------------------------------------------------------------

static unsigned reply_flags(const mt_dns_query *q, unsigned more)
{
    return FLAG_REPLY | FLAG_RECURSES | more |
           (q->flags & (OPCODE_MASK | FLAG_RECURSION | FLAG_UNCHECKED));
}

size_t mt_dns_reply(const mt_dns_query *q, const mt_dns_answer *a, size_t max, uint8_t *out)
{
    size_t least = MT_DNS_HEADER + q->question_len + (q->has_opt ? OPT_BYTES : 0);
    bool cut = a->truncated || least + a->records_len > MT_MIN(max, (size_t)MT_DNS_MESSAGE_MAX);
    unsigned flags = a->flags & (FLAG_AUTHORITY | FLAG_CHECKED);
    size_t n = put_header(out, q->id,
                          reply_flags(q, flags | (unsigned)a->rcode | (cut ? FLAG_TRUNCATED : 0)),
                          true, cut ? 0 : a->record_count, q->has_opt);

    memcpy(out + n, q->question, q->question_len);
    n += q->question_len;
    if (!cut && a->records_len) {
        memcpy(out + n, a->records, a->records_len);
        n += a->records_len;
    }
    return q->has_opt ? n + put_opt(q, false, out + n) : n;
}

size_t mt_dns_reply_empty(const mt_dns_query *q, mt_dns_rcode rcode, bool shut,
                          uint8_t out[MT_DNS_UDP_MAX])
{
    size_t n =
        put_header(out, q->id, reply_flags(q, (unsigned)rcode), q->question_len, 0, q->has_opt);

    memcpy(out + n, q->question, q->question_len);
    n += q->question_len;
    return q->has_opt ? n + put_opt(q, shut, out + n) : n;
}
