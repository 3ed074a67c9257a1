// SPDX-License-Identifier: Apache-2.0
// The words of a call: options anywhere, in either spelling; what is no option is an argument.
#include "cli/cli.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <stdarg.h>

const cli_option cli_common_options[] = {
    {"namespace", 'n', "NAME",
     "the namespace; else MAITENTO_NAMESPACE, the settings file, your default", "@namespace"},
    {"json", 0, NULL, "print JSON as the server gives it"},
    {"quiet", 'q', NULL, "no notes on stderr"},
    {"help", 'h', NULL, "this help"},
    {NULL},
};

int cli_usage(cli *c, mt_err **err, const char *fmt, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    c->usage = true;
    return text ? mt_fail(err, MT_E_BAD_REQUEST, "%s", text) : mt_fail_oom(err);
}

// --- looking up ---

const cli_option *cli_option_at(const cli_command *command, size_t i)
{
    if (command) {
        for (const cli_option *o = command->options; o && o->name; o++, i--) {
            if (i == 0)
                return o;
        }
    }
    return i < MT_ARRAY_SIZE(cli_common_options) - 1 ? &cli_common_options[i] : NULL;
}

static const char *option_name(size_t i, void *data)
{
    const cli_option *o = cli_option_at(data, i);

    return o ? o->name : NULL;
}

// Of its name, what is always the same.
static size_t fixed_len(const cli_option *o)
{
    return strlen(o->name) - (o->rest ? strlen(o->rest) : 0);
}

static bool is_named(const cli_option *o, mt_str name)
{
    size_t len = fixed_len(o);

    return o->rest ? name.len > len && memcmp(name.data, o->name, len) == 0
                   : mt_str_eq(name, o->name);
}

static const cli_option *find(const cli_command *command, mt_str name, char letter)
{
    const cli_option *o;

    for (size_t i = 0; (o = cli_option_at(command, i)) != NULL; i++) {
        if (letter ? o->letter == letter : is_named(o, name))
            return o;
    }
    return NULL;
}

const cli_option *cli_option_find(const cli_command *command, const char *name)
{
    return find(command, mt_str_of(name), 0);
}

// What was meant for the program that a command line names, not for mt.
static const char *for_words(const cli *c)
{
    return c->command && strstr(c->command->arguments, "-- WORD")
               ? ": what is for COMMAND goes after --, or in --args A,B or --arg WORD"
               : "";
}

static int unknown(cli *c, mt_str name, mt_err **err)
{
    const char *nearest = mt_nearest(name, option_name, (void *)c->command);
    const char *of = c->command ? c->command->name : "mt";

    if (nearest)
        return cli_usage(c, err, "%s has no option --%.*s: did you mean --%s?", of,
                         (int)MT_MIN(name.len, (size_t)60), name.data, nearest);
    return cli_usage(c, err, "%s has no option --%.*s%s", of, (int)MT_MIN(name.len, (size_t)60),
                     name.data, for_words(c));
}

// --- values ---

int cli_words_of(const char *values, char copy[CLI_VALUES_TEXT], const char *words[CLI_VALUES_MAX])
{
    int n = 0;

    if (!values || values[0] == '@')
        return 0;
    (void)snprintf(copy, CLI_VALUES_TEXT, "%s", values);
    for (char *at = copy, *bar; at && n < CLI_VALUES_MAX; at = bar ? bar + 1 : NULL) {
        bar = strchr(at, '|');
        if (bar)
            *bar = '\0';
        words[n++] = at;
    }
    return n;
}

static int check_value(cli *c, const cli_option *o, const char *value, mt_err **err)
{
    const char *words[CLI_VALUES_MAX], *nearest;
    char copy[CLI_VALUES_TEXT];
    int n = cli_words_of(o->values, copy, words);
    _cleanup_buf_ mt_buf all = MT_BUF_INIT(4096);

    for (int i = 0; i < n; i++) {
        if (mt_streq(words[i], value))
            return 0;
        (void)mt_buf_addf(&all, "%s%s", i == 0 ? "" : i == n - 1 ? " or " : ", ", words[i]);
    }
    if (n == 0)
        return 0;
    nearest = mt_nearest_of(mt_str_of(value), words, (size_t)n);
    return cli_usage(c, err, "--%s is %s, not '%.40s'%s%s%s", o->name, mt_buf_str(&all), value,
                     nearest ? ": did you mean '" : "", nearest ? nearest : "",
                     nearest ? "'?" : "");
}

static int check_values(cli *c, mt_err **err)
{
    for (int i = 0; i < c->given_count; i++) {
        if (check_value(c, c->given[i].option, c->given[i].value, err) < 0)
            return -1;
    }
    return 0;
}

// --- parsing ---

// name: as it was written; of a letter the option's own.
static void give(cli *c, const cli_option *o, mt_str name, const char *value)
{
    size_t len = o->rest ? fixed_len(o) : name.len;

    c->given[c->given_count++] =
        (struct cli_given){o, value ? value : "", {name.data + len, name.len - len}};
}

// "--name", "--name=value". *next is the word after it, taken when the option wants a value.
static int parse_long(cli *c, const char *word, char ***next, mt_err **err)
{
    const char *equals = strchr(word + 2, '=');
    mt_str name = {word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2)};
    const cli_option *o = find(c->command, name, 0);

    if (!o)
        return unknown(c, name, err);
    if (!o->value && equals)
        return cli_usage(c, err, "--%s takes no value", o->name);
    if (!o->value || equals) {
        give(c, o, name, equals ? equals + 1 : NULL);
        return 0;
    }
    if (!**next)
        return cli_usage(c, err, "--%.*s needs a value: %s", (int)MT_MIN(name.len, (size_t)60),
                         name.data, o->value);
    give(c, o, name, *(*next)++);
    return 0;
}

// "-a", "-abc" of flags, "-nVALUE", "-n VALUE".
static int parse_letters(cli *c, const char *word, char ***next, mt_err **err)
{
    for (const char *p = word + 1; *p; p++) {
        const cli_option *o = find(c->command, MT_STR(""), *p);

        if (!o)
            return cli_usage(c, err, "%s has no option -%c%s", c->command ? c->command->name : "mt",
                             (unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e ? '?' : *p,
                             for_words(c));
        if (!o->value) {
            give(c, o, mt_str_of(o->name), NULL);
            continue;
        }
        if (!p[1] && !**next)
            return cli_usage(c, err, "-%c needs a value: %s", *p, o->value);
        give(c, o, mt_str_of(o->name), p[1] ? p + 1 : *(*next)++);
        return 0;
    }
    return 0;
}

// The command word itself is found on the way: options may stand before it.
static int take_word(cli *c, char *word, mt_err **err)
{
    _cleanup_free_ char *hint = NULL;

    if (c->command) {
        c->args[c->arg_count++] = word;
        return 0;
    }
    c->command = cli_command_find(word);
    if (c->command)
        return 0;
    hint = cli_command_hint(word);
    return cli_usage(c, err, "there is no command '%.60s': %s", word, hint);
}

static int check_count(cli *c, mt_err **err)
{
    const cli_command *k = c->command;

    if (cli_flag(c, "help") || !k)
        return 0;
    if (c->arg_count < k->least)
        return cli_usage(c, err, "%s needs %s", k->name, k->arguments);
    if (k->most >= 0 && c->arg_count > k->most)
        return cli_usage(c, err, "%s takes %s, and '%.60s' is more than that", k->name,
                         k->most == 0 ? "no argument" : k->arguments, c->args[k->most]);
    return 0;
}

static void make_room(cli *c, int argc, char **argv)
{
    size_t letters = 1; // "-qqq" gives as many options as letters

    for (int i = 0; i < argc; i++)
        letters += strlen(argv[i]) + 1;
    c->args = xalloc(sizeof(char *) * (size_t)(argc + 1));
    c->given = xalloc(sizeof(*c->given) * letters);
}

// One word, and the value that may come after it.
static int parse_word(cli *c, char *word, char ***next, mt_err **err)
{
    if (!c->only_words && mt_streq(word, "--")) {
        c->only_words = true;
        c->words_from = c->arg_count;
        return 0;
    }
    if (!c->only_words && mt_starts_with(word, "--"))
        return parse_long(c, word, next, err);
    if (!c->only_words && word[0] == '-' && word[1])
        return parse_letters(c, word, next, err);
    return take_word(c, word, err);
}

int cli_parse(cli *c, int argc, char **argv, mt_err **err)
{
    make_room(c, argc, argv);
    while (*argv) {
        char *word = *argv++;

        if (parse_word(c, word, &argv, err) < 0)
            return -1;
    }
    if (!c->only_words)
        c->words_from = c->arg_count;
    c->json = cli_flag(c, "json");
    c->quiet = cli_flag(c, "quiet");
    return check_count(c, err) < 0 || check_values(c, err) < 0 ? -1 : 0;
}

// The option at the end of a word that wants the next word for its value.
static const cli_option *wants_next(const cli *c, const char *word)
{
    const cli_option *o;

    if (mt_starts_with(word, "--")) {
        o = find(c->command, mt_str_of(word + 2), 0);
        return o && o->value ? o : NULL;
    }
    for (const char *p = word + 1; word[0] == '-' && *p; p++) {
        o = find(c->command, MT_STR(""), *p);
        if (!o || o->value)
            return o && !p[1] ? o : NULL;
    }
    return NULL;
}

const cli_option *cli_parse_unfinished(cli *c, int argc, char **argv)
{
    make_room(c, argc, argv);
    while (*argv) {
        char *word = *argv++;
        const cli_option *o = c->only_words || *argv ? NULL : wants_next(c, word);
        mt_err *ignored = NULL;

        if (o)
            return o;
        (void)parse_word(c, word, &argv, &ignored);
        (void)mt_err_free(ignored);
    }
    return NULL;
}

// --- reading ---

const char *cli_opt_next_rest(const cli *c, const char *name, int *at, mt_str *ret_rest)
{
    while (*at < c->given_count) {
        const struct cli_given *g = &c->given[(*at)++];

        if (mt_streq(g->option->name, name)) {
            *ret_rest = g->rest;
            return g->value;
        }
    }
    return NULL;
}

const char *cli_opt_next(const cli *c, const char *name, int *at)
{
    mt_str rest;

    return cli_opt_next_rest(c, name, at, &rest);
}

const char *cli_opt(const cli *c, const char *name)
{
    const char *last = NULL, *value;

    for (int at = 0; (value = cli_opt_next(c, name, &at)) != NULL;)
        last = value;
    return last;
}

bool cli_flag(const cli *c, const char *name)
{
    return cli_opt(c, name) != NULL;
}

const char *cli_arg(const cli *c, int i)
{
    return i < c->arg_count ? c->args[i] : NULL;
}

int cli_pairs(cli *c, const char *option, mt_json **ret, mt_err **err)
{
    mt_json *v = NULL;
    const char *text;

    for (int at = 0; (text = cli_opt_next(c, option, &at)) != NULL;) {
        const char *equals = strchr(text, '=');

        if (!equals || equals == text) {
            (void)mt_json_unref(v);
            return cli_usage(c, err, "--%s is NAME=VALUE, not '%.60s'", option,
                             equals ? "=…" : text);
        }
        if (!mt_utf8_valid(text, strlen(text))) {
            (void)mt_json_unref(v);
            return cli_usage(c, err, "--%s '%.60s' is not UTF-8", option, text);
        }
        if (!v)
            v = mt_json_new_object();
        (void)mt_json_set_str(v, (mt_str){text, (size_t)(equals - text)},
                              mt_json_new_text(equals + 1));
    }
    *ret = v;
    return 0;
}

// "90s", "5m", "2h", "1d"; one that mt_duration_parse() takes as well.
static bool read_duration(const char *text, int64_t *ret_ms)
{
    static const char units[] = "smhd";
    static const int64_t unit_ms[] = {1000, 60000, 3600000, 86400000};
    size_t len = strlen(text);
    const char *unit = len > 1 ? strchr(units, text[len - 1]) : NULL;
    uint64_t n;

    if (mt_duration_parse(mt_str_of(text), ret_ms))
        return true;
    if (!unit || !*unit || !mt_parse_u64((mt_str){text, len - 1}, 35999999, &n) || n == 0 ||
        (int64_t)n * unit_ms[unit - units] >= (int64_t)9999 * 3600000)
        return false;
    *ret_ms = (int64_t)n * unit_ms[unit - units];
    return true;
}

char *cli_duration(cli *c, const char *option, const char *text, mt_err **err)
{
    char out[MT_DURATION_TEXT];
    int64_t ms;

    if (mt_duration_parse(mt_str_of(text), &ms)) // as it was written
        return xstrdup(text);
    if (read_duration(text, &ms))
        return xstrdup(mt_duration_format(ms, out));
    (void)cli_usage(c, err,
                    "%s%s%s'%.40s' is no duration above zero and below 9999 hours: write "
                    "\"hh:mm:ss\", 90s, 5m, 2h or 1d",
                    option ? "--" : "", option ? option : "", option ? " " : "", text);
    return NULL;
}

int cli_moment(cli *c, const char *option, const char *text, int direction, int64_t *ret,
               mt_err **err)
{
    int64_t ms;

    if (mt_time_parse(mt_str_of(text), ret))
        return 0;
    if (!read_duration(text, &ms))
        return cli_usage(c, err,
                         "--%s '%.40s' is neither a moment (2027-01-31T00:00:00Z) nor a duration "
                         "(\"hh:mm:ss\", 90s, 5m, 2h, 30d)",
                         option, text);
    *ret = mt_now_us() + direction * ms * 1000;
    return 0;
}
