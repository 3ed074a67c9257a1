// SPDX-License-Identifier: Apache-2.0
#include "cli/interaction-wait.h"

#include "cli/copy.h"
#include "cli/run-wait.h"

#include "base/clock.h"

// --- waiting ---

mt_json *interaction_definition(cli *c, const mt_json *run)
{
    _cleanup_free_ char *path = api_path("/v1/namespaces/%s/interactions/%s",
                                         cli_text(run, "namespace"), cli_text(run, "interaction"));
    _cleanup_free_ char *url = xprintf("%s?version=%lld", path, (long long)cli_int(run, "version"));
    _cleanup_json_ mt_json *v = NULL;

    return api_get(c, url, &v, NULL) == 0 ? mt_json_ref(mt_json_get(v, "definition")) : NULL;
}

// What is told of a run on a terminal.
typedef struct progress {
    int64_t most; // how often it is asked at most, 0: not told, -1: not looked up
    interaction_text at;
    int64_t attempt, characters; // said in it so far
} progress;

static int64_t characters_of(mt_str text)
{
    int64_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return n;
}

// What came since it was looked last; where that cannot be had the line goes without it.
static void look(cli *c, const char *id, progress *p)
{
    _cleanup_json_ mt_json *part = NULL;
    bool anew;

    if (interaction_text_next(c, id, &p->at, 0, &part, &anew, NULL) < 0)
        return;
    if (anew)
        p->characters = 0;
    p->characters += characters_of(mt_json_str(mt_json_get(part, "text")));
}

static char *says(cli *c, const mt_json *run, void *data)
{
    progress *p = data;
    int64_t attempt = MT_MAX(cli_int(run, "attemptCount"), (int64_t)1);
    _cleanup_free_ char *of = NULL, *said = NULL;

    if (p->most < 0) {
        _cleanup_json_ mt_json *definition = interaction_definition(c, run);

        p->most = cli_int(definition, "attempts");
    }
    look(c, cli_text(run, "id"), p);
    of = p->most < attempt ? xstrdup("") : xprintf(" of %lld", (long long)p->most);
    said = p->characters ? xprintf(", %lld characters", (long long)p->characters) : xstrdup("");
    return xprintf("asking %s, attempt %lld%s%s", cli_text(run, "model"), (long long)attempt, of,
                   said);
}

static int print_output(const mt_json *run, mt_err **err)
{
    mt_str output = mt_json_str(mt_json_get(run, "output"));

    if (cli_write_out(output.data, output.len, err) < 0)
        return -1;
    (void)fputc('\n', stdout);
    return 0;
}

// A reader of stdout that is no person cannot tell the broken text from the answer.
static int report_spoilt(const cli *c, const mt_json *run)
{
    if (c->out_terminal)
        return 0;
    cli_warn(c,
             "before the answer its broken beginning is on standard output; mt interaction-await "
             "%s prints the answer alone",
             cli_text(run, "id"));
    return 1;
}

static int report(cli *c, const interaction_shown *shown, mt_json **run, mt_err **err)
{
    bool finished = mt_streq(cli_text(*run, "status"), "Finished");

    if (interaction_show_attempts(c, run, stderr, err) < 0 ||
        (c->json && cli_print_json(*run, err) < 0))
        return -1;
    if (!finished) {
        run_print_details(c, *run);
        return 1;
    }
    if (shown->answer)
        return shown->spoilt ? report_spoilt(c, *run) : 0;
    return c->json || print_output(*run, err) == 0 ? 0 : -1;
}

// 0 with the run as it ended, 1 when the time is over (*ret is the run), -1.
static int wait_streaming(cli *c, const run_wait *w, interaction_shown *shown, mt_json **ret,
                          mt_err **err)
{
    int64_t end =
        w->timeout_ms ? mt_boottime_ns() + w->timeout_ms * 1000000 : INT64_MAX - 1000000000;

    if (interaction_stream(c, w->id, end, shown, ret, err) < 0)
        return -1;
    return run_has_ended(*ret) ? 0 : 1;
}

int interaction_wait(cli *c, const char *id, int64_t timeout_ms, mt_err **err)
{
    progress p = {.most = -1};
    interaction_shown shown = {0};
    const run_wait w = {.kind = &cli_interaction_runs,
                        .id = id,
                        .timeout_ms = timeout_ms,
                        .from_start = true,
                        .says = says,
                        .data = &p};
    _cleanup_json_ mt_json *run = NULL;
    int r = cli_flag(c, "stream") ? wait_streaming(c, &w, &shown, &run, err)
                                  : run_wait_for(c, &w, &run, err);

    if (r == 0)
        return report(c, &shown, &run, err);
    if (r > 0) {
        if (c->json && cli_print_json(run, err) < 0)
            return -1;
        return run_still_there(c, &w, run);
    }
    if (cli_interrupted || api_error_passes(*err))
        cli_note(c,
                 "interaction run %s goes on; mt interaction-await %s waits for it, mt "
                 "interaction-cancel %s stops it",
                 id, id, id);
    return -1;
}
