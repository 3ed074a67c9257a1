// SPDX-License-Identifier: Apache-2.0
#include "store/test-util.h"

static mt_store *store;
static mt_user anna;
static mt_namespace work;

static void start(char id[MT_ID_TEXT])
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_new n = {.namespace_id = work.id,
                    .capsule = "c",
                    .version = 1,
                    .definition = "{}",
                    .started_by = &anna,
                    .max_duration_ms = 600000};
    mt_run r = {0};

    CHECK_OK(mt_store_run_create(store, &n, NULL, NULL, &r, &err));
    (void)snprintf(id, MT_ID_TEXT, "%s", r.id);
    mt_run_done(&r);
}

static void end(const char *id, int64_t at)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_run_change change = {
        .ended = true, .status = "Finished", .end_reason = "exited", .ended_us = at};

    CHECK_OK(mt_store_run_apply_wait(store, id, 1, &change, &err));
}

static void send(const char *run)
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
                        .by = &anna};

    mt_id_new(id);
    if (mt_store_command_create(store, &n, NULL, NULL, &number, &c, &err) < 0)
        CHECK_OK(-1);
    mt_command_record_done(&c);
}

// The ids in the order of the list, as letters a, b, …
static const char *letters(const mt_kept_list *l, char ids[][MT_ID_TEXT], size_t count)
{
    static char out[16];
    size_t n = 0;

    for (size_t i = 0; i < l->count; i++) {
        for (size_t j = 0; j < count; j++) {
            if (mt_streq(l->items[i].id, ids[j]))
                out[n++] = (char)('a' + j);
        }
    }
    out[n] = '\0';
    return out;
}

static char ids[4][MT_ID_TEXT]; // d lives

static void check_outputs(bool unmeasured, const char *expected)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_kept_list l = {0};

    CHECK_OK(mt_store_kept_outputs(store, unmeasured, 10, &l, &err));
    CHECK_STR(letters(&l, ids, 4), expected);
    mt_kept_list_done(&l);
}

static void test_outputs(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_kept_list l = {0};
    int64_t bytes;
    mt_run r = {0};

    for (int i = 0; i < 4; i++)
        start(ids[i]);
    end(ids[2], 1000);
    end(ids[0], 2000);
    end(ids[1], 3000);
    check_outputs(false, "cab");
    check_outputs(true, "cab");
    CHECK_OK(mt_store_kept_bytes(store, &bytes, &err));
    CHECK_INT(bytes, 0);

    CHECK_OK(mt_store_kept_outputs(store, true, 2, &l, &err));
    CHECK_STR(letters(&l, ids, 4), "ca");
    l.items[0].output_bytes = 100;
    l.items[1].output_bytes = 10;
    CHECK_OK(mt_store_outputs_measured(store, &l, &err));
    mt_kept_list_done(&l);
    check_outputs(true, "b");
    CHECK_OK(mt_store_kept_bytes(store, &bytes, &err));
    CHECK_INT(bytes, 110);

    CHECK_OK(mt_store_outputs_removed(store, ids[2], &err));
    CHECK_OK(mt_store_outputs_removed(store, ids[3], &err)); // lives: stays
    check_outputs(false, "ab");
    CHECK_OK(mt_store_kept_bytes(store, &bytes, &err));
    CHECK_INT(bytes, 10);
    CHECK_OK(mt_store_run_get(store, NULL, ids[2], &r, &err));
    CHECK(r.date_outputs_removed > 0);
    mt_run_done(&r);
    CHECK_OK(mt_store_run_get(store, NULL, ids[3], &r, &err));
    CHECK_INT(r.date_outputs_removed, 0);
    mt_run_done(&r);
}

static void test_records(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char many[MT_ID_TEXT];
    mt_kept_list l = {0};
    mt_run r = {0};

    start(many);
    for (int i = 0; i < 450; i++)
        send(many);
    CHECK_OK(mt_store_run_delete(store, many, &err)); // lives: stays
    CHECK_IS(mt_store_run_exists(store, many, &err), 1);
    end(many, 1500);
    CHECK_OK(mt_store_kept_runs(store, 2000, 10, &l, &err));
    CHECK_INT(l.count, 3);
    CHECK_STR(letters(&l, ids, 4), "ca");
    CHECK_STR(l.items[1].id, many);
    mt_kept_list_done(&l);
    CHECK_OK(mt_store_run_delete(store, many, &err));
    CHECK_IS(mt_store_run_exists(store, many, &err), 0);
    CHECK_CODE(mt_store_run_get(store, NULL, many, &r, &err), NOT_FOUND);
    CHECK_OK(mt_store_run_delete(store, many, &err)); // again is fine
    CHECK_IS(mt_store_run_exists(store, ids[3], &err), 1);
}

static size_t count_events(int64_t *ret_last)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_event_list l = {0};
    size_t n = 0;
    int64_t after = 0;

    for (;;) {
        CHECK_OK(
            mt_store_event_list(store, NULL, &(mt_event_filter){.after = after}, 1000, &l, &err));
        if (l.count == 0)
            break;
        n += l.count;
        after = l.items[l.count - 1].number;
        mt_event_list_done(&l);
    }
    *ret_last = after;
    return n;
}

static void test_events(void)
{
    _cleanup_err_ mt_err *err = NULL;
    int64_t last, again;
    size_t all = count_events(&last);

    CHECK(all > 450);
    CHECK_OK(mt_store_event_trim(store, 1000, 1000000, &err)); // neither old nor many
    CHECK_INT(count_events(&again), all);
    CHECK_OK(mt_store_event_trim(store, 1000, 10, &err));
    CHECK_INT(count_events(&again), 10);
    CHECK_INT(again, last);
    CHECK_OK(mt_store_event_trim(store, mt_now_us() + 1000000, 1000000, &err));
    CHECK_INT(count_events(&again), 0);
    // Numbers go on, as who follows asks for what comes after one.
    end(ids[3], 4000);
    CHECK(count_events(&again) > 0);
    CHECK(again > last);
}

int main(void)
{
    _cleanup_free_ char *dir = temp_folder();
    _cleanup_err_ mt_err *err = NULL;

    store = open_or_die(dir);
    CHECK_OK(mt_store_user_create(store, "anna", MT_ROLE_USER, &anna, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "work", &work, NULL, &err));
    test_outputs();
    test_records();
    test_events();
    store = mt_store_close(store);
    remove_tree(dir);
    return TAP_DONE();
}
