// SPDX-License-Identifier: Apache-2.0
// Events as a stream reads them: what they keep of what is gone, who sees them, what a filter lets
// through, where one begins; and that no number comes twice.
#include "store/test-util.h"

static mt_store *store;
static mt_user anna, bert;
static mt_namespace work, home;
static char run[MT_ID_TEXT], command[MT_ID_TEXT];

static int64_t newest(void)
{
    _cleanup_err_ mt_err *err = NULL;
    int64_t number = -1, oldest;

    CHECK_OK(mt_store_event_ends(store, &number, &oldest, &err));
    return number;
}

// "kind change name run;" of what a user (NULL: the server) is told.
static void check_told(const mt_user *as, mt_event_filter filter, const char *want)
{
    _cleanup_(mt_event_list_done) mt_event_list l = {0};
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 16);
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_event_list(store, as, &filter, 1000, &l, &err));
    for (size_t i = 0; i < l.count; i++) {
        const mt_event *e = &l.items[i];

        (void)mt_buf_addf(&b, "%s %s %s%s;", e->kind, e->change, e->name,
                          e->run_id[0] ? " of a run" : "");
        CHECK(e->number > filter.after);
    }
    CHECK_STR(mt_buf_str(&b), want);
}

static void set_up(void)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_user_create(store, "anna", MT_ROLE_USER, &anna, &err));
    CHECK_OK(mt_store_user_create(store, "bert", MT_ROLE_USER, &bert, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "work", &work, NULL, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "home", &home, NULL, &err));
}

static void start_run(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_new n = {.namespace_id = work.id,
                    .capsule = "bench",
                    .version = 1,
                    .definition = "{}",
                    .started_by = &anna,
                    .max_duration_ms = 600000};
    mt_run r = {0};

    CHECK_OK(mt_store_run_create(store, &n, NULL, NULL, &r, &err));
    (void)snprintf(run, sizeof(run), "%s", r.id);
    mt_run_done(&r);
}

static void send_command(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_command_record record = {0};
    int64_t number;
    mt_command_new n = {.id = command,
                        .run_id = run,
                        .command = "ls",
                        .arguments = "[]",
                        .environment = "{}",
                        .run_as_user = "maitento",
                        .by = &anna,
                        .most = 3,
                        .most_bytes = 1000};

    mt_id_new(command);
    CHECK_OK(mt_store_command_create(store, &n, NULL, NULL, &number, &record, &err));
    mt_command_record_done(&record);
}

static void apply(int64_t seq, mt_command_change change)
{
    _cleanup_err_ mt_err *err = NULL;

    change.id = command;
    CHECK_OK(mt_store_run_apply_wait(store, run, seq, &(mt_run_change){.command = &change}, &err));
}

static void check_running(size_t count)
{
    _cleanup_(mt_id_list_done) mt_id_list l = {0};
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_commands_running(store, run, 10, &l, &err));
    CHECK_INT(l.count, count);
    if (count)
        CHECK_STR(l.items[0].id, command);
}

static void test_commands(void)
{
    _cleanup_(mt_event_list_done) mt_event_list l = {0};
    _cleanup_err_ mt_err *err = NULL;
    int64_t before = newest();

    start_run();
    send_command();
    check_running(0);
    apply(1, (mt_command_change){.started = true});
    check_running(1);
    apply(2, (mt_command_change){.ended = true,
                                 .status = "Error",
                                 .end_reason = "exited",
                                 .has_exit_code = true,
                                 .exit_code = 3});
    check_running(0);
    check_told(&anna, (mt_event_filter){.after = before},
               "capsuleRun created bench of a run;command created  of a run;"
               "command started  of a run;command ended  of a run;");
    check_told(&anna,
               (mt_event_filter){.after = before, .run_id = run, .kinds = " vfs capsuleRun "},
               "capsuleRun created bench of a run;");
    check_told(&anna, (mt_event_filter){.after = before, .until = before + 1},
               "capsuleRun created bench of a run;");
    check_told(&anna, (mt_event_filter){.after = before, .namespace_id = home.id}, "");
    check_told(&anna, (mt_event_filter){.after = before, .run_id = command}, "");
    check_told(&bert, (mt_event_filter){.after = before}, "");
    CHECK_OK(mt_store_event_list(
        store, &anna, &(mt_event_filter){.after = before, .kinds = " command "}, 1, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].run_id, run);
    CHECK_STR(l.items[0].namespace_name, "work");
    // As it is now, not as it was then.
    CHECK_STR(l.items[0].change, "created");
    CHECK_STR(l.items[0].status, "Error");
    CHECK_STR(l.items[0].end_reason, "exited");
    CHECK(l.items[0].has_exit_code);
    CHECK_INT(l.items[0].exit_code, 3);
}

// What is gone keeps its name, and is told to whom it concerned.
static void test_gone(void)
{
    _cleanup_err_ mt_err *err = NULL;
    int64_t before = newest();
    mt_namespace gone;
    mt_vfs_record files;
    mt_user carl;
    mt_key key;
    char token[MT_STORE_TOKEN];

    CHECK_OK(mt_store_namespace_create(store, &anna, "gone", &gone, NULL, &err));
    CHECK_OK(mt_store_vfs_create(store, NULL, gone.id, "files", 0, &files, &err));
    CHECK_OK(mt_store_vfs_delete(store, files.id, false, &err));
    check_told(&anna, (mt_event_filter){.after = before},
               "namespace created gone;vfs created files;vfs deleted files;");
    CHECK_OK(mt_store_namespace_delete(store, gone.id, &err));
    check_told(&anna, (mt_event_filter){.after = before},
               "namespace created gone;namespace deleted gone;");
    check_told(
        NULL, (mt_event_filter){.after = before},
        "namespace created gone;vfs created files;vfs deleted files;namespace deleted gone;");
    before = newest();
    CHECK_OK(mt_store_user_create(store, "carl", MT_ROLE_USER, &carl, &err));
    CHECK_OK(mt_store_key_create(store, carl.id, "laptop", 0, &key, token, &err));
    check_told(&carl, (mt_event_filter){.after = before}, "user created carl;key created laptop;");
    CHECK_OK(mt_store_key_delete(store, key.id, &err));
    CHECK_CODE(mt_store_key_delete(store, key.id, &err), NOT_FOUND);
    check_told(&carl, (mt_event_filter){.after = before},
               "user created carl;key created laptop;key deleted laptop;");
    CHECK_OK(mt_store_user_delete(store, carl.id, &err));
    check_told(NULL, (mt_event_filter){.after = before},
               "user created carl;key created laptop;key deleted laptop;user deleted carl;");
    check_told(&bert, (mt_event_filter){.after = before}, "");
}

static void check_may(mt_user who, const char *namespace_id, int want)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_IS(mt_store_event_may(store, &who, namespace_id, &err), want);
}

static void test_rights(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char token[MT_STORE_TOKEN];
    mt_user by_key;
    mt_key key;

    check_may(anna, "", 1);
    check_may(anna, work.id, 1);
    check_may(bert, "", 1);
    check_may(bert, work.id, 0);
    CHECK_OK(mt_store_member_add(store, work.id, bert.id, &err));
    check_may(bert, work.id, 1);
    CHECK_OK(mt_store_member_remove(store, work.id, bert.id, &err));
    check_may(bert, work.id, 0);
    check_may((mt_user){.id = "nobody"}, "", 0);
    CHECK_OK(mt_store_key_create(store, bert.id, "k", 0, &key, token, &err));
    CHECK_OK(mt_store_key_lookup(store, token, strlen(token), &by_key, &err));
    CHECK_STR(by_key.key_id, key.id);
    by_key.role = MT_ROLE_ADMIN; // as he is now
    CHECK_IS(mt_store_event_may(store, &by_key, "", &err), 1);
    CHECK_INT(by_key.role, MT_ROLE_USER);
    write_sql(store, "UPDATE keys SET date_expires = 1");
    check_may(by_key, "", 0);
    write_sql(store, "UPDATE keys SET date_expires = 0");
    check_may(by_key, "", 1);
    CHECK_OK(mt_store_key_delete(store, key.id, &err));
    check_may(by_key, "", 0);
    write_sql(store, "UPDATE users SET stopped = 1 WHERE name = 'bert'");
    check_may(bert, "", 0);
    write_sql(store, "UPDATE users SET stopped = 0 WHERE name = 'bert'");
}

static void check_back(const mt_user *as, mt_event_filter filter, size_t last, const char *want)
{
    _cleanup_err_ mt_err *err = NULL;
    int64_t after = newest();

    CHECK_OK(mt_store_event_back(store, as, &filter, last, &after, &err));
    filter.after = after;
    check_told(as, filter, want);
}

static void test_back(void)
{
    const mt_event_filter commands = {.kinds = " command "};

    check_back(&anna, commands, 2, "command started  of a run;command ended  of a run;");
    check_back(&anna, commands, 100,
               "command created  of a run;command started  of a run;command ended  of a run;");
    check_back(&bert, commands, 2, "");
    check_back(&anna, (mt_event_filter){.kinds = " prompt "}, 2, "");
}

static void test_numbers(const char *dir)
{
    _cleanup_err_ mt_err *err = NULL;
    int64_t before = newest(), number, oldest;
    mt_user dora;

    // A restart of the server alone leaves no gap; one of the machine does.
    store = mt_store_close(store);
    store = open_or_die(dir);
    CHECK_INT(newest(), before);
    write_sql(store, "UPDATE meta SET value = x'0100000000000000' WHERE name = 'booted'");
    store = mt_store_close(store);
    store = open_or_die(dir);
    CHECK(newest() > before + 1000);
    before = newest();
    store = mt_store_close(store);
    store = open_or_die(dir);
    CHECK_INT(newest(), before);
    CHECK_OK(mt_store_user_create(store, "dora", MT_ROLE_USER, &dora, &err));
    CHECK_INT(newest(), before + 1);
    check_told(NULL, (mt_event_filter){.after = before}, "user created dora;");
    // When all that was kept is gone, the numbers still are known.
    CHECK_OK(mt_store_event_trim(store, INT64_MAX, 1, &err));
    CHECK_OK(mt_store_event_ends(store, &number, &oldest, &err));
    CHECK_INT(number, before + 1);
    CHECK_INT(oldest, 0);
}

int main(void)
{
    _cleanup_free_ char *top = temp_folder();
    _cleanup_free_ char *dir = mt_asprintf("%s/store", top);

    store = open_or_die(dir);
    set_up();
    test_commands();
    test_gone();
    test_rights();
    test_back();
    test_numbers(dir);
    store = mt_store_close(store);
    remove_tree(top);
    return TAP_DONE();
}
