// SPDX-License-Identifier: Apache-2.0
// The language suite: test-language FOLDER checks every case in it and compares what is reported
// with what stands beside it. A case is NAME.mtc, or a folder NAME with the files of an app whose
// main is in NAME.mtc; NAME.diag holds the diagnostics that are expected, and is missing where
// there are none. NAME.code, where it is there, holds the code that is made of it, and NAME.out
// what comes of running it (testrun.h) with the inputs of NAME.in. test-language --print CASE
// prints what would stand in the first, --listing CASE in the second, --run CASE in the third.
#include "base/fd.h"
#include "base/tap.h"
#include "mtc/testcode.h"
#include "mtc/testrun.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum {
    FILES_MAX = 8,
    SMALL_STEPS = 1000 * 1000, // so many are done one at a time, too
};

static int listings, outcomes; // that were compared

enum what { REPORTS, LISTING, OUTCOME, KINDS };
static const char *const kinds[KINDS] = {"diag", "code", "out"};

typedef struct test_case {
    char *folder, *name; // the folder that holds the case, and its name without ".mtc"
    mt_buf texts[FILES_MAX];
    char paths[FILES_MAX][256];
    size_t count, main_file;
} test_case;

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), n = strlen(end);

    return len > n && strcmp(s + len - n, end) == 0;
}

static void add_file(test_case *t, const char *folder, const char *name)
{
    char path[8192];

    if (t->count == FILES_MAX)
        return;
    t->texts[t->count] = (mt_buf)MT_BUF_INIT(8 << 20);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    (void)mt_read_file(AT_FDCWD, path, &t->texts[t->count]);
    (void)snprintf(t->paths[t->count], sizeof(t->paths[0]), "%s", name);
    if (strlen(name) == strlen(t->name) + 4 && strncmp(name, t->name, strlen(t->name)) == 0)
        t->main_file = t->count;
    t->count++;
}

static void read_case(test_case *t, bool folder)
{
    struct dirent **names = NULL;
    char path[4096];
    int n;

    t->main_file = SIZE_MAX;
    (void)snprintf(path, sizeof(path), "%s/%s%s", t->folder, t->name, folder ? "" : ".mtc");
    if (!folder) {
        add_file(t, t->folder, path + strlen(t->folder) + 1);
        return;
    }
    n = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (ends_with(names[i]->d_name, ".mtc"))
            add_file(t, path, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

static void free_case(test_case *t)
{
    for (size_t i = 0; i < t->count; i++)
        mt_buf_done(&t->texts[i]);
    t->count = 0;
}

// What the machine would not have to trust.
static void check_code(mt_mtc_program *p, mt_buf *out, mt_buf *listing)
{
    const mt_mtc_code *code = mt_mtc_emit(p);
    const char *wrong = code ? testcode_wrong(p, code) : "no code";

    if (wrong)
        (void)mt_buf_addf(out, "its code is wrong: %s\n", wrong);
    if (mt_mtc_listing(p, listing) < 0)
        (void)mt_buf_adds(out, "its code cannot be listed\n");
}

// The outcome of running, which must be the same whether it is done in one go or in small turns.
static void run_program(const test_case *t, mt_mtc_program *p, mt_buf *out)
{
    static const uint64_t slices[] = {1, 97};
    mt_buf inputs = MT_BUF_INIT(1 << 20), again = MT_BUF_INIT(8 << 20);
    testrun run = {.program = p, .slice = TESTRUN_STEPS};
    char path[8192];
    uint64_t steps;

    if (mt_mtc_make_ready(p) < 0)
        abort();
    (void)snprintf(path, sizeof(path), "%s/%s.in", t->folder, t->name);
    (void)mt_read_file(AT_FDCWD, path, &inputs);
    run.inputs = (mt_str){mt_buf_str(&inputs), inputs.len};
    steps = testrun_run(&run, out);
    run.slice = slices[steps > SMALL_STEPS];
    (void)testrun_run(&run, &again);
    if (!mt_streq(mt_buf_str(out), mt_buf_str(&again)))
        (void)mt_buf_addf(out, "in turns of %d steps it is:\n%s", (int)run.slice,
                          mt_buf_str(&again));
    mt_buf_done(&inputs);
    mt_buf_done(&again);
}

static bool is_there(const test_case *t, const char *kind)
{
    char path[8192];

    (void)snprintf(path, sizeof(path), "%s/%s.%s", t->folder, t->name, kind);
    return access(path, F_OK) == 0;
}

static void check_case(const test_case *t, bool run, mt_buf got[KINDS])
{
    mt_mtc_source sources[FILES_MAX];
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_mtc_program *p;

    for (size_t i = 0; i < t->count; i++)
        sources[i] = (mt_mtc_source){t->paths[i], {mt_buf_str(&t->texts[i]), t->texts[i].len}};
    p = mt_mtc_check(sources, t->count, t->main_file, diags);
    mt_mtr_diags_sort(diags);
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++)
        (void)mt_mtr_diag_format(mt_mtr_diags_at(diags, i), &got[REPORTS]);
    if (!p || mt_mtc_failed(p) != (mt_mtr_diags_errors(diags) > 0))
        (void)mt_buf_adds(&got[REPORTS], "the program and its diagnostics disagree\n");
    else if (!mt_mtc_failed(p))
        check_code(p, &got[REPORTS], &got[LISTING]);
    if (run && p && !mt_mtc_failed(p))
        run_program(t, p, &got[OUTCOME]);
    mt_mtc_program_free(p);
    mt_mtr_diags_free(diags);
}

static void print_as_comment(const char *title, const char *text)
{
    printf("# %s:\n", title);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");

        printf("#   %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

// What stands in NAME.kind beside the case. False when there is no such file.
static bool compare(const test_case *t, const char *kind, const mt_buf *got)
{
    mt_buf expected = MT_BUF_INIT(8 << 20);
    char path[8192];
    bool there;

    (void)snprintf(path, sizeof(path), "%s/%s.%s", t->folder, t->name, kind);
    there = mt_read_file(AT_FDCWD, path, &expected) == 0;
    if ((there || mt_streq(kind, "diag")) &&
        !tap_ok_(mt_streq(mt_buf_str(got), mt_buf_str(&expected)), t->folder, 0, t->name)) {
        print_as_comment("got", mt_buf_str(got));
        print_as_comment("expected", mt_buf_str(&expected));
    }
    mt_buf_done(&expected);
    return there;
}

static void get(const test_case *t, bool run, mt_buf got[KINDS])
{
    for (int i = 0; i < KINDS; i++)
        got[i] = (mt_buf)MT_BUF_INIT(64 << 20);
    check_case(t, run, got);
}

static void drop(mt_buf got[KINDS])
{
    for (int i = 0; i < KINDS; i++)
        mt_buf_done(&got[i]);
}

static void run_case(const test_case *t)
{
    mt_buf got[KINDS];

    get(t, is_there(t, kinds[OUTCOME]), got);
    (void)compare(t, kinds[REPORTS], &got[REPORTS]);
    listings += compare(t, kinds[LISTING], &got[LISTING]);
    outcomes += compare(t, kinds[OUTCOME], &got[OUTCOME]);
    drop(got);
}

// Returns how many cases there are.
static int run_folder(const char *folder)
{
    struct dirent **names = NULL;
    int n = scandir(folder, &names, NULL, alphasort), cases = 0;

    for (int i = 0; i < n; i++) {
        char path[4096], name[256];
        struct stat st;
        test_case t = {.folder = (char *)folder, .name = name};

        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
        (void)snprintf(name, sizeof(name), "%.*s",
                       (int)(strlen(names[i]->d_name) - (ends_with(path, ".mtc") ? 4 : 0)),
                       names[i]->d_name);
        if (names[i]->d_name[0] != '.' && stat(path, &st) == 0 &&
            (S_ISDIR(st.st_mode) || ends_with(path, ".mtc"))) {
            read_case(&t, S_ISDIR(st.st_mode));
            run_case(&t);
            free_case(&t);
            cases++;
        }
        free(names[i]);
    }
    free(names);
    return cases;
}

static int run_all(const char *root)
{
    struct dirent **names = NULL;
    int n = scandir(root, &names, NULL, alphasort), cases = 0;

    for (int i = 0; i < n; i++) {
        char path[1024];

        (void)snprintf(path, sizeof(path), "%s/%s", root, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            cases += run_folder(path);
        free(names[i]);
    }
    free(names);
    CHECK(cases > 0 && listings > 0 && outcomes > 0);
    return TAP_DONE();
}

static int print_case(char *path, enum what what)
{
    char *slash = strrchr(path, '/');
    bool file = ends_with(path, ".mtc");
    test_case t = {.folder = path, .name = slash + 1};
    mt_buf got[KINDS];

    *slash = '\0';
    if (file)
        t.name[strlen(t.name) - 4] = '\0';
    read_case(&t, !file);
    get(&t, what == OUTCOME, got);
    (void)fputs(mt_buf_str(&got[what]), stdout);
    drop(got);
    free_case(&t);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const options[KINDS] = {"--print", "--listing", "--run"};

    for (int i = 0; argc == 3 && strchr(argv[2], '/') && i < KINDS; i++) {
        if (mt_streq(argv[1], options[i]))
            return print_case(argv[2], (enum what)i);
    }
    return argc == 2 ? run_all(argv[1]) : 2;
}
