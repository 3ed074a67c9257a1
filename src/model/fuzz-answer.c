// SPDX-License-Identifier: Apache-2.0
// Answers and error bodies of a hostile provider. The first byte chooses the protocol, the mode and
// the size of the pieces; the rest is the body. What comes out is UTF-8, its pieces are the text,
// and the key is nowhere in it.
#include "base/utf8.h"
#include "model/reading.h"
#include "model/wire.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char KEY[] = "sk-01234";

static void collect(mt_str piece, void *user)
{
    if (piece.len == 0 || !mt_utf8_valid(piece.data, piece.len))
        abort();
    (void)mt_buf_add(user, piece.data, piece.len);
}

static void check_text(mt_str text)
{
    if (!mt_utf8_valid(text.data, text.len))
        abort();
    if (text.len > 0 && memmem(text.data, text.len, KEY, sizeof(KEY) - 1))
        abort();
}

static void check_trouble(const char *bytes, size_t size)
{
    _cleanup_buf_ mt_buf quote = MT_BUF_INIT(SIZE_MAX / 2);
    _cleanup_json_ mt_json *v = NULL;
    trouble t = {0};

    if (mt_json_parse(bytes, size, NULL, &v, NULL) == 0)
        (void)trouble_read(&t, v);
    (void)trouble_kind_of(400, &t);
    (void)trouble_quote((mt_str){bytes, size}, KEY, &quote);
    check_text((mt_str){mt_buf_str(&quote), quote.len});
    trouble_done(&t);
}

static void read_answer(const wire *w, bool tool, size_t step, mt_str body)
{
    _cleanup_buf_ mt_buf pieces = MT_BUF_INIT(SIZE_MAX / 2);
    reading r;
    mt_str text;

    reading_init(&r, w, KEY, tool);
    r.piece = collect;
    r.user = &pieces;
    for (size_t at = 0; at < body.len; at += step)
        if (reading_feed(&r, body.data + at, MT_MIN(step, body.len - at)) < 0)
            break;
    reading_end(&r);
    text = reading_text(&r);
    check_text(text);
    check_text(reading_reasoning(&r));
    check_text(mt_str_of(r.model));
    if (r.finish && !r.problem && !reading_refused(&r) &&
        (pieces.len != text.len || memcmp(mt_buf_str(&pieces), text.data, text.len) != 0))
        abort();
    reading_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_str body;

    if (size == 0)
        return 0;
    body = (mt_str){(const char *)data + 1, size - 1};
    read_answer(data[0] & 1 ? &wire_messages : &wire_chat, data[0] & 2, 1 + data[0] / 4, body);
    check_trouble(body.data, body.len);
    return 0;
}
