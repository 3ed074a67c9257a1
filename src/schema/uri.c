// SPDX-License-Identifier: Apache-2.0
// References and bases, RFC 3986 section 5.2: as texts, without normalisation.
#include "schema/schema-internal.h"

typedef struct uri_parts {
    mt_str scheme, authority, path, query, fragment; // data is NULL where one is absent
} uri_parts;

static mt_str before(mt_str *rest, const char *ends)
{
    mt_str part = {rest->data, 0};

    while (part.len < rest->len && (!rest->data[part.len] || !strchr(ends, rest->data[part.len])))
        part.len++;
    rest->data += part.len;
    rest->len -= part.len;
    return part;
}

static bool take(mt_str *rest, const char *text)
{
    size_t len = strlen(text);

    if (rest->len < len || memcmp(rest->data, text, len) != 0)
        return false;
    rest->data += len;
    rest->len -= len;
    return true;
}

static uri_parts split(mt_str s)
{
    uri_parts p = {0};
    mt_str rest = s, scheme = before(&rest, ":/?#");

    if (scheme.len > 0 && take(&rest, ":"))
        p.scheme = scheme;
    else
        rest = s;
    if (take(&rest, "//"))
        p.authority = before(&rest, "/?#");
    p.path = before(&rest, "?#");
    if (take(&rest, "?"))
        p.query = before(&rest, "#");
    if (take(&rest, "#"))
        p.fragment = rest;
    return p;
}

static void cut_segment(mt_buf *out, size_t from)
{
    while (out->len > from && out->data[--out->len] != '/')
        continue;
}

// Appends path without "." and ".." segments (5.2.4).
static void add_path(mt_buf *out, mt_str path)
{
    size_t from = out->len;

    while (path.len > 0) {
        if (take(&path, "../") || take(&path, "./"))
            continue;
        if (path.len >= 3 && memcmp(path.data, "/./", 3) == 0) {
            (void)take(&path, "/.");
        } else if (path.len >= 4 && memcmp(path.data, "/../", 4) == 0) {
            (void)take(&path, "/..");
            cut_segment(out, from);
        } else if (mt_str_eq(path, "/.") || mt_str_eq(path, "/..")) {
            if (path.len == 3)
                cut_segment(out, from);
            (void)mt_buf_addc(out, '/');
            return;
        } else if (mt_str_eq(path, ".") || mt_str_eq(path, "..")) {
            return;
        } else {
            mt_str segment;

            if (take(&path, "/"))
                (void)mt_buf_addc(out, '/');
            segment = before(&path, "/");
            (void)mt_buf_add(out, segment.data, segment.len);
        }
    }
}

// The base's path up to its last slash, and the reference's.
static void merge(const uri_parts *base, mt_str path, mt_buf *out)
{
    const char *slash = base->path.len ? memrchr(base->path.data, '/', base->path.len) : NULL;

    if (slash)
        (void)mt_buf_add(out, base->path.data, (size_t)(slash - base->path.data) + 1);
    else if (base->authority.data)
        (void)mt_buf_addc(out, '/');
    (void)mt_buf_add(out, path.data, path.len);
}

static void add_part(mt_buf *out, const char *mark, mt_str part)
{
    if (!part.data)
        return;
    (void)mt_buf_adds(out, mark);
    (void)mt_buf_add(out, part.data, part.len);
}

char *schema_resolve_uri(const char *base, mt_str reference)
{
    uri_parts b = split(mt_str_of(base)), r = split(reference);
    _cleanup_buf_ mt_buf path = MT_BUF_INIT(SIZE_MAX / 2), out = MT_BUF_INIT(SIZE_MAX / 2);
    bool own = r.scheme.data || r.authority.data;

    if (!own && r.path.len == 0) {
        (void)mt_buf_add(&path, b.path.data, b.path.len);
        if (!r.query.data)
            r.query = b.query;
    } else if (own || r.path.data[0] == '/') {
        (void)mt_buf_add(&path, r.path.data, r.path.len);
    } else {
        merge(&b, r.path, &path);
    }
    if (!r.scheme.data) {
        r.scheme = b.scheme;
        if (!r.authority.data)
            r.authority = b.authority;
    }
    if (r.scheme.data) {
        (void)mt_buf_add(&out, r.scheme.data, r.scheme.len);
        (void)mt_buf_addc(&out, ':');
    }
    add_part(&out, "//", r.authority);
    if (own || r.path.len > 0)
        add_path(&out, (mt_str){mt_buf_str(&path), path.len});
    else
        (void)mt_buf_add(&out, mt_buf_str(&path), path.len);
    add_part(&out, "?", r.query);
    add_part(&out, "#", r.fragment);
    (void)mt_buf_add(&out, "", 0);
    if (path.failed || out.failed)
        return NULL;
    return out.len ? mt_buf_take(&out) : strdup("");
}
