// SPDX-License-Identifier: Apache-2.0
// The official JSON Schema test suite: test-suite FOLDER. Each test is a check, and the counts of
// the required ones are fixed, so that none is left out. Optional ones that ask for something else
// than what is done here are run and counted; optional/format is not: `format` says nothing here.
#include "base/tap.h"
#include "schema/schema.h"

#include <fts.h>

static const struct {
    const char *file, *why;
} differences[] = {
    {"content.json", "contentMediaType and contentEncoding say nothing about whether a value fits"},
    {"cross-draft.json", "draft 2019-09 is not known"},
    {"format-assertion.json", "the vocabulary format-assertion is not known"},
};

typedef struct suite {
    const char *draft; // the folder
    int passed, count;
    int optional_passed, optional_count;
} suite;

static mt_schema_document documents[200];
static size_t document_count;

// ---- files ----

static mt_str read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    mt_buf b = MT_BUF_INIT(16 << 20);
    size_t n;

    while (f && (n = fread(mt_buf_reserve(&b, 65536), 1, 65536, f)) > 0)
        mt_buf_added(&b, n);
    if (f)
        (void)fclose(f);
    n = b.len;
    return (mt_str){mt_buf_take(&b), n};
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void each_json(const char *folder, void (*fn)(const char *path, void *data), void *data)
{
    char *const roots[] = {(char *)folder, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);

    for (FTSENT *e; tree && (e = fts_read(tree));) {
        const char *dot = strrchr(e->fts_name, '.');

        if (e->fts_info == FTS_F && mt_streq(dot, ".json"))
            fn(e->fts_path, data);
    }
    if (tree)
        (void)fts_close(tree);
}

static void add_remote(const char *path, void *folder)
{
    if (document_count < MT_ARRAY_SIZE(documents))
        documents[document_count++] = (mt_schema_document){
            mt_asprintf("http://localhost:1234%s", path + strlen(folder)), read_file(path)};
}

// ---- tests ----

static mt_schema *compile(const mt_json *schema, const char *draft, mt_err **err)
{
    static const char front[] = "{\"$schema\":\"http://json-schema.org/draft-07/schema#\"}";
    const mt_schema_options all = {documents, document_count};
    _cleanup_json_ mt_json *with = NULL, *base = NULL;

    // Draft 7 is the file's, not the schema's to say.
    if (mt_streq(draft, "draft7") && mt_json_kind_of(schema) == MT_JSON_OBJECT &&
        !mt_json_get(schema, "$schema")) {
        if (mt_json_parse(front, strlen(front), NULL, &base, err) < 0)
            return NULL;
        with = mt_json_copy(schema);
        (void)mt_json_set(with, "$schema", mt_json_ref(mt_json_get(base, "$schema")));
        return mt_schema_compile(with, &all, err);
    }
    return mt_schema_compile(schema, &all, err);
}

// Whether the outcome is what the suite says.
static bool run_test(const mt_schema *schema, const mt_json *test, const char **ret_why)
{
    static char why[512];
    _cleanup_errors_ mt_schema_errors errors = {0};
    _cleanup_err_ mt_err *err = NULL;
    bool expected = mt_json_is_true(mt_json_get(test, "valid"));
    int quick, r = mt_schema_validate(schema, mt_json_get(test, "data"), NULL, &errors, &err);

    quick = mt_schema_validate(schema, mt_json_get(test, "data"), NULL, NULL, NULL);
    (void)snprintf(why, sizeof(why), "%s",
                   r < 0                   ? mt_err_sentence(err)
                   : r > 0 && errors.count ? errors.items[0].sentence
                   : r > 0                 ? "no fault is given"
                                           : "fits");
    *ret_why = why;
    return r >= 0 && (r == 0) == expected && quick == r && (r == 0) == (errors.count == 0);
}

static bool may_differ(const char *file)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(differences); i++) {
        if (mt_streq(strrchr(file, '/') + 1, differences[i].file))
            return true;
    }
    return false;
}

static void run_group(suite *s, const char *file, const mt_json *group)
{
    const mt_json *tests = mt_json_get(group, "tests");
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_schema_ mt_schema *schema = compile(mt_json_get(group, "schema"), s->draft, &err);
    bool optional = strstr(file, "/optional/") != NULL,
         free_to_differ = optional && may_differ(file);

    for (size_t i = 0; i < mt_json_count(tests); i++) {
        const mt_json *test = mt_json_at(tests, i);
        const char *why = mt_err_sentence(err);
        bool ok = schema && run_test(schema, test, &why);
        char name[512];

        (void)snprintf(name, sizeof(name), "%s, %s",
                       mt_json_text(mt_json_get(group, "description"), ""),
                       mt_json_text(mt_json_get(test, "description"), ""));
        *(optional ? &s->optional_count : &s->count) += 1;
        *(optional ? &s->optional_passed : &s->passed) += ok;
        if (!free_to_differ)
            (void)tap_ok_(ok, file, (int)i + 1, name);
        if (!ok)
            printf("# %s: %s: %s\n", file, name, why);
    }
}

static void run_file(const char *path, void *data)
{
    suite *s = data;
    mt_str text = read_file(path);
    _cleanup_json_ mt_json *groups = NULL;
    const char *file = strstr(path, s->draft);

    if (strstr(path, "/format/")) {
        free((char *)text.data);
        return;
    }
    CHECK_INT(mt_json_parse(text.data, text.len, NULL, &groups, NULL), 0);
    for (size_t i = 0; i < mt_json_count(groups); i++)
        run_group(s, file, mt_json_at(groups, i));
    free((char *)text.data);
}

static void run_suite(const char *folder, const char *draft, int required)
{
    suite s = {.draft = draft};
    _cleanup_free_ char *tests = mt_asprintf("%s/tests/%s", folder, draft);

    each_json(tests, run_file, &s);
    CHECK_INT(s.count, required);
    CHECK_INT(s.passed, required);
    printf("# total: %s: %d/%d required tests, %d/%d optional ones\n", draft, s.passed, s.count,
           s.optional_passed, s.optional_count);
}

int main(int argc, char **argv)
{
    _cleanup_free_ char *remotes = mt_asprintf("%s/remotes", argc == 2 ? argv[1] : ".");

    if (argc != 2)
        return 2;
    each_json(remotes, add_remote, remotes);
    run_suite(argv[1], "draft2020-12", 1299);
    run_suite(argv[1], "draft7", 927);
    for (size_t i = 0; i < MT_ARRAY_SIZE(differences); i++)
        printf("# optional/%s may differ: %s\n", differences[i].file, differences[i].why);
    for (size_t i = 0; i < document_count; i++) {
        free((char *)documents[i].uri);
        free((char *)documents[i].text.data);
    }
    return TAP_DONE();
}
