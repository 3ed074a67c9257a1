// SPDX-License-Identifier: Apache-2.0
// Time: wall clock in microseconds since 1970 for records, CLOCK_BOOTTIME in nanoseconds for
// deadlines (it counts suspension, and no one can set it). Durations "hh:mm:ss" or "d.hh:mm:ss" and
// sizes "512MiB" as every surface of the product writes them.
#pragma once

#include "base/str.h"

#include <time.h>

int64_t mt_now_us(void);
int64_t mt_boottime_ns(void);
int64_t mt_monotonic_us(void);
// Nanoseconds. Files may have any time: seconds that do not fit are cut, not wrapped.
int64_t mt_timespec_ns(struct timespec t);

enum { MT_TIME_TEXT = 32 };
// "2026-11-30T04:51:17.123456Z"
const char *mt_time_format(int64_t us, char out[MT_TIME_TEXT]);
bool mt_time_parse(mt_str s, int64_t *ret_us); // that form, with 0 to 6 digits of fraction

#define MT_DURATION_GRAMMAR \
    "\"hh:mm:ss\" or \"d.hh:mm:ss\" with minutes and seconds below 60, for example \"00:10:00\""
enum { MT_DURATION_TEXT = 32 };
// Milliseconds of "hh:mm:ss" (hh two or more digits, up to 9999) or "d.hh:mm:ss" (hh below 24).
// False for anything else, zero included. 00:60:00, 90, 1h and blanks are no durations.
bool mt_duration_parse(mt_str s, int64_t *ret_ms);
const char *mt_duration_format(int64_t ms, char out[MT_DURATION_TEXT]); // "00:10:00", "1.00:00:00"

#define MT_SIZE_GRAMMAR "a whole number followed by KiB, MiB, GiB or TiB, for example \"512MiB\""
enum { MT_SIZE_TEXT = 32 };
bool mt_size_parse(mt_str s, int64_t *ret_bytes);                  // false for zero, too
const char *mt_size_format(int64_t bytes, char out[MT_SIZE_TEXT]); // "2GiB", "1536KiB", "17B"
