// SPDX-License-Identifier: Apache-2.0
// Moments as texts: ISO 8601, the Gregorian calendar at all times, years 1 to 9999. No clock and no
// zones of the machine's.
#include "mtc/builtin-internal.h"

#include <stdio.h>

enum { DAY_MS = 86400000, DAYS_TO_1970 = 719468 }; // from 1 March of the year 0

static const int64_t FIRST = -62135596800000, LAST = 253402300799999; // moments that have a text

typedef struct moment {
    int year, month, day, hour, minute, second, ms;
    int offset; // minutes before UTC
} moment;

// ---- days ----

// Since 1970. Years begin on 1 March here, so that a leap day is the last one of its year.
static int64_t days_of(int year, int month, int day)
{
    int y = year - (month <= 2), era = y / 400, in_era = y - era * 400;
    int in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return (int64_t)era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year -
           DAYS_TO_1970;
}

// The day that is so many days after 1970-01-01, from year 1 on.
static void set_day(moment *m, int64_t days)
{
    int64_t since = days + DAYS_TO_1970;
    int era = (int)(since / 146097), in_era = (int)(since % 146097);
    int year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int in_year = in_era - (365 * year + year / 4 - year / 100);
    int month = (5 * in_year + 2) / 153;

    m->day = in_year - (153 * month + 2) / 5 + 1;
    m->month = month < 10 ? month + 3 : month - 9;
    m->year = year + era * 400 + (m->month <= 2);
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

// ---- texts ----

int builtin_TimeToString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    int64_t ms = args[0].number, days, left;
    moment m = {0};
    char text[96];
    int len;

    if (ms < FIRST || ms > LAST)
        return vm_throw(vm, "OutOfRange", "moment %lld is outside of the years 1 to 9999",
                        (long long)ms);
    days = (ms - FIRST) / DAY_MS + FIRST / DAY_MS; // FIRST is the begin of a day
    left = (ms - FIRST) % DAY_MS;
    set_day(&m, days);
    len = snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", m.year, m.month,
                   m.day, (int)(left / 3600000), (int)(left / 60000 % 60), (int)(left / 1000 % 60),
                   (int)(left % 1000));
    return vm_make_string(vm, (mt_str){text, (size_t)len}, ret);
}

// What is left of a text that is read.
typedef struct reading {
    const char *at, *end;
} reading;

static bool take(reading *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

// A number of so many digits.
static bool take_number(reading *r, int digits, int *ret)
{
    int n = 0;

    if (r->end - r->at < digits)
        return false;
    for (int i = 0; i < digits; i++) {
        int digit = r->at[i] - '0';

        if (digit < 0 || digit > 9)
            return false;
        n = n * 10 + digit;
    }
    r->at += digits;
    *ret = n;
    return true;
}

// Any number of digits, of which three count.
static bool take_fraction(reading *r, int *ret_ms)
{
    int unit = 100, digit;
    bool any = false;

    while (take_number(r, 1, &digit)) {
        *ret_ms += unit * digit;
        unit /= 10;
        any = true;
    }
    return any;
}

static bool take_date(reading *r, moment *m)
{
    return take_number(r, 4, &m->year) && take(r, '-') && take_number(r, 2, &m->month) &&
           take(r, '-') && take_number(r, 2, &m->day) && m->month >= 1 && m->month <= 12 &&
           m->day >= 1 && m->day <= days_in(m->year, m->month);
}

static bool take_time(reading *r, moment *m)
{
    if (!take_number(r, 2, &m->hour) || !take(r, ':') || !take_number(r, 2, &m->minute) ||
        m->hour > 23 || m->minute > 59)
        return false;
    if (!take(r, ':'))
        return true;
    if (!take_number(r, 2, &m->second) || m->second > 59)
        return false;
    return !take(r, '.') || take_fraction(r, &m->ms);
}

// "Z", "+02:00", "+0200", "+02"; where there is none, UTC is meant.
static bool take_offset(reading *r, moment *m)
{
    int hours, minutes = 0;
    bool minus;

    if (r->at == r->end || take(r, 'Z'))
        return true;
    minus = take(r, '-');
    if ((!minus && !take(r, '+')) || !take_number(r, 2, &hours) || hours > 23)
        return false;
    if (r->at < r->end) {
        (void)take(r, ':');
        if (!take_number(r, 2, &minutes) || minutes > 59)
            return false;
    }
    m->offset = (hours * 60 + minutes) * (minus ? -1 : 1);
    return true;
}

static bool read_moment(mt_str text, moment *m)
{
    reading r = {text.data, text.data + text.len};

    if (!take_date(&r, m))
        return false;
    if (r.at == r.end)
        return true;
    return take(&r, 'T') && take_time(&r, m) && take_offset(&r, m) && r.at == r.end;
}

int builtin_StringToTime(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]);
    moment m = {0};
    char quoted[VM_QUOTE];
    int64_t minutes, ms;

    vm_spend(vm, text.len);
    if (!read_moment(text, &m))
        return vm_throw(vm, "BadFormat", "%s is not a moment like 2026-11-30T04:51:17.123Z",
                        vm_quote(text, quoted));
    minutes = days_of(m.year, m.month, m.day) * 1440 + m.hour * 60 + m.minute - m.offset;
    ms = minutes * 60000 + m.second * 1000 + m.ms;
    if (ms < FIRST || ms > LAST)
        return vm_throw(vm, "OutOfRange", "%s is outside of the years 1 to 9999",
                        vm_quote(text, quoted));
    *ret = vm_int(ms);
    return 0;
}
