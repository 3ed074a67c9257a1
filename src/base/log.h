// SPDX-License-Identifier: Apache-2.0
// Structured log, on stderr: JSON lines, or readable text on a terminal; "<N>" prefixes under
// journald. Programs log once, at the edge; libraries do not log above debug. Values are escaped,
// so nothing that came from outside can forge a line. Never pass a secret.
#pragma once

#include "base/macros.h"

typedef enum mt_log_level { MT_LOG_DEBUG, MT_LOG_INFO, MT_LOG_WARNING, MT_LOG_ERROR } mt_log_level;

void mt_log_init(const char *program, mt_log_level least);
bool mt_log_level_parse(const char *name, mt_log_level *ret); // debug info warning error

// A field whose value is NULL is left out.
void mt_log_fields(mt_log_level level, const char *message, const char *const fields[][2],
                   size_t count);
#define mt_log(level, message, ...)                               \
    do {                                                          \
        const char *const f_[][2] = {__VA_ARGS__};                \
        mt_log_fields((level), (message), f_, MT_ARRAY_SIZE(f_)); \
    } while (0)
// mt_log(MT_LOG_INFO, "run ended", {"run", id}, {"status", "Finished"});
#define mt_log_plain(level, message) mt_log_fields((level), (message), NULL, 0)
