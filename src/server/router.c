// SPDX-License-Identifier: Apache-2.0
#include "server/router.h"

static const mt_route *const TABLES[] = {
    mt_routes_system, mt_routes_access, mt_routes_vfs,          mt_routes_secrets,
    mt_routes_deploy, mt_routes_runs,   mt_routes_commands,     mt_routes_run_files,
    mt_routes_shells, mt_routes_apps,   mt_routes_interactions, mt_routes_providers,
    mt_routes_events};

const mt_route *mt_route_at(size_t i)
{
    for (size_t t = 0; t < MT_ARRAY_SIZE(TABLES); t++)
        for (const mt_route *r = TABLES[t]; r->method; r++)
            if (i-- == 0)
                return r;
    return NULL;
}

// Percent-decodes one path segment. NULL when an escape is bad, a NUL is in it, or memory is out.
static char *decode_segment(mt_arena *arena, const char *s, size_t len, size_t *ret_len)
{
    char *out = mt_arena_alloc(arena, len + 1);
    size_t n = 0;

    if (!out)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        unsigned value = (unsigned char)s[i];

        if (s[i] == '%') {
            char hex[3] = {0};
            char *end;

            if (len - i < 3)
                return NULL;
            hex[0] = s[i + 1];
            hex[1] = s[i + 2];
            if (hex[0] == '+' || hex[0] == '-' || hex[0] == ' ')
                return NULL;
            value = (unsigned)strtoul(hex, &end, 16);
            if (end != hex + 2 || value == 0)
                return NULL;
            i += 2;
        }
        out[n++] = (char)value;
    }
    out[n] = '\0';
    *ret_len = n;
    return out;
}

// 1 when path fits pattern, 0 when not, -1 when a segment cannot be decoded.
static int match(const char *pattern, const char *path, mt_arena *arena, mt_request *req)
{
    size_t count = 0;

    for (;;) {
        size_t plen, len;

        if (*pattern++ != '/' || *path++ != '/')
            return 0;
        plen = strcspn(pattern, "/");
        len = strcspn(path, "/");
        if (pattern[0] == '{') {
            size_t n;
            char *value;

            if (len == 0)
                return 0;
            value = decode_segment(arena, path, len, &n);
            if (!value)
                return -1;
            if (count < MT_PARAMS_MAX) {
                req->params_[count].name = mt_arena_strndup(arena, pattern + 1, plen - 2);
                req->params_[count++].value = (mt_str){value, n};
            }
        } else if (plen != len || memcmp(pattern, path, len) != 0) {
            return 0;
        }
        pattern += plen;
        path += len;
        if (!*pattern || !*path)
            break;
    }
    for (size_t i = count; i < MT_PARAMS_MAX; i++)
        req->params_[i].name = NULL;
    return !*pattern && !*path;
}

int mt_route_find(const char *method, const char *path, mt_arena *arena, const mt_route **ret,
                  mt_request *req, char **ret_allow, mt_err **err)
{
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    const mt_route *r;
    char *allow = NULL;

    for (size_t i = 0; (r = mt_route_at(i)) != NULL; i++) {
        int fits = match(r->pattern, path, arena, req);

        if (fits < 0)
            return mt_fail(err, MT_E_BAD_PATH, "the address holds a bad percent escape");
        if (!fits)
            continue;
        if (strcmp(r->method, wanted) == 0) {
            *ret = r;
            return 0;
        }
        allow = mt_arena_printf(arena, "%s%s%s%s", allow ? allow : "", allow ? ", " : "", r->method,
                                strcmp(r->method, "GET") == 0 ? ", HEAD" : "");
        if (!allow)
            return mt_fail_oom(err);
    }
    if (allow) {
        *ret_allow = allow;
        return mt_fail(err, MT_E_METHOD_NOT_ALLOWED, "%s is not for this address: it takes %s",
                       method, allow);
    }
    return mt_fail(err, MT_E_NOT_FOUND, "no such address; GET /openapi.json lists them all");
}
