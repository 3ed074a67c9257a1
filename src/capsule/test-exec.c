// SPDX-License-Identifier: Apache-2.0
#include "capsule/exec.h"

#include "base/tap.h"
#include "base/utf8.h"
#include "capsule/output.h"

static const char PASSWD[] = "root:x:0:0:root:/root:/bin/bash\n"
                             "broken\n"
                             "maitento:x:x:1000::/home/maitento:/bin/bash\n"
                             "maitento:x:1000:1000:,,,:/home/maitento:/bin/bash\n"
                             "big:x:70000:1:::\nrelative:x:5:5::home:/bin/sh\n"
                             "last:x:7:8::/:/bin/sh";
static const char GROUP[] = "root:x:0:\nmaitento:x:1000:\nadm:x:4:syslog,maitento\n"
                            "video:x:44:maitento,last\nvideo2:x:44:maitento\nodd:x:99999:maitento\n"
                            "near:x:45:maitento2,xmaitento\n";

static void test_users(void)
{
    mt_exec_user u = {0};
    mt_err *err = NULL;

    CHECK_INT(mt_exec_find_user(MT_STR(PASSWD), MT_STR(GROUP), "maitento", &u, NULL), 0);
    CHECK_INT(u.uid, 1000);
    CHECK_INT(u.gid, 1000);
    CHECK_STR(u.home, "/home/maitento");
    CHECK_INT(u.group_count, 3);
    CHECK(u.groups[0] == 1000 && u.groups[1] == 4 && u.groups[2] == 44);
    CHECK_INT(mt_exec_find_user(MT_STR(PASSWD), MT_STR(""), "last", &u, NULL), 0);
    CHECK_STR(u.home, "/");
    CHECK_INT(mt_exec_find_user(MT_STR(PASSWD), MT_STR(GROUP), "big", &u, NULL), -1);
    CHECK_INT(mt_exec_find_user(MT_STR(PASSWD), MT_STR(GROUP), "relative", &u, NULL), -1);
    CHECK_INT(mt_exec_find_user(MT_STR(PASSWD), MT_STR(GROUP), "maitent", &u, &err), -1);
    CHECK_INT(mt_err_code(err), MT_E_NOT_FOUND);
    CHECK_STR(u.name, "last");
    (void)mt_err_free(err);
}

static void test_path(void)
{
    char path[MT_EXEC_PATH_MAX];
    const mt_str defs =
        MT_STR("# ENV_PATH no\nENV_SUPATH\tPATH=/sbin:/bin  \nENV_PATH  PATH=/opt/x:/bin\n");

    mt_exec_login_path(defs, false, path);
    CHECK_STR(path, "/opt/x:/bin");
    mt_exec_login_path(defs, true, path);
    CHECK_STR(path, "/sbin:/bin");
    mt_exec_login_path(MT_STR(""), false, path);
    CHECK_STR(path, "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games");
}

static void check_refused(const char *command, size_t arguments, const char *part)
{
    mt_err *err = NULL;

    CHECK_INT(mt_exec_check(mt_str_of(command), arguments, &err), -1);
    if (!CHECK(strstr(mt_err_sentence(err), part)))
        printf("# %s\n", mt_err_sentence(err));
    (void)mt_err_free(err);
}

static void test_check(void)
{
    check_refused("", 0, "empty");
    check_refused("  \t", 0, "empty");
    check_refused("a\nb", 1, "one line");
    check_refused("ls; ", 1, "cannot end in ';'");
    check_refused("ls &", 1, "cannot end in '&'");
    check_refused("ls |", 1, "cannot end in '|'");
    check_refused("ls \\", 1, "cannot end in '\\'");
    check_refused("ls # x", 1, "comment");
    check_refused("# x", 1, "comment");
    check_refused("ls;#x", 1, "comment");
    CHECK_INT(mt_exec_check(MT_STR("a\nb; # c \\"), 0, NULL), 0);
    CHECK_INT(mt_exec_check(MT_STR("echo a#b '# c' \"\\\" # d\" \\# "), 1, NULL), 0);
    CHECK_INT(mt_exec_check(MT_STR("ls"), 3, NULL), 0);
    CHECK_INT(mt_exec_check(MT_STR("a\0b"), 0, NULL), -1);
}

static const char *string_at(const mt_exec_block *b, uint32_t n)
{
    const char *s = mt_buf_str(&b->strings);

    while (n-- > 0)
        s += strlen(s) + 1;
    return s;
}

static void test_build(void)
{
    static const char *const args[] = {"a b", "", "$x"};
    static const mt_exec_setting env[] = {{"PATH", "/p"}, {"X", "1"}, {"X", "2"}, {"EMPTY", ""}};
    const mt_exec_user user = {.name = "ann", .uid = 1001, .gid = 1001, .home = "/home/ann"};
    mt_exec_spec spec = {.command = MT_STR("printf "),
                         .arguments = args,
                         .argument_count = 3,
                         .user = &user,
                         .path = "/bin",
                         .environment = env,
                         .environment_count = 4};
    _cleanup_exec_block_ mt_exec_block b = MT_EXEC_BLOCK_INIT;
    static const char *const expect[] = {"/bin/bash",
                                         "/home/ann",
                                         "-bash",
                                         "-c",
                                         "printf \"$@\"",
                                         "-bash",
                                         "a b",
                                         "",
                                         "$x",
                                         "HOME=/home/ann",
                                         "USER=ann",
                                         "LOGNAME=ann",
                                         "SHELL=/bin/bash",
                                         "LANG=C.UTF-8",
                                         "PATH=/p",
                                         "X=2",
                                         "EMPTY="};
    _cleanup_free_ char *text = malloc(MT_EXEC_TEXT_MAX + 2);

    CHECK_INT(mt_exec_build(&spec, &b, NULL), 0);
    CHECK_INT(b.argc, 7);
    CHECK_INT(b.envc, 8);
    for (uint32_t i = 0; i < MT_ARRAY_SIZE(expect); i++)
        CHECK_STR(string_at(&b, i), expect[i]);
    memset(text, 'x', MT_EXEC_TEXT_MAX + 1);
    text[MT_EXEC_TEXT_MAX + 1] = 0;
    spec.command = (mt_str){text, MT_EXEC_TEXT_MAX + 1};
    spec.argument_count = 0;
    CHECK_INT(mt_exec_build(&spec, &b, NULL), 0);
    CHECK_INT(b.text.len, MT_EXEC_TEXT_MAX + 1);
    CHECK_INT(b.argc, 4);
    spec.command.len--;
    spec.namespace_name = "ns";
    CHECK_INT(mt_exec_build(&spec, &b, NULL), 0);
    CHECK_INT(b.text.len, 0);
    CHECK(memmem(b.strings.data, b.strings.len, "MAITENTO_NAMESPACE=ns", 22));
}

static void check_tail(const char *data, size_t len, size_t max, size_t chunk, const char *expect,
                       uint64_t chars)
{
    mt_tail t;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 16);

    mt_tail_init(&t, max);
    for (size_t i = 0; i < len; i += chunk)
        mt_tail_add(&t, data + i, MT_MIN(chunk, len - i));
    CHECK_INT(mt_tail_get(&t, &b), 0);
    CHECK_STR(mt_buf_str(&b), expect);
    CHECK_INT(mt_tail_chars(&t), chars);
    mt_tail_done(&t);
}

static void test_tail(void)
{
    char many[1000], expect[41] = "";

    check_tail("", 0, 5, 1, "", 0);
    for (size_t chunk = 1; chunk < 9; chunk++) {
        check_tail("hello", 5, 5, chunk, "hello", 5);
        check_tail("hello world", 11, 5, chunk, "world", 11);
        check_tail("äöüß€𝄞", 15, 3, chunk, "ß€𝄞", 6);
        check_tail("a\xff\xc3", 3, 5, chunk, "a\xef\xbf\xbd\xef\xbf\xbd", 3);
        check_tail("\xe2\x82\x28", 3, 5, chunk, "\xef\xbf\xbd\xef\xbf\xbd(", 3);
    }
    for (size_t i = 0; i < 250; i++)
        memcpy(many + 4 * i, "𝄞", 4);
    for (size_t i = 0; i < 10; i++)
        memcpy(expect + 4 * i, "𝄞", 5);
    for (size_t chunk = 1; chunk < 100; chunk += 7)
        check_tail(many, sizeof(many), 10, chunk, expect, 250);
}

int main(void)
{
    test_users();
    test_path();
    test_check();
    test_build();
    test_tail();
    return TAP_DONE();
}
