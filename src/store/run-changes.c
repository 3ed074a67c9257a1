// SPDX-License-Identifier: Apache-2.0
// What happens to a run: events of its journal, each applied once, in their order.
//
//   Starting --ready--> Running --ended--> Finished | Error
//       `------------ended-------------------^
#include "store/store-internal.h"

#include <stdio.h>

// A change on its way to the writer; its texts point into the same block.
struct apply {
    char run_id[MT_ID_TEXT];
    int64_t seq;
    mt_run_change change;
    mt_command_change command;
    char texts[];
};

struct run_state {
    bool starting;
    char namespace_id[MT_ID_TEXT];
    bool skip; // it has ended, or knows this event already
};

static int load_state(tx *t, const struct apply *a, struct run_state *ret, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    const char *status;
    int r;

    if (db_start(t->db, RUN_STATE, &st, err, T(a->run_id)) < 0)
        return -1;
    r = db_step(t->db, st, err);
    if (r <= 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no capsule run '%s'", a->run_id);
    status = db_text(st, 0);
    ret->starting = mt_streq(status, "Starting");
    ret->skip = (!ret->starting && !mt_streq(status, "Running")) ||
                (a->seq != 0 && a->seq <= db_int(st, 1));
    db_copy(st, 2, ret->namespace_id);
    return 0;
}

static int apply_ready(tx *t, const struct apply *a, const struct run_state *state, mt_err **err)
{
    if (!a->change.ready || !state->starting)
        return 0;
    if (db_run(t->db, RUN_READY, err, T(a->run_id),
               I(a->change.ready_us ? a->change.ready_us : t->now)) < 0)
        return -1;
    return event_add(t, "capsuleRun", a->run_id, state->namespace_id, "ready", err);
}

static int apply_parts(tx *t, const struct apply *a, mt_err **err)
{
    const mt_run_change *c = &a->change;

    if (!c->phases && !c->image_digest && c->deadline == 0 && c->max_duration_ms == 0)
        return 0;
    return db_run(t->db, RUN_PARTS, err, T(a->run_id), T(c->phases), T(c->image_digest),
                  I(c->deadline), I(c->max_duration_ms)) < 0
               ? -1
               : 0;
}

static int apply_end(tx *t, const struct apply *a, const struct run_state *state, mt_err **err)
{
    const mt_run_change *c = &a->change;

    if (!c->ended)
        return 0;
    if (db_run(t->db, RUN_END, err, T(a->run_id), T(c->status), T(c->end_reason),
               T(c->failure_details ? c->failure_details : ""),
               T(c->limits_reached ? c->limits_reached : "[]"),
               T(c->terminated_by ? c->terminated_by : ""), I(c->limit_ms), I(c->signal),
               I(c->memory_peak_bytes), I(c->cpu_us), I(c->ended_us ? c->ended_us : t->now)) < 0 ||
        db_run(t->db, RUN_VFS_CLEAR, err, T(a->run_id)) < 0 ||
        run_sign_in_end(t, a->run_id, err) < 0 ||
        db_run(t->db, RUN_SECRETS_CLEAR, err, T(a->run_id)) < 0 ||
        commands_abort(t, a->run_id, state->namespace_id, state->starting, c, err) < 0)
        return -1;
    return event_add(t, "capsuleRun", a->run_id, state->namespace_id, "ended", err);
}

static int apply_op(tx *t, void *arg, mt_err **err)
{
    struct apply *a = arg;
    struct run_state state = {0};

    t->keeps_identities = a->change.command && !a->change.ended;
    if (load_state(t, a, &state, err) < 0)
        return -1;
    if (state.skip)
        return 1;
    if (a->seq != 0 && db_run(t->db, RUN_SEQ, err, T(a->run_id), I(a->seq)) < 0)
        return -1;
    if (apply_ready(t, a, &state, err) < 0 || apply_parts(t, a, err) < 0)
        return -1;
    if (a->change.command &&
        command_apply(t, a->run_id, state.namespace_id, a->change.command, err) < 0)
        return -1;
    return apply_end(t, a, &state, err);
}

static int check_end(const char *status, const char *reason, const char *third, mt_err **err)
{
    if (!status || (!mt_streq(status, "Finished") && !mt_streq(status, "Error") &&
                    (!third || !mt_streq(status, third))))
        return mt_fail(err, MT_E_INTERNAL, "a run ends Finished or Error, not '%.40s'",
                       status ? status : "");
    if (!reason || !reason[0] || strlen(reason) >= MT_STORE_WORD)
        return mt_fail(err, MT_E_INTERNAL, "a run ends for a reason");
    return 0;
}

static int check_change(const mt_run_change *c, mt_err **err)
{
    if (c->ended && check_end(c->status, c->end_reason, NULL, err) < 0)
        return -1;
    if (c->command && c->command->ended)
        return check_end(c->command->status, c->command->end_reason, "Aborted", err);
    return 0;
}

// Every text of a change, so that the two passes over them cannot differ.
static void each_text(struct apply *a, void (*fn)(const char **text, void *data), void *data)
{
    mt_run_change *c = &a->change;
    mt_command_change *k = &a->command;
    const char **texts[] = {
        &c->phases,          &c->image_digest,   &c->status,         &c->end_reason,
        &c->failure_details, &c->limits_reached, &c->terminated_by,  &k->id,
        &k->status,          &k->end_reason,     &k->limits_reached, &k->failure_details};

    for (size_t i = 0; i < MT_ARRAY_SIZE(texts); i++)
        if (*texts[i])
            fn(texts[i], data);
}

static void add_size(const char **text, void *data)
{
    size_t *size = data;

    *size += strlen(*text) + 1;
}

static void *copy_bytes(char **at, const void *from, size_t len)
{
    char *to = *at;

    if (len)
        memcpy(to, from, len);
    *at += len;
    return to;
}

static void copy_text(const char **text, void *data)
{
    *text = copy_bytes(data, *text, strlen(*text) + 1);
}

static struct apply *copy_change(const char *run_id, int64_t seq, const mt_run_change *c)
{
    struct apply whole = {.seq = seq, .change = *c}, *a;
    size_t texts = 0;
    char *at;

    if (c->command)
        whole.command = *c->command;
    each_text(&whole, add_size, &texts);
    a = malloc(sizeof(*a) + texts + whole.command.standard.len + whole.command.error.len);
    if (!a)
        return NULL;
    *a = whole;
    (void)snprintf(a->run_id, sizeof(a->run_id), "%s", run_id);
    at = a->texts;
    each_text(a, copy_text, &at);
    a->command.standard.data =
        copy_bytes(&at, whole.command.standard.data, whole.command.standard.len);
    a->command.error.data = copy_bytes(&at, whole.command.error.data, whole.command.error.len);
    if (c->command)
        a->change.command = &a->command;
    return a;
}

int mt_store_run_apply(mt_store *s, const char *run_id, int64_t seq, const mt_run_change *change,
                       mt_store_done_fn *done, void *data, mt_err **err)
{
    struct apply *a;

    if (check_change(change, err) < 0)
        return -1;
    a = copy_change(run_id, seq, change);
    if (!a)
        return mt_fail_oom(err);
    if (store_write_async(s, apply_op, a, true, done, data, err) < 0) {
        free(a);
        return -1;
    }
    return 0;
}

int mt_store_run_apply_wait(mt_store *s, const char *run_id, int64_t seq,
                            const mt_run_change *change, mt_err **err)
{
    _cleanup_free_ struct apply *a = NULL;

    if (check_change(change, err) < 0)
        return -1;
    a = copy_change(run_id, seq, change);
    return a ? store_write_essential(s, apply_op, a, err) : mt_fail_oom(err);
}

// ---- asked to stop ----

struct stop {
    const char *run_id, *by;
};

static int stop_op(tx *t, void *arg, mt_err **err)
{
    struct stop *stop = arg;
    _cleanup_stmt_ db_stmt *st = NULL;
    char namespace_id[MT_ID_TEXT];
    int r;

    if (db_start(t->db, RUN_STATE, &st, err, T(stop->run_id)) < 0)
        return -1;
    r = db_step(t->db, st, err);
    if (r <= 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no capsule run '%.80s'", stop->run_id);
    db_copy(st, 2, namespace_id);
    r = db_run(t->db, RUN_STOP, err, T(stop->run_id), T(stop->by));
    if (r <= 0)
        return r < 0 ? r : 1;
    return event_add(t, "capsuleRun", stop->run_id, namespace_id, "updated", err);
}

int mt_store_run_request_stop(mt_store *s, const char *run_id, const char *by, mt_err **err)
{
    struct stop stop = {run_id, by};

    return store_write_essential(s, stop_op, &stop, err);
}

// ---- a longer life ----

struct extend {
    const char *run_id;
    int64_t ms;
};

static int extend_op(tx *t, void *arg, mt_err **err)
{
    struct extend *x = arg;
    _cleanup_stmt_ db_stmt *st = NULL;
    char namespace_id[MT_ID_TEXT];
    int r;

    if (db_start(t->db, RUN_STATE, &st, err, T(x->run_id)) < 0)
        return -1;
    r = db_step(t->db, st, err);
    if (r <= 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no capsule run '%.80s'", x->run_id);
    db_copy(st, 2, namespace_id);
    r = db_run(t->db, RUN_EXTEND, err, T(x->run_id), I(x->ms));
    if (r <= 0)
        return r < 0 ? r : 1;
    return event_add(t, "capsuleRun", x->run_id, namespace_id, "updated", err);
}

int mt_store_run_extend(mt_store *s, const char *run_id, int64_t max_duration_ms, mt_err **err)
{
    struct extend x = {run_id, max_duration_ms};

    return store_write(s, extend_op, &x, err);
}
