// SPDX-License-Identifier: Apache-2.0
#include "core/providers.h"

#include <ctype.h>
#include <stdio.h>

// ---- what holds ----

const char *mt_provider_base_url(const mt_provider *p)
{
    return p->set.base_url[0] ? p->set.base_url : p->info->base_url;
}

mt_model_schema_mode mt_provider_schema_mode(const mt_provider *p)
{
    mt_model_schema_mode mode = p->info->schema_mode;

    (void)mt_model_schema_mode_read(mt_str_of(p->set.schema_mode), &mode);
    return mode;
}

unsigned mt_provider_concurrency(const mt_provider *p)
{
    return p->set.concurrency > 0 ? (unsigned)p->set.concurrency : MT_MODEL_CONCURRENCY;
}

bool mt_provider_is_ready(const mt_provider *p)
{
    return mt_provider_base_url(p) && (p->set.has_key || !p->info->needs_key);
}

// ---- looking ----

static const char *name_at(size_t i, void *data)
{
    const mt_model_provider_info *info = mt_model_provider_at(i);

    (void)data;
    return info ? info->name : NULL;
}

static int no_provider(mt_str name, mt_err **err)
{
    _cleanup_buf_ mt_buf all = MT_BUF_INIT(1024);
    const char *near = mt_nearest(name, name_at, NULL);

    for (size_t i = 0; name_at(i, NULL); i++)
        (void)mt_buf_addf(&all, "%s%s", i ? ", " : "", name_at(i, NULL));
    return mt_fail(err, MT_E_NOT_FOUND, "no provider '%.*s'%s%s%s; known are %s",
                   (int)MT_MIN(name.len, (size_t)80), name.data ? name.data : "",
                   near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "",
                   mt_buf_str(&all));
}

int mt_provider_get(mt_store *s, mt_str name, mt_provider *ret, mt_err **err)
{
    mt_provider p = {.info = mt_model_provider_by_name(name)};

    if (!p.info)
        return no_provider(name, err);
    if (mt_store_provider_get(s, p.info->name, &p.set, err) < 0)
        return -1;
    *ret = p;
    return 0;
}

// ---- setting ----

static bool is_host_character(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_';
}

// HOST, HOST:PORT or the same with [IPv6].
static bool is_authority(mt_str s)
{
    size_t at = 0;
    uint64_t port;

    if (s.len && s.data[0] == '[') {
        for (at = 1; at < s.len && (isxdigit((unsigned char)s.data[at]) || s.data[at] == ':' ||
                                    s.data[at] == '.');)
            at++;
        if (at < 4 || at == s.len || s.data[at] != ']')
            return false;
        at++;
    } else {
        while (at < s.len && is_host_character(s.data[at]))
            at++;
    }
    if (at == 0 || at == s.len)
        return at > 0;
    return s.data[at] == ':' &&
           mt_parse_u64((mt_str){s.data + at + 1, s.len - at - 1}, 65535, &port) && port > 0;
}

static bool is_path(mt_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] <= ' ' || s.data[i] > '~' || strchr("?#\\\"<>^`{|}", s.data[i]))
            return false;
    return true;
}

static int check_base_url(const char *url, mt_err **err)
{
    const char *host = strstr(url, "://");
    size_t len;

    if (!mt_starts_with(url, "http://") && !mt_starts_with(url, "https://"))
        return mt_fail_field(err, MT_E_BAD_FIELD, "baseUrl",
                             "a base URL begins with http:// or https://");
    host += 3;
    len = strcspn(host, "/?#\\");
    if (memchr(host, '@', len))
        return mt_fail_field(err, MT_E_BAD_FIELD, "baseUrl",
                             "a base URL holds no user and no password: a key is given apart");
    if (!is_authority((mt_str){host, len}) || !is_path(mt_str_of(host + len)))
        return mt_fail_field(err, MT_E_BAD_FIELD, "baseUrl",
                             "a base URL is http(s)://HOST[:PORT][/PATH], for example "
                             "https://llm.example.com/v1, without '?' and '#'");
    return 0;
}

static int check_schema_mode(const char *word, mt_err **err)
{
    mt_model_schema_mode mode;

    if (mt_model_schema_mode_read(mt_str_of(word), &mode))
        return 0;
    return mt_fail_field(err, MT_E_BAD_FIELD, "schemaMode",
                         "a schema mode is schema, tool, json or none, not '%.40s'", word);
}

static int check_concurrency(int64_t n, mt_err **err)
{
    if (n <= MT_MODEL_CONCURRENCY_MAX)
        return 0;
    return mt_fail_field(err, MT_E_BAD_FIELD, "concurrency",
                         "a provider's concurrency is a number from 1 to %d",
                         MT_MODEL_CONCURRENCY_MAX);
}

static bool is_given(const char *text)
{
    return text && *text;
}

int mt_provider_set(mt_store *s, const mt_model_provider_info *info,
                    const mt_provider_change *change, mt_provider *ret, mt_err **err)
{
    mt_provider p = {.info = info};
    mt_provider_change c = *change;
    _cleanup_free_ char *url = NULL;

    if ((is_given(c.base_url) && check_base_url(c.base_url, err) < 0) ||
        (is_given(c.schema_mode) && check_schema_mode(c.schema_mode, err) < 0) ||
        check_concurrency(c.concurrency, err) < 0)
        return -1;
    if (c.base_url) {
        size_t len = strlen(c.base_url);

        while (len > 0 && c.base_url[len - 1] == '/')
            len--;
        c.base_url = url = strndup(c.base_url, len);
        if (!url)
            return mt_fail_oom(err);
    }
    if (mt_store_provider_set(s, info->name, &c, &p.set, err) < 0)
        return -1;
    *ret = p;
    return 0;
}
