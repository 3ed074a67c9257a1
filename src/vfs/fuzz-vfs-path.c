// SPDX-License-Identifier: Apache-2.0
// Paths and escaped names from outside: what parses must be in normal form and parse to itself, and
// escaping must give the bytes back.
#include "vfs/vfs.h"

#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check_path(mt_str raw)
{
    mt_vfs_path path, again;

    if (mt_vfs_path_parse(raw, "path", &path, NULL) < 0)
        return;
    require(path.len >= 1 && path.len <= MT_VFS_PATH_MAX && path.text[0] == '/');
    require(strlen(path.text) == path.len);
    require(path.len == 1 || path.text[path.len - 1] != '/');
    require(!strstr(path.text, "//") && !strstr(path.text, "/./") && !strstr(path.text, "/../"));
    require(strcmp(mt_vfs_path_name(&path), "..") != 0 &&
            strcmp(mt_vfs_path_name(&path), ".") != 0);
    require(mt_vfs_path_parse((mt_str){path.text, path.len}, "path", &again, NULL) == 0);
    require(strcmp(again.text, path.text) == 0);
}

static void check_escape(const char *bytes, size_t len)
{
    _cleanup_buf_ mt_buf escaped = MT_BUF_INIT(1 << 24), back = MT_BUF_INIT(1 << 24);

    require(mt_vfs_escape(&escaped, bytes) == 0);
    require(mt_utf8_valid(mt_buf_str(&escaped), escaped.len));
    require(mt_vfs_unescape(&back, (mt_str){mt_buf_str(&escaped), escaped.len}));
    require(back.len == strlen(bytes) && memcmp(mt_buf_str(&back), bytes, back.len) == 0);
    mt_buf_clear(&back);
    (void)mt_vfs_unescape(&back, (mt_str){bytes, len});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy;

    if (size > 1 << 20)
        return 0;
    check_path((mt_str){(const char *)data, size});
    copy = malloc(size + 1);
    require(copy);
    memcpy(copy, data, size);
    copy[size] = 0;
    check_escape(copy, size);
    free(copy);
    return 0;
}
