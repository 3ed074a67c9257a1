// SPDX-License-Identifier: Apache-2.0
#include "store/test-util.h"

static mt_store *store;
static mt_user anna, bert;
static mt_namespace work;

static void set_up(void)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_user_create(store, "anna", MT_ROLE_USER, &anna, &err));
    CHECK_OK(mt_store_user_create(store, "bert", MT_ROLE_USER, &bert, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "work", &work, NULL, &err));
}

static void start(char id[MT_ID_TEXT], const char *key)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_new n = {.namespace_id = work.id,
                    .capsule = "c",
                    .version = 1,
                    .definition = "{}",
                    .started_by = &anna,
                    .max_duration_ms = 600000,
                    .date_created = 1000000,
                    .idempotency_key = key,
                    .request_digest = "start"};
    mt_run r = {0};

    CHECK_OK(mt_store_run_create(store, &n, NULL, NULL, &r, &err));
    (void)snprintf(id, MT_ID_TEXT, "%s", r.id);
    mt_run_done(&r);
}

static mt_command_new plain(const char *run_id, char id[MT_ID_TEXT])
{
    mt_id_new(id);
    return (mt_command_new){.id = id,
                            .run_id = run_id,
                            .command = "ls",
                            .arguments = "[\"-l\"]",
                            .environment = "{\"A\":\"b\"}",
                            .run_as_user = "maitento",
                            .by = &anna,
                            .most = 3,
                            .most_bytes = 1000};
}

static int create(const mt_command_new *n, mt_command_record *ret, mt_err **err)
{
    int64_t number;

    mt_command_record_done(ret);
    return mt_store_command_create(store, n, NULL, NULL, &number, ret, err);
}

static void check_command(const char *run, const char *id, const char *status, const char *reason,
                          const char *details)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_command_record c = {0};

    CHECK_OK(mt_store_command_get(store, run, id, &c, &err));
    CHECK_STR(c.status, status);
    CHECK_STR(c.end_reason, reason);
    CHECK_STR(c.failure_details, details);
    CHECK_INT(c.date_ended != 0, reason[0] != '\0');
    CHECK_INT(mt_store_command_is_open(store, run, id, &err), reason[0] == '\0');
    mt_command_record_done(&c);
}

static void test_create(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_command_record c = {0}, other = {0};
    char run[MT_ID_TEXT], second[MT_ID_TEXT], id[MT_ID_TEXT];
    mt_command_new n;
    int64_t first;

    start(run, NULL);
    start(second, NULL);
    n = plain(run, id);
    n.input = (mt_str){"a\0b", 3};
    n.working_directory = "/tmp";
    n.async = true;
    n.max_duration_ms = 5000;
    CHECK_OK(create(&n, &c, &err));
    first = c.number;
    CHECK_STR(c.status, "Queued");
    CHECK_STR(c.command, "ls");
    CHECK_STR(c.arguments, "[\"-l\"]");
    CHECK_STR(c.environment, "{\"A\":\"b\"}");
    CHECK_STR(c.working_directory, "/tmp");
    CHECK_STR(c.limits_reached, "[]");
    CHECK(c.async && !c.has_exit_code);
    CHECK_INT(c.max_duration_ms, 5000);
    // A command of another run, or none.
    CHECK_CODE(mt_store_command_get(store, second, id, &other, &err), NOT_FOUND);
    CHECK_CODE(mt_store_command_get(store, run, "x", &other, &err), NOT_FOUND);
    CHECK_CODE(mt_store_command_is_open(store, second, id, &err), NOT_FOUND);
    n.run_id = "nothing";
    CHECK_CODE(create(&n, &other, &err), NOT_FOUND);
    n.id = "x";
    CHECK_CODE(create(&n, &other, &err), INTERNAL);
    // The ceilings: in bytes, then in number.
    n = plain(run, id);
    n.input = (mt_str){"x", 1};
    n.most_bytes = 10;
    CHECK_CODE(create(&n, &other, &err), CAPACITY_EXCEEDED);
    n.most_bytes = 1000;
    CHECK_OK(create(&n, &c, &err));
    CHECK(c.number > first);
    n = plain(run, id);
    CHECK_OK(create(&n, &c, &err));
    n = plain(run, id);
    CHECK_CODE(create(&n, &other, &err), CAPACITY_EXCEEDED);
    n.run_id = second;
    CHECK_OK(create(&n, &c, &err));
    mt_command_record_done(&c);
}

static void test_idempotency(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_command_record c = {0}, again = {0};
    char run[MT_ID_TEXT], id[MT_ID_TEXT], other[MT_ID_TEXT];
    mt_command_new n;
    mt_run r = {0};

    start(run, "of a start");
    n = plain(run, id);
    n.idempotency_key = "k";
    n.request_digest = "d";
    CHECK_IS(mt_store_command_by_idempotency(store, &anna, "k", "d", &again, &err), 1);
    CHECK_OK(create(&n, &c, &err));
    mt_id_new(other);
    n.id = other;
    CHECK_IS(create(&n, &again, &err), 1);
    CHECK_STR(again.id, id);
    mt_command_record_done(&again);
    CHECK_OK(mt_store_command_by_idempotency(store, &anna, "k", "d", &again, &err));
    CHECK_STR(again.id, id);
    n.request_digest = "e";
    CHECK_CODE(create(&n, &again, &err), IDEMPOTENCY_REUSED);
    n.idempotency_key = "of a start";
    CHECK_CODE(create(&n, &again, &err), IDEMPOTENCY_REUSED);
    CHECK_CODE(mt_store_run_by_idempotency(store, &anna, "k", "start", &r, &err),
               IDEMPOTENCY_REUSED);
    // Another user's key is another key; a repeat is answered after the end, too.
    n.by = &bert;
    CHECK_OK(create(&n, &again, &err));
    CHECK_STR(again.id, other);
    CHECK_OK(mt_store_run_apply_wait(
        store, run, 1,
        &(mt_run_change){.ended = true, .status = "Finished", .end_reason = "exited"}, &err));
    CHECK_IS(create(&n, &again, &err), 1);
    n.idempotency_key = NULL;
    mt_id_new(other);
    CHECK_CODE(create(&n, &again, &err), RUN_ENDED);
    mt_command_record_done(&c);
    mt_command_record_done(&again);
}

static void test_life(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT], ids[3][MT_ID_TEXT];
    mt_command_record c = {0};
    mt_command_change k = {.started = true, .started_us = 5};
    mt_run_change change = {.command = &k};

    start(run, NULL);
    for (int i = 0; i < 3; i++) {
        mt_command_new n = plain(run, ids[i]);

        CHECK_OK(create(&n, &c, &err));
    }
    k.id = ids[0];
    CHECK_OK(mt_store_run_apply_wait(store, run, 3, &change, &err));
    check_command(run, ids[0], "Running", "", "");
    k = (mt_command_change){.id = ids[0],
                            .ended = true,
                            .status = "Error",
                            .end_reason = "timeout",
                            .has_exit_code = true,
                            .exit_code = 143,
                            .limit_ms = 2000,
                            .signal = 15,
                            .limits_reached = "[\"pids\"]",
                            .failure_details = "out of time",
                            .standard = {"a\0\xe2\x82\xac", 5},
                            .error_length = 70000,
                            .ended_us = 9};
    CHECK_IS(mt_store_run_apply_wait(store, run, 3, &change, &err), 1); // seen
    CHECK_OK(mt_store_run_apply_wait(store, run, 4, &change, &err));
    check_command(run, ids[0], "Error", "timeout", "out of time");
    // Nothing changes it again, whatever a journal says.
    k.status = "Finished";
    CHECK_OK(mt_store_run_apply_wait(store, run, 5, &change, &err));
    k = (mt_command_change){.id = ids[0], .started = true};
    CHECK_OK(mt_store_run_apply_wait(store, run, 6, &change, &err));
    mt_command_record_done(&c);
    CHECK_OK(mt_store_command_get(store, run, ids[0], &c, &err));
    CHECK_STR(c.status, "Error");
    CHECK_INT(c.exit_code, 143);
    CHECK_INT(c.limit_ms, 2000);
    CHECK_INT(c.signal, 15);
    CHECK_STR(c.limits_reached, "[\"pids\"]");
    CHECK(c.standard.len == 5 && memcmp(c.standard.data, "a\0\xe2\x82\xac", 5) == 0);
    CHECK_INT(c.error.len, 0);
    CHECK_INT(c.error_length, 70000);
    CHECK_INT(c.date_started, 5);
    CHECK_INT(c.date_ended, 9);
    // One aborted without a word, one with, one that waits: the run's end says why.
    k = (mt_command_change){
        .id = ids[1], .ended = true, .status = "Aborted", .end_reason = "runEnded"};
    CHECK_OK(mt_store_run_apply_wait(store, run, 7, &change, &err));
    check_command(run, ids[1], "Aborted", "runEnded", "");
    CHECK_IS(mt_store_command_request_cancel(store, run, ids[1], "anna", &err), 1);
    CHECK_OK(mt_store_command_request_cancel(store, run, ids[2], "anna", &err));
    CHECK_IS(mt_store_command_request_cancel(store, run, ids[2], "bert", &err), 1);
    CHECK_OK(mt_store_run_apply_wait(store, run, 8,
                                     &(mt_run_change){.ended = true,
                                                      .status = "Finished",
                                                      .end_reason = "terminated",
                                                      .failure_details = "stopped by admin",
                                                      .terminated_by = "admin"},
                                     &err));
    check_command(run, ids[0], "Error", "timeout", "out of time");
    check_command(run, ids[1], "Aborted", "runEnded", "the run was stopped by admin");
    check_command(run, ids[2], "Aborted", "runEnded", "the run was stopped by admin");
    k.status = "Running";
    CHECK_CODE(mt_store_run_apply_wait(store, run, 9, &change, &err), INTERNAL);
    mt_command_record_done(&c);
}

static void check_abort(bool ready, mt_run_change end, const char *why)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT], id[MT_ID_TEXT];
    mt_command_record c = {0};
    mt_command_new n;

    start(run, NULL);
    n = plain(run, id);
    CHECK_OK(create(&n, &c, &err));
    if (ready)
        CHECK_OK(mt_store_run_apply_wait(store, run, 1, &(mt_run_change){.ready = true}, &err));
    end.ended = true;
    CHECK_OK(mt_store_run_apply_wait(store, run, 2, &end, &err));
    check_command(run, id, "Aborted", "runEnded", why);
    mt_command_record_done(&c);
}

static void test_why(void)
{
    check_abort(true, (mt_run_change){.status = "Finished", .end_reason = "exited"},
                "the run finished");
    check_abort(true,
                (mt_run_change){.status = "Finished",
                                .end_reason = "timeout",
                                .failure_details = "out of time: maxDuration 00:10:00"},
                "the run ran out of time: maxDuration 00:10:00");
    check_abort(false,
                (mt_run_change){.status = "Error",
                                .end_reason = "timeout",
                                .failure_details = "out of time while starting"},
                "the run ran out of time");
    check_abort(false,
                (mt_run_change){.status = "Error",
                                .end_reason = "exited",
                                .failure_details = "Startup command failed: false - exit code 1"},
                "the run failed to start: Startup command failed: false - exit code 1");
    check_abort(false, (mt_run_change){.status = "Finished", .end_reason = "terminated"},
                "the run was stopped");
    check_abort(true, (mt_run_change){.status = "Error", .end_reason = "supervisorLost"},
                "the run ended: supervisorLost");
}

// Commands that many threads store at once are told of in the order of their numbers.
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t last_number;
static int told, out_of_order;

static void on_made(int result, const mt_err *err, void *data)
{
    const int64_t *number = data;

    pthread_mutex_lock(&order_lock);
    out_of_order += result != 0 || *number <= last_number;
    last_number = *number;
    told++;
    pthread_mutex_unlock(&order_lock);
}

static void *make_many(void *run)
{
    for (int i = 0; i < 50; i++) {
        _cleanup_err_ mt_err *err = NULL;
        mt_command_record c = {0};
        char id[MT_ID_TEXT];
        mt_command_new n = plain(run, id);
        int64_t number = 0;

        n.most = 1000;
        n.most_bytes = 0;
        if (mt_store_command_create(store, &n, on_made, &number, &number, &c, &err) != 0)
            abort();
        mt_command_record_done(&c);
    }
    return NULL;
}

static void test_order(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_command_list l = {0}, rest = {0};
    char run[MT_ID_TEXT];
    pthread_t threads[4];

    start(run, NULL);
    for (int i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, make_many, run), 0);
    for (int i = 0; i < 4; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_INT(told, 200);
    CHECK_INT(out_of_order, 0);
    CHECK_OK(mt_store_command_waiting(store, run, 0, 150, &l, &err));
    CHECK_INT(l.count, 150);
    CHECK(l.next[0] != '\0');
    CHECK_OK(mt_store_command_waiting(store, run, l.items[149].number, 150, &rest, &err));
    CHECK_INT(rest.count, 50);
    CHECK_STR(rest.next, "");
    CHECK_INT(rest.items[49].number, last_number);
    mt_command_list_done(&l);
    mt_command_list_done(&rest);
}

static void test_lists(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT], ids[3][MT_ID_TEXT], next[MT_STORE_CURSOR];
    mt_command_record c = {0};
    mt_command_list l = {0};
    mt_command_change k = {.started = true};

    start(run, NULL);
    for (int i = 0; i < 3; i++) {
        mt_command_new n = plain(run, ids[i]);

        n.input = (mt_str){"in", 2};
        CHECK_OK(create(&n, &c, &err));
    }
    k.id = ids[0];
    CHECK_OK(mt_store_run_apply_wait(store, run, 1, &(mt_run_change){.command = &k}, &err));
    CHECK_OK(mt_store_command_list(store, run, NULL, NULL, (mt_page){NULL, 2}, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_STR(l.items[0].id, ids[0]);
    CHECK_STR(l.items[1].id, ids[1]);
    CHECK_INT(l.items[0].input.len, 0);
    mt_command_record_done(&c);
    (void)snprintf(next, sizeof(next), "%s", l.next);
    mt_command_list_done(&l);
    CHECK_OK(mt_store_command_list(store, run, NULL, NULL, (mt_page){next, 2}, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].id, ids[2]);
    CHECK_STR(l.next, "");
    mt_command_list_done(&l);
    CHECK_OK(mt_store_command_list(store, run, "Running", NULL, (mt_page){0}, &l, &err));
    CHECK_INT(l.count, 1);
    mt_command_list_done(&l);
    CHECK_OK(mt_store_command_list(store, run, NULL, ids[1] + 20, (mt_page){0}, &l, &err));
    CHECK_INT(l.count, 1);
    mt_command_list_done(&l);
    CHECK_CODE(mt_store_command_list(store, run, NULL, NULL, (mt_page){"x", 2}, &l, &err),
               BAD_FIELD);
    CHECK_OK(mt_store_command_waiting(store, run, 0, 10, &l, &err));
    CHECK_INT(l.count, 3);
    CHECK_STR(l.items[2].input.data, "in");
    mt_command_list_done(&l);
}

static void test_extend(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT];
    mt_run r = {0};

    start(run, NULL);
    CHECK_OK(mt_store_run_extend(store, run, 900000, &err));
    CHECK_OK(mt_store_run_get(store, NULL, run, &r, &err));
    CHECK_INT(r.max_duration_ms, 900000);
    CHECK_INT(r.extended_ms, 900000);
    CHECK_INT(r.deadline, 1000000 + 900000000);
    mt_run_done(&r);
    CHECK_OK(mt_store_run_apply_wait(
        store, run, 1, &(mt_run_change){.max_duration_ms = 800000, .deadline = 7}, &err));
    CHECK_OK(mt_store_run_get(store, NULL, run, &r, &err));
    CHECK_INT(r.max_duration_ms, 800000);
    CHECK_INT(r.deadline, 7);
    mt_run_done(&r);
    CHECK_OK(mt_store_run_apply_wait(
        store, run, 2,
        &(mt_run_change){.ended = true, .status = "Finished", .end_reason = "exited"}, &err));
    CHECK_IS(mt_store_run_extend(store, run, 900000, &err), 1);
    CHECK_CODE(mt_store_run_extend(store, "nothing", 900000, &err), NOT_FOUND);
}

int main(void)
{
    _cleanup_free_ char *dir = temp_folder();

    store = open_or_die(dir);
    set_up();
    test_create();
    test_idempotency();
    test_life();
    test_why();
    test_order();
    test_lists();
    test_extend();
    store = mt_store_close(store);
    remove_tree(dir);
    return TAP_DONE();
}
