// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <stdio.h>
#include <sys/stat.h>

static struct {
    const char *program;
    mt_log_level least;
    enum { AS_TEXT, AS_JSON, AS_JOURNAL } form;
} state = {.program = "maitento", .least = MT_LOG_INFO, .form = AS_JSON};

static const char *const NAMES[] = {"debug", "info", "warning", "error"};
static const int PRIORITIES[] = {7, 6, 4, 3};

static bool under_journald(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long dev, ino;
    struct stat st;

    return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 && fstat(2, &st) == 0 &&
           st.st_dev == dev && st.st_ino == ino;
}

void mt_log_init(const char *program, mt_log_level least)
{
    state.program = program;
    state.least = least;
    state.form = under_journald() ? AS_JOURNAL : isatty(2) ? AS_TEXT : AS_JSON;
}

bool mt_log_level_parse(const char *name, mt_log_level *ret)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(NAMES); i++) {
        if (strcmp(name, NAMES[i]) == 0) {
            *ret = (mt_log_level)i;
            return true;
        }
    }
    return false;
}

static void add_quoted(mt_buf *b, const char *text)
{
    _cleanup_buf_ mt_buf clean = MT_BUF_INIT(32768);

    (void)mt_utf8_add_clean(&clean, text, strnlen(text, 8192));
    (void)mt_buf_addc(b, '"');
    for (const char *p = mt_buf_str(&clean); *p; p++) {
        if (*p == '"' || *p == '\\')
            (void)mt_buf_addf(b, "\\%c", *p);
        else if ((unsigned char)*p < 0x20 || *p == 0x7f)
            (void)mt_buf_addf(b, "\\u%04x", (unsigned)*p);
        else
            (void)mt_buf_addc(b, *p);
    }
    (void)mt_buf_addc(b, '"');
}

void mt_log_fields(mt_log_level level, const char *message, const char *const fields[][2],
                   size_t count)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(65536);
    char time[MT_TIME_TEXT];

    if (level < state.least)
        return;
    (void)mt_time_format(mt_now_us(), time);
    if (state.form == AS_TEXT) {
        (void)mt_buf_addf(&b, "%s %-7s %s: %s", time, NAMES[level], state.program, message);
    } else {
        if (state.form == AS_JOURNAL)
            (void)mt_buf_addf(&b, "<%d>", PRIORITIES[level]);
        (void)mt_buf_addf(&b,
                          "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\",\"message\":", time,
                          NAMES[level], state.program);
        add_quoted(&b, message);
    }
    for (size_t i = 0; i < count; i++) {
        if (!fields[i][0] || !fields[i][1])
            continue;
        (void)mt_buf_addf(&b, state.form == AS_TEXT ? " %s=" : ",\"%s\":", fields[i][0]);
        add_quoted(&b, fields[i][1]);
    }
    (void)mt_buf_adds(&b, state.form == AS_TEXT ? "\n" : "}\n");
    // One write a line, so that lines of several processes on one stderr never mix.
    if (write(2, mt_buf_str(&b), b.len) < 0)
        return;
}
