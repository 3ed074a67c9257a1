// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "capsule/protocol.h"
#include "capsule/session.h"

#include <errno.h>

static mt_session_frame parse(const mt_buf *b)
{
    mt_session_frame f = {0};

    CHECK_INT(mt_session_parse(b->data, b->len, &f), b->len);
    return f;
}

static void test_requests(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_SESSION_FRAME_MAX);
    const mt_session_request in = {.op = MT_SESSION_MOVE,
                                   .flag = true,
                                   .limit = 7,
                                   .columns = 80,
                                   .rows = 24,
                                   .path = MT_STR("/a\xff"),
                                   .second = MT_STR("b")};
    mt_session_request out;
    mt_session_frame f;

    CHECK_INT(mt_session_put_request(&b, &in), 0);
    f = parse(&b);
    CHECK_INT(f.type, MT_SESSION_REQUEST);
    CHECK_INT(mt_session_get_request(&f, &out), 0);
    CHECK_INT(out.op, MT_SESSION_MOVE);
    CHECK(out.flag && mt_str_eq(out.path, "/a\xff") && mt_str_eq(out.second, "b"));
    CHECK_INT(out.columns, 80);
    f.len--;
    CHECK_INT(mt_session_get_request(&f, &out), -EBADMSG);
    // An operation that there is not; a NUL in a path.
    b.data[MT_SESSION_HEADER] = MT_SESSION_OPS;
    f = parse(&b);
    CHECK_INT(mt_session_get_request(&f, &out), -EBADMSG);
    mt_buf_clear(&b);
    CHECK_INT(mt_session_put_request(&b, &(mt_session_request){.path = {"/a\0b", 4}}), 0);
    f = parse(&b);
    CHECK_INT(mt_session_get_request(&f, &out), -EBADMSG);
}

static const mt_session_entry ENTRY = {.path = MT_STR("/tmp/x"),
                                       .target = MT_STR("y"),
                                       .is_link = true,
                                       .type = 2,
                                       .mode = 0777,
                                       .size = 5,
                                       .inode = 6,
                                       .modified_ns = -7,
                                       .changed_ns = 8};

static int entry_with(mt_session_entry e)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_SESSION_FRAME_MAX);
    mt_session_entry out;
    mt_session_frame f;

    CHECK_INT(mt_session_put_entry(&b, &e), 0);
    f = parse(&b);
    return mt_session_get_entry(&f, &out);
}

#define WITH(member, value)          \
    ({                               \
        mt_session_entry e_ = ENTRY; \
        e_.member = (value);         \
        entry_with(e_);              \
    })

static void test_entries(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_SESSION_FRAME_MAX);
    mt_session_entry out;
    mt_session_frame f;

    CHECK_INT(mt_session_put_entry(&b, &ENTRY), 0);
    f = parse(&b);
    CHECK_INT(mt_session_get_entry(&f, &out), 0);
    CHECK(mt_str_eq(out.path, "/tmp/x") && mt_str_eq(out.target, "y") && out.is_link);
    CHECK_INT(out.modified_ns, -7);
    CHECK_INT(WITH(type, MT_SESSION_FILE_TYPES), -EBADMSG);
    CHECK_INT(WITH(mode, 010000), -EBADMSG);
    CHECK_INT(WITH(size, UINT64_MAX), -EBADMSG);
    CHECK_INT(WITH(path, MT_STR("relative")), -EBADMSG);
    CHECK_INT(WITH(path, MT_STR("")), -EBADMSG);
    CHECK_INT(WITH(path, ((mt_str){"/a\0b", 4})), -EBADMSG);
    CHECK_INT(WITH(target, ((mt_str){"\0", 1})), -EBADMSG);
}

static void test_framing(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);
    static char data[MT_SESSION_DATA_MAX + 1];
    mt_session_failure failure;
    mt_session_frame f;
    uint64_t offset, length;
    bool flag;

    CHECK_INT(mt_session_put_data(&b, data, MT_SESSION_DATA_MAX), 0);
    for (size_t len = 0; len < b.len; len += len < 8 ? 1 : 4999)
        if (mt_session_parse(b.data, len, &f) != 0)
            CHECK(false);
    CHECK_INT(parse(&b).len, MT_SESSION_DATA_MAX);
    mt_buf_clear(&b);
    (void)mt_session_put_data(&b, data, MT_SESSION_DATA_MAX + 1);
    CHECK_INT(mt_session_parse(b.data, b.len, &f), -EMSGSIZE);
    CHECK_INT(mt_session_parse("\xff\xff\xff\xff", 4, &f), -EMSGSIZE);
    CHECK_INT(mt_session_parse("\0\0\0\0\0", 5, &f), -EBADMSG);
    CHECK_INT(mt_session_parse("\0\0\0\0\x63", 5, &f), -EBADMSG);

    mt_buf_clear(&b);
    (void)mt_session_put_go(&b, 1, UINT64_MAX);
    f = parse(&b);
    CHECK_INT(mt_session_get_go(&f, &offset, &length), 0);
    CHECK(offset == 1 && length == UINT64_MAX);
    mt_buf_clear(&b);
    (void)mt_session_put_go(&b, UINT64_MAX, 0);
    f = parse(&b);
    CHECK_INT(mt_session_get_go(&f, &offset, &length), -EBADMSG);
    mt_buf_clear(&b);
    (void)mt_session_put_end(&b, true);
    f = parse(&b);
    CHECK_INT(mt_session_get_end(&f, &flag), 0);
    CHECK(flag);
    mt_buf_clear(&b);
    (void)mt_session_put_failed(&b, &(mt_session_failure){.detail = 13, .second = true});
    f = parse(&b);
    CHECK_INT(mt_session_get_failed(&f, &failure), 0);
    CHECK(failure.why == MT_SESSION_ERRNO && failure.detail == 13 && failure.second);
    mt_buf_clear(&b);
    (void)mt_session_put_failed(&b, &(mt_session_failure){.detail = -1});
    f = parse(&b);
    CHECK_INT(mt_session_get_failed(&f, &failure), -EBADMSG);
}

static void test_terms(void)
{
    CHECK(mt_session_is_term(MT_STR("xterm-256color")));
    CHECK(mt_session_is_term(MT_STR("screen.xterm+x_1")));
    CHECK(!mt_session_is_term(MT_STR("")));
    CHECK(!mt_session_is_term(MT_STR("a b")));
    CHECK(!mt_session_is_term(MT_STR("../x/y")));
    CHECK(!mt_session_is_term((mt_str){"a\0", 2}));
    CHECK(!mt_session_is_term(
        MT_STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")));
}

// Between server and supervisor.
static void test_supervisor_frames(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 16);
    char user[33], term[65];
    mt_str sentence;
    bool run_ended;
    mt_frame f;
    int status;

    CHECK_INT(mt_put_session(&b, 9, "sandbox", "xterm"), 0);
    CHECK_INT(mt_frame_parse(b.data, b.len, 1 << 16, &f), b.len);
    CHECK_INT(f.tag, 9);
    CHECK_INT(mt_get_session(&f, user, term), 0);
    CHECK_STR(user, "sandbox");
    CHECK_STR(term, "xterm");
    mt_buf_clear(&b);
    CHECK_INT(mt_put_session(&b, 9, "a-name-of-more-than-thirty-two-bytes", ""), 0);
    CHECK_INT(mt_frame_parse(b.data, b.len, 1 << 16, &f), b.len);
    CHECK_INT(mt_get_session(&f, user, term), -EBADMSG);
    mt_buf_clear(&b);
    CHECK_INT(mt_put_session_ended(&b, 9, true, 0x700, "stopped"), 0);
    CHECK_INT(mt_frame_parse(b.data, b.len, 1 << 16, &f), b.len);
    CHECK_INT(mt_get_session_ended(&f, &run_ended, &status, &sentence), 0);
    CHECK(run_ended && status == 0x700 && mt_str_eq(sentence, "stopped"));
}

int main(void)
{
    test_requests();
    test_entries();
    test_framing();
    test_terms();
    test_supervisor_frames();
    return TAP_DONE();
}
