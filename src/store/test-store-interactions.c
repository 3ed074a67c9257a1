// SPDX-License-Identifier: Apache-2.0
// Runs of interactions: made, asked for, listed, ended, removed.
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

static mt_interaction_run_new plain(const mt_user *by, const char *interaction, char id[MT_ID_TEXT])
{
    mt_id_new(id);
    return (mt_interaction_run_new){.id = id,
                                    .namespace_id = work.id,
                                    .interaction = interaction,
                                    .version = 3,
                                    .model = "deepseek.deepseek-v4-flash",
                                    .inputs = "{\"question\":\"why\"}",
                                    .plan = "{\"task\":\"Answer: why\"}",
                                    .started_by = by,
                                    .max_duration_ms = 600000,
                                    .deadline = 123456};
}

static int create(const mt_interaction_run_new *n, mt_err **err)
{
    mt_interaction_run r = {0};
    int rc = mt_store_interaction_run_create(store, n, &r, err);

    mt_interaction_run_done(&r);
    return rc;
}

static int start_below(const char *parent_id, const char *parent_app_id, char id[MT_ID_TEXT],
                       mt_err **err)
{
    mt_interaction_run_new n = plain(&anna, "below", id);

    n.parent_id = parent_id;
    n.parent_app_id = parent_app_id;
    return create(&n, err);
}

static void start(const mt_user *by, const char *interaction, char id[MT_ID_TEXT])
{
    _cleanup_err_ mt_err *err = NULL;
    mt_interaction_run_new n = plain(by, interaction, id);

    CHECK_OK(create(&n, &err));
}

static const mt_interaction_end ANSWERED = {
    .status = "Finished", .end_reason = "answered", .output = "{\"answer\":42}"};

static void end(const char *id)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_interaction_run_end(store, id, &ANSWERED, &err));
}

static int start_app(const char *parent_app_id, char id[MT_ID_TEXT], mt_err **err)
{
    mt_app_run_new n = {.id = id,
                        .namespace_id = work.id,
                        .app = "a",
                        .version = 1,
                        .inputs = "{}",
                        .started_by = &anna,
                        .parent_app_id = parent_app_id,
                        .language = 1};
    mt_app_run r = {0};
    int rc;

    mt_id_new(id);
    rc = mt_store_app_run_create(store, &n, &r, err);
    mt_app_run_done(&r);
    return rc;
}

static void end_app(const char *id)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_app_end how = {.status = "Finished", .end_reason = "returned"};

    CHECK_OK(mt_store_app_run_end(store, id, &how, &err));
}

static int start_capsule(const char *parent_id, char id[MT_ID_TEXT], mt_err **err)
{
    mt_run_new n = {.namespace_id = work.id,
                    .capsule = "c",
                    .version = 1,
                    .definition = "{}",
                    .started_by = &anna,
                    .parent_id = parent_id};
    mt_run r = {0};
    int rc = mt_store_run_create(store, &n, NULL, NULL, &r, err);

    if (rc == 0)
        (void)snprintf(id, MT_ID_TEXT, "%s", r.id);
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
    mt_interaction_run_list interactions = {0};
    mt_app_run_list apps = {0};
    mt_run_list runs = {0};

    CHECK_OK(mt_store_interaction_run_live(store, &interactions, &err));
    CHECK_OK(mt_store_app_run_live(store, &apps, &err));
    CHECK_OK(mt_store_run_live(store, &runs, &err));
    for (size_t i = 0; i < interactions.count; i++)
        end(interactions.items[i].id);
    for (size_t i = 0; i < apps.count; i++)
        end_app(apps.items[i].id);
    for (size_t i = 0; i < runs.count; i++)
        end_capsule(runs.items[i].id);
    mt_interaction_run_list_done(&interactions);
    mt_app_run_list_done(&apps);
    mt_run_list_done(&runs);
}

// ---- making ----

static void check_made(const mt_interaction_run *r, const mt_interaction_run_new *n)
{
    CHECK_STR(r->id, n->id);
    CHECK_STR(r->namespace_id, work.id);
    CHECK_STR(r->namespace_name, "work");
    CHECK_STR(r->interaction, "ask");
    CHECK_INT(r->version, 3);
    CHECK_STR(r->model, n->model);
    CHECK_STR(r->status, "Running");
    CHECK_STR(r->end_reason, "");
    CHECK_STR(r->failure_details, "");
    CHECK_STR(r->cancelled_by, "");
    CHECK_STR(r->cancel_requested_by, "");
    CHECK_STR(r->started_by, "anna");
    CHECK_STR(r->started_by_id, anna.id);
    CHECK_STR(r->parent_id, "");
    CHECK_STR(r->parent_app_id, "");
    CHECK_STR(r->cost, "");
    CHECK_INT(r->tokens_in, -1);
    CHECK_INT(r->tokens_out, -1);
    CHECK_INT(r->attempt_count, 0);
    CHECK_INT(r->limit_ms, 0);
    CHECK_INT(r->deadline, 123456);
    CHECK_INT(r->max_duration_ms, 600000);
    CHECK(r->date_created > 0 && r->date_ended == 0);
    CHECK_INT(r->relation, MT_RELATION_OWNER);
}

static void test_create(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT], other[MT_ID_TEXT];
    mt_interaction_run_new n = plain(&anna, "ask", id);
    mt_interaction_run r = {0}, got = {0};

    CHECK_OK(mt_store_interaction_run_create(store, &n, &r, &err));
    check_made(&r, &n);
    CHECK_STR(r.inputs, n.inputs);
    CHECK_STR(r.plan, n.plan);
    CHECK(!r.output);
    mt_interaction_run_done(&r);
    CHECK_OK(mt_store_interaction_run_get(store, &carl, id, &got, &err));
    CHECK_INT(got.relation, MT_RELATION_NONE);
    CHECK_STR(got.plan, n.plan);
    mt_interaction_run_done(&got);
    CHECK_OK(mt_store_interaction_run_look(store, &anna, id, &got, &err));
    check_made(&got, &n);
    CHECK(!got.inputs && !got.plan && !got.output);
    mt_interaction_run_done(&got);
    CHECK_CODE(mt_store_interaction_run_look(store, &anna, "nothing", &got, &err), NOT_FOUND);
    CHECK_CODE(mt_store_interaction_run_get(store, &anna, "nothing", &got, &err), NOT_FOUND);
    CHECK_CODE(create(&n, &err), ALREADY_EXISTS);
    n.id = "x";
    CHECK_CODE(create(&n, &err), INTERNAL);
    n = plain(&anna, "ask", other);
    n.namespace_id = "nowhere";
    CHECK_CODE(create(&n, &err), CONFLICT);
}

static void test_idempotency(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char first[MT_ID_TEXT], second[MT_ID_TEXT], long_key[300];
    mt_interaction_run_new n = plain(&anna, "twice", first);
    mt_interaction_run r = {0};
    mt_app_run app = {0};
    mt_run run = {0};

    n.idempotency_key = "k";
    n.request_digest = "d1";
    CHECK_IS(mt_store_interaction_run_by_idempotency(store, &anna, "k", "d1", &r, &err), 1);
    CHECK_OK(create(&n, &err));
    mt_id_new(second);
    n.id = second;
    CHECK_IS(mt_store_interaction_run_create(store, &n, &r, &err), 1);
    CHECK_STR(r.id, first);
    CHECK_STR(r.inputs, n.inputs);
    mt_interaction_run_done(&r);
    CHECK_OK(mt_store_interaction_run_by_idempotency(store, &anna, "k", "d1", &r, &err));
    CHECK_STR(r.id, first);
    mt_interaction_run_done(&r);
    // A start of something else is another request, whatever its digest.
    CHECK_CODE(mt_store_run_by_idempotency(store, &anna, "k", "d1", &run, &err),
               IDEMPOTENCY_REUSED);
    CHECK_CODE(mt_store_app_run_by_idempotency(store, &anna, "k", "d1", &app, &err),
               IDEMPOTENCY_REUSED);
    n.request_digest = "d2";
    CHECK_CODE(create(&n, &err), IDEMPOTENCY_REUSED);
    n.started_by = &bert;
    CHECK_OK(create(&n, &err));
    memset(long_key, 'k', sizeof(long_key) - 1);
    long_key[sizeof(long_key) - 1] = '\0';
    n.idempotency_key = long_key;
    CHECK_CODE(create(&n, &err), BAD_FIELD);
    CHECK_CODE(mt_store_interaction_run_by_idempotency(store, &anna, "", "d1", &r, &err),
               BAD_FIELD);
    end(first);
    CHECK_OK(mt_store_interaction_run_by_idempotency(store, &anna, "k", "d1", &r, &err));
    CHECK_STR(r.output, "{\"answer\":42}");
    mt_interaction_run_done(&r);
    CHECK_OK(mt_store_interaction_run_delete(store, first, &err)); // with its key
    CHECK_IS(mt_store_interaction_run_by_idempotency(store, &anna, "k", "d1", &r, &err), 1);
    end_all();
}

// The key of an app run's call stays as long as that run lives.
static void test_call_keys(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char app[MT_ID_TEXT], id[MT_ID_TEXT], key[64];
    mt_interaction_run_new n = plain(&anna, "called", id);
    mt_interaction_run r = {0};

    CHECK_OK(start_app(NULL, app, &err));
    (void)snprintf(key, sizeof(key), "app-run %s 1", app);
    n.idempotency_key = key;
    n.request_digest = "d";
    n.parent_app_id = app;
    CHECK_OK(create(&n, &err));
    write_sql(store, "UPDATE idempotency SET date_created = 1");
    CHECK_OK(mt_store_interaction_run_by_idempotency(store, &anna, key, "d", &r, &err));
    CHECK_STR(r.id, id);
    CHECK_STR(r.parent_app_id, app);
    mt_interaction_run_done(&r);
    end_app(app);
    CHECK_IS(mt_store_interaction_run_by_idempotency(store, &anna, key, "d", &r, &err), 1);
    end_all();
}

// ---- who starts them ----

static void test_parents(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char chain[MT_STORE_RUN_DEPTH + 1][MT_ID_TEXT], app[MT_ID_TEXT], id[MT_ID_TEXT];
    mt_interaction_run r = {0};

    // However deep it stands, who lives may ask.
    CHECK_OK(start_capsule(NULL, chain[0], &err));
    for (int i = 1; i <= MT_STORE_RUN_DEPTH; i++)
        CHECK_OK(start_capsule(chain[i - 1], chain[i], &err));
    CHECK_CODE(start_capsule(chain[MT_STORE_RUN_DEPTH], id, &err), TOO_DEEP);
    CHECK_OK(start_below(chain[MT_STORE_RUN_DEPTH], NULL, id, &err));
    CHECK_OK(mt_store_interaction_run_get(store, NULL, id, &r, &err));
    CHECK_STR(r.parent_id, chain[MT_STORE_RUN_DEPTH]);
    mt_interaction_run_done(&r);
    end_capsule(chain[1]);
    CHECK_CODE(start_below(chain[1], NULL, id, &err), UNAUTHENTICATED);
    CHECK_CODE(start_below("no run", NULL, id, &err), UNAUTHENTICATED);
    CHECK_OK(start_app(NULL, app, &err));
    CHECK_OK(start_below(NULL, app, id, &err));
    end_app(app);
    CHECK_CODE(start_below(NULL, app, id, &err), UNAUTHENTICATED);
    CHECK_CODE(start_below(NULL, "no run", id, &err), UNAUTHENTICATED);
    end_all();
}

// Apps and interactions below an app run count together.
static void test_room_of_app(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char parent[MT_ID_TEXT], below[MT_STORE_APP_CHILDREN][MT_ID_TEXT], id[MT_ID_TEXT];
    mt_app_children c = {0};

    CHECK_OK(start_app(NULL, parent, &err));
    CHECK_OK(start_app(parent, below[0], &err));
    for (int i = 1; i < MT_STORE_APP_CHILDREN; i++)
        CHECK_OK(start_below(NULL, parent, below[i], &err));
    CHECK_CODE(start_below(NULL, parent, id, &err), CAPACITY_EXCEEDED);
    CHECK_CODE(start_app(parent, id, &err), CAPACITY_EXCEEDED);
    CHECK_OK(start_below(NULL, below[0], id, &err)); // each has its own
    end(below[3]);
    CHECK_OK(start_app(parent, id, &err));
    end(below[4]);
    end_app(parent); // what it has left behind can still be asked for
    CHECK_OK(mt_store_app_run_children(store, parent, &c, &err));
    CHECK_INT(c.capsule_run_count, 0);
    CHECK_INT(c.app_run_count, 2);
    CHECK_INT(c.interaction_run_count, MT_STORE_APP_CHILDREN - 3);
    CHECK_STR(c.interaction_runs[0], below[1]);
    mt_app_children_done(&c);
    CHECK_OK(mt_store_app_run_children(store, "", &c, &err));
    CHECK_INT(c.interaction_run_count, 0);
    mt_app_children_done(&c);
    end_all();
}

// Below a capsule run all count together.
static void test_room_of_capsule(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char root[MT_ID_TEXT], capsule[MT_ID_TEXT], id[MT_ID_TEXT];

    CHECK_OK(start_capsule(NULL, root, &err));
    CHECK_OK(start_capsule(root, capsule, &err));
    for (int i = 1; i < MT_STORE_RUN_CHILDREN; i++)
        CHECK_OK(start_below(i % 2 ? root : capsule, NULL, id, &err));
    CHECK_CODE(start_below(root, NULL, id, &err), CAPACITY_EXCEEDED);
    CHECK_CODE(start_capsule(root, capsule, &err), CAPACITY_EXCEEDED);
    CHECK_OK(start_below(NULL, NULL, id, &err));
    end_all();
}

// ---- costs ----

#define NINES "9999999999999999999999999999999999999999" // 40
#define ZEROS "0000000000000000000000000000000000000000"

static const char *added(const char *sum, const char *more)
{
    static char text[MT_STORE_COST];

    (void)snprintf(text, sizeof(text), "%s", sum);
    return cost_add(text, more) ? text : "none";
}

static void test_costs(void)
{
    CHECK_STR(added("", "0"), "0");
    CHECK_STR(added("", "0.50"), "0.5");
    CHECK_STR(added("", "007"), "7");
    CHECK_STR(added("0.5", "0.5"), "1");
    CHECK_STR(added("0.1", "0.2"), "0.3");
    CHECK_STR(added("99.99", "0.01"), "100");
    CHECK_STR(added("12.5", "1000"), "1012.5");
    CHECK_STR(added("0.00000028", "0.000000000000000000001"), "0.000000280000000000001");
    // The most that may come of prices, 12 digits before and behind the point, of a million.
    CHECK_STR(added("9223372036854775806999990.776627963145224193",
                    "9223372036854775806999990.776627963145224193"),
              "18446744073709551613999981.553255926290448386");
    // A text has 47 places: what is behind them goes.
    CHECK_STR(added("9." NINES "99999", "1"), "10." NINES "9999");
    CHECK_STR(added("1" NINES "99", "0.5"), "1" NINES "99.5");
    CHECK_STR(added("123" NINES "99", "0.55"), "123" NINES "99.5");
    CHECK_STR(added("1234" NINES "99", "0.5"), "1234" NINES "99");
    CHECK_STR(added("99999" NINES "99", "0.1"), "99999" NINES "99");
    CHECK_STR(added("99999" NINES "99", "1"), "99999" NINES "99");
    CHECK_STR(added("0." NINES "99", "0." ZEROS "01"), "1");
    for (size_t i = 0; i < 10; i++) {
        static const char *const NONE[] = {"",   ".",   "1.",  ".5", "-1",
                                           "+1", "1e3", "1,5", "1 ", "1.2.3"};

        CHECK(!cost_is(NONE[i]));
        CHECK_STR(added("1", NONE[i]), "none");
    }
    CHECK(cost_is("12345" NINES "12"));
    CHECK(!cost_is("123456" NINES "12"));
    CHECK(cost_is("1.345" NINES "12"));
    CHECK(!cost_is("1.3456" NINES "12"));
    CHECK(!cost_is(NINES NINES NINES));
}

// ---- attempts ----

static int64_t begin(const char *id)
{
    _cleanup_err_ mt_err *err = NULL;
    int64_t number = -1;

    CHECK_OK(mt_store_interaction_attempt_begin(store, id, &number, &err));
    return number;
}

static void answer(const char *id, int64_t number, int64_t in, int64_t out, const char *cost)
{
    _cleanup_err_ mt_err *err = NULL;
    char reasoning[] = "hm", text[] = "{\"a\":", faults[] = "[\"it ends too early\"]";
    const mt_interaction_attempt a = {.number = number,
                                      .outcome = "wrongAnswer",
                                      .faults = faults,
                                      .answer = text,
                                      .reasoning = reasoning,
                                      .model = "deepseek-v4-flash-0731",
                                      .http_status = 200,
                                      .requests = 2,
                                      .tokens_in = in,
                                      .tokens_out = out};

    CHECK_OK(mt_store_interaction_attempt_end(store, id, &a, cost, &err));
}

static void check_use(const char *id, int64_t in, int64_t out, const char *cost)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_interaction_run r = {0};

    CHECK_OK(mt_store_interaction_run_look(store, NULL, id, &r, &err));
    CHECK_INT(r.tokens_in, in);
    CHECK_INT(r.tokens_out, out);
    CHECK_STR(r.cost, cost);
    mt_interaction_run_done(&r);
}

static const mt_interaction_attempt_page ALL = {0};

static void test_attempts(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    int64_t number = -1;
    mt_interaction_attempt_list l = {0};
    const mt_interaction_attempt bare = {
        .number = 3, .outcome = "answered", .tokens_in = -7, .tokens_out = 5};

    start(&anna, "asked", id);
    CHECK_OK(mt_store_interaction_attempt_list(store, id, ALL, &l, &err));
    CHECK_INT(l.count, 0);
    mt_interaction_attempt_list_done(&l);
    CHECK_INT(begin(id), 1);
    CHECK_OK(mt_store_interaction_attempt_list(store, id, ALL, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_INT(l.items[0].number, 1);
    CHECK_STR(l.items[0].outcome, "");
    CHECK_STR(l.items[0].faults, "[]");
    CHECK_STR(l.items[0].answer, "");
    CHECK_STR(l.items[0].reasoning, "");
    CHECK_STR(l.items[0].model, "");
    CHECK_INT(l.items[0].tokens_in, -1);
    CHECK_INT(l.items[0].tokens_out, -1);
    CHECK(l.items[0].date_started > 0 && l.items[0].date_ended == 0);
    mt_interaction_attempt_list_done(&l);
    check_use(id, -1, -1, "");
    answer(id, 1, 100, -1, "0.1");
    check_use(id, 100, -1, "0.1");
    CHECK_INT(begin(id), 2);
    answer(id, 2, 50, 7, "0.2");
    check_use(id, 150, 7, "0.3");
    CHECK_INT(begin(id), 3);
    CHECK_OK(mt_store_interaction_attempt_end(store, id, &bare, NULL, &err));
    check_use(id, 150, 12, "0.3");
    CHECK_OK(mt_store_interaction_attempt_list(store, id, ALL, &l, &err));
    CHECK_INT(l.count, 3);
    CHECK_STR(l.items[1].outcome, "wrongAnswer");
    CHECK_STR(l.items[1].faults, "[\"it ends too early\"]");
    CHECK_STR(l.items[1].answer, "{\"a\":");
    CHECK_STR(l.items[1].reasoning, "hm");
    CHECK_STR(l.items[1].model, "deepseek-v4-flash-0731");
    CHECK_INT(l.items[1].http_status, 200);
    CHECK_INT(l.items[1].requests, 2);
    CHECK_INT(l.items[1].tokens_in, 50);
    CHECK_INT(l.items[1].tokens_out, 7);
    CHECK(l.items[1].date_ended >= l.items[1].date_started);
    CHECK_INT(l.items[2].number, 3);
    CHECK_STR(l.items[2].outcome, "answered");
    CHECK_STR(l.items[2].faults, "[]");
    CHECK_INT(l.items[2].tokens_in, -1);
    mt_interaction_attempt_list_done(&l);
    end(id);
    CHECK_CODE(mt_store_interaction_attempt_begin(store, id, &number, &err), RUN_ENDED);
    CHECK_CODE(mt_store_interaction_attempt_end(store, id, &bare, NULL, &err), RUN_ENDED);
    CHECK_INT(number, -1);
    CHECK_CODE(mt_store_interaction_attempt_begin(store, "nothing", &number, &err), NOT_FOUND);
    CHECK_CODE(mt_store_interaction_attempt_end(store, "nothing", &bare, NULL, &err), NOT_FOUND);
    CHECK_OK(mt_store_interaction_attempt_list(store, "nothing", ALL, &l, &err));
    CHECK_INT(l.count, 0);
}

// The text of an attempt that ends, of so many bytes.
static void answer_long(const char *id, int64_t number, char c, size_t len, size_t reasoning)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20), aside = MT_BUF_INIT(1 << 20);
    mt_interaction_attempt a = {.number = number, .outcome = "wrongAnswer"};

    for (size_t i = 0; i < len; i++)
        (void)mt_buf_add(&b, &c, 1);
    for (size_t i = 0; i < reasoning; i++)
        (void)mt_buf_add(&aside, "r", 1);
    a.answer = (char *)mt_buf_str(&b);
    a.reasoning = (char *)mt_buf_str(&aside);
    CHECK_OK(mt_store_interaction_attempt_end(store, id, &a, NULL, &err));
}

static void test_attempt_pages(void)
{
    enum { LONG = MT_STORE_ATTEMPT_START + 100 };
    static const struct {
        mt_interaction_attempt_page page;
        size_t count, first;
        bool more;
    } cases[] = {
        {{0}, 4, 0, false},
        {{.limit = 2}, 2, 0, true},
        {{.limit = 4}, 4, 0, false},
        {{.after = 2}, 4, 2, false},
        {{.after = 2, .limit = 1}, 3, 2, true},
        {{.after = 9, .limit = 1, .bytes = 1}, 4, 4, false},
        {{.bytes = 1}, 1, 0, true},         // one at least
        {{.bytes = LONG + 50}, 1, 0, true}, // what is said apart counts, too
        {{.bytes = 2 * LONG + 150}, 2, 0, true},
        {{.after = 3, .bytes = 1}, 4, 3, false},
    };
    _cleanup_err_ mt_err *err = NULL;
    mt_interaction_attempt_list l = {0};
    char id[MT_ID_TEXT];

    start(&anna, "asked", id);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(begin(id), i + 1);
        answer_long(id, i + 1, (char)('a' + i), LONG, 20);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        CHECK_OK(mt_store_interaction_attempt_list(store, id, cases[i].page, &l, &err));
        CHECK_INT(l.count, cases[i].count);
        CHECK_INT(l.first, cases[i].first);
        CHECK_INT(l.more, cases[i].more);
        for (size_t k = 0; k < l.count; k++) {
            bool whole = k >= l.first;

            CHECK_INT(l.items[k].number, k + 1);
            CHECK_INT(l.items[k].answer[0], 'a' + (int)k);
            CHECK_INT(strlen(l.items[k].answer), whole ? LONG : MT_STORE_ATTEMPT_START + 1);
            CHECK_INT(strlen(l.items[k].reasoning), whole ? 20 : 0);
        }
        mt_interaction_attempt_list_done(&l);
    }
    end(id);
}

static void test_wrong_attempts(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    mt_interaction_attempt a = {.number = 1, .outcome = "answered", .tokens_in = 1};

    start(&anna, "asked", id);
    CHECK_CODE(mt_store_interaction_attempt_end(store, id, &a, NULL, &err), INTERNAL);
    CHECK_INT(begin(id), 1);
    CHECK_CODE(mt_store_interaction_attempt_end(store, id, &a, "much", &err), INTERNAL);
    a.number = 2;
    CHECK_CODE(mt_store_interaction_attempt_end(store, id, &a, NULL, &err), INTERNAL);
    a.number = 1;
    a.outcome[0] = '\0';
    CHECK_CODE(mt_store_interaction_attempt_end(store, id, &a, NULL, &err), INTERNAL);
    answer(id, 1, INT64_MAX, 3, NULL);
    (void)snprintf(a.outcome, sizeof(a.outcome), "answered");
    CHECK_CODE(mt_store_interaction_attempt_end(store, id, &a, "1", &err), INTERNAL); // it has
    check_use(id, INT64_MAX, 3, "");
    // What a provider tells may be anything.
    CHECK_INT(begin(id), 2);
    answer(id, 2, INT64_MAX, INT64_MIN, "0");
    check_use(id, INT64_MAX, 3, "0");
    end(id);
}

// The server ended while the model was asked: it is asked again, in the same attempt.
static void test_begin_again(const char *dir)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    mt_interaction_attempt_list l = {0};
    mt_interaction_run r = {0};

    start(&anna, "asked", id);
    CHECK_INT(begin(id), 1);
    answer(id, 1, 1, 1, NULL);
    CHECK_INT(begin(id), 2);
    write_sql(store, "UPDATE interaction_attempts SET date_started = 5 WHERE date_ended = 0");
    store = mt_store_close(store);
    store = open_or_die(dir);
    CHECK_INT(begin(id), 2);
    CHECK_OK(mt_store_interaction_attempt_list(store, id, ALL, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK(l.items[1].date_started > 5 && l.items[1].date_ended == 0);
    mt_interaction_attempt_list_done(&l);
    CHECK_OK(mt_store_interaction_run_look(store, NULL, id, &r, &err));
    CHECK_INT(r.attempt_count, 2);
    mt_interaction_run_done(&r);
    answer(id, 2, 1, 1, NULL);
    CHECK_INT(begin(id), 3);
    end(id);
}

// ---- lists ----

static size_t count_runs(const mt_user *as, const mt_interaction_run_filter *f)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_interaction_run_list l = {0};
    size_t n;

    CHECK_OK(mt_store_interaction_run_list(store, as, f, (mt_page){NULL, 1000}, &l, &err));
    n = l.count;
    mt_interaction_run_list_done(&l);
    return n;
}

static void check_live_count(const char *user_id, int64_t expected)
{
    _cleanup_err_ mt_err *err = NULL;
    int64_t count = -1;

    CHECK_OK(mt_store_interaction_run_live_count(store, user_id, &count, &err));
    CHECK_INT(count, expected);
}

typedef mt_interaction_run_filter filter;

static void check_filters(char ids[3][MT_ID_TEXT], const char *app)
{
    CHECK_INT(count_runs(&carl, NULL), 0);
    CHECK_INT(count_runs(&carl, &(filter){.status = "Running"}), 0);
    CHECK_INT(count_runs(&anna, &(filter){.status = "Running"}), 3);
    CHECK_INT(count_runs(NULL, &(filter){.status = "Running"}), 3);
    CHECK_INT(count_runs(&bert, &(filter){.interaction = "listed", .status = "Finished"}), 1);
    CHECK_INT(count_runs(NULL, &(filter){.interaction = "listed", .namespace_id = work.id}), 3);
    CHECK_INT(count_runs(&anna, &(filter){.status = "Running", .namespace_id = work.id}), 3);
    CHECK_INT(count_runs(&carl, &(filter){.status = "Running", .namespace_id = work.id}), 0);
    CHECK_INT(count_runs(NULL, &(filter){.namespace_id = "nowhere"}), 0);
    CHECK_INT(count_runs(&anna, &(filter){.interaction = "listed", .started_by_id = bert.id}), 1);
    CHECK_INT(count_runs(&anna, &(filter){.id_ending = ids[1] + 20}), 1);
    CHECK_INT(count_runs(&anna, &(filter){.parent_app_id = app}), 1);
    CHECK_INT(count_runs(&carl, &(filter){.parent_app_id = app}), 0);
    CHECK_INT(count_runs(NULL, &(filter){.parent_app_id = ""}), 0);
}

static void test_lists(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char ids[3][MT_ID_TEXT], below[MT_ID_TEXT], app[MT_ID_TEXT], next[MT_STORE_CURSOR];
    const filter listed = {.interaction = "listed"};
    mt_interaction_run_list l = {0};

    start(&anna, "listed", ids[0]);
    start(&bert, "listed", ids[1]);
    start(&anna, "listed", ids[2]);
    CHECK_OK(start_app(NULL, app, &err));
    CHECK_OK(start_below(NULL, app, below, &err));
    end(ids[2]);
    CHECK_OK(mt_store_interaction_run_list(store, &anna, &listed, (mt_page){NULL, 2}, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_STR(l.items[0].id, ids[2]);
    CHECK_STR(l.items[1].id, ids[1]);
    CHECK(!l.items[0].inputs && !l.items[0].plan && !l.items[0].output);
    CHECK_STR(l.items[0].failure_details, "");
    (void)snprintf(next, sizeof(next), "%s", l.next);
    mt_interaction_run_list_done(&l);
    CHECK_OK(mt_store_interaction_run_list(store, &anna, &listed, (mt_page){next, 2}, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].id, ids[0]);
    CHECK_STR(l.next, "");
    mt_interaction_run_list_done(&l);
    CHECK_CODE(mt_store_interaction_run_list(store, &anna, NULL, (mt_page){"x", 2}, &l, &err),
               BAD_FIELD);
    check_filters(ids, app);
    CHECK_OK(mt_store_interaction_run_live(store, &l, &err));
    CHECK_INT(l.count, 3);
    CHECK_STR(l.items[0].id, ids[0]);
    CHECK_STR(l.items[2].id, below);
    CHECK(!l.items[0].inputs && !l.items[0].plan);
    mt_interaction_run_list_done(&l);
    check_live_count(NULL, 3);
    check_live_count(bert.id, 1);
    check_live_count(carl.id, 0);
    end_all();
    check_live_count(NULL, 0);
}

// ---- the end ----

static void test_cancel(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    mt_interaction_run r = {0};

    start(&anna, "a", id);
    CHECK_OK(mt_store_interaction_run_request_cancel(store, id, "bert", &err));
    CHECK_IS(mt_store_interaction_run_request_cancel(store, id, "anna", &err), 1);
    CHECK_CODE(mt_store_interaction_run_request_cancel(store, "nothing", "anna", &err), NOT_FOUND);
    end(id);
    CHECK_IS(mt_store_interaction_run_request_cancel(store, id, "anna", &err), 1);
    CHECK_OK(mt_store_interaction_run_get(store, NULL, id, &r, &err));
    CHECK_STR(r.cancel_requested_by, "bert");
    mt_interaction_run_done(&r);
}

static void test_end(void)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_interaction_end how = {.status = "Error",
                                    .end_reason = "timeout",
                                    .failure_details = "it took too long",
                                    .cancelled_by = "bert",
                                    .limit_ms = 7};
    char id[MT_ID_TEXT];
    mt_interaction_run r = {0};
    mt_interaction_attempt_list l = {0};

    start(&anna, "a", id);
    CHECK_CODE(mt_store_interaction_run_end(
                   store, id, &(mt_interaction_end){.status = "Running", .end_reason = "x"}, &err),
               INTERNAL);
    CHECK_CODE(
        mt_store_interaction_run_end(store, id, &(mt_interaction_end){.status = "Error"}, &err),
        INTERNAL);
    CHECK_CODE(mt_store_interaction_run_end(store, "nothing", &how, &err), NOT_FOUND);
    CHECK_INT(begin(id), 1);
    answer(id, 1, 1, 1, NULL);
    CHECK_INT(begin(id), 2);
    CHECK_OK(mt_store_interaction_run_end(store, id, &how, &err));
    CHECK_IS(mt_store_interaction_run_end(store, id, &ANSWERED, &err), 1);
    CHECK_OK(mt_store_interaction_run_get(store, NULL, id, &r, &err));
    CHECK_STR(r.status, "Error");
    CHECK_STR(r.end_reason, "timeout");
    CHECK_STR(r.failure_details, "it took too long");
    CHECK_STR(r.cancelled_by, "bert");
    CHECK_INT(r.limit_ms, 7);
    CHECK(!r.output);
    CHECK(r.date_ended >= r.date_created);
    // Nothing is under way in a run that has ended.
    CHECK_OK(mt_store_interaction_attempt_list(store, id, ALL, &l, &err));
    CHECK_STR(l.items[0].outcome, "wrongAnswer");
    CHECK_STR(l.items[1].outcome, "timeout");
    CHECK_INT(l.items[1].date_ended, r.date_ended);
    mt_interaction_attempt_list_done(&l);
    mt_interaction_run_done(&r);
}

// A provider's words may be long.
static void test_long_details(void)
{
    _cleanup_err_ mt_err *err = NULL;
    static char text[2 * MT_STORE_APP_DETAILS];
    const mt_interaction_end how = {
        .status = "Error", .end_reason = "badRequest", .failure_details = text};
    char id[MT_ID_TEXT];
    mt_interaction_run r = {0};

    memset(text, 'x', sizeof(text) - 1);
    memcpy(text + MT_STORE_APP_DETAILS - 1, (const char[]){'\xe2', '\x82', '\xac'},
           3); // lies across the cut
    start(&anna, "a", id);
    CHECK_OK(mt_store_interaction_run_end(store, id, &how, &err));
    CHECK_OK(mt_store_interaction_run_get(store, NULL, id, &r, &err));
    CHECK_INT(strlen(r.failure_details), MT_STORE_APP_DETAILS - 1);
    mt_interaction_run_done(&r);
}

// ---- events ----

static void test_events(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];

    start(&anna, "told", id);
    CHECK_INT(begin(id), 1);
    answer(id, 1, 1, 1, NULL);
    check_indexed(store, "interactionRun", id, "created updated updated");
    CHECK_OK(mt_store_interaction_run_request_cancel(store, id, "anna", &err));
    CHECK_IS(mt_store_interaction_run_request_cancel(store, id, "anna", &err), 1);
    end(id);
    CHECK_IS(mt_store_interaction_run_end(store, id, &ANSWERED, &err), 1);
    CHECK_OK(mt_store_interaction_run_delete(store, id, &err));
    check_indexed(store, "interactionRun", id, "created updated updated updated ended deleted");
}

// ---- removal ----

static void test_retention(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char old[MT_ID_TEXT], young[MT_ID_TEXT], live[MT_ID_TEXT];
    mt_kept_list l = {0};
    mt_interaction_run r = {0};
    mt_interaction_attempt_list attempts = {0};

    write_sql(store, "DELETE FROM interaction_runs");
    start(&anna, "a", old);
    start(&anna, "a", young);
    start(&anna, "a", live);
    for (int i = 1; i <= 12; i++) {
        CHECK_INT(begin(old), i);
        answer(old, i, 1, 1, NULL);
    }
    end(young);
    end(old);
    write_sql(store,
              "UPDATE interaction_runs SET date_ended = 1000 * number WHERE date_ended <> 0");
    CHECK_OK(mt_store_kept_interaction_runs(store, mt_now_us(), 1, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].id, old);
    CHECK_INT(l.items[0].output_bytes, -1);
    mt_kept_list_done(&l);
    CHECK_OK(mt_store_kept_interaction_runs(store, mt_now_us(), 10, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_STR(l.items[1].id, young);
    mt_kept_list_done(&l);
    CHECK_OK(mt_store_kept_interaction_runs(store, 1, 10, &l, &err));
    CHECK_INT(l.count, 0);
    CHECK_OK(mt_store_interaction_run_delete(store, live, &err)); // lives: stays
    CHECK_OK(mt_store_interaction_run_get(store, NULL, live, &r, &err));
    mt_interaction_run_done(&r);
    CHECK_OK(mt_store_interaction_run_delete(store, old, &err)); // in parts
    CHECK_CODE(mt_store_interaction_run_get(store, NULL, old, &r, &err), NOT_FOUND);
    CHECK_OK(mt_store_interaction_attempt_list(store, old, ALL, &attempts, &err));
    CHECK_INT(attempts.count, 0);
    CHECK_OK(mt_store_interaction_run_delete(store, old, &err)); // again is fine
    end(live);
}

// Nothing holds the namespace and its people once all have ended; records of ended runs go along.
static void test_removal(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    mt_interaction_run_list l = {0};

    end_all();
    start(&bert, "last", id);
    CHECK_INT(begin(id), 1);
    CHECK_CODE(mt_store_user_delete(store, bert.id, &err), CONFLICT);
    CHECK(mt_store_namespace_delete(store, work.id, &err) < 0);
    CHECK_INT(mt_err_code(err), MT_E_CONFLICT);
    CHECK(strstr(mt_err_sentence(err), "live interaction runs") &&
          strstr(mt_err_sentence(err), id));
    err = mt_err_free(err);
    end_all();
    CHECK_OK(mt_store_user_delete(store, bert.id, &err)); // his runs stay, under his name
    CHECK_OK(mt_store_interaction_run_list(store, &anna, &(filter){.interaction = "last"},
                                           (mt_page){0}, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].started_by, "bert");
    CHECK_STR(l.items[0].started_by_id, "");
    mt_interaction_run_list_done(&l);
    CHECK_OK(mt_store_namespace_delete(store, work.id, &err));
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
    test_call_keys();
    test_parents();
    test_room_of_app();
    test_room_of_capsule();
    test_costs();
    test_attempts();
    test_attempt_pages();
    test_wrong_attempts();
    test_begin_again(dir);
    test_lists();
    test_cancel();
    test_end();
    test_long_details();
    test_events();
    test_retention();
    test_removal();
    store = mt_store_close(store);
    remove_tree(dir);
    return TAP_DONE();
}
