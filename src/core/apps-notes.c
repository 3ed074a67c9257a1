// SPDX-License-Identifier: Apache-2.0
// What programs print and set. Each is numbered by the program's own order, and the store takes a
// number once; so it needs no journal: a run that is done again notes the same under the same
// numbers.
#include "core/apps-internal.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

enum {
    NOTES_BYTES = 256 << 10, // that are handed over at the latest
    NOTES_MAX = 1000,
    SETTLE_AFTER = 8, // times that they are handed over: then the store is waited for
};

static void *room(void **items, size_t count, size_t *cap, size_t size)
{
    size_t wanted = *cap ? 2 * *cap : 16;
    void *bigger;

    if (count < *cap)
        return *items;
    bigger = reallocarray(*items, wanted, size);
    if (!bigger)
        return NULL;
    *items = bigger;
    *cap = wanted;
    return bigger;
}

static void clear(app_notes *n)
{
    for (size_t i = 0; i < n->line_count; i++)
        free((char *)n->lines[i].text.data);
    for (size_t i = 0; i < n->output_count; i++) {
        free((char *)n->outputs[i].name.data);
        free((char *)n->outputs[i].value.data);
    }
    n->line_count = n->output_count = n->bytes = 0;
}

void app_notes_done(app_notes *n)
{
    clear(n);
    free(n->lines);
    free(n->outputs);
    *n = (app_notes){0};
}

static int copy(mt_str from, const char *end, mt_str *ret)
{
    size_t more = strlen(end);
    char *data = malloc(from.len + more + 1);

    if (!data)
        return -ENOMEM;
    if (from.len)
        memcpy(data, from.data, from.len);
    memcpy(data + from.len, end, more + 1);
    *ret = (mt_str){data, from.len + more};
    return 0;
}

static int add_line(app_notes *n, char level, mt_str text, const char *end)
{
    mt_app_line line = {.level = level, .time_us = mt_now_us()};

    if (!room((void **)&n->lines, n->line_count, &n->line_cap, sizeof(line)) ||
        copy(text, end, &line.text) < 0)
        return -ENOMEM;
    line.number = ++n->printed;
    n->lines[n->line_count++] = line;
    n->bytes += line.text.len;
    return 0;
}

static int add_output(app_notes *n, mt_str name, const mt_json *value)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(APP_JSON_MAX);
    mt_app_output output = {0};

    if (mt_json_write(value, &text, 0) < 0 ||
        !room((void **)&n->outputs, n->output_count, &n->output_cap, sizeof(output)) ||
        copy(name, "", &output.name) < 0)
        return -ENOMEM;
    output.value.len = text.len;
    output.value.data = mt_buf_take(&text);
    if (!output.value.data) {
        free((char *)output.name.data);
        return -ENOMEM;
    }
    output.number = ++n->set;
    n->outputs[n->output_count++] = output;
    n->bytes += output.value.len;
    return 0;
}

static const struct {
    const char *name;
    char level; // 0: an output
    const char *end;
} NOTING[] = {
    {"Print", 'o', ""},      {"PrintLine", 'o', "\n"}, {"LogInfo", 'i', ""},
    {"LogWarning", 'w', ""}, {"LogError", 'e', ""},
};

int app_note(app_live *l, const mt_mtc_builtin *b, const mt_json *arguments, mt_err **err)
{
    mt_str first = mt_json_str(mt_json_at(arguments, 0));
    int r = 0;

    if (mt_starts_with(b->name, "AppStateSetOutput")) {
        r = add_output(&l->notes, first, mt_json_at(arguments, 1));
    } else {
        size_t i = 0;

        while (i < MT_ARRAY_SIZE(NOTING) && strcmp(NOTING[i].name, b->name) != 0)
            i++;
        if (i == MT_ARRAY_SIZE(NOTING))
            return 0;
        r = add_line(&l->notes, NOTING[i].level, first, NOTING[i].end);
    }
    if (r < 0)
        return mt_fail_oom(err);
    if (l->notes.bytes >= NOTES_BYTES || l->notes.line_count + l->notes.output_count >= NOTES_MAX)
        r = app_notes_flush(l, err);
    return r < 0 ? -1 : 1;
}

// ---- the store ----

// On whatever thread wrote.
static void on_noted(int result, const mt_err *err, void *data)
{
    app_notes_refused *refused = data;

    if (result >= 0 || mt_err_code(err) == MT_E_RUN_ENDED)
        return;
    (void)pthread_mutex_lock(&refused->lock);
    if (refused->code == MT_E_NONE) { // later ones are refused for want of the first
        refused->code = mt_err_code(err);
        (void)snprintf(refused->sentence, sizeof(refused->sentence), "%s", mt_err_sentence(err));
    }
    (void)pthread_mutex_unlock(&refused->lock);
}

int app_notes_check(app_live *l, mt_err **err)
{
    char sentence[sizeof(l->refused.sentence)];
    mt_code code;

    (void)pthread_mutex_lock(&l->refused.lock);
    code = l->refused.code;
    l->refused.code = MT_E_NONE;
    memcpy(sentence, l->refused.sentence, sizeof(sentence));
    (void)pthread_mutex_unlock(&l->refused.lock);
    return code == MT_E_NONE ? 0 : mt_fail(err, code, "%s", sentence);
}

int app_notes_settle(app_live *l, mt_err **err)
{
    if (l->notes.since_settled && mt_store_settle(l->apps->options.store, err) < 0)
        return -1;
    l->notes.since_settled = 0;
    return app_notes_check(l, err);
}

int app_notes_flush(app_live *l, mt_err **err)
{
    app_notes *n = &l->notes;

    if (!n->line_count && !n->output_count)
        return 0;
    if (mt_store_app_note(l->apps->options.store, l->id, n->lines, n->line_count, n->outputs,
                          n->output_count, on_noted, &l->refused, err) < 0)
        return -1;
    clear(n);
    // A program that prints for ever goes as fast as the store, and no faster.
    return ++n->since_settled < SETTLE_AFTER ? 0 : app_notes_settle(l, err);
}
