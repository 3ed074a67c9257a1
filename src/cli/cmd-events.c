// SPDX-License-Identifier: Apache-2.0
// events: what happens on the server, a line each, as it happens.
#include "cli/copy.h"
#include "cli/event-stream.h"

#include "base/utf8.h"

enum { LAST_UNASKED = 100, ENDING = 8 };

// How far a text that may come again has been shown.
typedef struct shown {
    char *what; // "COMMAND STREAM"
    int64_t at;
} shown;

typedef struct events {
    cli *c;
    bool of_one_namespace;
    shown *shown;
    size_t count;
    const char *speaking; // whose text came last: of shown
    bool mid_line;        // it did not end its line
} events;

// ---- lines ----

static int put(const char *text, mt_err **err)
{
    return cli_write_out(text, strlen(text), err);
}

static int put_json(const char *event, const mt_json *data, mt_err **err)
{
    _cleanup_json_ mt_json *v = mt_json_new_object();
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);

    (void)mt_json_set(v, "event", mt_json_new_text(event));
    for (size_t i = 0; i < mt_json_count(data); i++)
        (void)mt_json_set_str(v, mt_json_name_at(data, i), mt_json_ref(mt_json_value_at(data, i)));
    if (mt_json_write(v, &b, 0) < 0 || mt_buf_addc(&b, '\n') < 0)
        xoom();
    return cli_write_out(b.data, b.len, err);
}

static const char *ending_of(const char *id)
{
    size_t len = strlen(id);

    return len > ENDING ? id + len - ENDING : id;
}

static bool has_run(const mt_json *e)
{
    return cli_text(e, "runId")[0] != '\0';
}

// "tutorials/sales-report 5d3a9f10": the name of what changed, and of runs and commands the ending
// of the id, by which mt finds them.
static char *subject_of(const events *v, const mt_json *e)
{
    const char *kind = cli_text(e, "kind"), *ns = cli_text(e, "namespace");
    const char *name = cli_text(e, "name"), *id = ending_of(cli_text(e, "id"));
    bool with_ns = ns[0] && !v->of_one_namespace && !mt_streq(kind, "namespace");
    _cleanup_free_ char *space = with_ns ? xprintf("%s/", ns) : xstrdup("");

    if (mt_streq(kind, "command"))
        return xprintf("%s of run %s", id, ending_of(cli_text(e, "runId")));
    if (name[0] && !has_run(e))
        return xprintf("%s%s", space, name);
    return xprintf("%s%s%s%s", space, name, name[0] ? " " : "", id);
}

// How runs and commands end when nothing happens to them.
static bool is_plain(const char *reason)
{
    return mt_streq(reason, "exited") || mt_streq(reason, "returned") ||
           mt_streq(reason, "answered");
}

// ": Error, exit code 3", ": Finished (terminated)"; "" where the event says it all.
static char *how_of(const mt_json *e)
{
    const char *status = cli_text(e, "status"), *reason = cli_text(e, "endReason");
    _cleanup_free_ char *why = NULL;
    int64_t code = 0;

    if (!mt_streq(cli_text(e, "change"), "ended") || !status[0])
        return xstrdup("");
    why = is_plain(reason) ? xstrdup("") : xprintf(" (%s)", reason);
    (void)mt_json_as_int64(mt_json_get(e, "exitCode"), &code);
    return code ? xprintf(": %s%s, exit code %lld", status, why, (long long)code)
                : xprintf(": %s%s", status, why);
}

static int end_line(events *v, mt_err **err)
{
    if (!v->mid_line)
        return 0;
    v->mid_line = false;
    return put("\n", err);
}

static int show_change(events *v, const mt_json *e, mt_err **err)
{
    _cleanup_free_ char *subject = subject_of(v, e), *how = how_of(e), *line = NULL;

    v->speaking = NULL;
    line = xprintf("%s  %-14s %s %s%s\n", cli_time(e, "date"), cli_text(e, "kind"), subject,
                   cli_text(e, "change"), how);
    return end_line(v, err) < 0 ? -1 : put(line, err);
}

// ---- what is printed ----

static shown *shown_of(events *v, char *what)
{
    shown *more;

    for (size_t i = 0; i < v->count; i++) {
        if (mt_streq(v->shown[i].what, what)) {
            free(what);
            return &v->shown[i];
        }
    }
    more = reallocarray(v->shown, v->count + 1, sizeof(*more));
    if (!more)
        xoom();
    v->shown = more;
    more[v->count] = (shown){.what = what};
    return &more[v->count++];
}

// The text without its first so many bytes, as they were in the source: where that had bytes that
// are no UTF-8, each stands here as one U+FFFD.
static mt_str without(mt_str text, int64_t bytes, int64_t source_bytes)
{
    bool clean = (int64_t)text.len == source_bytes;

    while (bytes > 0 && text.len > 0) {
        uint32_t c = 0;
        size_t n = MT_MAX(mt_utf8_decode(text.data, text.len, &c, NULL), (size_t)1);

        bytes -= !clean && c == 0xfffd ? 1 : (int64_t)n;
        text.data += n;
        text.len -= n;
    }
    return text;
}

// Each line behind whose it is.
static int show_text(events *v, const char *whose, mt_str text, mt_err **err)
{
    _cleanup_free_ char *clean = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&clean, &size);
    int r;

    if (!f)
        xoom();
    while (text.len > 0) {
        const char *stop = memchr(text.data, '\n', text.len);
        size_t n = stop ? (size_t)(stop - text.data) + 1 : text.len;

        if (!v->mid_line)
            (void)fprintf(f, "  %s | ", whose);
        cli_print_clean(f, text.data, n);
        v->mid_line = !stop;
        text.data += n;
        text.len -= n;
    }
    (void)fclose(f);
    r = cli_write_out(clean, size, err);
    return r;
}

typedef struct piece {
    char *what;        // whose; the caller gives it away
    const char *whose; // for people
    int64_t from, bytes;
    mt_str text;
} piece;

static int show_piece(events *v, const piece *p, const mt_json *data, const char *event,
                      mt_err **err)
{
    shown *s = shown_of(v, p->what);
    mt_str text = p->text;

    if (p->from + p->bytes <= s->at)
        return 0;
    if (v->c->json) {
        s->at = p->from + p->bytes;
        return put_json(event, data, err);
    }
    if (p->from < s->at)
        text = without(text, s->at - p->from, p->bytes);
    s->at = p->from + p->bytes;
    if (!mt_streq(v->speaking, s->what) && end_line(v, err) < 0)
        return -1;
    v->speaking = s->what;
    return show_text(v, p->whose, text, err);
}

static int show_output(events *v, const mt_json *data, mt_err **err)
{
    const char *command = cli_text(data, "commandId"), *stream = cli_text(data, "stream");
    _cleanup_free_ char *whose =
        xprintf("%s%s", ending_of(command), mt_streq(stream, "error") ? " error" : "");

    return show_piece(v,
                      &(piece){.what = xprintf("%s %s", command, stream),
                               .whose = whose,
                               .from = cli_int(data, "offset"),
                               .bytes = cli_int(data, "bytes"),
                               .text = mt_json_str(mt_json_get(data, "text"))},
                      data, "output", err);
}

// Lines are counted, pieces of a line by their bytes: one number for both.
static int show_console(events *v, const mt_json *data, mt_err **err)
{
    enum { LINE_BITS = 24 }; // of a line's length
    mt_str text = mt_json_str(mt_json_get(data, "text"));

    return show_piece(
        v,
        &(piece){.what = xstrdup("console"),
                 .whose = ending_of(cli_text(data, "runId")),
                 .from = (cli_int(data, "number") << LINE_BITS) + cli_int(data, "from"),
                 .bytes = MT_MAX((int64_t)text.len, (int64_t)1),
                 .text = text},
        data, "console", err);
}

static int show_said(events *v, const mt_json *data, mt_err **err)
{
    mt_str text = mt_json_str(mt_json_get(data, "text"));

    return show_piece(v,
                      &(piece){.what = xprintf("text %lld", (long long)cli_int(data, "stream")),
                               .whose = ending_of(cli_text(data, "runId")),
                               .from = cli_int(data, "from"),
                               .bytes = (int64_t)text.len,
                               .text = text},
                      data, "text", err);
}

// What was shown of a command is needed no more once its end was told.
static void forget(events *v, const mt_json *e)
{
    const char *id = cli_text(e, "id");

    if (!mt_streq(cli_text(e, "kind"), "command") || !mt_streq(cli_text(e, "change"), "ended"))
        return;
    for (size_t i = 0; i < v->count;) {
        if (mt_starts_with(v->shown[i].what, id)) {
            free(v->shown[i].what);
            v->shown[i] = v->shown[--v->count];
        } else {
            i++;
        }
    }
}

static int take(const char *event, const mt_json *data, void *data_of_take, mt_err **err)
{
    events *v = data_of_take;
    int r;

    if (mt_streq(event, "output"))
        return show_output(v, data, err);
    if (mt_streq(event, "console"))
        return show_console(v, data, err);
    if (mt_streq(event, "text"))
        return show_said(v, data, err);
    if (!mt_streq(event, "change"))
        return 0; // of a newer server
    r = v->c->json ? put_json(event, data, err) : show_change(v, data, err);
    forget(v, data);
    return r;
}

// ---- the command ----

static int number_of(cli *c, const char *option, uint64_t most, mt_err **err)
{
    const char *text = cli_opt(c, option);
    uint64_t n;

    if (!text || mt_parse_u64(mt_str_of(text), most, &n))
        return 0;
    return cli_usage(c, err, "--%s is a number up to %llu, not '%.40s'", option,
                     (unsigned long long)most, text);
}

// A run of whatever kind.
static int find_run(cli *c, const char *word, char **ret, mt_err **err)
{
    const cli_runs *const kinds[] = {&cli_capsule_runs, &cli_app_runs, &cli_interaction_runs};

    for (size_t i = 0; i < MT_ARRAY_SIZE(kinds); i++) {
        mt_err *cause = NULL;

        if (api_id_of_run(c, kinds[i], word, ret, &cause) == 0)
            return 0;
        if (mt_err_code(cause) != MT_E_NOT_FOUND) {
            mt_err_move(err, cause);
            return -1;
        }
        (void)mt_err_free(cause);
    }
    return mt_fail(err, MT_E_NOT_FOUND, "no run of a capsule, an app or an interaction is '%.60s'",
                   word);
}

static void add_query(mt_buf *b, const char *name, const char *value)
{
    _cleanup_free_ char *escaped = NULL;

    if (!value)
        return;
    escaped = api_path("%s", value);
    (void)mt_buf_addf(b, "%c%s=%s", b->len ? '&' : '?', name, escaped);
}

static int make_query(cli *c, mt_buf *query, mt_buf *new_query, mt_err **err)
{
    _cleanup_free_ char *run = NULL;
    const char *word = cli_opt(c, "run"), *last = cli_opt(c, "last");
    char unasked[16];

    if (number_of(c, "after", INT64_MAX, err) < 0 || number_of(c, "last", 1000, err) < 0)
        return -1;
    if (cli_opt(c, "after") && last)
        return cli_usage(c, err, "give one of --after and --last");
    if (cli_flag(c, "output") && !word)
        return cli_usage(c, err, "--output needs --run RUN");
    if (word && find_run(c, word, &run, err) < 0)
        return -1;
    (void)snprintf(unasked, sizeof(unasked), "%d", LAST_UNASKED);
    add_query(new_query, "namespace", cli_opt(c, "namespace"));
    add_query(new_query, "kind", cli_opt(c, "kind"));
    add_query(new_query, "run", run);
    add_query(new_query, "output", cli_flag(c, "output") ? "true" : NULL);
    add_query(new_query, "follow", cli_flag(c, "follow") ? NULL : "false");
    (void)mt_buf_adds(query, mt_buf_str(new_query));
    add_query(query, "after", cli_opt(c, "after"));
    if (!last && !cli_opt(c, "after") && !cli_flag(c, "follow"))
        last = unasked;
    add_query(query, "last", last);
    if (query->failed || new_query->failed)
        xoom();
    return 0;
}

static int run_events(cli *c, mt_err **err)
{
    _cleanup_buf_ mt_buf query = MT_BUF_INIT(1 << 16), new_query = MT_BUF_INIT(1 << 16);
    events v = {.c = c, .of_one_namespace = cli_opt(c, "namespace") != NULL};
    event_stream s = {.c = c, .for_ever = cli_flag(c, "follow"), .take = take, .data = &v};
    int r;

    if (make_query(c, &query, &new_query, err) < 0)
        return -1;
    s.query = mt_buf_str(&query);
    s.new_query = mt_buf_str(&new_query);
    r = event_stream_run(&s, err);
    if (end_line(&v, r < 0 ? NULL : err) < 0)
        r = -1;
    for (size_t i = 0; i < v.count; i++)
        free(v.shown[i].what);
    free(v.shown);
    // Ctrl-C is how one stops following: nothing went wrong.
    if (r < 0 && cli_interrupted && cli_flag(c, "follow")) {
        *err = mt_err_free(*err);
        return 128 + cli_interrupted;
    }
    return r;
}

static const cli_option events_options[] = {
    {"follow", 'f', NULL, "go on with what happens from now on, until Ctrl-C"},
    {"after", 0, "N", "begin with the events after number N"},
    {"last", 0, "N", "begin so many events back (without -f 100 unless said)"},
    {"kind", 0, "KIND", "of these kinds only, between commas: capsuleRun,command"},
    {"run", 0, "RUN", "of this run only, of a capsule, an app or an interaction, and its commands",
     "@run"},
    {"output", 0, NULL, "what it prints, too (with --run)"},
    {NULL},
};

const cli_command cli_events_commands[] = {
    {"events", "", 0, 0, "what happens: runs, commands, deploys, file systems, secrets",
     "A line each, of all that you may see, or with -n of that namespace. Kinds: capsuleRun "
     "command appRun\ninteractionRun capsule app agent interaction json prompt namespace vfs "
     "secret "
     "user key provider.\n"
     "With -f a cut and a restart of the server are waited out: no event is lost or comes twice, "
     "and a\nnote on stderr says so. Events are kept for 7 days.\n"
     "--json: a line of JSON for each, as the server sends it, with what it is in \"event\".",
     "  mt events -f\n  mt events --run @last --output\n"
     "  mt events -f --kind command --json | jq -r 'select(.change == \"ended\") | .exitCode'",
     events_options, run_events},
    {NULL},
};
