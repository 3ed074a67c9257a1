// SPDX-License-Identifier: Apache-2.0
// What is kept of an app run while it lives: the journal of its calls, its lines and its outputs.
#include "store/test-util.h"

static char *dir;
static mt_store *store;
static mt_user anna;
static mt_namespace work;

static void start(char id[MT_ID_TEXT])
{
    _cleanup_err_ mt_err *err = NULL;
    mt_app_run_new n = {.id = id,
                        .namespace_id = work.id,
                        .app = "a",
                        .version = 1,
                        .inputs = "{}",
                        .started_by = &anna,
                        .language = 1};
    mt_app_run r = {0};

    mt_id_new(id);
    CHECK_OK(mt_store_app_run_create(store, &n, &r, &err));
    mt_app_run_done(&r);
}

static void end(const char *id)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_app_end how = {.status = "Finished", .end_reason = "returned"};

    CHECK_OK(mt_store_app_run_end(store, id, &how, &err));
}

static void reopen(void)
{
    store = mt_store_close(store);
    store = open_or_die(dir);
}

static mt_app_run get(const char *id)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_app_run r = {0};

    CHECK_OK(mt_store_app_run_get(store, NULL, id, &r, &err));
    return r;
}

// ---- the journal ----

static mt_app_call_record answered(int64_t number, const char *result)
{
    mt_app_call_record c = {.number = number, .result = (char *)(uintptr_t)result};

    (void)snprintf(c.name, sizeof(c.name), "TimeNow");
    memset(c.digest, 'd', sizeof(c.digest) - 1);
    return c;
}

static mt_app_call_record waiting(int64_t number, const char *arguments)
{
    mt_app_call_record c = answered(number, NULL);

    c.open = true;
    c.arguments = (char *)(uintptr_t)arguments;
    return c;
}

static void put(const char *run, mt_app_call_record c)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_app_call_put(store, run, &c, &err));
}

static void check_counts(const char *run, int64_t calls, int64_t bytes)
{
    mt_app_run r = get(run);

    CHECK_INT(r.call_count, calls);
    CHECK_INT(r.journal_bytes, bytes);
    mt_app_run_done(&r);
}

static void check_open(const char *run, int64_t number)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_app_call_record c = {0};

    CHECK_IS(mt_store_app_call_open(store, run, &c, &err), number > 0 ? 0 : 1);
    CHECK_INT(c.number, number);
    mt_app_call_record_done(&c);
}

static void test_journal(void)
{
    _cleanup_err_ mt_err *err = NULL;
    const int64_t name = 7; // bytes of "TimeNow"
    char run[MT_ID_TEXT];
    mt_app_call_record c = waiting(2, "[1,2]"), other = answered(2, "5");
    mt_app_call_list l = {0};

    start(run);
    check_open(run, 0);
    put(run, answered(1, "4711"));
    check_counts(run, 1, name + 4);
    check_open(run, 0);
    c.until = 99;
    put(run, c);
    check_counts(run, 2, 2 * name + 9);
    reopen(); // an open call is found again
    CHECK_OK(mt_store_app_call_open(store, run, &c, &err));
    CHECK_INT(c.number, 2);
    CHECK_INT(c.until, 99);
    CHECK_STR(c.arguments, "[1,2]");
    CHECK_STR(c.result, "");
    CHECK_INT(strlen(c.digest), 64);
    mt_app_call_record_done(&c);
    other.code = (char *)(uintptr_t) "NotFound";
    put(run, other);
    check_counts(run, 2, 2 * name + 5);
    check_open(run, 0);
    other.code = NULL;
    put(run, other); // again, as who wrote it was not told that it is stored
    check_counts(run, 2, 2 * name + 5);
    other.code = (char *)(uintptr_t) "NotFound";
    put(run, other);
    CHECK_OK(mt_store_app_call_list(store, run, 1, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_INT(l.items[0].number, 1);
    CHECK_STR(l.items[0].name, "TimeNow");
    CHECK_STR(l.items[0].result, "4711");
    CHECK_STR(l.items[0].code, "");
    CHECK(!l.items[0].arguments && !l.items[0].open);
    CHECK_STR(l.items[1].code, "NotFound");
    CHECK_STR(l.items[1].result, "5");
    mt_app_call_list_done(&l);
    CHECK_OK(mt_store_app_call_list(store, run, 3, &l, &err));
    CHECK_INT(l.count, 0);
    mt_app_call_list_done(&l);
    CHECK_OK(mt_store_app_call_list(store, "nothing", 1, &l, &err));
    CHECK_INT(l.count, 0);
    mt_app_call_list_done(&l);
    end(run);
}

static void test_refusals(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT];
    mt_app_call_record c = answered(2, "1");

    start(run);
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), INTERNAL); // the first is missing
    put(run, answered(1, "1"));
    put(run, answered(2, "1"));
    put(run, answered(3, "1"));
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), INTERNAL); // not the newest any more
    c.number = 5;
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), INTERNAL);
    c.number = 0;
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), INTERNAL);
    c = answered(3, "1"); // another call at its place
    c.digest[0] = 'e';
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), INTERNAL);
    c = answered(4, NULL);
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), INTERNAL);
    c = waiting(4, NULL);
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), INTERNAL);
    c = answered(4, "1");
    c.name[0] = '\0';
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), INTERNAL);
    check_counts(run, 3, 3 * 8);
    c = answered(1, "1");
    CHECK_CODE(mt_store_app_call_put(store, "nothing", &c, &err), NOT_FOUND);
    end(run);
    c = answered(4, "1");
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), RUN_ENDED);
    check_counts(run, 3, 3 * 8); // what there was can still be told
}

static char *text_of(size_t len)
{
    char *text = malloc(len + 1);

    if (!text)
        exit(2);
    memset(text, 'x', len);
    text[len] = '\0';
    return text;
}

static void test_limits(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT];
    mt_app_call_record c;

    start(run);
    write_sql(store, "UPDATE app_runs SET journal_bytes = (64 << 20) - 20 WHERE date_ended = 0");
    put(run, answered(1, "123456"));
    put(run, waiting(1, "1234567890123")); // exactly all that there is
    c = answered(2, "");
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), CAPACITY_EXCEEDED);
    put(run, answered(1, "123456")); // room again
    put(run, c);
    check_counts(run, 2, MT_STORE_APP_JOURNAL);
    end(run);
    start(run);
    write_sql(store, "UPDATE app_runs SET call_count = 99999 WHERE date_ended = 0");
    put(run, answered(MT_STORE_APP_CALLS, "1"));
    c = answered(MT_STORE_APP_CALLS + 1, "1");
    CHECK_CODE(mt_store_app_call_put(store, run, &c, &err), CAPACITY_EXCEEDED);
    end(run);
}

static void test_pages(void)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *large = text_of(3 << 20);
    char run[MT_ID_TEXT];
    mt_app_call_list l = {0};

    start(run);
    for (int i = 1; i <= 5; i++)
        put(run, answered(i, i == 4 ? "1" : large));
    for (int64_t from = 1, pages = 0; from <= 6; pages++) {
        CHECK_OK(mt_store_app_call_list(store, run, from, &l, &err));
        CHECK_INT(l.count, pages < 1 ? 2 : pages < 2 ? 3 : 0);
        if (l.count == 0)
            break;
        CHECK_INT(l.items[0].number, from);
        from = l.items[l.count - 1].number + 1;
        mt_app_call_list_done(&l);
    }
    mt_app_call_list_done(&l);
    end(run);
}

// A long journal goes in parts; what a server that was stopped has left goes at the next start.
static void test_cleared(void)
{
    _cleanup_err_ mt_err *err = NULL;
    static const char FILL[] =
        "WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1700) "
        "INSERT INTO app_calls SELECT id, i, 'n', 'd', 0, 0, 2, '', NULL, '1' FROM app_runs, n "
        "WHERE app = 'a' AND number = (SELECT max(number) FROM app_runs)";
    char run[MT_ID_TEXT];
    mt_app_call_list l = {0};

    start(run);
    write_sql(store, FILL);
    CHECK_OK(mt_store_app_call_list(store, run, 1, &l, &err));
    CHECK_INT(l.count, 1700);
    mt_app_call_list_done(&l);
    end(run);
    CHECK_OK(mt_store_app_call_list(store, run, 1, &l, &err));
    CHECK_INT(l.count, 0);
    mt_app_call_list_done(&l);
    write_sql(store, FILL);
    write_sql(store, "UPDATE app_runs SET journal_left = 1 "
                     "WHERE number = (SELECT max(number) FROM app_runs)");
    reopen();
    CHECK_OK(mt_store_app_call_list(store, run, 1, &l, &err));
    CHECK_INT(l.count, 0);
    mt_app_call_list_done(&l);
}

// ---- notes ----

static int noted = 2; // what the last one came to
static mt_code noted_code;

static void on_noted(int result, const mt_err *err, void *data)
{
    noted = result;
    noted_code = mt_err_code(err);
}

static int note(const char *run, const mt_app_line *lines, size_t line_count,
                const mt_app_output *outputs, size_t output_count)
{
    _cleanup_err_ mt_err *err = NULL;

    noted = 2;
    noted_code = MT_E_NONE;
    CHECK_OK(mt_store_app_note(store, run, lines, line_count, outputs, output_count, on_noted, NULL,
                               &err));
    CHECK_OK(mt_store_settle(store, &err));
    return noted;
}

static mt_app_line line(int64_t number, char level, const char *text)
{
    return (mt_app_line){number, mt_str_of(text), 1000 + number, level};
}

static mt_app_output output(int64_t number, const char *name, const char *value)
{
    return (mt_app_output){number, mt_str_of(name), mt_str_of(value)};
}

// The texts of a run's lines of those levels, one behind the other.
static void check_lines(const char *run, const char *levels, int64_t after, const char *expected)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);
    mt_app_line_list l = {0};

    CHECK_OK(mt_store_app_line_list(store, run, levels, after, 100, &l, &err));
    for (size_t i = 0; i < l.count; i++)
        (void)mt_buf_add(&b, l.items[i].text, l.items[i].len);
    CHECK_STR(mt_buf_str(&b), expected);
    mt_app_line_list_done(&l);
}

static void check_outputs(const char *run, const char *expected)
{
    mt_app_run r = get(run);

    CHECK_STR(r.outputs, expected);
    mt_app_run_done(&r);
}

static void test_notes(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT];
    const mt_app_line lines[] = {line(1, 'o', "a\n"), line(2, 'w', "careful\n"), line(3, 'o', "b")};
    const mt_app_output outputs[] = {output(1, "z", "1"), output(2, "a\"\n", "\"two\""),
                                     output(3, "z", "[3]")};
    mt_app_line_list l = {0};
    mt_app_run r;

    start(run);
    CHECK_INT(note(run, lines, 3, outputs, 3), 0);
    check_lines(run, "o", 0, "a\nb");
    check_lines(run, "iwe", 0, "careful\n");
    check_lines(run, "oiwe", 1, "careful\nb");
    check_outputs(run, "{\"z\":[3],\"a\\\"\\n\":\"two\"}");
    r = get(run);
    CHECK_INT(r.line_count, 3);
    CHECK_INT(r.console_count, 2);
    CHECK_INT(r.console_kept, 2);
    CHECK_INT(r.output_count, 3);
    mt_app_run_done(&r);
    CHECK_OK(mt_store_app_line_list(store, run, "oiwe", 0, 2, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_INT(l.items[1].number, 2);
    CHECK_INT(l.items[1].time_us, 1002);
    CHECK_INT(l.items[1].level, 'w');
    mt_app_line_list_done(&l);
    reopen();
    // The same again, as a run that is done again tells it, and what is new.
    CHECK_INT(note(run, lines, 3, outputs, 3), 1);
    CHECK_INT(note(run, (mt_app_line[]){line(3, 'o', "other"), line(4, 'o', "c")}, 2,
                   (mt_app_output[]){output(3, "z", "0"), output(4, "n", "null")}, 2),
              0);
    check_lines(run, "o", 0, "a\nbc");
    check_outputs(run, "{\"z\":[3],\"a\\\"\\n\":\"two\",\"n\":null}");
    CHECK_INT(note(run, NULL, 0, NULL, 0), 1);
    end(run);
    CHECK_INT(note(run, (mt_app_line[]){line(5, 'o', "late")}, 1, NULL, 0), 1);
    check_lines(run, "o", 0, "a\nbc"); // what was printed stays with the record
}

// Nothing of a note is stored that cannot be stored whole, or that leaves something out.
static void test_refused_notes(void)
{
    char run[MT_ID_TEXT];

    start(run);
    CHECK_INT(note(run, (mt_app_line[]){line(1, 'o', "a"), line(3, 'o', "c")}, 2, NULL, 0), -1);
    CHECK_INT(noted_code, MT_E_INTERNAL);
    CHECK_INT(
        note(run, (mt_app_line[]){line(1, 'o', "a")}, 1, (mt_app_output[]){output(2, "n", "1")}, 1),
        -1);
    CHECK_INT(noted_code, MT_E_INTERNAL);
    CHECK_INT(note(run, (mt_app_line[]){line(1, 'x', "a")}, 1, NULL, 0), -1);
    CHECK_INT(note("nothing", (mt_app_line[]){line(1, 'o', "a")}, 1, NULL, 0), -1);
    CHECK_INT(noted_code, MT_E_NOT_FOUND);
    check_lines(run, "oiwe", 0, "");
    CHECK_INT(note(run, (mt_app_line[]){line(1, 'o', "a")}, 1, NULL, 0), 0);
    end(run);
}

// Bytes that are no text, and texts without any.
static void test_odd_bytes(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT];
    const mt_app_line lines[] = {
        {1, {"a\0b", 3}, 1, 'o'}, {2, {"", 0}, 1, 'o'}, {3, {NULL, 0}, 1, 'o'}};
    const mt_app_output outputs[] = {
        {1, {"n\0m", 3}, {"1", 1}}, {2, {"n", 1}, {"2", 1}}, {3, {NULL, 0}, {"3", 1}}};
    mt_app_line_list l = {0};

    start(run);
    CHECK_INT(note(run, lines, 3, outputs, 3), 0);
    CHECK_OK(mt_store_app_line_list(store, run, "o", 0, 10, &l, &err));
    CHECK_INT(l.count, 3);
    CHECK(l.items[0].len == 3 && memcmp(l.items[0].text, "a\0b", 4) == 0);
    CHECK(l.items[1].len == 0 && l.items[2].len == 0);
    mt_app_line_list_done(&l);
    check_outputs(run, "{\"n\\u0000m\":1,\"n\":2,\"\":3}");
    end(run);
}

// ---- what is kept of much ----

static void print_many(const char *run, int64_t from, size_t count, char level, mt_str text)
{
    mt_app_line *lines = calloc(count, sizeof(*lines));

    if (!lines)
        exit(2);
    for (size_t i = 0; i < count; i++)
        lines[i] = (mt_app_line){from + (int64_t)i, text, 1, level};
    CHECK_INT(note(run, lines, count, NULL, 0), 0);
    free(lines);
}

static void check_kept(const char *run, int64_t first, int64_t lines, int64_t console,
                       int64_t console_kept)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_app_line_list l = {0};
    mt_app_run r = get(run);

    CHECK_OK(mt_store_app_line_list(store, run, "oiwe", 0, SIZE_MAX, &l, &err));
    CHECK_INT(l.count, r.line_count - first + 1);
    CHECK_INT(l.count ? l.items[0].number : first, first);
    CHECK_INT(r.line_count, lines);
    CHECK_INT(r.console_count, console);
    CHECK_INT(r.console_kept, console_kept);
    mt_app_line_list_done(&l);
    mt_app_run_done(&r);
}

static void test_many_lines(void)
{
    char run[MT_ID_TEXT];

    start(run);
    print_many(run, 1, 6000, 'o', MT_STR("x\n"));
    print_many(run, 6001, 4000, 'i', MT_STR("y\n"));
    check_kept(run, 1, 10000, 6000, 6000);
    print_many(run, 10001, 1, 'i', MT_STR("y\n"));
    check_kept(run, 2, 10001, 6000, 5999);
    print_many(run, 10002, 25000, 'o', MT_STR("z\n")); // more at once than is kept
    check_kept(run, 25002, 35001, 31000, 10000);
    reopen();
    print_many(run, 35002, 1, 'e', MT_STR("y\n"));
    check_kept(run, 25003, 35002, 31000, 9999);
    end(run);
}

static void test_many_bytes(void)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *mega = text_of(1 << 20);
    _cleanup_free_ char *huge = text_of(MT_STORE_APP_CONSOLE + 100);
    char run[MT_ID_TEXT];
    mt_app_line_list l = {0};

    start(run);
    print_many(run, 1, 4, 'o', mt_str_of(mega));
    check_kept(run, 1, 4, 4, 4);
    print_many(run, 5, 1, 'o', MT_STR("x\n"));
    check_kept(run, 2, 5, 5, 4);
    // Of one that is over all of it alone the end is kept, and no half of a character.
    memcpy(huge + 98, (const char[]){'\xe2', '\x82', '\xac'}, 3);
    huge[MT_STORE_APP_CONSOLE + 99] = '\n';
    print_many(run, 6, 1, 'o', mt_str_of(huge));
    check_kept(run, 6, 6, 6, 1);
    CHECK_OK(mt_store_app_line_list(store, run, "o", 0, 1, &l, &err));
    CHECK_INT(l.items[0].len, MT_STORE_APP_CONSOLE - 1);
    CHECK_INT(l.items[0].text[0], 'x');
    CHECK_INT(l.items[0].text[l.items[0].len - 1], '\n');
    mt_app_line_list_done(&l);
    end(run);
}

static void test_many_outputs(void)
{
    char run[MT_ID_TEXT], names[MT_STORE_APP_OUTPUTS + 1][24];
    static mt_app_output outputs[MT_STORE_APP_OUTPUTS];
    mt_app_run r;

    start(run);
    for (int i = 0; i <= MT_STORE_APP_OUTPUTS; i++)
        (void)snprintf(names[i], sizeof(names[i]), "name-%d", i);
    for (int i = 0; i < MT_STORE_APP_OUTPUTS; i++)
        outputs[i] = output(i + 1, names[i], "1");
    CHECK_INT(note(run, NULL, 0, outputs, MT_STORE_APP_OUTPUTS), 0);
    outputs[0] = output(MT_STORE_APP_OUTPUTS + 1, names[MT_STORE_APP_OUTPUTS], "1");
    CHECK_INT(note(run, NULL, 0, outputs, 1), -1);
    CHECK_INT(noted_code, MT_E_CAPACITY_EXCEEDED);
    outputs[0] = output(MT_STORE_APP_OUTPUTS + 1, names[7], "2"); // one that is there
    CHECK_INT(note(run, NULL, 0, outputs, 1), 0);
    r = get(run);
    CHECK_INT(r.output_count, MT_STORE_APP_OUTPUTS + 1);
    CHECK(strstr(r.outputs, "\"name-6\":1,\"name-7\":2,\"name-8\":1") != NULL);
    mt_app_run_done(&r);
    end(run);
}

static void test_large_outputs(void)
{
    _cleanup_free_ char *half = text_of(MT_STORE_APP_VALUES / 2 - 1);
    char run[MT_ID_TEXT];

    start(run);
    CHECK_INT(note(run, NULL, 0, (mt_app_output[]){output(1, "a", half), output(2, "b", half)}, 2),
              0);
    CHECK_INT(note(run, NULL, 0, (mt_app_output[]){output(3, "c", "")}, 1), -1);
    CHECK_INT(noted_code, MT_E_CAPACITY_EXCEEDED);
    CHECK_INT(note(run, NULL, 0,
                   (mt_app_output[]){output(3, "a", "1"), output(4, "c", "2"), output(5, "b", "3")},
                   3),
              0);
    check_outputs(run, "{\"a\":1,\"b\":3,\"c\":2}");
    end(run);
}

// Many threads that note at once, each for a run of its own, and one that writes calls meanwhile.
enum { THREADS = 4, EACH = 200 };

static void *note_many(void *run)
{
    for (int i = 1; i <= EACH; i++) {
        mt_app_line l = line(i, 'o', "x");
        mt_app_call_record c = answered(i, "1");

        if (mt_store_app_note(store, run, &l, 1, NULL, 0, NULL, NULL, NULL) < 0 ||
            mt_store_app_call_put(store, run, &c, NULL) < 0)
            return NULL;
    }
    return run;
}

static void test_together(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char runs[THREADS][MT_ID_TEXT];
    pthread_t threads[THREADS];
    uint64_t identities;

    for (int i = 0; i < THREADS; i++)
        start(runs[i]);
    identities = atomic_load(&store->identities);
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, note_many, runs[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *done = NULL;

        (void)pthread_join(threads[i], &done);
        CHECK(done != NULL);
    }
    // Nothing of it makes the store look up keys again.
    CHECK_INT(atomic_load(&store->identities), identities);
    CHECK_OK(mt_store_settle(store, &err));
    for (int i = 0; i < THREADS; i++) {
        check_kept(runs[i], 1, EACH, EACH, EACH);
        check_counts(runs[i], EACH, EACH * 8);
        end(runs[i]);
    }
}

int main(void)
{
    _cleanup_err_ mt_err *err = NULL;

    dir = temp_folder();
    store = open_or_die(dir);
    CHECK_OK(mt_store_user_create(store, "anna", MT_ROLE_USER, &anna, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "work", &work, NULL, &err));
    test_journal();
    test_refusals();
    test_limits();
    test_pages();
    test_cleared();
    test_notes();
    test_refused_notes();
    test_odd_bytes();
    test_many_lines();
    test_many_bytes();
    test_many_outputs();
    test_large_outputs();
    test_together();
    store = mt_store_close(store);
    remove_tree(dir);
    free(dir);
    return TAP_DONE();
}
