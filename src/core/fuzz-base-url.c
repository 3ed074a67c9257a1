// SPDX-License-Identifier: Apache-2.0
// Base URLs from outside: what is let in has one host, nothing before it and no query behind it,
// and is kept in a form that reads as itself; what is refused is not repeated.
#include "core/providers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check_kept(const char *url)
{
    _cleanup_free_ char *again = mt_provider_read_base_url(url, NULL);
    const char *host = strstr(url, "://") + 3;
    size_t len = strcspn(host, "/");

    require(again && strcmp(again, url) == 0);
    require(mt_starts_with(url, "http://") || mt_starts_with(url, "https://"));
    require(len > 0 && !memchr(host, '@', len) && url[strlen(url) - 1] != '/');
    for (const char *c = url; *c; c++)
        require(*c > ' ' && *c <= '~' && !strchr("?#\\", *c));
}

static void check(const char *url)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *kept = mt_provider_read_base_url(url, &err);

    if (kept) {
        check_kept(kept);
        return;
    }
    require(mt_err_code(err) == MT_E_BAD_FIELD);
    // Long enough to be no word of the sentence itself.
    require(strlen(url) < 64 || !strstr(mt_err_sentence(err), url));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);

    require(copy);
    memcpy(copy, data, size);
    copy[size] = '\0';
    check(copy);
    free(copy);
    return 0;
}
