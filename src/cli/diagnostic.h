// SPDX-License-Identifier: Apache-2.0
// A fault at a place in a file, as people see it on stderr: where, what, the line with a caret, a
// hint.
#pragma once

#include "cli/cli.h"

typedef struct cli_diagnostic {
    const char *file; // "" where none is meant
    int64_t line, column;
    bool warning;
    const char *message, *hint, *source_line; // the last two may be NULL
} cli_diagnostic;

void cli_print_diagnostic(const cli *c, const cli_diagnostic *d);
