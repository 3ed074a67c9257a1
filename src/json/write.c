// SPDX-License-Identifier: Apache-2.0
// The writers: whole values, and the streaming one on which they stand.
#include "json/json-internal.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>

// --- strings ---

// Bytes at the start of s that may stand in a JSON string as they are.
static size_t plain(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && (unsigned char)s[n] >= 0x20 && s[n] != '"' && s[n] != '\\' && s[n] != 0x7f)
        n++;
    return n;
}

static void add_escape(mt_buf *b, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *found = c ? strchr(from, c) : NULL;

    if (found) {
        (void)mt_buf_addc(b, '\\');
        (void)mt_buf_addc(b, to[found - from]);
    } else {
        (void)mt_buf_addf(b, "\\u%04x", c);
    }
}

int mt_json_write_string(mt_str s, mt_buf *b)
{
    _cleanup_buf_ mt_buf clean = MT_BUF_INIT(SIZE_MAX / 2);

    if (!mt_utf8_valid(s.data, s.len)) {
        if (mt_utf8_add_clean(&clean, s.data, s.len) < 0)
            return b->failed = b->failed ? b->failed : clean.failed;
        s = (mt_str){clean.data, clean.len};
    }
    (void)mt_buf_addc(b, '"');
    while (s.len > 0) {
        size_t n = plain(s.data, s.len);

        (void)mt_buf_add(b, s.data, n);
        if (n < s.len)
            add_escape(b, (unsigned char)s.data[n++]);
        s.data += n;
        s.len -= n;
    }
    (void)mt_buf_addc(b, '"');
    return b->failed;
}

// --- streaming ---

void mt_jw_init(mt_jw *w, mt_buf *buf, unsigned flags)
{
    *w = (mt_jw){.buf = buf, .flags_ = flags};
}

static void line(mt_jw *w)
{
    if (!(w->flags_ & MT_JSON_PRETTY))
        return;
    (void)mt_buf_addc(w->buf, '\n');
    for (unsigned i = 0; i < w->depth_; i++)
        (void)mt_buf_add(w->buf, "  ", 2);
}

// Before each name, and before each value that has none.
static void separate(mt_jw *w)
{
    if (w->after_key_) {
        w->after_key_ = false;
        return;
    }
    if (w->comma_)
        (void)mt_buf_addc(w->buf, ',');
    if (w->depth_ > 0)
        line(w);
}

static void begin(mt_jw *w, char c)
{
    separate(w);
    (void)mt_buf_addc(w->buf, c);
    w->depth_++;
    w->comma_ = false;
}

static void end(mt_jw *w, char c)
{
    w->depth_--;
    if (w->comma_) // not empty
        line(w);
    (void)mt_buf_addc(w->buf, c);
    w->comma_ = true;
}

void mt_jw_begin_object(mt_jw *w)
{
    begin(w, '{');
}

void mt_jw_end_object(mt_jw *w)
{
    end(w, '}');
}

void mt_jw_begin_array(mt_jw *w)
{
    begin(w, '[');
}

void mt_jw_end_array(mt_jw *w)
{
    end(w, ']');
}

void mt_jw_key_str(mt_jw *w, mt_str name)
{
    separate(w);
    (void)mt_json_write_string(name, w->buf);
    (void)mt_buf_adds(w->buf, w->flags_ & MT_JSON_PRETTY ? ": " : ":");
    w->after_key_ = true;
}

void mt_jw_key(mt_jw *w, const char *name)
{
    mt_jw_key_str(w, mt_str_of(name));
}

void mt_jw_raw(mt_jw *w, mt_str json)
{
    separate(w);
    (void)mt_buf_add(w->buf, json.data, json.len);
    w->comma_ = true;
}

void mt_jw_null(mt_jw *w)
{
    mt_jw_raw(w, MT_STR("null"));
}

void mt_jw_bool(mt_jw *w, bool value)
{
    mt_jw_raw(w, value ? MT_STR("true") : MT_STR("false"));
}

void mt_jw_int(mt_jw *w, int64_t value)
{
    separate(w);
    (void)mt_buf_addf(w->buf, "%lld", (long long)value);
    w->comma_ = true;
}

void mt_jw_double(mt_jw *w, double value)
{
    _cleanup_json_ mt_json *v = isfinite(value) ? mt_json_new_double(value) : mt_json_new_null();

    if (!v)
        w->buf->failed = w->buf->failed ? w->buf->failed : -ENOMEM;
    else
        mt_jw_value(w, v);
}

void mt_jw_string(mt_jw *w, mt_str value)
{
    separate(w);
    (void)mt_json_write_string(value, w->buf);
    w->comma_ = true;
}

void mt_jw_text(mt_jw *w, const char *value)
{
    if (value)
        mt_jw_string(w, mt_str_of(value));
    else
        mt_jw_null(w);
}

void mt_jw_time(mt_jw *w, int64_t us)
{
    char text[MT_TIME_TEXT];

    mt_jw_text(w, us > 0 ? mt_time_format(us, text) : NULL);
}

void mt_jw_duration(mt_jw *w, int64_t ms)
{
    char text[MT_DURATION_TEXT];

    mt_jw_text(w, ms > 0 ? mt_duration_format(ms, text) : NULL);
}

// --- whole values ---

static void scalar(mt_jw *w, const mt_json *v)
{
    switch (mt_json_kind_of(v)) {
    case MT_JSON_BOOL:
        mt_jw_bool(w, mt_json_is_true(v));
        break;
    case MT_JSON_NUMBER:
        mt_jw_raw(w, mt_json_str(v));
        break;
    case MT_JSON_STRING:
        mt_jw_string(w, mt_json_str(v));
        break;
    default:
        mt_jw_null(w);
        break;
    }
}

typedef struct frame {
    const json_box *box;
    size_t next;
} frame;

// The next value in top, its name written; NULL at its end, which is written, too.
static const mt_json *advance(mt_jw *w, frame *top)
{
    const json_box *box = top->box;
    size_t i = top->next++;

    if (i == box->count) {
        end(w, box->head.kind == MT_JSON_OBJECT ? '}' : ']');
        return NULL;
    }
    if (box->head.kind == MT_JSON_ARRAY)
        return box->items[i];
    mt_jw_key_str(w, mt_json_str(box->members[i].name));
    return box->members[i].value;
}

void mt_jw_value(mt_jw *w, const mt_json *v)
{
    frame stack[MT_JSON_DEPTH_MAX];
    size_t depth = 0;

    if (v && !mt_json_ok(v)) {
        w->buf->failed = w->buf->failed ? w->buf->failed : -ENOMEM;
        return;
    }
    for (;;) {
        if (json_is_box(v)) {
            begin(w, v->kind == MT_JSON_OBJECT ? '{' : '[');
            stack[depth++] = (frame){json_box_of(v), 0};
        } else {
            scalar(w, v);
        }
        for (v = NULL; !v && depth > 0;) {
            v = advance(w, &stack[depth - 1]);
            if (!v)
                depth--;
        }
        if (!v || w->buf->failed)
            return;
    }
}

int mt_json_write(const mt_json *v, mt_buf *b, unsigned flags)
{
    mt_jw w;

    mt_jw_init(&w, b, flags);
    mt_jw_value(&w, v);
    return b->failed;
}

// --- members ---

void mt_jw_member_text(mt_jw *w, const char *name, const char *value)
{
    mt_jw_key(w, name);
    mt_jw_text(w, value);
}

void mt_jw_member_str(mt_jw *w, const char *name, mt_str value)
{
    mt_jw_key(w, name);
    mt_jw_string(w, value);
}

void mt_jw_member_int(mt_jw *w, const char *name, int64_t value)
{
    mt_jw_key(w, name);
    mt_jw_int(w, value);
}

void mt_jw_member_bool(mt_jw *w, const char *name, bool value)
{
    mt_jw_key(w, name);
    mt_jw_bool(w, value);
}

void mt_jw_member_null(mt_jw *w, const char *name)
{
    mt_jw_key(w, name);
    mt_jw_null(w);
}

void mt_jw_member_time(mt_jw *w, const char *name, int64_t us)
{
    mt_jw_key(w, name);
    mt_jw_time(w, us);
}

void mt_jw_member_duration(mt_jw *w, const char *name, int64_t ms)
{
    mt_jw_key(w, name);
    mt_jw_duration(w, ms);
}

void mt_jw_member_value(mt_jw *w, const char *name, const mt_json *v)
{
    mt_jw_key(w, name);
    mt_jw_value(w, v);
}
