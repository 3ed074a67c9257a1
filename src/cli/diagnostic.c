// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnostic.h"

#include "base/utf8.h"

static void print_source(const cli *c, const char *line, int64_t column)
{
    const char *p = line;

    (void)fputs("    ", stderr);
    cli_print_clean(stderr, line, strlen(line));
    (void)fputs("\n    ", stderr);
    // A tab stands where the line has one, so that the caret meets its column.
    for (int64_t i = 1; i < column && *p; i++) {
        uint32_t ch;
        size_t n = mt_utf8_decode(p, strlen(p), &ch, NULL);

        (void)fputc(*p == '\t' ? '\t' : ' ', stderr);
        p += n ? n : 1;
    }
    (void)fprintf(stderr, "%s^%s\n", cli_on(c->err_colour, CLI_GREEN), cli_off(c->err_colour));
}

void cli_print_diagnostic(const cli *c, const cli_diagnostic *d)
{
    bool colour = c->err_colour;

    (void)fflush(stdout);
    (void)fputs(cli_on(colour, CLI_BOLD), stderr);
    if (d->file[0]) {
        cli_print_flat(stderr, d->file);
        if (d->line > 0)
            (void)fprintf(stderr, ":%lld:%lld", (long long)d->line,
                          (long long)MT_MAX(d->column, (int64_t)1));
        (void)fputs(": ", stderr);
    }
    (void)fprintf(stderr, "%s%s%s: ", cli_on(colour, d->warning ? CLI_YELLOW : CLI_RED),
                  d->warning ? "warning" : "error", cli_off(colour));
    cli_print_clean(stderr, d->message, strlen(d->message));
    (void)fputc('\n', stderr);
    if (d->source_line)
        print_source(c, d->source_line, d->column);
    if (d->hint && d->hint[0]) {
        (void)fputs("    hint: ", stderr);
        cli_print_clean(stderr, d->hint, strlen(d->hint));
        (void)fputc('\n', stderr);
    }
}
