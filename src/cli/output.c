// SPDX-License-Identifier: Apache-2.0
// What people see: colours, tables, notes, errors, progress.
#include "cli/cli.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/ioctl.h>

void xoom(void)
{
    (void)fputs("mt: out of memory\n", stderr);
    exit(1);
}

void *xalloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);

    if (!p)
        xoom();
    return p;
}

char *xstrdup(const char *s)
{
    size_t len = strlen(s) + 1;

    return memcpy(xalloc(len), s, len);
}

char *xprintf(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        xoom();
    va_end(ap);
    return text;
}

const char *cli_on(bool colour, cli_style style)
{
    static const char *const codes[] = {"",         "\033[1m",  "\033[2m",
                                        "\033[31m", "\033[32m", "\033[33m"};

    return colour ? codes[style] : "";
}

const char *cli_off(bool colour)
{
    return colour ? "\033[0m" : "";
}

// What would move the cursor, start a terminal's command, or turn the direction of what follows.
static bool is_control(uint32_t ch, bool flat)
{
    if (ch < 0x20)
        return flat || (ch != '\n' && ch != '\t');
    return (ch >= 0x7f && ch <= 0x9f) || (ch >= 0x202a && ch <= 0x202e) ||
           (ch >= 0x2066 && ch <= 0x2069);
}

// A byte that belongs to no character may be a control character to a terminal of another encoding.
static void print_clean(FILE *to, const char *text, size_t len, bool flat)
{
    while (len > 0) {
        uint32_t ch;
        size_t n = mt_utf8_decode(text, len, &ch, NULL);

        if (n == 0 || is_control(ch, flat))
            (void)fputc('?', to);
        else
            (void)fwrite(text, 1, n, to);
        n = n ? n : 1;
        text += n;
        len -= n;
    }
}

void cli_print_clean(FILE *to, const char *text, size_t len)
{
    print_clean(to, text, len, false);
}

void cli_print_flat(FILE *to, const char *text)
{
    print_clean(to, text, strlen(text), true);
}

MT_PRINTF(3, 0)
static void vnote(const cli *c, const char *prefix, const char *fmt, va_list ap)
{
    _cleanup_free_ char *text = NULL;

    if (vasprintf(&text, fmt, ap) < 0)
        return;
    cli_status_line(c, "%s", "");
    (void)fflush(stdout); // where both go to one place they keep their order
    (void)fputs(prefix, stderr);
    cli_print_clean(stderr, text, strlen(text));
    (void)fputc('\n', stderr);
}

void cli_note(const cli *c, const char *fmt, ...)
{
    va_list ap;

    if (c->quiet)
        return;
    va_start(ap, fmt);
    vnote(c, "", fmt, ap);
    va_end(ap);
}

void cli_warn(const cli *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vnote(c, "mt: warning: ", fmt, ap);
    va_end(ap);
}

void cli_field(const char *name, const char *text, bool flat)
{
    if (!text[0])
        return;
    (void)printf("%-10s  ", name);
    print_clean(stdout, text, strlen(text), flat);
    (void)fputc('\n', stdout);
}

void cli_field_values(const char *name, const mt_json *values)
{
    for (size_t i = 0; i < mt_json_count(values); i++) {
        _cleanup_buf_ mt_buf text = MT_BUF_INIT(SIZE_MAX / 2);

        (void)mt_buf_addf(&text, "%s = ", mt_json_name_at(values, i).data);
        (void)mt_json_write(mt_json_value_at(values, i), &text, 0);
        cli_field(name, mt_buf_str(&text), true);
    }
}

int cli_print_json(const mt_json *v, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);

    if (mt_json_write(v, &b, MT_JSON_PRETTY) < 0 || mt_buf_addc(&b, '\n') < 0)
        return mt_fail_oom(err);
    (void)fwrite(b.data, 1, b.len, stdout);
    return 0;
}

mt_json *cli_json_base64(const void *data, size_t len)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT((len + 2) / 3 * 4 + 1);

    (void)mt_base64_encode((mt_str){data, len}, &text);
    return mt_json_new_string((mt_str){mt_buf_str(&text), text.len});
}

// --- errors ---

// The server's document of this error. That of an earlier call, whose error was passed over, is
// not.
static const mt_json *problem_of(const cli *c, const mt_err *err)
{
    const char *detail = cli_text(c->problem, "detail"), *sentence = mt_err_sentence(err);
    size_t len = strlen(detail), all = strlen(sentence);

    return len > 0 && len <= all && strcmp(sentence + all - len, detail) == 0 ? c->problem : NULL;
}

static void print_error_json(const cli *c, const mt_err *err)
{
    const mt_json *problem = problem_of(c, err);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);
    mt_jw w;

    mt_jw_init(&w, &b, MT_JSON_PRETTY);
    if (problem) {
        mt_jw_value(&w, problem);
    } else {
        mt_jw_begin_object(&w);
        mt_jw_member_text(&w, "code", mt_code_name(mt_err_code(err)));
        mt_jw_member_text(&w, "detail", mt_err_sentence(err));
        if (mt_err_field(err))
            mt_jw_member_text(&w, "field", mt_err_field(err));
        mt_jw_end_object(&w);
    }
    (void)fprintf(stderr, "%s\n", mt_buf_str(&b));
}

// Whether the help that belongs to a code fits an error that arose on this side. Most of it speaks
// of the server's names and rights, where the sentence here is about a local file.
static bool helps_here(mt_code code)
{
    static const mt_code fits[] = {
        MT_E_UNREACHABLE,  MT_E_OUTCOME_UNKNOWN, MT_E_UNAVAILABLE, MT_E_UNAUTHENTICATED,
        MT_E_RATE_LIMITED, MT_E_IS_A_FOLDER,     MT_E_OOM};

    for (size_t i = 0; i < MT_ARRAY_SIZE(fits); i++) {
        if (fits[i] == code)
            return true;
    }
    return false;
}

// Codes whose help says no more to a person than the sentence does.
static bool says_enough(mt_code code)
{
    static const mt_code plain[] = {MT_E_BAD_REQUEST, MT_E_BAD_FIELD,      MT_E_NOT_FOUND,
                                    MT_E_CONFLICT,    MT_E_ALREADY_EXISTS, MT_E_RUN_ENDED};

    for (size_t i = 0; i < MT_ARRAY_SIZE(plain); i++) {
        if (plain[i] == code)
            return true;
    }
    return false;
}

static void print_help_lines(const cli *c, const mt_err *err)
{
    mt_code code = mt_err_code(err);
    const mt_json *problem = problem_of(c, err);
    const char *dim = cli_on(c->err_colour, CLI_DIM), *off = cli_off(c->err_colour);
    const char *help = mt_json_text(mt_json_get(problem, "help"), NULL);

    if (code == MT_E_NOT_FOUND && problem && c->ns_used) {
        (void)fprintf(stderr, "    %snamespace '", dim);
        cli_print_flat(stderr, c->ns_used);
        (void)fprintf(stderr, "' is from %s%s\n", c->ns_source, off);
    }
    if (c->usage) {
        (void)fprintf(stderr, "    %smt help%s%s shows how it is used%s\n", dim,
                      c->command ? " " : "", c->command ? c->command->name : "", off);
        return;
    }
    if (!help && (problem || helps_here(code)))
        help = mt_code_help(code);
    if (help && help[0] && !(says_enough(code) && mt_streq(help, mt_code_help(code)))) {
        (void)fprintf(stderr, "    %s", dim);
        cli_print_clean(stderr, help, strlen(help));
        (void)fprintf(stderr, "%s\n", off);
    }
}

void cli_print_error(const cli *c, const mt_err *err)
{
    const char *sentence = mt_err_sentence(err);
    mt_code code = mt_err_code(err);
    bool stopped = cli_interrupted != 0;

    cli_status_line(c, "%s", "");
    (void)fflush(stdout);
    if (c->json) {
        print_error_json(c, err);
        return;
    }
    // Who presses Ctrl-C knows why the call was cut off; what it may have done is another matter.
    if (stopped && code != MT_E_OUTCOME_UNKNOWN && !problem_of(c, err))
        sentence = "interrupted";
    (void)fprintf(stderr, "%smt:%s ", cli_on(c->err_colour, CLI_RED), cli_off(c->err_colour));
    cli_print_clean(stderr, sentence, strlen(sentence));
    (void)fputc('\n', stderr);
    if (!stopped || code == MT_E_OUTCOME_UNKNOWN)
        print_help_lines(c, err);
}

// --- members ---

const char *cli_text(const mt_json *v, const char *name)
{
    return mt_json_text(mt_json_get(v, name), "");
}

int64_t cli_int(const mt_json *v, const char *name)
{
    int64_t value = 0;

    (void)mt_json_as_int64(mt_json_get(v, name), &value);
    return value;
}

const char *cli_time(const mt_json *v, const char *name)
{
    static char buffers[8][MT_TIME_TEXT];
    static unsigned next;
    char *out = buffers[next++ % MT_ARRAY_SIZE(buffers)];
    const char *text = cli_text(v, name);

    (void)snprintf(out, MT_TIME_TEXT, "%.19s", text);
    if (strlen(out) == 19 && out[10] == 'T')
        out[10] = ' ';
    return out;
}

// --- tables ---

struct cli_table {
    size_t columns, rows;
    char **cells; // the header is row 0
};

void cli_table_add(cli_table *t, const char *const *cells)
{
    char **grown = realloc(t->cells, (t->rows + 1) * t->columns * sizeof(char *));

    if (!grown)
        xoom();
    t->cells = grown;
    for (size_t i = 0; i < t->columns; i++)
        t->cells[t->rows * t->columns + i] = xstrdup(cells[i] ? cells[i] : "");
    t->rows++;
}

cli_table *cli_table_new(size_t columns, const char *const *header)
{
    cli_table *t = xalloc(sizeof(*t));

    t->columns = columns;
    cli_table_add(t, header);
    return t;
}

static void print_row(const cli *c, const cli_table *t, size_t row, const size_t *widths)
{
    bool head = row == 0;
    size_t owed = 0;

    (void)fputs(cli_on(head && c->out_colour, CLI_DIM), stdout);
    for (size_t i = 0; i < t->columns; i++) {
        const char *cell = t->cells[row * t->columns + i];

        // Blanks come before the next cell that holds something, so that no line ends in them.
        if (cell[0])
            (void)printf("%*s", (int)owed, "");
        owed = cell[0] ? 0 : owed;
        cli_print_flat(stdout, cell);
        owed += widths[i] - mt_utf8_count(cell, strlen(cell)) + 2;
    }
    (void)fputs(cli_off(head && c->out_colour), stdout);
    (void)fputc('\n', stdout);
}

void cli_table_print(const cli *c, cli_table *t)
{
    size_t first = c->out_terminal && t->rows > 1 ? 0 : 1;
    size_t *widths = xalloc(t->columns * sizeof(*widths));

    for (size_t i = first * t->columns; i < t->rows * t->columns; i++)
        widths[i % t->columns] =
            MT_MAX(widths[i % t->columns], mt_utf8_count(t->cells[i], strlen(t->cells[i])));
    for (size_t row = first; row < t->rows; row++)
        print_row(c, t, row, widths);
    for (size_t i = 0; i < t->rows * t->columns; i++)
        free(t->cells[i]);
    free(widths);
    free(t->cells);
    free(t);
}

// --- progress ---

const char *cli_limit_words(const char *limit)
{
    if (mt_streq(limit, "memory"))
        return "memory (limits.memory)";
    if (mt_streq(limit, "pids"))
        return "processes (limits.pids)";
    return mt_streq(limit, "disk") ? "disk (limits.disk, or a file system's limit)" : limit;
}

const char *cli_size(int64_t bytes, char out[MT_SIZE_TEXT])
{
    int shift = bytes >= 1 << 20 ? 20 : bytes >= 1 << 10 ? 10 : 0;

    return mt_size_format(bytes >> shift << shift, out);
}

// How much of text fits on the line of the terminal: one that wraps cannot be written over.
static size_t fit(const char *text)
{
    struct winsize size;
    size_t len = strlen(text), at = 0;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return len;
    for (unsigned column = 1; column < size.ws_col && at < len; column++) {
        uint32_t ch;
        size_t n = mt_utf8_decode(text + at, len - at, &ch, NULL);

        at += n ? n : 1;
    }
    return at;
}

void cli_status_line(const cli *c, const char *fmt, ...)
{
    static bool shown;
    _cleanup_free_ char *text = NULL;
    va_list ap;

    if (!c->err_terminal || c->quiet)
        return;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    if (shown)
        (void)fputs("\r\033[K", stderr);
    shown = text && text[0];
    if (shown)
        print_clean(stderr, text, fit(text), true);
    (void)fflush(stderr);
}

enum { PROGRESS_EVERY_US = 100000, PROGRESS_WIDTH = 30 };

void cli_progress_start(cli_progress *p, const cli *c, const char *what, uint64_t total)
{
    int64_t now = mt_monotonic_us();

    *p = (cli_progress){.c = c, .what = what, .total = total, .started_us = now, .shown_us = now};
}

static void show(cli_progress *p, int64_t now)
{
    char bar[PROGRESS_WIDTH + 1], done[MT_SIZE_TEXT], rate[MT_SIZE_TEXT];
    int64_t per_second = (int64_t)((double)p->done * 1e6 / (double)(now - p->started_us + 1));
    size_t filled = p->total ? (size_t)(MT_MIN(p->done, p->total) * PROGRESS_WIDTH / p->total) : 0;

    for (size_t i = 0; i < PROGRESS_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[PROGRESS_WIDTH] = '\0';
    (void)cli_size((int64_t)p->done, done);
    (void)cli_size(per_second, rate);
    if (p->total)
        cli_status_line(p->c, "%s [%s] %3d %%  %s  %s/s", p->what, bar,
                        (int)(MT_MIN(p->done, p->total) * 100 / p->total), done, rate);
    else
        cli_status_line(p->c, "%s %s  %s/s", p->what, done, rate);
}

void cli_progress_add(cli_progress *p, uint64_t bytes)
{
    int64_t now;

    p->done += bytes;
    if (!p->c->err_terminal || p->c->quiet)
        return;
    now = mt_monotonic_us();
    if (now - p->shown_us < PROGRESS_EVERY_US)
        return;
    p->shown_us = now;
    p->shown = true;
    show(p, now);
}

void cli_progress_end(cli_progress *p)
{
    if (p->shown)
        cli_status_line(p->c, "%s", "");
}
