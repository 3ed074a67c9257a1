// SPDX-License-Identifier: Apache-2.0
// Records of the journal: their bytes and their words.
#include "base/utf8.h"
#include "capsule/journal-internal.h"

#include <errno.h>

static const char *const status_words[] = {
#define WORD(constant, word) [MT_RUN_##constant] = (word),
    MT_RUN_STATUSES(WORD)
#undef WORD
};
static const char *const end_words[] = {
#define WORD(constant, word) [MT_END_##constant] = (word),
    MT_END_REASONS(WORD)
#undef WORD
};
static const char *const command_words[] = {
    [MT_COMMAND_QUEUED] = "Queued",     [MT_COMMAND_RUNNING] = "Running",
    [MT_COMMAND_FINISHED] = "Finished", [MT_COMMAND_ERROR] = "Error",
    [MT_COMMAND_ABORTED] = "Aborted",
};

const char *mt_run_status_word(mt_run_status s)
{
    return (unsigned)s < MT_ARRAY_SIZE(status_words) ? status_words[s] : "?";
}

const char *mt_end_reason_word(mt_end_reason r)
{
    return (unsigned)r < MT_ARRAY_SIZE(end_words) ? end_words[r] : "?";
}

mt_end_reason mt_stop_reason(mt_str by)
{
    size_t len = sizeof(MT_BY_APP_RUN) - 1;

    return by.len > len && memcmp(by.data, MT_BY_APP_RUN, len) == 0 ? MT_END_PARENT_ENDED
                                                                    : MT_END_TERMINATED;
}

const char *mt_command_status_word(mt_command_status s)
{
    return (unsigned)s < MT_ARRAY_SIZE(command_words) ? command_words[s] : "?";
}

bool mt_run_status_parse(mt_str word, mt_run_status *ret)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(status_words); i++)
        if (mt_str_eq(word, status_words[i])) {
            *ret = (mt_run_status)i;
            return true;
        }
    return false;
}

bool mt_end_reason_parse(mt_str word, mt_end_reason *ret)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(end_words); i++)
        if (mt_str_eq(word, end_words[i])) {
            *ret = (mt_end_reason)i;
            return true;
        }
    return false;
}

uint32_t mt_crc32c(const void *data, size_t len)
{
    static uint32_t table[256];
    const uint8_t *p = data;
    uint32_t crc = ~0u;

    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t v = i;

            for (int bit = 0; bit < 8; bit++)
                v = (v >> 1) ^ ((v & 1) ? 0x82f63b78u : 0);
            table[i] = v;
        }
    for (size_t i = 0; i < len; i++)
        crc = (crc >> 8) ^ table[(crc ^ p[i]) & 0xff];
    return ~crc;
}

// Over-long texts are cut at the last whole character: a record must always be writable, as it is
// how a run's end becomes known.
static void put_cut(mt_buf *b, mt_str s)
{
    size_t len = MT_MIN(s.len, (size_t)MT_RECORD_TEXT_MAX);

    while (len && len < s.len && ((unsigned char)s.data[len] & 0xc0) == 0x80)
        len--;
    mt_wire_put_str(b, (mt_str){s.data, len});
}

// Names are short: what is longer was never one of ours.
static void put_name(mt_buf *b, mt_str s)
{
    mt_wire_put_str(b, (mt_str){s.data, MT_MIN(s.len, (size_t)1024)});
}

static void put_ended(mt_buf *b, const mt_ended *e)
{
    mt_wire_put_u8(b, (uint8_t)e->status);
    mt_wire_put_u8(b, (uint8_t)e->reason);
    mt_wire_put_i64(b, e->limit_ms);
    mt_wire_put_u32(b, e->signal);
    put_name(b, e->terminated_by);
    put_cut(b, e->failure_details);
    mt_wire_put_u32(b, e->limits_reached);
    mt_wire_put_u64(b, e->memory_peak);
    mt_wire_put_u64(b, e->cpu_us);
}

static void put_command_ended(mt_buf *b, const mt_command_ended *e)
{
    put_name(b, e->id);
    mt_wire_put_u8(b, (uint8_t)e->status);
    mt_wire_put_u8(b, (uint8_t)e->reason);
    mt_wire_put_u32(b, (uint32_t)e->exit_code);
    mt_wire_put_i64(b, e->limit_ms);
    mt_wire_put_u32(b, e->signal);
    mt_wire_put_u32(b, e->limits_reached);
    mt_wire_put_u64(b, e->out_bytes);
    mt_wire_put_u64(b, e->err_bytes);
    mt_wire_put_u64(b, e->out_chars);
    mt_wire_put_u64(b, e->err_chars);
    put_cut(b, e->details);
}

static void put_payload(mt_buf *b, const mt_record *r)
{
    switch (r->type) {
    case MT_REC_BOOT:
        put_name(b, r->boot.id);
        break;
    case MT_REC_RESOURCE_MADE:
    case MT_REC_RESOURCE_GONE:
        mt_wire_put_u16(b, (uint16_t)r->resource.kind);
        put_name(b, r->resource.name);
        break;
    case MT_REC_PHASE:
        put_name(b, r->phase.name);
        mt_wire_put_u64(b, r->phase.us);
        break;
    case MT_REC_STARTUP_STARTED:
        mt_wire_put_u32(b, r->startup.index);
        break;
    case MT_REC_STARTUP_ENDED:
        mt_wire_put_u32(b, r->startup_ended.index);
        mt_wire_put_u8(b, (uint8_t)r->startup_ended.reason);
        mt_wire_put_u32(b, (uint32_t)r->startup_ended.exit_code);
        break;
    case MT_REC_NOTE:
        put_cut(b, r->note.text);
        break;
    case MT_REC_ENDING:
        mt_wire_put_u8(b, (uint8_t)r->ending.reason);
        break;
    case MT_REC_ENDED:
        put_ended(b, &r->ended);
        break;
    case MT_REC_COMMAND_STARTED:
        put_name(b, r->command_started.id);
        break;
    case MT_REC_COMMAND_ENDED:
        put_command_ended(b, &r->command_ended);
        break;
    case MT_REC_EXTENDED:
        mt_wire_put_i64(b, r->extended.max_duration_ms);
        mt_wire_put_i64(b, r->extended.deadline_ns);
        break;
    case MT_REC_READY:
    case MT_REC_CLOSED:
        break;
    }
}

static void poke_u32(char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(uint8_t)(v >> (8 * i));
}

int mt_record_encode(const mt_record *r, mt_buf *b)
{
    size_t start = b->len;

    mt_wire_put_u32(b, 0);
    mt_wire_put_u32(b, 0);
    mt_wire_put_u64(b, r->seq);
    mt_wire_put_i64(b, r->time_us);
    mt_wire_put_u16(b, (uint16_t)r->type);
    put_payload(b, r);
    if (b->failed)
        return b->failed;
    poke_u32(b->data + start, (uint32_t)(b->len - start - MT_RECORD_HEADER));
    poke_u32(b->data + start + 4,
             mt_crc32c(b->data + start + MT_RECORD_HEADER, b->len - start - MT_RECORD_HEADER));
    return 0;
}

static mt_end_reason get_reason(mt_wire_reader *r)
{
    uint8_t v = mt_wire_get_u8(r);

    if (v >= MT_END_REASON_COUNT)
        mt_wire_fail(r);
    return (mt_end_reason)v;
}

static void get_ended(mt_wire_reader *r, mt_ended *e)
{
    uint8_t status = mt_wire_get_u8(r);

    if (status >= MT_RUN_STATUS_COUNT)
        mt_wire_fail(r);
    e->status = (mt_run_status)status;
    e->reason = get_reason(r);
    e->limit_ms = mt_wire_get_i64(r);
    e->signal = mt_wire_get_u32(r);
    e->terminated_by = mt_wire_get_bytes(r, 1024);
    e->failure_details = mt_wire_get_bytes(r, MT_RECORD_TEXT_MAX);
    e->limits_reached = mt_wire_get_u32(r);
    e->memory_peak = mt_wire_get_u64(r);
    e->cpu_us = mt_wire_get_u64(r);
}

// A command's end is one of three; what waits or runs has no such record.
static void get_command_ended(mt_wire_reader *r, mt_command_ended *e)
{
    uint8_t status;

    e->id = mt_wire_get_bytes(r, 1024);
    status = mt_wire_get_u8(r);
    if (status < MT_COMMAND_FINISHED || status >= MT_COMMAND_STATUS_COUNT)
        mt_wire_fail(r);
    e->status = (mt_command_status)status;
    e->reason = get_reason(r);
    e->exit_code = (int32_t)mt_wire_get_u32(r);
    e->limit_ms = mt_wire_get_i64(r);
    e->signal = mt_wire_get_u32(r);
    e->limits_reached = mt_wire_get_u32(r);
    e->out_bytes = mt_wire_get_u64(r);
    e->err_bytes = mt_wire_get_u64(r);
    e->out_chars = mt_wire_get_u64(r);
    e->err_chars = mt_wire_get_u64(r);
    e->details = mt_wire_get_bytes(r, MT_RECORD_TEXT_MAX);
}

static void get_payload(mt_wire_reader *r, mt_record *ret)
{
    switch (ret->type) {
    case MT_REC_BOOT:
        ret->boot.id = mt_wire_get_bytes(r, 1024);
        break;
    case MT_REC_RESOURCE_MADE:
    case MT_REC_RESOURCE_GONE:
        ret->resource.kind = (mt_run_resource)mt_wire_get_u16(r);
        ret->resource.name = mt_wire_get_bytes(r, 1024);
        break;
    case MT_REC_PHASE:
        ret->phase.name = mt_wire_get_bytes(r, 1024);
        ret->phase.us = mt_wire_get_u64(r);
        break;
    case MT_REC_STARTUP_STARTED:
        ret->startup.index = mt_wire_get_u32(r);
        break;
    case MT_REC_STARTUP_ENDED:
        ret->startup_ended.index = mt_wire_get_u32(r);
        ret->startup_ended.reason = get_reason(r);
        ret->startup_ended.exit_code = (int32_t)mt_wire_get_u32(r);
        break;
    case MT_REC_NOTE:
        ret->note.text = mt_wire_get_bytes(r, MT_RECORD_TEXT_MAX);
        break;
    case MT_REC_ENDING:
        ret->ending.reason = get_reason(r);
        break;
    case MT_REC_ENDED:
        get_ended(r, &ret->ended);
        break;
    case MT_REC_COMMAND_STARTED:
        ret->command_started.id = mt_wire_get_bytes(r, 1024);
        break;
    case MT_REC_COMMAND_ENDED:
        get_command_ended(r, &ret->command_ended);
        break;
    case MT_REC_EXTENDED:
        ret->extended.max_duration_ms = mt_wire_get_i64(r);
        ret->extended.deadline_ns = mt_wire_get_i64(r);
        break;
    case MT_REC_READY:
    case MT_REC_CLOSED:
        break;
    default: // of a newer program
        r->pos = r->len;
        break;
    }
}

ssize_t mt_record_decode(const void *data, size_t len, mt_record *ret)
{
    mt_wire_reader head = mt_wire_reader_of(data, len), body;
    uint32_t body_len = mt_wire_get_u32(&head);
    uint32_t crc = mt_wire_get_u32(&head);
    mt_record r = {0};

    if (len >= 4 &&
        (body_len < MT_RECORD_FIXED || body_len > MT_RECORD_BYTES_MAX - MT_RECORD_HEADER))
        return -EBADMSG;
    if (len < MT_RECORD_HEADER || len - MT_RECORD_HEADER < body_len)
        return 0;
    body = mt_wire_reader_of((const char *)data + MT_RECORD_HEADER, body_len);
    if (mt_crc32c(body.data, body.len) != crc)
        return -EBADMSG;
    r.seq = mt_wire_get_u64(&body);
    r.time_us = mt_wire_get_i64(&body);
    r.type = (mt_record_type)mt_wire_get_u16(&body);
    get_payload(&body, &r);
    if (!mt_wire_end(&body))
        return -EBADMSG;
    *ret = r;
    return (ssize_t)(MT_RECORD_HEADER + body_len);
}
