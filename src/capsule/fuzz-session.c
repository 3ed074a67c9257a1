// SPDX-License-Identifier: Apache-2.0
// What a process of a capsule may say for mt-session, as a stream of bytes.
#include "capsule/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool inside(const mt_session_frame *f, mt_str s)
{
    const uint8_t *at = (const uint8_t *)s.data;

    return s.len == 0 || (at >= f->payload && at + s.len <= f->payload + f->len);
}

// What is read is in range, and written again it is the same.
static void check_entry(const mt_session_frame *f)
{
    mt_buf b = MT_BUF_INIT(MT_SESSION_FRAME_MAX);
    mt_session_entry e;

    if (mt_session_get_entry(f, &e) < 0)
        return;
    check(inside(f, e.path) && inside(f, e.target) && e.path.len > 0 && e.path.data[0] == '/' &&
          !memchr(e.path.data, 0, e.path.len) && e.type < MT_SESSION_FILE_TYPES && e.mode <= 07777);
    check(mt_session_put_entry(&b, &e) == 0 && b.len == f->len + MT_SESSION_HEADER &&
          memcmp(b.data + MT_SESSION_HEADER, f->payload, f->len) == 0);
    mt_buf_done(&b);
}

static void check_request(const mt_session_frame *f)
{
    mt_session_request r;

    if (mt_session_get_request(f, &r) == 0)
        check(r.op < MT_SESSION_OPS && inside(f, r.path) && inside(f, r.second) &&
              r.path.len <= MT_SESSION_PATH_MAX);
}

static void check_small(const mt_session_frame *f)
{
    mt_session_failure failure;
    uint64_t offset, length;
    uint16_t columns, rows;
    mt_str cursor;
    bool flag;

    if (mt_session_get_failed(f, &failure) == 0)
        check(failure.why < MT_SESSION_WHYS && failure.detail >= 0);
    if (mt_session_get_next(f, &cursor, &length) == 0)
        check(inside(f, cursor));
    if (mt_session_get_go(f, &offset, &length) == 0)
        check(offset <= INT64_MAX);
    (void)mt_session_get_end(f, &flag);
    (void)mt_session_get_size(f, &columns, &rows);
    (void)mt_session_is_term((mt_str){(const char *)f->payload, f->len});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_session_frame f;
    ssize_t n;

    while ((n = mt_session_parse(data, size, &f)) > 0) {
        check((size_t)n <= size && f.len + MT_SESSION_HEADER == (size_t)n);
        check_entry(&f);
        check_request(&f);
        check_small(&f);
        data += n;
        size -= (size_t)n;
    }
    return 0;
}
