// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>

// Everything behind what is kept.
static void wipe_from(mt_buf *b, size_t from, size_t to)
{
    if (b->wipe && b->data && to > from)
        explicit_bzero(b->data + from, to - from);
}

void mt_buf_done(mt_buf *b)
{
    wipe_from(b, 0, b->cap_);
    free(b->data);
    b->data = NULL;
    b->len = b->cap_ = 0;
}

void *mt_buf_reserve(mt_buf *b, size_t len)
{
    size_t cap;
    char *data;

    if (b->failed)
        return NULL;
    if (len > b->max || b->len > b->max - len) {
        b->failed = -EMSGSIZE;
        return NULL;
    }
    if (b->cap_ - b->len > len && b->data)
        return b->data + b->len;
    cap = b->cap_ ? b->cap_ : 64;
    while (cap <= b->len + len)
        cap += cap / 2 + 64;
    if (cap > b->max + 1)
        cap = b->max + 1;
    data = b->wipe ? malloc(cap) : realloc(b->data, cap);
    if (!data) {
        b->failed = -ENOMEM;
        return NULL;
    }
    if (b->wipe && b->data) {
        memcpy(data, b->data, b->len);
        wipe_from(b, 0, b->cap_);
        free(b->data);
    }
    b->data = data;
    b->cap_ = cap;
    b->data[b->len] = '\0';
    return b->data + b->len;
}

void mt_buf_added(mt_buf *b, size_t len)
{
    b->len += len;
    b->data[b->len] = '\0';
}

int mt_buf_add(mt_buf *b, const void *data, size_t len)
{
    void *to = mt_buf_reserve(b, len);

    if (!to)
        return b->failed;
    if (len)
        memcpy(to, data, len);
    mt_buf_added(b, len);
    return 0;
}

int mt_buf_adds(mt_buf *b, const char *text)
{
    return mt_buf_add(b, text, strlen(text));
}

int mt_buf_addc(mt_buf *b, char c)
{
    return mt_buf_add(b, &c, 1);
}

int mt_buf_vaddf(mt_buf *b, const char *fmt, va_list ap)
{
    char small[256];
    va_list again;
    char *to;
    int n;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof(small), fmt, ap);
    if (n < 0) {
        b->failed = -EINVAL;
    } else if ((size_t)n < sizeof(small)) {
        (void)mt_buf_add(b, small, (size_t)n);
    } else if ((to = mt_buf_reserve(b, (size_t)n)) != NULL) {
        (void)vsnprintf(to, (size_t)n + 1, fmt, again);
        mt_buf_added(b, (size_t)n);
    }
    va_end(again);
    return b->failed;
}

int mt_buf_addf(mt_buf *b, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = mt_buf_vaddf(b, fmt, ap);
    va_end(ap);
    return r;
}

void mt_buf_clear(mt_buf *b)
{
    wipe_from(b, 0, b->len);
    b->len = 0;
    b->failed = 0;
    if (b->data)
        b->data[0] = '\0';
}

void mt_buf_settle(mt_buf *b)
{
    if (b->len > 0)
        return;
    free(b->data);
    b->data = NULL;
    b->cap_ = 0;
}

void mt_buf_consume(mt_buf *b, size_t len)
{
    size_t before = b->len;

    if (len >= b->len) {
        b->len = 0;
    } else {
        memmove(b->data, b->data + len, b->len - len);
        b->len -= len;
    }
    wipe_from(b, b->len, before);
    if (b->data)
        b->data[b->len] = '\0';
}

const char *mt_buf_str(const mt_buf *b)
{
    return b->data ? b->data : "";
}

char *mt_buf_take(mt_buf *b)
{
    char *data = b->data;

    if (b->failed)
        return NULL;
    if (!data)
        return calloc(1, 1);
    b->data = NULL;
    b->len = b->cap_ = 0;
    return data;
}
