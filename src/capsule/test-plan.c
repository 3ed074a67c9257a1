// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "capsule/plan.h"

#define ID      "0192f3a1-0000-7000-8000-000000000001"
#define STARTER "0192f3a1-0000-7000-8000-000000000002"
#define DIGEST  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char *const packages[] = {"sqlite3", "jq=1.6-2.1"};
static const char *const users[] = {"analyst", "robot"};
static const char *const arguments[] = {"--all", "", "two words"};
static const mt_plan_mount mounts[] = {{ID, "data"}, {ID, "more"}};
static const mt_plan_env environment[] = {{"KEY", "a = b"}, {"_x1", ""}};
static const mt_plan_command startup[] = {
    {.command = "echo hi", .user = "maitento", .wait = true},
    {.command = "tool",
     .arguments = arguments,
     .argument_count = 3,
     .user = "analyst",
     .max_duration_ms = 60000},
};

// Values are overwritten, so they are no literals.
static char value[] = "CANARY\0\n\xff", other_value[] = "x";
static mt_plan_secret secret_list[2];

static mt_plan good(void)
{
    secret_list[0] = (mt_plan_secret){"token", {value, sizeof(value) - 1}};
    secret_list[1] = (mt_plan_secret){"empty", {other_value, 0}};
    return (mt_plan){
        .run_id = ID,
        .namespace_name = "finance",
        .capsule_name = "report",
        .starter = STARTER,
        .image_digest = DIGEST,
        .packages = packages,
        .package_count = 2,
        .mounts = mounts,
        .mount_count = 2,
        .users = users,
        .user_count = 2,
        .environment = environment,
        .environment_count = 2,
        .startup = startup,
        .startup_count = 2,
        .auto_terminate = true,
        .max_duration_ms = 600000,
        .deadline_ns = 123456789,
        .limits = {.memory_bytes = 2ull << 30,
                   .cpu_milli = 1500,
                   .pids = 512,
                   .disk_bytes = 2ull << 30},
        .hostname = "report-1",
        .secrets = secret_list,
        .secret_count = 2,
    };
}

static void test_round_trip(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_PLAN_BYTES_MAX);
    _cleanup_(mt_plan_free_p) mt_plan *p = NULL;
    _cleanup_err_ mt_err *err = NULL;
    mt_plan in = good();

    CHECK_INT(mt_plan_encode(&in, &b, &err), 0);
    CHECK_INT(mt_plan_decode(b.data, b.len, &p, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
    if (!p)
        return;
    CHECK_STR(p->run_id, ID);
    CHECK_STR(p->starter, STARTER);
    CHECK_INT(p->package_count, 2);
    CHECK_STR(p->packages[1], "jq=1.6-2.1");
    CHECK_STR(p->mounts[1].mount_name, "more");
    CHECK_STR(p->users[1], "robot");
    CHECK_STR(p->environment[0].value, "a = b");
    CHECK_INT(p->startup_count, 2);
    CHECK(p->startup[0].wait && !p->startup[1].wait);
    CHECK_STR(p->startup[1].arguments[2], "two words");
    CHECK_STR(p->startup[1].arguments[1], "");
    CHECK_INT(p->startup[1].max_duration_ms, 60000);
    CHECK_INT(p->deadline_ns, 123456789);
    CHECK_INT(p->limits.cpu_milli, 1500);
    CHECK_STR(p->hostname, "report-1");
    CHECK_INT(p->secret_count, 2);
    CHECK_STR(p->secrets[0].mount_name, "token");
    CHECK_INT(p->secrets[0].value.len, sizeof(value) - 1);
    CHECK(memcmp(p->secrets[0].value.data, value, sizeof(value) - 1) == 0);
    CHECK_STR(p->secrets[1].mount_name, "empty");
    CHECK_INT(p->secrets[1].value.len, 0);
}

static void test_forgotten(void)
{
    char own[] = "CANARY-7f3a", zeros[sizeof(own)] = {0};
    mt_plan_secret list[] = {{"token", {own, strlen(own)}}};
    mt_plan p = good();

    p.secrets = list;
    p.secret_count = 1;
    mt_plan_forget(&p);
    CHECK(memcmp(own, zeros, sizeof(own)) == 0);
    CHECK_INT(p.secret_count, 1);
    CHECK_STR(p.secrets[0].mount_name, "token");
    CHECK_INT(p.secrets[0].value.len, 0);
    CHECK_INT(mt_plan_validate(&p, NULL), 0);
    p.secret_count = 0;
    p.secrets = NULL;
    mt_plan_forget(&p);
}

static void refused(mt_plan p, const char *what);

static void test_secret_rules(void)
{
    static char big[MT_PLAN_SECRET_MAX + 1];
    mt_plan_secret many[MT_PLAN_SECRETS_MAX + 1];
    char names[MT_PLAN_SECRETS_MAX + 1][8];
    mt_plan p = good();

    secret_list[0].mount_name = "../x";
    refused(p, "mount name");
    secret_list[0].mount_name = "empty";
    refused(p, "twice");
    secret_list[0] = (mt_plan_secret){"big", {big, sizeof(big)}};
    refused(p, "'big'");
    p.secrets = many;
    for (uint32_t i = 0; i <= MT_PLAN_SECRETS_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "s%u", i);
        many[i] = (mt_plan_secret){names[i], {big, 1}};
    }
    p.secret_count = MT_PLAN_SECRETS_MAX + 1;
    refused(p, "64");
    p.secret_count = MT_PLAN_SECRETS_MAX;
    CHECK_INT(mt_plan_validate(&p, NULL), 0);
    for (uint32_t i = 0; i < 16; i++)
        many[i].value.len = MT_PLAN_SECRET_MAX;
    refused(p, "1 MiB in all");
}

// Every cut of a good plan is refused, and so is each with something behind it.
static void test_cut(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_PLAN_BYTES_MAX);
    mt_plan in = good(), *p = NULL;
    int accepted = 0;

    (void)mt_plan_encode(&in, &b, NULL);
    for (size_t len = 0; len < b.len; len++)
        accepted += mt_plan_decode(b.data, len, &p, NULL) == 0;
    CHECK_INT(accepted, 0);
    (void)mt_buf_addc(&b, 'x');
    CHECK_INT(mt_plan_decode(b.data, b.len, &p, NULL), -1);
}

static void refused(mt_plan p, const char *what)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_INT(mt_plan_validate(&p, &err), -1);
    if (!strstr(mt_err_sentence(err), what))
        CHECK_STR(mt_err_sentence(err), what);
}

static void test_rules(void)
{
    mt_plan p = good();
    static const char *const twice[] = {"a", "a"}, *const root[] = {"root"},
                             *const dot[] = {"../x"};
    static const mt_plan_mount out[] = {{ID, "../etc"}}, secrets[] = {{ID, "secrets"}},
                               same[] = {{ID, "a"}, {ID, "a"}}, no_id[] = {{"../../x", "a"}};
    static const mt_plan_env bad_env[] = {{"A=B", "x"}};
    static const mt_plan_command empty = {.command = "", .user = "maitento"},
                                 nobody = {.command = "x", .user = "nobody"};

    CHECK_INT(mt_plan_validate(&p, NULL), 0);
    p.run_id = "../x";
    refused(p, "run id");
    p = good();
    p.image_digest = "../../etc";
    refused(p, "image");
    p = good();
    p.starter = "../x";
    refused(p, "starter");
    p = good();
    p.starter = "";
    CHECK_INT(mt_plan_validate(&p, NULL), 0);
    p = good();
    p.hostname = "a.b";
    refused(p, "hostname");
    p = good();
    p.users = twice;
    refused(p, "twice");
    p.users = root;
    p.user_count = 1;
    refused(p, "root");
    p.users = dot;
    refused(p, "users");
    p = good();
    p.mount_count = 1;
    p.mounts = out;
    refused(p, "mount name");
    p.mounts = secrets;
    refused(p, "secrets");
    p.mounts = no_id;
    refused(p, "GUID");
    p.mounts = same;
    p.mount_count = 2;
    refused(p, "twice");
    p = good();
    p.environment = bad_env;
    p.environment_count = 1;
    refused(p, "environment");
    p = good();
    p.startup = &empty;
    p.startup_count = 1;
    refused(p, "empty");
    p.startup = &nobody;
    refused(p, "nobody");
    p = good();
    p.limits.memory_bytes = 4096;
    refused(p, "memory");
    p = good();
    p.deadline_ns = 0;
    refused(p, "deadline");
}

static void test_sizes(void)
{
    _cleanup_free_ char *line = malloc(MT_PLAN_COMMAND_MAX + 2);
    mt_plan_command c = {.command = line, .user = "root"};
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_PLAN_BYTES_MAX + 1024);
    _cleanup_(mt_plan_free_p) mt_plan *back = NULL;
    mt_plan p = good();

    memset(line, 'x', MT_PLAN_COMMAND_MAX + 1);
    line[MT_PLAN_COMMAND_MAX + 1] = '\0';
    p.startup = &c;
    p.startup_count = 1;
    refused(p, "8 MiB");
    line[MT_PLAN_COMMAND_MAX] = '\0';
    CHECK_INT(mt_plan_encode(&p, &b, NULL), 0);
    CHECK_INT(mt_plan_decode(b.data, b.len, &back, NULL), 0);
    CHECK(back && strlen(back->startup[0].command) == MT_PLAN_COMMAND_MAX);
}

// Short texts in great number cost the decoder more memory than they take on the wire.
static void test_many_arguments(void)
{
    static const char *many[MT_PLAN_ARGUMENTS_MAX];
    mt_plan_command c = {
        .command = "x", .user = "root", .arguments = many, .argument_count = MT_PLAN_ARGUMENTS_MAX};
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_PLAN_BYTES_MAX);
    _cleanup_(mt_plan_free_p) mt_plan *back = NULL;
    mt_plan p = good();

    for (size_t i = 0; i < MT_PLAN_ARGUMENTS_MAX; i++)
        many[i] = i % 2 ? "a" : "";
    p.startup = &c;
    p.startup_count = 1;
    CHECK_INT(mt_plan_encode(&p, &b, NULL), 0);
    CHECK_INT(mt_plan_decode(b.data, b.len, &back, NULL), 0);
    CHECK(back && back->startup[0].argument_count == MT_PLAN_ARGUMENTS_MAX);
}

int main(void)
{
    test_round_trip();
    test_forgotten();
    test_secret_rules();
    test_cut();
    test_rules();
    test_sizes();
    test_many_arguments();
    return TAP_DONE();
}
