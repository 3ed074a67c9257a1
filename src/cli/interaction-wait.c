// SPDX-License-Identifier: Apache-2.0
#include "cli/interaction-wait.h"

#include "cli/copy.h"
#include "cli/run-wait.h"

#include "base/clock.h"

// --- waiting ---

// How often it is asked at most, by its definition; 0 where that is not told.
static int64_t attempts_of(cli *c, const mt_json *run)
{
    _cleanup_free_ char *path = api_path("/v1/namespaces/%s/interactions/%s",
                                         cli_text(run, "namespace"), cli_text(run, "interaction"));
    _cleanup_free_ char *url = xprintf("%s?version=%lld", path, (long long)cli_int(run, "version"));
    _cleanup_json_ mt_json *v = NULL;

    return api_get(c, url, &v, NULL) == 0 ? cli_int(mt_json_get(v, "definition"), "attempts") : 0;
}

// data: how often it is asked at most, -1 as long as that was not looked up.
static char *says(cli *c, const mt_json *run, void *data)
{
    int64_t *most = data, attempt = MT_MAX(cli_int(run, "attemptCount"), (int64_t)1);

    if (*most < 0)
        *most = attempts_of(c, run);
    if (*most < attempt)
        return xprintf("asking %s, attempt %lld", cli_text(run, "model"), (long long)attempt);
    return xprintf("asking %s, attempt %lld of %lld", cli_text(run, "model"), (long long)attempt,
                   (long long)*most);
}

static int print_output(const mt_json *run, mt_err **err)
{
    mt_str output = mt_json_str(mt_json_get(run, "output"));

    if (cli_write_out(output.data, output.len, err) < 0)
        return -1;
    (void)fputc('\n', stdout);
    return 0;
}

static int report(cli *c, mt_json **run, mt_err **err)
{
    bool finished = mt_streq(cli_text(*run, "status"), "Finished");

    if (interaction_show_attempts(c, run, stderr, err) < 0 ||
        (c->json && cli_print_json(*run, err) < 0))
        return -1;
    if (!finished)
        run_print_details(c, *run);
    else if (!c->json && print_output(*run, err) < 0)
        return -1;
    return finished ? 0 : 1;
}

int interaction_wait(cli *c, const char *id, int64_t timeout_ms, mt_err **err)
{
    int64_t most = -1;
    const run_wait w = {.kind = &cli_interaction_runs,
                        .id = id,
                        .timeout_ms = timeout_ms,
                        .from_start = true,
                        .says = says,
                        .data = &most};
    _cleanup_json_ mt_json *run = NULL;
    int r = run_wait_for(c, &w, &run, err);

    if (r == 0)
        return report(c, &run, err);
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
