// SPDX-License-Identifier: Apache-2.0
// The user files of a capsule, commands and streams, as hostile bytes. The input is cut at its
// first two bytes of 0xff.
#include "capsule/exec.h"

#include "base/utf8.h"
#include "capsule/output.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static mt_str next_part(const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size ? memchr(*data, 0xff, *size) : NULL;
    mt_str part = {(const char *)*data, end ? (size_t)(end - *data) : *size};

    *data += part.len + (end ? 1 : 0);
    *size -= part.len + (end ? 1 : 0);
    return part;
}

static void check_user(mt_str passwd, mt_str group)
{
    mt_exec_user u;
    char path[MT_EXEC_PATH_MAX];

    if (mt_exec_find_user(passwd, group, "maitento", &u, NULL) == 0 &&
        (u.home[0] != '/' || u.uid > MT_EXEC_ID_MAX || u.group_count > MT_EXEC_GROUPS_MAX))
        abort();
    mt_exec_login_path(passwd, false, path);
    if (strlen(path) >= sizeof(path))
        abort();
}

// However a stream is cut, what is kept is the same.
static void check_tail(mt_str s)
{
    mt_buf whole = MT_BUF_INIT(1 << 16), parts = MT_BUF_INIT(1 << 16);
    mt_tail a, b;

    mt_tail_init(&a, 7);
    mt_tail_init(&b, 7);
    mt_tail_add(&a, s.data, s.len);
    for (size_t i = 0; i < s.len; i++)
        mt_tail_add(&b, s.data + i, 1);
    if (mt_tail_get(&a, &whole) < 0 || mt_tail_get(&b, &parts) < 0 ||
        strcmp(mt_buf_str(&whole), mt_buf_str(&parts)) != 0 ||
        mt_tail_chars(&a) != mt_tail_chars(&b) ||
        mt_tail_chars(&a) != mt_utf8_count(s.data, s.len) ||
        !mt_utf8_valid(mt_buf_str(&whole), whole.len) ||
        mt_utf8_count(mt_buf_str(&whole), whole.len) > 7)
        abort();
    mt_tail_done(&a);
    mt_tail_done(&b);
    mt_buf_done(&whole);
    mt_buf_done(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_str all = {(const char *)data, size};
    mt_str passwd = next_part(&data, &size), group = next_part(&data, &size);

    if (!all.len)
        return 0;
    check_user(passwd, group);
    (void)mt_exec_check(passwd, 0, NULL);
    (void)mt_exec_check(passwd, 1, NULL);
    check_tail(all);
    return 0;
}
