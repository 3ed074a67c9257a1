// SPDX-License-Identifier: Apache-2.0
// What becomes of a build: its builder is gone, and its journal and the layer's folder tell.
#include "runner/layer-text.h"
#include "runner/runner.h"

#include <stdio.h>

typedef struct asked {
    mt_buf text;
    const char *packages[MT_PLAN_PACKAGES_MAX];
    uint32_t count;
} asked;

// The packages of the request: its third line and those behind.
static void read_packages(runner *r, const char *digest, asked *ret)
{
    char *save = NULL, *line;
    unsigned number = 0;

    *ret = (asked){.text = MT_BUF_INIT(MT_LAYER_REQUEST_MAX)};
    if (mt_layer_build_request(r->layers_fd, digest, &ret->text) < 0 || !ret->text.data)
        return;
    for (line = strtok_r(ret->text.data, "\n", &save); line && ret->count < MT_PLAN_PACKAGES_MAX;
         line = strtok_r(NULL, "\n", &save))
        if (++number > 2)
            ret->packages[ret->count++] = line;
}

static const char *reason_of(mt_end_reason reason, const char *why)
{
    switch (reason) {
    case MT_END_TIMEOUT:
        return "it took longer than 10 minutes";
    case MT_END_SUPERVISOR_LOST:
        return "the process that installs them died";
    case MT_END_NODE_LOST:
        return "the machine was restarted";
    default:
        return layer_text_reason(why);
    }
}

void janitor_conclude_layer(runner *r, const char *digest, bool built, mt_end_reason reason,
                            const char *why)
{
    _cleanup_buf_ mt_buf stopped = MT_BUF_INIT(MT_LAYER_WHY_MAX);
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_LAYER_WHY_MAX);
    _cleanup_err_ mt_err *err = NULL;
    asked q;

    read_packages(r, digest, &q);
    // Of one that was left nobody waits for a reason; whoever waits by now has asked for another
    // build, and layers_ended() finds its folder.
    if ((built && mt_layer_build_commit(r->layers_fd, digest, q.count == 0, &err) == 0) ||
        mt_layer_build_is_left(r->layers_fd, digest)) {
        mt_buf_done(&q.text);
        return;
    }
    if (mt_layer_build_stopped(r->layers_fd, digest, &stopped))
        layer_text_sentence(&text, q.packages, q.count, mt_buf_str(&stopped));
    else
        layer_text_sentence(&text, q.packages, q.count,
                            err ? mt_err_sentence(err) : reason_of(reason, why));
    mt_layer_build_fail(r->layers_fd, digest, (mt_str){mt_buf_str(&text), text.len});
    mt_log(MT_LOG_WARNING, "packages could not be installed", {"layer", digest},
           {"reason", mt_buf_str(&text)});
    mt_buf_done(&q.text);
}
