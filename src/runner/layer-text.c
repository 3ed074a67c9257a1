// SPDX-License-Identifier: Apache-2.0
#include "runner/layer-text.h"

#include "base/utf8.h"
#include "capsule/layers.h"

#include <strings.h>

enum { NAMES_SHOWN = 20 };

// Options are written in any case.
static bool names(const char *line, size_t len, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= len; i++)
        if (strncasecmp(line + i, word, n) == 0)
            return true;
    return false;
}

// Options that concern how to reach the sources, less those that name files and programs of the
// host.
static bool is_taken(const char *line, size_t len)
{
    static const char *const taken[] = {"Acquire::http::", "Acquire::https::", "Acquire::Check-"};
    static const char *const left[] = {"Detect",  "CaInfo", "CaPath",
                                       "SslCert", "SslKey", "CrlFile"};
    bool found = false;

    for (size_t i = 0; i < MT_ARRAY_SIZE(taken); i++)
        found |= len > strlen(taken[i]) && strncasecmp(line, taken[i], strlen(taken[i])) == 0;
    for (size_t i = 0; i < MT_ARRAY_SIZE(left) && found; i++)
        found = !names(line, len, left[i]);
    return found;
}

void layer_text_options(mt_str dump, mt_buf *to)
{
    for (const char *p = dump.data, *end = p + dump.len, *eol; p < end; p = eol + 1) {
        eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol)
            break;
        if (is_taken(p, (size_t)(eol - p)))
            (void)mt_buf_add(to, p, (size_t)(eol - p) + 1);
    }
}

// "Startup command failed: LINE - exit code 1: REASON": the reason, which is the script's. Neither
// a package's name nor ours has " - " in it.
const char *layer_text_reason(const char *details)
{
    const char *p = strstr(details, " - "), *text;

    if (!mt_starts_with(details, "Startup command failed: ") || !p)
        return details;
    p += 3;
    text = strstr(p, ": ");
    return mt_starts_with(p, "exit code ") && text ? text + 2 : p;
}

// As many bytes of valid UTF-8 as fit, in whole characters.
static size_t fitting(const char *s, size_t len, size_t most)
{
    if (len <= most)
        return len;
    while (most > 0 && ((unsigned char)s[most] & 0xc0) == 0x80)
        most--;
    return most;
}

void layer_text_sentence(mt_buf *to, const char *const *packages, uint32_t count, const char *why)
{
    _cleanup_buf_ mt_buf raw = MT_BUF_INIT(1 << 20), clean = MT_BUF_INIT(4 << 20);

    if (count == 0)
        (void)mt_buf_adds(&raw, "the package lists could not be read");
    else
        (void)mt_buf_adds(&raw, count == 1 ? "the package " : "the packages ");
    for (uint32_t i = 0; i < MT_MIN(count, (uint32_t)NAMES_SHOWN); i++)
        (void)mt_buf_addf(&raw, "%s%s", i ? ", " : "", packages[i]);
    if (count > NAMES_SHOWN)
        (void)mt_buf_addf(&raw, " and %u more", count - NAMES_SHOWN);
    if (count > 0)
        (void)mt_buf_adds(&raw, " could not be installed");
    (void)mt_buf_addf(&raw, ": %s", why);
    (void)mt_utf8_add_clean(&clean, mt_buf_str(&raw), raw.len);
    (void)mt_buf_add(to, mt_buf_str(&clean),
                     fitting(mt_buf_str(&clean), clean.len, MT_LAYER_WHY_MAX - 1));
}
