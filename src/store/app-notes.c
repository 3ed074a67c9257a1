// SPDX-License-Identifier: Apache-2.0
// What programs tell: lines of console and log, of which the newest are kept, and outputs, each
// with the value that it was given last.
#include "store/store-internal.h"
#include "json/json.h"

#include <stdio.h>

// ---- noting ----

// Notes on their way to the writer; all that they point at lies in the same block.
struct note {
    char run_id[MT_ID_TEXT];
    size_t line_count, output_count;
    mt_app_line *lines;
    mt_app_output *outputs;
};

// What is missing may still come, and would then be passed over.
static int gap(const char *run_id, const char *what, int64_t number, int64_t stored, mt_err **err)
{
    return mt_fail(err, MT_E_INTERNAL,
                   "%s %lld of app run '%s' cannot be stored: what follows its %s %lld is missing",
                   what, (long long)number, run_id, what, (long long)stored);
}

static int add_line(tx *t, const struct note *n, const mt_app_line *l, app_state *state,
                    mt_err **err)
{
    const char level[] = {l->level, '\0'};

    if (l->number <= state->lines)
        return 0;
    if (l->number != state->lines + 1)
        return gap(n->run_id, "line", l->number, state->lines, err);
    if (db_run(t->db, APP_LINE_ADD, err, T(n->run_id), I(l->number), I(l->time_us), T(level),
               B(l->text.data, l->text.len)) < 0)
        return -1;
    state->lines++;
    state->lines_kept++;
    state->lines_bytes += (int64_t)l->text.len;
    state->console += l->level == 'o';
    state->console_kept += l->level == 'o';
    return 0;
}

// The number of the last line that goes, 0 when none does; the counts are without it already.
static int find_oldest(tx *t, const char *run_id, app_state *state, int64_t *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r = 1;

    *ret = 0;
    if (db_start(t->db, APP_LINE_OLDEST, &st, err, T(run_id)) < 0)
        return -1;
    while ((state->lines_kept > MT_STORE_APP_LINES || state->lines_bytes > MT_STORE_APP_CONSOLE) &&
           (r = db_step(t->db, st, err)) > 0) {
        *ret = db_int(st, 0);
        state->lines_kept--;
        state->lines_bytes -= db_int(st, 2);
        state->console_kept -= mt_streq(db_text(st, 1), "o");
    }
    return r < 0 ? r : 0;
}

static int drop_oldest(tx *t, const char *run_id, app_state *state, mt_err **err)
{
    int64_t last;

    if (find_oldest(t, run_id, state, &last, err) < 0)
        return -1;
    return last > 0 && db_run(t->db, APP_LINE_DROP, err, T(run_id), I(last)) < 0 ? -1 : 0;
}

// 1: there is one of that name, with a value of so many bytes; 0: there is not.
static int find_output(tx *t, const char *run_id, mt_str name, int64_t *ret_bytes, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start(t->db, APP_OUTPUT_SIZE, &st, err, T(run_id), B(name.data, name.len)) < 0)
        return -1;
    r = db_step(t->db, st, err);
    if (r > 0)
        *ret_bytes = db_int(st, 0);
    return r;
}

static int check_output_count(tx *t, const char *run_id, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (db_start(t->db, APP_OUTPUT_COUNT, &st, err, T(run_id)) < 0 || db_step(t->db, st, err) < 0)
        return -1;
    if (db_int(st, 0) < MT_STORE_APP_OUTPUTS)
        return 0;
    return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                   "app run '%s' has %d outputs, the most that one may have", run_id,
                   MT_STORE_APP_OUTPUTS);
}

static int store_output(tx *t, const char *run_id, const mt_app_output *o, app_state *state,
                        mt_err **err)
{
    int64_t before = 0;
    int found = find_output(t, run_id, o->name, &before, err), r;

    if (found < 0)
        return -1;
    if (found > 0) {
        r = db_run(t->db, APP_OUTPUT_SET, err, T(run_id), B(o->name.data, o->name.len),
                   B(o->value.data, o->value.len));
    } else {
        if (check_output_count(t, run_id, err) < 0)
            return -1;
        r = db_run(t->db, APP_OUTPUT_ADD, err, T(run_id), B(o->name.data, o->name.len),
                   I(o->number), B(o->value.data, o->value.len));
        state->output_bytes += (int64_t)o->name.len;
    }
    state->output_bytes += (int64_t)o->value.len - before;
    return r < 0 ? -1 : 0;
}

static int add_output(tx *t, const struct note *n, const mt_app_output *o, app_state *state,
                      mt_err **err)
{
    if (o->number <= state->outputs)
        return 0;
    if (o->number != state->outputs + 1)
        return gap(n->run_id, "output", o->number, state->outputs, err);
    if (store_output(t, n->run_id, o, state, err) < 0)
        return -1;
    state->outputs++;
    if (state->output_bytes <= MT_STORE_APP_VALUES)
        return 0;
    return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                   "the outputs of app run '%s' take more than %d MiB, the most that they may take",
                   n->run_id, MT_STORE_APP_VALUES >> 20);
}

static int add_all(tx *t, const struct note *n, app_state *state, mt_err **err)
{
    for (size_t i = 0; i < n->line_count; i++) {
        if (add_line(t, n, &n->lines[i], state, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < n->output_count; i++) {
        if (add_output(t, n, &n->outputs[i], state, err) < 0)
            return -1;
    }
    return drop_oldest(t, n->run_id, state, err);
}

static int note_op(tx *t, void *arg, mt_err **err)
{
    const struct note *n = arg;
    app_state state = {0}, before;

    t->keeps_identities = true;
    if (app_state_load(t->db, n->run_id, &state, err) < 0)
        return -1;
    if (state.ended)
        return 1;
    before = state;
    if (add_all(t, n, &state, err) < 0)
        return -1;
    if (state.lines == before.lines && state.outputs == before.outputs)
        return 1;
    if (db_run(t->db, APP_NOTED, err, T(n->run_id), I(state.lines), I(state.lines_kept),
               I(state.lines_bytes), I(state.console), I(state.console_kept), I(state.outputs),
               I(state.output_bytes)) < 0)
        return -1;
    return event_tell(t, "appRun", n->run_id, state.namespace_id, "printed", err);
}

// ---- copies ----

// Of a line that alone is over what is kept of a run, its last whole characters.
static mt_str kept_of(mt_str text)
{
    if (text.len <= MT_STORE_APP_CONSOLE)
        return text;
    text.data += text.len - MT_STORE_APP_CONSOLE;
    text.len = MT_STORE_APP_CONSOLE;
    while (text.len > 0 && ((unsigned char)*text.data & 0xc0) == 0x80) {
        text.data++;
        text.len--;
    }
    return text;
}

static mt_str copy_bytes(char **at, mt_str from)
{
    mt_str to = {*at, from.len};

    if (from.len)
        memcpy(*at, from.data, from.len);
    *at += from.len;
    return to;
}

static struct note *note_new(const char *run_id, const mt_app_line *lines, size_t line_count,
                             const mt_app_output *outputs, size_t output_count)
{
    size_t bytes = 1; // so that an empty text at the end points into the block, too
    struct note *n;
    char *at;

    for (size_t i = 0; i < line_count; i++)
        bytes += kept_of(lines[i].text).len;
    for (size_t i = 0; i < output_count; i++)
        bytes += outputs[i].name.len + outputs[i].value.len;
    n = malloc(sizeof(*n) + line_count * sizeof(*lines) + output_count * sizeof(*outputs) + bytes);
    if (!n)
        return NULL;
    *n = (struct note){.line_count = line_count, .output_count = output_count};
    (void)snprintf(n->run_id, sizeof(n->run_id), "%s", run_id);
    n->lines = (mt_app_line *)(n + 1);
    n->outputs = (mt_app_output *)(n->lines + line_count);
    at = (char *)(n->outputs + output_count);
    for (size_t i = 0; i < line_count; i++) {
        n->lines[i] = lines[i];
        n->lines[i].text = copy_bytes(&at, kept_of(lines[i].text));
    }
    for (size_t i = 0; i < output_count; i++) {
        n->outputs[i].number = outputs[i].number;
        n->outputs[i].name = copy_bytes(&at, outputs[i].name);
        n->outputs[i].value = copy_bytes(&at, outputs[i].value);
    }
    return n;
}

int mt_store_app_note(mt_store *s, const char *run_id, const mt_app_line *lines, size_t line_count,
                      const mt_app_output *outputs, size_t output_count, mt_store_done_fn *done,
                      void *data, mt_err **err)
{
    struct note *n = note_new(run_id, lines, line_count, outputs, output_count);

    if (!n)
        return mt_fail_oom(err);
    if (store_write_async(s, note_op, n, false, done, data, err) < 0) {
        free(n);
        return -1;
    }
    return 0;
}

// ---- reading ----

void mt_app_line_list_done(mt_app_line_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].text);
    free(l->items);
    *l = (mt_app_line_list){0};
}

int mt_store_app_line_list(mt_store *s, const char *run_id, const char *levels, int64_t after,
                           size_t limit, mt_app_line_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_app_line_list_done) mt_app_line_list l = {0};
    int more;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, APP_LINE_LIST, &st, err, T(run_id), I(after), T(levels),
                 I((int64_t)MT_MIN(limit, (size_t)MT_STORE_APP_LINES))) < 0)
        return -1;
    while ((more = db_step(r->db, st, err)) > 0) {
        mt_app_line_record *line = list_add(&l);

        if (!line)
            return mt_fail_oom(err);
        line->number = db_int(st, 0);
        line->time_us = db_int(st, 1);
        line->level = db_text(st, 2)[0];
        line->text = db_dup_blob(st, 3, &line->len);
        if (!line->text)
            return mt_fail_oom(err);
    }
    if (more < 0)
        return more;
    *ret = l;
    l = (mt_app_line_list){0};
    return 0;
}

int app_outputs_add(db *d, const char *run_id, mt_buf *b, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    const char *between = "";
    int more;

    if (db_start(d, APP_OUTPUT_LIST, &st, err, T(run_id)) < 0)
        return -1;
    (void)mt_buf_addc(b, '{');
    while ((more = db_step(d, st, err)) > 0) {
        size_t name_len, value_len;
        const char *name = db_blob(st, 0, &name_len), *value = db_blob(st, 1, &value_len);

        (void)mt_buf_adds(b, between);
        (void)mt_json_write_string((mt_str){name, name_len}, b);
        (void)mt_buf_addc(b, ':');
        (void)mt_buf_add(b, value, value_len);
        between = ",";
    }
    (void)mt_buf_addc(b, '}');
    return more < 0 ? more : 0;
}
