// SPDX-License-Identifier: Apache-2.0
#include "base/sse.h"

static const char BOM[] = "\xef\xbb\xbf";
enum { BOM_LEN = 3, BOM_PAST = 4 };

void mt_sse_init(mt_sse *s, mt_sse_fn *fn, void *user)
{
    *s = (mt_sse){
        .fn_ = fn,
        .user_ = user,
        .line_ = MT_BUF_INIT(MT_SSE_EVENT_MAX),
        .data_ = MT_BUF_INIT(MT_SSE_EVENT_MAX),
        .name_ = MT_BUF_INIT(MT_SSE_NAME_MAX),
    };
}

size_t mt_sse_held(const mt_sse *s)
{
    return s->line_.len + s->data_.len;
}

void mt_sse_done(mt_sse *s)
{
    mt_buf_done(&s->line_);
    mt_buf_done(&s->data_);
    mt_buf_done(&s->name_);
}

static int dispatch(mt_sse *s)
{
    mt_str name = {mt_buf_str(&s->name_), s->name_.len};
    mt_str data = {mt_buf_str(&s->data_), s->data_.len};
    int r = s->has_data_ ? s->fn_(name, data, s->user_) : 0;

    s->has_data_ = false;
    mt_buf_clear(&s->data_);
    mt_buf_clear(&s->name_);
    return r;
}

static int field(mt_sse *s, mt_str name, mt_str value)
{
    if (mt_str_eq(name, "event")) {
        mt_buf_clear(&s->name_);
        return mt_buf_add(&s->name_, value.data, MT_MIN(value.len, (size_t)MT_SSE_NAME_MAX));
    }
    if (!mt_str_eq(name, "data"))
        return 0;
    if (s->has_data_ && mt_buf_addc(&s->data_, '\n') < 0)
        return s->data_.failed;
    s->has_data_ = true;
    return mt_buf_add(&s->data_, value.data, value.len);
}

static int line(mt_sse *s, mt_str l)
{
    const char *colon = l.len ? memchr(l.data, ':', l.len) : NULL;
    mt_str name = l, value = {"", 0};

    if (l.len == 0)
        return dispatch(s);
    if (colon) {
        name.len = (size_t)(colon - l.data);
        value = (mt_str){colon + 1, l.len - name.len - 1};
        if (value.len && value.data[0] == ' ')
            value = (mt_str){value.data + 1, value.len - 1};
    }
    return field(s, name, value); // a comment is a field without a name
}

static int end_line(mt_sse *s)
{
    int r = line(s, (mt_str){mt_buf_str(&s->line_), s->line_.len});

    mt_buf_clear(&s->line_);
    return r;
}

// How many bytes from the start belong to the line, up to its end.
static size_t line_part(const char *bytes, size_t len)
{
    size_t n = 0;

    while (n < len && bytes[n] != '\n' && bytes[n] != '\r')
        n++;
    return n;
}

// Passes over a mark in front, however it is cut. Bytes of what only began like one are the line's.
static int pass_bom(mt_sse *s, const char **bytes, size_t *len)
{
    while (s->bom_<BOM_LEN && * len> 0 && **bytes == BOM[s->bom_])
        s->bom_++, (*bytes)++, (*len)--;
    if (s->bom_ == BOM_LEN) {
        s->bom_ = BOM_PAST;
    } else if (*len > 0) {
        unsigned begun = s->bom_;

        s->bom_ = BOM_PAST;
        return mt_buf_add(&s->line_, BOM, begun);
    }
    return 0;
}

int mt_sse_feed(mt_sse *s, const char *bytes, size_t len)
{
    int r = s->bom_ < BOM_PAST ? pass_bom(s, &bytes, &len) : 0;

    while (r == 0 && len > 0) {
        size_t n;

        if (s->after_cr_ && *bytes == '\n')
            bytes++, len--;
        s->after_cr_ = false;
        n = line_part(bytes, len);
        r = mt_buf_add(&s->line_, bytes, n);
        if (r == 0 && n < len) {
            s->after_cr_ = bytes[n] == '\r';
            r = end_line(s);
            n++;
        }
        bytes += n;
        len -= n;
    }
    return r;
}
