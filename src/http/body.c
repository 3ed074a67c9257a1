// SPDX-License-Identifier: Apache-2.0
// Bodies, and the chunked coding (RFC 9112 section 7.1) byte by byte:
//
//   SIZE ─;─> EXT_NAME ─=─> EXT_VALUE | QUOTED ──┐       DATA ─> DATA_CR ─> DATA_LF ─> SIZE
//     └──────────────── CR ─> SIZE_LF <──────────┘ ─size─> ┘
//                                └─ size 0 ─> TRAILER ─ name ─:─> VALUE ─CR─> VALUE_LF ─> TRAILER
//                                                └─CR─> END_LF ─> END
#include "http/parse.h"

#include "http/grammar.h"

enum {
    SIZE_DIGITS = 16,
    EXT_BYTES = 256,       // of one chunk: nobody uses extensions, but proxies may add some
    EXT_TOTAL = 16 * 1024, // of one body: a stream of tiny chunks must not cost without end
    TRAILER_BYTES = 8 * 1024,
    TRAILER_LINES = 32,
};

enum {
    SIZE,
    EXT_NAME,
    EXT_VALUE,
    QUOTED,
    QUOTED_PAIR,
    QUOTED_END,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER,
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_VALUE_LF,
    END_LF,
    END,
    BROKEN,
};

void mt_http_body_init(mt_http_body *b, mt_http_framing framing, uint64_t length)
{
    memset(b, 0, sizeof(*b));
    b->framing = framing;
    b->left = framing == MT_HTTP_BODY_LENGTH ? length : 0;
}

static bool broken(mt_http_body *b, const char *why)
{
    b->why = why;
    b->state_ = BROKEN;
    return false;
}

static bool size_byte(mt_http_body *b, char c)
{
    if (mt_http_is_(c, MT_HTTP_C_HEXDIG)) {
        if (b->digits_++ >= SIZE_DIGITS || b->left > (uint64_t)INT64_MAX >> 4)
            return broken(b, "a chunk size is too large");
        b->left = b->left << 4 | (uint64_t)mt_http_hex_(c);
        return true;
    }
    if (!b->digits_ || (c != ';' && c != '\r'))
        return broken(b, "a chunk size is not a plain hexadecimal number");
    b->state_ = c == ';' ? EXT_NAME : SIZE_LF;
    b->ext_ = 0;
    b->name_len_ = 0;
    return true;
}

// name_len_ counts the bytes of the name or value: both need one.
static bool ext_byte(mt_http_body *b, char c)
{
    static const char WHY[] = "a chunk extension is malformed";

    if (++b->ext_ > EXT_BYTES || ++b->ext_total_ > EXT_TOTAL)
        return broken(b, "the chunk extensions are too long");
    switch (b->state_) {
    case QUOTED:
        if (!mt_http_is_(c, MT_HTTP_C_LINE))
            return broken(b, WHY);
        b->state_ = c == '"' ? QUOTED_END : c == '\\' ? QUOTED_PAIR : QUOTED;
        return true;
    case QUOTED_PAIR:
        b->state_ = QUOTED;
        return mt_http_is_(c, MT_HTTP_C_LINE) || broken(b, WHY);
    default:
        break;
    }
    if (b->state_ != QUOTED_END && mt_http_is_(c, MT_HTTP_C_TOKEN)) {
        b->name_len_++;
        return true;
    }
    if (b->state_ == EXT_VALUE && c == '"' && !b->name_len_) {
        b->state_ = QUOTED;
        return true;
    }
    if (b->state_ != QUOTED_END && !b->name_len_)
        return broken(b, WHY);
    b->name_len_ = 0;
    if (c == '=' && b->state_ == EXT_NAME)
        b->state_ = EXT_VALUE;
    else if (c == ';')
        b->state_ = EXT_NAME;
    else if (c == '\r')
        b->state_ = SIZE_LF;
    else
        return broken(b, WHY);
    return true;
}

// Trailer fields are checked and dropped. Those that would change the framing or the address of the
// message after the fact are refused.
static bool trailer_name_ok(mt_http_body *b)
{
    static const char *const REFUSED[] = {"content-length", "transfer-encoding", "host",
                                          "connection"};

    if (!b->name_len_)
        return broken(b, "a trailer field without a name");
    for (size_t i = 0; i < MT_ARRAY_SIZE(REFUSED); i++)
        if (b->name_len_ == strlen(REFUSED[i]) && memcmp(b->name_, REFUSED[i], b->name_len_) == 0)
            return broken(b, "a trailer field that may not stand in a trailer");
    return true;
}

static bool trailer_byte(mt_http_body *b, char c)
{
    if (++b->trailer_ > TRAILER_BYTES)
        return broken(b, "the trailer fields are too long");
    switch (b->state_) {
    case TRAILER:
        if (c == '\r') {
            b->state_ = END_LF;
            return true;
        }
        if (++b->trailer_lines_ > TRAILER_LINES)
            return broken(b, "too many trailer fields");
        b->state_ = TRAILER_NAME;
        b->name_len_ = 0;
        return trailer_byte(b, c);
    case TRAILER_NAME:
        if (c == ':') {
            b->state_ = TRAILER_VALUE;
            return trailer_name_ok(b);
        }
        if (!mt_http_is_(c, MT_HTTP_C_TOKEN))
            return broken(b, "a trailer field is not of the form \"Name: value\"");
        if (b->name_len_ < sizeof(b->name_))
            b->name_[b->name_len_] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
        b->name_len_++;
        return true;
    case TRAILER_VALUE:
        if (c == '\r')
            b->state_ = TRAILER_VALUE_LF;
        else if (!mt_http_is_(c, MT_HTTP_C_LINE))
            return broken(b, "a control byte in a trailer field");
        return true;
    case TRAILER_VALUE_LF:
        b->state_ = TRAILER;
        return c == '\n' || broken(b, "a CR without LF after it");
    default: // END_LF
        b->state_ = END;
        return c == '\n' || broken(b, "a CR without LF after it");
    }
}

static bool chunked_byte(mt_http_body *b, char c)
{
    switch (b->state_) {
    case SIZE:
        return size_byte(b, c);
    case SIZE_LF:
        b->state_ = b->left ? DATA : TRAILER;
        return c == '\n' || broken(b, "a CR without LF after it");
    case DATA_CR:
        b->state_ = DATA_LF;
        return c == '\r' || broken(b, "a chunk is longer than its size says");
    case DATA_LF:
        b->state_ = SIZE;
        b->digits_ = 0;
        return c == '\n' || broken(b, "a CR without LF after it");
    default:
        return b->state_ < SIZE_LF ? ext_byte(b, c) : trailer_byte(b, c);
    }
}

static mt_str take(mt_http_body *b, const char *data, size_t len)
{
    size_t n = b->left < len ? (size_t)b->left : len;

    b->left -= n;
    return (mt_str){data, n};
}

// At most one slice of content a call: it ends at the end of its chunk.
static mt_http_progress next_chunked(mt_http_body *b, const char *data, size_t len,
                                     size_t *ret_used, mt_str *ret_content)
{
    size_t i = 0;

    while (i < len && b->state_ != END) {
        if (b->state_ == DATA) {
            *ret_content = take(b, data + i, len - i);
            i += ret_content->len;
            if (!b->left)
                b->state_ = DATA_CR;
            break;
        }
        if (b->state_ == BROKEN || !chunked_byte(b, data[i]))
            return MT_HTTP_WRONG;
        i++;
    }
    *ret_used = i;
    return b->state_ == END ? MT_HTTP_WHOLE : MT_HTTP_MORE;
}

mt_http_progress mt_http_body_next(mt_http_body *b, const char *data, size_t len, size_t *ret_used,
                                   mt_str *ret_content)
{
    *ret_used = 0;
    *ret_content = (mt_str){data, 0};
    switch (b->framing) {
    case MT_HTTP_BODY_CHUNKED:
        return next_chunked(b, data, len, ret_used, ret_content);
    case MT_HTTP_BODY_LENGTH:
        *ret_content = take(b, data, len);
        *ret_used = ret_content->len;
        return b->left ? MT_HTTP_MORE : MT_HTTP_WHOLE;
    case MT_HTTP_BODY_CLOSE:
        *ret_content = (mt_str){data, len};
        *ret_used = len;
        return MT_HTTP_MORE;
    default:
        return MT_HTTP_WHOLE;
    }
}
