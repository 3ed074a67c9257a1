// SPDX-License-Identifier: Apache-2.0
// Addresses, and which transport serves them.
#include "cli/transport.h"

#include "base/str.h"

#include <ctype.h>
#include <sys/un.h>

void transport_answer_done(transport_answer *a)
{
    mt_buf_done(&a->body);
    free(a->content_type);
    free(a->retry_after);
    *a = (transport_answer)TRANSPORT_ANSWER_INIT;
}

void transport_url_done(transport_url *url)
{
    free(url->path);
    free(url->host);
    url->path = url->host = NULL;
}

static int bad_url(const char *text, mt_err **err)
{
    // No word of the text itself where it may hold a password.
    if (strchr(text, '@'))
        return mt_fail(
            err, MT_E_BAD_REQUEST,
            "an address holds no user or password: give the key apart (MAITENTO_API_KEY)");
    return mt_fail(err, MT_E_BAD_REQUEST,
                   "'%.200s' is no address of a server: give http://HOST[:PORT], "
                   "https://HOST[:PORT] or unix:/PATH",
                   text);
}

static int parse_unix(const char *path, transport_url *ret, mt_err **err)
{
    if (path[0] != '/')
        return bad_url(path, err);
    if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return mt_fail(err, MT_E_BAD_REQUEST,
                       "the socket path '%.200s' is longer than the 107 bytes that Linux takes",
                       path);
    *ret = (transport_url){.scheme = TRANSPORT_UNIX, .path = strdup(path)};
    return ret->path ? 0 : mt_fail_oom(err);
}

// The host of "HOST[:PORT][/]" and where its port begins; false when it is none.
static bool split_host(mt_str s, mt_str *host, mt_str *port)
{
    const char *end = s.data + s.len, *close, *colon;

    if (s.len > 0 && s.data[0] == '[') {
        close = memchr(s.data, ']', s.len);
        if (!close || close == s.data + 1)
            return false;
        *host = (mt_str){s.data + 1, (size_t)(close - s.data - 1)};
        for (size_t i = 0; i < host->len; i++) {
            if (!isxdigit((unsigned char)host->data[i]) && !strchr(":.", host->data[i]))
                return false;
        }
        colon = close + 1;
    } else {
        colon = memchr(s.data, ':', s.len);
        if (!colon)
            colon = end;
        *host = (mt_str){s.data, (size_t)(colon - s.data)};
        for (size_t i = 0; i < host->len; i++) {
            if (!isalnum((unsigned char)host->data[i]) && !strchr("-._", host->data[i]))
                return false;
        }
    }
    *port = colon < end ? (mt_str){colon + 1, (size_t)(end - colon - 1)} : (mt_str){NULL, 0};
    return host->len > 0 && (colon == end || (*colon == ':' && port->len > 0));
}

int transport_url_parse(const char *text, transport_url *ret, mt_err **err)
{
    bool tls = mt_starts_with(text, "https://");
    mt_str rest, host, port;
    uint64_t number = tls ? 443 : 80;

    if (mt_starts_with(text, "unix:"))
        return parse_unix(text + strlen("unix:"), ret, err);
    if (!tls && !mt_starts_with(text, "http://"))
        return bad_url(text, err);
    rest = mt_str_of(text + strlen(tls ? "https://" : "http://"));
    if (rest.len > 0 && rest.data[rest.len - 1] == '/')
        rest.len--;
    if (!split_host(rest, &host, &port))
        return bad_url(text, err);
    if (port.data && (!mt_parse_u64(port, 65535, &number) || number == 0))
        return bad_url(text, err);
    *ret = (transport_url){.scheme = tls ? TRANSPORT_HTTPS : TRANSPORT_HTTP,
                           .host = mt_str_dup(host),
                           .port = (uint16_t)number};
    return ret->host ? 0 : mt_fail_oom(err);
}

bool transport_url_is_local(const transport_url *url)
{
    return url->scheme == TRANSPORT_UNIX || mt_streq(url->host, "localhost") ||
           mt_streq(url->host, "::1") || mt_starts_with(url->host, "127.");
}

transport *transport_open(const char *url, mt_err **err)
{
    transport_url parsed = {0};
    transport *t;

    if (transport_url_parse(url, &parsed, err) < 0)
        return NULL;
    t = transport_curl_wanted(&parsed) ? transport_curl_new(url, err)
                                       : transport_plain_new(&parsed, err);
    transport_url_done(&parsed);
    return t;
}

void transport_free(transport *t)
{
    if (t)
        t->ops->free(t);
}
