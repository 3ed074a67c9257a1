// SPDX-License-Identifier: Apache-2.0
#include "capsule/session.h"

#include <errno.h>

static size_t begin(mt_buf *b, mt_session_type type)
{
    size_t start = b->len;

    mt_wire_put_u32(b, 0);
    mt_wire_put_u8(b, (uint8_t)type);
    return start;
}

static int end(mt_buf *b, size_t start)
{
    uint32_t len;

    if (b->failed)
        return b->failed;
    len = (uint32_t)(b->len - start - MT_SESSION_HEADER);
    for (int i = 0; i < 4; i++)
        b->data[start + (size_t)i] = (char)(uint8_t)(len >> (8 * i));
    return 0;
}

ssize_t mt_session_parse(const void *data, size_t len, mt_session_frame *ret)
{
    mt_wire_reader r = mt_wire_reader_of(data, len);
    uint32_t rest = mt_wire_get_u32(&r);
    uint8_t type;

    if (len < 4)
        return 0;
    if (rest > MT_SESSION_DATA_MAX)
        return -EMSGSIZE;
    if (len < MT_SESSION_HEADER)
        return 0;
    type = mt_wire_get_u8(&r);
    if (type < MT_SESSION_REQUEST || type > MT_SESSION_NEXT)
        return -EBADMSG;
    if (len - MT_SESSION_HEADER < rest)
        return 0;
    *ret = (mt_session_frame){.type = (mt_session_type)type,
                              .payload = (const uint8_t *)data + MT_SESSION_HEADER,
                              .len = rest};
    return (ssize_t)(MT_SESSION_HEADER + rest);
}

int mt_session_put_request(mt_buf *b, const mt_session_request *r)
{
    size_t start = begin(b, MT_SESSION_REQUEST);

    mt_wire_put_u8(b, (uint8_t)r->op);
    mt_wire_put_bool(b, r->flag);
    mt_wire_put_u16(b, r->limit);
    mt_wire_put_u16(b, r->columns);
    mt_wire_put_u16(b, r->rows);
    mt_wire_put_str(b, r->path);
    mt_wire_put_str(b, r->second);
    return end(b, start);
}

int mt_session_put_go(mt_buf *b, uint64_t offset, uint64_t length)
{
    size_t start = begin(b, MT_SESSION_GO);

    mt_wire_put_u64(b, offset);
    mt_wire_put_u64(b, length);
    return end(b, start);
}

int mt_session_put_size(mt_buf *b, uint16_t columns, uint16_t rows)
{
    size_t start = begin(b, MT_SESSION_SIZE);

    mt_wire_put_u16(b, columns);
    mt_wire_put_u16(b, rows);
    return end(b, start);
}

int mt_session_put_data(mt_buf *b, const void *data, size_t len)
{
    size_t start = begin(b, MT_SESSION_DATA);

    (void)mt_buf_add(b, data, len);
    return end(b, start);
}

int mt_session_put_end(mt_buf *b, bool flag)
{
    size_t start = begin(b, MT_SESSION_END);

    mt_wire_put_bool(b, flag);
    return end(b, start);
}

int mt_session_put_failed(mt_buf *b, const mt_session_failure *f)
{
    size_t start = begin(b, MT_SESSION_FAILED);

    mt_wire_put_u8(b, (uint8_t)f->why);
    mt_wire_put_u32(b, (uint32_t)f->detail);
    mt_wire_put_bool(b, f->second);
    return end(b, start);
}

int mt_session_put_entry(mt_buf *b, const mt_session_entry *e)
{
    size_t start = begin(b, MT_SESSION_ENTRY);

    mt_wire_put_str(b, e->path);
    mt_wire_put_bool(b, e->is_link);
    mt_wire_put_str(b, e->target);
    mt_wire_put_u8(b, e->type);
    mt_wire_put_u32(b, e->mode);
    mt_wire_put_u64(b, e->size);
    mt_wire_put_u64(b, e->inode);
    mt_wire_put_i64(b, e->modified_ns);
    mt_wire_put_i64(b, e->changed_ns);
    return end(b, start);
}

int mt_session_put_next(mt_buf *b, mt_str cursor, uint64_t left_out)
{
    size_t start = begin(b, MT_SESSION_NEXT);

    mt_wire_put_str(b, cursor);
    mt_wire_put_u64(b, left_out);
    return end(b, start);
}

// ---- reading ----

static mt_wire_reader payload(const mt_session_frame *f)
{
    return mt_wire_reader_of(f->payload, f->len);
}

static int verdict(const mt_wire_reader *r, bool fine)
{
    return mt_wire_end(r) && fine ? 0 : -EBADMSG;
}

static bool has_nul(mt_str s)
{
    return s.len && memchr(s.data, 0, s.len);
}

int mt_session_get_request(const mt_session_frame *f, mt_session_request *ret)
{
    mt_wire_reader r = payload(f);
    mt_session_request q = {0};
    uint8_t op = mt_wire_get_u8(&r);

    q.op = (mt_session_op)op;
    q.flag = mt_wire_get_bool(&r);
    q.limit = mt_wire_get_u16(&r);
    q.columns = mt_wire_get_u16(&r);
    q.rows = mt_wire_get_u16(&r);
    q.path = mt_wire_get_bytes(&r, MT_SESSION_PATH_MAX);
    q.second = mt_wire_get_bytes(&r, MT_SESSION_CURSOR_MAX);
    *ret = q;
    return verdict(&r, op < MT_SESSION_OPS && !has_nul(q.path) && !has_nul(q.second));
}

int mt_session_get_go(const mt_session_frame *f, uint64_t *ret_offset, uint64_t *ret_length)
{
    mt_wire_reader r = payload(f);

    *ret_offset = mt_wire_get_u64(&r);
    *ret_length = mt_wire_get_u64(&r);
    return verdict(&r, *ret_offset <= INT64_MAX);
}

int mt_session_get_size(const mt_session_frame *f, uint16_t *ret_columns, uint16_t *ret_rows)
{
    mt_wire_reader r = payload(f);

    *ret_columns = mt_wire_get_u16(&r);
    *ret_rows = mt_wire_get_u16(&r);
    return verdict(&r, true);
}

int mt_session_get_end(const mt_session_frame *f, bool *ret_flag)
{
    mt_wire_reader r = payload(f);

    *ret_flag = mt_wire_get_bool(&r);
    return verdict(&r, true);
}

int mt_session_get_failed(const mt_session_frame *f, mt_session_failure *ret)
{
    mt_wire_reader r = payload(f);
    uint8_t why = mt_wire_get_u8(&r);

    ret->why = (mt_session_why)why;
    ret->detail = (int32_t)mt_wire_get_u32(&r);
    ret->second = mt_wire_get_bool(&r);
    return verdict(&r, why < MT_SESSION_WHYS && ret->detail >= 0 && ret->detail < 4096);
}

int mt_session_get_entry(const mt_session_frame *f, mt_session_entry *ret)
{
    mt_wire_reader r = payload(f);
    mt_session_entry e = {0};

    e.path = mt_wire_get_bytes(&r, MT_SESSION_PATH_MAX);
    e.is_link = mt_wire_get_bool(&r);
    e.target = mt_wire_get_bytes(&r, MT_SESSION_PATH_MAX);
    e.type = mt_wire_get_u8(&r);
    e.mode = mt_wire_get_u32(&r);
    e.size = mt_wire_get_u64(&r);
    e.inode = mt_wire_get_u64(&r);
    e.modified_ns = mt_wire_get_i64(&r);
    e.changed_ns = mt_wire_get_i64(&r);
    *ret = e;
    return verdict(&r, e.type < MT_SESSION_FILE_TYPES && e.mode <= 07777 && e.size <= INT64_MAX &&
                           e.path.len && e.path.data[0] == '/' && !has_nul(e.path) &&
                           !has_nul(e.target));
}

int mt_session_get_next(const mt_session_frame *f, mt_str *ret_cursor, uint64_t *ret_left_out)
{
    mt_wire_reader r = payload(f);

    *ret_cursor = mt_wire_get_bytes(&r, MT_SESSION_CURSOR_MAX);
    *ret_left_out = mt_wire_get_u64(&r);
    return verdict(&r, *ret_left_out <= INT64_MAX && !has_nul(*ret_cursor));
}

bool mt_session_is_term(mt_str term)
{
    static const char punctuation[] = "+-._";

    for (size_t i = 0; i < term.len; i++) {
        char c = term.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr(punctuation, c))))
            return false;
    }
    return term.len > 0 && term.len <= MT_SESSION_TERM_MAX;
}
