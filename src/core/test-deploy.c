// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "core/deploy.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

// ---- a world of a few names ----

typedef struct fake {
    const char *vfs, *agent, *provider, *prompt_name, *prompt_text;
    const char *interaction, *interaction_definition;
    bool fails;
} fake;

static int fake_has(void *data, mt_ref_kind kind, const char *name, mt_err **err)
{
    const fake *f = data;

    if (f->fails)
        return mt_fail(err, MT_E_IO, "the store is gone");
    switch (kind) {
    case MT_REF_VFS:
        return mt_streq(f->vfs, name);
    case MT_REF_AGENT:
        return mt_streq(f->agent, name);
    case MT_REF_PROMPT:
        return mt_streq(f->prompt_name, name);
    case MT_REF_MODEL:
        return mt_streq(f->provider, name);
    default:
        return 0;
    }
}

static int fake_prompt(void *data, const char *name, char **ret, size_t *ret_len, mt_err **err)
{
    const fake *f = data;

    if (!mt_streq(f->prompt_name, name))
        return 0;
    *ret = strdup(f->prompt_text);
    *ret_len = strlen(f->prompt_text);
    return *ret ? 1 : mt_fail_oom(err);
}

static int fake_interactions(void *data,
                             int (*fn)(void *fn_data, const char *name, const char *definition),
                             void *fn_data, mt_err **err)
{
    const fake *f = data;

    return f->interaction ? fn(fn_data, f->interaction, f->interaction_definition) : 0;
}

// ---- a project as a NULL-ended list of path, content pairs ----

typedef struct loaded {
    mt_deploy_file files[16];
    mt_deploy_request request;
    mt_mtr_diags *diags;
    mt_project *project;
    mt_buf report; // "path:line:column message [hint]" a line each
    int result;
} loaded;

static void report(mt_buf *b, const mt_mtr_diags *diags)
{
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++) {
        const mt_mtr_diag *d = mt_mtr_diags_at(diags, i);

        (void)mt_buf_addf(b, "%s%s%s:%u:%u %s", i ? "\n" : "",
                          d->severity == MT_MTR_WARNING ? "warning " : "", d->file, d->line,
                          d->column, d->message);
        if (d->hint)
            (void)mt_buf_addf(b, " [%s]", d->hint);
    }
}

static void load(loaded *l, const fake *f, bool prune, const char *const *pairs)
{
    mt_deploy_world world = {
        .namespace_name = "plays",
        .data = (void *)f,
        .has = fake_has,
        .prompt = fake_prompt,
        .interactions = fake_interactions,
    };
    mt_err *err = NULL;

    *l = (loaded){.diags = mt_mtr_diags_new(), .report = MT_BUF_INIT(1 << 20)};
    for (size_t i = 0; pairs[2 * i]; i++) {
        l->files[i] = (mt_deploy_file){mt_str_of(pairs[2 * i]), mt_str_of(pairs[2 * i + 1])};
        l->request.count = i + 1;
    }
    l->request.files = l->files;
    l->request.prune = prune;
    l->result = mt_project_load(&l->request, &world, NULL, l->diags, &l->project, &err);
    if (l->result < 0)
        (void)mt_buf_adds(&l->report, mt_err_sentence(err));
    else
        report(&l->report, l->diags);
    mt_err_free(err);
}

static void unload(loaded *l)
{
    mt_project_free(l->project);
    mt_mtr_diags_free(l->diags);
    mt_buf_done(&l->report);
}

static void expect(const fake *f, bool prune, const char *const *pairs, const char *expected)
{
    loaded l;
    bool faults = expected[0] && !mt_starts_with(expected, "warning");

    load(&l, f, prune, pairs);
    CHECK_STR(mt_buf_str(&l.report), expected);
    CHECK_INT(l.result, faults ? 1 : 0);
    unload(&l);
}

#define PROJECT(...) ((const char *const[]){__VA_ARGS__, NULL, NULL})
#define MODEL        "model = @ref(\"ollama.llama3:8b\")\nprompt = \"be brief\"\n"
#define LETTER                                                    \
    "agent.agent = @ref(\"clerk\")\ntask = @prompt(\"letter\")\n" \
    "inputs.prompts = [{ name = \"letter\" }, { name = \"notes\" }]\n"

static const fake empty = {0};

// ---- paths and folders ----

static void test_paths(void)
{
    static const struct {
        const char *path, *message;
    } cases[] = {
        {"", "(no path):0:0 a file without a path"},
        {"/etc/passwd", "/etc/passwd:0:0 the path is absolute: paths are relative to the project's "
                        "folder"},
        {"../x.mtr", "../x.mtr:0:0 the path has a '.' or '..' part"},
        {"capsules/../x.mtr", "capsules/../x.mtr:0:0 the path has a '.' or '..' part"},
        {"capsules/./x.mtr", "capsules/./x.mtr:0:0 the path has a '.' or '..' part"},
        {"capsules//x.mtr", "capsules//x.mtr:0:0 the path has an empty part"},
        {"capsules/", "capsules/:0:0 the path has an empty part"},
        {"capsules\\x.mtr", "capsules\\x.mtr:0:0 the path holds a backslash: '/' stands between "
                            "folders"},
        {"capsules/a\nb.mtr", "capsules/a?b.mtr:0:0 the path holds a control character"},
        {"capsules/\xff.mtr", "capsules/\xef\xbf\xbd.mtr:0:0 the path is not UTF-8"},
        {"capsules/X.mtr",
         "capsules/X.mtr:0:0 'X' is no name for a resource: names are 1 to 63 of a-z, 0-9, '.', "
         "'_' and '-', beginning with a letter or digit"},
        {"capsules/x.txt", "capsules/x.txt:0:0 only files that end in .mtr belong here"},
        {"capsules/sub/x.mtr",
         "capsules/sub/x.mtr:0:0 no folders in capsules/: the file's stem is the resource's name"},
        {"tools/x.mtr", "tools/x.mtr:0:0 tools and connectors are outside of this product for now: "
                        "remove 'tools/' from the project"},
        {"connectors/a/b.mtr",
         "connectors/a/b.mtr:0:0 tools and connectors are outside of this product for now: remove "
         "'connectors/' from the project"},
        {"capsule/x.mtr",
         "capsule/x.mtr:0:0 unknown folder 'capsule/': a project has agents/, apps/, capsules/, "
         "interactions/one-shot/, json/ and prompts/ [did you mean 'capsules/'?]"},
        {"zzz/x.mtr", "zzz/x.mtr:0:0 unknown folder 'zzz/': a project has agents/, apps/, "
                      "capsules/, interactions/one-shot/, json/ and prompts/"},
        {"x.mtr", "x.mtr:0:0 the folder gives a resource its kind: put it into agents/, "
                  "apps/NAME/, capsules/ or interactions/one-shot/"},
        {"interactions/x.mtr",
         "interactions/x.mtr:0:0 interactions are interactions/one-shot/NAME.mtr: this version has "
         "no other kind of them"},
        {"interactions/round-robin/x.mtr",
         "interactions/round-robin/x.mtr:0:0 interactions are interactions/one-shot/NAME.mtr: this "
         "version has no other kind of them"},
        {"apps/x.mtr", "apps/x.mtr:0:0 an app is apps/NAME/NAME.mtc and what other .mtc files its "
                       "folder has, with its settings in apps/NAME/NAME.mtr"},
        {"apps/x/y.mtr", "apps/x/y.mtr:0:0 an app is apps/NAME/NAME.mtc and what other .mtc files "
                         "its folder has, with its settings in apps/NAME/NAME.mtr"},
        {"apps/x/y.mtc", "apps/x/x.mtc:0:0 app 'x' has no file x.mtc: it holds main"},
        {"apps/x/x.mtr", "apps/x/x.mtr:0:0 app 'x' has settings but no program: apps/x/x.mtc"},
        {"README.md", "warning README.md:0:0 ignored: it is in none of the project's folders"},
        {".git/config", "warning .git/config:0:0 ignored: hidden files are no part of a project"},
        {"capsules/.x.mtr.swp",
         "warning capsules/.x.mtr.swp:0:0 ignored: hidden files are no part of a project"},
        {"capsules/x.mtr~", "warning capsules/x.mtr~:0:0 ignored: an editor's copy"},
        {"capsules/x.mtr", ""},
        {"apps/x/x.mtc", "apps/x/x.mtc:0:0 the program has no function main [write string main() "
                         "{ … }; its parameters are the app's inputs]"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++)
        expect(&empty, false, PROJECT(cases[i].path, ""), cases[i].message);
    expect(&empty, false, PROJECT("capsules/x.mtr", "", "capsules/x.mtr", ""),
           "capsules/x.mtr:0:0 the file is given twice");
}

static void test_long_path(void)
{
    loaded l;
    char path[700];

    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    load(&l, &empty, false, PROJECT(path, ""));
    CHECK_INT(l.result, 1);
    CHECK_STR(mt_mtr_diags_at(l.diags, 0)->message, "the path is over 512 bytes");
    unload(&l);
}

static void test_nul_in_path(void)
{
    mt_deploy_file file = {{"capsules/x\0y.mtr", 16}, {"", 0}};
    mt_deploy_request request = {&file, 1, false, false};
    mt_deploy_world world = {"plays", (void *)&empty, fake_has, fake_prompt, fake_interactions};
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_project *p = NULL;

    CHECK_INT(mt_project_load(&request, &world, NULL, diags, &p, NULL), 1);
    CHECK_STR(mt_mtr_diags_at(diags, 0)->message, "the path holds a control character");
    mt_project_free(p);
    mt_mtr_diags_free(diags);
}

// ---- references ----

static void test_references(void)
{
    static const fake with = {.vfs = "harvest", .agent = "clerk", .provider = "deepseek"};

    expect(
        &empty, false,
        PROJECT("capsules/x.mtr", "vfs = [\n  { vfs = @ref(\"harvest\"), mountName = \"d\" },\n]"),
        "capsules/x.mtr:2:11 no file system 'harvest' in namespace 'plays' [create it first: mt "
        "vfs-create harvest]");
    expect(&with, false,
           PROJECT("capsules/x.mtr", "vfs = [{ vfs = @ref(\"harvest\"), mountName = \"d\" }]"), "");
    expect(
        &empty, false,
        PROJECT("capsules/x.mtr", "secrets = [{ secret = @ref(\"k\"), mountName = \"d\" }]"),
        "capsules/x.mtr:1:23 no secret 'k' in namespace 'plays' [create it first: mt secret-create "
        "k]");
    expect(&empty, false, PROJECT("agents/a.mtr", "model = @ref(\"deepseek.v4\")\nprompt = \"x\""),
           "warning agents/a.mtr:1:9 this server has no key for 'deepseek' yet: agent 'a' can be "
           "deployed, but not asked [mt provider-set deepseek, or DEEPSEEK_API_KEY at the server's "
           "start]");
    expect(
        &empty, false, PROJECT("agents/a.mtr", "model = @ref(\"custom.x\")\nprompt = \"x\""),
        "warning agents/a.mtr:1:9 this server has no base URL for 'custom' yet: agent 'a' can be "
        "deployed, but not asked [mt provider-set custom --base-url URL]");
    expect(&with, false, PROJECT("agents/a.mtr", "model = @ref(\"deepseek.v4\")\nprompt = \"x\""),
           "");
    expect(&empty, false,
           PROJECT("agents/clark.mtr", MODEL, "interactions/one-shot/i.mtr", LETTER,
                   "prompts/letter.md", "%%letter%%"),
           "interactions/one-shot/i.mtr:1:15 no agent 'clerk' in this project or in namespace "
           "'plays' [did you mean 'clark'?]");
    // Deployed already, and not about to be pruned.
    expect(&with, false,
           PROJECT("interactions/one-shot/i.mtr", LETTER, "prompts/letter.md", "%%letter%%"), "");
    expect(&with, true,
           PROJECT("interactions/one-shot/i.mtr", LETTER, "prompts/letter.md", "%%letter%%"),
           "interactions/one-shot/i.mtr:1:15 no agent 'clerk' in this project (what it lacks is "
           "removed)");
    expect(&with, false,
           PROJECT("interactions/one-shot/i.mtr", LETTER "schema.solution = @json(\"s\")\n",
                   "prompts/letter.md", "", "json/s.json", "{}"),
           "");
    // Faults of all files at once.
    expect(&empty, false,
           PROJECT("capsules/b.mtr", "vfs = [{ vfs = @ref(\"h\"), mountName = \"d\" }]",
                   "capsules/a.mtr", "maxDuration = 5", "json/j.json", "[1]", "prompts/p.md",
                   "{{#if x}}"),
           "capsules/a.mtr:1:15 maxDuration takes a duration in double quotes, for example "
           "\"00:10:00\", not a number\n"
           "json/j.json:1:1 a JSON Schema is an object (or true or false), not a list\n"
           "prompts/p.md:1:1 {{#if}} is not closed by {{/if}}\n"
           "capsules/b.mtr:1:16 no file system 'h' in namespace 'plays' [create it first: mt "
           "vfs-create h]");
}

static void test_failing_world(void)
{
    static const fake broken = {.fails = true};
    loaded l;

    load(&l, &broken, false,
         PROJECT("capsules/x.mtr", "vfs = [{ vfs = @ref(\"h\"), mountName = \"d\" }]"));
    CHECK_INT(l.result, -1);
    CHECK_STR(mt_buf_str(&l.report), "the store is gone");
    unload(&l);
}

// ---- templates and inputs ----

static void test_templates(void)
{
    static const fake clerk = {.agent = "clerk"};
    static const fake deployed_prompt = {
        .agent = "clerk", .prompt_name = "letter", .prompt_text = "%%letter%% %%stamp%%"};
    static const fake deployed_interaction = {
        .agent = "clerk",
        .interaction = "old",
        .interaction_definition =
            "{\"task\":\"letter\",\"inputs\":{\"prompts\":[{\"name\":\"note\"}]}}"};

    expect(&clerk, false,
           PROJECT("interactions/one-shot/i.mtr", LETTER, "prompts/letter.md",
                   "Sort this:\n\n%%leter%%\n{{#if notes}}\n%%notes%%\n{{/if}}\n"),
           "prompts/letter.md:3:1 'leter' is no input of interaction 'i' [did you mean 'letter'?]");
    expect(&deployed_prompt, false, PROJECT("interactions/one-shot/i.mtr", LETTER),
           "interactions/one-shot/i.mtr:2:8 the deployed prompt 'letter' uses 'stamp', which is no "
           "input of this interaction");
    expect(&deployed_interaction, false, PROJECT("prompts/letter.md", "%%notes%%"),
           "prompts/letter.md:1:1 'notes' is no input of interaction 'old' [did you mean 'note'?]");
    expect(&deployed_interaction, true, PROJECT("prompts/letter.md", "%%notes%%"), "");
}

static void test_items(void)
{
    static const fake with = {.vfs = "harvest", .agent = "clerk"};
    const mt_deploy_item *items;
    size_t count;
    loaded l;

    load(&l, &with, false,
         PROJECT("prompts/letter.md", "%%letter%% %%letter%%", "json/s.json",
                 "\xef\xbb\xbf{ \"type\": 1 }", "interactions/one-shot/i.mtr", LETTER,
                 "capsules/c.mtr",
                 "vfs = [{ vfs = @ref(\"harvest\"), mountName = \"a\" },\n"
                 "{ vfs = @ref(\"harvest\"), mountName = \"b\" }]",
                 "apps/x/x.mtr", "duration.max = \"00:00:09\"", "apps/x/x.mtc", "void main() {}",
                 "apps/y/y.mtc", "void main() {}"));
    CHECK_STR(mt_buf_str(&l.report), "");
    CHECK_INT(l.result, 0);
    items = mt_project_items(l.project, &count);
    CHECK_INT(count, 6);
    CHECK_INT(items[0].kind, MT_RESOURCE_APP);
    CHECK_INT(items[0].source_count, 2);
    CHECK_STR(items[0].sources[0].path, "apps/x/x.mtc");
    CHECK_STR(items[0].definition, "{\"duration\":{\"max\":\"00:00:09\"}}");
    CHECK_STR(items[1].definition, "{\"duration\":{\"max\":\"01:00:00\"}}");
    CHECK_STR(items[2].name, "c");
    CHECK_INT(items[2].vfs_count, 1);
    CHECK_STR(items[2].vfs_names[0], "harvest");
    CHECK_STR(items[4].definition, "{\"schema\":{\"type\":1}}");
    CHECK_STR(items[5].definition, "{\"text\":\"%%letter%% %%letter%%\",\"inputs\":[\"letter\"]}");
    unload(&l);
}

// All files of an app are one program, checked as mt app-check does.
static void test_programs(void)
{
    const mt_deploy_item *items;
    size_t count;
    loaded l;

    load(&l, &empty, false,
         PROJECT("apps/x/words.mtc", "string word() { return(\"x\"); }", "apps/x/x.mtc",
                 "void main() { PrintLine(word()); }", "apps/x/x.mtr", ""));
    CHECK_STR(mt_buf_str(&l.report), "");
    items = mt_project_items(l.project, &count);
    CHECK_INT(count, 1);
    CHECK_INT(items[0].source_count, 3);
    CHECK_STR(items[0].sources[0].path, "apps/x/words.mtc");
    CHECK_STR(items[0].sources[1].path, "apps/x/x.mtc");
    CHECK_STR(items[0].sources[2].path, "apps/x/x.mtr");
    unload(&l);
    expect(
        &empty, false,
        PROJECT("apps/x/words.mtc", "int word() { return(\"x\"); }", "apps/x/x.mtc",
                "void main() {\n\tPrintLine(wrod());\n\tPrintLine(1)\n}"),
        "apps/x/x.mtc:2:12 no function 'wrod' is known [did you mean 'word'?]\n"
        "apps/x/x.mtc:3:12 argument 1 of PrintLine takes a string, not an int: void "
        "PrintLine(string text) [\"\" + … makes a string of it]\n"
        "apps/x/x.mtc:3:14 ';' is missing\n"
        "apps/x/words.mtc:1:20 'word' returns an int, not a string [StringToInt(…) reads a number "
        "from a string]");
}

static void test_bad_texts(void)
{
    expect(&empty, false, PROJECT("apps/x/x.mtc", "a\nb\xff"),
           "apps/x/x.mtc:2:2 not UTF-8: save the file as UTF-8");
    expect(&empty, false, PROJECT("json/x.json", "{\n  \"a\": }"),
           "json/x.json:2:8 a value is expected here");
    expect(&empty, false, PROJECT("capsules/x.mtr", "a = \"\xff\""),
           "capsules/x.mtr:1:6 byte 0xff is not UTF-8: save the file as UTF-8");
}

// ---- with a real store ----

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

typedef struct place {
    char dir[64];
    mt_store *store;
    mt_user admin;
    mt_namespace ns;
} place;

static bool open_place(place *pl)
{
    bool became;

    (void)snprintf(pl->dir, sizeof(pl->dir), "/tmp/test-deploy.XXXXXX");
    if (!mkdtemp(pl->dir))
        return false;
    char store_dir[96];

    (void)snprintf(store_dir, sizeof(store_dir), "%s/store", pl->dir);
    return mt_store_open(store_dir, &pl->store, NULL) == 0 &&
           mt_store_user_by_name(pl->store, "admin", &pl->admin, NULL) == 0 &&
           mt_store_namespace_create(pl->store, &pl->admin, "plays", &pl->ns, &became, NULL) == 0;
}

static void close_place(place *pl)
{
    pl->store = mt_store_close(pl->store);
    (void)nftw(pl->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

// "created capsule x 1, updated …" of one deploy; the faults' report when it fails.
static void deploy(place *pl, const mt_deploy_request *request, mt_buf *out)
{
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_deploy_result result = {0};
    mt_err *err = NULL;
    static const struct {
        const char *word;
        size_t offset;
    } lists[] = {
        {"created", offsetof(mt_deploy_result, created)},
        {"updated", offsetof(mt_deploy_result, updated)},
        {"unchanged", offsetof(mt_deploy_result, unchanged)},
        {"removed", offsetof(mt_deploy_result, removed)},
    };

    mt_buf_clear(out);
    if (mt_deploy(pl->store, &pl->ns, request, NULL, diags, &result, &err) < 0) {
        (void)mt_buf_addf(out, "%s: %s\n", mt_code_name(mt_err_code(err)), mt_err_sentence(err));
        report(out, diags);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(lists) && !err; i++) {
        const mt_deploy_list *list = (const mt_deploy_list *)((char *)&result + lists[i].offset);

        for (size_t j = 0; j < list->count; j++)
            (void)mt_buf_addf(out, "%s %s %s %lld\n", lists[i].word,
                              mt_resource_kind_name(list->items[j].kind), list->items[j].name,
                              (long long)list->items[j].version);
    }
    mt_err_free(err);
    mt_deploy_result_done(&result);
    mt_mtr_diags_free(diags);
}

static mt_deploy_request request_of(mt_deploy_file *files, const char *const *pairs)
{
    mt_deploy_request request = {.files = files};

    for (; pairs[0]; pairs += 2)
        files[request.count++] = (mt_deploy_file){mt_str_of(pairs[0]), mt_str_of(pairs[1])};
    return request;
}

static void test_store(void)
{
    place pl = {0};
    mt_buf out = MT_BUF_INIT(1 << 16);
    mt_deploy_file files[8];
    mt_deploy_request request;
    mt_vfs_record vfs;
    static const char capsule[] = "vfs = [{ vfs = @ref(\"harvest\") mountName = \"data\" }]\n";

    if (!CHECK(open_place(&pl)))
        return;
    request = request_of(files, PROJECT("capsules/weigh.mtr", capsule));
    deploy(&pl, &request, &out);
    CHECK_STR(mt_buf_str(&out),
              "deployFailed: 1 error in the project, nothing was deployed\n"
              "capsules/weigh.mtr:1:16 no file system 'harvest' in namespace 'plays' [create it "
              "first: mt vfs-create harvest]");
    CHECK_INT(mt_store_vfs_create(pl.store, NULL, pl.ns.id, "harvest", 0, &vfs, NULL), 0);
    request.dry_run = true;
    deploy(&pl, &request, &out);
    CHECK_STR(mt_buf_str(&out), "created capsule weigh 1\n");
    request.dry_run = false;
    deploy(&pl, &request, &out);
    CHECK_STR(mt_buf_str(&out), "created capsule weigh 1\n");
    deploy(&pl, &request, &out);
    CHECK_STR(mt_buf_str(&out), "unchanged capsule weigh 1\n");
    // An edit makes a version; what the project lacks stays unless it is pruned.
    request = request_of(files, PROJECT("capsules/weigh.mtr", "packages = [\"jq\"]\n"));
    deploy(&pl, &request, &out);
    CHECK_STR(mt_buf_str(&out), "updated capsule weigh 2\n");
    request = request_of(files, PROJECT("agents/clerk.mtr", MODEL));
    deploy(&pl, &request, &out);
    CHECK_STR(mt_buf_str(&out), "created agent clerk 1\n");
    request = request_of(files, PROJECT("interactions/one-shot/sort.mtr", LETTER,
                                        "prompts/letter.md", "%%letter%%"));
    deploy(&pl, &request, &out);
    CHECK_STR(mt_buf_str(&out), "created interaction sort 1\ncreated prompt letter 1\n");
    request = request_of(files, PROJECT("prompts/letter.md", "%%lettre%%"));
    deploy(&pl, &request, &out);
    CHECK_STR(mt_buf_str(&out),
              "deployFailed: 1 error in the project, nothing was deployed\n"
              "prompts/letter.md:1:1 'lettre' is no input of interaction 'sort' [did you mean "
              "'letter'?]");
    request.prune = true;
    deploy(&pl, &request, &out);
    CHECK_STR(mt_buf_str(&out), "updated prompt letter 2\nremoved agent clerk 1\nremoved capsule "
                                "weigh 2\nremoved interaction sort 1\n");
    mt_buf_done(&out);
    close_place(&pl);
}

// ---- the tutorial's project, where it is at hand ----

typedef struct folder {
    mt_deploy_file files[64];
    size_t count;
    size_t root;
} folder;

static folder *walked; // nftw carries no data

static int add_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    mt_buf b = MT_BUF_INIT(1 << 20);
    FILE *f = type == FTW_F && walked->count < 64 ? fopen(path, "re") : NULL;
    size_t n;

    if (!f)
        return 0;
    while ((n = fread(mt_buf_reserve(&b, 65536), 1, 65536, f)) > 0)
        mt_buf_added(&b, n);
    (void)fclose(f);
    walked->files[walked->count].path = mt_str_of(strdup(path + walked->root));
    walked->files[walked->count].content.len = b.len;
    walked->files[walked->count++].content.data = b.len ? mt_buf_take(&b) : strdup("");
    mt_buf_done(&b);
    return 0;
}

static void test_tutorial(void)
{
    const char *shared = getenv("MT_SHARED");
    char command[512], dir[] = "/tmp/test-tutorial.XXXXXX", path[96];
    folder f = {0};
    place pl = {0};
    mt_buf out = MT_BUF_INIT(1 << 16);
    mt_vfs_record vfs;
    mt_deploy_request request;

    if (!shared || !mkdtemp(dir)) {
        SKIP("MT_SHARED is not set: needs the tutorial's files");
        return;
    }
    (void)snprintf(command, sizeof(command), "'%s/tools/extract-tutorial' %s >/dev/null", shared,
                   dir);
    (void)snprintf(path, sizeof(path), "%s/maitento", dir);
    CHECK_INT(system(command), 0);
    f.root = strlen(path) + 1;
    walked = &f;
    (void)nftw(path, add_file, 16, FTW_PHYS);
    if (CHECK(open_place(&pl))) {
        request = (mt_deploy_request){.files = f.files, .count = f.count};
        CHECK_INT(mt_store_vfs_create(pl.store, NULL, pl.ns.id, "sales-data", 0, &vfs, NULL), 0);
        deploy(&pl, &request, &out);
        CHECK_STR(
            mt_buf_str(&out),
            "created agent analyst 1\ncreated app analyst 1\ncreated capsule sales-report "
            "1\ncreated capsule workbench 1\ncreated interaction next-command 1\ncreated json "
            "next-command 1\ncreated prompt next-command 1\n");
        close_place(&pl);
    }
    for (size_t i = 0; i < f.count; i++) {
        free((char *)f.files[i].path.data);
        free((char *)f.files[i].content.data);
    }
    mt_buf_done(&out);
    (void)nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    test_paths();
    test_long_path();
    test_nul_in_path();
    test_references();
    test_failing_world();
    test_templates();
    test_items();
    test_programs();
    test_bad_texts();
    test_store();
    test_tutorial();
    return TAP_DONE();
}
