// SPDX-License-Identifier: Apache-2.0
// app-check, app-builtins: programs of apps. Nothing is asked of a server.
#include "cli/copy.h"
#include "cli/diagnostic.h"

#include "base/fd.h"
#include "mtc/mtc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

enum { FILE_MAX = 8 << 20, LISTING_MAX = 256 << 20 };

// ---- app-check ----

// One app that is being checked: the .mtc files of a folder.
typedef struct app {
    mt_mtc_source sources[MT_MTC_MAX_FILES + 1];
    mt_buf texts[MT_MTC_MAX_FILES + 1];
    char *paths[MT_MTC_MAX_FILES + 1];
    size_t count, main_file;
} app;

typedef struct check {
    cli *c;
    mt_json *faults, *warnings, *listings; // the last by the app's name
    size_t apps, files, errors;
} check;

static void app_done(app *a)
{
    for (size_t i = 0; i < a->count; i++) {
        mt_buf_done(&a->texts[i]);
        free(a->paths[i]);
    }
    free(a);
}

static bool is_program(const tree_item *item)
{
    size_t len = strlen(item->rel);

    return item->type != VFS_FOLDER && len > 4 && strcmp(item->rel + len - 4, ".mtc") == 0 &&
           item->rel[0] != '.' && !strchr(item->rel, '/');
}

static int by_rel(const void *a, const void *b)
{
    return strcmp(((const tree_item *)a)->rel, ((const tree_item *)b)->rel);
}

static char *join(const char *folder, const char *name)
{
    if (mt_streq(folder, "."))
        return xstrdup(name);
    return xprintf("%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", name);
}

static int read_source(app *a, int root, const char *folder, const char *rel, mt_err **err)
{
    _cleanup_close_ int fd = -1;
    mt_buf *text = &a->texts[a->count];
    int r;

    *text =
        (mt_buf)MT_BUF_INIT(MT_MTC_MAX_BYTES + 8); // one over the limit is the checker's to refuse
    a->paths[a->count] = join(folder, rel);
    a->count++;
    fd = beneath_open_file(root, rel, err);
    if (fd < 0)
        return mt_wrap(err, "%s", folder);
    r = mt_read_all(fd, text);
    if (r == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE, "'%s' is larger than %d MiB", a->paths[a->count - 1],
                       FILE_MAX >> 20);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read '%s'", a->paths[a->count - 1]);
    a->sources[a->count - 1] =
        (mt_mtc_source){a->paths[a->count - 1], {mt_buf_str(text), text->len}};
    return 0;
}

// name: of the app, whose main is in NAME.mtc.
static int read_sources(cli *c, app *a, const char *folder, const char *name, mt_err **err)
{
    _cleanup_close_ int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_free_ char *main_name = xprintf("%s.mtc", name);
    tree t = {0};
    int r = 0;

    a->main_file = SIZE_MAX;
    if (root < 0)
        return mt_fail_errno(err, errno, "cannot open the folder '%s'", folder);
    if (tree_scan_local(folder, true, &t, err) < 0)
        return -1;
    qsort(t.items, t.count, sizeof(*t.items), by_rel);
    for (size_t i = 0; i < t.count && r == 0; i++) {
        if (!is_program(&t.items[i]))
            continue;
        if (t.items[i].type != VFS_FILE) {
            cli_warn(c, "%s/%s is %s: skipped", folder, t.items[i].rel,
                     t.items[i].type == VFS_LINK ? "a link" : "no regular file");
            continue;
        }
        if (a->count > MT_MTC_MAX_FILES)
            break; // one more than there may be: the checker says so
        if (mt_streq(t.items[i].rel, main_name))
            a->main_file = a->count;
        r = read_source(a, root, folder, t.items[i].rel, err);
    }
    tree_done(&t);
    return r;
}

static void keep(mt_json *list, const mt_mtr_diag *d)
{
    mt_json *v = mt_json_new_object();

    (void)mt_json_set(v, "file", mt_json_new_text(d->file));
    (void)mt_json_set(v, "line", mt_json_new_int(d->line));
    (void)mt_json_set(v, "column", mt_json_new_int(d->column));
    (void)mt_json_set(v, "message", mt_json_new_text(d->message));
    (void)mt_json_set(v, "hint", mt_json_new_text(d->hint));
    (void)mt_json_append(list, v);
}

static void tell(check *k, mt_mtr_diags *diags)
{
    mt_mtr_diags_sort(diags);
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++) {
        const mt_mtr_diag *d = mt_mtr_diags_at(diags, i);
        cli_diagnostic shown = {.file = d->file,
                                .line = d->line,
                                .column = d->column,
                                .warning = d->severity == MT_MTR_WARNING,
                                .message = d->message,
                                .hint = d->hint,
                                .source_line = d->source_line};

        keep(shown.warning ? k->warnings : k->faults, d);
        if (!k->c->json)
            cli_print_diagnostic(k->c, &shown);
    }
    k->errors += mt_mtr_diags_errors(diags);
}

static int list_code(check *k, mt_mtc_program *p, const char *name, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(LISTING_MAX);

    if (mt_mtc_listing(p, &text) < 0)
        return mt_fail_oom(err);
    if (k->c->json)
        (void)mt_json_set(k->listings, name, mt_json_new_text(mt_buf_str(&text)));
    else
        (void)fputs(mt_buf_str(&text), stdout);
    return 0;
}

static int check_sources(check *k, const app *a, const char *folder, const char *name, mt_err **err)
{
    _cleanup_(mt_mtr_diags_free_p) mt_mtr_diags *diags = mt_mtr_diags_new();
    _cleanup_(mt_mtc_program_free_p) mt_mtc_program *p = NULL;
    _cleanup_free_ char *main_name = xprintf("%s.mtc", name), *path = join(folder, main_name);

    if (!diags)
        return mt_fail_oom(err);
    if (a->main_file == SIZE_MAX)
        mt_mtr_diags_add(diags, MT_MTR_ERROR, path, (mt_str){NULL, 0}, 0, 0, NULL, NULL,
                         "app '%s' has no file %s: it holds main", name, main_name);
    p = mt_mtc_check(a->sources, a->count, a->main_file, diags);
    if (!p || mt_mtr_diags_oom(diags))
        return mt_fail_oom(err);
    k->apps++;
    k->files += a->count;
    tell(k, diags);
    if (cli_flag(k->c, "listing") && !mt_mtc_failed(p))
        return list_code(k, p, name, err);
    return 0;
}

// 0 when the folder holds no program.
static int check_app(check *k, const char *folder, const char *name, mt_err **err)
{
    app *a = xalloc(sizeof(*a));
    int r;

    memset(a, 0, sizeof(*a));
    r = read_sources(k->c, a, folder, name, err);
    if (r == 0 && a->count > 0)
        r = check_sources(k, a, folder, name, err);
    app_done(a);
    return r;
}

// ---- folders ----

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int check_apps(check *k, const char *apps, mt_err **err)
{
    tree t = {0};
    int r = 0;

    if (tree_scan_local(apps, true, &t, err) < 0)
        return -1;
    qsort(t.items, t.count, sizeof(*t.items), by_rel);
    for (size_t i = 0; i < t.count && r == 0; i++) {
        const tree_item *item = &t.items[i];
        _cleanup_free_ char *folder = join(apps, item->rel);

        if (cli_interrupted)
            r = mt_fail(err, MT_E_BAD_REQUEST, "interrupted");
        else if (item->type == VFS_FOLDER && item->rel[0] && item->rel[0] != '.' &&
                 !strchr(item->rel, '/'))
            r = check_app(k, folder, item->rel, err);
    }
    tree_done(&t);
    return r;
}

// A project has a folder apps; anything else is the folder of one app.
static int check_folder(check *k, const char *folder, mt_err **err)
{
    _cleanup_free_ char *apps = join(folder, "apps");
    char real[PATH_MAX];

    if (!folder[0])
        return cli_usage(k->c, err, "the name of the folder is empty");
    if (!realpath(folder, real))
        return mt_fail_errno(err, errno, "cannot look at '%s'", folder);
    if (!is_folder(folder))
        return cli_usage(k->c, err, "'%s' is no folder: app-check takes that of an app or project",
                         folder);
    if (is_folder(apps))
        return check_apps(k, apps, err);
    return check_app(k, folder, strrchr(real, '/') + 1, err);
}

static int finish_check(check *k, const char *folder, mt_err **err)
{
    if (k->c->json) {
        _cleanup_json_ mt_json *v = mt_json_new_object();

        (void)mt_json_set(v, "apps", mt_json_new_int((int64_t)k->apps));
        (void)mt_json_set(v, "diagnostics", mt_json_ref(k->faults));
        (void)mt_json_set(v, "warnings", mt_json_ref(k->warnings));
        if (cli_flag(k->c, "listing"))
            (void)mt_json_set(v, "listings", mt_json_ref(k->listings));
        if (cli_print_json(v, err) < 0)
            return -1;
    }
    if (k->apps == 0)
        return mt_fail(err, MT_E_NOT_FOUND,
                       "no app in '%s': an app is a folder with .mtc files, in a "
                       "project apps/NAME",
                       folder);
    if (k->errors)
        cli_note(k->c, "%zu error%s in %zu file%s", k->errors, k->errors == 1 ? "" : "s", k->files,
                 k->files == 1 ? "" : "s");
    else
        cli_note(k->c, "%zu app%s checked, no error", k->apps, k->apps == 1 ? "" : "s");
    return k->errors ? 1 : 0;
}

static int run_app_check(cli *c, mt_err **err)
{
    const char *folder = cli_arg(c, 0) ? cli_arg(c, 0) : ".";
    _cleanup_json_ mt_json *faults = mt_json_new_array(), *warnings = mt_json_new_array(),
                           *listings = mt_json_new_object();
    check k = {.c = c, .faults = faults, .warnings = warnings, .listings = listings};

    return check_folder(&k, folder, err) < 0 ? -1 : finish_check(&k, folder, err);
}

// ---- app-builtins ----

static char *signature_of(const mt_mtc_builtin *b)
{
    mt_buf text = MT_BUF_INIT(4096);

    if (mt_mtc_builtin_signature(b, &text) < 0)
        xoom();
    return mt_buf_take(&text);
}

static mt_json *json_of(const mt_mtc_builtin *b)
{
    mt_json *v = mt_json_new_object(), *parameters = mt_json_new_array();
    _cleanup_free_ char *signature = signature_of(b);

    for (size_t i = 0; i < b->count; i++) {
        mt_json *p = mt_json_new_object();

        (void)mt_json_set(p, "name", mt_json_new_text(b->parameters[i].name));
        (void)mt_json_set(p, "type", mt_json_new_text(mt_mtc_type_word(b->parameters[i].type)));
        (void)mt_json_append(parameters, p);
    }
    (void)mt_json_set(v, "name", mt_json_new_text(b->name));
    (void)mt_json_set(v, "family", mt_json_new_text(mt_mtc_builtin_family(b)));
    (void)mt_json_set(v, "kind", mt_json_new_text(mt_mtc_kind_word(b->kind)));
    (void)mt_json_set(v, "result", mt_json_new_text(mt_mtc_type_word(b->result)));
    (void)mt_json_set(v, "parameters", parameters);
    (void)mt_json_set(v, "signature", mt_json_new_text(signature));
    (void)mt_json_set(v, "doc", mt_json_new_text(b->doc));
    return v;
}

static void print_one(const mt_mtc_builtin *b)
{
    _cleanup_free_ char *signature = signature_of(b);

    (void)printf("%s\n", signature);
    cli_field("family", mt_mtc_builtin_family(b), true);
    cli_field("kind", mt_mtc_kind_word(b->kind), true);
    (void)printf("\n%s\n", b->doc);
}

static const char *next_name(size_t i, void *data)
{
    const mt_mtc_builtin *b = mt_mtc_builtin_at(i);

    return b ? b->name : NULL;
}

// Without regard to case, so that what one remembers is found.
static const mt_mtc_builtin *find(const char *name)
{
    const mt_mtc_builtin *b;

    for (size_t i = 0; (b = mt_mtc_builtin_at(i)) != NULL; i++) {
        if (mt_str_ieq(mt_str_of(name), b->name))
            return b;
    }
    return NULL;
}

static int show_one(const cli *c, const char *name, mt_err **err)
{
    const mt_mtc_builtin *b = find(name);
    _cleanup_json_ mt_json *v = NULL;
    const char *near;

    if (!b) {
        near = mt_nearest(mt_str_of(name), next_name, NULL);
        return mt_fail(err, MT_E_NOT_FOUND, "no built-in '%s'%s%s%s", name,
                       near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    if (c->json) {
        v = json_of(b);
        return cli_print_json(v, err);
    }
    print_one(b);
    return 0;
}

static int run_app_builtins(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *list = NULL;
    const mt_mtc_builtin *b;
    cli_table *table;

    if (cli_arg(c, 0))
        return show_one(c, cli_arg(c, 0), err);
    if (c->json) {
        list = mt_json_new_array();
        for (size_t i = 0; (b = mt_mtc_builtin_at(i)) != NULL; i++)
            (void)mt_json_append(list, json_of(b));
        return cli_print_json(list, err);
    }
    table = CLI_TABLE("KIND", "BUILT-IN");
    for (size_t i = 0; (b = mt_mtc_builtin_at(i)) != NULL; i++) {
        _cleanup_free_ char *signature = signature_of(b);

        CLI_ROW(table, mt_mtc_kind_word(b->kind), signature);
    }
    cli_table_print(c, table);
    return 0;
}

static const cli_option check_options[] = {
    {"listing", 0, NULL, "print the code that is made of an app without errors"},
    {NULL},
};

const cli_command cli_app_commands[] = {
    {"app-check", "[FOLDER]", 0, 1, "check the programs (.mtc) of an app or a project",
     "FOLDER is that of an app, whose main is in the file with the folder's name, or that of a\n"
     "project, whose apps are in apps/NAME. All errors are shown by file, line and column (exit "
     "1).\n"
     "A deploy checks the same. Nothing is asked of a server.",
     "  mt app-check maitento\n  mt app-check maitento/apps/analyst\n"
     "  mt app-check --listing maitento/apps/analyst",
     check_options, run_app_check},
    {"app-builtins", "[NAME]", 0, 1, "what the programs of apps can call",
     "Without NAME all built-ins with their signatures; with one what it does.",
     "  mt app-builtins | grep Vfs\n  mt app-builtins CapsuleExec", NULL, run_app_builtins},
    {NULL},
};
