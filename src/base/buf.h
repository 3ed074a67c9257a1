// SPDX-License-Identifier: Apache-2.0
// A growing byte buffer that is born with a maximum. After a failed append (over the maximum or out
// of memory) the buffer stays as it was and `failed` is set for good, so a run of appends needs one
// check at its end. The content is always followed by a NUL that does not count.
#pragma once

#include "base/macros.h"

#include <stdarg.h>

typedef struct mt_buf {
    char *data; // never NULL for reading after mt_buf_str()
    size_t len;
    size_t cap_; // private
    size_t max;
    int failed; // 0, or the negative errno of the first failure (-ENOMEM, -EMSGSIZE)
    bool wipe;  // what leaves it, or where it moves from, is overwritten with zeros
} mt_buf;

#define MT_BUF_INIT(max_bytes) \
    {                          \
        .max = (max_bytes)     \
    }
// For what may be a secret: no copy of it stays in freed memory. What mt_buf_take() gave is the
// caller's to wipe.
#define MT_BUF_SECRET_INIT(max_bytes)     \
    {                                     \
        .max = (max_bytes), .wipe = true, \
    }

void mt_buf_done(mt_buf *b);
#define _cleanup_buf_ _cleanup_(mt_buf_done)

// Each returns 0, or the negative errno that b->failed now holds.
int mt_buf_add(mt_buf *b, const void *data, size_t len);
int mt_buf_adds(mt_buf *b, const char *text);
int mt_buf_addc(mt_buf *b, char c);
int mt_buf_addf(mt_buf *b, const char *fmt, ...) MT_PRINTF(2, 3);
int mt_buf_vaddf(mt_buf *b, const char *fmt, va_list ap) MT_PRINTF(2, 0);

// Room for at least len more bytes to write at data + len; NULL when there cannot be. Follow with
// mt_buf_added().
void *mt_buf_reserve(mt_buf *b, size_t len);
void mt_buf_added(mt_buf *b, size_t len);

void mt_buf_clear(mt_buf *b);               // len 0, memory and `failed` reset kept for reuse
void mt_buf_settle(mt_buf *b);              // frees the memory of one that is empty; of a secret
                                            // one only what it held was overwritten
void mt_buf_consume(mt_buf *b, size_t len); // drops len bytes from the front
const char *mt_buf_str(const mt_buf *b);    // "" when empty
char *mt_buf_take(mt_buf *b);               // the malloc'd content, NULL when failed; b is empty
