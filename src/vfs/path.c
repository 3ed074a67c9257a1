// SPDX-License-Identifier: Apache-2.0
// Paths as text: the one place that decides what a path is, and the escaped form of names.
#include "vfs/vfs-internal.h"

#include "base/utf8.h"

#include <stdio.h>

static int fail_path(const char *field, const char *why, mt_err **err)
{
    return mt_fail_field(err, MT_E_BAD_PATH, field, "%s %s", field ? field : "path", why);
}

// Takes the last name off. False at the root.
static bool drop_name(mt_vfs_path *path)
{
    if (path->len == 0)
        return false;
    while (path->text[path->len - 1] != '/')
        path->len--;
    path->len--;
    return true;
}

static int add_name(mt_vfs_path *path, mt_str name, const char *field, mt_err **err)
{
    if (name.len == 0 || mt_str_eq(name, ".")) {
        path->folder = true;
        return 0;
    }
    if (mt_str_eq(name, "..")) {
        path->folder = true;
        if (!drop_name(path))
            return fail_path(field, "leaves its file system: it has more '..' than folders", err);
        return 0;
    }
    if (name.len > MT_VFS_NAME_MAX)
        return fail_path(field, "has a name of more than 255 bytes: shorten it", err);
    path->folder = false;
    path->text[path->len++] = '/';
    memcpy(path->text + path->len, name.data, name.len);
    path->len += name.len;
    return 0;
}

int mt_vfs_path_parse(mt_str raw, const char *field, mt_vfs_path *ret, mt_err **err)
{
    size_t at = 0;

    if (raw.len == 0 || raw.data[0] != '/')
        return fail_path(field, "must begin with '/', for example '/folder/file.txt'", err);
    if (raw.len > MT_VFS_PATH_MAX)
        return fail_path(field, "has more than 4095 bytes: shorten it", err);
    if (memchr(raw.data, 0, raw.len))
        return fail_path(field, "contains a NUL byte, which no name can", err);

    // The result is never longer than what was read, so text cannot overflow. `at` is at a "/".
    ret->len = 0;
    ret->folder = true;
    while (at < raw.len) {
        const char *start = raw.data + at + 1;
        size_t left = raw.len - at - 1;
        const char *slash = memchr(start, '/', left);
        size_t len = slash ? (size_t)(slash - start) : left;

        if (add_name(ret, (mt_str){start, len}, field, err) < 0)
            return -1;
        at += 1 + len;
    }
    if (ret->len == 0)
        ret->text[ret->len++] = '/';
    ret->text[ret->len] = 0;
    return 0;
}

const char *mt_vfs_path_name(const mt_vfs_path *path)
{
    return strrchr(path->text, '/') + 1;
}

bool mt_vfs_needs_escape(const char *bytes)
{
    return !mt_utf8_valid(bytes, strlen(bytes));
}

int mt_vfs_escape(mt_buf *to, const char *bytes)
{
    size_t len = strlen(bytes);

    for (size_t i = 0; i < len;) {
        uint32_t c;
        size_t n = mt_utf8_decode(bytes + i, len - i, &c, NULL);

        if (n == 0 || bytes[i] == '%')
            (void)mt_buf_addf(to, "%%%02X", (unsigned char)bytes[i]);
        else
            (void)mt_buf_add(to, bytes + i, n);
        i += n ? n : 1;
    }
    return to->failed;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

bool mt_vfs_unescape(mt_buf *to, mt_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        int high, low;

        if (text.data[i] != '%') {
            (void)mt_buf_addc(to, text.data[i]);
            continue;
        }
        if (text.len - i < 3)
            return false;
        high = hex_digit(text.data[i + 1]);
        low = hex_digit(text.data[i + 2]);
        if (high < 0 || low < 0 || (high == 0 && low == 0))
            return false;
        (void)mt_buf_addc(to, (char)(high * 16 + low));
        i += 2;
    }
    return to->failed == 0;
}

const char *vfs_shown(const char *path, char out[VFS_SHOWN_TEXT])
{
    enum { KEEP = 200 }; // bytes: three times that and the dots fit into out
    size_t len = strlen(path), from = 0;
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(VFS_SHOWN_TEXT - 1);

    if (len > KEEP) {
        for (from = len - KEEP; from < len && ((unsigned char)path[from] & 0xc0) == 0x80;)
            from++;
        (void)mt_buf_adds(&text, "…");
    }
    if (mt_vfs_needs_escape(path + from))
        (void)mt_vfs_escape(&text, path + from);
    else
        (void)mt_buf_adds(&text, path + from);
    (void)snprintf(out, VFS_SHOWN_TEXT, "%s", mt_buf_str(&text));
    return out;
}
