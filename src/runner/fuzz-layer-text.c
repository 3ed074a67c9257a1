// SPDX-License-Identifier: Apache-2.0
// What apt, dpkg and packages' scripts say, as builds of layers quote it: from the last bytes of
// the error output to the sentence that users read; and what apt's options and sources name.
#include "base/utf8.h"
#include "capsule/layers.h"
#include "capsule/output.h"
#include "runner/layer-relay.h"
#include "runner/layer-text.h"

#include <stdio.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void launch_close_but(int *keep, size_t count)
{
    (void)keep; // of the relay, which is not started here
    (void)count;
}

static void require(bool ok)
{
    if (!ok)
        abort();
}

// As the record of the builder's run has it, and as the janitor reads that.
static void record(const uint8_t *data, size_t size, char details[MT_LAYER_WHY_MAX])
{
    _cleanup_buf_ mt_buf said = MT_BUF_INIT(1 << 20);
    mt_tail tail;

    mt_tail_init(&tail, MT_OUTPUT_FAILURE_CHARS);
    mt_tail_add(&tail, data, size / 2); // in two pieces, cut anywhere
    mt_tail_add(&tail, data + size / 2, size - size / 2);
    require(mt_tail_get(&tail, &said) == 0);
    require(mt_utf8_valid(mt_buf_str(&said), said.len));
    require(mt_utf8_count(mt_buf_str(&said), said.len) <= MT_OUTPUT_FAILURE_CHARS);
    mt_tail_done(&tail);
    (void)snprintf(details, MT_LAYER_WHY_MAX,
                   "Startup command failed: install-packages packages hello - exit code 1: %s",
                   mt_buf_str(&said));
}

static void check_sentence(const char *why, uint32_t count, const char *begin)
{
    static const char *const names[] = {"hello", "libc6=2.36-9+deb12u10"};
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_LAYER_WHY_MAX);

    layer_text_sentence(&text, names, count, why);
    require(!text.failed && text.len < MT_LAYER_WHY_MAX);
    require(mt_utf8_valid(mt_buf_str(&text), text.len));
    require(mt_starts_with(mt_buf_str(&text), begin));
}

static void check_reason(const char *details)
{
    const char *why = layer_text_reason(details);

    require(why >= details && why <= details + strlen(details));
    check_sentence(why, 2, "the packages hello, libc6=2.36-9+deb12u10 could not be installed: ");
    check_sentence(why, 0, "the package lists could not be read: ");
}

static void check_options(mt_str text)
{
    _cleanup_buf_ mt_buf out = MT_BUF_INIT(text.len + 1);

    layer_text_options(text, &out);
    require(!out.failed);
    for (char *line = out.data, *end; line && line < out.data + out.len; line = end + 1) {
        end = memchr(line, '\n', (size_t)(out.data + out.len - line));
        require(end && strncasecmp(line, "Acquire::", 9) == 0);
        *end = '\0';
        require(!strcasestr(line, "Detect") && !strcasestr(line, "CaInfo"));
    }
}

static void check_targets(const char *text)
{
    relay_targets list = {.count = 0};

    relay_find(&list, text, 0);
    relay_find(&list, text, 8080);
    require(list.count <= RELAY_TARGETS_MAX);
    for (size_t i = 0; i < list.count; i++) {
        const relay_target *t = &list.targets[i];

        require(t->port > 0 && t->host[0] && memchr(t->host, 0, sizeof(t->host)));
        require(!strpbrk(t->host, " \t\n\"'/@$"));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char details[MT_LAYER_WHY_MAX];
    _cleanup_free_ char *text = NULL;

    if (size > 1 << 18)
        return 0;
    record(data, size, details);
    check_reason(details);
    text = malloc(size + 1);
    require(text);
    memcpy(text, data, size);
    text[size] = '\0';
    check_reason(text);
    check_options((mt_str){text, size});
    check_targets(text);
    return 0;
}
