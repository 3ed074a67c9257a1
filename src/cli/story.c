// SPDX-License-Identifier: Apache-2.0
#include "cli/story.h"

// A part of a story with fewer entries than this is its end: the server cuts at some megabytes.
enum { PART_LEAST = 256 };

static int get_part(cli *c, const char *run_id, int64_t after, mt_json **ret, mt_err **err)
{
    _cleanup_free_ char *path = api_path("/v1/capsule-runs/%s", run_id);
    _cleanup_free_ char *url = xprintf("%s?story=true&storyAfter=%lld", path, (long long)after);

    return api_get_patiently(c, url, false, ret, err);
}

int story_get(cli *c, const char *run_id, int64_t after, mt_json **ret, mt_err **err)
{
    _cleanup_json_ mt_json *run = NULL, *all = NULL, *whole = NULL;
    const mt_json *part;
    size_t count;

    if (get_part(c, run_id, after, &run, err) < 0)
        return -1;
    part = mt_json_get(run, "story");
    for (count = mt_json_count(part); count >= PART_LEAST; count = mt_json_count(part)) {
        _cleanup_json_ mt_json *next = NULL;

        if (!all)
            all = mt_json_copy(part);
        after = cli_int(mt_json_at(part, count - 1), "number");
        if (get_part(c, run_id, after, &next, err) < 0)
            return -1;
        part = mt_json_get(next, "story");
        for (size_t i = 0; i < mt_json_count(part); i++)
            (void)mt_json_append(all, mt_json_ref(mt_json_at(part, i)));
        (void)mt_json_unref(run);
        run = MT_TAKE_PTR(next);
    }
    if (!all) {
        *ret = MT_TAKE_PTR(run);
        return 0;
    }
    whole = mt_json_copy(run);
    (void)mt_json_set(whole, "story", MT_TAKE_PTR(all));
    *ret = MT_TAKE_PTR(whole);
    return mt_json_ok(*ret) ? 0 : mt_fail_oom(err);
}

char *story_begin(const mt_json *run)
{
    return xprintf("started by %s: capsule %s, version %lld, image %s, for at most %s",
                   cli_text(run, "startedBy"), cli_text(run, "capsule"),
                   (long long)cli_int(run, "version"), cli_text(run, "image"),
                   cli_text(run, "maxDuration"));
}

char *story_end(const mt_json *run)
{
    const char *details = cli_text(run, "failureDetails"), *reason = cli_text(run, "endReason");

    return xprintf("ended: %s%s%s%s%s", cli_text(run, "status"), reason[0] ? ", " : "", reason,
                   details[0] ? ": " : "", details);
}
