// SPDX-License-Identifier: Apache-2.0
// capsule-logs: the story of a run with what its commands print where they print it. The story is
// asked for from the last number that was shown, each output from the last byte: neither a break
// nor a restart of the server loses or repeats anything.
#include "cli/command.h"
#include "cli/copy.h"
#include "cli/run-wait.h"
#include "cli/story.h"

#include "base/clock.h"

// A command that has ended is still looked at, as what it left behind may print: the newest so
// many, every so many rounds.
enum { SOURCES_MAX = 32, LOOK_AGAIN = 8, ROUND_MS = 100, ROUND_LONGEST_MS = 1000 };

typedef struct logs logs;

typedef struct source {
    logs *all;
    command_ref command;
    command_stream streams[2];
    bool ended, gone;
} source;

struct logs {
    cli *c;
    const char *run;
    const char *only; // the one command, or NULL
    int64_t since_us;
    int64_t number;               // of the last entry that was shown
    source *sources[SOURCES_MAX]; // the oldest first
    size_t count;
    const command_stream *speaking; // whose bytes came last
    bool mid_line;                  // they did not end their line
    bool printed;                   // something, in this round
};

// --- what is shown ---

static const char *ending_of(const char *id)
{
    size_t len = strlen(id);

    return len > 8 ? id + len - 8 : id;
}

static void json_line(mt_json *v)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);

    if (mt_json_write(v, &b, 0) < 0 || mt_buf_addc(&b, '\n') < 0)
        xoom();
    (void)fwrite(b.data, 1, b.len, stdout);
    (void)fflush(stdout);
    (void)mt_json_unref(v);
}

// A line of mt's own, on stderr, begun on a line of its own where both outputs meet on a terminal.
static void mark(logs *l, const char *when, const char *what)
{
    const cli *c = l->c;

    l->printed = true;
    if (c->quiet)
        return;
    if (l->mid_line && c->out_terminal && c->err_terminal)
        (void)fputc('\n', stderr);
    l->mid_line = false;
    (void)fputs(cli_on(c->err_colour, CLI_DIM), stderr);
    (void)fputs("-- ", stderr);
    if (when[0])
        (void)fprintf(stderr, "%.10s %.12s  ", when, when + 11);
    cli_print_clean(stderr, what, strlen(what));
    (void)fprintf(stderr, "%s\n", cli_off(c->err_colour));
}

static bool several_live(const logs *l)
{
    size_t live = 0;

    for (size_t i = 0; i < l->count; i++)
        live += !l->sources[i]->ended;
    return live > 1;
}

// Whose output follows, where that is not plain.
static void say_whose(logs *l, const command_stream *s)
{
    const source *from = s->data;
    const source *before = l->speaking ? l->speaking->data : NULL;

    if (from != before && (before || several_live(l)) && (several_live(l) || from->ended)) {
        _cleanup_free_ char *what = xprintf("command %s prints%s:", ending_of(from->command.id),
                                            from->ended ? " after its end" : "");

        mark(l, "", what);
    }
    l->speaking = s;
}

static mt_json *piece_as_json(const command_stream *s, const void *piece, size_t len)
{
    mt_json *v = mt_json_new_object();

    (void)mt_json_set(v, "commandId", mt_json_new_text(s->command->id));
    (void)mt_json_set(v, "stream", mt_json_new_text(s->name));
    (void)mt_json_set(v, "offset", mt_json_new_int((int64_t)s->offset));
    (void)mt_json_set(v, "contentBase64", cli_json_base64(piece, len));
    return v;
}

static int show_piece(command_stream *s, const void *piece, size_t len, mt_err **err)
{
    const source *from = s->data;
    logs *l = from->all;

    if (len == 0)
        return 0;
    l->printed = true;
    if (l->c->json) {
        json_line(piece_as_json(s, piece, len));
        return 0;
    }
    say_whose(l, s);
    l->mid_line = ((const char *)piece)[len - 1] != '\n';
    if (mt_streq(s->name, "standard"))
        return cli_write_out(piece, len, err);
    (void)fwrite(piece, 1, len, stderr);
    return 0;
}

// --- outputs ---

// What the record has of an output that is no longer kept itself.
static int show_record(logs *l, source *s, mt_err **err)
{
    _cleanup_free_ char *url = command_url(&s->command, "");
    _cleanup_json_ mt_json *v = NULL;
    static const char *const members[] = {"outputStandard", "outputError"};

    s->gone = true;
    if (api_get_patiently(l->c, url, true, &v, err) < 0)
        return -1;
    if (!l->c->json)
        mark(l, "", "its output is no longer kept; the end of it:");
    for (int i = 0; i < 2; i++) {
        mt_str text = mt_json_str(mt_json_get(v, members[i]));

        if (show_piece(&s->streams[i], text.data, text.len, err) < 0)
            return -1;
    }
    return 0;
}

// What there is now of both outputs.
static int read_source(logs *l, source *s, mt_err **err)
{
    for (int i = 0; i < 2 && !s->gone; i++) {
        command_stream *stream = &s->streams[i];
        uint64_t lost = stream->lost;
        mt_err *cause = NULL;

        if (command_stream_read(stream, false, &cause) < 0) {
            if (mt_err_code(cause) != MT_E_GONE || stream->offset > 0) {
                mt_err_move(err, cause);
                return -1;
            }
            (void)mt_err_free(cause);
            return show_record(l, s, err);
        }
        if (stream->lost > lost)
            cli_warn(l->c, "%llu bytes of the %s output of command %s are no longer kept",
                     (unsigned long long)(stream->lost - lost), stream->name, s->command.id);
    }
    return 0;
}

static void source_free(source *s)
{
    command_ref_done(&s->command);
    free(s);
}

static void drop_source(logs *l, size_t i)
{
    if (l->speaking && l->speaking->data == l->sources[i])
        l->speaking = NULL;
    source_free(l->sources[i]);
    l->count--;
    memmove(&l->sources[i], &l->sources[i + 1], (l->count - i) * sizeof(source *));
}

static source *find_source(logs *l, const char *id)
{
    for (size_t i = 0; i < l->count; i++) {
        if (mt_streq(l->sources[i]->command.id, id))
            return l->sources[i];
    }
    return NULL;
}

// The oldest that has ended makes room; of more that live at once the oldest is told of and left.
static void make_room(logs *l)
{
    size_t i = 0;

    if (l->count < SOURCES_MAX)
        return;
    while (i < l->count && !l->sources[i]->ended)
        i++;
    if (i == l->count) {
        i = 0;
        cli_warn(l->c, "more than %d commands run at once: what command %s prints is left out",
                 SOURCES_MAX, l->sources[0]->command.id);
    }
    drop_source(l, i);
}

static source *add_source(logs *l, const char *id)
{
    source *s = xalloc(sizeof(*s));

    make_room(l);
    s->all = l;
    s->command = (command_ref){xstrdup(l->run), xstrdup(id)};
    for (int i = 0; i < 2; i++)
        s->streams[i] = (command_stream){.c = l->c,
                                         .command = &s->command,
                                         .name = i ? "error" : "standard",
                                         .sink = show_piece,
                                         .data = s};
    l->sources[l->count++] = s;
    return s;
}

static int read_sources(logs *l, bool ended_too, mt_err **err)
{
    for (size_t i = 0; i < l->count; i++) {
        if ((ended_too || !l->sources[i]->ended) && read_source(l, l->sources[i], err) < 0)
            return -1;
    }
    return 0;
}

// --- entries ---

// " as USER: LINE" that a command was sent with; "" where its record cannot be read.
static char *line_of_command(logs *l, const char *id)
{
    command_ref ref = {(char *)l->run, (char *)id};
    _cleanup_free_ char *url = command_url(&ref, "");
    _cleanup_free_ char *line = NULL;
    _cleanup_json_ mt_json *v = NULL;
    const char *user;

    if (api_get_patiently(l->c, url, true, &v, NULL) < 0)
        return xstrdup("");
    line = command_line_of(v);
    user = cli_text(v, "runAsUser");
    return mt_streq(user, "maitento") ? xprintf(": %s", line) : xprintf(" as %s: %s", user, line);
}

static void show_entry(logs *l, const mt_json *entry)
{
    _cleanup_free_ char *line = NULL, *what = NULL;

    l->printed = true;
    if (l->c->json) {
        json_line(mt_json_ref(entry));
        return;
    }
    line = mt_streq(cli_text(entry, "kind"), "commandStarted")
               ? line_of_command(l, cli_text(entry, "commandId"))
               : xstrdup("");
    what = xprintf("%s%s", cli_text(entry, "what"), line);
    mark(l, cli_text(entry, "time"), what);
}

static int take_entry(logs *l, const mt_json *entry, mt_err **err)
{
    const char *kind = cli_text(entry, "kind"), *id = cli_text(entry, "commandId");
    int64_t at = INT64_MAX;
    bool old;
    source *s;

    (void)mt_time_parse(mt_str_of(cli_text(entry, "time")), &at);
    old = at < l->since_us;
    l->number = cli_int(entry, "number");
    if (l->only && !mt_streq(l->only, id))
        return 0;
    if (mt_streq(kind, "commandStarted")) {
        if (!old)
            show_entry(l, entry);
        (void)add_source(l, id);
        return 0;
    }
    s = id[0] ? find_source(l, id) : NULL;
    if (s) {
        // Of one that ended before --since nothing is shown, not even what it left behind.
        s->gone = s->gone || old;
        if (read_source(l, s, err) < 0)
            return -1;
        s->ended = true;
    }
    if (mt_streq(kind, "ending") && read_sources(l, true, err) < 0)
        return -1;
    // How long each step of the start took is told by capsule-run-get --story.
    if (!old && (l->c->json || !mt_streq(kind, "phase")))
        show_entry(l, entry);
    return 0;
}

static int take_story(logs *l, const mt_json *run, mt_err **err)
{
    const mt_json *story = mt_json_get(run, "story");

    for (size_t i = 0; i < mt_json_count(story); i++) {
        if (cli_interrupted)
            return mt_fail(err, MT_E_UNREACHABLE, "interrupted");
        if (take_entry(l, mt_json_at(story, i), err) < 0)
            return -1;
    }
    return 0;
}

// --- rounds ---

static void begin(logs *l, const mt_json *run)
{
    int64_t at = 0;

    (void)mt_time_parse(mt_str_of(cli_text(run, "dateCreated")), &at);
    if (!l->only && at >= l->since_us && !l->c->json) {
        _cleanup_free_ char *what = story_begin(run);

        mark(l, cli_text(run, "dateCreated"), what);
    }
}

// One of a run that never had a machine tells its end here.
static void end_without_story(logs *l, const mt_json *run)
{
    _cleanup_free_ char *what = story_end(run);

    if (l->number == 0 && !l->only && !l->c->json)
        mark(l, cli_text(run, "dateEnded"), what);
}

// False when what is asked for has ended.
static int one_round(logs *l, int round, bool *ret_over, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL;
    const source *only;

    l->printed = false;
    if (story_get(l->c, l->run, l->number, &run, err) < 0)
        return -1;
    if (round == 0)
        begin(l, run);
    if (take_story(l, run, err) < 0)
        return -1;
    only = l->only ? find_source(l, l->only) : NULL;
    *ret_over = run_has_ended(run) || (only && only->ended);
    if (read_sources(l, *ret_over || round % LOOK_AGAIN == 0, err) < 0)
        return -1;
    if (run_has_ended(run))
        end_without_story(l, run);
    return 0;
}

static int show(logs *l, bool follow, mt_err **err)
{
    bool over = false;
    int64_t pause = ROUND_MS;

    for (int round = 0;; round++) {
        if (one_round(l, round, &over, err) < 0)
            return -1;
        if (over || !follow)
            return 0;
        pause = l->printed ? ROUND_MS : MT_MIN(2 * pause, (int64_t)ROUND_LONGEST_MS);
        if (!cli_sleep_ms(pause))
            return mt_fail(err, MT_E_UNREACHABLE, "interrupted");
    }
}

// --- the command ---

static int run_logs(cli *c, mt_err **err)
{
    _cleanup_free_ char *run = NULL;
    _cleanup_command_ command_ref command = {0};
    logs l = {.c = c, .since_us = INT64_MIN};
    int r;

    if ((cli_opt(c, "since") &&
         cli_moment(c, "since", cli_opt(c, "since"), -1, &l.since_us, err) < 0) ||
        api_run_id(c, cli_arg(c, 0), &run, err) < 0)
        return -1;
    if (cli_opt(c, "command") && command_find_in(c, run, cli_opt(c, "command"), &command, err) < 0)
        return -1;
    l.run = run;
    l.only = command.id;
    (void)fflush(stdout);
    r = show(&l, cli_flag(c, "follow"), err);
    while (l.count)
        drop_source(&l, l.count - 1);
    // Ctrl-C is how one stops following: nothing went wrong.
    if (r < 0 && cli_interrupted && cli_flag(c, "follow")) {
        *err = mt_err_free(*err);
        return 128 + cli_interrupted;
    }
    return r;
}

static const cli_option logs_options[] = {
    {"follow", 'f', NULL, "go on until the run has ended"},
    {"since", 0, "TIME", "what happened since: 2026-11-30T04:51:17Z, or so long ago: 5m"},
    {"command", 0, "COMMAND", "of this command only; -f then ends with it", "@command"},
    {NULL},
};

const cli_command cli_logs_commands[] = {
    {"capsule-logs", "RUN", 1, 1, "what happened in a run, and what its commands print",
     "What commands print on standard output goes to stdout, what they print on error output to "
     "stderr,\neach byte for byte; lines of mt's own (\"-- \") go to stderr, --quiet leaves them "
     "out. What\nstartup commands print is not kept. --json: a line of JSON for each entry and "
     "each piece of\noutput.\n"
     "RUN is a run's id, the last 6 or more characters of one, or @last: the newest that you "
     "started.",
     "  mt capsule-logs -f @last\n  mt capsule-logs @last --command @last --since 5m", logs_options,
     run_logs},
    {NULL},
};
