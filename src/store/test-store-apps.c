// SPDX-License-Identifier: Apache-2.0
// Runs of apps: made, started by one another, listed, ended, removed. Their journals and notes are
// in test-store-app-notes.c.
#include "store/test-util.h"

static mt_store *store;
static mt_user anna, bert, carl; // bert is a member of anna's namespace, carl is nobody
static mt_namespace work;

static void set_up(void)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_user_create(store, "anna", MT_ROLE_USER, &anna, &err));
    CHECK_OK(mt_store_user_create(store, "bert", MT_ROLE_USER, &bert, &err));
    CHECK_OK(mt_store_user_create(store, "carl", MT_ROLE_USER, &carl, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "work", &work, NULL, &err));
    CHECK_OK(mt_store_member_add(store, work.id, bert.id, &err));
}

static mt_app_run_new plain(const mt_user *by, const char *app, char id[MT_ID_TEXT])
{
    mt_id_new(id);
    return (mt_app_run_new){.id = id,
                            .namespace_id = work.id,
                            .app = app,
                            .version = 3,
                            .inputs = "{\"question\":\"why\"}",
                            .started_by = by,
                            .language = 1,
                            .max_duration_ms = 600000,
                            .deadline = 123456};
}

static int create(const mt_app_run_new *n, mt_err **err)
{
    mt_app_run r = {0};
    int rc = mt_store_app_run_create(store, n, &r, err);

    mt_app_run_done(&r);
    return rc;
}

static int start_below(const char *parent_id, const char *parent_app_id, char id[MT_ID_TEXT],
                       mt_err **err)
{
    mt_app_run_new n = plain(&anna, "below", id);

    n.parent_id = parent_id;
    n.parent_app_id = parent_app_id;
    return create(&n, err);
}

static void start(const mt_user *by, const char *app, char id[MT_ID_TEXT])
{
    _cleanup_err_ mt_err *err = NULL;
    mt_app_run_new n = plain(by, app, id);

    CHECK_OK(create(&n, &err));
}

static const mt_app_end RETURNED = {.status = "Finished", .end_reason = "returned"};

static void end(const char *id)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_app_run_end(store, id, &RETURNED, &err));
}

static int start_capsule(const char *parent_id, const char *parent_app_id, char id[MT_ID_TEXT],
                         mt_err **err)
{
    mt_run_new n = {.namespace_id = work.id,
                    .capsule = "c",
                    .version = 1,
                    .definition = "{}",
                    .started_by = &anna,
                    .parent_id = parent_id,
                    .parent_app_id = parent_app_id};
    mt_run r = {0};
    int rc = mt_store_run_create(store, &n, NULL, NULL, &r, err);

    if (rc == 0) {
        CHECK_STR(r.parent_app_id, parent_app_id ? parent_app_id : "");
        (void)snprintf(id, MT_ID_TEXT, "%s", r.id);
    }
    mt_run_done(&r);
    return rc;
}

static void end_capsule(const char *id)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_run_change change = {.ended = true, .status = "Finished", .end_reason = "exited"};

    CHECK_OK(mt_store_run_apply_wait(store, id, 0, &change, &err));
}

static void end_all(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_app_run_list apps = {0};
    mt_run_list runs = {0};

    CHECK_OK(mt_store_app_run_live(store, &apps, &err));
    CHECK_OK(mt_store_run_live(store, &runs, &err));
    for (size_t i = 0; i < apps.count; i++)
        end(apps.items[i].id);
    for (size_t i = 0; i < runs.count; i++)
        end_capsule(runs.items[i].id);
    mt_app_run_list_done(&apps);
    mt_run_list_done(&runs);
}

// ---- making ----

static void test_create(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT], other[MT_ID_TEXT];
    mt_app_run_new n = plain(&anna, "analyst", id);
    mt_app_run r = {0}, got = {0};

    n.rerun_of = "an earlier one";
    CHECK_OK(mt_store_app_run_create(store, &n, &r, &err));
    CHECK_STR(r.id, id);
    CHECK_STR(r.status, "Running");
    CHECK_STR(r.end_reason, "");
    CHECK_STR(r.namespace_name, "work");
    CHECK_STR(r.app, "analyst");
    CHECK_STR(r.inputs, n.inputs);
    CHECK_STR(r.outputs, "{}");
    CHECK_STR(r.return_value, "null");
    CHECK_STR(r.failure_stack, "[]");
    CHECK_STR(r.failure_details, "");
    CHECK_STR(r.failure_code, "");
    CHECK_STR(r.failure_place, "");
    CHECK_STR(r.waiting_for, "");
    CHECK_STR(r.started_by, "anna");
    CHECK_STR(r.started_by_id, anna.id);
    CHECK_STR(r.parent_id, "");
    CHECK_STR(r.parent_app_id, "");
    CHECK_STR(r.rerun_of, "an earlier one");
    CHECK_INT(r.version, 3);
    CHECK_INT(r.language, 1);
    CHECK_INT(r.deadline, 123456);
    CHECK_INT(r.max_duration_ms, 600000);
    CHECK(r.date_created > 0 && r.date_ended == 0);
    CHECK_INT(r.relation, MT_RELATION_OWNER);
    CHECK_OK(mt_store_app_run_get(store, &carl, id, &got, &err));
    CHECK_INT(got.relation, MT_RELATION_NONE);
    mt_app_run_done(&got);
    CHECK_OK(mt_store_app_run_look(store, &anna, id, &got, &err));
    CHECK_INT(got.relation, MT_RELATION_OWNER);
    CHECK_STR(got.app, "analyst");
    CHECK(!got.inputs && !got.outputs && !got.return_value && got.failure_stack);
    mt_app_run_done(&got);
    CHECK_CODE(mt_store_app_run_look(store, &anna, "nothing", &got, &err), NOT_FOUND);
    CHECK_CODE(mt_store_app_run_get(store, &anna, "nothing", &got, &err), NOT_FOUND);
    CHECK_CODE(create(&n, &err), ALREADY_EXISTS);
    n.id = "x";
    CHECK_CODE(create(&n, &err), INTERNAL);
    n = plain(&anna, "analyst", other);
    n.namespace_id = "nowhere";
    CHECK_CODE(create(&n, &err), CONFLICT);
    CHECK_CODE(mt_store_namespace_delete(store, work.id, &err), CONFLICT);
    CHECK_CODE(mt_store_user_delete(store, anna.id, &err), CONFLICT);
    mt_app_run_done(&r);
}

static void test_idempotency(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char first[MT_ID_TEXT], second[MT_ID_TEXT], long_key[300];
    mt_app_run_new n = plain(&anna, "twice", first);
    mt_app_run r = {0};
    mt_run run = {0};

    n.idempotency_key = "k";
    n.request_digest = "d1";
    CHECK_IS(mt_store_app_run_by_idempotency(store, &anna, "k", "d1", &r, &err), 1);
    CHECK_OK(create(&n, &err));
    mt_id_new(second);
    n.id = second;
    CHECK_IS(mt_store_app_run_create(store, &n, &r, &err), 1);
    CHECK_STR(r.id, first);
    CHECK_STR(r.inputs, n.inputs);
    mt_app_run_done(&r);
    CHECK_OK(mt_store_app_run_by_idempotency(store, &anna, "k", "d1", &r, &err));
    CHECK_STR(r.id, first);
    mt_app_run_done(&r);
    // A start of something else is another request, whatever its digest.
    CHECK_CODE(mt_store_run_by_idempotency(store, &anna, "k", "d1", &run, &err),
               IDEMPOTENCY_REUSED);
    n.request_digest = "d2";
    CHECK_CODE(create(&n, &err), IDEMPOTENCY_REUSED);
    n.started_by = &bert;
    CHECK_OK(create(&n, &err));
    memset(long_key, 'k', sizeof(long_key) - 1);
    long_key[sizeof(long_key) - 1] = '\0';
    n.idempotency_key = long_key;
    CHECK_CODE(create(&n, &err), BAD_FIELD);
    CHECK_CODE(mt_store_app_run_by_idempotency(store, &anna, "", "d1", &r, &err), BAD_FIELD);
    end(first);
    CHECK_OK(mt_store_app_run_by_idempotency(store, &anna, "k", "d1", &r, &err));
    mt_app_run_done(&r);
}

// ---- keys of calls ----

static void start_with_key(const mt_user *by, const char *key)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    mt_app_run_new n = plain(by, "called", id);

    n.idempotency_key = key;
    n.request_digest = "d";
    CHECK_OK(create(&n, &err));
}

static void check_key(const mt_user *by, const char *key, bool known)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_app_run r = {0};

    CHECK_IS(mt_store_app_run_by_idempotency(store, by, key, "d", &r, &err), known ? 0 : 1);
    mt_app_run_done(&r);
}

static void send_command(const char *run, const char *key)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    mt_command_record c = {0};
    int64_t number;
    mt_command_new n = {.id = id,
                        .run_id = run,
                        .command = "ls",
                        .arguments = "[]",
                        .environment = "{}",
                        .run_as_user = "maitento",
                        .by = &anna,
                        .idempotency_key = key,
                        .request_digest = "d"};

    mt_id_new(id);
    CHECK_OK(mt_store_command_create(store, &n, NULL, NULL, &number, &c, &err));
    mt_command_record_done(&c);
}

// Keys of a run's own calls stay as long as it lives; all others for a day.
static void test_call_keys(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char live[MT_ID_TEXT], ended[MT_ID_TEXT], capsule[MT_ID_TEXT];
    char own[64], command[64], of_ended[64], of_none[64];
    mt_command_record c = {0};

    start(&anna, "caller", live);
    start(&anna, "caller", ended);
    end(ended);
    CHECK_OK(start_capsule(NULL, live, capsule, &err));
    (void)snprintf(own, sizeof(own), "app-run %s 1", live);
    (void)snprintf(command, sizeof(command), "app-run %s 2", live);
    (void)snprintf(of_ended, sizeof(of_ended), "app-run %s 1", ended);
    (void)snprintf(of_none, sizeof(of_none), "app-run %.35s 1", live);
    start_with_key(&anna, own);
    start_with_key(&bert, own); // not his run
    start_with_key(&anna, of_ended);
    start_with_key(&anna, of_none);
    start_with_key(&anna, "app-run ");
    start_with_key(&anna, "plain");
    send_command(capsule, command);
    check_key(&anna, of_ended, true);
    write_sql(store, "UPDATE idempotency SET date_created = 1");
    start_with_key(&anna, "another"); // forgets those of more than a day ago
    check_key(&anna, own, true);
    check_key(&bert, own, false);
    check_key(&anna, of_ended, false);
    check_key(&anna, of_none, false);
    check_key(&anna, "app-run ", false);
    check_key(&anna, "plain", false);
    check_key(&anna, "another", true);
    CHECK_OK(mt_store_command_by_idempotency(store, &anna, command, "d", &c, &err));
    mt_command_record_done(&c);
    end(live);
    check_key(&anna, own, false);
    CHECK_IS(mt_store_command_by_idempotency(store, &anna, command, "d", &c, &err), 1);
    check_key(&anna, "another", true);
    end_all();
}

// ---- runs that start runs ----

static void test_depth(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char chain[MT_STORE_APP_DEPTH + 1][MT_ID_TEXT], other[MT_ID_TEXT];
    mt_app_run r = {0};

    start(&anna, "first", chain[0]);
    for (int i = 1; i <= MT_STORE_APP_DEPTH; i++)
        CHECK_OK(start_below(NULL, chain[i - 1], chain[i], &err));
    CHECK_CODE(start_below(NULL, chain[MT_STORE_APP_DEPTH], other, &err), TOO_DEEP);
    CHECK_OK(mt_store_app_run_get(store, NULL, chain[1], &r, &err));
    CHECK_STR(r.parent_app_id, chain[0]);
    mt_app_run_done(&r);
    // Who has ended starts nothing, of either kind.
    end(chain[1]);
    CHECK_CODE(start_below(NULL, chain[1], other, &err), UNAUTHENTICATED);
    CHECK_CODE(start_capsule(NULL, chain[1], other, &err), UNAUTHENTICATED);
    CHECK_CODE(start_below(NULL, "no run", other, &err), UNAUTHENTICATED);
    CHECK_CODE(start_below("no run", NULL, other, &err), UNAUTHENTICATED);
    CHECK_CODE(start_capsule(NULL, "no run", other, &err), UNAUTHENTICATED);
    end_all();
}

// Capsules and apps that start each other come to an end, too.
static void test_mixed_depth(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char capsule[MT_ID_TEXT], app[MT_ID_TEXT], below[MT_ID_TEXT];

    CHECK_OK(start_capsule(NULL, NULL, capsule, &err));
    for (int i = 0; i < MT_STORE_RUN_DEPTH; i++) {
        CHECK_OK(start_below(capsule, NULL, app, &err));
        CHECK_OK(start_below(NULL, app, below, &err));
        CHECK_OK(start_capsule(NULL, below, capsule, &err));
    }
    CHECK_CODE(start_below(capsule, NULL, app, &err), TOO_DEEP);
    CHECK_CODE(start_capsule(capsule, NULL, app, &err), TOO_DEEP);
    end_capsule(capsule);
    CHECK_CODE(start_below(capsule, NULL, app, &err), UNAUTHENTICATED);
    end_all();
}

static void test_children(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char parent[MT_ID_TEXT], below[MT_STORE_APP_CHILDREN][MT_ID_TEXT], id[MT_ID_TEXT];
    char capsules[2][MT_ID_TEXT];
    mt_app_children c = {0};

    start(&anna, "parent", parent);
    for (int i = 0; i < MT_STORE_APP_CHILDREN; i++)
        CHECK_OK(start_below(NULL, parent, below[i], &err));
    CHECK_CODE(start_below(NULL, parent, id, &err), CAPACITY_EXCEEDED);
    CHECK_OK(start_below(NULL, below[0], id, &err)); // each has its own
    end(below[3]);
    CHECK_OK(start_below(NULL, parent, below[3], &err));
    end(below[4]);
    for (int i = 0; i < 2; i++)
        CHECK_OK(start_capsule(NULL, parent, capsules[i], &err));
    end_capsule(capsules[0]);
    end(parent); // what it has left behind can still be asked for
    CHECK_OK(mt_store_app_run_children(store, parent, &c, &err));
    CHECK_INT(c.capsule_run_count, 1);
    CHECK_STR(c.capsule_runs[0], capsules[1]);
    CHECK_INT(c.app_run_count, MT_STORE_APP_CHILDREN - 1);
    mt_app_children_done(&c);
    CHECK_OK(mt_store_app_run_children(store, "", &c, &err));
    CHECK_INT(c.capsule_run_count + c.app_run_count, 0);
    mt_app_children_done(&c);
    end_all();
}

// Below a capsule run all count together: apps, what they start, and capsules.
static void test_room_of_capsule(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char root[MT_ID_TEXT], app[MT_ID_TEXT], id[MT_ID_TEXT];

    CHECK_OK(start_capsule(NULL, NULL, root, &err));
    CHECK_OK(start_below(root, NULL, app, &err));
    for (int i = 1; i < MT_STORE_RUN_CHILDREN; i++)
        CHECK_OK(i % 2 ? start_below(NULL, app, id, &err) : start_capsule(NULL, app, id, &err));
    CHECK_CODE(start_below(root, NULL, id, &err), CAPACITY_EXCEEDED);
    CHECK_CODE(start_below(NULL, app, id, &err), CAPACITY_EXCEEDED);
    CHECK_CODE(start_capsule(root, NULL, id, &err), CAPACITY_EXCEEDED);
    CHECK_CODE(start_capsule(NULL, app, id, &err), CAPACITY_EXCEEDED);
    end_all();
}

// ---- sign-in ----

static void test_sign_in(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT], outer[MT_ID_TEXT], ns[MT_STORE_NAME];
    mt_user guest, u;

    start(&bert, "a", id);
    CHECK_OK(mt_store_app_run_sign_in(store, id, &u, ns, &err));
    CHECK_STR(u.name, "bert");
    CHECK_STR(ns, "work");
    CHECK_CODE(mt_store_app_run_sign_in(store, "no run", &u, ns, &err), UNAUTHENTICATED);
    CHECK_CODE(mt_store_run_sign_in(store, id, &u, ns, &err), UNAUTHENTICATED);
    end(id);
    CHECK_CODE(mt_store_app_run_sign_in(store, id, &u, ns, &err), UNAUTHENTICATED);
    // One whose starter is gone is signed in as nobody, and lives.
    CHECK_OK(start_capsule(NULL, NULL, outer, &err));
    CHECK_OK(mt_store_user_create_in_run(store, "guest", MT_ROLE_USER, outer, &guest, &err));
    start(&guest, "a", id);
    CHECK_OK(mt_store_app_run_sign_in(store, id, &u, ns, &err));
    CHECK_STR(u.run_id, outer);
    end_capsule(outer);
    CHECK_CODE(mt_store_app_run_sign_in(store, id, &u, ns, &err), UNAUTHENTICATED);
    end(id);
}

// ---- lists ----

static size_t count_runs(const mt_user *as, const mt_app_run_filter *f)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_app_run_list l = {0};
    size_t n;

    CHECK_OK(mt_store_app_run_list(store, as, f, (mt_page){NULL, 1000}, &l, &err));
    n = l.count;
    mt_app_run_list_done(&l);
    return n;
}

static void check_live_count(const char *user_id, int64_t expected)
{
    _cleanup_err_ mt_err *err = NULL;
    int64_t count = -1;

    CHECK_OK(mt_store_app_run_live_count(store, user_id, &count, &err));
    CHECK_INT(count, expected);
}

static void test_lists(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char ids[3][MT_ID_TEXT], below[MT_ID_TEXT], next[MT_STORE_CURSOR];
    mt_app_run_list l = {0};

    start(&anna, "listed", ids[0]);
    start(&bert, "listed", ids[1]);
    start(&anna, "listed", ids[2]);
    CHECK_OK(start_below(NULL, ids[0], below, &err));
    end(ids[2]);
    CHECK_OK(mt_store_app_run_list(store, &anna, &(mt_app_run_filter){.app = "listed"},
                                   (mt_page){NULL, 2}, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_STR(l.items[0].id, ids[2]);
    CHECK_STR(l.items[1].id, ids[1]);
    CHECK(!l.items[0].inputs && !l.items[0].outputs && !l.items[0].return_value);
    CHECK_STR(l.items[0].failure_details, "");
    (void)snprintf(next, sizeof(next), "%s", l.next);
    mt_app_run_list_done(&l);
    CHECK_OK(mt_store_app_run_list(store, &anna, &(mt_app_run_filter){.app = "listed"},
                                   (mt_page){next, 2}, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].id, ids[0]);
    CHECK_STR(l.next, "");
    mt_app_run_list_done(&l);
    CHECK_CODE(mt_store_app_run_list(store, &anna, NULL, (mt_page){"x", 2}, &l, &err), BAD_FIELD);
    CHECK_INT(count_runs(&carl, NULL), 0);
    CHECK_INT(count_runs(&anna, &(mt_app_run_filter){.status = "Running"}), 3);
    CHECK_INT(count_runs(&carl, &(mt_app_run_filter){.status = "Running"}), 0);
    CHECK_INT(count_runs(&bert, &(mt_app_run_filter){.app = "listed", .status = "Finished"}), 1);
    CHECK_INT(count_runs(NULL, &(mt_app_run_filter){.app = "listed", .namespace_id = work.id}), 3);
    CHECK_INT(count_runs(NULL, &(mt_app_run_filter){.namespace_id = "nowhere"}), 0);
    CHECK_INT(count_runs(&anna, &(mt_app_run_filter){.app = "listed", .started_by_id = bert.id}),
              1);
    CHECK_INT(count_runs(&anna, &(mt_app_run_filter){.id_ending = ids[1] + 20}), 1);
    CHECK_INT(count_runs(&anna, &(mt_app_run_filter){.parent_app_id = ids[0]}), 1);
    CHECK_INT(count_runs(&carl, &(mt_app_run_filter){.parent_app_id = ids[0]}), 0);
    CHECK_INT(count_runs(NULL, &(mt_app_run_filter){.parent_app_id = ""}), 0);
    CHECK_OK(mt_store_app_run_live(store, &l, &err));
    CHECK_INT(l.count, 3);
    CHECK_STR(l.items[0].id, ids[0]);
    CHECK_STR(l.items[2].id, below);
    CHECK_STR(l.items[0].inputs, "{\"question\":\"why\"}");
    mt_app_run_list_done(&l);
    check_live_count(NULL, 3);
    check_live_count(bert.id, 1);
    check_live_count(carl.id, 0);
    end_all();
    check_live_count(NULL, 0);
}

// ---- the end ----

static void test_waits_and_cancel(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    mt_app_run r = {0};

    start(&anna, "a", id);
    CHECK_OK(mt_store_app_run_waits(store, id, "room for capsule 'c'", &err));
    CHECK_OK(mt_store_app_run_waits(store, "nothing", "", &err));
    CHECK_OK(mt_store_settle(store, &err));
    CHECK_OK(mt_store_app_run_get(store, NULL, id, &r, &err));
    CHECK_STR(r.waiting_for, "room for capsule 'c'");
    mt_app_run_done(&r);
    CHECK_OK(mt_store_app_run_request_cancel(store, id, "bert", &err));
    CHECK_IS(mt_store_app_run_request_cancel(store, id, "anna", &err), 1);
    CHECK_CODE(mt_store_app_run_request_cancel(store, "nothing", "anna", &err), NOT_FOUND);
    end(id);
    CHECK_IS(mt_store_app_run_request_cancel(store, id, "anna", &err), 1);
    CHECK_OK(mt_store_app_run_waits(store, id, "nothing any more", &err));
    CHECK_OK(mt_store_settle(store, &err));
    CHECK_OK(mt_store_app_run_get(store, NULL, id, &r, &err));
    CHECK_STR(r.cancel_requested_by, "bert");
    CHECK_STR(r.waiting_for, "");
    mt_app_run_done(&r);
}

static void test_end(void)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_app_end how = {.status = "Error",
                            .end_reason = "failed",
                            .failure_details = "not this one",
                            .failure_code = "Thrown",
                            .failure_place = "a.mtc:1:2",
                            .failure_stack = "[{\"function\":\"main\"}]",
                            .return_value = "{\"a\":1}",
                            .cancelled_by = "bert",
                            .limit_ms = 7};
    char id[MT_ID_TEXT];
    mt_app_run r = {0};

    start(&anna, "a", id);
    CHECK_CODE(mt_store_app_run_end(store, id,
                                    &(mt_app_end){.status = "Running", .end_reason = "x"}, &err),
               INTERNAL);
    CHECK_CODE(mt_store_app_run_end(store, id, &(mt_app_end){.end_reason = "x"}, &err), INTERNAL);
    CHECK_CODE(
        mt_store_app_run_end(store, id, &(mt_app_end){.status = "Error", .end_reason = ""}, &err),
        INTERNAL);
    CHECK_CODE(mt_store_app_run_end(store, "nothing", &how, &err), NOT_FOUND);
    CHECK_OK(mt_store_app_run_end(store, id, &how, &err));
    CHECK_IS(mt_store_app_run_end(store, id, &RETURNED, &err), 1);
    CHECK_OK(mt_store_app_run_get(store, NULL, id, &r, &err));
    CHECK_STR(r.status, "Error");
    CHECK_STR(r.end_reason, "failed");
    CHECK_STR(r.failure_details, "not this one");
    CHECK_STR(r.failure_code, "Thrown");
    CHECK_STR(r.failure_place, "a.mtc:1:2");
    CHECK_STR(r.failure_stack, "[{\"function\":\"main\"}]");
    CHECK_STR(r.return_value, "{\"a\":1}");
    CHECK_STR(r.cancelled_by, "bert");
    CHECK_INT(r.limit_ms, 7);
    CHECK(r.date_ended >= r.date_created);
    mt_app_run_done(&r);
}

// A program may throw a text of many MiB.
static void test_long_details(void)
{
    _cleanup_err_ mt_err *err = NULL;
    static char text[2 * MT_STORE_APP_DETAILS];
    const mt_app_end how = {.status = "Error", .end_reason = "failed", .failure_details = text};
    char id[MT_ID_TEXT];
    mt_app_run r = {0};

    memset(text, 'x', sizeof(text) - 1);
    memcpy(text + MT_STORE_APP_DETAILS - 1, (const char[]){'\xe2', '\x82', '\xac'},
           3); // lies across the cut
    start(&anna, "a", id);
    CHECK_OK(mt_store_app_run_end(store, id, &how, &err));
    CHECK_OK(mt_store_app_run_get(store, NULL, id, &r, &err));
    CHECK_INT(strlen(r.failure_details), MT_STORE_APP_DETAILS - 1);
    mt_app_run_done(&r);
}

// ---- events ----

static char seen[512]; // "created updated …" of one run, as the listener is told
static const char *watched;

static void on_events(const mt_event *events, size_t count, void *data)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(seen);

        if (watched && mt_streq(events[i].object_id, watched))
            (void)snprintf(seen + len, sizeof(seen) - len, "%s%s%s", len ? " " : "",
                           events[i].change, events[i].number > 0 ? "" : "!");
    }
}

static void test_events(void)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_app_line line = {.number = 1, .text = {"a\n", 2}, .time_us = 5, .level = 'o'};
    char id[MT_ID_TEXT];
    mt_app_run_new n = plain(&anna, "told", id);

    watched = id;
    seen[0] = '\0';
    CHECK_OK(create(&n, &err));
    CHECK_OK(mt_store_app_note(store, id, &line, 1, NULL, 0, NULL, NULL, &err));
    CHECK_OK(mt_store_app_note(store, id, &line, 1, NULL, 0, NULL, NULL, &err)); // nothing new
    CHECK_OK(mt_store_app_run_waits(store, id, "something", &err));
    CHECK_OK(mt_store_settle(store, &err));
    CHECK_OK(mt_store_app_run_request_cancel(store, id, "anna", &err));
    end(id);
    CHECK_OK(mt_store_app_run_delete(store, id, &err));
    // The listener is told after who wrote, and before the next one writes.
    CHECK_OK(mt_store_app_run_delete(store, id, &err));
    watched = NULL;
    CHECK_STR(seen, "created printed! updated ended deleted");
    check_indexed(store, "appRun", id, "created updated ended deleted");
}

// ---- removal ----

static void test_retention(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char old[MT_ID_TEXT], young[MT_ID_TEXT], live[MT_ID_TEXT];
    mt_kept_list l = {0};
    mt_app_run r = {0};

    write_sql(store, "DELETE FROM app_runs");
    start(&anna, "a", old);
    start(&anna, "a", young);
    start(&anna, "a", live);
    end(young);
    end(old);
    write_sql(store, "UPDATE app_runs SET date_ended = 1000 * number WHERE date_ended <> 0");
    CHECK_OK(mt_store_kept_app_runs(store, mt_now_us(), 1, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].id, old);
    CHECK_INT(l.items[0].output_bytes, -1);
    mt_kept_list_done(&l);
    CHECK_OK(mt_store_kept_app_runs(store, mt_now_us(), 10, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_STR(l.items[1].id, young);
    mt_kept_list_done(&l);
    CHECK_OK(mt_store_kept_app_runs(store, 1, 10, &l, &err));
    CHECK_INT(l.count, 0);
    CHECK_OK(mt_store_app_run_delete(store, live, &err)); // lives: stays
    CHECK_OK(mt_store_app_run_get(store, NULL, live, &r, &err));
    mt_app_run_done(&r);
    write_sql(store, "WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4500) "
                     "INSERT INTO app_lines SELECT id, i, 0, 'o', x'41' FROM app_runs, n "
                     "WHERE date_ended = 1000 * number AND id = (SELECT min(id) FROM app_runs)");
    CHECK_OK(mt_store_app_run_delete(store, old, &err)); // in parts
    CHECK_CODE(mt_store_app_run_get(store, NULL, old, &r, &err), NOT_FOUND);
    CHECK_OK(mt_store_app_run_delete(store, old, &err)); // again is fine
    end(live);
}

// Nothing holds the namespace and its people once all have ended; records of ended runs go along.
static void test_removal(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    mt_app_run_list l = {0};

    start(&bert, "last", id);
    CHECK_CODE(mt_store_user_delete(store, bert.id, &err), CONFLICT);
    CHECK_CODE(mt_store_namespace_delete(store, work.id, &err), CONFLICT);
    end_all();
    CHECK_OK(mt_store_user_delete(store, bert.id, &err)); // his runs stay, under his name
    CHECK_OK(mt_store_app_run_list(store, &anna, &(mt_app_run_filter){.app = "last"}, (mt_page){0},
                                   &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].started_by, "bert");
    CHECK_STR(l.items[0].started_by_id, "");
    mt_app_run_list_done(&l);
    CHECK_OK(mt_store_namespace_delete(store, work.id, &err));
    CHECK_INT(count_runs(NULL, NULL), 0);
    CHECK_OK(mt_store_user_delete(store, anna.id, &err));
}

int main(void)
{
    _cleanup_free_ char *dir = temp_folder();

    store = open_or_die(dir);
    mt_store_set_listener(store, on_events, NULL);
    set_up();
    test_create();
    test_idempotency();
    test_call_keys();
    test_depth();
    test_mixed_depth();
    test_children();
    test_room_of_capsule();
    test_sign_in();
    test_lists();
    test_waits_and_cancel();
    test_end();
    test_long_details();
    test_events();
    test_retention();
    test_removal();
    store = mt_store_close(store);
    remove_tree(dir);
    return TAP_DONE();
}
