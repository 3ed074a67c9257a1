// SPDX-License-Identifier: Apache-2.0
// Commands of runs.
//
//   Queued --started--> Running --ended--> Finished | Error | Aborted
//      `-----------------ended----------------^
//   (the run's end ends what is left: Aborted)
#include "store/store-internal.h"

#include <stdio.h>

void mt_command_record_done(mt_command_record *c)
{
    free(c->working_directory);
    free(c->limits_reached);
    free(c->failure_details);
    free(c->command);
    free(c->arguments);
    free(c->environment);
    free(c->standard.data);
    free(c->error.data);
    free(c->input.data);
    *c = (mt_command_record){0};
}

void mt_command_list_done(mt_command_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        mt_command_record_done(&l->items[i]);
    free(l->items);
    *l = (mt_command_list){0};
}

// ---- rows ----

// False when out of memory.
static bool take_text(db_stmt *st, int column, mt_text *ret)
{
    ret->data = db_dup_blob(st, column, &ret->len);
    return ret->data != NULL;
}

// Columns in the order of COMMAND_HEAD.
static int command_row(db_stmt *st, mt_command_record *c, mt_err **err)
{
    *c = (mt_command_record){0};
    c->number = db_int(st, 0);
    db_copy(st, 1, c->id);
    db_copy(st, 2, c->run_id);
    db_copy(st, 3, c->status);
    db_copy(st, 4, c->run_as_user);
    c->async = db_int(st, 5) != 0;
    c->max_duration_ms = db_int(st, 6);
    c->working_directory = db_dup(st, 7);
    db_copy(st, 8, c->end_reason);
    c->has_exit_code = !db_is_null(st, 9);
    c->exit_code = (int)db_int(st, 9);
    c->limit_ms = db_int(st, 10);
    c->signal = (int)db_int(st, 11);
    c->limits_reached = db_dup(st, 12);
    db_copy(st, 13, c->cancel_requested_by);
    c->standard_length = db_int(st, 14);
    c->error_length = db_int(st, 15);
    c->date_created = db_int(st, 16);
    c->date_started = db_int(st, 17);
    c->date_ended = db_int(st, 18);
    c->failure_details = db_dup(st, 19);
    c->command = db_dup(st, 20);
    c->arguments = db_dup(st, 21);
    c->environment = db_dup(st, 22);
    if (c->working_directory && c->limits_reached && c->failure_details && c->command &&
        c->arguments && c->environment && take_text(st, 23, &c->standard) &&
        take_text(st, 24, &c->error) && take_text(st, 25, &c->input))
        return 0;
    mt_command_record_done(c);
    return mt_fail_oom(err);
}

// 0 found, 1 none, < 0.
static int command_load(db *d, const char *run_id, const char *id, mt_command_record *ret,
                        mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    int r;

    if (db_start(d, COMMAND_BY_ID, &st, err, T(id), T(run_id)) < 0)
        return -1;
    r = db_step(d, st, err);
    if (r <= 0)
        return r < 0 ? r : 1;
    return command_row(st, ret, err);
}

static int no_command(const char *run_id, const char *id, mt_err **err)
{
    if (!run_id)
        return mt_fail(err, MT_E_NOT_FOUND, "no command '%.80s'", id);
    return mt_fail(err, MT_E_NOT_FOUND, "no command '%.80s' in capsule run '%.80s'", id, run_id);
}

int mt_store_command_get(mt_store *s, const char *run_id, const char *id, mt_command_record *ret,
                         mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0)
        return -1;
    rc = command_load(r->db, run_id, id, ret, err);
    return rc > 0 ? no_command(run_id, id, err) : rc;
}

int mt_store_command_is_open(mt_store *s, const char *run_id, const char *id, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    int rc;

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, COMMAND_STATE, &st, err, T(id), T(run_id)) < 0)
        return -1;
    rc = db_step(r->db, st, err);
    if (rc <= 0)
        return rc < 0 ? rc : no_command(run_id, id, err);
    return db_int(st, 1) == 0;
}

static int collect(db *d, db_stmt *st, size_t limit, mt_command_list *l, mt_err **err)
{
    int64_t number = 0;
    int more;

    while ((more = db_step(d, st, err)) > 0 && l->count < limit) {
        mt_command_record *c = list_add(l);

        if (!c)
            return mt_fail_oom(err);
        if (command_row(st, c, err) < 0)
            return -1;
        number = c->number;
    }
    if (more > 0)
        (void)snprintf(l->next, sizeof(l->next), "%lld", (long long)number);
    return more < 0 ? more : 0;
}

int mt_store_command_list(mt_store *s, const char *run_id, const char *status,
                          const char *id_ending, mt_page page, mt_command_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_command_list_done) mt_command_list l = {0};
    size_t limit = page_limit(page);
    uint64_t after = 0;

    if (page_number(page, &after, err) < 0 || reader_get(s, &r, err) < 0 ||
        db_start(r->db, COMMAND_LIST, &st, err, T(run_id), I((int64_t)after), T(status),
                 T(id_ending), I((int64_t)limit + 1)) < 0 ||
        collect(r->db, st, limit, &l, err) < 0)
        return -1;
    *ret = l;
    l = (mt_command_list){0};
    return 0;
}

int mt_store_command_waiting(mt_store *s, const char *run_id, int64_t after, size_t limit,
                             mt_command_list *ret, mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    _cleanup_stmt_ db_stmt *st = NULL;
    _cleanup_(mt_command_list_done) mt_command_list l = {0};

    if (reader_get(s, &r, err) < 0 ||
        db_start(r->db, COMMAND_WAITING, &st, err, T(run_id), I(after), I((int64_t)limit + 1)) <
            0 ||
        collect(r->db, st, limit, &l, err) < 0)
        return -1;
    *ret = l;
    l = (mt_command_list){0};
    return 0;
}

// ---- making ----

int mt_store_command_by_idempotency(mt_store *s, const mt_user *by, const char *key,
                                    const char *request_digest, mt_command_record *ret,
                                    mt_err **err)
{
    _cleanup_reader_ reader *r = NULL;
    const keyed_request q = {KEYED_COMMAND, by->id, key, request_digest};
    char id[MT_ID_TEXT];
    int rc;

    if (check_idempotency_key(key, request_digest, err) < 0 || reader_get(s, &r, err) < 0)
        return -1;
    rc = idempotency_find(r->db, mt_now_us(), &q, id, err);
    return rc != 0 ? rc : command_load(r->db, NULL, id, ret, err);
}

struct create {
    const mt_command_new *new;
    mt_command_record *ret;
    int64_t *ret_number;
};

// The run must live. *ret_namespace is its own.
static int check_run(tx *t, const char *run_id, char ret_namespace[MT_ID_TEXT], mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;
    const char *status;
    int r;

    if (db_start(t->db, RUN_STATE, &st, err, T(run_id)) < 0)
        return -1;
    r = db_step(t->db, st, err);
    if (r <= 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "no capsule run '%.80s'", run_id);
    status = db_text(st, 0);
    db_copy_(st, 2, ret_namespace, MT_ID_TEXT);
    if (mt_streq(status, "Starting") || mt_streq(status, "Running"))
        return 0;
    return mt_fail(err, MT_E_RUN_ENDED, "capsule run '%s' has ended (%s, %s)%s%s", run_id, status,
                   db_text(st, 3), *db_text(st, 4) ? ": " : "", db_text(st, 4));
}

static int check_room(tx *t, const mt_command_new *n, mt_err **err)
{
    _cleanup_stmt_ db_stmt *st = NULL;

    if (db_start(t->db, COMMAND_ROOM, &st, err, T(n->run_id)) < 0 || db_step(t->db, st, err) < 0)
        return -1;
    if (n->most && db_int(st, 0) >= (int64_t)n->most)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "%lld commands of the run have not ended, the most that may wait in one run",
                       (long long)db_int(st, 0));
    if (n->most_bytes && db_int(st, 1) + (int64_t)n->input.len > n->most_bytes && db_int(st, 0) > 0)
        return mt_fail(err, MT_E_CAPACITY_EXCEEDED,
                       "the commands that wait in the run hold %lld MiB, the most is %lld MiB",
                       (long long)(db_int(st, 1) >> 20), (long long)(n->most_bytes >> 20));
    return 0;
}

static int add(tx *t, const mt_command_new *n, mt_err **err)
{
    size_t bytes =
        strlen(n->command) + strlen(n->arguments) + strlen(n->environment) + n->input.len;
    const void *input = n->input.len ? n->input.data : NULL;

    return db_run(t->db, COMMAND_ADD, err, T(n->id), T(n->run_id), T(n->run_as_user), I(n->async),
                  I(n->max_duration_ms), T(n->working_directory ? n->working_directory : ""),
                  I((int64_t)bytes), I(t->now), T(n->command), T(n->arguments), T(n->environment),
                  B(input, n->input.len)) < 0
               ? -1
               : 0;
}

static int create_op(tx *t, void *arg, mt_err **err)
{
    struct create *c = arg;
    const mt_command_new *n = c->new;
    const keyed_request q = {KEYED_COMMAND, n->by->id, n->idempotency_key, n->request_digest};
    char ns[MT_ID_TEXT], earlier[MT_ID_TEXT];
    int r;

    t->keeps_identities = true;
    mt_command_record_done(c->ret);
    if (q.key) {
        r = idempotency_find(t->db, t->now, &q, earlier, err);
        if (r == 0)
            r = command_load(t->db, NULL, earlier, c->ret, err);
        if (r <= 0)
            return r < 0 ? r : 1;
    }
    if (check_run(t, n->run_id, ns, err) < 0 || check_room(t, n, err) < 0 || add(t, n, err) < 0 ||
        (q.key && idempotency_keep(t, &q, n->id, n->run_id, err) < 0) ||
        event_add(t, "command", n->id, ns, "created", err) < 0)
        return -1;
    r = command_load(t->db, n->run_id, n->id, c->ret, err);
    *c->ret_number = c->ret->number;
    return r > 0 ? no_command(n->run_id, n->id, err) : r;
}

static int check_new(const mt_command_new *n, mt_err **err)
{
    if (!mt_is_id(mt_str_of(n->id)))
        return mt_fail(err, MT_E_INTERNAL, "'%.80s' is no id", n->id);
    return n->idempotency_key ? check_idempotency_key(n->idempotency_key, n->request_digest, err)
                              : 0;
}

int mt_store_command_create(mt_store *s, const mt_command_new *command, mt_store_done_fn *made,
                            void *data, int64_t *ret_number, mt_command_record *ret, mt_err **err)
{
    _cleanup_(mt_command_record_done) mt_command_record record = {0};
    struct create c = {command, &record, ret_number};
    int r;

    if (check_new(command, err) < 0) {
        if (made)
            made(-1, err ? *err : NULL, data);
        return -1;
    }
    r = store_write_then(s, create_op, &c, made, data, err);
    if (r < 0)
        return r;
    *ret = record;
    record = (mt_command_record){0};
    return r;
}

// ---- what happens to them ----

static int apply_end(tx *t, const char *run_id, const mt_command_change *c, mt_err **err)
{
    int r = db_run(t->db, COMMAND_END, err, T(c->id), T(run_id), T(c->status), T(c->end_reason),
                   I(c->exit_code), I(c->limit_ms), I(c->signal),
                   T(text_or(c->limits_reached, "[]")), T(text_or(c->failure_details, "")),
                   B(c->standard.len ? c->standard.data : NULL, c->standard.len),
                   B(c->error.len ? c->error.data : NULL, c->error.len), I(c->standard_length),
                   I(c->error_length), I(c->ended_us ? c->ended_us : t->now));

    if (r > 0 && !c->has_exit_code && db_run(t->db, COMMAND_NO_CODE, err, T(c->id)) < 0)
        return -1;
    return r;
}

int command_apply(tx *t, const char *run_id, const char *ns, const mt_command_change *c,
                  mt_err **err)
{
    int r;

    if (c->started) {
        r = db_run(t->db, COMMAND_START, err, T(c->id), T(run_id),
                   I(c->started_us ? c->started_us : t->now));
        if (r < 0 || (r > 0 && event_add(t, "command", c->id, ns, "started", err) < 0))
            return -1;
    }
    if (c->ended) {
        r = apply_end(t, run_id, c, err);
        if (r < 0 || (r > 0 && event_add(t, "command", c->id, ns, "ended", err) < 0))
            return -1;
    }
    return 0;
}

// How the run ended, in the words of a command that it took along.
static void say_why(bool starting, const mt_run_change *end, mt_buf *b)
{
    const char *details = text_or(end->failure_details, ""), *after;

    if (mt_streq(end->end_reason, "terminated")) {
        (void)mt_buf_addf(b, "the run was stopped%s%s",
                          end->terminated_by && *end->terminated_by ? " by " : "",
                          text_or(end->terminated_by, ""));
    } else if (mt_streq(end->end_reason, "timeout")) {
        after = strstr(details, "maxDuration ");
        (void)mt_buf_addf(b, "the run ran out of time%s%s", after ? ": " : "", text_or(after, ""));
    } else if (starting && mt_streq(end->status, "Error")) {
        (void)mt_buf_addf(b, "the run failed to start: %s", *details ? details : end->end_reason);
    } else if (mt_streq(end->status, "Finished")) {
        (void)mt_buf_adds(b, "the run finished");
    } else {
        (void)mt_buf_addf(b, "the run ended: %s", *details ? details : end->end_reason);
    }
}

static int tell_all(tx *t, const char *ns, db_stmt *st, mt_err **err)
{
    int r;

    while ((r = db_step(t->db, st, err)) > 0) {
        char id[MT_ID_TEXT];

        db_copy(st, 0, id);
        if (event_add(t, "command", id, ns, "ended", err) < 0)
            return -1;
    }
    return r;
}

int commands_abort(tx *t, const char *run_id, const char *ns, bool starting,
                   const mt_run_change *end, mt_err **err)
{
    _cleanup_buf_ mt_buf why = MT_BUF_INIT(1 << 20);
    _cleanup_stmt_ db_stmt *aborted = NULL, *told = NULL;

    say_why(starting, end, &why);
    if (db_start(t->db, COMMAND_ABORT, &aborted, err, T(run_id), T(mt_buf_str(&why)),
                 I(end->ended_us ? end->ended_us : t->now)) < 0 ||
        tell_all(t, ns, aborted, err) < 0 ||
        db_start(t->db, COMMAND_SAY_WHY, &told, err, T(run_id), T(mt_buf_str(&why))) < 0)
        return -1;
    return tell_all(t, ns, told, err);
}

// ---- asked to end ----

struct cancel {
    const char *run_id, *id, *by;
};

static int cancel_op(tx *t, void *arg, mt_err **err)
{
    const struct cancel *c = arg;
    int r = db_run(t->db, COMMAND_CANCEL, err, T(c->id), T(c->run_id), T(c->by));

    return r < 0 ? r : r == 0;
}

int mt_store_command_request_cancel(mt_store *s, const char *run_id, const char *id, const char *by,
                                    mt_err **err)
{
    struct cancel c = {run_id, id, by};

    return store_write_essential(s, cancel_op, &c, err);
}
