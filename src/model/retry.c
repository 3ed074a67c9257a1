// SPDX-License-Identifier: Apache-2.0
#include "model/retry.h"

#include "base/id.h"

#include <stdio.h>
#include <time.h>

enum { LONGEST_S = 366 * 24 * 3600 }; // what is asked beyond means: never

// "Sun, 06 Nov 1994 08:49:37 GMT", the one form that RFC 9110 lets servers send.
static bool parse_date(mt_str s, int64_t *ret_s)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char text[40], month[4], zone[4];
    const char *at;
    struct tm t = {0};

    if (s.len >= sizeof(text))
        return false;
    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d %3[A-Z]", &t.tm_mday, month,
               &t.tm_year, &t.tm_hour, &t.tm_min, &t.tm_sec, zone) != 7 ||
        strcmp(zone, "GMT") != 0 || !(at = strstr(months, month)) || (at - months) % 3 != 0)
        return false;
    t.tm_mon = (int)(at - months) / 3;
    t.tm_year -= 1900;
    *ret_s = timegm(&t);
    return true;
}

int64_t retry_after_ms(mt_str value, int64_t now_us)
{
    uint64_t seconds;
    int64_t date;

    if (mt_parse_u64(value, UINT64_MAX, &seconds))
        return (int64_t)MT_MIN(seconds, (uint64_t)LONGEST_S) * 1000;
    if (!parse_date(value, &date))
        return -1;
    date = MT_MIN(date * 1000 - now_us / 1000, (int64_t)LONGEST_S * 1000);
    return MT_MAX(date, (int64_t)0);
}

int64_t retry_backoff_ms(unsigned tries)
{
    int64_t whole = RETRY_MAX_MS;
    uint32_t random;

    if (tries < 8)
        whole = MT_MIN((int64_t)RETRY_BASE_MS << (MT_MAX(tries, 1u) - 1), (int64_t)RETRY_MAX_MS);
    mt_random_bytes(&random, sizeof(random));
    return whole / 2 + random % (whole / 2 + 1);
}
