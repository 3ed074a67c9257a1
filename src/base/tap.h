// SPDX-License-Identifier: Apache-2.0
// Check macros that print TAP, for unit tests. A failed check says file, line and both values; the
// program goes on and leaves with 1 at the end.
#pragma once

#include "base/macros.h"

#include <inttypes.h>
#include <stdio.h>

static int tap_count_, tap_failed_;

static inline bool tap_ok_(bool ok, const char *file, int line, const char *what)
{
    tap_count_++;
    if (!ok)
        tap_failed_++;
    printf("%sok %d - %s:%d %s\n", ok ? "" : "not ", tap_count_, file, line, what);
    (void)fflush(stdout);
    return ok;
}
static inline void tap_eq_str_(const char *a, const char *b, const char *file, int line,
                               const char *what)
{
    bool same = a == b || (a && b && strcmp(a, b) == 0);

    if (!tap_ok_(same, file, line, what))
        printf("# got:      %s\n# expected: %s\n", a ? a : "(null)", b ? b : "(null)");
}
static inline void tap_eq_int_(intmax_t a, intmax_t b, const char *file, int line, const char *what)
{
    if (!tap_ok_(a == b, file, line, what))
        printf("# got:      %" PRIdMAX "\n# expected: %" PRIdMAX "\n", a, b);
}

#define CHECK(condition)       tap_ok_((condition), __FILE__, __LINE__, #condition)
#define CHECK_STR(got, expect) tap_eq_str_((got), (expect), __FILE__, __LINE__, #got " == " #expect)
#define CHECK_INT(got, expect) \
    tap_eq_int_((intmax_t)(got), (intmax_t)(expect), __FILE__, __LINE__, #got " == " #expect)
#define SKIP(why)  (tap_count_++, printf("ok %d # SKIP %s\n", tap_count_, (why)))
#define TAP_DONE() (printf("1..%d\n", tap_count_), tap_failed_ ? 1 : 0)
