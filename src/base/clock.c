// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <stdio.h>

int64_t mt_timespec_ns(struct timespec t)
{
    const int64_t most = INT64_MAX / 1000000000 - 1;

    return MT_MIN(MT_MAX((int64_t)t.tv_sec, -most), most) * 1000000000 + t.tv_nsec;
}

static int64_t read_ns(clockid_t id)
{
    struct timespec t;

    (void)clock_gettime(id, &t);
    return mt_timespec_ns(t);
}

int64_t mt_now_us(void)
{
    return read_ns(CLOCK_REALTIME) / 1000;
}

int64_t mt_boottime_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

int64_t mt_monotonic_us(void)
{
    return read_ns(CLOCK_MONOTONIC) / 1000;
}

const char *mt_time_format(int64_t us, char out[MT_TIME_TEXT])
{
    time_t seconds = (time_t)(us / 1000000);
    long fraction = (long)(us % 1000000);
    struct tm tm;
    size_t n;

    if (fraction < 0) {
        fraction += 1000000;
        seconds--;
    }
    (void)gmtime_r(&seconds, &tm);
    n = strftime(out, MT_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out + n, MT_TIME_TEXT - n, ".%06ldZ", fraction);
    return out;
}

// Reads exactly `digits` digits at *p.
static bool take_digits(const char **p, const char *end, int digits, int *ret)
{
    int value = 0;

    for (int i = 0; i < digits; i++, (*p)++) {
        if (*p >= end || **p < '0' || **p > '9')
            return false;
        value = value * 10 + (**p - '0');
    }
    *ret = value;
    return true;
}

static bool take_char(const char **p, const char *end, char c)
{
    if (*p >= end || **p != c)
        return false;
    (*p)++;
    return true;
}

bool mt_time_parse(mt_str s, int64_t *ret_us)
{
    const char *p = s.data, *end = s.data + s.len;
    struct tm tm = {0};
    int64_t fraction = 0;

    if (!take_digits(&p, end, 4, &tm.tm_year) || !take_char(&p, end, '-') ||
        !take_digits(&p, end, 2, &tm.tm_mon) || !take_char(&p, end, '-') ||
        !take_digits(&p, end, 2, &tm.tm_mday) || !take_char(&p, end, 'T') ||
        !take_digits(&p, end, 2, &tm.tm_hour) || !take_char(&p, end, ':') ||
        !take_digits(&p, end, 2, &tm.tm_min) || !take_char(&p, end, ':') ||
        !take_digits(&p, end, 2, &tm.tm_sec))
        return false;
    if (take_char(&p, end, '.')) {
        int64_t unit = 100000;
        int digit;

        if (p >= end)
            return false;
        while (unit && take_digits(&p, end, 1, &digit)) {
            fraction += unit * digit;
            unit /= 10;
        }
    }
    if (!take_char(&p, end, 'Z') || p != end || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
        tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ret_us = (int64_t)timegm(&tm) * 1000000 + fraction;
    return true;
}

// One run of digits at *p, 1 to max_digits of them.
static bool take_number(const char **p, const char *end, int min_digits, int max_digits,
                        int64_t *ret)
{
    int64_t value = 0;
    int digits = 0;

    while (*p < end && **p >= '0' && **p <= '9') {
        if (++digits > max_digits)
            return false;
        value = value * 10 + (**p - '0');
        (*p)++;
    }
    *ret = value;
    return digits >= min_digits;
}

bool mt_duration_parse(mt_str s, int64_t *ret_ms)
{
    const char *p = s.data, *end = s.data + s.len;
    int64_t days = 0, hours, minutes, seconds, first, total;
    bool has_days = s.len && memchr(s.data, '.', s.len) != NULL;

    if (!s.len)
        return false;
    if (has_days && (!take_number(&p, end, 1, 4, &days) || !take_char(&p, end, '.')))
        return false;
    if (!take_number(&p, end, 2, has_days ? 2 : 4, &first) || !take_char(&p, end, ':'))
        return false;
    hours = first;
    if (!take_number(&p, end, 2, 2, &minutes) || !take_char(&p, end, ':') ||
        !take_number(&p, end, 2, 2, &seconds) || p != end)
        return false;
    if (minutes > 59 || seconds > 59 || (has_days && hours > 23))
        return false;
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    if (total == 0)
        return false;
    *ret_ms = total * 1000;
    return true;
}

const char *mt_duration_format(int64_t ms, char out[MT_DURATION_TEXT])
{
    long long seconds = ms / 1000, days = seconds / 86400;
    int h = (int)(seconds / 3600 % 24), m = (int)(seconds / 60 % 60), s = (int)(seconds % 60);

    if (days)
        (void)snprintf(out, MT_DURATION_TEXT, "%lld.%02d:%02d:%02d", days, h, m, s);
    else
        (void)snprintf(out, MT_DURATION_TEXT, "%02d:%02d:%02d", h, m, s);
    return out;
}

static const struct {
    const char *suffix;
    int shift;
} UNITS[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}};

bool mt_size_parse(mt_str s, int64_t *ret_bytes)
{
    uint64_t value;

    for (size_t i = 0; i < MT_ARRAY_SIZE(UNITS); i++) {
        if (s.len <= 3 || memcmp(s.data + s.len - 3, UNITS[i].suffix, 3) != 0)
            continue;
        if (!mt_parse_u64((mt_str){s.data, s.len - 3}, (uint64_t)INT64_MAX >> UNITS[i].shift,
                          &value) ||
            value == 0)
            return false;
        *ret_bytes = (int64_t)(value << UNITS[i].shift);
        return true;
    }
    return false;
}

const char *mt_size_format(int64_t bytes, char out[MT_SIZE_TEXT])
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(UNITS); i++) {
        if (bytes != 0 && bytes % ((int64_t)1 << UNITS[i].shift) == 0) {
            (void)snprintf(out, MT_SIZE_TEXT, "%lld%s", (long long)(bytes >> UNITS[i].shift),
                           UNITS[i].suffix);
            return out;
        }
    }
    (void)snprintf(out, MT_SIZE_TEXT, "%lldB", (long long)bytes);
    return out;
}
