// SPDX-License-Identifier: Apache-2.0
#include "store/test-util.h"

static mt_store *store;
static mt_user anna, bert, carl; // bert is a member of anna's namespace, carl is nobody
static mt_namespace work;
static mt_vfs_record data;

static void set_up(void)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_user_create(store, "anna", MT_ROLE_USER, &anna, &err));
    CHECK_OK(mt_store_user_create(store, "bert", MT_ROLE_USER, &bert, &err));
    CHECK_OK(mt_store_user_create(store, "carl", MT_ROLE_USER, &carl, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "work", &work, NULL, &err));
    CHECK_OK(mt_store_member_add(store, work.id, bert.id, &err));
    CHECK_OK(mt_store_vfs_create(store, NULL, work.id, "data", 0, &data, &err));
}

static mt_run_new plain(const mt_user *by, const char *capsule)
{
    return (mt_run_new){.namespace_id = work.id,
                        .capsule = capsule,
                        .version = 3,
                        .definition = "{\"image\":\"slim\"}",
                        .started_by = by,
                        .max_duration_ms = 600000,
                        .deadline = 123456,
                        .image = "slim",
                        .image_digest = "abcd"};
}

static void start(const mt_user *by, const char *capsule, char id[MT_ID_TEXT])
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_new n = plain(by, capsule);
    mt_run r = {0};

    CHECK_OK(mt_store_run_create(store, &n, NULL, NULL, &r, &err));
    (void)snprintf(id, MT_ID_TEXT, "%s", r.id);
    mt_run_done(&r);
}

static void test_create(void)
{
    _cleanup_err_ mt_err *err = NULL;
    const char *mounts[] = {data.id, data.id};
    mt_run_new n = plain(&anna, "sum");
    mt_run r = {0}, got = {0};

    n.vfs_ids = mounts;
    n.vfs_count = 2;
    n.labels = "{\"a\":\"b\"}";
    CHECK_OK(mt_store_run_create(store, &n, NULL, NULL, &r, &err));
    CHECK_STR(r.status, "Starting");
    CHECK_STR(r.end_reason, "");
    CHECK_STR(r.namespace_name, "work");
    CHECK_STR(r.definition, n.definition);
    CHECK_STR(r.request, "{}");
    CHECK_STR(r.labels, n.labels);
    CHECK_STR(r.limits_reached, "[]");
    CHECK_STR(r.failure_details, "");
    CHECK_STR(r.started_by, "anna");
    CHECK_INT(r.deadline, 123456);
    CHECK_INT(r.relation, MT_RELATION_OWNER);
    CHECK_OK(mt_store_run_get(store, &carl, r.id, &got, &err));
    CHECK_INT(got.relation, MT_RELATION_NONE);
    mt_run_done(&got);
    CHECK_CODE(mt_store_run_get(store, &anna, "nothing", &got, &err), NOT_FOUND);
    CHECK_CODE(mt_store_vfs_delete(store, data.id, false, &err), CONFLICT);
    CHECK_CODE(mt_store_namespace_delete(store, work.id, &err), CONFLICT);
    CHECK_CODE(mt_store_user_delete(store, anna.id, &err), CONFLICT);
    n.id = r.id;
    CHECK_CODE(mt_store_run_create(store, &n, NULL, NULL, &got, &err), ALREADY_EXISTS);
    n.id = "x";
    CHECK_CODE(mt_store_run_create(store, &n, NULL, NULL, &got, &err), INTERNAL);
    n.id = NULL;
    mounts[1] = "no-such-vfs";
    CHECK_CODE(mt_store_run_create(store, &n, NULL, NULL, &got, &err), CONFLICT);
    mt_run_done(&r);
}

static void test_idempotency(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_new n = plain(&anna, "twice");
    mt_run first = {0}, second = {0};
    char long_key[300];

    n.idempotency_key = "k 1";
    n.request_digest = "d1";
    CHECK_IS(mt_store_run_by_idempotency(store, &anna, "k 1", "d1", &first, &err), 1);
    CHECK_OK(mt_store_run_create(store, &n, NULL, NULL, &first, &err));
    CHECK_IS(mt_store_run_create(store, &n, NULL, NULL, &second, &err), 1);
    CHECK_STR(second.id, first.id);
    mt_run_done(&second);
    CHECK_OK(mt_store_run_by_idempotency(store, &anna, "k 1", "d1", &second, &err));
    CHECK_STR(second.id, first.id);
    mt_run_done(&second);
    n.request_digest = "d2";
    CHECK_CODE(mt_store_run_create(store, &n, NULL, NULL, &second, &err), IDEMPOTENCY_REUSED);
    // Another user's key is another key.
    n.started_by = &bert;
    CHECK_OK(mt_store_run_create(store, &n, NULL, NULL, &second, &err));
    CHECK(!mt_streq(second.id, first.id));
    memset(long_key, 'k', sizeof(long_key) - 1);
    long_key[sizeof(long_key) - 1] = '\0';
    n.idempotency_key = long_key;
    mt_run_done(&second);
    CHECK_CODE(mt_store_run_create(store, &n, NULL, NULL, &second, &err), BAD_FIELD);
    n.idempotency_key = "";
    CHECK_CODE(mt_store_run_create(store, &n, NULL, NULL, &second, &err), BAD_FIELD);
    mt_run_done(&first);
}

static void check_state(const char *id, const char *status, const char *reason, int64_t seq)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run r = {0};

    CHECK_OK(mt_store_run_get(store, NULL, id, &r, &err));
    CHECK_STR(r.status, status);
    CHECK_STR(r.end_reason, reason);
    CHECK_INT(r.seq, seq);
    CHECK_INT(r.date_ended != 0, reason[0] != '\0');
    mt_run_done(&r);
}

static const mt_run_change READY = {.ready = true, .ready_us = 777};
static const mt_run_change ENDED = {.ended = true,
                                    .status = "Error",
                                    .end_reason = "timeout",
                                    .failure_details = "out of time: maxDuration 00:10:00",
                                    .limits_reached = "[\"memory\"]",
                                    .limit_ms = 600000,
                                    .memory_peak_bytes = 5000000000,
                                    .ended_us = 999};

static void test_life(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_change phases = {.phases = "[{\"name\":\"mounts\",\"us\":7}]", .deadline = 5}, other;
    char id[MT_ID_TEXT];
    mt_run r = {0};

    start(&anna, "life", id);
    CHECK_OK(mt_store_run_apply_wait(store, id, 1, &phases, &err));
    check_state(id, "Starting", "", 1);
    CHECK_OK(mt_store_run_apply_wait(store, id, 4, &READY, &err));
    CHECK_IS(mt_store_run_apply_wait(store, id, 4, &ENDED, &err), 1);
    CHECK_IS(mt_store_run_apply_wait(store, id, 2, &ENDED, &err), 1);
    check_state(id, "Running", "", 4);
    CHECK_OK(mt_store_run_request_stop(store, id, "bert", &err));
    CHECK_IS(mt_store_run_request_stop(store, id, "anna", &err), 1);
    CHECK_OK(mt_store_run_apply_wait(store, id, 5, &ENDED, &err));
    check_state(id, "Error", "timeout", 5);
    // Nothing changes an ended run, whatever its number or without one.
    other = ENDED;
    other.status = "Finished";
    other.end_reason = "exited";
    CHECK_IS(mt_store_run_apply_wait(store, id, 6, &other, &err), 1);
    CHECK_IS(mt_store_run_apply_wait(store, id, 0, &other, &err), 1);
    CHECK_IS(mt_store_run_apply_wait(store, id, 0, &READY, &err), 1);
    CHECK_IS(mt_store_run_request_stop(store, id, "anna", &err), 1);
    CHECK_OK(mt_store_run_get(store, NULL, id, &r, &err));
    CHECK_STR(r.end_reason, "timeout");
    CHECK_STR(r.failure_details, ENDED.failure_details);
    CHECK_STR(r.limits_reached, "[\"memory\"]");
    CHECK_STR(r.phases, phases.phases);
    CHECK_STR(r.stop_requested_by, "bert");
    CHECK_INT(r.limit_ms, 600000);
    CHECK_INT(r.memory_peak_bytes, 5000000000);
    CHECK_INT(r.date_ready, 777);
    CHECK_INT(r.date_ended, 999);
    CHECK_INT(r.deadline, 5);
    mt_run_done(&r);
    other.status = "Running";
    CHECK_CODE(mt_store_run_apply_wait(store, id, 7, &other, &err), INTERNAL);
    CHECK_CODE(mt_store_run_apply_wait(store, "nothing", 7, &READY, &err), NOT_FOUND);
    CHECK_CODE(mt_store_run_request_stop(store, "nothing", "anna", &err), NOT_FOUND);
}

// The asynchronous form, as a loop uses it.
struct wait {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    int count, applied, skipped, failed;
};

static void on_done(int result, const mt_err *err, void *arg)
{
    struct wait *w = arg;

    pthread_mutex_lock(&w->lock);
    w->count++;
    w->applied += result == 0;
    w->skipped += result == 1;
    w->failed += result < 0 && mt_err_code(err) == MT_E_NOT_FOUND;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static void wait_for(struct wait *w, int count)
{
    struct timespec deadline;

    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 30;
    pthread_mutex_lock(&w->lock);
    while (w->count < count && pthread_cond_timedwait(&w->cond, &w->lock, &deadline) == 0)
        continue;
    pthread_mutex_unlock(&w->lock);
    CHECK_INT(w->count, count);
}

static void test_async(void)
{
    _cleanup_err_ mt_err *err = NULL;
    struct wait w = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    mt_run_change phases = {0};
    char id[MT_ID_TEXT], text[64];

    start(&anna, "async", id);
    for (int i = 1; i <= 200; i++) {
        (void)snprintf(text, sizeof(text), "[%d]", i);
        phases.phases = text; // copied: it changes at once
        CHECK_OK(mt_store_run_apply(store, id, i, &phases, on_done, &w, &err));
        CHECK_OK(mt_store_run_apply(store, id, i, &phases, on_done, &w, &err));
    }
    CHECK_OK(mt_store_run_apply(store, "nothing", 1, &phases, on_done, &w, &err));
    CHECK_OK(mt_store_run_apply(store, id, 201, &ENDED, NULL, NULL, &err));
    CHECK_OK(mt_store_run_apply(store, id, 202, &READY, on_done, &w, &err));
    wait_for(&w, 402);
    CHECK_INT(w.applied, 200);
    CHECK_INT(w.skipped, 201);
    CHECK_INT(w.failed, 1);
    check_state(id, "Error", "timeout", 201);
}

static size_t count_runs(const mt_user *as, const mt_run_filter *f)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_list l = {0};
    size_t n;

    CHECK_OK(mt_store_run_list(store, as, f, (mt_page){0}, &l, &err));
    for (size_t i = 0; i < l.count; i++) {
        if (l.items[i].definition || l.items[i].request)
            CHECK(!"a list carries no definitions");
    }
    n = l.count;
    mt_run_list_done(&l);
    return n;
}

static void test_lists(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_list l = {0}, live = {0};
    char ids[5][MT_ID_TEXT];
    int64_t before, now;

    CHECK_OK(mt_store_run_live_count(store, &before, &err));
    for (int i = 0; i < 5; i++)
        start(i < 3 ? &anna : &bert, i % 2 ? "odd" : "even", ids[i]);
    CHECK_OK(mt_store_run_live_count(store, &now, &err));
    CHECK_INT(now, before + 5);
    CHECK_OK(mt_store_run_live(store, &live, &err));
    CHECK_INT(live.count, now);
    CHECK_STR(live.items[live.count - 1].id, ids[4]);
    CHECK_STR(live.items[0].definition, "{\"image\":\"slim\"}");
    mt_run_list_done(&live);
    CHECK_INT(count_runs(&carl, NULL), 0);
    CHECK(count_runs(&anna, NULL) > 5);
    CHECK_INT(count_runs(&anna, NULL), count_runs(&bert, NULL));
    CHECK_INT(count_runs(NULL, NULL), count_runs(&bert, NULL));
    CHECK_INT(count_runs(&anna, &(mt_run_filter){.capsule = "odd"}), 2);
    CHECK_INT(count_runs(&anna, &(mt_run_filter){.namespace_id = work.id, .capsule = "even"}), 3);
    CHECK_INT(count_runs(&anna, &(mt_run_filter){.namespace_id = "x", .capsule = "even"}), 0);
    CHECK_INT(count_runs(&anna, &(mt_run_filter){.capsule = "even", .started_by_id = bert.id}), 1);
    CHECK_INT(count_runs(&anna, &(mt_run_filter){.id_ending = ids[2] + 20}), 1);
    CHECK_INT(count_runs(&anna, &(mt_run_filter){.status = "Starting"}), now);
    CHECK_INT(count_runs(&anna, &(mt_run_filter){.status = "Error"}), 2);
    CHECK_INT(count_runs(&anna, &(mt_run_filter){.status = "' OR 1=1 --"}), 0);
    CHECK_OK(mt_store_run_list(store, &anna, NULL, (mt_page){NULL, 3}, &l, &err));
    CHECK_INT(l.count, 3);
    CHECK_STR(l.items[0].id, ids[4]);
    CHECK_STR(l.items[2].id, ids[2]);
    CHECK_OK(mt_store_run_list(store, &anna, NULL, (mt_page){l.next, 1}, &live, &err));
    CHECK_STR(live.items[0].id, ids[1]);
    mt_run_list_done(&live);
    mt_run_list_done(&l);
    CHECK_CODE(mt_store_run_list(store, &anna, NULL, (mt_page){"zz", 1}, &l, &err), BAD_FIELD);
}

// What a user sees of several namespaces stands in one order, whatever others have between it.
static void test_lists_of_several(void)
{
    enum { EACH = 4 };
    _cleanup_err_ mt_err *err = NULL;
    mt_namespace spaces[3] = {0};
    char ids[3 * EACH][MT_ID_TEXT], next[MT_STORE_CURSOR] = "";
    mt_user dora = {0}, emil = {0};
    int at = 3 * EACH;

    CHECK_OK(mt_store_user_create(store, "dora", MT_ROLE_USER, &dora, &err));
    CHECK_OK(mt_store_user_create(store, "emil", MT_ROLE_USER, &emil, &err));
    for (int i = 0; i < 3; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "several-%d", i);
        CHECK_OK(mt_store_namespace_create(store, i ? &dora : &emil, name, &spaces[i], NULL, &err));
    }
    for (int i = 0; i < 3 * EACH; i++) {
        mt_run_new n = plain(&emil, "several");
        mt_run r = {0};

        n.namespace_id = spaces[i % 3].id;
        CHECK_OK(mt_store_run_create(store, &n, NULL, NULL, &r, &err));
        (void)snprintf(ids[i], MT_ID_TEXT, "%s", r.id);
        mt_run_done(&r);
    }
    CHECK_INT(count_runs(&dora, NULL), 2 * EACH);
    CHECK_INT(count_runs(&dora, &(mt_run_filter){.status = "Starting"}), 2 * EACH);
    CHECK_OK(mt_store_member_add(store, spaces[0].id, dora.id, &err));
    do {
        mt_run_list l = {0};

        CHECK_OK(
            mt_store_run_list(store, &dora, NULL, (mt_page){*next ? next : NULL, 5}, &l, &err));
        for (size_t i = 0; i < l.count && at > 0; i++)
            CHECK_STR(l.items[i].id, ids[--at]);
        (void)snprintf(next, sizeof(next), "%s", l.next);
        mt_run_list_done(&l);
    } while (*next);
    CHECK_INT(at, 0);
}

static void end_all(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_list l = {0};

    CHECK_OK(mt_store_run_live(store, &l, &err));
    for (size_t i = 0; i < l.count; i++)
        CHECK_OK(mt_store_run_apply_wait(store, l.items[i].id, 0, &ENDED, &err));
    mt_run_list_done(&l);
}

// With all runs ended, nothing holds the file system, the namespace or its people.
static void test_removal(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_list l = {0};
    mt_namespace gone;

    end_all();
    CHECK_OK(mt_store_user_delete(store, bert.id, &err)); // his runs stay, under his name
    CHECK_INT(count_runs(&anna, &(mt_run_filter){.capsule = "odd"}), 2);
    CHECK_OK(mt_store_run_list(store, &anna, NULL, (mt_page){NULL, 1}, &l, &err));
    CHECK_STR(l.items[0].started_by, "bert");
    CHECK_STR(l.items[0].started_by_id, "");
    mt_run_list_done(&l);
    CHECK_OK(mt_store_vfs_delete(store, data.id, false, &err));
    CHECK_OK(mt_store_namespace_delete(store, work.id, &err));
    CHECK_CODE(mt_store_namespace_get(store, &anna, "work", &gone, &err), NOT_FOUND);
    CHECK_INT(count_runs(NULL, NULL), 0);
    CHECK_OK(mt_store_user_delete(store, anna.id, &err));
}

int main(void)
{
    _cleanup_free_ char *dir = temp_folder();

    store = open_or_die(dir);
    set_up();
    test_create();
    test_idempotency();
    test_life();
    test_async();
    test_lists();
    test_removal();
    test_lists_of_several();
    store = mt_store_close(store);
    remove_tree(dir);
    return TAP_DONE();
}
