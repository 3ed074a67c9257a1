// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "capsule/command.h"
#include "capsule/protocol.h"

#define ID "0192f3a1-0000-7000-8000-000000000001"

static const char *const arguments[] = {"-l", "", "two  words", "a\nb", "$x"};
static const mt_plan_env environment[] = {{"KEY", "a = b"}, {"_x1", ""}};

static mt_command good(void)
{
    return (mt_command){
        .id = ID,
        .command = "ls",
        .arguments = arguments,
        .argument_count = 5,
        .user = "sandbox",
        .async = true,
        .max_duration_ms = 60000,
        .working_directory = "/tmp",
        .environment = environment,
        .environment_count = 2,
        .input = MT_STR("a\0b"),
    };
}

static void test_round_trip(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_FRAME_EXEC_MAX);
    _cleanup_(mt_command_free_p) mt_command *c = NULL;
    _cleanup_err_ mt_err *err = NULL;
    mt_command in = good();

    CHECK_INT(mt_command_encode(&in, &b, &err), 0);
    CHECK_INT(mt_command_decode(b.data, b.len, &c, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
    if (!c)
        return;
    CHECK_STR(c->id, ID);
    CHECK_STR(c->command, "ls");
    CHECK_INT(c->argument_count, 5);
    CHECK_STR(c->arguments[2], "two  words");
    CHECK_STR(c->user, "sandbox");
    CHECK(c->async);
    CHECK_INT(c->max_duration_ms, 60000);
    CHECK_STR(c->working_directory, "/tmp");
    CHECK_STR(c->environment[1].key, "_x1");
    CHECK_INT(c->input.len, 3);
    CHECK(memcmp(c->input.data, "a\0b", 3) == 0);
}

static void test_plain(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);
    _cleanup_(mt_command_free_p) mt_command *c = NULL;
    const mt_command in = {.id = ID, .command = "a | b; c", .user = "maitento"};

    CHECK_INT(mt_command_encode(&in, &b, NULL), 0);
    CHECK_INT(mt_command_decode(b.data, b.len, &c, NULL), 0);
    CHECK(c && !c->async && !c->working_directory && c->input.len == 0 && c->max_duration_ms == 0);
    // Cut off anywhere, or longer, it is no command.
    for (size_t i = 0; i < b.len; i++) {
        mt_command *cut = NULL;

        CHECK(mt_command_decode(b.data, i, &cut, NULL) < 0);
    }
    (void)mt_buf_addc(&b, 0);
    mt_command_free(c);
    c = NULL;
    CHECK(mt_command_decode(b.data, b.len, &c, NULL) < 0);
}

static void expect(const mt_command *c, mt_code code, const char *field, const char *part)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_INT(mt_command_validate(c, &err), -1);
    CHECK_INT(mt_err_code(err), code);
    CHECK_STR(mt_err_field(err), field);
    if (!CHECK(strstr(mt_err_sentence(err), part)))
        printf("# %s\n", mt_err_sentence(err));
}

static void test_rules(void)
{
    _cleanup_free_ char *long_text = calloc(1, (9 << 20) + 1);
    const char *one[] = {long_text};
    mt_plan_env odd[] = {{"A-B", ""}};
    mt_command c = good();

    memset(long_text, 'x', 9 << 20);
    c.id = "../x";
    expect(&c, MT_E_BAD_FIELD, "id", "is no GUID");
    c = good();
    c.command = "  ";
    expect(&c, MT_E_BAD_FIELD, "command", "empty");
    c.command = "ls;";
    expect(&c, MT_E_BAD_FIELD, "command", "cannot end in ';'");
    c.command = long_text;
    expect(&c, MT_E_TOO_LARGE, "command", "8 MiB");
    c = good();
    c.arguments = one;
    c.argument_count = 1;
    expect(&c, MT_E_TOO_LARGE, "arguments",
           "argument 1 of the command is longer than 131,071 bytes");
    c = good();
    c.argument_count = 10001;
    expect(&c, MT_E_TOO_LARGE, "arguments", "10,000");
    c = good();
    c.user = "no body";
    expect(&c, MT_E_BAD_FIELD, "runAsUser", "form");
    c = good();
    c.max_duration_ms = -1;
    expect(&c, MT_E_BAD_FIELD, "maxDuration", "366 days");
    c = good();
    c.working_directory = "tmp";
    expect(&c, MT_E_BAD_FIELD, "workingDirectory", "absolute");
    c = good();
    c.environment = odd;
    c.environment_count = 1;
    expect(&c, MT_E_BAD_FIELD, "environment", "form");
    c = good();
    c.input = (mt_str){long_text, 9 << 20};
    expect(&c, MT_E_TOO_LARGE, "stdin", "8 MiB");
}

int main(void)
{
    test_round_trip();
    test_plain();
    test_rules();
    return TAP_DONE();
}
