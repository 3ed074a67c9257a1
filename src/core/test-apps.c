// SPDX-License-Identifier: Apache-2.0
// Runs of apps, with the store and the machine as they are and this test for the outside.
#include "base/clock.h"
#include "base/id.h"
#include "base/tap.h"
#include "core/apps-internal.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

enum { PATIENCE_US = 20 * 1000000, CALLS_MAX = 64 };

static mt_store *store;
static mt_apps *apps;
static mt_user user;
static mt_namespace ns;
static char folder[] = "/tmp/test-apps-XXXXXX";

// What the outside was asked, by number of the call.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int made[CALLS_MAX];
    bool lose; // each call is made, and its first answer lost
    bool gate; // VfsExists waits for this
    char topic[MT_ID_TEXT];
    int stopped;                                   // capsule runs that were asked to stop
    char ended[MT_ID_TEXT], ended_for[MT_ID_TEXT]; // an interaction run, and the app run
    int refused_before;                            // that many times a start finds no room
} outside;

static void outside_reset(void)
{
    (void)pthread_mutex_lock(&lock);
    memset(&outside, 0, sizeof(outside));
    mt_id_new(outside.topic);
    (void)pthread_mutex_unlock(&lock);
}

static int made(int number)
{
    int n;

    (void)pthread_mutex_lock(&lock);
    n = outside.made[number];
    (void)pthread_mutex_unlock(&lock);
    return n;
}

static mt_app_outcome wait_at_gate(mt_app_call *c)
{
    c->own_topics = mt_json_new_array();
    (void)mt_json_append(c->own_topics, mt_json_new_text(outside.topic));
    c->topics = c->own_topics;
    return MT_APP_WAIT;
}

static mt_app_outcome make(mt_app_call *c)
{
    const char *name = c->builtin->name;

    if (strcmp(name, "VfsExists") == 0 && !outside.gate)
        return wait_at_gate(c);
    if (strcmp(name, "CapsuleStart") == 0 && outside.refused_before-- > 0) {
        (void)snprintf(c->waiting_for, sizeof(c->waiting_for), "room for a capsule");
        c->again_ms = 1;
        return MT_APP_AGAIN;
    }
    if (strcmp(name, "VfsDelete") == 0) {
        (void)snprintf(c->code, sizeof(c->code), "notFound");
        (void)mt_buf_adds(&c->message, "no such file");
        return MT_APP_REFUSED;
    }
    outside.made[c->number % CALLS_MAX]++;
    if (outside.lose && outside.made[c->number % CALLS_MAX] == 1) {
        c->again_ms = 1;
        return MT_APP_AGAIN;
    }
    if (c->builtin->result == MT_MTC_BOOL)
        (void)mt_buf_adds(&c->result, "true");
    else if (c->builtin->result == MT_MTC_GUID)
        (void)mt_buf_addf(&c->result, "\"00000000-0000-7000-8000-%012lld\"", (long long)c->number);
    else if (c->builtin->result == MT_MTC_STRING)
        (void)mt_buf_addf(&c->result, "\"text %lld\"", (long long)c->number);
    else
        (void)mt_buf_adds(&c->result, "null");
    return MT_APP_DONE;
}

static mt_app_outcome perform(mt_app_call *c, void *data)
{
    mt_app_outcome outcome;

    (void)data;
    (void)pthread_mutex_lock(&lock);
    outcome = make(c);
    (void)pthread_mutex_unlock(&lock);
    return outcome;
}

static int stop_capsule_run(const char *id, const char *app_run_id, void *data, mt_err **err)
{
    (void)pthread_mutex_lock(&lock);
    outside.stopped++;
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

static int stop_interaction_run(const char *id, const char *app_run_id, void *data, mt_err **err)
{
    (void)pthread_mutex_lock(&lock);
    (void)snprintf(outside.ended, sizeof(outside.ended), "%s", id);
    (void)snprintf(outside.ended_for, sizeof(outside.ended_for), "%s", app_run_id);
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

static uint64_t memory; // of the engine that is opened next; 0: as ever
static bool disk_full;

static int may_start(void *data, mt_err **err)
{
    return disk_full ? mt_fail(err, MT_E_DISK_FULL, "the disk is at its floor") : 0;
}

static int open_engine(mt_err **err)
{
    const mt_apps_options options = {.store = store,
                                     .memory = memory,
                                     .may_start = may_start,
                                     .perform = perform,
                                     .stop_capsule_run = stop_capsule_run,
                                     .stop_interaction_run = stop_interaction_run};

    CHECK_INT(mt_apps_new(&options, &apps, err), 0);
    return mt_apps_adopt(apps, err);
}

static void restart(void)
{
    _cleanup_err_ mt_err *err = NULL;

    mt_apps_free(apps);
    CHECK_INT(open_engine(&err), 0);
}

static void set_up(void)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK(sodium_init() >= 0);
    CHECK(mkdtemp(folder) && chdir(folder) == 0);
    CHECK_INT(mt_store_open(folder, &store, &err), 0);
    CHECK_INT(mt_store_user_create(store, "anna", MT_ROLE_USER, &user, &err), 0);
    CHECK_INT(mt_store_namespace_create(store, &user, "work", &ns, NULL, &err), 0);
    CHECK_INT(open_engine(&err), 0);
}

static void deploy(const char *name, const char *definition, const char *program)
{
    _cleanup_(mt_deploy_result_done) mt_deploy_result result = {0};
    _cleanup_err_ mt_err *err = NULL;
    char path[128];
    const mt_source source = {path, program, strlen(program)};
    const mt_deploy_item item = {.kind = MT_RESOURCE_APP,
                                 .name = name,
                                 .definition = definition,
                                 .sources = &source,
                                 .source_count = 1};

    (void)snprintf(path, sizeof(path), "apps/%s/%s.mtc", name, name);
    CHECK_INT(mt_store_deploy(store, ns.id, &item, 1, false, false, &result, &err), 0);
}

static int try_start(const char *app, const char *inputs, char id[MT_ID_TEXT], mt_err **err)
{
    _cleanup_(mt_resource_done) mt_resource resource = {0};
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    _cleanup_json_ mt_json *given = NULL;
    mt_app_start start = {.ns = &ns, .app = &resource, .user = &user, .id = id};

    mt_id_new(id);
    CHECK_INT(mt_store_resource_get(store, ns.id, MT_RESOURCE_APP, app, 0, &resource, err), 0);
    if (inputs)
        CHECK_INT(mt_json_parse(inputs, strlen(inputs), NULL, &given, err), 0);
    start.inputs = given;
    return mt_apps_start(apps, &start, &run, err);
}

static void start(const char *app, const char *inputs, char id[MT_ID_TEXT])
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_INT(try_start(app, inputs, id, &err), 0);
    if (err)
        printf("# %s\n", mt_err_sentence(err));
}

static void look(const char *id, mt_app_run *ret)
{
    _cleanup_err_ mt_err *err = NULL;

    mt_app_run_done(ret);
    CHECK_INT(mt_store_app_run_get(store, NULL, id, ret, &err), 0);
}

#define UNTIL(id, run, condition)                          \
    do {                                                   \
        int64_t end_ = mt_monotonic_us() + PATIENCE_US;    \
        look(id, run);                                     \
        while (!(condition) && mt_monotonic_us() < end_) { \
            (void)usleep(1000);                            \
            look(id, run);                                 \
        }                                                  \
        CHECK(condition);                                  \
    } while (0)

static void await(const char *id, mt_app_run *run)
{
    UNTIL(id, run, run->end_reason[0]);
}

static void check_run(const char *app, const char *inputs, const char *reason, const char *value)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    char id[MT_ID_TEXT];

    start(app, inputs, id);
    await(id, &run);
    CHECK_STR(run.end_reason, reason);
    CHECK_STR(strcmp(reason, "returned") == 0 ? run.return_value : run.failure_details, value);
}

// ---- tests ----

static void test_runs_to_its_end(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    _cleanup_(mt_app_line_list_done) mt_app_line_list lines = {0};
    char id[MT_ID_TEXT];

    deploy("sum", "{}",
           "int main(int first, string name) {\n"
           "    PrintLine(\"hello \" + name);\n"
           "    AppStateSetOutputInt(\"double\", 2 * first);\n"
           "    return(first + 1);\n"
           "}\n");
    start("sum", "{\"FIRST\":41,\"name\":\"anna\"}", id);
    await(id, &run);
    CHECK_STR(run.status, "Finished");
    CHECK_STR(run.end_reason, "returned");
    CHECK_STR(run.return_value, "42");
    CHECK_STR(run.outputs, "{\"double\":82}");
    CHECK_INT(run.console_count, 1);
    CHECK_INT(mt_store_app_line_list(store, id, "o", 0, 10, &lines, NULL), 0);
    CHECK_INT((int)lines.count, 1);
    CHECK_STR(lines.items[0].text, "hello anna\n");
}

static void check_refused(const char *inputs, const char *sentence)
{
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];

    CHECK_INT(try_start("sum", inputs, id, &err), -1);
    CHECK_INT(mt_err_code(err), MT_E_BAD_FIELD);
    CHECK(err && strstr(mt_err_sentence(err), sentence));
    if (err && !strstr(mt_err_sentence(err), sentence))
        printf("# %s\n", mt_err_sentence(err));
}

static void test_inputs_are_checked(void)
{
    check_refused("{\"first\":1}",
                  "'name' of app 'sum' is missing; it takes: first (int), name (string)");
    check_refused("{\"first\":1,\"name\":\"a\",\"nmae\":\"b\"}",
                  "there are: first (int), name (string)");
    check_refused("{\"first\":1,\"name\":\"a\",\"Name\":\"b\"}", "given twice");
    check_refused("{\"first\":\"x\",\"name\":\"a\"}", "first");
}

static void test_errors_end_it(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    char id[MT_ID_TEXT];

    deploy("throws", "{}",
           "void deep() { throw(\"it is over\"); }\n"
           "void main() { deep(); }\n");
    start("throws", NULL, id);
    await(id, &run);
    CHECK_STR(run.status, "Error");
    CHECK_STR(run.end_reason, "failed");
    CHECK_STR(run.failure_details, "it is over");
    CHECK_STR(run.failure_code, "Thrown");
    CHECK_STR(run.failure_place, "throws.mtc:1:15");
    deploy("nested", "{}", "int main() { return main(); }\n");
    start("nested", NULL, id);
    await(id, &run);
    CHECK_STR(run.end_reason, "tooDeep");
    deploy(
        "hungry", "{}",
        "void main() { jsonArray a = JsonArrayCreate(); string s = StringRepeat(\"x\", 1000000);\n"
        "  while (true) { s = s + \"y\"; a = JsonArrayAddString(a, s); } }\n");
    start("hungry", NULL, id);
    await(id, &run);
    CHECK_STR(run.status, "Error");
}

static const char TEN_CALLS[] =
    "string main() {\n"
    "    guid run = CapsuleStart(\"c\", \"\", \"[]\", \"[]\", \"[]\");\n"
    "    VfsWriteText(\"v\", \"a\", \"text\");\n"
    "    string out = VfsReadText(\"v\", \"a\");\n"
    "    PrintLine(out);\n"
    "    try { VfsDelete(\"v\", \"b\"); }\n"
    "    catch (error e) { out = out + ErrorCode(e); }\n"
    "    out = out + GuidToString(GuidCreate()) + TimeNow();\n"
    "    AppStateSetOutputString(\"seen\", out);\n"
    "    bool there = VfsExists(\"v\", \"a\");\n"
    "    out = out + RandomInt(1, 1000000);\n"
    "    CapsuleTerminate(run);\n"
    "    PrintLine(out);\n"
    "    return(out);\n"
    "}\n";

static void open_gate(void)
{
    char topic[MT_ID_TEXT];

    (void)pthread_mutex_lock(&lock);
    outside.gate = true;
    memcpy(topic, outside.topic, sizeof(topic));
    (void)pthread_mutex_unlock(&lock);
    mt_apps_announce(apps, topic);
}

static void test_goes_on_after_a_restart(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    _cleanup_(mt_app_line_list_done) mt_app_line_list lines = {0};
    _cleanup_free_ char *before = NULL;
    char id[MT_ID_TEXT];

    outside_reset();
    deploy("ten", "{}", TEN_CALLS);
    start("ten", NULL, id);
    UNTIL(id, &run, run.call_count == 7 && run.output_count == 1);
    before = strdup(run.outputs);
    for (int i = 0; i < 3; i++)
        restart();
    CHECK_INT(made(1) + made(2) + made(3), 3);
    open_gate();
    await(id, &run);
    CHECK_STR(run.end_reason, "returned");
    CHECK_STR(run.outputs, before);
    CHECK(before && strncmp(run.return_value + 1, before + strlen("{\"seen\":\""), 40) == 0);
    CHECK_INT(made(1) + made(2) + made(3), 3);
    CHECK_INT(mt_store_app_line_list(store, id, "o", 0, 10, &lines, NULL), 0);
    CHECK_INT((int)lines.count, 2);
}

static void test_lost_answers_are_asked_for_again(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    char id[MT_ID_TEXT];

    outside_reset();
    outside.lose = true;
    outside.gate = true;
    outside.refused_before = 3;
    start("ten", NULL, id);
    await(id, &run);
    CHECK_STR(run.end_reason, "returned");
    CHECK_INT(made(1), 2);
    CHECK_INT(made(2), 2);
    CHECK_INT(made(3), 2);
}

static void test_sleep_has_its_moment(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    char id[MT_ID_TEXT];
    int64_t begun = mt_now_us();

    deploy("sleeps", "{}", "void main() { Sleep(400); }\n");
    start("sleeps", NULL, id);
    UNTIL(id, &run, run.call_count == 1);
    restart();
    await(id, &run);
    CHECK_STR(run.end_reason, "returned");
    CHECK(run.date_ended - begun >= 400000);
    CHECK(run.date_ended - run.date_created < PATIENCE_US);
    check_run("sleeps", NULL, "returned", "null");
}

static void test_time_and_cancel(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];

    deploy("timed", "{\"duration\":{\"max\":\"00:00:01\"}}", "void main() { while (true) { } }\n");
    start("timed", NULL, id);
    await(id, &run);
    CHECK_STR(run.end_reason, "timeout");
    CHECK_INT((int)run.limit_ms, 1000);
    deploy("waits", "{}", "void main() { Sleep(3600000); }\n");
    start("waits", NULL, id);
    UNTIL(id, &run, run.call_count == 1);
    CHECK_INT(mt_apps_cancel(apps, id, "anna", &err), 0);
    await(id, &run);
    CHECK_STR(run.end_reason, "cancelled");
    CHECK_STR(run.cancelled_by, "anna");
    CHECK_STR(run.failure_details, "cancelled by anna");
}

static void ask_as(const char *app_run_id, char id[MT_ID_TEXT])
{
    _cleanup_(mt_interaction_run_done) mt_interaction_run run = {0};
    const mt_interaction_run_new record = {.id = id,
                                           .namespace_id = ns.id,
                                           .interaction = "next-command",
                                           .version = 1,
                                           .model = "deepseek.x",
                                           .inputs = "{}",
                                           .plan = "{}",
                                           .started_by = &user,
                                           .parent_app_id = app_run_id,
                                           .max_duration_ms = 60000,
                                           .deadline = mt_now_us() + 60000000};

    mt_id_new(id);
    CHECK_INT(mt_store_interaction_run_create(store, &record, &run, NULL), 0);
}

static void test_what_it_asked_for_ends_with_it(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    char id[MT_ID_TEXT], asked[MT_ID_TEXT];

    outside_reset();
    start("waits", NULL, id);
    ask_as(id, asked);
    CHECK_INT(mt_apps_cancel(apps, id, "anna", NULL), 0);
    await(id, &run);
    CHECK_STR(run.end_reason, "cancelled");
    CHECK_STR(outside.ended, asked);
    CHECK_STR(outside.ended_for, id);
}

static void test_cancelled_while_away(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];

    start("waits", NULL, id);
    UNTIL(id, &run, run.call_count == 1);
    mt_apps_free(apps);
    CHECK_INT(mt_store_app_run_request_cancel(store, id, "anna", &err), 0);
    CHECK_INT(open_engine(&err), 0);
    await(id, &run);
    CHECK_STR(run.end_reason, "cancelled");
}

static void store_run(const char *app, int64_t language, char id[MT_ID_TEXT])
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    _cleanup_err_ mt_err *err = NULL;
    const mt_app_run_new new = {.id = id,
                                .namespace_id = ns.id,
                                .app = app,
                                .version = 1,
                                .inputs = "{}",
                                .started_by = &user,
                                .language = language,
                                .date_created = mt_now_us()};

    mt_id_new(id);
    CHECK_INT(mt_store_app_run_create(store, &new, &run, &err), 0);
}

static void test_another_program_is_told(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    const mt_app_call_record call = {.number = 1,
                                     .name = "VfsReadText",
                                     .digest = "00",
                                     .code = (char *)"",
                                     .result = (char *)"\"x\""};

    mt_apps_free(apps);
    store_run("ten", MT_APP_LANGUAGE, id);
    CHECK_INT(mt_store_app_call_put(store, id, &call, &err), 0);
    CHECK_INT(open_engine(&err), 0);
    await(id, &run);
    CHECK_STR(run.end_reason, "replayDiverged");
    CHECK(strstr(run.failure_details, "call 1 was VfsReadText") &&
          strstr(run.failure_details, "is CapsuleStart") &&
          strstr(run.failure_details, "ten.mtc:2:"));
}

static void test_another_language_is_refused(void)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_app_end end = {.status = "Error", .end_reason = "cancelled"};
    char id[MT_ID_TEXT];

    mt_apps_free(apps);
    store_run("ten", MT_APP_LANGUAGE + 1, id);
    CHECK_INT(open_engine(&err), -1);
    CHECK(err && strstr(mt_err_sentence(err), id));
    mt_apps_free(apps);
    CHECK_INT(mt_store_app_run_end(store, id, &end, NULL), 0);
    err = mt_err_free(err);
    CHECK_INT(open_engine(&err), 0);
}

static void test_sleepers_wake_in_order(void)
{
    enum { SLEEPERS = 200 };
    static char ids[SLEEPERS][MT_ID_TEXT];
    int64_t last = 0;
    int late = 0;

    deploy("naps", "{}", "void main(int until) { Sleep(until - TimeNow()); }\n");
    for (int i = 0; i < SLEEPERS; i++) {
        char inputs[64];

        (void)snprintf(inputs, sizeof(inputs), "{\"until\":%lld}",
                       (long long)(mt_now_us() / 1000 + 2000 + 5 * i));
        start("naps", inputs, ids[i]);
    }
    for (int i = 0; i < SLEEPERS; i++) {
        _cleanup_(mt_app_run_done) mt_app_run run = {0};

        await(ids[i], &run);
        CHECK_STR(run.status, "Finished");
        late += run.date_ended + 500000 < last;
        last = run.date_ended;
    }
    CHECK_INT(late, 0);
}

// A text of 16,000,000 characters that JSON writes with six bytes each.
#define LARGE "StringRepeat(StringFromCode(1), 16000000)"

static void test_what_is_too_large_as_json_is_told(void)
{
    deploy("returns", "{}", "string main() { return(" LARGE "); }\n");
    check_run("returns", NULL, "failed", "what main returned is over 48 MiB as JSON");
    deploy("asks", "{}",
           "string main() { string s = " LARGE ";\n"
           "  try { VfsWriteText(\"v\", \"a\", s); } catch (error e) { return(ErrorCode(e)); }\n"
           "  return(\"\"); }\n");
    check_run("asks", NULL, "returned", "\"TooLarge\"");
    deploy(
        "sets", "{}",
        "string main() { string s = " LARGE ";\n"
        "  try { AppStateSetOutputString(\"a\", s); } catch (error e) { return(ErrorCode(e)); }\n"
        "  return(\"\"); }\n");
    check_run("sets", NULL, "returned", "\"TooLarge\"");
}

static void with_memory(uint64_t bytes)
{
    memory = bytes;
    restart();
}

static size_t bytes_of_all(void)
{
    size_t bytes;

    (void)pthread_mutex_lock(&apps->lock);
    bytes = apps->bytes;
    (void)pthread_mutex_unlock(&apps->lock);
    return bytes;
}

static void test_who_waits_with_much_waits_without_it(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    char id[MT_ID_TEXT];
    int64_t end = mt_monotonic_us() + PATIENCE_US;

    outside_reset();
    with_memory(8 << 20);
    deploy("holds", "{}",
           "int main() { string s = StringRepeat(\"x\", 3000000); string t = VfsReadText(\"v\", "
           "\"a\");\n"
           "  bool there = VfsExists(\"v\", \"a\"); return(StringLength(s + t)); }\n");
    start("holds", NULL, id);
    UNTIL(id, &run, run.call_count == 2);
    while (bytes_of_all() > 100000 && mt_monotonic_us() < end)
        (void)usleep(1000);
    CHECK(bytes_of_all() <= 100000);
    open_gate();
    await(id, &run);
    CHECK_STR(run.return_value, "3000006");
    CHECK_INT(made(1), 1);
}

static void test_who_computes_with_too_much_ends(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    char id[MT_ID_TEXT];

    deploy("takes", "{}",
           "void main() { jsonArray a = JsonArrayCreate();\n"
           "  while (true) { a = JsonArrayAddString(a, StringRepeat(\"x\", 100000)); } }\n");
    start("takes", NULL, id);
    await(id, &run);
    CHECK_STR(run.end_reason, "outOfMemory");
    CHECK(strstr(run.failure_details, "one user"));
    check_run("sum", "{\"first\":1,\"name\":\"a\"}", "returned", "2");
}

static void test_starts_have_an_end(void)
{
    static char ids[200][MT_ID_TEXT];
    _cleanup_err_ mt_err *err = NULL;
    int n = 0;

    with_memory(64 << 10);
    while (n < 200 && try_start("waits", NULL, ids[n], &err) == 0)
        n++;
    CHECK(n > 0 && n < 200);
    CHECK_INT(mt_err_code(err), MT_E_CAPACITY_EXCEEDED);
    for (int i = 0; i < n; i++) {
        _cleanup_(mt_app_run_done) mt_app_run run = {0};

        CHECK_INT(mt_apps_cancel(apps, ids[i], "anna", NULL), 0);
        await(ids[i], &run);
    }
    CHECK_INT((int)bytes_of_all(), 0);
    with_memory(0);
    err = mt_err_free(err);
    disk_full = true;
    CHECK_INT(try_start("waits", NULL, ids[0], &err), -1);
    CHECK_INT(mt_err_code(err), MT_E_DISK_FULL);
    disk_full = false;
}

static void test_an_open_call_that_cannot_be_read_stops_nobody(void)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    _cleanup_err_ mt_err *err = NULL;
    char id[MT_ID_TEXT];
    const mt_app_call_record call = {.number = 1,
                                     .name = "Sleep",
                                     .digest = "00",
                                     .open = true,
                                     .arguments = (char *)"[",
                                     .code = (char *)"",
                                     .result = (char *)""};

    mt_apps_free(apps);
    store_run("waits", MT_APP_LANGUAGE, id);
    CHECK_INT(mt_store_app_call_put(store, id, &call, &err), 0);
    CHECK_INT(open_engine(&err), 0);
    await(id, &run);
    CHECK_STR(run.end_reason, "replayDiverged");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

int main(void)
{
    set_up();
    test_runs_to_its_end();
    test_inputs_are_checked();
    test_errors_end_it();
    test_goes_on_after_a_restart();
    test_lost_answers_are_asked_for_again();
    test_sleep_has_its_moment();
    test_time_and_cancel();
    test_what_it_asked_for_ends_with_it();
    test_cancelled_while_away();
    test_another_program_is_told();
    test_another_language_is_refused();
    test_sleepers_wake_in_order();
    test_what_is_too_large_as_json_is_told();
    test_who_waits_with_much_waits_without_it();
    test_who_computes_with_too_much_ends();
    test_starts_have_an_end();
    test_an_open_call_that_cannot_be_read_stops_nobody();
    mt_apps_free(apps);
    mt_store_close(store);
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return TAP_DONE();
}
